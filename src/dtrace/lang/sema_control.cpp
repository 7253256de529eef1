// SPDX-License-Identifier: BSD-2-Clause
// Actions that steer tracing: speculations, setopt and its like, the destructive ones; and which
// actions may follow which.
// Counterpart:  dt_cc.c (dt_action_*, dt_stmt_append)
#include <fmt/format.h>

#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {
namespace {

// In these rules the destructive actions record nothing, even those that do.
bool is_recording(ActionKind kind) {
  switch (kind) {
    case ActionKind::eval:
    case ActionKind::aggregate:
    case ActionKind::speculate:
    case ActionKind::commit:
    case ActionKind::discard:
      return false;
    default:
      return !is_destructive(kind);
  }
}

}  // namespace

// Those whose arguments their prototype describes.
Action Sema::control_action(Node& call, const FunctionInfo& info) {
  check_arguments(call, info);
  Action action;
  action.kind = static_cast<ActionKind>(info.id);
  for (std::size_t i = 1; i < call.children.size(); ++i) {
    Node& argument = *call.children[i];
    if (action.kind != ActionKind::setopt) {
      action.values.push_back(value(argument));
      continue;
    }
    Node text;
    text.type = types_.find("string");
    action.values.push_back(value_as(argument, describe(text)));
  }
  return action;
}

// As printf(); the constant "" stands for what was there before, which is no format.
Action Sema::freopen_action(Node& call) {
  Node* name = call.children.size() > 1 ? call.children[1] : nullptr;
  if (name != nullptr && name->kind == NodeKind::string) {
    if (name->text == ".") {
      fail("D_FREOPEN_INVALID", *name, "freopen( ) argument #1 cannot be \".\"");
    }
    if (name->text.empty() && call.children.size() == 2) {
      Action action;
      action.kind = ActionKind::freopen;
      return action;
    }
  }
  Action action = printf_action(call);
  action.kind = ActionKind::freopen;
  return action;
}

void Sema::check_order(ActionOrder& before, ActionKind last, const Node& place) const {
  const auto [committed, speculates, recorded] = before;
  const auto refuse = [&](std::string_view tag, std::string_view message) {
    fail(tag, place, std::string(message));
  };
  if (last == ActionKind::commit) {
    if (committed) refuse("D_COMM_COMM", "commit( ) may not follow commit( )");
    if (recorded) refuse("D_COMM_DREC", "commit( ) may not follow data-recording action(s)");
  } else if (last == ActionKind::speculate) {
    if (speculates) refuse("D_SPEC_SPEC", "speculate( ) may not follow speculate( )");
    if (committed) refuse("D_SPEC_COMM", "speculate( ) may not follow commit( )");
    if (recorded) refuse("D_SPEC_DREC", "speculate( ) may not follow data-recording action(s)");
  } else if (last == ActionKind::aggregate) {
    if (committed) refuse("D_AGG_COMM", "aggregating actions may not follow commit( )");
    if (speculates) refuse("D_AGG_SPEC", "aggregating actions may not follow speculate( )");
  } else {
    if (speculates && is_destructive(last)) {
      refuse("D_ACT_SPEC", "destructive actions may not follow speculate( )");
    }
    if (speculates && last == ActionKind::exit) {
      refuse("D_EXIT_SPEC", "exit( ) may not follow speculate( )");
    }
    if (committed && is_recording(last)) {
      refuse("D_DREC_COMM", "data-recording actions may not follow commit( )");
    }
  }
  before.committed |= last == ActionKind::commit;
  before.speculates |= last == ActionKind::speculate;
  before.recorded |= last == ActionKind::aggregate || (is_recording(last) && !speculates);
}

}  // namespace dtmalloc::dtrace
