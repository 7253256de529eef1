// SPDX-License-Identifier: BSD-2-Clause
// Types of expressions: kinds, unary operators, members, casts, conditionals.
// Counterpart:  dt_parser.c (dt_cook_*)
#include <fmt/format.h>

#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {

bool Sema::is_integer(const Node& node) const {
  const TypeKind kind = type_of(node).kind;
  return kind == TypeKind::integer || kind == TypeKind::enum_;
}
bool Sema::is_arithmetic(const Node& node) const {
  return is_integer(node) || type_of(node).kind == TypeKind::floating;
}
bool Sema::is_pointer(const Node& node) const {
  const TypeKind kind = type_of(node).kind;
  return kind == TypeKind::pointer || kind == TypeKind::array;
}
bool Sema::is_scalar(const Node& node) const {
  return !is_dynamic(node) && (is_arithmetic(node) || type_of(node).kind == TypeKind::pointer);
}
bool Sema::is_string(const Node& node) const { return type_of(node).kind == TypeKind::string; }
bool Sema::is_string_like(const Node& node) const {
  if (is_string(node)) return true;
  return is_pointer(node) && types_[types_.resolve(type_of(node).target)].is_char;
}
bool Sema::is_dynamic(const Node& node) const {
  return aggregation_of(node) != nullptr || is_translated(node);
}
// A translated pointer, or args[n] that is translated: they have members and no value.
bool Sema::is_translated(const Node& node) const {
  if (node.translator == nullptr) return false;
  return node.native != kNoType || type_of(node).kind == TypeKind::pointer;
}
bool Sema::is_action(const Node& node) const {
  if (node.kind != NodeKind::call || node.children[0]->kind != NodeKind::identifier) return false;
  const FunctionInfo* info = find_function(node.children[0]->text, input_.version);
  return info != nullptr && info->kind == FunctionKind::action;
}
// What a program may write, it may follow: the target of a pointer in scratch or in a variable can
// be stored to, if it is scratch when the clause runs.
bool Sema::leads_on(const Node& node) const { return node.writable && is_pointer(node); }
bool Sema::is_void_pointer(const Node& node) const {
  return is_pointer(node) && types_[types_.resolve(type_of(node).target)].kind == TypeKind::void_;
}

TypeId Sema::pointee(const Node& node) const {
  const Type& type = type_of(node);
  return type.kind == TypeKind::string ? types_.char_type : type.target;
}

bool Sema::pointers_agree(const Node& a, const Node& b) const {
  const bool a_pointer = is_pointer(a) || is_string(a);
  const bool b_pointer = is_pointer(b) || is_string(b);
  if (a_pointer && b.null) return true;
  if (b_pointer && a.null) return true;
  if (!a_pointer || !b_pointer) return false;
  if (is_void_pointer(a) || is_void_pointer(b)) return true;
  return types_.same(pointee(a), pointee(b));
}

bool Sema::argument_fits(const Node& to, const Node& from) const {
  if (is_dynamic(from)) return false;
  if (is_integer(to) && is_integer(from)) return true;
  if (is_string_like(to) && is_string_like(from)) return true;
  if (pointers_agree(to, from)) return true;
  const TypeKind kind = type_of(to).kind;
  return (kind == TypeKind::struct_ || kind == TypeKind::union_ || kind == TypeKind::stack ||
          kind == TypeKind::symaddr || kind == TypeKind::usymaddr) &&
         types_.resolve(to.type) == types_.resolve(from.type);
}

std::string Sema::type_name(const Node& node) const {
  if (is_translated(node)) {
    return type_of(node).kind == TypeKind::pointer ? "translated pointer" : "translated data";
  }
  if (is_dynamic(node)) return "aggregation";
  return (node.userland ? "userland " : "") + types_[node.type].name;
}
std::string Sema::declared_name(const Node& cast) const {
  return (cast.declared_userland ? "userland " : "") + types_[cast.declared].name;
}

ValueDesc Sema::describe(const Node& node) const {
  ValueDesc desc = describe_type(types_, node.type);
  desc.userland = node.userland;
  return desc;
}

void Sema::incompatible(const Node& node) const {
  fail("D_OP_INCOMPAT", node,
       fmt::format("operands have incompatible types: \"{}\" {} \"{}\"",
                   type_name(*node.children[0]), op_text(node.op), type_name(*node.children[1])));
}

