// SPDX-License-Identifier: BSD-2-Clause
// The D programs of a machine: options, compilation, enabling, and the end, as dtrace(1) does them.

#pragma once

#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kernel.hpp>
#include <dtmalloc/workload/workload.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "commands.hpp"
#include "output.hpp"

namespace dtmalloc::sim {

// The source of -n or -s; nothing: a message was printed.
std::optional<dtrace::ProgramSource> read_program(const ProgramOption& program,
                                                  const std::vector<std::string>& args);

// Requires: the kernel and the output outlive it. The steps come in the order of the members; each
// that returns false has printed its message.
class Tracing {
 public:
  // `discards`: what the programs print and what is said of them goes nowhere, no command runs.
  Tracing(Kernel& kernel, Output& output, bool discards = false);

  // The types that the workload registers while programs run: told to who asks for them.
  void tell_later_types(const workload::Workload& workload);
  // The machine boots with this anonymous enabling; before anything else.
  bool start_anonymous(const std::string& enabling);
  bool set_options(const TracingOptions& options);
  bool compile(const dtrace::ProgramSource& source);
  // What the compiled programs say and hardly mean.
  std::vector<Diagnostic> warnings() const;
  // -l: the probes of the programs, or all.
  void list(bool verbose);
  // "matched" lines and the reports of -v; without `execute` the reports alone.
  bool enable(const TracingOptions& options);
  bool enable_chosen(dtrace::ProgramId program, const dtrace::ClauseChoice& choice);
  bool go();
  // For who chooses clauses or enables callbacks: the programs in the order of compile().
  dtrace::Session& session() { return session_; }
  dtrace::Framework& framework() { return framework_; }
  const std::vector<dtrace::ProgramId>& programs() const { return programs_; }
  // -A: what the programs enable at the next boot.
  std::string anonymous_enabling() const { return session_.anonymous_enabling(); }
  // Tracing ended by exit(); the machine goes on.
  bool exited() const { return !stopped_ && session_.done(); }
  // Tracing goes on, and what it prints is no document.
  bool prints_text() const { return !session_.done() && !session_.structured(); }
  // END, the last pass, aggregations. Later calls do nothing.
  void stop();
  int exit_status() const { return session_.exit_status(); }
  bool had_errors() const { return session_.had_errors(); }
  bool quiet() const { return session_.quiet(); }
  std::vector<std::string> idle_clauses() const { return session_.idle_clauses(); }
  std::vector<std::string> notes() const { return session_.notes(); }

 private:
  dtrace::Framework framework_;
  dtrace::Session session_;
  Output& output_;
  std::vector<dtrace::ProgramId> programs_;
  bool show_dif_ = false, show_program_ = false;
  bool started_ = false;
  bool stopped_ = false;
};

}  // namespace dtmalloc::sim
