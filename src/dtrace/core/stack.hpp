// SPDX-License-Identifier: BSD-2-Clause
// The kernel stack of a firing.
#pragma once

#include <cstdint>

#include "dtrace/core/consumer.hpp"

namespace dtmalloc::dtrace {

// The program counters of a firing's stack, the innermost first: 8 bytes each, at most `most` of
// them; how many there are in all.
std::size_t stack_of(const Firing& firing, void* to, std::size_t most);
// The built-in variable `caller`.
std::uint64_t caller_of(const Firing& firing);
// Where a CPU's thread is: what an interrupt there would see. Never 0.
std::uint64_t interrupted_pc(Framework::Impl& framework, const Cpu& cpu);

}  // namespace dtmalloc::dtrace