// A constant takes a narrower type, or an unsigned one of its own size, cut and zero-extended.
std::uint64_t Sema::cut(std::uint64_t value, TypeId from, TypeId to) const {
  const Type& source = types_[types_.resolve(from)];
  const Type& target = types_[types_.resolve(to)];
  if (target.size >= 8 || target.size > source.size || target.size == 0) return value;
  if (target.size == source.size && target.is_signed) return value;
  return value & ((std::uint64_t{1} << target.size * 8) - 1);
}

// A cast also widens: a signed type's bits are extended by their sign up to the new width, beyond
// which a constant is zero-extended. Assignments do not widen: nothing is truncated by them.
std::uint64_t Sema::cast_constant(std::uint64_t value, TypeId from, TypeId to) const {
  const Type& source = types_[types_.resolve(from)];
  const Type& target = types_[types_.resolve(to)];
  if (target.size <= source.size || source.size == 0 || !source.is_signed) {
    return cut(value, from, to);
  }
  const std::uint64_t above = 64 - source.size * 8;
  value = static_cast<std::uint64_t>(static_cast<std::int64_t>(value << above) >> above);
  return target.size >= 8 ? value : value & ((std::uint64_t{1} << target.size * 8) - 1);
}

void Sema::set_constant(Node& node, TypeId type, std::uint64_t value) {
  node.type = type;
  node.constant = true;
  node.value = value;
  node.null = value == 0;
}

void Sema::expression(Node& node) {
  node.type = kNoType;
  node.constant = node.lvalue = node.writable = node.writes_target = node.null = false;
  node.external = node.userland = false;
  node.binding = nullptr;
  node.inlined = nullptr;
  node.translator = nullptr;
  node.translation = nullptr;
  node.native = kNoType;
  node.element = false;
  switch (node.kind) {
    case NodeKind::integer:
      set_constant(node, node.declared, node.literal);
      return;
    case NodeKind::string:
      node.type = types_.string_type;
      return;
    case NodeKind::identifier:
      identifier(node);
      return;
    case NodeKind::local:
    case NodeKind::thread:
      scoped_variable(node);
      return;
    case NodeKind::aggregation:
      return;  // the uses check it
    case NodeKind::xlate:
      translate(node);
      return;
    case NodeKind::if_:
    case NodeKind::block:
      DTM_CHECK(false, "a statement in an expression");
      return;
    case NodeKind::unary:
    case NodeKind::postfix:
      unary(node);
      return;
    case NodeKind::binary:
      binary(node);
      return;
    case NodeKind::assign:
      assign(node);
      return;
    case NodeKind::conditional:
      conditional(node);
      return;
    case NodeKind::call:
      call(node);
      return;
    case NodeKind::index:
      index(node);
      return;
    case NodeKind::member:
      member(node);
      return;
    case NodeKind::cast:
      cast(node);
      return;
    case NodeKind::type_size:
      size_of(node, node.declared);
      return;
    case NodeKind::offset_of: {
      const Type& type = types_[types_.resolve(node.declared)];
      if (type.kind != TypeKind::struct_ && type.kind != TypeKind::union_) {
        fail("D_OFFSETOF_TYPE", node, "offsetof operand must be a struct or union type");
      }
      const Member* found = types_.member(node.declared, node.text);
      if (found == nullptr) {
        fail("D_TYPE_MEMBER", node,
             fmt::format("{} is not a member of {}", node.text, types_[node.declared].name));
      }
      if (types_[found->type].bits != 0) {
        fail("D_OFFSETOF_BITFIELD", node,
             fmt::format("cannot take offset of a bit-field: {}", node.text));
      }
      set_constant(node, types_.find_kernel("size_t"), found->offset);
      return;
    }
  }
}

void Sema::size_of(Node& node, TypeId type) {
  const Type& target = types_[types_.resolve(type)];
  std::uint64_t size = target.size;
  if (!node.children.empty() && node.children[0]->kind == NodeKind::string) {
    size = node.children[0]->text.size() + 1;
  }
  if (!node.children.empty() && node.children[0]->code_size != 0) {
    size = node.children[0]->code_size;
  }
  if (target.bits != 0) {
    fail("D_SIZEOF_BITFIELD", node, "cannot apply sizeof to a bit-field");
  }
  if (size == 0 || target.kind == TypeKind::function) {
    fail("D_SIZEOF_TYPE", node, "cannot apply sizeof to an operand of unknown size");
  }
  set_constant(node, types_.find_kernel("size_t"), size);
}

