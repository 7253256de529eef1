// SPDX-License-Identifier: BSD-2-Clause
// What the ledger says of wrong frees.
#include <gtest/gtest.h>

#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

using test::Machine;
using test::panic_of;
using test::small_config;
using Kind = Finding::Kind;

KernelConfig with_ledger(bool invariants) {
  KernelConfig config = small_config();
  config.invariants = invariants;
  config.ledger.emplace();
  return config;
}

struct Watched : Machine {
  explicit Watched(bool invariants = false) : Machine(with_ledger(invariants)) {
    kernel.cpus().bind(0);
  }
  ~Watched() { kernel.cpus().unbind(); }
  void at(const char* site) { kernel.cpus().current_thread().call_sites = {site}; }
  void* take(std::size_t size) { return kernel.malloc(size, &type, M_WAITOK); }
  std::string address(const void* p) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx",
                  static_cast<unsigned long long>(kernel.addresses().to_printed(p)));
    return text;
  }
  // The only finding.
  Finding finding() {
    const std::vector<Finding> all = kernel.ledger()->findings();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? Finding{} : all[0];
  }
};

std::vector<std::string> sites(const std::optional<LedgerPlace>& place) {
  return place ? place->stack : std::vector<std::string>{"(none)"};
}
using Sites = std::vector<std::string>;

TEST(Findings, WrongType) {
  // REQ: LEDGER-6
  Watched m;
  malloc_type& other = m.kernel.define_type("M_U", "U");
  m.at("foo_alloc");
  void* p = m.take(100);
  m.at("bar_free");
  m.kernel.free(p, &other);
  const Finding finding = m.finding();
  EXPECT_EQ(finding.kind, Kind::wrong_type);
  EXPECT_EQ(finding.type, "T");
  EXPECT_EQ(finding.other_type, "U");
  EXPECT_EQ(sites(finding.allocated), Sites{"foo_alloc"});
  EXPECT_EQ(sites(finding.freed), Sites{"bar_free"});
  EXPECT_EQ(to_string(finding), "wrong type: " + m.address(p) +
                                    " (128 bytes, 100 asked for) allocated as T, freed as U\n"
                                    "  allocated at foo_alloc (cpu 0, kernel/100000, 0 ns)\n"
                                    "  freed at bar_free (cpu 0, kernel/100000, 0 ns)\n");
  // The kernel's books and the ledger's sums are those of a kernel.
  EXPECT_EQ(m.stats().numfrees, 0u);
  EXPECT_EQ(m.kernel.type_stats(other).numfrees, 1u);
  EXPECT_EQ(m.kernel.ledger()->type(other).bytes, -128);
  const auto pairs = m.kernel.ledger()->mismatches();
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].allocated_as, "T");
  EXPECT_EQ(pairs[0].freed_as, "U");
  EXPECT_EQ(pairs[0].blocks, 1u);
  EXPECT_EQ(pairs[0].bytes, 128u);
}

TEST(Findings, DoubleFree) {
  // REQ: LEDGER-7 LEDGER-12
  for (const bool invariants : {false, true}) {
    Watched m(invariants);
    m.at("one");
    void* p = m.take(10);
    m.at("two");
    m.kernel.free(p, &m.type);
    m.at("three");
    const std::string panic = panic_of([&] { m.kernel.free(p, &m.type); });
    EXPECT_EQ(panic.starts_with("Duplicate free of"), invariants) << panic;
    const Finding finding = m.finding();
    EXPECT_EQ(finding.kind, Kind::double_free);
    EXPECT_EQ(sites(finding.allocated), Sites{"one"});
    EXPECT_EQ(sites(finding.freed), Sites{"two"});
    EXPECT_EQ(sites(finding.used), Sites{"three"});
    EXPECT_EQ(m.kernel.ledger()->explanation().has_value(), invariants);
    if (invariants) {
      EXPECT_EQ(m.kernel.ledger()->explanation()->kind, Kind::double_free);
      continue;
    }
    EXPECT_EQ(summary(finding), "double free: " + m.address(p) + " (16 bytes, 10 asked for) of T");
    // The item is in the cache twice now.
    m.at("four");
    EXPECT_EQ(m.take(10), p);
    EXPECT_EQ(m.take(10), p);
    const Finding twice = m.kernel.ledger()->findings().at(1);
    EXPECT_EQ(twice.kind, Kind::handed_out_twice);
    EXPECT_EQ(sites(twice.allocated), Sites{"four"});
  }
}

