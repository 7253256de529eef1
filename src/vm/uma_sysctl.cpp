// SPDX-License-Identifier: BSD-2-Clause
// vm.uma.<zone>.*, vm.zone_count and vm.zone_stats.
//
// Counterpart:  sys/vm/uma_core.c (zone_alloc_sysctl, keg and zone sysctl handlers)
// Differs:      DEVIATES: the tree exists in all releases, so that machines can be compared; the
//               kernels of 12 and before have none
#include <algorithm>
#include <concepts>
#include <set>

#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

struct FlagName {
  std::uint32_t bit;
  const char* name;
};

// High bit first, as %b prints them.
constexpr FlagName kFlagNames[] = {
    {UMA_ZFLAG_TRASH, "TRASH"},
    {UMA_ZFLAG_INTERNAL, "INTERNAL"},
    {UMA_ZFLAG_BUCKET, "BUCKET"},
    {UMA_ZFLAG_CACHE, "CACHE"},
    {UMA_ZFLAG_LIMIT, "LIMIT"},
    {UMA_ZFLAG_CTORDTOR, "CTORDTOR"},
    {UMA_ZFLAG_VTOSLAB, "VTOSLAB"},
    {UMA_ZFLAG_HASH, "HASH"},
    {UMA_ZFLAG_OFFPAGE, "OFFPAGE"},
    {UMA_ZONE_NOKASAN, "NOKASAN"},
    {UMA_ZONE_SMR, "SMR"},
    {UMA_ZONE_ROUNDROBIN, "ROUNDROBIN"},
    {UMA_ZONE_FIRSTTOUCH, "FIRSTTOUCH"},
    {UMA_ZONE_PCPU, "PCPU"},
    {UMA_ZONE_NODUMP, "NODUMP"},
    {UMA_ZONE_CACHESPREAD, "CACHESPREAD"},
    {UMA_ZONE_NOTRIM, "NOTRIM"},
    {UMA_ZONE_MAXBUCKET, "MAXBUCKET"},
    {UMA_ZONE_NOBUCKET, "NOBUCKET"},
    {UMA_ZONE_SECONDARY, "SECONDARY"},
    {UMA_ZONE_NOTPAGE, "NOTPAGE"},
    {UMA_ZONE_VM, "VM"},
    {UMA_ZONE_MTXCLASS, "MTXCLASS"},
    {UMA_ZONE_NOFREE, "NOFREE"},
    {UMA_ZONE_MALLOC, "MALLOC"},
    {UMA_ZONE_NOTOUCH, "NOTOUCH"},
    {UMA_ZONE_CONTIG, "CONTIG"},
    {UMA_ZONE_ZINIT, "ZINIT"},
    {UMA_ZONE_UNMANAGED, "UNMANAGED"},
};

// The nodes of one zone, in the order in which the kernel makes them.
class ZoneNodes {
 public:
  ZoneNodes(const ZoneStats& zone, std::vector<SysctlNode>& nodes)
      : zone_(zone), nodes_(nodes), prefix_("vm.uma." + zone.ctlname + ".") {}

