// SPDX-License-Identifier: BSD-2-Clause
// The kernel line: the machine, its options and tunables.

#include <algorithm>

#include "workload/parser.hpp"

namespace dtmalloc::workload {
namespace {

constexpr std::uint64_t kTooMany = 1000001;  // CPUs
constexpr std::size_t kMaxTunables = 100;    // more than there are

constexpr std::array<std::string_view, 4> kKernelNotModelled{"numa", "debug", "witness", "threads"};
constexpr std::array<std::string_view, 2> kSanitizers{"kasan", "kmsan"};

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

void Parser::kernel_line() {
  if (started_) {
    fail("WL_CONTEXT", {line_start_, 6}, "the kernel line comes too late",
         "a place above the first type and the first operation");
  }
  while (!at_statement_end()) {
    const std::string_view key = word("a setting such as cpus=4");
    const bool has_value = place_ < end_ && *place_ == '=';
    if (key.find('.') != key.npos || key == "kmem_zmax") {
      std::string value;
      if (has_value) {
        ++place_;
        value = word_or_string("the value of the tunable");
      }
      kernel_tunable(key, std::move(value), has_value);
      continue;
    }
    std::string_view text;
    if (has_value) {
      ++place_;
      text = rest_token();
      if (!text.empty() && text.find('#') != text.npos) text = text.substr(0, text.find('#'));
      if (text.empty() || text == "\n" || text == " ") {
        fail("WL_SYNTAX", key, "the setting " + std::string(key) + " lacks its value");
      }
      place_ += text.size();
    }
    kernel_key(key, text, has_value);
  }
  check_tunables();
}

void Parser::kernel_tunable(std::string_view key, std::string value, bool has_value) {
  const std::string name = key == "kmem_zmax" ? "vm.kmem_zmax" : std::string(key);
  if (!has_value) fail("WL_SYNTAX", key, "the setting " + std::string(key) + " lacks its value");
  for (const Tunable& known : result_.kernel.tunables)
    if (known.name == name) fail("WL_REDECLARED", key, std::string(key) + " is set twice");
  if (result_.kernel.tunables.size() == kMaxTunables)
    fail("WL_TOO_LONG", key, "too many tunables", "at most 100");
  result_.kernel.tunables.push_back({name, std::move(value)});
  tunables_at_.emplace_back(key.data(), static_cast<std::size_t>(place_ - key.data()));
}

// At the end of the line, as which tunables exist depends on the options.
void Parser::check_tunables() {
  KernelConfig config;
  result_.kernel.apply(config);
  const std::vector<Tunable> all = std::exchange(config.tunables, {});
  for (std::size_t i = 0; i < all.size(); ++i) {
    config.tunables.push_back(all[i]);
    if (const auto wrong = Kernel::check(config))
      fail(("WL_" + wrong->tag).c_str(), tunables_at_[i], wrong->message, wrong->expected,
           wrong->near_names);
  }
}

// ledger, or one of its bounds, which turns it on.
void Parser::ledger_key(std::string_view key, std::string_view text, bool has_value) {
  std::optional<LedgerConfig>& ledger = result_.kernel.ledger;
  if (key == "ledger") {
    if (has_value) fail("WL_SYNTAX", key, "the setting ledger takes no value");
    if (!ledger) ledger.emplace();
    return;
  }
  std::vector<std::string> names;
  for (const auto& [name, member] : kLedgerBounds) {
    names.emplace_back(name);
    if (key != name) continue;
    const auto bound = has_value ? parse_count(text) : std::nullopt;
    if (!bound)
      fail("WL_NUMBER", has_value ? text : key, std::string(key) + " lacks its bound",
           "a number without a suffix");
    if (!ledger) ledger.emplace();
    (*ledger).*member = static_cast<std::size_t>(*bound);
    return;
  }
  fail("WL_UNKNOWN_SETTING", key, "unknown setting " + std::string(key),
       "ledger, or one of its bounds", nearest_names(key, names));
}

void Parser::kernel_key(std::string_view key, std::string_view text, bool has_value) {
  KernelSettings& k = result_.kernel;
  const auto known = [&](std::string_view name) { return key == name; };
  const std::string_view at = has_value ? text : key;
  const auto need = [&](bool good, const char* expected) {
    if (!good) {
      fail(has_value ? "WL_NUMBER" : "WL_SYNTAX", at,
           has_value ? "\"" + std::string(text) + "\" is no value for " + std::string(key)
                     : "the setting " + std::string(key) + " lacks its value",
           expected);
    }
  };
  const auto once = [&](bool is_set) {
    if (is_set) fail("WL_REDECLARED", key, std::string(key) + " is set twice");
  };
  std::optional<bool>* const option = known("invariants")      ? &k.invariants
                                      : known("redzone")       ? &k.redzone
                                      : known("memguard")      ? &k.memguard
                                      : known("make_failures") ? &k.make_failures
                                                               : nullptr;
  if (option != nullptr) {
    once(option->has_value());
    if (has_value && text != "0" && text != "1") {
      const std::string name(key);
      need(false, (name + ", " + name + "=1 or =0").c_str());
    }
    *option = !has_value || text == "1";
  } else if (key == "ledger" || key.starts_with("ledger_")) {
    ledger_key(key, text, has_value);
  } else if (known("config")) {
    once(!k.options.empty());
    need(has_value, "GENERIC or GENERIC-NODEBUG");
    KernelConfig named;
    if (const auto set = named.set_options(text); !set) {
      const Diagnostic& wrong = set.error();
      fail(("WL_" + wrong.tag).c_str(), at, wrong.message, wrong.expected, wrong.near_names);
    }
    k.options = text;
  } else if (known("release") || known("cpus") || known("domains") || known("maxzones")) {
    std::optional<int>& slot = known("release")   ? k.release
                               : known("cpus")    ? k.cpus
                               : known("domains") ? k.domains
                                                  : k.maxzones;
    once(slot.has_value());
    const std::uint64_t n = has_value ? parse_count(text).value_or(kTooMany) : kTooMany;
    need(n < kTooMany, known("cpus")       ? "a number of CPUs"
                       : known("domains")  ? "a number of NUMA domains, 1 to 8"
                       : known("maxzones") ? "a number of zones"
                                           : "8, 12, 14 or 16");
    slot = static_cast<int>(n);
  } else if (known("mem")) {
    once(k.mem.has_value());
    k.mem = has_value ? parse_size(text) : std::nullopt;
    need(k.mem.has_value(), "a size such as 512M, 2G");
  } else if (known("seed")) {
    once(k.seed.has_value());
    k.seed = has_value ? parse_count(text) : std::nullopt;
    need(k.seed.has_value(), "a number without a suffix");
  } else if (known("cost")) {
    once(k.op_cost.has_value());
    k.op_cost = has_value ? parse_time(text) : std::nullopt;
    need(k.op_cost && *k.op_cost <= Clock::kEndOfTime, "a time such as 100ns, at most 235 years");
  } else if (known("clock")) {
    once(k.real_clock.has_value());
    need(has_value && (text == "virtual" || text == "real"), "virtual or real");
    k.real_clock = text == "real";
  } else if (known("capture")) {
    once(!k.capture.empty());
    static constexpr std::array<std::string_view, 8> kCaptures{"m1", "m2", "m3", "m16",
                                                               "z1", "z2", "z3", "z16"};
    need(has_value && is_one_of(text, kCaptures), "m1, m2, m3, m16, z1, z2, z3 or z16");
    k.capture = text;
  } else if (known("classes")) {
    once(!k.classes.empty());
    need(has_value, "sizes joined by commas");
    for (std::size_t from = 0; from <= text.size();) {
      const std::size_t comma = std::min(text.find(',', from), text.size());
      const auto n = parse_size(text.substr(from, comma - from));
      need(n && *n > 0 && *n <= (1u << 30), "sizes joined by commas");
      k.classes.push_back(static_cast<std::uint32_t>(*n));
      from = comma + 1;
    }
  } else {
    if (is_one_of(key, kSanitizers)) {
      fail("WL_NOT_MODELLED", key,
           std::string(key) + " is not modelled: it watches each access of the kernel's own code");
    }
    if (is_one_of(key, kKernelNotModelled)) {
      fail("WL_NOT_MODELLED", key, "`" + std::string(key) + "` is not modelled yet");
    }
    static const std::vector<std::string> kKeys{
        "release",       "cpus",     "domains", "mem",        "seed",    "cost",
        "clock",         "capture",  "config",  "invariants", "redzone", "memguard",
        "make_failures", "maxzones", "classes", "kmem_zmax",  "ledger"};
    fail(
        "WL_UNKNOWN_SETTING", key, "unknown setting " + std::string(key),
        "release cpus domains mem seed cost clock classes capture ledger config invariants redzone "
        "memguard "
        "make_failures maxzones, or a tunable such as vm.kmem_zmax",
        nearest_names(key, kKeys));
  }
  KernelConfig config;
  k.apply(config);
  config.tunables.clear();  // later: check_tunables()
  if (const auto wrong = Kernel::check(config)) {
    fail(("WL_" + wrong->tag).c_str(), at, wrong->message, wrong->expected);
  }
}

}  // namespace dtmalloc::workload
