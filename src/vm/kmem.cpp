// SPDX-License-Identifier: BSD-2-Clause
// Pages: the domains' free runs, the supply of physical pages, large and contiguous memory.
//
// Counterpart:  sys/vm/vm_kern.c, vm_page.c, subr_vmem.c
// Locking:      page_mutex; sleeping with none
// Invariants:   VM-1 to VM-4 (vm.hpp)
// Differs:      a sleeper holds no pages while it waits for the rest of a large block; best fit
//               instead of quantum caches
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "smp/functions.hpp"
#include "vm/memguard.hpp"
#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

constexpr std::uint64_t kArenaFactor = 4;   // pages must run out before addresses do
constexpr std::uint64_t kReturnPages = 64;  // blocks of this size give host memory back

void* reserve(std::size_t size) {
  void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

std::uint64_t pages_of(std::uint64_t bytes) {
  return bytes / kPageBytes + (bytes % kPageBytes != 0 ? 1 : 0);
}

// Whether a request is for some pages, not more than 64 bits can count bytes. A kernel asserts it
// or loops; here who may sleep panics.
bool sane_size(Vm& vm, std::size_t size, int flags) {
  if (size != 0 && size <= ~std::size_t{0} - kPageBytes + 1) return true;
  if ((flags & m::WAITOK) != 0)
    vm.cpus.panic("not modelled: an allocation of " + std::to_string(size) + " bytes that waits");
  return false;
}

// What a thread that sleeps for pages waits for.
std::string wait_reason(const Vm& vm, DomainMask set) {
  std::string out = "free pages";
  if (vm.config.domains == 1) return out;
  out += std::has_single_bit(set) ? " of domain " : " of domains ";
  for (DomainMask rest = set; rest != 0; rest &= rest - 1)
    out += (rest == set ? "" : ",") + std::to_string(std::countr_zero(rest));
  return out;
}

bool may_take(const VmDomain& domain, std::uint64_t pages, int flags) {
  const std::uint64_t limit =
      (flags & m::USE_RESERVE) != 0 ? 0 : domain.thresholds.interrupt_free_min;
  return domain.free_count.load(std::memory_order_relaxed) >= limit + pages;
}

// Requires: page_mutex held; [first, first + pages) lies inside `run`.
void take_run(VmDomain& domain, std::map<std::uint64_t, std::uint64_t>::iterator run,
              std::uint64_t first, std::uint64_t pages) {
  const auto [start, length] = *run;
  domain.fit.erase({length, start});
  domain.runs.erase(run);
  if (first > start) {
    domain.runs.emplace(start, first - start);
    domain.fit.emplace(first - start, start);
  }
  if (start + length > first + pages) {
    domain.runs.emplace(first + pages, start + length - first - pages);
    domain.fit.emplace(start + length - first - pages, first + pages);
  }
  domain.free_count.fetch_sub(pages, std::memory_order_relaxed);
}

// vm_page_reclaim_contig_domain: pages that can be moved are moved out of the range. Here all pages
// in use are wired kernel memory, so there are none. True: try again.
bool reclaim_contig(Vm&, int, std::uint64_t, std::uint64_t, std::uint64_t) { return false; }

}  // namespace

constinit thread_local const OperationNote* current_operation = nullptr;

// spec/malloc9.md 5.11a
PageThresholds PageThresholds::of(std::uint64_t pages) {
  constexpr std::uint64_t kPageoutFreeMin = 2 * 65536 / kPageBytes + 2;
  PageThresholds t{};
  t.interrupt_free_min = 2;
  t.free_reserved = 32 + kPageoutFreeMin + pages / 768;
  t.free_min = pages > 1024 ? 4 + (pages - 1024) / 200 : 4;
  t.free_severe = t.free_min / 2;
  t.free_target = 4 * t.free_min + t.free_reserved;
  t.free_min += t.free_reserved;
  t.free_severe += t.free_reserved;
  return t;
}

