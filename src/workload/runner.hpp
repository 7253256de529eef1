// SPDX-License-Identifier: BSD-2-Clause
// What a run holds: blocks by name, registered types, the threads' own random streams.
// Locking:      none: of the threads of a deterministic machine one runs at a time
// Invariants:   an index is in `dense` iff it is below its size, else in `sparse`

#pragma once

#include <array>
#include <dtmalloc/workload/run.hpp>
#include <map>
#include <unordered_map>
#include <vector>

#include "workload/owners.hpp"
#include "workload/random.hpp"

namespace dtmalloc::workload {

domainset to_domainset(const Placement& placement);  // placement.cpp

inline constexpr Index kUnset = kNone - 1;
// Operations between two looks at the clock's check.
inline constexpr std::uint64_t kLookMask = 1023;

struct Slot {
  void* addr = nullptr;
  Owners::Entry* owner = nullptr;  // who lives: of `addr`, allocated under `type`
  Index type = kUnset;             // kNone: of a zone
  bool is_set() const { return type != kUnset; }
};

struct IndexPair {
  std::int64_t first, second;
  bool operator==(const IndexPair&) const = default;
};
struct IndexHash {
  std::size_t operator()(const IndexPair& p) const {
    return static_cast<std::size_t>((static_cast<std::uint64_t>(p.first) * 0x9e3779b97f4a7c15ull) ^
                                    static_cast<std::uint64_t>(p.second));
  }
};

// All blocks of one name.
struct NameStore {
  Slot scalar;
  std::vector<Slot> dense;
  std::unordered_map<IndexPair, Slot, IndexHash> sparse;
  int waiters = 0;  // threads asleep until it is set
};

// The workload is wrong; unwinds to run().
struct RunError {
  Diagnostic diagnostic;
};
// Somebody else ended the run; unwinds to run().
struct RunEnd {};

// Numbers of one statement: two indexes of each of two blocks.
inline constexpr std::size_t kScratchVariables = 4;

// One simulated thread of the workload.
struct Thread {
  Random random;
  // Values of the loop variables, by depth; behind them those that a recorder evaluated.
  std::array<std::int64_t, kMaxDepth + 1 + kScratchVariables> loops{};
  int depth = 0;
  SimThread* self = nullptr;
  Index site = kNone;
  Where where = {};
  int contexts = 0;  // critical, interrupt and nosleep blocks it is in
};

// A statement of a body that is run over and over. What its malloc and its free need is looked up
// once; any other takes the way of step().
struct QuickOp {
  enum class Kind : std::uint8_t { any, malloc, free };
  const Op* op;
  Slot* slot = nullptr;
  malloc_type* mtp = nullptr;  // malloc
  std::uint64_t size = 0;      // malloc
  Index type = kNone;          // malloc
  std::int32_t flags = 0;
  Index site = kNone;
  std::uint32_t line = 0;
  Kind kind = Kind::any;
};

// Sees each statement, and runs it by State::perform().
struct OperationLog {
  virtual ~OperationLog() = default;
  virtual void operation(Runner::State& state, Thread& thread, const Op& op) = 0;
};

struct Runner::State : std::enable_shared_from_this<Runner::State> {
  State(const Workload& w, Kernel& k, RunHooks h);

