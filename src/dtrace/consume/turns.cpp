// SPDX-License-Identifier: BSD-2-Clause
// When the consumer's passes run, and which of status, aggregations and buffers is each one's turn.
//
// A pass that finds that nothing has fired since the last one, and all three turns taken since
// something did, would do nothing until something fires: the clock leaves out what is idle, and
// says which calls it left out, so that the turns come when they would have come.
//
// Counterpart:  dt_work.c (dtrace_sleep, dtrace_work)
// Invariants:   what is printed does not depend on whether idle passes are left out
#include <algorithm>

#include "dtrace/consume/session_impl.hpp"

namespace dtmalloc::dtrace {
namespace {

constexpr std::uint64_t kSecond = 1000000000;
constexpr std::uint64_t kSlowestStatus = 10 * kSecond;
// A rate of a few nanoseconds (a bare number) means passes back to back, between which the machine
// runs on.
constexpr std::uint64_t kShortestVirtual = 10000, kShortestReal = 1000000;

// The turns of a rate within passes at `first`, then at each `interval` up to `last`: when the last
// of them was, if any came.
std::uint64_t last_turn(std::uint64_t before, std::uint64_t rate, std::uint64_t first,
                        std::uint64_t last, std::uint64_t interval) {
  std::uint64_t turn = before;
  const auto due = [&](std::uint64_t time) { return time >= turn && time - turn >= rate; };
  if (due(first)) turn = first;
  if (!due(last)) return turn;
  // The first pass after that, then every so many.
  turn = last - (last - turn - rate) / interval * interval;
  const std::uint64_t period = (rate + interval - 1) / interval * interval;
  return turn + (last - turn) / period * period;
}

}  // namespace

std::uint64_t Session::Impl::status_interval() const {
  return std::min(options.get("statusrate", kSecond), kSlowestStatus);
}
std::uint64_t Session::Impl::aggregation_rate() const { return options.get("aggrate", kSecond); }
std::uint64_t Session::Impl::switch_rate() const { return options.get("switchrate", kSecond); }

// Nothing of policies fill and ring is read before the end.
bool Session::Impl::reads_buffers() const {
  return consumer.config.policy == BufferPolicy::switch_;
}

std::uint64_t Session::Impl::pass_interval() const {
  const std::uint64_t shortest =
      reads_buffers() ? std::min({switch_rate(), aggregation_rate(), status_interval()})
                      : status_interval();
  return std::max(shortest, framework.cpus().clock().is_real() ? kShortestReal : kShortestVirtual);
}

void Session::Impl::begin_passes() {
  consumer.watch().skipped = [this](std::uint64_t first, std::uint64_t last) {
    const std::unique_lock lock(mutex, std::try_to_lock);
    if (lock.owns_lock()) skip_passes(first, last);
  };
  // The clock looks at the deadline of what is scheduled.
  consumer.hear_until(framework.cpus().clock().now() + status_interval());
  schedule();
  guarded_pass();
}

void Session::Impl::schedule() {
  interval = pass_interval();
  const auto call = [this] {
    const std::unique_lock lock(mutex, std::try_to_lock);
    if (lock.owns_lock()) guarded_pass();
  };
  Clock& clock = framework.cpus().clock();
  callout = clock.schedule(clock.now() + interval, interval, call, consumer.watch());
  scheduled = true;
}

bool Session::Impl::take_turn(Turn& turn, std::uint64_t rate, bool always) {
  const std::uint64_t now = framework.cpus().clock().now();
  if (!always && now - turn.time < rate) return false;
  turn = {now, passes};
  return true;
}

void Session::Impl::skip_passes(std::uint64_t first, std::uint64_t last) {
  if (!active || stopped || passing) return;
  const auto skip = [&](Turn& turn, std::uint64_t rate) {
    turn.time = last_turn(turn.time, rate, first, last, interval);
  };
  skip(status_turn, status_interval());
  consumer.hear_until(status_turn.time + status_interval());
  skip(aggregation_turn, aggregation_rate());
  if (reads_buffers()) skip(switch_turn, switch_rate());
}

void Session::Impl::guarded_pass() {
  if (!active || stopped || passing) return;
  struct Guard {
    Impl& impl;
    bool idle = false;
    explicit Guard(Impl& impl) : impl(impl) { impl.passing = true; }
    ~Guard() {
      impl.passing = false;
      if (!idle) impl.framework.cpus().clock().rouse(impl.consumer.watch());
    }
  } guard(*this);
  ++passes;
  // Before anything is looked at: what fires from here on clears it again.
  consumer.watch().idle.store(true, std::memory_order_seq_cst);
  if (consumer.rest()) fired_before = passes;
  pass(false);
  const auto seen = [this](const Turn& turn) { return turn.pass >= fired_before; };
  guard.idle = seen(status_turn) && seen(aggregation_turn) &&
               (!reads_buffers() || (seen(switch_turn) && waiting.empty()));
  if (stopped || pass_interval() == interval) return;
  // setopt() changed a rate.
  framework.cpus().clock().stop(callout);
  schedule();
}

}  // namespace dtmalloc::dtrace
