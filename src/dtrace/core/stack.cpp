// SPDX-License-Identifier: BSD-2-Clause
// The kernel stack of a firing: the functions that the machine is in, above the call sites that the
// simulated thread was given.
// Counterpart:  dtrace_isa.c (dtrace_getpcstack, dtrace_caller, dtrace_getstackdepth)
// Locking:      reads the frames and call sites of a thread, which are that thread's: only of the
//               calling thread, or in a deterministic run, where no other thread runs.
// Differs:      DEVIATES: a stack ends with the call sites; below those of a kernel's thread lie
//               fork_exit and fork_trampoline, of a process's the system call.
#include "dtrace/core/stack.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "dtrace/core/symbols.hpp"
#include "smp/functions.hpp"

namespace dtmalloc::dtrace {
namespace {

// The functions that count what they allocate or free, and so fire dtmalloc's probes themselves.
constexpr std::array kAccounting = {
    KernelFunction::malloc,
    KernelFunction::free,
    KernelFunction::zfree,
    KernelFunction::malloc_large,
    KernelFunction::malloc_domainset,
    KernelFunction::contigmalloc,
    KernelFunction::contigmalloc_domainset,
    KernelFunction::malloc_type_allocated,
    KernelFunction::malloc_type_freed,
};

constexpr const char* kIdle = "sched_idletd+0x4a";

std::uint64_t return_into(KernelFunction function) {
  return address_of(function) + info_of(function).call;
}

bool readable(const Cpu& cpu) {
  return &cpu == curcpu || cpu.machine->mode() == RunMode::deterministic;
}

// Calls `frame` with each program counter of a thread, from `innermost` on.
template <typename Visit>
void walk(KernelSymbols* symbols, const SimThread& thread, const Frame* innermost, Visit&& visit) {
  for (const Frame* frame = innermost; frame != nullptr; frame = frame->caller)
    visit(return_into(frame->function));
  if (symbols == nullptr) return;
  for (auto site = thread.call_sites.rbegin(); site != thread.call_sites.rend(); ++site)
    visit(symbols->pc(*site));
}

}  // namespace

std::size_t stack_of(const Firing& firing, void* to, std::size_t most) {
  std::size_t count = 0;
  const auto push = [&](std::uint64_t pc) {
    if (count < most) std::memcpy(static_cast<std::byte*>(to) + count * 8, &pc, 8);
    ++count;
  };
  const Probe& probe = *firing.ecb->probe;
  // An unanchored probe says itself where it is: the kernel takes its first argument for that.
  const bool anchored = !probe.function.text.empty();
  bool skip = false;
  if (!anchored && firing.arguments[0] != 0) {
    push(firing.arguments[0]);
    skip = true;
  }
  const SimThread* thread = firing.thread;
  if (thread == nullptr || !readable(*firing.cpu)) return count;
  const Frame* frame = thread->frames;
  for (int i = 0; i < probe.aframes && frame != nullptr; ++i) frame = frame->caller;
  if (probe.fires_in >= 0 && (frame == nullptr || std::find(kAccounting.begin(), kAccounting.end(),
                                                            frame->function) == kAccounting.end()))
    push(return_into(static_cast<KernelFunction>(probe.fires_in)));
  walk(probe.provider->framework->symbols.get(), *thread, frame, [&](std::uint64_t pc) {
    // The interrupted place is the innermost one.
    if (!skip || pc != firing.arguments[0]) push(pc);
    skip = false;
  });
  return count;
}

std::uint64_t caller_of(const Firing& firing) {
  std::array<std::uint64_t, 2> pcs{};
  stack_of(firing, pcs.data(), pcs.size());
  return firing.ecb->probe->function.text.empty() ? pcs[1] : pcs[0];
}

std::uint64_t interrupted_pc(Framework::Impl& framework, const Cpu& cpu) {
  std::uint64_t innermost = 0;
  if (cpu.thread != nullptr && readable(cpu)) {
    walk(framework.symbols.get(), *cpu.thread, cpu.thread->frames, [&](std::uint64_t pc) {
      if (innermost == 0) innermost = pc;
    });
  }
  if (innermost != 0 || framework.symbols == nullptr) return innermost;
  return framework.symbols->pc(kIdle);
}

}  // namespace dtmalloc::dtrace
