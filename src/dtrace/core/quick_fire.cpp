// SPDX-License-Identifier: BSD-2-Clause
// Firing a clause that was taken apart: no interpreter as long as its elements are where they were.
// Counterpart:  none in a kernel: dtrace_probe() interprets
// Locking:      as probe.cpp.
// Invariants:   does what fire() does of the same clause. Whatever is unusual goes there: another
//               activity than `active`, a CPU without buffers, a record that may not fit.
#include <algorithm>
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

// The header of a clause's record, and where it begins.
DTM_INLINE std::size_t begin_record(const PrincipalBuffer& buffer, const QuickClause& clause,
                                    std::uint64_t now) {
  std::byte* const active = buffer.active;
  std::size_t start = buffer.used;
  // Records are aligned to 4 bytes, so 4 bytes lie between them or none.
  if ((start & clause.slack) != 0) {
    std::memset(active + start, 0, 4);
    start += 4;
  }
  std::memcpy(active + start, &clause.epid, 4);
  std::memcpy(active + start + 4, &now, 8);
  return start;
}

// Of a key: which FiringCell.
DTM_INLINE std::uint64_t mix(std::uint64_t key) { return key * 0x9e3779b97f4a7c15 >> 56; }

DTM_INLINE FiringCpu& firing_of(const Cpu& cpu) { return *static_cast<FiringCpu*>(cpu.dtrace); }

