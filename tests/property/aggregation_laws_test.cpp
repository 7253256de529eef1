// SPDX-License-Identifier: BSD-2-Clause
// Laws of aggregations: a D program counts what the kernel counts; which CPUs did the work does not
// show.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <dtmalloc/dtrace/session.hpp>
#include <map>
#include <numeric>
#include <sstream>

#include "dtrace/core/aggregate.hpp"
#include "support/op_gen.hpp"
#include "support/replay.hpp"
#include "workload/random.hpp"

namespace dtmalloc::support {
namespace {

using dtrace::AggFunction;
using dtrace::AggSpec;
using workload::OpKind;
using workload::Random;
using workload::Workload;

// --- the functions themselves

AggSpec random_spec(Random& random) {
  dtrace::AggregationDesc desc;
  desc.function = static_cast<AggFunction>(random.below(9));
  desc.base = static_cast<std::int32_t>(random.below(100)) - 50;
  desc.step = static_cast<std::uint16_t>(1 + random.below(20));
  desc.limit = desc.base + static_cast<std::int32_t>(desc.step * (1 + random.below(30)));
  desc.factor = 10;
  desc.low = static_cast<std::uint16_t>(random.below(3));
  desc.high = static_cast<std::uint16_t>(desc.low + random.below(4));
  desc.nsteps = random.below(2) == 0 ? 10 : 20;
  return AggSpec::of(desc);
}

std::int64_t random_value(Random& random) {
  // Small, large and huge values of both signs, zero and the limits.
  const std::uint64_t bits = random.below(65);
  const std::uint64_t value = bits == 64 ? random.next() : random.next() & ((1ull << bits) - 1);
  return static_cast<std::int64_t>(random.below(2) == 0 ? value : 0 - value);
}

using Data = std::vector<std::int64_t>;

Data started(const AggSpec& spec) {
  Data data(spec.words);
  aggregate_start(spec, data.data());
  return data;
}

// REQ: LAW-6
TEST(AggregationLaws, OrderOfCpusAndPlaceOfFiringsDoNotMatter) {
  const SeedRange range = seeds(500);
  for (std::uint64_t seed = range.first; seed < range.first + range.count; ++seed) {
    Random random(seed);
    const AggSpec spec = random_spec(random);
    const std::size_t cpus = 2 + random.below(6);
    std::vector<Data> parts(cpus, started(spec));
    Data whole = started(spec);
    const std::uint64_t firings = random.below(200);
    for (std::uint64_t i = 0; i < firings; ++i) {
      const std::int64_t value = random_value(random);
      const auto increment = static_cast<std::int64_t>(1 + random.below(3));
      const std::size_t cpu = random.below(cpus);
      aggregate_value(spec, parts[cpu].data(), value, increment);
      aggregate_value(spec, whole.data(), value, increment);
    }
    std::vector<std::size_t> order(cpus);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (int permutation = 0; permutation < 4; ++permutation) {
      for (std::size_t i = cpus; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
      Data sum = started(spec);
      for (const std::size_t cpu : order) {
        aggregate_combine(spec, sum.data(), parts[cpu].data());
      }
      ASSERT_EQ(sum, whole) << "seed " << seed << ", function " << to_string(spec.function);
    }
    // Pairs first, then the pairs: combining is associative.
    Data left = started(spec), right = started(spec);
    for (std::size_t cpu = 0; cpu < cpus; ++cpu) {
      aggregate_combine(spec, (cpu < cpus / 2 ? left : right).data(), parts[cpu].data());
    }
    aggregate_combine(spec, left.data(), right.data());
    ASSERT_EQ(left, whole) << "seed " << seed << ", function " << to_string(spec.function);
  }
}

// REQ: LAW-6
TEST(AggregationLaws, HashHoldsWhatAMapHolds) {
  const SeedRange range = seeds(60);
  for (std::uint64_t seed = range.first; seed < range.first + range.count; ++seed) {
    Random random(seed);
    dtrace::AggBuffer buffer;
    ASSERT_TRUE(buffer.reserve(1u << 20));
    std::vector<AggSpec> specs;
    for (std::uint32_t id = 1; id <= 3; ++id) {
      specs.push_back(random_spec(random));
      specs.back().id = id;
    }
    std::map<std::pair<std::uint32_t, std::string>, Data> expected;
    for (int round = 0; round < 3; ++round) {
      for (std::uint64_t i = 0; i < 300; ++i) {
        const AggSpec& spec = specs[random.below(specs.size())];
        std::string key("key ");
        key.append(random.below(5), 'x');
        key += std::to_string(random.below(30));
        const std::int64_t value = random_value(random);
        std::int64_t* data = buffer.find(spec, reinterpret_cast<const std::byte*>(key.data()),
                                         static_cast<std::uint32_t>(key.size()));
        ASSERT_NE(data, nullptr);
        aggregate_value(spec, data, value, 1);
        const auto [at, added] = expected.try_emplace({spec.id, key}, started(spec));
        aggregate_value(spec, at->second.data(), value, 1);
      }
      buffer.exchange();
      std::map<std::pair<std::uint32_t, std::string>, Data> got;
      buffer.visit([&](const dtrace::AggBuffer::Element& element) {
        const std::string key(reinterpret_cast<const char*>(element.key.data()),
                              element.key.size());
        const AggSpec& spec = specs[element.aggregation - 1];
        const bool added =
            got.try_emplace({element.aggregation, key}, element.data, element.data + spec.words)
                .second;
        EXPECT_TRUE(added) << "seed " << seed << ": a key comes twice";
      });
      ASSERT_EQ(got, expected) << "seed " << seed << ", round " << round;
      expected.clear();
    }
  }
}

// --- whole D programs

struct Traced {
  std::string problem;  // of the run or of the consumer
  std::string out;
  std::vector<std::pair<std::string, TypeStats>> growth;  // of each type, since the enabling
};

Traced trace(const Workload& workload, const std::string& program) {
  Traced traced;
  Replay replay(workload, {.probes = false, .invariants = std::nullopt});
  Kernel& kernel = replay.kernel();
  dtrace::Framework framework(kernel.cpus(), kernel.addresses());
  framework.load_standard_providers();
  load_dtmalloc(framework, kernel);
  std::string err;
  {
    dtrace::Session session(framework, {[&](std::string_view text) { traced.out += text; },
                                        [&](std::string_view text) { err += text; }});
    if (auto set = session.set_option("quiet"); !set) return {set.error().message, {}, {}};
    const auto id = session.compile({.kind = dtrace::ProgramSource::script,
                                     .text = program,
                                     .name = "law.d",
                                     .context = dtrace::ProgramSource::probe_name,
                                     .args = {}});
    if (!id) return {to_string(id.error()), {}, {}};
    if (auto enabled = session.enable(*id); !enabled) return {enabled.error().message, {}, {}};
    if (auto gone = session.go(); !gone) return {gone.error().message, {}, {}};
    replay.start_from_here();
    std::vector<TypeStats> before;
    for (const malloc_type* type : replay.types()) before.push_back(kernel.type_stats(*type));
    traced.problem = replay.run();
    for (std::size_t i = 0; i < before.size(); ++i) {
      const malloc_type* type = replay.types()[i];
      TypeStats now = kernel.type_stats(*type);
      now.memalloced -= before[i].memalloced;
      now.memfreed -= before[i].memfreed;
      now.numallocs -= before[i].numallocs;
      now.numfrees -= before[i].numfrees;
      traced.growth.push_back({type->ks_shortdesc, now});
    }
    session.stop();
    if (traced.problem.empty() && session.had_errors()) traced.problem = "errors: " + err;
  }
  if (traced.problem.empty() && !err.empty()) traced.problem = "messages: " + err;
  return traced;
}

// "c temp 12" -> numbers by "c temp"; rows of a distribution add up under "rows".
std::map<std::string, std::uint64_t> read_output(const std::string& out) {
  std::map<std::string, std::uint64_t> numbers;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    line.erase(line.find_last_not_of(' ') + 1);  // rows end in blanks
    const std::size_t space = line.find_last_of(' ');
    if (space == std::string::npos) continue;
    const std::string last = line.substr(space + 1);
    if (line.find('|') != std::string::npos) {
      numbers["rows"] += std::strtoull(last.c_str(), nullptr, 10);
    } else if (line.find("value") == std::string::npos) {
      numbers[line.substr(0, space)] = std::strtoull(last.c_str(), nullptr, 10);
    }
  }
  return numbers;
}

std::string d_counts_what_the_kernel_counts(const Workload& workload) {
  Traced traced = trace(workload, R"(
dtmalloc:::malloc /arg3 > 0/
{
  @c[stringof args[0]->ks_shortdesc] = count();
  @s[stringof args[0]->ks_shortdesc] = sum(arg3);
  @q = quantize(arg3);
}
dtmalloc:::free
{
  @fc[stringof args[0]->ks_shortdesc] = count();
  @fs[stringof args[0]->ks_shortdesc] = sum(args[3]);
}
END
{
  printa("c %s %@d\n", @c);
  printa("s %s %@d\n", @s);
  printa("fc %s %@d\n", @fc);
  printa("fs %s %@d\n", @fs);
  printa("%@d\n", @q);
}
)");
  if (!traced.problem.empty()) return traced.problem;
  std::map<std::string, std::uint64_t> got = read_output(traced.out);
  std::uint64_t rows = 0;
  for (const auto& [name, growth] : traced.growth) {
    rows += growth.numallocs;
    if (got["c " + name] != growth.numallocs) return "count() of malloc, type " + name;
    if (got["s " + name] != growth.memalloced) return "sum(arg3) of malloc, type " + name;
    if (got["fc " + name] != growth.numfrees) return "count() of free, type " + name;
    if (got["fs " + name] != growth.memfreed) return "sum(args[3]) of free, type " + name;
  }
  return got["rows"] == rows ? "" : "the rows of quantize(arg3) are not all firings";
}

// REQ: LAW-5
TEST(AggregationLaws, DCountsWhatTheKernelCounts) {
  check_law(80, mixed_profile, d_counts_what_the_kernel_counts);
}

// REQ: LAW-5
TEST(AggregationLaws, DCountsWhatTheKernelCounts_WhenMemoryRunsOut) {
  check_law(40, tight_profile, d_counts_what_the_kernel_counts);
}

// The same statements, all on one CPU.
Workload on_one_cpu(const Workload& workload) {
  Workload one = workload;
  std::erase_if(one.bodies[0], [](const workload::Op& op) { return op.kind == OpKind::cpu; });
  one.kernel.cpus = 1;
  return one;
}

// REQ: LAW-6
TEST(AggregationLaws, OutputDoesNotTellWhichCpusFired) {
  const std::string program = R"(
dtmalloc:::malloc
{
  @[probefunc] = count();
  @sizes[probefunc] = quantize(arg3);
  @least = min(arg3);
  @most = max(arg3);
  @mean[probefunc, args[4]] = avg(arg3);
  @linear = lquantize(args[4], -1, 14, 1);
  @spread = stddev(arg3);
}
dtmalloc:::free { @free[probefunc, arg3] = sum(arg3); }
)";
  check_law(60, mixed_profile, [&](const Workload& workload) -> std::string {
    const Traced many = trace(workload, program);
    if (!many.problem.empty()) return many.problem;
    const Traced one = trace(on_one_cpu(workload), program);
    if (!one.problem.empty()) return "on one CPU: " + one.problem;
    return many.out == one.out ? "" : "other output on one CPU";
  });
}

}  // namespace
}  // namespace dtmalloc::support
