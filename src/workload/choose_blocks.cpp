// SPDX-License-Identifier: BSD-2-Clause
// Which blocks explain a row of vmstat -m: count, memory and classes are given, sizes are not.
// Invariants:   sum of counts = count; bytes in ((kib-1)*1024, kib*1024]

#include <algorithm>
#include <bit>
#include <dtmalloc/workload/import.hpp>

namespace dtmalloc::workload {
namespace {

using Count = std::uint64_t;
constexpr Count kPage = 4096;
constexpr int kSteps = 20000;           // of one search
constexpr long kAllSteps = 20'000'000;  // of one row

// Searches counts per class, largest class first, few large blocks first. The remaining total must
// stay between what only the smallest and only the next class could give.
class Search {
 public:
  Search(const std::vector<std::uint32_t>& classes, const std::vector<Count>& least, long& budget)
      : classes_(classes), least_(least), counts_(classes.size(), 0), budget_(budget) {}

  // `count` blocks with lo <= bytes <= hi.
  bool find(Count count, Count lo, Count hi) {
    steps_ = budget_ > kSteps ? kSteps : 0;
    const bool found = try_find(count, lo, hi);
    budget_ -= kSteps - std::max(steps_, 0);
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
// least counts (1: alive).
std::vector<std::vector<Count>> alive_sets(std::size_t classes, Count past) {
  std::vector<std::uint32_t> masks;
  constexpr std::size_t kMost = 14;
  if (classes <= kMost) {
    for (std::uint32_t mask = 0; mask < 1u << classes; ++mask) {
      if (static_cast<Count>(std::popcount(mask)) <= past) masks.push_back(mask);
    }
    std::stable_sort(masks.begin(), masks.end(), [](std::uint32_t a, std::uint32_t b) {
      return std::pair(std::popcount(a), ~a) < std::pair(std::popcount(b), ~b);
    });
  } else {
    masks.push_back(0);
  }
  std::vector<std::vector<Count>> sets;
  for (const std::uint32_t idle : masks) {
    std::vector<Count>& least = sets.emplace_back(classes, 1);
    for (std::size_t i = 0; i < classes && i < 32; ++i) least[i] = idle >> i & 1 ? 0 : 1;
  }
  return sets;
}

}  // namespace

std::optional<BlockChoice> choose_blocks(Count count, Count kib,
                                         const std::vector<std::uint32_t>& classes, Count past,
                                         Count least_pages) {
  constexpr Count kMost = Count{1} << 40;
  if (count > kMost || kib > kMost) return std::nullopt;
  if (count == 0 || kib == 0) {
    if (count != 0 || kib != 0) return std::nullopt;
    BlockChoice none;
    none.per_class.assign(classes.size(), 0);
    none.all_classes_seen = classes.size() <= past;
    return none;
  }
  const Count lo = (kib - 1) * 1024 + 1, hi = kib * 1024;
  long budget = kAllSteps;
  const Row row{count, lo, hi, classes, least_pages};
  const auto sets = alive_sets(classes.size(), past);
  for (const auto& least : sets) {
    if (auto found = without_large(row, least, budget)) return found;
  }
  constexpr Count kMostLarge = 100000;
  std::optional<BlockChoice> best;
  budget = kAllSteps;
  for (const auto& least : sets) {
    const Count most = best ? best->pages.size() - 1 : kMostLarge;
    if (most == 0) break;
    if (auto found = with_large(row, least, most, budget)) best = std::move(found);
  }
  if (best) return best;
  // The classes cannot all have been used by so few requests; the rest may still be right.
  const std::vector<Count> none(classes.size(), 0);
  budget = kAllSteps;
  best = without_large(row, none, budget);
  if (!best) best = with_large(row, none, kMostLarge, budget);
  if (best) {
    best->all_classes_seen = false;
    return best;
  }
  if (least_pages > 1) return choose_blocks(count, kib, classes, past, 1);
  return std::nullopt;
}

}  // namespace dtmalloc::workload
