// SPDX-License-Identifier: BSD-2-Clause
// Structured output (oformat): an object for each record, with what its actions print.
// Counterpart:  dt_oformat.c, dt_print.c (dt_format_member)
// Differs:      the identifiers of types are our own; a document is printed even if no action
//               prints.
#include <algorithm>
#include <array>
#include <cstring>

#include "dtrace/consume/session_impl.hpp"

namespace dtmalloc::dtrace {
namespace {

// The kinds of drops, in the order of their numbers (spec/dtrace.md 6.4).
constexpr std::array<std::string_view, 10> kDropKinds = {
    "DTRACEDROP_PRINCIPAL", "DTRACEDROP_AGGREGATION", "DTRACEDROP_DYNAMIC",
    "DTRACEDROP_DYNRINSE",  "DTRACEDROP_DYNDIRTY",    "DTRACEDROP_SPEC",
    "DTRACEDROP_SPECBUSY",  "DTRACEDROP_SPECUNAVAIL", "DTRACEDROP_STKSTROVERFLOW",
    "DTRACEDROP_DBLERROR",
};

std::string hexadecimal(std::span<const std::byte> bytes) {
  std::string text = "0x";
  for (const std::byte byte : bytes) {
    append(text, "%02x", std::to_integer<unsigned>(byte));
  }
  return text;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  const char* text = reinterpret_cast<const char*>(bytes.data());
  return {text, strnlen(text, bytes.size())};
}

// A value as trace() shows it, without its columns.
void value_of(Document& document, std::string_view name, const ValueDesc& desc,
              std::span<const std::byte> bytes) {
  if (desc.is_string) {
    document.text(name, text_of(bytes));
    return;
  }
  switch (bytes.size()) {
    case 8:
    case 4:
      document.number(name, signed_value(bytes));
      break;
    case 2:
    case 1:
      document.number(name, unsigned_value(bytes));
      break;
    default:
      document.text(name, hexadecimal(bytes));
      break;
  }
}

// "kernel`malloc+0x68" taken apart; an address without a symbol has no parts.
void symbol_parts(Document& document, std::string_view text, std::string_view module) {
  const std::size_t tick = text.find('`');
  if (tick == std::string_view::npos) return;
  const std::string_view name = text.substr(tick + 1);
  const std::size_t plus = name.find('+');
  document.text(module, text.substr(0, tick));
  document.text("name", name.substr(0, plus));
  if (plus != std::string_view::npos) document.text("offset", name.substr(plus + 1));
}

// Stacks and symbols, as fields of the instance that is open.
void form_of(Document& document, const SymbolText& symbols, ValueForm form,
             std::span<const std::byte> bytes) {
  switch (form) {
    case ValueForm::stack:
    case ValueForm::ustack: {
      const std::string list = form == ValueForm::stack ? "stack-frames" : "ustack-frames";
      document.open_list(list);
      for (std::size_t at = form == ValueForm::stack ? 0 : 8; at + 8 <= bytes.size(); at += 8) {
        const std::uint64_t pc = unsigned_value(bytes.subspan(at, 8));
        if (pc == 0) break;
        const std::string text = symbols.address(pc);
        document.open_instance(list);
        document.text("symbol", text);
        symbol_parts(document, text, "module");
        document.close();
      }
      document.close();
      return;
    }
    case ValueForm::sym: {
      const std::string text = symbols.symbol(form, bytes);
      document.text("sym", text);
      if (text.find('`') == std::string::npos) document.text("offset", text);
      symbol_parts(document, text, "object");
      return;
    }
    case ValueForm::mod:
      document.text("mod", symbols.symbol(form, bytes));
      return;
    case ValueForm::usym:
      document.text("usym", symbols.symbol(form, bytes));
      return;
    case ValueForm::umod:
      document.text("umod", symbols.symbol(form, bytes));
      return;
    case ValueForm::uaddr:
      document.text("uaddr", symbols.symbol(form, bytes));
      return;
    case ValueForm::plain:
      return;
  }
}

// print(): one instance for the type, one for each member.
class TypeWriter {
 public:
  TypeWriter(Document& document, const TypeTable& types) : document_(document), types_(types) {}

  void write(std::string_view member, TypeId id, std::span<const std::byte> bytes,
             unsigned bit = 0) {
    const Type& type = types_[types_.resolve(id)];
    document_.open_instance("type");
    if (std::exchange(outermost_, false)) document_.text("object-name", "kernel");
    if (!member.empty()) document_.text("member-name", member);
    document_.text("name", types_[id].name);
    document_.number("ctfid", std::uint64_t{id});
    const bool structure = type.kind == TypeKind::struct_ || type.kind == TypeKind::union_;
    if (!structure) value(type, bytes, bit);
    document_.close();
    if (!structure) return;
    for (const Member& part : type.members) {
      write(part.name, part.type, bytes.subspan(part.offset, size_of(part.type)), part.bit);
    }
  }

