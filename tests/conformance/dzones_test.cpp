// SPDX-License-Identifier: BSD-2-Clause
// What D programs see of UMA: zones and kegs with their members, texts, lists.
#include <gtest/gtest.h>

#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kernel.hpp>
#include <dtmalloc/vm/uma.hpp>
#include <functional>
#include <string>

#include "support/traced_machine.hpp"
#include "vm/uma_int.hpp"

namespace dtmalloc::dtrace {
namespace {

struct Machine : testing::TracedMachine {
  Machine() {
    load_fbt(*framework, *kernel);
    session = open(out, err);
    EXPECT_TRUE(session->set_option("quiet"));
  }
  Vm& vm() { return kernel->vm(); }
  uma_zone* zone(const char* name, std::size_t size = 100, std::uint32_t flags = 0) {
    return uma_zcreate(vm(), name, size, nullptr, nullptr, nullptr, nullptr, UMA_ALIGN_PTR, flags);
  }
  // What the program prints around `work`, without the newline at its end.
  std::string run(const std::string& program, const std::function<void()>& work) {
    EXPECT_EQ(start(program), "") << program;
    work();
    session->stop();
    if (!out.empty() && out.back() == '\n') out.pop_back();
    return out;
  }
};

// REQ: DSYM-11
TEST(DZones, MembersOfAZone) {
  Machine m;
  uma_zone* z = m.zone("my zone");
  uma_zone_set_max(z, 1000);
  uma_zone_set_warning(z, "it is full");
  EXPECT_EQ(
      m.run("fbt::uma_zalloc_arg:entry /stringof(args[0]->uz_name) == \"my zone\"/ {this->z = "
            "args[0]; printf(\"%s %s %d %x %d \", stringof(args[0]->uz_name), "
            "stringof(args[0]->uz_ctlname), args[0]->uz_size, args[0]->uz_flags, "
            "args[0]->uz_namecnt); printf(\"%d %d %d %d %d %s \", args[0]->uz_max_items, "
            "args[0]->uz_bucket_size, args[0]->uz_bucket_size_max, args[0]->uz_bucket_size_min, "
            "args[0]->uz_sleepers, stringof(args[0]->uz_warning)); printf(\"%d \", "
            "((uma_zone_t)arg0)->uz_items); printf(\"%d %d %d %d\", *args[0]->uz_allocs, "
            "*args[0]->uz_frees, *args[0]->uz_fails, *args[0]->uz_xdomain);}",
            [&] { uma_zfree(z, uma_zalloc(z, kM_WAITOK)); }),
      "my zone my_zone 100 2010000 0 1000 125 125 125 0 it is full 0 0 0 0 0");
  EXPECT_EQ(m.err, "");
}

// REQ: DSYM-11
TEST(DZones, CountsAsTheyAre) {
  Machine m;
  uma_zone* z = m.zone("few", 64, UMA_ZONE_NOBUCKET);
  uma_zone_set_max(z, 2);
  EXPECT_EQ(m.run("fbt::uma_zalloc_arg:entry {self->z = args[0];}"
                  "fbt::uma_zalloc_arg:return /self->z->uz_max_items/ {printf(\"%d %d %d %d, \", "
                  "self->z->uz_items, *self->z->uz_allocs, *self->z->uz_frees, "
                  "*self->z->uz_fails);}",
                  [&] {
                    void* a = uma_zalloc(z, kM_WAITOK);
                    uma_zalloc(z, kM_WAITOK);
                    EXPECT_EQ(uma_zalloc(z, kM_NOWAIT), nullptr);
                    uma_zfree(z, a);
                    uma_zalloc(z, kM_WAITOK);
                  }),
            "1 1 0 0, 2 2 0 0, 2 2 0 1, 2 3 1 1, ");
}

// REQ: DSYM-11
TEST(DZones, KegOfAZone) {
  Machine m;
  uma_zone* z = m.zone("kegged");
  EXPECT_EQ(
      m.run("fbt::uma_zalloc_arg:return {self->z = 0;} fbt::uma_zfree_arg:entry /args[0]->uz_size "
            "== 100/ {this->k = args[0]->uz_keg; printf(\"%s %d %d %d %d %d %d %x %d \", "
            "stringof(this->k->uk_name), this->k->uk_size, this->k->uk_rsize, this->k->uk_ipers, "
            "this->k->uk_ppera, this->k->uk_align, this->k->uk_pgoff, this->k->uk_flags, "
            "this->k->uk_reserve); printf(\"%d %d %d\", this->k->uk_domain[0].ud_pages, "
            "this->k->uk_domain[0].ud_free_items, this->k->uk_domain[0].ud_free_slabs); "
            "printf(\" %d\", this->k->uk_zones.lh_first == args[0]);}",
            [&] { uma_zfree(z, uma_zalloc(z, kM_WAITOK)); }),
      "kegged 100 104 39 1 7 4064 10000 0 4 30 0 1");
}

// REQ: DSYM-12
TEST(DZones, NamesOfNewZones) {
  Machine m;
  EXPECT_EQ(
      m.run("fbt::uma_zcreate:entry {self->name = args[0]; printf(\"%s %d, \", stringof(args[0]), "
            "args[1]);}"
            "fbt::uma_zcreate:return {this->z = (uma_zone_t)arg1; printf(\"%s %d, \", "
            "stringof(args[1]->uz_name), args[1]->uz_name == self->name);}"
            "fbt::uma_zsecond_create:entry {printf(\"%s of %s, \", stringof(args[0]), "
            "stringof(args[5]->uz_name));}"
            "fbt::uma_zcache_create:entry {printf(\"%s %d, \", stringof(args[0]), args[1]);}"
            "fbt::malloc_desc2type:entry {printf(\"%s\", stringof(args[0]));}",
            [&] {
              // Its caller's copy goes.
              std::string name = "short lived";
              uma_zone* z = m.zone(name.c_str());
              name = "overwritten";
              uma_zsecond_create("second", nullptr, nullptr, nullptr, nullptr, z);
              uma_zcache_create(
                  m.vm(), "cache", 32, nullptr, nullptr, nullptr, nullptr,
                  [](void*, void**, int, int, int) { return 0; }, [](void*, void**, int) {},
                  nullptr, 0);
              kern_malloc_desc2type("aa");
            }),
      "short lived 100, short lived 1, second of short lived, cache 32, aa");
  EXPECT_EQ(m.err, "");
}

// REQ: DSYM-13. What is no zone, what was one, and what lies behind one.
TEST(DZones, WhatCannotBeRead) {
  Machine m;
  uma_zone* z = m.zone("gone");
  m.run(
      "fbt::uma_zdestroy:entry {z = args[0];} fbt::uma_zdestroy:return {trace(z->uz_size);}"
      "fbt::uma_zdestroy:return {trace(((struct uma_zone *)8)->uz_size);}"
      "fbt::uma_zdestroy:entry {trace(*(uint64_t *)(arg0 + sizeof (struct uma_zone) + 32));}",
      [&] { uma_zdestroy(z); });
  EXPECT_EQ(m.out, "");
  EXPECT_NE(m.err.find("invalid address (0xffffffff8900"), std::string::npos) << m.err;
  EXPECT_NE(m.err.find("invalid address (0xc)"), std::string::npos) << m.err;
  std::size_t errors = 0;
  for (std::size_t at = 0; (at = m.err.find("invalid address", at)) != std::string::npos; ++at)
    ++errors;
  EXPECT_EQ(errors, 3u) << m.err;
}

// REQ: DSYM-13. Every word that is shown is a number or a simulated address.
TEST(DZones, NoHostAddress) {
  Machine m;
  uma_zone* z = m.zone("plain");
  const std::string words = m.run(
      "fbt::uma_zfree_arg:entry /args[0]->uz_size == 100/ {this->p = (uint64_t *)arg0; "
      "this->q = (uint64_t *)args[0]->uz_keg; printf(\"%x %x %x %x %x %x %x %x %x \", this->p[0], "
      "this->p[4], this->p[5], this->p[8], this->p[9], this->p[10], this->p[11], this->p[12], "
      "this->p[13]); printf(\"%x %x %x %x %x\", this->q[0], this->q[1], this->q[5], this->q[6], "
      "this->q[7]);}",
      [&] { uma_zfree(z, uma_zalloc(z, kM_WAITOK)); });
  EXPECT_EQ(m.err, "");
  std::size_t at = 0;
  int count = 0;
  while (at < words.size()) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    const std::uint64_t word = std::stoull(words.substr(at, end - at), nullptr, 16);
    const bool host = word > 0xffffffffffff ? false : word > 0x100000000000;
    EXPECT_FALSE(host) << words.substr(at, end - at);
    ++count;
    at = end + 1;
  }
  EXPECT_EQ(count, 14);
}

// REQ: DSYM-14
TEST(DZones, Lists) {
  Machine m;
  uma_zone* first = m.zone("first");
  uma_zone* second = uma_zsecond_create("second", nullptr, nullptr, nullptr, nullptr, first);
  m.zone("third");
  EXPECT_EQ(
      m.run("BEGIN {printf(\"%s \", stringof(`uma_kegs.lh_first->uk_name)); this->k = "
            "`uma_kegs.lh_first->uk_link.le_next; printf(\"%s \", stringof(this->k->uk_name)); "
            "printf(\"%s \", stringof(this->k->uk_zones.lh_first->uz_link.le_next->uz_name)); "
            "printf(\"%d \", *this->k->uk_link.le_prev == this->k);"
            "printf(\"%d \", `uma_cachezones.lh_first == NULL);"
            "printf(\"%d %d \", `uma_kmem_limit > 1024 * 1024, "
            "`uma_kmem_total < `uma_kmem_limit);"
            "printf(\"%s \", stringof(`kmemzones[2].kz_zone[0]->uz_name));}"
            "END {printf(\"%s %s\", stringof(`uma_kegs.lh_first->uk_link.le_next->uk_name), "
            "`uma_kegs.lh_first->uk_link.le_next->uk_zones.lh_first == NULL ? \"\" : \"more\");}",
            [&] {
              uma_zdestroy(second);
              uma_zdestroy(first);
            }),
      "third first second 1 1 1 1 malloc-64 malloc-65536 more");
}

const char* const kNested =
    "fbt:::entry {printf(\"(%s \", probefunc);} fbt:::return {printf(\"%s) \", probefunc);}";

// REQ: DSYM-15. Without buckets: past the CPU to the keg, which takes a page.
TEST(DZones, FunctionsBehindTheCaches) {
  Machine m;
  uma_zone* z = m.zone("bare", 64, UMA_ZONE_NOBUCKET);
  EXPECT_EQ(m.run(kNested,
                  [&] {
                    void* item = uma_zalloc(z, kM_WAITOK);
                    uma_zfree(z, item);
                    uma_zone_reclaim(z, UMA_RECLAIM_DRAIN);
                  }),
            "(uma_zalloc_arg (cache_alloc cache_alloc) (zone_alloc_item (zone_import "
            "(keg_fetch_slab (keg_alloc_slab (uma_small_alloc uma_small_alloc) keg_alloc_slab) "
            "keg_fetch_slab) zone_import) zone_alloc_item) uma_zalloc_arg) "
            "(uma_zfree_arg (cache_free cache_free) (zone_free_item (zone_release zone_release) "
            "zone_free_item) uma_zfree_arg) "
            "(uma_zone_reclaim (uma_zone_reclaim_domain (keg_drain (uma_small_free "
            "uma_small_free) keg_drain) uma_zone_reclaim_domain) uma_zone_reclaim) ");
}

// REQ: DSYM-15. A bucket is made and filled, and drained; a slab of two pages with its header
// elsewhere.
TEST(DZones, FunctionsOfBucketsAndSlabs) {
  Machine m;
  uma_zone* first = m.zone("first", 4096);
  uma_zfree(first, uma_zalloc(first, kM_WAITOK));  // there are buckets and headers
  uma_zone* z = m.zone("pairs", 8192);
  const std::string bucket = "(bucket_alloc (uma_zalloc_arg uma_zalloc_arg) bucket_alloc) ";
  EXPECT_EQ(
      m.run(kNested,
            [&] {
              uma_zfree(z, uma_zalloc(z, kM_WAITOK));
              uma_zone_reclaim(z, UMA_RECLAIM_DRAIN_CPU);
            }),
      "(uma_zalloc_arg (cache_alloc (zone_alloc_bucket " + bucket +
          "(zone_import (keg_fetch_slab (keg_alloc_slab (zone_alloc_item (zone_import "
          "(keg_fetch_slab keg_fetch_slab) zone_import) zone_alloc_item) (page_alloc "
          "(kmem_malloc_domainset kmem_malloc_domainset) page_alloc) keg_alloc_slab) "
          "keg_fetch_slab) zone_import) zone_alloc_bucket) cache_alloc) uma_zalloc_arg) "
          "(uma_zfree_arg uma_zfree_arg) "
          "(uma_zone_reclaim (uma_zone_reclaim_domain (bucket_drain (zone_release zone_release) "
          "bucket_drain) (bucket_free (uma_zfree_arg uma_zfree_arg) bucket_free) (keg_drain "
          "(zone_free_item (zone_release zone_release) zone_free_item) (page_free (kmem_free "
          "kmem_free) page_free) keg_drain) uma_zone_reclaim_domain) uma_zone_reclaim) ");
}

// REQ: DSYM-15. Their arguments and results; a bucket for the bucket of a bucket is refused.
TEST(DZones, ArgumentsOfTheFunctions) {
  Machine m;
  uma_zone* z = m.zone("seen", 100);
  EXPECT_EQ(
      m.run("fbt::zone_import:entry {self->z = (uma_zone_t)arg0;}"
            "fbt::zone_import:entry /stringof(self->z->uz_name) == \"seen\"/ {printf(\"import %d "
            "%d \", args[2], args[3]);}"
            "fbt::keg_fetch_slab:entry /args[0]->uk_size == 100/ {printf(\"%s %d \", "
            "stringof(args[1]->uz_name), args[2]); self->keg = args[0];}"
            "fbt::keg_alloc_slab:return /self->keg != NULL/ {printf(\"slab %x \", arg1 & "
            "0xfff);}"
            "fbt::uma_small_alloc:entry /args[0]->uz_size == 100/ {printf(\"page %d %d \", "
            "args[1], args[2]);}"
            "fbt::zone_alloc_bucket:return /self->keg != NULL/ {printf(\"bucket %d of %d, \", "
            "args[1]->ub_cnt, args[1]->ub_entries); self->keg = 0;}"
            "fbt::cache_alloc:return {printf(\"%d, \", args[1]);}"
            "fbt::zone_free_item:entry {printf(\"%s %x, \", stringof(args[0]->uz_name), args[3]);}",
            [&] {
              uma_zfree(z, uma_zalloc(z, kM_WAITOK));
              uma_zone_reclaim(z, UMA_RECLAIM_DRAIN_CPU);
            }),
      "0, 1, import 126 0 seen 0 page 4096 0 slab fe0 seen 0 page 4096 0 slab fe0 seen 0 page 4096 "
      "0 "
      "slab fe0 seen 0 page 4096 0 slab fe0 bucket 126 of 126, 1, ");
  EXPECT_EQ(m.err, "");
}

// REQ: DSYM-16. An injected failure is one of the function: it is entered and returns NULL.
TEST(DZones, InjectedFailures) {
  Machine m;
  Kernel& k = *m.kernel;
  void* held = k.malloc(100, m.type, M_WAITOK);
  const auto fail = [&](const std::function<void*()>& call) {
    k.plan_failure({.nth = 1});
    EXPECT_EQ(call(), nullptr);
    EXPECT_EQ(k.end_failure().matched, 1u);
  };
  EXPECT_EQ(
      m.run("fbt::malloc*:,fbt::realloc*:,fbt::contigmalloc*: /probename == \"entry\"/ "
            "{printf(\"(%s \", probefunc);}"
            "fbt::malloc*:return,fbt::realloc*:return,fbt::contigmalloc*:return {printf(\"%s %d) "
            "\", probefunc, arg1);}",
            [&] {
              fail([&] { return k.malloc(1, m.type, M_NOWAIT); });
              fail([&] { return k.mallocarray(2, 8, m.type, M_NOWAIT); });
              fail([&] { return k.realloc(held, 1000, m.type, M_NOWAIT); });
              fail([&] { return k.malloc_aligned(8, 64, m.type, M_NOWAIT); });
              fail([&] { return k.malloc_exec(8, m.type, M_NOWAIT); });
              fail([&] { return k.contigmalloc(8, m.type, M_NOWAIT); });
            }),
      "(malloc malloc 0) (mallocarray (malloc malloc 0) mallocarray 0) (realloc (malloc malloc 0) "
      "realloc 0) (malloc_aligned (malloc_domainset_aligned (malloc_domainset malloc_domainset 0) "
      "malloc_domainset_aligned 0) malloc_aligned 0) (malloc_exec (malloc_domainset_exec "
      "malloc_domainset_exec 0) malloc_exec 0) (contigmalloc contigmalloc 0) ");
}

// REQ: DSYM-14. A place that a zone leaves is the next one's.
TEST(DZones, PlacesAreUsedAgain) {
  Machine m;
  const AddressMap& map = m.kernel->addresses();
  uma_zone* z = m.zone("one");
  const std::uint64_t zone = map.to_simulated(z);
  const std::uint64_t keg = map.to_simulated(z->uz_keg);
  uma_zdestroy(z);
  EXPECT_EQ(map.to_host(zone, 8), nullptr);
  EXPECT_EQ(map.to_host(keg, 8), nullptr);
  for (int i = 0; i < 300; ++i) {
    z = m.zone("two");
    EXPECT_EQ(map.to_simulated(z), zone);
    EXPECT_EQ(map.to_simulated(z->uz_keg), keg);
    uma_zdestroy(z);
  }
}

}  // namespace
}  // namespace dtmalloc::dtrace
