// SPDX-License-Identifier: BSD-2-Clause
// Which blocks explain a row of vmstat -m: count, memory and classes are given, sizes are not.
// Invariants:   sum of counts = count; bytes in the range; a row costs at most kRowSteps a pass

#include <algorithm>
#include <bit>
#include <dtmalloc/workload/import.hpp>
#include <numeric>

namespace dtmalloc::workload {
namespace {

using Count = std::uint64_t;
constexpr Count kPage = 4096;
constexpr int kSteps = 2000;      // of one search
constexpr long kRowSteps = 4000;  // of one pass over a row

// Searches counts per class, largest class first, few large blocks first. The remaining total must
// stay between what only the smallest and only the next class could give.
class Search {
 public:
  Search(const std::vector<std::uint32_t>& classes, const std::vector<Count>& least, long& budget)
      : classes_(classes),
        least_(least),
        counts_(classes.size(), 0),
        step_of_(classes.size() + 1, 0),
        budget_(budget) {
    for (std::size_t i = 1; i < classes.size(); ++i)
      step_of_[i + 1] = std::gcd(step_of_[i], Count{classes[i]} - classes[0]);
  }

  // `count` blocks with lo <= bytes <= hi.
  bool find(Count count, Count lo, Count hi) {
    const int most = static_cast<int>(std::clamp<long>(budget_, 0, kSteps));
    steps_ = most;
    const bool found = try_find(count, lo, hi);
    budget_ -= 1 + most - std::max(steps_, 0);
    return found;
  }
  const std::vector<Count>& counts() const { return counts_; }

 private:
  bool try_find(Count count, Count lo, Count hi) {
    Count base = 0, taken = 0;
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      base += least_[i] * classes_[i];
      taken += least_[i];
    }
    if (taken > count || base > hi) return false;
    std::fill(counts_.begin(), counts_.end(), 0);
    if (!place(classes_.size(), count - taken, lo > base ? lo - base : 0, hi - base)) return false;
    for (std::size_t i = 0; i < classes_.size(); ++i) counts_[i] += least_[i];
    return true;
  }

  // Distributes `left` blocks over the classes below `end`.
  bool place(std::size_t end, Count left, Count lo, Count hi) {
    if (left == 0) return lo == 0;
    if (end == 0 || --steps_ < 0) return false;
    const Count smallest = classes_[0], size = classes_[end - 1];
    if (left * smallest > hi || left * size < lo) return false;
    // All these sizes differ by multiples of this.
    const Count least = left * smallest, step = step_of_[end];
    if (step != 0 && lo > least && (lo - least + step - 1) / step * step > hi - least) return false;
    if (end == 1) {
      counts_[0] = left;
      return true;
    }
    // n blocks of this class leave left - n for the classes below, each at most `next` bytes.
    const Count next = classes_[end - 2];
    const Count most = std::min(left, (hi - left * smallest) / (size - smallest));
    const Count fewest =
        lo > left * next ? (lo - left * next + size - next - 1) / (size - next) : 0;
    for (Count n = fewest; n <= most; ++n) {
      counts_[end - 1] = n;
      const Count bytes = n * size;
      if (place(end - 1, left - n, lo > bytes ? lo - bytes : 0, hi - bytes)) return true;
      if (steps_ < 0) break;
    }
    counts_[end - 1] = 0;
    return false;
  }

