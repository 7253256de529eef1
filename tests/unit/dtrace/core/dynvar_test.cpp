// SPDX-License-Identifier: BSD-2-Clause
// The dynamic variable space alone: how much fits, names that collide, the states of a chunk.
#include "dtrace/core/dynvar.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>

namespace dtmalloc::dtrace {
namespace {

constexpr std::size_t kChunk = 72;  // of a thread variable or an array with one integer key

struct Space {
  explicit Space(std::size_t size, std::size_t chunk = kChunk, int cpus = 1) {
    EXPECT_TRUE(space.reserve(size, chunk, cpus));
    EXPECT_TRUE(cpu.join(space, 0));
  }
  std::size_t name(std::initializer_list<std::uint64_t> words, DynamicCpu& at) {
    std::size_t count = 0;
    for (const std::uint64_t word : words) at.name[count++] = word;
    return count;
  }
  void store(std::uint64_t key, std::uint64_t value) { store_on(cpu, key, value); }
  void store_on(DynamicCpu& at, std::uint64_t key, std::uint64_t value) {
    at.store(name({1, key}, at), &value, 8, 8);
  }
  void remove(std::uint64_t key) { cpu.remove(name({1, key}, cpu)); }
  std::optional<std::uint64_t> load(std::uint64_t key) {
    std::uint64_t first = 0;
    std::uint64_t address = 0;
    if (!cpu.find(name({1, key}, cpu), &first, &address)) return std::nullopt;
    return first;
  }
  // Stores new keys until one is dropped; how many fitted.
  std::size_t fill(std::uint64_t first_key) {
    const auto all = [&] {
      const DynamicSpace::Drops drops = space.drops();
      return drops.empty + drops.rinsing + drops.dirty;
    };
    const std::uint64_t before = all();
    std::size_t stored = 0;
    while (all() == before) store(first_key + stored++, 1);
    return stored - 1;
  }
  bool clean() {
    return space.clean([this] { ++synchronized; });
  }

