// SPDX-License-Identifier: BSD-2-Clause
// Call sites and their program counters.
// Counterpart:  sys/kern/subr_stack.c
// Locking:      see call_sites.hpp; a Site is published once and never changes.
#include "sys/call_sites.hpp"

#include <charconv>
#include <cstdio>
#include <functional>
#include <utility>

namespace dtmalloc {
namespace {

struct Parts {
  std::string module, function;
  std::uint64_t offset = 0;
};

Parts parts_of(std::string_view site) {
  Parts parts;
  parts.module = "kernel";
  if (const std::size_t tick = site.find('`'); tick != std::string_view::npos && tick != 0) {
    parts.module = site.substr(0, tick);
    site.remove_prefix(tick + 1);
  }
  if (const std::size_t plus = site.rfind("+0x"); plus != std::string_view::npos && plus != 0) {
    const char* const end = site.data() + site.size();
    const auto [stop, error] = std::from_chars(site.data() + plus + 3, end, parts.offset, 16);
    constexpr std::uint64_t kMost = std::uint64_t{1} << 24;  // no function is larger
    if (error == std::errc() && stop == end && parts.offset < kMost)
      site = site.substr(0, plus);
    else
      parts.offset = 0;
  }
  parts.function = site;
  return parts;
}

}  // namespace

CallSites::~CallSites() {
  for (auto& head : buckets_)
    for (const Site* site = head.load(); site != nullptr;) delete std::exchange(site, site->next);
}

const CallSites::Site* CallSites::known(std::string_view site) const {
  for (const Site* at = bucket(site).load(std::memory_order_acquire); at != nullptr; at = at->next)
    if (at->name == site) return at;
  return nullptr;
}

std::uint64_t CallSites::place(const std::string& site) {
  Parts parts = parts_of(site);
  const std::uint64_t offset = parts.offset;
  std::pair<std::string, std::string> name(std::move(parts.module), std::move(parts.function));
  if (const auto found = functions_.find(name); found != functions_.end())
    if (offset < code_.at(found->second).size) return found->second + offset;
  Code code{name.first, name.second, 0, (offset + kStep) / kStep * kStep};
  constexpr std::uint64_t kTextEnd = 0xffffffff80d00000;
  const bool in_kernel = code.module == "kernel" && kTextEnd - next_text_ >= code.size;
  std::uint64_t& next = in_kernel ? next_text_ : next_module_;
  code.start = next;
  next += code.size;
  functions_.insert_or_assign(std::move(name), code.start);
  const std::uint64_t start = code.start;
  code_.emplace(start, std::move(code));
  return start + offset;
}

std::uint64_t CallSites::pc(const std::string& site) {
  if (const Site* found = known(site)) return found->pc;
  const std::lock_guard lock(mutex_);
  if (const Site* found = known(site)) return found->pc;
  auto& head = bucket(site);
  const auto* made = new Site{site, place(site), head.load(std::memory_order_relaxed)};
  head.store(made, std::memory_order_release);
  return made->pc;
}

std::vector<std::uint64_t> CallSites::save(const std::vector<std::string>& sites) {
  std::vector<std::uint64_t> pcs;
  for (auto site = sites.rbegin(); site != sites.rend() && pcs.size() < kMaxDepth; ++site)
    pcs.push_back(pc(*site));
  return pcs;
}

std::optional<CallSites::Code> CallSites::at(std::uint64_t pc) const {
  const std::lock_guard lock(mutex_);
  auto next = code_.upper_bound(pc);
  if (next == code_.begin()) return std::nullopt;
  const Code& code = std::prev(next)->second;
  return pc - code.start < code.size ? std::optional(code) : std::nullopt;
}

std::optional<CallSites::Code> CallSites::find(std::string_view module,
                                               std::string_view function) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [start, code] : code_)
    if (code.function == function && (module.empty() || code.module == module)) return code;
  return std::nullopt;
}

std::optional<CallSites::Code> CallSites::first(std::string_view module) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [start, code] : code_)
    if (code.module == module) return code;
  return std::nullopt;
}

std::string CallSites::print(const std::vector<std::uint64_t>& pcs) const {
  std::string out;
  for (std::size_t i = 0; i < pcs.size(); ++i) {
    char head[64];
    std::snprintf(head, sizeof head, "#%zu %#lx at ", i, static_cast<unsigned long>(pcs[i]));
    out += head;
    if (const std::optional<Code> code = at(pcs[i])) {
      if (code->module != "kernel") out += code->module + "`";
      out += code->function;
      if (const std::uint64_t offset = pcs[i] - code->start; offset != 0) {
        std::snprintf(head, sizeof head, "+%#lx", static_cast<unsigned long>(offset));
        out += head;
      }
    } else {
      out += "??";
    }
    out += "\n";
  }
  return out;
}

}  // namespace dtmalloc
