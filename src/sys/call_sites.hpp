// SPDX-License-Identifier: BSD-2-Clause
// Call sites as program counters: what struct stack and a D program hold of a simulated thread, and
// the names behind them. "foo_attach+0x1c" is a place in a function of the kernel,
// "mod`foo_attach+0x1c" in one of a module.
//
// Example:
//   const std::vector<std::uint64_t> pcs = sites.save(thread.call_sites);   // stack_save()
//   console(sites.print(pcs));                        // "#0 0xffffffff8040001c at foo+0x1c\n"
//
// Counterpart:  sys/kern/subr_stack.c, link_elf.c (link_elf_search_symbol)
// Locking:      a mutex of its own for what is new; pc() of a site that is known takes none
// Differs:      DEVIATES: where a function lies, and how large it is, is made up when its name is
//               first met
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtmalloc {

class CallSites {
 public:
  static constexpr std::size_t kMaxDepth = 18;  // STACK_MAX

  CallSites() = default;
  ~CallSites();
  CallSites(const CallSites&) = delete;
  CallSites& operator=(const CallSites&) = delete;

  std::uint64_t pc(const std::string& site);
  // Of call sites, outermost first: the innermost kMaxDepth, innermost first.
  std::vector<std::uint64_t> save(const std::vector<std::string>& sites);
  // One line a frame; a number that is no place of this table has no name.
  std::string print(const std::vector<std::uint64_t>& pcs) const;

  // A function's code. One that proves larger than was made up for it is moved: both count.
  struct Code {
    std::string module, function;
    std::uint64_t start = 0, size = 0;
  };
  std::optional<Code> at(std::uint64_t pc) const;
  // The beginning of a function; module empty: of any.
  std::optional<Code> find(std::string_view module, std::string_view function) const;
  // The function of a module that lies first; none: there is no such module.
  std::optional<Code> first(std::string_view module) const;

 private:
  static constexpr std::uint64_t kText = 0xffffffff80400000;     // the kernel's
  static constexpr std::uint64_t kModules = 0xffffffffa0000000;  // beyond AddressMap::kZones
  static constexpr std::uint64_t kStep = 0x2000;  // what a function gets, or a multiple
  struct Site {
    std::string name;
    std::uint64_t pc;
    const Site* next;
  };
  std::atomic<const Site*>& bucket(std::string_view site) const {
    return buckets_[std::hash<std::string_view>{}(site) % kBuckets];
  }
  const Site* known(std::string_view site) const;
  std::uint64_t place(const std::string& site);  // Requires: mutex_ held

  static constexpr std::size_t kBuckets = 1024;
  mutable std::array<std::atomic<const Site*>, kBuckets> buckets_{};
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Code> code_;                                      // by start
  std::map<std::pair<std::string, std::string>, std::uint64_t> functions_;  // start of the newest
  std::uint64_t next_text_ = kText, next_module_ = kModules;
};

}  // namespace dtmalloc
