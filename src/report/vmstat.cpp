// SPDX-License-Identifier: BSD-2-Clause
// vmstat -m: the tables of three generations, and JSON.
// Counterpart:  usr.bin/vmstat/vmstat.c (domemstat_malloc), lib/libmemstat

#include <fmt/format.h>

#include <dtmalloc/report/report.hpp>
#include <functional>
#include <iterator>

namespace dtmalloc::report {
namespace {

constexpr int kHumanized = 2;
constexpr int kHighUse = 0;

// Types that never allocated do not print, even when a failed allocation left a class behind.
bool printed(const TypeRow& row) { return row.numallocs != 0 || row.inuse() != 0; }

std::uint64_t kilobytes(std::uint64_t bytes) { return (bytes + 1023) / 1024; }

std::string sizes(const Snapshot& snapshot, const TypeRow& row,
                  const std::function<std::string(std::uint32_t)>& format) {
  std::string out;
  for (std::size_t i = 0; i < snapshot.classes.size() && i < 64; ++i) {
    if ((row.size_mask >> i & 1) == 0) continue;
    if (!out.empty()) out += ',';
    out += format(snapshot.classes[i]);
  }
  return out;
}

std::string plain(std::uint32_t size) { return std::to_string(size); }

// Length of a well-formed UTF-8 sequence at the start of `text`; 0: malformed.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80                   ? 1
                             : lead >= 0xc2 && lead < 0xe0 ? 2
                             : lead >= 0xe0 && lead < 0xf0 ? 3
                             : lead >= 0xf0 && lead < 0xf5 ? 4
                                                           : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;
  if (lead == 0xed && byte(1) >= 0xa0) return 0;  // surrogates
  if (lead == 0xf0 && byte(1) < 0x90) return 0;
  if (lead == 0xf4 && byte(1) >= 0x90) return 0;
  return length;
}

}  // namespace

std::string print_vmstat_m(const Snapshot& snapshot, int format) {
  std::string out;
  if (format == kHumanized) {
    out = fmt::format("{:>16} {:>4} {:>5} {:>3} Size(s)\n", "Type", "Use", "Memory", "Req");
  } else if (format == kHighUse) {
    out = fmt::format("{:>13} {:>5} {:>6} {:>7} {:>8}  {}\n", "Type", "InUse", "MemUse", "HighUse",
                      "Requests", "Size(s)");
  } else {
    out = fmt::format("{:>13} {:>5} {:>6} {:>8}  {}\n", "Type", "InUse", "MemUse", "Requests",
                      "Size(s)");
  }
  constexpr std::size_t kUsualRow = 64;
  out.reserve(out.size() + snapshot.types.size() * kUsualRow);
  const auto rows = std::back_inserter(out);
  for (const TypeRow& row : snapshot.types) {
    if (!printed(row)) continue;
    if (format == kHumanized) {
      const auto human_size = [](std::uint32_t size) { return humanize(size, 1024, false); };
      fmt::format_to(rows, "{:>16} {:>4} {:>5} {:>4} {}\n", row.name,
                     humanize(row.inuse(), 1000, true), humanize(row.memuse(), 1024, true),
                     humanize(row.numallocs, 1000, true), sizes(snapshot, row, human_size));
    } else if (format == kHighUse) {
      fmt::format_to(rows, "{:>13} {:>5} {:>5}K {:>7} {:>8}  {}\n", row.name, row.inuse(),
                     kilobytes(row.memuse()), "-", row.numallocs, sizes(snapshot, row, plain));
    } else {
      fmt::format_to(rows, "{:>13} {:>5} {:>5}K {:>8}  {}\n", row.name, row.inuse(),
                     kilobytes(row.memuse()), row.numallocs, sizes(snapshot, row, plain));
    }
  }
  return out;
}

std::string print_vmstat_m_json(const Snapshot& snapshot, int format) {
  std::string out = format == kHumanized ? R"({"__version":"2",)" : R"({"__version":"1",)";
  out += R"("vmstat":{"malloc-statistics":{"memory":[)";
  bool first = true;
  for (const TypeRow& row : snapshot.types) {
    if (!printed(row)) continue;
    if (!first) out += ',';
    first = false;
    out += fmt::format(R"({{"type":{},"in-use":{},"memory-use":{},)", json_string(row.name),
                       row.inuse(), format == kHumanized ? row.memuse() : kilobytes(row.memuse()));
    if (format == kHighUse) out += R"("high-use":"-",)";
    out +=
        fmt::format(R"("requests":{},"size":[{}]}})", row.numallocs, sizes(snapshot, row, plain));
  }
  return out + "]}}}\n";
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text[0]);
    const std::size_t length = utf8_length(text);
    if (byte == '"' || byte == '\\') {
      out += '\\';
      out += text[0];
    } else if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (byte == '\r') {
      out += "\\r";
    } else if (byte < 0x20 || byte == 0x7f || length == 0) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + "\"";
}

}  // namespace dtmalloc::report
