// SPDX-License-Identifier: BSD-2-Clause
// The reports of a run.

#include "reports.hpp"

#include <dtmalloc/kern/malloc_type.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <dtmalloc/report/memory.hpp>
#include <dtmalloc/report/report.hpp>
#include <dtmalloc/workload/run.hpp>
#include <set>

#include "ledger_reports.hpp"

namespace dtmalloc::sim {

ReportError unknown_name(std::string message, const std::string& asked,
                         const std::vector<std::string>& known) {
  std::vector<std::string> near = nearest_names(asked, known);
  if (!near.empty() || known.empty()) return {std::move(message), std::move(near)};
  constexpr std::size_t kShown = 12;
  std::set<std::string_view> shown;
  message += ", expected one of";
  for (const std::string& each : known) {
    if (!shown.insert(each).second) continue;
    if (shown.size() > kShown) return {message + ", ..."};
    message += (shown.size() == 1 ? " " : ", ") + each;
  }
  return {message};
}

namespace {

using report::take_snapshot;

constexpr int kNoFormat = -2;

// The format of a table: of the machine's release, of another's, or of the imported capture.
std::optional<ReportError> read_format(Report& report, const ReportContext& context,
                                       int (*of_capture)(std::string_view),
                                       const std::string& captures) {
  const std::string name = "--report " + std::string(report.kind->name) + "=" + report.value;
  if (report.value.empty()) {
    report.format = context.kernel.release().vmstat_format;
  } else if (report.value == "capture") {
    report.format = of_capture(context.workload.kernel.capture);
    if (report.format == kNoFormat)
      return ReportError{
          name + ": the kernel line of the workload has no capture=" + captures, {}, kRefused};
  } else {
    int version = 0;
    const char* end = report.value.data() + report.value.size();
    const auto [rest, error] = std::from_chars(report.value.data(), end, version);
    const KernelRelease* other = KernelRelease::find(version);
    if (error != std::errc{} || rest != end || other == nullptr) {
      std::string known;
      for (const int v : KernelRelease::versions()) known += std::to_string(v) + ", ";
      return ReportError{name + ": expected " + known + "or capture"};
    }
    report.format = other->vmstat_format;
  }
  return std::nullopt;
}

// --- vmstat

int vmstat_m_capture(std::string_view capture) {
  if (capture == "m16") return 2;
  if (capture == "m3") return 1;
  return capture == "m1" || capture == "m2" ? 0 : kNoFormat;
}

std::optional<ReportError> read_vmstat_m(Report& report, ReportContext& context) {
  return read_format(report, context, vmstat_m_capture, "m1, m2, m3 or m16");
}

std::string vmstat_m(const Report& report, Kernel& kernel, bool json) {
  const report::Snapshot snapshot = take_snapshot(kernel);
  return json ? report::print_vmstat_m_json(snapshot, report.format)
              : report::print_vmstat_m(snapshot, report.format);
}

int vmstat_z_capture(std::string_view capture) {
  static constexpr std::array<std::pair<std::string_view, int>, 4> kFormats{
      {{"z1", -1}, {"z2", 0}, {"z3", 1}, {"z16", 2}}};
  for (const auto& [name, format] : kFormats)
    if (capture == name) return format;
  return kNoFormat;
}

std::optional<ReportError> read_vmstat_z(Report& report, ReportContext& context) {
  return read_format(report, context, vmstat_z_capture, "z1, z2, z3 or z16");
}

std::string vmstat_z(const Report& report, Kernel& kernel, bool json) {
  const report::Snapshot snapshot = take_snapshot(kernel);
  return json ? report::print_vmstat_z_json(snapshot, report.format)
              : report::print_vmstat_z(snapshot, report.format);
}

// --- ddb

std::optional<ReportError> read_ddb(Report& report, ReportContext&) {
  if (report.value.empty() || report.value == "i") return std::nullopt;
  return ReportError{"--report " + std::string(report.kind->name) + "=" + report.value +
                     ": expected i"};
}

std::string ddb_malloc(const Report& report, Kernel& kernel, bool) {
  return report::print_ddb_malloc(take_snapshot(kernel), report.value == "i");
}

std::string ddb_uma(const Report& report, Kernel& kernel, bool) {
  return report::print_ddb_uma(take_snapshot(kernel), report.value == "i");
}

std::string ddb_umacache(const Report&, Kernel& kernel, bool) {
  return report::print_ddb_umacache(take_snapshot(kernel));
}

// A type by symbol, description or address; null: none, or memory that cannot be read.
const malloc_type* find_type(const std::string& name, Kernel& kernel) {
  std::uint64_t address = 0;
  const char* end = name.data() + name.size();
  if (name.starts_with("0x") && std::from_chars(name.data() + 2, end, address, 16).ptr == end) {
    return static_cast<const malloc_type*>(
        kernel.addresses().to_host(address, sizeof(malloc_type)));
  }
  const malloc_type* by_symbol = kernel.type_by_symbol(name);
  return by_symbol != nullptr ? by_symbol : kernel.type(name);
}

// The command exists in kernels with MALLOC_DEBUG_MAXZONES above 1 only.
std::optional<ReportError> read_multizone(Report& report, ReportContext& context) {
  const std::string name = "--report ddb-multizone=" + report.value;
  if (!context.kernel.sysctl().find("debug.malloc.numzones"))
    return ReportError{name +
                       ": the kernel has one zone for each size, expected "
                       "MALLOC_DEBUG_MAXZONES above 1"};
  if (find_type(report.value, context.kernel) != nullptr) return std::nullopt;
  report.pending = !context.whole;
  if (report.pending) return std::nullopt;
  std::vector<std::string> names;
  for (const malloc_type* type : context.kernel.types()) {
    names.emplace_back(context.kernel.symbol(*type));
    names.emplace_back(type->ks_shortdesc);
  }
  return unknown_name(name + ": no such type", report.value, names);
}

std::string ddb_multizone(const Report& report, Kernel& kernel, bool) {
  const malloc_type* type = find_type(report.value, kernel);
  if (type == nullptr) {  // unloaded meanwhile
    complain("--report ddb-multizone=" + report.value + ": no such type any more");
    return {};
  }
  return report::print_ddb_multizone(take_snapshot(kernel), *type);
}

// --- memory

std::string memory(const Report&, Kernel& kernel, bool json) {
  const report::MemoryUse use = report::take_memory(kernel);
  return json ? report::print_memory_json(use) : report::print_memory(use);
}

// --- sysctl

// "-o NAME": the options of sysctl(8), then a name.
struct SysctlRequest {
  bool describe = false, opaque = false;
  std::string name;
};

std::optional<SysctlRequest> sysctl_request(const std::string& value) {
  SysctlRequest request;
  std::size_t at = 0;
  for (; value[at] == '-'; at = value.find_first_not_of(' ', value.find(' ', at))) {
    const std::size_t end = value.find(' ', at);
    if (end == value.npos || end == at + 1) return std::nullopt;
    for (const char option : value.substr(at + 1, end - at - 1)) {
      if (option != 'd' && option != 'o') return std::nullopt;
      (option == 'd' ? request.describe : request.opaque) = true;
    }
    if (value.find_first_not_of(' ', end) == value.npos) return std::nullopt;
  }
  request.name = value.substr(at);
  return request;
}

// All names and the inner ones above them.
std::vector<std::string> sysctl_names(const SysctlTree& tree) {
  std::set<std::string> names;
  for (const std::string& name : tree.names())
    for (std::size_t dot = 0; dot != name.npos;) {
      dot = name.find('.', dot + 1);
      names.insert(name.substr(0, dot));
    }
  return {names.begin(), names.end()};
}

std::optional<ReportError> read_sysctl(Report& report, ReportContext& context) {
  const std::optional<SysctlRequest> request = sysctl_request(report.value);
  if (!request)
    return ReportError{"--report sysctl=" + report.value + ": expected " +
                       std::string(report.kind->value)};
  const SysctlTree& tree = context.kernel.sysctl();
  if (!tree.list(request->name).empty()) return std::nullopt;
  return ReportError{"unknown sysctl '" + request->name + "'",
                     nearest_names(request->name, sysctl_names(tree))};
}

// As sysctl(8) prints an opaque value: the beginning.
std::string dump(const SysctlNode& node) {
  const std::string bytes = node.bytes();
  std::string out =
      "Format:" + node.format + " Length:" + std::to_string(bytes.size()) + " Dump:0x";
  constexpr std::size_t kShown = 16;
  for (const char byte : bytes.substr(0, kShown)) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    out += kDigits[static_cast<unsigned char>(byte) >> 4];
    out += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return bytes.size() > kShown ? out + "..." : out;
}

std::string sysctl(const Report& report, Kernel& kernel, bool) {
  const SysctlRequest request = *sysctl_request(report.value);
  std::string out;
  for (const SysctlNode& node : kernel.sysctl().list(request.name)) {
    if (request.describe) {
      out += node.name + ": " + node.description + "\n";
    } else if (!node.bytes) {
      out += node.name + ": " + (node.read ? node.read() : std::string()) + "\n";
    } else if (request.opaque) {
      out += node.name + ": " + dump(node) + "\n";
    } else if (node.name == request.name) {  // sysctl(8) says nothing at all
      complain("sysctl " + node.name + " is opaque: --report 'sysctl=-o " + node.name +
               "' shows its beginning");
    }
  }
  return out;
}

// --- the streams

// The file is opened before the run, so that a bad name costs nothing.
std::optional<ReportError> open_stream(Report& report, ReportContext& context) {
  if (report.value == "-")
    return ReportError{"--report " + std::string(report.kind->name) +
                       "=-: bytes do not go among the reports, expected a file"};
  if (std::find(context.taken.begin(), context.taken.end(), report.value) != context.taken.end())
    return ReportError{"cannot write " + report.value + ": the run uses it already", {}, kRefused};
  report.file = Output::open(report.value, context.taken);
  if (report.file == nullptr) return ReportError{"", {}, kRefused};
  context.taken.push_back(report.value);
  return std::nullopt;
}

std::string malloc_stats_stream(const Report&, Kernel& kernel, bool) {
  return kernel.sysctl().find("kern.malloc_stats")->bytes();
}

std::string zone_stats_stream(const Report&, Kernel& kernel, bool) {
  return kernel.sysctl().find("vm.zone_stats")->bytes();
}

// --- the table

constexpr bool kValue = true, kJson = true;

constexpr std::array kReports{
    ReportKind{"vmstat-m", "capture|RELEASE", "vmstat -m", !kValue, kJson, read_vmstat_m, vmstat_m},
    ReportKind{"vmstat-z", "capture|RELEASE", "vmstat -z", !kValue, kJson, read_vmstat_z, vmstat_z},
    ReportKind{"ddb-malloc", "i", "ddb(4): show malloc", !kValue, !kJson, read_ddb, ddb_malloc},
    ReportKind{"ddb-uma", "i", "ddb(4): show uma", !kValue, !kJson, read_ddb, ddb_uma},
    ReportKind{"ddb-umacache", "", "ddb(4): show umacache", !kValue, !kJson, nullptr, ddb_umacache},
    ReportKind{"ddb-multizone", "TYPE", "ddb(4): show multizone_matches", kValue, !kJson,
               read_multizone, ddb_multizone},
    ReportKind{"sysctl", "[-do] NAME", "sysctl(8)", kValue, !kJson, read_sysctl, sysctl},
    ReportKind{"memory", "", "where the memory is, down to the types", !kValue, kJson, nullptr,
               memory},
    ReportKind{"malloc-stats-stream", "FILE", "the bytes of kern.malloc_stats", kValue, kJson,
               open_stream, malloc_stats_stream},
    ReportKind{"zone-stats-stream", "FILE", "the bytes of vm.zone_stats", kValue, kJson,
               open_stream, zone_stats_stream},
    ReportKind{"leaks", "by-stack|TYPE", "what lives, by type and call site", !kValue, kJson,
               read_leaks, leaks, LedgerNeed::owners},
    ReportKind{"peaks", "TYPE", "the most that each type held at once", !kValue, kJson,
               read_of_type, peaks, LedgerNeed::sums},
    ReportKind{"waste", "TYPE", "what rounding costs", !kValue, kJson, read_of_type, waste,
               LedgerNeed::blocks},
    ReportKind{"history", "BLOCK|ADDRESS", "all owners of an address", kValue, kJson, read_history,
               history, LedgerNeed::blocks},
    ReportKind{"findings", "", "what was freed wrongly", !kValue, kJson, nullptr, findings,
               LedgerNeed::blocks},
    ReportKind{"series", "INTERVAL", "bytes of each type over time", kValue, kJson, read_series,
               series, LedgerNeed::sums},
    ReportKind{"types", "", "names of the types", !kValue, kJson, nullptr, types},
};

const ReportKind* find_kind(std::string_view name) {
  for (const ReportKind& kind : kReports)
    if (kind.name == name) return &kind;
  return nullptr;
}

std::optional<ReportError> unknown_report(const std::string& name) {
  std::vector<std::string> names;
  std::string all;
  for (const ReportKind& kind : kReports) {
    names.emplace_back(kind.name);
    all += " " + names.back();
  }
  const std::vector<std::string> near = nearest_names(name, names);
  return ReportError{
      "unknown report '" + name + "'" + (near.empty() ? ", expected one of" + all : ""), near};
}

// The name and the value of an item of a list.
std::pair<std::string, std::string> split(const std::string& item) {
  const std::size_t equals = item.find('=');
  return {item.substr(0, equals), equals == item.npos ? std::string() : item.substr(equals + 1)};
}

// One item of a list.
std::optional<ReportError> read_report(const std::string& item, const std::string& libxo,
                                       ReportContext& context, std::vector<Report>& reports) {
  const auto [name, value] = split(item);
  if (name.empty()) return ReportError{"an empty name in the list of --report"};
  const ReportKind* kind = find_kind(name);
  if (kind == nullptr) return unknown_report(name);
  const bool given = item.size() > name.size();
  if (given && kind->value.empty())
    return ReportError{"--report " + item + ": " + name + " takes no value"};
  Report report{kind, value};
  if (report.value.empty() && (given || kind->needs_value))
    return ReportError{"--report " + item + ": expected " + name + "=" + std::string(kind->value)};
  if (!libxo.empty() && !kind->json)
    return ReportError{"--" + libxo + ": the report " + name + " has no such form"};
  if (kind->read != nullptr)
    if (auto error = kind->read(report, context)) return error;
  reports.push_back(std::move(report));
  return std::nullopt;
}

// The items of a list; commas inside brackets belong to a block's indexes.
std::vector<std::string> items_of(const std::string& list) {
  std::vector<std::string> items(1);
  int depth = 0;
  for (const char c : list) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ',' && depth <= 0)
      items.emplace_back();
    else
      items.back() += c;
  }
  return items;
}

