// SPDX-License-Identifier: BSD-2-Clause
#include "sys/format.hpp"

#include <gtest/gtest.h>

namespace dtmalloc {
namespace {

TEST(KernelFormat, ConvertsAsPrintfDoes) {
  const AddressMap map;
  EXPECT_EQ(kernel_format(map, "%d %5u|%-4x|%#zx %lu %ld %s %c %%", -1, 7u, 255u, std::size_t{48},
                          18446744073709551615ul, -5l, "text", 'c'),
            "-1     7|ff  |0x30 18446744073709551615 -5 text c %");
  EXPECT_EQ(kernel_format(map, "%s", std::string(1000, 'x').c_str()), std::string(1000, 'x'));
}

TEST(KernelFormat, WidthIsAnArgument_AndUnknownConversionsStay) {
  const AddressMap map;
  EXPECT_EQ(kernel_format(map, "[%*d|%-*d|%.*s]", 4, 7, 3, 8, 2, "abc"), "[   7|8  |ab]");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
  EXPECT_EQ(kernel_format(map, "%d %b %d", 1, 2, 3), "1 %b %d");
#pragma GCC diagnostic pop
}

TEST(KernelFormat, PointersAreSimulatedAddresses) {
  static int object;
  AddressMap map;
  map.add({0xfffff80000001000, reinterpret_cast<const std::byte*>(&object), sizeof object, true});
  EXPECT_EQ(kernel_format(map, "%p(%p)", static_cast<void*>(&object), static_cast<void*>(nullptr)),
            "0xfffff80000001000(0)");
  EXPECT_EQ(kernel_format(map, "%p", reinterpret_cast<void*>(0x10)), "0x10");
}

}  // namespace
}  // namespace dtmalloc
