// SPDX-License-Identifier: BSD-2-Clause
// The commands: each is a function from its options to an exit status.

#pragma once

#include <cstdint>
#include <dtmalloc/dtrace/session.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dtmalloc::sim {

// Exit statuses (sim/README.md).
enum Exit : int {
  kOk = 0,
  kRefused = 1,  // a script, a workload or a file is no good
  kUsage = 2,
  kPanic = 3,
  kExpectFailed = 4,
  kStrict = 5,
};

// The machine, from the command line; what is not set is the workload's.
struct MachineOptions {
  std::optional<int> cpus, domains, release;
  std::optional<std::uint64_t> mem, seed;
  std::optional<bool> real_clock;
  std::string config;  // a named set of kernel options; the single ones come on top
  bool invariants = false, redzone = false, memguard = false, make_failures = false;
  std::optional<int> maxzones;
  std::vector<std::string> tunables;  // NAME=VALUE
  bool ledger = false;
  bool operator==(const MachineOptions&) const = default;
};

// One program of the command line: -s, or -P -m -f -n -i.
struct ProgramOption {
  bool script = false;
  std::string text;  // the specifier as given, or the script's path
  dtrace::ProgramSource::Context context = dtrace::ProgramSource::probe_name;
};

// What the commands that trace share (run, dtrace): the flags of dtrace(1), each kind in the order
// of the command line.
struct TracingOptions {
  struct Setting {
    std::string flag;  // as a message names it: "-x bufsize", "-b 4q", "-q"
    std::string text;  // name[=value] of an option
  };
  std::vector<Setting> settings;
  std::vector<ProgramOption> programs;
  std::vector<std::string> args;      // $1 ... of the programs
  bool execute = true;                // -e: no
  bool show_dif = false;              // -S
  bool show_program = false;          // -d
  bool aggregations_at_exit = false;  // -O
  bool verbose = false;               // -v
  bool claim = false;                 // -a
  std::string anonymous;              // --anonymous: the file of -A and -a; empty: the user's
};

struct RunOptions {
  std::string workload;
  TracingOptions tracing;
  MachineOptions machine;
  std::vector<std::string> reports;
  std::string libxo;  // "json" or "xml"; empty: text
  bool strict = false;
  std::string output;  // empty: standard output
};

struct RecordOptions {
  std::string workload;  // or a trace
  std::string output;    // empty: standard output
  bool binary = false;
  MachineOptions machine;
};

struct ListOptions {
  std::string workload;    // empty: a machine without a workload
  TracingOptions tracing;  // programs and -v alone
  MachineOptions machine;
};

struct CheckOptions {
  std::string script, workload;   // no workload: the live machine
  std::vector<std::string> args;  // $1 ... of the script
  TracingOptions tracing;         // settings alone
  MachineOptions machine;
  bool strict = false;
};

struct TestOptions {
  std::vector<std::string> paths;  // scripts, and folders of them
  bool update = false;             // write what comes out as what is expected
};

struct OverheadOptions {
  std::string workload;
  TracingOptions tracing;
  MachineOptions machine;
  double seconds = 20;  // of measuring
  bool json = false;
  std::string output;  // empty: standard output
};

struct ImportOptions {
  std::string format, file, output;
  bool replay_history = false;
  std::optional<int> release;
};

// What `dtmalloc dtrace` is asked for.
struct DtraceOptions {
  enum Mode { trace, list, version, anonymous, header, elf } mode = trace;
  TracingOptions tracing;
  std::string output;            // -o
  bool buffered = false;         // -B
  bool thirty_two = false;       // -32
  std::string command, process;  // -c, -p
  bool help = false;
  std::string workload;  // empty: the live machine's own load
  MachineOptions machine;
};

int run_command(const RunOptions& options);
int replay_command(const RunOptions& options);  // the workload is a trace
int record_command(const RecordOptions& options);
int list_command(const ListOptions& options);
int check_command(const CheckOptions& options);
int test_command(const TestOptions& options);
int overhead_command(const OverheadOptions& options);
int import_command(const ImportOptions& options);
// The words after `dtrace`, as dtrace(1) reads them.
int dtrace_command(const std::vector<std::string>& words);

}  // namespace dtmalloc::sim