void tell(const ReportError& error) {
  std::string message = error.message;
  for (std::size_t i = 0; i < error.near.size(); ++i)
    message += (i == 0 ? "; did you mean " : ", ") + error.near[i];
  if (!error.near.empty()) message += '?';
  if (!message.empty()) complain(message);
}

std::optional<ReportError> read_list(const std::string& list, const std::string& libxo,
                                     ReportContext& context, std::vector<Report>& reports) {
  for (const std::string& item : items_of(list))
    if (auto error = read_report(item, libxo, context, reports)) return error;
  return std::nullopt;
}

}  // namespace

bool prepare_ledger(const RunOptions& options, bool can_keep_owners, KernelConfig& config) {
  LedgerNeed need = LedgerNeed::none;
  bool of_owners = false;
  std::uint64_t series = 0;
  for (const std::string& list : options.reports) {
    for (const std::string& item : items_of(list)) {
      const auto [name, value] = split(item);
      const ReportKind* kind = find_kind(name);
      if (kind == nullptr) continue;
      if (kind->ledger == LedgerNeed::owners)
        of_owners = true;
      else
        need = std::max(need, kind->ledger);
      if (name == "series") series = workload::parse_time(value).value_or(0);
    }
  }
  if (of_owners) {
    // JSON says what the ledger itself had no room for.
    if (can_keep_owners && need == LedgerNeed::none && options.libxo.empty() &&
        workload::owners_suffice(config))
      return true;
    need = LedgerNeed::blocks;
  }
  if (need == LedgerNeed::none) return false;
  if (!config.ledger) {
    config.ledger.emplace();
    if (need == LedgerNeed::sums) config.ledger->blocks = config.ledger->addresses = 0;
  }
  config.ledger->series = series;
  return false;
}

