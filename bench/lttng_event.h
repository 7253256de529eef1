/* SPDX-License-Identifier: BSD-2-Clause */
/* The tracepoint of the row `lttng`, with the five arguments of a firing. LTTng reads this several
 * times. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER dtmalloc_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_event.h"

#if !defined(DTMALLOC_BENCH_LTTNG_EVENT_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define DTMALLOC_BENCH_LTTNG_EVENT_H

#include <lttng/tracepoint.h>
#include <stdint.h>

/* clang-format off */
LTTNG_UST_TRACEPOINT_EVENT(
  dtmalloc_bench, event,
  LTTNG_UST_TP_ARGS(uint64_t, a, uint64_t, b, uint64_t, c, uint64_t, d, uint64_t, e),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer(uint64_t, a, a)
    lttng_ust_field_integer(uint64_t, b, b)
    lttng_ust_field_integer(uint64_t, c, c)
    lttng_ust_field_integer(uint64_t, d, d)
    lttng_ust_field_integer(uint64_t, e, e)
  )
)
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
