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
  std::uint32_t offset = 0;  // bytes; of a bit-field: of the unit that holds it
  std::uint32_t bit = 0;     // bit-field: its lowest bit in the unit (Type::bits is its width)
};

struct Enumerator {
  std::string name;
  std::int32_t value = 0;
};

struct Type {
  TypeKind kind = TypeKind::none;
  std::string name;        // as messages print it: "unsigned long", "struct malloc_type *"
  std::uint64_t size = 0;  // bytes; struct, union, enum: 0 until it is defined
  bool is_signed = false;
  bool is_char = false;     // char types (signed or not), for strings and %c
  TypeId target = kNoType;  // pointer: pointee; array: element; function: result;
                            // bit-field: the type it was declared with
  std::uint32_t count = 0;  // array: elements
  TypeId base = kNoType;    // typedef: the type it names, itself no typedef
  std::vector<Member> members = {};
  std::uint32_t align = 1;
  std::uint8_t bits = 0;  // bit-field: its width; its size is what holds the value when recorded
  std::vector<Enumerator> enumerators = {};
  std::vector<TypeId> parameters = {};  // function
  bool variadic = false;
  std::uint32_t depth = 0;  // levels of what it is made of: derived types, structs
  TypeId shape = kNoType;   // the first of the types that are the same
};

// Size and alignment of a struct or union.
struct Layout {
  std::uint64_t size = 0;
  std::uint32_t align = 1;
};

class TypeTable {
 public:
  TypeTable();  // void, the C types, string, D's typedefs (spec/dtrace.md 9, 23)

  const Type& operator[](TypeId id) const { return types_[id]; }
  // The type behind a typedef; other types are their own.
  TypeId resolve(TypeId id) const { return types_[id].base == kNoType ? id : types_[id].base; }
  // "unsigned long", "uint64_t", "struct malloc_type", "char *": kNoType if unknown. Any order of
  // the words of a C type; pointers to known types are made on the fly. What a D program declared
  // hides a kernel type of the same name; "D`x" means the former, "kernel`x" the latter only.
  TypeId find(std::string_view name);
  TypeId find_kernel(std::string_view name);
  TypeId pointer_to(TypeId target);
  TypeId array_of(TypeId element, std::uint32_t count);
  TypeId function_of(TypeId result, std::vector<TypeId> parameters, bool variadic);
  TypeId bit_field_of(TypeId integer, unsigned width);
  // What the symbol of a function is, whatever the function.
  TypeId function_pointer();
  // Equal but for typedefs on the way.
  bool same(TypeId a, TypeId b) const {
    return types_[resolve(a)].shape == types_[resolve(b)].shape;
  }

  // --- the kernel's types
  // A struct by its tag; adding one again returns the first.
  TypeId add_struct(std::string_view tag, std::uint64_t size, std::vector<Member> members);
  TypeId forward_struct(std::string_view tag);  // declared, size 0, members added by add_struct
  TypeId add_enum(std::string_view tag, std::vector<Enumerator> enumerators);
  void add_typedef(std::string_view name, TypeId target);

  // --- the types of D programs
  // kNoType: no program declared "struct s" or a typedef of this name.
  TypeId find_declared(std::string_view name) const;
  // A struct, union or enum without its contents; no tag: anonymous.
  TypeId declare_tag(TypeKind kind, std::string_view tag);
  void define_struct(TypeId id, const Layout& layout, std::vector<Member> members);
  void add_enumerator(TypeId id, std::string_view name, std::int32_t value);
  void declare_typedef(std::string_view name, TypeId target);
  // The enumerators of D programs are one space; the enum's type, or kNoType.
  TypeId find_enumerator(std::string_view name, std::int32_t* value) const;
  // A string is an array of so many characters. Arrays of strings change with it; structs keep the
  // layout that they were given.
  void set_string_size(std::uint64_t size);
  // What was declared since begin() is undone by rollback().
  void begin();
  void rollback();

  const Member* member(TypeId struct_type, std::string_view name) const;
  const Enumerator* enumerator(TypeId enum_type, std::string_view name) const;
  // Of two integer types, the one of arithmetic between them (spec/dtrace.md 10): the wider, or the
  // unsigned one of equals. An enum counts as int.
  TypeId promote(TypeId a, TypeId b) const;

  TypeId void_type, char_type, int_type, uint_type, long_type, ulong_type, longlong_type,
      ulonglong_type, int64_type, uint64_type, string_type, dynamic_type;

 private:
  using Names = std::map<std::string, TypeId, std::less<>>;
  enum class Space : std::uint8_t { all, declared, kernel };
  TypeId add(Type type);
  // A pointer, an array or a function, made of `parts`.
  TypeId add_derived(Type type, const std::vector<TypeId>& parts);
  std::uint32_t members_depth(const std::vector<Member>& members) const;
  TypeId add_named(Type type, Names& names);
  TypeId lookup(std::string_view name, Space space);
  TypeId typedef_of(std::string_view name, TypeId target, Names& names);
  // The name of a type derived from `id`, C's way: `inner` is the declarator without a name.
  std::string declarator(TypeId id, std::string inner) const;
  void add_in6_addr();

  std::deque<Type> types_;
  Names by_name_;   // C's, D's own and the kernel's
  Names declared_;  // of D programs
  struct EnumeratorOf {
    TypeId type = kNoType;
    std::int32_t value = 0;
  };
  std::map<std::string, EnumeratorOf, std::less<>> enumerators_;
  std::map<TypeId, TypeId> pointers_;
  std::map<std::pair<TypeId, std::uint32_t>, TypeId> arrays_, bit_fields_;
  std::map<std::vector<TypeId>, TypeId> functions_;  // result, variadic, parameters
  // Kind, count, variadic, shapes of the parts.
  std::map<std::vector<std::uint32_t>, TypeId> shapes_;
  TypeId function_pointer_ = kNoType;
  TypeId kernel_begin_ = 0;                       // types before it are no kernel's
  TypeId mark_ = 0;                               // begin(): types from it on are new
  std::vector<std::pair<TypeId, Type>> changed_;  // older types, as they were then
};

// Places members one after the other (a union's: at its start) as the C ABI does, bit-fields
// included: a member without a name only moves what follows (width 0, Type::bits of a plain type:
// to the next unit). False: too large.
bool lay_out(const TypeTable& types, TypeKind kind, std::vector<Member>& members, Layout* layout);

}  // namespace dtmalloc::dtrace
