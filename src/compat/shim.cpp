// SPDX-License-Identifier: BSD-2-Clause
// What kernel C calls besides malloc(9): panic, printf, KASSERT's switch, critical sections.
// Counterpart:  include/dtmalloc/compat/sys/systm.h
#include <cstdarg>
#include <dtmalloc/kernel.hpp>
#include <string>

#include "compat/machine.hpp"
#include "sys/format.hpp"

namespace dtmalloc {

Kernel& compat_machine() {
  if (Kernel* kernel = Kernel::current()) return *kernel;
  Kernel* kernel = Kernel::default_kernel();
  DTM_CHECK(kernel != nullptr, "kernel C runs but no Kernel has booted");
  kernel->cpus().bind_any();
  return *kernel;
}

}  // namespace dtmalloc

extern "C" {

[[noreturn]] void kern_panic(const char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  dtmalloc::Kernel& kernel = dtmalloc::compat_machine();
  const std::string text = dtmalloc::kernel_vformat(kernel.addresses(), fmt, args);
  va_end(args);
  kernel.cpus().panic(text);
}

int kern_printf(const char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  dtmalloc::Kernel& kernel = dtmalloc::compat_machine();
  const std::string text = dtmalloc::kernel_vformat(kernel.addresses(), fmt, args);
  va_end(args);
  kernel.cpus().console(text);
  return static_cast<int>(text.size());
}

int kern_invariants(void) { return dtmalloc::compat_machine().config().invariants ? 1 : 0; }

void kern_critical_enter(void) {
  dtmalloc::compat_machine();
  dtmalloc::critical_enter();
}

void kern_critical_exit(void) { dtmalloc::critical_exit(); }

}  // extern "C"
