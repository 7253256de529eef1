// SPDX-License-Identifier: BSD-2-Clause
// Property tests: a law is tried on the generated workload of each seed; a counterexample is
// shrunk and printed as a workload, with a command line that repeats it.
//
// Environment:  DTM_SEED (the first seed; alone: only this one), DTM_CASES (how many).
#pragma once

#include <cstdint>
#include <dtmalloc/workload/generate.hpp>
#include <dtmalloc/workload/workload.hpp>
#include <functional>
#include <string>
#include <vector>

namespace dtmalloc::support {

struct SeedRange {
  std::uint64_t first, count;
};
SeedRange seeds(std::uint64_t default_count);

// Empty: the law holds; else what breaks it.
using Law = std::function<std::string(const workload::Workload&)>;
// What is generated for a seed (the options' own seed is set by the caller).
using Profile = std::function<workload::GenerateOptions(std::uint64_t seed)>;

// Tries the law on `cases` workloads; fails the running test at the first counterexample.
void check_law(std::uint64_t cases, const Profile& profile, const Law& law);
// The message of a counterexample, shrunk.
std::string counterexample(std::uint64_t seed, const workload::Workload& workload, const Law& law,
                           const std::string& problem);

// Profiles, varied by the seed: machines of 1 to 4 CPUs, with INVARIANTS for odd seeds.
workload::GenerateOptions mixed_profile(std::uint64_t seed);  // every operation, some wrong types
workload::GenerateOptions small_profile(std::uint64_t seed);  // one or two classes, many blocks
workload::GenerateOptions wave_profile(std::uint64_t seed);   // a class fills and empties again
workload::GenerateOptions tight_profile(std::uint64_t seed);  // memory runs out: all M_NOWAIT
// 1 to 4 NUMA domains: sets of them, frees on other CPUs; memory runs out for every third seed
workload::GenerateOptions domains_profile(std::uint64_t seed);
workload::GenerateOptions threads_profile(std::uint64_t seed);  // 2 to 5 threads, foreign frees

}  // namespace dtmalloc::support
