// SPDX-License-Identifier: BSD-2-Clause
// dtrace -l: the table of probes, and what -v adds.
// Counterpart:  dtrace.c (list_probe, print_probe_info), dt_probe.c (dtrace_probe_info)
#include <algorithm>

#include "dtrace/consume/session_impl.hpp"

namespace dtmalloc::dtrace {
namespace {

void append_heading(std::string& text) {
  append(text, "%5s %10s %17s %33s %s\n", "ID", "PROVIDER", "MODULE", "FUNCTION", "NAME");
}

void append_row(std::string& text, const Framework::ProbeInfo& probe) {
  append(text, "%5d %10s %17s %33s %s\n", static_cast<int>(probe.id),
         probe.description.provider.c_str(), probe.description.module.c_str(),
         probe.description.function.c_str(), probe.description.name.c_str());
}

}  // namespace

void append_attribute(std::string& text, const char* what, const Attribute& attribute) {
  append(text, "\n\t%s Attributes\n", what);
  append(text, "\t\tIdentifier Names: %s\n", std::string(to_string(attribute.name)).c_str());
  append(text, "\t\tData Semantics:   %s\n", std::string(to_string(attribute.data)).c_str());
  append(text, "\t\tDependency Class: %s\n", std::string(to_string(attribute.dependency)).c_str());
}

void append_details(std::string& text, Framework& framework, const Framework::ProbeInfo& probe,
                    const ProbeDescription& described) {
  append_attribute(text, "Probe Description", description_attribute(described, &probe.attributes));
  append_attribute(text, "Argument", probe.attributes.args);
  text += "\n\tArgument Types\n";
  const std::vector<ArgDescription> arguments = framework.arguments(probe.id);
  for (const ArgDescription& argument : arguments) {
    const std::string& type = argument.translated.empty() ? argument.native : argument.translated;
    append(text, "\t\targs[%d]: %s\n", argument.index, type.c_str());
  }
  if (arguments.empty()) text += "\t\tNone\n";
  text += '\n';
}

bool Session::list(const ProbeDescription* description) {
  std::string text;
  append_heading(text);
  bool found = true;
  if (description == nullptr) {
    for (const Framework::ProbeInfo& probe : impl_->framework.probes()) append_row(text, probe);
  } else {
    const std::vector<ProbeId> ids = impl_->framework.match(*description);
    found = !ids.empty();
    for (const ProbeId id : ids) append_row(text, impl_->framework.probe(id));
  }
  impl_->out(text);
  if (!found) {
    impl_->message("failed to match " + to_string(*description) + ": No probe matches description");
  }
  return found;
}

void Session::list(const std::vector<ProgramId>& programs, bool verbose) {
  Framework& framework = impl_->framework;
  std::string text;
  append_heading(text);
  const auto show = [&](const Framework::ProbeInfo& probe) {
    append_row(text, probe);
    if (verbose) append_details(text, framework, probe, probe.description);
  };
  if (programs.empty()) {
    for (const Framework::ProbeInfo& probe : framework.probes()) show(probe);
  }
  for (const ProgramId program : programs) {
    for (const Clause& clause : impl_->programs.at(program).program->clauses) {
      const std::vector<ProbeId> ids = clause.description.id != kNoProbe
                                           ? std::vector<ProbeId>{clause.description.id}
                                           : framework.match(clause.description);
      for (const ProbeId id : ids) show(framework.probe(id));
      if (!ids.empty()) continue;
      impl_->out(text);
      text.clear();
      impl_->message("failed to match " + to_string(clause.description) +
                     ": No probe matches description");
    }
  }
  impl_->out(text);
}

}  // namespace dtmalloc::dtrace
