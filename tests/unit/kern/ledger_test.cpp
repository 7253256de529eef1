// SPDX-License-Identifier: BSD-2-Clause
// The ledger's books: live blocks, past owners, peaks, bounds, samples.
#include <gtest/gtest.h>

#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

using test::Machine;
using test::small_config;

KernelConfig with_ledger(LedgerConfig ledger = {}) {
  KernelConfig config = small_config(2);
  config.ledger = ledger;
  return config;
}

struct LedgerTest : ::testing::Test {
  Machine m{with_ledger()};
  Ledger& ledger = *m.kernel.ledger();

  LedgerTest() { m.kernel.cpus().bind(0); }
  ~LedgerTest() override { m.kernel.cpus().unbind(); }
  void* take(std::size_t size, malloc_type& type) { return m.kernel.malloc(size, &type, M_WAITOK); }
  void* take(std::size_t size) { return take(size, m.type); }
  // What follows is done there.
  void at(std::vector<std::string> outermost_first) {
    m.kernel.cpus().current_thread().call_sites = std::move(outermost_first);
  }
};

TEST(Ledger, IsOffByDefault) {
  // REQ: LEDGER-3
  Machine m;
  EXPECT_EQ(m.kernel.ledger(), nullptr);
  m.kernel.cpus().bind_any();
  EXPECT_EQ(curcpu->guard.load() & kGuardDebug, 0u);
}

TEST_F(LedgerTest, KnowsWhoAllocatedABlock) {
  // REQ: LEDGER-1 LEDGER-4
  at({"foo_attach+0x1c", "foo_alloc"});
  m.kernel.cpus().clock().advance(700);
  void* p = take(100);
  const std::vector<LedgerBlock> live = ledger.live();
  ASSERT_EQ(live.size(), 1u);
  EXPECT_EQ(live[0].host, p);
  EXPECT_EQ(live[0].address, m.kernel.addresses().to_simulated(p));
  EXPECT_EQ(live[0].type, "T");
  EXPECT_EQ(live[0].symbol, "M_T");
  EXPECT_EQ(live[0].request, 100u);
  EXPECT_EQ(live[0].bytes, 128u);
  EXPECT_EQ(live[0].allocated.stack, (std::vector<std::string>{"foo_alloc", "foo_attach+0x1c"}));
  EXPECT_EQ(live[0].allocated.time, 700u);
  EXPECT_EQ(live[0].allocated.cpu, 0);
  EXPECT_EQ(live[0].allocated.execname, "kernel");
  EXPECT_EQ(live[0].allocated.tid, 100000);
  EXPECT_EQ(live[0].allocated.sequence, 1u);
  m.kernel.free(p, &m.type);
  EXPECT_TRUE(ledger.live().empty());
}

TEST_F(LedgerTest, FollowsEveryMemberOfTheFamily) {
  // REQ: LEDGER-1
  Kernel& k = m.kernel;
  const std::vector<std::pair<void*, std::uint64_t>> blocks{
      {k.malloc(100, &m.type, M_NOWAIT), 128},
      {k.malloc(0, &m.type, M_WAITOK | M_ZERO), 16},
      {k.malloc(70000, &m.type, M_WAITOK), 73728},
      {k.mallocarray(8, 64, &m.type, M_WAITOK), 512},
      {k.malloc_aligned(100, 256, &m.type, M_WAITOK), 256},
      {k.malloc_exec(100, &m.type, M_WAITOK), 4096},
      {k.contigmalloc(5000, &m.type, M_WAITOK), 8192}};
  std::vector<std::uint64_t> requests;
  for (const auto& [address, bytes] : blocks) {
    const auto block = ledger.block(k.addresses().to_simulated(address));
    ASSERT_TRUE(block.has_value());
    EXPECT_EQ(block->bytes, bytes);
    requests.push_back(block->request);
  }
  EXPECT_EQ(requests, (std::vector<std::uint64_t>{100, 0, 70000, 512, 100, 100, 5000}));
  EXPECT_EQ(ledger.type(m.type).recorded, 7u);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    i % 2 == 0 ? k.free(blocks[i].first, &m.type) : k.zfree(blocks[i].first, &m.type);
  EXPECT_TRUE(ledger.live().empty());
  EXPECT_TRUE(ledger.findings().empty());
  EXPECT_EQ(ledger.type(m.type).blocks, 0);
}

