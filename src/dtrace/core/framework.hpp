// SPDX-License-Identifier: BSD-2-Clause
// The framework's own structures: providers, probes, and the chain of what is enabled on a probe.
// Counterpart:  dtrace_impl.h
// Locking:      everything is guarded by `mutex` but for what a firing reads: Cpu::dtrace,
//               `firing`, `table`, its slots and the chains. Those are replaced, never changed;
//               what was replaced is freed after forget_lines() and CpuSet::synchronize().
//               `mutex` is recursive because providers are called with it held and call back.
// Invariants:   probes[id - 1] is probe id; a slot is null exactly when its probe has no entries.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <dtmalloc/dtrace/provider.hpp>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace dtmalloc::dtrace {

class Consumer;
class KernelSymbols;
struct ConsumerCpu;
struct Ecb;
struct QuickClause;

// An acquire load, if compiler_barrier() follows before what depends on it. On x86 every load is
// one; as a plain access it becomes an operand of the instruction that uses it, which compilers
// deny to atomics. Checkers see the atomic.
template <typename T>
[[gnu::always_inline]] inline T acquire(const std::atomic<T>& word) {
#if defined(__x86_64__) && !defined(DTM_ATOMIC_WORDS)
  using Plain __attribute__((may_alias)) = T;
  static_assert(sizeof(std::atomic<T>) == sizeof(T));
  return *reinterpret_cast<const Plain*>(&word);
#else
  return word.load(std::memory_order_acquire);
#endif
}
[[gnu::always_inline]] inline void compiler_barrier() { __asm__ volatile("" : : : "memory"); }

struct ProviderEntry {
  ProviderId id = 0;
  Framework::Impl* framework = nullptr;
  std::string name;
  ProviderAttributes attributes{};
  std::uint32_t privileges = 0;
  Provider* ops = nullptr;
  bool invalid = false;  // unregistered
  bool defunct = false;  // nothing matches its probes
};

// What happens when the probe fires.
struct ChainEntry {
  ProbeCallback fire = nullptr;  // a D clause's: with a FiringLine
  void* context = nullptr;       // of `fire`
  Ecb* ecb = nullptr;            // null: a C++ callback
  EnablingId enabling = 0;       // of a C++ callback
  Consumer* consumer = nullptr;  // of a D clause
  std::uint32_t number = 0;      // of its line: the probe's id if it is the only one
};

// The published, immutable form of Probe::entries.
struct Chain {
  ChainEntry head;  // what a firing calls: the only entry, or what calls them all
  std::uint32_t count = 0;
  ChainEntry entries[1];  // `count` of them

  // `numbers`: the last number given to an entry that is one of several.
  static Chain* make(ProbeId id, const std::vector<ChainEntry>& entries, std::uint32_t& numbers);
  static void destroy(const Chain* chain);
};

// A probe name where a D program can read it.
struct SimulatedString {
  std::string_view text;
  std::uint64_t address = 0;
};

// Numbers of entries that are one of several begin here, above those of probes.
inline constexpr std::uint32_t kEntryNumbers = 1U << 31;
inline constexpr int kMaxArguments = 32;  // whose types a provider is asked for

struct Probe {
  ProbeId id = kNoProbe;
  ProviderEntry* provider = nullptr;
  SimulatedString provider_name, module, function, name;
  int aframes = 0;    // functions that the machine is in and that the stack does not show
  int fires_in = -1;  // KernelFunction that fires it without a frame of its own; -1: none
  void* parg = nullptr;
  std::uint32_t pointer_arguments = 0;  // bit i: arg i is a kernel pointer
  bool arguments_known = false;         // pointer_arguments is filled
  std::vector<ChainEntry> entries;
};

// Of a chain of several, its head's (probe.cpp).
void fire_chain(const ProbeFiring& firing, std::uintptr_t arg0, std::uintptr_t arg1,
                std::uintptr_t arg2, std::uintptr_t arg3, std::uintptr_t arg4);

