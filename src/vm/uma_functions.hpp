// SPDX-License-Identifier: BSD-2-Clause
// UMA's own functions as the machine goes through them: as smp/functions.hpp says, but while no
// probe of fbt is enabled they cost a test of the guard word and leave no frame. Invariants:
// nothing fires inside them then, so nobody looks at the stack.
#pragma once

#include <utility>

#include "smp/functions.hpp"

namespace dtmalloc {

template <typename Body, typename Shown, typename... Arguments>
auto in_uma_as(KernelFunction function, Body&& body, Shown&& shown, Arguments... arguments) {
  if (__builtin_expect((curcpu->guard.load(std::memory_order_relaxed) & kGuardTwin) == 0, 1)) {
    return body();
  }
  return in_function_as(function, body, shown, arguments...);
}

template <typename Body, typename... Arguments>
auto in_uma(KernelFunction function, Body&& body, Arguments... arguments) {
  return in_uma_as(
      function, body, [](auto value) { return word_of(value); }, arguments...);
}

}  // namespace dtmalloc
