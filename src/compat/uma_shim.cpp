// SPDX-License-Identifier: BSD-2-Clause
// uma(9) for kernel C.
// Counterpart:  include/dtmalloc/compat/vm/uma.h
#include <dtmalloc/kernel.hpp>

#include "compat/machine.hpp"

using dtmalloc::uma_zone;

namespace {

dtmalloc::Vm& vm() { return dtmalloc::compat_machine().vm(); }

}  // namespace

extern "C" {

uma_zone* kern_uma_zcreate(const char* name, std::size_t size, dtmalloc::uma_ctor ctor,
                           dtmalloc::uma_dtor dtor, dtmalloc::uma_init uminit,
                           dtmalloc::uma_fini fini, int align, std::uint32_t flags) {
  return dtmalloc::uma_zcreate(vm(), name, size, ctor, dtor, uminit, fini, align, flags);
}
uma_zone* kern_uma_zsecond_create(const char* name, dtmalloc::uma_ctor ctor,
                                  dtmalloc::uma_dtor dtor, dtmalloc::uma_init zinit,
                                  dtmalloc::uma_fini zfini, uma_zone* primary) {
  return dtmalloc::uma_zsecond_create(name, ctor, dtor, zinit, zfini, primary);
}
uma_zone* kern_uma_zcache_create(const char* name, int size, dtmalloc::uma_ctor ctor,
                                 dtmalloc::uma_dtor dtor, dtmalloc::uma_init zinit,
                                 dtmalloc::uma_fini zfini, dtmalloc::uma_import import,
                                 dtmalloc::uma_release release, void* arg, int flags) {
  return dtmalloc::uma_zcache_create(vm(), name, static_cast<std::size_t>(size), ctor, dtor, zinit,
                                     zfini, import, release, arg,
                                     static_cast<std::uint32_t>(flags));
}
void kern_uma_zdestroy(uma_zone* zone) { dtmalloc::uma_zdestroy(zone); }
void* kern_uma_zalloc_arg(uma_zone* zone, void* arg, int flags) {
  return dtmalloc::uma_zalloc_arg(zone, arg, flags);
}
void* kern_uma_zalloc_domain(uma_zone* zone, void* arg, int domain, int flags) {
  return dtmalloc::uma_zalloc_domain(zone, arg, domain, flags);
}
void kern_uma_zfree_arg(uma_zone* zone, void* item, void* arg) {
  dtmalloc::uma_zfree_arg(zone, item, arg);
}
void* kern_uma_zalloc_pcpu_arg(uma_zone* zone, void* arg, int flags) {
  return dtmalloc::uma_zalloc_pcpu_arg(zone, arg, flags);
}
void kern_uma_zfree_pcpu_arg(uma_zone* zone, void* item, void* arg) {
  dtmalloc::uma_zfree_pcpu_arg(zone, item, arg);
}
int kern_uma_zone_set_max(uma_zone* zone, int nitems) {
  return dtmalloc::uma_zone_set_max(zone, nitems);
}
void kern_uma_zone_set_maxcache(uma_zone* zone, int nitems) {
  dtmalloc::uma_zone_set_maxcache(zone, nitems);
}
int kern_uma_zone_get_max(uma_zone* zone) { return dtmalloc::uma_zone_get_max(zone); }
int kern_uma_zone_get_cur(uma_zone* zone) { return dtmalloc::uma_zone_get_cur(zone); }
void kern_uma_zone_set_warning(uma_zone* zone, const char* warning) {
  dtmalloc::uma_zone_set_warning(zone, warning);
}
void kern_uma_zone_set_maxaction(uma_zone* zone, void (*action)(uma_zone*, int)) {
  dtmalloc::uma_zone_set_maxaction(zone, [action](uma_zone* full) { action(full, 1); });
}
int kern_uma_zone_exhausted(uma_zone* zone) { return dtmalloc::uma_zone_exhausted(zone) ? 1 : 0; }
void kern_uma_zone_reserve(uma_zone* zone, int nitems) { dtmalloc::uma_zone_reserve(zone, nitems); }
void kern_uma_prealloc(uma_zone* zone, int nitems) { dtmalloc::uma_prealloc(zone, nitems); }
std::size_t kern_uma_zone_memory(uma_zone* zone) { return dtmalloc::uma_zone_memory(zone); }
void kern_uma_reclaim(int req) { dtmalloc::uma_reclaim(vm(), req); }
void kern_uma_reclaim_domain(int req, int domain) {
  dtmalloc::uma_reclaim_domain(vm(), req, domain);
}
void kern_uma_zone_reclaim(uma_zone* zone, int req) { dtmalloc::uma_zone_reclaim(zone, req); }
void kern_uma_zone_reclaim_domain(uma_zone* zone, int req, int domain) {
  dtmalloc::uma_zone_reclaim_domain(zone, req, domain);
}
void kern_uma_reclaim_wakeup(void) { dtmalloc::uma_reclaim_wakeup(vm()); }
unsigned long kern_uma_size(void) { return dtmalloc::uma_size(vm()); }
unsigned long kern_uma_limit(void) { return dtmalloc::uma_limit(vm()); }
void kern_uma_set_limit(unsigned long limit) { dtmalloc::uma_set_limit(vm(), limit); }
long kern_uma_avail(void) { return dtmalloc::uma_avail(vm()); }

}  // extern "C"
