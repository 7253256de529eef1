// SPDX-License-Identifier: BSD-2-Clause
// Code of inlines and translated values: that of the expressions they stand for, where they are
// used.
// Counterpart:  dt_cg.c (dt_cg_inline, dt_cg_xlate_member, dt_cg_xlate_expand)
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "dtrace/lang/codegen.hpp"
#include "dtrace/lang/definitions.hpp"

namespace dtmalloc::dtrace {
namespace {

// The keys of an inline's use stand for its parameters while one of these lives.
class Keys {
 public:
  explicit Keys(const Node& use) : definition_(*use.inlined) {
    for (std::size_t i = 0; i < definition_.parameters.size(); ++i) {
      before_.push_back(std::exchange(definition_.parameters[i].argument, use.children[i + 1]));
    }
  }
  ~Keys() {
    for (std::size_t i = 0; i < before_.size(); ++i) {
      definition_.parameters[i].argument = before_[i];
    }
  }
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

 private:
  InlineDefinition& definition_;
  std::vector<const Node*> before_;
};

}  // namespace

// A chain of definitions is deeper than any expression of it.
void Generator::descend() {
  if (++nested_ <= kMaxExpansions) return;
  source_.fail("D_SIM_NESTING", place_,
               "definitions are nested deeper than " + std::to_string(kMaxExpansions) + " levels");
}

unsigned Generator::bound(const Node& node) {
  descend();
  const Node& argument = *node.binding->argument;
  const bool native = argument.native != kNoType;
  const unsigned reg = native ? this->argument(argument) : expression(argument);
  convert(reg, native ? argument.native : argument.type, node.type, node);
  --nested_;
  return reg;
}

unsigned Generator::inlined(const Node& node) {
  const Node& body = *node.inlined->body;
  const Keys keys(node);
  descend();
  const unsigned reg = expression(body);
  --nested_;
  convert(reg, body.type, node.type, node);
  return reg;
}

// What a translated value is made from.
const Node& Generator::source_of(const Node& node) {
  const Node* at = &node;
  while (at->inlined != nullptr) at = at->inlined->body;
  return at->kind == NodeKind::xlate ? *at->children[0] : *at;
}

unsigned Generator::translated(const Node& value, const Node& expression_of, TypeId type) {
  Translator& translator = *value.translator;
  std::deque<Keys> keys;
  for (const Node* at = &value; at->inlined != nullptr; at = at->inlined->body) {
    keys.emplace_back(*at);
  }
  const Node* before = std::exchange(translator.input.argument, &source_of(value));
  descend();
  const unsigned reg = expression(expression_of);
  --nested_;
  convert(reg, expression_of.type, type, value);
  translator.input.argument = before;
  return reg;
}

// A whole structure: scratch memory, zero but for the members that are translated.
unsigned Generator::translate(const Node& node) {
  const Translator& translator = *node.translator;
  const Type& output = type(translator.output);
  if (type(node).kind == TypeKind::pointer) {
    source_.fail("D_CG_DYN", node.place,
                 "expression cannot evaluate to result of a translated pointer");
  }
  const unsigned base = integer(output.size, node);
  emit(dif_registers(DifOp::allocs, base, 0, base));
  for (const Translator::Conversion& conversion : translator.members) {
    const Member& member = *types_.member(translator.output, conversion.member);
    const unsigned value = translated(node, *conversion.value, member.type);
    const unsigned place = integer(member.offset, node);
    emit(dif_registers(DifOp::add, base, place, place));
    if (kept_by_address(type(member.type).kind)) {
      const unsigned size = integer(type(member.type).size, node);
      emit(dif_registers(DifOp::copys, value, size, place));
      release(size);
    } else {
      Node target;
      target.place = node.place;
      target.type = member.type;
      target.bit = member.bit;
      store(value, place, target);
    }
    release(place);
    release(value);
  }
  return base;
}

}  // namespace dtmalloc::dtrace
