// SPDX-License-Identifier: BSD-2-Clause
// The names and values of sysctl(8) that tell about zones and malloc types.
#include <gtest/gtest.h>

#include <cstring>

#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

using test::Machine;
using test::small_config;

std::string value(Machine& m, const std::string& name) {
  const auto node = m.kernel.sysctl().find(name);
  return node && node->read ? node->read() : "(none)";
}

std::vector<std::string> below(Machine& m, const std::string& top) {
  std::vector<std::string> names;
  for (const SysctlNode& node : m.kernel.sysctl().list(top))
    names.push_back(node.name.substr(top.size() + 1));
  return names;
}

KernelConfig debug_config() {
  KernelConfig config = small_config();
  config.invariants = true;
  return config;
}

// REQ: SYSCTL-01, SYSCTL-02, SYSCTL-03, SYSCTL-04, SYSCTL-05, SYSCTL-10
TEST(Sysctl, AZoneHasTheWholeTreeNewestFirst) {
  Machine m;
  EXPECT_EQ(below(m, "vm.uma.malloc_16"), (std::vector<std::string>{"stats.xdomain",
                                                                    "stats.fails",
                                                                    "stats.frees",
                                                                    "stats.allocs",
                                                                    "stats.current",
                                                                    "domain.0.timin",
                                                                    "domain.0.limin",
                                                                    "domain.0.wss",
                                                                    "domain.0.bimin",
                                                                    "domain.0.imin",
                                                                    "domain.0.imax",
                                                                    "domain.0.nitems",
                                                                    "limit.bucket_max",
                                                                    "limit.sleeps",
                                                                    "limit.sleepers",
                                                                    "limit.max_items",
                                                                    "limit.items",
                                                                    "keg.domain.0.free_slabs",
                                                                    "keg.domain.0.free_items",
                                                                    "keg.domain.0.pages",
                                                                    "keg.efficiency",
                                                                    "keg.reserve",
                                                                    "keg.align",
                                                                    "keg.ipers",
                                                                    "keg.ppera",
                                                                    "keg.rsize",
                                                                    "keg.name",
                                                                    "bucket_size_max",
                                                                    "bucket_size",
                                                                    "flags",
                                                                    "size"}));
  EXPECT_EQ(below(m, "vm.uma").front(), "malloc_65536.stats.xdomain");
}

// REQ: SYSCTL-01, SYSCTL-02, SYSCTL-03, SYSCTL-04, SYSCTL-05, SYSCTL-11
TEST(Sysctl, ValuesAfterTheFirstAllocation) {
  Machine m;
  m.kernel.malloc(16, &m.type, M_WAITOK);
  const std::pair<const char*, const char*> expected[] = {
      {"size", "16"},
      {"bucket_size", "254"},
      {"bucket_size_max", "254"},
      {"keg.name", "malloc-16"},
      {"keg.rsize", "16"},
      {"keg.ppera", "1"},
      {"keg.ipers", "252"},
      {"keg.align", "15"},
      {"keg.reserve", "0"},
      {"keg.domain.0.pages", "2"},
      {"keg.domain.0.free_items", "250"},
      {"keg.domain.0.free_slabs", "0"},
      {"limit.items", "0"},
      {"limit.max_items", "0"},
      {"limit.sleepers", "0"},
      {"limit.sleeps", "0"},
      {"limit.bucket_max", "18446744073709551615"},
      {"domain.0.nitems", "0"},
      {"domain.0.imax", "254"},  // a new bucket went straight to the CPU
      {"domain.0.imin", "0"},
      {"domain.0.bimin", "0"},
      {"domain.0.wss", "0"},
      {"domain.0.limin", "0"},
      {"domain.0.timin", "0"},
      {"stats.current", "1"},
      {"stats.allocs", "1"},
      {"stats.frees", "0"},
      {"stats.fails", "0"},
      {"stats.xdomain", "0"},
  };
  for (const auto& [name, text] : expected)
    EXPECT_EQ(value(m, std::string("vm.uma.malloc_16.") + name), text) << name;
  EXPECT_EQ(m.zone("malloc-16").cpus.at(0).items, 253u);
  EXPECT_EQ(value(m, "vm.uma.256_Bucket.stats.current"), "1");
}

// REQ: SYSCTL-08
TEST(Sysctl, EfficiencyOfEveryClass) {
  struct Row {
    const char* zone;
    const char *production, *invariants;
  };
  const Row rows[] = {
      {"malloc_16", "98", "97"},    {"malloc_32", "98", "98"},   {"malloc_64", "98", "98"},
      {"malloc_128", "96", "96"},   {"malloc_256", "93", "93"},  {"malloc_384", "93", "93"},
      {"malloc_512", "98", "97"},   {"malloc_1024", "98", "97"}, {"malloc_2048", "98", "97"},
      {"malloc_4096", "98", "97"},  {"malloc_8192", "99", "98"}, {"malloc_16384", "99", "99"},
      {"malloc_32768", "99", "99"}, {"malloc_65536", "99", "99"}};
  Machine production, invariants(debug_config());
  for (const Row& row : rows) {
    const std::string name = std::string("vm.uma.") + row.zone + ".keg.efficiency";
    EXPECT_EQ(value(production, name), row.production) << row.zone;
    EXPECT_EQ(value(invariants, name), row.invariants) << row.zone;
  }
}

