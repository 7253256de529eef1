// SPDX-License-Identifier: BSD-2-Clause
// The inside of a Ledger, and the calls by which malloc(9) feeds it.
//
// Locking:      `mutex`; under it those of types, of addresses and of memguard may be taken. Nobody
//               sleeps or panics with it.
// Invariants:   BOOK-1: the sum of Block::bytes of a type's blocks that are not guarded is its
//               recorded_bytes; BOOK-2: no address has both a live block and a past that says
//               otherwise: the newest past owner was freed before the live one was allocated
#pragma once

#include <dtmalloc/kern/ledger.hpp>
#include <exception>
#include <map>
#include <mutex>
#include <tuple>
#include <unordered_map>

#include "kern/kernel_impl.hpp"

namespace dtmalloc {

// What an accounting point counted.
struct Counted {
  std::uint64_t bytes = 0;  // 0: there was none
  bool of_zone = false;     // bytes of an item, not of pages
};

struct Ledger::Impl {
  Impl(Kernel& owner, const LedgerConfig& ledger_config) : kernel(owner), config(ledger_config) {
    stacks.emplace_back();     // kNoStack
    execnames.emplace_back();  // of a Place that is none
    interval = config.series;
    next_sample = interval;
  }

  using TypeId = std::uint32_t;
  using StackId = std::uint32_t;
  static constexpr TypeId kNoType = ~TypeId{0};
  static constexpr StackId kNoStack = 0;
  static constexpr StackId kOtherStack = ~StackId{0};
  static constexpr std::uint32_t kOtherName = ~std::uint32_t{0};

  struct Place {
    std::uint64_t sequence = 0, time = 0;
    StackId stack = kNoStack;
    std::uint32_t execname = 0;
    int cpu = 0, tid = 0;
  };
  struct Block {
    TypeId type = kNoType;
    bool guarded = false;
    std::uint32_t resizes = 0;
    std::uint64_t request = 0, bytes = 0, size_class = 0;
    Place allocated;
  };
  struct Owner {
    Block block;
    TypeId freed_as = kNoType;
    Place freed;
  };
  struct Type {
    const malloc_type* mtp;
    LedgerType counts;
    Place unloaded;
  };
  struct Mismatch {
    std::uint64_t blocks = 0, bytes = 0;
    Place allocated, freed;
  };
  using Blocks = std::map<std::uintptr_t, Block>;
  using FindingKey = std::tuple<Finding::Kind, std::string, std::string, StackId, StackId, StackId>;
  static constexpr std::size_t kNoFinding = ~std::size_t{0};

  // --- ledger.cpp. Requires: mutex held.
  Place here();
  StackId intern(const SimThread& thread);
  std::uint32_t intern_name(const std::string& execname);
  TypeId type_of(const malloc_type* mtp);  // kNoType: not registered now
  TypeId add_type(const malloc_type* mtp);
  void add_block(std::uintptr_t at, const Block& block);
  Block take_block(Blocks::iterator it);
  void remember(std::uintptr_t at, const Owner& owner);
  Blocks::const_iterator covering(std::uintptr_t at) const;
  // Where the newest past block of an item began; 0: nobody is known.
  std::uintptr_t last_owner_in(std::uintptr_t item) const;
  void sample(std::uint64_t now);

  // --- What malloc(9) tells.
  void counted(const malloc_type* mtp, std::int64_t blocks, std::int64_t bytes, bool of_zone);
  void manual(const malloc_type* mtp, std::int64_t blocks, std::int64_t bytes);
  void allocated(const malloc_type* mtp, const void* addr, std::uint64_t request, Counted counted);
  void resized(const malloc_type* mtp, const void* old, const void* addr, std::uint64_t request);
  struct Freed {
    std::optional<Block> block;  // that was taken out
    bool remembered = false;
    std::size_t finding = kNoFinding;
  };
  Freed freeing(const malloc_type* mtp, const void* addr);
  void not_freed(const void* addr, const Freed& freed);  // the machine panicked instead
  void unloaded(const malloc_type* mtp);
  void stale(const malloc_type* mtp);
  void modified(const void* addr);

