// SPDX-License-Identifier: BSD-2-Clause
// Enters what was before into a ledger that begins.
// Locking:      see ledger_start.hpp

#include "kern/ledger_start.hpp"

namespace dtmalloc {

LedgerStart::LedgerStart(Kernel& kernel, const LedgerConfig& config)
    : kernel_(kernel), ledger_(std::make_unique<Ledger>(kernel, config)), books_(ledger_->impl()) {
  DTM_CHECK(kernel.ledger() == nullptr, "a machine has one ledger");
}

// An event counts as one of "other" where it is entered.
Ledger::Impl::StackId LedgerStart::stack(const SimThread& at) {
  const std::uint64_t before = books_.lost.stacks;
  const Ledger::Impl::StackId id = books_.intern(at);
  books_.lost.stacks = before;
  return id;
}

std::uint32_t LedgerStart::name(const std::string& execname) {
  const std::uint64_t before = books_.lost.names;
  const std::uint32_t id = books_.intern_name(execname);
  books_.lost.names = before;
  return id;
}

void LedgerStart::count_others(const Place& place) {
  if (place.stack == Ledger::Impl::kOtherStack) ++books_.lost.stacks;
  if (place.execname == Ledger::Impl::kOtherName) ++books_.lost.names;
}

void LedgerStart::manual(const malloc_type& mtp, std::int64_t blocks, std::int64_t bytes) {
  books_.manual(&mtp, blocks, bytes);
}

Ledger::Impl::Block LedgerStart::block(const void* addr, const malloc_type& mtp,
                                       std::uint64_t request, const Place& allocated) {
  const Kernel::Impl& k = kernel_.impl();
  const std::uintptr_t word = k.vm->slab_word(addr);
  Ledger::Impl::Block out;
  out.type = books_.type_of(&mtp);
  out.request = request;
  out.bytes = kernel_.block_size(addr);
  if (word != 0 && (word & SLAB_COOKIE_MASK) == SLAB_COOKIE_SLAB_PTR) out.size_class = out.bytes;
  if (out.bytes == 0) out.bytes = round_page(request);  // its pages went back
  out.allocated = allocated;
  return out;
}

void LedgerStart::lives(const void* addr, const malloc_type& mtp, std::uint64_t request,
                        const Place& allocated) {
  count_others(allocated);
  if (books_.blocks.size() < books_.config.blocks) {
    books_.add_block(reinterpret_cast<std::uintptr_t>(addr), block(addr, mtp, request, allocated));
  } else {
    ++books_.lost.blocks;
    ++books_.unrecorded;
  }
}

void LedgerStart::freed(const void* addr, const malloc_type& mtp, std::uint64_t request,
                        const Place& allocated, const Place& freed) {
  count_others(freed);
  const Ledger::Impl::Block owned = block(addr, mtp, request, allocated);
  books_.remember(reinterpret_cast<std::uintptr_t>(addr), {owned, owned.type, freed});
}

void LedgerStart::finish(std::uint64_t last) {
  for (const malloc_type* mtp : kernel_.types()) {
    const TypeStats stats = kernel_.type_stats(*mtp);
    if (stats.numallocs == 0 && stats.numfrees == 0 && stats.memalloced == 0 && stats.memfreed == 0)
      continue;
    for (LedgerType* sum : {&books_.types[books_.type_of(mtp)].counts, &books_.total}) {
      sum->blocks += static_cast<std::int64_t>(stats.numallocs - stats.numfrees);
      sum->bytes += static_cast<std::int64_t>(stats.memalloced - stats.memfreed);
    }
  }
  books_.sequence = last;
  kernel_.impl().ledger = std::move(ledger_);
  // Nobody is between the two halves of a fast path: the others stand where they gave the machine
  // away.
  CpuSet& cpus = kernel_.cpus();
  for (int id = 0; id < cpus.count(); ++id) cpus.set_guard(cpus.cpu(id), kGuardDebug);
}

}  // namespace dtmalloc
