// SPDX-License-Identifier: BSD-2-Clause
// Seeds, profiles and counterexamples of property tests.

#include "support/op_gen.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "support/shrink.hpp"

namespace dtmalloc::support {
namespace {

using workload::GenerateOptions;
using workload::Workload;

std::uint64_t environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 0);
}

// What a failure is about: its text without numbers, so that a shrunk workload fails alike.
std::string kind_of(const std::string& problem) {
  std::string kind;
  for (const char c : problem.substr(0, problem.find('\n'))) {
    if (c < '0' || c > '9') kind += c;
  }
  return kind;
}

GenerateOptions common(std::uint64_t seed) {
  GenerateOptions options;
  options.mem = std::uint64_t{256} << 20;
  options.cpus = 1 + static_cast<int>(seed / 2 % 4);
  options.types = 1 + static_cast<int>(seed % 5);
  options.invariants = seed % 2 != 0;
  return options;
}

}  // namespace

SeedRange seeds(std::uint64_t default_count) {
  const bool one = std::getenv("DTM_SEED") != nullptr;
  return {environment("DTM_SEED", 1), environment("DTM_CASES", one ? 1 : default_count)};
}

std::string counterexample(std::uint64_t seed, const Workload& workload, const Law& law,
                           const std::string& problem) {
  const std::string kind = kind_of(problem);
  const Workload small =
      shrink(workload, [&](const Workload& candidate) { return kind_of(law(candidate)) == kind; });
  std::string text = "seed " + std::to_string(seed) + ": " + law(small) + "\n";
  text += "# shrunk to " + std::to_string(statement_count(small)) + " of " +
          std::to_string(statement_count(workload)) + " statements\n" + print(small);
  text += "# repeat: DTM_SEED=" + std::to_string(seed) + " DTM_CASES=1 dtm_property_test";
  if (const auto* test = ::testing::UnitTest::GetInstance()->current_test_info()) {
    text += std::string(" --gtest_filter=") + test->test_suite_name() + '.' + test->name();
  }
  return text + '\n';
}

void check_law(std::uint64_t cases, const Profile& profile, const Law& law) {
  const SeedRange range = seeds(cases);
  for (std::uint64_t i = 0; i < range.count; ++i) {
    const std::uint64_t seed = range.first + i;
    GenerateOptions options = profile(seed);
    options.seed = seed;
    const Workload workload = generate(options);
    const std::string problem = law(workload);
    if (problem.empty()) continue;
    ADD_FAILURE() << counterexample(seed, workload, law, problem);
    return;
  }
}

GenerateOptions mixed_profile(std::uint64_t seed) {
  GenerateOptions options = common(seed);
  options.operations = 100 + seed * 37 % 400;
  options.wrong_type_share = seed % 3 == 0 ? 5 : 0;
  return options;
}

GenerateOptions small_profile(std::uint64_t seed) {
  GenerateOptions options = common(seed);
  static constexpr std::uint64_t kSizes[] = {16,  32,   64,   128,  256,  384,
                                             512, 1024, 2048, 4096, 8192, 16384};
  const std::uint64_t size = kSizes[seed % 12], other = kSizes[seed / 12 % 12];
  options.sizes = {{size / 2 + 1, size, 4}, {other / 2 + 1, other, 1}};
  options.operations = 800;
  options.free_share = 20 + static_cast<int>(seed % 30);
  options.other_share = 0;
  options.other_cpu_share = static_cast<int>(seed % 7) * 5;
  return options;
}

// Enough blocks that full buckets of every size travel between CPUs, zone and slabs.
GenerateOptions wave_profile(std::uint64_t seed) {
  GenerateOptions options = common(seed);
  static constexpr std::uint64_t kSizes[] = {16, 32, 64, 128, 256, 384, 512, 1024, 2048, 8192};
  const std::uint64_t size = kSizes[seed % 10];
  options.sizes = {{size, size, 1}};
  options.operations = 4500;
  options.wave = 1500;
  options.free_share = 5;
  options.realloc_share = 2;
  options.other_share = 0;
  options.other_cpu_share = seed % 3 == 0 ? 1 : 0;
  options.zero_share = 0;
  return options;
}

GenerateOptions tight_profile(std::uint64_t seed) {
  GenerateOptions options = common(seed);
  options.mem = std::uint64_t{2} << 20;
  options.operations = 600;
  options.nowait_share = 100;
  options.free_share = 35;
  options.sizes = {{1, 4096, 4}, {4097, 70000, 3}, {70000, 200000, 1}};
  return options;
}

GenerateOptions domains_profile(std::uint64_t seed) {
  GenerateOptions options = common(seed);
  options.domains = 1 + static_cast<int>(seed / 2 % 4);
  options.cpus = options.domains + static_cast<int>(seed % 3);
  options.operations = 200 + seed * 37 % 600;
  options.other_share = 20;
  options.other_cpu_share = 3 + static_cast<int>(seed % 5) * 4;
  options.free_share = 38;
  if (seed % 3 == 0) {
    options.mem = (std::uint64_t{2} << 20) * static_cast<unsigned>(options.domains);
    options.nowait_share = 100;
    options.sizes = {{1, 4096, 4}, {4097, 70000, 3}, {70000, 200000, 1}};
  } else if (seed % 3 == 1) {  // few classes, so that cross buckets fill
    options.sizes = {{1000, 8192, 3}, {60, 64, 1}};
    options.operations *= 4;
  }
  return options;
}

GenerateOptions threads_profile(std::uint64_t seed) {
  GenerateOptions options = common(seed);
  options.threads = 2 + static_cast<int>(seed % 4);
  options.operations = 120;
  options.foreign_free_share = 30;
  options.other_cpu_share = seed % 3 == 0 ? 10 : 0;
  return options;
}

}  // namespace dtmalloc::support
