// SPDX-License-Identifier: BSD-2-Clause
// The inside of a Kernel: its CPUs' caches and statistics, its types, its zones.
//
// A CPU's column holds its KernCpu and, behind it, one 64-byte line of statistics per type, found
// at (address of the Cpu) + mti_stats. Lines are given out once; offset 0 (no line) falls on
// Cpu::no_stats, whose mask is 0, so that malloc() under an unregistered type leaves the hot path;
// free() does for kUnregistered in the type's probe ids.
//
// Locking:      malloc_mtx guards the types; hook_mutex the hook state that new CPUs copy, and
// their
//               number
// Invariants:   KERN-1: slots[0] is empty and full at once; slots[1 + zindx] is the CPU's cache of
//               class zindx
#pragma once

#include <deque>
#include <dtmalloc/kern/inline.hpp>
#include <dtmalloc/kernel.hpp>
#include <mutex>
#include <unordered_map>

#include "smp/functions.hpp"
#include "sys/format.hpp"
#include "vm/uma_int.hpp"

namespace dtmalloc {

inline constexpr std::size_t kDataBytes = std::size_t{64} << 20;    // types and names
inline constexpr std::size_t kColumnBytes = std::size_t{16} << 20;  // of one CPU
// Columns begin at different places of a page and of as many pages, so that what many CPUs have of
// one type does not share few sets of a cache, nor of a TLB.
inline constexpr std::size_t kColours = 61;
inline constexpr std::size_t kColourStep = 17 * (4096 + 128);
inline constexpr std::size_t kColumnLines = kColumnBytes - kColours * kColourStep;

using KernCpu = CpuWithCaches<uma_cache>;
static_assert(sizeof(uma_cache) == sizeof(HotSlot) && sizeof(KernCpu) == sizeof(HotCpu));

struct TypeRecord {
  malloc_type* type = nullptr;
  std::string symbol;
  std::string longdesc;
  bool owned = false;  // the object lives in this kernel's data region
  bool registered = false;
  bool retired = false;  // was registered once: unreadable until it is again
};

// MALLOC_MAKE_FAILURES.
struct MakeFailures {
  std::atomic<int> failure_rate{0}, failure_count{0};
  std::atomic<std::int64_t> nowait_count{0};
};

class Redzone;
class KernelObjects;

// Address space of the host's.
struct Unmap {
  std::size_t size = 0;
  void operator()(std::byte* at) const;
};
using Mapping = std::unique_ptr<std::byte, Unmap>;

// kmeminit(): sizes of the kernel's memory, of vm.kmem_*.
struct KmemSize {
  std::uint64_t size, min, max;
  std::uint32_t scale;
  std::uint64_t limit;  // what uma_set_limit() gets
};
// Panics, without a machine, when nothing is left.
KmemSize kmem_init(const KernelConfig& config);

struct Kernel::Impl {
  Impl(Kernel& self_kernel, const KernelConfig& kernel_config);
  ~Impl();

  Kernel& self;
  KernelConfig config;
  KernelRelease release;
  std::vector<std::uint32_t> classes;
  std::size_t kmem_zmax = KMEM_ZMAX;
  KmemSize kmem{};
  std::array<std::uint8_t, KMEM_ZSIZE + 1> kmemsize{};  // the kernel's table
  AddressMap addresses;
  SysctlTree sysctl;

