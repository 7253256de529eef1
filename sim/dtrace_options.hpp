// SPDX-License-Identifier: BSD-2-Clause
// The command line of dtrace(1), by the rules of getopt(3).

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "commands.hpp"

namespace dtmalloc::sim {

// Options and operands may alternate; the operands are $1 .... Words that begin with `--` and a
// letter are ours: a workload, the machine. Nothing: wrong, and what is wrong was printed.
std::optional<DtraceOptions> parse_dtrace(const std::vector<std::string>& words);

// Synopsis and flags in the form of dtrace(1).
std::string dtrace_usage();

}  // namespace dtmalloc::sim
