// SPDX-License-Identifier: BSD-2-Clause
// Bucket zones: where the arrays of free items come from, and how large they are.
//
// Counterpart:  sys/vm/uma_core.c (bucket_*)
// Differs:      none known; the recursion mark travels in udata, as in the kernel
#include <algorithm>

#include "vm/uma_functions.hpp"
#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

struct BucketRow {
  const char* name;
  std::uint16_t entries;
  std::uint32_t max_item;  // largest item that starts with buckets of this size
};

// spec/malloc9.md 5.3
constexpr std::array<BucketRow, 8> kRows{{{"2 Bucket", 2, 4096},
                                          {"4 Bucket", 4, 3072},
                                          {"8 Bucket", 8, 2048},
                                          {"16 Bucket", 16, 1024},
                                          {"32 Bucket", 30, 512},
                                          {"64 Bucket", 62, 256},
                                          {"128 Bucket", 126, 128},
                                          {"256 Bucket", BUCKET_MAX, 64}}};

std::size_t row_for(std::uint16_t entries) {
  for (std::size_t row = 0; row < kRows.size(); ++row)
    if (kRows[row].entries >= entries) return row;
  return kRows.size() - 1;
}

}  // namespace

std::uint16_t bucket_select(std::size_t size) {
  if (size > kRows[0].max_item)
    return static_cast<std::uint16_t>(
        std::max<std::size_t>(kRows[0].max_item * kRows[0].entries / size, 1));
  std::uint16_t entries = kRows[0].entries;
  for (const BucketRow& row : kRows)
    if (size <= row.max_item) entries = row.entries;
  return entries;
}

void bucket_init(Vm& vm) {
  for (std::size_t row = 0; row < kRows.size(); ++row) {
    const std::size_t size = sizeof(uma_bucket) + kRows[row].entries * sizeof(void*);
    vm.bucket_zones[row] =
        zone_create(vm, kRows[row].name, size, UMA_ALIGN_PTR,
                    UMA_ZONE_MTXCLASS | UMA_ZFLAG_BUCKET | UMA_ZONE_FIRSTTOUCH, 0);
  }
}

static uma_bucket* alloc_bucket(uma_zone& zone, void* udata, int flags) {
  Vm& vm = *zone.vm;
  if (vm.bucketdisable.load(std::memory_order_relaxed)) return nullptr;
  // The flags of the first zone travel down; a bucket zone marks them once and is refused twice.
  auto mark = reinterpret_cast<std::uintptr_t>(udata);
  if ((zone.uz_flags & UMA_ZFLAG_BUCKET) == 0)
    mark = zone.uz_flags;
  else if ((mark & UMA_ZFLAG_BUCKET) != 0)
    return nullptr;
  else
    mark |= UMA_ZFLAG_BUCKET;
  if ((mark & UMA_ZONE_VM) != 0) flags |= m::NOVM;
  std::size_t row = row_for(zone.uz_bucket_size.load(std::memory_order_relaxed));
  if (vm.bucket_zones[row] == &zone && row + 1 < kRows.size()) ++row;
  auto* bucket = static_cast<uma_bucket*>(uma_zalloc_arg(
      vm.bucket_zones[row], reinterpret_cast<void*>(mark), m::NOWAIT | (flags & m::NOVM)));
  if (bucket == nullptr) return nullptr;
  bucket->ub_link = nullptr;
  bucket->ub_cnt = 0;
  bucket->ub_entries =
      static_cast<std::int16_t>(std::min(kRows[row].entries, zone.uz_bucket_size_max));
  bucket->ub_seq = 0;
  return bucket;
}

uma_bucket* bucket_alloc(uma_zone& zone, void* udata, int flags) {
  return in_uma(
      KernelFunction::bucket_alloc, [&] { return alloc_bucket(zone, udata, flags); }, &zone, udata,
      flags);
}

void bucket_free(uma_zone& zone, uma_bucket* bucket, void* udata) {
  in_uma(
      KernelFunction::bucket_free,
      [&] {
        auto mark = reinterpret_cast<std::uintptr_t>(udata);
        if ((zone.uz_flags & UMA_ZFLAG_BUCKET) == 0) mark = zone.uz_flags;
        const std::size_t row = row_for(static_cast<std::uint16_t>(bucket->ub_entries));
        uma_zfree_arg(zone.vm->bucket_zones[row], bucket, reinterpret_cast<void*>(mark));
      },
      &zone, bucket, udata);
}

}  // namespace dtmalloc