  // --- the host's memory; goes after all that lies in it
  Mapping columns;  // MAXCPU reserved columns
  Mapping data;     // objects and names of owned types
  Mapping owners;   // see line_owner()
  std::size_t data_used = 0;
  // --- CPUs
  std::unique_ptr<CpuSet> cpus;
  std::unique_ptr<Vm> vm;
  std::vector<uma_zone*> zones;  // of the classes; those of subzone 0 first, then of 1, ...
  // --- options
  unsigned numzones = 1, zone_offset = 0;  // debug.malloc.*
  MakeFailures make_failures;
  std::unique_ptr<Redzone> redzone;  // DEBUG_REDZONE
  std::unique_ptr<KernelObjects> objects;
  // Some option looks at every call: kGuardDebug stands on each CPU. With subzones, which class and
  // which zone a request goes to is the type's, so a CPU's slots cannot serve it.
  bool debugs() const {
    return config.invariants || config.redzone || config.memguard || config.make_failures ||
           numzones > 1;
  }
  // mtp_get_subzone()
  unsigned char subzone_of(const char* desc) const;
  // The zone that serves a class for a type.
  uma_zone* kz_zone(const malloc_type& mtp, std::size_t zindx) {
    const unsigned subzone = mtp.ks_mti.mti_zone;
    if (subzone >= numzones)
      panic("mti_zone %u out of range %d", subzone, static_cast<int>(numzones));
    return zones[subzone * classes.size() + zindx];
  }
  // The kernel is about to write [addr, addr + size), for a block that begins elsewhere perhaps.
  // Panics where this process cannot take it: UMA's own memory, and what is no memory.
  void check_store(void* addr, std::size_t size, const char* function);
  // A simulated page fault, unless [addr, addr + size) is the kernel's memory.
  void check_mapped(const void* addr, std::size_t size, bool write);
  [[noreturn]] void page_fault(const void* addr, bool write);
  void add_sysctls();
  std::mutex hook_mutex;
  dtrace_malloc_probe_func_t hook = nullptr;
  bool hook_enabled = false;
  FunctionProbes function_probes;
  bool functions_traced = false;  // kGuardTwin stands on each CPU
  int cpus_made = 0;              // some may not have joined yet
  // Runs `change` under hook_mutex, then `apply` on every CPU that was made before it.
  void change_hook(const std::function<void()>& change, const std::function<void(Cpu&)>& apply);

  std::unique_ptr<Cpu, void (*)(Cpu*)> make_cpu(int id);
  KernCpu& kern_cpu(int id) const { return static_cast<KernCpu&>(cpus->cpu(id)); }

  // --- beyond the kernel
  std::unique_ptr<Ledger> ledger;  // null: off
  std::mutex plan_mutex;           // guards plan and plan_outcome
  FailurePlan plan;
  FailureOutcome plan_outcome;
  std::atomic<bool> failure_set{false};
  // Whether every call takes the cold path, and that told to each CPU.
  bool calls_watched() const { return debugs() || ledger != nullptr || failure_set; }
  void change_debug_guard();

  // --- types
  mutable std::mutex malloc_mtx;
  malloc_type* kmemstatistics = nullptr;  // newest first, through ks_next
  std::size_t kmemcount = 0;
  malloc_type* temp = nullptr;          // the built-in M_TEMP
  std::vector<TypeRecord*> registered;  // oldest first
  std::deque<TypeRecord> records;
  std::unordered_map<const malloc_type*, TypeRecord*> by_type;
  std::size_t next_line = 0;
  // The type that has the line of statistics at this offset now; null: none.
  std::atomic<const malloc_type*>& line_owner(std::uintptr_t offset) const {
    return reinterpret_cast<std::atomic<const malloc_type*>*>(
        owners.get())[offset / sizeof(malloc_type_stats)];
  }
  void* data_alloc(std::size_t size);
  const char* data_string(std::string_view text);
  malloc_type& make_type(std::string_view symbol, std::string_view shortdesc,
                         std::string_view longdesc);
  void register_type(malloc_type* mtp, std::string_view symbol);
  void unregister_type(malloc_type* mtp);
  // Whether the type is registered with this kernel now. No lock: debugging kernels ask at each
  // call.
  bool knows(const malloc_type* mtp) const {
    const auto offset =
        reinterpret_cast<std::uintptr_t>(__atomic_load_n(&mtp->ks_mti.mti_stats, __ATOMIC_ACQUIRE));
    return offset - 1 < kColumnLines - 1 &&
           line_owner(offset).load(std::memory_order_acquire) == mtp;
  }
  // Whether an object stands at this address that this kernel may read. A user's may be gone once
  // it is not registered.
  bool readable_type(const malloc_type* mtp) const {
    const std::lock_guard lock(malloc_mtx);
    const auto known = by_type.find(mtp);
    return known != by_type.end() && (known->second->owned || known->second->registered);
  }
  TypeStats stats_of(const malloc_type& mtp) const;