TEST_F(LedgerTest, FollowsWhatComesFromSetsOfDomains) {
  // REQ: LEDGER-1
  Kernel& k = m.kernel;
  const domainset* all = DOMAINSET_RR();
  const std::vector<void*> blocks{k.malloc_domainset(100, &m.type, all, M_WAITOK),
                                  k.malloc_domainset(70000, &m.type, all, M_WAITOK),
                                  k.malloc_domainset_exec(100, &m.type, all, M_WAITOK),
                                  k.malloc_domainset_aligned(100, 256, &m.type, all, M_WAITOK),
                                  k.mallocarray_domainset(4, 25, &m.type, all, M_WAITOK),
                                  k.contigmalloc_domainset(100, &m.type, all, M_WAITOK)};
  std::vector<std::uint64_t> requests, classes;
  for (void* each : blocks) {
    const auto block = ledger.block(k.addresses().to_simulated(each));
    ASSERT_TRUE(block.has_value());
    requests.push_back(block->request);
    classes.push_back(block->size_class);
    k.free(each, &m.type);
  }
  EXPECT_EQ(requests, (std::vector<std::uint64_t>{100, 70000, 100, 100, 100, 100}));
  EXPECT_EQ(classes, (std::vector<std::uint64_t>{128, 0, 0, 256, 128, 0}));
  EXPECT_TRUE(ledger.live().empty());
  EXPECT_TRUE(ledger.findings().empty());
}

TEST_F(LedgerTest, ContiguousMemoryOfEveryRelease) {
  // REQ: LEDGER-1
  for (const int release : KernelRelease::versions()) {
    KernelConfig config = with_ledger();
    config.release = release;
    Machine old(config);
    old.kernel.cpus().bind(0);
    void* p = old.kernel.contigmalloc(5000, &old.type, M_WAITOK);
    ASSERT_EQ(old.kernel.ledger()->live().size(), 1u);
    EXPECT_EQ(old.kernel.ledger()->live()[0].bytes, 8192u);
    EXPECT_EQ(old.kernel.ledger()->live()[0].size_class, 0u);
    old.kernel.contigfree(p, 5000, &old.type);
    EXPECT_TRUE(old.kernel.ledger()->live().empty());
    EXPECT_TRUE(old.kernel.ledger()->findings().empty());
    old.kernel.cpus().unbind();
  }
  m.kernel.cpus().bind(0);
}

TEST_F(LedgerTest, ReallocInPlaceIsTheSameBlockWithANewRequest) {
  // REQ: LEDGER-1
  void* p = take(100);
  ASSERT_EQ(m.kernel.realloc(p, 120, &m.type, M_WAITOK), p);
  std::vector<LedgerBlock> live = ledger.live();
  ASSERT_EQ(live.size(), 1u);
  EXPECT_EQ(live[0].request, 120u);
  EXPECT_EQ(live[0].resizes, 1u);
  EXPECT_EQ(live[0].allocated.sequence, 1u);
  EXPECT_EQ(ledger.type(m.type).requested, 120u);
  void* q = m.kernel.realloc(p, 1000, &m.type, M_WAITOK);
  live = ledger.live();
  ASSERT_EQ(live.size(), 1u);
  EXPECT_EQ(live[0].host, q);
  EXPECT_EQ(live[0].request, 1000u);
  EXPECT_EQ(live[0].resizes, 0u);
}

TEST_F(LedgerTest, AnAddressHasAPast) {
  // REQ: LEDGER-4
  malloc_type& other = m.kernel.define_type("M_U", "U");
  void* p = take(100);
  at({"first_free"});
  m.kernel.free(p, &m.type);
  at({"second"});
  ASSERT_EQ(take(70, other), p);
  const std::vector<PastOwner> past = ledger.past(m.kernel.addresses().to_simulated(p));
  ASSERT_EQ(past.size(), 1u);
  EXPECT_EQ(past[0].block.type, "T");
  EXPECT_EQ(past[0].block.request, 100u);
  EXPECT_EQ(past[0].freed_as, "T");
  EXPECT_EQ(past[0].freed.stack, (std::vector<std::string>{"first_free"}));
  EXPECT_EQ(ledger.block(m.kernel.addresses().to_simulated(p) + 127)->type, "U");
  EXPECT_FALSE(ledger.block(m.kernel.addresses().to_simulated(p) + 128).has_value());
}

