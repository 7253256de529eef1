// SPDX-License-Identifier: BSD-2-Clause
// Function boundary probes: firing, and what is known of each function.
// Counterpart:  sys/cddl/dev/fbt/fbt.c
// Locking:      see functions.hpp
#include "smp/functions.hpp"

#include <algorithm>

namespace dtmalloc {
namespace {

constexpr std::uint64_t kText = 0xffffffff80300000;

constexpr std::array<KernelFunctionInfo, kKernelFunctions> kFunctions = {{
#define KERNEL_FUNCTION(name, since, size, call, returns, arguments) \
  {#name, since, size, call, returns, arguments},
#include "smp/functions.def"
#undef KERNEL_FUNCTION
}};

constexpr std::array<std::uint64_t, kKernelFunctions> kAddresses = [] {
  std::array<std::uint64_t, kKernelFunctions> addresses{};
  std::uint64_t next = kText;
  for (std::size_t i = 0; i < kKernelFunctions; ++i) {
    addresses[i] = next;
    next += (kFunctions[i].size + 15) / 16 * 16;
  }
  return addresses;
}();

// The thread may be stopped on its way into the section, and a probe may panic out of it.
void fire(std::uint32_t id, std::uintptr_t arg0, std::uintptr_t arg1, std::uintptr_t arg2,
          std::uintptr_t arg3, std::uintptr_t arg4) {
  const Cpu& cpu = section_enter();
  struct Leave {
    ~Leave() { section_exit(); }
  } leave_section;
  cpu.function_probes->fire(id, arg0, arg1, arg2, arg3, arg4);
}

const FunctionProbes::Pair& probes_of(const Frame& frame) {
  return curcpu->function_probes->ids[static_cast<std::size_t>(frame.function)];
}

}  // namespace

const KernelFunctionInfo& info_of(KernelFunction function) {
  return kFunctions[static_cast<std::size_t>(function)];
}

std::uint64_t address_of(KernelFunction function) {
  return kAddresses[static_cast<std::size_t>(function)];
}

std::optional<KernelFunction> function_at(std::uint64_t address) {
  const auto next = std::upper_bound(kAddresses.begin(), kAddresses.end(), address);
  if (next == kAddresses.begin()) return std::nullopt;
  const auto at = static_cast<std::size_t>(next - kAddresses.begin() - 1);
  if (address - kAddresses[at] >= kFunctions[at].size) return std::nullopt;
  return static_cast<KernelFunction>(at);
}

std::optional<KernelFunction> find_function(std::string_view name) {
  for (std::size_t i = 0; i < kKernelFunctions; ++i)
    if (kFunctions[i].name == name) return static_cast<KernelFunction>(i);
  return std::nullopt;
}

void fire_entry(Frame& frame, const std::uintptr_t* arguments, std::size_t count) {
  const std::uint32_t id = probes_of(frame).entry.load(std::memory_order_acquire);
  if (id == 0) return;
  frame.arguments = arguments;
  frame.argument_count = count;
  const auto argument = [&](std::size_t i) { return i < count ? arguments[i] : 0; };
  fire(id, argument(0), argument(1), argument(2), argument(3), argument(4));
  frame.arguments = nullptr;
  frame.argument_count = 0;
}

void fire_return(Frame& frame, std::uintptr_t value) {
  const std::uint32_t id = probes_of(frame).return_.load(std::memory_order_acquire);
  if (id != 0) fire(id, info_of(frame.function).size - 1, value, 0, 0, 0);
}

}  // namespace dtmalloc
