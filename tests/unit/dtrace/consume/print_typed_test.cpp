// SPDX-License-Identifier: BSD-2-Clause
// print(): values by their types: spec/dtrace.md 3.8.
#include <gtest/gtest.h>

#include <cstring>

#include "dtrace/consume/format.hpp"

namespace dtmalloc::dtrace {
namespace {

class PrintTyped : public ::testing::Test {
 protected:
  std::string printed(TypeId type, const std::string& bytes) {
    Datum datum;
    datum.desc.type = type;
    datum.bytes = std::as_bytes(std::span(bytes));
    std::string out;
    print_typed(out, types, datum);
    return out;
  }
  template <typename T>
  std::string printed(std::string_view type, T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return printed(types.find(type), bytes);
  }
  TypeTable types;
};

// REQ: DFUNCS-20
TEST_F(PrintTyped, ScalarsWithTheirTypes) {
  EXPECT_EQ(printed("int", 5), "int 0x5\n");
  EXPECT_EQ(printed("int", 0), "int 0\n");
  EXPECT_EQ(printed("int", -1), "int 0xffffffff\n");
  EXPECT_EQ(printed("uint64_t", std::uint64_t{1} << 40), "uint64_t 0x10000000000\n");
  EXPECT_EQ(printed("unsigned char", 'a'), "unsigned char 0x61\n");
  EXPECT_EQ(printed("char", 'a'), "char 'a'\n");
  EXPECT_EQ(printed("char", '\0'), "char '\\0'\n");
  EXPECT_EQ(printed("char", '\n'), "char '\\012'\n");
  EXPECT_EQ(printed("char *", std::uint64_t{0xfff0}), "char * 0xfff0\n");
  EXPECT_EQ(printed("double", 1.5), "double +1.5000000e+00\n");
  EXPECT_EQ(printed("float", -0.25F), "float -2.5000000e-01\n");
}

// REQ: DFUNCS-20
TEST_F(PrintTyped, Texts) {
  EXPECT_EQ(printed(types.string_type, std::string("text\0\0\0", 7)), "string \"text\"\n");
  EXPECT_EQ(printed(types.string_type, std::string("\0\0", 2)), "string \"\"\n");
  EXPECT_EQ(printed(types.string_type, std::string("a\n\0", 3)),
            "string [ 'a', '\\012', '\\0' ]\n");
  const TypeId three = types.array_of(types.char_type, 3);
  EXPECT_EQ(printed(three, std::string("ab\0", 3)), "char [3] \"ab\"\n");
  EXPECT_EQ(printed(three, "abc"), "char [3] [ 'a', 'b', 'c' ]\n");
}

// REQ: DFUNCS-21
TEST_F(PrintTyped, StructuresWithTheirMembers) {
  const TypeId inner = types.add_struct("bar", 4, {{"alpha", types.int_type, 0}});
  const TypeId ints = types.array_of(types.int_type, 3);
  const TypeId text = types.array_of(types.char_type, 4);
  const TypeId bars = types.array_of(inner, 2);
  const TypeId outer = types.add_struct("foo", 40,
                                        {{"a", ints, 0},
                                         {"b", text, 12},
                                         {"c", bars, 16},
                                         {"d", inner, 24},
                                         {"p", types.pointer_to(inner), 32}});
  std::string bytes(40, '\0');
  const int numbers[] = {1, 2, 3};
  std::memcpy(bytes.data(), numbers, sizeof numbers);
  std::memcpy(bytes.data() + 12, "ab", 2);
  const int alphas[] = {5, 6, 7};
  std::memcpy(bytes.data() + 16, alphas, sizeof alphas);
  // The braces of the outermost end without a newline.
  EXPECT_EQ(printed(outer, bytes),
            "struct foo {\n"
            "    int [3] a = [ 0x1, 0x2, 0x3 ]\n"
            "    char [4] b = [ \"ab\" ]\n"
            "    struct bar [2] c = [ \n"
            "        struct bar {\n"
            "            int alpha = 0x5\n"
            "        }, \n"
            "        struct bar {\n"
            "            int alpha = 0x6\n"
            "        }\n"
            "    ]\n"
            "    struct bar d = {\n"
            "        int alpha = 0x7\n"
            "    }\n"
            "    struct bar *p = 0\n"
            "}");
  const TypeId grid = types.array_of(types.array_of(types.int_type, 2), 2);
  const int cells[] = {1, 2, 3, 4};
  EXPECT_EQ(printed(grid, std::string(reinterpret_cast<const char*>(cells), sizeof cells)),
            "int [2][2] [ [ 0x1, 0x2 ], [ 0x3, 0x4 ] ]\n");
}

}  // namespace
}  // namespace dtmalloc::dtrace
