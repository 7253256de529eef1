/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the host's <sys/sdt.h> out of kernel C. */
#error "not modelled: SDT probes in kernel C"
