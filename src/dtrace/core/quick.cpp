// SPDX-License-Identifier: BSD-2-Clause
// Takes clauses apart: symbolic execution of their objects.
// Invariants:   branches go forward only, so every path ends; kMostTests bounds their number.
#include "dtrace/core/quick.hpp"

#include <algorithm>
#include <array>

#include "dtrace/core/consumer.hpp"
#include "dtrace/dif/dif_int.hpp"
#include "dtrace/dif/reads.hpp"

namespace dtmalloc::dtrace {
namespace {

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

// Makes a comparison with a constant a range. False: it holds for no value.
bool make_range(QuickNode& test) {
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;  // the least with a sign
  const std::uint64_t c = test.second.constant;
  std::uint64_t high = c;
  test.low = c;
  switch (test.branch) {
    case DifOp::bgu:
    case DifOp::bg:
      high = test.branch == DifOp::bg ? kSign - 1 : kMost;
      if (c == high) return false;
      test.low = c + 1;
      break;
    case DifOp::bgeu:
    case DifOp::bge:
      high = test.branch == DifOp::bge ? kSign - 1 : kMost;
      break;
    case DifOp::blu:
    case DifOp::bl:
      test.low = test.branch == DifOp::bl ? kSign : 0;
      if (c == test.low) return false;
      high = c - 1;
      break;
    case DifOp::bleu:
    case DifOp::ble:
      test.low = test.branch == DifOp::ble ? kSign : 0;
      break;
    default:  // be, bne
      break;
  }
  test.span = high - test.low;
  test.kind = test.first.is_plain() ? QuickNode::range : QuickNode::computed;
  test.word = test.first.word;
  return true;
}

// The branch that is taken when its operands are exchanged.
DifOp exchanged(DifOp branch) {
  switch (branch) {
    case DifOp::bg:
      return DifOp::bl;
    case DifOp::bgu:
      return DifOp::blu;
    case DifOp::bge:
      return DifOp::ble;
    case DifOp::bgeu:
      return DifOp::bleu;
    case DifOp::bl:
      return DifOp::bg;
    case DifOp::blu:
      return DifOp::bgu;
    case DifOp::ble:
      return DifOp::bge;
    case DifOp::bleu:
      return DifOp::bgeu;
    default:
      return branch;
  }
}

}  // namespace

std::optional<std::uint8_t> QuickScope::argument(std::uint64_t index) {
  if (index >= kQuickArguments) return std::nullopt;
  const bool pointer = (pointer_arguments >> index & 1) != 0;
  const auto word = static_cast<std::uint8_t>((pointer ? kWordPointer : kWordArgument) + index);
  words |= 1U << word;
  return word;
}

std::optional<std::uint8_t> QuickScope::builtin(std::uint32_t id) {
  std::uint8_t word = 0;
  switch (id) {
    case kVarTid:
      word = kWordTid;
      break;
    case kVarPid:
      word = kWordPid;
      break;
    case kVarPpid:
      word = kWordPpid;
      break;
    case kVarUid:
      word = kWordUid;
      break;
    case kVarGid:
      word = kWordGid;
      break;
    case kVarCpu:
      word = kWordCpu;
      break;
    case kVarTimestamp:
      word = kWordTimestamp;
      break;
    case kVarWalltimestamp:
      word = kWordWalltimestamp;
      break;
    case kVarVtimestamp:
      word = kWordVtimestamp;
      break;
    default:
      if (id < kVarArg0) return std::nullopt;
      return argument(id - kVarArg0);
  }
  words |= 1U << word;
  return word;
}

std::optional<std::uint8_t> QuickScope::global(std::uint32_t id) {
  std::size_t at = 0;
  while (at < globals.size() && globals[at] != id - kVarUser) ++at;
  if (at == kQuickGlobals) return std::nullopt;
  if (at == globals.size()) globals.push_back(id - kVarUser);
  const auto word = static_cast<std::uint8_t>(kWordGlobal + at);
  words |= 1U << word;
  return word;
}

class QuickBuilder {
 public:
  QuickBuilder(const VerifiedDif& dif, QuickScope& scope)
      : code_(dif.code()), object_(dif.object()), scope_(scope) {}

