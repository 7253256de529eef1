// SPDX-License-Identifier: BSD-2-Clause
// Providers, probes and matching.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "fake_provider.hpp"

namespace dtmalloc::dtrace {
namespace {

class RegistryTest : public ::testing::Test {
 protected:
  RegistryTest() {
    cpus.set_console([this](std::string_view text) { console += text; });
  }
  int add(std::string_view name, ProviderAttributes attributes = kFakeAttributes,
          std::uint32_t privileges = 0) {
    const int error =
        framework.register_provider(name, attributes, privileges, &provider, &provider.id);
    provider.framework = &framework;
    return error;
  }
  ProbeId create(const char* module, const char* function, const char* name) {
    return framework.probe_create(provider.id, module, function, name, 0, nullptr);
  }
  using Ids = std::vector<ProbeId>;

  std::string console;
  CpuSet cpus{SmpConfig{.count = 2}};
  AddressMap addresses;
  FakeProvider provider;
  Framework framework{cpus, addresses};
};

// REQ: DTRACE-01
TEST_F(RegistryTest, NumbersProbesFromOneInOrder) {
  framework.load_standard_providers();
  ASSERT_EQ(add("fake"), 0);
  EXPECT_EQ(create("m", "f", "n"), 4u);
  EXPECT_EQ(create("m", "f", "n2"), 5u);
  EXPECT_EQ(to_string(framework.probe(1).description), "dtrace:::BEGIN");
  EXPECT_EQ(to_string(framework.probe(2).description), "dtrace:::END");
  EXPECT_EQ(to_string(framework.probe(3).description), "dtrace:::ERROR");
  EXPECT_EQ(framework.probe(6).id, kNoProbe);
  EXPECT_EQ(framework.probes().size(), 5u);
}

// REQ: DTRACE-02
TEST_F(RegistryTest, RefusesWhatTheKernelRefuses) {
  const Attribute bad_class{Stability::stable, Stability::stable, static_cast<DependencyClass>(6)};
  const Attribute bad_name{static_cast<Stability>(8), Stability::stable, DependencyClass::common};
  ProviderAttributes attributes = kFakeAttributes;
  EXPECT_EQ(add(""), EINVAL);
  EXPECT_EQ(add("1st"), EINVAL);
  EXPECT_EQ(add("a:b"), EINVAL);
  EXPECT_EQ(add("a b"), EINVAL);
  attributes.args = bad_class;
  EXPECT_EQ(add("a", attributes), EINVAL);
  attributes = kFakeAttributes;
  attributes.module = bad_name;
  EXPECT_EQ(add("a", attributes), EINVAL);
  EXPECT_EQ(add("a", kFakeAttributes, 0x20), EINVAL);
  EXPECT_EQ(add("a", kFakeAttributes, DTRACE_PRIV_KERNEL | DTRACE_PRIV_USER), EINVAL);
  ProviderId id = 0;
  EXPECT_EQ(framework.register_provider("a", kFakeAttributes, 0, nullptr, &id), EINVAL);
  EXPECT_EQ(framework.register_provider("a", kFakeAttributes, 0, &provider, nullptr), EINVAL);
  EXPECT_NE(console.find("'1st'"), std::string::npos) << console;
  for (const char* good : {"a", "_a", "-a", ".a", "a1`b-c.d"}) EXPECT_EQ(add(good), 0) << good;
  EXPECT_EQ(add("a", kFakeAttributes, DTRACE_PRIV_USER), 0);
}

// REQ: DSYM-60
TEST_F(RegistryTest, EachRefusalIsWarnedOf) {
  const auto warned = [this](const std::string& text) {
    const bool found = console == "failed to register provider " + text + "\n";
    const std::string got = std::exchange(console, {});
    EXPECT_TRUE(found) << got;
  };
  ProviderId id = 0;
  EXPECT_EQ(framework.register_provider({}, kFakeAttributes, 0, &provider, &id), EINVAL);
  warned("'': missing argument");
  EXPECT_EQ(framework.register_provider("fake", kFakeAttributes, 0, nullptr, &id), EINVAL);
  warned("'fake': missing argument");
  EXPECT_EQ(framework.register_provider("fake", kFakeAttributes, 0, &provider, nullptr), EINVAL);
  warned("'fake': missing argument");
  for (const char* name : {"", "1", "`a", "a b", "a:b", "a*", "a/", "\xc3"}) {
    EXPECT_EQ(add(name), EINVAL);
    warned("'" + std::string(name) + "': invalid provider name");
  }
  using Part = Attribute ProviderAttributes::*;
  for (const Part part : {Part(&ProviderAttributes::provider), Part(&ProviderAttributes::module),
                          Part(&ProviderAttributes::function), Part(&ProviderAttributes::name),
                          Part(&ProviderAttributes::args)}) {
    for (int which = 0; which < 3; ++which) {
      ProviderAttributes attributes = kFakeAttributes;
      Attribute& attribute = attributes.*part;
      if (which == 0) attribute.name = static_cast<Stability>(8);
      if (which == 1) attribute.data = static_cast<Stability>(8);
      if (which == 2) attribute.dependency = static_cast<DependencyClass>(6);
      EXPECT_EQ(add("fake", attributes), EINVAL);
      warned("'fake': invalid provider attributes");
    }
  }
  EXPECT_EQ(add("fake", kFakeAttributes, 0x8000), EINVAL);
  warned("'fake': invalid privilege attributes");
  for (const std::uint32_t user : {DTRACE_PRIV_USER, std::uint32_t{0x0008}}) {
    EXPECT_EQ(add("fake", kFakeAttributes, DTRACE_PRIV_KERNEL | user), EINVAL);
    warned("'fake': need dtps_usermode() op for given privilege attributes");
  }
  EXPECT_EQ(add("fake", kFakeAttributes, DTRACE_PRIV_KERNEL), 0);
  EXPECT_EQ(console, "");
  EXPECT_EQ(provider.provided, 0);  // nothing is retained
}

// REQ: DSYM-61
TEST_F(RegistryTest, NamesAreCutToTheirFields) {
  const std::string name(300, 'n');
  ASSERT_EQ(framework.register_provider(name, kFakeAttributes, 0, &provider, &provider.id), 0);
  const ProbeId id = framework.probe_create(provider.id, name, name, name, 0, nullptr);
  const ProbeDescription description = framework.probe(id).description;
  EXPECT_EQ(description.provider.size(), kProviderNameLength - 1);
  EXPECT_EQ(description.module.size(), kModuleNameLength - 1);
  EXPECT_EQ(description.function.size(), kFunctionNameLength - 1);
  EXPECT_EQ(description.name.size(), kNameLength - 1);
  EXPECT_EQ(framework.match(description), (Ids{id}));
}

// The provider registered last is asked first; the framework's own before all.
TEST_F(RegistryTest, OrderInWhichProvidersProvide) {
  framework.load_standard_providers();
  ASSERT_EQ(add("fake"), 0);
  FakeProvider second;
  ASSERT_EQ(framework.register_provider("second", kFakeAttributes, 0, &second, &second.id), 0);
  second.framework = &framework;
  provider.on_demand = second.on_demand = "wanted";
  EXPECT_EQ(framework.match({"", "", "", "wanted", 0}), (Ids{4, 5}));
  EXPECT_EQ(framework.probe(4).description.provider, "second");
}

// REQ: DTRACE-03
TEST_F(RegistryTest, MatchesExactGlobAndEmptyFields) {
  framework.load_standard_providers();
  ASSERT_EQ(add("fake"), 0);
  const ProbeId read = create("vfs", "read", "entry");
  const ProbeId read_return = create("vfs", "read", "return");
  const ProbeId readv = create("vfs", "readv", "entry");
  const ProbeId other = create("net", "send", "entry");
  EXPECT_EQ(framework.match({"", "", "read", "", 0}), (Ids{read, read_return}));
  EXPECT_EQ(framework.match({"fake", "vfs", "read", "entry", 0}), (Ids{read}));
  EXPECT_EQ(framework.match({"fake", "", "", "entry", 0}), (Ids{read, readv, other}));
  EXPECT_EQ(framework.match({"", "", "read*", "entry", 0}), (Ids{read, readv}));
  EXPECT_EQ(framework.match({"", "", "rea?v", "", 0}), (Ids{readv}));
  EXPECT_EQ(framework.match({"", "[!v]*", "", "", 0}), (Ids{other}));
  EXPECT_EQ(framework.match({"", "", "READ", "", 0}), Ids{});
  EXPECT_EQ(framework.match({"", "", "", "", read}), (Ids{read}));
  EXPECT_EQ(framework.match({"", "", "", "", 99}), Ids{});
}

// REQ: DTRACE-04
TEST_F(RegistryTest, AllEmptyDescriptionMatchesOnlyProbesOfFunctions) {
  framework.load_standard_providers();
  ASSERT_EQ(add("fake"), 0);
  const ProbeId with = create("m", "f", "n");
  create("m", "", "n");
  EXPECT_EQ(framework.match({}), (Ids{with}));
}

// REQ: DTRACE-05
TEST_F(RegistryTest, AsksProvidersToCreateWhatNothingMatches) {
  ASSERT_EQ(add("fake"), 0);
  provider.on_demand = "tick-37ms";
  EXPECT_EQ(framework.match({"", "", "", "tick-37*", 0}), Ids{});
  EXPECT_TRUE(provider.asked.empty());  // a glob never creates
  EXPECT_EQ(framework.match({"", "", "", "tick-37ms", 0}), (Ids{1}));
  EXPECT_EQ(provider.asked, (std::vector<std::string>{":::tick-37ms"}));
  EXPECT_EQ(framework.match({"", "", "", "tick-37ms", 0}), (Ids{1}));
  EXPECT_EQ(provider.asked.size(), 1u);
}

TEST_F(RegistryTest, LooksUpOneProvidersProbesByExactNames) {
  ASSERT_EQ(add("one"), 0);
  const ProbeId first = create("m", "f", "n");
  const ProviderId one = provider.id;
  ASSERT_EQ(add("two"), 0);
  const ProbeId second = create("m", "f", "n");
  EXPECT_EQ(framework.probe_lookup(one, nullptr, "f", "n"), first);
  EXPECT_EQ(framework.probe_lookup(provider.id, "m", nullptr, nullptr), second);
  EXPECT_EQ(framework.probe_lookup(one, nullptr, "f*", nullptr), kNoProbe);
  EXPECT_EQ(framework.probe_lookup(99, nullptr, nullptr, nullptr), kNoProbe);
}

TEST_F(RegistryTest, HandsOutProbeArgumentToItsProviderOnly) {
  ASSERT_EQ(add("one"), 0);
  int parg = 0;
  const ProbeId id = framework.probe_create(provider.id, "", "f", "n", 0, &parg);
  EXPECT_EQ(framework.probe_arg(provider.id, id), &parg);
  EXPECT_EQ(framework.probe_arg(provider.id + 1, id), nullptr);
}

// REQ: DTRACE-06
TEST_F(RegistryTest, UnregistersOnlyWithoutConsumersAndEnablings) {
  ASSERT_EQ(add("fake"), 0);
  create("m", "f", "n");
  auto enabling = framework.enable(
      {"fake", "", "", "", 0}, [](auto...) {}, nullptr);
  ASSERT_TRUE(enabling);
  EXPECT_EQ(framework.unregister_provider(provider.id), EBUSY);
  framework.disable(*enabling);
  framework.open();
  EXPECT_EQ(framework.unregister_provider(provider.id), EBUSY);
  framework.close();
  EXPECT_EQ(framework.unregister_provider(provider.id), 0);
  EXPECT_EQ(provider.log.back(), "destroy 1");
  EXPECT_TRUE(framework.match({"", "", "f", "", 0}).empty());
  EXPECT_TRUE(framework.probes().empty());
  EXPECT_EQ(framework.unregister_provider(provider.id), EINVAL);
}

// REQ: DTRACE-84
TEST_F(RegistryTest, AnInvalidProviderGoesOnAndGetsNoNewEnablings) {
  ASSERT_EQ(add("fake"), 0);
  const ProbeId first = create("m", "f", "n");
  const ProbeId second = create("m", "g", "n");
  provider.on_demand = "never";
  cpus.bind(0);
  int fired = 0;
  auto enabling = framework.enable(
      {"fake", "", "f", "", 0},
      [](const ProbeFiring& firing, auto...) { ++*static_cast<int*>(firing.context); }, &fired);
  ASSERT_TRUE(enabling);
  framework.open();
  framework.invalidate_provider(provider.id);
  Framework::probe_fire(first, 0, 0, 0, 0, 0);
  EXPECT_EQ(fired, 1);
  EXPECT_TRUE(framework.match({"fake", "", "", "", 0}).empty());
  EXPECT_TRUE(framework.match({"", "", "g", "", 0}).empty());
  EXPECT_TRUE(framework.match({"", "", "", "", second}).empty());
  EXPECT_EQ(framework.unregister_provider(provider.id), EBUSY) << "it is enabled";
  framework.disable(*enabling);
  EXPECT_EQ(framework.unregister_provider(provider.id), 0) << "a consumer is open";
  EXPECT_EQ(provider.log,
            (std::vector<std::string>{"enable 1", "disable 1", "destroy 1", "destroy 2"}));
  framework.close();
}

// REQ: DTRACE-84
TEST_F(RegistryTest, CondensingDestroysWhatIsNotEnabled) {
  ASSERT_EQ(add("fake"), 0);
  const ProbeId first = create("m", "f", "n");
  create("m", "g", "n");
  provider.on_demand = "never";
  cpus.bind(0);
  int fired = 0;
  auto enabling = framework.enable(
      {"fake", "", "f", "", 0},
      [](const ProbeFiring& firing, auto...) { ++*static_cast<int*>(firing.context); }, &fired);
  ASSERT_TRUE(enabling);
  EXPECT_EQ(framework.condense_provider(provider.id), 0);
  EXPECT_EQ(provider.log, (std::vector<std::string>{"enable 1", "destroy 2"}));
  EXPECT_EQ(framework.match({"fake", "", "", "", 0}), (std::vector<ProbeId>{first}));
  Framework::probe_fire(first, 0, 0, 0, 0, 0);
  EXPECT_EQ(fired, 1);
  EXPECT_EQ(create("m", "g", "n"), 3u) << "a number is not given twice";
  EXPECT_EQ(framework.match({"fake", "", "", "", 0}), (std::vector<ProbeId>{first, 3}));
  framework.disable(*enabling);
  EXPECT_EQ(framework.condense_provider(provider.id), 0);
  EXPECT_TRUE(framework.match({"fake", "", "", "", 0}).empty());
  EXPECT_EQ(framework.condense_provider(provider.id + 7), EINVAL);
  cpus.unbind();
}

TEST_F(RegistryTest, OpenAsksForAllProbes) {
  ASSERT_EQ(add("fake"), 0);
  EXPECT_EQ(provider.provided, 0);  // no retained enabling: not at registration
  framework.open();
  framework.open();
  EXPECT_EQ(provider.provided, 2);
  framework.close();
  framework.close();
}

TEST_F(RegistryTest, CutsNamesAtTheirSizes) {
  ASSERT_EQ(add("fake"), 0);
  const std::string text(300, 'x');
  const ProbeId id = create(text.c_str(), text.c_str(), text.c_str());
  const ProbeDescription description = framework.probe(id).description;
  EXPECT_EQ(description.module.size(), 63u);
  EXPECT_EQ(description.function.size(), 191u);
  EXPECT_EQ(description.name.size(), 63u);
}

TEST_F(RegistryTest, DescribesArgumentsUntilThereIsNone) {
  ASSERT_EQ(add("fake"), 0);
  provider.types = {"struct x *", "int"};
  const auto arguments = framework.arguments(create("m", "f", "n"));
  ASSERT_EQ(arguments.size(), 2u);
  EXPECT_EQ(arguments[0].native, "struct x *");
  EXPECT_EQ(arguments[1].native, "int");
}

// Ten thousand probes, each enabled by its own exact description, in well under a second.
TEST_F(RegistryTest, EnablesTenThousandProbesQuickly) {
  ASSERT_EQ(add("fake"), 0);
  constexpr int kProbes = 10000;
  for (int i = 0; i < kProbes; ++i) {
    create("m", ("function" + std::to_string(i)).c_str(), "entry");
  }
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kProbes; ++i) {
    auto enabling = framework.enable(
        {"fake", "", "function" + std::to_string(i), "entry", 0}, [](auto...) {}, nullptr);
    ASSERT_TRUE(enabling);
  }
  EXPECT_EQ(framework.enabled_probes(), static_cast<std::uint32_t>(kProbes));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 5.0);
}

}  // namespace
}  // namespace dtmalloc::dtrace
