// SPDX-License-Identifier: BSD-2-Clause
// One consumer's state in the framework: its clauses on probes (ECBs), buffers, aggregations,
// variables and activity.
// Counterpart:  dtrace_state_t, dtrace_ecb_t
// Locking:      Framework::Impl::mutex for ecbs_, programs_ and the activity's changes by the
//               consumer. A firing reads the activity, its own ECB and the state of its CPU, all
//               without a lock.
// Invariants:   ecbs_[epid - 1]->epid == epid. An Ecb does not change once it is on a probe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "dtrace/core/aggregate.hpp"
#include "dtrace/core/buffer.hpp"
#include "dtrace/core/cleaner.hpp"
#include "dtrace/core/dynvar.hpp"
#include "dtrace/core/framework.hpp"
#include "dtrace/core/quick.hpp"
#include "dtrace/core/speculation.hpp"
#include "dtrace/core/thread_view.hpp"
#include "dtrace/dif/program.hpp"

namespace dtmalloc::dtrace {

enum class Activity : std::uint8_t {
  inactive,
  warmup,  // BEGIN runs
  active,
  draining,  // after exit()
  cooldown,  // END runs
  stopped,
  killed,  // by the deadman: the consumer was not heard of
};

// What a firing does for one value, in order.
enum class StepKind : std::uint8_t {
  eval,          // run for the side effects
  store,         // low bytes of the value into the record
  store_bytes,   // `size` bytes at the value
  store_string,  // the string at the value, zero-filled
  store_user,    // a fault: the bytes at the value are a process's, and no process has any
  store_memory,  // the length and the bytes of the pair at the value (memref), zero-filled
  stack,         // the kernel's stack, `size` bytes
  ustack,        // the process id, and no user frames
  user_address,  // the process id and the value
  constant,      // `constant` into the record
  argument,      // probe argument number `constant` into the record (the hidden ERROR clause)
  exit,          // store, and the activity changes
  aggregate,
  // Of a speculation's id.
  speculate,
  commit,
  discard,
  // Destructive; the values are arguments, nothing is recorded.
  panic,
  breakpoint,
  chill,
  raise,
  stop,
};

struct KeyStep {
  const VerifiedDif* dif = nullptr;
  ValueDesc desc;
  std::uint32_t size = 0;  // at most
};

struct Step {
  StepKind kind = StepKind::eval;
  const VerifiedDif* dif = nullptr;
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
  std::uint64_t constant = 0;
  std::uint32_t index = 1;  // of the action, in run-time errors
  // aggregate
  AggSpec aggregation;
  std::uint32_t memo = 0;  // offset of its QuickMemo in ConsumerCpu::memos, if `has_memo`
  bool has_memo = false;
  std::vector<KeyStep> keys;
  const VerifiedDif* argument = nullptr;
  const VerifiedDif* increment = nullptr;
};

// A datum of a record, for the printer.
struct Field {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
  ValueDesc desc;
};
struct RecordedAction {
  const Action* action = nullptr;
  std::vector<Field> fields;  // printf: one per value; printa: the aggregation ids; ...
};

enum class EcbRole : std::uint8_t {
  normal,
  begin,
  end,
  error,
  hidden_error,  // the consumer's own: its record becomes the message of a run-time error
};

// What an ECB needs whose record is too large for any buffer.
inline constexpr std::size_t kNeverFits = ~std::size_t{0} / 2;

// One clause on one probe: an enabled control block.
struct Ecb {
  Consumer* consumer = nullptr;
  const Probe* probe = nullptr;
  std::uint32_t epid = 0;
  EcbRole role = EcbRole::normal;
  std::uint32_t size = 0;       // of the record; 0: nothing is recorded
  std::size_t needed = 0;       // record and tuple
  std::uint32_t alignment = 4;  // of the record: 4 or 8
  std::uint32_t tuple = 0;      // where the tuple is built, from the record's start
  bool tokens = false;          // calls strtok()
  bool first_tokens = false;    // and is the first of its consumer on the probe to do so
  const VerifiedDif* predicate = nullptr;
  std::vector<Step> steps;
  std::vector<RecordedAction> recorded;
  std::shared_ptr<const Program> program;
  std::unique_ptr<QuickClause> quick;       // null: fire() interprets it
  const Clause* clause = nullptr;           // of `program`; null: the consumer's own
  mutable std::uint64_t records_read = 0;   // that the consumer has seen
  mutable std::uint64_t errors = 0;         // and so many run-time errors
  mutable std::atomic<std::size_t> cut{0};  // the deepest stack that stackframes has cut
};

struct ConsumerConfig {
  std::size_t bufsize = std::size_t{4} << 20;
  std::size_t aggsize = std::size_t{4} << 20;
  std::size_t dynvarsize = std::size_t{1} << 20;
  std::size_t stackframes = 20;
  std::uint32_t strsize = 256;
  bool resize = true;  // bufresize=auto: halve what the host refuses
  BufferPolicy policy = BufferPolicy::switch_;
  int cpu = -1;  // record on this CPU only
  std::size_t nspec = 1;
  std::size_t specsize = std::size_t{32} << 10;
  std::uint64_t cleanrate = kDefaultCleanRate;
  bool destructive = false;
};

// A firing as the clauses of one probe see it.
struct Firing {
  Cpu* cpu = nullptr;
  SimThread* thread = nullptr;
  bool interrupt = false;  // a timer's: whatever thread runs there
  const Ecb* ecb = nullptr;
  const std::uint64_t* arguments = nullptr;
  std::uint32_t argument_count = 0;
  bool stamped = false;  // `timestamp` is this clause's
  std::uint64_t timestamp = 0;
};

struct ConsumerCpu {
  PrincipalBuffer buffer;
  AggBuffer aggregations;
  SpecParts speculative;
  ReservedMemory memos;  // QuickMemos of the steps, Consumer::memo_limit_ of them
  DynamicCpu dynamic;
  DifState dif;
  std::uint32_t fault_action = 0;  // of the last fault inside an aggregation
  std::vector<std::uint64_t> locals;
  ReservedMemory local_bytes;
  ReservedMemory global_view;  // DifState::global_bytes
  ReservedMemory strtok_text;  // DifState::strtok_text, and that of dtrace:::ERROR
  ThreadView thread;           // DifState::thread_view
};

// Where a record that needs this alignment begins behind what is used.
inline std::size_t align_record(std::size_t used, std::uint32_t alignment) {
  return (used + alignment - 1) & ~std::size_t{alignment - 1};
}
// The memo at an offset.
inline QuickMemo* memo_at(const ConsumerCpu& state, std::uint32_t offset) {
  return reinterpret_cast<QuickMemo*>(state.memos.data() + offset);
}

class Consumer {
 public:
  explicit Consumer(Framework::Impl& framework);
  ~Consumer();  // removes its ECBs
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;