bool Vm::can_reserve(std::uint64_t mem, int domain_count) {
  if (mem > (std::uint64_t{1} << 44)) return false;
  // The arena; for each of its pages a word, an attribute and each domain's byte.
  const auto count = static_cast<std::uint64_t>(domain_count);
  const std::uint64_t pages = kArenaFactor * (mem / kPageBytes + count);
  const std::uint64_t size =
      pages * (kPageBytes + sizeof(std::uintptr_t) + 1 + count) + (3 + count) * kPageBytes;
  void* at = reserve(size);
  if (at == nullptr) return false;
  munmap(at, size);
  return true;
}

Vm::Vm(CpuSet& cpu_set, AddressMap& address_map, SysctlTree& sysctl_tree, const VmConfig& vm_config)
    : cpus(cpu_set), addresses(address_map), sysctl(sysctl_tree), config(vm_config) {
  const auto count = static_cast<std::uint64_t>(config.domains);
  page_count = config.mem / kPageBytes;
  area_pages = kArenaFactor * ((page_count + count - 1) / count);
  arena_pages = area_pages * count;
  arena = static_cast<std::byte*>(reserve(arena_pages * kPageBytes));
  page_slab = static_cast<std::atomic<std::uintptr_t>*>(reserve(arena_pages * sizeof *page_slab));
  page_attr = static_cast<std::uint8_t*>(reserve(arena_pages));
  bool granted = arena != nullptr && page_slab != nullptr && page_attr != nullptr;
  for (std::uint64_t d = 0; d < count; ++d) {
    page_zone[d] = static_cast<std::uint8_t*>(reserve(arena_pages));
    granted = granted && page_zone[d] != nullptr;
  }
  if (!granted) {
    release();
    throw KernelPanic("cannot boot: the host refuses the address space of the arena");
  }
  madvise(arena, arena_pages * kPageBytes, MADV_NOHUGEPAGE);
  domains = std::make_unique<VmDomain[]>(count);
  for (std::uint64_t d = 0; d < count; ++d) {
    VmDomain& domain = domains[d];
    domain.first_page = d * area_pages;
    domain.first_physical = d * page_count / count;
    domain.page_count = (d + 1) * page_count / count - domain.first_physical;
    domain.free_count = domain.page_count;
    domain.thresholds = PageThresholds::of(domain.page_count);
    domain.runs[domain.first_page] = area_pages;
    domain.fit.emplace(area_pages, domain.first_page);
  }
  bucketdisable = page_count_min();
  uma_kmem_limit = page_count * kPageBytes;
  addresses.add({AddressMap::kArena, arena, arena_pages * kPageBytes, true});
}

Vm::~Vm() {
  lowmem_end(*this);
  uma_timer_end(*this);
  release();
}

void Vm::release() {
  auto unmap = [](void* at, std::size_t size) {
    if (at != nullptr) munmap(at, size);
  };
  unmap(arena, arena_pages * kPageBytes);
  unmap(page_slab, arena_pages * sizeof *page_slab);
  unmap(page_attr, arena_pages);
  for (std::uint8_t* view : page_zone) unmap(view, arena_pages);
}

std::uint64_t Vm::free_pages() const {
  std::uint64_t sum = 0;
  for (int d = 0; d < config.domains; ++d) sum += domains[static_cast<std::size_t>(d)].free_count;
  return sum;
}

bool Vm::pages_low() const {
  for (int d = 0; d < config.domains; ++d)
    if (domains[static_cast<std::size_t>(d)].below_wakeup()) return true;
  return false;
}

bool Vm::page_count_severe() const {
  for (int d = 0; d < config.domains; ++d)
    if (domains[static_cast<std::size_t>(d)].below_severe()) return true;
  return false;
}

bool Vm::page_count_min() const {
  for (int d = 0; d < config.domains; ++d)
    if (domains[static_cast<std::size_t>(d)].below_min()) return true;
  return false;
}

