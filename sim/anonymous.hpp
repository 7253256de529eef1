// SPDX-License-Identifier: BSD-2-Clause
// Where the enabling of dtrace -A is kept until a machine boots with it.

#pragma once

#include <optional>
#include <string>

namespace dtmalloc::sim {

// The file: as given, or $XDG_STATE_HOME/dtmalloc/anonymous, or that of ~/.local/state.
std::string anonymous_file(const std::string& given);
// Writes it, and its folder. Empty text: removes it. False: a message was printed.
bool keep_anonymous(const std::string& file, const std::string& text);
// Nothing: there is none, and a message was printed.
std::optional<std::string> kept_anonymous(const std::string& file);

}  // namespace dtmalloc::sim
