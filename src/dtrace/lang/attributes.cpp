// SPDX-License-Identifier: BSD-2-Clause
// The attributes of a typed expression: the least of all that it names.
// Counterpart:  dt_parser.c (dt_node_attr_assign, dt_node_name)
#include "dtrace/dif/attributes.hpp"

#include <fmt/format.h>

#include "dtrace/lang/definitions.hpp"
#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {
namespace {

// A node as a message names it.
std::string described(const Node& node) {
  switch (node.kind) {
    case NodeKind::integer:
    case NodeKind::type_size:
    case NodeKind::offset_of:
      return fmt::format("integer constant {:#x}", node.value);
    case NodeKind::string:
      return fmt::format("string constant \"{}\"", node.text);
    case NodeKind::aggregation:
      return fmt::format("aggregation @{}", node.text);
    case NodeKind::call: {
      const std::string& name = node.children[0]->text;
      const FunctionInfo* info = find_function(name);
      return fmt::format("{} {}( )", info == nullptr ? "function" : kind_name(info->kind), name);
    }
    case NodeKind::index:
      if (node.children[0]->kind == NodeKind::identifier) {
        return fmt::format("array {}", node.children[0]->text);
      }
      break;
    case NodeKind::identifier:
      return fmt::format("scalar {}", node.text);
    case NodeKind::local:
      return fmt::format("scalar this->{}", node.text);
    case NodeKind::thread:
      return fmt::format("scalar self->{}", node.text);
    case NodeKind::cast:
      return "operator ()";
    default:
      break;
  }
  return fmt::format("operator {}", op_text(node.op));
}

}  // namespace

Attribute Sema::attribute(const Node& node) const {
  Attribute result = kMostStable;
  if (node.inlined != nullptr) result = node.inlined->attribute;
  if (node.translator != nullptr) result = least(result, node.translator->attribute);
  // The function of a call and the name of an array count with what they are applied to.
  const bool named =
      node.kind == NodeKind::call ||
      (node.kind == NodeKind::index && node.children[0]->kind == NodeKind::identifier);
  for (std::size_t i = named ? 1 : 0; i < node.children.size(); ++i) {
    result = least(result, attribute(*node.children[i]));
  }
  switch (node.kind) {
    case NodeKind::identifier:
      result = least(result, name_attribute(node.text));
      break;
    case NodeKind::local:
      result = least(result, name_attribute("this->" + node.text));
      break;
    case NodeKind::thread:
      result = least(result, name_attribute("self->" + node.text));
      break;
    case NodeKind::aggregation:
      result = least(result, name_attribute("@" + node.text));
      break;
    case NodeKind::call:
      result = least(result, kProgramAttribute);
      break;
    case NodeKind::index:
      if (named && node.children[0]->text == "args") {
        result = least(result, clause_.probe.attributes.args);
      }
      if (named) result = least(result, name_attribute(node.children[0]->text));
      break;
    case NodeKind::cast:
    case NodeKind::type_size:
    case NodeKind::offset_of:
    case NodeKind::xlate:
      result = least(result, type_attribute(node.declared));
      break;
    case NodeKind::integer:
    case NodeKind::string:
      result = least(result, kProgramAttribute);
      break;
    default:
      break;
  }
  if (input_.least_attribute && is_below(result, *input_.least_attribute)) {
    fail("D_ATTR_MIN", node,
         fmt::format("attributes for {} ({}) are less than predefined minimum", described(node),
                     to_string(result)));
  }
  return result;
}

// "x", "this->x", "@x": what a pragma says, or what a built-in variable has.
Attribute Sema::name_attribute(const std::string& name) const {
  if (const auto found = space_.attributes.find(name); found != space_.attributes.end()) {
    return found->second;
  }
  if (name == "curthread") {
    return {Stability::stable, Stability::private_, DependencyClass::common};
  }
  return kProgramAttribute;
}

// The kernel's structures are private; pointers and arrays are what they are made of.
Attribute Sema::type_attribute(TypeId type) const {
  for (;;) {
    const Type& resolved = types_[types_.resolve(type)];
    switch (resolved.kind) {
      case TypeKind::pointer:
      case TypeKind::array:
        type = resolved.target;
        continue;
      case TypeKind::struct_:
      case TypeKind::union_:
      case TypeKind::enum_:
        return kKernelAttribute;
      default:
        return kProgramAttribute;
    }
  }
}

}  // namespace dtmalloc::dtrace
