// SPDX-License-Identifier: BSD-2-Clause
// D types: sizes, signedness, members. One table per consumer, filled with D's own types and with
// the kernel structures that providers name.
// Counterpart:  CTF containers of libdtrace
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtmalloc::dtrace {

using TypeId = std::uint32_t;
inline constexpr TypeId kNoType = 0;

enum class TypeKind : std::uint8_t {
  none,
  void_,
  integer,
  floating,
  pointer,
  array,
  struct_,
  union_,
  enum_,
  string,
  function,
  stack,
  symaddr,
  usymaddr,
  dynamic,
};

struct Member {
  std::string name;
  TypeId type = kNoType;
  std::uint32_t offset = 0;  // bytes
};

struct Type {
  TypeKind kind = TypeKind::none;
  std::string name;        // as messages print it: "unsigned long", "struct malloc_type *"
  std::uint64_t size = 0;  // bytes
  bool is_signed = false;
  bool is_char = false;     // char types (signed or not), for strings and %c
  TypeId target = kNoType;  // pointer: pointee; array: element
  std::uint32_t count = 0;  // array: elements
  TypeId base = kNoType;    // typedef: the type it names, itself no typedef
  std::vector<Member> members = {};
};

class TypeTable {
 public:
  TypeTable();  // void, the C types, string, D's typedefs (spec/dtrace.md 9)

  const Type& operator[](TypeId id) const { return types_[id]; }
  // The type behind a typedef; other types are their own.
  TypeId resolve(TypeId id) const { return types_[id].base == kNoType ? id : types_[id].base; }
  // "unsigned long", "uint64_t", "struct malloc_type", "char *": kNoType if unknown. Any order of
  // the words of a C type; pointers to known types are made on the fly.
  TypeId find(std::string_view name);
  TypeId pointer_to(TypeId target);
  TypeId array_of(TypeId element, std::uint32_t count);
  // A struct by its tag; adding one again returns the first.
  TypeId add_struct(std::string_view tag, std::uint64_t size, std::vector<Member> members);
  TypeId forward_struct(std::string_view tag);  // declared, size 0, members added by add_struct
  void add_typedef(std::string_view name, TypeId target);
  const Member* member(TypeId struct_type, std::string_view name) const;
  // Of two integer types, the one of arithmetic between them (spec/dtrace.md 10): the wider, or the
  // unsigned one of equals.
  TypeId promote(TypeId a, TypeId b) const;

  TypeId void_type, char_type, int_type, uint_type, long_type, ulong_type, longlong_type,
      ulonglong_type, int64_type, uint64_type, string_type;

 private:
  TypeId add(Type type);
  std::deque<Type> types_;
  std::map<std::string, TypeId, std::less<>> by_name_;
};

}  // namespace dtmalloc::dtrace
