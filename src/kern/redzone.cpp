// SPDX-License-Identifier: BSD-2-Clause
// DEBUG_REDZONE: guard bytes around blocks.
//
// Counterpart:  sys/vm/redzone.c
// Locking:      none; a block has one owner at a time
// Differs:      DEVIATES: a size so large that header and guards would wrap it around stays as it
//               is, and is refused as such: a kernel hands out a small block.
//               DEVIATES: a header whose size leads out of the kernel's memory is a page fault; a
//               kernel faults, or reads through some other mapping
#include "kern/redzone.hpp"

#include <algorithm>
#include <cstring>

namespace dtmalloc {
namespace {

constexpr std::size_t kStackBytes = 8 + 8 * CallSites::kMaxDepth;  // struct stack
constexpr std::size_t kGuardBytes = 16;
constexpr std::size_t kHeader = kStackBytes + sizeof(unsigned long) + kGuardBytes;
constexpr unsigned char kGuard = 0x42;
static_assert(kHeader == 176);

unsigned corrupted(const std::byte* guard) {
  unsigned count = 0;
  for (std::size_t i = 0; i < kGuardBytes; ++i) count += guard[i] != std::byte{kGuard} ? 1 : 0;
  return count;
}

}  // namespace

// spec/malloc9.md 6.3; the kernel's step of 128 is below the header.
std::size_t Redzone::roundup(std::size_t n) {
  if (n < kHeader) n = kHeader;
  for (const std::size_t room : kRooms)
    if (n <= room) return room;
  return kRooms.back();
}

std::size_t Redzone::size_ntor(std::size_t n) {
  const std::size_t extra = roundup(n) + kGuardBytes;
  return n > SIZE_MAX - extra ? n : n + extra;
}

void* Redzone::setup(void* raw, std::size_t n) {
  redzone_extra_mem.fetch_add(size_ntor(n) - n, std::memory_order_relaxed);
  auto* const addr = static_cast<std::byte*>(raw) + roundup(n);
  std::byte* const header = addr - kHeader;
  const std::vector<std::uint64_t> pcs =
      k_.vm->call_sites.save(k_.cpus->current_thread().call_sites);
  const int depth = static_cast<int>(pcs.size());
  std::memset(header, 0, kStackBytes);
  std::memcpy(header, &depth, sizeof depth);
  if (depth != 0) std::memcpy(header + 8, pcs.data(), 8 * pcs.size());
  std::memcpy(header + kStackBytes, &n, sizeof n);
  std::memset(addr - kGuardBytes, kGuard, kGuardBytes);
  std::memset(addr + n, kGuard, kGuardBytes);
  return addr;
}

std::size_t Redzone::get_size(const void* addr) {
  const auto* header = static_cast<const std::byte*>(addr) - kHeader;
  k_.check_mapped(header, kHeader, false);
  std::size_t n;
  std::memcpy(&n, header + kStackBytes, sizeof n);
  return n;
}

void* Redzone::addr_ntor(void* addr) {
  return static_cast<std::byte*>(addr) - roundup(get_size(addr));
}

const void* Redzone::raw_if_block(const void* addr) const {
  const auto* const block = static_cast<const std::byte*>(addr);
  if (!k_.vm->in_arena(block) || !k_.vm->in_arena(block - kHeader)) return addr;
  std::size_t n;
  std::memcpy(&n, block - kHeader + kStackBytes, sizeof n);
  const std::byte* const raw = block - roundup(n);
  return k_.vm->in_arena(raw) ? raw : addr;
}

void Redzone::report(const char* what, const char* where, unsigned count, const void* addr,
                     std::size_t n, const void* header) {
  int depth;
  std::memcpy(&depth, header, sizeof depth);
  const int most = static_cast<int>(CallSites::kMaxDepth);
  std::vector<std::uint64_t> pcs(static_cast<std::size_t>(std::clamp(depth, 0, most)));
  if (!pcs.empty())
    std::memcpy(pcs.data(), static_cast<const std::byte*>(header) + 8, 8 * pcs.size());
  CallSites& sites = k_.vm->call_sites;
  k_.cpus->console(
      kernel_format(k_.addresses,
                    "REDZONE: Buffer %s detected. %u byte%s corrupted %s %p (%lu bytes "
                    "allocated).\nAllocation backtrace:\n",
                    what, count, count == 1 ? "" : "s", where, addr, n) +
      sites.print(pcs) + "Free backtrace:\n" +
      sites.print(sites.save(k_.cpus->current_thread().call_sites)));
  if (redzone_panic.load(std::memory_order_relaxed) != 0) k_.panic("Stopping here.");
}

void Redzone::check(void* block) {
  auto* const addr = static_cast<std::byte*>(block);
  const std::size_t n = get_size(addr);
  redzone_extra_mem.fetch_sub(size_ntor(n) - n, std::memory_order_relaxed);
  if (const unsigned count = corrupted(addr - kGuardBytes))
    report("underflow", "before", count, addr, n, addr - kHeader);
  k_.check_mapped(addr + n, kGuardBytes, false);
  if (const unsigned count = corrupted(addr + n))
    report("overflow", "after", count, addr + n, n, addr - kHeader);
}

}  // namespace dtmalloc