// Whether there is room for the clause, and nobody wants to know of the firing.
DTM_INLINE bool has_room(const FiringLine& line, const PrincipalBuffer& buffer) {
  return __builtin_expect(buffer.used + line.room <= acquire(buffer.limit), 1);
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
void Consumer::fire_one(const ProbeFiring& firing, std::uintptr_t arg0, std::uintptr_t arg1,
                        std::uintptr_t arg2, std::uintptr_t arg3, std::uintptr_t arg4) {
  FiringLine& line = line_of(firing);
  if (!has_room(line, line.state->buffer)) return fire_callback(line, arg0, arg1, arg2, arg3, arg4);
  const QuickClause& clause = *line.clause;
  const std::uint64_t words[kQuickArguments] = {arg0, arg1, arg2, arg3, arg4};
  if (Predicate && clause.predicate->simple_value(words) == 0) return;
  std::uint64_t* cells = line.cells;
  if (Keys == 1) {
    const std::uint64_t key = words[clause.key_word];
    const std::uint64_t memory = clause.addresses->generation();
    if (__builtin_expect(line.key != key || line.memory != memory, 0)) {
      const FiringCell& cell = firing_of(*curcpu).cell(line.tag, mix(key));
      if (cell.tag != line.tag || cell.key != key || cell.memory != memory)
        return fire_steps<false>(line, arg0, arg1, arg2, arg3, arg4);
      cells = cell.cells;
    }
  }
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

// Of what fire_record() stores.
DTM_INLINE static std::uint64_t value_of(const QuickStore& store, const std::uint64_t* arguments,
                                         const SimThread& thread, std::uint64_t now,
                                         const ConsumerCpu& state) {
  const auto number = [](int value) { return static_cast<std::uint64_t>(value); };
  int of_thread = 0;
  switch (store.from) {
    case QuickStore::argument:
      return arguments[store.at];
    case QuickStore::thread_number:
      std::memcpy(&of_thread, reinterpret_cast<const std::byte*>(&thread) + store.at,
                  sizeof of_thread);
      return number(of_thread);
    case QuickStore::global:
      return std::atomic_ref(state.dif.globals[store.at]).load(std::memory_order_relaxed);
    case QuickStore::cpu:
      return number(curcpu->id);
    case QuickStore::time:
      return now;
    default:
      return store.constant;
  }
}

// Takes the place of the record that begin_record() began.
DTM_INLINE static std::byte* take_record(PrincipalBuffer& buffer, const QuickClause& clause,
                                         std::uint64_t now) {
  const std::size_t start = begin_record(buffer, clause, now);
  std::byte* record = buffer.active + start;
  __asm__("" : "+r"(record));  // one register, not a sum for each store
  buffer.used = start + clause.record;
  return record;
}

// The virtual clock of a clause: the deadman has taken the room when time passes its deadline.
DTM_INLINE static std::uint64_t virtual_now(const QuickClause& clause) {
  if (clause.clock->is_real()) __builtin_unreachable();  // choose_fire()
  return clause.clock->now();
}

// A clause that records `Count` arguments from `First` on, as they come. Saves no register.
template <bool Predicate, unsigned First, unsigned Count>
void Consumer::fire_arguments(const ProbeFiring& firing, std::uintptr_t arg0, std::uintptr_t arg1,
                              std::uintptr_t arg2, std::uintptr_t arg3, std::uintptr_t arg4) {
  FiringLine& line = line_of(firing);
  const QuickClause& clause = *line.clause;
  PrincipalBuffer& buffer = line.state->buffer;
  const std::uint64_t now = virtual_now(clause);
  if (!has_room(line, buffer)) return fire_steps<true>(line, arg0, arg1, arg2, arg3, arg4);
  const std::uint64_t arguments[kQuickArguments] = {arg0, arg1, arg2, arg3, arg4};
  if (Predicate && clause.predicate->simple_value(arguments) == 0) return;
  std::byte* place = take_record(buffer, clause, now) + kArgumentsOffset;
  for (unsigned i = 0; i < Count; ++i) std::memcpy(place + 8 * i, &arguments[First + i], 8);
}

// What fire_record() does not do.
[[gnu::cold, gnu::noinline]] void Consumer::fire_unusual(FiringLine& line,
                                                         const std::uint64_t* arguments) {
  fire_steps<true>(line, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]);
}

// A clause that records words at hand; `Common`: as QuickStore::is_common() says of all.
template <bool Predicate, bool Common>
void Consumer::fire_record(const ProbeFiring& firing, std::uintptr_t arg0, std::uintptr_t arg1,
                           std::uintptr_t arg2, std::uintptr_t arg3, std::uintptr_t arg4) {
  FiringLine& line = line_of(firing);
  const std::uint64_t arguments[kQuickArguments] = {arg0, arg1, arg2, arg3, arg4};
  const QuickClause& clause = *line.clause;
  ConsumerCpu& state = *line.state;
  PrincipalBuffer& buffer = state.buffer;
  const SimThread* thread = curcpu->thread;
  const std::uint64_t now = virtual_now(clause);
  if (!has_room(line, buffer)) return fire_unusual(line, arguments);
  if (__builtin_expect(thread == nullptr, 0)) return fire_unusual(line, arguments);
  if (Predicate && clause.predicate->simple_value(arguments) == 0) return;
  std::byte* const record = take_record(buffer, clause, now);
  for (const QuickStore& store : clause.stores) {
    std::byte* const place = record + store.offset;
    if (store.is_argument()) {
      std::memcpy(place, &arguments[store.at], 8);
    } else if (store.is_thread_number()) {
      std::memcpy(place, reinterpret_cast<const std::byte*>(thread) + store.at, 4);
    } else if (Common) {
      std::memcpy(place, &store.constant, 4);
    } else {
      store_bytes(place, value_of(store, arguments, *thread, now, state), store.size);
    }
  }
}

// What is known of a clause that has just fired: the next firing on this CPU takes `known`.
void Consumer::know(FiringCpu& firing, FiringLine& line, const QuickClause& clause,
                    ConsumerCpu& state, const std::uint64_t* words) {
  if (clause.has_cell) {
    const QuickStep& step = clause.steps[0];
    const QuickMemo& memo = memo_at(state, step.memo)[step.slot(words)];
    if (!state.aggregations.holds(memo.hint)) return;
    if (step.key_count == 1 && memo.memory == 0) return;
    line.cells = reinterpret_cast<std::uint64_t*>(state.aggregations.hinted(memo.hint));
    line.key = memo.key[0];
    line.memory = memo.memory;
    if (step.key_count == 1)
      firing.cell(line.tag, mix(line.key)) = {line.tag, line.key, line.memory, line.cells};
  }
  line.clause = &clause;
  line.state = &state;
  line.room = clause.room;
  line.fire = clause.known;
}

// Any clause, whatever is known of it.
template <bool Records>
void Consumer::fire_steps(const ProbeFiring& firing, std::uintptr_t arg0, std::uintptr_t arg1,
                          std::uintptr_t arg2, std::uintptr_t arg3, std::uintptr_t arg4) {
  FiringLine& line = line_of(firing);
  const Cpu& cpu = *curcpu;
  FiringCpu& of_cpu = firing_of(cpu);
  const QuickClause& clause = *static_cast<const QuickClause*>(line.context);
  const bool is_new = of_cpu.consumer != clause.consumer->cookie_;
  ConsumerCpu* state = of_cpu.state;
  if (__builtin_expect(is_new, 0)) {
    state =
        clause.consumer->cpus_[static_cast<std::size_t>(cpu.id)].load(std::memory_order_acquire);
  }
  if (__builtin_expect(state == nullptr, 0) || !ready(clause, *state, clause.consumer->activity_)) {
    return fire_callback(line, arg0, arg1, arg2, arg3, arg4);
  }
  if (__builtin_expect(is_new, 0)) {  // active: the states stay where they are
    of_cpu.consumer = clause.consumer->cookie_;
    of_cpu.state = state;
  }
  std::uint64_t words[kQuickWords];
  words[0] = arg0;
  words[1] = arg1;
  words[2] = arg2;
  words[3] = arg3;
  words[4] = arg4;
  if (Records || clause.needs_time) {
    words[kWordTimestamp] = clause.clock->now();
    if (Records && __builtin_expect(words[kWordTimestamp] > clause.consumer->watch_.deadline.load(
                                                                std::memory_order_relaxed),
                                    0)) {
      clause.consumer->become(Activity::killed);
      return;
    }
  }
  fill_words(clause, cpu, *state, words);
  if (clause.predicate && clause.predicate->value(words) == 0) return;
  PrincipalBuffer& buffer = state->buffer;
  const std::size_t start = Records ? begin_record(buffer, clause, words[kWordTimestamp]) : 0;
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
  if (Records) buffer.used = start + clause.record;
  if (clause.known != nullptr) know(of_cpu, line, clause, *state, words);
}

// The fire_arguments() that stores all this; null: none does.
template <bool Predicate>
ProbeCallback Consumer::arguments_writer(const std::vector<QuickStore>& stores) {
  static constexpr ProbeCallback writers[kQuickArguments][kQuickArguments] = {
      {&fire_arguments<Predicate, 0, 1>, &fire_arguments<Predicate, 0, 2>,
       &fire_arguments<Predicate, 0, 3>, &fire_arguments<Predicate, 0, 4>,
       &fire_arguments<Predicate, 0, 5>},
      {&fire_arguments<Predicate, 1, 1>, &fire_arguments<Predicate, 1, 2>,
       &fire_arguments<Predicate, 1, 3>, &fire_arguments<Predicate, 1, 4>},
      {&fire_arguments<Predicate, 2, 1>, &fire_arguments<Predicate, 2, 2>,
       &fire_arguments<Predicate, 2, 3>},
      {&fire_arguments<Predicate, 3, 1>, &fire_arguments<Predicate, 3, 2>},
      {&fire_arguments<Predicate, 4, 1>}};
  if (stores.empty()) return nullptr;
  const std::uint32_t first = stores[0].at;
  for (std::uint32_t i = 0; i < stores.size(); ++i) {
    const QuickStore& store = stores[i];
    if (!store.is_argument() || store.at != first + i || store.offset != kArgumentsOffset + 8 * i)
      return nullptr;
  }
  return writers[first][stores.size() - 1];
}

void choose_fire(QuickClause& clause) {
  clause.fire = clause.record != 0 ? &Consumer::fire_steps<true> : &Consumer::fire_steps<false>;
  if (clause.predicate && !clause.predicate->tests_arguments()) return;
  const bool predicate = clause.predicate.has_value();
  if (clause.record != 0) {
    if (clause.stores.size() != clause.steps.size() || clause.clock->is_real()) return;
    clause.known = predicate ? Consumer::arguments_writer<true>(clause.stores)
                             : Consumer::arguments_writer<false>(clause.stores);
    if (clause.known != nullptr) return;
    const bool common = std::all_of(clause.stores.begin(), clause.stores.end(),
                                    [](const QuickStore& store) { return store.is_common(); });
    clause.known =
        common
            ? (predicate ? &Consumer::fire_record<true, true> : &Consumer::fire_record<false, true>)
            : (predicate ? &Consumer::fire_record<true, false>
                         : &Consumer::fire_record<false, false>);
    return;
  }
  if (clause.steps.size() != 1 || !clause.sources.empty() || clause.needs_time ||
      clause.steps[0].key_count > 1) {
    return;
  }
  clause.has_cell = true;
  const QuickStep& step = clause.steps[0];
  clause.key_word = step.key_words[0];
  const auto choose = [&](auto with_predicate, auto keys) {
    switch (step.kind) {
      case QuickStep::count:
        clause.known = &Consumer::fire_one<with_predicate(), keys(), QuickStep::count>;
        break;
      case QuickStep::quantize_word:
        clause.known = &Consumer::fire_one<with_predicate(), keys(), QuickStep::quantize_word>;
        break;
      default:
        clause.known = &Consumer::fire_one<with_predicate(), keys(), QuickStep::aggregate>;
        break;
    }
  };
  using Zero = std::integral_constant<unsigned, 0>;
  using One = std::integral_constant<unsigned, 1>;
  if (predicate) {
    step.key_count == 0 ? choose(std::true_type(), Zero()) : choose(std::true_type(), One());
  } else {
    step.key_count == 0 ? choose(std::false_type(), Zero()) : choose(std::false_type(), One());
  }
}

}  // namespace dtmalloc::dtrace