  DynamicSpace space;
  DynamicCpu cpu;
  int synchronized = 0;
};

// REQ: DVARS-15
TEST(DynamicSpace, HoldsWhatTheKernelCarvesOut) {
  // size / (chunk + 64) buckets of 64 bytes, an even number; the rest is chunks.
  Space one(std::size_t{1} << 20);
  EXPECT_EQ(one.space.buckets(), 7710u);
  EXPECT_EQ(one.space.chunks(), 7710u);
  EXPECT_EQ(one.fill(1), 7710u);
  Space odd(10000, 104);
  EXPECT_EQ(odd.space.buckets(), 58u);
  EXPECT_EQ(odd.fill(1), (10000u - 58 * 64) / 104);
  Space smallest(1);
  EXPECT_EQ(smallest.fill(1), 1u);
  Space many_cpus(2000, kChunk, 3);
  EXPECT_EQ(many_cpus.space.buckets(), 14u);
  EXPECT_EQ(many_cpus.fill(1), (2000u - 14 * 64) / kChunk);
  Space few(64 + 2 * kChunk, kChunk, 8);  // not one for each CPU: the first has them
  EXPECT_EQ(few.fill(1), few.space.chunks());
}

TEST(DynamicSpace, RefusesWhatHasNoAddresses) {
  DynamicSpace space;
  EXPECT_FALSE(space.reserve(std::size_t{1} << 40, kChunk, 1));
  EXPECT_FALSE(space.reserved());
}

// REQ: DVARS-03
TEST(DynamicSpace, NamesThatCollideAreToldApart) {
  Space crowded(56000);
  EXPECT_LT(crowded.space.buckets(), 420u) << "some of 400 names share a bucket";
  std::set<std::uint64_t> live;
  for (std::uint64_t key = 0; key < 400; ++key) {
    crowded.store(key, key * 3 + 1);
    live.insert(key);
  }
  for (std::uint64_t key = 0; key < 400; key += 3) {
    crowded.remove(key);
    live.erase(key);
  }
  for (std::uint64_t key = 0; key < 500; ++key) {
    const auto found = crowded.load(key);
    EXPECT_EQ(found.has_value(), live.contains(key)) << key;
    if (found) {
      EXPECT_EQ(*found, key * 3 + 1);
    }
  }
  // Names of other lengths, with the same words in front.
  std::uint64_t first = 0;
  std::uint64_t address = 0;
  EXPECT_FALSE(crowded.cpu.find(crowded.name({1}, crowded.cpu), &first, &address));
  EXPECT_FALSE(crowded.cpu.find(crowded.name({1, 1, 0}, crowded.cpu), &first, &address));
}

// REQ: DVARS-03
TEST(DynamicSpace, OneBucketHoldsThemAll) {
  Space space(64 + 1000, 1000);
  EXPECT_EQ(space.space.buckets(), 1u);
  space.store(5, 50);
  EXPECT_EQ(space.load(5), 50u);
  space.store(6, 60);  // no chunk
  EXPECT_FALSE(space.load(6).has_value());
  space.remove(5);
  space.clean();
  space.clean();
  space.store(6, 60);
  EXPECT_EQ(space.load(6), 60u);
  EXPECT_FALSE(space.load(5).has_value());
}

// REQ: DVARS-16
TEST(DynamicSpace, OnlyTheFirstStoreTakesAChunk) {
  Space space(5000);
  const std::size_t chunks = space.space.chunks();
  for (std::uint64_t i = 1; i <= 10 * chunks; ++i) space.store(1, i);
  EXPECT_EQ(space.load(1), 10 * chunks);
  EXPECT_EQ(space.fill(100), chunks - 1);
  for (int i = 0; i < 10; ++i) space.remove(7);  // what is not there frees nothing
  EXPECT_EQ(space.load(1), 10 * chunks);
}

// REQ: DVARS-17, DVARS-18
TEST(DynamicSpace, AFreedChunkIsDirtyThenRinsingThenClean) {
  Space space(2000);
  const std::size_t chunks = space.fill(1);
  EXPECT_EQ(space.space.drops().empty, 1u);
  EXPECT_FALSE(space.clean()) << "nothing is dirty";
  EXPECT_EQ(space.synchronized, 0);

  space.remove(1);
  space.remove(2);
  space.store(1000, 1);
  EXPECT_EQ(space.space.drops().dirty, 1u);
  EXPECT_TRUE(space.clean());
  EXPECT_EQ(space.synchronized, 1) << "no firing from before may still look at them";
  space.store(1000, 1);
  space.store(1000, 1);
  EXPECT_EQ(space.space.drops().rinsing, 2u);
  space.remove(3);  // dirty beside the rinsing ones
  space.store(1000, 1);
  EXPECT_EQ(space.space.drops().rinsing, 3u);
  EXPECT_TRUE(space.clean());
  EXPECT_EQ(space.fill(1000), 2u);
  EXPECT_EQ(space.space.drops().rinsing, 4u);
  EXPECT_FALSE(space.clean());
  EXPECT_EQ(space.fill(2000), 1u);
  EXPECT_EQ(space.space.drops().empty, 2u);
  EXPECT_EQ(space.space.drops().dirty, 1u);
  EXPECT_EQ(space.load(4), 1u);
  EXPECT_FALSE(space.load(1).has_value());
  EXPECT_EQ(chunks, space.space.chunks());
}

// REQ: DVARS-17
TEST(DynamicSpace, WhoMakesAChunkDirtyAsksForAPass) {
  Space space(5000);
  int calls = 0;
  space.space.when_dirty([&] { ++calls; });
  for (std::uint64_t key = 1; key < 10; ++key) space.store(key, 1);
  space.remove(77);
  EXPECT_EQ(calls, 0);
  for (std::uint64_t key = 1; key < 5; ++key) space.remove(key);
  EXPECT_EQ(calls, 4);
}

// REQ: DVARS-15
TEST(DynamicSpace, ACpuWithoutChunksTakesThoseOfOthers) {
  Space space(2000, kChunk, 3);
  DynamicCpu other;
  ASSERT_TRUE(other.join(space.space, 2));
  const std::size_t chunks = space.space.chunks();
  for (std::uint64_t key = 0; key < chunks; ++key) space.store_on(other, key, key + 1);
  EXPECT_EQ(space.space.drops().empty, 0u);
  EXPECT_EQ(space.load(chunks - 1), chunks);
  space.remove(0);
  space.clean();
  space.clean();
  space.store_on(other, 77, 7);  // it is clean on CPU 0's list
  EXPECT_EQ(space.load(77), 7u);
  DynamicCpu late;
  ASSERT_TRUE(late.join(space.space, 40));  // joined after the space was made
  space.store_on(late, 78, 8);
  EXPECT_EQ(space.space.drops().empty, 1u);
}

// REQ: DVARS-11
TEST(DynamicSpace, BytesAreSeenWhereTheyAre_AndNowhereElse) {
  Space space(5000, 256);
  DynamicCpu other;
  ASSERT_TRUE(other.join(space.space, 0));
  const std::string text = "a text of several words";
  std::uint64_t data[4] = {};
  std::memcpy(data, text.c_str(), text.size() + 1);
  space.cpu.store(space.name({1, 5}, space.cpu), data, text.size() + 1, 64);
  std::uint64_t first = 0;
  std::uint64_t address = 0;
  ASSERT_TRUE(other.find(space.name({1, 5}, other), &first, &address));
  EXPECT_GE(address, kDynamicBase);
  const void* host = nullptr;
  ASSERT_EQ(other.view(address, &host), 64u);
  EXPECT_EQ(static_cast<const char*>(host), text);
  EXPECT_EQ(other.view(address + 3, &host), 61u);
  EXPECT_EQ(static_cast<const char*>(host), text.substr(3));
  EXPECT_EQ(other.view(address + 64, &host), 0u);
  EXPECT_EQ(other.view(address - 1, &host), 0u) << "the name";
  EXPECT_EQ(other.view(kDynamicBase, &host), 0u) << "the header";
  EXPECT_EQ(other.view(address + 256, &host), 0u) << "a chunk never used";
  EXPECT_EQ(other.view(kDynamicBase + 5000, &host), 0u);
  // What one CPU writes into its view, another sees.
  ASSERT_EQ(space.cpu.view(address + 2, &host), 62u);
  auto* to = static_cast<char*>(const_cast<void*>(host));
  to[0] = 'T';
  EXPECT_TRUE(space.cpu.publish(reinterpret_cast<std::byte*>(to), 1));
  ASSERT_EQ(other.view(address, &host), 64u);
  EXPECT_STREQ(static_cast<const char*>(host), "a Text of several words");
  EXPECT_FALSE(space.cpu.publish(reinterpret_cast<std::byte*>(data), 8));
}

// REQ: DVARS-18
TEST(DynamicSpace, WhatFitsNoChunkIsDropped) {
  Space space(5000);
  const std::uint64_t data[20] = {1};
  space.cpu.store(space.name({1, 5}, space.cpu), data, 160, 160);
  EXPECT_EQ(space.space.drops().empty, 1u);
  EXPECT_FALSE(space.load(5).has_value());
}

}  // namespace
}  // namespace dtmalloc::dtrace