TEST_F(LedgerTest, PeaksAreExactOverAllCpus) {
  // REQ: LEDGER-2 (HighUse as releases 4 and 5 had it: 4 CPUs, 10 blocks each)
  KernelConfig config = with_ledger();
  config.cpus = 4;
  Machine four(config);
  std::vector<void*> blocks;
  for (int cpu = 0; cpu < 4; ++cpu) {
    four.kernel.cpus().bind(cpu);
    for (int i = 0; i < 10; ++i) {
      four.kernel.cpus().clock().advance(10);
      blocks.push_back(four.kernel.malloc(256, &four.type, M_WAITOK));
    }
  }
  for (void* block : blocks) four.kernel.free(block, &four.type);
  four.kernel.cpus().clock().advance(10);
  four.kernel.free(four.kernel.malloc(256, &four.type, M_WAITOK), &four.type);
  const LedgerType type = four.kernel.ledger()->type(four.type);
  EXPECT_EQ(type.blocks, 0);
  EXPECT_EQ(type.bytes, 0);
  EXPECT_EQ(type.peak_blocks, 40);
  EXPECT_EQ(type.peak_bytes, 10240);
  EXPECT_EQ(type.peak_blocks_time, 400u);
  EXPECT_EQ(type.peak_bytes_time, 400u);
  EXPECT_EQ(four.kernel.ledger()->total().peak_bytes, 10240);
  four.kernel.cpus().unbind();
}

TEST_F(LedgerTest, BlocksBeyondTheBoundAreCountedOnly) {
  // REQ: LEDGER-5
  Machine small(with_ledger({.blocks = 2}));
  small.kernel.cpus().bind_any();
  std::vector<void*> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(small.kernel.malloc(10, &small.type, M_WAITOK));
  const Ledger& books = *small.kernel.ledger();
  EXPECT_EQ(books.live().size(), 2u);
  EXPECT_EQ(books.dropped().blocks, 3u);
  EXPECT_EQ(books.type(small.type).blocks, 5);
  EXPECT_EQ(books.type(small.type).peak_blocks, 5);
  for (void* block : blocks) small.kernel.free(block, &small.type);
  EXPECT_TRUE(books.findings().empty());
  EXPECT_EQ(books.type(small.type).blocks, 0);
}

TEST_F(LedgerTest, StacksBeyondTheBoundAreOther) {
  // REQ: LEDGER-5
  Machine small(with_ledger({.stacks = 2}));
  small.kernel.cpus().bind_any();
  SimThread& thread = small.kernel.cpus().current_thread();
  for (const char* site : {"a", "b", "c", "d", "a"}) {
    thread.call_sites = {site};
    small.kernel.malloc(10, &small.type, M_WAITOK);
  }
  thread.call_sites.clear();
  std::map<std::string, int> sites;
  for (const LedgerBlock& block : small.kernel.ledger()->live())
    ++sites[block.allocated.stack.at(0)];
  EXPECT_EQ(sites, (std::map<std::string, int>{{"a", 2}, {"b", 1}, {"other", 2}}));
  EXPECT_EQ(small.kernel.ledger()->dropped().stacks, 2u);
}

TEST_F(LedgerTest, NamesBeyondTheBoundAreOther) {
  // REQ: LEDGER-5
  Machine small(with_ledger({.stacks = 2}));
  small.kernel.cpus().bind_any();
  SimThread& thread = small.kernel.cpus().current_thread();
  const std::string own = thread.execname;
  for (const char* name : {"a", "b", "c", "d", "a"}) {
    thread.execname = name;
    small.kernel.malloc(10, &small.type, M_WAITOK);
  }
  thread.execname = own;
  std::map<std::string, int> names;
  for (const LedgerBlock& block : small.kernel.ledger()->live()) ++names[block.allocated.execname];
  EXPECT_EQ(names, (std::map<std::string, int>{{"a", 2}, {"b", 1}, {"other", 2}}));
  EXPECT_EQ(small.kernel.ledger()->dropped().names, 2u);
}

TEST_F(LedgerTest, TheNewestOwnersAreKept) {
  // REQ: LEDGER-5
  Machine small(with_ledger({.past = 2}));
  small.kernel.cpus().bind_any();
  void* p = nullptr;
  for (std::size_t i = 1; i <= 4; ++i) {
    p = small.kernel.malloc(i, &small.type, M_WAITOK);
    small.kernel.free(p, &small.type);
  }
  const auto past = small.kernel.ledger()->past(small.kernel.addresses().to_simulated(p));
  ASSERT_EQ(past.size(), 2u);
  EXPECT_EQ(past[0].block.request, 3u);
  EXPECT_EQ(past[1].block.request, 4u);
  EXPECT_EQ(small.kernel.ledger()->dropped().past, 2u);
}

TEST_F(LedgerTest, LinesStandForCallSites) {
  // REQ: LEDGER-4
  m.kernel.cpus().current_thread().line = 12;
  take(10);
  m.kernel.cpus().current_thread().line = 0;
  EXPECT_EQ(ledger.live()[0].allocated.stack, (std::vector<std::string>{"line 12"}));
}

