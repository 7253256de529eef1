// SPDX-License-Identifier: BSD-2-Clause
// The consumer's passes: status, aggregation snapshot, buffers; and the end of the output.
// Counterpart:  dt_work.c, dt_consume.c, dt_aggregate.c (dtrace_aggregate_snap)
#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "dtrace/consume/session_impl.hpp"

namespace dtmalloc::dtrace {
namespace {

std::string plural(std::uint64_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace

void Session::Impl::report_drop(const char* tag, std::uint64_t count, const std::string& text,
                                int cpu) {
  if (count == 0) return;
  had_errors = lost_records = true;
  drop_totals[tag] += count;
  if (document) {
    structured_drop(tag, count, text, cpu);
    return;
  }
  message(options.is_set("droptags") ? std::string("[") + tag + "] " + text : text);
}

bool Session::Impl::check_status(bool final) {
  const Consumer::Status now = consumer.status(status_interval());
  const Consumer::Status before = std::exchange(reported, now);
  const auto report = [&](const char* tag, std::uint64_t Consumer::Status::*counter,
                          const char* noun, const char* rest) {
    const std::uint64_t count = now.*counter - before.*counter;
    report_drop(tag, count, plural(count, noun) + rest);
  };
  using Status = Consumer::Status;
  report("DTRACEDROP_DYNAMIC", &Status::dynamic_drops, "dynamic variable drop", "");
  report("DTRACEDROP_DYNRINSE", &Status::rinsing_drops, "dynamic variable drop",
         " with non-empty rinsing list");
  report("DTRACEDROP_DYNDIRTY", &Status::dirty_drops, "dynamic variable drop",
         " with non-empty dirty list");
  report("DTRACEDROP_SPEC", &Status::speculative_drops, "speculative drop", "");
  report("DTRACEDROP_SPECBUSY", &Status::busy_speculations, "failed speculation",
         " (available buffer(s) still busy)");
  report("DTRACEDROP_SPECUNAVAIL", &Status::unavailable_speculations, "failed speculation",
         " (no speculative buffer available)");
  report("DTRACEDROP_DBLERROR", &Status::error_drops, "error", " in ERROR probe enabling");
  if (final) return true;
  const Activity activity = consumer.activity();
  if (activity == Activity::killed) {
    fail_processing("Abort due to systemic unresponsiveness");
    abort();
    return false;
  }
  if (activity == Activity::draining || now.filled) {
    finish();
    return false;
  }
  return true;
}

void Session::Impl::pass(bool final) {
  const auto due = [&](Turn& turn, std::uint64_t rate) {
    return take_turn(turn, rate, final || first_pass);
  };
  if (due(status_turn, status_interval()) && !check_status(final)) return;
  if (due(aggregation_turn, aggregation_rate())) take_aggregations();
  if ((final || reads_buffers()) && due(switch_turn, switch_rate())) take_records(final);
  first_pass = false;
  if (aborted && !final) abort();
}

void Session::Impl::fail_processing(std::string_view why) {
  aborted = true;
  message("processing aborted: " + std::string(why));
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
                plural(increment, "aggregation drop") + " on CPU " + std::to_string(cpu), cpu);
  }
}

// The records that lie one after another in a part of a buffer.
void Session::Impl::collect(std::vector<Record>& records, int cpu,
                            std::span<const std::byte> bytes) const {
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
    if (!records.empty() && records.back().cpu == cpu) records.back().next = epid;
    ++record.ecb->records_read;
    records.push_back(record);
    at += record.ecb->size;
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
    // The CPU that BEGIN ran on comes first; END ran there too: it comes last in the last pass.
    const int cpu = (consumer.home_cpu() + (final ? i + 1 : i)) % count;
    const Consumer::Taken taken = consumer.take_records(cpu);
    if (i == 0) earliest = taken.time;
    drops[static_cast<std::size_t>(cpu)] = taken.records.drops;
    collect(records, cpu, taken.records.records);
    collect(records, cpu, taken.records.newer);
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
                plural(dropped, "drop") + " on CPU " + std::to_string(cpu), cpu);
  }
}

void Session::Impl::abort() {
  if (scheduled) framework.cpus().clock().cancel(callout);
  stopped = true;
  exit_status = 1;
  consumer.close();
}

void Session::Impl::finish() {
  std::exception_ptr panic;  // END's: what was traced is printed before it goes on
  try {
    consumer.stop(&tracer);
  } catch (const KernelPanic&) {
    panic = std::current_exception();
  }
  tell_full_buffers();
  // What was overwritten is not known.
  if (consumer.config.policy == BufferPolicy::ring) lost_records = true;
  if (scheduled) framework.cpus().clock().cancel(callout);
  pass(true);
  if (aborted) {
    abort();
    return;
  }
  stopped = true;
  if (document) {
    end_document();
  } else {
    out("\n");
    print_unprinted();
  }
  find_idle_clauses();
  collect_notes();
  collect_figures();
  if (!quiet()) {
    for (const std::string& note : consumer.notes()) remark(note);
  }
  consumer.close();
  if (panic) std::rethrow_exception(panic);
}

}  // namespace dtmalloc::dtrace
