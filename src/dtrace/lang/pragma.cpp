// SPDX-License-Identifier: BSD-2-Clause
// Control lines: #!, # line, #error, #pragma D option.
// Counterpart:  dt_pragma.c
#include <fmt/format.h>

#include <algorithm>

#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {
namespace {

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r' && c != '\n'); }

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> words;
  std::size_t i = 0;
  while (i < line.size()) {
    while (i < line.size() && is_blank(line[i])) ++i;
    std::size_t end = i;
    while (end < line.size() && !is_blank(line[end])) ++end;
    if (end > i) words.push_back(line.substr(i, end - i));
    i = end;
  }
  return words;
}

bool parse_line_number(std::string_view word, std::uint32_t* value) {
  if (word.empty() || word.size() > 9) return false;
  *value = 0;
  for (const char c : word) {
    if (c < '0' || c > '9') return false;
    *value = *value * 10 + static_cast<std::uint32_t>(c - '0');
  }
  return true;
}

}  // namespace

void Lexer::control_line() {
  const std::size_t start = at_;
  const std::size_t end = std::min(text_.find('\n', at_), text_.size());
  Place place = here(end - start);
  at_ = end;  // the newline is counted by the caller
  std::string_view line = text_.substr(start + 1, end - start - 1);
  if (line.starts_with('!')) return;
  std::vector<std::string_view> words = split(line);
  if (words.empty()) return;
  place.length =
      static_cast<std::uint32_t>(words.back().data() + words.back().size() - text_.data() - start);
  std::uint32_t number = 0;
  if (words[0] == "line" || parse_line_number(words[0], &number)) {
    const std::string_view shown = words[0] == "line" ? "line " : "";
    if (words[0] == "line") words.erase(words.begin());
    const bool named = words.size() < 2 || (words[1].size() > 1 && words[1].starts_with('"') &&
                                            words[1].ends_with('"'));
    if (words.empty() || !parse_line_number(words[0], &number) || !named) {
      source_.fail("D_PRAGMA_MALFORM", place,
                   fmt::format("malformed #{}<line> [ [\"file\"] state ]", shown));
    }
    line_ = number - 1;
    return;
  }
  if (words[0] == "pragma") {
    if (words.size() > 1 && words[1] == "D") pragma(words, place);
    return;
  }
  if (words[0] == "error") {
    const std::size_t text = line.find("error") + 5;
    std::string_view rest = line.substr(text);
    while (!rest.empty() && is_blank(rest.front())) rest.remove_prefix(1);
    while (!rest.empty() && is_blank(rest.back())) rest.remove_suffix(1);
    source_.fail("D_PRAGERR", place, fmt::format("#error: {}", rest));
  }
  if (words[0] == "ident") return;
  source_.fail("D_PRAGCTL_INVAL", place, fmt::format("invalid control directive: #{}", words[0]));
}

void Lexer::pragma(const std::vector<std::string_view>& words, const Place& place) {
  if (words.size() < 3) {
    source_.fail("D_PRAGMA_INVAL", place, "invalid D pragma: ");
  }
  const std::string_view what = words[2];
  if (what == "attributes" || what == "binding" || what == "depends_on") {
    source_.fail("D_SIM_UNSUPPORTED", place, fmt::format("#pragma D {} is not supported", what));
  }
  if (what != "option") {
    source_.fail("D_PRAGMA_INVAL", place, fmt::format("invalid D pragma: {}", what));
  }
  if (words.size() < 4) {
    source_.fail("D_PRAGMA_MALFORM", place,
                 fmt::format("malformed #pragma {} <option>=<val>", what));
  }
  if (words.size() > 4) {
    source_.fail("D_PRAGMA_MALFORM", place,
                 fmt::format("superfluous arguments specified for #pragma {}", what));
  }
  std::string_view name = words[3];
  std::string_view value;  // without data: no '='
  const std::size_t equals = name.find('=');
  const bool valued = equals != std::string_view::npos;
  if (valued) {
    value = name.substr(equals + 1);
    name = name.substr(0, equals);
  }
  if (!input_.set_option) return;
  const std::string error = input_.set_option(name, value);
  if (error.empty()) return;
  Place at = place;
  at.offset = static_cast<std::uint32_t>(words[3].data() - text_.data());
  at.length = static_cast<std::uint32_t>(words[3].size());
  source_.fail("D_PRAGMA_OPTSET", at,
               valued ? fmt::format("failed to set option '{}' to '{}': {}", name, value, error)
                      : fmt::format("failed to set option '{}': {}", name, error));
}

}  // namespace dtmalloc::dtrace