void Sema::unary(Node& node) {
  Node& operand = *node.children[0];
  if (is_action(operand)) {
    fail("D_OP_ACT", node, fmt::format("operator {} operands cannot be actions", op_text(node.op)));
  }
  const bool steps = node.op == Op::inc || node.op == Op::dec;
  if (steps) {
    target(operand, types_.int64_type);
  } else {
    expression(operand);
  }
  if (is_dynamic(operand)) {
    if (node.op == Op::addrof) {
      fail("D_ADDROF_VAR", node, "cannot take address of dynamic variable");
    }
    if (node.op == Op::sizeof_) {
      fail("D_SIZEOF_TYPE", node, "cannot apply sizeof to an operand of unknown size");
    }
    fail("D_OP_DYN", node,
         fmt::format("operator {} operands cannot be of dynamic type", op_text(node.op)));
  }
  switch (node.op) {
    case Op::deref: {
      if (!is_pointer(operand)) {
        fail("D_DEREF_NONPTR", node, "cannot dereference non-pointer type");
      }
      const TypeId target = pointee(operand);
      const TypeKind kind = types_[types_.resolve(target)].kind;
      if (kind == TypeKind::function) {
        fail("D_DEREF_FUNC", node, "cannot dereference pointer to function");
      }
      if (kind == TypeKind::void_) fail("D_DEREF_VOID", node, "cannot dereference pointer to void");
      node.type = target;
      node.userland = operand.userland;
      node.lvalue = true;
      node.writable = operand.writes_target;
      node.writes_target = leads_on(node);
      return;
    }
    case Op::pos:
    case Op::neg:
      if (!is_arithmetic(operand)) {
        fail("D_OP_ARITH", node,
             fmt::format("operator {} requires an operand of arithmetic type", op_text(node.op)));
      }
      node.type = operand.type;
      node.userland = operand.userland;
      if (operand.constant) {
        set_constant(node, operand.type, node.op == Op::neg ? 0 - operand.value : operand.value);
      }
      return;
    case Op::bnot:
      if (!is_integer(operand)) {
        fail("D_OP_INT", node, "operator ~ requires an operand of integral type");
      }
      node.type = operand.type;
      node.userland = operand.userland;
      if (operand.constant) set_constant(node, operand.type, ~operand.value);
      return;
    case Op::lnot:
      if (!is_scalar(operand)) {
        fail("D_OP_SCALAR", node, "operator ! requires an operand of scalar type");
      }
      node.type = types_.int_type;
      if (operand.constant) set_constant(node, types_.int_type, operand.value == 0 ? 1 : 0);
      return;
    case Op::addrof:
      if ((operand.kind == NodeKind::identifier && !operand.symbol && !operand.external) ||
          operand.kind == NodeKind::local || is_dynamic_variable(operand)) {
        fail("D_ADDROF_VAR", node, "cannot take address of dynamic variable");
      }
      if (!operand.lvalue) {
        fail("D_ADDROF_LVAL", node, "unacceptable operand for unary & operator");
      }
      if (operand.kind == NodeKind::index && operand.children[0]->kind == NodeKind::identifier &&
          is_builtin_array(operand.children[0]->text)) {
        fail("D_ADDROF_VAR", node, "cannot take address of dynamic variable");
      }
      if (type_of(operand).bits != 0) {
        fail("D_ADDROF_BITFIELD", node, "cannot take address of bit-field");
      }
      node.type = types_.pointer_to(operand.type);
      node.userland = operand.userland;
      node.writes_target = operand.writable;
      return;
    case Op::sizeof_:
      size_of(node, operand.type);
      return;
    case Op::stringof_:
      if (!is_scalar(operand) && !is_string_like(operand)) {
        fail("D_STRINGOF_TYPE", node,
             fmt::format("cannot apply stringof to a value of type {}", type_name(operand)));
      }
      node.type = types_.string_type;
      node.userland = operand.userland;
      return;
    case Op::inc:
    case Op::dec: {
      const std::string_view text = op_text(node.op);
      if (!is_scalar(operand)) {
        fail("D_OP_SCALAR", node, fmt::format("operator {} requires operand of scalar type", text));
      }
      if (is_pointer(operand) && types_[types_.resolve(pointee(operand))].size == 0) {
        fail("D_OP_VFPTR", node,
             fmt::format("operator {} requires an operand of known size", text));
      }
      if (!operand.lvalue) {
        fail("D_OP_LVAL", node,
             fmt::format("operator {} requires modifiable lvalue as an operand", text));
      }
      if (!operand.writable) {
        fail("D_OP_WRITE", node,
             fmt::format("operator {} can only be applied to a writable variable", text));
      }
      node.type = operand.type;
      node.userland = operand.userland;
      return;
    }
    default:
      return;
  }
}

