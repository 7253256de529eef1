/* SPDX-License-Identifier: BSD-2-Clause */
/* uma(9) for kernel C. */
#error "not modelled: the C interface of uma(9)"