  std::optional<QuickDif> build() {
    if (object_.result.by_ref) return std::nullopt;
    Path path;
    path.registers.fill(number(0));
    const std::optional<std::size_t> start = follow(0, path);
    if (!start) return std::nullopt;
    for (const Link& link : links_) {
      nodes_[link.from].yes = &nodes_[link.yes];
      nodes_[link.from].no = &nodes_[link.no];
    }
    QuickDif quick;
    quick.start_ = &nodes_[*start];
    quick.nodes_ = std::move(nodes_);
    return quick;
  }

 private:
  static constexpr std::size_t kMostTests = 16;
  struct Path {
    std::array<Known, kDifRegisters> registers;
    Known left = number(0), right = number(0);  // what was compared last
  };

  // The number of the node to which the path from `pc` leads.
  std::optional<std::size_t> follow(std::size_t pc, Path path) {
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
          if (op != DifOp::ldgs) return std::nullopt;
          rd = variable(pc, word.index());
          break;
        case DifForm::arr: {
          const Known& index = path.registers[word.r2()];
          if (op != DifOp::ldga || word.r1() != kVarArgs || !index || !index->is_constant())
            return std::nullopt;
          rd = of(scope_.argument(index->constant));
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

  static Known of(std::optional<std::uint8_t> word) {
    if (!word) return std::nullopt;
    QuickOperand operand;
    operand.word = *word;
    return operand;
  }

  Known variable(std::size_t pc, std::uint32_t id) {
    if (id == kVarId) return number(scope_.probe);
    if (id == kVarEpid) return number(scope_.epid);
    if (id < kVarUser) return of(scope_.builtin(id));
    // The code has other opcodes for what is not a scalar.
    if (code_[pc] != object_.text[pc]) return std::nullopt;
    return of(scope_.global(id));
  }

  static Known binary(DifOp op, const Known& a, const Known& b) {
    if (!a || !b || !folds(op)) return std::nullopt;
    if (a->is_constant() && b->is_constant()) return number(fold(op, a->constant, b->constant));
    const bool shift = op == DifOp::sll || op == DifOp::srl || op == DifOp::sra;
    if (shift && b->is_constant()) return shifted(*a, op, b->constant);
    return std::nullopt;
  }

  std::optional<std::size_t> branch(DifOp op, std::size_t pc, std::size_t label, const Path& path) {
    if (!path.left || !path.right) return std::nullopt;
    if (path.left->is_constant() && path.right->is_constant()) {
      const bool taken = QuickDif::holds(op, path.left->constant, path.right->constant);
      return follow(taken ? label : pc + 1, path);
    }
    QuickNode test;
    test.kind = QuickNode::compare;
    test.first = *path.left;
    test.second = *path.right;
    test.branch = op;
    std::size_t taken = label;
    std::size_t passed = pc + 1;
    if (test.first.is_constant()) {
      std::swap(test.first, test.second);
      test.branch = exchanged(op);
    }
    if (test.second.is_constant()) {
      if (op == DifOp::bne) std::swap(taken, passed);
      if (!make_range(test)) return follow(passed, path);
    }
    if (links_.size() == kMostTests) return std::nullopt;
    const std::size_t link = links_.size();
    links_.push_back({nodes_.size(), 0, 0});
    nodes_.push_back(test);
    const auto yes = follow(taken, path);
    if (!yes) return std::nullopt;
    const auto no = follow(passed, path);
    if (!no) return std::nullopt;
    links_[link].yes = *yes;
    links_[link].no = *no;
    return links_[link].from;
  }

  std::optional<std::size_t> result(const Known& value) {
    if (!value) return std::nullopt;
    QuickNode node;
    node.kind = value->is_constant() ? QuickNode::constant : QuickNode::result;
    node.low = value->constant;
    node.first = *value;
    nodes_.push_back(node);
    return nodes_.size() - 1;
  }

  struct Link {
    std::size_t from, yes, no;
  };
  const std::vector<std::uint32_t>& code_;
  const DifObject& object_;
  QuickScope& scope_;
  std::vector<QuickNode> nodes_;
  std::vector<Link> links_;  // of its tests
};

bool QuickDif::holds(DifOp branch, std::uint64_t a, std::uint64_t b) {
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

bool QuickDif::tests_arguments() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const QuickNode& node) {
    return node.kind == QuickNode::constant ||
           (node.kind == QuickNode::range && node.word < kQuickArguments);
  });
}

std::uint64_t QuickDif::rest(const QuickNode* node, const std::uint64_t* words) {
  for (;;) {
    bool yes = false;
    switch (node->kind) {
      case QuickNode::range:
      case QuickNode::computed:
        yes = node->first.value(words) - node->low <= node->span;
        break;
      case QuickNode::compare:
        yes = holds(node->branch, node->first.value(words), node->second.value(words));
        break;
      case QuickNode::constant:
        return node->low;
      case QuickNode::result:
        return node->first.value(words);
    }
    node = yes ? node->yes : node->no;
  }
}

std::optional<QuickDif> QuickDif::of(const VerifiedDif& dif, QuickScope& scope) {
  return QuickBuilder(dif, scope).build();
}

namespace {

// False: the key depends on more than a few words and memory that does not change.
bool read_key(const std::vector<KeyStep>& keys, const Probe& probe, QuickScope& scope,
              QuickStep& quick) {
  std::uint32_t words = 0;
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
    if (reads.arguments >> kQuickArguments != 0) return false;
    words |= reads.arguments << kWordArgument;
    for (const std::uint32_t id : reads.builtins) {
      const auto word = scope.builtin(id);
      if (!word) return false;
      words |= 1U << *word;
    }
  }
  for (std::uint8_t word = 0; word < kQuickWords; ++word) {
    if ((words >> word & 1) == 0) continue;
    if (quick.key_count == std::size(quick.key_words)) return false;
    quick.key_words[quick.key_count++] = word;
  }
  return true;
}

bool is_plain(const std::optional<QuickDif>& value) {
  return value && value->operand() != nullptr && value->operand()->is_plain();
}

// Where the words come from that are no arguments.
std::vector<QuickSource> sources_of(const QuickScope& scope) {
  std::vector<QuickSource> sources;
  const auto add = [&](QuickSource::Kind kind, unsigned word, std::size_t at) {
    if ((scope.words >> word & 1) == 0) return;
    sources.push_back({kind, static_cast<std::uint8_t>(word), static_cast<std::uint32_t>(at)});
  };
  for (unsigned i = 0; i < kQuickArguments; ++i) add(QuickSource::pointer, kWordPointer + i, i);
  const SimThread thread;
  const auto offset = [&thread](const int& member) {
    return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&member) -
                                    reinterpret_cast<const std::byte*>(&thread));
  };
  add(QuickSource::thread_number, kWordTid, offset(thread.tid));
  add(QuickSource::thread_number, kWordPid, offset(thread.pid));
  add(QuickSource::thread_number, kWordPpid, offset(thread.ppid));
  add(QuickSource::thread_number, kWordUid, offset(thread.uid));
  add(QuickSource::thread_number, kWordGid, offset(thread.gid));
  for (const unsigned word : {kWordCpu, kWordWalltimestamp, kWordVtimestamp}) {
    add(QuickSource::other, word, 0);
  }
  for (unsigned i = 0; i < scope.globals.size(); ++i) {
    add(QuickSource::global, kWordGlobal + i, scope.globals[i]);
  }
  return sources;
}

