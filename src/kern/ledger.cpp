// SPDX-License-Identifier: BSD-2-Clause
// The ledger's books: types, stacks, live blocks, past owners, samples.
// Locking:      see ledger_impl.hpp

#include <algorithm>

#include "kern/ledger_impl.hpp"
#include "kern/redzone.hpp"

namespace dtmalloc {

constinit thread_local Counted last_counted;

namespace {

std::uintptr_t number(const void* addr) { return reinterpret_cast<std::uintptr_t>(addr); }

void raise(std::int64_t value, std::uint64_t now, std::int64_t& peak, std::uint64_t& time) {
  if (value <= peak) return;
  peak = value;
  time = now;
}

void add(LedgerType& type, std::int64_t blocks, std::int64_t bytes, std::uint64_t now) {
  type.blocks += blocks;
  type.bytes += bytes;
  raise(type.blocks, now, type.peak_blocks, type.peak_blocks_time);
  raise(type.bytes, now, type.peak_bytes, type.peak_bytes_time);
}

}  // namespace

Ledger::Impl::StackId Ledger::Impl::intern(const SimThread& thread) {
  const bool by_line = thread.call_sites.empty();
  if (by_line && thread.line == 0) return kNoStack;
  if (by_line) {
    const auto known = line_ids.find(thread.line);
    if (known != line_ids.end()) return known->second;
  } else if (thread.call_sites == last_sites) {
    return last_stack;
  }
  std::vector<std::string> sites(thread.call_sites.rbegin(), thread.call_sites.rend());
  if (by_line) sites.push_back("line " + std::to_string(thread.line));
  auto known = stack_ids.find(sites);
  if (known == stack_ids.end()) {
    if (stack_ids.size() >= config.stacks) {
      ++lost.stacks;
      return kOtherStack;
    }
    const auto id = static_cast<StackId>(stacks.size());
    stacks.push_back(sites);
    known = stack_ids.emplace(std::move(sites), id).first;
  }
  if (by_line) {
    line_ids.emplace(thread.line, known->second);
  } else {
    last_sites = thread.call_sites;
    last_stack = known->second;
  }
  return known->second;
}

Ledger::Impl::Place Ledger::Impl::here() {
  CpuSet& cpus = kernel.cpus();
  const SimThread& thread = cpus.current_thread();
  Place place;
  place.sequence = ++sequence;
  place.time = cpus.clock().now();
  place.stack = intern(thread);
  place.cpu = curcpu->id;
  place.tid = thread.tid;
  place.execname = intern_name(thread.execname);
  return place;
}

std::uint32_t Ledger::Impl::intern_name(const std::string& execname) {
  const auto known = execname_ids.find(execname);
  if (known != execname_ids.end()) return known->second;
  if (execname_ids.size() >= config.stacks) {
    ++lost.names;
    return kOtherName;
  }
  const auto id = static_cast<std::uint32_t>(execnames.size());
  execnames.push_back(execname);
  execname_ids.emplace(execname, id);
  return id;
}

Ledger::Impl::TypeId Ledger::Impl::type_of(const malloc_type* mtp) {
  const auto known = current.find(mtp);
  if (known != current.end()) return known->second;
  return kernel.impl().knows(mtp) ? add_type(mtp) : kNoType;
}

Ledger::Impl::TypeId Ledger::Impl::add_type(const malloc_type* mtp) {
  const auto id = static_cast<TypeId>(types.size());
  Type& type = types.emplace_back();
  type.mtp = mtp;
  type.counts.name = mtp->ks_shortdesc == nullptr ? "" : mtp->ks_shortdesc;
  type.counts.symbol = kernel.symbol(*mtp);
  current.emplace(mtp, id);
  return id;
}

void Ledger::Impl::add_block(std::uintptr_t at, const Block& block) {
  blocks[at] = block;
  LedgerType& type = types[block.type].counts;
  if (block.guarded) {
    ++type.guarded;
    type.guarded_bytes += block.bytes;
    return;
  }
  for (LedgerType* sum : {&type, &total}) {
    ++sum->recorded;
    sum->recorded_bytes += block.bytes;
    sum->requested += block.request;
  }
  LedgerClass& size = classes[block.size_class];
  ++size.live_blocks;
  size.live_bytes += block.bytes;
  size.live_requested += block.request;
}

Ledger::Impl::Block Ledger::Impl::take_block(Blocks::iterator it) {
  const Block block = it->second;
  blocks.erase(it);
  LedgerType& type = types[block.type].counts;
  if (block.guarded) {
    --type.guarded;
    type.guarded_bytes -= block.bytes;
    return block;
  }
  for (LedgerType* sum : {&type, &total}) {
    --sum->recorded;
    sum->recorded_bytes -= block.bytes;
    sum->requested -= block.request;
  }
  LedgerClass& size = classes[block.size_class];
  --size.live_blocks;
  size.live_bytes -= block.bytes;
  size.live_requested -= block.request;
  return block;
}

void Ledger::Impl::remember(std::uintptr_t at, const Owner& owner) {
  auto owners = past.find(at);
  if (owners == past.end()) {
    if (config.past == 0 || past.size() >= config.addresses) {
      ++lost.past;
      return;
    }
    owners = past.try_emplace(at).first;
  }
  if (owners->second.size() >= config.past) {
    ++lost.past;
    owners->second.erase(owners->second.begin());
  }
  owners->second.push_back(owner);
}

// Under DEBUG_REDZONE a block begins behind its header, whose room depends on the size asked for.
std::uintptr_t Ledger::Impl::last_owner_in(std::uintptr_t item) const {
  std::uintptr_t begin = 0;
  std::uint64_t newest = 0;
  const auto look = [&](std::uintptr_t at) {
    const auto owners = past.find(at);
    if (owners == past.end() || owners->second.empty()) return;
    const std::uint64_t freed = owners->second.back().freed.sequence;
    if (freed <= newest) return;
    newest = freed;
    begin = at;
  };
  look(item);
  if (kernel.impl().redzone != nullptr)
    for (const std::size_t room : Redzone::kRooms) look(item + room);
  return begin;
}

// The live block in which an address lies, or end().
Ledger::Impl::Blocks::const_iterator Ledger::Impl::covering(std::uintptr_t at) const {
  auto next = blocks.upper_bound(at);
  if (next == blocks.begin()) return blocks.end();
  --next;
  return at - next->first < std::max<std::uint64_t>(next->second.bytes, 1) ? next : blocks.end();
}

// A sample shows what holds after all events up to its time.
void Ledger::Impl::sample(std::uint64_t now) {
  if (interval == 0) return;
  while (next_sample < now) {
    if (samples.size() >= std::max<std::size_t>(config.samples, 2)) {
      // Every second one stays: those at multiples of the doubled interval.
      std::size_t kept = 0;
      for (std::size_t i = 1; i < samples.size(); i += 2) samples[kept++] = std::move(samples[i]);
      samples.resize(kept);
      interval *= 2;
      next_sample = (kept + 1) * interval;
      continue;
    }
    LedgerSeries::Sample& row = samples.emplace_back();
    row.time = next_sample;
    for (const Type& type : types) row.bytes.push_back(type.counts.bytes);
    next_sample += interval;
  }
}

void Ledger::Impl::counted(const malloc_type* mtp, std::int64_t n, std::int64_t bytes,
                           bool of_zone) {
  last_counted = {bytes > 0 ? static_cast<std::uint64_t>(bytes) : 0, of_zone};
  const std::lock_guard lock(mutex);
  const std::uint64_t now = kernel.cpus().clock().now();
  sample(now);
  const TypeId id = type_of(mtp);
  if (id == kNoType) return;
  for (LedgerType* sum : {&types[id].counts, &total}) add(*sum, n, bytes, now);
}

void Ledger::Impl::manual(const malloc_type* mtp, std::int64_t n, std::int64_t bytes) {
  last_counted = {};
  const std::lock_guard lock(mutex);
  const TypeId id = type_of(mtp);
  if (id == kNoType) return;
  for (LedgerType* sum : {&types[id].counts, &total}) {
    sum->manual_blocks += n;
    sum->manual_bytes += bytes;
  }
}

void Ledger::Impl::allocated(const malloc_type* mtp, const void* addr, std::uint64_t request,
                             Counted counted) {
  std::unique_lock lock(mutex);
  const TypeId id = type_of(mtp);
  if (id == kNoType) return;
  const std::uintptr_t at = number(addr);
  Block block;
  block.type = id;
  block.guarded = counted.bytes == 0;
  block.request = request;
  block.bytes = block.guarded ? std::max(round_page(request), kPageSize) : counted.bytes;
  block.size_class = counted.of_zone ? counted.bytes : 0;
  block.allocated = here();
  if (!block.guarded) {
    for (LedgerType* sum : {&types[id].counts, &total}) {
      ++sum->all_blocks;
      sum->all_bytes += block.bytes;
      sum->all_requested += request;
    }
    LedgerClass& size = classes[block.size_class];
    ++size.all_blocks;
    size.all_bytes += block.bytes;
    size.all_requested += request;
  }
  const auto old = blocks.find(at);
  if (old != blocks.end()) {
    const Block first = take_block(old);
    Finding finding;
    finding.kind = Finding::Kind::handed_out_twice;
    finding.address = finding.base = kernel.addresses().to_printed(addr);
    finding.request = first.request;
    finding.bytes = first.bytes;
    finding.type = name(first.type);
    finding.other_type = name(id);
    find(std::move(finding), first.allocated, {}, block.allocated);
  }
  if (blocks.size() < config.blocks) {
    add_block(at, block);
  } else {
    ++lost.blocks;
    ++unrecorded;
  }
  tell(lock);
}

// A realloc() that gave `addr` for `old`.
void Ledger::Impl::resized(const malloc_type* mtp, const void* old, const void* addr,
                           std::uint64_t request) {
  if (addr != old) {
    bool known;
    {
      const std::lock_guard lock(mutex);
      known = blocks.find(number(old)) == blocks.end() || blocks.count(number(addr)) != 0;
    }
    if (known) return;  // it went through malloc() and free()
    freeing(mtp, old);
    allocated(mtp, addr, request, {});
    return;
  }
  const std::lock_guard lock(mutex);
  const auto it = blocks.find(number(addr));
  if (it == blocks.end()) return;
  Block& block = it->second;
  ++block.resizes;
  if (!block.guarded) {
    const std::uint64_t more = request - block.request;  // may wrap, and so take away
    for (LedgerType* sum : {&types[block.type].counts, &total}) {
      sum->requested += more;
      sum->all_requested += more;
    }
    classes[block.size_class].live_requested += more;
    classes[block.size_class].all_requested += more;
  }
  block.request = request;
}

Ledger::Impl::Freed Ledger::Impl::freeing(const malloc_type* mtp, const void* addr) {
  std::unique_lock lock(mutex);
  Freed freed;
  const TypeId id = type_of(mtp);
  if (id == kNoType) return freed;  // stale() has the word
  const Place place = here();
  const auto it = blocks.find(number(addr));
  if (it == blocks.end()) {
    diagnose_free(id, addr, place, freed);
  } else {
    const Block block = take_block(it);
    if (block.type != id) {
      Mismatch& pair = mismatches[{block.type, id}];
      if (pair.blocks++ == 0) {
        pair.allocated = block.allocated;
        pair.freed = place;
      }
      pair.bytes += block.bytes;
      Finding finding;
      finding.kind = Finding::Kind::wrong_type;
      finding.address = finding.base = kernel.addresses().to_printed(addr);
      finding.request = block.request;
      finding.bytes = block.bytes;
      finding.type = name(block.type);
      finding.other_type = name(id);
      freed.finding = find(std::move(finding), block.allocated, place, {});
    }
    const std::uint64_t before = lost.past;
    remember(number(addr), {block, id, place});
    freed.remembered = lost.past == before || past.count(number(addr)) != 0;
    freed.block = block;
  }
  tell(lock);
  return freed;
}

void Ledger::Impl::not_freed(const void* addr, const Freed& freed) {
  const std::lock_guard lock(mutex);
  if (freed.finding != kNoFinding) explains = freed.finding;
  if (!freed.block) return;
  if (freed.remembered) {
    const auto owners = past.find(number(addr));
    if (owners != past.end() && !owners->second.empty()) owners->second.pop_back();
  }
  add_block(number(addr), *freed.block);
}

void Ledger::Impl::unloaded(const malloc_type* mtp) {
  std::unique_lock lock(mutex);
  const auto known = current.find(mtp);
  const TypeId id = known == current.end() ? add_type(mtp) : known->second;
  current.erase(mtp);
  Type& type = types[id];
  type.counts.unloaded = true;
  type.unloaded = here();
  if (type.counts.recorded + type.counts.guarded == 0) return;
  struct Site {
    Finding finding;
    Place first;
  };
  std::map<StackId, Site> sites;
  for (const auto& [at, block] : blocks) {
    if (block.type != id) continue;
    Site& site = sites[block.allocated.stack];
    if (site.first.sequence == 0 || block.allocated.sequence < site.first.sequence) {
      site.first = block.allocated;
      site.finding.address = site.finding.base =
          kernel.addresses().to_printed(reinterpret_cast<const void*>(at));
    }
    if (site.finding.bytes != 0) ++site.finding.count;
    site.finding.bytes += block.bytes;
    site.finding.request += block.request;
  }
  std::vector<Site*> order;
  for (auto& [stack, site] : sites) order.push_back(&site);
  std::sort(order.begin(), order.end(),
            [](const Site* a, const Site* b) { return a->first.sequence < b->first.sequence; });
  for (Site* site : order) {
    site->finding.kind = Finding::Kind::leak;
    site->finding.type = type.counts.name;
    find(std::move(site->finding), site->first, {}, type.unloaded);
  }
  tell(lock);
}

void Ledger::Impl::stale(const malloc_type* mtp) {
  std::unique_lock lock(mutex);
  const Type* type = nullptr;
  for (const Type& each : types)
    if (each.mtp == mtp) type = &each;
  Finding finding;
  finding.kind = Finding::Kind::stale_type;
  finding.type = mtp->ks_shortdesc == nullptr ? "" : mtp->ks_shortdesc;
  const Place unloaded = type == nullptr ? Place{} : type->unloaded;
  const std::size_t found_at = find(std::move(finding), {}, unloaded, here());
  if (found_at != kNoFinding) explains = found_at;
  tell(lock);
}

// INVARIANTS is about to panic for a free item that somebody wrote to.
void Ledger::Impl::modified(const void* addr) {
  std::unique_lock lock(mutex);
  const std::uintptr_t begin = last_owner_in(number(addr));
  if (begin == 0) return;
  const Owner& last = past.find(begin)->second.back();
  Finding finding;
  finding.kind = Finding::Kind::modified;
  finding.address = finding.base =
      kernel.addresses().to_printed(reinterpret_cast<const void*>(begin));
  finding.request = last.block.request;
  finding.bytes = last.block.bytes;
  finding.type = name(last.block.type);
  const std::size_t found_at = find(std::move(finding), last.block.allocated, last.freed, here());
  if (found_at != kNoFinding) explains = found_at;
  tell(lock);
}

// --- Queries

Ledger::Ledger(Kernel& kernel, const LedgerConfig& config)
    : impl_(std::make_unique<Impl>(kernel, config)) {}
Ledger::~Ledger() = default;

const LedgerConfig& Ledger::config() const { return impl_->config; }

std::vector<LedgerBlock> Ledger::live() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<LedgerBlock> out;
  out.reserve(impl_->blocks.size());
  for (const auto& [at, block] : impl_->blocks) out.push_back(impl_->show(at, block));
  return out;
}