std::uint64_t Vm::page_frees(DomainMask set) const {
  std::uint64_t sum = 0;
  for (; set != 0; set &= set - 1)
    sum += domains[static_cast<std::size_t>(std::countr_zero(set))].page_frees.load();
  return sum;
}

// The attributes of pages that are handed out. Nobody else looks at them then.
void Vm::set_attributes(std::uint64_t first, std::uint64_t pages, int flags) {
  int attributes = 0;
  if ((flags & m::NODUMP) != 0) attributes |= kPageNoDump;
  if ((flags & m::EXEC) != 0) attributes |= kPageExec;
  if ((flags & m::NEVERFREED) != 0) attributes |= kPageNoFree;
  if (attributes != 0) page_attr_used.store(true, std::memory_order_relaxed);
  if (page_attr_used.load(std::memory_order_relaxed))
    std::memset(page_attr + first, attributes, pages);
}

std::uint64_t Vm::try_page_alloc(int domain_id, std::uint64_t pages, int flags) {
  VmDomain& domain = domains[static_cast<std::size_t>(domain_id)];
  const std::lock_guard lock(domain.page_mutex);
  if (!may_take(domain, pages, flags)) return kNoPage;
  auto best = domain.fit.lower_bound({pages, 0});
  if (best == domain.fit.end()) return kNoPage;
  const std::uint64_t first = best->second;
  take_run(domain, domain.runs.find(first), first, pages);
  return first;
}

std::uint64_t Vm::page_alloc(int domain, std::uint64_t pages, int flags) {
  const DomainMask self = DomainMask{1} << domain;
  while (true) {
    const std::uint64_t seen = page_frees(self);
    const std::uint64_t first = try_page_alloc(domain, pages, flags);
    pages_changed(*this);
    if (first != kNoPage) {
      set_attributes(first, pages, flags);
      return first;
    }
    if ((flags & m::WAITOK) == 0) return kNoPage;
    page_wait(self, seen);
  }
}

std::uint64_t Vm::page_alloc_contig(int domain_id, std::uint64_t pages, int flags,
                                    std::uint64_t low, std::uint64_t high, std::size_t alignment,
                                    std::uint64_t boundary, bool* nowhere) {
  VmDomain& domain = domains[static_cast<std::size_t>(domain_id)];
  const std::uint64_t step = std::max<std::uint64_t>(1, alignment / kPageBytes);
  const std::uint64_t fence = boundary / kPageBytes;
  const std::uint64_t from =
      std::max(domain.first_physical, low / kPageBytes + (low % kPageBytes != 0 ? 1 : 0));
  const std::uint64_t to = std::min(domain.first_physical + domain.page_count,
                                    high / kPageBytes + (high % kPageBytes + 1) / kPageBytes);
  if (from >= to) {
    *nowhere = true;
    return kNoPage;
  }
  // A page of the arena less its physical page.
  const std::uint64_t shift = domain.first_page - domain.first_physical;
  const std::lock_guard lock(domain.page_mutex);
  if (!may_take(domain, pages, flags)) return kNoPage;
  for (auto run = domain.runs.begin(); run != domain.runs.end() && run->first - shift < to; ++run) {
    std::uint64_t first = std::max(run->first - shift, from);
    const std::uint64_t end = std::min(run->first - shift + run->second, to);
    while (true) {
      first = (first + step - 1) / step * step;
      if (first + pages > end) break;
      if (fence != 0 && first / fence != (first + pages - 1) / fence) {
        first = (first / fence + 1) * fence;
        if (pages > fence) break;
        continue;
      }
      take_run(domain, run, first + shift, pages);
      set_attributes(first + shift, pages, flags);
      return first + shift;
    }
  }
  return kNoPage;
}

