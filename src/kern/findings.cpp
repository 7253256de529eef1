// SPDX-License-Identifier: BSD-2-Clause
// What the ledger makes of a free that is none, and the words for it.
// Locking:      see ledger_impl.hpp

#include "kern/ledger_impl.hpp"
#include "sys/visible.hpp"

namespace dtmalloc {
namespace {

std::string hex(std::uint64_t address) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

std::string size_of(const Finding& finding) {
  return " (" + std::to_string(finding.bytes) + " bytes, " + std::to_string(finding.request) +
         " asked for)";
}

}  // namespace

LedgerPlace Ledger::Impl::show(const Place& place) const {
  LedgerPlace out;
  out.sequence = place.sequence;
  out.time = place.time;
  out.cpu = place.cpu;
  out.tid = place.tid;
  out.execname = place.execname == kOtherName ? "other" : execnames[place.execname];
  if (place.stack == kOtherStack)
    out.stack = {"other"};
  else
    out.stack = stacks[place.stack];
  return out;
}

LedgerBlock Ledger::Impl::show(std::uintptr_t at, const Block& block) const {
  LedgerBlock out;
  out.host = reinterpret_cast<const void*>(at);
  out.address = kernel.addresses().to_printed(out.host);
  out.type = name(block.type);
  out.symbol = types[block.type].counts.symbol;
  out.guarded = block.guarded;
  out.request = block.request;
  out.bytes = block.bytes;
  out.size_class = block.size_class;
  out.resizes = block.resizes;
  out.allocated = show(block.allocated);
  return out;
}

std::string Ledger::Impl::name(TypeId type) const {
  if (type == kNoType) return {};
  const LedgerType& counts = types[type].counts;
  return counts.unloaded ? counts.name + " (unloaded)" : counts.name;
}

// Of an address without a live block and without a past.
std::string Ledger::Impl::what_is_at(const void* addr) const {
  Vm& vm = kernel.vm();
  if (!vm.in_arena(addr))
    return kernel.addresses().to_simulated(addr) == AddressMap::kNoAddress
               ? "outside the kernel's memory"
               : "an object of the kernel, no block";
  const std::uintptr_t word = vm.slab_word(addr);
  if (word == 0) return "a page where no block begins";
  if ((word & SLAB_COOKIE_MASK) != SLAB_COOKIE_SLAB_PTR) return "a page of a large block";
  return std::string("in a slab of the zone ") +
         reinterpret_cast<const uma_slab*>(word)->us_keg->zone->uz_name;
}

std::size_t Ledger::Impl::find(Finding finding, const Place& a, const Place& f, const Place& u) {
  const FindingKey key{finding.kind, finding.type, finding.other_type, a.stack, f.stack, u.stack};
  const auto known = found_index.find(key);
  std::size_t index = known == found_index.end() ? kNoFinding : known->second;
  if (index != kNoFinding) {
    if (finding.kind != Finding::Kind::leak) ++found[index].count;
    if (finding.kind == Finding::Kind::leak) {
      found[index].count += finding.count;
      found[index].bytes += finding.bytes;
      found[index].request += finding.request;
    }
  } else {
    if (a.sequence != 0) finding.allocated = show(a);
    if (f.sequence != 0) finding.freed = show(f);
    if (u.sequence != 0) finding.used = show(u);
    if (found.size() >= config.findings) {
      ++lost.findings;
      if (callback) news.push_back(std::move(finding));
      return kNoFinding;
    }
    index = found.size();
    found_index.emplace(key, index);
    found.push_back(std::move(finding));
  }
  if (callback) news.push_back(found[index]);
  return index;
}

void Ledger::Impl::tell(std::unique_lock<std::mutex>& lock) {
  if (news.empty()) return;
  const std::vector<Finding> told = std::exchange(news, {});
  const std::function<void(const Finding&)> listener = callback;
  lock.unlock();
  for (const Finding& finding : told)
    if (listener) listener(finding);
}

void Ledger::Impl::diagnose_free(TypeId type, const void* addr, const Place& place, Freed& freed) {
  const auto at = reinterpret_cast<std::uintptr_t>(addr);
  Finding finding;
  finding.address = finding.base = kernel.addresses().to_printed(addr);
  const auto owners = past.find(at);
  const Owner* last =
      owners == past.end() || owners->second.empty() ? nullptr : &owners->second.back();
  const auto around = covering(at);
  const auto set_block = [&](const Block& block) {
    finding.request = block.request;
    finding.bytes = block.bytes;
    finding.type = name(block.type);
    if (block.type != type) finding.other_type = name(type);
  };
  if (around != blocks.end()) {
    finding.kind = Finding::Kind::interior_free;
    finding.base = kernel.addresses().to_printed(reinterpret_cast<const void*>(around->first));
    set_block(around->second);
    freed.finding = find(std::move(finding), around->second.allocated,
                         last == nullptr ? Place{} : last->freed, place);
    return;
  }
  if (last != nullptr) {
    finding.kind = Finding::Kind::double_free;
    set_block(last->block);
    freed.finding = find(std::move(finding), last->block.allocated, last->freed, place);
    return;
  }
  const bool malloced = kernel.block_size(addr) != 0;
  if (malloced && unrecorded > 0) {
    --unrecorded;
    return;
  }
  finding.kind = Finding::Kind::foreign_free;
  finding.type = name(type);
  finding.what = what_is_at(addr);
  if (malloced && lost.past > 0) finding.what += "; older owners were forgotten";
  freed.finding = find(std::move(finding), {}, {}, place);
}

// --- Words

std::string_view name_of(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::wrong_type:
      return "wrong-type";
    case Finding::Kind::double_free:
      return "double-free";
    case Finding::Kind::interior_free:
      return "interior-free";
    case Finding::Kind::foreign_free:
      return "foreign-free";
    case Finding::Kind::stale_type:
      return "stale-type";
    case Finding::Kind::handed_out_twice:
      return "handed-out-twice";
    case Finding::Kind::modified:
      return "modified-after-free";
    case Finding::Kind::leak:
      return "leak";
  }
  return "";
}

