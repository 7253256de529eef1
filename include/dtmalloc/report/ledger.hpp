// SPDX-License-Identifier: BSD-2-Clause
// Reports from the ledger: leaks, peaks, waste, the history of an address, findings, series.
//
// Example:
//   report::Books books = report::take_books(kernel);          // wants KernelConfig::ledger
//   std::cout << report::print_leaks(books, {});
//   std::cout << report::print_peaks_json(books, "foo");
//
// Tables have one blank line between them, names at the left, numbers plain; times are nanoseconds.
//
// Units:         bytes; nanoseconds.
// Errors:        none; an empty report says so.
// Thread safety: values; take_books() may run beside allocating threads.
// Source:        sim/README.md; mdb(1) ::findleaks.
#pragma once

#include <cstdint>
#include <dtmalloc/kern/ledger.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace dtmalloc::report {

// Live blocks of one type and one call stack.
struct LeakSite {
  std::string type;
  std::string zone;  // "malloc-128", "pages", "guarded"
  bool guarded = false;
  std::vector<std::string> stack;  // innermost first
  std::uint64_t blocks = 0, bytes = 0, requested = 0;
  std::uint64_t age = 0;      // of the oldest, ns
  std::uint64_t address = 0;  // of the oldest
  std::uint64_t first = 0;    // number of its event
};

struct Books {
  std::uint64_t now = 0;
  std::vector<LedgerType> types;
  LedgerType total;
  std::vector<LedgerClass> classes;
  std::vector<LeakSite> sites;  // of one zone each; largest first
  std::vector<LedgerMismatch> mismatches;
  std::vector<Finding> findings;
  LedgerDropped dropped;
  LedgerConfig bounds;
  LedgerSeries series;
};
// Requires: the kernel has a ledger.
Books take_books(Kernel& kernel);

enum class LeaksBy { type, stack };
// `type`: a short description; empty: all.
std::string print_leaks(const Books& books, LeaksBy by, std::string_view type = {});
std::string print_leaks_json(const Books& books, std::string_view type = {});
std::string print_peaks(const Books& books, std::string_view type = {});
std::string print_peaks_json(const Books& books, std::string_view type = {});
std::string print_waste(const Books& books, std::string_view type = {});
std::string print_waste_json(const Books& books, std::string_view type = {});
std::string print_findings(const Books& books);
std::string print_findings_json(const Books& books);
std::string print_series(const Books& books);  // CSV (RFC 4180, but for its line ends)
std::string print_series_json(const Books& books);

// All that happened where a block begins.
struct AddressHistory {
  std::string name;  // as it was asked for
  std::uint64_t address = 0;
  std::vector<PastOwner> past;        // oldest first
  std::optional<LedgerBlock> live;    // that begins there
  std::optional<LedgerBlock> around;  // in which the address lies
  std::vector<Finding> findings;
  bool forgotten = false;  // the ledger's bounds shut something out
  bool unset = false;      // a name that the run never set
};
AddressHistory take_history(Kernel& kernel, std::string name, std::uint64_t address);
std::string print_history(const AddressHistory& history);
std::string print_history_json(const AddressHistory& history);

// Names of the registered types, one a line, in order of registration.
std::string print_type_names(const Kernel& kernel);
std::string print_type_names_json(const Kernel& kernel);

}  // namespace dtmalloc::report
