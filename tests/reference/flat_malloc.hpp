// SPDX-License-Identifier: BSD-2-Clause
// A slow, obvious model of malloc(9): a map from address to block, the statistics of each CPU and
// the firings of dtmalloc, written from spec/malloc9.md 2 and 3 alone.
//
// It does not choose addresses: each function is told what the allocator under test answered, says
// what contradicts the rules (empty: nothing), and updates statistics and firings.
// Source:       spec/malloc9.md 2.2, 2.4, 3.1 to 3.9
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace dtmalloc::reference {

struct FlatFiring {
  int type;
  bool is_free;
  std::uint64_t size;
  int zindx;
  bool operator==(const FlatFiring&) const = default;
};

struct FlatStats {
  std::uint64_t memalloced = 0, memfreed = 0, numallocs = 0, numfrees = 0, mask = 0;
  bool operator==(const FlatStats&) const = default;
};

struct FlatBlock {
  std::uint64_t size;  // what it takes: class size or whole pages
  int zindx;           // -1: pages
  bool contig;
  int type;
};

// Who calls, for what.
struct FlatCall {
  int cpu;
  int type;
  std::uint64_t size;
  int flags;  // M_* bits
};

class FlatMalloc {
 public:
  using Address = std::uintptr_t;  // 0: null

  explicit FlatMalloc(std::uint64_t zmax = 65536) : zmax_(zmax) {}
  // What a type had on a CPU before the model looked.
  void start_with(int cpu, int type, const FlatStats& stats) { stats_[{cpu, type}] = stats; }

  std::string malloc(const FlatCall& call, Address got);
  std::string malloc_aligned(const FlatCall& call, std::uint64_t align, Address got);
  std::string malloc_exec(const FlatCall& call, Address got);
  std::string contigmalloc(const FlatCall& call, Address got);
  // `free_on_failure`: reallocf.
  std::string realloc(const FlatCall& call, bool free_on_failure, Address old, Address got);
  std::string free(int cpu, int type, Address address);

  // What a request of malloc() takes: zone index (-1: pages) and bytes.
  std::pair<int, std::uint64_t> classify(std::uint64_t size) const;

  const std::map<Address, FlatBlock>& live() const { return live_; }
  const FlatBlock* block(Address address) const;
  FlatStats stats(int cpu, int type) const;  // of one CPU
  FlatStats stats(int type) const;           // of all
  std::vector<FlatFiring> take_firings() { return std::exchange(firings_, {}); }

 private:
  std::string add(const FlatCall& call, std::uint64_t size, int zindx, bool contig, Address got);

  std::uint64_t zmax_;
  std::map<Address, FlatBlock> live_;
  std::map<std::pair<int, int>, FlatStats> stats_;  // (CPU, type)
  std::vector<FlatFiring> firings_;
};

}  // namespace dtmalloc::reference
