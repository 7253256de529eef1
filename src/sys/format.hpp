// SPDX-License-Identifier: BSD-2-Clause
// printf(9)'s formatting for messages of the simulated kernel.
//
// Counterpart:  sys/kern/subr_prf.c (kvprintf)
// Differs:      %p takes a host address and prints the simulated one ("0" for null, as the kernel
//               does), or a distance from the arena (AddressMap::to_printed). From %b, %D or what
//               else is unknown on, the format prints as it stands.
#pragma once

#include <cstdarg>
#include <dtmalloc/sys/address_map.hpp>
#include <string>

namespace dtmalloc {

// Understands flags, width, precision (also *), the lengths hh h l ll z j t, and d i u x X o c s p
// %.
std::string kernel_format(const AddressMap& map, const char* format, ...)
    __attribute__((format(printf, 2, 3)));
std::string kernel_vformat(const AddressMap& map, const char* format, std::va_list arguments);

}  // namespace dtmalloc
