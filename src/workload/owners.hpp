// SPDX-License-Identifier: BSD-2-Clause
// Who allocated the block that a name holds: what the ledger would say of live blocks, for a few
// stores an operation.
//
// An entry belongs to a slot until the slot gets another block while the old one lives: then the
// entry stays, and says who lost that block. What an entry cannot tell (a second free, a free under
// another type or inside a block, an unload) the ledger has to see: it begins, from the entries,
// before such an operation runs.
//
// Invariants:   OWN-1: as long as the ledger has not begun, each live block that the run has from
//               malloc(9) is that of one entry that lives; an entry that lives has no other block
#pragma once

#include <dtmalloc/workload/workload.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dtmalloc::workload {

// A thread and its CPU.
struct Where {
  std::uint32_t actor = 0;  // into Owners::actors
  int cpu = 0;
};

class Owners {
 public:
  struct Event {
    const Op* op = nullptr;
    std::uint64_t order = 0;  // operations before it
    std::uint64_t time = 0;
    Where where;
  };
  struct Entry {
    void* addr = nullptr;
    std::uint64_t request = 0;
    Event allocated, freed;
    bool lives() const { return freed.op == nullptr; }
    Index type() const { return allocated.op->type; }
  };
  // A thread: its execname and its tid.
  using Actor = std::pair<std::string, int>;

  // Makes `owner`, a slot's, the entry of a block that was just allocated.
  void allocated(Entry*& owner, void* addr, std::uint64_t request, const Event& event) {
    Entry* entry = owner;
    if (entry == nullptr || entry->lives()) [[unlikely]]
      entry = owner = add();
    entry->addr = addr;
    entry->request = request;
    entry->allocated = event;
    entry->freed.op = nullptr;
  }
  // The slot holds no block of malloc(9) any more.
  void forget(Entry*& owner) {
    if (owner != nullptr && owner->lives()) owner = nullptr;
  }
  // In place of what `owner`, a slot's, is: the entry that another slot had.
  void move(Entry*& owner, Entry* from) {
    if (owner != nullptr && !owner->lives()) spare_.push_back(owner);
    owner = from;
  }
  template <typename Function>
  void for_each(const Function& function) {
    for (std::size_t i = 0; i < size_; ++i) function(chunks_[i / kChunk][i % kChunk]);
  }

  std::vector<Actor> actors;

 private:
  static constexpr std::size_t kChunk = 4096;
  Entry* add();  // owners.cpp

  std::vector<std::unique_ptr<Entry[]>> chunks_;
  std::vector<Entry*> spare_;  // of no slot
  std::size_t size_ = 0;
};

}  // namespace dtmalloc::workload
