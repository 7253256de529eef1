// SPDX-License-Identifier: BSD-2-Clause
// Kernel: one simulated machine. A value; no globals.
//
// Example:
//   Kernel k{KernelConfig{.cpus = 2, .mem = 1ull << 30}};
//   malloc_type& foo = k.define_type("M_FOO", "foo", "Foo subsystem");
//   void* p = k.malloc(100, &foo, M_WAITOK);
//   TypeStats s = k.type_stats(foo);                       // s.memalloced == 128
//   for (const Leak& leak : k.leaks()) ...
//
// Units:         bytes, pages of 4096 bytes, nanoseconds.
// Errors:        KernelPanic; the machine stays readable after one. check() says what is wrong with
// a
//                configuration; a constructor given such a one throws KernelPanic("cannot boot:
//                ...").
// Thread safety: all members may be called from any thread; boot and destruction by one.
// Source:        src/README.md; spec/malloc9.md.
#pragma once

#include <array>
#include <dtmalloc/kern/failure.hpp>
#include <dtmalloc/kern/ledger.hpp>
#include <dtmalloc/kern/malloc.hpp>
#include <dtmalloc/smp/cpu.hpp>
#include <dtmalloc/sys/address_map.hpp>
#include <dtmalloc/sys/sysctl.hpp>
#include <dtmalloc/vm/kmem.hpp>
#include <dtmalloc/vm/uma.hpp>
#include <dtmalloc/vm/zone_stats.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtmalloc {

inline constexpr std::size_t kPageSize = 4096;

// What differs between FreeBSD releases, as data: spec/malloc9.md 0. KernelRelease::find(16) etc.
struct KernelRelease {
  int version;                         // 8 12 14 16
  std::vector<std::uint32_t> classes;  // zone sizes, ascending
  bool zone_prefix;                    // "malloc-16" (true) or "16"
  int vmstat_format;                   // 2: humanized; 1: KiB columns; 0: with HighUse

  // A page says of contiguous memory what it is: free(), zfree(), realloc() and
  // malloc_usable_size() know it, and contigfree() is free(). Otherwise only contigfree() takes it,
  // with its size, and the others find an address that was not allocated.
  bool contig_cookie;
  // INVARIANTS: neither or both of M_WAITOK and M_NOWAIT is a panic; otherwise it is printed, once.
  bool wait_flags_asserted;
  bool large_by_domainset;     // malloc_domainset of large blocks: the caller's policy counts
  bool size_of_large;          // malloc_size() above kmem_zmax: whole pages; otherwise 0
  bool contig_redzone;         // DEBUG_REDZONE guards contiguous memory too
  bool panic_names_function;   // "_free(0): address ..." or "free: address ... .\n"
  bool malloc_ctor_gets_zone;  // a panic of mtrash's constructor names the zone
  bool dtmalloc_node;          // the provider makes /dev/dtrace/dtmalloc
  bool notrim;                 // UMA_ZONE_NOTRIM keeps a zone from the timer and from TRIM
  std::uint32_t osreldate;     // __FreeBSD_version; the last digits: UNVERIFIED
  static const KernelRelease* find(int version);
  static std::vector<int> versions();
};

// One line of loader.conf(5).
struct Tunable {
  std::string name, value;
  bool operator==(const Tunable&) const = default;
};

struct KernelConfig {
  int release = 16;
  int cpus = 4;
  bool fixed_cpus = false;         // true: no CPU beyond `cpus` (the command)
  std::uint64_t mem = 8ull << 30;  // physical memory, bytes
  std::uint64_t seed = 1;
  std::uint64_t op_cost = 100;  // virtual ns per operation
  bool real_clock = false;
  RunMode mode = RunMode::deterministic;

