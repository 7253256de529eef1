// SPDX-License-Identifier: BSD-2-Clause
// What the workload language promises when it runs (sim/README.md).
#include <gtest/gtest.h>

#include <dtmalloc/workload/run.hpp>
#include <memory>
#include <string>
#include <vector>

namespace dtmalloc::workload {
namespace {

// A workload on a machine of its own.
struct Machine {
  explicit Machine(const std::string& text) {
    auto parsed = parse(text, "t.wl");
    EXPECT_TRUE(parsed) << (parsed ? "" : to_string(parsed.error()));
    if (!parsed) return;
    workload = std::move(*parsed);
    KernelConfig config;
    config.cpus = 2;
    config.mem = std::uint64_t{512} << 20;
    workload.kernel.apply(config);
    config.fixed_cpus = true;
    kernel = std::make_unique<Kernel>(config);
    kernel->cpus().bind(0);
    kernel->cpus().set_console([this](std::string_view line) { console += line; });
    runner = std::make_unique<Runner>(
        workload, *kernel,
        RunHooks{.report = [this](const Diagnostic& d) { failures.push_back(to_string(d)); },
                 .note = [this](const Diagnostic& d) { notes.push_back(d.message); }});
    if (auto booted = runner->boot(); !booted)
      refused = booted.error();
    else
      outcome = runner->run();
  }
  TypeStats stats(const char* symbol) {
    return kernel->type_stats(*kernel->type_by_symbol(symbol));
  }
  // Ran to its end and every expect held.
  void expect_good() {
    EXPECT_FALSE(refused) << to_string(*refused);
    EXPECT_FALSE(outcome.error) << to_string(*outcome.error);
    EXPECT_FALSE(outcome.panic) << outcome.panic->what();
    for (const std::string& failure : failures) ADD_FAILURE() << failure;
  }

