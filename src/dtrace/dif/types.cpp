// SPDX-License-Identifier: BSD-2-Clause
// The type table: C's types, D's typedefs, and look-up by the words of a type name.
// Counterpart:  libctf as libdtrace uses it
#include "dtrace/dif/types.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <set>

#include "dtrace/dif/ascii.hpp"

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
  if (type.shape == kNoType) type.shape = id;
  types_.push_back(std::move(type));
  return id;
}

TypeId TypeTable::add_derived(Type type, const std::vector<TypeId>& parts) {
  std::vector<std::uint32_t> key = {static_cast<std::uint32_t>(type.kind), type.count,
                                    type.variadic ? 1U : 0U};
  for (const TypeId part : parts) {
    const Type& of = types_[resolve(part)];
    type.depth = std::max(type.depth, of.depth + 1);
    key.push_back(of.shape);
  }
  type.shape =
      shapes_.try_emplace(std::move(key), static_cast<TypeId>(types_.size())).first->second;
  const TypeId id = add(std::move(type));
  types_[id].name = declarator(id, {});
  return id;
}

std::uint32_t TypeTable::members_depth(const std::vector<Member>& members) const {
  std::uint32_t depth = 0;
  for (const Member& member : members) {
    depth = std::max(depth, types_[resolve(member.type)].depth + 1);
  }
  return depth;
}

TypeId TypeTable::add_named(Type type, Names& names) {
  std::string name = type.name;
  const TypeId id = add(std::move(type));
  names.emplace(std::move(name), id);
  return id;
}

TypeTable::TypeTable() {
  types_.emplace_back();  // kNoType
  void_type = add_named({.kind = TypeKind::void_, .name = "void"}, by_name_);
  const auto integer = [this](std::string_view name, std::uint64_t size, bool is_signed) {
    const bool is_char = name.ends_with("char");
    return add_named({.kind = TypeKind::integer,
                      .name = std::string(name),
                      .size = size,
                      .is_signed = is_signed,
                      .is_char = is_char,
                      .align = static_cast<std::uint32_t>(size)},
                     by_name_);
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
    add_named({.kind = TypeKind::floating,
               .name = std::string(name),
               .size = size,
               .is_signed = true,
               .align = static_cast<std::uint32_t>(size)},
              by_name_);
  };
  floating("float", 4);
  floating("double", 8);
  floating("long double", 16);
  string_type = add_named(
      {.kind = TypeKind::string, .name = "string", .size = 256, .is_signed = true}, by_name_);
  types_[string_type].target = char_type;
  add_named({.kind = TypeKind::stack, .name = "stack", .size = 8}, by_name_);
  add_named({.kind = TypeKind::symaddr, .name = "_symaddr", .size = 8}, by_name_);
  add_named({.kind = TypeKind::usymaddr, .name = "_usymaddr", .size = 16}, by_name_);
  dynamic_type = add({.kind = TypeKind::dynamic, .name = "dynamic variable"});

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
  kernel_begin_ = static_cast<TypeId>(types_.size());
  for (const std::string_view tag : {"mtx", "rwlock", "sx", "thread"}) forward_struct(tag);
  int64_type = find("int64_t");
  uint64_type = find("uint64_t");
  add_in6_addr();
}

// As the library file net.d knows it from the kernel.
void TypeTable::add_in6_addr() {
  std::vector<Member> views = {{"__u6_addr8", array_of(find("uint8_t"), 16), 0},
                               {"__u6_addr16", array_of(find("uint16_t"), 8), 0},
                               {"__u6_addr32", array_of(find("uint32_t"), 4), 0}};
  const TypeId view = add({.kind = TypeKind::union_,
                           .name = "union (anon)",
                           .size = 16,
                           .members = std::move(views),
                           .align = 4});
  add_struct("in6_addr", 16, {{"__u6_addr", view, 0}});
}

TypeId TypeTable::typedef_of(std::string_view name, TypeId target, Names& names) {
  Type type = types_[target];
  type.base = resolve(target);
  type.name = std::string(name);
  type.members.clear();
  type.enumerators.clear();
  type.parameters.clear();
  return add_named(std::move(type), names);
}