 private:
  // Of a bit-field: of the unit that holds it.
  std::size_t size_of(TypeId id) const {
    const Type& type = types_[types_.resolve(id)];
    return type.bits != 0 ? types_[types_.resolve(type.target)].size : type.size;
  }
  void value(const Type& type, std::span<const std::byte> bytes, unsigned bit) {
    const bool array = type.kind == TypeKind::array;
    if (type.kind == TypeKind::string || (array && types_[types_.resolve(type.target)].is_char)) {
      document_.text("value", text_of(bytes));
    } else if (array) {
      const std::size_t size = size_of(type.target);
      document_.open_list("value");
      for (std::size_t i = 0; i < type.count; ++i) {
        write({}, type.target, bytes.subspan(i * size, size));
      }
      document_.close();
    } else if (type.kind == TypeKind::enum_) {
      const std::int64_t number = signed_value(bytes);
      const auto named = std::find_if(type.enumerators.begin(), type.enumerators.end(),
                                      [&](const Enumerator& each) { return each.value == number; });
      document_.text("value",
                     named != type.enumerators.end() ? named->name : std::to_string(number));
    } else {
      std::uint64_t number = unsigned_value(bytes);
      if (type.bits != 0) number = number >> bit & (~std::uint64_t{0} >> (64 - type.bits));
      std::string text;
      append(text, "%#llx", static_cast<unsigned long long>(number));
      document_.text("value", text);
    }
  }

