// SPDX-License-Identifier: BSD-2-Clause
// The actions that act on the consumer and its output: setopt, system, freopen, ftruncate.
// Counterpart:  dt_consume.c (dt_setopt), dt_printf.c (dtrace_system, dtrace_freopen)
#include <cerrno>
#include <cstring>
#include <utility>

#include "dtrace/consume/session_impl.hpp"

namespace dtmalloc::dtrace {
namespace {

std::string text_of(std::span<const std::byte> bytes) {
  const char* chars = reinterpret_cast<const char*>(bytes.data());
  return {chars, strnlen(chars, bytes.size())};
}

}  // namespace

Result<void> Session::Impl::check_sinks() const {
  for (const CompiledProgram& compiled : programs) {
    for (const Clause& clause : compiled.program->clauses) {
      for (const Action& action : clause.actions) {
        const char* missing = nullptr;
        if (action.kind == ActionKind::system && !sinks.system) missing = "system";
        if (action.kind == ActionKind::freopen && !sinks.freopen) missing = "freopen";
        if (action.kind == ActionKind::ftruncate && !sinks.ftruncate) missing = "ftruncate";
        if (missing == nullptr) continue;
        Diagnostic diagnostic;
        diagnostic.tag = "D_SIM_UNSUPPORTED";
        diagnostic.message = std::string(missing) +
                             "( ) is not supported by this program: " + "SessionSinks::" + missing +
                             " is not set";
        return diagnostic;
      }
    }
  }
  return {};
}

void Session::Impl::set_option_action(const Record& record, const RecordedAction& recorded) {
  const auto text = [&](std::size_t i) {
    const Field& field = recorded.fields[i];
    return text_of({record.bytes + field.offset, field.size});
  };
  const std::string name = text(0);
  const std::string value = recorded.fields.size() > 1 ? text(1) : "1";
  const Result<void> done = set_option(name, value);
  if (done) return;
  had_errors = true;
  message(error_head(*record.ecb) + "couldn't set option \"" + name + "\" to \"" + value +
          "\": " + done.error().message + "\n");
}

void Session::Impl::control_action(std::string& text, const Record& record,
                                   const RecordedAction& recorded) {
  const Action& action = *recorded.action;
  act_out(std::exchange(text, {}));
  if (action.kind == ActionKind::setopt) return set_option_action(record, recorded);
  if (action.kind == ActionKind::ftruncate) return sinks.ftruncate();
  if (action.format == nullptr) {
    reopened = nullptr;
    return;
  }
  std::vector<Datum> values;
  for (const Field& field : recorded.fields) {
    values.push_back({field.desc, {record.bytes + field.offset, field.size}});
  }
  std::string formatted;
  print_format(formatted, *action.format, values, time_format());
  formatted = formatted.substr(0, std::min<std::size_t>(formatted.find('\0'), strsize() - 1));
  if (action.kind == ActionKind::system) {
    if (const int error = sinks.system(formatted); error != 0)
      fail_processing(std::strerror(error));
    return;
  }
  int error = 0;
  TextSink file = sinks.freopen(formatted, &error);
  if (file) {
    reopened = std::move(file);
    return;
  }
  had_errors = true;
  message(error_head(*record.ecb) + "couldn't freopen() \"" + formatted +
          "\": " + std::strerror(error));
}

}  // namespace dtmalloc::dtrace