  ConsumerConfig config;

  // Makes an ECB for every probe that matches a clause; the number of pairs. The program is
  // retained: probes that appear later are matched too.
  std::size_t enable(std::shared_ptr<const Program> program, const ProgramSpace& space);
  // Buffers, the hidden ERROR clause, BEGIN. 0 or an errno: EACCES, destructive actions without
  // `destructive`; E2BIG, END does not fit; ENOSPC, what is recorded does not. May lower the sizes
  // in `config`, raises bufsize to what aggregations need, and brings cleanrate within its limits.
  int go(const ProgramSpace& space, SimThread* thread);
  // END, once; afterwards nothing fires.
  void stop(SimThread* thread);
  void close();  // removes the ECBs

  Activity activity() const { return activity_.load(std::memory_order_acquire); }
  std::uint64_t cookie() const { return cookie_; }
  const Ecb* ecb(std::uint32_t epid) const;
  bool has_programs() const { return !programs_.empty(); }
  bool has_aggregations() const { return has_aggregations_; }
  bool speculates() const { return speculates_; }
  // The CPU that BEGIN and END run on.
  int home_cpu() const;
  void match_new_probes();
  // The notes of the probes with ECBs, each once, in order of probes; then those of probes that a
  // clause would match if they were there.
  std::vector<std::string> notes() const;

