// SPDX-License-Identifier: BSD-2-Clause
// What `dtmalloc overhead` computes from what it measured: medians with bounds, quiet rounds,
// shares, rates. Invariants:   functions of their arguments; no clock is read here

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace dtmalloc::sim {

// Between the order statistics: 0 is the least value, 1 the greatest. Of nothing: 0.
double quantile(std::vector<double> values, double part);

// The median of a sample, and bounds that hold the true one with a confidence of about 95 %: order
// statistics, so that no distribution is assumed. Of fewer than six values: the least and the
// greatest.
struct Estimate {
  double value = 0, low = 0, high = 0;
};
Estimate estimate(std::vector<double> sample);

// Two functions of the same work differ by where their code happens to lie, too: bounds that allow
// for it, `base` being the time of one of them.
Estimate with_layout(Estimate difference, double base);

enum class Certainty {
  clear,
  vague,  // the bounds are further apart than half the value: they are worth more than it
  noise,  // 0 lies within the bounds
};
Certainty certainty(const Estimate& difference);

// The rounds that took at most a tenth more than their first quartile.
std::vector<std::size_t> quiet_rounds(const std::vector<double>& times);
// From the first to the third quartile, in percent of the median.
double spread_percent(const std::vector<double>& times);
// Too few rounds were quiet, or they differ too much, for figures that can be trusted.
bool is_noisy(std::size_t rounds, std::size_t quiet, double spread);

// In percent of their sum. What is negative counts as nothing.
std::vector<double> shares(const std::vector<double>& costs);

// A time per operation, at so many operations a second, in percent of one CPU.
double cpu_percent(double ns_per_operation, double operations_per_second);
// `count` in `ns` nanoseconds, per second; 0 when no time passed.
double per_second(double count, double ns);

// Records a second at which the principal buffer of a CPU is full when it is read: every `rate`
// nanoseconds. None: nothing is recorded.
std::optional<double> fills_at(std::size_t bufsize, double record_bytes, std::uint64_t rate);
// How many elements of that size a CPU's buffer for aggregations has room for. None: no element.
std::optional<std::uint64_t> elements_that_fit(std::size_t room, double element_bytes);

}  // namespace dtmalloc::sim