  // --- quick.cpp
  void repeat(Thread& thread, const Op& op);
  const std::vector<QuickOp>& prepare(Index body);
  void quick_malloc(Thread& thread, const QuickOp& quick);
  void quick_free(Thread& thread, const QuickOp& quick);
  // --- run.cpp
  // Runs `body`, and the threads that it leaves; what ends it goes into the outcome.
  Outcome guarded(const std::function<void()>& body);
  void statements(Thread& thread, const std::vector<Op>& ops, std::size_t from);
  void step(Thread& thread, const Op& op);
  void perform(Thread& thread, const Op& op);    // what step() does once
  void run_op(Thread& thread, const Op& op);     // on the CPU where the thread is
  void operation(Thread& thread, const Op& op);  // Requires: set_site() was called
  void allocate(Thread& thread, const Op& op);
  void* place(Thread& thread, const Op& op, std::uint64_t& size, malloc_type* mtp);
  void release(Thread& thread, const Op& op, const Slot& slot);
  void reallocate(Thread& thread, const Op& op);
  void context(Thread& thread, const Op& op);
  void expect(Thread& thread, const Op& op);
  // --- run_sysctl.cpp
  void sysctl(Thread& thread, const Op& op);
  void write_sysctl(const Op& op, const SysctlDecl& decl);
  void poke(Thread& thread, const Op& op);
  // --- run.cpp
  void type_statement(const Op& op);
  // --- run_zones.cpp
  void zone_operation(Thread& thread, const Op& op);
  void make_zone(const Op& op);
  void reclaim(Thread& thread, const Op& op);
  uma_zone* zone_of(const Op& op);
  std::uint32_t zone_flags_of(const Op& op) const;
  Result<void> history(const Op& op);
  void after_operation();
  void after_usual();
  void after_unusual();
  void attend();  // unwinds when the run ends here
  void set_site(Thread& thread, std::uint32_t line, Index site);
  void change_site(Thread& thread, Index site);
  void go_to_own_cpu(Thread& thread, const Op& op);
  malloc_type* type_of(const Op& op, Index index);
  [[noreturn]] void unregistered(const Op& op, Index type) const;
  void* shifted(Thread& thread, const Op& op, void* addr);
  Slot* find(Thread& thread, const Op& op, const BlockRef& ref);
  Slot* find_indexed(Thread& thread, const Op& op, const BlockRef& ref);
  Slot& get(Thread& thread, const Op& op, const BlockRef& ref);  // waits until it is set
  void wait_for(Thread& thread, const Op& op, const BlockRef& ref);
  Slot& set(Thread& thread, const Op& op, void* addr, Index type);
  // Makes a block what a name holds; no statement does.
  void bring(Thread& thread, const Op& op, const BlockRef& ref, void* addr, Index type);
  void put(Thread& thread, const Op& op, void* addr, std::uint64_t request);
  Slot& make(Thread& thread, const Op& op, const BlockRef& ref);  // one with indexes, to be set
  const Slot* slot(std::string_view name) const;                  // "x[3,4]"; null: not set
  std::string name_of(Thread& thread, const Op& op, const BlockRef& ref);
  // --- owners.cpp
  void keep_owners();
  void enter_actor(Thread& thread);
  void begin_ledger();  // from the owners; there are none from then on
  Owners::Event event(const Thread& thread, const Op& op);
  void account(Slot& slot, void* addr, std::uint64_t request, const Thread& thread, const Op& op);
  void reallocated(Thread& thread, const Op& op, Slot& source, const Slot& old, void* addr,
                   std::uint64_t request);
  Owners::Entry* ending(const Slot& slot, Index type);
  // --- run_threads.cpp
  void spawn(Thread& thread, const Op& op);
  void thread_body(Thread thread, const Op& op);
  void live(const Thread& thread, const std::function<void()>& body);
  void note_panic(const Thread& thread, const KernelPanic& panic);
  void end_all();
  void wake(NameStore& store);
  void join(const Thread& thread, const Op& op);
  void wait(Thread& thread, const Op& op);

  // --- evaluate.cpp
  std::int64_t evaluate(Thread& thread, const Op& op, const Value& value);
  // A loop's variable without a call.
  std::int64_t evaluate(Thread& thread, const Op& op, Index index) {
    const Expr& expr = workload.exprs[index];
    if (expr.kind == Expr::Kind::variable)
      return thread.loops[static_cast<std::size_t>(expr.number)];
    return evaluate_expr(thread, op, expr);
  }
  std::int64_t evaluate_expr(Thread& thread, const Op& op, const Expr& expr);
  std::int64_t binary(Thread& thread, const Op& op, const Expr& expr);
  std::int64_t draw(Thread& thread, const Op& op, const Expr& expr);
  std::int64_t ask_kernel(Thread& thread, const Op& op, const Expr& expr);
  std::uint64_t size_value(Thread& thread, const Op& op, const Value& value, const char* what) {
    if (value.expr == kNone) return static_cast<std::uint64_t>(value.number);
    return size_expr(thread, op, value, what);
  }
  std::uint64_t size_expr(Thread& thread, const Op& op, const Value& value, const char* what);
  // The terms of a condition that are not constants, with their values, for messages.
  std::string explain(Thread& thread, const Op& op, Index expr);
  ZoneStats zone_stats_of(const Op& op, const Expr& expr) const;
  // The caret under the statement, under a term, or under an operand that is a term or a constant.
  [[noreturn]] void fail(const Op& op, const char* tag, std::string message,
                         std::vector<std::string> near = {}) const;
  [[noreturn]] void fail(const Op& op, const Expr& term, const char* tag, std::string message,
                         std::vector<std::string> near = {}) const;
  [[noreturn]] void fail(const Op& op, const Value& value, const char* tag, std::string message,
                         std::vector<std::string> near = {}) const;

  // --- notes.cpp
  void notes() const;  // at the end of boot
  void note_guarded(Diagnostic d, const std::string& name) const;

  // --- check.cpp
  Result<void> check();  // at the end of boot
  void check(const Op& op);
  void check_expr(const Op& op, Index expr);
  bool is_constant(Index expr) const;
  bool is_constant(const Value& value) const;
  void check_domains(const Op& op) const;
  std::vector<std::string> zone_names() const;  // of UMA and of the workload
  std::vector<std::string> near_zones(const std::string& name) const;
  // The operand, if this machine has it.
  int cpu_of(const Op& op, const Value& value, std::int64_t n) const;
  int own_cpu_of(const Op& op) const;  // cpu=N
  int domain_of(const Op& op, const Value& value, std::int64_t n) const;
  std::uint8_t byte_of(const Op& op, std::int64_t n) const;
  std::int64_t count_of(const Op& op, std::int64_t n) const;
  [[noreturn]] void refuse_zone(const Op& op) const;
  [[noreturn]] void refuse_sysctl(const Op& op) const;

