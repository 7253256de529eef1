// SPDX-License-Identifier: BSD-2-Clause
// Zones as netstat -m and the sysctls vm.uma tell them.

#include <algorithm>
#include <dtmalloc/workload/import.hpp>
#include <map>

#include "workload/import_text.hpp"

namespace dtmalloc::workload {
namespace {

// "12800/0/12800/12800 4k (page size) ...": the numbers, and what they are of.
struct Figures {
  std::vector<std::uint64_t> numbers;
  std::string_view of;
};

Figures read_figures(std::string_view line) {
  const std::size_t blank = std::min(line.find(' '), line.size());
  std::string_view word = line.substr(0, blank);
  Figures out;
  while (true) {
    const std::size_t slash = std::min(word.find('/'), word.size());
    const auto n = number(word.substr(0, slash));
    if (!n) return {};
    out.numbers.push_back(*n);
    if (slash == word.size()) break;
    word.remove_prefix(slash + 1);
  }
  out.of = trim(line.substr(blank));
  return out;
}

// Which zone a line of netstat -m counts.
struct Counted {
  const char* begins;
  const char* zone;
  std::uint64_t size;
};
constexpr Counted kCounted[] = {
    {"mbufs in use", "mbuf", 256},
    {"mbuf clusters in use", "mbuf_cluster", 2048},
    {"mbuf+clusters out of packet secondary zone in use", "mbuf_packet", 256},
    {"4k (page size) jumbo clusters in use", "mbuf_jumbo_page", 4096},
    {"4k jumbo clusters in use", "mbuf_jumbo_page", 4096},
    {"9k jumbo clusters in use", "mbuf_jumbo_9k", 9216},
    {"16k jumbo clusters in use", "mbuf_jumbo_16k", 16384},
};

// Which zones a line about refused or delayed requests counts.
struct Refused {
  const char* begins;
  std::vector<const char*> zones;
  std::uint64_t ZoneRow::*field;
};

// A name as vm.uma spells it, and back where keg.name tells.
bool split_sysctl(std::string_view line, std::string_view& zone, std::string_view& field,
                  std::string_view& value) {
  constexpr std::string_view kPrefix = "vm.uma.";
  if (!line.starts_with(kPrefix)) return false;
  line.remove_prefix(kPrefix.size());
  const std::size_t dot = line.find('.'), end = line.find_first_of(":=");
  if (dot == line.npos || end == line.npos || end < dot) return false;
  zone = line.substr(0, dot);
  field = line.substr(dot + 1, end - dot - 1);
  value = trim(line.substr(end + 1));
  return true;
}

}  // namespace

ZoneTable read_netstat_m(std::string_view text, const std::string& file) {
  static const Refused kRefused[] = {
      {"requests for mbufs denied", {"mbuf", "mbuf_cluster", "mbuf_packet"}, &ZoneRow::fail},
      {"requests for mbufs delayed", {"mbuf", "mbuf_cluster", "mbuf_packet"}, &ZoneRow::sleep},
      {"requests for jumbo clusters denied",
       {"mbuf_jumbo_page", "mbuf_jumbo_9k", "mbuf_jumbo_16k"},
       &ZoneRow::fail},
      {"requests for jumbo clusters delayed",
       {"mbuf_jumbo_page", "mbuf_jumbo_9k", "mbuf_jumbo_16k"},
       &ZoneRow::sleep},
  };
  ZoneTable table;
  const auto row_of = [&table](std::string_view name) -> ZoneRow* {
    for (ZoneRow& row : table.rows)
      if (row.name == name) return &row;
    return nullptr;
  };
  std::size_t line_number = 0;
  while (!text.empty()) {
    const std::size_t newline = std::min(text.find('\n'), text.size());
    const CapturedLine line = read_line(text.substr(0, newline));
    text.remove_prefix(std::min(newline + 1, text.size()));
    ++line_number;
    const Figures figures = read_figures(line.text);
    const std::vector<std::uint64_t>& n = figures.numbers;
    for (const Counted& counted : kCounted) {
      if (!figures.of.starts_with(counted.begins) || n.size() < 2) continue;
      if (row_of(counted.zone) != nullptr) {
        table.notes.push_back(file + ":" + std::to_string(line_number) +
                              ": skipped: " + counted.zone + " a second time");
        continue;
      }
      ZoneRow row;
      row.name = counted.zone;
      row.size = counted.size;
      row.used = row.requests = n[0];
      row.free = n[1];
      row.limit = n.size() > 3 ? n[3] : 0;
      row.format = ZoneFormat::netstat;
      row.line = line_number;
      table.rows.push_back(std::move(row));
    }
    for (const Refused& refused : kRefused) {
      if (!figures.of.starts_with(refused.begins)) continue;
      for (std::size_t i = 0; i < std::min(n.size(), refused.zones.size()); ++i)
        if (ZoneRow* row = row_of(refused.zones[i])) row->*refused.field = n[i];
    }
  }
  return table;
}

ZoneTable read_sysctl_uma(std::string_view text, const std::string& file) {
  ZoneTable table;
  struct Zone {
    std::size_t line;
    std::map<std::string, std::string, std::less<>> values;
  };
  std::vector<std::string> order;
  std::map<std::string, Zone, std::less<>> zones;
  std::size_t line_number = 0;
  while (!text.empty()) {
    const std::size_t newline = std::min(text.find('\n'), text.size());
    const CapturedLine line = read_line(text.substr(0, newline));
    text.remove_prefix(std::min(newline + 1, text.size()));
    ++line_number;
    std::string_view zone, field, value;
    if (!split_sysctl(line.text, zone, field, value)) {
      if (!line.text.empty() && !line.diff_head)
        table.notes.push_back(file + ":" + std::to_string(line_number) +
                              ": skipped: no vm.uma.ZONE.NAME: value");
      continue;
    }
    const auto [at, added] = zones.try_emplace(std::string(zone), Zone{line_number, {}});
    if (added) order.emplace_back(zone);
    at->second.values.try_emplace(std::string(field), value);
  }
  for (const std::string& name : order) {
    const Zone& zone = zones.find(name)->second;
    const auto get = [&zone](std::string_view field) -> std::optional<std::uint64_t> {
      const auto at = zone.values.find(field);
      return at == zone.values.end() ? std::nullopt : number(at->second);
    };
    // Domains add up.
    const auto sum = [&zone](std::string_view tail) {
      std::uint64_t out = 0;
      for (const auto& [field, value] : zone.values)
        if (field.find("domain.") != field.npos && field.ends_with(tail))
          out += number(value).value_or(0);
      return out;
    };
    const auto note = [&](const std::string& what) {
      table.notes.push_back(file + ":" + std::to_string(zone.line) + ": " + what);
    };
    ZoneRow row;
    row.name = name;
    const auto keg_name = zone.values.find("keg.name");
    if (keg_name != zone.values.end() && !keg_name->second.empty()) row.name = keg_name->second;
    row.line = zone.line;
    row.format = ZoneFormat::sysctl;
    const auto size = get("size");
    if (!size || has_control_bytes(row.name)) {
      note("skipped: " + name + ": the dump is cut, its size is missing");
      continue;
    }
    row.size = *size;
    row.limit = get("limit.max_items").value_or(0);
    row.used = get("stats.current").value_or(0);
    row.free = get("keg.free").value_or(0) + sum(".free_items") + sum(".nitems");
    row.requests = get("stats.allocs").value_or(0);
    row.fail = get("stats.fails").value_or(0);
    row.sleep = get("limit.sleeps").value_or(0);
    row.xdomain = get("stats.xdomain").value_or(0);
    row.keg = {get("keg.rsize"), get("keg.ppera"),      get("keg.ipers"),
               get("keg.align"), get("keg.efficiency"), get("bucket_size_max")};
    if (const auto at = zone.values.find("flags"); at != zone.values.end()) row.flags = at->second;
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace dtmalloc::workload