TEST_F(LedgerTest, ManualAccountingHasSumsAndNoBlock) {
  // REQ: LEDGER-14
  m.kernel.malloc_type_allocated(&m.type, 1000);
  m.kernel.malloc_type_allocated(&m.type, 500);
  m.kernel.malloc_type_freed(&m.type, 500);
  m.kernel.add_history(m.type, {.memalloced = 300, .memfreed = 100, .numallocs = 3, .numfrees = 1});
  const LedgerType type = ledger.type(m.type);
  EXPECT_EQ(type.manual_blocks, 3);
  EXPECT_EQ(type.manual_bytes, 1200);
  EXPECT_EQ(type.blocks, 3);
  EXPECT_EQ(type.bytes, 1200);
  EXPECT_EQ(type.peak_bytes, 1500);
  EXPECT_EQ(type.recorded, 0u);
  EXPECT_TRUE(ledger.live().empty());
}

TEST_F(LedgerTest, RequestsAndWhatWasGiven) {
  // REQ: LEDGER-16
  void* p = take(100);
  take(65);
  take(16);
  take(70000);
  m.kernel.free(p, &m.type);
  const LedgerType type = ledger.type(m.type);
  EXPECT_EQ(type.all_blocks, 4u);
  EXPECT_EQ(type.all_requested, 100u + 65 + 16 + 70000);
  EXPECT_EQ(type.all_bytes, 128u + 128 + 16 + 73728);
  EXPECT_EQ(type.recorded, 3u);
  EXPECT_EQ(type.requested, 65u + 16 + 70000);
  const std::vector<LedgerClass> classes = ledger.classes();
  ASSERT_EQ(classes.size(), 3u);
  EXPECT_EQ(classes[0].size, 16u);
  EXPECT_EQ(classes[1].size, 128u);
  EXPECT_EQ(classes[1].all_blocks, 2u);
  EXPECT_EQ(classes[1].all_requested, 165u);
  EXPECT_EQ(classes[1].live_blocks, 1u);
  EXPECT_EQ(classes[1].live_requested, 65u);
  EXPECT_EQ(classes[2].size, 0u);
  EXPECT_EQ(classes[2].all_bytes, 73728u);
}

TEST_F(LedgerTest, TypesAreInOrderOfRegistrationThenUnloaded) {
  malloc_type& a = m.kernel.define_type("M_A", "a");
  malloc_type& b = m.kernel.define_type("M_B", "b");
  for (malloc_type* type : {&b, &m.type, &a}) take(10, *type);
  m.kernel.malloc_uninit(&a);
  std::vector<std::string> names;
  for (const LedgerType& type : ledger.types())
    names.push_back(type.name + (type.unloaded ? "!" : ""));
  EXPECT_EQ(names, (std::vector<std::string>{"T", "b", "a!"}));
  // What it held is still there; a new registration starts from nothing.
  EXPECT_EQ(ledger.types()[2].bytes, 16);
  m.kernel.malloc_init(&a);
  take(40, a);
  EXPECT_EQ(ledger.type(a).bytes, 64);
}

TEST(Ledger, FollowsBlocksBetweenRedzones) {
  // REQ: LEDGER-1
  KernelConfig config = with_ledger();
  config.redzone = true;
  Machine m(config);
  m.kernel.cpus().bind_any();
  void* p = m.kernel.malloc(100, &m.type, M_WAITOK);
  void* large = m.kernel.malloc(65536, &m.type, M_WAITOK);
  void* contig = m.kernel.contigmalloc(5000, &m.type, M_WAITOK);
  const auto block = [&](const void* at) {
    return m.kernel.ledger()->block(m.kernel.addresses().to_simulated(at)).value_or(LedgerBlock{});
  };
  EXPECT_EQ(block(p).host, p);
  EXPECT_EQ(block(p).request, 100u);
  EXPECT_EQ(block(p).bytes, 384u);  // spec/malloc9.md 6.3
  EXPECT_EQ(block(large).request, 65536u);
  EXPECT_EQ(block(large).bytes, 73728u);
  EXPECT_EQ(block(contig).request, 5000u);
  void* q = m.kernel.realloc(p, 100, &m.type, M_WAITOK);  // never in place
  EXPECT_NE(q, p);
  EXPECT_EQ(block(q).host, q);
  EXPECT_EQ(m.kernel.ledger()->live().size(), 3u);
  for (void* each : {q, large, contig}) m.kernel.free(each, &m.type);
  EXPECT_TRUE(m.kernel.ledger()->live().empty());
  EXPECT_TRUE(m.kernel.ledger()->findings().empty());
  EXPECT_EQ(m.kernel.ledger()->type(m.type).bytes, 0);
}

