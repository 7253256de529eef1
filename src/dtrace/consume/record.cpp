// SPDX-License-Identifier: BSD-2-Clause
// One record: its prefix, what its actions print, and the consumer's own actions.
// Counterpart:  dt_consume.c (dt_consume_cpu, dt_flowindent), dt_handle.c
#include <algorithm>
#include <cstring>
#include <utility>

#include "dtrace/consume/session_impl.hpp"

namespace dtmalloc::dtrace {
namespace {

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

std::span<const std::byte> bytes_of(const std::byte* record, const Field& field) {
  return {record + field.offset, field.size};
}

enum class Flow { none, entry, return_ };

Flow flow_of(std::string_view name) {
  if (name == "entry" || ends_with(name, "-entry")) return Flow::entry;
  if (name == "return" || ends_with(name, "-return")) return Flow::return_;
  return Flow::none;
}

}  // namespace

void Session::Impl::print_prefix(std::string& text, const Record& record) {
  const Probe& probe = *record.ecb->probe;
  const std::string name = std::string(probe.function.text) + ":" + std::string(probe.name.text);
  if (!options.is_set("flowindent")) {
    if (quiet()) return;
    if (!heading_printed) append(text, "%3s %6s %32s\n", "CPU", "ID", "FUNCTION:NAME");
    heading_printed = true;
    append(text, "%3d %6d %32s ", record.cpu, static_cast<int>(probe.id), name.c_str());
    return;
  }
  if (!heading_printed) append(text, "%3s %-41s\n", "CPU", "FUNCTION");
  heading_printed = true;
  // Of several clauses of one probe in a row the first shows an entry, the last a return.
  const auto another_of_probe = [&](const Ecb* ecb) {
    return ecb != nullptr && ecb != record.ecb && ecb->probe == &probe;
  };
  Flow flow = flow_of(probe.name.text);
  if (flow != Flow::none &&
      another_of_probe(flow == Flow::entry ? last_ecb : consumer.ecb(record.next)))
    flow = Flow::none;
  if (flow == Flow::return_) indent -= std::min<std::size_t>(indent, 2);
  const bool syscall = probe.provider_name.text == "syscall";
  std::string shown(indent, ' ');
  switch (flow) {
    case Flow::entry:
      shown += (syscall ? " => " : " -> ") + std::string(probe.function.text);
      indent += 2;
      break;
    case Flow::return_:
      shown += (syscall ? " <= " : " <- ") + std::string(probe.function.text);
      break;
    case Flow::none:
      shown += "| " + name;
      break;
  }
  append(text, "%3d %-41s ", record.cpu, shown.c_str());
}

std::string Session::Impl::enabled_probe(const Ecb& ecb) {
  const Probe& probe = *ecb.probe;
  std::string text;
  append(text, "enabled probe ID %u (ID %u: %s:%s:%s:%s)", ecb.epid, probe.id,
         std::string(probe.provider_name.text).c_str(), std::string(probe.module.text).c_str(),
         std::string(probe.function.text).c_str(), std::string(probe.name.text).c_str());
  return text;
}

std::string Session::Impl::error_head(const Ecb& ecb) {
  return "error on " + enabled_probe(ecb) + ": ";
}

// The record of the hidden ERROR clause.
void Session::Impl::print_error(const Record& record) {
  const std::vector<Field>& fields = record.ecb->recorded.at(0).fields;
  const auto value = [&](std::size_t i) {
    return unsigned_value(bytes_of(record.bytes, fields.at(i)));
  };
  const std::uint64_t epid = value(0);
  const std::uint64_t action = value(1);
  const auto offset = static_cast<std::int64_t>(value(2));
  const auto fault = static_cast<Fault>(value(3));
  const std::uint64_t address = value(4);
  const Ecb* failed = consumer.ecb(static_cast<std::uint32_t>(epid));
  DTM_CHECK(failed != nullptr, "an error of no clause");
  std::string text = error_head(*failed) + std::string(fault_text(fault));
  if (fault == Fault::badaddr || fault == Fault::badalign || fault == Fault::badstack) {
    append(text, " (0x%llx)", static_cast<unsigned long long>(address));
  }
  if (action == 0) {
    text += " in predicate";
  } else {
    append(text, " in action #%llu", static_cast<unsigned long long>(action));
  }
  if (offset >= 0) append(text, " at DIF offset %lld", static_cast<long long>(offset));
  had_errors = true;
  ++failed->errors;
  message(text);
}

AggDisplay Session::Impl::display() const {
  AggDisplay display;
  display.aggzoom = options.is_set("aggzoom");
  display.aggpack = options.is_set("aggpack");
  display.agghist = options.is_set("agghist");
  display.encoding = static_cast<Encoding>(options.get("encoding"));
  return display;
}

void Session::Impl::print_aggregations(std::string& text, const Action& action) {
  std::vector<const AggTable*> tables;
  for (const std::uint32_t id : action.printed) {
    if (const AggTable* table = aggregations.table(id); table != nullptr) tables.push_back(table);
  }
  if (tables.empty()) return;
  const std::vector<AggRow> rows = sorted_rows(tables, options, strsize());
  if (action.format == nullptr) {
    text += '\n';
    print_rows(text, tables, rows, symbol_text(), display());
  } else {
    for (const AggRow& row : rows) {
      print_format_row(text, *action.format, tables, row, time_format(), display());
    }
  }
  for (const AggTable* table : tables) {
    if (!rows.empty()) aggregations.table(table->desc.id)->printed = true;
  }
}

void Session::Impl::do_action(std::string& text, const Record& record,
                              const RecordedAction& recorded) {
  const Action& action = *recorded.action;
  const auto field = [&](std::size_t i) { return bytes_of(record.bytes, recorded.fields.at(i)); };
  switch (action.kind) {
    case ActionKind::eval:
    case ActionKind::aggregate:
      break;
    case ActionKind::trace:
      if (const ValueForm form = recorded.fields.at(0).desc.form; form != ValueForm::plain) {
        symbol_text().print(text, form, field(0));
        break;
      }
      print_traced(text, field(0), quiet(), options.is_set("rawbytes"));
      break;
    case ActionKind::print:
      print_typed(text, catalog.types(), {recorded.fields.at(0).desc, field(0)});
      break;
    case ActionKind::tracemem: {
      const std::span<const std::byte> bytes = field(recorded.fields.size() - 1);
      const std::uint64_t wanted = recorded.fields.size() > 1 ? unsigned_value(field(0)) : 0;
      print_dump(text, wanted == 0 || wanted > bytes.size() ? bytes : bytes.first(wanted));
      break;
    }
    case ActionKind::printm: {
      const std::span<const std::byte> bytes = field(0);
      const std::uint64_t length = unsigned_value(bytes.first(8));
      if (length != 0) print_dump(text, bytes.subspan(8, length));
      break;
    }
    case ActionKind::printf: {
      std::vector<Datum> values;
      for (std::size_t i = 0; i < recorded.fields.size(); ++i) {
        values.push_back({recorded.fields[i].desc, field(i)});
      }
      if (action.format != nullptr) print_format(text, *action.format, values, time_format());
      break;
    }
    case ActionKind::printa:
      print_aggregations(text, action);
      break;
    case ActionKind::exit:
      exit_status = static_cast<int>(signed_value(field(0)));
      exited = exited || record.ecb->role != EcbRole::end;
      break;
    case ActionKind::clear:
      aggregations.clear(action.aggregation);
      break;
    case ActionKind::trunc:
      aggregations.trunc(action.aggregation,
                         recorded.fields.size() > 1 ? signed_value(field(1)) : 0);
      break;
    case ActionKind::normalize:
      if (AggTable* table = aggregations.table(action.aggregation); table != nullptr) {
        const std::uint64_t normal = unsigned_value(field(1));
        if (normal == 0) return fail_processing("Invalid normalization");
        table->normal = normal;
      }
      break;
    case ActionKind::denormalize:
      if (AggTable* table = aggregations.table(action.aggregation); table != nullptr) {
        table->normal = 1;
      }
      break;
    case ActionKind::setopt:
    case ActionKind::ftruncate:
    case ActionKind::system:
    case ActionKind::freopen:
      control_action(text, record, recorded);
      break;
    default:
      DTM_CHECK(false, "an action without a printer");
  }
}

void Session::Impl::print_record(const Record& record) {
  if (record.ecb->role == EcbRole::hidden_error) {
    print_error(record);
    last_ecb = record.ecb;
    return;
  }
  if (document) {
    structured_record(record);
    return;
  }
  // freopen() moves what actions print, not what surrounds it.
  std::string text;
  print_prefix(text, record);
  last_ecb = record.ecb;
  if (reopened) out(std::exchange(text, {}));
  for (const RecordedAction& action : record.ecb->recorded) {
    do_action(text, record, action);
    if (aborted) break;
  }
  if (reopened) act_out(std::exchange(text, {}));
  if (!quiet() && !aborted) text += '\n';
  out(text);
}

void Session::Impl::print_unprinted() {
  for (auto& [id, table] : aggregations.tables()) {
    if (table.printed) continue;
    std::string text;
    const std::vector<const AggTable*> tables = {&table};
    print_rows(text, tables, sorted_rows(tables, options, strsize()), symbol_text(), display());
    act_out(text);
  }
}

}  // namespace dtmalloc::dtrace
