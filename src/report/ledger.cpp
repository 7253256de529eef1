// SPDX-License-Identifier: BSD-2-Clause
// Tables of the ledger.

#include <fmt/format.h>

#include <dtmalloc/report/ledger.hpp>
#include <map>

#include "report/table.hpp"

namespace dtmalloc::report {
namespace {

std::string number(std::uint64_t value) { return std::to_string(value); }
std::string number(std::int64_t value) { return std::to_string(value); }
std::string hex(std::uint64_t address) { return fmt::format("{:#x}", address); }

// Hundredths of a percent, rounded half up.
std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  const std::uint64_t hundredths = (part * 10000 + whole / 2) / whole;
  return fmt::format("{}.{:02}", hundredths / 100, hundredths % 100);
}

std::string shown(const LedgerType& type) {
  return type.unloaded ? type.name + " (unloaded)" : type.name;
}
bool asked(const std::string& name, std::string_view type) {
  return type.empty() || name == type || name == std::string(type) + " (unloaded)";
}
bool used(const LedgerType& type) {
  return type.all_blocks + type.guarded != 0 || type.peak_blocks != 0 || type.blocks != 0 ||
         type.bytes != 0;
}

std::string of_type(std::string_view type) {
  return type.empty() ? std::string() : " of " + std::string(type);
}

// What the bounds of the ledger kept out; `consequence`: for the report in hand.
std::string blocks_note(const Books& books, std::string_view consequence) {
  if (books.dropped.blocks == 0) return {};
  return fmt::format("note: {} blocks beyond the ledger's {} have no record: {}\n",
                     books.dropped.blocks, books.bounds.blocks, consequence);
}

std::string notes(const Books& books) {
  const LedgerDropped& lost = books.dropped;
  std::string out = blocks_note(books, "counted, no site");
  if (lost.stacks != 0)
    out +=
        fmt::format("note: the table of {} call stacks was full: {} events are under \"other\"\n",
                    books.bounds.stacks, lost.stacks);
  if (lost.names != 0)
    out += fmt::format("note: {} events are of threads beyond the ledger's {} names: \"other\"\n",
                       lost.names, books.bounds.stacks);
  return out;
}

std::string mismatch_text(const Books& books, std::string_view type) {
  Table table(
      {"Blocks", "Bytes", "-Allocated as", "-Freed as", "-First allocated at", "-First freed at"});
  for (const LedgerMismatch& pair : books.mismatches)
    if (asked(pair.allocated_as, type) || asked(pair.freed_as, type))
      table.row({number(pair.blocks), number(pair.bytes), pair.allocated_as, pair.freed_as,
                 stack_text(pair.first_allocated.stack), stack_text(pair.first_freed.stack)});
  return table.empty() ? std::string() : "\nFreed under another type\n" + table.text();
}

std::string remark(const LedgerType& row) {
  std::string out;
  if (row.blocks < 0 || row.bytes < 0) out = "more was freed than allocated";
  if (row.manual_blocks != 0 || row.manual_bytes != 0)
    out += (out.empty() ? "" : "; ") + number(row.manual_bytes) + " bytes have no address";
  return out;
}

struct TypeSites {
  std::uint64_t blocks = 0, requested = 0, age = 0;
};

std::string leaks_by_type(const Books& books, std::string_view type) {
  std::map<std::string, TypeSites> oldest;
  for (const LeakSite& site : books.sites) {
    TypeSites& sum = oldest[site.type];
    sum.blocks += site.blocks;
    sum.requested += site.requested;
    sum.age = std::max(sum.age, site.age);
  }
  Table table({"-Type", "Blocks", "Bytes", "Request", "Oldest(ns)", "-"});
  LedgerType sum;
  std::uint64_t requested = 0, age = 0;
  for (const LedgerType& row : books.types) {
    if (!asked(row.name, type) || (row.blocks == 0 && row.bytes == 0 && row.guarded == 0)) continue;
    const auto blocks = row.blocks + static_cast<std::int64_t>(row.guarded);
    const auto bytes = row.bytes + static_cast<std::int64_t>(row.guarded_bytes);
    const TypeSites sites = oldest[shown(row)];
    const bool any = sites.blocks != 0;
    table.row({shown(row), number(blocks), number(bytes), any ? number(sites.requested) : "-",
               any ? number(sites.age) : "-", remark(row)});
    sum.blocks += blocks;
    sum.bytes += bytes;
    requested += sites.requested;
    age = std::max(age, sites.age);
  }
  if (table.empty()) return {};
  table.row({"Total", number(sum.blocks), number(sum.bytes), number(requested), number(age)});
  return table.text();
}

// The sites of one type and stack, whatever their zones.
std::string leaks_by_site(const Books& books, std::string_view type) {
  std::vector<LeakSite> sites;
  std::map<std::pair<std::string, std::vector<std::string>>, std::size_t> index;
  for (const LeakSite& site : books.sites) {
    if (!asked(site.type, type)) continue;
    const auto [at, is_new] = index.try_emplace({site.type, site.stack}, sites.size());
    if (is_new) {
      sites.push_back(site);
      continue;
    }
    LeakSite& sum = sites[at->second];
    sum.blocks += site.blocks;
    sum.bytes += site.bytes;
    sum.requested += site.requested;
    sum.age = std::max(sum.age, site.age);
    sum.first = std::min(sum.first, site.first);
  }
  std::sort(sites.begin(), sites.end(), [](const LeakSite& a, const LeakSite& b) {
    return std::tuple(b.bytes, b.blocks, a.first) < std::tuple(a.bytes, a.blocks, b.first);
  });
  Table table({"Blocks", "Bytes", "Request", "Oldest(ns)", "-Type", "-Call site"});
  for (const LeakSite& site : sites)
    table.row({number(site.blocks), number(site.bytes), number(site.requested), number(site.age),
               site.type, stack_text(site.stack)});
  return table.empty() ? std::string() : '\n' + table.text();
}

// As mdb's ::findleaks: zone, count, first block, caller.
std::string leaks_by_stack(const Books& books, std::string_view type) {
  Table table({"-ZONE", "LEAKED", "BYTES", "REQUEST", "BLOCK", "-TYPE", "-CALLER"});
  std::uint64_t blocks = 0, bytes = 0, requested = 0;
  for (const LeakSite& site : books.sites) {
    if (!asked(site.type, type)) continue;
    table.row({site.zone, number(site.blocks), number(site.bytes), number(site.requested),
               hex(site.address), site.type, stack_text(site.stack)});
    blocks += site.blocks;
    bytes += site.bytes;
    requested += site.requested;
  }
  if (table.empty()) return {};
  table.row({"Total", number(blocks), number(bytes), number(requested)});
  return table.text();
}

}  // namespace

