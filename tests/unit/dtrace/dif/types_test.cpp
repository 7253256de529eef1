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

TEST(TypeTable, ComparesWhatTypesAreMadeOf) {
  TypeTable types;
  const TypeId named = types.find("int32_t");
  const auto function = [&](TypeId parameter, bool variadic = false) {
    return types.function_of(types.void_type, {types.pointer_to(parameter), parameter}, variadic);
  };
  EXPECT_TRUE(types.same(types.pointer_to(named), types.pointer_to(types.int_type)));
  EXPECT_TRUE(types.same(function(named), function(types.int_type)));
  EXPECT_FALSE(types.same(function(named), function(named, true)));
  EXPECT_FALSE(types.same(function(named), function(types.uint_type)));
  EXPECT_TRUE(types.same(types.array_of(named, 3), types.array_of(types.int_type, 3)));
  EXPECT_FALSE(types.same(types.array_of(named, 3), types.array_of(named, 4)));
  EXPECT_FALSE(types.same(types.int_type, types.bit_field_of(types.int_type, 32)));
  EXPECT_FALSE(types.same(types.long_type, types.longlong_type));
  // What is gone is no longer the first of its kind.
  types.begin();
  (void)types.pointer_to(types.declare_tag(TypeKind::struct_, "gone"));
  types.rollback();
  const TypeId one = types.declare_tag(TypeKind::struct_, "one");
  const TypeId other = types.declare_tag(TypeKind::struct_, "other");
  EXPECT_FALSE(types.same(types.pointer_to(one), types.pointer_to(other)));
  EXPECT_FALSE(types.same(types.pointer_to(one), one));
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

TEST(TypeTable, NamesDerivedTypesAsC) {
  // REQ: DTYPES-08
  TypeTable types;
  const TypeId pointer = types.pointer_to(types.char_type);
  const TypeId function = types.function_of(types.int_type, {pointer, types.int_type}, true);
  EXPECT_EQ(types[function].name, "int (char *, int, ...)");
  EXPECT_EQ(types[types.pointer_to(function)].name, "int (*)(char *, int, ...)");
  const TypeId row = types.array_of(types.int_type, 3);
  EXPECT_EQ(types[types.array_of(row, 2)].name, "int [2][3]");
  EXPECT_EQ(types[types.array_of(row, 2)].size, 24U);
  EXPECT_EQ(types[types.pointer_to(row)].name, "int (*)[3]");
  EXPECT_EQ(types[types.array_of(types.pointer_to(function), 4)].name,
            "int (*[4])(char *, int, ...)");
  EXPECT_TRUE(types.same(types.pointer_to(types.find("int32_t")), types.find("int *")));
  EXPECT_FALSE(types.same(types.pointer_to(row), types.find("int *")));
}

TEST(TypeTable, LaysOutMembers) {
  // REQ: DTYPES-05 DTYPES-06
  TypeTable types;
  const auto field = [&](const char* name, const char* type, unsigned width) {
    return Member{name, types.bit_field_of(types.find(type), width)};
  };
  std::vector<Member> members = {{"a", types.char_type},    field("b", "int", 30),
                                 field("c", "int", 3),      {"", types.int_type},
                                 field("d", "unsigned", 1), {"e", types.find("short")}};
  Layout layout;
  ASSERT_TRUE(lay_out(types, TypeKind::struct_, members, &layout));
  EXPECT_EQ(layout.size, 16U);
  EXPECT_EQ(layout.align, 4U);
  ASSERT_EQ(members.size(), 5U);
  EXPECT_EQ(members[1].offset, 4U);
  EXPECT_EQ(members[2].offset, 8U);
  EXPECT_EQ(members[2].bit, 0U);
  EXPECT_EQ(members[3].offset, 12U);
  EXPECT_EQ(members[4].offset, 14U);
  EXPECT_EQ(types[members[1].type].bits, 30);
  EXPECT_EQ(types[members[2].type].size, 1U);
  ASSERT_TRUE(lay_out(types, TypeKind::union_, members, &layout));
  EXPECT_EQ(layout.size, 4U);
  members = {{"big", types.array_of(types.char_type, 0xffffffff)}, {"c", types.char_type}};
  EXPECT_FALSE(lay_out(types, TypeKind::struct_, members, &layout));
}

TEST(TypeTable, RollsBackWhatProgramsDeclared) {
  // REQ: DTYPES-03 DTYPES-23
  TypeTable types;
  const TypeId kernel = types.add_struct("node", 16, {{"value", types.int_type, 8}});
  types.begin();
  const TypeId forward = types.declare_tag(TypeKind::struct_, "later");
  types.begin();
  types.define_struct(forward, {4, 4}, {{"x", types.int_type}});
  const TypeId own = types.declare_tag(TypeKind::struct_, "node");
  const TypeId colours = types.declare_tag(TypeKind::enum_, "colour");
  types.add_enumerator(colours, "RED", 7);
  types.declare_typedef("own_t", own);
  types.pointer_to(own);
  EXPECT_EQ(types.find("struct node"), own);
  EXPECT_EQ(types.find("struct kernel`node"), kernel);
  EXPECT_EQ(types.find("struct D`node *"), types.pointer_to(own));
  EXPECT_EQ(types.find("struct C`node"), kNoType);
  std::int32_t value = 0;
  EXPECT_EQ(types.find_enumerator("RED", &value), colours);
  EXPECT_EQ(value, 7);
  types.rollback();
  EXPECT_EQ(types.find("struct node"), kernel);
  EXPECT_EQ(types.find("own_t"), kNoType);
  EXPECT_EQ(types.find_enumerator("RED", &value), kNoType);
  EXPECT_EQ(types[forward].size, 0U);
  EXPECT_EQ(types.find("struct later"), forward);
}

}  // namespace
}  // namespace dtmalloc::dtrace
