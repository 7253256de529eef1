// SPDX-License-Identifier: BSD-2-Clause
// UMA's sysctl nodes that are one value each.
//
// Counterpart:  sys/vm/uma_core.c, uma_dbg.c, vm_pageout.c (SYSCTL_*)
// Differs:      vm.debug.divisor is read when the machine boots only, as in the kernel
#include <cerrno>
#include <limits>

#include "sys/kernel_number.hpp"
#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

std::optional<int> number_of(std::string_view text) {
  using Int = std::numeric_limits<int>;
  const std::optional<std::int64_t> value = parse_kernel_number(text);
  if (!value || *value < Int::min() || *value > Int::max()) return std::nullopt;
  return static_cast<int>(*value);
}

bool is_request(int req) {
  return req == UMA_RECLAIM_DRAIN || req == UMA_RECLAIM_DRAIN_CPU || req == UMA_RECLAIM_TRIM;
}

}  // namespace

void uma_knobs(Vm& vm) {
  SysctlTree& tree = vm.sysctl;
  tree.add({.name = "vm.uma_kmem_limit",
            .description = "UMA kernel memory soft limit",
            .read = [&vm] { return std::to_string(uma_limit(vm)); }});
  tree.add({.name = "vm.uma_kmem_total", .description = "UMA kernel memory usage", .read = [&vm] {
              return std::to_string(uma_size(vm));
            }});
  tree.add({.name = "vm.zone_warnings",
            .description = "whether a zone that is full warns",
            .read = [&vm] { return std::to_string(vm.zone_warnings.load()); },
            .write =
                [&vm](std::string_view text) {
                  const auto value = number_of(text);
                  if (!value) return EINVAL;
                  vm.zone_warnings.store(*value);
                  return 0;
                },
            .tunable = true});
  tree.add({.name = "debug.uma_reclaim",
            .description = "set to reclaim from UMA",
            .read = [] { return std::string("0"); },
            .write =
                [&vm](std::string_view text) {
                  const auto value = number_of(text);
                  if (!value || !is_request(*value)) return EINVAL;
                  uma_reclaim(vm, *value);
                  return 0;
                }});
  tree.add({.name = "debug.uma_reclaim_domain",
            .description = "domain << 4 | request",
            .read = [] { return std::string("0"); },
            .write =
                [&vm](std::string_view text) {
                  const auto value = number_of(text);
                  if (!value || *value < 0 || !is_request(*value & 0xf)) return EINVAL;
                  if (*value >> 4 >= vm.config.domains) return EINVAL;
                  uma_reclaim_domain(vm, *value & 0xf, *value >> 4);
                  return 0;
                }});
  tree.add({.name = "debug.vm_lowmem",
            .description = "set to call the handlers of vm_lowmem with these flags",
            .read = [] { return std::string("0"); },
            .write =
                [&vm](std::string_view text) {
                  const auto value = number_of(text);
                  if (!value || (*value & ~(VM_LOW_KMEM | VM_LOW_PAGES)) != 0) return EINVAL;
                  invoke_lowmem_handlers(vm, *value);
                  return 0;
                }});
  tree.add({.name = "vm.debug.uma_multipage_slabs",
            .description = "whether a slab may have more pages than its item needs",
            .read = [&vm] { return std::to_string(vm.multipage_slabs ? 1 : 0); },
            .tunable = true});
  if (!vm.config.invariants) return;
  tree.add({.name = "vm.debug.divisor",
            .description = "check every this item; 0: none",
            .read = [&vm] { return std::to_string(vm.dbg_divisor); },
            .tunable = true});
  tree.add({.name = "vm.debug.trashed",
            .description = "items checked while others were skipped",
            .read = [&vm] { return std::to_string(vm.dbg_trashed.load()); }});
  tree.add({.name = "vm.debug.skipped", .description = "items skipped", .read = [&vm] {
              return std::to_string(vm.dbg_skipped.load());
            }});
}

}  // namespace dtmalloc
