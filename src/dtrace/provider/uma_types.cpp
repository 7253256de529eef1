// SPDX-License-Identifier: BSD-2-Clause
// UMA's structures as D programs see them.
// Counterpart:  sys/vm/uma_int.h, through CTF
// Differs:      DEVIATES: of FreeBSD's members those that the model has (vm/uma_words.hpp), at the
//               model's offsets.
#include <cstddef>
#include <dtmalloc/dtrace/provider.hpp>

#include "dtrace/provider/kernel_symbols.hpp"
#include "vm/uma_words.hpp"

namespace dtmalloc::dtrace {

#define DTM_MEMBER(structure, member, type) \
  TypeMember { #member, type, static_cast < std::uint32_t>(offsetof(structure, member)) }

void describe_uma(Framework& framework) {
  framework.add_type({"uma_zone_list", 8, {{"lh_first", "struct uma_zone *", 0}}});
  framework.add_type({"uma_zone_link",
                      16,
                      {{"le_next", "struct uma_zone *", 0}, {"le_prev", "struct uma_zone **", 8}}});
  framework.add_type({"uma_keg_list", 8, {{"lh_first", "struct uma_keg *", 0}}});
  framework.add_type({"uma_keg_link",
                      16,
                      {{"le_next", "struct uma_keg *", 0}, {"le_prev", "struct uma_keg **", 8}}});
  framework.add_typedef("counter_u64_t", "uint64_t *");
  framework.add_typedef("uma_zone_t", "struct uma_zone *");
  framework.add_typedef("uma_keg_t", "struct uma_keg *");
  framework.add_typedef("uma_bucket_t", "struct uma_bucket *");
  // Nothing of these is shown.
  framework.add_type({"uma_cache", 0, {}});
  framework.add_type({"uma_slab", 0, {}});
  framework.add_typedef("uma_cache_t", "struct uma_cache *");
  framework.add_typedef("uma_slab_t", "struct uma_slab *");
  framework.add_typedef("bool", "_Bool");
  framework.add_type({"uma_bucket_link", 8, {{"stqe_next", "struct uma_bucket *", 0}}});
  framework.add_type({"uma_bucket",
                      16,
                      {{"ub_link", "struct uma_bucket_link", 0},
                       {"ub_cnt", "int16_t", 8},
                       {"ub_entries", "int16_t", 10},
                       {"ub_seq", "uint32_t", 12},
                       {"ub_bucket", "void * [0]", 16}}});
  framework.add_type({"uma_zone",
                      kZoneShown,
                      {DTM_MEMBER(ZoneWords, uz_flags, "uint32_t"),
                       DTM_MEMBER(ZoneWords, uz_size, "uint32_t"),
                       DTM_MEMBER(ZoneWords, uz_max_items, "uint64_t"),
                       DTM_MEMBER(ZoneWords, uz_bucket_max, "uint64_t"),
                       DTM_MEMBER(ZoneWords, uz_bucket_size, "uint16_t"),
                       DTM_MEMBER(ZoneWords, uz_bucket_size_max, "uint16_t"),
                       DTM_MEMBER(ZoneWords, uz_sleepers, "uint32_t"),
                       DTM_MEMBER(ZoneWords, uz_xdomain, "counter_u64_t"),
                       DTM_MEMBER(ZoneWords, uz_keg, "uma_keg_t"),
                       DTM_MEMBER(ZoneWords, uz_items, "uint64_t"),
                       DTM_MEMBER(ZoneWords, uz_sleeps, "uint64_t"),
                       DTM_MEMBER(ZoneWords, uz_link, "struct uma_zone_link"),
                       DTM_MEMBER(ZoneWords, uz_allocs, "counter_u64_t"),
                       DTM_MEMBER(ZoneWords, uz_frees, "counter_u64_t"),
                       DTM_MEMBER(ZoneWords, uz_fails, "counter_u64_t"),
                       DTM_MEMBER(ZoneWords, uz_name, "const char *"),
                       DTM_MEMBER(ZoneWords, uz_ctlname, "char *"),
                       DTM_MEMBER(ZoneWords, uz_namecnt, "int"),
                       DTM_MEMBER(ZoneWords, uz_bucket_size_min, "uint16_t"),
                       DTM_MEMBER(ZoneWords, uz_reclaimers, "uint16_t"),
                       DTM_MEMBER(ZoneWords, uz_warning, "const char *")}});
  framework.add_type({"uma_keg",
                      sizeof(KegWords),
                      {DTM_MEMBER(KegWords, uk_zones, "struct uma_zone_list"),
                       DTM_MEMBER(KegWords, uk_align, "uint32_t"),
                       DTM_MEMBER(KegWords, uk_reserve, "uint32_t"),
                       DTM_MEMBER(KegWords, uk_size, "uint32_t"),
                       DTM_MEMBER(KegWords, uk_rsize, "uint32_t"),
                       DTM_MEMBER(KegWords, uk_pgoff, "uint32_t"),
                       DTM_MEMBER(KegWords, uk_ppera, "uint16_t"),
                       DTM_MEMBER(KegWords, uk_ipers, "uint16_t"),
                       DTM_MEMBER(KegWords, uk_flags, "uint32_t"),
                       DTM_MEMBER(KegWords, uk_name, "const char *"),
                       DTM_MEMBER(KegWords, uk_link, "struct uma_keg_link"),
                       {"uk_domain", "struct uma_domain [0]", sizeof(KegWords)}}});
  // Little-endian: the low halves of our wider counts.
  framework.add_type({"uma_domain",
                      sizeof(DomainWords),
                      {DTM_MEMBER(DomainWords, ud_pages, "uint32_t"),
                       DTM_MEMBER(DomainWords, ud_free_items, "uint32_t"),
                       DTM_MEMBER(DomainWords, ud_free_slabs, "uint32_t")}});
}

#undef DTM_MEMBER

}  // namespace dtmalloc::dtrace
