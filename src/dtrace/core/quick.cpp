// SPDX-License-Identifier: BSD-2-Clause
// Takes clauses apart: symbolic execution of their objects.
// Invariants:   branches go forward only, so every path ends; kMostTests bounds their number.
#include "dtrace/core/quick.hpp"

#include <array>

#include "dtrace/core/consumer.hpp"
#include "dtrace/dif/dif_int.hpp"
#include "dtrace/dif/reads.hpp"

namespace dtmalloc::dtrace {
namespace {

constexpr unsigned kArguments = 5;  // that every firing brings along

// What a register holds on one path; empty: what a decision list cannot say.
using Known = std::optional<QuickOperand>;

QuickOperand number(std::uint64_t value) {
  QuickOperand operand;
  operand.constant = value;
  return operand;
}

std::uint64_t fold(DifOp op, std::uint64_t a, std::uint64_t b) {
  switch (op) {
    case DifOp::or_:
      return a | b;
    case DifOp::xor_:
      return a ^ b;
    case DifOp::and_:
      return a & b;
    case DifOp::sll:
      return a << (b & 63);
    case DifOp::srl:
      return a >> (b & 63);
    case DifOp::sra:
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(a) >> (b & 63));
    case DifOp::sub:
      return a - b;
    case DifOp::add:
      return a + b;
    default:
      return a * b;
  }
}

bool folds(DifOp op) { return (op >= DifOp::or_ && op <= DifOp::mul) || op == DifOp::sra; }

// An argument shifted by a constant: left first, then right once.
Known shifted(QuickOperand operand, DifOp op, std::uint64_t count) {
  const auto bits = static_cast<std::uint8_t>(count & 63);
  if (operand.right != 0) return std::nullopt;
  if (op == DifOp::sll) {
    if (operand.left + bits > 63) return std::nullopt;
    operand.left = static_cast<std::uint8_t>(operand.left + bits);
    return operand;
  }
  operand.right = bits;
  operand.is_signed = op == DifOp::sra;
  return operand;
}

}  // namespace

class QuickBuilder {
 public:
  QuickBuilder(const VerifiedDif& dif, std::uint32_t pointer_arguments)
      : object_(dif.object()), pointer_arguments_(pointer_arguments) {}

  std::optional<QuickDif> build() {
    if (object_.result.by_ref) return std::nullopt;
    Path path;
    path.registers.fill(number(0));
    const std::optional<std::int16_t> start = follow(0, path);
    if (!start) return std::nullopt;
    quick_.start_ = *start;
    return std::move(quick_);
  }

 private:
  static constexpr std::size_t kMostTests = 16;
  struct Path {
    std::array<Known, kDifRegisters> registers;
    Known left = number(0), right = number(0);  // what was compared last
  };

  // The number of the test, or ~ that of the result, to which the path from `pc` leads.
  std::optional<std::int16_t> follow(std::size_t pc, Path path) {
    for (;; ++pc) {
      const DifWord word{object_.text[pc]};
      const auto op = static_cast<DifOp>(word.op());
      auto& rd = path.registers[word.rd() % kDifRegisters];
      switch (dif_op_info(word.op()).form) {
        case DifForm::rrr:
          rd = binary(op, path.registers[word.r1()], path.registers[word.r2()]);
          break;
        case DifForm::rr:
          if (op != DifOp::mov) return std::nullopt;
          rd = path.registers[word.r1()];
          break;
        case DifForm::index:
          if (op != DifOp::setx) return std::nullopt;
          rd = number(object_.ints[word.index()]);
          break;
        case DifForm::var:
          if (op != DifOp::ldgs || word.index() < kVarArg0) return std::nullopt;
          rd = argument(word.index() - kVarArg0);
          break;
        case DifForm::arr: {
          const Known& index = path.registers[word.r2()];
          if (op != DifOp::ldga || word.r1() != kVarArgs || !index || !index->is_constant())
            return std::nullopt;
          rd = argument(index->constant);
          break;
        }
        case DifForm::cmp:
          if (op != DifOp::cmp) return std::nullopt;
          path.left = path.registers[word.r1()];
          path.right = path.registers[word.r2()];
          break;
        case DifForm::r1:
          path.left = path.registers[word.r1()];
          path.right = number(0);
          break;
        case DifForm::label:
          if (op == DifOp::ba) {
            pc = word.label() - 1;
            break;
          }
          return branch(op, pc, word.label(), path);
        case DifForm::rd:
          return result(path.registers[word.rd()]);
        case DifForm::none:
          if (op != DifOp::nop) return std::nullopt;
          break;
        default:
          return std::nullopt;
      }
    }
  }