  const Workload& workload;
  Kernel& kernel;
  RunHooks hooks;
  CpuSet& cpus;
  Clock& clock;
  std::uint64_t op_cost;
  const std::atomic<bool>* attention;  // never null
  Thread main;
  std::vector<NameStore> names;
  std::vector<malloc_type*> types;
  std::vector<uma_zone*> zones;  // null: not made yet, or destroyed
  std::map<std::int64_t, std::vector<std::uint64_t>> zipf_tables;
  std::vector<std::vector<QuickOp>> quick;  // by body; empty: not prepared
  std::unique_ptr<Owners> owners;           // null: nobody asked, or the ledger does it
  Outcome outcome;
  OperationLog* log = nullptr;  // set by use_log()
  std::uint64_t operations = 0;
  int alive = 1;  // threads that may still set a name
  // What to look at after each operation beside the clock; 0: nothing.
  enum Unusual : std::uint8_t {
    kRealClock = 1,
    kThreaded = 2,  // some thread was spawned
    kEnding = 4,    // an error, a panic or attend() ends the run
    kLogged = 8,    // there is a log: each statement goes to it
  };
  std::uint8_t unusual = 0;
  bool again = false;  // run_again(): expects do not count
  // Those of RunHooks::no_probe_sites, or malloc(9) and free(9).
  void* (*malloc_function)(std::size_t, malloc_type*, int);
  void (*free_function)(void*, malloc_type*);
  bool threaded() const { return (unusual & kThreaded) != 0; }
  bool ending() const { return (unusual & kEnding) != 0; }
  void end() { unusual |= kEnding; }
  void use_log(OperationLog& to) {
    log = &to;
    unusual |= kLogged;
  }
};

#define DTM_RUN_INLINE __attribute__((always_inline)) inline

// --- what each operation does, without a call

DTM_RUN_INLINE Slot* Runner::State::find(Thread& thread, const Op& op, const BlockRef& ref) {
  if (ref.first != kNone) return find_indexed(thread, op, ref);
  Slot& slot = names[ref.name].scalar;
  return slot.is_set() ? &slot : nullptr;
}

DTM_RUN_INLINE Slot& Runner::State::get(Thread& thread, const Op& op, const BlockRef& ref) {
  Slot* slot;
  while ((slot = find(thread, op, ref)) == nullptr) wait_for(thread, op, ref);
  return *slot;
}

// What an operation returned becomes its target's; `type`: kNone is a zone's.
DTM_RUN_INLINE Slot& Runner::State::set(Thread& thread, const Op& op, void* addr, Index type) {
  NameStore& store = names[op.target.name];
  Slot& slot = op.target.first == kNone ? store.scalar : make(thread, op, op.target);
  slot.addr = addr;
  slot.type = type;
  if (store.waiters != 0) wake(store);
  return slot;
}

DTM_RUN_INLINE Owners::Event Runner::State::event(const Thread& thread, const Op& op) {
  const std::uint64_t time = clock.now();
  return {&op, operations, time, thread.where};
}

// Requires: there are owners.
DTM_RUN_INLINE void Runner::State::account(Slot& slot, void* addr, std::uint64_t request,
                                           const Thread& thread, const Op& op) {
  if (addr != nullptr)
    owners->allocated(slot.owner, addr, request, event(thread, op));
  else
    owners->forget(slot.owner);
}

DTM_RUN_INLINE void Runner::State::put(Thread& thread, const Op& op, void* addr,
                                       std::uint64_t request) {
  Slot& slot = set(thread, op, addr, op.type);
  if (owners != nullptr) account(slot, addr, request, thread, op);
}

// Before a free under a type: the entry that it will end. Null: nobody keeps account, or not any
// more; or there is no block.
DTM_RUN_INLINE Owners::Entry* Runner::State::ending(const Slot& slot, Index type) {
  if (owners == nullptr || slot.addr == nullptr) return nullptr;
  if (slot.owner != nullptr && slot.owner->lives() && slot.type == type) return slot.owner;
  begin_ledger();
  return nullptr;
}

DTM_RUN_INLINE malloc_type* Runner::State::type_of(const Op& op, Index index) {
  malloc_type* mtp = types[index];
  if (mtp == nullptr) unregistered(op, index);
  return mtp;
}

DTM_RUN_INLINE void Runner::State::set_site(Thread& thread, std::uint32_t line, Index site) {
  thread.self->line = line;
  if (thread.site != site) change_site(thread, site);
}

DTM_RUN_INLINE void Runner::State::after_operation() {
  if (unusual != 0)
    after_unusual();
  else
    after_usual();
}

// Requires: nothing is unusual.
DTM_RUN_INLINE void Runner::State::after_usual() {
  const bool went_on = clock.advance(op_cost);
  if (!went_on || attention->load(std::memory_order_relaxed) ||
      ((operations & kLookMask) == 0 && clock.interrupted())) [[unlikely]]
    attend();
}

}  // namespace dtmalloc::workload