void Sema::member(Node& node) {
  Node& object = *node.children[0];
  expression(object);
  const std::string_view op = op_text(node.op);
  const bool pointer = is_translated(object) && is_pointer(object);
  if (is_dynamic(object) &&
      (aggregation_of(object) != nullptr || (node.op == Op::arrow) != pointer)) {
    fail("D_OP_DYN", node, fmt::format("operator {} operands cannot be of dynamic type", op));
  }
  TypeId aggregate = object.type;
  if (node.op == Op::arrow) {
    if (!is_pointer(object)) {
      fail("D_OP_PTR", node, fmt::format("operator {} must be applied to a pointer", op));
    }
    aggregate = pointee(object);
  }
  const Type& type = types_[types_.resolve(aggregate)];
  if (type.kind != TypeKind::struct_ && type.kind != TypeKind::union_) {
    fail("D_OP_SOU", node,
         node.op == Op::arrow
             ? fmt::format("operator -> cannot be applied to pointer to type \"{}\"; must be "
                           "applied to a struct or union pointer",
                           types_[aggregate].name)
             : fmt::format("operator {} cannot be applied to type \"{}\"; must be applied to a "
                           "struct or union",
                           op, types_[aggregate].name));
  }
  if (object.translator != nullptr) return translated_member(node);
  if (type.size == 0) {
    fail("D_OP_INCOMPLETE", node,
         fmt::format("operator {} cannot be applied to a forward declaration: no {} definition is "
                     "available",
                     op, type.name));
  }
  const Member* found = types_.member(aggregate, node.text);
  if (found == nullptr) {
    Place place = node.place;
    place.offset = place.offset + place.length - static_cast<std::uint32_t>(node.text.size());
    place.length = static_cast<std::uint32_t>(node.text.size());
    Diagnostic diagnostic = source_.diagnostic(
        "D_TYPE_MEMBER", place,
        fmt::format("{} is not a member of {}", node.text, types_[aggregate].name));
    std::vector<std::string> names;
    for (const Member& candidate : type.members) names.push_back(candidate.name);
    diagnostic.near_names = nearest_names(node.text, names);
    throw CompileError{std::move(diagnostic)};
  }
  node.type = found->type;
  node.offset = found->offset;
  node.bit = found->bit;
  node.userland = object.userland;
  node.lvalue = true;
  node.writable = node.op == Op::arrow ? object.writes_target : object.writable;
  node.writes_target = leads_on(node);
}

void Sema::index(Node& node) {
  Node& array = *node.children[0];
  if (inline_element(node)) return;
  const bool named = array.kind == NodeKind::identifier;
  if (named && array.text == "args") {
    probe_argument(node);
    return;
  }
  if (named && (array.text == "uregs" || array.text == "regs")) {
    return registers(node);
  }
  if (array_element(node, kNoType)) return;
  const bool local = array.kind == NodeKind::local;
  const auto local_array = [&] {
    fail("D_ARR_LOCAL", node,
         fmt::format("local variables may not be used as associative arrays: {}", array.text));
  };
  if (local && find_variable(Scope::local, array.text) == nullptr) local_array();
  expression(array);
  if (is_dynamic(array)) {
    fail("D_OP_DYN", node, "operator [ operands cannot be of dynamic type");
  }
  const bool usable = is_pointer(array) || is_string(array);
  if (!usable || node.children.size() != 2) {
    if (local) local_array();
    if (named || array.kind == NodeKind::thread) {
      fail("D_ARR_BADREF", node,
           fmt::format("cannot access {} as an associative array", array.text));
    }
    if (!usable) fail("D_DEREF_NONPTR", node, "cannot dereference non-pointer type");
    fail("D_ARR_BADREF", node, "cannot access expression as an associative array");
  }
  Node& position = *node.children[1];
  expression(position);
  if (is_dynamic(position) || !is_integer(position)) {
    fail("D_OP_INCOMPAT", node,
         fmt::format("operands have incompatible types: \"{}\" + \"{}\"", type_name(array),
                     type_name(position)));
  }
  const TypeId target = pointee(array);
  const Type& element = types_[types_.resolve(target)];
  if (element.kind == TypeKind::void_) {
    fail("D_DEREF_VOID", node, "cannot dereference pointer to void");
  }
  if (element.size == 0) {
    fail("D_OP_VFPTR", node, "operator + requires left-hand scalar operand of known size");
  }
  node.type = target;
  node.userland = array.userland;
  node.lvalue = true;
  node.writable = array.writes_target;
  node.writes_target = leads_on(node);
}

