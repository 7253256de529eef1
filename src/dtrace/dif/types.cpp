// SPDX-License-Identifier: BSD-2-Clause
// The type table: C's types, D's typedefs, and look-up by the words of a type name.
// Counterpart:  libctf as libdtrace uses it
#include "dtrace/dif/types.hpp"

#include <array>
#include <cctype>

namespace dtmalloc::dtrace {
namespace {

constexpr std::uint64_t kPointerSize = 8;

// The words of a C integer type in any order -> the name in the table, or empty.
std::string canonical_words(const std::vector<std::string>& words) {
  int longs = 0;
  int shorts = 0;
  int chars = 0;
  int ints = 0;
  int signs = 0;
  int unsigns = 0;
  int doubles = 0;
  for (const std::string& word : words) {
    if (word == "long") {
      ++longs;
    } else if (word == "short") {
      ++shorts;
    } else if (word == "char") {
      ++chars;
    } else if (word == "int") {
      ++ints;
    } else if (word == "signed") {
      ++signs;
    } else if (word == "unsigned") {
      ++unsigns;
    } else if (word == "double") {
      ++doubles;
    } else {
      return {};
    }
  }
  if (longs > 2 || shorts > 1 || chars > 1 || ints > 1 || signs + unsigns > 1 || doubles > 1) {
    return {};
  }
  if (doubles == 1) {
    if (longs > 1 || shorts + chars + ints + signs + unsigns > 0) return {};
    return longs == 1 ? "long double" : "double";
  }
  if ((chars != 0) + (shorts != 0) + (longs != 0) > 1 || (chars != 0 && ints != 0)) return {};
  std::string name = signs != 0 ? "signed " : unsigns != 0 ? "unsigned " : "";
  if (chars != 0) {
    name += "char";
  } else if (shorts != 0) {
    name += "short";
  } else if (longs == 2) {
    name += "long long";
  } else if (longs == 1) {
    name += "long";
  } else {
    name += "int";
  }
  return name;
}

}  // namespace

TypeId TypeTable::add(Type type) {
  const auto id = static_cast<TypeId>(types_.size());
  if (!type.name.empty()) by_name_.emplace(type.name, id);
  types_.push_back(std::move(type));
  return id;
}

TypeTable::TypeTable() {
  types_.emplace_back();  // kNoType
  void_type = add({.kind = TypeKind::void_, .name = "void"});
  const auto integer = [this](std::string_view name, std::uint64_t size, bool is_signed) {
    const bool is_char = name.ends_with("char");
    return add({.kind = TypeKind::integer,
                .name = std::string(name),
                .size = size,
                .is_signed = is_signed,
                .is_char = is_char});
  };
  char_type = integer("char", 1, true);
  integer("signed char", 1, true);
  integer("unsigned char", 1, false);
  for (const std::string_view sign : {"", "signed ", "unsigned "}) {
    const bool is_signed = !sign.starts_with('u');
    integer(std::string(sign) + "short", 2, is_signed);
    integer(std::string(sign) + "int", 4, is_signed);
    integer(std::string(sign) + "long", 8, is_signed);
    integer(std::string(sign) + "long long", 8, is_signed);
  }
  integer("_Bool", 1, false);
  int_type = find("int");
  uint_type = find("unsigned int");
  long_type = find("long");
  ulong_type = find("unsigned long");
  longlong_type = find("long long");
  ulonglong_type = find("unsigned long long");
  const auto floating = [this](std::string_view name, std::uint64_t size) {
    add({.kind = TypeKind::floating, .name = std::string(name), .size = size, .is_signed = true});
  };
  floating("float", 4);
  floating("double", 8);
  floating("long double", 16);
  string_type = add({.kind = TypeKind::string, .name = "string", .size = 256, .is_signed = true});
  types_[string_type].target = char_type;
  add({.kind = TypeKind::stack, .name = "stack", .size = 8});
  add({.kind = TypeKind::symaddr, .name = "_symaddr", .size = 8});
  add({.kind = TypeKind::usymaddr, .name = "_usymaddr", .size = 16});

  struct Typedef {
    std::string_view name, target;
  };
  static constexpr std::array<Typedef, 30> kTypedefs = {{
      {"int8_t", "char"},
      {"int16_t", "short"},
      {"int32_t", "int"},
      {"int64_t", "long"},
      {"intptr_t", "long"},
      {"ssize_t", "long"},
      {"ptrdiff_t", "long"},
      {"uchar_t", "unsigned char"},
      {"ushort_t", "unsigned short"},
      {"uint_t", "unsigned int"},
      {"ulong_t", "unsigned long"},
      {"u_longlong_t", "unsigned long long"},
      {"uint8_t", "unsigned char"},
      {"uint16_t", "unsigned short"},
      {"uint32_t", "unsigned int"},
      {"uint64_t", "unsigned long"},
      {"uintptr_t", "unsigned long"},
      {"size_t", "unsigned long"},
      {"id_t", "int"},
      {"pid_t", "int"},
      {"hrtime_t", "long long"},
      {"uint", "unsigned int"},
      {"u_char", "unsigned char"},
      {"u_short", "unsigned short"},
      {"u_int", "unsigned int"},
      {"u_long", "unsigned long"},
      {"uid_t", "unsigned int"},
      {"gid_t", "unsigned int"},
      {"in_addr_t", "unsigned int"},
      {"ipaddr_t", "unsigned int"},
  }};
  for (const Typedef& entry : kTypedefs) add_typedef(entry.name, find(entry.target));
  for (const std::string_view tag : {"mtx", "rwlock", "sx", "thread"}) forward_struct(tag);
  add_struct("in6_addr", 16, {{"__u6_addr", array_of(find("uint8_t"), 16), 0}});
  int64_type = find("int64_t");
  uint64_type = find("uint64_t");
}

void TypeTable::add_typedef(std::string_view name, TypeId target) {
  if (by_name_.contains(name)) return;
  Type type = types_[target];
  type.base = resolve(target);
  type.name = std::string(name);
  type.members.clear();
  add(std::move(type));
}

TypeId TypeTable::find(std::string_view name) {
  if (const auto found = by_name_.find(name); found != by_name_.end()) return found->second;
  std::vector<std::string> words;
  std::size_t stars = 0;
  std::size_t i = 0;
  while (i < name.size()) {
    const auto c = static_cast<unsigned char>(name[i]);
    if (std::isspace(c) != 0) {
      ++i;
    } else if (c == '*') {
      ++stars;
      ++i;
    } else if (std::isalnum(c) != 0 || c == '_') {
      std::size_t end = i;
      while (end < name.size() &&
             (std::isalnum(static_cast<unsigned char>(name[end])) != 0 || name[end] == '_')) {
        ++end;
      }
      const std::string_view word = name.substr(i, end - i);
      i = end;
      if (word == "const" || word == "volatile") continue;
      if (stars != 0) return kNoType;
      words.emplace_back(word);
    } else {
      return kNoType;
    }
  }
  if (words.empty()) return kNoType;
  std::string base;
  for (const std::string& word : words) base += (base.empty() ? "" : " ") + word;
  auto found = by_name_.find(base);
  if (found == by_name_.end()) found = by_name_.find(canonical_words(words));
  if (found == by_name_.end()) return kNoType;
  TypeId type = found->second;
  for (; stars != 0; --stars) type = pointer_to(type);
  return type;
}

TypeId TypeTable::pointer_to(TypeId target) {
  const Type& pointee = types_[target];
  const bool to_pointer = pointee.kind == TypeKind::pointer && pointee.name.ends_with('*');
  std::string name = pointee.name + (to_pointer ? "*" : " *");
  if (const auto found = by_name_.find(name); found != by_name_.end()) return found->second;
  return add(
      {.kind = TypeKind::pointer, .name = std::move(name), .size = kPointerSize, .target = target});
}

TypeId TypeTable::array_of(TypeId element, std::uint32_t count) {
  std::string name = types_[element].name + " [" + std::to_string(count) + "]";
  if (const auto found = by_name_.find(name); found != by_name_.end()) return found->second;
  const std::uint64_t size = types_[resolve(element)].size * count;
  return add({.kind = TypeKind::array,
              .name = std::move(name),
              .size = size,
              .target = element,
              .count = count});
}

TypeId TypeTable::forward_struct(std::string_view tag) {
  std::string name = "struct " + std::string(tag);
  if (const auto found = by_name_.find(name); found != by_name_.end()) return found->second;
  return add({.kind = TypeKind::struct_, .name = std::move(name)});
}

TypeId TypeTable::add_struct(std::string_view tag, std::uint64_t size,
                             std::vector<Member> members) {
  const TypeId id = forward_struct(tag);
  Type& type = types_[id];
  if (type.size == 0 && type.members.empty()) {
    type.size = size;
    type.members = std::move(members);
  }
  return id;
}

TypeId TypeTable::promote(TypeId a, TypeId b) const {
  const auto rank = [this](TypeId id) {
    const Type& type = types_[resolve(id)];
    return type.size * 8 + (type.is_signed ? 0 : 1);
  };
  return rank(a) >= rank(b) ? a : b;
}

const Member* TypeTable::member(TypeId struct_type, std::string_view name) const {
  for (const Member& member : types_[resolve(struct_type)].members) {
    if (member.name == name) return &member;
  }
  return nullptr;
}

}  // namespace dtmalloc::dtrace