std::vector<LedgerType> Ledger::types() const {
  const std::vector<malloc_type*> registered = impl_->kernel.types();
  const std::lock_guard lock(impl_->mutex);
  std::vector<LedgerType> out;
  for (const malloc_type* mtp : registered) {
    const auto known = impl_->current.find(mtp);
    if (known != impl_->current.end()) out.push_back(impl_->types[known->second].counts);
  }
  for (const Impl::Type& type : impl_->types)
    if (type.counts.unloaded) out.push_back(type.counts);
  return out;
}

LedgerType Ledger::type(const malloc_type& mtp) const {
  const std::lock_guard lock(impl_->mutex);
  const Impl::Type* found = nullptr;
  for (const Impl::Type& type : impl_->types)
    if (type.mtp == &mtp) found = &type;
  if (found != nullptr) return found->counts;
  LedgerType none;
  none.name = mtp.ks_shortdesc == nullptr ? "" : mtp.ks_shortdesc;
  return none;
}

LedgerType Ledger::total() const {
  const std::lock_guard lock(impl_->mutex);
  LedgerType sum = impl_->total;
  sum.name = "Total";
  for (const Impl::Type& type : impl_->types) {
    sum.guarded += type.counts.guarded;
    sum.guarded_bytes += type.counts.guarded_bytes;
  }
  return sum;
}

