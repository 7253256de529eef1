// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <dtmalloc/sys/address_map.hpp>
#include <thread>

namespace dtmalloc {
namespace {

struct AddressMapTest : testing::Test {
  std::array<std::byte, 4096> arena{};
  AddressMap map;
  void SetUp() override { map.add({AddressMap::kArena, arena.data(), 1024, true}); }
};

TEST_F(AddressMapTest, MapsLinearlyBothWays) {
  EXPECT_EQ(map.to_simulated(arena.data() + 100), AddressMap::kArena + 100);
  EXPECT_EQ(map.to_host(AddressMap::kArena + 100, 8), arena.data() + 100);
  EXPECT_EQ(map.to_simulated(nullptr), 0u);
}

TEST_F(AddressMapTest, NothingIsOutside) {
  EXPECT_EQ(map.to_simulated(arena.data() + 1024), AddressMap::kNoAddress);
  EXPECT_EQ(map.to_simulated(arena.data() - 1), AddressMap::kNoAddress);
  EXPECT_EQ(map.to_host(AddressMap::kArena + 1020, 8), nullptr);
  EXPECT_EQ(map.to_host(AddressMap::kArena - 1, 1), nullptr);
  EXPECT_EQ(map.to_host(0, 1), nullptr);
  EXPECT_EQ(map.to_host(AddressMap::kArena, 0), nullptr);
}

TEST_F(AddressMapTest, DataGetsAddressesOfItsOwn) {
  static int a, b;
  const std::uint64_t first = map.add_data(&a, sizeof a);
  EXPECT_EQ(first, AddressMap::kData);
  EXPECT_GT(map.add_data(&b, sizeof b), first);
  EXPECT_EQ(map.add_data(&a, sizeof a), first);
  EXPECT_EQ(map.to_host(first, sizeof a), &a);
}

TEST_F(AddressMapTest, RetiredRangeKeepsItsAddress) {
  map.retire(arena.data());
  EXPECT_EQ(map.to_simulated(arena.data() + 1), AddressMap::kArena + 1);
  EXPECT_EQ(map.to_host(AddressMap::kArena + 1, 1), nullptr);
  map.restore(arena.data(), 1024);
  EXPECT_NE(map.to_host(AddressMap::kArena + 1, 1), nullptr);
}

TEST_F(AddressMapTest, RetiredPartEndsWhatCanBeRead) {
  map.retire({{arena.data() + 100, 50}});
  const void* host = nullptr;
  EXPECT_EQ(map.readable_from(AddressMap::kArena + 90, &host), 10u);
  EXPECT_EQ(host, arena.data() + 90);
  EXPECT_EQ(map.readable_from(AddressMap::kArena + 120, &host), 0u);
  EXPECT_EQ(map.readable_from(AddressMap::kArena + 150, &host), 1024u - 150);
  EXPECT_EQ(map.to_host(AddressMap::kArena + 99, 2), nullptr);
}

TEST_F(AddressMapTest, RetiredNeighboursComeBackOneByOne) {
  for (std::size_t i = 0; i < 4; ++i) map.retire({{arena.data() + 64 * i, 64}});
  map.restore(arena.data() + 64, 64);
  EXPECT_EQ(map.readable_from(AddressMap::kArena + 64, nullptr), 64u);
  EXPECT_EQ(map.readable_from(AddressMap::kArena + 63, nullptr), 0u);
  EXPECT_EQ(map.readable_from(AddressMap::kArena + 128, nullptr), 0u);
  EXPECT_EQ(map.readable_from(AddressMap::kArena + 256, nullptr), 1024u - 256);
}

TEST_F(AddressMapTest, LookUpsRunBesideWriters) {
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done.load()) ASSERT_EQ(map.to_simulated(arena.data()), AddressMap::kArena);
  });
  for (std::size_t i = 0; i < 200; ++i) map.add_data(arena.data() + 2048 + i * 8, 8);
  done.store(true);
  reader.join();
}

}  // namespace
}  // namespace dtmalloc
