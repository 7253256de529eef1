// SPDX-License-Identifier: BSD-2-Clause
// The traced kernel in D: `symbols, uregs[], and the values that only records hold: stacks and
// addresses that print as symbols.
// Counterpart:  dt_parser.c (dt_xcook_ident), dt_ident.c (dt_idcook_regs), dt_cc.c
// (dt_action_stack,
//               dt_action_ustack, dt_action_symmod)
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "dtrace/dif/catalog.hpp"
#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {
namespace {

// Frames that any record can hold.
constexpr std::uint64_t kMostFrames = std::numeric_limits<std::uint32_t>::max() / 16;

struct SymbolForm {
  std::string_view name;
  ValueForm form;
};
constexpr SymbolForm kSymbolForms[] = {
    {"sym", ValueForm::sym},     {"func", ValueForm::sym},   {"mod", ValueForm::mod},
    {"usym", ValueForm::usym},   {"ufunc", ValueForm::usym}, {"umod", ValueForm::umod},
    {"uaddr", ValueForm::uaddr},
};

}  // namespace

// `name, module`name: a variable of the kernel, or a function: as in libdtrace a pointer to one,
// that lies where the function's code does. Its address is the function's, and its value is code.
void Sema::symbol(Node& node) {
  const std::size_t tick = node.text.rfind('`');
  const std::string module = node.text.substr(0, tick);
  const std::string name = node.text.substr(tick + 1);
  const auto unresolved = [&](std::string_view why) {
    Diagnostic diagnostic = source_.diagnostic(
        "D_IDENT_UNDEF", node.place, fmt::format("failed to resolve {}: {}", node.text, why));
    if (clause_.catalog != nullptr && why == "Unknown symbol name") {
      for (const std::string& near : nearest_names(name, clause_.catalog->symbol_names())) {
        diagnostic.near_names.push_back(module + "`" + near);
      }
    }
    throw CompileError{std::move(diagnostic)};
  };
  if (!module.empty() && (clause_.catalog == nullptr || !clause_.catalog->has_module(module))) {
    unresolved("Unknown module name");
  }
  const auto found = clause_.catalog != nullptr ? clause_.catalog->symbol(module, name)
                                                : std::optional<CatalogSymbol>();
  if (!found) unresolved("Unknown symbol name");
  const bool function = found->type.empty();
  node.type = function ? types_.function_pointer() : clause_.catalog->symbol_type(*found);
  if (function) node.code_size = found->size;
  node.symbol = true;
  node.value = found->address;
  node.lvalue = true;
}

// uregs[n], regs[n].
void Sema::registers(Node& node) {
  const std::string& array = node.children[0]->text;
  if (node.children.size() != 2) {
    fail("D_PROTO_LEN", node,
         fmt::format("{}[ ] prototype mismatch: {} arg{}passed, 1 expected", array,
                     node.children.size() - 1, node.children.size() == 2 ? " " : "s "));
  }
  Node& position = *node.children[1];
  expression(position);
  if (is_dynamic(position) || !is_integer(position)) {
    fail("D_PROTO_ARG", node,
         fmt::format("{}[ ] argument #1 is incompatible with prototype:\n\tprototype: integer\n\t "
                     "argument: {}",
                     array, type_name(position)));
  }
  if (position.constant && type_of(position).is_signed &&
      static_cast<std::int64_t>(position.value) < 0) {
    fail("D_REGS_IDX", node,
         fmt::format("index {} is out of range for array {}",
                     static_cast<std::int64_t>(position.value), array));
  }
  node.type = types_.uint64_type;
  node.lvalue = true;
  node.id = array == "uregs" ? kVarUregs : kVarRegs;
}

bool Sema::is_symbolic(const Node& node) const {
  if (!is_action(node)) return false;
  const auto kind = static_cast<ActionKind>(find_function(node.children[0]->text)->id);
  return kind == ActionKind::stack || kind == ActionKind::ustack || kind == ActionKind::symbol;
}

