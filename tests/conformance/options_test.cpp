// SPDX-License-Identifier: BSD-2-Clause
// Kernel configurations, tunables, subzones, the size of kernel memory.
#include <gtest/gtest.h>

#include <map>

#include "kern/kernel_impl.hpp"
#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

using test::Fired;
using test::Machine;
using test::panic_of;
using test::small_config;

std::string value(Kernel& kernel, std::string_view name) {
  const std::optional<SysctlNode> node = kernel.sysctl().find(name);
  return node && node->read ? node->read() : "none";
}

// REQ: OPT-01. Named configurations set the options; a sanitizer's says why it is not there.
TEST(Options, NamedConfigurations) {
  KernelConfig config;
  ASSERT_TRUE(config.set_options("GENERIC"));
  EXPECT_TRUE(config.invariants);
  EXPECT_EQ(config.maxzones, 8);
  ASSERT_TRUE(config.set_options("GENERIC-NODEBUG"));
  EXPECT_FALSE(config.invariants);
  EXPECT_EQ(config.maxzones, 1);
  EXPECT_FALSE(config.redzone || config.memguard || config.make_failures);
  const auto typo = config.set_options("GENERICS");
  ASSERT_FALSE(typo);
  EXPECT_EQ(typo.error().near_names.at(0), "GENERIC");
  const auto kasan = config.set_options("GENERIC-KASAN");
  ASSERT_FALSE(kasan);
  EXPECT_NE(kasan.error().message.find("not modelled"), std::string::npos);
}

// REQ: OPT-02
TEST(Options, MaxzonesHasARange) {
  for (const int zones : {0, 256, -1}) {
    KernelConfig config = small_config();
    config.maxzones = zones;
    ASSERT_TRUE(Kernel::check(config).has_value()) << zones;
    EXPECT_EQ(Kernel::check(config)->tag, "KERNEL_MAXZONES");
  }
}

// REQ: OPT-03. What no kernel would take, with what may have been meant.
TEST(Options, TunablesAreChecked) {
  struct Row {
    const char *name, *value, *message;
  };
  const Row rows[] = {
      {"vm.kmem_zmx", "1", "unknown tunable vm.kmem_zmx"},
      {"vm.zone_count", "1", "unknown tunable vm.zone_count"},
      {"vm.kmem_zmax", "many", "vm.kmem_zmax=many is no number"},
      {"vm.kmem_zmax", "", "vm.kmem_zmax= is no number"},
      {"vm.kmem_zmax", "4kk", "vm.kmem_zmax=4kk is no number"},
      {"vm.kmem_zmax", "09", "vm.kmem_zmax=09 is no number"},
      {"vm.kmem_size_scale", "-1", "vm.kmem_size_scale=-1 does not fit"},
      {"vm.kmem_size_scale", "4294967296", "vm.kmem_size_scale=4294967296 does not fit"},
      {"vm.kmem_size", "99999999999999999999", "vm.kmem_size=99999999999999999999 is no number"},
      {"debug.malloc.numzones", "3", "there is no tunable debug.malloc.numzones"},
      {"debug.malloc.failure_rate", "3", "there is no tunable debug.malloc.failure_rate"},
      {"vm.redzone.panic", "1", "there is no tunable vm.redzone.panic"},
      {"vm.memguard.desc", "x", "there is no tunable vm.memguard.desc"},
      {"vm.debug.divisor", "2", "there is no tunable vm.debug.divisor"},
  };
  for (const Row& row : rows) {
    KernelConfig config = small_config();
    config.tunables = {{row.name, row.value}};
    const auto wrong = Kernel::check(config);
    ASSERT_TRUE(wrong.has_value()) << row.name;
    EXPECT_EQ(wrong->message, row.message);
    EXPECT_EQ(wrong->tag, "KERNEL_TUNABLE");
  }
  KernelConfig config = small_config();
  config.tunables = {{"vm.kmem_zmx", "1"}};
  EXPECT_EQ(Kernel::check(config)->near_names.at(0), "vm.kmem_zmax");
  // Suffixes, bases, and the later one of two.
  for (const auto& [text, zmax] : {std::pair{"8k", 8192u}, {"0x2000", 8192u}, {"020000", 8192u}}) {
    config.tunables = {{"vm.kmem_zmax", "5000"}, {"vm.kmem_zmax", text}};
    EXPECT_EQ(Kernel(config).kmem_zmax(), zmax) << text;
  }
}