  Document& document_;
  const TypeTable& types_;
  bool outermost_ = true;
};

void aggregation(Document& document, const AggTable& table, const std::vector<AggRow>& rows,
                 std::size_t at, const SymbolText& symbols) {
  const AggSpec& spec = table.spec;
  const BucketValues values(spec);
  document.open_list("aggregation-data");
  for (const AggRow& row : rows) {
    const std::vector<std::int64_t>& data = *row.data[at];
    document.open_instance("aggregation-data");
    document.open_list("keys");
    for (const KeyPart& part : row.parts) {
      const std::span<const std::byte> bytes = std::as_bytes(std::span(part.bytes));
      if (part.desc.form != ValueForm::plain) {
        document.open_instance("keys");
        form_of(document, symbols, part.desc.form, bytes);
        document.close();
      } else if (part.desc.is_string) {
        document.element(std::string_view(part.bytes));
      } else if (bytes.size() == 4 || bytes.size() == 8) {
        document.element(signed_value(bytes));
      } else if (bytes.size() < 4) {
        document.element(static_cast<std::int64_t>(unsigned_value(bytes)));
      } else {
        document.element(hexadecimal(bytes));
      }
    }
    document.close();
    if (is_distribution(spec.function)) {
      const Buckets shown = shown_buckets(spec, data);
      document.open_list("buckets");
      for (std::size_t i = shown.first; i <= shown.last; ++i) {
        document.open_instance("buckets");
        document.number("value", values.value(i));
        document.number(
            "count", static_cast<std::int64_t>(static_cast<std::uint64_t>(data[i]) / table.normal));
        document.close();
      }
      document.close();
    } else if (spec.function == AggFunction::avg || spec.function == AggFunction::stddev) {
      document.number(to_string(spec.function), element_value(spec, data, table.normal));
    } else {
      document.number(to_string(spec.function),
                      divide_wrapping(data[0], static_cast<std::int64_t>(table.normal)));
    }
    document.close();
  }
  document.close();
  document.text("aggregation-name", table.desc.name);
}

bool prints(ActionKind kind) {
  switch (kind) {
    case ActionKind::trace:
    case ActionKind::print:
    case ActionKind::printf:
    case ActionKind::printa:
    case ActionKind::tracemem:
    case ActionKind::printm:
    case ActionKind::stack:
    case ActionKind::ustack:
    case ActionKind::symbol:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Session::Impl::begin_document() {
  const std::uint64_t style = options.get("oformat");
  if (style == 0) return;
  document.emplace(static_cast<Document::Style>((style & 3) - 1), (style & 4) != 0);
  document->open_container("dtrace");
  document->open_list("probes");
}

void Session::Impl::structured_record(const Record& record) {
  const auto& recorded = record.ecb->recorded;
  const bool any = std::any_of(recorded.begin(), recorded.end(), [](const RecordedAction& action) {
    return prints(action.action->kind);
  });
  if (any) {
    const Probe& probe = *record.ecb->probe;
    document->open_instance("probes");
    document->number("timestamp", static_cast<std::uint64_t>(framework.cpus().clock().wall()));
    document->number("cpu", std::int64_t{record.cpu});
    document->number("id", std::uint64_t{probe.id});
    document->text("provider", probe.provider_name.text);
    document->text("module", probe.module.text);
    document->text("function", probe.function.text);
    document->text("name", probe.name.text);
    document->open_list("output");
  }
  for (const RecordedAction& action : recorded) {
    if (prints(action.action->kind)) {
      structured_action(record, action);
    } else {
      std::string nothing;
      do_action(nothing, record, action);
    }
    if (aborted) break;
  }
  if (any) {
    document->close();
    document->close();
  }
  out(document->take());
}

void Session::Impl::structured_action(const Record& record, const RecordedAction& recorded) {
  const Action& action = *recorded.action;
  const auto bytes = [&](std::size_t i) {
    const Field& field = recorded.fields.at(i);
    return std::span<const std::byte>(record.bytes + field.offset, field.size);
  };
  const auto instance = [&](const auto& content) {
    document->open_instance("output");
    content();
    document->close();
  };
  switch (action.kind) {
    case ActionKind::trace:
      instance([&] {
        const ValueDesc& desc = recorded.fields[0].desc;
        if (desc.form != ValueForm::plain) {
          form_of(*document, symbol_text(), desc.form, bytes(0));
        } else {
          value_of(*document, "value", desc, bytes(0));
        }
      });
      break;
    case ActionKind::print:
      instance([&] {
        document->open_list("type");
        TypeWriter(*document, catalog.types()).write({}, recorded.fields[0].desc.type, bytes(0));
        document->close();
      });
      break;
    case ActionKind::printf: {
      std::vector<Datum> values;
      for (std::size_t i = 0; i < recorded.fields.size(); ++i) {
        values.push_back({recorded.fields[i].desc, bytes(i)});
      }
      instance([&] {
        std::string text;
        print_format(text, *action.format, values, time_format());
        document->text("message", text);
      });
      for (const Datum& datum : values) {
        instance([&] { value_of(*document, "value", datum.desc, datum.bytes); });
      }
      if (values.empty()) instance([&] { document->number("value", std::int64_t{0}); });
      break;
    }
    case ActionKind::printa:
      structured_aggregations(action.printed);
      break;
    case ActionKind::tracemem: {
      const std::span<const std::byte> memory = bytes(recorded.fields.size() - 1);
      const std::uint64_t wanted = recorded.fields.size() > 1 ? unsigned_value(bytes(0)) : 0;
      instance([&] {
        const bool whole = wanted == 0 || wanted > memory.size();
        document->text("tracemem", hexadecimal(whole ? memory : memory.first(wanted)));
      });
      break;
    }
    case ActionKind::printm:
      instance([&] {
        const std::span<const std::byte> memory = bytes(0);
        document->text("printm", hexadecimal(memory.subspan(8, unsigned_value(memory.first(8)))));
      });
      break;
    default: {
      // What has no form of its own is its text.
      std::string text;
      do_action(text, record, recorded);
      instance([&] { document->text("value", text); });
      break;
    }
  }
}

void Session::Impl::structured_aggregations(const std::vector<std::uint32_t>& ids) {
  std::vector<const AggTable*> tables;
  for (const std::uint32_t id : ids) {
    if (AggTable* table = aggregations.table(id); table != nullptr) tables.push_back(table);
  }
  if (tables.empty()) return;
  const std::vector<AggRow> rows = sorted_rows(tables, options, strsize());
  for (std::size_t i = 0; i < tables.size(); ++i) {
    document->open_instance("output");
    aggregation(*document, *tables[i], rows, i, symbol_text());
    document->close();
    if (!rows.empty()) aggregations.table(tables[i]->desc.id)->printed = true;
  }
}

void Session::Impl::structured_drop(std::string_view tag, std::uint64_t count,
                                    const std::string& text, int cpu) {
  const auto* kind = std::find(kDropKinds.begin(), kDropKinds.end(), tag);
  document->open_instance("probes");
  document->number("cpu", std::int64_t{cpu});
  document->number("id", std::int64_t{-1});
  document->text("provider", "dtrace");
  document->text("module", "INTERNAL");
  document->text("function", "INTERNAL");
  document->text("name", "DROP");
  document->number("timestamp", static_cast<std::uint64_t>(framework.cpus().clock().wall()));
  document->number("count", count);
  document->number("total", drop_totals[std::string(tag)]);
  document->number("kind", static_cast<std::int64_t>(kind - kDropKinds.begin()));
  document->text("msg", text + "\n");
  document->close();
  out(document->take());
}

void Session::Impl::end_document() {
  std::vector<std::uint32_t> ids;
  for (const auto& [id, table] : aggregations.tables()) {
    if (!table.printed && !table.elements.empty()) ids.push_back(id);
  }
  if (print_at_exit && !ids.empty()) {
    document->open_instance("probes");
    document->open_list("output");
    for (const std::uint32_t id : ids) structured_aggregations({id});
    document->close();
    document->close();
  }
  document->finish();
  out(document->take());
}

}  // namespace dtmalloc::dtrace
