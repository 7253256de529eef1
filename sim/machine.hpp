// SPDX-License-Identifier: BSD-2-Clause
// From a workload and the command line to a booted machine.

#pragma once

#include <dtmalloc/kernel.hpp>
#include <dtmalloc/workload/trace.hpp>
#include <memory>
#include <optional>
#include <string>

#include "commands.hpp"

namespace dtmalloc::sim {

// Reads and parses a workload ("-": standard input); nothing: a message was printed.
std::optional<workload::Workload> load_workload(const std::string& path);

// A message, and no place if what is wrong is that nothing can be read.
void tell(const Diagnostic& wrong);
// A trace whose head is read, or (`any`) a workload; null: a message was printed.
std::unique_ptr<workload::Trace> open_trace(const std::string& path, bool any = false);
// The kernel line of a workload with the options in it, which machine_config() takes.
workload::KernelSettings machine_settings(const workload::Workload& workload,
                                          const MachineOptions& options);

// The machine's configuration; nothing: an option of the command line cannot be, and a message was
// printed.
std::optional<KernelConfig> machine_config(const workload::Workload& workload,
                                           const MachineOptions& options);

// "panic: TEXT" and the call sites, innermost first, on standard error.
void print_panic(const KernelPanic& panic);

}  // namespace dtmalloc::sim
