// SPDX-License-Identifier: BSD-2-Clause
// The flags of dtrace(1) as options of the framework and as programs.

#pragma once

#include <string>

#include "commands.hpp"

namespace dtmalloc::sim {

// Enters a flag of dtrace(1) that sets an option, names a program or says what to print, with its
// argument if it takes one. False: it is none of these.
bool add_tracing_flag(TracingOptions& options, char flag, const std::string& argument);

}  // namespace dtmalloc::sim
