// SPDX-License-Identifier: BSD-2-Clause
// The actions of a firing that record nothing: commit and discard, the destructive ones, and what
// cannot be recorded.
// Counterpart:  dtrace.c (dtrace_action_*)
// Locking:      as probe.cpp; but breakpoint() prints on the console, and chill() takes its time.
#include <cstdio>
#include <string>

#include "dtrace/core/consumer.hpp"
#include "dtrace/core/framework.hpp"

namespace dtmalloc::dtrace {
namespace {

// Where ECBs would lie in a kernel: what panic() shows.
constexpr std::uint64_t kEcbBase = 0xfffffe0f00000000;
constexpr std::uint64_t kEcbStride = 0x80;

constexpr std::uint64_t kChillInterval = 1000000000;
constexpr std::uint64_t kChillMost = 500000000;

constexpr std::uint64_t kLastSignal = 128;  // _SIG_MAXSIG

}  // namespace

// All consumers together may hold a CPU for half a second in every second.
bool Framework::Impl::chill(const Cpu& cpu, std::uint64_t ns) {
  Chill& chill = chills[static_cast<std::size_t>(cpu.id)];
  Clock& clock = cpus.clock();
  const std::uint64_t now = clock.now();
  if (now - chill.since > kChillInterval) chill = {now, 0};
  if (ns > kChillMost || chill.spent + ns > kChillMost) return false;
  clock.spin(ns);
  chill.spent += ns;
  return true;
}

[[gnu::cold, gnu::noinline]] bool Consumer::act(const Step& step, std::uint64_t value,
                                                const Ecb& ecb, Firing& firing,
                                                ConsumerCpu& state) {
  DifState& dif = state.dif;
  const auto allowed = [&](bool good) {
    if (!good) dif.fault = Fault::illop;
    return good;
  };
  switch (step.kind) {
    case StepKind::commit: {
      const bool good = commit(state, static_cast<std::uint32_t>(value));
      // What was committed may lie where the scratch memory was.
      PrincipalBuffer& buffer = state.buffer;
      if (buffer.policy == BufferPolicy::switch_) {
        const std::size_t scratch = (buffer.used + ecb.needed + 7) & ~std::size_t{7};
        dif.scratch_used = 0;
        dif.scratch = buffer.active + scratch;
        dif.scratch_size = scratch < buffer.size ? buffer.size - scratch : 0;
      }
      return allowed(good);
    }
    case StepKind::discard:
      return allowed(discard(state, static_cast<std::uint32_t>(value)));
    case StepKind::panic: {
      const Probe& probe = *ecb.probe;
      char place[32];
      std::snprintf(place, sizeof place, "0x%llx",
                    static_cast<unsigned long long>(kEcbBase + (cookie_ & 0xffffff) * 0x100 +
                                                    ecb.epid * kEcbStride));
      framework_.cpus.panic(
          "dtrace: panic action at probe " + std::string(probe.provider_name.text) + ":" +
          std::string(probe.module.text) + ":" + std::string(probe.function.text) + ":" +
          std::string(probe.name.text) + " (ecb " + place + ")");
    }
    case StepKind::breakpoint:
      // What kdb_enter() says; of a debugger that continues at once.
      framework_.cpus.console("KDB: enter: breakpoint action\n");
      return true;
    case StepKind::chill: {
      const bool good = framework_.chill(*firing.cpu, value);
      firing.stamped = false;
      return allowed(good);
    }
    case StepKind::raise: {
      // A kernel thread never returns to user mode, where a signal would be delivered.
      const auto signal = static_cast<std::int32_t>(value);
      if (signal > 0 && static_cast<std::uint64_t>(signal) <= kLastSignal) return true;
      framework_.cpus.panic("tdsendsignal(): invalid signal " + std::to_string(signal));
    }
    case StepKind::stop:
      return true;
    case StepKind::store_user:
      dif.fault = Fault::badaddr;
      dif.fault_address = value;
      return false;
    default:
      break;
  }
  DTM_CHECK(false, "a step without an action");
  return false;
}

std::uint64_t Consumer::speculation(DifState& state) {
  return static_cast<Firing*>(state.owner)->ecb->consumer->speculations_.take();
}

}  // namespace dtmalloc::dtrace
