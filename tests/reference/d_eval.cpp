// SPDX-License-Identifier: BSD-2-Clause
// The tree-walking evaluator: spec/dtrace.md 9, 10 and 16, one case after the other.
#include "reference/d_eval.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <limits>
#include <utility>

#include "dtrace/lang/definitions.hpp"
#include "reference/d_text.hpp"

namespace dtmalloc::dtrace::reference {
namespace {

std::uint64_t low_bits(std::uint64_t value, std::uint64_t size) {
  return size >= 8 ? value : value & ((std::uint64_t{1} << (size * 8)) - 1);
}

std::uint64_t as_type(std::uint64_t value, const Type& type) {
  if (type.size >= 8) return value;
  value = low_bits(value, type.size);
  const std::uint64_t sign = std::uint64_t{1} << (type.size * 8 - 1);
  return type.is_signed && (value & sign) != 0 ? value | ~(sign * 2 - 1) : value;
}

// A constant in a type: cut if it is narrower, or unsigned of the same size; never sign-extended.
std::uint64_t constant_as(std::uint64_t value, const Type& from, const Type& to) {
  if (to.size < from.size || (to.size == from.size && !to.is_signed)) {
    return low_bits(value, to.size);
  }
  return value;
}

// A cast to a wider type gives the number that a signed type's bits stand for.
std::uint64_t cast_constant(std::uint64_t value, const Type& from, const Type& to) {
  if (to.size > from.size && from.is_signed) return low_bits(as_type(value, from), to.size);
  return constant_as(value, from, to);
}

bool is_integer(const Type& type) {
  return type.kind == TypeKind::integer || type.kind == TypeKind::enum_;
}

bool is_number(const Type& type) { return is_integer(type) || type.kind == TypeKind::pointer; }

}  // namespace

const Type& Evaluator::element_of(const Type& pointer) const {
  return types_[types_.resolve(pointer.target)];
}

bool Evaluator::is_address(const Node& node) const {
  const TypeKind kind = type_of(node).kind;
  return kind == TypeKind::pointer || kind == TypeKind::array || kind == TypeKind::string;
}

bool Evaluator::is_signed(const Node& left, const Node& right) const {
  if (is_address(left) || is_address(right)) return false;
  const Type& l = type_of(left);
  const Type& r = type_of(right);
  const auto rank = [](const Type& type) {
    return (type.bits != 0 ? type.bits : type.size * 8) + (type.is_signed ? 0 : 1);
  };
  return rank(l) >= rank(r) ? l.is_signed : r.is_signed;  // equal: 63 bits unsigned, 64 signed
}

std::string Evaluator::text_of(const EvalValue& value, bool null_is_empty) {
  if (!value.variable.empty()) return texts_[value.variable];
  if (value.text) return value.text->substr(0, state_.strsize);
  if (value.bits == 0) {
    if (null_is_empty) return "";
    throw EvalFault{Fault::badaddr, 0};
  }
  std::string text;
  while (text.size() < state_.strsize) {
    const void* host = nullptr;
    if (readable_from(state_, value.bits + text.size(), &host) == 0) {
      throw EvalFault{Fault::badaddr, value.bits};
    }
    const char c = *static_cast<const char*>(host);
    if (c == '\0') break;
    text += c;
  }
  return text;
}

EvalValue Evaluator::load(std::uint64_t address, const Node& node) {
  const Type& type = type_of(node);
  EvalValue value;
  value.bits = address;
  if (type.kind != TypeKind::integer && type.kind != TypeKind::enum_ &&
      type.kind != TypeKind::pointer) {
    return value;  // structs, arrays and strings are their address
  }
  if (node.userland) throw EvalFault{Fault::badaddr, address};  // there is no user memory
  const void* host = nullptr;
  if (readable_from(state_, address, &host) < type.size) throw EvalFault{Fault::badaddr, address};
  std::uint64_t raw = 0;
  std::memcpy(&raw, host, type.size);
  value.bits = as_type(raw, type);
  if (type.kind == TypeKind::pointer) {
    value.bits = state_.addresses->to_simulated(reinterpret_cast<const void*>(raw));
  }
  return value;
}

EvalValue Evaluator::element(const EvalValue& base, const Node& node, std::int64_t index) {
  if (base.text) {
    EvalValue value;
    const auto at = static_cast<std::size_t>(index);
    if (index < 0 || at > base.text->size()) throw EvalFault{Fault::unknown, 0};  // out of scope
    value.bits =
        as_type(static_cast<unsigned char>(base.text->c_str()[at]), types_[types_.char_type]);
    return value;
  }
  return load(base.bits + static_cast<std::uint64_t>(index) * type_of(node).size, node);
}

EvalValue Evaluator::variable(const std::string& name) {
  EvalValue value = variables[name];
  if (value.text) {
    value.text.reset();
    value.variable = name;
  }
  return value;
}

bool Evaluator::is_object(const Node& node) const {
  const TypeKind kind = type_of(node).kind;
  return kind == TypeKind::struct_ || kind == TypeKind::union_ || kind == TypeKind::array;
}

std::byte* Evaluator::bytes(std::uint64_t address, std::uint64_t size) {
  const void* host = nullptr;
  if (readable_from(state_, address, &host) < size) throw EvalFault{Fault::badaddr, address};
  return const_cast<std::byte*>(static_cast<const std::byte*>(host));
}

// Where an lvalue that is no plain variable lies.
std::uint64_t Evaluator::address_of(const Node& node) {
  if (node.kind == NodeKind::identifier || node.kind == NodeKind::local) {
    const bool global = node.kind == NodeKind::identifier;
    const VariableSlot* slots = global ? state_.global_slots : state_.local_slots;
    return (global ? kVariableBase : kLocalBase) + slots[node.id - kVarUser].offset;
  }
  if (node.kind == NodeKind::unary) return evaluate(*node.children[0]).bits;
  const std::uint64_t base = evaluate(*node.children[0]).bits;
  if (node.kind == NodeKind::member) return base + node.offset;
  const std::uint64_t index = evaluate(*node.children[1]).bits;
  return base + index * element_of(type_of(*node.children[0])).size;
}

// A bit-field bit by bit, from its lowest.
std::uint64_t Evaluator::read(std::uint64_t address, const Node& node) {
  const Type& type = type_of(node);
  if (type.bits == 0) return load(address, node).bits;
  if (node.userland) throw EvalFault{Fault::badaddr, address};
  const std::byte* unit = bytes(address, types_[types_.resolve(type.target)].size);
  std::uint64_t value = 0;
  for (unsigned i = 0; i < 64; ++i) {
    const unsigned from = i < type.bits ? i : type.bits - 1U;  // the sign goes on
    const unsigned at = node.bit + from;
    const bool set = (std::to_integer<unsigned>(unit[at / 8]) >> (at % 8) & 1U) != 0;
    if (set && (i < type.bits || type.is_signed)) value |= std::uint64_t{1} << i;
  }
  return value;
}

void Evaluator::write(std::uint64_t address, const Node& node, std::uint64_t value) {
  const Type& type = type_of(node);
  if (type.bits == 0) {
    std::memcpy(bytes(address, type.size), &value, type.size);
    return;
  }
  std::byte* unit = bytes(address, types_[types_.resolve(type.target)].size);
  for (unsigned i = 0; i < type.bits; ++i) {
    const unsigned at = node.bit + i;
    const std::byte mask{static_cast<unsigned char>(1U << (at % 8))};
    unit[at / 8] = (value >> i & 1) != 0 ? unit[at / 8] | mask : unit[at / 8] & ~mask;
  }
}

std::string Evaluator::scope_of(const Node& node) {
  return node.kind == NodeKind::local ? "this->" : node.kind == NodeKind::thread ? "self->" : "";
}

// A text that is not there yet is an empty one from then on.
EvalValue Evaluator::element_of_array(const Node& node) {
  const std::string name = name_of(node);
  if (is_text(node) && !variables[name].text) {
    variables[name].text = "";
    texts_[name] = "";
  }
  return variable(name);
}

// Keys are numbers of 64 bits or texts; a text is read when all keys are known.
std::string Evaluator::name_of(const Node& node) {
  const Node& named = node.element ? *node.children[0] : node;
  std::string name = scope_of(named) + named.text;
  if (!node.element) return name;
  std::vector<EvalValue> keys;
  for (std::size_t i = 1; i < node.children.size(); ++i) {
    keys.push_back(evaluate(*node.children[i]));
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const bool text = is_text(*node.children[i + 1]);
    std::string key = text ? text_of(keys[i], false) : std::to_string(keys[i].bits);
    name += "[" + std::to_string(key.size()) + (text ? "'" : "#") + key;
  }
  return name;
}

EvalValue Evaluator::converted(EvalValue value, const Type& from, const Type& to) {
  value.constant = false;
  if (!is_number(from) || !is_number(to)) return value;
  if (to.size <= from.size) {
    value.bits = as_type(value.bits, to);
  } else if (from.is_signed) {
    value.bits = as_type(as_type(value.bits, from), to);
  }
  return value;
}

// The body, in which each parameter stands for the expression that was passed.
EvalValue Evaluator::inlined(const Node& node) {
  InlineDefinition& definition = *node.inlined;
  std::vector<const Node*> before;
  for (std::size_t i = 0; i < definition.parameters.size(); ++i) {
    before.push_back(std::exchange(definition.parameters[i].argument, node.children[i + 1]));
  }
  struct Restore {
    InlineDefinition& definition;
    const std::vector<const Node*>& before;
    ~Restore() {
      for (std::size_t i = 0; i < before.size(); ++i) definition.parameters[i].argument = before[i];
    }
  } restore{definition, before};
  return converted(evaluate(*definition.body), type_of(*definition.body), type_of(node));
}

EvalValue Evaluator::evaluate(const Node& node) {
  EvalValue value;
  switch (node.kind) {
    case NodeKind::integer:
      value.bits = node.literal;
      value.constant = true;
      return value;
    case NodeKind::type_size:
    case NodeKind::offset_of:
      value.bits = node.value;
      value.constant = true;
      return value;
    case NodeKind::string:
      value.text = node.text;
      return value;
    case NodeKind::identifier:
      if (node.binding != nullptr) {
        const Node& argument = *node.binding->argument;
        return converted(evaluate(argument), type_of(argument), type_of(node));
      }
      if (node.inlined != nullptr && !node.constant) return inlined(node);
      if (node.constant) {
        value.bits = node.value;
        value.constant = true;
      } else if (is_object(node)) {
        value.bits = address_of(node);
      } else if (node.id >= kVarUser) {
        return variable(node.text);
      } else {
        value.bits = state_.variable(state_, node.id, 0);
      }
      return value;
    case NodeKind::local:
    case NodeKind::thread:
      if (!is_object(node)) return variable(name_of(node));
      value.bits = address_of(node);
      return value;
    case NodeKind::unary:
    case NodeKind::postfix:
      return unary(node);
    case NodeKind::binary:
      return binary(node);
    case NodeKind::assign:
      return assign(node);
    case NodeKind::conditional:
      value = evaluate(*node.children[evaluate(*node.children[0]).bits != 0 ? 1 : 2]);
      value.constant = false;
      return value;
    case NodeKind::call:
      return call(node);
    case NodeKind::index: {
      if (node.inlined != nullptr) return inlined(node);
      if (node.element) return element_of_array(node);
      const Node& base = *node.children[0];
      if (base.text == "args" && base.kind == NodeKind::identifier) {
        value.bits = state_.variable(state_, kVarArgs, evaluate(*node.children[1]).bits);
        if (is_integer(type_of(node))) value.bits = as_type(value.bits, type_of(node));
        return value;
      }
      const EvalValue array = evaluate(base);
      const EvalValue position = evaluate(*node.children[1]);
      return element(array, node, static_cast<std::int64_t>(position.bits));
    }
    case NodeKind::member: {
      const std::uint64_t address = address_of(node);
      value.bits = is_object(node) ? address : read(address, node);
      return value;
    }
    case NodeKind::cast: {
      const Node& operand = *node.children[0];
      value = evaluate(operand);
      const Type& from = type_of(operand);
      const Type& to = type_of(node);
      if (!value.constant || !is_number(from) || !is_integer(to)) return converted(value, from, to);
      value.bits = cast_constant(value.bits, from, to);
      return value;
    }
    case NodeKind::aggregation:
    case NodeKind::xlate:
    case NodeKind::if_:
    case NodeKind::block:
      break;
  }
  return value;
}

EvalValue Evaluator::unary(const Node& node) {
  const Node& operand = *node.children[0];
  EvalValue value;
  if (node.op == Op::sizeof_) {
    value.bits = node.value;
    value.constant = true;
    return value;
  }
  if (node.op == Op::addrof) {
    value.bits = address_of(operand);
    return value;
  }
  const bool plain = is_named(operand);
  if ((node.op == Op::inc || node.op == Op::dec) && !plain) {
    const std::uint64_t address = address_of(operand);
    const std::uint64_t before = read(address, operand);
    const std::uint64_t after = node.op == Op::inc ? before + 1 : before - 1;
    write(address, operand, after);
    value.bits = node.kind == NodeKind::unary ? after : before;
    return value;
  }
  if (node.op == Op::inc || node.op == Op::dec) {
    value = variables[name_of(operand)];
    const Type& type = type_of(operand);
    const std::uint64_t step = type.kind == TypeKind::pointer ? element_of(type).size : 1;
    // The keys are evaluated again.
    EvalValue& variable = variables[name_of(operand)];
    variable = value;
    variable.bits = node.op == Op::inc ? variable.bits + step : variable.bits - step;
    if (node.kind == NodeKind::unary) value = variable;
    return value;
  }
  value = evaluate(operand);
  switch (node.op) {
    case Op::neg:
      value.bits = 0 - value.bits;
      break;
    case Op::bnot:
      value.bits = ~value.bits;
      break;
    case Op::lnot:
      value.bits = value.bits == 0 ? 1 : 0;
      break;
    case Op::deref:
      return load(value.bits, node);
    case Op::stringof_:
      value.constant = false;
      break;
    default:
      break;
  }
  return value;
}

std::uint64_t Evaluator::arithmetic(Op op, const Node& left, const Node& right, std::uint64_t l,
                                    std::uint64_t r, bool constant) {
  const auto sl = static_cast<std::int64_t>(l);
  const auto sr = static_cast<std::int64_t>(r);
  switch (op) {
    case Op::add:
      return l + r;
    case Op::sub:
      return l - r;
    case Op::mul:
      return l * r;
    case Op::bor:
      return l | r;
    case Op::bxor:
      return l ^ r;
    case Op::band:
      return l & r;
    case Op::shl:
      return l << (r % 64);
    case Op::shr:
      if (constant || !type_of(left).is_signed) return l >> (r % 64);
      return static_cast<std::uint64_t>(sl >> (r % 64));
    case Op::div:
    case Op::mod: {
      if (r == 0) throw EvalFault{Fault::divzero, 0};
      const bool divides = op == Op::div;
      if (!is_signed(left, right)) return divides ? l / r : l % r;
      if (sl == std::numeric_limits<std::int64_t>::min() && sr == -1) return divides ? l : 0;
      return static_cast<std::uint64_t>(divides ? sl / sr : sl % sr);
    }
    default:
      return 0;
  }
}

EvalValue Evaluator::binary(const Node& node) {
  const Node& left = *node.children[0];
  const Node& right = *node.children[1];
  EvalValue value;
  if (node.op == Op::land || node.op == Op::lor) {
    const EvalValue l = evaluate(left);
    const bool decided = (l.bits != 0) == (node.op == Op::lor);
    value.bits = l.bits != 0 ? 1 : 0;
    if (!decided) {
      const EvalValue r = evaluate(right);
      value.bits = r.bits != 0 ? 1 : 0;
    }
    // Constant only as a whole.
    value.constant = left.constant && right.constant;
    return value;
  }
  EvalValue l = evaluate(left);
  EvalValue r = evaluate(right);
  const bool constant = l.constant && r.constant;
  const bool numbers = !is_address(left) && !is_address(right);
  value.constant = constant && numbers;
  switch (node.op) {
    case Op::comma:
      r.constant = constant;
      return r;
    case Op::lxor:
      value.bits = (l.bits != 0) != (r.bits != 0) ? 1 : 0;
      value.constant = constant;
      return value;
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::gt:
    case Op::ge: {
      int order = 0;
      if (is_text(left) || is_text(right)) {
        const std::string a = text_of(l, true);
        const std::string b = text_of(r, true);
        order = a < b ? -1 : a > b ? 1 : 0;
      } else if (is_signed(left, right)) {
        const auto a = static_cast<std::int64_t>(l.bits);
        const auto b = static_cast<std::int64_t>(r.bits);
        order = a < b ? -1 : a > b ? 1 : 0;
      } else {
        order = l.bits < r.bits ? -1 : l.bits > r.bits ? 1 : 0;
      }
      const bool holds = node.op == Op::eq   ? order == 0
                         : node.op == Op::ne ? order != 0
                         : node.op == Op::lt ? order < 0
                         : node.op == Op::le ? order <= 0
                         : node.op == Op::gt ? order > 0
                                             : order >= 0;
      value.bits = holds ? 1 : 0;
      return value;
    }
    case Op::add:
    case Op::sub: {
      if (numbers) break;
      const auto size = [&](const Node& pointer) {
        return is_text(pointer) ? 1 : element_of(type_of(pointer)).size;
      };
      if (is_address(left) && is_address(right)) {
        value.bits = (l.bits - r.bits) / size(left);
        return value;
      }
      const EvalValue& base = is_address(left) ? l : r;
      const std::uint64_t offset = is_address(left) ? r.bits * size(left) : l.bits * size(right);
      if (base.text) {
        if (node.op == Op::sub || offset > base.text->size()) throw EvalFault{Fault::unknown, 0};
        value.text = base.text->substr(offset);
        return value;
      }
      value.bits = node.op == Op::add ? base.bits + offset : base.bits - offset;
      return value;
    }
    default:
      break;
  }
  value.bits = arithmetic(node.op, left, right, l.bits, r.bits, constant);
  return value;
}

EvalValue Evaluator::assign(const Node& node) {
  const Node& left = *node.children[0];
  const Node& right = *node.children[1];
  const Op op = op_of_assignment(node.op);
  const bool plain = is_named(left);
  if (is_object(left)) {
    const std::uint64_t to = plain ? 0 : address_of(left);
    const EvalValue from = evaluate(right);
    const std::uint64_t size = type_of(left).size;
    const std::byte* source = bytes(from.bits, size);
    std::memmove(bytes(plain ? address_of(left) : to, size), source, size);
    return from;
  }
  if (!plain) {
    const std::uint64_t address = address_of(left);
    const std::uint64_t old = op == Op::none ? 0 : read(address, left);
    EvalValue assigned = evaluate(right);
    if (op != Op::none) {
      assigned.bits = arithmetic(op, left, right, old, assigned.bits, false);
    } else if (assigned.constant) {
      assigned.bits = constant_as(assigned.bits, type_of(right), type_of(left));
    }
    assigned.constant = false;
    write(address, left, assigned.bits);
    return assigned;
  }
  const std::uint64_t before = op == Op::none ? 0 : variables[name_of(left)].bits;
  EvalValue value = evaluate(right);
  if (op != Op::none) {
    std::uint64_t operand = value.bits;
    const Type& type = type_of(left);
    if (type.kind == TypeKind::pointer) operand *= element_of(type).size;
    value.bits = arithmetic(op, left, right, before, operand, false);
  } else if (is_text(left)) {
    EvalValue kept;
    const std::string name = name_of(left);
    if (value.text || !value.variable.empty() || value.bits != 0) {
      kept.text = text_of(value, false);
      texts_[name] = *kept.text;
    }
    variables[name] = kept;
    return value;
  } else if (value.constant && is_integer(type_of(left))) {
    value.bits = constant_as(value.bits, type_of(right), type_of(left));
  }
  value.constant = false;
  variables[name_of(left)] = value;
  return value;
}

EvalValue Evaluator::call(const Node& node) {
  std::vector<EvalValue> arguments;
  for (std::size_t i = 1; i < node.children.size(); ++i) {
    arguments.push_back(evaluate(*node.children[i]));
  }
  const std::string& name = node.children[0]->text;
  const auto number = [&](std::size_t i, std::int64_t otherwise) {
    if (i >= arguments.size()) return otherwise;
    constexpr std::int64_t kFar = std::int64_t{1} << 40;
    return std::clamp(static_cast<std::int64_t>(arguments[i].bits), -kFar, kFar);
  };
  const auto base = [&](std::size_t i) {
    return i < arguments.size() ? arguments[i].bits : std::uint64_t{10};
  };
  const auto text = [&](std::size_t i) { return text_of(arguments[i], false); };
  const auto limited = [&](std::string result) {
    EvalValue value;
    value.text = result.substr(0, state_.strsize - 1);
    return value;
  };
  EvalValue value;
  if (name == "strlen") {
    value.bits = text(0).size();
  } else if (name == "strtoll") {
    value.bits = strtoll(text(0), base(1));
  } else if (name == "lltostr") {
    value.text = lltostr(arguments[0].bits, base(1));
  } else if (name == "strjoin") {
    const std::string a = text(0);
    const std::string b = text(1);
    if (a.size() + b.size() + 1 > state_.strsize) throw EvalFault{Fault::noscratch, 0};
    value.text = a + b;
  } else if (name == "substr") {
    return limited(substr(text(0), number(1, 0), number(2, state_.strsize)));
  } else if (name == "index" || name == "rindex") {
    const std::string a = text(0);
    const std::string b = text(1);
    value.bits = static_cast<std::uint64_t>(
        name == "index" ? index_of(a, b, number(2, 0))
                        : rindex_of(a, b, number(2, static_cast<std::int64_t>(a.size()))));
  } else if (name == "basename") {
    return limited(base_name(text(0)));
  } else if (name == "dirname") {
    return limited(dir_name(text(0)));
  } else if (name == "toupper" || name == "tolower") {
    std::string result = text(0);
    for (char& c : result) {
      if (name == "toupper" && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
      if (name == "tolower" && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return limited(result);
  } else if (name == "cleanpath") {
    return limited(clean_path(text(0), state_.strsize));
  } else if (name == "strtok") {
    const std::string ends = text(1);
    const EvalValue& given = arguments[0];
    if (given.text || !given.variable.empty() || given.bits != 0) tokens = text(0);
    value.text = token(tokens, ends, state_.strsize - 1);
  } else if (name == "json") {
    const std::string document = text(0);
    const std::string path = text(1);
    try {
      return limited(Json(document).find(path));
    } catch (const NotFound&) {
      return value;
    }
  } else if (name == "htons") {
    const std::uint64_t x = arguments[0].bits;
    value.bits = (x & 0xff) << 8 | (x >> 8 & 0xff);
  }
  return value;
}

}  // namespace dtmalloc::dtrace::reference
