// SPDX-License-Identifier: BSD-2-Clause
// The parser on one line after another, for traces: what it remembers of a line are names.
// Invariants:   between two lines no view into a text is kept

#include <cstring>

#include "workload/parser.hpp"

namespace dtmalloc::workload {
namespace {

constexpr std::array<std::string_view, 5> kBlocks{"repeat", "thread", "critical", "interrupt",
                                                  "nosleep"};

}  // namespace

Parser::Parser(std::string file) : place_(nullptr), end_(nullptr), line_start_(nullptr) {
  result_.file = std::move(file);
  result_.bodies.emplace_back();
  for (NameTable& names : names_) names.keep_copies();
  builtin_types();
}

std::optional<Op> Parser::line(std::string_view text, std::uint32_t number) {
  text_ = text;
  place_ = line_start_ = text.data();
  end_ = place_ + text.size();
  line_ = number;
  if (const void* nul = std::memchr(text.data(), 0, text.size()))
    fail("WL_NUL", {static_cast<const char*>(nul), 1}, "a NUL byte: this is no text file",
         "a text file");
  if (number == 1 && text.starts_with("\xef\xbb\xbf"))
    fail("WL_SYNTAX", text.substr(0, 3), "a UTF-8 byte order mark", "the first statement");
  skip_blanks();
  const std::string_view first = peek_word();
  const bool is_name = place_ + first.size() < end_ && place_[first.size()] == '[';
  for (const std::string_view block : kBlocks) {
    if (first != block || is_name) continue;
    const char* after = place_ + first.size();
    while (after < end_ && (*after == ' ' || *after == '\t')) ++after;
    if (after < end_ && *after == '=') break;  // a name
    fail("WL_TRACE", first, "`" + std::string(first) + "` is no statement of a flat trace",
         "a workload with blocks is run by `dtmalloc run`; `dtmalloc record` makes a trace of it");
  }
  std::vector<Op> ops;
  statements(ops, false, 0);
  if (ops.empty()) return std::nullopt;
  return ops.front();
}

Index Parser::known_type(std::string_view symbol) const {
  const auto found = types_.find(symbol);
  return found == types_.end() ? kNone : found->second;
}

void Parser::forget() {
  result_.exprs.clear();
  result_.placements.clear();
  result_.sysctls.clear();
}

}  // namespace dtmalloc::workload
