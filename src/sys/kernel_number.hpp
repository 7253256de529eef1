// SPDX-License-Identifier: BSD-2-Clause
// Numbers as tunables and sysctls are written: decimal, 0x hexadecimal or 0 octal, then k, m, g or
// t.
//
// Source: spec/malloc9.md 7.1
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace dtmalloc {

// Nothing: it is none, or is out of range.
std::optional<std::int64_t> parse_kernel_number(std::string_view text);

}  // namespace dtmalloc