void Vm::page_free(std::uint64_t first, std::uint64_t pages) {
  if (pages >= kReturnPages) madvise(page_address(first), pages * kPageBytes, MADV_DONTNEED);
  VmDomain& domain = domains[static_cast<std::size_t>(domain_of_page(first))];
  bool wake = false;
  {
    const std::lock_guard lock(domain.page_mutex);
    // A sleeper counts itself, then looks at these; here they change, then the sleepers are looked
    // at: with one order of all four, one of the two sees the other.
    domain.free_count.fetch_add(pages);
    domain.page_frees.fetch_add(1);
    auto next = domain.runs.lower_bound(first);
    if (next != domain.runs.end() && next->first == first + pages) {
      pages += next->second;
      domain.fit.erase({next->second, next->first});
      next = domain.runs.erase(next);
    }
    if (next != domain.runs.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == first) {
        first = before->first;
        pages += before->second;
        domain.fit.erase({before->second, before->first});
        domain.runs.erase(before);
      }
    }
    domain.runs.emplace(first, pages);
    domain.fit.emplace(pages, first);
    wake = page_waiters.load() > 0 && domain.free_count.load() > domain.thresholds.free_min;
  }
  if (wake) cpus.wakeup(&page_waiters);
  pages_changed(*this);
}

void Vm::page_wait(DomainMask set, std::uint64_t seen) {
  if (in_reclaim_pass()) cpus.panic("not modelled: a handler of vm_lowmem sleeps");
  page_waiters.fetch_add(1);
  struct Done {
    std::atomic<int>& waiters;
    ~Done() { waiters.fetch_sub(1, std::memory_order_relaxed); }
  } done{page_waiters};
  const std::uint64_t offers = lowmem.offers.load();
  pagedaemon_wakeup(*this);
  uma_reclaim_wakeup(*this);
  cpus.clock().run_due();
  // All sleepers share a channel: pages of another domain are no reason to ask again.
  while (page_frees(set) == seen && lowmem.offers.load() == offers) {
    cpus.sleep_on(&page_waiters, operation_text(*this), wait_reason(*this, set), [&] {
      if (lowmem.offers.load() != offers) return true;
      if (page_frees(set) == seen) return false;
      for (DomainMask rest = set; rest != 0; rest &= rest - 1) {
        const VmDomain& domain = domains[static_cast<std::size_t>(std::countr_zero(rest))];
        if (domain.free_count.load() > domain.thresholds.free_min) return true;
      }
      return false;
    });
  }
}

constexpr int VM_MEMATTR_DEFAULT = 6;  // write-back, on amd64

std::string operation_text(Vm& vm) {
  return current_operation != nullptr && vm.describe_operation
             ? vm.describe_operation(*current_operation)
             : "allocation";
}

void check_reserve_flags(Vm& vm, int flags) {
  if (vm.config.invariants && (flags & m::USE_RESERVE) != 0 && (flags & m::NOWAIT) == 0)
    vm.cpus.panic("M_USE_RESERVE requires M_NOWAIT");
}

void* kmem_malloc_domainset(Vm& vm, const domainset& ds, std::size_t size, int flags) {
  return in_function(
      KernelFunction::kmem_malloc_domainset,
      [&]() -> void* {
        const std::uint64_t pages = pages_of(size);
        if (!sane_size(vm, size, flags)) return nullptr;
        check_reserve_flags(vm, flags);
        vm_domainset_iter di;
        int domain;
        if (vm_domainset_iter_policy_init(di, vm, ds, &domain, &flags) != 0) return nullptr;
        std::uint64_t first;
        while ((first = vm.page_alloc(domain, pages, flags)) == Vm::kNoPage)
          if (vm_domainset_iter_policy(di, &domain) != 0) return nullptr;
        void* addr = vm.page_address(first);
        if ((flags & m::ZERO) != 0) {
          if (pages >= kReturnPages)
            madvise(addr, pages * kPageBytes, MADV_DONTNEED);
          else
            std::memset(addr, 0, pages * kPageBytes);
        }
        return addr;
      },
      &ds, size, flags);
}

