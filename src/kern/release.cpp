// SPDX-License-Identifier: BSD-2-Clause
// What differs between the releases of FreeBSD, as rows.
//
// Which source of spec/malloc9.md 0 a release follows:
//   16  the newest of each (KM15 for malloc(9), UMA26 for uma(9), DTM for the provider)
//   14  KM22, of 2021-22: before the cookies, as 14.0 was. That 14 kept all of KM22: UNVERIFIED
//   12, 8  no source is as old; KM22 as the nearest. The quirks of these two: UNVERIFIED. Classes,
//       zone names and tables are those of captured machines.
// No release here is between KM22 and KM15, so what only KM24 did (malloc_usable_size() of
// contiguous memory trips an assertion) has no row.
// That older releases took malloc_exec() through a path of its own shows nowhere.
#include <dtmalloc/kernel.hpp>

namespace dtmalloc {
namespace {

// Powers of two from `from` to `to`, with 384 among them if asked.
std::vector<std::uint32_t> powers(std::uint32_t from, std::uint32_t to, bool with_384) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t size = from; size <= to; size *= 2) {
    out.push_back(size);
    if (size == 256 && with_384) out.push_back(384);
  }
  return out;
}

// KM22's side of each quirk. DTM of 2023-24 made no node any more, and the trees before it did.
KernelRelease older(int version, std::vector<std::uint32_t> classes, bool zone_prefix,
                    int vmstat_format, std::uint32_t osreldate) {
  return {.version = version,
          .classes = std::move(classes),
          .zone_prefix = zone_prefix,
          .vmstat_format = vmstat_format,
          .contig_cookie = false,
          .wait_flags_asserted = false,
          .large_by_domainset = false,
          .size_of_large = false,
          .contig_redzone = false,
          .panic_names_function = false,
          .malloc_ctor_gets_zone = false,
          .dtmalloc_node = true,
          .notrim = false,
          .osreldate = osreldate};
}

KernelRelease newest() {
  return {.version = 16,
          .classes = powers(16, 65536, true),
          .zone_prefix = true,
          .vmstat_format = 2,
          .contig_cookie = true,
          .wait_flags_asserted = true,
          .large_by_domainset = true,
          .size_of_large = true,
          .contig_redzone = true,
          .panic_names_function = true,
          .malloc_ctor_gets_zone = true,
          .dtmalloc_node = false,
          .notrim = true,
          .osreldate = 1600019};
}

const std::vector<KernelRelease>& releases() {
  static const std::vector<KernelRelease> rows = {
      older(8, powers(16, 4096, false), false, 0, 804000),
      older(12, powers(16, 65536, false), false, 0, 1204000),
      older(14, powers(16, 65536, true), true, 1, 1403000),
      newest(),
  };
  return rows;
}

}  // namespace

const KernelRelease* KernelRelease::find(int version) {
  for (const KernelRelease& release : releases())
    if (release.version == version) return &release;
  return nullptr;
}

std::vector<int> KernelRelease::versions() {
  std::vector<int> out;
  for (const KernelRelease& release : releases()) out.push_back(release.version);
  return out;
}

}  // namespace dtmalloc