TEST(Ledger, MarksGuardedBlocks_WhichTheKernelDoesNotCount) {
  // REQ: LEDGER-1 LEDGER-7
  KernelConfig config = with_ledger();
  config.memguard = true;
  config.tunables = {{"vm.memguard.desc", "T"}};
  Machine m(config);
  m.kernel.cpus().bind_any();
  const Ledger& ledger = *m.kernel.ledger();
  void* p = m.kernel.malloc(100, &m.type, M_WAITOK);
  ASSERT_EQ(ledger.live().size(), 1u);
  EXPECT_TRUE(ledger.live()[0].guarded);
  EXPECT_EQ(ledger.live()[0].host, p);
  EXPECT_EQ(ledger.type(m.type).blocks, 0);
  EXPECT_EQ(ledger.type(m.type).recorded, 0u);
  EXPECT_EQ(ledger.type(m.type).guarded, 1u);
  p = m.kernel.realloc(p, 200, &m.type, M_WAITOK);
  ASSERT_EQ(ledger.live().size(), 1u);
  EXPECT_TRUE(ledger.live()[0].guarded);
  EXPECT_EQ(ledger.live()[0].host, p);
  EXPECT_EQ(ledger.live()[0].request, 200u);
  m.kernel.free(p, &m.type);
  EXPECT_TRUE(ledger.live().empty());
  EXPECT_EQ(ledger.type(m.type).guarded, 0u);
  EXPECT_THROW(m.kernel.free(p, &m.type), KernelPanic);
  ASSERT_TRUE(ledger.explanation().has_value());
  EXPECT_EQ(ledger.explanation()->kind, Finding::Kind::double_free);
}

TEST(Ledger, AnInjectedFailureOfTheKernelsOwnIsNoBlock) {
  // REQ: LEDGER-1
  KernelConfig config = with_ledger();
  config.make_failures = true;
  config.tunables = {{"debug.malloc.failure_rate", "2"}};
  Machine m(config);
  m.kernel.cpus().bind_any();
  EXPECT_NE(m.kernel.malloc(10, &m.type, M_NOWAIT), nullptr);
  EXPECT_EQ(m.kernel.malloc(10, &m.type, M_NOWAIT), nullptr);
  EXPECT_EQ(m.kernel.ledger()->live().size(), 1u);
}

struct SeriesTest : ::testing::Test {
  static std::vector<std::pair<std::uint64_t, std::int64_t>> rows(const LedgerSeries& series) {
    std::vector<std::pair<std::uint64_t, std::int64_t>> out;
    for (const auto& sample : series.samples)
      out.emplace_back(sample.time, sample.bytes.empty() ? 0 : sample.bytes[0]);
    return out;
  }
};

TEST_F(SeriesTest, SamplesShowWhatHoldsAfterTheEventsOfTheirTime) {
  // REQ: LEDGER-15
  Machine m(with_ledger({.series = 100}));
  Clock& clock = m.kernel.cpus().clock();
  m.kernel.cpus().bind_any();
  clock.advance(50);
  void* p = m.kernel.malloc(16, &m.type, M_WAITOK);
  clock.advance(50);  // 100
  m.kernel.malloc(16, &m.type, M_WAITOK);
  clock.advance(250);  // 350
  m.kernel.free(p, &m.type);
  clock.advance(50);  // 400
  const LedgerSeries series = m.kernel.ledger()->series();
  EXPECT_EQ(series.interval, 100u);
  EXPECT_EQ(series.types, (std::vector<std::string>{"T"}));
  EXPECT_EQ(rows(series), (std::vector<std::pair<std::uint64_t, std::int64_t>>{
                              {100, 32}, {200, 32}, {300, 32}, {400, 16}}));
}

TEST_F(SeriesTest, TooManySamplesDoubleTheInterval) {
  // REQ: LEDGER-15
  Machine m(with_ledger({.series = 10, .samples = 4}));
  Clock& clock = m.kernel.cpus().clock();
  m.kernel.cpus().bind_any();
  for (int i = 0; i < 10; ++i) {
    clock.advance(10);
    m.kernel.malloc(16, &m.type, M_WAITOK);
  }
  const LedgerSeries series = m.kernel.ledger()->series();
  EXPECT_EQ(series.interval, 40u);
  EXPECT_EQ(rows(series),
            (std::vector<std::pair<std::uint64_t, std::int64_t>>{{40, 64}, {80, 128}}));
}

}  // namespace
}  // namespace dtmalloc