// Probe id -> chain.
struct ProbeTable {
  explicit ProbeTable(std::size_t size)
      : size(size), slots(new std::atomic<const Chain*>[size]()) {}
  std::size_t size;  // ids below this
  std::unique_ptr<std::atomic<const Chain*>[]> slots;
};

// What one CPU knows of an entry that has fired there: all that the next firing needs. Zeroes:
// nothing.
struct alignas(64) FiringLine : ProbeFiring {
  std::uint64_t tag;          // FiringCpu::version and the entry's number; else: unknown
  ProbeCallback fire;         // ChainEntry::fire, or better once more is known
  const QuickClause* clause;  // this and what follows: once it has fired (Consumer::know)
  ConsumerCpu* state;
  std::size_t room;         // of the clause
  std::uint64_t* cells;     // of an aggregation: the element that was counted last
  std::uint64_t key;        // of that element, if it has one
  std::uint64_t memory;     // AddressMap::generation() of that time
  const ChainEntry* entry;  // Chain::head: of that chain
};

// The line that a clause's or a chain's `fire` was called with.
inline FiringLine& line_of(const ProbeFiring& firing) {
  return const_cast<FiringLine&>(static_cast<const FiringLine&>(firing));
}

// The same of other elements of an aggregation.
struct FiringCell {
  std::uint64_t tag;  // FiringLine::tag
  std::uint64_t key;
  std::uint64_t memory;
  std::uint64_t* cells;
};

// What one CPU's firings read: Cpu::dtrace. Large; what is not used is not touched.
struct FiringCpu {
  static constexpr std::uint64_t kVersion = std::uint64_t{1} << 32;
  static constexpr unsigned kLines = 4096, kCells = 256;

  // The owner's. Not written when it is made: it lies in memory of zeroes (make()).
  FiringLine lines[kLines];
  FiringCell found[kCells];
  // Above 32 bits; grows with every change of chains, of a consumer's activity and of where
  // aggregations are, so that no older line counts.
  std::atomic<std::uint64_t> version{kVersion};
  std::atomic<std::size_t> size{0};  // that was read: has its slots
  std::atomic<const std::atomic<const Chain*>*> slots{nullptr};
  // The owner's: the consumer that recorded last, and its state.
  std::uint64_t consumer = 0;  // Consumer::cookie()
  ConsumerCpu* state = nullptr;
  Framework::Impl* framework = nullptr;

  FiringLine& line(std::uint32_t number) { return lines[number % kLines]; }
  FiringCell& cell(std::uint64_t tag, std::uint64_t mixed_key) {
    return found[(tag + mixed_key) % kCells];
  }
  // Any thread's.
  void forget() { version.fetch_add(kVersion, std::memory_order_seq_cst); }

  static FiringCpu* make();  // null: the host refuses
  struct Release {
    void operator()(FiringCpu* cpu) const;
  };
};

// Names interned in blocks that the address map knows, so that their number does not matter there.
class StringArena {
 public:
  explicit StringArena(AddressMap& addresses) : addresses_(addresses) {}
  ~StringArena();
  StringArena(const StringArena&) = delete;
  StringArena& operator=(const StringArena&) = delete;
  SimulatedString intern(std::string_view text);

 private:
  static constexpr std::size_t kBlock = std::size_t{64} << 10;
  AddressMap& addresses_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::uint64_t block_address_ = 0;
  std::size_t used_ = kBlock;
  std::unordered_map<std::string_view, SimulatedString> known_;
};

struct CallbackEnabling {
  std::vector<ProbeId> probes;
};

// What chill() has taken of a CPU's time.
struct Chill {
  std::uint64_t since = 0;
  std::uint64_t spent = 0;
};

// A consumer's state that traces before there is a consumer.
struct AnonymousState {
  virtual ~AnonymousState() = default;
};

struct Framework::Impl {
  Impl(Framework& framework, CpuSet& cpus, AddressMap& addresses);
  ~Impl();

