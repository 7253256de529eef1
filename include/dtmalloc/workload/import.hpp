// SPDX-License-Identifier: BSD-2-Clause
// Foreign captures become workloads.
//
// Example:
//   Result<ImportResult> r = import_vmstat_m(text, "capture.txt", {});
//   std::cout << r->text;                              // a workload, with comments
//   for (const std::string& note : r->notes) ...       // what was skipped or chosen, by line
//
// A table of vmstat -m says how many blocks live and how many bytes they take, not which sizes
// they have. choose_blocks() finds sizes that give the same row again.
//
// Units:         bytes; memory of a row in KiB, rounded up.
// Errors:        WL_IMPORT when no row is left, or when the capture contradicts the release asked
// for. Thread safety: values. Source:        vmstat(8), netstat(1); sim/README.md.
#pragma once

#include <cstdint>
#include <dtmalloc/sys/error.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtmalloc::workload {

struct ImportOptions {
  bool replay_history = false;      // past requests are made for real
  std::optional<int> release = {};  // whose rules hold; nothing: what the capture shows
  // Called with each note in the end, also when no row is left.
  std::function<void(const std::string&)> note = {};
};

struct ImportResult {
  std::string text;                // the workload
  std::vector<std::string> notes;  // "capture.txt:3: ...", in order
  std::size_t rows = 0;
};

// A table, or the JSON document of `vmstat -m --libxo json`.
Result<ImportResult> import_vmstat_m(std::string_view text, const std::string& file,
                                     const ImportOptions& options);

// A table of vmstat -z, its JSON document, netstat -m, or a dump of the sysctls vm.uma.
Result<ImportResult> import_vmstat_z(std::string_view text, const std::string& file,
                                     const ImportOptions& options);

// Formats of the table, after the column HighUse: printed by the kernel itself with a number, a
// dash, none; and bytes, in the document of release 16.
enum class VmstatFormat { m0, m1, m2, m3, m16 };

struct VmstatRow {
  std::string name;
  std::uint64_t inuse = 0, memuse_kib = 0, requests = 0;
  std::optional<std::uint64_t> memuse_bytes;  // where the capture has them
  std::vector<std::uint32_t> sizes;           // as printed, ascending
  VmstatFormat format = VmstatFormat::m2;
  std::size_t line = 0;
  std::size_t capture = 0;  // a header between rows begins another
  char side = ' ';          // of a diff: '-', '+' or ' '
};

struct VmstatTable {
  std::vector<VmstatRow> rows;
  std::vector<std::string> notes;
  bool humanized = false;  // a header of release 16's table was seen
  bool bytes = false;      // a JSON document of version 2, as release 16 writes it
};
VmstatTable read_vmstat_m(std::string_view text, const std::string& file);
// The document of `vmstat -m --libxo json`.
VmstatTable read_vmstat_json(std::string_view text, const std::string& file);

// Formats of vmstat -z: up to 6 numbers a row, 7 with SLEEP, 8 with XDOMAIN, that of release 16;
// and the other sources of the same figures.
enum class ZoneFormat { z1, z2, z3, z16, netstat, sysctl };

// What vm.uma.*.keg says of a zone's slabs.
struct KegFacts {
  std::optional<std::uint64_t> rsize, ppera, ipers, align, efficiency, bucket_size_max;
};

struct ZoneRow {
  std::string name;
  std::uint64_t size = 0, limit = 0, used = 0, free = 0, requests = 0, fail = 0, sleep = 0,
                xdomain = 0;
  ZoneFormat format = ZoneFormat::z2;
  KegFacts keg = {};
  std::string flags;  // "0x18000<FIRSTTOUCH,PCPU>", of a sysctl
  std::size_t line = 0;
  std::size_t capture = 0;  // a header between rows begins another
  char side = ' ';          // of a diff: '-', '+' or ' '
};

struct ZoneTable {
  std::vector<ZoneRow> rows;
  std::vector<std::string> notes;
};
ZoneTable read_vmstat_z(std::string_view text, const std::string& file);
// The document of `vmstat -z --libxo json`.
ZoneTable read_vmstat_z_json(std::string_view text, const std::string& file);
ZoneTable read_netstat_m(std::string_view text, const std::string& file);
// Lines `vm.uma.ZONE.NAME: value`.
ZoneTable read_sysctl_uma(std::string_view text, const std::string& file);

// Live blocks that explain a row.
struct BlockChoice {
  std::vector<std::uint64_t> per_class;  // beside the row's sizes
  std::vector<std::uint64_t> pages;      // of each block beyond the largest class
  bool all_classes_seen = true;          // classes without a live block fit the past requests
};
// Bytes from `lo` to `hi`, which a figure of a table stands for.
struct MemoryRange {
  std::uint64_t lo = 0, hi = 0;
  static MemoryRange of_kib(std::uint64_t kib) {  // rounded up
    return {kib == 0 ? 0 : (kib - 1) * 1024 + 1, kib * 1024};
  }
  static MemoryRange exactly(std::uint64_t bytes) { return {bytes, bytes}; }
};
// The fewest large blocks that explain `count` blocks in that many bytes of these classes.
// `past`: requests that are over; each class that is not live now needs one. A large block has at
// least `least_pages` pages. Nothing: the row contradicts itself, or no blocks were found in a
// bounded search (well below a millisecond).
std::optional<BlockChoice> choose_blocks(std::uint64_t count, MemoryRange memory,
                                         const std::vector<std::uint32_t>& classes,
                                         std::uint64_t past, std::uint64_t least_pages = 17);

}  // namespace dtmalloc::workload
