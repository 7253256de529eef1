// SPDX-License-Identifier: BSD-2-Clause
// The reports from the ledger: their values, and how they are made.

#include "ledger_reports.hpp"

#include <algorithm>
#include <charconv>
#include <dtmalloc/report/ledger.hpp>

namespace dtmalloc::sim {
namespace {

using report::take_books;

constexpr int kByStack = 1;

std::string label(const Report& report) {
  return "--report " + std::string(report.kind->name) + "=" + report.value;
}

std::optional<std::uint64_t> address_of(const std::string& text) {
  if (!text.starts_with("0x")) return std::nullopt;
  std::uint64_t address = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + 2, end, address, 16);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return address;
}

// A type is asked for by its symbol or by its short description.
std::optional<ReportError> find_type(Report& report, ReportContext& context,
                                     const std::vector<std::string>& others = {}) {
  const std::string& asked = report.value;
  std::vector<std::string> known;
  for (const workload::TypeDecl& type : context.workload.types) {
    known.push_back(type.symbol);
    known.push_back(type.shortdesc);
  }
  for (const malloc_type* type : context.kernel.types()) {
    known.emplace_back(context.kernel.symbol(*type));
    known.emplace_back(type->ks_shortdesc);
  }
  for (std::size_t i = 1; i < known.size(); i += 2)
    if (known[i] == asked) {
      report.type = asked;
      return std::nullopt;
    }
  for (std::size_t i = 0; i + 1 < known.size(); i += 2)
    if (known[i] == asked) {
      report.type = known[i + 1];
      if (context.told.insert(asked).second)
        complain("the type " + asked + " is \"" + report.type + "\" in what the kernel prints");
      return std::nullopt;
    }
  report.pending = !context.whole;
  if (report.pending) return std::nullopt;
  known.insert(known.begin(), others.begin(), others.end());
  return unknown_name(label(report) + ": no type has this symbol or this description", asked,
                      known);
}

}  // namespace

std::optional<ReportError> read_of_type(Report& report, ReportContext& context) {
  if (report.value.empty()) return std::nullopt;
  return find_type(report, context);
}

std::optional<ReportError> read_leaks(Report& report, ReportContext& context) {
  if (report.value == "by-stack") {
    report.format = kByStack;
    return std::nullopt;
  }
  if (report.value.empty()) return std::nullopt;
  return find_type(report, context, {"by-stack"});
}

// "x", "x[...]", "x[...,...]"
std::string pattern_of(const workload::NameDecl& decl) {
  return decl.text + (decl.arity == 0 ? "" : decl.arity == 1 ? "[...]" : "[...,...]");
}

// Whether what stands behind a name is "[1]" or "[1,-2]", or nothing.
bool are_indexes(std::string_view text) {
  if (text.empty()) return true;
  const char* at = text.data();
  const char* const end = at + text.size();
  do {
    std::int64_t index = 0;
    const auto [rest, error] = std::from_chars(at + 1, end, index);
    if (error != std::errc{} || rest == end) return false;
    at = rest;
  } while (*at == ',');
  return *at == ']' && at + 1 == end;
}

bool is_name(std::string_view text) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && letter(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.'; });
}

std::optional<ReportError> read_history(Report& report, ReportContext& context) {
  if (address_of(report.value)) return std::nullopt;
  const std::string name = report.value.substr(0, report.value.find('['));
  if (!context.whole) {  // the run knows whether it set the block
    if (is_name(name) && are_indexes(std::string_view(report.value).substr(name.size())))
      return std::nullopt;
    return ReportError{label(report) +
                       ": expected a block such as a or x[3], or an address such as "
                       "0xfffff80000001000"};
  }
  const auto commas = std::count(report.value.begin(), report.value.end(), ',');
  const int arity = name.size() == report.value.size() ? 0 : 1 + static_cast<int>(commas);
  std::vector<std::string> names, same;
  for (const workload::NameDecl& decl : context.workload.names) {
    if (decl.text == name && decl.arity == arity) {
      if (are_indexes(std::string_view(report.value).substr(name.size()))) return std::nullopt;
      return ReportError{label(report) + ": expected numbers for " + pattern_of(decl)};
    }
    names.push_back(decl.text);
    if (decl.text == name) same.push_back(pattern_of(decl));
  }
  const std::string message = label(report) + ": the workload has no block of this name";
  if (!same.empty()) return ReportError{message, same};
  std::vector<std::string> near = nearest_names(name, names);
  for (std::string& each : near)
    for (const workload::NameDecl& decl : context.workload.names)
      if (decl.text == each) {
        each = pattern_of(decl);
        break;
      }
  return ReportError{message + ", expected a name or an address such as 0xfffff80000001000", near};
}

std::optional<ReportError> read_series(Report& report, ReportContext& context) {
  const auto interval = workload::parse_time(report.value);
  if (!interval || *interval == 0)
    return ReportError{label(report) + ": expected a time such as 10ms"};
  if (context.kernel.ledger()->config().series != *interval)
    return ReportError{label(report) + ": one run has one series, and another is asked for"};
  return std::nullopt;
}

std::string leaks(const Report& report, Kernel& kernel, bool json) {
  const auto by = report.format == kByStack ? report::LeaksBy::stack : report::LeaksBy::type;
  return json ? report::print_leaks_json(take_books(kernel), report.type)
              : report::print_leaks(take_books(kernel), by, report.type);
}

std::string peaks(const Report& report, Kernel& kernel, bool json) {
  return json ? report::print_peaks_json(take_books(kernel), report.type)
              : report::print_peaks(take_books(kernel), report.type);
}

std::string waste(const Report& report, Kernel& kernel, bool json) {
  return json ? report::print_waste_json(take_books(kernel), report.type)
              : report::print_waste(take_books(kernel), report.type);
}

std::string history(const Report& report, Kernel& kernel, bool json) {
  const std::uint64_t address =
      address_of(report.value).value_or(kernel.addresses().to_simulated(report.block));
  report::AddressHistory history = report::take_history(kernel, report.value, address);
  history.unset = !address_of(report.value) && !report.block_set;
  return json ? report::print_history_json(history) : report::print_history(history);
}

std::string findings(const Report&, Kernel& kernel, bool json) {
  return json ? report::print_findings_json(take_books(kernel))
              : report::print_findings(take_books(kernel));
}

std::string series(const Report&, Kernel& kernel, bool json) {
  return json ? report::print_series_json(take_books(kernel))
              : report::print_series(take_books(kernel));
}

std::string types(const Report&, Kernel& kernel, bool json) {
  return json ? report::print_type_names_json(kernel) : report::print_type_names(kernel);
}

}  // namespace dtmalloc::sim
