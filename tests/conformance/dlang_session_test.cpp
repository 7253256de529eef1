// SPDX-License-Identifier: BSD-2-Clause
// The D language in a whole session: options of a program, addresses that outlive an expression,
// what of the host D may see, variables that CPUs share.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kernel.hpp>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/traced_machine.hpp"

namespace dtmalloc::dtrace {
namespace {

using Machine = testing::TracedMachine;

// The output of a quiet program around one malloc() and one free().
std::string output(const std::string& program) {
  Machine machine;
  EXPECT_TRUE(machine.session->set_option("quiet"));
  EXPECT_EQ(machine.start(program), "") << program;
  machine.pair();
  machine.session->stop();
  EXPECT_EQ(machine.err, "") << program;
  return machine.out;
}

// REQ: DLANG-08
TEST(DSession, OptionsOfAProgramHoldFromTheirLineOn) {
  const std::string quiet = "#pragma D option quiet\n";
  EXPECT_EQ(output("#pragma D option strsize=16\nBEGIN { trace(sizeof (string)); }"), "16\n");
  EXPECT_EQ(output("BEGIN { trace(sizeof (string)); }\n#pragma D option strsize=16\n"
                   "END { trace(sizeof (string)); }"),
            "1616\n");  // the whole text is parsed first
  EXPECT_EQ(output("#pragma D option zdefs\nnosuch {} BEGIN { trace(1); }"), "1\n");
  EXPECT_EQ(output("#pragma D option defaultargs\nBEGIN { trace($1); }"), "0\n");
  EXPECT_NE(Machine().start("nosuch {}"), "");
  EXPECT_NE(Machine().start("BEGIN { trace($1); }"), "");
  EXPECT_NE(Machine().start("BEGIN {}", {"extra"}), "");
  EXPECT_EQ(Machine().start("#pragma D option argref\nBEGIN {}", {"extra"}), "");
  ProgramSource empty;
  empty.text = "#pragma D option empty\n";
  EXPECT_TRUE(Machine().session->compile(empty));
  empty.text = "#pragma D option quiet\n";
  EXPECT_FALSE(Machine().session->compile(empty));
}

// REQ: DLANG-33
TEST(DSession, PointersToLiteralsOutliveTheirExpression) {
  EXPECT_EQ(output("BEGIN { this->p = (char *)\"hello\"; "
                   "trace(strjoin(stringof(this->p), \"xyz\")); }"),
            "helloxyz\n");
  EXPECT_EQ(output("BEGIN { p = (char *)\"x\"; q = (char *)\"y\"; trace(p == q); }"), "0\n");
  EXPECT_EQ(output("BEGIN { p = (char *)\"kept\"; } "
                   "dtmalloc::aa:malloc { trace(\"other\"); trace(stringof(p)); }"),
            "otherkept\n");
  const std::string keys = output("BEGIN { @[(char *)\"x\"] = count(); @[\"y\"] = count(); }");
  EXPECT_EQ(std::count(keys.begin(), keys.end(), '1') >= 2, true) << keys;
}

// REQ: DLANG-34
TEST(DSession, NoHostAddressReachesAProgram) {
  Machine machine;
  EXPECT_TRUE(machine.session->set_option("quiet"));
  ASSERT_EQ(
      machine.start("dtmalloc::aa:malloc { trace(*args[0]); printf(\"|%lx %lx\", *(long *)args[0], "
                    "((long *)args[0])[2]); printf(\"|%x %x %x\", *((unsigned int *)args[0] + 4), "
                    "*((unsigned short *)args[0] + 10), *((unsigned char *)args[0] + 21)); "
                    "p = (char *)args[0] + 17; printf(\"|%lx\", *(long *)p & 0xffffffffffffff); }"),
      "");
  machine.pair();
  machine.session->stop();
  const AddressMap& map = machine.kernel->addresses();
  const std::uint64_t next = map.to_simulated(machine.type->ks_next);
  const std::uint64_t text = map.to_simulated(machine.type->ks_shortdesc);
  EXPECT_GE(next, 0xfffff80000000000);
  EXPECT_GE(text, 0xfffff80000000000);
  const auto hex = [](std::uint64_t value) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%llx", static_cast<unsigned long long>(value));
    return std::string(digits);
  };
  // As the bytes of a dump: "70 00 00 85 ff ff ff ff".
  const auto bytes = [](std::uint64_t value) {
    std::string shown;
    for (int i = 0; i < 8; ++i, value >>= 8) {
      char digits[8];
      std::snprintf(digits, sizeof digits, " %02x", static_cast<unsigned>(value & 0xff));
      shown += digits;
    }
    return shown;
  };
  EXPECT_NE(machine.out.find("0:" + bytes(next)), std::string::npos) << machine.out;
  EXPECT_NE(machine.out.find("10:" + bytes(text)), std::string::npos) << machine.out;
  const std::string numbers = machine.out.substr(machine.out.find('|'));
  EXPECT_EQ(numbers, "|" + hex(next) + " " + hex(text) + "|" + hex(text & 0xffffffff) + " " +
                         hex(text >> 32 & 0xffff) + " " + hex(text >> 40 & 0xff) + "|" +
                         hex(text >> 8) + "\n");
  const std::string shortdesc = output(
      "dtmalloc::aa:malloc { trace(((unsigned long *)args[0])[2] >= 0xfffff80000000000); "
      "trace(((unsigned long *)args[0])[2] == (unsigned long)args[0]->ks_shortdesc); "
      "trace(*((unsigned char *)args[0] + 23)); }");
  EXPECT_EQ(shortdesc, "11255\n");
}

// REQ: DLANG-35
TEST(DSession, CurthreadIsTheAddressOfAThread) {
  EXPECT_EQ(output("BEGIN { this->t = curthread; trace(this->t == curthread); "
                   "trace((unsigned long)curthread >= 0xfffff80000000000); }"),
            "11\n");
  Machine machine;
  EXPECT_EQ(machine.start("BEGIN { trace(*(long *)((unsigned long)curthread + 0x800)); }"), "");
  EXPECT_NE(machine.err.find("invalid address"), std::string::npos) << machine.err;
}

// REQ: DLANG-36
TEST(DSession, ManyClausesWithManyVariablesCompileInLinearTime) {
  std::string text;
  constexpr int kClauses = 10000;
  for (int i = 0; i < kClauses; ++i) {
    const std::string n = std::to_string(i);
    text += "BEGIN { this->l" + n + " = " + n + "; g" + n + " = this->l" + n + "; }\n";
  }
  ProgramSource source;
  source.text = text;
  Machine machine;
  const auto before = std::chrono::steady_clock::now();
  EXPECT_TRUE(machine.session->compile(source));
  // A scan of the variables for each use would take minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(20));
}

// Two CPUs store and load one string and one number; for ThreadSanitizer, too.
// REQ: DLANG-37
TEST(DSession, GlobalsAreSharedByCpus) {
  Machine machine(true);
  EXPECT_TRUE(machine.session->set_option("quiet"));
  ASSERT_EQ(machine.start("dtmalloc::aa:malloc { n = arg3; s = n == 128 ? \"aaaa\" : \"bbbb\"; } "
                          "dtmalloc::aa:free { @[s == \"\" ? 1 : 0] = count(); @k[s] = count(); "
                          "@n[n] = count(); }"),
            "");
  Kernel& kernel = *machine.kernel;
  const auto work = [&](std::size_t size) {
    for (int i = 0; i < 2000; ++i) {
      kernel.free(kernel.malloc(size, machine.type, M_WAITOK), machine.type);
    }
  };
  std::thread other([&] {
    kernel.cpus().bind(1);
    work(200);
    kernel.cpus().unbind();
  });
  work(100);
  other.join();
  machine.session->stop();
  EXPECT_EQ(machine.err, "");
  EXPECT_NE(machine.out.find("4000"), std::string::npos) << machine.out;  // no empty text
  // The sizes of the zones.
  for (const char* value : {" 128 ", " 256 "}) {
    EXPECT_NE(machine.out.find(value), std::string::npos) << machine.out;
  }
}

}  // namespace
}  // namespace dtmalloc::dtrace
