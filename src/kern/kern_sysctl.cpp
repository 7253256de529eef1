// SPDX-License-Identifier: BSD-2-Clause
// The sysctl(8) names of kernel memory, of malloc(9)'s options and of the machine. Of types:
// malloc_sysctl.cpp; of UMA: vm/uma_sysctl.cpp, vm/uma_knobs.cpp.
//
// Counterpart:  the SYSCTL_*() lines of sys/kern/kern_malloc.c, sys/vm/uma_core.c, redzone.c,
//               memguard.c, vm_meter.c
// Locking:      none; what nodes read is atomic, constant after boot, or locks itself
// Differs:      descriptions are this model's own words. The order is ours: a kernel's depends on
//               its linker
#include <functional>
#include <limits>

#include "kern/kernel_impl.hpp"
#include "kern/redzone.hpp"
#include "sys/kernel_number.hpp"
#include "vm/memguard.hpp"

namespace dtmalloc {
namespace {

using Node = SysctlNode;

class Nodes {
 public:
  explicit Nodes(SysctlTree& tree) : tree_(tree) {}

  // A number that cannot be written; a tunable one may be set by loader.conf.
  template <typename Read>
  void number(const char* name, const char* description, Read read, bool tunable = false) {
    tree_.add({.name = name,
               .description = description,
               .read = [read] { return std::to_string(read()); },
               .tunable = tunable});
  }
  // A number that can: `Value` says what fits.
  template <typename Value>
  void writable(const char* name, const char* description, std::atomic<Value>& value,
                bool tunable) {
    tree_.add({.name = name,
               .description = description,
               .read = [&value] { return std::to_string(value.load()); },
               .write =
                   [&value](std::string_view text) {
                     const std::optional<std::int64_t> number = parse_kernel_number(text);
                     if (!number || *number < std::int64_t{std::numeric_limits<Value>::min()} ||
                         *number > std::int64_t{std::numeric_limits<Value>::max()})
                       return EINVAL;
                     value = static_cast<Value>(*number);
                     return 0;
                   },
               .tunable = tunable});
  }
  void add(Node node) { tree_.add(std::move(node)); }