  const std::vector<std::uint32_t>& classes_;
  const std::vector<Count>& least_;
  std::vector<Count> counts_;
  std::vector<Count> step_of_;  // of the classes below an end
  int steps_ = 0;
  long& budget_;
};

// Spreads `pages` over `blocks`, as evenly as pages allow.
std::vector<Count> spread(Count pages, Count blocks) {
  std::vector<Count> out(blocks, blocks == 0 ? 0 : pages / blocks);
  for (Count i = 0; blocks != 0 && i < pages % blocks; ++i) ++out[i];
  return out;
}

struct Row {
  Count count, lo, hi;
  const std::vector<std::uint32_t>& classes;
  Count least_pages;
};

std::optional<BlockChoice> without_large(const Row& row, const std::vector<Count>& least,
                                         long& budget) {
  Search search(row.classes, least, budget);
  if (row.classes.empty() || !search.find(row.count, row.lo, row.hi)) return std::nullopt;
  return BlockChoice{search.counts(), {}, true};
}

// At most `most_large` large blocks.
std::optional<BlockChoice> with_large(const Row& row, const std::vector<Count>& least,
                                      Count most_large, long& budget) {
  const std::vector<std::uint32_t>& classes = row.classes;
  Search search(classes, least, budget);
  const auto required = static_cast<Count>(std::count(least.begin(), least.end(), 1));
  for (Count large = 1; large + required <= row.count && large <= most_large; ++large) {
    if (large * row.least_pages * kPage > row.hi) break;
    const Count small = row.count - large;
    if (classes.empty() && small != 0) continue;
    const Count small_least = classes.empty() ? 0 : small * classes.front();
    const Count small_most = classes.empty() ? 0 : small * classes.back();
    if (small_least > row.hi) continue;
    Count pages = std::max(large * row.least_pages,
                           row.lo > small_most ? (row.lo - small_most + kPage - 1) / kPage : 0);
    for (; pages * kPage + small_least <= row.hi && budget > 0; ++pages, --budget) {
      const Count bytes = pages * kPage;
      const Count small_lo = row.lo > bytes ? row.lo - bytes : 0;
      const bool fits =
          classes.empty() ? small_lo == 0 : search.find(small, small_lo, row.hi - bytes);
      if (!fits) continue;
      std::vector<Count> counts = classes.empty() ? std::vector<Count>{} : search.counts();
      return BlockChoice{std::move(counts), spread(pages, large), true};
    }
    if (budget <= 0) break;
  }
  return std::nullopt;
}

// Sets of classes without a live block, fewest first, the largest classes idle first: each as
// least counts (1: alive). The first kMostSets of them.
std::vector<std::vector<Count>> alive_sets(std::size_t classes, Count past) {
  constexpr std::size_t kMostSets = 120, kMostClasses = 14;
  std::vector<std::vector<Count>> sets(1, std::vector<Count>(classes, 1));
  if (classes > kMostClasses) return sets;
  for (std::size_t idle = 1; idle <= classes && idle <= past; ++idle) {
    std::uint32_t mask = ((1u << idle) - 1) << (classes - idle);
    while (sets.size() < kMostSets) {
      std::vector<Count>& least = sets.emplace_back(classes, 1);
      for (std::size_t i = 0; i < classes; ++i) least[i] = mask >> i & 1 ? 0 : 1;
      if (mask == (1u << idle) - 1) break;
      do --mask;
      while (static_cast<std::size_t>(std::popcount(mask)) != idle);
    }
  }
  if (past >= classes) sets.emplace_back(classes, 0);
  return sets;
}

}  // namespace

std::optional<BlockChoice> choose_blocks(Count count, MemoryRange memory,
                                         const std::vector<std::uint32_t>& classes, Count past,
                                         Count least_pages) {
  constexpr Count kMost = Count{1} << 40;
  if (count > kMost || memory.hi > kMost * 1024) return std::nullopt;
  if (count == 0 || memory.hi == 0) {
    if (count != 0 || memory.hi != 0) return std::nullopt;
    BlockChoice none;
    none.per_class.assign(classes.size(), 0);
    none.all_classes_seen = classes.size() <= past;
    return none;
  }
  // No block is smaller than these.
  const Count smallest = classes.empty() ? kPage : std::min<Count>(classes.front(), kPage);
  if (count * smallest > memory.hi) return std::nullopt;
  Count step = kPage;
  for (const std::uint32_t size : classes) step = std::gcd(step, Count{size});
  if ((memory.lo + step - 1) / step * step > memory.hi) return std::nullopt;
  const Row row{count, memory.lo, memory.hi, classes, least_pages};
  const auto sets = alive_sets(classes.size(), past);
  long budget = kRowSteps;
  for (const auto& least : sets) {
    if (budget <= 0) break;
    if (auto found = without_large(row, least, budget)) return found;
  }
  constexpr Count kMostLarge = 100000;
  std::optional<BlockChoice> best;
  budget = kRowSteps;
  for (const auto& least : sets) {
    const Count most = best ? best->pages.size() - 1 : kMostLarge;
    if (most == 0 || budget <= 0) break;
    if (auto found = with_large(row, least, most, budget)) best = std::move(found);
  }
  if (best) return best;
  // The classes cannot all have been used by so few requests; the rest may still be right.
  const std::vector<Count> none(classes.size(), 0);
  budget = kRowSteps;
  best = without_large(row, none, budget);
  if (!best) best = with_large(row, none, kMostLarge, budget);
  if (best) {
    best->all_classes_seen = classes.size() <= past;
    return best;
  }
  if (least_pages > 1) return choose_blocks(count, memory, classes, past, 1);
  return std::nullopt;
}

}  // namespace dtmalloc::workload
