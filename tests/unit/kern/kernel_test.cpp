// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>

#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

using test::Machine;
using test::small_config;

TEST(Kernel, ChecksItsConfiguration) {
  EXPECT_EQ(Kernel::check(KernelConfig{}), std::nullopt);
  auto tag = [](auto change) {
    KernelConfig config;
    change(config);
    const std::optional<Diagnostic> wrong = Kernel::check(config);
    return wrong ? wrong->tag : std::string();
  };
  EXPECT_EQ(tag([](KernelConfig& c) { c.release = 15; }), "KERNEL_RELEASE");
  EXPECT_EQ(tag([](KernelConfig& c) { c.cpus = 0; }), "KERNEL_CPUS");
  EXPECT_EQ(tag([](KernelConfig& c) { c.cpus = 1024; }), "");
  EXPECT_EQ(tag([](KernelConfig& c) { c.cpus = 1025; }), "KERNEL_CPUS");
  EXPECT_EQ(tag([](KernelConfig& c) { c.mem = 100000; }), "KERNEL_MEM");
  EXPECT_EQ(tag([](KernelConfig& c) { c.mem = ~std::uint64_t{0}; }), "KERNEL_MEM");
  EXPECT_EQ(tag([](KernelConfig& c) { c.classes = {16, 48, 4096}; }), "");
  EXPECT_EQ(tag([](KernelConfig& c) { c.classes = {16, 50}; }), "KERNEL_CLASSES");
  EXPECT_EQ(tag([](KernelConfig& c) { c.classes = {32, 16}; }), "KERNEL_CLASSES");
  EXPECT_EQ(tag([](KernelConfig& c) { c.classes = {16, 131072}; }), "KERNEL_CLASSES");
  KernelConfig bad;
  bad.release = 99;
  EXPECT_THROW(Kernel{bad}, KernelPanic);
}

std::uint64_t mapped_bytes() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * 4096;
}

// memguard's boot lines come late, when the machine's memory is there.
TEST(Kernel, GivesItsMemoryBack_WhenItDoesNotBoot) {
  KernelConfig config = small_config();
  config.memguard = true;
  config.console = [](std::string_view) { throw std::runtime_error("the user's own"); };
  EXPECT_THROW(Kernel{config}, std::runtime_error);
  const std::uint64_t before = mapped_bytes();
  ASSERT_GT(before, 0u);
  for (int i = 0; i < 3; ++i) EXPECT_THROW(Kernel{config}, std::runtime_error);
  EXPECT_LT(mapped_bytes(), before + (std::uint64_t{64} << 20));
}

TEST(Kernel, WhatIfClassTable) {
  KernelConfig config = small_config();
  config.classes = {48, 96, 4096};
  Machine m(config);
  EXPECT_EQ(m.kernel.malloc_size(1), 48u);
  EXPECT_EQ(m.kernel.malloc_size(49), 96u);
  EXPECT_EQ(m.kernel.malloc_size(97), 4096u);
  EXPECT_EQ(m.kernel.malloc_size(4097), 8192u);
  m.trace(m.type);
  void* p = m.kernel.malloc(60, &m.type, M_WAITOK);
  EXPECT_EQ(m.fired(), (test::Fired{{false, 96, 1}}));
  m.kernel.free(p, &m.type);
  EXPECT_EQ(m.zone("malloc-96").used, 0u);
}

TEST(Kernel, HistoryIsStatisticsOnly) {
  Machine m;
  m.trace(m.type);
  m.kernel.add_history(m.type, {1000, 900, 10, 9, 5});
  EXPECT_EQ(m.fired(), test::Fired{});
  const TypeStats stats = m.stats();
  EXPECT_EQ(stats.memalloced, 1000u);
  EXPECT_EQ(stats.memfreed, 900u);
  EXPECT_EQ(stats.numallocs, 10u);
  EXPECT_EQ(stats.numfrees, 9u);
  EXPECT_EQ(stats.size_mask, 5u);
  EXPECT_EQ(m.kernel.leaks().at(0).bytes, 100);
}

TEST(Kernel, LeaksNameTheirTypes) {
  Machine m;
  EXPECT_TRUE(m.kernel.leaks().empty());
  m.kernel.malloc(100, &m.type, M_WAITOK);
  m.kernel.malloc(70000, &m.type, M_WAITOK);
  const std::vector<Leak> leaks = m.kernel.leaks();
  ASSERT_EQ(leaks.size(), 1u);
  EXPECT_EQ(leaks[0].type, &m.type);
  EXPECT_EQ(leaks[0].allocations, 2);
  EXPECT_EQ(leaks[0].bytes, 128 + 73728);
}

