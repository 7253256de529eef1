// SPDX-License-Identifier: BSD-2-Clause
// The sysctl(8) names of kernel memory and options, and the statements sysctl and poke.
#include <gtest/gtest.h>

#include <algorithm>
#include <dtmalloc/workload/run.hpp>

#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

using test::Machine;
using test::small_config;

std::string value(Kernel& kernel, std::string_view name) {
  const std::optional<SysctlNode> node = kernel.sysctl().find(name);
  return node && node->read ? node->read() : "none";
}

// REQ: OPT-10. What a machine of 1 GiB with two CPUs says of itself.
TEST(OptionSysctls, Values) {
  KernelConfig config = small_config(2);
  config.fixed_cpus = true;
  Machine m(config);
  const std::pair<const char*, const char*> rows[] = {
      {"hw.ncpu", "2"},
      {"hw.physmem", "1073741824"},
      {"hw.pagesize", "4096"},
      {"vm.ndomains", "1"},
      {"kern.smp.maxcpus", "1024"},
      {"vm.stats.vm.v_page_count", "262144"},
      {"vm.stats.vm.v_free_count", "262144"},
      {"vm.kmem_size", "1073741824"},
      {"vm.kmem_size_min", "0"},
      {"vm.kmem_size_scale", "1"},
      {"vm.kmem_zmax", "65536"},
      {"vm.kmem_map_size", "0"},
      {"vm.kmem_map_free", "1073741824"},
      {"vm.uma_kmem_limit", "1073741824"},
      {"vm.uma_kmem_total", "0"},
      {"vm.zone_warnings", "1"},
      {"vm.debug.uma_multipage_slabs", "1"},
  };
  for (const auto& [name, text] : rows) EXPECT_EQ(value(m.kernel, name), text) << name;
  m.kernel.malloc(70000, &m.type, M_WAITOK);
  EXPECT_EQ(value(m.kernel, "vm.kmem_map_size"), "73728");
  EXPECT_EQ(value(m.kernel, "vm.uma_kmem_total"), "73728");
  EXPECT_EQ(value(m.kernel, "vm.kmem_map_free"), std::to_string((1 << 30) - 73728));
  EXPECT_EQ(value(m.kernel, "vm.stats.vm.v_free_count"), std::to_string(262144 - 18));
  // Floored at 0: more in use than the limit.
  config.tunables = {{"vm.kmem_size", "4096"}};
  Machine n(config);
  n.kernel.malloc(70000, &n.type, M_WAITOK);
  EXPECT_EQ(value(n.kernel, "vm.kmem_map_free"), "0");
  EXPECT_EQ(m.kernel.sysctl().find("vm.zone_warnings")->write("0"), 0);
  EXPECT_EQ(value(m.kernel, "vm.zone_warnings"), "0");
}

