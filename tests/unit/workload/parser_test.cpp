// SPDX-License-Identifier: BSD-2-Clause
// The parser of the workload language: what it accepts, and what it says when it does not.
#include <gtest/gtest.h>

#include <dtmalloc/workload/workload.hpp>

namespace dtmalloc::workload {
namespace {

Workload parsed(const std::string& text) {
  auto w = parse(text, "t.wl");
  EXPECT_TRUE(w) << (w ? "" : to_string(w.error()));
  if (w) return *w;
  Workload empty;
  empty.bodies.emplace_back();
  return empty;
}

Diagnostic refused(const std::string& text) {
  auto w = parse(text, "t.wl");
  EXPECT_FALSE(w) << "accepted: " << text.substr(0, 200);
  return w ? Diagnostic{} : w.error();
}

// REQ: WL-01
TEST(Parser, ReadsEveryStatement) {
  const Workload w = parsed(R"(# a comment
kernel release=14 cpus=2 domains=2 mem=2G seed=7 cost=100ns invariants
type M_FOO_BAR "foo bar" "FooBar \"subsystem\""
history M_FOO_BAR allocs=1000 memalloced=128000 frees=1000 memfreed=128000 sizes=128,256
cpu 1                       # what follows runs on CPU 1
a = malloc 100 M_TEMP M_WAITOK
b = malloc 128 M_FOO_BAR M_NOWAIT|M_ZERO @foo_attach+0x1c
a = realloc a 300 M_TEMP M_WAITOK
c = mallocarray 8 64 M_TEMP M_WAITOK @outer;inner
d = malloc_aligned 100 64 M_TEMP M_WAITOK
e = contigmalloc 5000 M_TEMP M_WAITOK
f = malloc_exec 4K M_TEMP M_WAITOK
n0 = malloc_domainset 1 rr M_TEMP M_WAITOK @near+1
n1 = malloc_domainset_exec 1 ft M_TEMP M_WAITOK
n2 = malloc_domainset_aligned 1 16 pref:3 M_TEMP M_WAITOK
n3 = mallocarray_domainset 2 3 empty M_TEMP M_WAITOK
n4 = contigmalloc_domainset 1 mask:0x5 M_TEMP M_WAITOK low=1M high=4G align=64K boundary=1M @far
n5 = contigmalloc 1 M_TEMP M_WAITOK boundary=0x1000
n6 = malloc_domainset 1 il M_TEMP M_WAITOK
n7 = malloc_domainset 1 fixed:7 M_TEMP M_WAITOK
g = reallocf b 1 M_FOO_BAR M_NOWAIT
free a
free g M_TEMP
free c+8
free c-1
zfree d-16 M_TEMP
contigfree e
repeat 1000 as i {
  x[i] = malloc uniform(16,4096) M_TEMP M_WAITOK
}
repeat 10 as i { repeat 3 as j { y[i,j] = malloc 16+i*j M_TEMP M_WAITOK } }
repeat 1000 as i { free x[i] }
wait 5ms                    # virtual time
thread "worker" cpu=1 execname="nginx" pid=712 {
  z = malloc 64 M_TEMP M_WAITOK
  free z
}
join
unload M_FOO_BAR
load M_FOO_BAR
critical { k = malloc 64 M_TEMP M_NOWAIT }
interrupt {
  nosleep { free k }
}
expect inuse(M_TEMP) == 2 && !(size(x[3]) > domain(x[4]) + xdomain(malloc-16)) || fails(malloc-64) != 0 && free_pages > 3
)");
  EXPECT_EQ(w.kernel.release, 14);
  EXPECT_EQ(w.kernel.mem, std::uint64_t{2} << 30);
  EXPECT_EQ(w.kernel.op_cost, 100u);
  EXPECT_TRUE(w.kernel.invariants);
  EXPECT_EQ(w.boot_statements(), 2u);
  EXPECT_EQ(w.bodies[0].size(), 36u);
  EXPECT_EQ(w.types.back().longdesc, "FooBar \"subsystem\"");
  const Op& b = w.bodies[0][4];
  EXPECT_EQ(b.flags, kM_NOWAIT | kM_ZERO);
  EXPECT_EQ(w.sites[b.site], std::vector<std::string>{"foo_attach+0x1c"});
  EXPECT_EQ(b.line, 7u);
}

// REQ: WL-02
TEST(Parser, FlatTraceIsAWorkload) {
  const Workload w = parsed("a = malloc 10 M_TEMP M_WAITOK\ncpu 3\nfree a\n");
  EXPECT_EQ(w.bodies[0].size(), 3u);
}

struct BadCase {
  const char* text;
  const char* tag;
  std::uint32_t line, column;
};

// REQ: WL-03
TEST(Parser, NamesThePlaceOfAnError) {
  const BadCase cases[] = {
      {"kernel cpus=1\ntype M_T \"t\"\na = malloc 10 M_TT M_WAITOK\n", "WL_UNKNOWN_TYPE", 3, 15},
      {"a = malloc 10 M_TEMP M_WAITKO\n", "WL_UNKNOWN_FLAG", 1, 22},
      {"a = mallok 10 M_TEMP M_WAITOK\n", "WL_UNKNOWN_OPERATION", 1, 5},
      {"frea a\n", "WL_UNKNOWN_STATEMENT", 1, 1},
      {"free a\n", "WL_UNKNOWN_BLOCK", 1, 6},
      {"\n\nx[0] = malloc 1 M_TEMP M_WAITOK\n  free x\n", "WL_UNKNOWN_BLOCK", 4, 8},
      {"kernel cpu=3\n", "WL_UNKNOWN_SETTING", 1, 8},
      {"kernel cpus=many\n", "WL_NUMBER", 1, 13},
      {"kernel cpus=1 cpus=2\n", "WL_REDECLARED", 1, 15},
      {"kernel mem=99999999999999999999\n", "WL_NUMBER", 1, 12},
      {"a = malloc 99999999999999999999 M_TEMP M_WAITOK\n", "WL_RANGE", 1, 12},
      {"a = malloc 9223372036854775807G M_TEMP M_WAITOK\n", "WL_RANGE", 1, 12},
      {"a = malloc 10Q M_TEMP M_WAITOK\n", "WL_NUMBER", 1, 12},
      {"a = malloc i M_TEMP M_WAITOK\n", "WL_UNKNOWN_VARIABLE", 1, 12},
      {"a = malloc 1 M_TEMP M_WAITOK extra\n", "WL_SYNTAX", 1, 30},
      {"repeat 3 {\n", "WL_SYNTAX", 1, 10},
      {"}\n", "WL_SYNTAX", 1, 1},
      {"type M_X \"unclosed\n", "WL_STRING", 1, 10},
      {"type M_X \"a\\q\"\n", "WL_STRING", 1, 12},
      {"type M_TEMP \"other\"\n", "WL_REDECLARED", 1, 6},
      {"type M_X \"x\"\ntype M_X \"y\"\n", "WL_REDECLARED", 2, 6},
      {"cpu 0\nkernel cpus=2\n", "WL_CONTEXT", 2, 1},
      {"cpu 0\nhistory M_TEMP allocs=1\n", "WL_CONTEXT", 2, 1},
      {"poke x 3\n", "WL_UNKNOWN_BLOCK", 1, 6},
      {"a = malloc 1 M_TEMP M_WAITOK\npoke a+3\n", "WL_SYNTAX", 2, 9},
      {"sysctl\n", "WL_SYNTAX", 1, 7},
      {"sysctl vm.kmem_zmax=\n", "WL_SYNTAX", 1, 21},
      {"sysctl vm.kmem_zmax 3\n", "WL_SYNTAX", 1, 21},
      {"kernel redzone=2\n", "WL_NUMBER", 1, 16},
      {"kernel redzone redzone\n", "WL_REDECLARED", 1, 16},
      {"kernel kasan\n", "WL_NOT_MODELLED", 1, 8},
      {"kernel config=GENERICS\n", "WL_KERNEL_CONFIG", 1, 15},
      {"kernel config\n", "WL_SYNTAX", 1, 8},
      {"kernel maxzones=0\n", "WL_KERNEL_MAXZONES", 1, 17},
      {"kernel debug.malloc.numzones=2 cpus=1\n", "WL_KERNEL_TUNABLE", 1, 8},
      {"kernel vm.kmem_zmx=2\n", "WL_KERNEL_TUNABLE", 1, 8},
      {"kernel vm.kmem_zmax=2 vm.kmem_zmax=2\n", "WL_REDECLARED", 1, 23},
      {"kernel vm.kmem_zmax\n", "WL_SYNTAX", 1, 8},
      {"malloc 10 M_TEMP M_WAITOK\n", "WL_SYNTAX", 1, 1},
      {"wait 5\n", "WL_NUMBER", 1, 6},
      {"expect null(nobody)\n", "WL_UNKNOWN_BLOCK", 1, 13},
      {"expect inuse(M_NONE) == 0\n", "WL_UNKNOWN_TYPE", 1, 14},
      {"a = malloc inuse(M_TEMP) M_TEMP M_WAITOK\n", "WL_UNKNOWN_FUNCTION", 1, 12},
      {"thread \"t\" cpus=1 { }\n", "WL_UNKNOWN_ATTRIBUTE", 1, 12},
  };
  for (const BadCase& bad : cases) {
    const Diagnostic d = refused(bad.text);
    EXPECT_EQ(d.tag, bad.tag) << bad.text << to_string(d);
    EXPECT_EQ(d.where.line, bad.line) << bad.text << to_string(d);
    EXPECT_EQ(d.where.column, bad.column) << bad.text << to_string(d);
    EXPECT_EQ(d.where.file, "t.wl");
  }
}

// REQ: WL-04
TEST(Parser, NamesNearMatches) {
  EXPECT_EQ(refused("type M_T \"t\"\na = malloc 1 M_TT M_WAITOK\n").near_names.front(), "M_T");
  EXPECT_EQ(refused("a = malloc 1 temp M_WAITOK\n").near_names.front(), "M_TEMP");
  EXPECT_EQ(refused("kernel cpuz=1\n").near_names.front(), "cpus");
  EXPECT_EQ(refused("block = malloc 1 M_TEMP M_WAITOK\nfree blok\n").near_names.front(), "block");
}

// REQ: WL-05
TEST(Parser, RefusesNulBytes) {
  const Diagnostic d = refused(std::string("free a\n") + std::string(4000000, '\0'));
  EXPECT_EQ(d.tag, "WL_NUL");
  EXPECT_EQ(d.where.line, 2u);
  EXPECT_LT(to_string(d).size(), 1000u);
}

// REQ: WL-06
TEST(Parser, AcceptsALongTypeName) {
  const std::string name(300, 'n');
  EXPECT_EQ(parsed("type M_LONG \"" + name + "\"\n").types.back().shortdesc, name);
}

TEST(Parser, BoundsNestingAndLength) {
  std::string deep, sum = "expect 1";
  for (int i = 0; i < 5000; ++i) deep += "repeat 1 {\n";
  for (int i = 0; i < 5000; ++i) sum += "+1";
  EXPECT_EQ(refused(deep).tag, "WL_TOO_DEEP");
  EXPECT_EQ(refused(sum + "\n").tag, "WL_TOO_LONG");
  EXPECT_EQ(refused("expect " + std::string(5000, '(') + "\n").tag, "WL_TOO_DEEP");
  EXPECT_EQ(refused("expect " + std::string(5000, '-') + "1\n").tag, "WL_TOO_DEEP");
}

TEST(Parser, ReadsSizesAndTimes) {
  EXPECT_EQ(parse_size("4K"), 4096u);
  EXPECT_EQ(parse_size("0x10"), 16u);
  EXPECT_EQ(parse_size("16777216T"), std::nullopt);
  EXPECT_EQ(parse_size("K"), std::nullopt);
  EXPECT_EQ(parse_time("3us"), 3000u);
  EXPECT_EQ(parse_time("3"), std::nullopt);
  EXPECT_EQ(print_size(std::uint64_t{3} << 30), "3G");
  EXPECT_EQ(print_size(1000), "1000");
  EXPECT_EQ(print_time(1500000), "1500us");
  EXPECT_EQ(print_time(0), "0ns");
}

// A line of tunables without end is refused before each is compared with all.
TEST(Parser, TunablesHaveAnEnd) {
  std::string text = "kernel";
  for (int i = 0; i < 101; ++i) text += " a.b" + std::to_string(i) + "=1";
  const auto refused = parse(text + "\n", "t.wl");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().tag, "WL_TOO_LONG");
}

// REQ: WL-07
TEST(Print, IsTheInverseOfParse) {
  const char* text =
      R"(kernel release=12 cpus=3 mem=1G seed=9 cost=2us clock=virtual kmem_zmax=5000 classes=16,32 capture=m2 config=GENERIC invariants=0 redzone memguard make_failures maxzones=3 vm.memguard.desc="a \"b\" #" debug.malloc.numzones=2
type M_A "a \"b\" \\ \x01 é" "long"
type M_UMA "UMA"
history M_A allocs=3 sizes=16,32
free = malloc 16 M_A M_WAITOK
free free
x[0] = malloc 1-(2-3)-4*(5+6)%7 M_A M_NOWAIT|M_USE_RESERVE
repeat 10 as i {
  repeat uniform(1,2) {
    y[i,i*2] = malloc_aligned 100 (-i+64) M_A M_WAITOK @a;b;c
    wait i*1ms
  }
}
b = realloc y[1,2] choice(1,2,zipf(9),normal(100,10)) M_A M_WAITOK
free b+16 M_UMA @here
poke b 0x41
poke y[1,2]-8 uniform(0,255) @a;b
poke b+3*2 (-(-7))
sysctl vm.kmem_zmax
sysctl vm.memguard.desc="a b"
sysctl debug.malloc.failure_rate=3  # comment
thread "w \x02" cpu=2 execname="e" pid=3 ppid=4 tid=5 uid=6 gid=7 {
}
expect (1 < 2) == 1 && (!(0 || 1) || -3 < -(-4)) && null(b) == 0 && fails("128 Bucket") == 0
)";
  const Workload w = parsed(text);
  const std::string once = print(w);
  const Workload again = parsed(once);
  EXPECT_EQ(w, again) << once;
  EXPECT_EQ(print(again), once);
  EXPECT_FALSE(w == parsed("free = malloc 16 M_TEMP M_WAITOK\n"));
}

