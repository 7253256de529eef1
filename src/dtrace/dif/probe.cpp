// SPDX-License-Identifier: BSD-2-Clause
// Descriptions and stability names as text; globs.
// Counterpart:  dtrace_match_glob, dtrace_stability_name
#include <array>
#include <cstddef>
#include <dtmalloc/dtrace/probe.hpp>

namespace dtmalloc::dtrace {
namespace {

// One character against the class whose '[' is at pattern[at]. Sets `next` past the ']'; a class
// that never ends matches nothing.
bool class_matches(std::string_view pattern, std::size_t at, char text, std::size_t* next) {
  const auto character = static_cast<unsigned char>(text);
  std::size_t i = at + 1;
  const bool negated = i < pattern.size() && pattern[i] == '!';
  if (negated) ++i;
  bool found = false;
  bool any = false;
  unsigned char last = 0;
  while (i < pattern.size() && (pattern[i] != ']' || !any)) {
    if (pattern[i] == '-' && any && i + 1 < pattern.size() && pattern[i + 1] != ']') {
      ++i;
      if (pattern[i] == '\\' && ++i >= pattern.size()) return false;
      const auto high = static_cast<unsigned char>(pattern[i]);
      found = found || (last <= character && character <= high);
      last = high;
    } else {
      if (pattern[i] == '\\' && ++i >= pattern.size()) return false;
      last = static_cast<unsigned char>(pattern[i]);
      found = found || last == character;
    }
    any = true;
    ++i;
  }
  if (i >= pattern.size()) return false;
  *next = i + 1;
  return found != negated;
}

bool one_matches(std::string_view pattern, std::size_t at, char text, std::size_t* next) {
  switch (pattern[at]) {
    case '?':
      *next = at + 1;
      return true;
    case '[':
      return class_matches(pattern, at, text, next);
    case '\\':
      if (at + 1 >= pattern.size()) return false;
      *next = at + 2;
      return pattern[at + 1] == text;
    default:
      *next = at + 1;
      return pattern[at] == text;
  }
}

}  // namespace

std::string to_string(const ProbeDescription& description) {
  std::string text;
  text.reserve(description.provider.size() + description.module.size() +
               description.function.size() + description.name.size() + 3);
  text += description.provider;
  text += ':';
  text += description.module;
  text += ':';
  text += description.function;
  text += ':';
  text += description.name;
  return text;
}

std::string_view to_string(Stability stability) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "Internal", "Private", "Obsolete", "External", "Unstable", "Evolving", "Stable", "Standard"};
  return kNames[static_cast<std::size_t>(stability)];
}

std::string_view to_string(DependencyClass dependency) {
  static constexpr std::array<std::string_view, 6> kNames = {"Unknown", "CPU", "Platform",
                                                             "Group",   "ISA", "Common"};
  return kNames[static_cast<std::size_t>(dependency)];
}

bool is_glob(std::string_view pattern) {
  return pattern.find_first_of("?*[\\") != std::string_view::npos;
}

// Backtracks to the last '*' only, which suffices: time is bounded by the product of the lengths.
bool glob_match(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return true;
  if (!is_glob(pattern)) return pattern == text;
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_text = 0;
  while (t < text.size()) {
    std::size_t next = 0;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && one_matches(pattern, p, text[t], &next)) {
      p = next;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace dtmalloc::dtrace
