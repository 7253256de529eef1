// SPDX-License-Identifier: BSD-2-Clause
// What a clause computes, taken apart when its ECB is made so that a firing need not interpret it:
// expressions over probe arguments become decision lists, and the keys of aggregations that depend
// on probe arguments alone are remembered by them.
// Counterpart:  none in a kernel
// Invariants:   a decision list gives what run() gives, for every value of the arguments; what
// could
//               fault or store has none. A remembered key is what run() made of the same arguments
//               with the same memory (AddressMap::generation(), Provider::constant_memory()).
#pragma once

#include <cstdint>
#include <dtmalloc/sys/address_map.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "dtrace/core/aggregate.hpp"
#include "dtrace/dif/dif.hpp"

namespace dtmalloc::dtrace {

struct Ecb;
struct Probe;

// A constant, or an argument shifted left and then right.
struct QuickOperand {
  std::uint64_t constant = 0;
  std::uint8_t argument = kNone;
  std::uint8_t left = 0, right = 0;
  bool is_signed = false;  // the shift to the right is arithmetic
  static constexpr std::uint8_t kNone = 0xff;

  bool operator==(const QuickOperand&) const = default;
  bool is_constant() const { return argument == kNone; }
  std::uint64_t value(const std::uint64_t* arguments) const {
    if (argument == kNone) return constant;
    const std::uint64_t shifted = arguments[argument] << left;
    return is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(shifted) >> right)
                     : shifted >> right;
  }
};

// Compares and goes on: to the test of that number, or to the result ~number.
struct QuickTest {
  QuickOperand first, second;
  DifOp branch = DifOp::be;  // the conditional branch that is taken when it holds
  std::int16_t yes = -1, no = -1;
};

class QuickDif {
 public:
  // Of an object on a probe with these pointer arguments; none: it has to be interpreted.
  static std::optional<QuickDif> of(const VerifiedDif& dif, std::uint32_t pointer_arguments);

  std::uint64_t value(const std::uint64_t* arguments) const {
    std::int16_t next = start_;
    while (next >= 0) {
      const QuickTest& test = tests_[static_cast<std::size_t>(next)];
      next = holds(test.branch, test.first.value(arguments), test.second.value(arguments))
                 ? test.yes
                 : test.no;
    }
    return results_[static_cast<std::size_t>(~next)].value(arguments);
  }
  std::size_t tests() const { return tests_.size(); }

 private:
  friend class QuickBuilder;
  static bool holds(DifOp branch, std::uint64_t a, std::uint64_t b);
  std::vector<QuickTest> tests_;
  std::vector<QuickOperand> results_;
  std::int16_t start_ = -1;
};

inline bool QuickDif::holds(DifOp branch, std::uint64_t a, std::uint64_t b) {
  const auto signed_a = static_cast<std::int64_t>(a);
  const auto signed_b = static_cast<std::int64_t>(b);
  switch (branch) {
    case DifOp::be:
      return a == b;
    case DifOp::bne:
      return a != b;
    case DifOp::bg:
      return signed_a > signed_b;
    case DifOp::bgu:
      return a > b;
    case DifOp::bge:
      return signed_a >= signed_b;
    case DifOp::bgeu:
      return a >= b;
    case DifOp::bl:
      return signed_a < signed_b;
    case DifOp::blu:
      return a < b;
    case DifOp::ble:
      return signed_a <= signed_b;
    default:
      return a <= b;  // bleu
  }
}

// Where one aggregation of a clause found its element, by the arguments that make up its key.
struct QuickMemo {
  AggBuffer::Hint hint;
  std::uint64_t memory = 0;  // AddressMap::generation() of that time; 0: none
  std::uint64_t key[2] = {};
};

// An aggregation whose arguments need no interpreter.
struct QuickStep {
  const AggSpec* aggregation = nullptr;
  std::uint32_t memo = 0;  // first of its QuickMemos
  bool counts = false;
  std::uint8_t key_count = 0;  // arguments that the key depends on
  std::uint8_t key_arguments[2] = {};
  std::optional<QuickDif> argument;   // none: count()
  std::optional<QuickDif> increment;  // none: 1

  static constexpr std::uint32_t kMemos = 8;  // a power of two
  std::uint32_t memos() const { return key_count == 0 ? 1 : kMemos; }
  // Which memo a key may be in.
  std::uint32_t slot(const std::uint64_t* arguments) const {
    if (key_count == 0) return 0;
    std::uint64_t mixed = arguments[key_arguments[0]];
    if (key_count == 2) mixed += arguments[key_arguments[1]] * 0x9e3779b97f4a7c15;
    return static_cast<std::uint32_t>(mixed * 0x9e3779b97f4a7c15 >> 61);
  }
  bool remembers(const QuickMemo& memo, const std::uint64_t* arguments,
                 const AddressMap& addresses) const {
    if (key_count == 0) return true;
    return memo.memory == addresses.generation() && memo.key[0] == arguments[key_arguments[0]] &&
           (key_count == 1 || memo.key[1] == arguments[key_arguments[1]]);
  }
  void remember(QuickMemo& memo, const std::uint64_t* arguments, std::uint64_t memory) const {
    memo.memory = memory;
    for (unsigned i = 0; i < key_count; ++i) memo.key[i] = arguments[key_arguments[i]];
  }
};
static_assert(QuickStep::kMemos == 1U << (64 - 61));

struct QuickClause {
  std::optional<QuickDif> predicate;
  std::vector<QuickStep> steps;  // one for each step of the ECB
};

// Of an ECB that aggregates and records nothing, on its probe; null: fire() interprets it.
std::unique_ptr<QuickClause> quick_clause(const Ecb& ecb, const Probe& probe);

}  // namespace dtmalloc::dtrace
