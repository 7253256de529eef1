// SPDX-License-Identifier: BSD-2-Clause
// Threads: whatever the schedule, the totals are the same, and those of the model.

#include <gtest/gtest.h>

#include <dtmalloc/workload/run.hpp>
#include <map>

#include "support/laws.hpp"
#include "support/op_gen.hpp"
#include "vm/uma_int.hpp"

namespace dtmalloc::support {
namespace {

using reference::FlatMalloc;
using reference::FlatStats;
using workload::Index;
using workload::kNone;
using workload::Op;
using workload::OpKind;
using workload::Workload;

// Runs the threads' programs on the model alone: each as far as it gets until it needs a block that
// nobody has made yet.
class ModelRun {
 public:
  explicit ModelRun(const Workload& workload) : w_(workload) {}

  std::string run() {
    std::vector<std::pair<Index, std::size_t>> threads;  // body, next statement
    for (const Op& op : w_.bodies[0]) {
      if (op.kind == OpKind::thread) threads.push_back({op.body, 0});
    }
    for (bool any = true; any;) {
      any = false;
      for (auto& [body, next] : threads) {
        while (next < w_.bodies[body].size() && ready(w_.bodies[body][next])) {
          const std::string problem = step(w_.bodies[body][next++]);
          if (!problem.empty()) return problem;
          any = true;
        }
      }
    }
    for (const auto& [body, next] : threads) {
      if (next != w_.bodies[body].size()) return "a thread waits for ever";
    }
    for (const Op& op : w_.bodies[0]) {
      const std::string problem = step(op);
      if (!problem.empty()) return problem;
    }
    return "";
  }
  const FlatMalloc& model() const { return model_; }

 private:
  struct Held {
    FlatMalloc::Address address;
    Index type;
  };

  bool ready(const Op& op) const {
    if (op.source.name != kNone) return held_.count(op.source.name) != 0;
    const bool frees = op.kind == OpKind::free || op.kind == OpKind::zfree;
    return !frees || held_.count(op.target.name) != 0;
  }

  // An address far from all others, aligned to a page.
  FlatMalloc::Address fresh() { return next_ += std::uintptr_t{1} << 32; }

  std::string step(const Op& op) {
    const auto size = static_cast<std::uint64_t>(op.value.number);
    const reference::FlatCall call{0, static_cast<int>(op.type), size, op.flags};
    FlatMalloc::Address got = fresh();
    std::string problem;
    switch (op.kind) {
      case OpKind::malloc:
        problem = model_.malloc(call, got);
        break;
      case OpKind::mallocarray:
        problem = model_.malloc(
            {0, call.type, size * static_cast<std::uint64_t>(op.extra.number), op.flags}, got);
        break;
      case OpKind::malloc_aligned:
        problem = model_.malloc_aligned(call, static_cast<std::uint64_t>(op.extra.number), got);
        break;
      case OpKind::malloc_exec:
        problem = model_.malloc_exec(call, got);
        break;
      case OpKind::contigmalloc:
        problem = model_.contigmalloc(call, got);
        break;
      case OpKind::realloc:
      case OpKind::reallocf: {
        const FlatMalloc::Address old = held_.at(op.source.name).address;
        const reference::FlatBlock* block = model_.block(old);
        if (size <= block->size && size > block->size / 2) got = old;
        problem = model_.realloc(call, op.kind == OpKind::reallocf, old, got);
        break;
      }
      case OpKind::free:
      case OpKind::zfree: {
        const Held held = held_.at(op.target.name);
        return model_.free(0, static_cast<int>(op.type == kNone ? held.type : op.type),
                           held.address);
      }
      default:
        return "";
    }
    held_[op.target.name] = {got, op.type};
    return problem;
  }

