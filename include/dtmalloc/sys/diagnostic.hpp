// SPDX-License-Identifier: BSD-2-Clause
// Diagnostics: what is wrong in a user's D program, workload or option, and where.
//
// Example:
//   Diagnostic d{"WL_UNKNOWN_TYPE", {"load.wl", 3, 15, 4}, "unknown type M_TT"};
//   d.source_line = "a = malloc 10 M_TT M_WAITOK";
//   d.near_names = nearest_names("M_TT", names);
//   std::cerr << to_string(d);
//
// Errors:        a Diagnostic is a user's error; it is returned, never thrown.
// Thread safety: values; no shared state.
// Source:        src/README.md, "four kinds of failure".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dtmalloc {

// A place in a text. Lines and columns count from 1, columns in bytes; line 0 = no place.
struct SourceLocation {
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::uint32_t length = 1;  // bytes to underline
};

struct Diagnostic {
  std::string tag;  // stable: D_* as dtrace(1) has them, WL_* for workloads, CLI_* for options
  SourceLocation where;
  std::string message;
  std::string source_line;              // the line at `where`, without its newline
  std::string expected;                 // what would have been right, or empty
  std::vector<std::string> near_names;  // nearest right names, best first
};

// "file:line:column: error: message", the line, a caret, "expected ...", "did you mean ...?".
// Ends with a newline. Long lines are cut around the place; control bytes print as '?'.
std::string to_string(const Diagnostic& diagnostic);

// Up to `most` candidates within an edit distance that a typing error explains, best first, ties
// in the order given.
std::vector<std::string> nearest_names(std::string_view name,
                                       std::span<const std::string> candidates,
                                       std::size_t most = 3);

}  // namespace dtmalloc
