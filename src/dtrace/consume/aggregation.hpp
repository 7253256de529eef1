// SPDX-License-Identifier: BSD-2-Clause
// The consumer's merged copy of the aggregations, and their order.
// Counterpart:  dt_aggregate.c
// Invariants:   merging is order independent; elements lie in key order, so nothing depends on
//               hashes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dtrace/consume/options.hpp"
#include "dtrace/consume/symbol_text.hpp"
#include "dtrace/core/aggregate.hpp"

namespace dtmalloc::dtrace {

struct AggElement {
  std::vector<std::int64_t> data;
  bool cleared = false;  // by clear(): the next value of min() or max() replaces the 0
};

// One aggregation.
struct AggTable {
  AggregationDesc desc;
  AggSpec spec;
  std::map<std::string, AggElement> elements;  // by key bytes
  std::vector<std::int64_t> zero;              // what a missing element counts as
  std::uint64_t normal = 1;
  bool printed = false;  // by printa(): not again at the end
};

// A key taken apart.
struct KeyPart {
  ValueDesc desc;
  std::string bytes;
  std::uint64_t number = 0;  // integers
};
std::vector<KeyPart> split_key(const AggregationDesc& desc, const std::string& key,
                               std::uint32_t strsize);

class AggStore {
 public:
  // `strsize`: how long a string in a key may be.
  // `symbols`: whose addresses in a key are one symbol's or module's are one element.
  void define(const std::vector<AggregationDesc>& descs, std::uint32_t strsize = 256,
              const SymbolText& symbols = {});
  void merge(const AggBuffer::Element& element);
  AggTable* table(std::uint32_t id);
  std::map<std::uint32_t, AggTable>& tables() { return tables_; }

  void clear(std::uint32_t id);
  void trunc(std::uint32_t id, std::int64_t keep);

 private:
  std::map<std::uint32_t, AggTable> tables_;
  void unify(const AggregationDesc& desc, std::string& key) const;
  std::uint32_t strsize_ = 256;
  SymbolText symbols_;
};

// a / b, b not 0, wrapping like the other operations on 64 bits: INT64_MIN / -1 is INT64_MIN.
constexpr std::int64_t divide_wrapping(std::int64_t a, std::int64_t b) {
  return b == -1 ? static_cast<std::int64_t>(-static_cast<std::uint64_t>(a)) : a / b;
}

// The number that count() ... max(), avg() and stddev() stand for, not normalised.
std::int64_t element_value(const AggSpec& spec, const std::vector<std::int64_t>& data,
                           std::uint64_t normal = 1);
std::uint64_t stddev_value(const std::vector<std::int64_t>& data, std::uint64_t normal);

// What elements of an aggregation are ordered by. (64 bits fit in the mantissa.)
struct SortValue {
  long double value = 0;
  std::int64_t zero = 0;  // a distribution's bucket of zero
};

// An element of one or several aggregations of the same keys: data[i] belongs to tables[i].
struct AggRow {
  const std::string* key = nullptr;
  std::vector<KeyPart> parts;
  std::vector<const std::vector<std::int64_t>*> data;
  std::vector<SortValue> order;  // of data[i]
};
// The elements in the order in which they print (spec/dtrace.md 15.3 and 15.5); what an aggregation
// lacks is zero.
std::vector<AggRow> sorted_rows(const std::vector<const AggTable*>& tables, const Options& options,
                                std::uint32_t strsize);

}  // namespace dtmalloc::dtrace
