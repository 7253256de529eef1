// SPDX-License-Identifier: BSD-2-Clause
// What the result of an object depends on: which expressions are constant for a probe and need to
// run only once for each clause on it.
#pragma once

#include <cstdint>
#include <vector>

#include "dtrace/dif/dif.hpp"

namespace dtmalloc::dtrace {

struct DifReads {
  // Memory at a probe argument. If the value is a pointer, the text behind it is read too.
  struct Load {
    unsigned argument = 0;
    std::uint64_t offset = 0;
    unsigned size = 0;
    bool operator==(const Load&) const = default;
  };
  // The result may change from firing to firing whatever the arguments and built-in variables are
  // that are listed here: it reads variables, time, texts of the thread, random numbers or other
  // memory, or the object stores something.
  bool varies = false;
  std::uint32_t arguments = 0;          // bit i: argument i
  std::vector<std::uint32_t> builtins;  // numbers of the thread and the CPU: tid, cpu, ...
  std::vector<Load> loads;              // in the order of the text

  // Every firing of a probe gives the same result (texts: the same bytes, maybe in scratch).
  bool constant_for_probe() const { return !varies && arguments == 0 && builtins.empty(); }
};
DifReads reads_of(const VerifiedDif& dif);

}  // namespace dtmalloc::dtrace
