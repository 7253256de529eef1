// SPDX-License-Identifier: BSD-2-Clause
// Aggregations in the default layout: numbers, and the bars of distributions.
// Counterpart:  dt_consume.c (dt_print_quantize, dt_print_lquantize, dt_print_llquantize,
//               dt_print_aggs)
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "dtrace/consume/format.hpp"

namespace dtmalloc::dtrace {
namespace {

constexpr int kColumns = 40;

std::size_t bar_length(std::int64_t value, long double total, int columns) {
  if (total == 0) return 0;
  const long double share = std::fabs(static_cast<long double>(value)) * columns / total;
  return static_cast<std::size_t>(std::floor(share + 0.5L));
}

// Full blocks, then one of as many eighths as are left.
void bar_of_blocks(std::string& out, std::int64_t value, long double total) {
  constexpr int kEighths = 8;
  const long double share = std::fabs(static_cast<long double>(value)) * kColumns / total;
  const auto whole = static_cast<std::size_t>(share);
  const auto eighths =
      static_cast<std::size_t>((share - static_cast<long double>(whole)) * kEighths);
  for (std::size_t i = 0; i < whole; ++i) out += "\u2588";
  if (eighths != 0) {
    out += "\xe2\x96";
    out += static_cast<char>(0x90 - eighths);
  }
  out.append(kColumns - whole - (eighths != 0 ? 1 : 0), ' ');
}

}  // namespace

void BarScale::add(std::int64_t value) {
  constexpr long double kZoomed = 0.95L;  // of the columns, for the largest
  const long double size = std::fabs(static_cast<long double>(value));
  total_ = zoom_ ? std::max(total_, size / kZoomed) : total_ + size;
  positive_ = positive_ || value > 0;
  negative_ = negative_ || value < 0;
}

void print_bar(std::string& out, std::int64_t value, const BarScale& scale, std::uint64_t normal,
               Encoding encoding) {
  if (!scale.negative()) {
    out += '|';
    if (scale.positive() && encoding == Encoding::utf8) {
      bar_of_blocks(out, value, scale.total());
    } else {
      const std::size_t length = bar_length(value, scale.total(), kColumns);
      out.append(length, '@');
      out.append(kColumns - length, ' ');
    }
  } else if (!scale.positive()) {
    const std::size_t length = bar_length(value, scale.total(), kColumns);
    out.append(kColumns - length, ' ');
    out.append(length, '@');
    out += '|';
  } else {
    constexpr int kHalf = kColumns / 2;
    const std::size_t length = bar_length(value, scale.total(), kHalf);
    const std::size_t left = value < 0 ? length : 0;
    const std::size_t right = value > 0 ? length : 0;
    out.append(kHalf - left, ' ');
    out.append(left, '@');
    out += '|';
    out.append(right, '@');
    out.append(kHalf - right, ' ');
  }
  append(out, " %-9lld\n", static_cast<long long>(static_cast<std::uint64_t>(value) / normal));
}

BucketValues::BucketValues(const AggSpec& spec) : spec_(spec) {
  if (spec.function == AggFunction::llquantize) bounds_ = llquantize_bounds(spec);
}

std::int64_t BucketValues::value(std::size_t bucket) const {
  const auto inner = static_cast<std::int64_t>(bucket == 0 ? 0 : bucket - 1);
  switch (spec_.function) {
    case AggFunction::quantize:
      return quantize_bucket_value(static_cast<int>(bucket));
    case AggFunction::lquantize:
      return spec_.base + inner * std::int64_t{spec_.step};
    default:
      return bounds_[static_cast<std::size_t>(inner)];
  }
}

// 16 columns.
std::string BucketValues::label(std::size_t bucket) const {
  std::string number = std::to_string(value(bucket));
  if (spec_.function != AggFunction::quantize) {
    if (bucket == 0) number = "< " + number;
    if (bucket + 1 == spec_.words) number = ">= " + number;
  }
  std::string text;
  append(text, "%16s", number.c_str());
  return text;
}

bool is_distribution(AggFunction function) {
  return function == AggFunction::quantize || function == AggFunction::lquantize ||
         function == AggFunction::llquantize;
}

Buckets shown_buckets(const AggSpec& spec, const std::vector<std::int64_t>& data) {
  const std::size_t end = data.size() - 1;
  Buckets shown{0, end};
  while (shown.first < end && data[shown.first] == 0) ++shown.first;
  if (data[shown.first] == 0) {
    // No data.
    switch (spec.function) {
      case AggFunction::quantize:
        return {kQuantizeZero - 1, kQuantizeZero + 1};
      case AggFunction::lquantize:
        return {0, std::min<std::size_t>(2, end)};
      default:
        return {0, std::min<std::size_t>(1, end)};
    }
  }
  while (data[shown.last] == 0) --shown.last;
  if (shown.first > 0) --shown.first;
  if (shown.last < end) ++shown.last;
  return shown;
}

void print_distribution(std::string& out, const AggTable& table,
                        const std::vector<std::int64_t>& data, const AggDisplay& display) {
  const Buckets shown = shown_buckets(table.spec, data);
  append(out, "\n%16s %41s %-9s\n", "value", "------------- Distribution -------------", "count");
  BarScale scale(display.aggzoom);
  for (const std::int64_t count : data) scale.add(count);
  const BucketValues values(table.spec);
  for (std::size_t bucket = shown.first; bucket <= shown.last; ++bucket) {
    out += values.label(bucket) + " ";
    print_bar(out, data[bucket], scale, table.normal, display.encoding);
  }
}

void print_aggregation_value(std::string& out, const AggTable& table,
                             const std::vector<std::int64_t>& data, const AggDisplay& display) {
  if (is_distribution(table.spec.function)) {
    print_distribution(out, table, data, display);
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
                const std::vector<AggRow>& rows, const SymbolText& symbols,
                const AggDisplay& display) {
  if (tables.size() == 1 && print_rows_packed(out, *tables[0], rows, symbols, display)) return;
  for (const AggRow& row : rows) {
    for (const KeyPart& part : row.parts) print_key(out, part, symbols);
    for (std::size_t i = 0; i < tables.size(); ++i) {
      print_aggregation_value(out, *tables[i], *row.data[i], display);
    }
    out += '\n';
  }
}

}  // namespace dtmalloc::dtrace
