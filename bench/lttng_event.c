/* SPDX-License-Identifier: BSD-2-Clause */
/* An LTTng-UST event in a small function, and the function without it: a module that probe_bench
 * opens. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_event.h"

static uint64_t calls_seen;

void with_lttng_event(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e) {
  ++calls_seen;
  lttng_ust_tracepoint(dtmalloc_bench, event, a, b, c, d, e);
  __asm__ volatile("");
}

void without_lttng_event(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e) {
  ++calls_seen;
  __asm__ volatile("" ::"r"(a), "r"(b), "r"(c), "r"(d), "r"(e));
}

int lttng_event_enabled(void) { return lttng_ust_tracepoint_enabled(dtmalloc_bench, event); }
