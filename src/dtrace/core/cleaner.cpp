// SPDX-License-Identifier: BSD-2-Clause
// The cleaner's callout.
// Counterpart:  dtrace_state_go (the cyclics)
#include "dtrace/core/cleaner.hpp"

#include <utility>

namespace dtmalloc::dtrace {

void Cleaner::start(std::uint64_t rate, std::function<void()> clean) {
  rate_ = rate;
  start_ = clock_.now();
  callout_ = clock_.schedule(alarm_, std::move(clean));
  scheduled_ = true;
}

void Cleaner::request() {
  if (alarm_.armed()) return;
  const std::uint64_t passed = clock_.now() - start_;
  clock_.arm(alarm_, start_ + (passed / rate_ + 1) * rate_);
}

void Cleaner::cancel() {
  if (std::exchange(scheduled_, false)) clock_.cancel(callout_);
}

}  // namespace dtmalloc::dtrace
