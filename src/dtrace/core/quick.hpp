// SPDX-License-Identifier: BSD-2-Clause
// What a clause computes, taken apart when its ECB is made so that a firing need not interpret it:
// expressions over probe arguments, cheap built-in variables and global scalars become decision
// lists, values that are recorded are stored where they belong, and the keys of aggregations that
// depend on nothing else are remembered by them.
// Counterpart:  none in a kernel
// Invariants:   a decision list gives what run() gives, for every value of its words; what could
//               fault or store has none. A remembered key is what run() made of the same words
//               with the same memory (AddressMap::generation(), Provider::constant_memory()).
#pragma once

#include <cstdint>
#include <dtmalloc/sys/address_map.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "dtrace/core/aggregate.hpp"
#include "dtrace/core/framework.hpp"
#include "dtrace/dif/dif.hpp"

namespace dtmalloc::dtrace {

struct ConsumerCpu;
struct Ecb;
struct Probe;

// What an expression may begin with: the words of a firing.
enum QuickWord : std::uint8_t {
  kWordArgument = 0,  // and the next four: as the probe fires them
  kWordPointer = 5,   // and the next four: the same, as D sees kernel pointers
  kWordTid = 10,
  kWordPid,
  kWordPpid,
  kWordUid,
  kWordGid,
  kWordCpu,
  kWordTimestamp,
  kWordWalltimestamp,
  kWordVtimestamp,
  kWordGlobal,  // and the next: scalars, by QuickScope::globals
};
inline constexpr unsigned kQuickArguments = 5;
inline constexpr unsigned kQuickGlobals = 4;
inline constexpr unsigned kQuickWords = kWordGlobal + kQuickGlobals;

// Where expressions are taken apart, and what words they turn out to need.
struct QuickScope {
  std::uint32_t pointer_arguments = 0;  // bit i: argument i is a kernel pointer
  std::uint32_t probe = 0, epid = 0;    // constants here
  std::uint32_t words = 0;              // bit i: word i is needed
  std::vector<std::uint32_t> globals;   // their ids less kVarUser

  // The word of a built-in variable or of an argument; none: not a word.
  std::optional<std::uint8_t> builtin(std::uint32_t id);
  std::optional<std::uint8_t> argument(std::uint64_t index);
  std::optional<std::uint8_t> global(std::uint32_t id);
};

// A constant, or a word shifted left and then right.
struct QuickOperand {
  std::uint64_t constant = 0;
  std::uint8_t word = kNone;
  std::uint8_t left = 0, right = 0;
  bool is_signed = false;  // the shift to the right is arithmetic
  static constexpr std::uint8_t kNone = 0xff;

  bool operator==(const QuickOperand&) const = default;
  bool is_constant() const { return word == kNone; }
  bool is_plain() const { return word != kNone && left == 0 && right == 0; }
  std::uint64_t value(const std::uint64_t* words) const {
    if (word == kNone) return constant;
    if ((left | right) == 0) return words[word];
    const std::uint64_t shifted = words[word] << left;
    return is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(shifted) >> right)
                     : shifted >> right;
  }
};

// A step of a decision list: a comparison that goes on elsewhere, or a result.
struct QuickNode {
  enum Kind : std::uint8_t {
    range,     // of a plain word: word - low <= span, in numbers without a sign
    computed,  // the same of `first`
    compare,   // `branch` of `first` and `second`
    constant,  // the result `low`
    result,    // the result `first`
  };
  Kind kind = constant;
  std::uint8_t word = 0;
  DifOp branch = DifOp::be;
  std::uint64_t low = 0, span = 0;
  const QuickNode* yes = nullptr;
  const QuickNode* no = nullptr;
  QuickOperand first, second;
};

class QuickDif {
 public:
  QuickDif(QuickDif&&) = default;
  QuickDif& operator=(QuickDif&&) = default;
  // Of an object; none: it has to be interpreted.
  static std::optional<QuickDif> of(const VerifiedDif& dif, QuickScope& scope);

  [[gnu::always_inline]] std::uint64_t value(const std::uint64_t* words) const {
    const QuickNode* node = walk(words);
    return __builtin_expect(node->kind == QuickNode::constant, 1) ? node->low : rest(node, words);
  }
  // Whether every value is a constant, and every test is of an argument; then which one.
  bool tests_arguments() const;
  [[gnu::always_inline]] std::uint64_t simple_value(const std::uint64_t* words) const {
    return walk(words)->low;
  }
  // What the value always is; none: it is computed.
  const QuickOperand* operand() const {
    return start_->kind == QuickNode::result ? &start_->first : nullptr;
  }
  bool is_constant() const { return start_->kind == QuickNode::constant; }

 private:
  friend class QuickBuilder;
  QuickDif() = default;
  static bool holds(DifOp branch, std::uint64_t a, std::uint64_t b);
  // To the first node that is no test of a plain word. A branch, not a choice of addresses: what
  // is predicted waits for nothing.
  [[gnu::always_inline]] const QuickNode* walk(const std::uint64_t* words) const {
    const QuickNode* node = start_;
    while (node->kind == QuickNode::range) {
      if (words[node->word] - node->low <= node->span) {
        node = node->yes;
      } else {
        node = node->no;
        __asm__ volatile("");
      }
    }
    return node;
  }
  static std::uint64_t rest(const QuickNode* node, const std::uint64_t* words);
  std::vector<QuickNode> nodes_;
  const QuickNode* start_ = nullptr;  // of nodes_
};