  // --- options of the kernel's build; each that is set sends every call past the fast path
  // INVARIANTS: the assertions of malloc(9) and uma(9) on flags, versions and context; every item's
  // allocation and free checked by a bit; blocks of the malloc zones filled with junk when free and
  // looked at when handed out, all but their last word, which names the freer's type. Large and
  // contiguous blocks are not checked, as in the kernel.
  bool invariants = false;
  bool redzone = false;        // DEBUG_REDZONE: guard bytes around blocks, looked at by free()
  bool memguard = false;       // DEBUG_MEMGUARD: chosen blocks on pages of their own (vm.memguard)
  bool make_failures = false;  // MALLOC_MAKE_FAILURES: debug.malloc.failure_rate
  int maxzones = 1;            // MALLOC_DEBUG_MAXZONES: most zones of a size class, 1 to 255
  // Sets these options as a kernel configuration file does: GENERIC (INVARIANTS, 8 subzones) or
  // GENERIC-NODEBUG (none, the default).
  Result<void> set_options(std::string_view configuration);

  // What loader.conf(5) sets; of two lines with one name the later one holds. Numbers are decimal,
  // octal or 0x, with a suffix k m g t.
  std::vector<Tunable> tunables;

  // NUMA domains, 1 to 8. Memory is split evenly; so are the CPUs at boot, in order of their ids;
  // CPUs that join later go to the domains in turn (id % domains).
  int domains = 1;
  std::vector<std::uint32_t> classes;  // what-if class table; empty: the release's
  // The console from boot on, until CpuSet::set_console(). Null: stderr.
  std::function<void(std::string_view)> console;
  // Books of our own beside the kernel's: owners, peaks, findings. Changes nothing that it counts.
  std::optional<LedgerConfig> ledger;
};

// Sums over all CPUs.
struct TypeStats {
  std::uint64_t memalloced = 0;
  std::uint64_t memfreed = 0;
  std::uint64_t numallocs = 0;
  std::uint64_t numfrees = 0;
  std::uint64_t size_mask = 0;
};

struct Leak {
  const malloc_type* type;
  std::int64_t allocations;
  std::int64_t bytes;
};

class Kernel {
 public:
  explicit Kernel(const KernelConfig& config);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  // What is wrong with a configuration, or nothing.
  static std::optional<Diagnostic> check(const KernelConfig& config);

  const KernelConfig& config() const;
  const KernelRelease& release() const;
  const std::vector<std::uint32_t>& classes() const;  // the class table in force
  std::uint64_t kmem_zmax() const;
  CpuSet& cpus();
  AddressMap& addresses();
  // The kernel of the current CPU, or nullptr.
  static Kernel* current();
  // The kernel that owns the C objects (MALLOC_DEFINE), or nullptr.
  static Kernel* default_kernel();

  // --- malloc(9) on this kernel
  void* malloc(std::size_t size, malloc_type* mtp, MallocFlags flags);
  void free(void* addr, malloc_type* mtp);
  void zfree(void* addr, malloc_type* mtp);
  void* realloc(void* addr, std::size_t size, malloc_type* mtp, MallocFlags flags);
  void* reallocf(void* addr, std::size_t size, malloc_type* mtp, MallocFlags flags);
  void* mallocarray(std::size_t nmemb, std::size_t size, malloc_type* mtp, MallocFlags flags);
  void* malloc_aligned(std::size_t size, std::size_t align, malloc_type* mtp, MallocFlags flags);
  void* malloc_exec(std::size_t size, malloc_type* mtp, MallocFlags flags);
  void* contigmalloc(std::size_t size, malloc_type* mtp, MallocFlags flags, std::uint64_t low = 0,
                     std::uint64_t high = ~std::uint64_t{0}, std::size_t alignment = kPageSize,
                     std::uint64_t boundary = 0);
  // From the domains of a set; in the order of its policy.
  void* malloc_domainset(std::size_t size, malloc_type* mtp, const domainset* ds,
                         MallocFlags flags);
  void* malloc_domainset_exec(std::size_t size, malloc_type* mtp, const domainset* ds,
                              MallocFlags flags);
  void* malloc_domainset_aligned(std::size_t size, std::size_t align, malloc_type* mtp,
                                 const domainset* ds, MallocFlags flags);
  void* mallocarray_domainset(std::size_t nmemb, std::size_t size, malloc_type* mtp,
                              const domainset* ds, MallocFlags flags);
  void* contigmalloc_domainset(std::size_t size, malloc_type* mtp, const domainset* ds,
                               MallocFlags flags, std::uint64_t low = 0,
                               std::uint64_t high = ~std::uint64_t{0},
                               std::size_t alignment = kPageSize, std::uint64_t boundary = 0);
  void contigfree(void* addr, std::size_t size, malloc_type* mtp);
  std::size_t malloc_size(std::size_t size);
  std::size_t malloc_usable_size(const void* addr);
  void malloc_type_allocated(malloc_type* mtp, unsigned long size);
  void malloc_type_freed(malloc_type* mtp, unsigned long size);

