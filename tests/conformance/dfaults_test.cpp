// SPDX-License-Identifier: BSD-2-Clause
// Run-time errors by their codes, and what built-ins are in an interrupt.

#include <gtest/gtest.h>

#include "dtrace/core/consumer.hpp"
#include "support/traced_machine.hpp"

namespace dtmalloc::dtrace {
namespace {

using testing::TracedMachine;

// Each code as it comes out of dtrace:::ERROR, where no program could cause it too.
// REQ: DTRACE-82
TEST(DFaults, EveryCodeHasItsText) {
  const struct {
    std::uint64_t code;
    const char* text;
  } kRows[] = {{0, "unknown fault"},
               {1, "invalid address (0xabc)"},
               {2, "invalid alignment (0xabc)"},
               {3, "illegal operation"},
               {4, "divide-by-zero"},
               {5, "out of scratch space"},
               {6, "invalid kernel access"},
               {7, "invalid user access"},
               {8, "tuple stack overflow"},
               {9, "bad stack (0xabc)"},
               {1000, "library-level fault"},
               {77, "unknown fault"}};
  for (const auto& row : kRows) {
    TracedMachine machine;
    ASSERT_TRUE(machine.session->set_option("quiet"));
    ASSERT_EQ(machine.start("BEGIN {c = arg0;} ERROR /c != 0/ {printf(\"%d %x\", arg4, arg5);}"),
              "");
    Framework::Impl& impl = machine.framework->impl();
    Consumer& consumer = *impl.consumers.front();
    // Of the clause with EPID 1, its second action, at offset 12; then in its predicate.
    for (const std::uint64_t action : {2, 0}) {
      const std::uint64_t arguments[6] = {
          consumer.cookie(), 1, action, action == 0 ? ~std::uint64_t{0} : 12, row.code, 0xabc};
      impl.cpus.run_on_cpu(impl.cpus.cpu(0), [&] {
        impl.fire_for(consumer, impl.error, impl.cpus.cpu(0), nullptr, arguments);
      });
    }
    machine.session->stop();
    const std::string head = "dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): ";
    EXPECT_EQ(machine.err, head + row.text + " in action #2 at DIF offset 12\n" + head + row.text +
                               " in predicate\n");
    const std::string seen = std::to_string(row.code) + " abc";
    EXPECT_EQ(machine.out, seen + seen + "\n");
  }
}

// What the compiler makes never overflows the tuple.
// REQ: DTRACE-82
TEST(DFaults, ANinthKeyIsRefused) {
  EXPECT_EQ(
      TracedMachine().start("BEGIN {b[1, 2, 3, 4, 5, 6, 7, 8, 9] = 5;}").find("Insufficient"),
      std::string("dtrace: invalid probe specifier BEGIN {b[1, 2, 3, 4, 5, 6, 7, 8, 9] = 5;}: ")
          .size());
  TracedMachine machine;
  ASSERT_TRUE(machine.session->set_option("quiet"));
  ASSERT_EQ(
      machine.start("BEGIN {a[1, 2, 3, 4, 5, 6, 7, 8] = 5; trace(a[1, 2, 3, 4, 5, 6, 7, 8]);}"),
      "");
  machine.session->stop();
  EXPECT_EQ(machine.out, "5\n");
  EXPECT_EQ(machine.err, "");
}

// An interrupt borrows the thread that runs: what names it is that thread's; self-> is the CPU's.
// REQ: DTRACE-83
TEST(DInterrupts, BuiltinsAreTheInterruptedThreads) {
  TracedMachine machine;
  SimThread& thread = machine.kernel->cpus().current_thread();
  thread.execname = "nginx";
  thread.pid = 7;
  thread.ppid = 6;
  thread.uid = 5;
  thread.gid = 4;
  thread.run_time = 99;
  ASSERT_TRUE(machine.session->set_option("quiet"));
  ASSERT_EQ(machine.start("dtmalloc::aa:malloc {printf(\"%s %d %d %d %d %d %d %d %d %d %s %s;\", "
                          "execname, pid, ppid, uid, gid, tid == curthread->td_tid, vtimestamp, "
                          "errno, cpu, self->n++, probefunc, probename);}"),
            "");
  const auto fire = [&] {
    machine.kernel->cpus().clock().advance(1);  // records come in the order of their times
    machine.kernel->free(machine.kernel->malloc(100, machine.type, M_NOWAIT), machine.type);
  };
  fire();
  {
    const InterruptContext interrupt(machine.kernel->cpus());
    fire();
    machine.kernel->cpus().move_to(1);
    fire();
    fire();
  }
  fire();
  machine.session->stop();
  const std::string head = "nginx 7 6 5 4 1 99 0 ";
  const std::string tail = " aa malloc;";
  EXPECT_EQ(machine.out, head + "0 0" + tail + head + "0 0" + tail + head + "1 0" + tail + head +
                             "1 1" + tail + head + "1 1" + tail + "\n");
}

}  // namespace
}  // namespace dtmalloc::dtrace