std::string print_leaks(const Books& books, LeaksBy by, std::string_view type) {
  const std::string pairs = mismatch_text(books, type);
  std::string out;
  if (by == LeaksBy::type) {
    out = leaks_by_type(books, type);
    if (!out.empty()) out += leaks_by_site(books, type);
  } else {
    out = leaks_by_stack(books, type);
  }
  if (out.empty()) out = "no live blocks" + of_type(type) + '\n';
  return out + pairs + notes(books);
}

std::string print_peaks(const Books& books, std::string_view type) {
  Table table({"-Type", "Blocks", "At(ns)", "Bytes", "At(ns)", "Blocks now", "Bytes now"});
  const auto row = [&](const LedgerType& t) {
    table.row({shown(t), number(t.peak_blocks), number(t.peak_blocks_time), number(t.peak_bytes),
               number(t.peak_bytes_time), number(t.blocks), number(t.bytes)});
  };
  for (const LedgerType& each : books.types)
    if (asked(each.name, type) && used(each)) row(each);
  if (table.empty()) return "no allocations" + of_type(type) + '\n';
  if (type.empty()) row(books.total);
  return table.text();
}

std::string print_waste(const Books& books, std::string_view type) {
  Table table({"-Type", "In use", "Bytes", "Request", "Requests", "Requested", "Given", "Waste",
               "Percent"});
  const auto row = [&](const LedgerType& t) {
    table.row({shown(t), number(t.blocks), number(t.bytes), number(t.requested),
               number(t.all_blocks), number(t.all_requested), number(t.all_bytes),
               number(t.all_bytes - t.all_requested),
               percent(t.all_bytes - t.all_requested, t.all_bytes)});
  };
  for (const LedgerType& each : books.types)
    if (asked(each.name, type) && used(each)) row(each);
  if (table.empty()) return "no allocations" + of_type(type) + '\n';
  const std::string end =
      mismatch_text(books, type) +
      blocks_note(books, "Request, and what classes have in use, leave them out");
  if (!type.empty()) return table.text() + end;
  row(books.total);
  Table sizes({"-Class", "In use", "Bytes", "Request", "Requests", "Requested", "Given", "Waste",
               "Percent"});
  for (const LedgerClass& size : books.classes)
    sizes.row({size.size == 0 ? "pages" : number(size.size), number(size.live_blocks),
               number(size.live_bytes), number(size.live_requested), number(size.all_blocks),
               number(size.all_requested), number(size.all_bytes),
               number(size.all_bytes - size.all_requested),
               percent(size.all_bytes - size.all_requested, size.all_bytes)});
  return table.text() + '\n' + sizes.text() + end;
}

