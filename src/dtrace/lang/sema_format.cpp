// SPDX-License-Identifier: BSD-2-Clause
// printf and printa: arguments against the conversions of the format.
// Counterpart:  dt_printf.c (dt_printf_validate)
#include <fmt/format.h>

#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {
namespace {

constexpr std::uint64_t kWideCharacter = 4;  // sizeof (wchar_t)

std::string shown_name(const Conversion& conversion) {
  return conversion.modifier + conversion.conversion;
}

}  // namespace

// The kinds of values that a conversion takes, as messages name them.
std::string_view Sema::conversion_prototype(const Conversion& conversion) {
  const std::string& modifier = conversion.modifier;
  switch (conversion.conversion) {
    case 'd':
    case 'i':
    case 'x':
    case 'X':
      return modifier == "h"    ? "short"
             : modifier == "l"  ? "long"
             : modifier == "ll" ? "long long"
                                : "char, short, int, long, or long long";
    case 'o':
    case 'u':
      return modifier == "h"    ? "unsigned short"
             : modifier == "l"  ? "unsigned long"
             : modifier == "ll" ? "unsigned long long"
                                : "char, short, int, long, or long long";
    case 'c':
      return modifier.empty() ? "char, short, or int" : "int";
    case 'C':
      return "char, short, or int";
    case 's':
      return modifier.empty() ? "char [] or string (or use stringof)" : "wchar_t []";
    case 'S':
      return "char [] or string (or use stringof)";
    case 'I':
      return "char [] or string";
    case 'P':
      return "uint16_t";
    case 'p':
    case 'a':
      return "pointer or integer";
    case 'A':
      return "_usymaddr";
    case 'Y':
    case 'T':
      return "int64_t";
    case 'k':
      return "stack";
    default:
      return "float, double, or long double";
  }
}

bool Sema::conversion_accepts(const Conversion& conversion, TypeId id) const {
  const TypeId resolved = types_.resolve(id);
  const Type& type = types_[resolved];
  const bool integer = type.kind == TypeKind::integer || type.kind == TypeKind::enum_;
  const std::string& modifier = conversion.modifier;
  switch (conversion.conversion) {
    case 'd':
    case 'i':
    case 'o':
    case 'u': {
      if (!integer || modifier.empty()) return integer;
      const bool is_signed = conversion.conversion == 'd' || conversion.conversion == 'i';
      return type.size == (modifier == "h" ? 2U : 8U) && type.is_signed == is_signed;
    }
    case 'x':
    case 'X': {
      if (!integer || modifier.empty()) return integer;
      const std::string word = modifier == "h" ? "short" : modifier == "l" ? "long" : "long long";
      return type.name == word || type.name == "signed " + word || type.name == "unsigned " + word;
    }
    case 'c':
    case 'C':
      return integer && (modifier.empty() ? type.size <= 4 : type.size == 4);
    case 's':
    case 'S':
    case 'I':
      if (!modifier.empty()) {
        const Type& element = types_[types_.resolve(type.target)];
        return type.kind == TypeKind::array && element.kind == TypeKind::integer &&
               element.size == kWideCharacter;
      }
      return type.kind == TypeKind::string ||
             (type.kind == TypeKind::array && types_[types_.resolve(type.target)].is_char);
    case 'P':
      return integer && type.size == 2 && !type.is_signed;
    case 'A':
      return type.kind == TypeKind::usymaddr;
    case 'k':
      return type.kind == TypeKind::stack;
    case 'a':
      if (type.kind == TypeKind::symaddr) return true;
      [[fallthrough]];
    case 'p':
      return integer || type.kind == TypeKind::pointer || type.kind == TypeKind::array;
    case 'Y':
    case 'T':
      return integer && type.size == 8;
    case 'e':
    case 'E':
    case 'f':
    case 'g':
    case 'G':
      return type.kind == TypeKind::floating;
    default:
      return false;
  }
}