TEST(Findings, InteriorFree) {
  // REQ: LEDGER-8 LEDGER-12
  Watched m(true);
  m.at("here");
  auto* p = static_cast<std::byte*>(m.take(100));
  m.at("there");
  EXPECT_TRUE(panic_of([&] { m.kernel.free(p + 8, &m.type); }).starts_with("Unaligned free of"));
  const Finding finding = m.finding();
  EXPECT_EQ(finding.kind, Kind::interior_free);
  EXPECT_EQ(finding.address - finding.base, 8u);
  EXPECT_EQ(summary(finding), "interior free: " + m.address(p + 8) + " lies 8 bytes inside " +
                                  m.address(p) + " (128 bytes, 100 asked for) of T");
  EXPECT_EQ(sites(finding.allocated), Sites{"here"});
  EXPECT_EQ(sites(finding.used), Sites{"there"});
  EXPECT_EQ(m.kernel.ledger()->live().size(), 1u);
}

TEST(Findings, InteriorOfALargeBlock) {
  // REQ: LEDGER-8
  Watched m;
  auto* p = static_cast<std::byte*>(m.take(100000));
  EXPECT_NE(panic_of([&] { m.kernel.free(p + 3 * kPageSize + 8, &m.type); }), "");
  EXPECT_EQ(m.finding().kind, Kind::interior_free);
  EXPECT_EQ(m.finding().address - m.finding().base, 3 * kPageSize + 8);
}

TEST(Findings, ForeignFree) {
  // REQ: LEDGER-9
  int outside = 0;
  {
    Watched m;
    EXPECT_NE(panic_of([&] { m.kernel.free(&outside, &m.type); }), "");
    EXPECT_EQ(m.finding().kind, Kind::foreign_free);
    EXPECT_EQ(m.finding().what, "outside the kernel's memory");
  }
  {
    Watched m;
    EXPECT_NE(panic_of([&] { m.kernel.free(&m.type, &m.type); }), "");
    EXPECT_EQ(m.finding().what, "an object of the kernel, no block");
  }
  {
    Watched m;
    auto* p = static_cast<std::byte*>(m.take(16));
    m.at("x");
    EXPECT_EQ(panic_of([&] { m.kernel.free(p + 16, &m.type); }), "");
    EXPECT_EQ(m.finding().what, "in a slab of the zone malloc-16");
    EXPECT_EQ(sites(m.finding().used), Sites{"x"});
  }
}

TEST(Findings, StaleType) {
  // REQ: LEDGER-10
  Watched m;
  m.at("mod_unload");
  m.kernel.malloc_uninit(&m.type);
  m.at("late");
  EXPECT_NE(panic_of([&] { m.take(10); }), "");
  const auto finding = m.kernel.ledger()->explanation();
  ASSERT_TRUE(finding.has_value());
  EXPECT_EQ(finding->kind, Kind::stale_type);
  EXPECT_EQ(sites(finding->used), Sites{"late"});
}

TEST(Findings, StaleTypeNamesTheUnload_WhenItWasUsedBefore) {
  // REQ: LEDGER-10 LEDGER-12
  Watched m;
  void* p = m.take(10);
  m.at("mod_unload");
  m.kernel.malloc_uninit(&m.type);
  m.at("late");
  EXPECT_NE(panic_of([&] { m.kernel.free(p, &m.type); }), "");
  const auto finding = m.kernel.ledger()->explanation();
  ASSERT_TRUE(finding.has_value());
  EXPECT_EQ(to_string(*finding),
            "stale type: T was unloaded\n"
            "  unloaded at mod_unload (cpu 0, kernel/100000, 0 ns)\n"
            "  used at late (cpu 0, kernel/100000, 0 ns)\n");
  EXPECT_EQ(m.kernel.ledger()->live().size(), 1u);
}

TEST(Findings, BlocksOfAnEarlierRegistration) {
  // REQ: LEDGER-6
  Watched m;
  void* p = m.take(10);
  m.kernel.malloc_uninit(&m.type);
  m.kernel.malloc_init(&m.type);
  m.kernel.free(p, &m.type);
  const std::vector<Finding> all = m.kernel.ledger()->findings();
  ASSERT_EQ(all.size(), 2u);  // the leak, then this
  EXPECT_EQ(all[1].kind, Kind::wrong_type);
  EXPECT_EQ(all[1].type, "T (unloaded)");
  EXPECT_EQ(all[1].other_type, "T");
}