// The number that an argument of stack() or ustack() is, at least `least`.
std::uint64_t Sema::frame_constant(Node& argument, std::uint64_t least, std::string_view tag,
                                   const char* text) {
  expression(argument);
  const bool negative = argument.constant && type_of(argument).is_signed &&
                        static_cast<std::int64_t>(argument.value) < 0;
  if (is_dynamic(argument) || !argument.constant || !is_integer(argument) || negative ||
      argument.value < least) {
    fail(tag, argument, text);
  }
  return std::min(argument.value, kMostFrames);
}

// stack(), ustack(), jstack(), sym(), func(), mod(), usym(), ufunc(), umod(), uaddr(): what a
// record or a key holds. Nothing is computed for a stack: the firing has it.
Value Sema::symbolic(Node& call) {
  const std::string& name = call.children[0]->text;
  const std::size_t passed = call.children.size() - 1;
  Node nothing;
  nothing.place = call.place;
  nothing.constant = true;
  nothing.type = types_.int_type;
  ValueDesc desc;
  desc.is_signed = false;
  if (name == "stack") {
    if (passed > 1) fail("D_STACK_PROTO", call, "stack( ) prototype mismatch: too many arguments");
    std::uint64_t frames = std::min<std::uint64_t>(input_.stackframes, kMostFrames);
    if (passed == 1) {
      frames = frame_constant(*call.children[1], 1, "D_STACK_SIZE",
                              "stack( ) size must be a non-zero positive integral constant "
                              "expression");
    }
    call.type = types_.find("stack");
    desc.form = ValueForm::stack;
    desc.by_ref = true;
    desc.type = call.type;
    desc.size = static_cast<std::uint32_t>(frames * 8);
    return value_as(nothing, desc);
  }
  if (name == "ustack" || name == "jstack") {
    if (passed > 2)
      fail("D_USTACK_PROTO", call, "ustack( ) prototype mismatch: too many arguments");
    const bool java = name == "jstack";
    std::uint64_t frames = java ? input_.jstackframes : input_.ustackframes;
    std::uint64_t text = java ? input_.jstackstrsize : 0;
    if (passed > 0) {
      frames = frame_constant(*call.children[1], 1, "D_USTACK_FRAMES",
                              "ustack( ) argument #1 must be a non-zero positive integer constant");
    }
    if (passed > 1) {
      text = frame_constant(*call.children[2], 0, "D_USTACK_STRSIZE",
                            "ustack( ) argument #2 must be a positive integer constant");
    }
    call.type = types_.find("stack");
    desc.form = ValueForm::ustack;
    desc.by_ref = true;
    desc.type = call.type;
    desc.size = static_cast<std::uint32_t>((std::min(frames, kMostFrames) + 1) * 8 +
                                           (std::min(text, kMostFrames) + 7) / 8 * 8);
    return value_as(nothing, desc);
  }
  if (passed != 1) {
    fail("D_PROTO_LEN", call,
         fmt::format("{}( ) prototype mismatch: {} arg{} passed, 1 expected", name, passed,
                     passed == 1 ? "" : "s"));
  }
  Node& argument = *call.children[1];
  expression(argument);
  if (is_dynamic(argument) || (!is_integer(argument) && !is_pointer(argument))) {
    fail("D_PROTO_ARG", argument,
         fmt::format("{}( ) argument #1 is incompatible with prototype:\n\tprototype: "
                     "uintptr_t\n\t argument: {}",
                     name, type_name(argument)));
  }
  const auto* const form =
      std::find_if(std::begin(kSymbolForms), std::end(kSymbolForms),
                   [&](const SymbolForm& candidate) { return candidate.name == name; });
  desc.form = form->form;
  const bool user = desc.form != ValueForm::sym && desc.form != ValueForm::mod;
  call.type = types_.find(user ? "_usymaddr" : "_symaddr");
  desc.type = call.type;
  desc.by_ref = user;  // a process id comes before the address
  desc.size = user ? 16 : 8;
  return value_as(argument, desc);
}

}  // namespace dtmalloc::dtrace
