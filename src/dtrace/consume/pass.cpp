// SPDX-License-Identifier: BSD-2-Clause
// The consumer's passes: status, aggregation snapshot, buffers; and the end of the output.
// Counterpart:  dt_work.c, dt_consume.c, dt_aggregate.c (dtrace_aggregate_snap)
#include <algorithm>
#include <cstring>

#include "dtrace/consume/session_impl.hpp"

namespace dtmalloc::dtrace {
namespace {

constexpr std::uint64_t kSecond = 1000000000;
constexpr std::uint64_t kSlowestStatus = 10 * kSecond;

std::string plural(std::uint64_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace

void Session::Impl::schedule() {
  const std::uint64_t interval =
      std::min({options.get("switchrate", kSecond), options.get("aggrate", kSecond),
                std::min(options.get("statusrate", kSecond), kSlowestStatus)});
  Clock& clock = framework.cpus().clock();
  callout = clock.schedule(clock.now() + interval, interval, [this] {
    const std::unique_lock lock(mutex, std::try_to_lock);
    if (lock.owns_lock()) guarded_pass();
  });
  scheduled = true;
}

void Session::Impl::guarded_pass() {
  if (!active || stopped || passing) return;
  struct Guard {
    bool& flag;
    explicit Guard(bool& flag) : flag(flag) { flag = true; }
    ~Guard() { flag = false; }
  } guard(passing);
  pass(false);
}

void Session::Impl::report_drop(const char* tag, std::uint64_t count, const std::string& text) {
  if (count == 0) return;
  had_errors = true;
  message(options.is_set("droptags") ? std::string("[") + tag + "] " + text : text);
}

void Session::Impl::pass(bool final) {
  const std::uint64_t now = framework.cpus().clock().now();
  const auto due = [&](std::uint64_t* last, std::uint64_t rate) {
    if (!final && !first_pass && now - *last < rate) return false;
    *last = now;
    return true;
  };
  if (due(&last_status, std::min(options.get("statusrate", kSecond), kSlowestStatus))) {
    const std::uint64_t errors = consumer.error_drops();
    const std::uint64_t increment = errors - error_drops;
    error_drops = errors;
    report_drop("DTRACEDROP_DBLERROR", increment,
                plural(increment, "error") + " in ERROR probe enabling");
    if (!final && consumer.activity() == Activity::draining) {
      finish();
      return;
    }
  }
  if (due(&last_aggregation, options.get("aggrate", kSecond))) take_aggregations();
  if (due(&last_switch, options.get("switchrate", kSecond))) take_records(final);
  first_pass = false;
  if (aborted && !final) abort();
}

void Session::Impl::take_aggregations() {
  if (!consumer.has_aggregations()) return;
  const int count = framework.cpus().count();
  aggregation_drops.resize(static_cast<std::size_t>(count), 0);
  for (int cpu = 0; cpu < count; ++cpu) {
    const std::uint64_t drops = consumer.take_aggregations(
        cpu, [this](const AggBuffer::Element& element) { aggregations.merge(element); });
    std::uint64_t& reported = aggregation_drops[static_cast<std::size_t>(cpu)];
    const std::uint64_t increment = drops - reported;
    reported = drops;
    report_drop("DTRACEDROP_AGGREGATION", increment,
                plural(increment, "aggregation drop") + " on CPU " + std::to_string(cpu));
  }
}

// Collects every CPU's records and prints them: by time, or CPU after CPU without `temporal`. A
// record younger than the buffer that was fetched first waits for the next pass, because an older
// one of that buffer's CPU may still come.
void Session::Impl::take_records(bool final) {
  const int count = framework.cpus().count();
  std::deque<Waiting> old;
  old.swap(waiting);
  std::vector<Record> records;
  for (const Waiting& entry : old) {
    records.push_back(entry.record);
    records.back().bytes = entry.bytes.data();
  }
  std::vector<std::uint64_t> drops(static_cast<std::size_t>(count), 0);
  std::uint64_t earliest = ~std::uint64_t{0};
  for (int i = 0; i < count; ++i) {
    // BEGIN ran on CPU 0, so it comes first; so did END: it comes last in the last pass.
    const int cpu = final ? (i + 1) % count : i;
    const Consumer::Taken taken = consumer.take_records(cpu);
    if (i == 0) earliest = taken.time;
    drops[static_cast<std::size_t>(cpu)] = taken.records.drops;
    const std::span<const std::byte> bytes = taken.records.records;
    for (std::size_t at = 0; at + 4 <= bytes.size();) {
      std::uint32_t epid = 0;
      std::memcpy(&epid, bytes.data() + at, 4);
      if (epid == 0) {
        at += 4;
        continue;
      }
      Record record;
      record.cpu = cpu;
      record.ecb = consumer.ecb(epid);
      DTM_CHECK(record.ecb != nullptr, "a record of no clause");
      record.bytes = bytes.data() + at;
      std::memcpy(&record.timestamp, record.bytes + 4, 8);
      records.push_back(record);
      at += record.ecb->size;
    }
  }
  if (options.is_set("temporal")) {
    std::stable_sort(records.begin(), records.end(),
                     [](const Record& a, const Record& b) { return a.timestamp < b.timestamp; });
    if (!final) {
      while (!records.empty() && records.back().timestamp > earliest) {
        Record record = records.back();
        std::vector<std::byte> bytes(record.bytes, record.bytes + record.ecb->size);
        waiting.push_front({record, std::move(bytes)});
        records.pop_back();
      }
    }
  }
  for (const Record& record : records) {
    print_record(record);
    if (aborted) return;
  }
  for (int cpu = 0; cpu < count; ++cpu) {
    const std::uint64_t dropped = drops[static_cast<std::size_t>(cpu)];
    report_drop("DTRACEDROP_PRINCIPAL", dropped,
                plural(dropped, "drop") + " on CPU " + std::to_string(cpu));
  }
}

void Session::Impl::abort() {
  if (scheduled) framework.cpus().clock().cancel(callout);
  stopped = true;
  exit_status = 1;
  consumer.close();
}

void Session::Impl::finish() {
  consumer.stop(&tracer);
  if (scheduled) framework.cpus().clock().cancel(callout);
  pass(true);
  if (aborted) {
    abort();
    return;
  }
  stopped = true;
  out("\n");
  print_unprinted();
  if (!quiet()) {
    for (const std::string& note : consumer.notes()) message(note);
  }
  consumer.close();
}

}  // namespace dtmalloc::dtrace
