// SPDX-License-Identifier: BSD-2-Clause
// The kernel's functions as the machine goes through them: the frames of a thread's stack, and the
// probes at a function's boundaries.
//
// Example:
//   void uma_prealloc(uma_zone* zone, int items) {
//     in_function(KernelFunction::uma_prealloc, [&] { ... }, zone, items);
//   }
//
// The hot malloc() and free() leave no frame: their probes are reached through kGuardTwin, and a
// firing of dtmalloc knows without one which of them it is in (core/stack.cpp).
//
// Counterpart:  the frame pointer; sys/cddl/dev/fbt/fbt.c (fbt_invop)
// Locking:      a thread's frames are its own. The ids of FunctionProbes are read by the CPUs'
//               owners while a provider writes them.
// Invariants:   an entry or return fires with its CPU held in a section, after the guard bit was
//               seen; a panic that leaves a function fires no return.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <dtmalloc/smp/cpu.hpp>
#include <optional>
#include <string_view>
#include <type_traits>

#include "smp/section.hpp"

namespace dtmalloc {

enum class KernelFunction : std::uint8_t {
#define KERNEL_FUNCTION(name, since, size, call, returns, arguments) name,
#include "smp/functions.def"
#undef KERNEL_FUNCTION
};
inline constexpr std::size_t kKernelFunctions = 0
#define KERNEL_FUNCTION(name, since, size, call, returns, arguments) +1
#include "smp/functions.def"
#undef KERNEL_FUNCTION
    ;

struct KernelFunctionInfo {
  std::string_view name;
  int since;           // release
  std::uint32_t size;  // bytes of its code, which ends with its return
  std::uint32_t call;  // offset of the instruction behind a call
  std::string_view returns, arguments;
};
const KernelFunctionInfo& info_of(KernelFunction function);
// Where its code lies, below that of call sites (sys/call_sites.hpp).
std::uint64_t address_of(KernelFunction function);
// The function whose code an address is in, or none.
std::optional<KernelFunction> function_at(std::uint64_t address);
std::optional<KernelFunction> find_function(std::string_view name);

// A function that a thread is in.
struct Frame {
  const Frame* caller = nullptr;
  KernelFunction function{};
  // While its entry fires: all its arguments.
  const std::uintptr_t* arguments = nullptr;
  std::size_t argument_count = 0;
};

// The probes at the boundaries of functions; 0: not enabled.
struct FunctionProbes {
  struct Pair {
    std::atomic<std::uint32_t> entry{0}, return_{0};
  };
  std::array<Pair, kKernelFunctions> ids;
  dtrace_malloc_probe_func_t fire = nullptr;  // dtrace_probe()
};

class FrameScope {
 public:
  explicit FrameScope(KernelFunction function) : thread_(curcpu->thread) {
    if (thread_ == nullptr) return;  // at boot
    frame.function = function;
    frame.caller = thread_->frames;
    thread_->frames = &frame;
  }
  ~FrameScope() {
    if (thread_ != nullptr) thread_->frames = frame.caller;
  }
  FrameScope(const FrameScope&) = delete;
  FrameScope& operator=(const FrameScope&) = delete;
  Frame frame;

 private:
  SimThread* thread_;
};

void fire_entry(Frame& frame, const std::uintptr_t* arguments, std::size_t count);
void fire_return(Frame& frame, std::uintptr_t value);

template <typename T>
std::uintptr_t word_of(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<std::uintptr_t>(value);
  } else {
    return static_cast<std::uintptr_t>(value);
  }
}

// Runs the body of a function that has probes. `shown` makes of its result what the return probe
// has.
template <typename Body, typename Shown, typename... Arguments>
auto in_function_as(KernelFunction function, Body&& body, Shown&& shown, Arguments... arguments) {
  FrameScope scope(function);
  if (__builtin_expect((curcpu->guard.load(std::memory_order_relaxed) & kGuardTwin) == 0, 1)) {
    return body();
  }
  const std::uintptr_t words[] = {word_of(arguments)...};
  fire_entry(scope.frame, words, sizeof...(arguments));
  if constexpr (std::is_void_v<decltype(body())>) {
    body();
    fire_return(scope.frame, 0);
  } else {
    const auto value = body();
    fire_return(scope.frame, shown(value));
    return value;
  }
}

// Ditto; the result as it is.
template <typename Body, typename... Arguments>
auto in_function(KernelFunction function, Body&& body, Arguments... arguments) {
  return in_function_as(
      function, body, [](auto value) { return word_of(value); }, arguments...);
}

}  // namespace dtmalloc
