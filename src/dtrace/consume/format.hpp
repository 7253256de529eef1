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
void print_key(std::string& out, const KeyPart& part, const SymbolText& symbols = {});

// --- aggregations
// One value in the default layout, a distribution with its lines.
void print_aggregation_value(std::string& out, const AggTable& table,
                             const std::vector<std::int64_t>& data);
void print_distribution(std::string& out, const AggTable& table,
                        const std::vector<std::int64_t>& data);
bool is_distribution(AggFunction function);
// The default layout of one or several aggregations, in order; no newline first.
void print_rows(std::string& out, const std::vector<const AggTable*>& tables,
                const std::vector<AggRow>& rows, const SymbolText& symbols = {});

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
                      const TimeFormat& time);

}  // namespace dtmalloc::dtrace