// REQ: SYSCTL-09
TEST(Sysctl, FlagsNameTheirBits) {
  Machine production, invariants(debug_config());
  for (const char* zone : {"malloc_16", "malloc_384"}) {
    const std::string name = std::string("vm.uma.") + zone + ".flags";
    EXPECT_EQ(value(production, name), "0x810010<VTOSLAB,FIRSTTOUCH,MALLOC>");
    EXPECT_EQ(value(invariants, name), "0x1810010<CTORDTOR,VTOSLAB,FIRSTTOUCH,MALLOC>");
  }
  for (const char* zone : {"malloc_512", "malloc_65536"}) {
    const std::string name = std::string("vm.uma.") + zone + ".flags";
    EXPECT_EQ(value(production, name), "0xa10010<VTOSLAB,OFFPAGE,FIRSTTOUCH,MALLOC>");
    EXPECT_EQ(value(invariants, name), "0x1a10010<CTORDTOR,VTOSLAB,OFFPAGE,FIRSTTOUCH,MALLOC>");
  }
  EXPECT_EQ(value(production, "vm.uma.2_Bucket.flags"), "0x10010040<BUCKET,FIRSTTOUCH,MTXCLASS>");
}

// REQ: SYSCTL-06, SYSCTL-07
TEST(Sysctl, NamesAreSanitisedAndNumbered) {
  Machine m;
  auto zone = [&](const char* name, std::size_t size) {
    return uma_zcreate(m.kernel.vm(), name, size, nullptr, nullptr, nullptr, nullptr, UMA_ALIGN_PTR,
                       0);
  };
  uma_zone* first = zone("a.b/c\\d e-f", 100);
  uma_zone* second = zone("same", 32);
  uma_zone* third = zone("same", 64);
  uma_zone* fourth = zone("same", 128);
  EXPECT_EQ(value(m, "vm.uma.a_b_c_d_e_f.size"), "100");
  EXPECT_EQ(value(m, "vm.uma.same.size"), "32");
  EXPECT_EQ(value(m, "vm.uma.same_1.size"), "64");
  EXPECT_EQ(value(m, "vm.uma.same_2.size"), "128");
  uma_zdestroy(third);  // the number is not given again while a later one lives
  third = zone("same", 256);
  EXPECT_EQ(value(m, "vm.uma.same_1.size"), "(none)");
  EXPECT_EQ(value(m, "vm.uma.same_3.size"), "256");
  for (uma_zone* each : {first, second, third, fourth}) uma_zdestroy(each);
  EXPECT_EQ(value(m, "vm.uma.same.size"), "(none)");
}

// REQ: SYSCTL-15, SYSCTL-08
TEST(Sysctl, AKegOfAnotherAlignment) {
  Machine m;
  uma_zone* zone = uma_zcreate(m.kernel.vm(), "i915_priolist", 48, nullptr, nullptr, nullptr,
                               nullptr, UMA_ALIGN_CACHE, 0);
  const std::string top = "vm.uma.i915_priolist.";
  EXPECT_EQ(value(m, top + "size"), "48");
  EXPECT_EQ(value(m, top + "keg.align"), "63");
  EXPECT_EQ(value(m, top + "keg.rsize"), "64");
  EXPECT_EQ(value(m, top + "keg.ppera"), "1");
  EXPECT_EQ(value(m, top + "keg.ipers"), "63");
  EXPECT_EQ(value(m, top + "keg.efficiency"), "98");
  uma_zdestroy(zone);
}

// REQ: SYSCTL-12
TEST(Sysctl, OneMissCountsTwice) {
  Machine m(small_config(1, std::uint64_t{1} << 20));
  while (m.kernel.malloc(65536, &m.type, M_NOWAIT) != nullptr) {
  }
  while (m.kernel.malloc(4096, &m.type, M_NOWAIT) != nullptr) {
  }
  const int before = std::stoi(value(m, "vm.uma.malloc_4096.stats.fails"));
  EXPECT_EQ(m.kernel.malloc(4096, &m.type, M_NOWAIT), nullptr);
  EXPECT_EQ(value(m, "vm.uma.malloc_4096.stats.fails"), std::to_string(before + 2));
  EXPECT_EQ(m.kernel.sysctl().find("vm.uma.malloc_4096.stats.fails")->description, "failures");
}

// REQ: SYSCTL-13, SYSCTL-14
TEST(Sysctl, Counts) {
  Machine m;
  EXPECT_EQ(value(m, "vm.zone_count"), std::to_string(m.kernel.zones().size()));
  EXPECT_EQ(value(m, "kern.malloc_count"), std::to_string(m.kernel.types().size()));
  m.kernel.malloc_uninit(&m.type);
  EXPECT_EQ(value(m, "kern.malloc_count"), std::to_string(m.kernel.types().size()));
  m.kernel.malloc_init(&m.type);
  EXPECT_EQ(value(m, "vm.malloc.zone_count"), "15");
  const std::string bytes = m.kernel.sysctl().find("vm.malloc.zone_sizes")->bytes();
  ASSERT_EQ(bytes.size(), 15 * sizeof(int));
  int sizes[15];
  std::memcpy(sizes, bytes.data(), bytes.size());
  const int expected[] = {16,   32,   64,   128,   256,   384,   512, 1024,
                          2048, 4096, 8192, 16384, 32768, 65536, 0};
  for (int i = 0; i < 15; ++i) EXPECT_EQ(sizes[i], expected[i]) << i;
}

}  // namespace
}  // namespace dtmalloc
