// SPDX-License-Identifier: BSD-2-Clause
// The table and the object of `dtmalloc overhead`, of fixed figures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "overhead.hpp"

namespace dtmalloc::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A million operations of 50 ns, half of them firings of one probe; a second of virtual time.
Overhead sample() {
  Overhead o;
  o.workload = "w.wl";
  o.traced = true;
  o.operations = 1000000;
  o.virtual_ns = o.whole_virtual_ns = 1000000000;
  o.absent = 50;
  o.disabled = {{0.1, -2.5, 2.7}, 50.1};
  o.probes.push_back({"dtmalloc:::malloc", 3, 500000, {{2, 1.9, 2.1}, 52.1}});
  o.firings = 500000;
  o.clauses = {{10, 8, 14}, 60.1};
  Overhead::Clause first;
  first.place = "s.d:3";
  first.description = "dtmalloc:::malloc";
  first.firings = 500000;
  first.cost = {8, 7.9, 8.1};
  first.share = 80;
  first.record = 32;
  first.records = 1000;
  Overhead::Clause second = first;
  second.place = "a_folder_with_a_long_name/script.d:17";
  second.cost = {0.1, -1, 1};
  second.share = 20;
  second.record = 0;
  second.records = 0;
  second.needs = {0};
  o.clause = {first, second};
  o.aggregations.push_back({"@x", {1, 0.95, 1.05}, 10, 4, 160});
  o.figures.bufsize = 4096;
  o.figures.aggsize = 8192;
  o.figures.aggregation_room = 4000;
  o.figures.switchrate = o.figures.aggrate = 1000000000;
  o.figures.aggregations.push_back({"@x", 4, 160});
  o.seed = 7;
  o.seconds = 20;
  o.rounds = 100;
  o.quiet = 80;
  o.spread = 3;
  return o;
}

// REQ: OVERHEAD-13
TEST(OverheadReport, NumbersBoundsAndNoise) {
  const std::string text = overhead_text(sample());
  EXPECT_THAT(text, HasSubstr("overhead of 2 clauses on w.wl:\n1000000 operations a run, 1.00 s"));
  EXPECT_THAT(text, HasSubstr("below the noise (-2.50 to 2.70)"));
  // 2 ns on 50.1; half an operation fires.
  EXPECT_THAT(text, HasSubstr("+2.00 (1.90 to 2.10)"));
  EXPECT_THAT(text, HasSubstr("3.99 %       4.00\n"));
  // The bounds alone: they are wider than half of the value.
  EXPECT_THAT(text, HasSubstr("60.1  8.00 to 14.0"));
  EXPECT_THAT(text, Not(HasSubstr("+10.0")));
  EXPECT_THAT(text, HasSubstr("80.0 %   32 bytes\n"));
  EXPECT_THAT(text, HasSubstr("beside 1, whose variables it reads"));
  EXPECT_THAT(text, HasSubstr("0.500 an operation, 500 thousand a virtual second"));
  // 8 to 14 ns of each of a million operations a second.
  EXPECT_THAT(text, HasSubstr("0.800 to 1.40 % of it for tracing"));
  EXPECT_THAT(text, HasSubstr("fill at 128 records a second of 32.0 bytes"));
  EXPECT_THAT(text,
              HasSubstr("makes 1.00 thousand a virtual second on all CPUs; none was dropped"));
  EXPECT_THAT(text, HasSubstr("hold 100 elements of 40.0 bytes, there are 4: with these keys"));
  EXPECT_THAT(text, HasSubstr("confidence    80 of 100 interleaved rounds were quiet"));
  EXPECT_THAT(text, Not(HasSubstr("NOISY")));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

// REQ: OVERHEAD-13
TEST(OverheadReport, ANoisyMachineIsSaid) {
  Overhead o = sample();
  o.quiet = 40;
  EXPECT_THAT(overhead_text(o), HasSubstr("THE MACHINE IS NOISY"));
  EXPECT_THAT(overhead_json(o), HasSubstr("\"noisy\":true"));
}

// REQ: OVERHEAD-07
TEST(OverheadReport, Drops) {
  Overhead o = sample();
  o.figures.drops = {{"DTRACEDROP_PRINCIPAL", 3000}, {"DTRACEDROP_DYNAMIC", 5}};
  const std::string text = overhead_text(o);
  // 1000 records were read and 3000 dropped.
  EXPECT_THAT(text, HasSubstr("makes 4.00 thousand a virtual second"));
  EXPECT_THAT(text, HasSubstr("3000 drops of 4000,"));
  EXPECT_THAT(text, HasSubstr("drops         5 of DTRACEDROP_DYNAMIC\n"));
  o.figures.switches = false;
  EXPECT_THAT(overhead_text(o),
              HasSubstr("hold 128 records of 32.0 bytes, and are read at the end"));
}

// REQ: OVERHEAD-09
TEST(OverheadReport, TheObjectQuotesNames) {
  Overhead o = sample();
  o.workload = "a\"b\\c\n.wl";
  const std::string text = overhead_json(o);
  EXPECT_THAT(text, HasSubstr("{\"workload\":\"a\\\"b\\\\c\\u000a.wl\",\"passes\":1,"));
  EXPECT_THAT(text, HasSubstr("\"all_empty\":null,"));
  EXPECT_THAT(text, HasSubstr("\"needs\":[0]"));
  EXPECT_THAT(text, HasSubstr("\"certainty\":\"vague\""));
  EXPECT_EQ(text.back(), '\n');
}

}  // namespace
}  // namespace dtmalloc::sim
