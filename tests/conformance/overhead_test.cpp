// SPDX-License-Identifier: BSD-2-Clause
// What the library offers to who measures tracing, and `dtmalloc overhead` itself: its figures
// differ from run to run, so what must hold of them is looked at, not they.
#include <gtest/gtest.h>

#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kernel.hpp>
#include <dtmalloc/testing/probe_log.hpp>
#include <dtmalloc/workload/run.hpp>
#include <string>

#include "support/command.hpp"
#include "support/traced_machine.hpp"

namespace {

using namespace dtmalloc;
using dtrace::ClauseInfo;
using dtrace::TraceFigures;
using dtrace::testing::TracedMachine;
using support::CommandLine;
using support::Ran;

constexpr const char* kPairs =
    "kernel cpus=2\ntype M_A \"a\"\nrepeat 10 as i {\n  x[i] = malloc 100 M_A M_WAITOK\n}\n"
    "cpu 1\nrepeat 10 as i {\n  free x[i]\n}\n";

struct Machine {
  explicit Machine(const char* text, workload::RunHooks hooks = {})
      : workload(*workload::parse(text, "w.wl")), kernel(config()) {
    kernel.cpus().bind(0);
    runner.emplace(workload, kernel, std::move(hooks));
    EXPECT_TRUE(runner->boot());
  }
  ~Machine() {
    runner.reset();
    kernel.cpus().unbind();
  }
  KernelConfig config() const {
    KernelConfig c;
    workload.kernel.apply(c);
    c.fixed_cpus = true;
    return c;
  }
  workload::Workload workload;
  Kernel kernel;
  std::optional<workload::Runner> runner;
};

// REQ: OVERHEAD-01
TEST(ProbeSites, AWorkloadRunsWithoutThem) {
  for (const bool sites : {true, false}) {
    workload::RunHooks hooks;
    hooks.no_probe_sites = !sites;
    Machine machine(kPairs, std::move(hooks));
    dtrace::Framework framework(machine.kernel.cpus(), machine.kernel.addresses());
    dtrace::load_dtmalloc(framework, machine.kernel);
    framework.open();
    const ProbeLog log(framework);
    const workload::Outcome outcome = machine.runner->run();
    EXPECT_EQ(outcome.operations, 23u);
    EXPECT_FALSE(outcome.panic || outcome.error);
    EXPECT_EQ(log.firings().size(), sites ? 20u : 0u);
    const TypeStats stats = machine.kernel.type_stats(*machine.kernel.type("a"));
    EXPECT_EQ(stats.numallocs, 10u);
    EXPECT_EQ(stats.numfrees, 10u);
    EXPECT_EQ(stats.memalloced, 1280u);
    framework.close();
  }
}

// REQ: OVERHEAD-01
TEST(ProbeSites, OperationsAreDoneAgain) {
  Machine machine(kPairs);
  ASSERT_TRUE(machine.runner->repeatable());
  EXPECT_EQ(machine.runner->run().operations, 23u);
  const workload::Outcome outcome = machine.runner->run_again();
  EXPECT_EQ(outcome.operations, 46u);
  EXPECT_FALSE(outcome.panic || outcome.error);
  EXPECT_EQ(machine.kernel.type_stats(*machine.kernel.type("a")).numfrees, 20u);
}

// REQ: OVERHEAD-01
TEST(ProbeSites, ThreadsAndExpectsAreDoneAgain) {
  // The consumer waits for blocks that the producer sets: those of this time.
  Machine machine(
      "kernel cpus=2\ntype M_A \"a\"\n"
      "thread \"p\" cpu=0 { repeat 5 as i { x[i] = malloc 64 M_A M_WAITOK\nwait 1us\n} }\n"
      "thread \"c\" cpu=1 { repeat 5 as i { free x[i]\n} }\n"
      "join\nexpect requests(M_A) == 5\n");
  ASSERT_TRUE(machine.runner->repeatable());
  EXPECT_EQ(machine.runner->run().failed_expects, 0u);
  const workload::Outcome outcome = machine.runner->run_again();
  EXPECT_FALSE(outcome.panic || outcome.error);
  EXPECT_EQ(outcome.failed_expects, 0u);  // 10 requests by now
  EXPECT_EQ(machine.kernel.type_stats(*machine.kernel.type("a")).numfrees, 10u);
}

TEST(ProbeSites, WhatChangesNamesIsNotDoneAgain) {
  EXPECT_FALSE(Machine("wait 1us\ntype M_A \"a\"\n").runner->repeatable());
  EXPECT_FALSE(Machine("wait 1us\nzone Z \"z\" size=64\n").runner->repeatable());
  EXPECT_FALSE(Machine("type M_A \"a\"\nwait 1us\nunload M_A\n").runner->repeatable());
  EXPECT_TRUE(Machine("type M_A \"a\"\nzone Z \"z\" size=64\nwait 1us\n").runner->repeatable());
}

dtrace::ProgramId compiled(dtrace::Session& session, const std::string& text) {
  dtrace::ProgramSource source;
  source.text = text;
  auto program = session.compile(source);
  EXPECT_TRUE(program) << message_of(source, program.error());
  return program ? *program : 0;
}

using Names = std::set<std::string>;

// REQ: OVERHEAD-02
TEST(Clauses, TellWhatTheyUse) {
  TracedMachine machine;
  dtrace::Session& session = *machine.session;
  const dtrace::ProgramId program = compiled(
      session,
      "BEGIN {x = 1;} dtmalloc:::malloc /x/ {self->t = arg3; this->y = self->t; @ = count();} "
      "dtmalloc::aa:free /self->t && n[tid]/ {n[tid]++; @f[x] = sum(self->t); "
      "printf(\"%d\", this->y); exit(0);}");
  const std::vector<ClauseInfo> clauses = session.clauses(program);
  ASSERT_EQ(clauses.size(), 3u);
  EXPECT_EQ(clauses[0].stores, Names{"x"});
  EXPECT_TRUE(clauses[0].reads.empty());
  EXPECT_FALSE(clauses[0].predicate);
  EXPECT_EQ(to_string(clauses[1].description), "dtmalloc:::malloc");
  EXPECT_TRUE(clauses[1].predicate);
  EXPECT_EQ(clauses[1].reads, (Names{"x", "self->t"}));
  EXPECT_EQ(clauses[1].stores, (Names{"self->t", "this->y"}));
  EXPECT_EQ(clauses[1].actions, (std::vector<std::string>{"", "", "@"}));
  EXPECT_EQ(clauses[2].reads, (Names{"self->t", "n", "x", "this->y"}));
  EXPECT_EQ(clauses[2].stores, Names{"n"});
  EXPECT_EQ(clauses[2].actions, (std::vector<std::string>{"", "@f", "printf", "exit"}));
  EXPECT_EQ(clauses[2].where.line, 1u);
  EXPECT_GT(clauses[2].where.column, clauses[1].where.column);
}

// REQ: OVERHEAD-02
TEST(Clauses, PiecesOfOneStandAtOnePlace) {
  TracedMachine machine;
  const dtrace::ProgramId program = compiled(
      *machine.session, "dtmalloc:::malloc {if (arg3 > 64) {@a = count();} else {@b = count();}}");
  const std::vector<ClauseInfo> clauses = machine.session->clauses(program);
  ASSERT_GT(clauses.size(), 1u);
  for (const ClauseInfo& clause : clauses) {
    EXPECT_EQ(clause.where.line, clauses[0].where.line);
    EXPECT_EQ(clause.where.column, clauses[0].where.column);
  }
}

// A member of a structure is stored by way of its address.
// REQ: OVERHEAD-02
TEST(Clauses, MembersAreStoredToo) {
  TracedMachine machine;
  const dtrace::ProgramId program =
      compiled(*machine.session,
               "struct pair {int a; int b;}; struct pair p; dtmalloc:::malloc {p.a = 1;} "
               "dtmalloc:::free {trace(p.b);}");
  const std::vector<ClauseInfo> clauses = machine.session->clauses(program);
  ASSERT_EQ(clauses.size(), 2u);
  EXPECT_TRUE(clauses[0].stores.contains("p"));
  EXPECT_TRUE(clauses[1].stores.empty());
  EXPECT_TRUE(clauses[1].reads.contains("p"));
}

void allocate(TracedMachine& machine, int times) {
  for (int i = 0; i < times; ++i) {
    void* block = machine.kernel->malloc(100, machine.type, M_WAITOK);
    machine.kernel->free(block, machine.type);
  }
}

// REQ: OVERHEAD-03, OVERHEAD-04
TEST(Clauses, OnlyTheChosenOnesRun) {
  TracedMachine machine;
  dtrace::Session& session = *machine.session;
  const dtrace::ProgramId program =
      compiled(session,
               "dtmalloc::aa:malloc {@a = count(); @b = count();} dtmalloc::aa:malloc {trace(1);} "
               "dtmalloc::aa:free {trace(2);} dtmalloc::aa:free {trace(3); exit(4);}");
  const auto enabled =
      session.enable(program, [](std::size_t clause, std::optional<std::size_t> action) {
        if (!action) return clause != 2;           // the third does not run,
        return !(clause == 0 && *action == 1)      // nobody adds to @b,
               && clause != 1                      // nothing is left of the second,
               && !(clause == 3 && *action == 1);  // and tracing goes on
      });
  ASSERT_TRUE(enabled);
  EXPECT_EQ(*enabled, 3u);
  ASSERT_TRUE(session.go());
  allocate(machine, 5);
  session.work();
  EXPECT_FALSE(session.done());
  session.stop();
  EXPECT_EQ(session.exit_status(), 0);
  const TraceFigures figures = session.figures();
  ASSERT_EQ(figures.clauses.size(), 3u);
  EXPECT_EQ(figures.clauses[0].clause, 0u);
  EXPECT_EQ(figures.clauses[0].size, 0u);
  EXPECT_EQ(figures.clauses[1].clause, 1u);
  EXPECT_EQ(figures.clauses[1].size, 0u);  // not the record that an empty clause makes
  EXPECT_EQ(figures.clauses[1].records, 0u);
  EXPECT_EQ(figures.clauses[2].clause, 3u);
  EXPECT_EQ(figures.clauses[2].size, 16u);  // the header of 12 bytes and an int
  EXPECT_EQ(figures.clauses[2].records, 5u);
  ASSERT_EQ(figures.aggregations.size(), 2u);
  EXPECT_EQ(figures.aggregations[0].name, "@a");
  EXPECT_EQ(figures.aggregations[0].elements, 1u);
  EXPECT_EQ(figures.aggregations[1].name, "@b");
  EXPECT_EQ(figures.aggregations[1].elements, 0u);
  EXPECT_TRUE(figures.drops.empty());
}

// REQ: OVERHEAD-04
TEST(Clauses, FiguresTellSizesAndDrops) {
  TracedMachine machine;
  dtrace::Session& session = *machine.session;
  ASSERT_TRUE(session.set_option("bufsize=1k"));
  ASSERT_TRUE(session.set_option("aggsize=1k"));
  ASSERT_TRUE(session.set_option("switchrate=100ms"));
  const dtrace::ProgramId program =
      compiled(session, "dtmalloc::aa:malloc {@[n++] = count();} dtmalloc::aa:malloc {trace(1);}");
  ASSERT_TRUE(session.enable(program));
  ASSERT_TRUE(session.go());
  allocate(machine, 200);
  session.stop();
  const TraceFigures figures = session.figures();
  EXPECT_EQ(figures.bufsize, 1024u);
  EXPECT_EQ(figures.aggsize, 1024u);
  EXPECT_EQ(figures.switchrate, 100000000u);
  EXPECT_EQ(figures.aggrate, 1000000000u);
  EXPECT_TRUE(figures.switches);
  ASSERT_EQ(figures.clauses.size(), 2u);
  // At most 64 records of 16 bytes; both clauses need room in the buffer.
  EXPECT_EQ(figures.clauses[1].size, 16u);
  EXPECT_LE(figures.clauses[1].records, 64u);
  EXPECT_GE(figures.drops.at("DTRACEDROP_PRINCIPAL"), 200 - figures.clauses[1].records);
  EXPECT_GT(figures.drops.at("DTRACEDROP_AGGREGATION"), 0u);
  ASSERT_EQ(figures.aggregations.size(), 1u);
  const TraceFigures::Aggregation& aggregation = figures.aggregations[0];
  // Elements are as large as the room says: one more would not have fitted.
  ASSERT_GT(aggregation.elements, 0u);
  EXPECT_LE(aggregation.bytes, figures.aggregation_room);
  EXPECT_GT(aggregation.bytes + aggregation.bytes / aggregation.elements, figures.aggregation_room);
}

class OverheadCommand : public CommandLine {};

// What jq says of the object that a command prints.
constexpr const char* kConsistent =
    "def near(a; b): ((a - b) | fabs) <= 1e-6 * (1 + (b | fabs));"
    "def keys_are(k): (keys_unsorted | sort) == (k | sort);"
    "def ordered: .low <= .high and ([.certainty] | inside([\"clear\", \"vague\", \"noise\"]));"
    "keys_are([\"workload\", \"passes\", \"operations\", \"virtual_ns\", \"cut\","
    "  \"absent_ns_per_operation\", \"disabled\", \"probes\", \"all_empty\", \"traced\", "
    "\"clauses\","
    "  \"aggregations\", \"events\", \"cpu\", \"buffers\", \"confidence\", \"notes\"])"
    " and near(.disabled.ns_per_operation; .absent_ns_per_operation + .disabled.over.ns)"
    " and (. as $o | [.probes[].empty, .all_empty, .traced | select(. != null)] | all("
    "  near(.ns_per_operation; $o.disabled.ns_per_operation + .over.ns) and (.over | ordered)"
    "  and near(.percent; .over.ns / $o.disabled.ns_per_operation * 100)))"
    " and ([.clauses[].cost, .aggregations[].cost] | all(ordered))"
    " and near(.events.firings_per_virtual_second;"
    "  .events.firings_per_operation * .events.operations_per_virtual_second)"
    " and near(.events.operations_per_virtual_second; .operations / .virtual_ns * 1e9)"
    " and near(.cpu.percent; (.traced // .all_empty // .probes[0].empty).over.ns"
    "  * .events.operations_per_virtual_second / 1e9 * 100)"
    " and (.confidence | .rounds >= .quiet_rounds and .rounds >= 5 and (.noisy | type) == "
    "\"boolean\")";

// REQ: OVERHEAD-09
TEST_F(OverheadCommand, TheObjectIsWhole) {
  const std::string workload =
      "printf 'kernel cpus=2\\ntype M_A \"a\"\\nrepeat 50 { b = malloc 16 M_A M_WAITOK\\nfree b\\n"
      "wait 1us\\n}\\n' >w.wl; printf '%s' '" +
      std::string(kConsistent) + "' >q.jq; ";
  const Ran traced = run(
      workload +
      "dtmalloc overhead w.wl --seconds 0.5 --json -o out -n 'dtmalloc:::malloc {@[probefunc] = "
      "count(); @b = count();} dtmalloc::a:free /arg3 > 0/ {trace(arg3);}' && jq -e -f q.jq out "
      "&& jq -c '[.clauses | length, (.[0].firings_per_operation * 151 | round) == 50, "
      ".[1].record_bytes,"
      " .[1].records > 0], [.aggregations[].name], .probes[1].matched,"
      " (.buffers.full_at_records_per_second > 0), .buffers.drops' out");
  EXPECT_EQ(traced.status, 0) << traced.err << traced.out;
  // 1 of 3 operations in the long run; trace(arg3) records a header of 12 bytes and 8 at 16.
  EXPECT_EQ(traced.out, "true\n[2,true,24,true]\n[\"@\",\"@b\"]\n1\ntrue\n{}\n");
  EXPECT_EQ(traced.err, "");
  const Ran bare =
      run(workload +
          "dtmalloc overhead w.wl --seconds 0.3 --json >out && jq -e -f q.jq out && jq "
          "-c '.traced, .buffers, [.probes[].description], .clauses' out");
  EXPECT_EQ(bare.status, 0) << bare.err << bare.out;
  EXPECT_EQ(bare.out, "true\nnull\nnull\n[\"dtmalloc:::malloc\",\"dtmalloc:::free\"]\n[]\n");
}

// REQ: OVERHEAD-12
TEST_F(OverheadCommand, ALongWorkloadIsCut) {
  const Ran ran = run(
      "printf 'type M_A \"a\"\\nrepeat 1000000000 { b = malloc 16 M_A M_WAITOK\\nfree b\\n}\\n' "
      "| timeout 60 dtmalloc overhead - --seconds 0.5 --json | jq '.cut, .passes,"
      " .operations < 1000000000, ([.notes[] | select(startswith(\"the programs\"))] | length)'");
  EXPECT_EQ(ran.out, "true\n1\ntrue\n0\n") << ran.err;
}

// REQ: OVERHEAD-10
TEST_F(OverheadCommand, StatusesAreThoseOfRun) {
  const struct {
    const char* command;
    int status;
    const char* message;
  } cases[] = {
      {"dtmalloc overhead", 2, "WORKLOAD"},
      {"dtmalloc overhead /nonexistent", 1, "/nonexistent"},
      {"echo 'a = mallok 1' | dtmalloc overhead -", 1, "malloc"},
      {"echo 'a = malloc 1 M_TEMP M_WAITOK' | dtmalloc overhead - -n 'BEGIN{'", 1, "dtrace: "},
      {"echo 'a = malloc 1 M_TEMP M_WAITOK' | dtmalloc overhead - -n 'BEGIN{chill(1)}'", 1,
       "Destructive actions not allowed"},
      {"echo 'a = malloc 1 M_TEMP M_WAITOK' | dtmalloc overhead - -q", 2, "no D program"},
      {"echo 'a = malloc 1 M_TEMP M_WAITOK' | dtmalloc overhead - --clock real", 2, "clock"},
      {"printf 'kernel clock=real\nwait 1us' | dtmalloc overhead -", 2, "clock"},
      {"echo 'type M_A \"a\"' | dtmalloc overhead -", 1, "no operation to measure"},
      {"printf 'a = malloc 70000 M_TEMP M_WAITOK\nfree a\nfree a' | dtmalloc overhead -", 3,
       "panic: "},
      {"printf 'a = malloc 1 M_TEMP M_WAITOK\nwait -1ns\n' | dtmalloc overhead -", 1, "time"},
      {"printf 'a = malloc 1 M_TEMP M_WAITOK\nfree a\nexpect 0' |"
       " dtmalloc overhead - --seconds 0.2",
       4, "this does not hold"},
      {"echo 'a = malloc 1 M_TEMP M_WAITOK' | dtmalloc overhead - -w --seconds 0.2 -n "
       "'dtmalloc:::malloc {panic();}'",
       3, "panic: "},
      {"echo 'wait 1us' | dtmalloc overhead - --seconds 0", 2, "--seconds"},
      {"echo 'wait 1us' | dtmalloc overhead - --second 1", 2, "--seconds"},
      {"echo 'wait 1us' | dtmalloc overhead - --seconds 0.2 >/dev/full", 1, "No space left"},
  };
  for (const auto& c : cases) {
    const Ran ran = run(c.command);
    EXPECT_EQ(ran.status, c.status) << c.command << "\n" << ran.err;
    EXPECT_NE(ran.err.find(c.message), std::string::npos) << c.command << "\n" << ran.err;
    EXPECT_EQ(ran.out.empty(), c.status != 4) << c.command;
  }
}

// REQ: OVERHEAD-10
TEST_F(OverheadCommand, WaitsThreadsAndKernelOptions) {
  const Ran ran = run(
      "printf 'kernel cpus=2\ntype M_A \"a\"\nthread \"p\" cpu=0 { repeat 20 as i { x[i] = malloc "
      "64 M_A M_WAITOK\nwait 10us\n} }\nthread \"c\" cpu=1 { repeat 20 as i { free x[i]\n} }\n"
      "join\nexpect inuse(M_A) == 0\n' >w.wl; dtmalloc overhead w.wl --seconds 0.3 --invariants "
      "--json -n 'dtmalloc::a: {self->n++;} tick-200us {trace(1);}' | jq -c '.operations % 66, "
      ".passes > 1, (.clauses | length)'");
  EXPECT_EQ(ran.out, "0\ntrue\n2\n") << ran.err;  // threads, what is in them, join, expect
}

// REQ: OVERHEAD-11
TEST_F(OverheadCommand, ProgramsLeaveNoTrace) {
  const Ran ran =
      run("printf 'type M_A \"a\"\nrepeat 20 { b = malloc 16 M_A M_WAITOK\nfree b\n}\n' >w.wl; "
          "dtmalloc overhead w.wl --seconds 0.2 --json -w -n 'BEGIN {printf(\"seen\");} "
          "dtmalloc::a:malloc {system(\"touch made\"); freopen(\"written\"); trace(1); exit(7);}' "
          ">out; echo $?; ls; grep -c seen out; jq -r '.notes[]' out | grep -v waits");
  EXPECT_EQ(ran.out,
            "0\nout\nw.wl\n0\nsystem() did nothing but be recorded\n"
            "freopen() did nothing but be recorded\nexit() did nothing: tracing goes on\n")
      << ran.err;
}

}  // namespace
