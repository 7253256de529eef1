// SPDX-License-Identifier: BSD-2-Clause
#include "dtrace/dif/types.hpp"

#include <gtest/gtest.h>

namespace dtmalloc::dtrace {
namespace {

TEST(TypeTable, FindsCTypesInAnyOrderOfWords) {
  TypeTable types;
  const auto name = [&](std::string_view text) { return types[types.find(text)].name; };
  EXPECT_EQ(name("long unsigned int"), "unsigned long");
  EXPECT_EQ(name("int long long"), "long long");
  EXPECT_EQ(name("unsigned"), "unsigned int");
  EXPECT_EQ(name("short int"), "short");
  EXPECT_EQ(name("const char *"), "char *");
  EXPECT_EQ(name("char const*const *"), "char **");
  EXPECT_EQ(name("unsigned char"), "unsigned char");
  EXPECT_EQ(name("long double"), "long double");
  EXPECT_EQ(types.find("char * *"), types.find("char **"));
  for (const char* text :
       {"", "nothing", "unsigned double", "long char", "signed unsigned int", "long long long",
        "short long", "* char", "char * x", "struct nothing", "int(*)(void)"}) {
    EXPECT_EQ(types.find(text), kNoType) << text;
  }
}

TEST(TypeTable, HasDTypedefsByTheirOwnNames) {
  TypeTable types;
  const TypeId id = types.find("uint64_t");
  EXPECT_EQ(types[id].name, "uint64_t");
  EXPECT_EQ(types.resolve(id), types.ulong_type);
  EXPECT_EQ(types.resolve(types.find("int8_t")), types.char_type);
  EXPECT_TRUE(types[types.find("int8_t")].is_char);
  EXPECT_EQ(types[types.find("size_t")].size, 8U);
  EXPECT_EQ(types[types.find("pid_t")].size, 4U);
  EXPECT_TRUE(types[types.find("pid_t")].is_signed);
  EXPECT_EQ(types[types.string_type].kind, TypeKind::string);
  EXPECT_FALSE(types[types.find("_Bool")].is_signed);
}

TEST(TypeTable, CompletesForwardStructs) {
  TypeTable types;
  const TypeId forward = types.forward_struct("node");
  types.add_typedef("node_t", forward);
  const TypeId pointer = types.pointer_to(forward);
  EXPECT_EQ(types[pointer].name, "struct node *");
  EXPECT_EQ(types[types.pointer_to(pointer)].name, "struct node **");
  EXPECT_EQ(types.add_struct("node", 16, {{"next", pointer, 0}, {"value", types.int_type, 8}}),
            forward);
  EXPECT_EQ(types.add_struct("node", 99, {}), forward);
  EXPECT_EQ(types[forward].size, 16U);
  ASSERT_NE(types.member(forward, "value"), nullptr);
  EXPECT_EQ(types.member(forward, "value")->offset, 8U);
  EXPECT_NE(types.member(types.find("node_t"), "next"), nullptr);
  EXPECT_EQ(types.member(forward, "none"), nullptr);
  const TypeId array = types.array_of(forward, 3);
  EXPECT_EQ(types[array].name, "struct node [3]");
  EXPECT_EQ(types[array].size, 48U);
}

}  // namespace
}  // namespace dtmalloc::dtrace
