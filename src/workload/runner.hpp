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

#include "workload/random.hpp"

namespace dtmalloc::workload {

domainset to_domainset(const Placement& placement);  // placement.cpp

struct Slot {
  void* addr = nullptr;
  Index type = kNone;
  bool set = false;
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

// One simulated thread of the workload.
struct Thread {
  Random random;
  std::array<std::int64_t, kMaxDepth + 1> loops{};  // values of the loop variables, by depth
  int depth = 0;
  SimThread* self = nullptr;
  Index site = kNone;
  int contexts = 0;  // critical, interrupt and nosleep blocks it is in
};

struct Runner::State : std::enable_shared_from_this<Runner::State> {
  State(const Workload& w, Kernel& k, RunHooks h);

  // --- run.cpp
  void statements(Thread& thread, const std::vector<Op>& ops, std::size_t from);
  void operation(Thread& thread, const Op& op);
  void allocate(Thread& thread, const Op& op);
  void* place(Thread& thread, const Op& op, std::uint64_t size, malloc_type* mtp);
  void release(Thread& thread, const Op& op);
  void reallocate(Thread& thread, const Op& op);
  void repeat(Thread& thread, const Op& op);
  void context(Thread& thread, const Op& op);
  void spawn(Thread& thread, const Op& op);
  void thread_body(Thread thread, const Op& op);
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
  void attend();  // unwinds when the run ends here
  void wait(Thread& thread, const Op& op);
  void end_all();
  void note_panic(const Thread& thread, const KernelPanic& panic);
  void wake(NameStore& store);
  void set_site(Thread& thread, const Op& op);
  malloc_type* type_of(const Op& op, Index index);
  void* shifted(Thread& thread, const Op& op, void* addr);
  Slot* find(Thread& thread, const Op& op, const BlockRef& ref);
  Slot& get(Thread& thread, const Op& op, const BlockRef& ref);  // waits until it is set
  void put(Thread& thread, const Op& op, const BlockRef& ref, void* addr, Index type);
  const Slot* slot(std::string_view name) const;  // "x[3,4]"; null: not set
  std::string name_of(Thread& thread, const Op& op, const BlockRef& ref);

  // --- evaluate.cpp
  std::int64_t evaluate(Thread& thread, const Op& op, const Value& value);
  std::int64_t evaluate(Thread& thread, const Op& op, Index expr);
  std::int64_t binary(Thread& thread, const Op& op, const Expr& expr);
  std::int64_t draw(Thread& thread, const Op& op, const Expr& expr);
  std::int64_t ask_kernel(Thread& thread, const Op& op, const Expr& expr);
  std::uint64_t size_value(Thread& thread, const Op& op, const Value& value, const char* what);
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
  bool virtual_clock;
  Thread main;
  std::vector<NameStore> names;
  std::vector<malloc_type*> types;
  std::vector<uma_zone*> zones;  // null: not made yet, or destroyed
  std::map<std::int64_t, std::vector<std::uint64_t>> zipf_tables;
  Outcome outcome;
  std::uint64_t operations = 0;
  int alive = 1;          // threads that may still set a name
  bool threaded = false;  // some thread was spawned
  bool ending = false;    // an error, a panic or attend() ends the run
  bool again = false;     // run_again(): expects do not count
};

}  // namespace dtmalloc::workload