bool read_reports(const RunOptions& options, bool by_default, ReportContext context,
                  std::vector<Report>& reports, int& status) {
  std::vector<std::string> lists = options.reports;
  if (lists.empty() && by_default) lists.emplace_back("vmstat-m");
  for (const std::string& list : lists) {
    const auto error = read_list(list, options.libxo, context, reports);
    if (!error) continue;
    tell(*error);
    status = error->status;
    return false;
  }
  return true;
}

bool find_pending(Report& report, ReportContext& context) {
  const auto error = report.kind->read(report, context);
  if (error) tell(*error);
  return !error;
}

bool print_report(const Report& report, Kernel& kernel, std::string_view libxo, Output& output) {
  const std::string text = report.kind->print(report, kernel, !libxo.empty());
  if (report.file == nullptr) {
    output.write(libxo == "xml" ? report::xml_of_json(text) : text);
    return true;
  }
  report.file->write(text);
  return report.file->commit();
}

std::string report_help() {
  std::string out;
  for (const ReportKind& kind : kReports) {
    std::string line = "  " + std::string(kind.name);
    if (!kind.value.empty())
      line +=
          kind.needs_value ? "=" + std::string(kind.value) : "[=" + std::string(kind.value) + "]";
    constexpr std::size_t kColumn = 30;
    line.resize(std::max(line.size() + 2, kColumn), ' ');
    out += line + std::string(kind.help) + "\n";
  }
  return out;
}

}  // namespace dtmalloc::sim