// REQ: LEDGER-5
TEST(Parser, ReadsTheLedgerAndItsBounds) {
  EXPECT_FALSE(parsed("kernel cpus=1\n").kernel.ledger.has_value());
  EXPECT_EQ(*parsed("kernel ledger\n").kernel.ledger, LedgerConfig{});
  const Workload w = parsed("kernel ledger_blocks=10 ledger_stacks=20 ledger ledger_past=3\n");
  ASSERT_TRUE(w.kernel.ledger.has_value());
  EXPECT_EQ(w.kernel.ledger->blocks, 10u);
  EXPECT_EQ(w.kernel.ledger->stacks, 20u);
  EXPECT_EQ(w.kernel.ledger->past, 3u);
  EXPECT_EQ(w.kernel.ledger->findings, LedgerConfig{}.findings);
  EXPECT_EQ(print(w), "kernel ledger ledger_blocks=10 ledger_past=3 ledger_stacks=20\n");
  KernelConfig config;
  w.kernel.apply(config);
  EXPECT_EQ(config.ledger, w.kernel.ledger);
  EXPECT_EQ(refused("kernel ledger=1\n").tag, "WL_SYNTAX");
  EXPECT_EQ(refused("kernel ledger_past=many\n").tag, "WL_NUMBER");
  const Diagnostic typo = refused("kernel ledger_block=10\n");
  EXPECT_EQ(typo.tag, "WL_UNKNOWN_SETTING");
  ASSERT_FALSE(typo.near_names.empty());
  EXPECT_EQ(typo.near_names[0], "ledger_blocks");
}

}  // namespace
}  // namespace dtmalloc::workload
