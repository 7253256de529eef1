// SPDX-License-Identifier: BSD-2-Clause
// Zones against the simplest model of them, the set of their live items, with memory reclaimed in
// random places: no item is handed out twice, no item changes, the laws over all structures hold.

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "support/kernel_fixture.hpp"

namespace dtmalloc {
namespace {

using test::small_config;

struct ModelZone {
  uma_zone* zone;
  std::size_t size;
  std::size_t limit = 0;
  std::vector<std::byte*> live;
  std::uint64_t allocs = 0;
};

class Simulation {
 public:
  Simulation(std::uint64_t seed, bool invariants, int domains)
      : random_(seed),
        kernel_(config(seed, invariants, domains)),
        type_(kernel_.define_type("M_T", "T")) {
    kernel_.cpus().set_console([](std::string_view) {});
    constexpr std::size_t kSizes[] = {16, 24, 100, 500, 1000, 2048, 4096, 9000};
    for (int i = 0; i < 4; ++i) {
      const std::size_t size = kSizes[draw(8)];
      constexpr std::uint32_t kFlags[] = {0,
                                          0,
                                          UMA_ZONE_NOBUCKET,
                                          UMA_ZONE_MAXBUCKET,
                                          UMA_ZONE_ROUNDROBIN,
                                          UMA_ZONE_NOFREE,
                                          UMA_ZONE_NOTRIM};
      ModelZone model{uma_zcreate(kernel_.vm(), ("z" + std::to_string(i)).c_str(), size, nullptr,
                                  nullptr, nullptr, nullptr, UMA_ALIGN_PTR, kFlags[draw(7)]),
                      size,
                      0,
                      {},
                      0};
      if (draw(3) == 0) {
        model.limit = 1 + draw(200);
        uma_zone_set_max(model.zone, static_cast<int>(model.limit));
      }
      zones_.push_back(std::move(model));
    }
  }

  std::string all() {
    for (int step = 0; step < 1500; ++step) {
      if (std::string wrong = one(); !wrong.empty()) return at(step, wrong);
      if (step % 50 == 0)
        if (std::string wrong = laws(); !wrong.empty()) return at(step, wrong);
    }
    for (ModelZone& model : zones_)
      while (!model.live.empty())
        if (std::string wrong = release(model, model.live.size() - 1); !wrong.empty())
          return at(-1, wrong);
    uma_reclaim(kernel_.vm(), UMA_RECLAIM_DRAIN_CPU);
    if (std::string wrong = laws(); !wrong.empty()) return at(-2, wrong);
    for (ModelZone& model : zones_)
      if ((model.zone->uz_flags & UMA_ZONE_NOFREE) == 0 && uma_zone_memory(model.zone) != 0)
        return at(-3, std::string(model.zone->uz_name) + " has no items and keeps memory");
    return {};
  }

 private:
  static KernelConfig config(std::uint64_t seed, bool invariants, int domains) {
    KernelConfig out = small_config(1 + static_cast<int>(seed % 3), 16 << 20);
    out.cpus = std::max(out.cpus, domains);
    out.invariants = invariants;
    out.domains = domains;
    out.seed = seed;
    return out;
  }
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  static std::string at(int step, const std::string& wrong) {
    return "step " + std::to_string(step) + ": " + wrong;
  }

