// SPDX-License-Identifier: BSD-2-Clause
// The bridge: all that the allocator knows about tracing.
//
// As in sys/kern/kern_malloc.c there are two probe ids in each type (0: not enabled), one enabled
// flag and one function pointer. The provider (src/dtrace/provider/dtmalloc.cpp) sets them; the
// allocator reads them inside its critical section and calls the hook with the kernel's arguments.
//
// Thread safety: written with run_on_cpu() on every CPU, read by the owner of the CPU.
// Source:        dtrace_dtmalloc(4); spec/malloc9.md 3.1 and 4.5.
#pragma once

#include <cstdint>

namespace dtmalloc {

// (probe id, mtp, mtip, mtsp, size, zindx); the addresses are host addresses.
using dtrace_malloc_probe_func_t = void (*)(std::uint32_t id, std::uintptr_t arg0,
                                            std::uintptr_t arg1, std::uintptr_t arg2,
                                            std::uintptr_t arg3, std::uintptr_t arg4);

}  // namespace dtmalloc
