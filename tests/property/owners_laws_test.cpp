// SPDX-License-Identifier: BSD-2-Clause
// What a run's names tell of live blocks is what the ledger tells.

#include <gtest/gtest.h>

#include <dtmalloc/report/ledger.hpp>
#include <dtmalloc/workload/run.hpp>

#include "support/op_gen.hpp"
#include "workload/random.hpp"

namespace dtmalloc::support {
namespace {

using workload::Workload;

struct Told {
  std::string tables;     // leaks in all its forms
  bool found = false;     // something was freed wrongly
  std::string explained;  // the finding that led to the panic
  bool kept = false;      // by the names, to the end
};

Told told(const Workload& workload, bool by_names) {
  KernelConfig config;
  config.fixed_cpus = true;
  workload.kernel.apply(config);
  config.invariants = false;
  if (!by_names) config.ledger.emplace();
  Kernel kernel(config);
  kernel.cpus().set_console([](std::string_view) {});
  kernel.cpus().bind(0);
  workload::Runner runner(workload, kernel, {.keep_owners = by_names});
  Told out;
  if (auto booted = runner.boot(); !booted) {
    out.tables = booted.error().message;
  } else {
    const workload::Outcome outcome = runner.run();
    if (outcome.panic) out.tables += std::string(outcome.panic->what()) + '\n';
    if (outcome.error) out.tables += outcome.error->message + '\n';
    out.kept = kernel.ledger() == nullptr;
    runner.begin_ledger();
    const report::Books books = report::take_books(kernel);
    out.tables += report::print_leaks(books, report::LeaksBy::type) +
                  report::print_leaks(books, report::LeaksBy::stack) +
                  report::print_leaks(books, report::LeaksBy::type, "one");
    out.found = !books.findings.empty();
    if (const auto finding = kernel.ledger()->explanation()) out.explained = to_string(*finding);
  }
  kernel.cpus().unbind();
  return out;
}

std::string differs(const Told& ledger, const Told& names) {
  const std::string& a = ledger.tables;
  const std::string& b = names.tables;
  if (a != b) {
    const auto at = static_cast<std::size_t>(
        std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
    const std::size_t from = a.rfind('\n', at) == a.npos ? 0 : a.rfind('\n', at) + 1;
    return "the names tell\n" + b.substr(from, 200) + "\nthe ledger\n" + a.substr(from, 200);
  }
  if (ledger.found != names.found)
    return names.found ? "the names find something" : "the names miss a finding";
  if (ledger.explained.empty() != names.explained.empty())
    return "the panic is explained by one of them only";
  return "";
}

std::string names_are_the_ledger(const Workload& workload) {
  return differs(told(workload, false), told(workload, true));
}

TEST(OwnersLaws, LeaksAreTheLedgers) {
  // REQ: LEDGER-24
  check_law(60, mixed_profile, names_are_the_ledger);
  check_law(20, domains_profile, names_are_the_ledger);
}

TEST(OwnersLaws, LeaksAreTheLedgers_WithThreads) {
  // REQ: LEDGER-24
  check_law(40, threads_profile, names_are_the_ledger);
}

TEST(OwnersLaws, LeaksAreTheLedgers_WhenMemoryRunsOut) {
  // REQ: LEDGER-24
  check_law(30, tight_profile, names_are_the_ledger);
}

// Few names, used again and again, rightly and wrongly.
std::string careless(std::uint64_t seed) {
  workload::Random random(seed);
  const auto one_of = [&](std::initializer_list<const char*> these) {
    return std::string(these.begin()[random.below(these.size())]);
  };
  const auto name = [&] { return one_of({"a", "b", "c", "x[0]", "x[1]", "x[2]"}); };
  const auto type = [&] { return one_of({"M_ONE", "M_ONE", "M_ONE", "M_TWO"}); };
  const auto size = [&] { return one_of({"1", "100", "130", "3000", "70000"}); };
  const auto flags = [&] { return one_of({"M_WAITOK", "M_NOWAIT", "M_NOWAIT|M_ZERO"}); };
  std::string text =
      "kernel cpus=2 mem=256M\ntype M_ONE \"one\"\ntype M_TWO \"two\"\n"
      "history M_TWO allocs=9 memalloced=900 frees=2 memfreed=100\n"
      "zone Z \"zone\" size=200\nz = uma_zalloc Z M_WAITOK\n";
  for (const char* each : {"a", "b", "c", "x[0]", "x[1]", "x[2]"})
    text += std::string(each) + " = malloc 64 M_ONE M_WAITOK\n";
  // Most runs make few mistakes, so that the names are kept for long.
  const std::uint64_t mistakes = random.below(4);
  for (int i = 0; i < 60; ++i) {
    const std::string n = name();
    const std::string site = random.below(4) == 0 ? " @site" + one_of({"1", "2;top"}) : "";
    switch (random.below(12)) {
      case 0:
      case 1:
      case 2:
        text += n + " = malloc " + size() + ' ' + (mistakes == 0 ? type() : "M_ONE") + ' ' +
                flags() + site;
        break;
      case 3:
        text += n + " = mallocarray 3 " + size() + ' ' + type() + " M_WAITOK" + site;
        break;
      case 4:
        text += n +
                one_of({" = malloc_aligned 100 64 ", " = malloc_exec 100 ", " = contigmalloc 5000 ",
                        " = malloc_domainset 40 rr "}) +
                (mistakes == 0 ? type() : "M_ONE") + " M_WAITOK" + site;
        break;
      case 5: {
        const bool same = mistakes == 0 || random.below(3) != 0;
        text += n + one_of({" = realloc ", " = reallocf "}) + (same ? n : name()) + ' ' + size() +
                ' ' + (mistakes > 2 ? type() : "M_ONE") + ' ' + flags() + site;
        break;
      }
      case 6:
        text += "cpu " + one_of({"0", "1"});
        break;
      case 7:
        text += "repeat 3 as i {\n x[i] = malloc " + size() +
                " M_ONE M_WAITOK\n free x[i]\n c = "
                "malloc 40 M_ONE M_WAITOK\n free c\n}\nrepeat 3 as i { x[i] = malloc 9 M_ONE "
                "M_WAITOK }\nc = malloc 8 M_ONE "
                "M_WAITOK\nwait 5us";
        break;
      case 8:
        if (mistakes > 2)
          text += one_of({"free ", "zfree "}) + n + ' ' + type();
        else
          text += n + " = malloc 500 M_ONE M_WAITOK";
        break;
      case 9:
        if (mistakes > 2 && random.below(8) == 0)
          text += one_of({"free a+16", "unload M_TWO", "free z M_ONE", "poke b 7"});
        else
          text += "z = uma_zalloc Z M_WAITOK\numa_zfree Z z";
        break;
      case 10:
        text += "free " + n + (mistakes < 2 ? '\n' + n + " = malloc 64 M_ONE M_WAITOK" : "");
        break;
      default:
        text +=
            one_of({"free ", "zfree "}) + n + '\n' + n + " = malloc " + size() + " M_ONE M_WAITOK";
    }
    text += '\n';
  }
  return text;
}

TEST(OwnersLaws, LeaksAreTheLedgers_WhateverIsDoneToTheNames) {
  // REQ: LEDGER-24
  const SeedRange range = seeds(300);
  std::uint64_t kept = 0, found = 0;
  for (std::uint64_t seed = range.first; seed < range.first + range.count; ++seed) {
    const std::string text = careless(seed);
    const auto parsed = workload::parse(text, "careless.wl");
    ASSERT_TRUE(parsed) << to_string(parsed.error()) << text;
    const Told ledger = told(*parsed, false);
    const Told names = told(*parsed, true);
    kept += names.kept ? 1 : 0;
    found += ledger.found ? 1 : 0;
    ASSERT_EQ(differs(ledger, names), "") << "DTM_SEED=" << seed << '\n' << text;
  }
  if (range.count < 300) return;
  EXPECT_GT(kept, range.count / 10) << "the names are hardly put to use";
  EXPECT_GT(found, range.count / 10) << "hardly anything was done wrongly";
}

}  // namespace
}  // namespace dtmalloc::support
