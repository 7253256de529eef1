// SPDX-License-Identifier: BSD-2-Clause
// The table and the JSON object of `dtmalloc overhead`.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "overhead.hpp"

namespace dtmalloc::sim {
namespace {

// --- text

// A number with three digits that count, and no exponent.
std::string number(double value) {
  const double size = std::abs(value);
  const int digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  return fmt::format("{:.{}f}", value, digits);
}
// 1234567 -> "1.23 million"
std::string large(double value) {
  static constexpr std::pair<double, const char*> kUnits[] = {
      {1e9, " billion"}, {1e6, " million"}, {1e3, " thousand"}};
  for (const auto& [size, name] : kUnits)
    if (value >= size) return number(value / size) + name;
  return number(value);
}
std::string bounds(const Estimate& over) { return number(over.low) + " to " + number(over.high); }
// What is known of a difference: a number, its bounds alone, or that it is lost in the noise.
std::string difference(const Estimate& over) {
  switch (certainty(over)) {
    case Certainty::clear:
      return fmt::format("{:+.{}f}", over.value, std::abs(over.value) >= 10 ? 1 : 2) + " (" +
             bounds(over) + ")";
    case Certainty::vague:
      return bounds(over);
    case Certainty::noise:
      break;
  }
  return "below the noise (" + bounds(over) + ")";
}
std::string percent(const Estimate& over, double base) {
  return certainty(over) == Certainty::clear && base > 0 ? number(over.value / base * 100) + " %"
                                                         : "-";
}
std::string duration(double ns) {
  if (ns >= 1e9) return number(ns / 1e9) + " s";
  if (ns >= 1e6) return number(ns / 1e6) + " ms";
  return number(ns / 1e3) + " us";
}
std::string plural(std::uint64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}
// Words in lines of at most 96 columns, behind a label.
std::string wrapped(const std::string& label, std::string_view text) {
  constexpr std::size_t kColumns = 96;
  std::string out, row = label;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (row.size() + word.size() > kColumns && row.size() > label.size()) {
      row.erase(row.find_last_not_of(' ') + 1);
      out += row + '\n';
      row.assign(label.size(), ' ');
    }
    row += std::string(word) + ' ';
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  row.pop_back();
  return out + row + '\n';
}
// A name in its column; a longer one has a line to itself.
std::string column(std::string name, std::size_t width) {
  if (name.size() < width) return name + std::string(width - name.size(), ' ');
  return std::move(name) + "\n" + std::string(width, ' ');
}

constexpr std::size_t kName = 36;

void line(std::string& out, const std::string& name, double ns, const std::string& over,
          const std::string& part, const std::string& firing) {
  out +=
      column(name, kName) + fmt::format("{:>9}  {:<31}{:>8}{:>11}", number(ns), over, part, firing);
  out.erase(out.find_last_not_of(' ') + 1);
  out += '\n';
}

void ways(std::string& out, const Overhead& o) {
  out +=
      fmt::format("{:<36}{:>9}  {:<31}{:>8}{:>11}\n", "", "ns/op", "difference", "", "ns/firing");
  line(out, "hooks absent", o.absent, "", "", "");
  line(out, "hooks disabled", o.disabled.ns, difference(o.disabled.over),
       percent(o.disabled.over, o.absent), "");
  const auto enabled = [&](const std::string& name, const Overhead::Cost& cost,
                           std::uint64_t firings) {
    const double each = o.per_operation(firings);
    const bool known = each > 0 && certainty(cost.over) == Certainty::clear;
    line(out, name, cost.ns, difference(cost.over), percent(cost.over, o.disabled.ns),
         known ? number(cost.over.value / each) : "-");
  };
  for (const Overhead::Probe& probe : o.probes)
    enabled(probe.description + ", empty", probe.empty, probe.firings);
  if (o.all_empty) enabled("all of these, empty", *o.all_empty, o.firings);
  if (o.traced)
    enabled(o.clause.size() == 1 ? "with the clause" : "with all clauses", o.clauses, o.firings);
}

void clauses(std::string& out, const Overhead& o) {
  if (o.clause.empty()) return;
  out += fmt::format("\n{:<36}{:>9}  {:<31}{:>8}{:>11}\n", "clause", "firings", "ns/op", "share",
                     "record");
  bool depends = false;
  for (std::size_t i = 0; i < o.clause.size(); ++i) {
    const Overhead::Clause& clause = o.clause[i];
    out += column(fmt::format("{} {} {}", i + 1, clause.place, clause.description), kName);
    out +=
        fmt::format("{:>9}  {:<31}{:>8}{:>11}", number(o.per_operation(clause.firings)),
                    difference(clause.cost),
                    certainty(clause.cost) == Certainty::noise ? "-" : number(clause.share) + " %",
                    clause.record == 0 ? "-" : plural(clause.record, "byte"));
    out += '\n';
    if (clause.needs.empty()) continue;
    depends = true;
    out += "  beside";
    for (const std::size_t other : clause.needs) out += " " + std::to_string(other + 1);
    out += ", whose variables it reads\n";
  }
  if (o.clause.size() > 1)
    out += std::string("each alone") + (depends ? ", or beside those it needs" : "") +
           "; the sum counts what they share several times\n";
  if (o.aggregations.empty()) return;
  out += fmt::format("\n{:<36}{:>9}  {:<31}{:>8}{:>11}\n", "aggregation", "elements", "ns/op",
                     "share", "bytes");
  for (const Overhead::Aggregation& each : o.aggregations) {
    out += column(each.name, kName) +
           fmt::format("{:>9}  {:<31}{:>8}{:>11}\n", each.elements, difference(each.cost),
                       certainty(each.cost) == Certainty::noise ? "-" : number(each.share) + " %",
                       each.bytes);
  }
}

void events(std::string& out, const Overhead& o) {
  const double firings = o.per_operation(o.firings);
  out += '\n';
  out += wrapped("firings       ",
                 number(firings) + " an operation, " + large(firings * o.operations_per_second()) +
                     " a virtual second, " + large(per_second(firings, o.tracing().ns)) +
                     " a second of this host's CPU");
  const Estimate& over = o.tracing().over;
  const auto part = [&](double ns) { return number(cpu_percent(ns, o.operations_per_second())); };
  std::string text;
  switch (certainty(over)) {
    case Certainty::clear:
      text = part(over.value);
      break;
    case Certainty::vague:
      text = part(over.low) + " to " + part(over.high);
      break;
    case Certainty::noise:
      text = "at most " + part(std::max(over.high, 0.0));
  }
  out += wrapped("one CPU       ", text + " % of it for tracing, at the workload's rate of " +
                                       large(o.operations_per_second()) +
                                       " operations a virtual second");
}

void principal_buffers(std::string& out, const Overhead& o) {
  const dtrace::TraceFigures& f = o.figures;
  const double bytes = o.record_bytes();
  const std::uint64_t dropped = o.drops("DTRACEDROP_PRINCIPAL");
  const std::uint64_t made = o.records() + dropped;
  std::string text = "a CPU's " + plural(f.bufsize, "byte");
  if (bytes <= 0) {
    text = "nothing is recorded: no record is lost";
  } else if (!f.switches) {
    text += " hold " + large(static_cast<double>(f.bufsize) / bytes) + " records of " +
            number(bytes) + " bytes, and are read at the end";
  } else {
    text += ", read every " + duration(static_cast<double>(f.switchrate)) + ", fill at " +
            large(fills_at(f.bufsize, bytes, f.switchrate).value_or(0)) + " records a second of " +
            number(bytes) + " bytes; the workload makes " +
            large(per_second(static_cast<double>(made), static_cast<double>(o.whole_virtual_ns))) +
            " a virtual second on all CPUs; ";
    text += dropped == 0 ? "none was dropped"
                         : plural(dropped, "drop") + " of " + std::to_string(made) +
                               ", and what is dropped costs less than what is recorded";
  }
  out += wrapped("buffers       ", text);
}

void aggregation_buffers(std::string& out, const Overhead& o) {
  const dtrace::TraceFigures& f = o.figures;
  if (f.aggregations.empty()) return;
  std::uint64_t elements = 0, taken = 0;
  for (const auto& each : f.aggregations) {
    elements += each.elements;
    taken += each.bytes;
  }
  const std::uint64_t lost = o.drops("DTRACEDROP_AGGREGATION");
  const double mean =
      elements == 0 ? 0 : static_cast<double>(taken) / static_cast<double>(elements);
  std::string text = "a CPU's " + plural(f.aggsize, "byte") + " hold ";
  if (const auto fit = elements_that_fit(f.aggregation_room, mean))
    text += plural(*fit, "element") + " of " + number(mean) + " bytes, there are " +
            std::to_string(elements) + ": ";
  else
    text += "no element yet: ";
  text += lost != 0                    ? plural(lost, "drop")
          : taken > f.aggregation_room ? "none was dropped, as passes came in time"
                                       : "with these keys they never drop";
  out += wrapped("aggregations  ", text);
}

void buffers(std::string& out, const Overhead& o) {
  if (!o.traced) return;
  principal_buffers(out, o);
  aggregation_buffers(out, o);
  for (const auto& [tag, count] : o.figures.drops) {
    if (tag == "DTRACEDROP_PRINCIPAL" || tag == "DTRACEDROP_AGGREGATION") continue;
    out += "drops         " + std::to_string(count) + " of " + tag + "\n";
  }
}

void confidence(std::string& out, const Overhead& o) {
  for (const std::string& note : o.notes) out += wrapped("note          ", note);
  out += fmt::format(
      "confidence    {} of {} interleaved rounds were quiet; the rounds spread by {} %; seed {}, "
      "{} s\n",
      o.quiet, o.rounds, number(o.spread), o.seed, number(o.seconds));
  out += o.noisy() ? "              THE MACHINE IS NOISY: read the bounds, not the numbers, or "
                     "measure again when it is idle\n"
                   : "              medians, with bounds of 95 % confidence; hooks disabled is "
                     "compared with absent,\n"
                     "              all else with hooks disabled\n";
}

// --- JSON

class Json {
 public:
  std::string text() && { return std::move(text_) + "\n"; }
  Json& open(std::string_view name, char bracket = '{') {
    key(name);
    text_ += bracket;
    first_ = true;
    return *this;
  }
  Json& close(char bracket = '}') {
    text_ += bracket;
    first_ = false;
    return *this;
  }
  Json& value(std::string_view name, std::string_view text) {
    key(name);
    quote(text);
    return *this;
  }
  Json& value(std::string_view name, const char* text) {
    return value(name, std::string_view(text));
  }
  Json& value(std::string_view name, bool yes) { return raw(name, yes ? "true" : "false"); }
  Json& value(std::string_view name, double value) {
    return raw(name, std::isfinite(value) ? fmt::format("{}", value) : "null");
  }
  template <std::unsigned_integral T>
  Json& value(std::string_view name, T value) {
    return raw(name, std::to_string(value));
  }
  Json& null(std::string_view name) { return raw(name, "null"); }
  // The members of a difference.
  Json& estimate(const Estimate& over) {
    const Certainty known = certainty(over);
    return value("ns", over.value)
        .value("low", over.low)
        .value("high", over.high)
        .value("certainty", known == Certainty::clear   ? "clear"
                            : known == Certainty::vague ? "vague"
                                                        : "noise");
  }

