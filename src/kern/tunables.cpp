// SPDX-License-Identifier: BSD-2-Clause
// Options and tunables of a kernel: named configurations, loader.conf(5)'s names, their values.
//
// Counterpart:  sys/kern/kern_environment.c (getenv_quad), sys/amd64/conf
// Differs:      DEVIATES: an unknown name, one whose option is not compiled in, and a value that is
//               no number refuse to boot: a kernel passes over them without a word
#include "kern/tunables.hpp"

#include <algorithm>
#include <limits>

#include "kern/kernel_impl.hpp"
#include "sys/kernel_number.hpp"

namespace dtmalloc {
namespace {

enum class Kind { kInt, kUnsigned, kLong, kText };

struct Row {
  std::string_view name;
  Kind kind;
  const char* option = nullptr;  // without which it does not exist
  bool (*exists)(const KernelConfig&) = nullptr;
};

bool has_invariants(const KernelConfig& config) { return config.invariants; }
bool has_zones(const KernelConfig& config) { return config.maxzones > 1; }
bool has_failures(const KernelConfig& config) { return config.make_failures; }
bool has_redzone(const KernelConfig& config) { return config.redzone; }
bool has_memguard(const KernelConfig& config) { return config.memguard; }

constexpr const char* kZones = "MALLOC_DEBUG_MAXZONES above 1 (maxzones=8)";
constexpr const char* kFailures = "MALLOC_MAKE_FAILURES (make_failures)";
constexpr const char* kRedzone = "DEBUG_REDZONE (redzone)";
constexpr const char* kMemguard = "DEBUG_MEMGUARD (memguard)";

constexpr Row kRows[] = {
    {"vm.kmem_zmax", Kind::kLong},
    {"vm.kmem_size", Kind::kLong},
    {"vm.kmem_size_min", Kind::kLong},
    {"vm.kmem_size_max", Kind::kLong},
    {"vm.kmem_size_scale", Kind::kUnsigned},
    {"vm.zone_warnings", Kind::kInt},
    {"vm.debug.divisor", Kind::kUnsigned, "INVARIANTS (invariants)", has_invariants},
    {"vm.debug.uma_multipage_slabs", Kind::kInt},
    {"debug.malloc.numzones", Kind::kUnsigned, kZones, has_zones},
    {"debug.malloc.zone_offset", Kind::kUnsigned, kZones, has_zones},
    {"debug.malloc.failure_rate", Kind::kInt, kFailures, has_failures},
    {"vm.redzone.panic", Kind::kInt, kRedzone, has_redzone},
    {"vm.memguard.desc", Kind::kText, kMemguard, has_memguard},
    {"vm.memguard.divisor", Kind::kUnsigned, kMemguard, has_memguard},
    {"vm.memguard.options", Kind::kInt, kMemguard, has_memguard},
    {"vm.memguard.frequency", Kind::kUnsigned, kMemguard, has_memguard},
};

const Row* find(std::string_view name) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows),
                                 [&](const Row& known) { return known.name == name; });
  return row == std::end(kRows) ? nullptr : row;
}

Diagnostic refused(std::string message, std::string expected) {
  Diagnostic out;
  out.tag = "KERNEL_TUNABLE";
  out.message = std::move(message);
  out.expected = std::move(expected);
  return out;
}

std::optional<Diagnostic> check_number(const Row& row, const Tunable& tunable) {
  const std::optional<std::int64_t> number = parse_kernel_number(tunable.value);
  if (!number)
    return refused(tunable.name + "=" + tunable.value + " is no number",
                   "decimal, octal or 0x, with a suffix k m g t");
  // A kernel keeps a negative long as the huge number that its bits are.
  std::int64_t low = std::numeric_limits<std::int64_t>::min();
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
  if (row.kind == Kind::kInt) {
    low = std::numeric_limits<int>::min();
    high = std::numeric_limits<int>::max();
  } else if (row.kind == Kind::kUnsigned) {
    low = 0;
    high = std::numeric_limits<unsigned>::max();
  }
  if (*number < low || *number > high)
    return refused(tunable.name + "=" + tunable.value + " does not fit",
                   std::to_string(low) + " to " + std::to_string(high));
  return std::nullopt;
}

}  // namespace

std::optional<Diagnostic> check_tunables(const KernelConfig& config) {
  for (const Tunable& tunable : config.tunables) {
    const Row* row = find(tunable.name);
    if (row == nullptr) {
      std::vector<std::string> names;
      for (const Row& known : kRows) names.emplace_back(known.name);
      Diagnostic out = refused("unknown tunable " + tunable.name, "a name of loader.conf(5)");
      out.near_names = nearest_names(tunable.name, names);
      return out;
    }
    if (row->exists != nullptr && !row->exists(config))
      return refused("there is no tunable " + tunable.name,
                     "the kernel option " + std::string(row->option));
    if (row->kind == Kind::kText) continue;
    if (auto wrong = check_number(*row, tunable)) return wrong;
  }
  return std::nullopt;
}

std::string_view needed_option(std::string_view name) {
  if (const Row* row = find(name); row != nullptr && row->option != nullptr) return row->option;
  const auto below = [&](std::string_view tree) {
    return name.starts_with(tree) && (name.size() == tree.size() || name[tree.size()] == '.');
  };
  if (name == "debug.malloc.failure_count") return kFailures;
  if (below("vm.redzone")) return kRedzone;
  if (below("vm.memguard")) return kMemguard;
  return {};
}

std::string_view tunable_text(const KernelConfig& config, std::string_view name) {
  for (auto tunable = config.tunables.rbegin(); tunable != config.tunables.rend(); ++tunable)
    if (tunable->name == name) return tunable->value;
  return {};
}

std::optional<std::int64_t> tunable_number(const KernelConfig& config, std::string_view name) {
  DTM_CHECK(find(name) != nullptr, "a tunable is missing in the table");
  const std::string_view text = tunable_text(config, name);
  return text.empty() ? std::nullopt : parse_kernel_number(text);
}

Result<void> KernelConfig::set_options(std::string_view configuration) {
  if (configuration == "GENERIC" || configuration == "GENERIC-NODEBUG") {
    const bool debug = configuration == "GENERIC";
    invariants = debug;
    maxzones = debug ? 8 : 1;
    redzone = memguard = make_failures = false;
    return {};
  }
  const std::vector<std::string> names{"GENERIC", "GENERIC-NODEBUG"};
  Diagnostic out;
  out.tag = "KERNEL_CONFIG";
  out.message = "no kernel configuration " + std::string(configuration);
  out.expected = "GENERIC or GENERIC-NODEBUG";
  out.near_names = nearest_names(configuration, names);
  if (configuration.ends_with("KASAN") || configuration.ends_with("KMSAN")) {
    out.message = std::string(configuration) +
                  " is not modelled: a sanitizer watches each access of the kernel's own code";
    out.near_names.clear();
  }
  return out;
}

}  // namespace dtmalloc
