// SPDX-License-Identifier: BSD-2-Clause
// Kernel and model side by side.

#include "support/replay.hpp"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "support/laws.hpp"

namespace dtmalloc::support {
namespace {

using reference::FlatBlock;
using reference::FlatCall;
using reference::FlatFiring;
using reference::FlatMalloc;
using workload::Index;
using workload::kNone;
using workload::Op;
using workload::OpKind;
using workload::Workload;

FlatMalloc::Address number_of(const void* address) {
  return reinterpret_cast<FlatMalloc::Address>(address);
}

std::uint64_t plain(const workload::Value& value) {
  DTM_CHECK(value.expr == kNone, "a replay wants a flat workload");
  return static_cast<std::uint64_t>(value.number);
}

// The statement as it is written.
std::string text_of(const Workload& workload, const Op& op) {
  Workload one = workload;
  one.kernel = {};
  one.bodies[0] = {op};
  std::string text = print(one);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

KernelConfig config_of(const Workload& workload, const ReplayOptions& options) {
  KernelConfig config;
  config.fixed_cpus = true;
  workload.kernel.apply(config);
  if (options.invariants) config.invariants = *options.invariants;
  config.ledger = options.ledger;
  return config;
}

}  // namespace

Replay::Replay(const Workload& workload, const ReplayOptions& options)
    : workload_(workload),
      options_(options),
      kernel_(std::make_unique<Kernel>(config_of(workload, options))),
      model_(expected_zmax(kernel_->config().mem)),
      types_(workload.types.size(), nullptr) {
  kernel_->cpus().set_console([](std::string_view) {});
  kernel_->cpus().bind(0);
  for (std::size_t i = 0; i < types_.size(); ++i) {
    const workload::TypeDecl& type = workload.types[i];
    types_[i] = type.builtin ? kernel_->type_by_symbol(type.symbol)
                             : &kernel_->define_type(type.symbol, type.shortdesc);
    type_index_[types_[i]] = static_cast<int>(i);
  }
  if (options.probes) {
    framework_ = std::make_unique<dtrace::Framework>(kernel_->cpus(), kernel_->addresses());
    load_dtmalloc(*framework_, *kernel_);
    framework_->open();
    start_from_here();
    log_ = std::make_unique<ProbeLog>(*framework_);
  }
}

Replay::~Replay() {
  log_.reset();
  framework_.reset();
  kernel_->cpus().unbind();
}

void Replay::start_from_here() {
  for (std::size_t i = 0; i < types_.size(); ++i) {
    for (int cpu = 0; cpu < kernel_->cpus().count(); ++cpu) {
      model_.start_with(cpu, static_cast<int>(i), line_of(cpu, *types_[i]));
    }
  }
}

reference::FlatStats Replay::line_of(int cpu, const malloc_type& type) const {
  // A type's line of one CPU lies mti_stats bytes behind the CPU's base.
  const auto offset = reinterpret_cast<std::uintptr_t>(type.ks_mti.mti_stats);
  const auto& line =
      *reinterpret_cast<const malloc_type_stats*>(kernel_->cpus().cpu(cpu).stats_base + offset);
  return {line.mts_memalloced, line.mts_memfreed, line.mts_numallocs, line.mts_numfrees,
          line.mts_size};
}

std::string Replay::run() {
  std::size_t number = 0;
  for (const Op& op : workload_.bodies[0]) {
    ++number;
    std::string problem;
    try {
      problem = step(op);
      if (problem.empty() && log_ != nullptr) problem = compare_firings();
      if (problem.empty() && options_.after_step) problem = options_.after_step(*this);
    } catch (const KernelPanic& panic) {
      problem = std::string("panics: ") + panic.what();
    }
    if (!problem.empty()) {
      return problem + "\n# in statement " + std::to_string(number) + ": " + text_of(workload_, op);
    }
  }
  return "";
}

std::string Replay::step(const Op& op) {
  switch (op.kind) {
    case OpKind::type:
      return "";
    case OpKind::cpu:
      kernel_->cpus().move_to(static_cast<int>(plain(op.value)));
      return "";
    case OpKind::malloc:
    case OpKind::mallocarray:
    case OpKind::malloc_aligned:
    case OpKind::malloc_exec:
    case OpKind::contigmalloc:
    case OpKind::malloc_domainset:
    case OpKind::malloc_domainset_exec:
    case OpKind::malloc_domainset_aligned:
    case OpKind::mallocarray_domainset:
    case OpKind::contigmalloc_domainset:
      return allocate(op);
    case OpKind::realloc:
    case OpKind::reallocf:
      return reallocate(op);
    case OpKind::free:
    case OpKind::zfree:
    case OpKind::contigfree:
      return release(op);
    case OpKind::reclaim:  // no difference that a user of malloc(9) may see
      uma_reclaim(kernel_->vm(), op.flags);
      return "";
    default:
      DTM_CHECK(false, "a replay wants a flat workload");
  }
  return "";
}

std::string Replay::allocate(const Op& op) {
  malloc_type* type = types_[op.type];
  const MallocFlags flags = MallocFlags::from_bits(op.flags);
  const std::uint64_t size = plain(op.value);
  FlatCall call{curcpu->id, static_cast<int>(op.type), size, op.flags};
  void* address = nullptr;
  std::string problem;
  switch (op.kind) {
    case OpKind::malloc:
      address = kernel_->malloc(size, type, flags);
      problem = model_.malloc(call, number_of(address));
      break;
    case OpKind::mallocarray:
      address = kernel_->mallocarray(size, plain(op.extra), type, flags);
      call.size = size * plain(op.extra);
      problem = model_.malloc(call, number_of(address));
      break;
    case OpKind::malloc_aligned:
      address = kernel_->malloc_aligned(size, plain(op.extra), type, flags);
      problem = model_.malloc_aligned(call, plain(op.extra), number_of(address));
      break;
    case OpKind::malloc_exec:
      address = kernel_->malloc_exec(size, type, flags);
      problem = model_.malloc_exec(call, number_of(address));
      break;
    case OpKind::contigmalloc:
      address = kernel_->contigmalloc(size, type, flags);
      problem = model_.contigmalloc(call, number_of(address));
      break;
    default:
      problem = allocate_from_set(op, call, &address);
  }
  if (problem.empty() && address == nullptr && op.kind == OpKind::malloc) {
    const auto [zindx, bytes] = model_.classify(size);
    problem = plausible_failure(zindx, bytes);
  }
  if (problem.empty()) problem = answered(op, address);
  if (problem.empty()) problem = stamp(address, (op.flags & kM_ZERO) != 0);
  return problem;
}

// The same blocks as without a set, from a domain of it.
std::string Replay::allocate_from_set(const Op& op, FlatCall call, void** address) {
  using Set = workload::Placement::Set;
  malloc_type* type = types_[op.type];
  const MallocFlags flags = MallocFlags::from_bits(op.flags);
  const workload::Placement& from = workload_.placements.at(op.detail);
  unsigned long mask = (1ul << kernel_->config().domains) - 1;
  domainset set = *DOMAINSET_RR();
  switch (from.set) {
    case Set::firsttouch:
      set = *DOMAINSET_FT();
      break;
    case Set::interleave:
      set = *DOMAINSET_IL();
      break;
    case Set::prefer:
      set = *DOMAINSET_PREF(from.number);
      break;
    case Set::fixed:
      set = *DOMAINSET_FIXED(from.number);
      mask = 1ul << from.number;
      break;
    case Set::mask:
      set = make_domainset(from.number, DOMAINSET_POLICY_ROUNDROBIN);
      mask = from.number;
      break;
    default:
      break;
  }
  std::string problem;
  switch (op.kind) {
    case OpKind::malloc_domainset:
      *address = kernel_->malloc_domainset(call.size, type, &set, flags);
      problem = model_.malloc(call, number_of(*address));
      break;
    case OpKind::malloc_domainset_exec:
      *address = kernel_->malloc_domainset_exec(call.size, type, &set, flags);
      problem = model_.malloc_exec(call, number_of(*address));
      break;
    case OpKind::malloc_domainset_aligned:
      *address = kernel_->malloc_domainset_aligned(call.size, plain(op.extra), type, &set, flags);
      problem = model_.malloc_aligned(call, plain(op.extra), number_of(*address));
      break;
    case OpKind::mallocarray_domainset:
      *address = kernel_->mallocarray_domainset(call.size, plain(op.extra), type, &set, flags);
      call.size *= plain(op.extra);
      problem = model_.malloc(call, number_of(*address));
      break;
    default:
      *address = kernel_->contigmalloc_domainset(call.size, type, &set, flags);
      problem = model_.contigmalloc(call, number_of(*address));
  }
  if (!problem.empty() || *address == nullptr) return problem;
  const PageInfo page = page_info(kernel_->vm(), *address);
  return (mask >> page.domain & 1) != 0 ? "" : "the block is of a domain outside the set";
}

std::string Replay::reallocate(const Op& op) {
  Held& old = held_.at(op.source.name);
  const std::uint64_t size = plain(op.value);
  const FlatBlock* block = model_.block(number_of(old.address));
  const std::uint64_t kept = std::min(size, block == nullptr ? 0 : block->size);
  std::string problem = check_stamp(old.address, block == nullptr ? 0 : block->size);
  if (!problem.empty()) return problem;
  const MallocFlags flags = MallocFlags::from_bits(op.flags);
  void* address = op.kind == OpKind::realloc
                      ? kernel_->realloc(old.address, size, types_[op.type], flags)
                      : kernel_->reallocf(old.address, size, types_[op.type], flags);
  problem = model_.realloc({curcpu->id, static_cast<int>(op.type), size, op.flags},
                           op.kind == OpKind::reallocf, number_of(old.address), number_of(address));
  if (!problem.empty()) return problem;
  if (address != nullptr && kept >= sizeof address) {
    // The first word says which block it was.
    const void* word = nullptr;
    std::memcpy(&word, address, sizeof word);
    if (word != old.address) return "realloc() did not keep the contents";
  }
  problem = answered(op, address);
  return problem.empty() ? stamp(address, false) : problem;
}

std::string Replay::release(const Op& op) {
  const Held held = held_.at(op.target.name);
  const Index type = op.type == kNone ? held.type : op.type;
  const FlatBlock* block = model_.block(number_of(held.address));
  const std::uint64_t size = block == nullptr ? 0 : block->size;
  std::string problem = check_stamp(held.address, size);
  if (!problem.empty()) return problem;
  if (op.kind == OpKind::free) {
    kernel_->free(held.address, types_[type]);
  } else if (op.kind == OpKind::zfree) {
    kernel_->zfree(held.address, types_[type]);
  } else {
    kernel_->contigfree(held.address, size, types_[type]);
  }
  return model_.free(curcpu->id, static_cast<int>(type), number_of(held.address));
}

std::string Replay::answered(const Op& op, void* address) {
  held_[op.target.name] = {address, op.type};
  answers_.push_back(kernel_->addresses().to_simulated(address));
  if (address == nullptr) return "";
  const std::uint64_t size = model_.block(number_of(address))->size;
  if (kernel_->malloc_usable_size(address) != size) return "malloc_usable_size() is wrong";
  if (kernel_->block_size(address) != size) return "block_size() is wrong";
  return "";
}

std::string Replay::plausible_failure(int zindx, std::uint64_t size) {
  std::uint64_t pages = (size + kPageSize - 1) / kPageSize;
  // With several domains a small request asks one, and a large one wants its pages in one.
  if (kernel_->config().domains > 1) return "";
  if (zindx != -1) {
    for (const ZoneStats& zone : kernel_->zones()) {
      if (zone.name != "malloc-" + std::to_string(size)) continue;
      pages = zone.ppera;
      const auto cpu = static_cast<std::size_t>(curcpu->id);
      const std::uint64_t own = cpu < zone.cpus.size() ? zone.cpus[cpu].items : 0;
      if (own + zone.bucket_cache_items + zone.keg_free_items != 0) {
        return "a request with M_NOWAIT failed although its class has free items";
      }
    }
  }
  // Two pages are kept back (spec/malloc9.md 5.11a); a slab's header may need a page of its own.
  if (kernel_->free_pages() >= 2 + pages + 1) {
    return "a request with M_NOWAIT failed although there are free pages";
  }
  return "";
}

std::string Replay::stamp(void* address, bool zeroed) {
  if (address == nullptr) return "";
  const std::uint64_t size = model_.block(number_of(address))->size;
  auto* bytes = static_cast<unsigned char*>(address);
  if (zeroed && std::any_of(bytes, bytes + size, [](unsigned char byte) { return byte != 0; })) {
    return "M_ZERO left a byte that is not zero";
  }
  std::memcpy(bytes + size - sizeof address, &address, sizeof address);
  std::memcpy(bytes, &address, sizeof address);
  return "";
}

std::string Replay::check_stamp(const void* address, std::uint64_t valid) const {
  if (address == nullptr) return "";
  if (valid == 0) return "a block that should live does not";
  const auto* bytes = static_cast<const unsigned char*>(address);
  if (std::memcmp(bytes, &address, sizeof address) != 0 ||
      std::memcmp(bytes + valid - sizeof address, &address, sizeof address) != 0) {
    return "somebody wrote into a live block";
  }
  return "";
}

std::string Replay::compare_firings() {
  std::vector<Firing> expected;
  for (const FlatFiring& firing : model_.take_firings()) {
    expected.push_back({types_[static_cast<std::size_t>(firing.type)],
                        firing.is_free ? Firing::free : Firing::malloc, firing.size, firing.zindx});
  }
  const std::vector<Firing> got = log_->take();
  if (got == expected) return "";
  std::ostringstream text;
  text << "other firings:";
  for (const Firing& firing : got) text << ' ' << firing;
  text << ", expected:";
  for (const Firing& firing : expected) text << ' ' << firing;
  return text.str();
}

std::string Replay::free_all() {
  std::vector<std::pair<FlatMalloc::Address, int>> live;
  for (const auto& [address, block] : model_.live()) live.push_back({address, block.type});
  try {
    for (const auto& [address, type] : live) {
      kernel_->free(reinterpret_cast<void*>(address), types_[static_cast<std::size_t>(type)]);
      std::string problem = model_.free(curcpu->id, type, address);
      if (problem.empty() && log_ != nullptr) problem = compare_firings();
      if (!problem.empty()) return problem;
    }
  } catch (const KernelPanic& panic) {
    return std::string("freeing everything panics: ") + panic.what();
  }
  return "";
}

std::string Replay::compare_all() {
  for (std::size_t i = 0; i < types_.size(); ++i) {
    for (int cpu = 0; cpu < kernel_->cpus().count(); ++cpu) {
      if (line_of(cpu, *types_[i]) != model_.stats(cpu, static_cast<int>(i))) {
        return std::string("the statistics of type ") + types_[i]->ks_shortdesc +
               " differ on CPU " + std::to_string(cpu);
      }
    }
  }
  for (const auto& [address, block] : model_.live()) {
    const void* host = reinterpret_cast<const void*>(address);
    if (kernel_->block_size(host) != block.size) return "block_size() of a live block is wrong";
  }
  std::string problem = law_of_types(*kernel_, types_, model_);
  if (problem.empty()) problem = law_of_kegs(*kernel_, model_);
  if (problem.empty()) problem = law_of_pages(*kernel_, model_);
  if (problem.empty()) problem = law_of_streams(*kernel_);
  if (problem.empty()) problem = law_of_domains(*kernel_, model_);
  if (problem.empty()) problem = law_of_structures(*kernel_);
  return problem;
}

}  // namespace dtmalloc::support
