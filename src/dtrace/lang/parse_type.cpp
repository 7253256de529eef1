// SPDX-License-Identifier: BSD-2-Clause
// Type specifiers: the words of C's types, structs, unions and enums with their contents.
// Counterpart:  dt_grammar.y, dt_decl.c (dt_decl_spec, dt_decl_sou, dt_decl_member, dt_decl_enum)
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "dtrace/lang/parser.hpp"

namespace dtmalloc::dtrace {
namespace {

enum class Base : std::uint8_t { none, integer, floating, named, tagged };

// short, long, signed, unsigned: how often each was said.
struct Attributes {
  unsigned shorts = 0, longs = 0, signs = 0, unsigns = 0;
  bool any() const { return shorts + longs + signs + unsigns != 0; }
};

// What a combination of words is refused for; empty: nothing yet.
struct Refusal {
  std::string_view tag, text;
};
Refusal refusal(Base base, std::string_view name, const Attributes& said) {
  constexpr Refusal kCombination = {"D_DECL_COMBO", "invalid type combination"};
  if (said.shorts > 1 || said.longs > 2 || said.signs + said.unsigns > 1 ||
      (said.shorts != 0 && said.longs != 0)) {
    return kCombination;
  }
  if (base == Base::none) return {};
  if (name == "char" && said.shorts + said.longs != 0) {
    return {"D_DECL_CHARATTR",
            "invalid type declaration: short and long may not be used with char type"};
  }
  if (name == "void" && said.any()) {
    return {"D_DECL_VOIDATTR",
            "invalid type declaration: attributes may not be used with void type"};
  }
  if (base != Base::integer && said.signs + said.unsigns != 0) {
    return {"D_DECL_SIGNINT",
            "invalid type declaration: signed and unsigned may only be used with integer type"};
  }
  if (base != Base::integer && base != Base::floating && said.longs != 0) {
    return {"D_DECL_LONGINT",
            "invalid type declaration: long and long long may only be used with integer or "
            "floating-point type"};
  }
  if (base != Base::integer && said.shorts != 0) return kCombination;
  return {};
}

std::string words(std::string_view name, const Attributes& said) {
  std::string text = said.signs != 0 ? "signed " : said.unsigns != 0 ? "unsigned " : "";
  if (said.shorts != 0) text += "short ";
  for (unsigned i = 0; i < said.longs; ++i) text += "long ";
  return text + std::string(name);
}

}  // namespace

bool Parser::at_type() const {
  static constexpr std::array<std::string_view, 18> kWords = {
      "char",   "short", "int",  "long",   "unsigned", "signed",   "void",     "float", "double",
      "struct", "union", "enum", "string", "const",    "volatile", "userland", "_Bool", "restrict"};
  if (token_.kind == Tok::keyword) {
    return std::find(kWords.begin(), kWords.end(), token_.text) != kWords.end();
  }
  return token_.kind == Tok::identifier && types_.find(token_.text) != kNoType;
}

Parser::Specifiers Parser::declaration_specifiers(bool with_storage) {
  static constexpr std::array<std::pair<std::string_view, Storage>, 7> kStorage = {{
      {"auto", Storage::auto_},
      {"register", Storage::register_},
      {"static", Storage::static_},
      {"extern", Storage::extern_},
      {"typedef", Storage::typedef_},
      {"self", Storage::self},
      {"this", Storage::this_},
  }};
  const Nest nest(*this);
  Specifiers result;
  result.place = token_.place;
  Base base = Base::none;
  std::string name;
  Attributes said;
  TypeId tagged = kNoType;
  const auto check = [&](const Place& place) {
    if (const Refusal refused = refusal(base, name, said); !refused.tag.empty()) {
      source_.fail(refused.tag, place, std::string(refused.text));
    }
  };
  const auto set_base = [&](Base kind, std::string_view text, const Place& place) {
    if (base != Base::none) source_.fail("D_DECL_COMBO", place, "invalid type combination");
    base = kind;
    name = text;
    check(place);
  };
  for (;;) {
    const Place place = token_.place;
    if (token_.kind == Tok::identifier) {
      if (types_.find(token_.text) == kNoType || !result.early_name.empty()) break;
      if (base == Base::none) {
        set_base(Base::named, token_.text, place);
      } else if (result.storage == Storage::typedef_) {
        source_.fail("D_DECL_IDRED", place, fmt::format("identifier redeclared: {}", token_.text));
      } else {
        result.early_name = token_.text;
        result.early_place = place;
      }
      advance();
      continue;
    }
    if (token_.kind != Tok::keyword) break;
    const std::string_view word = token_.text;
    const auto storage = std::find_if(kStorage.begin(), kStorage.end(),
                                      [&](const auto& entry) { return entry.first == word; });
    if (storage != kStorage.end()) {
      if (!with_storage) syntax_error();
      if (result.storage != Storage::none) {
        source_.fail("D_DECL_CLASS", place, "only one storage class allowed in a declaration");
      }
      result.storage = storage->second;
    } else if (word == "const" || word == "volatile" || word == "restrict") {
    } else if (word == "userland") {
      result.userland = true;
    } else if (word == "struct" || word == "union" || word == "enum") {
      set_base(Base::tagged, {}, place);
      tagged = tagged_type();
      result.tagged = true;
      continue;
    } else if (word == "int" || word == "char" || word == "void") {
      set_base(Base::integer, word, place);
    } else if (word == "float" || word == "double") {
      set_base(Base::floating, word, place);
    } else if (word == "string" || word == "_Bool") {
      set_base(Base::named, word, place);
    } else if (word == "short" || word == "long" || word == "signed" || word == "unsigned") {
      ++(word == "short"    ? said.shorts
         : word == "long"   ? said.longs
         : word == "signed" ? said.signs
                            : said.unsigns);
      check(place);
    } else {
      break;
    }
    advance();
  }
  result.type = base == Base::tagged  ? tagged
                : base == Base::named ? types_.find(name)
                                      : types_.find(words(base == Base::none ? "int" : name, said));
  if (result.type == kNoType) {
    source_.fail("D_DECL_COMBO", result.place, "invalid type combination");
  }
  return result;
}

// A struct, union or enum: known, declared here without its contents, or defined here.
TypeId Parser::tagged_type() {
  const std::string word = token_.text;
  const TypeKind kind = word == "struct"  ? TypeKind::struct_
                        : word == "union" ? TypeKind::union_
                                          : TypeKind::enum_;
  advance();
  std::string tag;
  const Place place = token_.place;
  if (token_.kind == Tok::identifier) {
    tag = token_.text;
    advance();
  } else if (token_.kind != Tok::lbrace) {
    syntax_error();
  }
  const std::string name = word + " " + tag;
  const bool scoped = tag.find('`') != std::string::npos;
  if (token_.kind != Tok::lbrace) {
    const TypeId known = types_.find(name);
    if (known != kNoType) return known;
    if (scoped) {
      source_.fail("D_UNKNOWN", place,
                   fmt::format("failed to resolve type {}: Unknown type name", name));
    }
    return types_.declare_tag(kind, tag);
  }
  if (scoped) {
    source_.fail("D_DECL_SCOPE", place,
                 fmt::format("D scoping operator may not be used in a declaration name ({})", tag));
  }
  TypeId type = tag.empty() ? kNoType : types_.find_declared(name);
  if (type != kNoType && (types_[type].size != 0 || defining_.contains(type))) {
    source_.fail("D_DECL_TYPERED", place, fmt::format("type redeclared: {}", name));
  }
  if (type == kNoType) type = types_.declare_tag(kind, tag);
  advance();
  if (kind == TypeKind::enum_) {
    enumerators(type);
  } else {
    defining_.insert(type);
    members(type, kind);
    defining_.erase(type);
  }
  expect(Tok::rbrace);
  return type;
}

void Parser::members(TypeId type, TypeKind kind) {
  std::vector<Member> list;
  std::unordered_set<std::string> names;
  do {
    if (!at_type()) syntax_error();
    const Specifiers specifiers = declaration_specifiers(false);
    for (;;) {
      list.push_back(member(specifiers, names));
      if (!at(Op::comma)) break;
      advance();
    }
    expect(Tok::semicolon);
  } while (token_.kind != Tok::rbrace);
  Layout layout;
  if (!lay_out(types_, kind, list, &layout)) {
    source_.fail("D_DECL_ARRBIG", token_.place, "array dimension too big");
  }
  types_.define_struct(type, layout, std::move(list));
  (void)nested(type, token_.place);
}

// A member without a name is the padding that a bit-field without a name makes.
Member Parser::member(const Specifiers& specifiers, std::unordered_set<std::string>& names) {
  Declarator declared;
  if (token_.kind == Tok::colon) {
    declared.place = token_.place;
    declared.type = specifiers.type;
  } else {
    declared = declarator(specifiers, Naming::optional);
    if (declared.name.empty()) {
      source_.fail("D_DECL_MNAME", declared.place, "member declaration requires a name");
    }
  }
  if (declared.name.find('`') != std::string::npos) {
    source_.fail(
        "D_DECL_SCOPE", declared.place,
        fmt::format("D scoping operator may not be used in a member name ({})", declared.name));
  }
  const Type& resolved = types_[types_.resolve(declared.type)];
  if (resolved.kind == TypeKind::dynamic) {
    source_.fail("D_DECL_DYNOBJ", declared.place,
                 fmt::format("cannot have dynamic member: {}", declared.name));
  }
  if (resolved.size == 0) {
    const bool incomplete = resolved.kind == TypeKind::struct_ ||
                            resolved.kind == TypeKind::union_ || resolved.kind == TypeKind::enum_;
    if (incomplete) {
      source_.fail("D_DECL_INCOMPLETE", declared.place,
                   fmt::format("incomplete struct/union/enum {}: {}", types_[declared.type].name,
                               declared.name));
    }
    source_.fail("D_DECL_VOIDOBJ", declared.place,
                 fmt::format("cannot have void member: {}", declared.name));
  }
  if (token_.kind == Tok::colon) {
    advance();
    declared.type = bit_field(declared, conditional());
  }
  if (!declared.name.empty() && !names.insert(declared.name).second) {
    source_.fail("D_UNKNOWN", declared.place,
                 fmt::format("failed to define member '{}': Duplicate member or variable name",
                             declared.name));
  }
  return {declared.name, declared.type};
}

TypeId Parser::bit_field(const Declarator& declared, Node& width) {
  const std::string name = declared.name.empty() ? "(anon)" : declared.name;
  const bool positive = positive_constant(width);
  if (!positive && declared.name.empty() && width.constant && width.value == 0) {
    return declared.type;
  }
  if (!positive) {
    source_.fail("D_DECL_BFCONST", width.place,
                 "positive integral constant expression expected as bit-field size");
  }
  const Type& type = types_[types_.resolve(declared.type)];
  if (type.kind != TypeKind::integer) {
    source_.fail("D_DECL_BFTYPE", declared.place,
                 fmt::format("invalid type for bit-field: {}", name));
  }
  if (width.value > type.size * 8) {
    source_.fail("D_DECL_BFSIZE", declared.place,
                 fmt::format("bit-field too big for type: {}", name));
  }
  return types_.bit_field_of(declared.type, static_cast<unsigned>(width.value));
}

void Parser::enumerators(TypeId type) {
  std::int64_t next = 0;
  std::unordered_set<std::string> names;
  for (;;) {
    if (token_.kind != Tok::identifier) syntax_error();
    const std::string name = token_.text;
    const Place place = token_.place;
    advance();
    if (name.find('`') != std::string::npos) {
      source_.fail(
          "D_DECL_SCOPE", place,
          fmt::format("D scoping operator may not be used in an enumerator name ({})", name));
    }
    if (at(Op::assign)) {
      advance();
      Node& value = conditional();
      if (!constant(value)) {
        source_.fail("D_DECL_ENCONST", place,
                     fmt::format("enumerator '{}' must be assigned to an integral constant "
                                 "expression",
                                 name));
      }
      next = static_cast<std::int64_t>(value.value);
    }
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    if (next > kMost || next < std::numeric_limits<std::int32_t>::min()) {
      source_.fail("D_DECL_ENOFLOW", place,
                   fmt::format("enumerator '{}' value overflows INT_MAX ({})", name, kMost));
    }
    if (!names.insert(name).second) {
      source_.fail("D_UNKNOWN", place,
                   fmt::format("failed to define enumerator '{}': Duplicate member or variable "
                               "name",
                               name));
    }
    if (!known(name).kind.empty()) {
      source_.fail("D_DECL_IDRED", place, fmt::format("identifier redeclared: {}", name));
    }
    types_.add_enumerator(type, name, static_cast<std::int32_t>(next));
    ++next;
    if (!at(Op::comma)) return;
    advance();
  }
}

}  // namespace dtmalloc::dtrace