 private:
  Json& raw(std::string_view name, std::string_view text) {
    key(name);
    text_ += text;
    return *this;
  }
  void key(std::string_view name) {
    if (!first_) text_ += ',';
    first_ = false;
    if (name.empty()) return;
    quote(name);
    text_ += ':';
  }
  void quote(std::string_view text) {
    text_ += '"';
    for (const char c : text) {
      if (c == '"' || c == '\\') text_ += '\\';
      if (static_cast<unsigned char>(c) < 0x20)
        text_ += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
      else
        text_ += c;
    }
    text_ += '"';
  }
  std::string text_;
  bool first_ = true;
};

void cost(Json& json, std::string_view name, const Overhead& o, const Overhead::Cost& cost,
          double base, std::uint64_t firings) {
  const double each = o.per_operation(firings);
  json.open(name).value("ns_per_operation", cost.ns).open("over").estimate(cost.over).close();
  json.value("percent", base > 0 ? cost.over.value / base * 100 : 0);
  if (each > 0)
    json.value("ns_per_firing", cost.over.value / each);
  else
    json.null("ns_per_firing");
  json.close();
}

void json_clauses(Json& json, const Overhead& o) {
  json.open("clauses", '[');
  for (const Overhead::Clause& clause : o.clause) {
    json.open("")
        .value("place", clause.place)
        .value("description", clause.description)
        .value("firings_per_operation", o.per_operation(clause.firings));
    json.open("cost").estimate(clause.cost).close();
    json.value("share_percent", clause.share)
        .value("record_bytes", clause.record)
        .value("records", clause.records);
    json.open("needs", '[');
    for (const std::size_t other : clause.needs) json.value("", other);
    json.close(']').close();
  }
  json.close(']').open("aggregations", '[');
  for (const Overhead::Aggregation& each : o.aggregations) {
    json.open("").value("name", each.name);
    json.open("cost").estimate(each.cost).close();
    json.value("share_percent", each.share)
        .value("elements", each.elements)
        .value("bytes", each.bytes)
        .close();
  }
  json.close(']');
}

void json_buffers(Json& json, const Overhead& o) {
  if (!o.traced) {
    json.null("buffers");
    return;
  }
  const dtrace::TraceFigures& f = o.figures;
  const double bytes = o.record_bytes();
  json.open("buffers")
      .value("bufsize", f.bufsize)
      .value("switchrate_ns", f.switchrate)
      .value("policy_switch", f.switches)
      .value("records", o.records())
      .value("record_bytes", bytes);
  const auto full = fills_at(f.bufsize, bytes, f.switches ? f.switchrate : 0);
  full ? json.value("full_at_records_per_second", *full) : json.null("full_at_records_per_second");
  json.value("records_per_virtual_second",
             per_second(static_cast<double>(o.records() + o.drops("DTRACEDROP_PRINCIPAL")),
                        static_cast<double>(o.whole_virtual_ns)));
  std::uint64_t elements = 0, taken = 0;
  for (const auto& each : f.aggregations) {
    elements += each.elements;
    taken += each.bytes;
  }
  json.value("aggsize", f.aggsize)
      .value("aggrate_ns", f.aggrate)
      .value("aggregation_elements", elements)
      .value("aggregation_bytes", taken)
      .value("aggregation_room_bytes", f.aggregation_room);
  json.open("drops");
  for (const auto& [tag, count] : f.drops) json.value(tag, count);
  json.close().close();
}

}  // namespace

std::uint64_t Overhead::records() const {
  std::uint64_t sum = 0;
  for (const Clause& each : clause) sum += each.records;
  return sum;
}

double Overhead::record_bytes() const {
  double bytes = 0, most = 0;
  for (const Clause& each : clause) {
    bytes += static_cast<double>(each.records) * each.record;
    most = std::max<double>(most, each.record);
  }
  // Nothing was read: what would be.
  return records() == 0 ? most : bytes / static_cast<double>(records());
}

std::uint64_t Overhead::drops(const char* tag) const {
  const auto found = figures.drops.find(tag);
  return found == figures.drops.end() ? 0 : found->second;
}

std::string overhead_text(const Overhead& o) {
  std::string out = "overhead of ";
  out += !o.traced ? "dtmalloc's probes" : plural(o.clause.size(), "clause");
  out += " on " + o.workload + ":\n" + plural(o.operations, "operation") + " a run, " +
         duration(static_cast<double>(o.virtual_ns)) + " of virtual time";
  if (o.cut) out += ", the beginning of the workload";
  if (o.passes > 1)
    out += ", the workload done " + plural(o.passes - 1, "time") + " after a warm-up";
  else if (o.warm)
    out += ", after its first quarter";
  out += "\n\n";
  ways(out, o);
  clauses(out, o);
  events(out, o);
  buffers(out, o);
  confidence(out, o);
  return out;
}

std::string overhead_json(const Overhead& o) {
  Json json;
  json.open("")
      .value("workload", o.workload)
      .value("passes", o.passes)
      .value("operations", o.operations)
      .value("virtual_ns", o.virtual_ns)
      .value("cut", o.cut)
      .value("absent_ns_per_operation", o.absent);
  cost(json, "disabled", o, o.disabled, o.absent, 0);
  json.open("probes", '[');
  for (const Overhead::Probe& probe : o.probes) {
    json.open("")
        .value("description", probe.description)
        .value("matched", probe.probes)
        .value("firings_per_operation", o.per_operation(probe.firings));
    cost(json, "empty", o, probe.empty, o.disabled.ns, probe.firings);
    json.close();
  }
  json.close(']');
  if (o.all_empty)
    cost(json, "all_empty", o, *o.all_empty, o.disabled.ns, o.firings);
  else
    json.null("all_empty");
  if (o.traced)
    cost(json, "traced", o, o.clauses, o.disabled.ns, o.firings);
  else
    json.null("traced");
  json_clauses(json, o);
  const double firings = o.per_operation(o.firings);
  json.open("events")
      .value("firings_per_operation", firings)
      .value("operations_per_virtual_second", o.operations_per_second())
      .value("firings_per_virtual_second", firings * o.operations_per_second())
      .value("firings_per_host_second", per_second(firings, o.tracing().ns))
      .close();
  const Estimate& over = o.tracing().over;
  json.open("cpu")
      .value("percent", cpu_percent(over.value, o.operations_per_second()))
      .value("low", cpu_percent(over.low, o.operations_per_second()))
      .value("high", cpu_percent(over.high, o.operations_per_second()))
      .close();
  json_buffers(json, o);
  json.open("confidence")
      .value("rounds", o.rounds)
      .value("quiet_rounds", o.quiet)
      .value("spread_percent", o.spread)
      .value("noisy", o.noisy())
      .value("seed", o.seed)
      .value("seconds", o.seconds)
      .close();
  json.open("notes", '[');
  for (const std::string& note : o.notes) json.value("", std::string_view(note));
  json.close(']').close();
  return std::move(json).text();
}

}  // namespace dtmalloc::sim
