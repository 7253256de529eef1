// SPDX-License-Identifier: BSD-2-Clause
// The commands: each is a function from its options to an exit status.

#pragma once

#include <cstdint>
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
};

// One -n or -s, in the order of the command line.
struct ProgramOption {
  bool script = false;
  std::string text;  // the program, or the script's path
};

struct RunOptions {
  std::string workload;
  std::vector<std::string> args;  // $1 ... of the programs
  std::vector<ProgramOption> programs;
  std::vector<std::string> tracing;  // -x, -q, -Z, ...: name[=value]
  MachineOptions machine;
  std::vector<std::string> reports;
  std::string libxo;  // "json" or "xml"; empty: text
  bool strict = false;
  std::string output;  // empty: standard output
};

struct ListOptions {
  std::string workload;  // empty: a machine without a workload
  MachineOptions machine;
};

struct ImportOptions {
  std::string format, file, output;
  bool replay_history = false;
  std::optional<int> release;
};

int run_command(const RunOptions& options);
int list_command(const ListOptions& options);
int import_command(const ImportOptions& options);

}  // namespace dtmalloc::sim