TEST(Kernel, BlockSize) {
  Machine m;
  auto* p = static_cast<std::byte*>(m.kernel.malloc(100, &m.type, M_WAITOK));
  auto* q = static_cast<std::byte*>(m.kernel.malloc(70000, &m.type, M_WAITOK));
  EXPECT_EQ(m.kernel.block_size(p), 128u);
  EXPECT_EQ(m.kernel.block_size(q), 73728u);
  EXPECT_EQ(m.kernel.block_size(m.kernel.contigmalloc(5000, &m.type, M_WAITOK)), 8192u);
  EXPECT_EQ(m.kernel.block_size(&m), 0u);
  m.kernel.free(q, &m.type);
  EXPECT_EQ(m.kernel.block_size(q), 0u);
}

// A user's own type object: mapped, reset when the kernel dies, usable in the next one.
TEST(Kernel, TypesOfTheUser) {
  malloc_type own = {nullptr, M_VERSION, "own", {}};
  {
    Machine m;
    m.kernel.malloc_init(&own);
    EXPECT_NE(m.kernel.malloc(1, &own, M_WAITOK), nullptr);
    EXPECT_EQ(m.kernel.types().back(), &own);
    const std::uint64_t name = m.kernel.addresses().to_simulated(own.ks_shortdesc);
    EXPECT_STREQ(static_cast<const char*>(m.kernel.addresses().to_host(name, 4)), "own");
  }
  EXPECT_EQ(own.ks_mti.mti_stats, nullptr);
  Machine m;
  m.kernel.malloc_init(&own);
  EXPECT_NE(m.kernel.malloc(1, &own, M_WAITOK), nullptr);
}

TEST(Kernel, AddressesRepeat) {
  std::uint64_t seen[2];
  for (std::uint64_t& address : seen) {
    Machine m(small_config(2));
    m.kernel.cpus().bind(1);
    m.kernel.malloc(100, &m.type, M_WAITOK);
    AddressMap& map = m.kernel.addresses();
    const auto* line =
        curcpu->stats_base + reinterpret_cast<std::uintptr_t>(m.type.ks_mti.mti_stats);
    address = map.to_simulated(m.kernel.malloc(100, &m.type, M_WAITOK)) ^
              (map.to_simulated(&m.type) << 1) ^ (map.to_simulated(line) << 2) ^
              (map.to_simulated(m.type.ks_shortdesc) << 3);
    EXPECT_NE(map.to_simulated(&m.type), AddressMap::kNoAddress);
    EXPECT_NE(map.to_simulated(line), AddressMap::kNoAddress);
  }
  EXPECT_EQ(seen[0], seen[1]);
}

TEST(Kernel, SymbolsAndDescriptions) {
  Machine m;
  EXPECT_EQ(m.kernel.type_by_symbol("M_T"), &m.type);
  EXPECT_EQ(m.kernel.type_by_symbol("M_NONE"), nullptr);
  EXPECT_EQ(m.kernel.symbol(*m.kernel.type("temp")), "M_TEMP");
  EXPECT_EQ(m.kernel.symbol(m.type), "M_T");
}

TEST(Kernel, TypesMayComeAndGoOften) {
  Machine m;
  for (int i = 0; i < 2000; ++i) {
    m.kernel.malloc_uninit(&m.type);
    m.kernel.malloc_init(&m.type);
    m.kernel.malloc_uninit(&m.kernel.define_type("M_X", "x"));
  }
  AddressMap& map = m.kernel.addresses();
  EXPECT_NE(map.to_host(map.to_simulated(&m.type), sizeof m.type), nullptr);
  EXPECT_EQ(m.kernel.types().size(), 6u);
}

TEST(Kernel, ManyTypes) {
  Machine m;
  for (int i = 0; i < 5000; ++i) {
    malloc_type& type = m.kernel.define_type("M_X", "type " + std::to_string(i));
    m.kernel.free(m.kernel.malloc(16, &type, M_WAITOK), &type);
  }
  EXPECT_EQ(m.kernel.types().size(), 5006u);
  EXPECT_EQ(m.kernel.type_stats(*m.kernel.type("type 4999")).numfrees, 1u);
}

}  // namespace
}  // namespace dtmalloc