  // A CPU of which this is false has counted nothing: its lines are zeroes that nobody has touched.
  // The hot path counts only where a cold one has counted before.
  std::array<std::atomic<bool>, MAXCPU> has_counted{};
  malloc_type_stats& line_to_count(Cpu& cpu, const malloc_type& mtp) {
    std::atomic<bool>& counted = has_counted[static_cast<std::size_t>(cpu.id)];
    if (!counted.load(std::memory_order_relaxed)) counted.store(true, std::memory_order_relaxed);
    return line(cpu, mtp);
  }
  malloc_type_stats& line(Cpu& cpu, const malloc_type& mtp) const {
    return *reinterpret_cast<malloc_type_stats*>(
        reinterpret_cast<std::byte*>(&cpu) +
        reinterpret_cast<std::uintptr_t>(mtp.ks_mti.mti_stats));
  }
  // What its owner may be counting meanwhile.
  static void add_up(TypeStats& sum, const malloc_type_stats& line) {
    sum.memalloced += racy_read(line.mts_memalloced);
    sum.memfreed += racy_read(line.mts_memfreed);
    sum.numallocs += racy_read(line.mts_numallocs);
    sum.numfrees += racy_read(line.mts_numfrees);
    sum.size_mask |= racy_read(line.mts_size);
  }

  [[noreturn]] __attribute__((format(printf, 2, 3))) void panic(const char* format, ...);
  std::size_t zindx_of(std::size_t size) const {
    return kmemsize[(size + KMEM_ZMASK) >> KMEM_ZSHIFT];
  }
  bool invariants() const { return config.invariants; }
  std::atomic<bool> wait_flags_printed{false};  // the one line of KernelRelease
  // The word of an address's page as malloc(9) of this release reads it: slabs that are found
  // without the page leave none.
  std::uintptr_t slab_word(const void* addr) const {
    const std::uintptr_t word = vm->slab_word(addr);
    const std::uintptr_t cookie = word & SLAB_COOKIE_MASK;
    if (word != 0 && cookie == SLAB_COOKIE_SLAB_PTR)
      return (keg_at(word).uk_flags & UMA_ZFLAG_VTOSLAB) != 0 ? word : 0;
    return cookie == SLAB_COOKIE_CONTIG_MALLOC && !release.contig_cookie ? 0 : word;
  }
  static uma_keg& keg_at(std::uintptr_t slab_word) {
    return *reinterpret_cast<const uma_slab*>(slab_word)->us_keg;
  }
  // Whether a kernel has the slab's own header there.
  static bool in_inline_header(std::uintptr_t slab_word, const void* addr) {
    const auto& slab = *reinterpret_cast<const uma_slab*>(slab_word);
    return slab.us_header == nullptr && static_cast<const std::byte*>(addr) - slab.us_data >=
                                            std::ptrdiff_t{slab.us_keg->uk_pgoff};
  }
  // Whether this process depends on what the slab's items hold.
  static bool is_machinery(std::uintptr_t slab_word) {
    return (keg_at(slab_word).uk_flags & (UMA_ZFLAG_BUCKET | UMA_ZFLAG_INTERNAL)) != 0;
  }

