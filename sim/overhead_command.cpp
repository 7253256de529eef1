// SPDX-License-Identifier: BSD-2-Clause
// `dtmalloc overhead`: runs a workload again and again, in ways that take turns, and says what
// probes and clauses cost it.
// Invariants:   what is timed is what the workload's operations take, of all threads of this
//               process; boot, compilation, BEGIN, END, the last pass and a warm-up are not. A
//               figure is the median of the differences within rounds.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <random>

#include "commands.hpp"
#include "interrupt.hpp"
#include "machine.hpp"
#include "machine_run.hpp"
#include "overhead.hpp"
#include "overhead_plan.hpp"

namespace dtmalloc::sim {
namespace {

using dtrace::ProbeDescription;

constexpr std::size_t kFewestRounds = 5, kMostRounds = 5000;
constexpr std::uint64_t kEnoughOperations = 100000;
constexpr std::uint64_t kFewestOperations = 8;  // that have a warm-up among them

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void nothing(const dtrace::ProbeFiring&, std::uintptr_t, std::uintptr_t, std::uintptr_t,
             std::uintptr_t, std::uintptr_t) {}
std::string as_named(const ProbeDescription& description) {
  return description.id != dtrace::kNoProbe ? "probe " + std::to_string(description.id)
                                            : to_string(description);
}

// One thread of the machine runs at a time.
void count(const dtrace::ProbeFiring& firing, std::uintptr_t, std::uintptr_t, std::uintptr_t,
           std::uintptr_t, std::uintptr_t) {
  ++*static_cast<std::uint64_t*>(firing.context);
}

class Measuring {
 public:
  Measuring(const OverheadOptions& options, const workload::Workload& workload,
            const KernelConfig& config, std::vector<dtrace::ProgramSource> sources)
      : options_(options),
        workload_(workload),
        config_(config),
        sources_(std::move(sources)),
        nowhere_(Output::open("/dev/null", {})) {}

  // The exit status; 0: `overhead` is what was found.
  int all(Overhead& overhead) {
    if (nowhere_ == nullptr) return kRefused;
    overhead.workload = workload_.file;
    overhead.traced = !sources_.empty();
    overhead.seed = config_.seed;
    if (!first_run(overhead)) return status_;
    if (!count_firings(overhead)) return status_;
    if (!measure(overhead)) return status_;
    compute(overhead);
    return status_;
  }

 private:
  // The machine of a way, booted, with what the way enables; null: a message was printed.
  std::unique_ptr<MachineRun> prepared(const Way& way, RunBounds bounds) {
    bounds.no_probe_sites = way.kind == Way::absent;
    bounds.start_at = start_at_;
    bounds.end_at = end_at_;
    if (bounds.passes != 0) bounds.passes = passes_;
    auto machine =
        std::make_unique<MachineRun>(workload_, config_, *nowhere_, MachineRun::measured, bounds);
    if (!machine->boot()) return nullptr;
    dtrace::Framework& framework = machine->tracing().framework();
    for (const std::size_t probe : way.probes)
      if (!framework.enable(plan_.probes[probe], nothing, nullptr)) return nullptr;
    if (way.kind != Way::traced) return machine;
    return compile(*machine) && enable(*machine, way) ? std::move(machine) : nullptr;
  }

  bool compile(MachineRun& machine) const {
    Tracing& tracing = machine.tracing();
    if (!tracing.set_options(options_.tracing)) return false;
    return std::all_of(sources_.begin(), sources_.end(), [&](const dtrace::ProgramSource& source) {
      return tracing.compile(source);
    });
  }

  bool enable(MachineRun& machine, const Way& way) const {
    Tracing& tracing = machine.tracing();
    for (std::size_t program = 0; program < tracing.programs().size(); ++program) {
      const auto wants = [&](std::size_t clause, std::optional<std::size_t> action) {
        if (action) {
          const std::string& name = actions_[program][clause][*action];
          return name != "exit" && (name.empty() || name != way.without);
        }
        for (std::size_t i = 0; i < plan_.clauses.size(); ++i) {
          const PlannedClause& planned = plan_.clauses[i];
          if (planned.program == program && std::find(planned.pieces.begin(), planned.pieces.end(),
                                                      clause) != planned.pieces.end())
            return way.clauses.contains(i);
        }
        return true;  // of BEGIN, END and ERROR
      };
      if (!tracing.enable_chosen(tracing.programs()[program], wants)) return false;
    }
    return tracing.go();
  }

