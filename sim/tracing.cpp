// SPDX-License-Identifier: BSD-2-Clause
// D programs on the machine of a run.

#include "tracing.hpp"

#include <cstring>

namespace dtmalloc::sim {
namespace {

dtrace::Framework& prepared(dtrace::Framework& framework, Kernel& kernel) {
  framework.load_standard_providers();
  dtrace::load_fbt(framework, kernel);
  dtrace::load_dtmalloc(framework, kernel);
  return framework;
}

// The types that the workload registers while programs run.
void tell_later_types(const workload::Workload& workload, dtrace::Framework& framework) {
  for (std::size_t body = 0; body < workload.bodies.size(); ++body) {
    const std::vector<workload::Op>& ops = workload.bodies[body];
    for (std::size_t i = body == 0 ? workload.boot_statements() : 0; i < ops.size(); ++i) {
      if (ops[i].kind != workload::OpKind::type) continue;
      const workload::TypeDecl& type = workload.types.at(ops[i].type);
      dtrace::dtmalloc_type_later(framework, type.symbol, type.shortdesc,
                                  "line " + std::to_string(ops[i].line));
    }
  }
}

}  // namespace

bool read_programs(const RunOptions& options, std::vector<dtrace::ProgramSource>& sources) {
  for (const ProgramOption& program : options.programs) {
    dtrace::ProgramSource source;
    source.args = options.args;
    if (!program.script) {
      source.text = program.text;
    } else {
      source.kind = dtrace::ProgramSource::script;
      source.name = program.text == "-" ? "<stdin>" : program.text;
      auto text = workload::read_text(program.text);
      if (!text) {
        std::string reason = text.error().message;
        const std::string name = program.text == "-" ? "standard input" : program.text;
        const std::string prefix = "cannot read " + name + ": ";
        if (reason.starts_with(prefix)) reason = reason.substr(prefix.size());
        print_error("dtrace: failed to open " + name + ": " + reason + "\n");
        return false;
      }
      source.text = std::move(*text);
    }
    sources.push_back(std::move(source));
  }
  return true;
}

Tracing::Tracing(Kernel& kernel, Output& output)
    : framework_(kernel.cpus(), kernel.addresses()),
      session_(prepared(framework_, kernel),
               {.out = [&output](std::string_view text) { output.write(text); },
                .err =
                    [&output](std::string_view text) {
                      output.flush();
                      print_error(text);
                    }}) {}

bool Tracing::set_options(const RunOptions& options) {
  for (const std::string& option : options.tracing) {
    if (auto set = session_.set_option(option); !set) {
      std::string text = "dtrace: failed to set -x " + option.substr(0, option.find('=')) + ": " +
                         set.error().message + "\n";
      for (const std::string& near : set.error().near_names) {
        text += (text.ends_with('\n') ? "  did you mean " : ", ") + near;
      }
      print_error(text.ends_with('\n') ? text : text + "?\n");
      return false;
    }
  }
  return true;
}

bool Tracing::start(const RunOptions& options, const std::vector<dtrace::ProgramSource>& sources,
                    const workload::Workload& workload) {
  if (!set_options(options)) return false;
  tell_later_types(workload, framework_);
  std::vector<dtrace::ProgramId> programs;
  for (const dtrace::ProgramSource& source : sources) {
    auto program = session_.compile(source);
    if (!program) {
      print_error(dtrace::message_of(source, program.error()));
      return false;
    }
    programs.push_back(*program);
  }
  const auto refused = [](const Diagnostic& error) {
    const std::string& text = error.message;
    print_error((text.starts_with("dtrace: ") ? "" : "dtrace: ") + text +
                (text.ends_with('\n') ? "" : "\n"));
    return false;
  };
  for (const dtrace::ProgramId program : programs) {
    if (auto enabled = session_.enable(program); !enabled) return refused(enabled.error());
  }
  if (auto gone = session_.go(); !gone) return refused(gone.error());
  started_ = true;
  return true;
}

void Tracing::stop() {
  if (!started_ || stopped_) return;
  stopped_ = true;
  session_.stop();
}

}  // namespace dtmalloc::sim
