// SPDX-License-Identifier: BSD-2-Clause
// DEBUG_MEMGUARD: choosing, mapping and unmapping guarded blocks.
#include "vm/memguard.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "sys/format.hpp"
#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

constexpr std::uint64_t kNone = ~std::uint64_t{0};
constexpr std::uint64_t kPiecePages = 1024;  // of the map, made known to the address map at once
constexpr std::uint64_t kKernelMap = std::uint64_t{1} << 41;  // bytes that a map may come out of

std::uint64_t pages_of(std::uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes; }

std::uint64_t usable_divisor(std::uint64_t kmem_size, std::uint64_t divisor) {
  return divisor == 0 || kmem_size / divisor == 0 ? 10 : divisor;
}

}  // namespace

std::uint64_t Memguard::map_size(std::uint64_t kmem_size, std::uint64_t divisor,
                                 std::uint64_t pages) {
  std::uint64_t size = pages_of(kmem_size / usable_divisor(kmem_size, divisor)) * kPageBytes;
  if (size / (2 * kPageBytes) > pages) size = pages * 2 * kPageBytes;
  return kmem_size + size > kKernelMap ? 0 : size;
}

Memguard::Memguard(Vm& owner, const MemguardConfig& config)
    : vm(owner),
      divisor(usable_divisor(config.kmem_size, config.divisor)),
      options(config.options),
      frequency(config.frequency),
      desc(config.desc),
      named(!config.desc.empty()),
      random(config.seed * 2 + 1) {
  mapsize = map_size(config.kmem_size, config.divisor, vm.page_count);
  physlimit = vm.page_count / divisor * kPageBytes;
  pieces.resize(mapsize / kPageBytes / kPiecePages + 1);
  // First, as a console may throw.
  vm.cpus.console(kernel_format(vm.addresses,
                                "MEMGUARD DEBUGGING ALLOCATOR INITIALIZED:\n"
                                "\tMEMGUARD map base: 0x%lx\n"
                                "\tMEMGUARD map size: %jd KBytes\n",
                                static_cast<unsigned long>(AddressMap::kMemguard),
                                static_cast<std::intmax_t>(mapsize >> 10)));
  if (mapsize != 0) {
    void* at = mmap(nullptr, mapsize, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
      throw KernelPanic("cannot boot: the host refuses the address space of memguard");
    base = static_cast<std::byte*>(at);
  }
}

Memguard::~Memguard() {
  if (base != nullptr) munmap(base, mapsize);
}

// spec/malloc9.md 6.4, in its order: a small size is not chosen by size, but still by name.
bool Memguard::wants(std::size_t size, std::string_view name) {
  if (size < minsize.load(std::memory_order_relaxed)) {
    minsize_reject.fetch_add(1, std::memory_order_relaxed);
  } else {
    if ((options.load(std::memory_order_relaxed) & MG_GUARD_ALLLARGE) != 0 && size >= kPageBytes)
      return true;
    if (const std::uint32_t often = frequency.load(std::memory_order_relaxed)) {
      std::uint64_t drawn;
      {
        const std::lock_guard lock(mutex);
        random = random * 6364136223846793005u + 1442695040888963407u;
        drawn = random >> 33;
      }
      if (drawn % 100000 < often) {
        frequency_hits.fetch_add(1, std::memory_order_relaxed);
        return true;
      }
    }
  }
  if (!named.load(std::memory_order_relaxed)) return name.empty();
  const std::lock_guard lock(mutex);
  return desc == name;
}

bool Memguard::wants_zone(const uma_zone& zone) {
  if ((options.load(std::memory_order_relaxed) & MG_GUARD_NOFREE) == 0 &&
      (zone.uz_flags & UMA_ZONE_NOFREE) != 0)
    return false;
  return wants(zone.uz_size, zone.uz_name);
}

bool Memguard::zalloc(uma_zone& zone, void** item, void* udata, int flags) {
  if ((zone.uz_flags & (UMA_ZONE_SMR | UMA_ZFLAG_CACHE)) != 0 || !wants_zone(zone)) return false;
  const bool machinery = (zone.uz_flags & (UMA_ZFLAG_BUCKET | UMA_ZFLAG_INTERNAL)) != 0;
  void* const guarded = alloc(zone.uz_size, flags, machinery);
  if (guarded == nullptr) return false;
  const int size = static_cast<int>(zone.uz_size);
  if (zone.uz_init != nullptr && zone.uz_init(guarded, size, flags) != 0) {
    free(guarded);
  } else if (zone.uz_ctor != nullptr && zone.uz_ctor(guarded, size, udata, flags) != 0) {
    zone.uz_fails->fetch_add(1, std::memory_order_relaxed);
    if (zone.uz_fini != nullptr) zone.uz_fini(guarded, size);
    free(guarded);
  } else {
    *item = guarded;
  }
  return true;
}

bool Memguard::zfree(uma_zone& zone, void* item, void* udata) {
  if ((zone.uz_flags & (UMA_ZONE_SMR | UMA_ZFLAG_CACHE)) != 0 || !owns(item)) return false;
  if (zone.uz_dtor != nullptr) zone.uz_dtor(item, static_cast<int>(zone.uz_size), udata);
  if (zone.uz_fini != nullptr) zone.uz_fini(item, static_cast<int>(zone.uz_size));
  free(item);
  return true;
}

// Next fit: from behind the last one to the end, then from the beginning.
std::uint64_t Memguard::kva_alloc(std::uint64_t pages) {
  const std::uint64_t end = mapsize / kPageBytes;
  for (const auto& [from, to] : {std::pair{cursor, end}, std::pair{std::uint64_t{0}, end}}) {
    std::uint64_t at = from;
    auto next = taken.lower_bound(at);
    if (next != taken.begin()) at = std::max(at, std::prev(next)->first + std::prev(next)->second);
    while (at + pages <= to) {
      if (next == taken.end() || next->first >= at + pages) {
        taken.emplace(at, pages);
        cursor = at + pages;
        return at;
      }
      at = next->first + next->second;
      ++next;
    }
  }
  return kNone;
}

void Memguard::show(std::uint64_t first, std::uint64_t pages, bool readable) {
  while (pages > 0) {
    const std::uint64_t piece = first / kPiecePages;
    const std::uint64_t begin = piece * kPiecePages;
    std::byte* const at = base + begin * kPageBytes;
    if (!pieces[piece]) {
      pieces[piece] = true;
      const std::uint64_t size = std::min(kPiecePages * kPageBytes, mapsize - begin * kPageBytes);
      vm.addresses.add({AddressMap::kMemguard + begin * kPageBytes, at, size, true});
      vm.addresses.retire({{at, size}});
    }
    const std::uint64_t count = std::min(pages, begin + kPiecePages - first);
    std::byte* const part = base + first * kPageBytes;
    if (readable)
      vm.addresses.restore(part, count * kPageBytes);
    else
      vm.addresses.retire({{part, count * kPageBytes}});
    first += count;
    pages -= count;
  }
}

void* Memguard::alloc(std::size_t size, int flags, bool machinery) {
  if (size == 0 || size > mapsize) {
    if (size != 0) fail_kva.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  const bool guard = (options.load(std::memory_order_relaxed) & MG_GUARD_AROUND) != 0;
  Block block{size, pages_of(size), 0, pages_of(size) + (guard ? 2 : 0), machinery, {}};
  {
    const std::lock_guard lock(mutex);
    if (mapused.load(std::memory_order_relaxed) >= physlimit && size < kPageBytes) {
      fail_pgs.fetch_add(1, std::memory_order_relaxed);
      return nullptr;
    }
    block.kva_first = kva_alloc(block.kva_pages);
    if (block.kva_first == kNone) {
      fail_kva.fetch_add(1, std::memory_order_relaxed);
      return nullptr;
    }
  }
  while (block.backing.size() < block.pages) {
    void* const page = kmem_malloc(vm, kPageBytes, flags & ~m::ZERO);
    if (page != nullptr) {
      block.backing.push_back(page);
      continue;
    }
    for (void* taken_page : block.backing) kmem_free(vm, taken_page, kPageBytes);
    fail_pgs.fetch_add(1, std::memory_order_relaxed);
    const std::lock_guard lock(mutex);
    taken.erase(block.kva_first);
    return nullptr;
  }
  const std::uint64_t first = block.kva_first + (guard ? 1 : 0);
  std::byte* addr = base + first * kPageBytes;
  numalloc.fetch_add(1, std::memory_order_relaxed);
  if (size < kPageBytes) {
    wasted.fetch_add(kPageBytes - size, std::memory_order_relaxed);
    if (guard) addr += kPageBytes - (size + 15) / 16 * 16;
  }
  const std::lock_guard lock(mutex);
  mapused.fetch_add(block.kva_pages * kPageBytes, std::memory_order_relaxed);
  show(block.kva_first, block.kva_pages, false);
  show(first, block.pages, true);
  blocks.emplace(first, std::move(block));
  return addr;
}

Memguard::Blocks::iterator Memguard::covering(std::uint64_t page) {
  auto next = blocks.upper_bound(page);
  if (next == blocks.begin()) return blocks.end();
  --next;
  return page < next->first + next->second.pages ? next : blocks.end();
}

Memguard::Block& Memguard::block_at(const void* addr) {
  const std::uint64_t page = page_of(addr);
  const auto block = covering(page);
  if (block != blocks.end() && block->first == page) return block->second;
  const void* const start = base + page * kPageBytes;
  vm.cpus.panic(block == blocks.end()
                    ? kernel_format(vm.addresses, "MemGuard detected double-free of %p", start)
                    : kernel_format(vm.addresses,
                                    "not modelled: a guarded block from its page %p on", start));
}

void Memguard::free(void* addr) {
  Block block;
  {
    std::unique_lock lock(mutex);
    Block& found = block_at(addr);
    for (std::size_t i = 0; i < found.pages; ++i) static_cast<char*>(addr)[i * kPageBytes] = 'M';
    block = std::move(found);
    const std::uint64_t first = page_of(addr);
    blocks.erase(first);
    taken.erase(block.kva_first);
    mapused.fetch_sub(block.kva_pages * kPageBytes, std::memory_order_relaxed);
    show(first, block.pages, false);
    madvise(base + first * kPageBytes, block.pages * kPageBytes, MADV_DONTNEED);
  }
  if (block.req_size < kPageBytes)
    wasted.fetch_sub(kPageBytes - block.req_size, std::memory_order_relaxed);
  for (void* page : block.backing) kmem_free(vm, page, kPageBytes);
}

std::size_t Memguard::req_size(const void* addr) {
  const std::lock_guard lock(mutex);
  return block_at(addr).req_size;
}

void* Memguard::realloc(void* addr, std::size_t size, int flags) {
  const std::size_t old = req_size(addr);
  void* const moved = alloc(size, flags, false);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, addr, std::min(size, old));
  free(addr);
  return moved;
}

bool Memguard::mapped(const void* addr) {
  const std::lock_guard lock(mutex);
  return covering(page_of(addr)) != blocks.end();
}

bool Memguard::is_machinery(const void* addr) {
  const std::lock_guard lock(mutex);
  const auto block = covering(page_of(addr));
  return block != blocks.end() && block->second.machinery;
}

std::size_t Memguard::block_bytes(const void* addr) {
  const std::lock_guard lock(mutex);
  const auto block = blocks.find(page_of(addr));
  return block == blocks.end() ? 0 : block->second.pages * kPageBytes;
}

std::string Memguard::get_desc() {
  const std::lock_guard lock(mutex);
  return desc;
}

bool Memguard::set_desc(std::string_view text) {
  if (text.size() >= kMemguardDescBytes) return false;
  const std::lock_guard lock(mutex);
  desc = text;
  named.store(!desc.empty(), std::memory_order_relaxed);
  return true;
}

}  // namespace dtmalloc