TEST(Findings, LeaksAtUnloadBySite) {
  // REQ: LEDGER-11
  Watched m;
  for (int i = 0; i < 8; ++i) {
    m.at("pmc_syscall_handler+0x1fb6");
    m.take(100);
  }
  m.at("other_site");
  m.take(20);
  m.at("unload");
  m.kernel.malloc_uninit(&m.type);
  const std::vector<Finding> all = m.kernel.ledger()->findings();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(summary(all[0]), "leak: 8 blocks of T (1024 bytes, 800 asked for)");
  EXPECT_EQ(sites(all[0].allocated), Sites{"pmc_syscall_handler+0x1fb6"});
  EXPECT_EQ(sites(all[0].used), Sites{"unload"});
  EXPECT_EQ(summary(all[1]), "leak: 1 block of T (32 bytes, 20 asked for)");
}

TEST(Findings, ModifiedAfterFree) {
  // REQ: LEDGER-12
  Watched m(true);
  m.at("one");
  auto* p = static_cast<std::byte*>(m.take(16));
  m.at("two");
  m.kernel.free(p, &m.type);
  p[0] = std::byte{0x41};
  m.at("three");
  EXPECT_TRUE(panic_of([&] { m.take(16); }).starts_with("Memory modified after free"));
  const auto finding = m.kernel.ledger()->explanation();
  ASSERT_TRUE(finding.has_value());
  EXPECT_EQ(summary(*finding),
            "modified after free: " + m.address(p) + " (16 bytes, 16 asked for) of T");
  EXPECT_EQ(sites(finding->allocated), Sites{"one"});
  EXPECT_EQ(sites(finding->freed), Sites{"two"});
  EXPECT_EQ(sites(finding->used), Sites{"three"});
}

TEST(Findings, ModifiedAfterFree_BehindARedzone) {
  // REQ: LEDGER-12
  for (const std::size_t size : {16, 300, 3000}) {
    KernelConfig config = with_ledger(true);
    config.redzone = true;
    Machine m(config);
    m.kernel.cpus().bind(0);
    std::vector<std::string>& site = m.kernel.cpus().current_thread().call_sites;
    // Owners before it, of other places in the same item, do not matter.
    for (const std::size_t before : {size - 7, size}) {
      site = {before == size ? "one" : "earlier"};
      auto* p = static_cast<std::byte*>(m.kernel.malloc(before, &m.type, M_WAITOK));
      site = {before == size ? "two" : "earlier"};
      m.kernel.free(p, &m.type);
      if (before == size) p[0] = std::byte{0x41};
    }
    site = {"three"};
    EXPECT_TRUE(panic_of([&] {
                  m.kernel.malloc(size, &m.type, M_WAITOK);
                }).starts_with("Memory modified after free"));
    const auto finding = m.kernel.ledger()->explanation();
    ASSERT_TRUE(finding.has_value()) << size;
    EXPECT_EQ(finding->request, size);
    EXPECT_EQ(sites(finding->allocated), Sites{"one"});
    EXPECT_EQ(sites(finding->freed), Sites{"two"});
    EXPECT_EQ(sites(finding->used), Sites{"three"});
    site.clear();
    m.kernel.cpus().unbind();
  }
}

TEST(Findings, TheSameMistakeIsCounted_AndToldEachTime) {
  // REQ: LEDGER-13
  Watched m;
  malloc_type& other = m.kernel.define_type("M_U", "U");
  std::vector<std::uint64_t> counts;
  m.kernel.ledger()->on_finding([&](const Finding& finding) {
    counts.push_back(finding.count);
    m.kernel.ledger()->findings();  // no lock is held
  });
  for (int i = 0; i < 3; ++i) m.kernel.free(m.take(100), &other);
  EXPECT_EQ(counts, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(m.finding().count, 3u);
  EXPECT_TRUE(summary(m.finding()).ends_with(", 3 times"));
}

TEST(Findings, BeyondTheBoundTheyAreCounted) {
  // REQ: LEDGER-5 LEDGER-13
  KernelConfig config = small_config();
  config.ledger = LedgerConfig{.findings = 1};
  Machine m(config);
  malloc_type& other = m.kernel.define_type("M_U", "U");
  m.kernel.cpus().bind_any();
  SimThread& thread = m.kernel.cpus().current_thread();
  for (const char* site : {"a", "b", "c"}) {
    thread.call_sites = {site};
    m.kernel.free(m.kernel.malloc(1, &m.type, M_WAITOK), &other);
  }
  thread.call_sites.clear();
  EXPECT_EQ(m.kernel.ledger()->findings().size(), 1u);
  EXPECT_EQ(m.kernel.ledger()->dropped().findings, 2u);
}

}  // namespace
}  // namespace dtmalloc