// REQ: OPT-11
TEST(OptionSysctls, ExistWithTheirOption) {
  struct Row {
    const char* name;
    bool KernelConfig::*option;
  };
  const Row rows[] = {{"debug.malloc.failure_rate", &KernelConfig::make_failures},
                      {"debug.malloc.failure_count", &KernelConfig::make_failures},
                      {"vm.redzone.panic", &KernelConfig::redzone},
                      {"vm.redzone.extra_mem", &KernelConfig::redzone},
                      {"vm.memguard.desc", &KernelConfig::memguard},
                      {"vm.debug.divisor", &KernelConfig::invariants},
                      {"vm.debug.trashed", &KernelConfig::invariants},
                      {"vm.debug.skipped", &KernelConfig::invariants}};
  KernelConfig config = small_config();
  config.console = [](std::string_view) {};
  Kernel without(config);
  for (const Row& row : rows) {
    EXPECT_FALSE(without.sysctl().find(row.name)) << row.name;
    KernelConfig with = config;
    with.*row.option = true;
    EXPECT_TRUE(Kernel(with).sysctl().find(row.name)) << row.name;
  }
  EXPECT_FALSE(without.sysctl().find("debug.malloc.numzones"));
  config.maxzones = 2;
  Kernel zones(config);
  EXPECT_TRUE(zones.sysctl().find("debug.malloc.numzones"));
  EXPECT_TRUE(zones.sysctl().find("debug.malloc.zone_offset"));
  // Every name once.
  config.invariants = config.redzone = config.memguard = config.make_failures = true;
  Kernel all(config);
  std::vector<std::string> names = all.sysctl().names();
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

// The console of a workload, or its error behind a "!".
std::string console_of(const std::string& text) {
  auto parsed = workload::parse(text, "t.wl");
  EXPECT_TRUE(parsed) << (parsed ? "" : to_string(parsed.error()));
  if (!parsed) return {};
  KernelConfig config = small_config();
  parsed->kernel.apply(config);
  std::string console;
  config.console = [&](std::string_view line) { console += line; };
  Kernel kernel(config);
  kernel.cpus().bind(0);
  workload::Runner runner(*parsed, kernel);
  workload::Outcome outcome;
  if (auto booted = runner.boot(); !booted)
    outcome.error = booted.error();
  else
    outcome = runner.run();
  if (outcome.error) console += "!" + outcome.error->tag + " " + outcome.error->message;
  if (outcome.error && !outcome.error->near_names.empty())
    console += " (" + outcome.error->near_names[0] + ")";
  if (outcome.panic) console += "!" + std::string(outcome.panic->what());
  return console;
}

// REQ: OPT-16
TEST(OptionSysctls, TheStatement) {
  const std::pair<const char*, const char*> rows[] = {
      {"sysctl vm.kmem_zmax\n", "vm.kmem_zmax: 65536\n"},
      {"kernel redzone\nsysctl vm.redzone\n", "vm.redzone.extra_mem: 0\nvm.redzone.panic: 0\n"},
      {"sysctl vm.zone_warnings=0\n", "vm.zone_warnings: 1 -> 0\n"},
      {"sysctl vm.zone_warnings=0x0\n", "vm.zone_warnings: 1 -> 0\n"},
      {"sysctl vm.zone_warnings=1k\n", "vm.zone_warnings: 1 -> 1024\n"},
      {"sysctl vm.zone_warnings=4g\n", "sysctl: vm.zone_warnings=4g: Invalid argument\n"},
      {"sysctl vm.zone_warnings=no\n", "sysctl: vm.zone_warnings=no: Invalid argument\n"},
      {"sysctl debug.uma_reclaim=9\n", "sysctl: debug.uma_reclaim=9: Invalid argument\n"},
      {"sysctl hw.ncpu=3\n", "sysctl: oid 'hw.ncpu' is read only\n"},
      {"sysctl vm.kmem_zmax=5000\n",
       "sysctl: oid 'vm.kmem_zmax' is a read only tunable\n"
       "sysctl: Tunable values are set in /boot/loader.conf\n"},
      {"sysctl vm.stats=1\n", "sysctl: oid 'vm.stats' isn't a leaf node\n"},
      {"sysctl vm.malloc.zone_sizes\n", ""},  // opaque: sysctl(8) shows it with -o or -x
      {"sysctl vm.kmem_zmx\n", "!WL_UNKNOWN_SYSCTL unknown oid 'vm.kmem_zmx' (vm.kmem_zmax)"},
      {"sysctl vm.kmem_zmx=3\n", "!WL_UNKNOWN_SYSCTL unknown oid 'vm.kmem_zmx' (vm.kmem_zmax)"},
      {"critical { sysctl hw.ncpu }\n",
       "!WL_CONTEXT sysctl(8) is a program: it runs in no critical section or interrupt"},
  };
  for (const auto& [text, expected] : rows) EXPECT_EQ(console_of(text), expected) << text;
  EXPECT_NE(
      console_of("kernel memguard vm.memguard.desc=\"a b\"\nsysctl vm.memguard.desc=\"c d\"\n")
          .find("vm.memguard.desc: a b -> c d\n"),
      std::string::npos);
}

// REQ: OPT-17. A live block, a freed one, the page behind; not outside, not UMA's own.
TEST(OptionSysctls, ThePoke) {
  const std::pair<const char*, const char*> rows[] = {
      {"a = malloc 16 M_TEMP M_WAITOK\npoke a+15 255\nfree a\npoke a 0x41\n", ""},
      {"a = malloc 16 M_TEMP M_WAITOK\npoke a 256\n", "!WL_RANGE 256 is no byte: 0 to 255"},
      {"a = malloc 16 M_TEMP M_WAITOK\npoke a (-1)\n", "!WL_RANGE -1 is no byte: 0 to 255"},
      {"a = malloc 16 M_TEMP M_WAITOK\npoke a+10T 1\n",
       "!WL_RANGE a+10995116277760: the address lies outside the kernel's memory"},
      {"repeat 2 as i { a[i] = malloc 16 M_TEMP M_WAITOK }\npoke a[1]-10T 1\n",
       "!WL_RANGE a[1]-10995116277760: the address lies outside the kernel's memory"},
      {"a = malloc 16 M_TEMP M_NOWAIT\npoke b 1\nb = malloc 1 M_TEMP M_NOWAIT\n",
       "!WL_UNSET_BLOCK the block b is not set at this point"},
  };
  for (const auto& [text, expected] : rows) EXPECT_EQ(console_of(text), expected) << text;
}

// REQ: OPT-17. A kernel has the slab's header behind the items of such a slab.
TEST(OptionSysctls, ThePokeSparesInlineHeaders) {
  Machine m;
  auto* const item = static_cast<std::byte*>(m.kernel.malloc(16, &m.type, M_WAITOK));
  const std::uintptr_t word = m.kernel.vm().slab_word(item);
  const auto& slab = *reinterpret_cast<const uma_slab*>(word);
  ASSERT_EQ(slab.us_header, nullptr);
  const std::size_t header = slab.us_keg->uk_pgoff;
  ASSERT_LT(header, 4096u);
  EXPECT_TRUE(m.kernel.poke(slab.us_data + header - 1, 0x41));
  for (const std::size_t at : {header, std::size_t{4095}}) {
    const auto refused = m.kernel.poke(slab.us_data + at, 0x41);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "not modelled: a store into UMA's own memory");
  }
}

