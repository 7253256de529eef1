// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <dtmalloc/sys/address_map.hpp>
#include <thread>
#include <vector>

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

// Thousands of reloads cost no memory to speak of and no time: nothing is copied.
TEST_F(AddressMapTest, RetiringAndRestoringIsInPlace) {
  for (int i = 0; i < 500'000; ++i) {
    map.retire({{arena.data() + 64, 128}, {arena.data() + 512, 16}});
    map.restore(arena.data() + 64, 128);
    map.restore(arena.data() + 512, 16);
  }
  EXPECT_EQ(map.readable_from(AddressMap::kArena, nullptr), 1024u);
}

TEST_F(AddressMapTest, ManyRangesAreFound) {
  static std::array<std::byte, 64 * 1000> data;
  std::vector<std::uint64_t> at;
  for (std::size_t i = 0; i < 1000; ++i) at.push_back(map.add_data(&data[64 * i], 64));
  for (std::size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(at[i], AddressMap::kData + 64 * i);
    EXPECT_EQ(map.to_simulated(&data[64 * i + 63]), at[i] + 63);
    EXPECT_EQ(map.to_host(at[i], 64), &data[64 * i]);
  }
}

TEST_F(AddressMapTest, DataIsReadable_UntilItsLastUserRetires) {
  static const char name[] = "long name";
  const std::uint64_t at = map.add_data(name, sizeof name);
  EXPECT_EQ(map.add_data(name + 5, 5), at + 5);
  map.retire(name);
  EXPECT_NE(map.to_host(at, 1), nullptr);
  map.retire(name + 5);
  EXPECT_EQ(map.to_host(at, 1), nullptr);
  EXPECT_EQ(map.add_data(name, sizeof name), at);  // back where it was
  EXPECT_NE(map.to_host(at, 1), nullptr);
}

TEST_F(AddressMapTest, LargerDataReplacesWhatItCovers) {
  static const char name[] = "long name";
  const std::uint64_t part = map.add_data(name + 5, 5);
  const std::uint64_t whole = map.add_data(name, sizeof name);
  EXPECT_EQ(map.to_host(part, 1), nullptr);
  EXPECT_EQ(map.to_simulated(name + 5), whole + 5);
  map.retire(name);
  EXPECT_NE(map.to_host(whole, 1), nullptr);  // the part's user is left
}

TEST_F(AddressMapTest, RegionOfDataEnds) {
  EXPECT_EQ(map.add_data(arena.data(), AddressMap::kDataRegion + 1), AddressMap::kNoAddress);
  map.remove(arena.data());
  EXPECT_EQ(map.to_simulated(arena.data()), AddressMap::kNoAddress);
}

TEST_F(AddressMapTest, OutsideAddressPrintsAsItsDistanceFromTheArena) {
  EXPECT_EQ(map.to_printed(arena.data() + 8), AddressMap::kArena + 8);
  EXPECT_EQ(map.to_printed(arena.data() + 4095), AddressMap::kArena + 4095);
  EXPECT_EQ(map.to_printed(arena.data() - 1), AddressMap::kArena - 1);
  EXPECT_EQ(map.to_printed(nullptr), 0u);
  EXPECT_EQ(map.to_printed(reinterpret_cast<void*>(0x10)), 0x10u);
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
