// SPDX-License-Identifier: BSD-2-Clause
// The allocators to compare with: glibc's, and those that are installed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace dtmalloc::bench {

struct Peer {
  std::string name;
  void* (*allocate)(std::size_t);
  void (*release)(void*);
};

// glibc, jemalloc, mimalloc and tcmalloc, as far as they can be opened, each in a scope of its own.
// What is missing is named on stderr, once.
const std::vector<Peer>& peers();

}  // namespace dtmalloc::bench