  bool ended_well(const MachineRun& machine) {
    const workload::Outcome& outcome = machine.outcome();
    if (outcome.error) status_ = kRefused;
    if (outcome.panic) status_ = kPanic;
    if (outcome.error || outcome.panic) return false;
    if (InterruptGuard::interrupted()) {
      complain("interrupted before anything was measured");
      status_ = kRefused;
      return false;
    }
    return true;
  }

  // What the programs consist of, whether the workload runs at all, and how long a run may be.
  bool first_run(Overhead& overhead) {
    status_ = kRefused;
    {
      MachineRun machine(workload_, config_, *nowhere_, MachineRun::measured, {.silent = true});
      if (!machine.boot() || !compile(machine)) return false;
      make_plan(machine.tracing());
    }
    const double share = options_.seconds / static_cast<double>(plan_.ways.size() * 40);
    const Way& way = plan_.ways[plan_.traced != 0      ? plan_.traced
                                : plan_.all_empty != 0 ? plan_.all_empty
                                                       : plan_.empty.front()];
    const auto machine = prepared(
        way, {.cpu_seconds = std::max(share, 0.05), .passes = 0, .operations = kEnoughOperations});
    if (machine == nullptr) return false;
    const workload::Outcome& outcome = machine->run();
    if (!ended_well(*machine)) return false;
    if (outcome.operations == 0) {
      complain(workload_.file + ": there is no operation to measure");
      return false;
    }
    // A pass that was stopped is not done at all, unless it is the first.
    const std::uint64_t now = machine->kernel().cpus().clock().now();
    const std::size_t passes = machine->counted().passes;
    passes_ = outcome.stopped && passes > 1 ? passes - 1 : passes;
    overhead.passes = passes_;
    overhead.cut = outcome.stopped && passes == 1;
    if (overhead.cut) end_at_ = now;
    if (passes_ == 1 && outcome.operations >= kFewestOperations) start_at_ = now / (passes * 4);
    overhead.warm = start_at_.has_value();
    overhead.whole_virtual_ns = now;
    status_ = outcome.failed_expects != 0 ? kExpectFailed : kOk;
    const Tracing& tracing = machine->tracing();
    if (!tracing.programs().empty()) {
      overhead.figures = machine->tracing().session().figures();
      overhead.notes = tracing.notes();
      for (const std::string& action : plan_.left_out)
        overhead.notes.push_back(action == "exit()" ? "exit() did nothing: tracing goes on"
                                                    : action + " did nothing but be recorded");
      if (machine->tracing_ended()) {
        overhead.notes.emplace_back(
            "tracing ended before the workload did, which the figures average: a buffer of "
            "bufpolicy=fill was full, or the consumer was killed");
      }
    }
    return true;
  }

  void make_plan(Tracing& tracing) {
    std::vector<std::vector<dtrace::ClauseInfo>> programs;
    actions_.clear();
    for (const dtrace::ProgramId program : tracing.programs()) {
      programs.push_back(tracing.session().clauses(program));
      actions_.emplace_back();
      for (const dtrace::ClauseInfo& clause : programs.back())
        actions_.back().push_back(clause.actions);
    }
    dtrace::Framework& framework = tracing.framework();
    plan_ = plan_overhead(programs, [&](const ProbeDescription& description) {
      const std::vector<dtrace::ProbeId> ids = framework.match(description);
      if (ids.empty()) return Matched::nothing;
      const bool once = std::all_of(ids.begin(), ids.end(), [&](dtrace::ProbeId id) {
        return framework.probe(id).description.provider == "dtrace";
      });
      return once ? Matched::once : Matched::some;
    });
  }

  bool count_firings(Overhead& overhead) {
    std::vector<std::uint64_t> counters(plan_.probes.size(), 0);
    RunBounds bounds{.silent = true};
    bounds.warm = [&] {
      std::fill(counters.begin(), counters.end(), 0);
      overhead.firings = 0;
    };
    const auto machine = prepared({}, bounds);
    if (machine == nullptr) return false;
    dtrace::Framework& framework = machine->tracing().framework();
    std::set<dtrace::ProbeId> counted;
    for (std::size_t i = 0; i < plan_.probes.size(); ++i) {
      Overhead::Probe probe;
      probe.description = as_named(plan_.probes[i]);
      const std::vector<dtrace::ProbeId> ids = framework.match(plan_.probes[i]);
      probe.probes = ids.size();
      if (!framework.enable(plan_.probes[i], count, &counters[i])) return false;
      for (const dtrace::ProbeId id : ids) {
        ProbeDescription one;
        one.id = id;
        if (counted.insert(id).second && !framework.enable(one, count, &overhead.firings))
          return false;
      }
      overhead.probes.push_back(std::move(probe));
    }
    machine->run();
    if (!ended_well(*machine)) return false;
    for (std::size_t i = 0; i < counters.size(); ++i) overhead.probes[i].firings = counters[i];
    overhead.operations = machine->counted().operations;
    overhead.virtual_ns = machine->counted().virtual_ns;
    return true;
  }

