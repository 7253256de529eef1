// SPDX-License-Identifier: BSD-2-Clause
// Words of a trace to small numbers, and blocks' names to theirs.
//
// A name such as b345 or x[3] is a stem and a number: the stem is looked up as a word, the number
// is an index. So the names of a trace of any length cost a few bytes each.
//
// Locking:      none
// Invariants:   numbers are given in the order in which words and names are met, from 0
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <dtmalloc/workload/workload.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace dtmalloc::workload {

// Bytes that may be read behind the end of a word.
inline constexpr std::size_t kWordSlack = 16;

// The first 16 bytes of a word, zeros behind its end.
struct WordKey {
  std::uint64_t low = 0, high = 0;
  bool operator==(const WordKey&) const = default;

  static std::uint64_t load(const char* at) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return word;
  }
  static std::uint64_t mask(std::size_t bytes) {
    return bytes >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * bytes)) - 1;
  }
  // Requires: kWordSlack bytes behind the word are readable.
  static WordKey of(const char* at, std::size_t length) {
    if (length <= 8) return {load(at) & mask(length), 0};
    return {load(at), load(at + 8) & mask(length - 8)};
  }
};

class Words {
 public:
  Words();
  // kNone: not met yet. Requires: see WordKey::of().
  Index find(const char* at, std::size_t length) const {
    const WordKey key = WordKey::of(at, length);
    for (std::size_t i = hash(key, length) & mask_;; i = (i + 1) & mask_) {
      const Entry& entry = entries_[i];
      if (entry.index == kNone) return kNone;
      if (entry.key == key && entry.length == length &&
          (length <= 16 || words_[entry.number] == std::string_view(at, length)))
        return entry.index;
    }
  }
  Index find(std::string_view word) const;  // any view
  // Requires: the word is new. `index` is what find() says then.
  void add(std::string_view word, Index index);
  std::size_t size() const { return words_.size(); }

 private:
  struct Entry {
    WordKey key;
    std::uint32_t length = 0;
    Index index = kNone;
    Index number = 0;  // into words_
  };
  static std::size_t hash(const WordKey& key, std::size_t length) {
    // Words often differ in their last bytes alone: the top of a product depends on all of them.
    const std::uint64_t low = key.low * 0x9e3779b97f4a7c15ull;
    const std::uint64_t both = ((low ^ low >> 32) + key.high + length) * 0xff51afd7ed558ccdull;
    return static_cast<std::size_t>(both >> 40);
  }
  void grow();
  std::vector<Entry> entries_;
  std::size_t mask_ = 0;
  std::deque<std::string> words_;
};

class TraceNames {
 public:
  // a, b345, x[3], y[3,4]; `word` of b345 is its stem "b".
  enum Form : std::uint8_t { plain, numbered, indexed, paired };

  // What all names of one stem and form share.
  struct Stem {
    std::string text;
    Form form = plain;
    std::vector<Index> dense;  // by number
    std::unordered_map<std::int64_t, Index> sparse;
    std::size_t used = 0;  // names
  };

  Index size() const { return static_cast<Index>(names_.size()); }
  // The stem of a form, kNone: new. Requires: see WordKey::of().
  Index find_stem(Form form, const char* at, std::size_t length) const {
    return words_[form].find(at, length);
  }
  Index stem(Form form, std::string_view text);
  // The number of a name; a new name gets the next one.
  Index number(Index stem, std::int64_t index) {
    const Stem& s = stems_[stem];
    if (static_cast<std::uint64_t>(index) < s.dense.size()) {
      const Index found = s.dense[static_cast<std::size_t>(index)];
      if (found != kNone) return found;
    }
    return add(stem, index);
  }
  // Of a name of the language: its text without indexes, their count and values.
  Index number(std::string_view text, int arity, std::int64_t first, std::int64_t second);
  // Of a whole name, as text; nothing: it is none.
  std::optional<Index> number(std::string_view name);
  // The same for a name that was met; looks only.
  std::optional<Index> find(std::string_view name) const;
  std::string text(Index number) const;

 private:
  struct Name {
    Index stem;
    std::int64_t index;  // of a pair: into pairs_
  };
  struct Pair {
    std::int64_t first, second;
    bool operator==(const Pair&) const = default;
  };
  struct PairHash {
    std::size_t operator()(const Pair& p) const {
      return static_cast<std::size_t>(
          (static_cast<std::uint64_t>(p.first) * 0x9e3779b97f4a7c15ull) ^
          static_cast<std::uint64_t>(p.second));
    }
  };
  struct Parts {
    std::string_view text;
    int arity = 0;
    std::int64_t first = 0, second = 0;
  };
  static std::optional<Parts> parts(std::string_view name);
  // The stem's part of a name without indexes, and the number behind it; nothing: it has none.
  static std::optional<std::pair<std::string_view, std::int64_t>> split(std::string_view text);
  Index add(Index stem, std::int64_t index);
  Index find_in(const Stem& stem, std::int64_t index) const;

  std::array<Words, 4> words_;
  std::deque<Stem> stems_;
  std::vector<Name> names_;
  std::unordered_map<Pair, std::int64_t, PairHash> pairs_;
  std::vector<Pair> pair_values_;
};

}  // namespace dtmalloc::workload
