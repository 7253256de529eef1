// SPDX-License-Identifier: BSD-2-Clause
// Merged aggregations: adding snapshots, clear and trunc, sorting.
// Counterpart:  dt_aggregate.c (dt_aggregate_*cmp, dtrace_aggregate_walk_*)
#include "dtrace/consume/aggregation.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

namespace dtmalloc::dtrace {
namespace {

using uint128 = unsigned __int128;

int compare(std::uint64_t a, std::uint64_t b) { return a < b ? -1 : a > b ? 1 : 0; }

std::uint64_t square_root(uint128 value) {
  uint128 low = 0;
  uint128 high = (uint128{1} << 64) - 1;
  while (low < high) {
    const uint128 middle = low + (high - low + 1) / 2;
    if (middle * middle <= value) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return static_cast<std::uint64_t>(low);
}

// The value that each bucket of a distribution stands for when sorting.
long double bucket_weight(const AggSpec& spec, const std::vector<std::int64_t>& bounds,
                          std::size_t bucket) {
  switch (spec.function) {
    case AggFunction::quantize:
      return static_cast<long double>(quantize_bucket_value(static_cast<int>(bucket)));
    case AggFunction::lquantize: {
      const auto index = static_cast<std::int64_t>(bucket);
      if (index == 0) return static_cast<long double>(spec.base) - 1;
      return static_cast<long double>(spec.base + (index - 1) * std::int64_t{spec.step});
    }
    default:
      return bucket == 0 ? static_cast<long double>(bounds.front()) - 1
                         : static_cast<long double>(bounds[bucket - 1]);
  }
}

SortValue sort_value(const AggSpec& spec, const std::vector<std::int64_t>& bounds,
                     const std::vector<std::int64_t>& data) {
  switch (spec.function) {
    case AggFunction::quantize:
    case AggFunction::lquantize:
    case AggFunction::llquantize: {
      SortValue result;
      for (std::size_t i = 0; i < data.size(); ++i) {
        if (data[i] == 0) continue;
        const long double weight = bucket_weight(spec, bounds, i);
        result.value += weight * static_cast<long double>(data[i]);
        if (weight == 0) result.zero = data[i];
      }
      return result;
    }
    case AggFunction::stddev:
      return {static_cast<long double>(stddev_value(data, 1)), 0};
    default:
      return {static_cast<long double>(element_value(spec, data)), 0};
  }
}

int compare(const SortValue& a, const SortValue& b) {
  if (a.value != b.value) return a.value < b.value ? -1 : 1;
  return a.zero < b.zero ? -1 : a.zero > b.zero ? 1 : 0;
}

// Frame by frame.
int compare_stacks(const std::string& a, const std::string& b) {
  for (std::size_t at = 0; at + 8 <= std::min(a.size(), b.size()); at += 8) {
    std::uint64_t left = 0;
    std::uint64_t right = 0;
    std::memcpy(&left, a.data() + at, 8);
    std::memcpy(&right, b.data() + at, 8);
    if (const int order = compare(left, right); order != 0) return order;
  }
  return 0;
}

// Key elements from `first` on, the ones before it last.
int compare_keys(const std::vector<KeyPart>& a, const std::vector<KeyPart>& b, std::size_t first) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::size_t at = (first + i) % a.size();
    const int order = !a[at].desc.by_ref ? compare(a[at].number, b[at].number)
                      : a[at].desc.form != ValueForm::plain
                          ? compare_stacks(a[at].bytes, b[at].bytes)
                          : a[at].bytes.compare(b[at].bytes);
    if (order != 0) return order;
  }
  return 0;
}

}  // namespace

