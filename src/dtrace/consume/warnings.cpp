// SPDX-License-Identifier: BSD-2-Clause
// What a compiled program says and hardly means, beyond what its own text shows (lang/lint.cpp):
// the probes that it meets, and the options that are set.
#include <algorithm>
#include <set>

#include "dtrace/consume/session_impl.hpp"
#include "dtrace/core/framework.hpp"

namespace dtmalloc::dtrace {
namespace {

constexpr std::uint64_t kFewRecords = 16;

// Bytes of a clause's record, about: the header, and what is recorded.
std::uint64_t record_size(const Clause& clause, std::uint32_t strsize) {
  std::uint64_t size = 16;
  for (const Action& action : clause.actions) {
    if (action.kind == ActionKind::eval || action.kind == ActionKind::aggregate) continue;
    for (const Value& value : action.values)
      size += std::max<std::uint64_t>(4, value.desc.is_string ? strsize : value.desc.size);
  }
  return size;
}

// How many characters a name has at least that matches a pattern.
std::size_t least_length(std::string_view pattern) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const std::size_t end = pattern[i] == '[' ? pattern.find(']', i + 2) : std::string_view::npos;
    if (pattern[i] != '*') ++length;
    if (pattern[i] == '\\') ++i;
    if (end != std::string_view::npos) i = end;
  }
  return is_glob(pattern) ? length : pattern.size();
}

struct NameField {
  const char* what;
  std::string ProbeDescription::*name;
  std::size_t longest;
};
constexpr NameField kNameFields[] = {
    {"provider", &ProbeDescription::provider, kProviderNameLength - 1},
    {"module", &ProbeDescription::module, kModuleNameLength - 1},
    {"function", &ProbeDescription::function, kFunctionNameLength - 1},
    {"name", &ProbeDescription::name, kNameLength - 1}};

}  // namespace

std::vector<Diagnostic> Session::warnings(ProgramId program) const {
  DTM_CHECK(program < impl_->programs.size(), "no such program");
  Framework& framework = impl_->framework;
  const CompiledProgram& compiled = impl_->programs[program];
  std::vector<Diagnostic> result;
  for (const Diagnostic& warning : compiled.warnings) {
    if (warning.tag == "LINT_DESTRUCTIVE" && impl_->options.is_set("destructive")) continue;
    result.push_back(warning);
  }
  std::set<std::string> said;
  const auto warn = [&](const char* tag, const Clause& clause, std::string message,
                        std::string instead) {
    if (!said.insert(message).second) return;
    Diagnostic warning;
    warning.tag = tag;
    warning.where = clause.where;
    warning.message = std::move(message);
    warning.expected = std::move(instead);
    result.push_back(std::move(warning));
  };
  const std::map<std::string, FunctionHint> hints = framework.hints();
  for (const Clause& clause : compiled.program->clauses) {
    const ProbeDescription& wanted = clause.description;
    for (const std::string& note : framework.notes(wanted))
      warn("LINT_COLLISION", clause, note, {});
    for (const auto& [name, hint] : hints) {
      if (hint.place.empty() || wanted.id != kNoProbe || !glob_match(wanted.function, name) ||
          !glob_match(wanted.provider, "dtmalloc") ||
          !(glob_match(wanted.name, "malloc") || glob_match(wanted.name, "free")))
        continue;
      const std::string& expected = hint.expected;
      const std::size_t colon = expected.find(": ");
      warn("LINT_LATE_TYPE", clause,
           expected.substr(colon == expected.npos ? 0 : colon + 2) +
               " than tracing starts: the type gets no probes until another consumer starts",
           {});
    }
    for (const NameField& field : kNameFields) {
      const std::string& name = wanted.*field.name;
      const std::size_t length = least_length(name);
      if (length <= field.longest) continue;
      warn("LINT_NAME", clause,
           std::string("no probe has a ") + field.what + " of " + std::to_string(length) +
               " characters: a kernel cuts names after " + std::to_string(field.longest),
           is_glob(name) ? "a shorter pattern" : name.substr(0, field.longest));
    }
    for (const auto& [description, hint] : hints) {
      if (description.size() < kFunctionNameLength || wanted.function.empty() ||
          !glob_match(wanted.function, hint.function))
        continue;
      warn("LINT_NAME", clause,
           "the function is cut: the type's description has " + std::to_string(description.size()) +
               " characters, of which a kernel takes " + std::to_string(hint.function.size()),
           {});
    }
    const std::uint64_t record = record_size(clause, impl_->strsize());
    const std::uint64_t bufsize = impl_->options.get("bufsize");
    if (bufsize < record) {
      warn("LINT_BUFFER", clause,
           "a buffer of " + std::to_string(bufsize) +
               " bytes is too small for a record of this clause: tracing does not start",
           "a larger bufsize");
    } else if (bufsize / record < kFewRecords) {
      warn("LINT_BUFFER", clause,
           "a buffer of " + std::to_string(bufsize) + " bytes holds " +
               std::to_string(bufsize / record) +
               " records of this clause between two passes; the others are drops",
           "a larger bufsize, or a shorter switchrate");
    }
  }
  return result;
}

}  // namespace dtmalloc::dtrace
