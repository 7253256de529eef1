// SPDX-License-Identifier: BSD-2-Clause
// The working set's arithmetic, step by step, against sums made by hand from spec/malloc9.md 5.10.
#include <gtest/gtest.h>

#include <array>

#include "vm/uma_int.hpp"

namespace dtmalloc {
namespace {

// nitems imax imin bimin wss limin timin
using State = std::array<std::int64_t, 7>;

State state_of(const uma_zone_domain& d) {
  return {d.uzd_nitems, d.uzd_imax, d.uzd_imin, d.uzd_bimin, d.uzd_wss, d.uzd_limin, d.uzd_timin};
}

void set(uma_zone_domain& d, const State& s) {
  d.uzd_nitems = s[0];
  d.uzd_imax = s[1];
  d.uzd_imin = s[2];
  d.uzd_bimin = s[3];
  d.uzd_wss = s[4];
  d.uzd_limin = s[5];
  d.uzd_timin = static_cast<std::uint32_t>(s[6]);
}

// REQ: UMA9-20. A new high remembers the last swing; a put below it only counts.
TEST(UmaWorkset, PutCounts) {
  uma_zone_domain d;
  workset_put(d, 254, true);
  EXPECT_EQ(state_of(d), (State{254, 254, 0, 254, 0, 0, 0}));
  workset_put(d, 100, true);  // wss = max(0, 254 - 254)
  EXPECT_EQ(state_of(d), (State{354, 354, 0, 354, 0, 0, 0}));
  set(d, {50, 100, 20, 30, 10, 7, 3});
  workset_put(d, 40, true);  // 90 is no new high
  EXPECT_EQ(state_of(d), (State{90, 100, 20, 30, 10, 7, 3}));
  workset_put(d, 20, true);  // 110 is; wss = max(10, 100 - 30)
  EXPECT_EQ(state_of(d), (State{110, 110, 20, 110, 70, 7, 3}));
}

// REQ: UMA9-20. What a CPU had to give up shifts every bound.
TEST(UmaWorkset, PutOutsideTheWorkingSetShifts) {
  uma_zone_domain d;
  set(d, {50, 100, 20, 30, 10, 7, 3});
  workset_put(d, 40, false);
  EXPECT_EQ(state_of(d), (State{90, 140, 60, 70, 10, 47, 3}));
}

// REQ: UMA9-20
TEST(UmaWorkset, TakeLowersTheLows) {
  uma_zone_domain d;
  set(d, {100, 120, 60, 90, 5, 7, 3});
  workset_take(d, 10);  // 90: not below bimin
  EXPECT_EQ(state_of(d), (State{90, 120, 60, 90, 5, 7, 3}));
  workset_take(d, 20);  // 70: below bimin, not below imin
  EXPECT_EQ(state_of(d), (State{70, 120, 60, 70, 5, 7, 3}));
  workset_take(d, 30);
  EXPECT_EQ(state_of(d), (State{40, 120, 40, 40, 5, 7, 3}));
}

// REQ: UMA9-21. k = min(bimin, cnt) leaves imax and bimin, min(imin, cnt) leaves imin.
TEST(UmaWorkset, ReclaimShiftsTheBounds) {
  uma_zone_domain d;
  set(d, {100, 120, 20, 50, 5, 40, 9});
  workset_reclaim(d, 30);
  EXPECT_EQ(state_of(d), (State{70, 90, 0, 20, 5, 10, 9}));
  workset_reclaim(d, 30);  // k = 20; limin 10 < 30
  EXPECT_EQ(state_of(d), (State{40, 70, 0, 0, 5, 0, 0}));
}

// REQ: UMA9-22. One bucket that went and came, then rest.
TEST(UmaWorkset, UpdateEstimates) {
  uma_zone_domain d;
  workset_put(d, 254, true);
  workset_take(d, 254);
  workset_put(d, 254, true);
  EXPECT_EQ(state_of(d), (State{254, 254, 0, 0, 0, 0, 0}));
  workset_update(d);  // wss = 254 - 0; m = 0 - 254
  EXPECT_EQ(state_of(d), (State{254, 254, 254, 254, 254, 0, 0}));
  workset_update(d);  // wss = 190; m = 64: limin = (64 + 0) / 256
  EXPECT_EQ(state_of(d), (State{254, 254, 254, 254, 190, 0, 1}));
  workset_update(d);  // wss = 142; m = 112
  EXPECT_EQ(state_of(d), (State{254, 254, 254, 254, 142, 0, 2}));
}

// REQ: UMA9-22. limin falls at once and rises by a 256th of the way; imax halves its distance.
TEST(UmaWorkset, UpdateWeighsIdleItems) {
  uma_zone_domain d;
  set(d, {5000, 6001, 4000, 5800, 0, 100, 4});
  workset_update(d);  // wss = 201; m = 3799: (3799 + 25500) / 256 = 114; imax -= 1002 / 2
  EXPECT_EQ(state_of(d), (State{5000, 5500, 5000, 5000, 201, 114, 5}));
  set(d, {5000, 5000, 50, 5000, 0, 114, 5});
  workset_update(d);  // m = 50
  EXPECT_EQ(state_of(d), (State{5000, 5000, 5000, 5000, 0, 50, 6}));
  set(d, {10, 30, 5, 10, 0, 50, 6});
  workset_update(d);  // wss = 20; m = -15: nothing idles; imax -= 21 / 2
  EXPECT_EQ(state_of(d), (State{10, 20, 10, 10, 20, 0, 0}));
}

}  // namespace
}  // namespace dtmalloc