// What a step does without the interpreter. False: it cannot.
bool quick_step(const Step& step, const Probe& probe, QuickScope& scope, QuickStep& quick) {
  const auto take = [&](const VerifiedDif* dif, std::optional<QuickDif>& value) {
    if (dif != nullptr) value = QuickDif::of(*dif, scope);
    return dif == nullptr || value.has_value();
  };
  switch (step.kind) {
    case StepKind::store:
      if (step.size != 8 && step.size != 4 && step.size != 2 && step.size != 1) return false;
      if (!take(step.dif, quick.argument)) return false;
      quick.kind = QuickStep::store;
      quick.offset = step.offset;
      quick.size = static_cast<std::uint8_t>(step.size);
      if (quick.argument->is_constant()) {
        quick.kind = QuickStep::store_constant;
        quick.constant = quick.argument->value(nullptr);
      } else if (is_plain(quick.argument)) {
        quick.kind = QuickStep::store_word;
        quick.word = quick.argument->operand()->word;
      }
      return true;
    case StepKind::aggregate:
      break;
    default:
      return false;
  }
  quick.aggregation = &step.aggregation;
  if (!read_key(step.keys, probe, scope, quick) || !take(step.argument, quick.argument) ||
      !take(step.increment, quick.increment)) {
    return false;
  }
  quick.kind = QuickStep::aggregate;
  if (step.aggregation.function == AggFunction::count) quick.kind = QuickStep::count;
  if (step.aggregation.function == AggFunction::quantize && !quick.increment &&
      is_plain(quick.argument)) {
    quick.kind = QuickStep::quantize_word;
    quick.word = quick.argument->operand()->word;
  }
  return true;
}