  bool measure(Overhead& overhead) {
    const auto start = std::chrono::steady_clock::now();
    std::mt19937_64 random(config_.seed);
    std::vector<std::size_t> order(plan_.ways.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    double longest = 0;
    bool differs = false;
    while (times_.size() < kMostRounds) {
      const double spent = seconds_since(start);
      if (times_.size() >= kFewestRounds && spent + longest > options_.seconds) break;
      progress(spent);
      for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
      std::vector<double> round(order.size(), 0);
      for (const std::size_t way : order) {
        const auto machine = prepared(plan_.ways[way], {.silent = true});
        if (machine == nullptr) return refuse(kRefused);
        machine->run();
        if (InterruptGuard::interrupted() && times_.size() >= kFewestRounds) break;
        if (!ended_well(*machine)) return refuse(status_);
        const MachineRun::Counted& counted = machine->counted();
        if (counted.operations == 0) {
          complain(workload_.file + ": there are too few operations to measure");
          return refuse(kRefused);
        }
        differs = differs || counted.operations != overhead.operations;
        round[way] = counted.cpu_ns / static_cast<double>(counted.operations);
      }
      if (InterruptGuard::interrupted()) break;
      times_.push_back(std::move(round));
      longest = std::max(longest, seconds_since(start) - spent);
    }
    end_progress();
    overhead.seconds = seconds_since(start);
    if (overhead.virtual_ns == overhead.operations * config_.op_cost) {
      overhead.notes.push_back(
          "the workload never waits: its rate is that of an operation's cost on "
          "the virtual clock, " +
          std::to_string(config_.op_cost) + " ns");
    }
    if (differs) {
      overhead.notes.emplace_back(
          "the programs change what the workload does: the runs differ in their operations");
    }
    return true;
  }

  bool refuse(int status) {
    end_progress();
    status_ = status;
    return false;
  }

  void progress(double spent) {
    if (::isatty(STDERR_FILENO) != 1) return;
    shown_ = true;
    print_error("\rround " + std::to_string(times_.size() + 1) + ", " +
                std::to_string(static_cast<int>(spent)) + " s of " +
                std::to_string(static_cast<int>(options_.seconds)) + " s ");
  }
  void end_progress() {
    if (shown_) print_error("\r\x1b[K");
    shown_ = false;
  }

  // The difference of two ways, over the quiet rounds.
  Estimate difference(std::size_t with, std::size_t without) const {
    std::vector<double> sample;
    for (const std::size_t round : quiet_)
      sample.push_back(times_[round][with] - times_[round][without]);
    return estimate(std::move(sample));
  }

  void compute(Overhead& overhead) {
    std::vector<double> sums;
    for (const std::vector<double>& round : times_) {
      double sum = 0;
      for (const double ns : round) sum += ns;
      sums.push_back(sum);
    }
    quiet_ = quiet_rounds(sums);
    overhead.rounds = times_.size();
    overhead.quiet = quiet_.size();
    overhead.spread = spread_percent(sums);
    std::vector<double> absent;
    for (const std::size_t round : quiet_) absent.push_back(times_[round][0]);
    overhead.absent = estimate(std::move(absent)).value;
    constexpr std::size_t kAbsent = 0, kDisabled = 1;
    const auto cost = [&](std::size_t way, std::size_t base, double ns) {
      const Estimate over = difference(way, base);
      return Overhead::Cost{over, ns + over.value};
    };
    overhead.disabled = cost(kDisabled, kAbsent, overhead.absent);
    overhead.disabled.over = with_layout(overhead.disabled.over, overhead.absent);
    const auto over_disabled = [&](std::size_t way) {
      return cost(way, kDisabled, overhead.disabled.ns);
    };
    for (std::size_t i = 0; i < plan_.probes.size(); ++i)
      overhead.probes[i].empty = over_disabled(plan_.empty[i]);
    if (plan_.all_empty != 0) overhead.all_empty = over_disabled(plan_.all_empty);
    if (plan_.traced == 0) return;
    overhead.clauses = over_disabled(plan_.traced);
    clauses(overhead);
  }

  void clauses(Overhead& overhead) const {
    std::vector<double> costs;
    for (std::size_t i = 0; i < plan_.clauses.size(); ++i) {
      const PlannedClause& planned = plan_.clauses[i];
      const dtrace::ProgramSource& source = sources_[planned.program];
      Overhead::Clause clause;
      clause.place = source.kind == dtrace::ProgramSource::script
                         ? source.name + ":" + std::to_string(planned.where.line)
                         : "program " + std::to_string(planned.program + 1);
      clause.description = as_named(planned.description);
      clause.cost = difference(plan_.of_clause[i].with, plan_.of_clause[i].without);
      clause.needs.assign(plan_.needs[i].begin(), plan_.needs[i].end());
      for (const Overhead::Probe& probe : overhead.probes)
        if (probe.description == clause.description) clause.firings = probe.firings;
      for (const dtrace::TraceFigures::Clause& figures : overhead.figures.clauses) {
        if (figures.program != planned.program ||
            std::find(planned.pieces.begin(), planned.pieces.end(), figures.clause) ==
                planned.pieces.end())
          continue;
        clause.record = std::max(clause.record, figures.size);
        clause.records += figures.records;
      }
      costs.push_back(clause.cost.value);
      overhead.clause.push_back(std::move(clause));
    }
    const std::vector<double> parts = shares(costs);
    for (std::size_t i = 0; i < parts.size(); ++i) overhead.clause[i].share = parts[i];
    for (std::size_t i = 0; i < plan_.aggregations.size(); ++i) {
      Overhead::Aggregation aggregation;
      aggregation.name = plan_.aggregations[i];
      aggregation.cost = difference(plan_.of_aggregation[i].with, plan_.of_aggregation[i].without);
      const double all = overhead.clauses.over.value;
      if (all > 0) aggregation.share = std::max(0.0, aggregation.cost.value / all * 100);
      for (const dtrace::TraceFigures::Aggregation& figures : overhead.figures.aggregations) {
        if (figures.name != aggregation.name) continue;
        aggregation.elements = figures.elements;
        aggregation.bytes = figures.bytes;
      }
      overhead.aggregations.push_back(std::move(aggregation));
    }
  }

  const OverheadOptions& options_;
  const workload::Workload& workload_;
  const KernelConfig& config_;
  const std::vector<dtrace::ProgramSource> sources_;
  std::unique_ptr<Output> nowhere_;
  OverheadPlan plan_;
  std::vector<std::vector<std::vector<std::string>>> actions_;  // by program and clause
  std::optional<std::uint64_t> start_at_, end_at_;              // of a run with one pass
  std::size_t passes_ = 1;                                      // of a run
  std::vector<std::vector<double>> times_;                      // by round and way
  std::vector<std::size_t> quiet_;
  int status_ = kRefused;
  bool shown_ = false;
};

}  // namespace

int overhead_command(const OverheadOptions& options) {
  const auto workload = load_workload(options.workload);
  if (!workload) return kRefused;
  std::vector<dtrace::ProgramSource> sources;
  std::vector<std::string> inputs{options.workload};
  for (const ProgramOption& program : options.tracing.programs) {
    auto source = read_program(program, options.tracing.args);
    if (!source) return kRefused;
    sources.push_back(std::move(*source));
    if (program.script) inputs.push_back(program.text);
  }
  const auto config = machine_config(*workload, options.machine);
  if (!config) return kUsage;
  if (config->real_clock) {
    complain(
        "overhead measures on the virtual clock, on which waits take no time, expected no real "
        "clock");
    return kUsage;
  }
  const auto output = Output::open(options.output, inputs);
  if (output == nullptr) return kRefused;
  const InterruptGuard interrupts;
  Overhead overhead;
  const int status = Measuring(options, *workload, *config, std::move(sources)).all(overhead);
  if (overhead.rounds == 0) return status;
  output->write(options.json ? overhead_json(overhead) : overhead_text(overhead));
  return output->commit() ? status : static_cast<int>(kRefused);
}

}  // namespace dtmalloc::sim
