// SPDX-License-Identifier: BSD-2-Clause
// Printing of diagnostics, and the search for the name that was meant.
#include <algorithm>
#include <dtmalloc/sys/diagnostic.hpp>
#include <numeric>
#include <utility>

namespace dtmalloc {
namespace {

constexpr std::size_t kMaxShown = 100;    // columns of a source line that are printed
constexpr std::size_t kBefore = 60;       // columns kept before the place in a cut line
constexpr std::size_t kMaxCaret = 80;     // tildes at most
constexpr std::size_t kMaxCompared = 64;  // longer names are compared by their beginning

std::string printable(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\t')
      c = ' ';
    else if (byte < 0x20 || byte == 0x7f)
      c = '?';
  }
  return out;
}

char folded(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  return c == '-' || c == ' ' ? '_' : c;
}

// Optimal string alignment distance, an edit counting 2. Letter case and the kind of separator
// count 1 in all.
std::size_t distance(std::string_view a, std::string_view b) {
  a = a.substr(0, kMaxCompared);
  b = b.substr(0, kMaxCompared);
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = 2 * j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = 2 * i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = folded(a[i - 1]) == folded(b[j - 1]) ? 0 : 2;
      row[j] = std::min({last[j] + 2, row[j - 1] + 2, last[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 2);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()] + (a == b ? 0 : 1);
}

}  // namespace

std::string to_string(const Diagnostic& diagnostic) {
  const SourceLocation& where = diagnostic.where;
  std::string out;
  if (!where.file.empty()) out += printable(where.file) + ":";
  if (where.line != 0) {
    out += std::to_string(where.line) + ":";
    if (where.column != 0) out += std::to_string(where.column) + ":";
  }
  if (!out.empty()) out += " ";
  out += "error: " + printable(diagnostic.message) + "\n";
  if (where.line != 0 && where.column != 0 && !diagnostic.source_line.empty()) {
    const std::string& line = diagnostic.source_line;
    std::size_t at = std::min<std::size_t>(where.column - 1, line.size());
    std::size_t from = 0;
    if (line.size() > kMaxShown && at > kBefore) from = at - kBefore;
    const std::string_view shown = std::string_view(line).substr(from, kMaxShown);
    const bool cut_left = from > 0;
    const bool cut_right = from + shown.size() < line.size();
    out += "  " + std::string(cut_left ? "..." : "") + printable(shown) +
           std::string(cut_right ? "..." : "") + "\n";
    out += "  " + std::string(at - from + (cut_left ? 3 : 0), ' ') + "^";
    const std::size_t room = from + shown.size() > at ? from + shown.size() - at : 1;
    const std::size_t marked = std::min<std::size_t>({where.length, room, kMaxCaret});
    if (marked > 1) out += std::string(marked - 1, '~');
    out += "\n";
  }
  if (!diagnostic.expected.empty()) out += "  expected " + printable(diagnostic.expected) + "\n";
  if (!diagnostic.near_names.empty()) {
    out += "  did you mean ";
    for (std::size_t i = 0; i < diagnostic.near_names.size(); ++i) {
      if (i > 0) out += i + 1 == diagnostic.near_names.size() ? " or " : ", ";
      out += "'" + printable(diagnostic.near_names[i]) + "'";
    }
    out += "?\n";
  }
  return out;
}

std::vector<std::string> nearest_names(std::string_view name,
                                       std::span<const std::string> candidates, std::size_t most) {
  const std::size_t limit = 2 * std::max<std::size_t>(1, name.size() / 3) + 1;
  std::vector<std::pair<std::size_t, std::size_t>> found;  // distance, index
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::size_t longer = std::max(candidates[i].size(), name.size());
    const std::size_t shorter = std::min(candidates[i].size(), name.size());
    if (2 * (longer - shorter) > limit) continue;
    const std::size_t d = distance(name, candidates[i]);
    if (d <= limit) found.emplace_back(d, i);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> out;
  for (const auto& [d, i] : found) {
    if (out.size() == most) break;
    if (std::find(out.begin(), out.end(), candidates[i]) == out.end()) out.push_back(candidates[i]);
  }
  return out;
}

}  // namespace dtmalloc