// Of a step that records a word at hand.
std::optional<QuickStore> store_of(const QuickStep& step, const std::vector<QuickSource>& sources) {
  QuickStore store;
  store.size = step.size;
  store.offset = step.offset;
  if (step.kind == QuickStep::store_constant) {
    store.from = QuickStore::number;
    store.constant = step.constant;
    return store;
  }
  if (step.kind != QuickStep::store_word) return std::nullopt;
  store.at = step.word;
  if (step.word < kQuickArguments) return store;
  store.from = step.word == kWordCpu ? QuickStore::cpu : QuickStore::time;
  if (step.word == kWordCpu || step.word == kWordTimestamp) return store;
  for (const QuickSource& source : sources) {
    if (source.word != step.word) continue;
    store.at = source.at;
    store.from =
        source.kind == QuickSource::global ? QuickStore::global : QuickStore::thread_number;
    if (source.kind == QuickSource::global || source.kind == QuickSource::thread_number)
      return store;
  }
  return std::nullopt;
}

}  // namespace

std::unique_ptr<QuickClause> quick_clause(const Ecb& ecb, const Probe& probe,
                                          const Framework::Impl& framework) {
  if (ecb.role != EcbRole::normal || ecb.needed == kNeverFits) return nullptr;
  auto clause = std::make_unique<QuickClause>();
  clause->consumer = ecb.consumer;
  clause->ecb = &ecb;
  clause->slack = ecb.alignment - 1;
  clause->room = ecb.needed + clause->slack;
  clause->record = ecb.size;
  clause->epid = ecb.epid;
  clause->addresses = &framework.addresses;
  clause->clock = &framework.cpus.clock();
  QuickScope scope;
  scope.pointer_arguments = probe.pointer_arguments;
  scope.probe = probe.id;
  scope.epid = ecb.epid;
  if (ecb.predicate != nullptr) {
    clause->predicate = QuickDif::of(*ecb.predicate, scope);
    if (!clause->predicate) return nullptr;
  }
  for (std::size_t i = 0; i < ecb.steps.size(); ++i) {
    const Step& step = ecb.steps[i];
    QuickStep quick;
    quick.at = static_cast<std::uint32_t>(i);
    if (step.kind == StepKind::eval && QuickDif::of(*step.dif, scope)) continue;
    if (!quick_step(step, probe, scope, quick)) return nullptr;
    clause->steps.push_back(std::move(quick));
  }
  clause->needs_time = ecb.size != 0 || (scope.words >> kWordTimestamp & 1) != 0;
  clause->sources = sources_of(scope);
  for (const QuickStep& step : clause->steps)
    if (const auto store = store_of(step, clause->sources)) clause->stores.push_back(*store);
  choose_fire(*clause);
  return clause;
}

}  // namespace dtmalloc::dtrace
