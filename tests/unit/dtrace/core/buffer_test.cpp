// SPDX-License-Identifier: BSD-2-Clause
// Principal buffers: their halves and their policies.
#include "dtrace/core/buffer.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>

namespace dtmalloc::dtrace {
namespace {

TEST(PrincipalBuffer, HandsOutWhatWasRecordedAndStartsAnew) {
  PrincipalBuffer buffer;
  ASSERT_TRUE(buffer.reserve(64));
  buffer.active[0] = std::byte{7};
  buffer.used = 12;
  buffer.drops = 3;
  const PrincipalBuffer::Taken taken = buffer.take();
  EXPECT_EQ(taken.records.size(), 12u);
  EXPECT_EQ(taken.records[0], std::byte{7});
  EXPECT_EQ(taken.drops, 3u);
  EXPECT_EQ(buffer.used, 0u);
  EXPECT_EQ(buffer.drops, 0u);
  EXPECT_NE(buffer.active, taken.records.data());
  EXPECT_TRUE(buffer.take().records.empty());
}

TEST(PrincipalBuffer, SaysWhenTheHostHasNoMemory) {
  PrincipalBuffer buffer;
  EXPECT_FALSE(buffer.reserve(std::size_t{1} << 60));
  EXPECT_EQ(buffer.size, 0u);
}

// A record without data.
void record(PrincipalBuffer& buffer, std::size_t start, std::uint32_t epid) {
  std::memset(buffer.active + buffer.used, 0, start - buffer.used);
  std::memcpy(buffer.active + start, &epid, 4);
  buffer.used = start + 12;
}

TEST(PrincipalBuffer, IsOffUntilItIsTurnedOn) {
  PrincipalBuffer buffer;
  ASSERT_TRUE(buffer.reserve(64));
  std::size_t start = 0;
  EXPECT_EQ(buffer.limit, 0u);
  EXPECT_FALSE(buffer.reserve(12, 4, nullptr, &start));
  EXPECT_EQ(buffer.drops, 0u);
  buffer.turn_on();
  EXPECT_EQ(buffer.limit, 64u);
  EXPECT_TRUE(buffer.reserve(64, 4, nullptr, &start));
  EXPECT_FALSE(buffer.reserve(68, 4, nullptr, &start));
  EXPECT_EQ(buffer.drops, 1u);
}

TEST(PrincipalBuffer, AFilledOneStaysFilledUntilTheEnd) {
  PrincipalBuffer buffer;
  ASSERT_TRUE(buffer.reserve(64, BufferPolicy::fill));
  buffer.kept_for_end = 32;
  buffer.turn_on();
  EXPECT_EQ(buffer.limit, 0u);
  std::size_t start = 0;
  EXPECT_TRUE(buffer.reserve(32, 4, nullptr, &start));
  EXPECT_FALSE(buffer.reserve(36, 4, nullptr, &start));
  EXPECT_FALSE(buffer.reserve(12, 4, nullptr, &start));
  EXPECT_EQ(buffer.drops, 0u);
  buffer.ending = true;
  EXPECT_TRUE(buffer.reserve(64, 4, nullptr, &start));
}

TEST(PrincipalBuffer, ARingHandsOutItsOldestFirst) {
  static constexpr std::uint32_t kSizes[8] = {0, 12, 12, 12, 12, 12, 12, 12};
  PrincipalBuffer buffer;
  ASSERT_TRUE(buffer.reserve(40, BufferPolicy::ring));
  buffer.turn_on();
  std::size_t start = 0;
  for (std::uint32_t epid = 1; epid <= 5; ++epid) {
    ASSERT_TRUE(buffer.reserve(12, 4, kSizes, &start));
    record(buffer, start, epid);
  }
  const auto epids = [&buffer] {
    const PrincipalBuffer::Taken taken = buffer.take();
    std::string text;
    for (const std::span<const std::byte> part : {taken.records, taken.newer}) {
      for (std::size_t at = 0; at < part.size();) {
        std::uint32_t epid = 0;
        std::memcpy(&epid, part.data() + at, sizeof epid);
        if (epid != 0) text += std::to_string(epid);
        at += epid == 0 ? sizeof epid : kSizes[epid];
      }
    }
    return text;
  };
  EXPECT_EQ(epids(), "345");
  // Room that is not used costs the oldest all the same.
  ASSERT_TRUE(buffer.reserve(12, 4, kSizes, &start));
  EXPECT_EQ(epids(), "45");
  EXPECT_FALSE(buffer.reserve(44, 4, kSizes, &start));
  EXPECT_EQ(buffer.drops, 1u);
}

}  // namespace
}  // namespace dtmalloc::dtrace