std::string print_findings(const Books& books) {
  std::string out;
  for (const Finding& finding : books.findings) out += to_string(finding);
  if (out.empty()) out = "no findings\n";
  if (books.dropped.findings != 0)
    out += fmt::format("note: {} findings beyond the ledger's {} are not shown\n",
                       books.dropped.findings, books.bounds.findings);
  out += blocks_note(books, "what happened to them is not looked at");
  return out;
}

std::string print_series(const Books& books) {
  const auto quoted = [](const std::string& text) {
    if (text.find_first_of(",\"\n\r") == text.npos) return text;
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + '"';
  };
  std::string out = "time_ns";
  for (const std::string& type : books.series.types) out += ',' + quoted(type);
  out += '\n';
  for (const LedgerSeries::Sample& sample : books.series.samples) {
    out += number(sample.time);
    for (const std::int64_t bytes : sample.bytes) out += ',' + number(bytes);
    out += '\n';
  }
  return out;
}

std::string print_history(const AddressHistory& history) {
  const std::string label = history.name == hex(history.address)
                                ? history.name
                                : history.name + ", " + hex(history.address);
  if (history.unset) return "history of " + history.name + ": the run never set it\n";
  if (history.address == 0) return "history of " + history.name + ": it is null\n";
  Table table(
      {"Event", "Time(ns)", "CPU", "-Thread", "-What", "-Type", "Request", "Bytes", "-Call site"});
  const auto row = [&](const LedgerPlace& place, const char* what, const std::string& type,
                       const LedgerBlock* block) {
    table.row({number(place.sequence), number(place.time), std::to_string(place.cpu),
               place.execname + '/' + std::to_string(place.tid), what, type,
               block == nullptr ? "" : number(block->request),
               block == nullptr ? "" : number(block->bytes), stack_text(place.stack)});
  };
  for (const PastOwner& owner : history.past) {
    row(owner.block.allocated, "allocated", owner.block.type, &owner.block);
    row(owner.freed, "freed", owner.freed_as, nullptr);
  }
  if (history.live)
    row(history.live->allocated, "allocated, lives", history.live->type, &*history.live);
  std::string out = "history of " + label + '\n';
  if (table.empty())
    out += "no block of malloc(9) began here\n";
  else
    out += table.text();
  if (history.around)
    out += fmt::format("it lies {} bytes inside {}, a live block of {}\n",
                       history.address - history.around->address, hex(history.around->address),
                       history.around->type);
  if (history.forgotten) out += "note: the ledger is full: older owners may be missing\n";
  for (const Finding& finding : history.findings) out += '\n' + to_string(finding);
  return out;
}

}  // namespace dtmalloc::report