void Sema::check_conversion(const Conversion& conversion, unsigned number, const Node& value,
                            std::string_view what, const Node& place, std::string_view function) {
  if (conversion_accepts(conversion, value.type)) return;
  fail("D_PRINTF_ARG_TYPE", place,
       fmt::format("{}( ) {} is incompatible with conversion #{} prototype:\n\tconversion: "
                   "%{}\n\t prototype: {}\n\t  argument: {}",
                   function, what, number, shown_name(conversion), conversion_prototype(conversion),
                   type_name(value)));
}

Action Sema::printf_action(Node& call) {
  const std::string& function = call.children[0]->text;
  if (call.children.size() < 2) {
    fail("D_PROTO_LEN", call,
         fmt::format("{}( ) prototype mismatch: 0 args passed, at least 1 expected", function));
  }
  Node& text = *call.children[1];
  if (text.kind != NodeKind::string) {
    expression(text);
    fail("D_PRINTF_ARG_FMT", text,
         fmt::format("{}( ) argument #1 is incompatible with prototype:\n\tprototype: string "
                     "constant\n\t argument: {}",
                     function, type_name(text)));
  }
  auto format = std::make_shared<Format>(parse_format(source_, text.place, text.text, function));
  Action action;
  action.kind = ActionKind::printf;
  std::size_t next = 2;  // child that the next value takes
  unsigned number = 0;
  for (const Conversion& conversion : format->conversions) {
    if (conversion.conversion == 0 || conversion.conversion == '%') continue;
    ++number;
    const std::string name = shown_name(conversion);
    if (conversion.aggregation) {
      fail("D_PRINTF_AGG_CONV", text,
           fmt::format("%@ conversion requires an aggregation and is not for use with {}( )",
                       function));
    }
    const bool dynamic[2] = {conversion.width_arg, conversion.precision_arg};
    for (int i = 0; i < 2; ++i) {
      if (!dynamic[i]) continue;
      const std::string_view star = i == 0 ? "*" : ".*";
      if (next >= call.children.size()) {
        fail("D_PRINTF_DYN_PROTO", text,
             fmt::format("{}( ) prototype mismatch: conversion #{} (%{}) is missing a "
                         "corresponding \"{}\" argument",
                         function, number, name, star));
      }
      Node& argument = *call.children[next];
      expression(argument);
      if (is_dynamic(argument) || !is_integer(argument) || type_of(argument).size > 4) {
        fail("D_PRINTF_DYN_TYPE", argument,
             fmt::format("{}( ) argument #{} is incompatible with conversion #{} "
                         "prototype:\n\tconversion: % {} {}\n\t prototype: int\n\t  argument: {}",
                         function, next, number, star, name, type_name(argument)));
      }
      action.values.push_back(value(argument));
      ++next;
    }
    if (next >= call.children.size()) {
      fail("D_PRINTF_ARG_PROTO", text,
           fmt::format("{}( ) prototype mismatch: conversion #{} (%{}) is missing a "
                       "corresponding value argument",
                       function, number, name));
    }
    Node& argument = *call.children[next];
    if (is_symbolic(argument)) {
      Value value = symbolic(argument);
      check_conversion(conversion, number, argument, fmt::format("argument #{}", next), argument,
                       function);
      action.values.push_back(std::move(value));
      ++next;
      continue;
    }
    expression(argument);
    const std::string what = fmt::format("argument #{}", next);
    if (is_dynamic(argument)) {
      fail("D_PRINTF_ARG_TYPE", argument,
           fmt::format("{}( ) {} is incompatible with conversion #{} prototype:\n\tconversion: "
                       "%{}\n\t prototype: {}\n\t  argument: {}",
                       function, what, number, name, conversion_prototype(conversion),
                       type_name(argument)));
    }
    check_conversion(conversion, number, argument, what, argument, function);
    action.values.push_back(value(argument));
    ++next;
  }
  if (next < call.children.size()) {
    fail("D_PRINTF_ARG_EXTRA", *call.children[next],
         fmt::format("{}( ) prototype mismatch: only {} arguments required by this format string",
                     function, next - 2));
  }
  action.format = std::move(format);
  return action;
}