// Where one aggregation of a clause found its element, by the words that make up its key.
struct QuickMemo {
  AggBuffer::Hint hint;
  std::uint64_t memory = 0;  // AddressMap::generation() of that time; 0: none
  std::uint64_t key[2] = {};
};

// A step of an ECB that needs no interpreter.
struct QuickStep {
  enum Kind : std::uint8_t {
    count,
    quantize_word,   // of a plain word
    aggregate,       // any
    store_word,      // `size` low bytes of a plain word into the record
    store_constant,  // ... of a constant
    store,           // ... of the argument
  };
  Kind kind = count;
  std::uint8_t key_count = 0;  // words that the key depends on
  std::uint8_t key_words[2] = {};
  std::uint8_t word = 0;
  std::uint8_t size = 0;
  std::uint32_t offset = 0;  // in the record
  std::uint32_t memo = 0;    // offset of its first QuickMemo in a CPU's
  std::uint32_t at = 0;      // of the ECB's steps
  std::uint64_t constant = 0;
  const AggSpec* aggregation = nullptr;
  std::optional<QuickDif> argument;   // none: count()
  std::optional<QuickDif> increment;  // none: 1

  static constexpr std::uint32_t kMemos = 8;  // a power of two
  std::uint32_t memos() const { return kind >= store_word ? 0 : key_count == 0 ? 1 : kMemos; }
  // Which memo a key may be in.
  std::uint32_t slot(const std::uint64_t* words) const {
    if (key_count == 0) return 0;
    std::uint64_t mixed = words[key_words[0]];
    if (key_count == 2) mixed += words[key_words[1]] * 0x9e3779b97f4a7c15;
    return static_cast<std::uint32_t>(mixed * 0x9e3779b97f4a7c15 >> 61);
  }
  bool remembers(const QuickMemo& memo, const std::uint64_t* words, std::uint64_t memory) const {
    if (key_count == 0) return true;
    return memo.memory == memory && memo.key[0] == words[key_words[0]] &&
           (key_count == 1 || memo.key[1] == words[key_words[1]]);
  }
  void remember(QuickMemo& memo, const std::uint64_t* words, std::uint64_t memory) const {
    memo.memory = memory;
    for (unsigned i = 0; i < key_count; ++i) memo.key[i] = words[key_words[i]];
  }
};
static_assert(QuickStep::kMemos == 1U << (64 - 61));

// Most memos that one consumer's clauses may have on a CPU besides those they begin with: for
// probes that come later.
inline constexpr std::uint32_t kSpareMemos = 1U << 16;

// Where a word besides the arguments comes from.
struct QuickSource {
  enum Kind : std::uint8_t { thread_number, pointer, global, other };
  Kind kind = other;
  std::uint8_t word = 0;
  std::uint32_t at = 0;  // thread_number: offset in SimThread; global: its id less kVarUser
};

// A datum of a record that is all of what a clause records: a word at hand.
struct QuickStore {
  enum From : std::uint8_t { argument, thread_number, number, global, cpu, time };
  From from = argument;
  std::uint8_t size = 0;     // low bytes of it
  std::uint32_t offset = 0;  // in the record
  std::uint32_t at = 0;      // number of the argument; as QuickSource::at
  std::uint64_t constant = 0;
  bool is_argument() const { return from == argument && size == 8; }
  bool is_thread_number() const { return from == thread_number && size == 4; }
  bool is_number() const { return from == number && size == 4; }
  bool is_common() const { return is_argument() || is_thread_number() || is_number(); }
};
// Of the first datum of 8 bytes behind a record's header.
inline constexpr std::uint32_t kArgumentsOffset = 16;

struct QuickClause {
  Consumer* consumer = nullptr;
  std::size_t room = 0;      // that is enough for the record wherever it may begin
  std::uint32_t memo = 0;    // of the first step
  std::uint32_t record = 0;  // its size; 0: nothing is recorded
  std::size_t slack = 3;     // its alignment less 1
  std::uint32_t epid = 0;
  const Ecb* ecb = nullptr;
  const AddressMap* addresses = nullptr;
  const Clock* clock = nullptr;
  bool needs_time = false;
  bool has_cell = false;      // `known` needs the element of the only step
  std::uint8_t key_word = 0;  // and that has this word as its key
  std::vector<QuickSource> sources;
  std::optional<QuickDif> predicate;
  std::vector<QuickStep> steps;  // those that do something
  std::vector<QuickStore> stores;
  ProbeCallback fire = nullptr;   // whatever the CPU knows
  ProbeCallback known = nullptr;  // once it has fired there; null: the same
  std::uint32_t memos() const {
    std::uint32_t count = 0;
    for (const QuickStep& step : steps) count += step.memos();
    return count;
  }
};

// --- quick_fire.cpp
void choose_fire(QuickClause& clause);

// Of an ECB that only aggregates and records, on its probe; null: fire() interprets it.
std::unique_ptr<QuickClause> quick_clause(const Ecb& ecb, const Probe& probe,
                                          const Framework::Impl& framework);

}  // namespace dtmalloc::dtrace
