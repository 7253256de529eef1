// SPDX-License-Identifier: BSD-2-Clause
// aggpack and agghist: one line per element, a character for each bucket or a bar.
// Counterpart:  dt_consume.c (dt_print_packed, dt_print_quantize_packed, dt_print_lquantize_packed)
// Differs:      without `encoding` buckets are UTF-8, whatever the terminal is called.
#include <algorithm>
#include <cmath>

#include "dtrace/consume/format.hpp"

namespace dtmalloc::dtrace {
namespace {

// Digits and sign, four at least.
int digits(std::int64_t value) {
  std::string text;
  append(text, "%lld", static_cast<long long>(value));
  return std::max(4, static_cast<int>(text.size()));
}

// One bucket as a character, by its share of the scale.
void print_bucket(std::string& out, std::int64_t count, const BarScale& scale, Encoding encoding) {
  constexpr std::string_view kPositive = "__xxxxXX";
  constexpr std::string_view kNegative = "vvvvVV";
  if (count == 0) {
    out += ' ';
    return;
  }
  const auto step = [&](std::size_t steps) {
    const long double size = std::fabs(static_cast<long double>(count));
    return static_cast<std::size_t>(size * static_cast<long double>(steps - 1) / scale.total() +
                                    0.5L);
  };
  if (count < 0) {
    out += kNegative[step(kNegative.size())];
  } else if (encoding == Encoding::ascii) {
    out += kPositive[step(kPositive.size())];
  } else {
    constexpr std::size_t kBlocks = 8;  // U+2581 to U+2588
    out += "\xe2\x96";
    out += static_cast<char>(0x81 + step(kBlocks));
  }
}

// The buckets that all elements have in common: from the first with a count in one of them to the
// last, and one more on each side. lquantize() shows all it has.
Buckets common_buckets(const AggTable& table, const std::vector<AggRow>& rows) {
  const std::size_t end = table.spec.words - 1;
  if (table.spec.function == AggFunction::lquantize) return {0, end};
  Buckets common{end, 0};
  for (const AggRow& row : rows) {
    for (std::size_t i = 0; i <= end; ++i) {
      if ((*row.data[0])[i] == 0) continue;
      common.first = std::min(common.first, i);
      common.last = std::max(common.last, i);
    }
  }
  if (common.first > common.last) common = {kQuantizeZero, kQuantizeZero};
  if (common.first != 0 && common.first != kQuantizeZero) --common.first;
  if (common.last < end) ++common.last;
  return common;
}

}  // namespace

bool print_rows_packed(std::string& out, const AggTable& table, const std::vector<AggRow>& rows,
                       const SymbolText& symbols, const AggDisplay& display) {
  const AggFunction function = table.spec.function;
  const bool histogram =
      display.agghist && (function == AggFunction::count || function == AggFunction::sum);
  const bool pack =
      display.aggpack && (function == AggFunction::quantize || function == AggFunction::lquantize);
  if (rows.empty() || (!histogram && !pack)) return false;
  int width = 0;
  for (const ValueDesc& key : table.desc.keys) {
    const bool number = !key.by_ref && key.size < 8;
    width += 1 + (!number ? 16 : key.size == 4 ? 8 : key.size == 2 ? 5 : 3);
  }
  const auto print_keys = [&](const AggRow& row) {
    for (const KeyPart& part : row.parts) print_key(out, part, symbols, true);
  };
  if (histogram) {
    append(out, "\n%*s %41s %-9s\n", width != 0 ? width : 16, width != 0 ? "key" : "value",
           "------------- Distribution -------------", "count");
    BarScale scale(display.aggzoom);
    for (const AggRow& row : rows) scale.add((*row.data[0])[0]);
    for (const AggRow& row : rows) {
      print_keys(row);
      out += ' ';
      print_bar(out, (*row.data[0])[0], scale, table.normal, display.encoding);
    }
    return true;
  }
  const bool powers = function == AggFunction::quantize;
  const Buckets shown = common_buckets(table, rows);
  const BucketValues values(table.spec);
  const std::int64_t least = values.value(shown.first);
  const std::int64_t most = values.value(shown.last);
  append(out, "\n%*s %*s .", width, width > 0 ? "key" : "", powers ? digits(least) : 7, "min");
  out.append(shown.last - shown.first + 1, '-');
  append(out, ". %*s | count\n", powers ? -digits(most) : -8, "max");
  for (const AggRow& row : rows) {
    const std::vector<std::int64_t>& data = *row.data[0];
    print_keys(row);
    if (powers) {
      append(out, " %*lld :", digits(least), static_cast<long long>(least));
    } else {
      std::string label;
      append(label, "< %lld", static_cast<long long>(least));
      append(out, "%8s :", label.c_str());
    }
    BarScale scale(display.aggzoom);
    std::uint64_t count = 0;
    for (std::size_t i = shown.first; i <= shown.last; ++i) {
      scale.add(data[i]);
      count += static_cast<std::uint64_t>(data[i]);
    }
    for (std::size_t i = shown.first; i <= shown.last; ++i) {
      print_bucket(out, data[i], scale, display.encoding);
    }
    std::string label;
    append(label, powers ? "%lld" : ">= %lld", static_cast<long long>(most));
    append(out, ": %*s | %lld\n", powers ? -digits(most) : -8, label.c_str(),
           static_cast<long long>(count));
  }
  return true;
}

}  // namespace dtmalloc::dtrace