  Known argument(std::uint64_t index) const {
    if (index >= kArguments || (pointer_arguments_ >> index & 1) != 0) return std::nullopt;
    QuickOperand operand;
    operand.argument = static_cast<std::uint8_t>(index);
    return operand;
  }

  static Known binary(DifOp op, const Known& a, const Known& b) {
    if (!a || !b || !folds(op)) return std::nullopt;
    if (a->is_constant() && b->is_constant()) return number(fold(op, a->constant, b->constant));
    const bool shift = op == DifOp::sll || op == DifOp::srl || op == DifOp::sra;
    if (shift && b->is_constant()) return shifted(*a, op, b->constant);
    return std::nullopt;
  }

  std::optional<std::int16_t> branch(DifOp op, std::size_t pc, std::size_t label,
                                     const Path& path) {
    if (!path.left || !path.right) return std::nullopt;
    if (path.left->is_constant() && path.right->is_constant()) {
      const bool taken = QuickDif::holds(op, path.left->constant, path.right->constant);
      return follow(taken ? label : pc + 1, path);
    }
    if (quick_.tests_.size() == kMostTests) return std::nullopt;
    const std::size_t at = quick_.tests_.size();
    quick_.tests_.push_back({*path.left, *path.right, op, -1, -1});
    const auto yes = follow(label, path);
    if (!yes) return std::nullopt;
    const auto no = follow(pc + 1, path);
    if (!no) return std::nullopt;
    quick_.tests_[at].yes = *yes;
    quick_.tests_[at].no = *no;
    return static_cast<std::int16_t>(at);
  }

  std::optional<std::int16_t> result(const Known& value) {
    if (!value) return std::nullopt;
    std::size_t at = 0;
    while (at < quick_.results_.size() && quick_.results_[at] != *value) ++at;
    if (at == quick_.results_.size()) quick_.results_.push_back(*value);
    return static_cast<std::int16_t>(~at);
  }

  const DifObject& object_;
  std::uint32_t pointer_arguments_;
  QuickDif quick_;
};

std::optional<QuickDif> QuickDif::of(const VerifiedDif& dif, std::uint32_t pointer_arguments) {
  return QuickBuilder(dif, pointer_arguments).build();
}

namespace {

// False: the key depends on more than a few probe arguments and memory that does not change.
bool read_key(const std::vector<KeyStep>& keys, const Probe& probe, QuickStep& quick) {
  std::uint32_t arguments = 0;
  for (const KeyStep& key : keys) {
    // A stack or a process is the firing's.
    if (key.desc.by_ref && key.desc.form != ValueForm::plain) return false;
    const DifReads reads = reads_of(*key.dif);
    if (reads.varies) return false;
    for (const DifReads::Load& load : reads.loads) {
      if (!probe.provider->ops->constant_memory(
              probe.id, probe.parg, static_cast<int>(load.argument), load.offset, load.size))
        return false;
    }
    arguments |= reads.arguments;
  }
  for (unsigned i = 0; i < 32; ++i) {
    if ((arguments >> i & 1) == 0) continue;
    if (i >= kArguments || quick.key_count == std::size(quick.key_arguments)) return false;
    quick.key_arguments[quick.key_count++] = static_cast<std::uint8_t>(i);
  }
  return true;
}

}  // namespace

std::unique_ptr<QuickClause> quick_clause(const Ecb& ecb, const Probe& probe) {
  if (ecb.role != EcbRole::normal || ecb.size != 0 || ecb.steps.empty()) return nullptr;
  auto clause = std::make_unique<QuickClause>();
  if (ecb.predicate != nullptr) {
    clause->predicate = QuickDif::of(*ecb.predicate, probe.pointer_arguments);
    if (!clause->predicate) return nullptr;
  }
  for (const Step& step : ecb.steps) {
    if (step.kind != StepKind::aggregate) return nullptr;
    QuickStep quick;
    quick.aggregation = &step.aggregation;
    quick.counts = step.aggregation.function == AggFunction::count;
    if (!read_key(step.keys, probe, quick)) return nullptr;
    const auto take = [&](const VerifiedDif* dif, std::optional<QuickDif>& value) {
      if (dif != nullptr) value = QuickDif::of(*dif, probe.pointer_arguments);
      return dif == nullptr || value.has_value();
    };
    if (!take(step.argument, quick.argument) || !take(step.increment, quick.increment))
      return nullptr;
    clause->steps.push_back(std::move(quick));
  }
  return clause;
}

}  // namespace dtmalloc::dtrace
