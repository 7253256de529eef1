// SPDX-License-Identifier: BSD-2-Clause
// Firing a clause that was taken apart: no interpreter as long as its elements are where they were.
// Counterpart:  none in a kernel: dtrace_probe() interprets
// Locking:      as probe.cpp.
// Invariants:   does what fire() does of the same clause. Whatever is unusual goes there: another
//               activity than `active`, a CPU without buffers, a record that may not fit.
#include <atomic>
#include <cstring>

#include "dtrace/core/consumer.hpp"
#include "dtrace/core/framework.hpp"

#define DTM_INLINE [[gnu::always_inline]] inline

namespace dtmalloc::dtrace {
namespace {

// The words besides the arguments and the time.
DTM_INLINE void fill_words(const QuickClause& clause, const Cpu& cpu, const ConsumerCpu& state,
                           std::uint64_t* words) {
  const auto number = [](int value) { return static_cast<std::uint64_t>(value); };
  const SimThread* thread = cpu.thread;
  for (const QuickSource& source : clause.sources) {
    std::uint64_t& word = words[source.word];
    if (source.kind == QuickSource::thread_number) {
      int value = 0;
      if (thread != nullptr) {
        std::memcpy(&value, reinterpret_cast<const std::byte*>(thread) + source.at, sizeof value);
      }
      word = number(value);
    } else if (source.kind == QuickSource::global) {
      word = std::atomic_ref(state.dif.globals[source.at]).load(std::memory_order_relaxed);
    } else if (source.kind == QuickSource::pointer) {
      word = clause.addresses->to_simulated(
          reinterpret_cast<const void*>(words[kWordArgument + source.at]));
    } else if (source.word == kWordCpu) {
      word = number(cpu.id);
    } else if (source.word == kWordWalltimestamp) {
      word = static_cast<std::uint64_t>(cpu.machine->clock().wall());
    } else {
      word = thread != nullptr ? thread->run_time : 0;  // vtimestamp
    }
  }
}

// Null: not remembered.
DTM_INLINE std::uint64_t* remembered(const QuickClause& clause, const QuickStep& step,
                                     const ConsumerCpu& state, const std::uint64_t* words) {
  const QuickMemo& memo = memo_at(state, step.memo)[step.slot(words)];
  if (!state.aggregations.holds(memo.hint)) return nullptr;
  if (!step.remembers(memo, words, clause.addresses->generation())) return nullptr;
  return reinterpret_cast<std::uint64_t*>(state.aggregations.hinted(memo.hint));
}

// False: fire() does what there is to do.
DTM_INLINE bool ready(const QuickClause& clause, const ConsumerCpu& state,
                      const std::atomic<Activity>& activity) {
  if (__builtin_expect(activity.load(std::memory_order_acquire) != Activity::active, 0)) {
    return false;
  }
  return __builtin_expect(state.buffer.used + clause.room <= acquire(state.buffer.limit), 1);
}

// The low bytes of a word.
DTM_INLINE void store_bytes(std::byte* place, std::uint64_t value, unsigned size) {
  if (size == 8) {
    std::memcpy(place, &value, 8);
  } else if (size == 4) {
    std::memcpy(place, &value, 4);
  } else if (size == 2) {
    std::memcpy(place, &value, 2);
  } else {
    std::memcpy(place, &value, 1);
  }
}

// Of a key: which FiringCell.
DTM_INLINE std::uint64_t mix(std::uint64_t key) { return key * 0x9e3779b97f4a7c15 >> 58; }

DTM_INLINE FiringCpu& firing_of(const Cpu& cpu) { return *static_cast<FiringCpu*>(cpu.dtrace); }

DTM_INLINE const QuickClause& clause_of(const FiringCpu& firing) {
  return *static_cast<const QuickClause*>(firing.entry->context);
}

}  // namespace

// A step with the interpreter; remembers where its element is. False: a fault ended the clause.
[[gnu::noinline]] bool Consumer::aggregate_anew(const QuickClause& clause, const QuickStep& quick,
                                                ConsumerCpu& state, const std::uint64_t* words) {
  const Ecb& ecb = *clause.ecb;
  Firing firing;
  firing.cpu = curcpu;
  firing.thread = curcpu->thread;
  firing.arguments = words + kWordArgument;
  firing.argument_count = kQuickArguments;
  const std::size_t start = align_record(state.buffer.used, ecb.alignment);
  prepare(ecb, firing, state, start);
  QuickMemo& memo = memo_at(state, quick.memo)[quick.slot(words)];
  const std::uint64_t memory = framework_.addresses.generation();
  if (!aggregate(ecb.steps[quick.at], state, state.buffer.active + start + ecb.tuple, &memo)) {
    fault(ecb, firing, state, state.fault_action);
    return false;
  }
  if (state.aggregations.holds(memo.hint)) quick.remember(memo, words, memory);
  return true;
}

// False: a fault ended the clause.
bool Consumer::aggregate_quickly(const QuickClause& clause, const QuickStep& step,
                                 ConsumerCpu& state, const std::uint64_t* words) {
  std::uint64_t* cells = remembered(clause, step, state, words);
  if (__builtin_expect(cells == nullptr, 0)) {
    return clause.consumer->aggregate_anew(clause, step, state, words);
  }
  if (step.kind == QuickStep::count) {
    ++*cells;
    return true;
  }
  const std::uint64_t value = step.argument ? step.argument->value(words) : 0;
  const std::uint64_t increment = step.increment ? step.increment->value(words) : 1;
  aggregate_value(*step.aggregation, reinterpret_cast<std::int64_t*>(cells),
                  static_cast<std::int64_t>(value), static_cast<std::int64_t>(increment));
  return true;
}

// A clause of one aggregation that needs arguments only. Saves no register for count() and
// quantize(): what is unusual is a tail call.
template <bool Predicate, unsigned Keys, QuickStep::Kind Kind>
void Consumer::fire_one(ProbeId id, std::uintptr_t arg0, std::uintptr_t arg1, std::uintptr_t arg2,
                        std::uintptr_t arg3, std::uintptr_t arg4) {
  FiringCpu& firing = firing_of(*curcpu);
  const QuickClause& clause = clause_of(firing);
  const std::uint64_t words[kQuickArguments] = {arg0, arg1, arg2, arg3, arg4};
  std::uint64_t key = 0;
  if (Keys == 1) key = words[clause.steps[0].key_words[0]];
  const FiringCell& cell = firing.cell(firing.entry, mix(key));
  if (__builtin_expect(cell.clause != clause.serial, 0)) {
    return fire_steps<false>(id, arg0, arg1, arg2, arg3, arg4);
  }
  const ConsumerCpu& state = *cell.state;
  if (!ready(clause, state, clause.consumer->activity_)) {
    return fire_callback(id, arg0, arg1, arg2, arg3, arg4);
  }
  if (Predicate && clause.predicate->simple_value(words) == 0) return;
  if (__builtin_expect(cell.generation != state.aggregations.generation(), 0) ||
      (Keys == 1 &&
       __builtin_expect(cell.key != key || cell.memory != clause.addresses->generation(), 0))) {
    return fire_steps<false>(id, arg0, arg1, arg2, arg3, arg4);
  }
  std::uint64_t* cells = cell.cells;
  if (Kind == QuickStep::aggregate) {
    const QuickStep& step = clause.steps[0];
    const std::uint64_t value = step.argument ? step.argument->value(words) : 0;
    const std::uint64_t increment = step.increment ? step.increment->value(words) : 1;
    aggregate_value(*step.aggregation, reinterpret_cast<std::int64_t*>(cells),
                    static_cast<std::int64_t>(value), static_cast<std::int64_t>(increment));
    return;
  }
  if (Kind == QuickStep::quantize_word) {
    cells += quantize_bucket(static_cast<std::int64_t>(words[clause.steps[0].word]));
  }
  ++*cells;
}

// Where the element of the only step was found just now, for fire_one().
void Consumer::know_cell(FiringCpu& firing, const QuickClause& clause, ConsumerCpu& state,
                         const std::uint64_t* words) {
  const QuickStep& step = clause.steps[0];
  const QuickMemo& memo = memo_at(state, step.memo)[step.slot(words)];
  if (!state.aggregations.holds(memo.hint)) return;
  if (step.key_count == 1 && memo.memory == 0) return;
  FiringCell cell;
  cell.clause = clause.serial;
  cell.key = step.key_count == 1 ? memo.key[0] : 0;
  cell.memory = memo.memory;
  cell.generation = memo.hint.generation;
  cell.cells = reinterpret_cast<std::uint64_t*>(state.aggregations.hinted(memo.hint));
  cell.state = &state;
  firing.cell(firing.entry, mix(cell.key)) = cell;
}

// Any other.
template <bool Records>
void Consumer::fire_steps(ProbeId id, std::uintptr_t arg0, std::uintptr_t arg1, std::uintptr_t arg2,
                          std::uintptr_t arg3, std::uintptr_t arg4) {
  const Cpu& cpu = *curcpu;
  FiringCpu& firing = firing_of(cpu);
  const QuickClause& clause = clause_of(firing);
  ConsumerCpu* state = firing.state;
  if (__builtin_expect(firing.consumer != clause.consumer->cookie_, 0)) {
    state =
        clause.consumer->cpus_[static_cast<std::size_t>(cpu.id)].load(std::memory_order_acquire);
    if (state != nullptr) {
      firing.consumer = clause.consumer->cookie_;
      firing.state = state;
    }
  }
  if (__builtin_expect(state == nullptr, 0) || !ready(clause, *state, clause.consumer->activity_)) {
    return fire_callback(id, arg0, arg1, arg2, arg3, arg4);
  }
  std::uint64_t words[kQuickWords];
  words[0] = arg0;
  words[1] = arg1;
  words[2] = arg2;
  words[3] = arg3;
  words[4] = arg4;
  if (Records || clause.needs_time) {
    words[kWordTimestamp] = cpu.machine->clock().now();
    if (Records && __builtin_expect(words[kWordTimestamp] > clause.consumer->watch_.deadline.load(
                                                                std::memory_order_relaxed),
                                    0)) {
      clause.consumer->activity_.store(Activity::killed, std::memory_order_release);
      return;
    }
  }
  fill_words(clause, cpu, *state, words);
  if (clause.predicate && clause.predicate->value(words) == 0) return;
  PrincipalBuffer& buffer = state->buffer;
  const std::size_t start = align_record(buffer.used, clause.alignment);
  std::byte* record = buffer.active + start;
  for (const QuickStep& step : clause.steps) {
    if (Records && __builtin_expect(step.kind == QuickStep::store_word, 1)) {
      store_bytes(record + step.offset, words[step.word], step.size);
    } else if (Records && step.kind == QuickStep::store_constant) {
      store_bytes(record + step.offset, step.constant, step.size);
    } else if (Records && step.kind == QuickStep::store) {
      store_bytes(record + step.offset, step.argument->value(words), step.size);
    } else if (!aggregate_quickly(clause, step, *state, words)) {
      return;
    }
  }
  if (!Records) {
    if (clause.knows_cell) know_cell(firing, clause, *state, words);
    return;
  }
  // Records are aligned to 4 bytes, so 4 bytes lie between them or none.
  if (start != buffer.used) std::memset(buffer.active + buffer.used, 0, 4);
  std::memcpy(record, &clause.epid, 4);
  std::memcpy(record + 4, &words[kWordTimestamp], 8);
  buffer.used = start + clause.record;
}

void quick_fire(QuickClause& clause) {
  clause.fire = clause.record != 0 ? &Consumer::fire_steps<true> : &Consumer::fire_steps<false>;
  if (clause.record != 0 || clause.steps.size() != 1 || !clause.sources.empty() ||
      clause.needs_time || clause.steps[0].key_count > 1 ||
      (clause.predicate && !clause.predicate->is_simple())) {
    return;
  }
  clause.knows_cell = true;
  const QuickStep& step = clause.steps[0];
  const auto choose = [&](auto predicate, auto keys) {
    switch (step.kind) {
      case QuickStep::count:
        clause.fire = &Consumer::fire_one<predicate(), keys(), QuickStep::count>;
        break;
      case QuickStep::quantize_word:
        clause.fire = &Consumer::fire_one<predicate(), keys(), QuickStep::quantize_word>;
        break;
      default:
        clause.fire = &Consumer::fire_one<predicate(), keys(), QuickStep::aggregate>;
        break;
    }
  };
  using Zero = std::integral_constant<unsigned, 0>;
  using One = std::integral_constant<unsigned, 1>;
  if (clause.predicate) {
    step.key_count == 0 ? choose(std::true_type(), Zero()) : choose(std::true_type(), One());
  } else {
    step.key_count == 0 ? choose(std::false_type(), Zero()) : choose(std::false_type(), One());
  }
}

}  // namespace dtmalloc::dtrace
