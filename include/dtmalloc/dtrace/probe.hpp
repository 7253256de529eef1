// SPDX-License-Identifier: BSD-2-Clause
// Probes: their ids, names and stability attributes.
//
// A probe is provider:module:function:name. Any field of a description may be empty (matches all)
// or a glob.
//
// Example:
//   ProbeDescription d = {"dtmalloc", "", "temp", "malloc"};
//   to_string(d);                                  // "dtmalloc::temp:malloc"
//
// Thread safety: values.
// Source:        dtrace(1); spec/dtrace.md 1 and 20.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dtmalloc::dtrace {

using ProbeId = std::uint32_t;  // dtrace_id_t; 0: none
inline constexpr ProbeId kNoProbe = 0;

// Sizes with the terminating NUL.
inline constexpr std::size_t kProviderNameLength = 64;
inline constexpr std::size_t kModuleNameLength = 64;
inline constexpr std::size_t kFunctionNameLength = 192;
inline constexpr std::size_t kNameLength = 64;

struct ProbeDescription {
  std::string provider, module, function, name;
  ProbeId id = kNoProbe;  // set: the probe itself, the fields do not count
  bool operator==(const ProbeDescription&) const = default;
};
std::string to_string(const ProbeDescription& description);  // always four fields

// What to say of a description that matches nothing because of its function.
struct FunctionHint {
  std::string expected;  // as in "expected TEXT"; or empty
  std::string function;  // the one that is meant; or empty
  std::string place;     // where a probe of that function would come from later: "line 5"
};

// What users of a probe's argument would not expect, and what to write instead.
struct ArgumentRemark {
  int index = 0;
  bool unless_tested = false;  // holds only for clauses whose predicate does not look at it
  std::string what, instead;
};

enum class Stability : std::uint8_t {
  internal,
  private_,
  obsolete,
  external,
  unstable,
  evolving,
  stable,
  standard,
};
enum class DependencyClass : std::uint8_t { unknown, cpu, platform, group, isa, common };
struct Attribute {
  Stability name, data;
  DependencyClass dependency;
};
struct ProviderAttributes {
  Attribute provider, module, function, name, args;
};
std::string_view to_string(Stability stability);
std::string_view to_string(DependencyClass dependency);

// One field against a pattern (empty, exact, or with ? * [ \): spec/dtrace.md 1.3.
bool glob_match(std::string_view pattern, std::string_view text);
bool is_glob(std::string_view pattern);

}  // namespace dtmalloc::dtrace