  std::string one() {
    ModelZone& model = zones_[draw(zones_.size())];
    const std::uint64_t what = draw(100);
    if (what < 50) return take(model);
    if (what < 85) return model.live.empty() ? "" : release(model, draw(model.live.size()));
    if (what < 90) {
      kernel_.cpus().bind(
          static_cast<int>(draw(static_cast<std::uint64_t>(kernel_.cpus().count()))));
    } else if (what < 93) {
      kernel_.cpus().clock().advance(draw(60'000'000'000));
    } else if (what < 96) {
      uma_zone_reclaim_domain(model.zone, 1 + static_cast<int>(draw(3)),
                              static_cast<int>(draw(2)) - 1);
    } else if (what < 98) {
      uma_reclaim(kernel_.vm(), 1 + static_cast<int>(draw(3)));
    } else {
      large_.push_back(kernel_.malloc(70000, &type_, M_NOWAIT));
      if (large_.size() > 20) {
        kernel_.free(large_.front(), &type_);
        large_.erase(large_.begin());
      }
    }
    return {};
  }

  std::string take(ModelZone& model) {
    const std::uint64_t burst = 1 + draw(40);
    for (std::uint64_t i = 0; i < burst; ++i) {
      auto* item = static_cast<std::byte*>(uma_zalloc(model.zone, kM_NOWAIT));
      if (item == nullptr) {
        if (model.limit == 0 && least_free() > 64) return "refused with pages free";
        return {};
      }
      ++model.allocs;
      if (model.limit != 0 && model.live.size() >= model.limit) return "more than the limit";
      const auto after = items_.lower_bound(item);
      if (after != items_.end() && after->first < item + model.size) return "items overlap";
      if (after != items_.begin()) {
        const auto before = std::prev(after);
        if (before->first + before->second > item) return "items overlap";
      }
      items_.emplace(item, model.size);
      std::memset(item, tag(item), model.size);
      model.live.push_back(item);
    }
    return {};
  }

  std::string release(ModelZone& model, std::size_t which) {
    std::byte* item = model.live[which];
    for (std::size_t i = 0; i < model.size; ++i)
      if (item[i] != static_cast<std::byte>(tag(item))) return "an item changed";
    model.live[which] = model.live.back();
    model.live.pop_back();
    items_.erase(item);
    uma_zfree(model.zone, item);
    return {};
  }

  // Of the domains: a first-touch zone asks its own only.
  std::uint64_t least_free() {
    std::uint64_t least = kernel_.free_pages();
    for (int d = 0; d < kernel_.config().domains; ++d)
      least = std::min(least, kernel_.vm().domains[static_cast<std::size_t>(d)].free_count.load());
    return least;
  }

  static int tag(const std::byte* item) {
    return static_cast<int>((reinterpret_cast<std::uintptr_t>(item) >> 3) % 251 + 1) & 0xff;
  }

  std::string laws() {
    if (std::string wrong = check_vm(kernel_.vm()); !wrong.empty()) return wrong;
    std::uint64_t pages = kernel_.free_pages();
    for (const ZoneStats& zone : kernel_.zones()) pages += zone.keg_pages;
    for (void* block : large_) pages += block != nullptr ? 18 : 0;
    if (pages != kernel_.total_pages())
      return std::to_string(pages) + " pages are free, in kegs or large, of " +
             std::to_string(kernel_.total_pages());
    for (const ModelZone& model : zones_) {
      if (static_cast<std::size_t>(uma_zone_get_cur(model.zone)) != model.live.size())
        return "items in use";
      if (zone_stats(*model.zone).allocs != model.allocs) return "allocations";
      if (model.limit != 0 && model.zone->item_count() > model.limit) return "above the limit";
    }
    return {};
  }

  std::mt19937_64 random_;
  Kernel kernel_;
  malloc_type& type_;
  std::vector<ModelZone> zones_;
  std::map<std::byte*, std::size_t> items_;
  std::vector<void*> large_;
};

// REQ: UMA9-70
TEST(UmaReclaim, LawsHold_WhereverMemoryIsReclaimed) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    for (const bool invariants : {false, true}) {
      Simulation run(seed, invariants, 1);
      ASSERT_EQ(run.all(), "") << "seed " << seed << " invariants " << invariants;
    }
}

// REQ: UMA9-70
TEST(UmaReclaim, LawsHold_WithSeveralDomains) {
  for (std::uint64_t seed = 100; seed < 110; ++seed)
    for (const int domains : {2, 3}) {
      Simulation run(seed, seed % 2 == 0, domains);
      ASSERT_EQ(run.all(), "") << "seed " << seed << " domains " << domains;
    }
}

}  // namespace
}  // namespace dtmalloc