  Framework& framework;
  CpuSet& cpus;
  AddressMap& addresses;
  std::atomic<const ProbeTable*> table{nullptr};
  // Of each CPU that has joined: made under `firing_mutex`, their slots are those of `table`.
  std::array<std::atomic<FiringCpu*>, MAXCPU> firing{};
  std::vector<std::unique_ptr<FiringCpu, FiringCpu::Release>> firing_cpus;
  std::mutex firing_mutex;

  mutable std::recursive_mutex mutex;
  std::vector<std::unique_ptr<ProviderEntry>> providers;
  std::vector<std::unique_ptr<Probe>> probes;
  std::vector<std::unique_ptr<const ProbeTable>> tables;  // old ones stay: firings may hold them
  using Index = std::unordered_map<std::string_view, std::vector<ProbeId>>;
  Index by_provider, by_module, by_function, by_name;
  StringArena names;
  std::map<EnablingId, CallbackEnabling> callbacks;
  EnablingId next_enabling = 1;
  std::vector<Consumer*> consumers;
  std::uint64_t consumers_made = 0;
  std::uint32_t entries_made = kEntryNumbers;  // Chain::make()
  std::vector<TypeDescription> types;
  std::vector<std::pair<std::string, std::string>> typedefs;
  std::unique_ptr<KernelSymbols> symbols;  // null: nothing is known of them
  std::map<ProbeId, std::vector<std::string>> notes;
  std::map<std::string, FunctionHint> hints;
  std::vector<std::unique_ptr<Provider>> kept;
  std::unique_ptr<AnonymousState> anonymous;
  int opens = 0;
  std::uint32_t enabled = 0;              // probes with entries
  ProbeId begin = 0, end = 0, error = 0;  // of the provider dtrace
  std::array<Chill, MAXCPU> chills{};     // of a CPU: its owner's, inside a firing

  // --- registry.cpp; with `mutex` held
  ProviderEntry* provider(ProviderId id);
  Probe* probe(ProbeId id) {
    return id == kNoProbe || id > probes.size() ? nullptr : probes[id - 1].get();
  }
  // Existing probes after `after` that match, ascending.
  std::vector<ProbeId> match_existing(const ProbeDescription& description, ProbeId after = 0);
  std::vector<ProbeId> match(const ProbeDescription& description);
  void provide(const ProbeDescription* description);  // asks every provider
  // What the provider says of them.
  static std::vector<ArgDescription> arguments(const Probe& probe);
  void know_arguments(Probe& probe);
  bool is_pointer(std::string_view type) const;
  void grow_table(ProbeId id);
  void destroy_disabled(ProviderEntry& entry);
  FiringCpu* join(Cpu& cpu);  // what Cpu::dtrace becomes; null: the host refuses
  void forget_lines();        // on all CPUs; takes no lock

  // --- enabling.cpp; with `mutex` held
  // Entries were added to these probes: publishes their chains, then tells the providers.
  void publish_added(const std::vector<Probe*>& touched);
  // Ditto, but only where there is no chain yet; the others: what is not yet published.
  std::vector<Probe*> publish_new(const std::vector<Probe*>& touched);
  // Removes every entry that `is_gone` names from these probes. Afterwards no CPU is inside them.
  void remove(const std::vector<ProbeId>& ids,
              const std::function<bool(const ChainEntry&)>& is_gone);
  bool has_retained() const;
  void match_retained();

  // --- act.cpp
  // Passes `ns` of this CPU's time in a firing. False: that is more than may be taken.
  bool chill(const Cpu& cpu, std::uint64_t ns);

  // --- probe.cpp
  // Fires a probe on `cpu`, which the caller holds, as if `thread` ran there. With `mutex` held.
  void fire_on(Cpu& cpu, SimThread* thread, ProbeId id, const std::uint64_t* arguments);
  // Fires a probe of the provider dtrace on `cpu` for one consumer (and for C++ callbacks).
  // The caller holds the CPU; arguments[0] is the consumer's cookie.
  void fire_for(Consumer& consumer, ProbeId id, Cpu& cpu, SimThread* thread,
                const std::uint64_t* arguments);

 private:
  const Chain* exchange(Probe& probe);
};

}  // namespace dtmalloc::dtrace
