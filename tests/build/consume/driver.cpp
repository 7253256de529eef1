// SPDX-License-Identifier: BSD-2-Clause
// A user's program that boots a kernel and runs a driver written in kernel C on it (kmod.c).

#include <dtmalloc/kernel.hpp>

extern "C" int kmod_run(void);

int main() {
  dtmalloc::Kernel kernel{dtmalloc::KernelConfig{}};
  return kmod_run();
}
