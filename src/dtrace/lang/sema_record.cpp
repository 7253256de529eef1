// SPDX-License-Identifier: BSD-2-Clause
// Actions that record a value or memory as it stands: trace, print, tracemem, printm.
// Counterpart:  dt_cc.c (dt_action_trace, dt_action_print, dt_action_tracemem, dt_action_printm)
#include <fmt/format.h>

#include <limits>

#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {

void Sema::expect_arguments(const Node& call, std::size_t least, std::size_t most) const {
  const std::size_t passed = call.children.size() - 1;
  if (passed >= least && passed <= most) return;
  fail("D_PROTO_LEN", call,
       fmt::format("{}( ) prototype mismatch: {} arg{} passed, {}{} expected",
                   call.children[0]->text, passed, passed == 1 ? "" : "s",
                   most > least ? "at least " : "", least));
}

// trace() and print(): any value.
Action Sema::trace_action(Node& call, ActionKind kind) {
  expect_arguments(call, 1, 1);
  const bool prints = kind == ActionKind::print;
  const std::string& name = call.children[0]->text;
  const std::string family = prints ? "D_PRINT" : "D_TRACE";
  Node& argument = *call.children[1];
  expression(argument);
  if (is_translated(argument)) {
    fail(family + "_DYN", argument, name + "( ) may not be applied to a translated pointer");
  }
  if (is_dynamic(argument)) {
    fail(family + "_AGG", argument,
         fmt::format("{}( ) may not be applied to an aggregation{}", name,
                     prints ? " -- did you mean printa()?" : ""));
  }
  if (type_of(argument).size == 0) {
    fail(family + "_VOID", argument,
         fmt::format("{}( ) may not be applied to a void expression", name));
  }
  Action action;
  action.kind = kind;
  action.values.push_back(value(argument));
  return action;
}

// A constant number of bytes to record.
std::uint32_t Sema::recorded_bytes(const Node& size, std::string_view tag,
                                   std::string_view function, int number) const {
  const auto bytes = static_cast<std::int64_t>(size.value);
  const std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (is_dynamic(size) || !size.constant || !is_integer(size) || bytes <= 0) {
    fail(tag, size,
         fmt::format("{}( ) argument #{} must be a non-zero positive integral constant expression",
                     function, number));
  }
  return static_cast<std::uint32_t>(std::min(bytes, most));
}

// The size that is computed comes before the memory.
Action Sema::tracemem_action(Node& call) {
  expect_arguments(call, 2, std::numeric_limits<std::size_t>::max());
  for (std::size_t i = 1; i < call.children.size(); ++i) expression(*call.children[i]);
  Node& address = *call.children[1];
  Node& size = *call.children[2];
  if (!is_dynamic(size) && !is_integer(size)) {
    fail("D_PROTO_ARG", size,
         fmt::format("tracemem( ) argument #2 is incompatible with prototype:\n\tprototype: "
                     "size_t\n\t argument: {}",
                     type_name(size)));
  }
  if (is_dynamic(address) || (!is_integer(address) && !is_pointer(address))) {
    fail("D_TRACEMEM_ADDR", address,
         fmt::format("tracemem( ) argument #1 is incompatible with prototype:\n\tprototype: "
                     "pointer or integer\n\t argument: {}",
                     type_name(address)));
  }
  const std::uint32_t bytes = recorded_bytes(size, "D_TRACEMEM_SIZE", "tracemem", 2);
  if (call.children.size() > 4) {
    fail("D_TRACEMEM_ARGS", call, "tracemem ( ) prototype mismatch: expected at most 3 args");
  }
  Action action;
  action.kind = ActionKind::tracemem;
  if (call.children.size() == 4) {
    Node& dynamic = *call.children[3];
    if (!is_scalar(dynamic)) {
      fail("D_TRACEMEM_DYNSIZE", dynamic,
           "tracemem ( ) dynamic size (argument #3) must be of scalar type");
    }
    ValueDesc number;
    number.type = types_.uint64_type;
    number.is_signed = false;
    action.values.push_back(value_as(dynamic, number));
  }
  ValueDesc memory;
  memory.type = address.type;
  memory.size = bytes;
  memory.by_ref = true;
  action.values.push_back(value_as(address, memory));
  return action;
}

// What memref() gave: the record has the length before the bytes.
Action Sema::printm_action(Node& call) {
  expect_arguments(call, 2, 2);
  Node& size = *call.children[1];
  Node& memory = *call.children[2];
  expression(size);
  expression(memory);
  const std::uint32_t bytes = recorded_bytes(size, "D_PRINTM_SIZE", "printm", 1);
  if (is_dynamic(memory) || !is_pointer(memory)) {
    fail("D_PRINTM_ADDR", memory,
         fmt::format("printm( ) argument #2 is incompatible with prototype:\n\tprototype: "
                     "pointer\n\t argument: {}",
                     type_name(memory)));
  }
  Action action;
  action.kind = ActionKind::printm;
  ValueDesc desc;
  desc.type = memory.type;
  desc.size = bytes + 8;
  desc.by_ref = true;
  action.values.push_back(value_as(memory, desc));
  return action;
}

}  // namespace dtmalloc::dtrace
