// SPDX-License-Identifier: BSD-2-Clause
// What -v says of the stability of a program.
// Counterpart:  dtrace.c, the command (exec_prog, info_stmt)
#include "dtrace/consume/session_impl.hpp"
#include "dtrace/dif/attributes.hpp"

namespace dtmalloc::dtrace {
std::string Session::stability_report(ProgramId id, bool per_clause) const {
  DTM_CHECK(id < impl_->programs.size(), "no such program");
  const CompiledProgram& compiled = impl_->programs[id];
  const bool script = compiled.source.kind == ProgramSource::script;
  std::string text = std::string("\nStability attributes for ") +
                     (script ? "script " : "description ") + report_name(compiled.source) + ":\n";
  Attribute descriptions = kMostStable;
  Attribute statements = kMostStable;
  for (const Clause& clause : compiled.program->clauses) {
    descriptions = least(descriptions, clause.description_attribute);
    statements = least(statements, clause.statement_attribute);
  }
  append_attribute(text, "Minimum Probe Description", descriptions);
  append_attribute(text, "Minimum Statement", statements);
  if (!per_clause) return text + "\n";
  for (const Clause& clause : compiled.program->clauses) {
    text += "\n" + to_string(clause.description) + "\n";
    const std::vector<ProbeId> matched = impl_->framework.match(clause.description);
    if (!matched.empty()) {
      append_details(text, impl_->framework, impl_->framework.probe(matched.front()),
                     clause.description);
    }
  }
  return text;
}

}  // namespace dtmalloc::dtrace