  // --- the consumer's passes
  // What dtrace(1) asks for at every status check. The consumer has been heard of; it will be
  // again within `interval`.
  struct Status {
    std::uint64_t dynamic_drops = 0, rinsing_drops = 0, dirty_drops = 0;
    std::uint64_t speculative_drops = 0, busy_speculations = 0, unavailable_speculations = 0;
    std::uint64_t error_drops = 0;
    bool filled = false;  // a buffer of policy fill is full
  };
  Status status(std::uint64_t interval);
  std::vector<int> full_cpus() const;  // whose buffers of policy fill are full
  DynamicSpace::Drops drops(const VariableDesc& variable) const {
    return dynamic_.drops(variable.scope, variable.id);
  }
  // The deadman waits for that time before it counts.
  void hear_until(std::uint64_t time);
  // Whose callout is the passes': a firing after rest() clears `idle`.
  Watch& watch() { return watch_; }
  // Whether anything fired since the last rest(); the next firing will tell the watch.
  bool rest();
  struct Taken {
    PrincipalBuffer::Taken records;
    std::uint64_t time = 0;  // the clock when the buffer was exchanged
  };
  // Takes what a CPU's principal buffer has; it is valid until the next call for that CPU.
  Taken take_records(int cpu);
  // Exchanges a CPU's aggregations and hands them out; returns the drops so far.
  std::uint64_t take_aggregations(int cpu,
                                  const std::function<void(const AggBuffer::Element&)>& function);

  // --- probe.cpp
  void fire(Ecb& ecb, Firing& firing);
  // The same for a clause with `first_tokens`, at which a firing begins as far as strtok() goes.
  void fire_first(Ecb& ecb, Firing& firing);
  // What chain entries call: of the Ecb of their FiringLine's entry.
  static void fire_first_callback(const ProbeFiring& firing, std::uintptr_t arg0,
                                  std::uintptr_t arg1, std::uintptr_t arg2, std::uintptr_t arg3,
                                  std::uintptr_t arg4);
  static void fire_callback(const ProbeFiring& firing, std::uintptr_t arg0, std::uintptr_t arg1,
                            std::uintptr_t arg2, std::uintptr_t arg3, std::uintptr_t arg4);
  // --- quick_fire.cpp: with a QuickClause as context. `Keys`: words that the keys of the only
  // step depend on.
  template <bool Predicate, unsigned Keys, QuickStep::Kind Kind>
  static void fire_one(const ProbeFiring& firing, std::uintptr_t arg0, std::uintptr_t arg1,
                       std::uintptr_t arg2, std::uintptr_t arg3, std::uintptr_t arg4);
  template <bool Predicate, unsigned First, unsigned Count>
  static void fire_arguments(const ProbeFiring& firing, std::uintptr_t arg0, std::uintptr_t arg1,
                             std::uintptr_t arg2, std::uintptr_t arg3, std::uintptr_t arg4);
  template <bool Predicate>
  static ProbeCallback arguments_writer(const std::vector<QuickStore>& stores);
  static void fire_unusual(FiringLine& line, const std::uint64_t* arguments);
  template <bool Predicate, bool Common>
  static void fire_record(const ProbeFiring& firing, std::uintptr_t arg0, std::uintptr_t arg1,
                          std::uintptr_t arg2, std::uintptr_t arg3, std::uintptr_t arg4);
  template <bool Records>
  static void fire_steps(const ProbeFiring& firing, std::uintptr_t arg0, std::uintptr_t arg1,
                         std::uintptr_t arg2, std::uintptr_t arg3, std::uintptr_t arg4);
  // The state of a CPU, made when it is not there yet.
  ConsumerCpu* cpu_state(Cpu& cpu) {
    ConsumerCpu* state = cpus_[static_cast<std::size_t>(cpu.id)].load(std::memory_order_acquire);
    return __builtin_expect(state != nullptr, 1) ? state : join(cpu);
  }

