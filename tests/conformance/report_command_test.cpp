// SPDX-License-Identifier: BSD-2-Clause
// What --report takes and where a report goes; the texts are in tests/golden/cases/reports.
#include <gtest/gtest.h>

#include "support/command.hpp"
#include "support/memstat.hpp"

namespace dtmalloc {
namespace {

using support::CommandLine;
using support::Ran;

class ReportCommand : public CommandLine {};

// REQ: SYSCTL-16
TEST_F(ReportCommand, SysctlPrintsNamesAndValues) {
  EXPECT_EQ(run("printf '' | dtmalloc run - --report sysctl=vm.uma.malloc_16.keg.ipers").out,
            "vm.uma.malloc_16.keg.ipers: 252\n");
  EXPECT_EQ(run("printf '' | dtmalloc run - --report sysctl=vm.malloc").out,
            "vm.malloc.zone_count: 15\n");
  const Ran unknown = run("printf '' | dtmalloc run - --report sysctl=vm.uma.malloc_15.size");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_EQ(unknown.out, "");
  EXPECT_NE(unknown.err.find("did you mean vm.uma.malloc_16.size"), std::string::npos);
}

// REQ: STREAM-11
TEST_F(ReportCommand, AStreamGoesToItsFile) {
  const std::string load = "printf 'a = malloc 100 M_TEMP M_WAITOK' >w.wl; ";
  const Ran ran =
      run(load +
          "dtmalloc run w.wl --report malloc-stats-stream=m,vmstat-m,zone-stats-stream=z --json");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(ran.out.starts_with("{\"__version\":\"2\"")) << ran.out;
  const auto types = support::memstat_malloc(contents("work/m"));
  ASSERT_FALSE(types.empty());
  EXPECT_EQ(types[2].name, "temp");
  EXPECT_EQ(types[2].bytes(), 128u);
  EXPECT_FALSE(support::memstat_uma(contents("work/z")).empty());

  // Also of a machine that has panicked, and never of a run that was refused.
  EXPECT_EQ(run("printf 'a = malloc 100 M_TEMP M_WAITOK\nfree a+65536' >p.wl\n"
                "dtmalloc run p.wl --report malloc-stats-stream=p")
                .status,
            3);
  EXPECT_EQ(support::memstat_malloc(contents("work/p"))[2].bytes(), 128u);
  EXPECT_EQ(run("rm *; printf 'free a' | dtmalloc run - --report malloc-stats-stream=m; ls").out,
            "");
}

// REQ: STREAM-11
TEST_F(ReportCommand, AStreamNeverReplacesAnInput) {
  const Ran input = run("printf '' >w.wl; dtmalloc run w.wl --report zone-stats-stream=w.wl");
  EXPECT_EQ(input.status, 1);
  EXPECT_EQ(contents("work/w.wl"), "");
  EXPECT_EQ(run("printf '' >w.wl; dtmalloc run w.wl -o x --report zone-stats-stream=x").status, 1);
  EXPECT_EQ(run("printf '' >w.wl; dtmalloc run w.wl "
                "--report zone-stats-stream=x,malloc-stats-stream=x; echo $?; ls")
                .out,
            "1\nw.wl\n");
  EXPECT_EQ(run("printf '' | dtmalloc run - --report zone-stats-stream=no/such").status, 1);
  EXPECT_EQ(run("printf '' | dtmalloc run - --report zone-stats-stream").status, 2);
}

// REQ: VMSTATZ-09
TEST_F(ReportCommand, VmstatZPrintsInTheFormatOfARelease) {
  auto head = [&](const std::string& options) {
    return run("printf 'kernel capture=z2' >w.wl; dtmalloc run w.wl " + options + " | head -1").out;
  };
  const std::string z16 =
      "ITEM                   SIZE   LIMIT     USED     FREE      REQ FAIL SLEEP XDOM\n";
  const std::string z3 =
      "ITEM                   SIZE  LIMIT     USED     FREE      REQ     FAILSLEEP XDOMAIN\n";
  const std::string z2 =
      "ITEM                   SIZE  LIMIT     USED     FREE      REQ FAIL SLEEP\n";
  EXPECT_EQ(head("--report vmstat-z"), z16);
  EXPECT_EQ(head("--release 14 --report vmstat-z"), z3);
  EXPECT_EQ(head("--release 12 --report vmstat-z"), z2);
  EXPECT_EQ(head("--report vmstat-z=14"), z3);
  EXPECT_EQ(head("--report vmstat-z=8"), z2);
  EXPECT_EQ(head("--release 14 --report vmstat-z=16"), z16);
  EXPECT_EQ(head("--report vmstat-z=capture"), z2);
}

// REQ: DDB-11
TEST_F(ReportCommand, SubzonesAreShownWhereThereAreSome) {
  const Ran ran = run("printf 'type M_A \"a\"' | dtmalloc run - --report ddb-multizone=M_A");
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.err,
            "dtmalloc: --report ddb-multizone=M_A: the kernel has one zone for each size, expected "
            "MALLOC_DEBUG_MAXZONES above 1\n");
}

// REQ: VMSTAT-09
TEST_F(ReportCommand, LibxoHasTwoStyles) {
  const std::string load = "printf 'a = malloc 1 M_TEMP M_WAITOK' | dtmalloc run - ";
  const std::string json = run(load + "--json").out;
  EXPECT_TRUE(json.starts_with("{\"__version\":\"2\",\"vmstat\"")) << json;
  EXPECT_EQ(run(load + "--libxo --report vmstat-m").out, json);
  EXPECT_EQ(run(load + "--libxo=json").out, json);
  const std::string xml = run(load + "--libxo=xml").out;
  EXPECT_EQ(xml,
            "<vmstat version=\"2\"><malloc-statistics><memory><type>temp</type><in-use>1</in-use>"
            "<memory-use>16</memory-use><requests>1</requests><size>16</size></memory>"
            "</malloc-statistics></vmstat>\n");
  EXPECT_EQ(run(load + "--xml").out, xml);
  EXPECT_EQ(run(load + "--libxo=html").status, 2);
  EXPECT_EQ(run(load + "--report vmstat-z --xml").out.substr(0, 60),
            "<vmstat version=\"2\"><memory-zone-statistics><zone><name>UMA ");
  EXPECT_EQ(run(load + "--report ddb-uma --xml").status, 2);
}

// REQ: CLI-03
TEST_F(ReportCommand, ReportsStandInTheOrderGiven) {
  const Ran ran = run(
      "printf 'a = malloc 1 M_TEMP M_WAITOK' >w.wl; dtmalloc run w.wl -q "
      "-n 'END{printf(\"d\\n\")}' --report sysctl=vm.malloc,vmstat-m=14 --report sysctl=vm.malloc");
  EXPECT_EQ(ran.out,
            "d\n\nvm.malloc.zone_count: 15\n         Type InUse MemUse Requests  Size(s)\n"
            "         temp     1     1K        2  16,64\nvm.malloc.zone_count: 15\n");
}

}  // namespace
}  // namespace dtmalloc