std::vector<KeyPart> split_key(const AggregationDesc& desc, const std::string& key,
                               std::uint32_t strsize) {
  std::vector<KeyPart> parts;
  std::size_t at = 0;
  for (const ValueDesc& value : desc.keys) {
    KeyPart part;
    part.desc = value;
    if (value.by_ref && value.is_string) {
      const std::size_t most = std::min<std::size_t>(strsize, key.size() - at);
      const std::size_t length = strnlen(key.data() + at, most);
      part.bytes = key.substr(at, length);
      at += length < most ? length + 1 : length;
    } else {
      part.bytes = key.substr(at, value.size);
      at += value.size;
      if (!value.by_ref) {
        std::memcpy(&part.number, part.bytes.data(), std::min<std::size_t>(part.bytes.size(), 8));
      }
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

void AggStore::define(const std::vector<AggregationDesc>& descs, std::uint32_t strsize,
                      const SymbolText& symbols) {
  strsize_ = strsize;
  symbols_ = symbols;
  for (const AggregationDesc& desc : descs) {
    AggTable& table = tables_[desc.id];
    table.desc = desc;
    table.spec = AggSpec::of(desc);
    table.zero.assign(table.spec.words, 0);
  }
}

AggTable* AggStore::table(std::uint32_t id) {
  const auto found = tables_.find(id);
  return found == tables_.end() ? nullptr : &found->second;
}

// sym() and mod() in a key: all addresses of a symbol, or of a module, are one.
void AggStore::unify(const AggregationDesc& desc, std::string& key) const {
  const auto named = [](const ValueDesc& value) {
    return value.form == ValueForm::sym || value.form == ValueForm::mod;
  };
  if (std::none_of(desc.keys.begin(), desc.keys.end(), named)) return;
  std::size_t at = 0;
  for (const KeyPart& part : split_key(desc, key, strsize_)) {
    if (named(part.desc)) {
      const std::uint64_t address = symbols_.canonical(part.desc.form, part.number);
      std::memcpy(key.data() + at, &address, sizeof address);
    }
    const bool ends = part.desc.is_string && at + part.bytes.size() < key.size();
    at += part.bytes.size() + (ends ? 1 : 0);
  }
}

void AggStore::merge(const AggBuffer::Element& element) {
  AggTable* into = table(element.aggregation);
  if (into == nullptr) return;
  std::string key(reinterpret_cast<const char*>(element.key.data()), element.key.size());
  unify(into->desc, key);
  const auto [at, added] = into->elements.try_emplace(std::move(key));
  AggElement& merged = at->second;
  const bool replaces = merged.cleared && (into->spec.function == AggFunction::min ||
                                           into->spec.function == AggFunction::max);
  if (added || replaces) {
    merged.data.assign(element.data, element.data + into->spec.words);
  } else {
    aggregate_combine(into->spec, merged.data.data(), element.data);
  }
  merged.cleared = false;
}

void AggStore::clear(std::uint32_t id) {
  AggTable* into = table(id);
  if (into == nullptr) return;
  for (auto& [key, element] : into->elements) {
    std::fill(element.data.begin(), element.data.end(), 0);
    element.cleared = true;
  }
}

void AggStore::trunc(std::uint32_t id, std::int64_t keep) {
  AggTable* into = table(id);
  if (into == nullptr) return;
  const std::uint64_t count =
      keep < 0 ? -static_cast<std::uint64_t>(keep) : static_cast<std::uint64_t>(keep);
  if (count >= into->elements.size()) return;
  if (count == 0) {
    into->elements.clear();
    return;
  }
  const std::vector<AggRow> rows = sorted_rows({into}, Options(), strsize_);
  std::vector<std::string> gone;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool kept = keep < 0 ? i < count : i >= rows.size() - count;
    if (!kept) gone.push_back(*rows[i].key);
  }
  for (const std::string& key : gone) into->elements.erase(key);
}

std::int64_t element_value(const AggSpec& spec, const std::vector<std::int64_t>& data,
                           std::uint64_t normal) {
  switch (spec.function) {
    case AggFunction::avg: {
      if (data[0] == 0) return 0;
      return divide_wrapping(divide_wrapping(data[1], static_cast<std::int64_t>(normal)), data[0]);
    }
    case AggFunction::stddev:
      return static_cast<std::int64_t>(stddev_value(data, normal));
    default:
      return data[0];
  }
}

std::uint64_t stddev_value(const std::vector<std::int64_t>& data, std::uint64_t normal) {
  if (data[0] == 0) return 0;
  const uint128 squares = static_cast<uint128>(static_cast<std::uint64_t>(data[3])) << 64 |
                          static_cast<std::uint64_t>(data[2]);
  const auto count = static_cast<std::uint64_t>(data[0]);
  const uint128 mean_of_squares = squares / normal / normal / count;
  const std::int64_t mean =
      divide_wrapping(divide_wrapping(data[1], static_cast<std::int64_t>(normal)), data[0]);
  const std::uint64_t magnitude =
      mean < 0 ? -static_cast<std::uint64_t>(mean) : static_cast<std::uint64_t>(mean);
  const uint128 square_of_mean = static_cast<uint128>(magnitude) * magnitude;
  // Each division cuts, so the difference may fall below zero.
  return square_of_mean > mean_of_squares ? 0 : square_root(mean_of_squares - square_of_mean);
}

std::vector<AggRow> sorted_rows(const std::vector<const AggTable*>& tables, const Options& options,
                                std::uint32_t strsize) {
  static_assert(std::numeric_limits<long double>::digits >= 64);
  std::set<std::string_view> seen;
  std::vector<std::vector<std::int64_t>> bounds(tables.size());
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if (tables[i]->spec.function == AggFunction::llquantize) {
      bounds[i] = llquantize_bounds(tables[i]->spec);
    }
  }
  std::vector<AggRow> rows;
  for (const AggTable* table : tables) {
    for (const auto& [key, element] : table->elements) {
      if (tables.size() > 1 && !seen.insert(key).second) continue;
      AggRow row;
      row.key = &key;
      row.parts = split_key(table->desc, key, strsize);
      for (std::size_t i = 0; i < tables.size(); ++i) {
        const auto found = tables[i]->elements.find(key);
        row.data.push_back(found != tables[i]->elements.end() ? &found->second.data
                                                              : &tables[i]->zero);
        row.order.push_back(sort_value(tables[i]->spec, bounds[i], *row.data.back()));
      }
      rows.push_back(std::move(row));
    }
  }
  // A position that does not exist is the default, the first.
  const auto position = [&](const char* option, std::size_t count) {
    const std::uint64_t at = options.get(option);
    return at < count ? static_cast<std::size_t>(at) : std::size_t{0};
  };
  const std::size_t first_value = position("aggsortpos", tables.size());
  const bool by_key = options.is_set("aggsortkey");
  const bool reversed = options.is_set("aggsortrev");
  const std::size_t keys = tables.front()->desc.keys.size();
  const std::size_t first_key = position("aggsortkeypos", keys);
  const auto by_values = [&](const AggRow& a, const AggRow& b) {
    for (std::size_t i = 0; i < tables.size(); ++i) {
      const std::size_t at = (first_value + i) % tables.size();
      if (const int order = compare(a.order[at], b.order[at]); order != 0) return order;
    }
    return 0;
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const AggRow& a, const AggRow& b) {
    int order = by_key ? compare_keys(a.parts, b.parts, first_key) : by_values(a, b);
    if (order == 0) order = by_key ? by_values(a, b) : compare_keys(a.parts, b.parts, first_key);
    return reversed ? order > 0 : order < 0;
  });
  return rows;
}

}  // namespace dtmalloc::dtrace