std::vector<LedgerClass> Ledger::classes() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<LedgerClass> out;
  for (const auto& [bytes, sums] : impl_->classes) {
    out.push_back(sums);
    out.back().size = bytes;
  }
  // Whole pages last.
  if (!out.empty() && out[0].size == 0) std::rotate(out.begin(), out.begin() + 1, out.end());
  return out;
}

std::vector<LedgerMismatch> Ledger::mismatches() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<LedgerMismatch> out;
  for (const auto& [pair, sum] : impl_->mismatches)
    out.push_back({impl_->name(pair.first), impl_->name(pair.second), sum.blocks, sum.bytes,
                   impl_->show(sum.allocated), impl_->show(sum.freed)});
  std::sort(out.begin(), out.end(), [](const LedgerMismatch& a, const LedgerMismatch& b) {
    return a.first_freed.sequence < b.first_freed.sequence;
  });
  return out;
}

std::optional<LedgerBlock> Ledger::block(std::uint64_t address) const {
  const void* host = impl_->kernel.addresses().to_host(address, 1);
  const std::lock_guard lock(impl_->mutex);
  const auto it = impl_->covering(number(host));
  if (host == nullptr || it == impl_->blocks.end()) return std::nullopt;
  return impl_->show(it->first, it->second);
}

std::vector<PastOwner> Ledger::past(std::uint64_t address) const {
  const void* host = impl_->kernel.addresses().to_host(address, 1);
  const std::lock_guard lock(impl_->mutex);
  std::vector<PastOwner> out;
  const auto owners = impl_->past.find(number(host));
  if (host == nullptr || owners == impl_->past.end()) return out;
  for (const Impl::Owner& owner : owners->second)
    out.push_back({impl_->show(owners->first, owner.block), impl_->name(owner.freed_as),
                   impl_->show(owner.freed)});
  return out;
}

std::vector<Finding> Ledger::findings() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->found;
}

std::optional<Finding> Ledger::explanation() const {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->explains == Impl::kNoFinding) return std::nullopt;
  return impl_->found[impl_->explains];
}

LedgerDropped Ledger::dropped() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->lost;
}

LedgerSeries Ledger::series() const {
  const std::lock_guard lock(impl_->mutex);
  // One more than the clock shows: what happened now belongs to a sample of now.
  impl_->sample(impl_->kernel.cpus().clock().now() + 1);
  LedgerSeries out;
  out.interval = impl_->interval;
  for (const Impl::Type& type : impl_->types) out.types.push_back(type.counts.name);
  out.samples = impl_->samples;
  for (LedgerSeries::Sample& sample : out.samples) sample.bytes.resize(out.types.size());
  return out;
}

void Ledger::on_finding(std::function<void(const Finding&)> callback) {
  const std::lock_guard lock(impl_->mutex);
  impl_->callback = std::move(callback);
}

}  // namespace dtmalloc
