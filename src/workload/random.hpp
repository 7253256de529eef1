// SPDX-License-Identifier: BSD-2-Clause
// A seeded generator of numbers, the same on every platform (splitmix64).
#pragma once

#include <cstdint>

namespace dtmalloc::workload {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ull;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  }
  // 0 .. bound-1; bound 0 means 2^64.
  std::uint64_t below(std::uint64_t bound) {
    if (bound == 0) return next();
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }

 private:
  std::uint64_t state_;
};

}  // namespace dtmalloc::workload
