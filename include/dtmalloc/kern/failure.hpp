// SPDX-License-Identifier: BSD-2-Clause
// A planned failure: one request that may not wait gets null, as if memory were short.
//
// Example:
//   k.plan_failure({.nth = 2, .type = "foo"});
//   k.malloc(10, &foo, M_NOWAIT);                  // the first: a block
//   k.malloc(10, &foo, M_NOWAIT);                  // the second: nullptr
//   k.end_failure().failed;                        // true
//
// It counts the whole family, contigmalloc included, and leaves no trace: no statistic, no probe.
//
// Units:         requests, from 1.
// Errors:        none.
// Thread safety: any thread; one plan a kernel.
// Source:        spec/malloc9.md 6.5, whose debug.malloc.failure_rate it does not touch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtmalloc {

struct FailurePlan {
  std::uint64_t nth = 1;
  std::string type = {};  // symbol or short description; empty: all
  std::string site = {};  // a call site on the stack; empty: all
};

struct FailureOutcome {
  std::uint64_t matched = 0;            // requests that the plan meant
  bool failed = false;                  // there was an nth; of it:
  std::string type = {};                // short description
  std::vector<std::string> stack = {};  // call sites, innermost first
};

}  // namespace dtmalloc
