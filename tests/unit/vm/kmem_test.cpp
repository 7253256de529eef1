// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include <cstring>
#include <dtmalloc/vm/kmem.hpp>
#include <vector>

#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

struct Kmem : testing::Test {
  CpuSet cpus{{.count = 1}};
  AddressMap map;
  SysctlTree sysctl;
  Vm vm{cpus, map, sysctl, {4 << 20, false}};  // 1024 pages
  void SetUp() override { cpus.bind(0); }
  void TearDown() override { EXPECT_EQ(check_arena(vm), ""); }
};

TEST_F(Kmem, PagesAreCounted) {
  void* a = kmem_malloc(vm, 5000, m::NOWAIT);
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(map.to_simulated(a), AddressMap::kArena);
  EXPECT_EQ(vm.domains[0].free_count.load(), 1022u);
  kmem_free(vm, a, 5000);
  EXPECT_EQ(vm.domains[0].free_count.load(), 1024u);
  EXPECT_EQ(vm.domains[0].runs.size(), 1u);
}

TEST_F(Kmem, FreeRunsMerge_WhateverTheOrder) {
  std::vector<void*> blocks;
  for (int i = 0; i < 9; ++i) blocks.push_back(kmem_malloc(vm, 4096, m::NOWAIT));
  for (const int i : {1, 3, 5, 7}) kmem_free(vm, blocks[static_cast<std::size_t>(i)], 4096);
  EXPECT_EQ(vm.domains[0].runs.size(), 5u);
  EXPECT_EQ(check_arena(vm), "");
  for (const int i : {0, 4, 2, 8, 6}) {
    kmem_free(vm, blocks[static_cast<std::size_t>(i)], 4096);
    EXPECT_EQ(check_arena(vm), "");
  }
  EXPECT_EQ(vm.domains[0].runs.size(), 1u);
}

TEST_F(Kmem, BestFitFillsHoles) {
  void* a = kmem_malloc(vm, 3 * 4096, m::NOWAIT);
  void* b = kmem_malloc(vm, 4096, m::NOWAIT);
  kmem_free(vm, a, 3 * 4096);
  EXPECT_EQ(kmem_malloc(vm, 2 * 4096, m::NOWAIT), a);
  kmem_free(vm, b, 4096);
}

TEST_F(Kmem, PagesRunOutBeforeAddresses) {
  EXPECT_EQ(vm.arena_pages, 4096u);
  EXPECT_NE(kmem_malloc(vm, 1022 * 4096, m::NOWAIT), nullptr);
  EXPECT_EQ(kmem_malloc(vm, 4096, m::NOWAIT), nullptr);
  EXPECT_NE(kmem_malloc(vm, 2 * 4096, m::NOWAIT | m::USE_RESERVE), nullptr);
  EXPECT_EQ(kmem_malloc(vm, 1, m::NOWAIT | m::USE_RESERVE), nullptr);
}

TEST_F(Kmem, ZeroIsZero) {
  for (const std::size_t pages : {1u, 100u}) {
    auto* a = static_cast<unsigned char*>(kmem_malloc(vm, pages * 4096, m::NOWAIT));
    std::memset(a, 1, pages * 4096);
    kmem_free(vm, a, pages * 4096);
    auto* b = static_cast<unsigned char*>(kmem_malloc(vm, pages * 4096, m::NOWAIT | m::ZERO));
    ASSERT_EQ(a, b);
    for (std::size_t i = 0; i < pages * 4096; ++i) ASSERT_EQ(b[i], 0);
    kmem_free(vm, b, pages * 4096);
  }
}

TEST_F(Kmem, RefusesNonsense) {
  EXPECT_EQ(kmem_malloc(vm, 0, m::NOWAIT), nullptr);
  EXPECT_EQ(kmem_malloc(vm, ~std::size_t{0}, m::NOWAIT), nullptr);
  EXPECT_EQ(kmem_alloc_contig(vm, 2 << 20, m::NOWAIT, 0, (2 << 20) - 2, 4096, 0), nullptr);
  EXPECT_EQ(kmem_alloc_contig(vm, 8192, m::NOWAIT, 0, ~0ull, 4096, 4096), nullptr);
  EXPECT_THROW(kmem_free(vm, vm.arena + 1, 4096), KernelPanic);
}

TEST_F(Kmem, ContigTakesExactlyTheRangeThatIsLeft) {
  void* a = kmem_alloc_contig(vm, 8192, m::NOWAIT, 4 * 4096, 6 * 4096 - 1, 4096, 0);
  EXPECT_EQ(map.to_simulated(a), AddressMap::kArena + 4 * 4096);
  EXPECT_EQ(kmem_alloc_contig(vm, 4096, m::NOWAIT, 4 * 4096, 6 * 4096 - 1, 4096, 0), nullptr);
}

}  // namespace
}  // namespace dtmalloc
