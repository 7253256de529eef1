// SPDX-License-Identifier: BSD-2-Clause
// Probe descriptions: fields from the right.
// Counterpart:  dtrace_xstr2desc
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "dtrace/lang/lang.hpp"

namespace dtmalloc::dtrace {
namespace {

Diagnostic refused(std::string_view text, std::string message) {
  Diagnostic diagnostic;
  diagnostic.tag = "D_PDESC_INVAL";
  diagnostic.where = {"", 1, 1, static_cast<std::uint32_t>(std::max<std::size_t>(1, text.size()))};
  diagnostic.message = std::move(message);
  diagnostic.source_line = text;
  return diagnostic;
}

constexpr std::array<std::string_view, 4> kContexts = {"providers", "modules", "functions",
                                                       "probe names"};

// How deep matching a field recurses: once per group of '*' that more follows.
std::size_t glob_depth(std::string_view field) {
  std::size_t depth = 0;
  for (std::size_t i = 0; i < field.size(); ++i) {
    if (field[i] == '\\') {
      ++i;
    } else if (field[i] == '*' && i + 1 < field.size() && field[i + 1] != '*') {
      ++depth;
    }
  }
  return depth;
}
constexpr std::size_t kMaxGlobDepth = 8;

}  // namespace

Result<ProbeDescription> parse_description(std::string_view text, SpecContext context) {
  ProbeDescription description;
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos) {
    std::uint64_t id = 0;
    for (const char c : text) {
      id = std::min<std::uint64_t>(id * 10 + static_cast<std::uint64_t>(c - '0'),
                                   std::uint64_t{1} << 40);
    }
    if (context != SpecContext::name) {
      return refused(text, fmt::format("probe identifier {} not permitted when specifying {}", text,
                                       kContexts[static_cast<std::size_t>(context)]));
    }
    if (id > std::numeric_limits<ProbeId>::max()) {
      return refused(text, fmt::format("identifier {} exceeds maximum probe id", text));
    }
    if (id == 0) {
      return refused(text, "invalid probe identifier 0: Unknown probe identifier");
    }
    description.id = static_cast<ProbeId>(id);
    return description;
  }
  std::string* const fields[] = {&description.provider, &description.module, &description.function,
                                 &description.name};
  std::string_view rest = text;
  for (int field = static_cast<int>(context);; --field) {
    if (field < 0) {
      return refused(text, fmt::format("invalid probe description \"{}\": Overspecified probe "
                                       "description",
                                       text));
    }
    const std::size_t colon = rest.rfind(':');
    *fields[field] = rest.substr(colon == std::string_view::npos ? 0 : colon + 1);
    if (glob_depth(*fields[field]) > kMaxGlobDepth) {
      return refused(text,
                     fmt::format("invalid probe description \"{}\": Probe description has too "
                                 "many globbing characters",
                                 text));
    }
    if (colon == std::string_view::npos) return description;
    rest = rest.substr(0, colon);
  }
}

}  // namespace dtmalloc::dtrace
