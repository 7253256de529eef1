// SPDX-License-Identifier: BSD-2-Clause
// A machine for tests of the allocator tower: one type, a log of the hook's calls, a console that
// is kept, walkers that run at the end.
//
// Example:
//   Machine m;                                       // 1 CPU, INVARIANTS off
//   void* p = m.kernel.malloc(16, &m.type, M_WAITOK);
//   EXPECT_EQ(m.fired(), (Fired{{false, 16, 0}}));   // after m.trace(m.type)
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <dtmalloc/kernel.hpp>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "vm/uma_int.hpp"

namespace dtmalloc::test {

// One call of the hook.
struct Firing {
  bool is_free;
  std::uint64_t size;
  int zindx;
  friend bool operator==(const Firing&, const Firing&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Firing& firing) {
    return out << (firing.is_free ? "free(" : "malloc(") << firing.size << ", " << firing.zindx
               << ")";
  }
};
using Fired = std::vector<Firing>;

inline Fired*& firing_log() {
  static Fired* log = nullptr;
  return log;
}

inline KernelConfig small_config(int cpus = 1, std::uint64_t mem = std::uint64_t{1} << 30) {
  KernelConfig config;
  config.cpus = cpus;
  config.mem = mem;
  return config;
}

struct Machine {
  explicit Machine(const KernelConfig& config = small_config())
      : kernel(config), type(kernel.define_type("M_T", "T")) {
    kernel.cpus().set_console([this](std::string_view text) { console += text; });
  }
  ~Machine() {
    if (firing_log() == &log) firing_log() = nullptr;
    if (!kernel.cpus().panicked()) {
      EXPECT_EQ(check_vm(kernel.vm()), "");
    }
  }

  // Installs the logging hook, and traces one type.
  void trace(malloc_type& traced) {
    firing_log() = &log;
    kernel.set_malloc_probe([](std::uint32_t id, std::uintptr_t, std::uintptr_t, std::uintptr_t,
                               std::uintptr_t size, std::uintptr_t zindx) {
      firing_log()->push_back({id == 2, size, static_cast<int>(zindx)});
    });
    kernel.set_malloc_probes_enabled(true);
    traced.ks_mti.mti_probes[DTMALLOC_PROBE_MALLOC] = 1;
    traced.ks_mti.mti_probes[DTMALLOC_PROBE_FREE] = 2;
  }
  // What has fired since the last call.
  Fired fired() { return std::exchange(log, {}); }
  TypeStats stats() const { return kernel.type_stats(type); }
  ZoneStats zone(std::string_view name) const {
    for (ZoneStats& row : kernel.zones())
      if (row.name == name) return row;
    ADD_FAILURE() << "no zone " << name;
    return {};
  }
  // Takes pages until `left` are free.
  void exhaust(std::uint64_t left = 2) {
    malloc_type& hog = kernel.define_type("M_HOG", "hog");
    while (kernel.free_pages() > left + 64) {
      if (kernel.malloc(70000, &hog, M_NOWAIT) == nullptr) break;
    }
    while (kernel.free_pages() > left && kernel.contigmalloc(4096, &hog, M_NOWAIT) != nullptr) {
    }
  }

  Fired log;
  std::string console;
  Kernel kernel;
  malloc_type& type;
};

// The text of the panic that `function` ends in; "" if it returns.
template <typename Function>
std::string panic_of(Function&& function) {
  try {
    std::forward<Function>(function)();
  } catch (const KernelPanic& panic) {
    return panic.what();
  }
  return {};
}

}  // namespace dtmalloc::test