// REQ: OPT-17. Some of the first pages hold UMA's buckets and headers; a store there is refused,
// and the machine works on.
TEST(OptionSysctls, ThePokeSparesUma) {
  Machine m;
  m.kernel.malloc(16, &m.type, M_WAITOK);
  int refused = 0, stored = 0;
  for (int page = 0; page < 8; ++page) {
    const auto result = m.kernel.poke(m.kernel.vm().arena + page * 4096, 0x41);
    result ? ++stored : ++refused;
    if (!result) {
      EXPECT_EQ(result.error().message, "not modelled: a store into UMA's own memory");
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(stored, 0);
  for (int i = 0; i < 1000; ++i) m.kernel.malloc(16, &m.type, M_WAITOK);
}

// REQ: OPT-51. The blocks of workloads.
TEST(OptionSysctls, ContextsOfWorkloads) {
  const std::pair<const char*, const char*> rows[] = {
      {"critical { a = malloc 1 M_TEMP M_NOWAIT }\n",
       "!malloc: called with spinlock or critical section held"},
      {"interrupt { a = malloc 1 M_TEMP M_NOWAIT\nb = malloc 1 M_TEMP M_WAITOK }\n",
       "!malloc(M_WAITOK) in interrupt context"},
      {"nosleep { a = malloc 1 M_TEMP M_NOWAIT\nb = malloc 1 M_TEMP M_WAITOK }\n",
       "!malloc(M_WAITOK) with sleeping prohibited"},
      {"interrupt { nosleep { } }\na = malloc 1 M_TEMP M_WAITOK\n", ""},
  };
  for (const auto& [text, expected] : rows) {
    EXPECT_EQ(console_of("kernel config=GENERIC\n" + std::string(text)), expected) << text;
  }
  EXPECT_EQ(console_of("critical { a = malloc 1 M_TEMP M_NOWAIT }\n"), "");
}

}  // namespace
}  // namespace dtmalloc
