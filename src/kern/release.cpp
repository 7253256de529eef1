// SPDX-License-Identifier: BSD-2-Clause
// What differs between the releases of FreeBSD, as rows.
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

const std::vector<KernelRelease>& releases() {
  static const std::vector<KernelRelease> rows = {
      {8, powers(16, 4096, false), false, 0},
      {12, powers(16, 65536, false), false, 0},
      {14, powers(16, 65536, true), true, 1},
      {16, powers(16, 65536, true), true, 2},
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
