// SPDX-License-Identifier: BSD-2-Clause
// Makes a failing workload small: delta debugging over its statements, then smaller numbers.
#pragma once

#include <dtmalloc/workload/workload.hpp>
#include <functional>

namespace dtmalloc::support {

// True: the workload still fails in the same way.
using StillFails = std::function<bool(const workload::Workload&)>;

// A workload that still fails and from which no statement can be left out, unless `attempts` calls
// of `fails` were not enough. Candidates are always valid: what uses a block that nobody sets, or
// a type that nobody declares, is left out with it. Requires: fails(workload).
workload::Workload shrink(const workload::Workload& workload, const StillFails& fails,
                          int attempts = 3000);

// Statements in all bodies that can be reached, type statements not counted.
std::size_t statement_count(const workload::Workload& workload);

}  // namespace dtmalloc::support
