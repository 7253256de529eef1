// SPDX-License-Identifier: BSD-2-Clause
// The compiler, stage by stage: characters -> tokens -> tree -> plain tree -> typed tree -> DIF.
// A compile is a function of its inputs; two may run at once.
// Counterpart:  libdtrace (dt_lex.l, dt_grammar.y, dt_parser.c, dt_cg.c)
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dtrace/dif/catalog.hpp"
#include "dtrace/dif/program.hpp"

namespace dtmalloc::dtrace {

enum class SpecContext : std::uint8_t { provider, module, function, name };

inline constexpr std::uint32_t kDVersion = 0x0100d000;  // 1.13

// The options that the compiler itself obeys.
struct CompileSettings {
  bool allow_zero_matches = false;  // -Z
  bool allow_empty = false;         // -x empty
  bool argref = false;              // -x argref
  bool defaultargs = false;         // -x defaultargs
  std::uint32_t strsize = 256;
  std::uint64_t stackframes = 20, ustackframes = 20, jstackframes = 50, jstackstrsize = 512;
  std::optional<Attribute> least_attribute;  // -x amin
  std::uint32_t version = kDVersion;         // -x version: built-ins of later ones are unknown
};

struct CompileInput : CompileSettings {
  std::string text;
  std::string file;  // empty: a command-line string
  SpecContext context = SpecContext::name;
  std::vector<std::string> arguments;  // $0 $1 ...
  // $pid, $uid ...: those that have no value here are D_MACRO_UNDEF.
  std::vector<std::pair<std::string, std::int64_t>> macros;
  bool library = false;  // a file of a library: it may depend on others
  bool dumps = true;     // fill the dumps
  // #pragma D option name[=value]; the text of the error if it is refused, or empty. Without a '='
  // value.data() is null.
  std::function<std::string(std::string_view, std::string_view)> set_option;
  // What the settings are once set_option has accepted one: it holds from there on. Null: they
  // stay.
  std::function<CompileSettings()> settings;
};

struct CompileOutput {
  Program program;
  std::string parse_dump, desugar_dump, type_dump;
  std::vector<Diagnostic> warnings;  // lint.cpp
};

// The first error only, as dtrace(1): tag, place, text. Diagnostic::where.file is empty for
// command-line strings; `message` already begins with "line 3: " or "in action list: " where
// dtrace(1) says so (spec/dtrace.md 18.1).
Result<CompileOutput> compile(const CompileInput& input, Catalog& catalog, ProgramSpace& space);

// The type of a built-in variable, "pid_t"; empty: there is none of this name, or it has no one
// type.
std::string_view builtin_type(std::string_view name);
// An action by its name in D, "printf"; empty: an expression, or what adds to an aggregation. Of
// several of one kind (sym and its kin) the first.
std::string_view action_name(ActionKind kind);
// The libraries that a library names in #pragma D depends_on library.
std::vector<std::string> library_dependencies(std::string_view text);
// "1.6.3" -> 0x01006003.
std::optional<std::uint32_t> parse_version(std::string_view text);

// A description with right-to-left fields (spec/dtrace.md 1.2).
Result<ProbeDescription> parse_description(std::string_view text, SpecContext context);

}  // namespace dtmalloc::dtrace
