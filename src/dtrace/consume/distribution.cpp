// SPDX-License-Identifier: BSD-2-Clause
// Aggregations in the default layout: numbers, and the bars of distributions.
// Counterpart:  dt_consume.c (dt_print_quantize, dt_print_lquantize, dt_print_llquantize,
//               dt_print_aggs)
#include <cmath>
#include <cstdlib>

#include "dtrace/consume/format.hpp"

namespace dtmalloc::dtrace {
namespace {

// What the counts of one distribution add up to, and their signs.
struct Totals {
  long double sum = 0;  // of absolute values
  bool positive = false, negative = false;

  explicit Totals(const std::vector<std::int64_t>& counts) {
    for (const std::int64_t count : counts) {
      sum += std::fabs(static_cast<long double>(count));
      positive = positive || count > 0;
      negative = negative || count < 0;
    }
  }
};

std::size_t bar_length(std::int64_t count, long double total, int columns) {
  if (total == 0) return 0;
  const long double share = std::fabs(static_cast<long double>(count)) * columns / total;
  return static_cast<std::size_t>(std::floor(share + 0.5L));
}

void print_line(std::string& out, std::int64_t count, const Totals& totals, std::uint64_t normal) {
  constexpr int kColumns = 40;
  if (!totals.negative) {
    const std::size_t length = bar_length(count, totals.sum, kColumns);
    out += '|';
    out.append(length, '@');
    out.append(kColumns - length, ' ');
  } else if (!totals.positive) {
    const std::size_t length = bar_length(count, totals.sum, kColumns);
    out.append(kColumns - length, ' ');
    out.append(length, '@');
    out += '|';
  } else {
    constexpr int kHalf = kColumns / 2;
    const std::size_t length = bar_length(count, totals.sum, kHalf);
    const std::size_t left = count < 0 ? length : 0;
    const std::size_t right = count > 0 ? length : 0;
    out.append(kHalf - left, ' ');
    out.append(left, '@');
    out += '|';
    out.append(right, '@');
    out.append(kHalf - right, ' ');
  }
  append(out, " %-9lld\n", static_cast<long long>(static_cast<std::uint64_t>(count) / normal));
}

// The label of a bucket, 16 columns.
std::string bucket_label(const AggSpec& spec, const std::vector<std::int64_t>& bounds,
                         std::size_t bucket) {
  std::string label;
  switch (spec.function) {
    case AggFunction::quantize:
      append(label, "%16lld",
             static_cast<long long>(quantize_bucket_value(static_cast<int>(bucket))));
      break;
    case AggFunction::lquantize: {
      const std::int64_t step = spec.step;
      const auto lower = spec.base + (static_cast<std::int64_t>(bucket) - 1) * step;
      std::string text;
      if (bucket == 0) {
        append(text, "< %d", spec.base);
      } else if (bucket == spec.levels + 1) {
        append(text, ">= %lld", static_cast<long long>(lower));
      } else {
        append(text, "%lld", static_cast<long long>(lower));
      }
      append(label, "%16s", text.c_str());
      break;
    }
    default: {
      std::string text;
      if (bucket == 0) {
        append(text, "< %lld", static_cast<long long>(bounds.front()));
      } else {
        append(text, bucket == bounds.size() ? ">= %lld" : "%lld",
               static_cast<long long>(bounds[bucket - 1]));
      }
      append(label, "%16s", text.c_str());
      break;
    }
  }
  return label;
}

}  // namespace

bool is_distribution(AggFunction function) {
  return function == AggFunction::quantize || function == AggFunction::lquantize ||
         function == AggFunction::llquantize;
}

void print_distribution(std::string& out, const AggTable& table,
                        const std::vector<std::int64_t>& data) {
  const AggSpec& spec = table.spec;
  const std::vector<std::int64_t> bounds = spec.function == AggFunction::llquantize
                                               ? llquantize_bounds(spec)
                                               : std::vector<std::int64_t>();
  const std::size_t last_bucket = data.size() - 1;
  std::size_t first = 0;
  while (first < last_bucket && data[first] == 0) ++first;
  std::size_t last = last_bucket;
  if (data[first] == 0) {
    // No data.
    switch (spec.function) {
      case AggFunction::quantize:
        first = kQuantizeZero - 1;
        last = kQuantizeZero + 1;
        break;
      case AggFunction::lquantize:
        first = 0;
        last = 2;
        break;
      default:
        first = 0;
        last = 1;
        break;
    }
    if (last > last_bucket) last = last_bucket;
  } else {
    while (last > first && data[last] == 0) --last;
    if (first > 0) --first;
    if (last < last_bucket) ++last;
  }
  append(out, "\n%16s %41s %-9s\n", "value", "------------- Distribution -------------", "count");
  const Totals totals(data);
  for (std::size_t bucket = first; bucket <= last; ++bucket) {
    out += bucket_label(spec, bounds, bucket) + " ";
    print_line(out, data[bucket], totals, table.normal);
  }
}

void print_aggregation_value(std::string& out, const AggTable& table,
                             const std::vector<std::int64_t>& data) {
  if (is_distribution(table.spec.function)) {
    print_distribution(out, table, data);
    return;
  }
  switch (table.spec.function) {
    case AggFunction::avg:
      append(out, " %16lld", static_cast<long long>(element_value(table.spec, data, table.normal)));
      break;
    case AggFunction::stddev:
      append(out, " %16llu", static_cast<unsigned long long>(stddev_value(data, table.normal)));
      break;
    default: {
      // Divided unsigned.
      const std::uint64_t value = table.normal > 1
                                      ? static_cast<std::uint64_t>(data[0]) / table.normal
                                      : static_cast<std::uint64_t>(data[0]);
      append(out, " %16lld", static_cast<long long>(value));
      break;
    }
  }
}

void print_rows(std::string& out, const std::vector<const AggTable*>& tables,
                const std::vector<AggRow>& rows, const SymbolText& symbols) {
  for (const AggRow& row : rows) {
    for (const KeyPart& part : row.parts) print_key(out, part, symbols);
    for (std::size_t i = 0; i < tables.size(); ++i) {
      print_aggregation_value(out, *tables[i], *row.data[i]);
    }
    out += '\n';
  }
}

}  // namespace dtmalloc::dtrace
