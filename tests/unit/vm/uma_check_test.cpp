// SPDX-License-Identifier: BSD-2-Clause
// The walkers see what is broken.
#include <gtest/gtest.h>

#include "support/kernel_fixture.hpp"
#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

struct UmaCheck : testing::Test {
  test::Machine m;
  Vm& vm = m.kernel.vm();
  uma_zone& zone() {
    for (const auto& known : vm.zones)
      if (std::string_view(known->uz_name) == "malloc-64") return *known;
    throw std::logic_error("no malloc-64");
  }
  void SetUp() override {
    m.kernel.malloc(64, &m.type, M_WAITOK);
    ASSERT_EQ(check_vm(vm), "");
  }
};

TEST_F(UmaCheck, SeesALostItem) {
  uma_cache& cache = zone_cache(zone(), curcpu->id);
  --cache.uc_flow;
  EXPECT_EQ(check_vm(vm).substr(0, 6), "UMA-1:");
  ++cache.uc_flow;
}

TEST_F(UmaCheck, SeesAWrongCountOfASlab) {
  uma_slab* slab = zone().uz_keg->uk_domain[0].lists[kPartial];
  --slab->us_freecount;
  EXPECT_EQ(check_vm(vm), "UMA-2: malloc-64: us_freecount");
  ++slab->us_freecount;
}

TEST_F(UmaCheck, SeesWrongSums) {
  ++zone().uz_keg->uk_domain[0].ud_free_items;
  EXPECT_EQ(check_vm(vm), "UMA-4: malloc-64: ud_free_items");
  --zone().uz_keg->uk_domain[0].ud_free_items;
  ++zone().uz_domain[0].uzd_nitems;
  EXPECT_EQ(check_vm(vm), "UMA-4: malloc-64: uzd_nitems");
  --zone().uz_domain[0].uzd_nitems;
}

TEST_F(UmaCheck, SeesALostPage) {
  vm.domains[0].free_count.fetch_sub(1);
  EXPECT_EQ(check_vm(vm).substr(0, 5), "VM-3:");
  vm.domains[0].free_count.fetch_add(1);
}

TEST_F(UmaCheck, SeesTouchingRuns) {
  const auto run = std::prev(vm.domains[0].runs.end());
  const auto [first, pages] = *run;
  run->second = 10;
  vm.domains[0].runs[first + 10] = pages - 10;
  vm.domains[0].fit.emplace(10, first);
  EXPECT_EQ(check_vm(vm).substr(0, 5), "VM-1:");
  vm.domains[0].runs.erase(first + 10);
  vm.domains[0].fit.erase({10, first});
  run->second = pages;
}

}  // namespace
}  // namespace dtmalloc
