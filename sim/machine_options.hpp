// SPDX-License-Identifier: BSD-2-Clause
// The options that describe a machine, for every command that has one.

#pragma once

#include <CLI/CLI.hpp>

#include "commands.hpp"

namespace dtmalloc::sim {

// What only a run has (`runs`) is left out of a list.
void add_machine_options(CLI::App& app, MachineOptions& machine, bool runs);
// An option whose kind the help need not tell.
CLI::Validator quiet_check(CLI::Validator check);
// "; did you mean NAME, NAME?", or nothing.
std::string did_you_mean(const std::string& name, const std::vector<std::string>& names);
// All options of a command, as typed: "--cpus", "-n".
std::vector<std::string> option_names(const CLI::App& command);

}  // namespace dtmalloc::sim
