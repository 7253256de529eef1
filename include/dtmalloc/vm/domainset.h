/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sets of NUMA domains with a policy: which domain an allocation asks first, and which after it.
 * Compiles as C11 and as C++.
 *
 *	policy       first                                        then
 *	round-robin  the next one of the thread's (keg's) counter the following ones
 *	first-touch  the domain of the current CPU                round-robin
 *	prefer       ds_prefer                                    round-robin
 *	interleave   the lowest one of the set                    round-robin
 *
 * A first choice outside the set falls back to round-robin. The sets named here hold every domain
 * that a machine may have; a machine looks at those that it has. They are not to be changed.
 *
 * Counterpart:   sys/sys/domainset.h, _domainset.h
 * Differs:       the numbers of the policies and the width of domainid_t are not known to be
 *                FreeBSD's; the named sets count MAXMEMDOM domains on every machine
 * Source:        spec/malloc9.md 3.3; domainset(9).
 */
#ifndef DTMALLOC_VM_DOMAINSET_H
#define DTMALLOC_VM_DOMAINSET_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MAXMEMDOM 8

struct _domainset {
  unsigned long ds_bits; /* bit d: domain d */
};
typedef struct _domainset domainset_t;
typedef int8_t domainid_t;

#define DOMAINSET_POLICY_INVALID 0
#define DOMAINSET_POLICY_ROUNDROBIN 1
#define DOMAINSET_POLICY_FIRSTTOUCH 2
#define DOMAINSET_POLICY_PREFER 3
#define DOMAINSET_POLICY_INTERLEAVE 4

struct domainset {
  struct {
    struct domainset* le_next;
    struct domainset** le_prev;
  } ds_link;           /* a kernel's list of its sets; not used here */
  domainset_t ds_mask; /* the domains that may be asked; none: ENOMEM */
  uint16_t ds_policy;
  domainid_t ds_prefer; /* DOMAINSET_POLICY_PREFER: the first; else -1 */
  /* The domains of the mask, ascending. The mask alone is read here: 0 is as good. */
  domainid_t ds_cnt;
  domainid_t ds_order[MAXMEMDOM];
};

extern struct domainset domainset_roundrobin;
extern struct domainset domainset_firsttouch;
extern struct domainset domainset_interleave;
extern struct domainset domainset_prefer[MAXMEMDOM];
extern struct domainset domainset_fixed[MAXMEMDOM];

#define DOMAINSET_RR() (&domainset_roundrobin)
#define DOMAINSET_FT() (&domainset_firsttouch)
#define DOMAINSET_IL() (&domainset_interleave)
#define DOMAINSET_PREF(domain) (&domainset_prefer[(domain)])
#define DOMAINSET_FIXED(domain) (&domainset_fixed[(domain)])

#define DOMAINSET_ZERO(set) ((void)((set)->ds_bits = 0))
#define DOMAINSET_FILL(set) ((void)((set)->ds_bits = (1ul << MAXMEMDOM) - 1))
#define DOMAINSET_SET(domain, set) ((void)((set)->ds_bits |= 1ul << (domain)))
#define DOMAINSET_CLR(domain, set) ((void)((set)->ds_bits &= ~(1ul << (domain))))
#define DOMAINSET_ISSET(domain, set) (((set)->ds_bits >> (domain)&1) != 0)
#define DOMAINSET_EMPTY(set) ((set)->ds_bits == 0)
#define DOMAINSET_COPY(from, to) ((void)((to)->ds_bits = (from)->ds_bits))

#ifdef __cplusplus
}
#endif

#endif /* DTMALLOC_VM_DOMAINSET_H */
