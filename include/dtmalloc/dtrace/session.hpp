// SPDX-License-Identifier: BSD-2-Clause
// One consumer of the framework, as libdtrace is: compile, enable, go, work, stop.
//
// Example:
//   Framework framework(kernel.cpus(), kernel.addresses());
//   framework.load_standard_providers();
//   load_dtmalloc(framework, kernel);
//   Session session(framework, {.out = print, .err = print_error});
//   auto program = session.compile({.kind = ProgramSource::specifier,
//                                   .text = "dtmalloc:::malloc {@[probefunc] = count()}"});
//   if (!program) ... program.error() ...
//   session.enable(*program);       // prints "dtrace: description 'dtmalloc:::malloc ' matched .."
//   session.go();                   // BEGIN
//   ... the machine runs; session.work() falls due on its clock ...
//   session.stop();                 // END, last pass, final newline and aggregations
//
// Units:         rates in nanoseconds, sizes in bytes.
// Errors:        Diagnostics; format them with message_of() in dtrace(1)'s own shape.
// Thread safety: one thread at a time, outside critical sections; passes fall due on whatever
// thread
//                runs the clock's callouts, and the sinks are called there, one at a time.
// Source:        dtrace(1); spec/dtrace.md 2 and 3.
#pragma once

#include <dtmalloc/dtrace/provider.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace dtmalloc::dtrace {

using TextSink = std::function<void(std::string_view)>;

// The last three are for the actions of their names; go() refuses a program that needs one that is
// null.
struct SessionSinks {
  TextSink out;  // results
  TextSink err;  // messages
  // system(): runs a command with the shell, whose output belongs behind what `out` was given. 0,
  // or an errno when no shell could be run.
  std::function<int(const std::string& command)> system = {};
  // freopen(): what appends to that file. Null: it cannot be opened, for the reason *error.
  std::function<TextSink(const std::string& path, int* error)> freopen = {};
  std::function<void()> ftruncate = {};  // empties the file that `out` writes to
};

struct ProgramSource {
  enum Kind { specifier, script } kind = specifier;
  std::string text;  // the -n argument as given, or the file's contents
  std::string name;  // script: path as given
  enum Context { provider, module, function, probe_name } context = probe_name;  // -P -m -f -n
  std::vector<std::string> args;  // $1 ...; $0 is `name` for scripts, "dtrace" otherwise
};

using ProgramId = std::size_t;

// A clause on one description. What `if` and `else` make of one are several at one place.
struct ClauseInfo {
  ProbeDescription description;
  SourceLocation where;
  bool predicate = false;
  // In order: "printf", "exit" ...; "" of an expression, "@name" of an aggregation.
  std::vector<std::string> actions;
  // Variables of the program, as D writes them: "x", "self->x", "this->x".
  std::set<std::string> reads, stores;
};
// Whether a clause takes part, asked without an action; if it does, whether each of its actions
// does.
using ClauseChoice = std::function<bool(std::size_t clause, std::optional<std::size_t> action)>;

// What tracing took. Sizes are those of a CPU, as go() granted them.
struct TraceFigures {
  std::size_t bufsize = 0, aggsize = 0;
  std::uint64_t switchrate = 0, aggrate = 0;
  bool switches = true;  // bufpolicy=switch: buffers are read while tracing goes on
  struct Clause {
    ProgramId program = 0;
    std::size_t clause = 0;
    std::uint32_t size = 0;     // of a record; 0: nothing is recorded
    std::uint64_t records = 0;  // that were read
  };
  std::vector<Clause> clauses;  // that took part
  struct Aggregation {
    std::string name;  // "@", "@x"
    std::uint64_t elements = 0;
    std::uint64_t bytes = 0;  // of them all in a CPU's buffer
  };
  std::vector<Aggregation> aggregations;
  std::size_t aggregation_room = 0;            // bytes of aggsize that elements may take
  std::map<std::string, std::uint64_t> drops;  // by tag: DTRACEDROP_PRINCIPAL ...
};

class Session {
 public:
  // Opens the framework (probes are provided now).
  Session(Framework& framework, SessionSinks sinks);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // -x as typed: "bufsize=4k", "quiet", "quiet=" (unset). The error's message is libdtrace's
  // ("Invalid option name").
  Result<void> set_option(std::string_view text);
  bool quiet() const;
  bool structured() const;  // the output is one document: option oformat
  // -O: with structured output (oformat) the aggregations that no printa() printed are part of the
  // document. Without it they print at the end in any case.
  void print_aggregations_at_exit();

  Result<ProgramId> compile(const ProgramSource& source);
  // What a program says that is allowed and hardly meant, with its place and, as `expected`, what
  // to write instead: arguments that are not what they seem, types without probes of their own,
  // destructive actions without permission, buffers of a few records.
  std::vector<Diagnostic> warnings(ProgramId program) const;
  // Enables a program and prints its "matched" line (unless quiet); the number of pairs.
  Result<std::size_t> enable(ProgramId program);
  // The same of what is chosen of it.
  Result<std::size_t> enable(ProgramId program, const ClauseChoice& choice);
  std::vector<ClauseInfo> clauses(ProgramId program) const;
  // Activates buffers and fires BEGIN. No probe at all matched: "no probes matched" or "specified".
  Result<void> go();
  // One pass: status, aggregation snapshot, buffers, output. go() schedules it on the clock.
  void work();
  bool done() const;        // exit() was noticed, or stop() ran
  int exit_status() const;  // of exit(), else 0
  bool had_errors() const;  // drops or run-time errors were reported
  // Fires END, takes the last pass, prints the final newline and unprinted aggregations.
  void stop();

  // After stop(): the clauses that are sure to have done nothing, one line each. (BEGIN, END and
  // ERROR do not count.)
  std::vector<std::string> idle_clauses() const;
  // After stop(): run-time errors added up, stacks that stackframes cut, the variables whose stores
  // were dropped; one line each.
  std::vector<std::string> notes() const;
  TraceFigures figures() const;

  // dtrace -l: heading and rows for a description (nullptr: all probes). False: nothing matched.
  bool list(const ProbeDescription* description);
  // Heading, then the probes of the programs' descriptions, in order (no program: all probes); what
  // matches nothing is a message. `verbose`: attributes and argument types below each.
  void list(const std::vector<ProgramId>& programs, bool verbose);

  // dtrace -A: the options and compiled programs as text, for start_anonymous() after a boot.
  std::string anonymous_enabling() const;
  // Enables them and traces without a consumer, until a session with the option grabanon (and no
  // programs of its own) goes: its go() claims what was recorded.
  static Result<void> start_anonymous(Framework& framework, std::string_view enabling);

  // -v: the report on a program's stability, with a block for every clause as -e prints it.
  std::string stability_report(ProgramId program, bool per_clause) const;

  // What each stage of a compiled program looks like: "parse", "desugared", "types",
  // "dif", "clauses". "desugared" is the D program without if and else, as dtrace -d prints it.
  std::string dump(ProgramId program, std::string_view stage) const;

 private:
  struct Impl;
  struct Anonymous;
  Result<void> claim_anonymous();
  std::unique_ptr<Impl> impl_;
};

// "dtrace: invalid probe specifier <text>: <error>" or "dtrace: failed to compile script <file>:
// line 3: <error>", as dtrace(1) prints it, with its newline; then our caret lines.
std::string message_of(const ProgramSource& source, const Diagnostic& diagnostic);

}  // namespace dtmalloc::dtrace
