// SPDX-License-Identifier: BSD-2-Clause
// Laws over a kernel's counters, each against the model. Empty: the law holds.
#pragma once

#include <dtmalloc/kernel.hpp>
#include <string>
#include <vector>

#include "reference/flat_malloc.hpp"

namespace dtmalloc::support {

// Of a type, over all CPUs: bytes and blocks that live are what was allocated less what was freed.
std::string law_of_types(const Kernel& kernel, const std::vector<malloc_type*>& types,
                         const reference::FlatMalloc& model);
// Of a keg: its slabs' items are live, in slabs, in buckets or in CPUs' caches; the live items of
// the malloc zones are the model's blocks.
std::string law_of_kegs(Kernel& kernel, const reference::FlatMalloc& model);
// Of the machine: pages that are free, in kegs and in large blocks are all pages; uma_kmem_total
// counts kegs and large blocks.
std::string law_of_pages(const Kernel& kernel, const reference::FlatMalloc& model);
// What libmemstat(3) reads from the streams are the rows of types and zones.
std::string law_of_streams(Kernel& kernel);
// Of each NUMA domain: pages that are free, in kegs and in large blocks are its pages.
std::string law_of_domains(Kernel& kernel, const reference::FlatMalloc& model);
// Every walker over the live structures.
std::string law_of_structures(Kernel& kernel);

// vm.kmem_zmax of a machine without the tunable (spec/malloc9.md 2.3).
std::uint64_t expected_zmax(std::uint64_t mem);

}  // namespace dtmalloc::support