  void boot_types();
  void detach_static_types();
};

// The kernel that owns the C objects, and the types that wait for one.
struct DefaultKernel {
  std::mutex mutex;
  std::atomic<Kernel*> kernel{nullptr};
  std::vector<malloc_type*> static_types;  // in order of registration
};
DefaultKernel& default_kernel_state();

// Stands in mti_probes[DTMALLOC_PROBE_FREE], where there is no probe id, of a type that was
// registered, or waits to be, and is not: the hot free() reads one word for both.
inline constexpr std::uint32_t kUnregistered = 0xffffffff;
void mark_registered(malloc_type* mtp, bool registered);

// --- malloc.cpp: the accounting primitives and the cold entries
// The kernel that the calling thread acts on, with a CPU of it, ready for a cold path. Null: the
// machine has panicked and this thread is unwinding; do nothing.
Kernel::Impl* enter_kernel();
void malloc_type_zone_allocated(Kernel::Impl& k, malloc_type* mtp, std::size_t size, int zindx,
                                bool hooks = true);
void type_freed(Kernel::Impl& k, malloc_type* mtp, std::size_t size, bool hooks = true);
// INVARIANTS' assertion on the version.
void check_version(Kernel::Impl& k, const malloc_type* mtp, const char* function);
// Panics unless the type is one of this kernel's.
void check_type(Kernel::Impl& k, const malloc_type* mtp, const char* function);
void* malloc_slow(Kernel::Impl& k, std::size_t size, malloc_type* mtp, int flags, bool hooks);
void* malloc_large(Kernel::Impl& k, std::size_t size, malloc_type* mtp, const domainset& ds,
                   int flags, const char* name, bool hooks);
void free_slow(Kernel::Impl& k, void* addr, malloc_type* mtp, bool zero, bool hooks);
// What malloc(9) passes to the constructor of a zone of its own.
inline void* ctor_argument(const Kernel::Impl& k, uma_zone* zone) {
  return k.release.malloc_ctor_gets_zone ? zone : nullptr;
}

// --- malloc_sysctl.cpp
void malloc_sysctl_init(Kernel::Impl& k);

// --- malloc_dbg.cpp: the debugging options at the door; under DEBUG_REDZONE sizes and addresses
// become raw ones
// True: `*addr` is what malloc() returns.
bool malloc_dbg(Kernel::Impl& k, void** addr, std::size_t* size, malloc_type* mtp, int flags);
// True: nothing is left to free.
bool free_dbg(Kernel::Impl& k, void** addr, malloc_type* mtp);
// What malloc() returns for a raw block of a request of `osize` bytes; null stays null.
void* redzone_setup(Kernel::Impl& k, void* addr, std::size_t osize);
// The size of a request with its guards.
std::size_t redzone_size(const Kernel::Impl& k, std::size_t size);

// --- tunables.cpp
std::optional<Diagnostic> check_tunables(const KernelConfig& config);
std::optional<std::int64_t> tunable_number(const KernelConfig& config, std::string_view name);
std::string_view tunable_text(const KernelConfig& config, std::string_view name);

// --- mtrash.cpp: INVARIANTS' junk in free items of malloc zones
void mtrash_attach(uma_zone& zone);
// Leaves the type in the last word of a block that is freed.
void free_save_type(void* addr, malloc_type* mtp, std::size_t size);

// WOULD_OVERFLOW
inline bool would_overflow(std::size_t nmemb, std::size_t size) {
  constexpr std::size_t kSafe = std::size_t{1} << 32;
  return (nmemb >= kSafe || size >= kSafe) && nmemb > 0 && SIZE_MAX / nmemb < size;
}

// Names the operation for the report of a deadlock while it lives.
class Note {
 public:
  Note(const char* name, std::size_t size, const malloc_type* mtp, int flags)
      : note_{name, size, mtp, flags}, outer_(current_operation) {
    if (outer_ == nullptr) current_operation = &note_;
  }
  ~Note() {
    if (outer_ == nullptr) current_operation = nullptr;
  }
  Note(const Note&) = delete;
  Note& operator=(const Note&) = delete;

 private:
  OperationNote note_;
  const OperationNote* outer_;
};

// Up to whole pages; 0 for what is above 2^64 - 4096.
inline constexpr std::size_t round_page(std::size_t size) {
  return (size + kPageSize - 1) / kPageSize * kPageSize;
}

}  // namespace dtmalloc
