// SPDX-License-Identifier: BSD-2-Clause
// A driver's C file, as FreeBSD would compile it.

// <sys/param.h> comes first, as style(9) wants it.
// clang-format off
#include <sys/param.h>
#include <sys/kernel.h>
#include <sys/malloc.h>
#include <sys/systm.h>
// clang-format on

static MALLOC_DEFINE(M_KMOD, "kmod", "memory of the module");

int kmod_run(void);

int kmod_run(void) {
  char* buffer = malloc(100, M_KMOD, M_WAITOK | M_ZERO);
  if (buffer[99] != 0) return 1;
  buffer = realloc(buffer, 300, M_KMOD, M_NOWAIT);
  if (buffer == NULL) return 2;
  free(buffer, M_KMOD);
  return 0;
}