// REQ: OPT-04. Clamped as the kernel clamps.
TEST(Options, NumzonesIsClamped) {
  struct Row {
    const char* tunable;
    const char* zones;
  };
  for (const Row& row : {Row{nullptr, "8"}, Row{"0", "1"}, Row{"1", "1"}, Row{"5", "5"},
                         Row{"8", "8"}, Row{"9", "8"}, Row{"4000000000", "8"}}) {
    KernelConfig config = small_config();
    config.maxzones = 8;
    if (row.tunable != nullptr) config.tunables = {{"debug.malloc.numzones", row.tunable}};
    Kernel kernel(config);
    EXPECT_EQ(value(kernel, "debug.malloc.numzones"), row.zones);
    EXPECT_EQ(value(kernel, "debug.malloc.zone_offset"),
              std::to_string(kernel.release().osreldate));
  }
}

// REQ: OPT-05, OPT-06. Which subzone serves a type, computed by hand.
TEST(Options, SubzonesByLetter) {
  KernelConfig config = small_config();
  config.maxzones = 8;
  config.tunables = {{"debug.malloc.numzones", "5"}, {"debug.malloc.zone_offset", "7"}};
  Machine m(config);
  struct Row {
    const char* desc;
    unsigned subzone;
  };
  // 7 % 3 = 1: 'b' is 98; 7 % 1 = 0: 'T' is 84; 7 % 8 = 7: 'h' is 104; 0xe9 is -23 as a char, and
  // 4294967273 % 5 = 3.
  for (const Row& row : {Row{"abc", 98 % 5}, Row{"T", 84 % 5}, Row{"abcdefgh", 104 % 5}, Row{"", 0},
                         Row{"\xe9", 3}}) {
    const malloc_type& type = m.kernel.define_type("M_X", row.desc);
    EXPECT_EQ(type.ks_mti.mti_zone, row.subzone) << row.desc;
  }
}

// REQ: OPT-06. Five zones of one name; a freed block comes back in its subzone only.
TEST(Options, SubzonesKeepTypesApart) {
  KernelConfig config = small_config();
  config.maxzones = 8;
  config.tunables = {{"debug.malloc.numzones", "5"}, {"debug.malloc.zone_offset", "0"}};
  Machine m(config);  // 'T' is 84: subzone 4
  std::map<std::string, int> names;
  for (const ZoneStats& zone : m.kernel.zones()) ++names[zone.name];
  for (const std::uint32_t size : m.kernel.classes())
    EXPECT_EQ(names["malloc-" + std::to_string(size)], 5);
  malloc_type& same = m.kernel.define_type("M_S", "T2");  // 84
  malloc_type& other = m.kernel.define_type("M_O", "U");  // 85: subzone 0
  m.trace(m.type);
  void* const p = m.kernel.malloc(100, &m.type, M_WAITOK);
  m.kernel.free(p, &m.type);
  EXPECT_EQ(m.fired(), (Fired{{false, 128, 3}, {true, 128, 0}}));
  EXPECT_NE(m.kernel.malloc(100, &other, M_WAITOK), p);
  EXPECT_EQ(m.kernel.malloc(100, &same, M_WAITOK), p);
  EXPECT_EQ(m.kernel.type_stats(same).size_mask, 8u);
  m.kernel.free(p, &same);
  // One zone a class: the fast path serves, and every type shares.
  config.tunables[0].value = "1";
  Machine one(config);
  EXPECT_EQ(one.kernel.cpus().cpu(0).guard.load() & kGuardDebug, 0u);
  EXPECT_NE(m.kernel.cpus().cpu(0).guard.load() & kGuardDebug, 0u);
}

// REQ: OPT-07, OPT-10. Tunables of kernel memory and what comes of them, on 1 GiB (262144 pages).
TEST(Options, KmemSize) {
  constexpr std::uint64_t kGiB = 1ull << 30;
  struct Row {
    std::vector<Tunable> tunables;
    std::uint64_t size;
  };
  const Row rows[] = {
      {{}, kGiB},
      {{{"vm.kmem_size_scale", "3"}}, 262144 / 3 * 4096},
      {{{"vm.kmem_size_scale", "0"}}, kGiB},
      {{{"vm.kmem_size_min", "1500m"}}, 1500ull << 20},
      {{{"vm.kmem_size_max", "100m"}}, 100ull << 20},
      {{{"vm.kmem_size_min", "200m"}, {"vm.kmem_size_max", "100m"}}, 100ull << 20},
      {{{"vm.kmem_size", "5000"}}, 8192},
      {{{"vm.kmem_size", "5g"}}, 2 * kGiB},
      {{{"vm.kmem_size", "50m"}, {"vm.kmem_size_min", "100m"}}, 50ull << 20},
  };
  for (const Row& row : rows) {
    KernelConfig config = small_config();
    config.tunables = row.tunables;
    Kernel kernel(config);
    EXPECT_EQ(value(kernel, "vm.kmem_size"), std::to_string(row.size));
    EXPECT_EQ(value(kernel, "vm.uma_kmem_limit"), std::to_string(row.size));
    EXPECT_EQ(value(kernel, "vm.kmem_map_free"), std::to_string(row.size));
  }
  EXPECT_EQ(value(*std::make_unique<Kernel>(small_config()), "vm.kmem_size_max"), "1319413950874");
}