std::string stack_text(const std::vector<std::string>& stack) {
  std::string out;
  for (const std::string& site : stack) out += (out.empty() ? "" : " < ") + site;
  return out.empty() ? "(no call site)" : out;
}

std::string to_string(const LedgerPlace& place) {
  return stack_text(place.stack) + " (cpu " + std::to_string(place.cpu) + ", " + place.execname +
         "/" + std::to_string(place.tid) + ", " + std::to_string(place.time) + " ns)";
}

std::string summary(const Finding& finding) {
  const std::string at = hex(finding.address);
  std::string out;
  switch (finding.kind) {
    case Finding::Kind::wrong_type:
      out = "wrong type: " + at + size_of(finding) + " allocated as " + finding.type +
            ", freed as " + finding.other_type;
      break;
    case Finding::Kind::double_free:
      out = "double free: " + at + size_of(finding) + " of " + finding.type;
      break;
    case Finding::Kind::interior_free:
      out = "interior free: " + at + " lies " + std::to_string(finding.address - finding.base) +
            " bytes inside " + hex(finding.base) + size_of(finding) + " of " + finding.type;
      break;
    case Finding::Kind::foreign_free:
      out = "free of what was never allocated: " + at + " as " + finding.type + ": " + finding.what;
      break;
    case Finding::Kind::stale_type:
      out = finding.freed ? "stale type: " + finding.type + " was unloaded"
                          : "stale type: " + finding.type + " was never registered";
      break;
    case Finding::Kind::handed_out_twice:
      out = "handed out twice: " + at + size_of(finding) + " of " + finding.type + " lives, " +
            finding.other_type + " got it as well";
      break;
    case Finding::Kind::modified:
      out = "modified after free: " + at + size_of(finding) + " of " + finding.type;
      break;
    case Finding::Kind::leak:
      return "leak: " + std::to_string(finding.count) +
             (finding.count == 1 ? " block of " : " blocks of ") + finding.type + size_of(finding);
  }
  if (finding.count > 1) out += ", " + std::to_string(finding.count) + " times";
  return out;
}

std::string to_string(const Finding& finding) {
  using Kind = Finding::Kind;
  const Kind kind = finding.kind;
  const char* freed = kind == Kind::double_free     ? "first freed at "
                      : kind == Kind::stale_type    ? "unloaded at "
                      : kind == Kind::interior_free ? "freed before at "
                                                    : "freed at ";
  const char* used = kind == Kind::double_free        ? "freed again at "
                     : kind == Kind::stale_type       ? "used at "
                     : kind == Kind::handed_out_twice ? "allocated again at "
                     : kind == Kind::modified         ? "seen at "
                     : kind == Kind::leak             ? "unloaded at "
                                                      : "freed at ";
  std::string out = visible(summary(finding)) + '\n';
  if (finding.allocated) out += "  allocated at " + to_string(*finding.allocated) + '\n';
  if (finding.freed) out += "  " + (freed + to_string(*finding.freed)) + '\n';
  if (finding.used) out += "  " + (used + to_string(*finding.used)) + '\n';
  return out;
}

}  // namespace dtmalloc
