// SPDX-License-Identifier: BSD-2-Clause
// Words and blocks' names of traces.

#include "workload/trace_names.hpp"

#include <algorithm>
#include <charconv>

namespace dtmalloc::workload {
namespace {

constexpr std::size_t kFirstWords = 64;
constexpr std::size_t kFirstNumbers = 1024;  // of a stem, kept by number though few are names
constexpr std::size_t kMostDigits = 18;      // of the number behind a stem

bool digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

// --- Words

Words::Words() : entries_(kFirstWords), mask_(kFirstWords - 1) {}

Index Words::find(std::string_view word) const {
  if (word.size() > 16) {
    std::string padded(word);
    padded.resize(word.size() + kWordSlack);
    return find(padded.data(), word.size());
  }
  char padded[2 * kWordSlack] = {};
  std::copy(word.begin(), word.end(), padded);
  return find(padded, word.size());
}

void Words::add(std::string_view word, Index index) {
  if (2 * words_.size() >= entries_.size()) grow();
  std::string padded(word);
  padded.resize(word.size() + kWordSlack);
  const WordKey key = WordKey::of(padded.data(), word.size());
  std::size_t i = hash(key, word.size()) & mask_;
  while (entries_[i].index != kNone) i = (i + 1) & mask_;
  entries_[i] = {key, static_cast<std::uint32_t>(word.size()), index,
                 static_cast<Index>(words_.size())};
  words_.emplace_back(word);
}

void Words::grow() {
  const std::vector<Entry> old = std::move(entries_);
  entries_.assign(2 * old.size(), Entry{});
  mask_ = entries_.size() - 1;
  for (const Entry& entry : old) {
    if (entry.index == kNone) continue;
    std::size_t i = hash(entry.key, entry.length) & mask_;
    while (entries_[i].index != kNone) i = (i + 1) & mask_;
    entries_[i] = entry;
  }
}

// --- TraceNames

Index TraceNames::stem(Form form, std::string_view text) {
  const Index known = words_[form].find(text);
  if (known != kNone) return known;
  const auto index = static_cast<Index>(stems_.size());
  words_[form].add(text, index);
  stems_.push_back({std::string(text), form, {}, {}, 0});
  return index;
}

Index TraceNames::find_in(const Stem& stem, std::int64_t index) const {
  if (static_cast<std::uint64_t>(index) < stem.dense.size()) {
    const Index found = stem.dense[static_cast<std::size_t>(index)];
    if (found != kNone) return found;
  }
  const auto found = stem.sparse.find(index);
  return found == stem.sparse.end() ? kNone : found->second;
}

Index TraceNames::add(Index stem, std::int64_t index) {
  Stem& s = stems_[stem];
  if (!s.sparse.empty()) {
    const auto found = s.sparse.find(index);
    if (found != s.sparse.end()) return found->second;
  }
  const Index number = size();
  names_.push_back({stem, index});
  const auto at = static_cast<std::uint64_t>(index);
  if (at < 4 * s.used + kFirstNumbers) {
    if (at >= s.dense.size()) s.dense.resize(static_cast<std::size_t>(at) + 1, kNone);
    s.dense[static_cast<std::size_t>(at)] = number;
  } else {
    s.sparse.emplace(index, number);
  }
  ++s.used;
  return number;
}

std::optional<std::pair<std::string_view, std::int64_t>> TraceNames::split(std::string_view text) {
  std::size_t from = text.size();
  while (from > 0 && digit(text[from - 1])) --from;
  const std::size_t digits = text.size() - from;
  if (digits == 0 || digits > kMostDigits || from == 0) return std::nullopt;
  if (digits > 1 && text[from] == '0') return std::nullopt;  // b01 is not b1
  std::int64_t number = 0;
  std::from_chars(text.data() + from, text.data() + text.size(), number);
  return std::pair(text.substr(0, from), number);
}

Index TraceNames::number(std::string_view text, int arity, std::int64_t first,
                         std::int64_t second) {
  if (arity == 0) {
    if (const auto named = split(text)) return number(stem(numbered, named->first), named->second);
    return number(stem(plain, text), 0);
  }
  if (arity == 1) return number(stem(indexed, text), first);
  const auto [entry, added] =
      pairs_.try_emplace({first, second}, static_cast<std::int64_t>(pair_values_.size()));
  if (added) pair_values_.push_back({first, second});
  return number(stem(paired, text), entry->second);
}

std::optional<TraceNames::Parts> TraceNames::parts(std::string_view name) {
  const auto word_char = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || digit(c);
  };
  Parts out;
  std::size_t at = 0;
  while (at < name.size() && word_char(name[at])) ++at;
  if (at == 0 || digit(name[0]) || name[0] == '.') return std::nullopt;
  out.text = name.substr(0, at);
  if (at == name.size()) return out;
  if (name[at] != '[' || name.back() != ']') return std::nullopt;
  const char* place = name.data() + at + 1;
  const char* const end = name.data() + name.size() - 1;
  std::int64_t* const values[] = {&out.first, &out.second};
  while (out.arity < 2) {
    const auto [rest, error] = std::from_chars(place, end, *values[out.arity]);
    if (error != std::errc{}) return std::nullopt;
    ++out.arity;
    if (rest == end) return out;
    if (*rest != ',') return std::nullopt;
    place = rest + 1;
  }
  return std::nullopt;
}

std::optional<Index> TraceNames::number(std::string_view name) {
  const auto p = parts(name);
  if (!p) return std::nullopt;
  return number(p->text, p->arity, p->first, p->second);
}

std::optional<Index> TraceNames::find(std::string_view name) const {
  const auto p = parts(name);
  if (!p) return std::nullopt;
  Form form = p->arity == 0 ? plain : p->arity == 1 ? indexed : paired;
  std::string_view text = p->text;
  std::int64_t index = p->first;
  if (form == paired) {
    const auto known = pairs_.find({p->first, p->second});
    if (known == pairs_.end()) return std::nullopt;
    index = known->second;
  } else if (form == plain) {
    index = 0;
    if (const auto named = split(text)) {
      form = numbered;
      text = named->first;
      index = named->second;
    }
  }
  const Index stem = words_[form].find(text);
  if (stem == kNone) return std::nullopt;
  const Index found = find_in(stems_[stem], index);
  return found == kNone ? std::nullopt : std::optional(found);
}

std::string TraceNames::text(Index number) const {
  const Name& name = names_[number];
  const Stem& s = stems_[name.stem];
  switch (s.form) {
    case plain:
      return s.text;
    case numbered:
      return s.text + std::to_string(name.index);
    case indexed:
      return s.text + '[' + std::to_string(name.index) + ']';
    default: {
      const Pair& pair = pair_values_[static_cast<std::size_t>(name.index)];
      return s.text + '[' + std::to_string(pair.first) + ',' + std::to_string(pair.second) + ']';
    }
  }
}

}  // namespace dtmalloc::workload