  Workload workload;
  std::string console;
  std::vector<std::string> failures, notes;
  std::optional<Diagnostic> refused;  // at boot
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Runner> runner;
  Outcome outcome;
};

// REQ: WL-08
TEST(WorkloadRun, EveryOperationReachesItsFunction) {
  Machine m(R"(type M_A "a"
a = malloc 100 M_A M_WAITOK
expect size(a) == 128 && inuse(M_A) == 1 && memuse(M_A) == 128 && requests(M_A) == 1
a = realloc a 300 M_A M_WAITOK
expect size(a) == 384 && requests(M_A) == 2 && inuse(M_A) == 1
b = mallocarray 8 64 M_A M_WAITOK
expect size(b) == 512
c = malloc_aligned 300 16 M_A M_WAITOK
expect size(c) == 512
d = contigmalloc 5000 M_A M_WAITOK
expect size(d) == 8192
e = malloc_exec 100 M_A M_WAITOK
expect size(e) == 4096
f = reallocf e 70000 M_A M_WAITOK
expect size(f) == 73728
free a
zfree b
free c
contigfree d
free f
expect inuse(M_A) == 0 && memuse(M_A) == 0 && requests(M_A) == 7
)");
  m.expect_good();
}

// REQ: NUMA-24
TEST(WorkloadRun, OperationsSayWhereFrom) {
  Machine m(R"(kernel domains=2 cpus=4
type M_A "a"
a = malloc_domainset 100 fixed:1 M_A M_WAITOK
b = malloc_domainset_aligned 300 16 pref:1 M_A M_WAITOK
expect size(a) == 128 && domain(a) == 1 && size(b) == 512 && domain(b) == 1
c = malloc_domainset_exec 100 rr M_A M_WAITOK
d = malloc_domainset_exec 100 rr M_A M_WAITOK
expect size(c) == 4096 && domain(c) + domain(d) == 1
e = mallocarray_domainset 10 30 ft M_A M_WAITOK
expect size(e) == 384 && domain(e) == 0
f = contigmalloc_domainset 5000 mask:0x2 M_A M_WAITOK
expect size(f) == 8192 && domain(f) == 1
g = malloc_domainset 100 empty M_A M_WAITOK
h = contigmalloc_domainset 5000 fixed:1 M_A M_WAITOK low=0 high=16M
expect null(g) && null(h) && domain(g) == 0-1
j = malloc_domainset 100 il M_A M_WAITOK
expect domain(j) == 0
repeat 300 as n { x[n] = malloc 64 M_A M_WAITOK }
cpu 3
repeat 300 as n { free x[n] }
expect xdomain(malloc-64) == 254 && xdomain(malloc-128) == 0
)");
  m.expect_good();
}

TEST(WorkloadRun, AContiguousBlockLiesInItsRange) {
  Machine m(R"(kernel domains=2 mem=512M
a = contigmalloc 4096 M_TEMP M_WAITOK low=300M high=0x12c00fff
expect domain(a) == 1
b = contigmalloc 4096 M_TEMP M_NOWAIT low=300M high=0x12c00fff
expect null(b)
c = contigmalloc 4096 M_TEMP M_NOWAIT
d = contigmalloc 20000 M_TEMP M_NOWAIT align=64K boundary=1M
)");
  m.expect_good();
  const PageInfo a = page_info(m.kernel->vm(), m.runner->block("a"));
  EXPECT_EQ(a.physical, std::uint64_t{300} << 20);
  const PageInfo d = page_info(m.kernel->vm(), m.runner->block("d"));
  EXPECT_EQ(d.physical.value() % 65536, 0u);
}

// REQ: WL-09
TEST(WorkloadRun, BootIsTypesAndHistory) {
  Machine m(R"(type M_A "a"
type M_TEMP "temp"
type M_B "b"
history M_A allocs=10 memalloced=1000 frees=4 memfreed=400 sizes=16,64
)");
  m.expect_good();
  const TypeStats a = m.stats("M_A");
  EXPECT_EQ(a.numallocs, 10u);
  EXPECT_EQ(a.memalloced, 1000u);
  EXPECT_EQ(a.numfrees, 4u);
  EXPECT_EQ(a.memfreed, 400u);
  EXPECT_EQ(a.size_mask, 0b101u);
  // A type of the kernel's own takes the place where it is declared.
  std::vector<std::string> order;
  for (const malloc_type* type : m.kernel->types()) order.emplace_back(type->ks_shortdesc);
  EXPECT_EQ(order,
            (std::vector<std::string>{"cache", "devbuf", "UMA", "UMAHash", "a", "temp", "b"}));
  EXPECT_EQ(m.outcome.operations, 0u);
}

// REQ: WL-10
TEST(WorkloadRun, RepeatIndexesBlocks) {
  Machine m(R"(type M_A "a"
repeat 100 as i { x[i] = malloc 16+i M_A M_WAITOK }
repeat 10 as i { repeat 10 as j { y[i,j] = malloc 16 M_A M_WAITOK } }
repeat 50 as i { free x[99-i] }
x[-5] = malloc 16 M_A M_WAITOK
x[1000000000] = malloc 16 M_A M_WAITOK
free x[-5]
free x[1000000000]
free y[9,9]
expect inuse(M_A) == 149
)");
  m.expect_good();
}

// REQ: WL-11
TEST(WorkloadRun, DistributionsRepeatWithTheSeed) {
  const char* text = R"(kernel seed=5
type M_A "a"
repeat 1000 { a = malloc uniform(16,4096) M_A M_WAITOK }
repeat 1000 { a = malloc choice(16,64,zipf(100),normal(200,50)) M_A M_WAITOK }
)";
  Machine first(text), second(text);
  first.expect_good();
  EXPECT_EQ(first.stats("M_A").memalloced, second.stats("M_A").memalloced);
  // 1000 draws from 16..4096 are spread: the mean class size lies between 1 and 4 KiB.
  EXPECT_GT(first.stats("M_A").memalloced, 1000u * 1024);
  EXPECT_LT(first.stats("M_A").memalloced, 1000u * 4096);
  Machine other(std::string(text).replace(12, 1, "6"));
  EXPECT_NE(first.stats("M_A").memalloced, other.stats("M_A").memalloced);
}

// REQ: WL-12
TEST(WorkloadRun, ThreadsWaitForBlocksOfOthers) {
  Machine m(R"(type M_A "a"
thread "consumer" cpu=1 {
  repeat 50 as i { free x[i] }
  free late
}
thread "producer" cpu=0 {
  repeat 50 as i { x[i] = malloc 64 M_A M_WAITOK }
  wait 1ms
  late = malloc 64 M_A M_WAITOK
}
join
expect inuse(M_A) == 0 && requests(M_A) == 51
)");
  m.expect_good();
}

// REQ: WL-13
TEST(WorkloadRun, AnUnsetBlockIsADiagnosticWhenNobodyCanSetIt) {
  Machine alone("type M_A \"a\"\nfree x\nx = malloc 1 M_A M_WAITOK\n");
  ASSERT_TRUE(alone.outcome.error);
  EXPECT_EQ(alone.outcome.error->tag, "WL_UNSET_BLOCK");
  EXPECT_EQ(alone.outcome.error->where.line, 2u);
  EXPECT_EQ(alone.outcome.error->source_line, "free x");
  Machine threads(R"(thread "a" cpu=0 { free x[3] }
thread "b" cpu=1 { x[4] = malloc 1 M_TEMP M_WAITOK }
join
)");
  ASSERT_TRUE(threads.outcome.error);
  EXPECT_EQ(threads.outcome.error->where.line, 1u);
}

// REQ: WL-14
TEST(WorkloadRun, AFailedExpectIsReportedAndTheRunGoesOn) {
  Machine m("a = malloc 16 M_TEMP M_WAITOK\nexpect requests(M_TEMP) == 2\nfree a\nexpect 1 > 2\n");
  EXPECT_EQ(m.outcome.failed_expects, 2u);
  ASSERT_EQ(m.failures.size(), 2u);
  EXPECT_NE(m.failures[0].find("t.wl:2:1: "), std::string::npos) << m.failures[0];
  EXPECT_NE(m.failures[0].find("requests(M_TEMP) is 1"), std::string::npos) << m.failures[0];
  EXPECT_EQ(m.stats("M_TEMP").numfrees, 1u);
}

// REQ: WL-15
TEST(WorkloadRun, WhatABuggyKernelDoesReachesTheKernel) {
  Machine wild("a = malloc 70000 M_TEMP M_WAITOK\nfree a\nfree a\n");
  ASSERT_TRUE(wild.outcome.panic);
  EXPECT_NE(std::string(wild.outcome.panic->what()).find("has not been allocated"),
            std::string::npos)
      << wild.outcome.panic->what();
  Machine wrong_type(R"(type M_A "a"
type M_B "b"
x = malloc 128 M_A M_WAITOK
free x M_B
expect inuse(M_A) == 1 && inuse(M_B) == -1 && memuse(M_B) == -128
)");
  wrong_type.expect_good();
  Machine null(R"(kernel cpus=1 mem=1M
repeat 300 as i { x[i] = malloc 4096 M_TEMP M_NOWAIT }
expect null(x[299]) && fails(malloc-4096) > 0
free x[299]
)");
  null.expect_good();
}

// REQ: WL-16
TEST(WorkloadRun, AnUnloadPrintsTheLeakWarning) {
  Machine m(R"(type M_A "a"
repeat 3 { x = malloc 16 M_A M_WAITOK }
unload M_A
)");
  m.expect_good();
  EXPECT_EQ(m.console,
            "Warning: memory type a leaked memory on destroy (3 allocations, 48 bytes leaked).\n");
  EXPECT_EQ(m.outcome.leaked_types, 1u);
}

// REQ: WL-17
TEST(WorkloadRun, TimeIsVirtual) {
  Machine m("kernel cost=100ns\na = malloc 16 M_TEMP M_WAITOK\nfree a\nwait 5ms\n");
  m.expect_good();
  // Three operations and the wait.
  EXPECT_EQ(m.kernel->cpus().clock().now(), 5'000'300u);
}

// What stands under the caret.
std::string marked(const Diagnostic& d) {
  return d.where.column == 0 ? "" : d.source_line.substr(d.where.column - 1, d.where.length);
}

// REQ: TRACE-09
TEST(WorkloadRun, AnOperationMayNameItsCpu) {
  Machine m(R"(kernel cpus=3
type M_A "a"
a = malloc 64 M_A M_WAITOK cpu=1
b = contigmalloc 4096 M_A M_WAITOK low=0 cpu=2 @f
a = realloc a 100 M_A M_WAITOK cpu=0
free b M_A cpu=2
wait 1us cpu=1
)");
  m.expect_good();
  EXPECT_EQ(curcpu->id, 1);
  EXPECT_EQ(m.kernel->cpus().clock().now(), 1500u);
  const auto parsed = parse(print(m.workload), "p");
  ASSERT_TRUE(parsed) << to_string(parsed.error());
  EXPECT_TRUE(*parsed == m.workload);
  Machine none("kernel cpus=3\ncritical { free a cpu=7 }\na = malloc 1 M_TEMP M_WAITOK cpu=1\n");
  ASSERT_TRUE(none.refused);
  EXPECT_EQ(none.refused->tag, "WL_RANGE");
  EXPECT_EQ(none.refused->where.line, 2u);
  Machine inside("a = malloc 1 M_TEMP M_WAITOK\ncritical { free a cpu=1 }\n");
  ASSERT_TRUE(inside.outcome.error);
  EXPECT_EQ(inside.outcome.error->tag, "WL_CONTEXT");
}

// REQ: WL-18, WL-22
TEST(WorkloadRun, ConstantsThatCannotBeAreRefusedAtBoot) {
  const struct {
    const char *text, *tag, *at;
  } cases[] = {{"cpu 7\n", "WL_RANGE", "7"},
               {"repeat 2-3 { cpu 0 }\n", "WL_RANGE", "2-3"},
               {"repeat 0 { a = malloc 1/0 M_TEMP M_WAITOK }\n", "WL_ARITHMETIC", "0"},
               {"a = malloc 8+4611686018427387904*2 M_TEMP M_WAITOK\n", "WL_ARITHMETIC",
                "4611686018427387904*2"},
               {"a = malloc 1-2 M_TEMP M_WAITOK\n", "WL_RANGE", "1-2"},
               {"a = mallocarray 2 (1-2) M_TEMP M_WAITOK\n", "WL_RANGE", "1-2"},
               {"thread \"cpu=1\" pid=1 cpu=9 { }\n", "WL_RANGE", "9"},
               {"thread \"t\" cpu=(2+1) { }\n", "WL_RANGE", "2+1"},
               {"expect 1 == 1 || fails(malloc-63) == 0\n", "WL_UNKNOWN_ZONE", "fails(malloc-63)"},
               {"reclaim trim domain=1 zone=\"malloc-16\"\n", "WL_RANGE", "1"},
               {"reclaim trim zone=\"malloc-17\"\n", "WL_UNKNOWN_ZONE", "\"malloc-17\""},
               {"sysctl nosuch # comment\n", "WL_UNKNOWN_SYSCTL", "nosuch"},
               {"sysctl vm.redzone.panic=1\n", "WL_UNKNOWN_SYSCTL", "vm.redzone.panic"},
               {"wait -5ms\n", "WL_RANGE", "-5ms"},
               {"a = malloc 1 M_TEMP M_WAITOK\npoke a+1 (-1)\n", "WL_RANGE", "-1"},
               {"a = malloc 1 M_TEMP M_WAITOK\npoke a+1 0x141 # no\n", "WL_RANGE", "0x141"},
               {"a = malloc_domainset 1 fixed:1 M_TEMP M_WAITOK\n", "WL_RANGE", "fixed:1"},
               {"a = malloc_domainset 1 pref:1 M_TEMP M_WAITOK\n", "WL_RANGE", "pref:1"},
               {"a = contigmalloc_domainset 1 mask:0x3 M_TEMP M_WAITOK\n", "WL_RANGE", "mask:0x3"}};
  for (const auto& c : cases) {
    Machine m(std::string("b = malloc 16 M_TEMP M_WAITOK\n") + c.text);
    ASSERT_TRUE(m.refused) << c.text;
    EXPECT_EQ(m.refused->tag, c.tag) << c.text;
    EXPECT_EQ(marked(*m.refused), c.at) << c.text;
    EXPECT_EQ(m.stats("M_TEMP").numallocs, 0u) << c.text;  // nothing happened
  }
  Machine first("repeat 1 {\n  cpu 8\n}\ncpu 9\n");
  ASSERT_TRUE(first.refused);
  EXPECT_EQ(first.refused->where.line, 2u);
  // The empty set is a set; a zone that comes later has its names.
  Machine good(
      "a = malloc_domainset 1 mask:0x0 M_TEMP M_NOWAIT\nb = malloc_domainset 1 empty M_TEMP "
      "M_NOWAIT\nexpect null(a) && null(b)\nzone Z \"late\" size=64\nsysctl vm.uma.late.size\n"
      "reclaim drain zone=\"late\"\nexpect fails(\"late\") == 0\n");
  good.expect_good();
}

// REQ: WL-18
TEST(WorkloadRun, NumbersThatCannotBeAreDiagnosticsWhenTheyAreReached) {
  const struct {
    const char *text, *tag, *at;
  } cases[] = {
      {"repeat 2 as i { cpu 3*i }\n", "WL_RANGE", "3*i"},
      {"repeat 2 as i { a = malloc 1+2/(1-i) M_TEMP M_WAITOK }\n", "WL_ARITHMETIC", "1-i"},
      {"repeat 2 as i { a = malloc 1-2*i M_TEMP M_WAITOK }\n", "WL_RANGE", "1-2*i"},
      {"repeat 2 as i { a = malloc 1+uniform(2*i,1) M_TEMP M_WAITOK }\n", "WL_RANGE",
       "uniform(2*i,1)"},
      {"repeat 2 as i { a = malloc zipf(1-i) M_TEMP M_WAITOK }\n", "WL_RANGE", "zipf(1-i)"},
      {"repeat 2 as i { a = malloc 1+(4611686018427387904*(2*i)) M_TEMP M_WAITOK }\n",
       "WL_ARITHMETIC", "4611686018427387904*(2*i)"},
      {"repeat 2 as i { thread \"t\" cpu=4*i { } }\n", "WL_RANGE", "4*i"},
      {"repeat 2 as i { reclaim trim domain=i }\n", "WL_RANGE", "i"},
      {"repeat 2 as i { wait 0-i }\n", "WL_RANGE", "0-i"},
      {"critical { cpu 1 }\n", "WL_CONTEXT", "cpu 1 }"}};
  for (const auto& c : cases) {
    Machine m(c.text);
    ASSERT_TRUE(m.outcome.error) << c.text;
    EXPECT_EQ(m.outcome.error->tag, c.tag) << c.text;
    EXPECT_EQ(m.outcome.error->where.line, 1u);
    EXPECT_EQ(marked(*m.outcome.error), c.at) << c.text;
  }
}

// REQ: WL-23
TEST(WorkloadRun, AZoneInAConditionIsASymbolOrUmasName) {
  Machine m(R"(zone Z "same" size=64
zone Y "same" size=64 limit=1
a = uma_zalloc Y M_WAITOK
repeat 70 as i { b[i] = uma_zalloc Y M_NOWAIT }
expect fails(Z) == 0 && sleeps(Z) == 0 && xdomain(Y) == 0
expect fails(Y) > 0
expect fails("same") == 0 && fails(malloc-64) == 0
)");
  m.expect_good();
  Machine gone("zone Z \"z\" size=64\ncpu 0\nzdestroy Z\nexpect fails(Z) == 0\n");
  ASSERT_TRUE(gone.outcome.error);
  EXPECT_EQ(gone.outcome.error->tag, "WL_NO_ZONE");
  Machine near("zone ZONE \"z\" size=64\nexpect fails(ZONF) == 0\n");
  ASSERT_TRUE(near.refused);
  EXPECT_EQ(near.refused->near_names, std::vector<std::string>{"ZONE"});
}

// REQ: WL-24
TEST(WorkloadRun, NotesOnWhatNobodyMeans) {
  using Notes = std::vector<std::string>;
  const char* bad =
      "repeat 3 {\n a = malloc 1 M_TEMP M_ZERO\n b = malloc 1 M_TEMP "
      "M_WAITOK|M_NOWAIT\n c = contigmalloc 1 M_TEMP M_ZERO\n}\n";
  Machine flags(bad);
  EXPECT_EQ(flags.notes,
            (Notes{"neither M_WAITOK nor M_NOWAIT: a kernel with INVARIANTS panics here",
                   "both M_WAITOK and M_NOWAIT: a kernel with INVARIANTS panics here"}));
  Machine debug(std::string("kernel invariants\n") + bad);
  EXPECT_EQ(debug.notes, Notes{});
  EXPECT_TRUE(debug.outcome.panic);
  std::string many;
  for (int i = 0; i < 13; ++i) many += "a = malloc 1 M_TEMP M_ZERO\n";
  Machine cut(many);
  ASSERT_EQ(cut.notes.size(), 11u);
  EXPECT_EQ(cut.notes.back(), "3 more statements with such flags");
  Machine guard(
      "kernel memguard vm.memguard.desc=helo\ntype M_A \"hello\"\nzone Z \"z 1\" size=64\n"
      "sysctl vm.memguard.desc=M_A\nsysctl vm.memguard.desc=hello\n"
      "sysctl vm.memguard.desc=\"z 1\"\n");
  EXPECT_EQ(guard.notes, (Notes{"vm.memguard.desc=helo is the description of no type and the name "
                                "of no zone",
                                "vm.memguard.desc=M_A is the description of no type and the name "
                                "of no zone"}));
  Machine plain("kernel memguard\n");
  EXPECT_EQ(plain.notes, Notes{});
}

// REQ: WL-25
TEST(WorkloadRun, AHistoryBeyond64BitsIsRefused) {
  const std::string half = "history M_TEMP memalloced=9223372036854775807\n";
  Machine two(half + half);
  EXPECT_FALSE(two.refused);
  EXPECT_EQ(two.stats("M_TEMP").memalloced, 18446744073709551614u);
  Machine three(half + half + half);
  ASSERT_TRUE(three.refused);
  EXPECT_EQ(three.refused->tag, "WL_RANGE");
  EXPECT_EQ(three.refused->where.line, 3u);
}

// REQ: WL-19
TEST(WorkloadRun, AUnknownClassOfHistoryNamesTheRelease) {
  auto w = parse("kernel release=12\nhistory M_TEMP allocs=1 sizes=384\n", "t.wl");
  ASSERT_TRUE(w);
  KernelConfig config;
  config.mem = std::uint64_t{512} << 20;
  w->kernel.apply(config);
  Kernel kernel(config);
  kernel.cpus().bind(0);
  Runner runner(*w, kernel);
  auto booted = runner.boot();
  ASSERT_FALSE(booted);
  EXPECT_EQ(booted.error().tag, "WL_UNKNOWN_CLASS");
  EXPECT_EQ(booted.error().message, "release 12 has no size class 384");
}

// REQ: WL-20
TEST(WorkloadRun, CallSitesStandInAPanic) {
  Machine m(
      "a = malloc 70000 M_TEMP M_WAITOK\nfree a @foo_detach+0x2;foo_free\nfree a "
      "@foo_detach+0x2;foo_free\n");
  ASSERT_TRUE(m.outcome.panic);
  EXPECT_EQ(m.outcome.panic->backtrace(), (std::vector<std::string>{"foo_free", "foo_detach+0x2"}));
}

}  // namespace
}  // namespace dtmalloc::workload