void Sema::cast(Node& node) {
  Node& operand = *node.children[0];
  if (is_action(operand)) {
    fail("D_OP_ACT", node, "operator ( ) operands cannot be actions");
  }
  expression(operand);
  const Type& to = types_[types_.resolve(node.declared)];
  bool allowed = false;
  if (!is_dynamic(operand)) {
    const bool struct_like =
        type_of(operand).kind == TypeKind::struct_ || type_of(operand).kind == TypeKind::union_;
    switch (to.kind) {
      case TypeKind::void_:
        allowed = true;
        break;
      case TypeKind::integer:
      case TypeKind::enum_:
        allowed = is_scalar(operand);
        break;
      case TypeKind::pointer:
        allowed = is_scalar(operand) || is_pointer(operand) || is_string(operand);
        break;
      case TypeKind::string:
        allowed = is_scalar(operand) || is_string_like(operand);
        break;
      case TypeKind::struct_:
      case TypeKind::union_:
        allowed = struct_like && types_.resolve(node.declared) == types_.resolve(operand.type);
        break;
      default:
        break;
    }
  }
  if (!allowed) {
    fail("D_CAST_INVAL", node,
         fmt::format("invalid cast expression: \"{}\" to \"{}\"", type_name(operand),
                     declared_name(node)));
  }
  node.type = node.declared;
  node.userland = node.declared_userland;
  node.writes_target = to.kind == TypeKind::pointer;
  // A cast to a pointer is no constant: dereferencing one faults where the real code does.
  if (operand.constant && (to.kind == TypeKind::integer || to.kind == TypeKind::enum_)) {
    set_constant(node, node.declared, cast_constant(operand.value, operand.type, node.declared));
  }
}

void Sema::conditional(Node& node) {
  Node& test = *node.children[0];
  Node& yes = *node.children[1];
  Node& no = *node.children[2];
  if (is_action(test) || is_action(yes) || is_action(no)) {
    fail("D_OP_ACT", node, "action cannot be used in a conditional context");
  }
  expression(test);
  expression(yes);
  expression(no);
  if (is_dynamic(test) || is_dynamic(yes) || is_dynamic(no)) {
    fail("D_OP_DYN", node, "operator ?: operands cannot be of dynamic type");
  }
  if (!is_scalar(test)) {
    fail("D_OP_SCALAR", node, "operator ?: expression must be of scalar type");
  }
  if (is_integer(yes) && is_integer(no)) {
    node.type = promote(yes.type, no.type);
  } else if ((is_string(yes) && is_string_like(no)) || (is_string(no) && is_string_like(yes))) {
    node.type = types_.string_type;
  } else if (pointers_agree(yes, no)) {
    node.type = yes.null ? no.type : yes.type;
  } else if (types_.resolve(yes.type) == types_.resolve(no.type)) {
    node.type = yes.type;
  } else {
    fail("D_OP_INCOMPAT", node, "operator ?: operands must have compatible types");
  }
}

// The call of an action, or of an aggregating function, stands where a value is wanted.
void Sema::no_value(const Node& call, FunctionKind kind) const {
  fail("D_CG_EXPR", call,
       fmt::format("{} {}( ) may not be called from a D expression (D program context required)",
                   kind_name(kind), call.children[0]->text));
}

void Sema::predicate(Node& node) {
  if (is_action(node)) no_value(node, FunctionKind::action);
  expression(node);
  if (is_dynamic(node) || !is_scalar(node)) {
    fail("D_PRED_SCALAR", node, "predicate result must be of scalar type");
  }
}

}  // namespace dtmalloc::dtrace