  const Workload& w_;
  FlatMalloc model_;
  std::map<Index, Held> held_;
  FlatMalloc::Address next_ = 0;
};

std::string any_schedule_gives_the_same_totals(const Workload& workload) {
  ModelRun expected(workload);
  std::string problem = expected.run();
  if (!problem.empty()) return "the model: " + problem;
  for (std::uint64_t schedule = 1; schedule <= 4; ++schedule) {
    KernelConfig config;
    workload.kernel.apply(config);
    config.fixed_cpus = true;
    config.seed = schedule;
    Kernel kernel(config);
    kernel.cpus().set_console([](std::string_view) {});
    kernel.cpus().bind(0);
    std::vector<malloc_type*> types;
    {
      workload::Runner runner(workload, kernel);
      if (auto booted = runner.boot(); !booted) return to_string(booted.error());
      const workload::Outcome outcome = runner.run();
      if (outcome.panic) problem = std::string("panics: ") + outcome.panic->what();
      if (outcome.error) problem = to_string(*outcome.error);
      for (const workload::TypeDecl& type : workload.types) {
        types.push_back(kernel.type_by_symbol(type.symbol));
      }
      if (problem.empty()) problem = law_of_types(kernel, types, expected.model());
      if (problem.empty()) problem = law_of_kegs(kernel, expected.model());
      if (problem.empty()) problem = law_of_pages(kernel, expected.model());
      if (problem.empty()) problem = law_of_structures(kernel);
    }
    kernel.cpus().unbind();
    if (!problem.empty())
      return problem + "\n# with the schedule of seed " + std::to_string(schedule);
  }
  return "";
}

TEST(Schedule, AnyScheduleGivesTheTotalsOfTheModel) {
  // REQ: LAW-4
  check_law(60, threads_profile, any_schedule_gives_the_same_totals);
}

TEST(Schedule, SameSeedGivesTheSameSchedule) {
  // REQ: LAW-7
  check_law(20, threads_profile, [](const Workload& workload) -> std::string {
    std::vector<std::vector<std::uint64_t>> runs;
    for (int run = 0; run < 2; ++run) {
      KernelConfig config;
      workload.kernel.apply(config);
      config.fixed_cpus = true;
      Kernel kernel(config);
      kernel.cpus().bind(0);
      std::vector<std::uint64_t> numbers;
      {
        workload::Runner runner(workload, kernel);
        if (auto booted = runner.boot(); !booted) return to_string(booted.error());
        runner.run();
        for (const workload::NameDecl& name : workload.names) {
          numbers.push_back(kernel.addresses().to_simulated(runner.block(name.text)));
        }
        for (const ZoneStats& zone : kernel.zones()) {
          for (const ZoneStats::Cpu& cpu : zone.cpus) numbers.push_back(cpu.items);
          numbers.push_back(zone.requests);
        }
        numbers.push_back(kernel.cpus().clock().now());
      }
      kernel.cpus().unbind();
      runs.push_back(std::move(numbers));
    }
    return runs[0] == runs[1] ? "" : "the second run is another";
  });
}

// The maker of `b` was woken when `a` was set, but has not run when `b` is needed.
TEST(Schedule, WaitsForABlock_WhenItsMakerHasJustBeenWoken) {
  const auto workload = workload::parse(
      "kernel cpus=2\n"
      "thread \"waits\" cpu=0 {\n  free a\n  b = malloc 16 M_TEMP M_WAITOK\n}\n"
      "thread \"makes\" cpu=1 {\n  wait 1us\n  a = malloc 16 M_TEMP M_WAITOK\n  free b\n}\n"
      "join\n",
      "woken.wl");
  ASSERT_TRUE(workload.has_value()) << to_string(workload.error());
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    KernelConfig config;
    workload->kernel.apply(config);
    config.seed = seed;
    Kernel kernel(config);
    kernel.cpus().bind(0);
    {
      workload::Runner runner(*workload, kernel);
      ASSERT_TRUE(runner.boot().has_value());
      const workload::Outcome outcome = runner.run();
      EXPECT_FALSE(outcome.error) << "seed " << seed << ": " << to_string(*outcome.error);
    }
    kernel.cpus().unbind();
  }
}

}  // namespace
}  // namespace dtmalloc::support
