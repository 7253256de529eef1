// SPDX-License-Identifier: BSD-2-Clause
// Names and numbers in captures, symbols and strings in workloads.
#include "workload/import_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <dtmalloc/workload/workload.hpp>
#include <map>

namespace dtmalloc::workload {

bool digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t n = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{} || rest != text.data() + text.size() || text.empty()) return {};
  if (n > std::uint64_t{1} << 62) return {};
  return n;
}

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

bool has_control_bytes(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
}

CapturedLine read_line(std::string_view line) {
  CapturedLine out;
  if (line.starts_with("---") || line.starts_with("+++") || line.starts_with("@@") ||
      line.starts_with("diff ")) {
    out.diff_head = true;
    return out;
  }
  if (!line.empty() && (line[0] == '-' || line[0] == '+')) {
    out.side = line[0];
    line.remove_prefix(1);
  } else if (line.size() > 1 && (line[0] == '<' || line[0] == '>') && line[1] == ' ') {
    out.side = line[0] == '<' ? '-' : '+';
    line.remove_prefix(2);
  }
  line = trim(line);
  while (!line.empty() && line.back() == '|') line = trim(line.substr(0, line.size() - 1));
  while (!line.empty() && line.front() == '|') line = trim(line.substr(1));
  out.text = line;
  return out;
}

std::string counted(std::uint64_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string quoted(std::string_view text) {
  Workload w;
  w.types.push_back({"M", std::string(text), "", false, true});
  w.bodies.push_back({});
  Op op;
  op.kind = OpKind::type;
  op.type = 0;
  w.bodies[0].push_back(op);
  std::string line = print(w);  // type M "..."\n
  return line.substr(7, line.size() - 8);
}

std::string Symbols::unique(std::string symbol, const std::string& name) {
  for (const char c : name.substr(0, 100)) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool digit = c >= '0' && c <= '9';
    symbol += letter ? static_cast<char>(c & ~0x20) : digit ? c : '_';
  }
  static const std::set<std::string> kReserved{
      "M_CACHE",    "M_DEVBUF",    "M_TEMP", "M_UMA",     "M_UMAHASH",     "M_NOWAIT",
      "M_WAITOK",   "M_NORECLAIM", "M_ZERO", "M_NOVM",    "M_USE_RESERVE", "M_NODUMP",
      "M_FIRSTFIT", "M_BESTFIT",   "M_EXEC", "M_NEXTFIT", "M_NEVERFREED"};
  std::string unique = symbol;
  for (int i = 2; kReserved.contains(unique) || !given_.insert(unique).second; ++i) {
    unique = fmt::format("{}_{}", symbol, i);
  }
  return unique;
}

std::string Symbols::of_type(const std::string& name) {
  static const std::map<std::string, std::string> kBuiltin{{"cache", "M_CACHE"},
                                                           {"devbuf", "M_DEVBUF"},
                                                           {"temp", "M_TEMP"},
                                                           {"UMA", "M_UMA"},
                                                           {"UMAHash", "M_UMAHASH"}};
  if (const auto builtin = kBuiltin.find(name); builtin != kBuiltin.end()) {
    if (given_.insert(builtin->second).second) return builtin->second;
  }
  return unique("M_", name);
}

std::string block_name(std::string_view symbol) {
  std::string out;
  if (symbol.size() == 2 || (symbol[2] >= '0' && symbol[2] <= '9')) out += 'b';
  for (const char c : symbol.substr(2)) {
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  }
  return out;
}

}  // namespace dtmalloc::workload
