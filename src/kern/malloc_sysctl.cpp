// SPDX-License-Identifier: BSD-2-Clause
// kern.malloc_stats, kern.malloc_count and vm.malloc.*.
//
// Counterpart:  sys/kern/kern_malloc.c (sysctl_kern_malloc_stats, sysctl_vm_malloc_zone_*)
// Locking:      malloc_mtx while the stream is made
#include <dtmalloc/kern/malloc_stream.h>

#include <cstddef>
#include <cstring>

#include "kern/kernel_impl.hpp"

namespace dtmalloc {
namespace {

static_assert(sizeof(malloc_type_stream_header) == 16 &&
              offsetof(malloc_type_stream_header, mtsh_maxcpus) == 4 &&
              offsetof(malloc_type_stream_header, mtsh_count) == 8);
static_assert(sizeof(malloc_type_header) == 32);
static_assert(sizeof(malloc_type_stats) == 64);

template <typename T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// The newest type first; each with the statistics of MAXCPU CPUs, zero for those that are not.
std::string malloc_stats_stream(const Kernel::Impl& k) {
  const std::lock_guard lock(k.malloc_mtx);
  std::string out;
  append(out, malloc_type_stream_header{MALLOC_TYPE_STREAM_VERSION, MAXCPU,
                                        static_cast<std::uint32_t>(k.kmemcount), 0});
  const int cpus = k.cpus->count();
  for (const malloc_type* mtp = k.kmemstatistics; mtp != nullptr; mtp = mtp->ks_next) {
    malloc_type_header header{};
    std::strncpy(header.mth_name, mtp->ks_shortdesc, MALLOC_MAX_NAME - 1);
    append(out, header);
    for (int id = 0; id < cpus; ++id) {
      const malloc_type_stats& from = k.line(k.cpus->cpu(id), *mtp);
      malloc_type_stats stats{};
      stats.mts_memalloced = racy_read(from.mts_memalloced);
      stats.mts_memfreed = racy_read(from.mts_memfreed);
      stats.mts_numallocs = racy_read(from.mts_numallocs);
      stats.mts_numfrees = racy_read(from.mts_numfrees);
      stats.mts_size = racy_read(from.mts_size);
      append(out, stats);
    }
    out.append(static_cast<std::size_t>(MAXCPU - cpus) * sizeof(malloc_type_stats), '\0');
  }
  return out;
}

// The sizes of kmemzones[], with the 0 of its last entry.
std::string zone_sizes(const Kernel::Impl& k) {
  std::string out;
  for (const std::uint32_t size : k.classes) append(out, static_cast<int>(size));
  append(out, 0);
  return out;
}

}  // namespace

void malloc_sysctl_init(Kernel::Impl& k) {
  // QUIRK: 33 (STREAM-06) the format names a struct that exists nowhere.
  k.sysctl.add({.name = "kern.malloc_stats",
                .description = "statistics of the malloc types",
                .bytes = [&k] { return malloc_stats_stream(k); },
                .format = "s,malloc_type_ustats"});
  k.sysctl.add(
      {.name = "kern.malloc_count", .description = "registered malloc types", .read = [&k] {
         const std::lock_guard lock(k.malloc_mtx);
         return std::to_string(k.kmemcount);
       }});
  // QUIRK: 34 (SYSCTL-14) the last entry of the table, which has no zone, counts.
  k.sysctl.add({.name = "vm.malloc.zone_count",
                .description = "entries of the table of malloc zones",
                .read = [&k] { return std::to_string(k.classes.size() + 1); }});
  k.sysctl.add({.name = "vm.malloc.zone_sizes",
                .description = "sizes of the malloc zones",
                .bytes = [&k] { return zone_sizes(k); },
                .format = "S"});
}

}  // namespace dtmalloc
