// SPDX-License-Identifier: BSD-2-Clause
// How values print: trace(), printf() conversions, keys, aggregation values and distributions.
// Counterpart:  dt_consume.c, dt_printf.c, dt_print.c
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dtrace/consume/aggregation.hpp"
#include "dtrace/consume/symbol_text.hpp"
#include "dtrace/dif/program.hpp"

namespace dtmalloc::dtrace {

// A recorded value.
struct Datum {
  ValueDesc desc;
  std::span<const std::byte> bytes;
};

// Integer of 1, 2, 4 or 8 bytes, zero-extended; signed_value() sign-extends.
std::uint64_t unsigned_value(std::span<const std::byte> bytes);
std::int64_t signed_value(std::span<const std::byte> bytes);

// C printf into a string; the result may hold NULs.
[[gnu::format(printf, 2, 3)]] void append(std::string& out, const char* format, ...);

// --- trace() and keys
void print_traced(std::string& out, std::span<const std::byte> bytes, bool quiet, bool rawbytes);
void print_dump(std::string& out, std::span<const std::byte> bytes);
// print(): the value with its type.
void print_typed(std::string& out, const TypeTable& types, const Datum& datum);

// --- aggregations
// How they are shown: the options of the same names, and `encoding`.
enum class Encoding : std::uint8_t { unset, ascii, utf8 };
struct AggDisplay {
  bool aggzoom = false, aggpack = false, agghist = false;
  Encoding encoding = Encoding::unset;
};
// An element of a key; `packed`: beside a bar.
void print_key(std::string& out, const KeyPart& part, const SymbolText& symbols = {},
               bool packed = false);
// What bars are measured by, and which signs there are.
class BarScale {
 public:
  explicit BarScale(bool zoom) : zoom_(zoom) {}
  void add(std::int64_t value);
  long double total() const { return total_; }
  bool positive() const { return positive_; }
  bool negative() const { return negative_; }

 private:
  bool zoom_;
  long double total_ = 0;
  bool positive_ = false, negative_ = false;
};
// A bar of 40 columns and the value, with their newline.
void print_bar(std::string& out, std::int64_t value, const BarScale& scale, std::uint64_t normal,
               Encoding encoding);
// One value in the default layout, a distribution with its lines.
void print_aggregation_value(std::string& out, const AggTable& table,
                             const std::vector<std::int64_t>& data, const AggDisplay& display = {});
void print_distribution(std::string& out, const AggTable& table,
                        const std::vector<std::int64_t>& data, const AggDisplay& display = {});
bool is_distribution(AggFunction function);
// The buckets of a distribution that print.
struct Buckets {
  std::size_t first = 0, last = 0;
};
Buckets shown_buckets(const AggSpec& spec, const std::vector<std::int64_t>& data);
// What stands beside each: its lower bound, of the first its upper.
class BucketValues {
 public:
  explicit BucketValues(const AggSpec& spec);
  std::int64_t value(std::size_t bucket) const;
  std::string label(std::size_t bucket) const;

 private:
  AggSpec spec_;
  std::vector<std::int64_t> bounds_;  // llquantize
};
// The default layout of one or several aggregations, in order; no newline first.
void print_rows(std::string& out, const std::vector<const AggTable*>& tables,
                const std::vector<AggRow>& rows, const SymbolText& symbols = {},
                const AggDisplay& display = {});
// The layout of aggpack and agghist for a single aggregation. False: it has none.
bool print_rows_packed(std::string& out, const AggTable& table, const std::vector<AggRow>& rows,
                       const SymbolText& symbols, const AggDisplay& display);

// --- printf
struct TimeFormat {
  bool local = false;    // %Y and %T in the host's time zone; otherwise UTC
  SymbolText symbols{};  // %a, %A and %k
};
void print_format(std::string& out, const Format& format, const std::vector<Datum>& values,
                  const TimeFormat& time);
// printa() with a format, for one element.
void print_format_row(std::string& out, const Format& format,
                      const std::vector<const AggTable*>& tables, const AggRow& row,
                      const TimeFormat& time, const AggDisplay& display = {});

}  // namespace dtmalloc::dtrace
