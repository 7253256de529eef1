// SPDX-License-Identifier: BSD-2-Clause
// The arithmetic of `dtmalloc overhead`.

#include "overhead_figures.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dtmalloc::sim {
namespace {

// Of sorted values.
double at(const std::vector<double>& sorted, double part) {
  if (sorted.empty()) return 0;
  const double place = std::clamp(part, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return at(values, part);
}

Estimate estimate(std::vector<double> sample) {
  if (sample.empty()) return {};
  std::sort(sample.begin(), sample.end());
  // The rank of the median among n values, counted from 1, has the deviation sqrt(n) / 2.
  const auto n = static_cast<double>(sample.size());
  const double rank = std::floor((n - 1.96 * std::sqrt(n)) / 2);
  const auto low = static_cast<std::size_t>(std::max(1.0, rank) - 1);
  return {at(sample, 0.5), sample[low], sample[sample.size() - 1 - low]};
}

Estimate with_layout(Estimate difference, double base) {
  constexpr double kPart = 0.05;  // bench/README.md
  return {difference.value, difference.low - base * kPart, difference.high + base * kPart};
}

Certainty certainty(const Estimate& difference) {
  if (difference.low <= 0 && difference.high >= 0) return Certainty::noise;
  const bool wide = difference.high - difference.low > std::abs(difference.value) / 2;
  return wide ? Certainty::vague : Certainty::clear;
}

std::vector<std::size_t> quiet_rounds(const std::vector<double>& times) {
  const double most = quantile(times, 0.25) * 1.1;
  std::vector<std::size_t> quiet;
  for (std::size_t i = 0; i < times.size(); ++i)
    if (times[i] <= most) quiet.push_back(i);
  return quiet;
}

double spread_percent(const std::vector<double>& times) {
  const double median = quantile(times, 0.5);
  return median > 0 ? (quantile(times, 0.75) - quantile(times, 0.25)) / median * 100 : 0;
}

bool is_noisy(std::size_t rounds, std::size_t quiet, double spread) {
  constexpr double kMostSpread = 20;
  return quiet < 5 || quiet * 2 < rounds || spread > kMostSpread;
}

std::vector<double> shares(const std::vector<double>& costs) {
  std::vector<double> parts;
  for (const double cost : costs) parts.push_back(std::max(0.0, cost));
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  for (double& part : parts) part = sum > 0 ? part / sum * 100 : 0;
  return parts;
}

double cpu_percent(double ns_per_operation, double operations_per_second) {
  return ns_per_operation * operations_per_second / 1e9 * 100;
}

double per_second(double count, double ns) { return ns > 0 ? count / ns * 1e9 : 0; }

std::optional<double> fills_at(std::size_t bufsize, double record_bytes, std::uint64_t rate) {
  if (record_bytes <= 0 || rate == 0) return std::nullopt;
  return static_cast<double>(bufsize) / record_bytes / (static_cast<double>(rate) / 1e9);
}

std::optional<std::uint64_t> elements_that_fit(std::size_t room, double element_bytes) {
  if (element_bytes <= 0) return std::nullopt;
  return static_cast<std::uint64_t>(static_cast<double>(room) / element_bytes);
}

}  // namespace dtmalloc::sim