 private:
  SysctlTree& tree_;
};

void add_machine(Nodes& nodes, Kernel::Impl& k) {
  nodes.number("kern.osreldate", "version of the release", [&k] { return k.release.osreldate; });
  nodes.number("kern.smp.maxcpus", "most CPUs of a kernel", [] { return MAXCPU; });
  nodes.number("hw.ncpu", "CPUs", [&k] { return k.cpus->count(); });
  nodes.number("hw.physmem", "bytes of memory", [&k] { return k.vm->page_count * kPageSize; });
  nodes.number("vm.ndomains", "NUMA domains", [&k] { return k.config.domains; });
  nodes.number("hw.pagesize", "bytes of a page", [] { return kPageSize; });
  nodes.number("vm.stats.vm.v_page_count", "pages", [&k] { return k.vm->page_count; });
  nodes.number("vm.stats.vm.v_free_count", "free pages", [&k] { return k.vm->free_pages(); });
}

void add_malloc(Nodes& nodes, Kernel::Impl& k) {
  nodes.number(
      "vm.kmem_size", "size of kernel memory", [&k] { return k.kmem.size; }, true);
  nodes.number(
      "vm.kmem_size_min", "least size of kernel memory", [&k] { return k.kmem.min; }, true);
  nodes.number(
      "vm.kmem_size_max", "largest size of kernel memory", [&k] { return k.kmem.max; }, true);
  nodes.number(
      "vm.kmem_size_scale", "physical memory per kernel memory", [&k] { return k.kmem.scale; },
      true);
  nodes.number(
      "vm.kmem_zmax", "largest request that a zone serves", [&k] { return k.kmem_zmax; }, true);
  nodes.number("vm.kmem_map_size", "kernel memory in use",
               [&k] { return k.vm->uma_kmem_total.load(std::memory_order_relaxed); });
  nodes.number("vm.kmem_map_free", "kernel memory below the limit", [&k] {
    const std::uint64_t total = k.vm->uma_kmem_total.load(std::memory_order_relaxed);
    const std::uint64_t limit = k.vm->uma_kmem_limit.load();
    return limit > total ? limit - total : 0;
  });
  if (k.config.maxzones > 1) {
    nodes.number(
        "debug.malloc.numzones", "zones of a class", [&k] { return k.numzones; }, true);
    nodes.number(
        "debug.malloc.zone_offset", "letter of a description that chooses the zone",
        [&k] { return k.zone_offset; }, true);
  }
  if (k.config.make_failures) {
    nodes.writable("debug.malloc.failure_rate", "every n-th M_NOWAIT request fails",
                   k.make_failures.failure_rate, true);
    nodes.number("debug.malloc.failure_count", "requests that were failed",
                 [&k] { return k.make_failures.failure_count.load(); });
  }
}

void add_redzone(Nodes& nodes, Redzone& redzone) {
  nodes.number("vm.redzone.extra_mem", "bytes that guards take",
               [&redzone] { return redzone.redzone_extra_mem.load(); });
  nodes.writable("vm.redzone.panic", "a report is followed by a panic", redzone.redzone_panic,
                 true);
}

void add_memguard(Nodes& nodes, Memguard& guard) {
  nodes.add({.name = "vm.memguard.desc",
             .description = "type or zone to guard",
             .read = [&guard] { return guard.get_desc(); },
             .write = [&guard](std::string_view text) { return guard.set_desc(text) ? 0 : EINVAL; },
             .tunable = true});
  nodes.number(
      "vm.memguard.divisor", "share of memory: one part in n", [&guard] { return guard.divisor; },
      true);
  const auto counter = [&nodes](const char* name, const char* description,
                                const std::atomic<std::uint64_t>& value) {
    nodes.number(name, description, [&value] { return value.load(); });
  };
  nodes.number("vm.memguard.mapsize", "bytes of the map", [&guard] { return guard.mapsize; });
  nodes.number("vm.memguard.phys_limit", "bytes above which small requests are not guarded",
               [&guard] { return guard.physlimit; });
  counter("vm.memguard.wasted", "bytes of pages that blocks do not use", guard.wasted);
  counter("vm.memguard.numalloc", "guarded allocations", guard.numalloc);
  counter("vm.memguard.fail_kva", "refusals for want of addresses", guard.fail_kva);
  counter("vm.memguard.fail_pgs", "refusals for want of pages", guard.fail_pgs);
  nodes.writable("vm.memguard.options", "1 guard pages, 2 all of a page and more, 4 NOFREE zones",
                 guard.options, true);
  nodes.writable("vm.memguard.minsize", "smaller ones are not chosen by size or chance",
                 guard.minsize, false);
  counter("vm.memguard.minsize_reject", "requests below minsize", guard.minsize_reject);
  nodes.writable("vm.memguard.frequency", "chosen by chance, of 100000", guard.frequency, true);
  counter("vm.memguard.frequency_hits", "requests chosen by chance", guard.frequency_hits);
  nodes.number("vm.memguard.mapstart", "address of the map", [] { return AddressMap::kMemguard; });
  nodes.number("vm.memguard.maplimit", "bytes of the map", [&guard] { return guard.mapsize; });
  counter("vm.memguard.mapused", "bytes of the map in use", guard.mapused);
}

}  // namespace

void Kernel::Impl::add_sysctls() {
  Nodes nodes(sysctl);
  add_machine(nodes, *this);
  add_malloc(nodes, *this);
  if (redzone != nullptr) add_redzone(nodes, *redzone);
  if (vm->memguard != nullptr) add_memguard(nodes, *vm->memguard);
}

}  // namespace dtmalloc
