// SPDX-License-Identifier: BSD-2-Clause
// The cleaner of a consumer: firings leave work for a callout on the grid of the option cleanrate.
// Counterpart:  dtrace_state_clean, its cyclic
// Locking:      request() is for firings: it takes no lock. The callout runs outside critical
//               sections and takes what its function takes; so cancel() without those locks.
// Differs:      the callout runs only while something waits for it, so that time passes at no cost
//               over an idle machine; what is requested is still done on the kernel's grid.
#pragma once

#include <cstdint>
#include <dtmalloc/smp/cpu.hpp>
#include <functional>

namespace dtmalloc::dtrace {

inline constexpr std::uint64_t kDefaultCleanRate = 1000000000 / 101;
inline constexpr std::uint64_t kFastestCleanRate = 1000000000 / 5000;
inline constexpr std::uint64_t kSlowestCleanRate = 60 * std::uint64_t{1000000000};

class Cleaner {
 public:
  explicit Cleaner(Clock& clock) : clock_(clock) {}
  ~Cleaner() { cancel(); }
  Cleaner(const Cleaner&) = delete;
  Cleaner& operator=(const Cleaner&) = delete;

  // From now on the grid is every `rate` ns. Once.
  void start(std::uint64_t rate, std::function<void()> clean);
  // `clean` will run once at the next point of the grid.
  void request();
  bool requested() const { return alarm_.armed(); }
  void cancel();

 private:
  Clock& clock_;
  Alarm alarm_;
  CalloutId callout_ = 0;
  bool scheduled_ = false;
  std::uint64_t start_ = 0, rate_ = kDefaultCleanRate;
};

}  // namespace dtmalloc::dtrace
