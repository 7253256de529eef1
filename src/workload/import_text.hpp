// SPDX-License-Identifier: BSD-2-Clause
// What the imports share: names and numbers in captures, symbols and strings in workloads.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace dtmalloc::workload {

// --- reading
bool digits(std::string_view text);
// At most 2^62.
std::optional<std::uint64_t> number(std::string_view text);
std::string_view trim(std::string_view text);  // blanks, tabs, CR
bool has_control_bytes(std::string_view text);

struct CapturedLine {
  std::string_view text;  // trimmed; the frames of pasted table cells are gone
  char side = ' ';        // of a diff: '-', '+' or ' '
  bool diff_head = false;
};
CapturedLine read_line(std::string_view line);

// --- writing
// "1 row", "2 rows".
std::string counted(std::uint64_t n, const char* what);
// A string of the workload language.
std::string quoted(std::string_view text);

// Symbols of a workload, each once.
class Symbols {
 public:
  // "M_FOO_BAR" for the type "foo bar"; that of the kernel for one of its own types.
  std::string of_type(const std::string& name);
  // "Z_FOO_BAR" for the zone "foo bar".
  std::string of_zone(const std::string& name) { return unique("Z_", name); }

 private:
  std::string unique(std::string symbol, const std::string& name);
  std::set<std::string> given_;
};
// "foo_bar" for M_FOO_BAR or Z_FOO_BAR.
std::string block_name(std::string_view symbol);

}  // namespace dtmalloc::workload
