// SPDX-License-Identifier: BSD-2-Clause
// The ledger as JSON: one object a line, keys with dashes as libxo has them.

#include <fmt/format.h>

#include <dtmalloc/report/ledger.hpp>
#include <dtmalloc/report/report.hpp>

namespace dtmalloc::report {
namespace {

// "key":value pairs in order.
class Object {
 public:
  Object& add(std::string_view key, const std::string& json) {
    text_ += (text_.empty() ? "" : ",") + json_string(key) + ':' + json;
    return *this;
  }
  Object& string(std::string_view key, std::string_view value) {
    return add(key, json_string(value));
  }
  template <typename Number>
  Object& number(std::string_view key, Number value) {
    return add(key, std::to_string(value));
  }
  std::string text() const { return '{' + text_ + '}'; }

 private:
  std::string text_;
};

template <typename Rows, typename Print>
std::string list(const Rows& rows, const Print& print) {
  std::string out;
  for (const auto& row : rows) {
    const std::string text = print(row);
    if (!text.empty()) out += (out.empty() ? "" : ",") + text;
  }
  return '[' + out + ']';
}

std::string hex(std::uint64_t address) { return fmt::format("{:#x}", address); }
std::string stack(const std::vector<std::string>& sites) {
  return list(sites, [](const std::string& site) { return json_string(site); });
}

std::string place(const LedgerPlace& p) {
  return Object()
      .number("event", p.sequence)
      .number("time", p.time)
      .number("cpu", p.cpu)
      .string("execname", p.execname)
      .number("tid", p.tid)
      .add("stack", stack(p.stack))
      .text();
}

std::string mismatch(const LedgerMismatch& pair) {
  return Object()
      .string("allocated-as", pair.allocated_as)
      .string("freed-as", pair.freed_as)
      .number("blocks", pair.blocks)
      .number("bytes", pair.bytes)
      .add("first-allocated", place(pair.first_allocated))
      .add("first-freed", place(pair.first_freed))
      .text();
}

std::string finding_text(const Finding& finding) {
  Object out;
  out.string("kind", name_of(finding.kind))
      .string("summary", summary(finding))
      .number("count", finding.count)
      .string("type", finding.type);
  if (!finding.other_type.empty()) out.string("other-type", finding.other_type);
  if (finding.address != 0) out.string("address", hex(finding.address));
  if (finding.base != 0) out.string("block", hex(finding.base));
  if (finding.bytes != 0) out.number("bytes", finding.bytes).number("request", finding.request);
  if (finding.allocated) out.add("allocated", place(*finding.allocated));
  if (finding.freed) out.add("freed", place(*finding.freed));
  if (finding.used) out.add("used", place(*finding.used));
  return out.text();
}

std::string dropped(const LedgerDropped& lost) {
  return Object()
      .number("blocks", lost.blocks)
      .number("stacks", lost.stacks)
      .number("names", lost.names)
      .number("past", lost.past)
      .number("findings", lost.findings)
      .text();
}

Object& type_head(Object& out, const LedgerType& type) {
  out.string("type", type.name);
  if (!type.symbol.empty()) out.string("symbol", type.symbol);
  if (type.unloaded) out.add("unloaded", "true");
  return out;
}

bool asked(const std::string& name, std::string_view type) {
  return type.empty() || name == type || name == std::string(type) + " (unloaded)";
}

std::string document(std::string_view name, const std::string& json) {
  return Object().add(name, json).text() + '\n';
}

std::string block(const LedgerBlock& b) {
  return Object()
      .string("type", b.type)
      .number("request", b.request)
      .number("bytes", b.bytes)
      .add("allocated", place(b.allocated))
      .text();
}

}  // namespace

std::string print_leaks_json(const Books& books, std::string_view type) {
  const std::string types = list(books.types, [&](const LedgerType& row) -> std::string {
    if (!asked(row.name, type) || (row.blocks == 0 && row.bytes == 0 && row.guarded == 0))
      return {};
    Object out;
    return type_head(out, row)
        .number("blocks", row.blocks)
        .number("bytes", row.bytes)
        .number("recorded", row.recorded)
        .number("requested", row.requested)
        .number("guarded", row.guarded)
        .number("guarded-bytes", row.guarded_bytes)
        .number("manual-bytes", row.manual_bytes)
        .text();
  });
  const std::string sites = list(books.sites, [&](const LeakSite& site) -> std::string {
    if (!asked(site.type, type)) return {};
    return Object()
        .string("type", site.type)
        .string("zone", site.zone)
        .number("blocks", site.blocks)
        .number("bytes", site.bytes)
        .number("requested", site.requested)
        .number("oldest", site.age)
        .string("address", hex(site.address))
        .add("stack", stack(site.stack))
        .text();
  });
  const std::string pairs = list(books.mismatches, [&](const LedgerMismatch& pair) -> std::string {
    return asked(pair.allocated_as, type) || asked(pair.freed_as, type) ? mismatch(pair)
                                                                        : std::string();
  });
  return document("leaks", Object()
                               .number("now", books.now)
                               .add("types", types)
                               .add("sites", sites)
                               .add("freed-under-another-type", pairs)
                               .add("dropped", dropped(books.dropped))
                               .text());
}

std::string print_peaks_json(const Books& books, std::string_view type) {
  const auto row = [](const LedgerType& t) {
    Object out;
    return type_head(out, t)
        .number("peak-blocks", t.peak_blocks)
        .number("peak-blocks-time", t.peak_blocks_time)
        .number("peak-bytes", t.peak_bytes)
        .number("peak-bytes-time", t.peak_bytes_time)
        .number("blocks", t.blocks)
        .number("bytes", t.bytes)
        .text();
  };
  const std::string types = list(books.types, [&](const LedgerType& t) {
    return asked(t.name, type) && (t.peak_blocks != 0 || t.blocks != 0) ? row(t) : std::string();
  });
  return document("peaks", Object().add("types", types).add("total", row(books.total)).text());
}

std::string print_waste_json(const Books& books, std::string_view type) {
  const auto type_row = [](const LedgerType& t) {
    Object out;
    return type_head(out, t)
        .number("blocks", t.blocks)
        .number("bytes", t.bytes)
        .number("requested", t.requested)
        .number("all-blocks", t.all_blocks)
        .number("all-requested", t.all_requested)
        .number("all-bytes", t.all_bytes)
        .text();
  };
  const std::string types = list(books.types, [&](const LedgerType& t) {
    return asked(t.name, type) && (t.all_blocks != 0 || t.blocks != 0) ? type_row(t)
                                                                       : std::string();
  });
  const std::string sizes = list(books.classes, [](const LedgerClass& size) {
    return Object()
        .number("class", size.size)
        .number("blocks", size.live_blocks)
        .number("bytes", size.live_bytes)
        .number("requested", size.live_requested)
        .number("all-blocks", size.all_blocks)
        .number("all-requested", size.all_requested)
        .number("all-bytes", size.all_bytes)
        .text();
  });
  return document("waste", Object()
                               .add("types", types)
                               .add("classes", sizes)
                               .add("total", type_row(books.total))
                               .add("freed-under-another-type", list(books.mismatches, mismatch))
                               .add("dropped", dropped(books.dropped))
                               .text());
}

std::string print_findings_json(const Books& books) {
  return document("findings", Object()
                                  .add("list", list(books.findings, finding_text))
                                  .number("not-shown", books.dropped.findings)
                                  .number("without-record", books.dropped.blocks)
                                  .text());
}

std::string print_series_json(const Books& books) {
  const auto sample = [](const LedgerSeries::Sample& s) {
    return Object()
        .number("time", s.time)
        .add("bytes", list(s.bytes, [](std::int64_t bytes) { return std::to_string(bytes); }))
        .text();
  };
  return document("series", Object()
                                .number("interval", books.series.interval)
                                .add("types", stack(books.series.types))
                                .add("samples", list(books.series.samples, sample))
                                .text());
}

std::string print_history_json(const AddressHistory& history) {
  Object out;
  out.string("name", history.name).string("address", hex(history.address));
  if (history.unset) out.add("unset", "true");
  out.add("past", list(history.past, [](const PastOwner& owner) {
            return Object()
                .add("block", block(owner.block))
                .string("freed-as", owner.freed_as)
                .add("freed", place(owner.freed))
                .text();
          }));
  if (history.live) out.add("live", block(*history.live));
  if (history.around)
    out.add("inside", block(*history.around)).string("block", hex(history.around->address));
  out.add("findings", list(history.findings, finding_text));
  return document("history", out.text());
}

}  // namespace dtmalloc::report
