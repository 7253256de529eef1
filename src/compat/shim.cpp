// SPDX-License-Identifier: BSD-2-Clause
// What kernel C calls besides malloc(9): panic, printf, KASSERT's switch, critical sections.
// Counterpart:  include/dtmalloc/compat/sys/systm.h
#include <cstdarg>
#include <cstdio>
#include <dtmalloc/kernel.hpp>
#include <string>

namespace {

std::string format(const char* fmt, va_list args) {
  va_list copy;
  va_copy(copy, args);
  const int length = std::vsnprintf(nullptr, 0, fmt, copy);
  va_end(copy);
  std::string text(length > 0 ? static_cast<std::size_t>(length) : 0, '\0');
  std::vsnprintf(text.data(), text.size() + 1, fmt, args);
  return text;
}

// The machine that kernel code of this thread runs on: an unbound thread gets a CPU of the default
// kernel, as a malloc() of its own would.
dtmalloc::Kernel& machine() {
  if (dtmalloc::Kernel* kernel = dtmalloc::Kernel::current()) return *kernel;
  dtmalloc::Kernel* kernel = dtmalloc::Kernel::default_kernel();
  DTM_CHECK(kernel != nullptr, "kernel C runs but no Kernel has booted");
  kernel->cpus().bind_any();
  return *kernel;
}

}  // namespace

extern "C" {

[[noreturn]] void kern_panic(const char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  const std::string text = format(fmt, args);
  va_end(args);
  machine().cpus().panic(text);
}

int kern_printf(const char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  const std::string text = format(fmt, args);
  va_end(args);
  machine().cpus().console(text);
  return static_cast<int>(text.size());
}

int kern_invariants(void) { return machine().config().invariants ? 1 : 0; }

void kern_critical_enter(void) {
  machine();
  dtmalloc::critical_enter();
}

void kern_critical_exit(void) { dtmalloc::critical_exit(); }

}  // extern "C"
