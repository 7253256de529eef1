// SPDX-License-Identifier: BSD-2-Clause
// Kernel: boot, and what can be read from outside.
//
// Counterpart:  sys/kern/kern_malloc.c (kmeminit, mallocinit)
#include <sys/mman.h>

#include <algorithm>
#include <thread>

#include "kern/kernel_impl.hpp"
#include "kern/objects.hpp"
#include "kern/redzone.hpp"
#include "vm/memguard.hpp"

namespace dtmalloc {
namespace {

constexpr std::uint64_t kForcedZmaxPages = 32768;
constexpr std::uint64_t kMinMem = 256 * 1024;

std::size_t colour(int id) { return static_cast<std::size_t>(id) % kColours * kColourStep; }

constexpr std::size_t kOwnerBytes = kColumnLines / sizeof(malloc_type_stats) * sizeof(void*);
constexpr std::size_t kFixedBytes = MAXCPU * kColumnBytes + kDataBytes + kOwnerBytes;

// Null: the host refuses.
void* try_map(std::size_t size, int protection) {
  void* at = mmap(nullptr, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

Mapping map(std::size_t size, int protection) {
  void* at = try_map(size, protection);
  if (at == nullptr) throw KernelPanic("cannot boot: the host refuses address space");
  return {static_cast<std::byte*>(at), Unmap{size}};
}

// The kernel's hazard of an unloaded provider with enabled probes: a call through a null pointer.
void no_hook(std::uint32_t, std::uintptr_t, std::uintptr_t, std::uintptr_t, std::uintptr_t,
             std::uintptr_t) {
  curcpu->machine->panic("page fault: dtrace_malloc_probe is NULL");
}

std::string flag_names(int flags) {
  static constexpr std::pair<int, const char*> kNames[] = {
      {kM_NOWAIT, "M_NOWAIT"}, {kM_WAITOK, "M_WAITOK"},     {kM_NORECLAIM, "M_NORECLAIM"},
      {kM_ZERO, "M_ZERO"},     {kM_NOVM, "M_NOVM"},         {kM_USE_RESERVE, "M_USE_RESERVE"},
      {kM_NODUMP, "M_NODUMP"}, {kM_FIRSTFIT, "M_FIRSTFIT"}, {kM_BESTFIT, "M_BESTFIT"},
      {kM_EXEC, "M_EXEC"},     {kM_NEXTFIT, "M_NEXTFIT"},   {kM_NEVERFREED, "M_NEVERFREED"}};
  std::string out;
  for (const auto& [bit, name] : kNames)
    if ((flags & bit) != 0) out += (out.empty() ? "" : "|") + std::string(name);
  return out.empty() ? "0" : out;
}

// spec/malloc9.md 2.3
std::size_t choose_zmax(const KernelConfig& config, std::size_t largest) {
  const std::optional<std::int64_t> tunable = tunable_number(config, "vm.kmem_zmax");
  std::size_t zmax = tunable ? static_cast<std::size_t>(*tunable) : largest;
  if (config.mem / kPageSize <= kForcedZmaxPages) zmax = kPageSize;
  if (zmax < kPageSize || zmax > largest) zmax = largest;
  return zmax;
}

// spec/malloc9.md 3.11: debug.malloc.numzones is brought into 1 to MALLOC_DEBUG_MAXZONES.
unsigned choose_numzones(const KernelConfig& config) {
  const std::optional<std::int64_t> tunable = tunable_number(config, "debug.malloc.numzones");
  if (!tunable) return static_cast<unsigned>(config.maxzones);
  return static_cast<unsigned>(std::clamp<std::int64_t>(*tunable, 1, config.maxzones));
}

inline void enter(Kernel& kernel) {
  if (__builtin_expect(curcpu->kernel != &kernel, 0)) kernel.cpus().bind_any();
}

}  // namespace

// spec/malloc9.md 5.11
KmemSize kmem_init(const KernelConfig& config) {
  // Three fifths of the kernel's address space, 2^41 bytes less its last page.
  constexpr std::uint64_t kMax = ((std::uint64_t{1} << 41) - kPageSize + 1) * 3 / 5;
  const auto number = [&](std::string_view name, std::uint64_t otherwise) {
    return static_cast<std::uint64_t>(
        tunable_number(config, name).value_or(static_cast<std::int64_t>(otherwise)));
  };
  KmemSize out{};
  out.size = number("vm.kmem_size", 0);
  out.min = number("vm.kmem_size_min", 0);
  out.max = number("vm.kmem_size_max", kMax);
  out.scale = static_cast<std::uint32_t>(number("vm.kmem_size_scale", 1));
  if (out.scale == 0) out.scale = 1;
  const std::uint64_t pages = config.mem / kPageSize;
  if (out.size == 0) {
    out.size = pages / out.scale * kPageSize;
    if (out.min != 0 && out.size < out.min) out.size = out.min;
    if (out.max != 0 && out.size >= out.max) out.size = out.max;
  }
  if (out.size == 0) throw KernelPanic("Tune VM_KMEM_SIZE_* for the platform");
  if (out.size / 2 / kPageSize > pages) out.size = 2 * pages * kPageSize;
  out.size = round_page(out.size);
  out.limit = out.size;
  if (config.memguard)
    out.limit += Memguard::map_size(out.size, number("vm.memguard.divisor", 10), pages);
  return out;
}

std::optional<Diagnostic> Kernel::check(const KernelConfig& config) {
  auto bad = [](const char* tag, std::string message, std::string expected) {
    Diagnostic diagnostic;
    diagnostic.tag = tag;
    diagnostic.message = std::move(message);
    diagnostic.expected = std::move(expected);
    return diagnostic;
  };
  if (KernelRelease::find(config.release) == nullptr) {
    std::string known;
    for (int version : KernelRelease::versions())
      known += (known.empty() ? "" : ", ") + std::to_string(version);
    return bad("KERNEL_RELEASE", "no release " + std::to_string(config.release), "one of " + known);
  }
  if (config.cpus < 1 || config.cpus > MAXCPU)
    return bad("KERNEL_CPUS", "cpus=" + std::to_string(config.cpus), "1 to 1024");
  if (config.domains < 1 || config.domains > kMaxDomains)
    return bad("KERNEL_DOMAINS", "domains=" + std::to_string(config.domains), "1 to 8");
  if (config.mem / static_cast<unsigned>(config.domains) < kMinMem)
    return bad("KERNEL_MEM", "mem=" + std::to_string(config.mem) + " is too small",
               config.domains == 1 ? "at least 256K" : "at least 256K a domain");
  if (!config.classes.empty()) {
    const bool shape =
        config.classes.size() <= kMaxClasses && config.classes.back() <= KMEM_ZMAX &&
        std::is_sorted(config.classes.begin(), config.classes.end()) &&
        std::adjacent_find(config.classes.begin(), config.classes.end()) == config.classes.end() &&
        std::all_of(config.classes.begin(), config.classes.end(),
                    [](std::uint32_t size) { return size != 0 && size % KMEM_ZBASE == 0; });
    if (!shape)
      return bad("KERNEL_CLASSES", "a class table that malloc(9) cannot use",
                 "up to 31 ascending multiples of 16, none above 65536");
  }
  if (config.maxzones < 1 || config.maxzones > 255)
    return bad("KERNEL_MAXZONES", "maxzones=" + std::to_string(config.maxzones), "1 to 255");
  if (auto wrong = check_tunables(config)) return wrong;
  void* fixed = try_map(kFixedBytes, PROT_NONE);
  const bool granted = fixed != nullptr && Vm::can_reserve(config.mem, config.domains);
  if (fixed != nullptr) munmap(fixed, kFixedBytes);
  if (!granted)
    return bad("KERNEL_MEM",
               "the host refuses the address space of mem=" + std::to_string(config.mem),
               fixed != nullptr ? "less memory" : "room for 17 GiB of addresses (ulimit -v)");
  return std::nullopt;
}

void Unmap::operator()(std::byte* at) const { munmap(at, size); }

void Kernel::Impl::panic(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  const std::string text = kernel_vformat(addresses, format, arguments);
  va_end(arguments);
  cpus->panic(text);
}

std::unique_ptr<Cpu, void (*)(Cpu*)> Kernel::Impl::make_cpu(int id) {
  std::byte* column = columns.get() + static_cast<std::size_t>(id) * kColumnBytes;
  DTM_CHECK(mprotect(column, kColumnBytes, PROT_READ | PROT_WRITE) == 0,
            "the host refuses the memory of a CPU");
  auto* cpu = new (column + colour(id)) KernCpu;
  const auto* base = reinterpret_cast<std::byte*>(cpu);
  cpu->stats_base = reinterpret_cast<std::byte*>(cpu);
  cpu->domain = vm->domain_of_cpu(id, config.cpus);
  cpu->page_zone = vm->page_zone[static_cast<std::size_t>(cpu->domain)];
  cpu->arena_base = reinterpret_cast<std::uintptr_t>(vm->arena);
  cpu->arena_pages = vm->arena_pages;
  cpu->kernel = &self;
  for (std::size_t i = 0; i <= KMEM_ZSIZE; ++i) {
    const std::size_t slot = i * KMEM_ZBASE <= kmem_zmax ? kmemsize[i] + std::size_t{1} : 0;
    cpu->slot_offset[i] = static_cast<std::uint16_t>(
        reinterpret_cast<std::byte*>(&cpu->slots[slot]) - reinterpret_cast<std::byte*>(cpu));
  }
  for (std::size_t zindx = 0; zindx < classes.size(); ++zindx) {
    uma_cache& cache = cpu->slots[zindx + 1];
    cache.uz_size = zones[zindx]->uz_size;
    cache.mask_bit = std::uint64_t{1} << zindx;
    cache.zindx = static_cast<std::int64_t>(zindx);
    zone_attach_cache(*zones[zindx], id, &cache);
  }
  {
    const std::lock_guard lock(hook_mutex);
    cpu->dtrace_malloc_probe = hook != nullptr ? hook : no_hook;
    cpu->dtrace_malloc_enabled = hook_enabled;
    cpu->function_probes = &function_probes;
    cpu->guard.store((calls_watched() ? kGuardDebug : 0U) | (functions_traced ? kGuardTwin : 0U),
                     std::memory_order_relaxed);
    cpus_made = id + 1;
  }
  const std::size_t lines = (sizeof(KernCpu) + 63) / 64 * 64;
  addresses.add({AddressMap::kPerCpu + static_cast<std::size_t>(id) * kColumnBytes + lines,
                 base + lines, kColumnBytes - colour(id) - lines, true});
  return {cpu, [](Cpu* gone) { static_cast<KernCpu*>(gone)->~KernCpu(); }};
}

Kernel::Impl::Impl(Kernel& self_kernel, const KernelConfig& kernel_config)
    : self(self_kernel), config(kernel_config) {
  if (std::optional<Diagnostic> wrong = Kernel::check(config))
    throw KernelPanic("cannot boot: " + wrong->message + ", expected " + wrong->expected);
  release = *KernelRelease::find(config.release);
  kmem = kmem_init(config);
  numzones = choose_numzones(config);
  zone_offset = static_cast<unsigned>(
      tunable_number(config, "debug.malloc.zone_offset").value_or(release.osreldate));
  make_failures.failure_rate =
      static_cast<int>(tunable_number(config, "debug.malloc.failure_rate").value_or(0));
  classes = config.classes.empty() ? release.classes : config.classes;
  kmem_zmax = choose_zmax(config, classes.back());
  for (std::size_t i = 0, zindx = 0; i <= KMEM_ZSIZE; ++i) {
    while (zindx + 1 < classes.size() && classes[zindx] < i * KMEM_ZBASE) ++zindx;
    kmemsize[i] = static_cast<std::uint8_t>(zindx);
  }
  next_line = (sizeof(KernCpu) + 63) / 64 * 64;
  columns = map(MAXCPU * kColumnBytes, PROT_NONE);
  data = map(kDataBytes, PROT_READ | PROT_WRITE);
  owners = map(kOwnerBytes, PROT_READ | PROT_WRITE);
  addresses.add({AddressMap::kData + AddressMap::kDataRegion, data.get(), kDataBytes, true});

  SmpConfig smp;
  smp.count = 0;
  smp.may_grow = true;
  smp.seed = config.seed;
  smp.real_clock = config.real_clock;
  smp.mode = config.mode;
  cpus = std::make_unique<CpuSet>(smp, [this](int id) { return make_cpu(id); });
  if (config.console) cpus->set_console(config.console);
  const VmConfig memory{config.mem, config.invariants, config.domains, release.notrim, config.cpus};
  vm = std::make_unique<Vm>(*cpus, addresses, sysctl, memory);
  vm->dbg_divisor = static_cast<unsigned>(tunable_number(config, "vm.debug.divisor").value_or(1));
  vm->multipage_slabs = tunable_number(config, "vm.debug.uma_multipage_slabs").value_or(1) != 0;
  uma_set_limit(*vm, kmem.limit);
  vm->zone_warnings = static_cast<int>(tunable_number(config, "vm.zone_warnings").value_or(1));
  if (config.redzone)
    redzone = std::make_unique<Redzone>(
        *this, static_cast<int>(tunable_number(config, "vm.redzone.panic").value_or(0)));
  vm->describe_operation = [this](const OperationNote& note) {
    if (note.zone != nullptr)
      return std::string(note.name) + " " + note.zone->uz_name + " " + flag_names(note.flags);
    const auto* mtp = static_cast<const malloc_type*>(note.type);
    std::string name(self.symbol(*mtp));
    if (name.empty()) name = mtp->ks_shortdesc;
    return std::string(note.name) + " " + std::to_string(note.size) + " " + name + " " +
           flag_names(note.flags);
  };
  if (config.ledger) ledger = std::make_unique<Ledger>(self, *config.ledger);
  uma_startup(*vm);
  uma_knobs(*vm);
  for (unsigned subzone = 0; subzone < numzones; ++subzone)
    for (std::size_t zindx = 0; zindx < classes.size(); ++zindx) {
      const std::size_t size = classes[zindx];
      // spec/malloc9.md 2.2: natural alignment up to a page for powers of two above 8
      const bool power = (size & (size - 1)) == 0 && size > 8;
      const int align = power ? static_cast<int>(std::min(size, kPageSize) - 1) : UMA_ALIGN_PTR;
      const std::string name = (release.zone_prefix ? "malloc-" : "") + std::to_string(size);
      // The page map tells the fast path of free() the class; with subzones there is none.
      const auto page_zone = static_cast<std::uint8_t>(numzones == 1 ? zindx + 1 : 0);
      zones.push_back(zone_create(*vm, name, size, align, UMA_ZONE_MALLOC, page_zone));
      if (config.invariants) mtrash_attach(*zones.back());
    }
  if (config.memguard)
    vm->memguard = std::make_unique<Memguard>(
        *vm, MemguardConfig{
                 .desc = std::string(
                     tunable_text(config, "vm.memguard.desc").substr(0, kMemguardDescBytes - 1)),
                 .divisor = static_cast<std::uint64_t>(
                     tunable_number(config, "vm.memguard.divisor").value_or(10)),
                 .options = static_cast<int>(
                     tunable_number(config, "vm.memguard.options").value_or(MG_GUARD_AROUND)),
                 .frequency = static_cast<std::uint32_t>(
                     tunable_number(config, "vm.memguard.frequency").value_or(0)),
                 .kmem_size = kmem.size,
                 .seed = config.seed});
  add_sysctls();
  malloc_sysctl_init(*this);
  objects = std::make_unique<KernelObjects>(*this);
  cpus->boot(config.cpus, !config.fixed_cpus);
}

Kernel::Impl::~Impl() {
  cpus->end_threads();
  detach_static_types();
}

Kernel::Kernel(const KernelConfig& config) : impl_(std::make_unique<Impl>(*this, config)) {
  impl_->boot_types();
}

Kernel::~Kernel() = default;

const KernelConfig& Kernel::config() const { return impl_->config; }
const KernelRelease& Kernel::release() const { return impl_->release; }
const std::vector<std::uint32_t>& Kernel::classes() const { return impl_->classes; }
std::uint64_t Kernel::kmem_zmax() const { return impl_->kmem_zmax; }
CpuSet& Kernel::cpus() { return *impl_->cpus; }
AddressMap& Kernel::addresses() { return impl_->addresses; }
Vm& Kernel::vm() { return *impl_->vm; }
SysctlTree& Kernel::sysctl() { return impl_->sysctl; }
Ledger* Kernel::ledger() { return impl_->ledger.get(); }
const Ledger* Kernel::ledger() const { return impl_->ledger.get(); }
Kernel* Kernel::current() { return static_cast<Kernel*>(curcpu->kernel); }

std::vector<ZoneStats> Kernel::zones() const { return zone_stats(*impl_->vm); }
std::uint64_t Kernel::free_pages() const { return impl_->vm->free_pages(); }
std::uint64_t Kernel::total_pages() const { return impl_->vm->page_count; }
std::uint64_t Kernel::uma_kmem_total() const { return impl_->vm->uma_kmem_total.load(); }

std::size_t Kernel::block_size(const void* addr) const {
  if (Memguard* memguard = impl_->vm->memguard.get(); memguard != nullptr && memguard->owns(addr))
    return memguard->block_bytes(addr);
  if (impl_->redzone != nullptr) addr = impl_->redzone->raw_if_block(addr);
  const std::uintptr_t word = impl_->vm->slab_word(addr);
  if (word == 0) return 0;
  if ((word & SLAB_COOKIE_MASK) == SLAB_COOKIE_SLAB_PTR)
    return reinterpret_cast<uma_slab*>(word)->us_keg->zone->uz_size;
  return round_page(word >> SLAB_COOKIE_SHIFT);
}

Result<void> Kernel::poke(void* addr, std::uint8_t byte) {
  Impl& k = *impl_;
  enter(*this);
  Memguard* memguard = k.vm->memguard.get();
  const bool guarded = memguard != nullptr && memguard->owns(addr);
  Diagnostic refused;
  refused.tag = "KERNEL_POKE";
  if (!guarded && !k.vm->in_arena(addr)) {
    refused.message = "the address lies outside the kernel's memory";
    return refused;
  }
  if (guarded && !memguard->mapped(addr)) k.page_fault(addr, true);
  bool machinery = guarded && memguard->is_machinery(addr);
  if (!guarded) {
    const std::uintptr_t word = k.vm->slab_word(addr);
    if (word != 0 && (word & SLAB_COOKIE_MASK) == SLAB_COOKIE_SLAB_PTR)
      machinery = Impl::is_machinery(word) || Impl::in_inline_header(word, addr);
  }
  if (machinery) {
    refused.message = "not modelled: a store into UMA's own memory";
    return refused;
  }
  *static_cast<std::uint8_t*>(addr) = byte;
  return {};
}

void Kernel::Impl::change_hook(const std::function<void()>& change,
                               const std::function<void(Cpu&)>& apply) {
  int made;
  {
    const std::lock_guard lock(hook_mutex);
    change();
    made = cpus_made;
  }
  // One that was made with the old state may be about to join; later ones copy the new state.
  while (cpus->count() < made) std::this_thread::yield();
  for (int id = 0; id < made; ++id) {
    Cpu& cpu = cpus->cpu(id);
    cpus->run_on_cpu(cpu, [&] { apply(cpu); });
  }
}

void Kernel::Impl::change_debug_guard() {
  change_hook([] {},
              [this](Cpu& cpu) {
                if (calls_watched())
                  cpus->set_guard(cpu, kGuardDebug);
                else
                  cpus->clear_guard(cpu, kGuardDebug);
              });
}

void Kernel::set_malloc_probe(dtrace_malloc_probe_func_t function) {
  const dtrace_malloc_probe_func_t called = function != nullptr ? function : no_hook;
  impl_->change_hook([&] { impl_->hook = function; },
                     [&](Cpu& cpu) { cpu.dtrace_malloc_probe = called; });
}

void Kernel::set_malloc_probes_enabled(bool enabled) {
  impl_->change_hook([&] { impl_->hook_enabled = enabled; },
                     [&](Cpu& cpu) { cpu.dtrace_malloc_enabled = enabled; });
}

FunctionProbes& Kernel::function_probes() { return impl_->function_probes; }

void Kernel::set_functions_traced(bool traced) {
  impl_->change_hook([&] { impl_->functions_traced = traced; },
                     [&](Cpu& cpu) {
                       if (traced)
                         impl_->cpus->set_guard(cpu, kGuardTwin);
                       else
                         impl_->cpus->clear_guard(cpu, kGuardTwin);
                     });
}

// --- malloc(9) on this kernel: the calling thread gets a CPU of it first

void* Kernel::malloc(std::size_t size, malloc_type* mtp, MallocFlags flags) {
  enter(*this);
  return kern_malloc(size, mtp, flags.bits);
}
void Kernel::free(void* addr, malloc_type* mtp) {
  enter(*this);
  kern_free(addr, mtp);
}
void Kernel::zfree(void* addr, malloc_type* mtp) {
  enter(*this);
  kern_zfree(addr, mtp);
}
void* Kernel::realloc(void* addr, std::size_t size, malloc_type* mtp, MallocFlags flags) {
  enter(*this);
  return kern_realloc(addr, size, mtp, flags.bits);
}
void* Kernel::reallocf(void* addr, std::size_t size, malloc_type* mtp, MallocFlags flags) {
  enter(*this);
  return kern_reallocf(addr, size, mtp, flags.bits);
}
void* Kernel::mallocarray(std::size_t nmemb, std::size_t size, malloc_type* mtp,
                          MallocFlags flags) {
  enter(*this);
  return kern_mallocarray(nmemb, size, mtp, flags.bits);
}
void* Kernel::malloc_aligned(std::size_t size, std::size_t align, malloc_type* mtp,
                             MallocFlags flags) {
  enter(*this);
  return kern_malloc_aligned(size, align, mtp, flags.bits);
}
void* Kernel::malloc_exec(std::size_t size, malloc_type* mtp, MallocFlags flags) {
  enter(*this);
  return kern_malloc_exec(size, mtp, flags.bits);
}
void* Kernel::contigmalloc(std::size_t size, malloc_type* mtp, MallocFlags flags, std::uint64_t low,
                           std::uint64_t high, std::size_t alignment, std::uint64_t boundary) {
  enter(*this);
  return kern_contigmalloc(size, mtp, flags.bits, low, high, alignment, boundary);
}
void* Kernel::malloc_domainset(std::size_t size, malloc_type* mtp, const domainset* ds,
                               MallocFlags flags) {
  enter(*this);
  return kern_malloc_domainset(size, mtp, ds, flags.bits);
}
void* Kernel::malloc_domainset_exec(std::size_t size, malloc_type* mtp, const domainset* ds,
                                    MallocFlags flags) {
  enter(*this);
  return kern_malloc_domainset_exec(size, mtp, ds, flags.bits);
}
void* Kernel::malloc_domainset_aligned(std::size_t size, std::size_t align, malloc_type* mtp,
                                       const domainset* ds, MallocFlags flags) {
  enter(*this);
  return kern_malloc_domainset_aligned(size, align, mtp, ds, flags.bits);
}
void* Kernel::mallocarray_domainset(std::size_t nmemb, std::size_t size, malloc_type* mtp,
                                    const domainset* ds, MallocFlags flags) {
  enter(*this);
  return kern_mallocarray_domainset(nmemb, size, mtp, ds, flags.bits);
}
void* Kernel::contigmalloc_domainset(std::size_t size, malloc_type* mtp, const domainset* ds,
                                     MallocFlags flags, std::uint64_t low, std::uint64_t high,
                                     std::size_t alignment, std::uint64_t boundary) {
  enter(*this);
  return kern_contigmalloc_domainset(size, mtp, ds, flags.bits, low, high, alignment, boundary);
}
void Kernel::contigfree(void* addr, std::size_t size, malloc_type* mtp) {
  enter(*this);
  kern_contigfree(addr, size, mtp);
}
std::size_t Kernel::malloc_size(std::size_t size) {
  enter(*this);
  return kern_malloc_size(size);
}
std::size_t Kernel::malloc_usable_size(const void* addr) {
  enter(*this);
  return kern_malloc_usable_size(addr);
}
void Kernel::malloc_type_allocated(malloc_type* mtp, unsigned long size) {
  enter(*this);
  kern_malloc_type_allocated(mtp, size);
}
void Kernel::malloc_type_freed(malloc_type* mtp, unsigned long size) {
  enter(*this);
  kern_malloc_type_freed(mtp, size);
}

}  // namespace dtmalloc
