// SPDX-License-Identifier: BSD-2-Clause
// The model of malloc(9).

#include "reference/flat_malloc.hpp"

#include <algorithm>
#include <iterator>

namespace dtmalloc::reference {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr int kNowait = 0x1;

// spec/malloc9.md 2.2
constexpr std::uint64_t kClasses[] = {16,   32,   64,   128,  256,   384,   512,
                                      1024, 2048, 4096, 8192, 16384, 32768, 65536};

std::uint64_t whole_pages(std::uint64_t size) { return (size + kPage - 1) / kPage * kPage; }

// Alignment that a block must have: the mask of its zone (2.2), 128 for malloc-384 (5.4).
std::uint64_t alignment(const FlatBlock& block) {
  if (block.zindx == -1) return kPage;
  return block.size == 384 ? 128 : std::min(block.size, kPage);
}

std::string number(std::uint64_t n) { return std::to_string(n); }

}  // namespace

std::pair<int, std::uint64_t> FlatMalloc::classify(std::uint64_t size) const {
  if (size > zmax_) return {-1, whole_pages(size)};
  int zindx = 0;
  while (kClasses[zindx] < size) ++zindx;
  return {zindx, kClasses[zindx]};
}

const FlatBlock* FlatMalloc::block(Address address) const {
  const auto found = live_.find(address);
  return found == live_.end() ? nullptr : &found->second;
}

std::string FlatMalloc::add(const FlatCall& call, std::uint64_t size, int zindx, bool contig,
                            Address got) {
  FlatStats& stats = stats_[{call.cpu, call.type}];
  if (got == 0) {
    // A failed small request fires with size 0 and marks its class; a failed large one does not
    // exist (3.1, 3.4).
    if (zindx != -1) {
      stats.mask |= std::uint64_t{1} << zindx;
      firings_.push_back({call.type, false, 0, zindx});
    }
    return (call.flags & kNowait) != 0 ? "" : "a request with M_WAITOK returned null";
  }
  stats.memalloced += size;
  stats.numallocs += 1;
  if (zindx != -1) stats.mask |= std::uint64_t{1} << zindx;
  firings_.push_back({call.type, false, size, zindx});

  const FlatBlock block{size, zindx, contig, call.type};
  std::string problem;
  const auto above = live_.lower_bound(got);
  if (above != live_.end() && above->first < got + size) problem = "overlaps the next live block";
  if (above != live_.begin()) {
    const auto below = std::prev(above);
    if (below->first + below->second.size > got) problem = "overlaps the live block before it";
  }
  if (got % alignment(block) != 0) problem = "is not aligned to " + number(alignment(block));
  live_[got] = block;
  return problem.empty() ? "" : "the block of " + number(size) + " bytes " + problem;
}

std::string FlatMalloc::malloc(const FlatCall& call, Address got) {
  const auto [zindx, size] = classify(call.size);
  return add(call, size, zindx, false, got);
}

std::string FlatMalloc::malloc_aligned(const FlatCall& call, std::uint64_t align, Address got) {
  FlatCall asked = call;
  asked.size = std::max(call.size, std::uint64_t{1});
  if (asked.size <= align) {
    asked.size = align;
  } else {
    std::uint64_t power = 1;
    while (power < asked.size) power *= 2;
    asked.size = power;
  }
  if (got % align != 0) return "malloc_aligned() returned a block that is not aligned";
  return malloc(asked, got);
}

std::string FlatMalloc::malloc_exec(const FlatCall& call, Address got) {
  return add(call, whole_pages(call.size), -1, false, got);
}

std::string FlatMalloc::contigmalloc(const FlatCall& call, Address got) {
  return add(call, whole_pages(call.size), -1, true, got);
}

std::string FlatMalloc::realloc(const FlatCall& call, bool free_on_failure, Address old,
                                Address got) {
  if (old == 0) return malloc(call, got);
  const FlatBlock* block = this->block(old);
  if (block == nullptr) return "realloc() of a block that does not live";
  // In place iff it fits and more than half stays used (3.6).
  if (call.size <= block->size && call.size > block->size / 2) {
    return got == old ? "" : "realloc() moved a block that may stay";
  }
  if (got == old) return "realloc() kept a block that must move";
  std::string problem = malloc(call, got);
  if (got == 0 && !free_on_failure) return problem;
  const std::string freed = free(call.cpu, call.type, old);
  return problem.empty() ? freed : problem;
}

std::string FlatMalloc::free(int cpu, int type, Address address) {
  if (address == 0) return "";
  const auto found = live_.find(address);
  if (found == live_.end()) return "free() of a block that does not live";
  const std::uint64_t size = found->second.size;
  live_.erase(found);
  FlatStats& stats = stats_[{cpu, type}];
  stats.memfreed += size;
  stats.numfrees += 1;
  firings_.push_back({type, true, size, 0});
  return "";
}

FlatStats FlatMalloc::stats(int cpu, int type) const {
  const auto found = stats_.find({cpu, type});
  return found == stats_.end() ? FlatStats{} : found->second;
}

FlatStats FlatMalloc::stats(int type) const {
  FlatStats sum;
  for (const auto& [key, stats] : stats_) {
    if (key.second != type) continue;
    sum.memalloced += stats.memalloced;
    sum.memfreed += stats.memfreed;
    sum.numallocs += stats.numallocs;
    sum.numfrees += stats.numfrees;
    sum.mask |= stats.mask;
  }
  return sum;
}

}  // namespace dtmalloc::reference
