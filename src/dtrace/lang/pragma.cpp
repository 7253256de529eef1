// SPDX-License-Identifier: BSD-2-Clause
// Control lines: #!, # line, #error, #pragma D.
// Counterpart:  dt_pragma.c
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "dtrace/dif/ascii.hpp"
#include "dtrace/dif/attributes.hpp"
#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {
namespace {

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
  if (end == text_.size()) {
    source_.fail("D_SYNTAX", place, "end-of-file encountered before end of control line");
  }
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
  if (what == "attributes") return pragma_attributes(words, place);
  if (what == "binding") return pragma_binding(words, place);
  if (what == "depends_on") return pragma_depends_on(words, place);
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

void Lexer::superfluous(const std::vector<std::string_view>& words, std::size_t wanted,
                        const Place& place) const {
  if (words.size() <= wanted) return;
  source_.fail("D_PRAGMA_MALFORM", place,
               fmt::format("superfluous arguments specified for #pragma {}", words[2]));
}

// attributes <attributes> <name>, or <attributes> provider <name> <part>.
void Lexer::pragma_attributes(const std::vector<std::string_view>& words, const Place& place) {
  constexpr std::array<std::string_view, 5> kParts = {"provider", "module", "function", "name",
                                                      "args"};
  const bool provider = words.size() > 4 && words[4] == "provider";
  if (words.size() < 5 || (provider && words.size() < 7)) {
    source_.fail("D_PRAGMA_MALFORM", place,
                 fmt::format("malformed #pragma {} <attributes> <ident>", words[2]));
  }
  const std::optional<Attribute> attribute = parse_attribute(words[3]);
  if (!attribute) {
    source_.fail("D_PRAGMA_INVAL", place,
                 fmt::format("invalid attributes specified by #pragma {}", words[2]));
  }
  superfluous(words, provider ? 7 : 5, place);
  Pragma pragma{Pragma::attributes, std::string(words[provider ? 5 : 4]), place, *attribute, {}, 0};
  if (provider) {
    pragma.kind = Pragma::provider_attributes;
    pragma.part = words[6];
    if (std::find(kParts.begin(), kParts.end(), pragma.part) == kParts.end()) {
      source_.fail("D_PRAGMA_INVAL", place,
                   fmt::format("invalid component \"{}\" in attribute #pragma for provider {}",
                               pragma.part, pragma.name));
    }
  }
  pragmas_.push_back(std::move(pragma));
}

// binding "<version>" <name>.
void Lexer::pragma_binding(const std::vector<std::string_view>& words, const Place& place) {
  const bool quoted =
      words.size() > 4 && words[3].size() > 1 && words[3].front() == '"' && words[3].back() == '"';
  if (!quoted) {
    source_.fail("D_PRAGMA_MALFORM", place,
                 fmt::format("malformed #pragma {} \"version\" <ident>", words[2]));
  }
  const auto version = parse_version(words[3].substr(1, words[3].size() - 2));
  if (!version) {
    source_.fail("D_PRAGMA_INVAL", place,
                 fmt::format("invalid version string specified by #pragma {}", words[2]));
  }
  superfluous(words, 5, place);
  pragmas_.push_back({Pragma::binding, std::string(words[4]), place, {}, {}, *version});
}

// depends_on <library|module|provider> <name>.
void Lexer::pragma_depends_on(const std::vector<std::string_view>& words, const Place& place) {
  if (words.size() < 5) {
    source_.fail("D_PRAGMA_MALFORM", place,
                 fmt::format("malformed #pragma {} <class> <name>", words[2]));
  }
  const std::string_view kind = words[3];
  if (kind != "library" && kind != "module" && kind != "provider") {
    source_.fail("D_PRAGMA_INVAL", place,
                 fmt::format("invalid class {} specified by #pragma {}", kind, words[2]));
  }
  superfluous(words, 5, place);
  if (kind == "library" && !input_.library) {
    source_.fail("D_PRAGMA_DEPEND", place, "main program may not explicitly depend on a library");
  }
  pragmas_.push_back({Pragma::depends_on, std::string(words[4]), place, {}, std::string(kind), 0});
}

std::optional<std::uint32_t> parse_version(std::string_view text) {
  std::array<std::uint32_t, 3> parts = {};
  std::size_t part = 0;
  std::size_t digits = 0;
  for (const char c : text) {
    if (c == '.' && digits > 0 && part < 2) {
      ++part;
      digits = 0;
    } else if (c >= '0' && c <= '9' && digits < 4) {
      parts[part] = parts[part] * 10 + static_cast<std::uint32_t>(c - '0');
      ++digits;
    } else {
      return std::nullopt;
    }
  }
  if (part == 0 || digits == 0 || parts[0] > 0xff || parts[1] > 0xfff || parts[2] > 0xfff) {
    return std::nullopt;
  }
  return parts[0] << 24 | parts[1] << 12 | parts[2];
}

std::vector<std::string> library_dependencies(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text = text.substr(std::min(text.size(), line.size() + 1));
    const std::size_t hash = line.find_first_not_of(" \t\v\f\r");
    if (hash == std::string_view::npos || line[hash] != '#') continue;
    const std::vector<std::string_view> words = split(line.substr(hash + 1));
    if (words.size() == 5 && words[0] == "pragma" && words[1] == "D" && words[2] == "depends_on" &&
        words[3] == "library") {
      names.emplace_back(words[4]);
    }
  }
  return names;
}

}  // namespace dtmalloc::dtrace
