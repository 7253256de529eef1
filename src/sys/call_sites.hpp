// SPDX-License-Identifier: BSD-2-Clause
// Call sites as program counters: what struct stack holds of a simulated thread, and its names.
//
// Example:
//   const std::vector<std::uint64_t> pcs = sites.save(thread.call_sites);   // stack_save()
//   console(sites.print(pcs));                        // "#0 0xffffffff80400000 at foo+0x1c\n"
//
// Counterpart:  sys/kern/subr_stack.c
// Locking:      a mutex of its own
// Differs:      DEVIATES: a program counter is made up when its site is first met; the allocator's
//               own frames are not there, as the simulated call sites alone are known
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace dtmalloc {

class CallSites {
 public:
  static constexpr std::size_t kMaxDepth = 18;  // STACK_MAX

  // Of call sites, outermost first: the innermost kMaxDepth, innermost first.
  std::vector<std::uint64_t> save(const std::vector<std::string>& sites) {
    const std::lock_guard lock(mutex_);
    std::vector<std::uint64_t> pcs;
    for (auto site = sites.rbegin(); site != sites.rend() && pcs.size() < kMaxDepth; ++site) {
      const auto [known, added] = numbers_.try_emplace(*site, names_.size());
      if (added) names_.push_back(*site);
      pcs.push_back(kText + kStep * known->second);
    }
    return pcs;
  }
  // One line a frame; a number that is no site of this table has no name.
  std::string print(const std::vector<std::uint64_t>& pcs) const {
    const std::lock_guard lock(mutex_);
    std::string out;
    for (std::size_t i = 0; i < pcs.size(); ++i) {
      const std::uint64_t index = (pcs[i] - kText) / kStep;
      char head[64];
      std::snprintf(head, sizeof head, "#%zu %#lx at ", i, static_cast<unsigned long>(pcs[i]));
      out += head + (pcs[i] >= kText && index < names_.size() ? names_[index] : "??") + "\n";
    }
    return out;
  }

 private:
  static constexpr std::uint64_t kText = 0xffffffff80400000;  // below AddressMap::kData
  static constexpr std::uint64_t kStep = 16;
  mutable std::mutex mutex_;
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::string> names_;
};

}  // namespace dtmalloc
