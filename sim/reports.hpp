// SPDX-License-Identifier: BSD-2-Clause
// What --report names: a table of kinds (reports.cpp), and the reports that a command line chose.

#pragma once

#include <dtmalloc/kernel.hpp>
#include <dtmalloc/workload/workload.hpp>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "commands.hpp"
#include "output.hpp"

namespace dtmalloc::sim {

// What a report may look at before the run.
struct ReportContext {
  const workload::Workload& workload;
  Kernel& kernel;
  std::vector<std::string> taken;   // files that are read or written already
  bool whole = true;                // false: a trace's head, and what follows may declare more
  std::set<std::string> told = {};  // notes that were printed
};

struct ReportError {
  std::string message;  // empty: it was said already
  std::vector<std::string> near = {};
  int status = kUsage;
};

// A name that is none of those known: with those near it or, when there is none, the first few.
ReportError unknown_name(std::string message, const std::string& asked,
                         const std::vector<std::string>& known);

struct Report;

// The books beyond the kernel that a report is made from: what lives, which the run's names can
// tell; sums alone; or every block.
enum class LedgerNeed : std::uint8_t { none, owners, sums, blocks };

// A new report is a printer in src/report, a row of the table, a line in sim/README.md and
// sim/dtmalloc.1, and a golden case.
struct ReportKind {
  std::string_view name;
  std::string_view value;  // what may follow '=', as the help has it; empty: nothing
  std::string_view help;
  bool needs_value;
  bool json;  // has a form for --json and --xml, or is none of their business
  // Judges report.value and keeps what it means; null: any value will do.
  std::optional<ReportError> (*read)(Report& report, ReportContext& context);
  std::string (*print)(const Report& report, Kernel& kernel, bool json);
  LedgerNeed ledger = LedgerNeed::none;
};

struct Report {
  const ReportKind* kind;
  std::string value = {};                  // after '='
  int format = 0;                          // of a table with several formats
  std::string type = {};                   // short description; empty: all types
  const void* block = nullptr;             // of a name in the workload, found when it has run
  bool block_set = false;                  // the run has set that name
  bool pending = false;                    // a type that a trace may declare further down
  std::shared_ptr<Output> file = nullptr;  // where it goes, if not to the results
};

// Turns the ledger on if a report of the options is made from it. True: it is enough that the run,
// which can, keeps the owners of its names.
bool prepare_ledger(const RunOptions& options, bool can_keep_owners, KernelConfig& config);
// Reads the lists of --report; without any, the table of vmstat -m if `by_default`. False: a
// message was printed, and `status` is the exit status.
bool read_reports(const RunOptions& options, bool by_default, ReportContext context,
                  std::vector<Report>& reports, int& status);
// Of a trace that has run: finds the type of a pending report. False: a message was printed.
bool find_pending(Report& report, ReportContext& context);
// Prints a report to its file or, in the style of libxo if one is named, to `output`. False: a
// message was printed.
bool print_report(const Report& report, Kernel& kernel, std::string_view libxo, Output& output);
// A line for each report, for the help.
std::string report_help();

}  // namespace dtmalloc::sim