void* kmem_malloc(Vm& vm, std::size_t size, int flags) {
  return in_function(
      KernelFunction::kmem_malloc,
      [&] { return kmem_malloc_domainset(vm, *DOMAINSET_RR(), size, flags); }, size, flags);
}

void* kmem_alloc_contig_domainset(Vm& vm, const domainset& ds, std::size_t size, int flags,
                                  std::uint64_t low, std::uint64_t high, std::size_t alignment,
                                  std::uint64_t boundary) {
  return in_function(
      KernelFunction::kmem_alloc_contig_domainset,
      [&]() -> void* {
        const std::uint64_t pages = pages_of(size);
        if (!sane_size(vm, size, flags)) return nullptr;
        check_reserve_flags(vm, flags);
        vm_domainset_iter di;
        int domain;
        if (vm_domainset_iter_policy_init(di, vm, ds, &domain, &flags) != 0) return nullptr;
        std::uint64_t first;
        while (true) {
          // spec/malloc9.md 3.7: a domain without such a range leaves the set; nobody waits for
          // none.
          bool nowhere = false;
          first =
              vm.page_alloc_contig(domain, pages, flags, low, high, alignment, boundary, &nowhere);
          if (first == Vm::kNoPage && !nowhere && (flags & m::NORECLAIM) == 0 &&
              reclaim_contig(vm, domain, pages, low, high))
            first = vm.page_alloc_contig(domain, pages, flags, low, high, alignment, boundary,
                                         &nowhere);
          pages_changed(vm);
          if (first != Vm::kNoPage) break;
          if (nowhere) vm_domainset_iter_ignore(di, domain);
          if (vm_domainset_iter_policy(di, &domain) != 0) return nullptr;
        }
        void* addr = vm.page_address(first);
        if ((flags & m::ZERO) != 0) std::memset(addr, 0, pages * kPageBytes);
        return addr;
      },
      &ds, size, flags, low, high, alignment, boundary, VM_MEMATTR_DEFAULT);
}

void* kmem_alloc_contig(Vm& vm, std::size_t size, int flags, std::uint64_t low, std::uint64_t high,
                        std::size_t alignment, std::uint64_t boundary) {
  return in_function(
      KernelFunction::kmem_alloc_contig,
      [&]() -> void* {
        return kmem_alloc_contig_domainset(vm, *DOMAINSET_RR(), size, flags, low, high, alignment,
                                           boundary);
      },
      size, flags, low, high, alignment, boundary, VM_MEMATTR_DEFAULT);
}

void kmem_free(Vm& vm, void* addr, std::size_t size) {
  in_function(
      KernelFunction::kmem_free,
      [&] {
        if (!vm.in_arena(addr) || reinterpret_cast<std::uintptr_t>(addr) % kPageBytes != 0)
          vm.cpus.panic("kmem_free: address is not that of a block");
        vm.page_free(vm.page_of(addr), pages_of(size));
      },
      addr, size);
}

PageInfo page_info(const Vm& vm, const void* addr) {
  PageInfo out{};
  if (!vm.in_arena(addr)) return out;
  const std::uint64_t page = vm.page_of(addr);
  out.domain = vm.domain_of_page(page);
  const VmDomain& domain = vm.domains[static_cast<std::size_t>(out.domain)];
  if (page - domain.first_page < domain.page_count)
    out.physical = (domain.first_physical + page - domain.first_page) * kPageBytes;
  const std::uint8_t attributes = vm.page_attr[page];
  out.dumped = (attributes & kPageNoDump) == 0;
  out.arena = (attributes & kPageNoFree) != 0 ? KmemArena::nofree
              : (attributes & kPageExec) != 0 ? KmemArena::rwx
                                              : KmemArena::normal;
  return out;
}

}  // namespace dtmalloc