Action Sema::printa_action(Node& call) {
  const std::string& function = call.children[0]->text;
  const std::size_t passed = call.children.size() - 1;
  if (passed < 1) {
    fail("D_PRINTA_PROTO", call,
         fmt::format("{}( ) prototype mismatch: 0 args passed, 1 expected", function));
  }
  std::size_t first = 1;
  std::shared_ptr<Format> format;
  Node& text = *call.children[1];
  if (text.kind == NodeKind::string) {
    format = std::make_shared<Format>(parse_format(source_, text.place, text.text, function));
    first = 2;
    if (passed < 2) {
      fail("D_PRINTA_PROTO", call,
           fmt::format("{}( ) prototype mismatch: {} args passed, 2 expected", function, passed));
    }
  }
  Action action;
  action.kind = ActionKind::printa;
  const AggregationDesc* leader = nullptr;
  for (std::size_t i = first; i < call.children.size(); ++i) {
    const AggregationDesc& aggregation = defined_aggregation(call, i, "D_PRINTA");
    action.printed.push_back(aggregation.id);
    if (leader == nullptr) {
      leader = &aggregation;
      continue;
    }
    const Node& node = *call.children[i];
    const auto plural = [](std::size_t count) { return count == 1 ? "" : "s"; };
    const std::size_t mine = aggregation.keys.size();
    const std::size_t theirs = leader->keys.size();
    if (mine != theirs) {
      fail("D_PRINTA_AGGKEY", node,
           fmt::format("printa( ): @{} and @{} do not have matching key signatures: @{} has {} "
                       "key{}, @{} has {} key{}",
                       leader->name, aggregation.name, leader->name, theirs, plural(theirs),
                       aggregation.name, mine, plural(mine)));
    }
    for (std::size_t key = 0; key < mine; ++key) {
      Node a;
      a.type = leader->keys[key].type;
      Node b;
      b.type = aggregation.keys[key].type;
      if (argument_fits(a, b)) continue;
      fail("D_PRINTA_AGGPROTO", node,
           fmt::format("printa( ): @{}[ ] key #{} is incompatible with @{}:\n{:>9} key #{}: "
                       "{}\n{:>9} key #{}: {}",
                       aggregation.name, key + 1, leader->name, "@" + leader->name, key + 1,
                       type_name(a), "@" + aggregation.name, key + 1, type_name(b)));
    }
  }
  if (format != nullptr) {
    std::size_t key = 0;
    unsigned number = 0;
    for (const Conversion& conversion : format->conversions) {
      if (conversion.conversion == 0 || conversion.conversion == '%') continue;
      ++number;
      const auto missing = [&](std::string_view tag, const std::string& what) {
        fail(tag, text,
             fmt::format("{}( ) prototype mismatch: conversion #{} (%{}) is missing a "
                         "corresponding {} argument",
                         function, number, shown_name(conversion), what));
      };
      // A '*' takes a key as well.
      for (const std::string_view star : {"*", ".*"}) {
        if (!(star == "*" ? conversion.width_arg : conversion.precision_arg)) continue;
        if (key >= leader->keys.size()) {
          missing("D_PRINTF_DYN_PROTO", fmt::format("\"{}\"", star));
        }
        Node shape;
        shape.type = leader->keys[key].type;
        if (!is_integer(shape) || type_of(shape).size > 4) {
          fail("D_PRINTF_DYN_TYPE", text,
               fmt::format("{}( ) argument #{} is incompatible with conversion #{} "
                           "prototype:\n\tconversion: % {} {}\n\t prototype: int\n\t  argument: {}",
                           function, key + 2, number, star, shown_name(conversion),
                           type_name(shape)));
        }
        ++key;
      }
      Node shape;
      if (conversion.aggregation) {
        shape.type = types_.int64_type;
        check_conversion(conversion, number, shape, "aggregating action", text, function);
        continue;
      }
      if (key >= leader->keys.size()) missing("D_PRINTF_ARG_PROTO", "value");
      shape.type = leader->keys[key].type;
      check_conversion(conversion, number, shape, fmt::format("argument #{}", key + 2), text,
                       function);
      ++key;
    }
  }
  action.format = std::move(format);
  return action;
}

}  // namespace dtmalloc::dtrace