// REQ: OPT-08. The kernel's panic at boot.
TEST(Options, NoKernelMemoryIsAPanic) {
  KernelConfig config = small_config();
  config.tunables = {{"vm.kmem_size_scale", "1000000"}};
  EXPECT_EQ(panic_of([&] { Kernel kernel(config); }), "Tune VM_KMEM_SIZE_* for the platform");
}

// REQ: OPT-09. A tenth of 1 GiB, in whole pages.
TEST(Options, MemguardAddsToTheLimit) {
  KernelConfig config = small_config();
  config.memguard = true;
  config.console = [](std::string_view) {};
  Kernel kernel(config);
  EXPECT_EQ(value(kernel, "vm.uma_kmem_limit"), std::to_string((1ull << 30) + 107376640));
}

// REQ: OPT-14. Without slabs of several pages each class keeps what one slab holds.
TEST(Options, MultipageSlabs) {
  const KegLayout layout = keg_layout(1500, 7, false, 0, 1, false);
  EXPECT_EQ(layout.ppera, 1u);
  EXPECT_GT(keg_layout(1500, 7, false).ppera, 1u);
  KernelConfig config = small_config();
  config.tunables = {{"vm.debug.uma_multipage_slabs", "0"}};
  Kernel kernel(config);
  uma_zone* zone = uma_zcreate(kernel.vm(), "z", 1500, nullptr, nullptr, nullptr, nullptr, 7, 0);
  EXPECT_EQ(zone->uz_keg->uk_ppera, 1u);
  EXPECT_EQ(value(kernel, "vm.debug.uma_multipage_slabs"), "0");
  uma_zdestroy(zone);
}

// REQ: OPT-15. Items by page number * ipers + place in the page; the double free of one that is not
// looked at goes unseen. mtrash is not affected.
TEST(Options, DivisorSkipsItems) {
  for (const auto& [divisor, found] : {std::pair{"1", true}, {"0", false}, {"1000003", false}}) {
    KernelConfig config = small_config();
    config.invariants = true;
    config.tunables = {{"vm.debug.divisor", divisor}};
    Machine m(config);
    auto* p = static_cast<std::byte*>(m.kernel.malloc(4096, &m.type, M_WAITOK));
    m.kernel.free(p, &m.type);
    EXPECT_EQ(value(m.kernel, "vm.debug.divisor"), divisor);
    EXPECT_EQ(value(m.kernel, "vm.debug.skipped") != "0", std::string(divisor) == "1000003");
    EXPECT_EQ(value(m.kernel, "vm.debug.trashed"), "0");
    const std::string text = panic_of([&] { m.kernel.free(p, &m.type); });
    EXPECT_EQ(text.rfind("Duplicate free", 0) == 0, found) << divisor << text;
    if (found) continue;
    p[0] = std::byte{1};
    EXPECT_EQ(panic_of([&] {
                m.kernel.malloc(4096, &m.type, M_WAITOK);
              }).rfind("Memory modified after free", 0),
              0u);
  }
  KernelConfig config = small_config();
  config.invariants = true;
  config.tunables = {{"vm.debug.divisor", "2"}};
  Machine m(config);
  // Pages hold one item of 4096 bytes: the index is the page's number.
  void* p[2] = {m.kernel.malloc(4096, &m.type, M_WAITOK), m.kernel.malloc(4096, &m.type, M_WAITOK)};
  const auto count = [&](const char* name) { return std::stoull(value(m.kernel, name)); };
  const auto trashed = count("vm.debug.trashed"), skipped = count("vm.debug.skipped");
  std::uint64_t even = 0;
  for (void* item : p) even += m.kernel.addresses().to_simulated(item) / 4096 % 2 == 0 ? 1 : 0;
  for (void* item : p) m.kernel.free(item, &m.type);
  EXPECT_EQ(count("vm.debug.trashed") - trashed, even);
  EXPECT_EQ(count("vm.debug.skipped") - skipped, 2 - even);
}

}  // namespace
}  // namespace dtmalloc