  void add() {
    add("size", zone_.size, "bytes of an item");
    add("flags", flags_text(zone_.flags), "how the zone works");
    add("bucket_size", zone_.bucket_size, "items that a new bucket is filled with");
    add("bucket_size_max", zone_.bucket_size_max, "the most that it grows to");
    keg();
    add("limit.items", zone_.items, "items that count against the limit");
    add("limit.max_items", zone_.limit, "the limit; 0: none");
    add("limit.sleepers", zone_.sleepers, "threads that sleep at the limit");
    add("limit.sleeps", zone_.sleep, "sleeps at the limit so far");
    add("limit.bucket_max", zone_.bucket_max, "most items in full buckets, a domain");
    for (std::size_t i = 0; i < zone_.domains.size(); ++i) {
      const ZoneStats::Domain& domain = zone_.domains[i];
      const std::string top = "domain." + std::to_string(i) + ".";
      add(top + "nitems", domain.nitems, "items in full buckets");
      add(top + "imax", domain.imax, "the most in this period");
      add(top + "imin", domain.imin, "the fewest in this period");
      add(top + "bimin", domain.bimin, "the fewest since the most changed");
      add(top + "wss", domain.wss, "estimate of the working set");
      add(top + "limin", domain.limin, "items that were idle for long");
      add(top + "timin", domain.timin, "periods in which there were such");
    }
    add("stats.current", zone_.used, "items in use");
    add("stats.allocs", zone_.allocs, "allocations");
    add("stats.frees", zone_.frees, "frees");
    // QUIRK: 35 (SYSCTL-12) "failures": one request with M_NOWAIT that misses usually counts twice.
    add("stats.fails", zone_.fail, "failures");
    add("stats.xdomain", zone_.xdomain, "frees of items of another domain");
  }

 private:
  void keg() {
    if (zone_.cache_only()) {
      add("keg.name", "cache zone", "there is none");
      return;
    }
    add("keg.name", zone_.keg_name, "name of the slab allocator");
    add("keg.rsize", zone_.rsize, "bytes of an item with its alignment");
    add("keg.ppera", zone_.ppera, "pages of a slab");
    add("keg.ipers", zone_.ipers, "items of a slab");
    add("keg.align", zone_.align, "mask of the alignment");
    add("keg.reserve", zone_.reserve, "items kept for M_USE_RESERVE");
    add("keg.efficiency", zone_.efficiency, "percent of a slab that items take");
    for (std::size_t i = 0; i < zone_.domains.size(); ++i) {
      const std::string top = "keg.domain." + std::to_string(i) + ".";
      add(top + "pages", zone_.domains[i].pages, "pages of its slabs");
      add(top + "free_items", zone_.domains[i].free_items, "free items in its slabs");
      add(top + "free_slabs", zone_.domains[i].free_slabs, "slabs that are free as a whole");
    }
  }
  template <std::integral T>
  void add(const std::string& name, T value, const char* description) {
    add(name, std::to_string(value), description);
  }
  void add(const std::string& name, std::string value, const char* description) {
    nodes_.push_back({.name = prefix_ + name,
                      .description = description,
                      .read = [value = std::move(value)] { return value; }});
  }

  const ZoneStats& zone_;
  std::vector<SysctlNode>& nodes_;
  const std::string prefix_;
};

// Names that come at run time are listed newest first, so all is turned round.
std::vector<SysctlNode> zone_nodes(Vm& vm) {
  std::vector<SysctlNode> nodes;
  std::set<std::string> taken;  // "a b" and "a_b" meet: the older one has the name
  for (const ZoneStats& zone : zone_stats(vm))
    if (taken.insert(zone.ctlname).second) ZoneNodes(zone, nodes).add();
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

}  // namespace

std::string flags_text(std::uint32_t flags) {
  char number[16];
  std::snprintf(number, sizeof number, "0x%x", flags);
  std::string names;
  for (const FlagName& flag : kFlagNames)
    if ((flags & flag.bit) != 0) names += (names.empty() ? "<" : ",") + std::string(flag.name);
  return number + names + (names.empty() ? "" : ">");
}

void uma_sysctl_init(Vm& vm) {
  vm.sysctl.add({.name = "vm.zone_count", .description = "zones of UMA", .read = [&vm] {
                   return std::to_string(zone_list(vm).size());
                 }});
  vm.sysctl.add({.name = "vm.zone_stats",
                 .description = "statistics of the zones",
                 .bytes = [&vm] { return zone_stats_stream(vm); },
                 .format = "s,struct uma_type_header"});
  vm.sysctl.add_subtree("vm.uma", [&vm] { return zone_nodes(vm); });
}

}  // namespace dtmalloc