 private:
  struct RetainedProgram {
    std::shared_ptr<const Program> program;
    std::vector<AggregationDesc> aggregations;
    ProbeId seen = 0;  // probes up to this one were matched
  };
  std::size_t add_ecbs(const RetainedProgram& program, ProbeId after);
  std::unique_ptr<Ecb> make_ecb(const std::shared_ptr<const Program>& program, const Clause& clause,
                                const std::vector<AggregationDesc>& aggregations, Probe& probe);
  void attach(std::unique_ptr<Ecb> ecb, Probe& probe);
  bool wants(const ProbeDescription& probe) const;  // a clause would match it
  bool attach_hidden_error();
  // `refused`: the size in config that the host did not grant, null when none is to blame.
  ConsumerCpu* join(Cpu& cpu, std::size_t** refused = nullptr);
  int reserve_all();
  const std::uint32_t* record_sizes() const {
    return record_sizes_.load(std::memory_order_acquire);
  }
  void know_size(const Ecb& ecb);
  std::size_t end_needs() const;  // what END's records may take
  void clean();
  void become(Activity activity);
  int reserve_dynamic(const ProgramSpace& space);
  void overdue();
  bool make_room(const Ecb& ecb, PrincipalBuffer& buffer, std::size_t* start);
  void fault(const Ecb& ecb, Firing& firing, ConsumerCpu& state, std::uint32_t action);
  bool aggregate(const Step& step, ConsumerCpu& state, std::byte* tuple, QuickMemo* memo);
  static void prepare(const Ecb& ecb, Firing& firing, ConsumerCpu& state, std::size_t start);
  static void know(FiringCpu& firing, FiringLine& line, const QuickClause& clause,
                   ConsumerCpu& state, const std::uint64_t* words);
  bool aggregate_anew(const QuickClause& clause, const QuickStep& step, ConsumerCpu& state,
                      const std::uint64_t* words);
  static bool aggregate_quickly(const QuickClause& clause, const QuickStep& step,
                                ConsumerCpu& state, const std::uint64_t* words);
  // False: the clause ends here, as a fault if dif.fault says so.
  bool act(const Step& step, std::uint64_t value, const Ecb& ecb, Firing& firing,
           ConsumerCpu& state);
  static std::uint64_t speculation(DifState& state);
  // --- speculation.cpp
  // Where the rest of the clause records. Null: it does not run.
  std::byte* speculate(const Ecb& ecb, ConsumerCpu& state, std::uint32_t id, RecordSpace** space,
                       std::size_t* start);
  // False: there is no such speculation.
  bool commit(ConsumerCpu& state, std::uint32_t id);
  bool discard(ConsumerCpu& state, std::uint32_t id);
  void copy_committed(ConsumerCpu& state, SpecPart& part);
  void clean_speculations();

  Framework::Impl& framework_;
  std::uint64_t cookie_;
  std::atomic<Activity> activity_{Activity::inactive};
  std::vector<std::unique_ptr<Ecb>> ecbs_;
  std::vector<RetainedProgram> programs_;
  std::set<ProbeId> unpublished_;  // whose chains lack entries until go()
  bool has_aggregations_ = false;
  bool has_tokens_ = false;  // a clause calls strtok()
  bool speculates_ = false;
  bool destructive_ = false;  // an ECB has a destructive action
  std::uint32_t memos_ = 0;
  std::uint32_t memo_limit_ = ~std::uint32_t{0};  // known from go() on
  DynamicSpace dynamic_;
  bool has_hidden_error_ = false;
  std::vector<std::uint64_t> globals_;
  ReservedMemory global_bytes_;
  std::string strings_;  // of all objects
  VariableLayout global_layout_, local_layout_;
  // Of the ECBs by EPID, for who walks over records. Grown by replacement; old ones stay.
  std::atomic<const std::uint32_t*> record_sizes_{nullptr};
  std::vector<std::vector<std::uint32_t>> size_tables_;
  Speculations speculations_;
  Cleaner cleaner_;
  Watch watch_;
  std::atomic<std::uint64_t> error_drops_{0};
  std::mutex join_mutex_;  // never held while another lock is taken or a CPU is waited for
  std::vector<std::unique_ptr<ConsumerCpu>> cpu_states_;
  std::array<std::atomic<ConsumerCpu*>, MAXCPU> cpus_{};
};

}  // namespace dtmalloc::dtrace