void TypeTable::add_typedef(std::string_view name, TypeId target) {
  if (!by_name_.contains(name)) typedef_of(name, target, by_name_);
}

void TypeTable::declare_typedef(std::string_view name, TypeId target) {
  typedef_of(name, target, declared_);
}

TypeId TypeTable::find_declared(std::string_view name) const {
  const auto found = declared_.find(name);
  return found == declared_.end() ? kNoType : found->second;
}

// A name without a module.
TypeId TypeTable::lookup(std::string_view name, Space space) {
  const auto direct = [&](std::string_view text) {
    if (space != Space::kernel) {
      if (const TypeId id = find_declared(text); id != kNoType) return id;
    }
    const auto found = by_name_.find(text);
    if (found == by_name_.end()) return kNoType;
    return space == Space::declared && found->second >= kernel_begin_ ? kNoType : found->second;
  };
  if (const TypeId id = direct(name); id != kNoType) return id;
  std::vector<std::string> words;
  std::size_t stars = 0;
  std::size_t i = 0;
  while (i < name.size()) {
    const char c = name[i];
    if (is_blank(c)) {
      ++i;
    } else if (c == '*') {
      ++stars;
      ++i;
    } else if (is_word(c)) {
      std::size_t end = i;
      while (end < name.size() && is_word(name[end])) ++end;
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
  TypeId type = direct(base);
  if (type == kNoType) type = direct(canonical_words(words));
  if (type == kNoType) return kNoType;
  for (; stars != 0; --stars) type = pointer_to(type);
  return type;
}

TypeId TypeTable::find(std::string_view name) {
  const std::size_t mark = name.find('`');
  if (mark == std::string_view::npos) return lookup(name, Space::all);
  // "struct kernel`malloc_type": the module stands before the last word.
  const std::size_t blank = name.rfind(' ', mark);
  const std::size_t start = blank == std::string_view::npos ? 0 : blank + 1;
  const std::string_view module = name.substr(start, mark - start);
  if (name.find('`', mark + 1) != std::string_view::npos) return kNoType;
  const std::string plain = std::string(name.substr(0, start)) + std::string(name.substr(mark + 1));
  if (module.empty()) return lookup(plain, Space::all);
  if (module == "kernel") return lookup(plain, Space::kernel);
  if (module == "D") return lookup(plain, Space::declared);
  if (module != "C") return kNoType;
  const TypeId type = lookup(plain, Space::kernel);
  return type < kernel_begin_ ? type : kNoType;
}

TypeId TypeTable::find_kernel(std::string_view name) { return lookup(name, Space::kernel); }

std::string TypeTable::declarator(TypeId id, std::string inner) const {
  const auto derived = [this](TypeId of, TypeKind kind) {
    return types_[of].base == kNoType && types_[of].kind == kind;
  };
  for (;; id = types_[id].target) {
    const Type& type = types_[id];
    if (derived(id, TypeKind::pointer)) {
      const bool binds =
          derived(type.target, TypeKind::array) || derived(type.target, TypeKind::function);
      inner = binds ? "(*" + inner + ")" : "*" + inner;
    } else if (derived(id, TypeKind::array)) {
      inner += "[" + std::to_string(type.count) + "]";
    } else if (derived(id, TypeKind::function)) {
      inner += "(";
      for (std::size_t i = 0; i < type.parameters.size(); ++i) {
        inner += (i == 0 ? "" : ", ") + types_[type.parameters[i]].name;
      }
      if (type.variadic) inner += type.parameters.empty() ? "..." : ", ...";
      inner += ")";
    } else {
      return inner.empty() ? type.name : type.name + " " + inner;
    }
  }
}

TypeId TypeTable::pointer_to(TypeId target) {
  const auto [found, made] = pointers_.try_emplace(target, kNoType);
  if (!made) return found->second;
  return found->second = add_derived({.kind = TypeKind::pointer,
                                      .name = {},
                                      .size = kPointerSize,
                                      .target = target,
                                      .align = kPointerSize},
                                     {target});
}

TypeId TypeTable::array_of(TypeId element, std::uint32_t count) {
  const auto [found, made] = arrays_.try_emplace({element, count}, kNoType);
  if (!made) return found->second;
  const Type& of = types_[resolve(element)];
  return found->second = add_derived({.kind = TypeKind::array,
                                      .name = {},
                                      .size = of.size * count,
                                      .target = element,
                                      .count = count,
                                      .align = of.align},
                                     {element});
}

TypeId TypeTable::function_of(TypeId result, std::vector<TypeId> parameters, bool variadic) {
  std::vector<TypeId> key = {result, variadic ? 1U : 0U};
  key.insert(key.end(), parameters.begin(), parameters.end());
  const auto [found, made] = functions_.try_emplace(std::move(key), kNoType);
  if (!made) return found->second;
  std::vector<TypeId> parts = {result};
  parts.insert(parts.end(), parameters.begin(), parameters.end());
  return found->second = add_derived({.kind = TypeKind::function,
                                      .name = {},
                                      .target = result,
                                      .parameters = std::move(parameters),
                                      .variadic = variadic},
                                     parts);
}

// The value of a bit-field is recorded in the smallest power of two of bytes that holds it.
TypeId TypeTable::bit_field_of(TypeId integer, unsigned width) {
  const auto [found, made] = bit_fields_.try_emplace({integer, width}, kNoType);
  if (!made) return found->second;
  Type type = types_[resolve(integer)];
  type.name = types_[integer].name;
  type.target = integer;
  type.size = std::bit_ceil((width + 7) / 8);
  type.bits = static_cast<std::uint8_t>(width);
  type.shape = kNoType;
  return found->second = add(std::move(type));
}

TypeId TypeTable::function_pointer() {
  if (function_pointer_ != kNoType) return function_pointer_;
  const TypeId plain = pointer_to(function_of(int_type, {}, true));
  Type type = types_[plain];
  type.base = plain;
  type.name = "function pointer";
  return function_pointer_ = add(std::move(type));
}

TypeId TypeTable::forward_struct(std::string_view tag) {
  std::string name = "struct " + std::string(tag);
  if (const auto found = by_name_.find(name); found != by_name_.end()) return found->second;
  return add_named({.kind = TypeKind::struct_, .name = std::move(name)}, by_name_);
}

TypeId TypeTable::add_struct(std::string_view tag, std::uint64_t size,
                             std::vector<Member> members) {
  const TypeId id = forward_struct(tag);
  Type& type = types_[id];
  if (type.size == 0 && type.members.empty()) {
    type.size = size;
    for (const Member& member : members) {
      type.align = std::max(type.align, types_[resolve(member.type)].align);
    }
    type.depth = members_depth(members);
    type.members = std::move(members);
  }
  return id;
}

TypeId TypeTable::add_enum(std::string_view tag, std::vector<Enumerator> enumerators) {
  std::string name = "enum " + std::string(tag);
  if (const auto found = by_name_.find(name); found != by_name_.end()) return found->second;
  return add_named({.kind = TypeKind::enum_,
                    .name = std::move(name),
                    .size = 4,
                    .is_signed = true,
                    .align = 4,
                    .enumerators = std::move(enumerators)},
                   by_name_);
}

TypeId TypeTable::declare_tag(TypeKind kind, std::string_view tag) {
  std::string name = kind == TypeKind::struct_  ? "struct "
                     : kind == TypeKind::union_ ? "union "
                                                : "enum ";
  name += tag.empty() ? "(anon)" : tag;
  Type type = {.kind = kind, .name = std::move(name), .is_signed = kind == TypeKind::enum_};
  return tag.empty() ? add(std::move(type)) : add_named(std::move(type), declared_);
}

void TypeTable::define_struct(TypeId id, const Layout& layout, std::vector<Member> members) {
  if (id < mark_) changed_.emplace_back(id, types_[id]);
  types_[id].size = layout.size;
  types_[id].align = layout.align;
  types_[id].depth = members_depth(members);
  types_[id].members = std::move(members);
}

void TypeTable::add_enumerator(TypeId id, std::string_view name, std::int32_t value) {
  Type& type = types_[id];
  if (id < mark_ && type.size == 0) changed_.emplace_back(id, type);
  type.size = type.align = 4;
  type.enumerators.push_back({std::string(name), value});
  enumerators_.emplace(name, EnumeratorOf{id, value});
}

TypeId TypeTable::find_enumerator(std::string_view name, std::int32_t* value) const {
  const auto found = enumerators_.find(name);
  if (found == enumerators_.end()) return kNoType;
  *value = found->second.value;
  return found->second.type;
}

void TypeTable::begin() {
  mark_ = static_cast<TypeId>(types_.size());
  changed_.clear();
}

void TypeTable::rollback() {
  std::set<TypeId> changed;
  for (auto& [id, type] : changed_) {
    types_[id] = std::move(type);
    changed.insert(id);
  }
  changed_.clear();
  const auto forget = [this](auto& map) {
    std::erase_if(map, [this](const auto& entry) { return entry.second >= mark_; });
  };
  forget(by_name_);
  forget(declared_);
  forget(pointers_);
  forget(arrays_);
  forget(bit_fields_);
  forget(functions_);
  if (function_pointer_ >= mark_) function_pointer_ = kNoType;
  forget(shapes_);
  // An enum that was declared before may have got its enumerators since.
  std::erase_if(enumerators_, [&](const auto& entry) {
    return entry.second.type >= mark_ || changed.contains(entry.second.type);
  });
  types_.resize(mark_);
}

TypeId TypeTable::promote(TypeId a, TypeId b) const {
  const auto rank = [this](TypeId id) {
    const Type& type = types_[resolve(id)];
    return (type.bits != 0 ? type.bits : type.size * 8) + (type.is_signed ? 0 : 1);
  };
  const TypeId wider = rank(a) >= rank(b) ? a : b;
  return types_[resolve(wider)].kind == TypeKind::enum_ ? int_type : wider;
}

// A type comes after what it is made of.
void TypeTable::set_string_size(std::uint64_t size) {
  if (types_[string_type].size == size) return;
  for (TypeId id = string_type; id < types_.size(); ++id) {
    Type& type = types_[id];
    if (resolve(id) == string_type) {
      type.size = size;
    } else if (type.kind == TypeKind::array) {
      type.size = types_[resolve(type.target)].size * type.count;
    }
  }
}

const Member* TypeTable::member(TypeId struct_type, std::string_view name) const {
  for (const Member& member : types_[resolve(struct_type)].members) {
    if (member.name == name) return &member;
  }
  return nullptr;
}

const Enumerator* TypeTable::enumerator(TypeId enum_type, std::string_view name) const {
  for (const Enumerator& enumerator : types_[resolve(enum_type)].enumerators) {
    if (enumerator.name == name) return &enumerator;
  }
  return nullptr;
}

bool lay_out(const TypeTable& types, TypeKind kind, std::vector<Member>& members, Layout* layout) {
  const auto up = [](std::uint64_t value, std::uint64_t step) {
    return (value + step - 1) / step * step;
  };
  std::uint64_t end = 0;  // in bits
  std::uint64_t most = 0;
  *layout = {};
  for (Member& member : members) {
    if (kind == TypeKind::union_) end = 0;
    const Type& type = types[types.resolve(member.type)];
    if (type.bits != 0) {
      const Type& unit = types[types.resolve(type.target)];
      const std::uint64_t bits = unit.size * 8;
      if (end % bits + type.bits > bits) end = up(end, bits);
      member.offset = static_cast<std::uint32_t>(end / bits * unit.size);
      member.bit = static_cast<std::uint32_t>(end % bits);
      end += type.bits;
      if (!member.name.empty()) layout->align = std::max(layout->align, unit.align);
    } else if (member.name.empty()) {
      end = up(end, type.size * 8);
    } else {
      end = up(end, std::uint64_t{type.align} * 8);
      member.offset = static_cast<std::uint32_t>(end / 8);
      layout->align = std::max(layout->align, type.align);
      constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
      if (type.size > kMost || end / 8 + type.size > kMost) return false;
      end += type.size * 8;
    }
    most = std::max(most, end);
  }
  std::erase_if(members, [](const Member& member) { return member.name.empty(); });
  layout->size = up(up(most, 8) / 8, layout->align);
  return true;
}

}  // namespace dtmalloc::dtrace
