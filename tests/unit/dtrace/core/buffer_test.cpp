// SPDX-License-Identifier: BSD-2-Clause
// The two halves of a principal buffer.
#include "dtrace/core/buffer.hpp"

#include <gtest/gtest.h>

namespace dtmalloc::dtrace {
namespace {

TEST(PrincipalBuffer, HandsOutWhatWasRecordedAndStartsAnew) {
  PrincipalBuffer buffer;
  ASSERT_TRUE(buffer.reserve(64));
  buffer.active[0] = std::byte{7};
  buffer.used = 12;
  buffer.drops = 3;
  const PrincipalBuffer::Taken taken = buffer.exchange();
  EXPECT_EQ(taken.records.size(), 12u);
  EXPECT_EQ(taken.records[0], std::byte{7});
  EXPECT_EQ(taken.drops, 3u);
  EXPECT_EQ(buffer.used, 0u);
  EXPECT_EQ(buffer.drops, 0u);
  EXPECT_NE(buffer.active, taken.records.data());
  EXPECT_TRUE(buffer.exchange().records.empty());
}

TEST(PrincipalBuffer, SaysWhenTheHostHasNoMemory) {
  PrincipalBuffer buffer;
  EXPECT_FALSE(buffer.reserve(std::size_t{1} << 60));
  EXPECT_EQ(buffer.size, 0u);
}

}  // namespace
}  // namespace dtmalloc::dtrace