  // --- types
  // Makes and registers a type that the kernel owns. `symbol` is the C name ("M_FOO").
  malloc_type& define_type(std::string_view symbol, std::string_view shortdesc,
                           std::string_view longdesc = {});
  void malloc_init(malloc_type* mtp);    // register (also a user's own object)
  void malloc_uninit(malloc_type* mtp);  // unregister; prints the leak warning on the console
  malloc_type* type(std::string_view shortdesc);         // malloc_desc2type, newest first; or null
  malloc_type* type_by_symbol(std::string_view symbol);  // "M_TEMP"; or null
  std::string_view symbol(const malloc_type& mtp) const;
  std::vector<malloc_type*> types() const;  // oldest registered first; no side effect
  // malloc_type_list(9), to the letter: newest first, costs `temp` a malloc and a free.
  void malloc_type_list(const std::function<void(malloc_type*)>& function);
  TypeStats type_stats(const malloc_type& mtp) const;
  // What happened before the run: statistics of CPU 0, no probe.
  void add_history(malloc_type& mtp, const TypeStats& history);
  std::vector<Leak> leaks() const;

  // --- beyond the kernel
  Ledger* ledger();  // null: off
  const Ledger* ledger() const;
  // Makes one request fail: the malloc family but for M_WAITOK. Leaves no trace in any counter.
  void plan_failure(const FailurePlan& plan);
  FailureOutcome end_failure();  // ends the plan

  // --- zones and memory
  // In the order of vmstat -z: cache-only zones, then each keg's secondary zones and its primary
  // one; the oldest first, but for the secondary ones.
  std::vector<ZoneStats> zones() const;
  std::uint64_t free_pages() const;
  std::uint64_t total_pages() const;
  std::uint64_t uma_kmem_total() const;
  // Host pointer -> what it belongs to: the class size of the slab that covers it (whether or not
  // the item is live), the page-rounded size of the large or contiguous block that begins in its
  // page, or 0.
  std::size_t block_size(const void* addr) const;
  // A stray store of the kernel's: one byte, anywhere in the memory that malloc(9) and uma(9) hand
  // out, live or free. Panics ("page fault") where nothing is mapped; refuses what is no such
  // memory, and UMA's own.
  Result<void> poke(void* addr, std::uint8_t byte);

  // --- the bridge: what the provider dtmalloc sets on every CPU
  void set_malloc_probe(dtrace_malloc_probe_func_t function);
  void set_malloc_probes_enabled(bool enabled);
  // Writes a probe id (0: none) into a type's ks_mti.mti_probes[0 or 1], while CPUs read it; also
  // into a type that was unregistered meanwhile.
  static void set_probe_id(std::uint32_t* slot, std::uint32_t id);
  // Function boundary probes: their ids, and whether any is set. The hot malloc() and free() leave
  // their fast path for it (kGuardTwin).
  FunctionProbes& function_probes();
  void set_functions_traced(bool traced);

  SysctlTree& sysctl();  // sysctl(8)'s names
  Vm& vm();              // for uma(9) and kmem(9): vm/uma.hpp, vm/kmem.hpp

  struct Impl;
  Impl& impl() { return *impl_; }
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace dtmalloc