  // --- findings.cpp
  LedgerPlace show(const Place& place) const;
  LedgerBlock show(std::uintptr_t at, const Block& block) const;
  std::string name(TypeId type) const;
  std::string what_is_at(const void* addr) const;
  // Requires: mutex held. Adds to `news`, which tell() passes on without the lock.
  std::size_t find(Finding finding, const Place& a, const Place& f, const Place& u);
  void diagnose_free(TypeId type, const void* addr, const Place& place, Freed& freed);
  void tell(std::unique_lock<std::mutex>& lock);

  Kernel& kernel;
  const LedgerConfig config;
  mutable std::mutex mutex;
  std::uint64_t sequence = 0;
  std::vector<Type> types;
  std::unordered_map<const malloc_type*, TypeId> current;
  LedgerType total;
  std::vector<std::vector<std::string>> stacks;  // innermost first
  std::map<std::vector<std::string>, StackId> stack_ids;
  std::unordered_map<std::uint32_t, StackId> line_ids;
  std::vector<std::string> last_sites;  // outermost first; last_stack is their id
  StackId last_stack = kNoStack;
  std::vector<std::string> execnames;
  std::unordered_map<std::string, std::uint32_t> execname_ids;
  Blocks blocks;
  std::uint64_t unrecorded = 0;  // live blocks without a record
  std::unordered_map<std::uintptr_t, std::vector<Owner>> past;
  std::map<std::uint64_t, LedgerClass> classes;  // by size
  std::map<std::pair<TypeId, TypeId>, Mismatch> mismatches;
  std::vector<Finding> found;
  std::map<FindingKey, std::size_t> found_index;
  std::vector<Finding> news;
  std::size_t explains = kNoFinding;
  LedgerDropped lost;
  std::uint64_t interval = 0, next_sample = 0;
  std::vector<LedgerSeries::Sample> samples;
  std::function<void(const Finding&)> callback;
};

// What the last accounting point of this thread counted; note_allocation() takes it.
extern constinit thread_local Counted last_counted;

inline void note_counted(Kernel::Impl& k, const malloc_type* mtp, std::int64_t blocks,
                         std::int64_t bytes, bool of_zone = false) {
  if (k.ledger != nullptr) k.ledger->impl().counted(mtp, blocks, bytes, of_zone);
}
// Of what was just counted: no block stands for it.
inline void note_manual(Kernel::Impl& k, const malloc_type* mtp, std::int64_t blocks,
                        std::int64_t bytes) {
  if (k.ledger != nullptr) k.ledger->impl().manual(mtp, blocks, bytes);
}
inline void* note_allocation(Kernel::Impl& k, void* addr, std::size_t request,
                             const malloc_type* mtp) {
  if (k.ledger != nullptr && addr != nullptr)
    k.ledger->impl().allocated(mtp, addr, request, std::exchange(last_counted, {}));
  return addr;
}
// An address, from before the block goes back until free() has ended. A panic undoes it.
class FreeNote {
 public:
  FreeNote(Kernel::Impl& k, const void* addr, const malloc_type* mtp) {
    if (k.ledger == nullptr || addr == nullptr) return;
    ledger_ = &k.ledger->impl();
    addr_ = addr;
    freed_ = ledger_->freeing(mtp, addr);
  }
  ~FreeNote() {
    if (ledger_ != nullptr && std::uncaught_exceptions() > unwinding_)
      ledger_->not_freed(addr_, freed_);
  }
  FreeNote(const FreeNote&) = delete;
  FreeNote& operator=(const FreeNote&) = delete;

 private:
  Ledger::Impl* ledger_ = nullptr;
  const void* addr_ = nullptr;
  Ledger::Impl::Freed freed_;
  const int unwinding_ = std::uncaught_exceptions();
};

// --- injection.cpp
// Whether the plan of Kernel::plan_failure() says that this request fails.
bool failure_planned(Kernel::Impl& k, const malloc_type* mtp, int flags);

}  // namespace dtmalloc
