// SPDX-License-Identifier: BSD-2-Clause
// The shadow headers are for C; C++ has <dtmalloc/kern/malloc.hpp>.
// error: #error

#ifndef FIXED
#include <dtmalloc/compat/sys/malloc.h>
#endif
