// SPDX-License-Identifier: BSD-2-Clause
// -C: a script's text through the host's C preprocessor.
// Counterpart:  dt_cc.c (dt_preproc)
#pragma once

#include <dtmalloc/sys/diagnostic.hpp>
#include <dtmalloc/sys/error.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace dtmalloc::dtrace {

// The preprocessed text, or libdtrace's message. `path` empty: cpp, or cc -E where there is none.
// `arguments` are -D -U -I -H, after the macros that dtrace(1) predefines; a first line that begins
// with "#!" is left out. What the preprocessor complains about goes to standard error.
Result<std::string> preprocess(std::string_view text, const std::string& path,
                               const std::vector<std::string>& arguments);

}  // namespace dtmalloc::dtrace
