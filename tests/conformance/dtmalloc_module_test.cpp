// SPDX-License-Identifier: BSD-2-Clause
// The module dtmalloc: load, unload with its hazards, the provider's operations, types that come
// and go while their probes exist.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kernel.hpp>
#include <memory>
#include <string>
#include <vector>

#include "dtrace/core/framework.hpp"
#include "dtrace/provider/dtmalloc_int.hpp"
#include "kern/kernel_impl.hpp"
#include "support/kernel_fixture.hpp"

namespace dtmalloc::dtrace {
namespace {

using test::panic_of;

class DtmallocModuleTest : public ::testing::Test {
 protected:
  DtmallocModuleTest() { boot(16); }
  ~DtmallocModuleTest() override { framework = nullptr; }
  void boot(int release) {
    framework = nullptr;
    kernel = nullptr;
    KernelConfig config = test::small_config(2);
    config.fixed_cpus = true;
    config.release = release;
    kernel = std::make_unique<Kernel>(config);
    kernel->cpus().bind(0);
    framework = std::make_unique<Framework>(kernel->cpus(), kernel->addresses());
    framework->load_standard_providers();
  }
  // The firings of `description` are counted from now on.
  EnablingId count(const ProbeDescription& description, int* firings) {
    auto enabling = framework->enable(
        description,
        [](const ProbeFiring& firing, std::uintptr_t, std::uintptr_t, std::uintptr_t,
           std::uintptr_t, std::uintptr_t) { ++*static_cast<int*>(firing.context); },
        firings);
    EXPECT_TRUE(enabling);
    return enabling ? *enabling : 0;
  }
  void pair(malloc_type& type) { kernel->free(kernel->malloc(16, &type, M_WAITOK), &type); }
  ProviderId dtmalloc() {
    for (const auto& provider : framework->impl().providers)
      if (provider->name == "dtmalloc" && !provider->invalid) return provider->id;
    return 0;
  }
  std::size_t probes(const std::string& function) {
    return framework->match({"dtmalloc", "", function, "", 0}).size();
  }

  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Framework> framework;
};

// REQ: DTMALLOC-19. What the registration says; the hook is set when it succeeded.
TEST_F(DtmallocModuleTest, LoadRegistersThenSetsTheHook) {
  const auto hook = [&] { return kernel->cpus().cpu(0).dtrace_malloc_probe; };
  const auto none = hook();
  EXPECT_EQ(load_dtmalloc_as("1dtmalloc", *framework, *kernel), EINVAL);
  EXPECT_EQ(hook(), none);
  EXPECT_EQ(dtmalloc(), 0u);
  EXPECT_EQ(load_dtmalloc(*framework, *kernel), 0);
  EXPECT_EQ(hook(), &Framework::probe_fire);
  EXPECT_EQ(kernel->cpus().cpu(1).dtrace_malloc_probe, &Framework::probe_fire);
  const ProviderEntry& entry = *framework->impl().provider(dtmalloc());
  EXPECT_EQ(entry.privileges, DTRACE_PRIV_USER);
  EXPECT_EQ(DTRACE_PRIV_USER, 2u);
}

// REQ: DTMALLOC-19. With a refused registration nothing can be enabled, and nothing is called.
TEST_F(DtmallocModuleTest, RefusedLoadIsHarmless) {
  load_dtmalloc_as("", *framework, *kernel);
  framework->open();
  EXPECT_EQ(framework->match({"dtmalloc", "", "", "", 0}).size(), 0u);
  EXPECT_EQ(panic_of([&] { pair(*kernel->type("temp")); }), "");
}

// REQ: DTMALLOC-20
TEST_F(DtmallocModuleTest, EventHandlerNeverRefuses) {
  EXPECT_EQ(dtmalloc_modevent(ModuleEvent::load), 0);
  EXPECT_EQ(dtmalloc_modevent(ModuleEvent::unload), 0);
  EXPECT_EQ(dtmalloc_modevent(ModuleEvent::shutdown), 0);
  EXPECT_EQ(dtmalloc_modevent(ModuleEvent::quiesce), EOPNOTSUPP);
}

// REQ: DTMALLOC-08
TEST_F(DtmallocModuleTest, AttributesAsNumbers) {
  load_dtmalloc(*framework, *kernel);
  const ProviderAttributes& attributes = framework->impl().provider(dtmalloc())->attributes;
  EXPECT_EQ(static_cast<int>(attributes.module.name), 1);
  EXPECT_EQ(static_cast<int>(attributes.provider.data), 6);
  EXPECT_EQ(static_cast<int>(attributes.function.dependency), 0);
  EXPECT_EQ(static_cast<int>(attributes.args.dependency), 5);
}

// REQ: DTMALLOC-21. Nobody looks: the provider goes, and comes back with new ids.
TEST_F(DtmallocModuleTest, UnloadOfAnIdleProvider) {
  load_dtmalloc(*framework, *kernel);
  framework->open();
  framework->close();
  const std::size_t before = framework->probes().size();
  ASSERT_GT(before, 0u);
  EXPECT_EQ(unload_dtmalloc(*framework), 0);
  EXPECT_EQ(dtmalloc(), 0u);
  EXPECT_TRUE(framework->match({"dtmalloc", "", "", "", 0}).empty());
  pair(*kernel->type("temp"));
  EXPECT_EQ(unload_dtmalloc(*framework), EINVAL);
  EXPECT_EQ(load_dtmalloc(*framework, *kernel), 0);
  framework->open();
  EXPECT_EQ(framework->probes().size(), before);
}

// REQ: DTMALLOC-22. The hook is gone while flag and slots are still set.
TEST_F(DtmallocModuleTest, UnloadWithEnabledProbesCallsNull) {
  load_dtmalloc(*framework, *kernel);
  framework->open();
  framework->close();
  malloc_type& temp = *kernel->type("temp");
  int firings = 0;
  const EnablingId enabling = count({"dtmalloc", "", "temp", "malloc", 0}, &firings);
  EXPECT_EQ(unload_dtmalloc(*framework), EBUSY);
  EXPECT_NE(temp.ks_mti.mti_probes[0], 0u);
  EXPECT_TRUE(kernel->cpus().cpu(0).dtrace_malloc_enabled);
  pair(*kernel->type("devbuf"));  // not traced
  EXPECT_EQ(panic_of([&] { pair(temp); }), "page fault: dtrace_malloc_probe is NULL");
  framework->disable(enabling);
  EXPECT_EQ(firings, 0);
}

// REQ: DTMALLOC-22. DTrace is open: EBUSY, and a provider without code.
TEST_F(DtmallocModuleTest, UnloadWhileAConsumerIsOpen) {
  load_dtmalloc(*framework, *kernel);
  framework->open();
  EXPECT_EQ(unload_dtmalloc(*framework), EBUSY);
  EXPECT_NE(dtmalloc(), 0u);
  EXPECT_EQ(probes("temp"), 2u);
  pair(*kernel->type("temp"));
  EXPECT_EQ(panic_of([&] { framework->open(); }),
            "page fault: the code of provider dtmalloc is unloaded");
}

// REQ: DTMALLOC-01, DTMALLOC-23. A program that is retained makes the registration ask for probes.
TEST_F(DtmallocModuleTest, RegistrationProvidesForRetainedPrograms) {
  std::string out;
  Session session(*framework,
                  {[&out](std::string_view text) { out += text; }, [](std::string_view) {}});
  ASSERT_TRUE(session.set_option("zdefs") && session.set_option("quiet"));
  auto program = session.compile({ProgramSource::specifier,
                                  "dtmalloc::temp:malloc {printf(\"%d \", arg3)}",
                                  "",
                                  ProgramSource::probe_name,
                                  {}});
  ASSERT_TRUE(program && session.enable(*program) && session.go());
  EXPECT_EQ(kernel->type_stats(*kernel->type("temp")).numallocs, 0u);
  load_dtmalloc(*framework, *kernel);
  EXPECT_EQ(probes("temp"), 2u);
  kernel->malloc(100, kernel->type("temp"), M_WAITOK);
  session.stop();
  EXPECT_EQ(out, "128 \n");
}

// REQ: DTMALLOC-23. Without one it does not.
TEST_F(DtmallocModuleTest, RegistrationAloneProvidesNothing) {
  load_dtmalloc(*framework, *kernel);
  EXPECT_TRUE(framework->match({"dtmalloc", "", "", "", 0}).empty());
}

// REQ: DTMALLOC-24. The look-up is for the malloc probe, in any module; free is never asked for.
TEST_F(DtmallocModuleTest, LookUpStandsForBothProbes) {
  load_dtmalloc(*framework, *kernel);
  std::uint32_t slot = 0;
  framework->probe_create(dtmalloc(), "a_module", "temp", "malloc", 0, &slot);
  framework->probe_create(dtmalloc(), "", "devbuf", "free", 0, &slot);
  framework->open();
  EXPECT_EQ(probes("temp"), 1u);    // found: nothing is made
  EXPECT_EQ(probes("devbuf"), 3u);  // not found: both are made
}

// REQ: DTMALLOC-03. Made without artificial frames, in no module.
TEST_F(DtmallocModuleTest, ProbesHaveNoFramesAndNoModule) {
  load_dtmalloc(*framework, *kernel);
  framework->open();
  for (const ProbeId id : framework->match({"dtmalloc", "", "temp", "", 0})) {
    EXPECT_EQ(framework->impl().probe(id)->aframes, 0);
    EXPECT_EQ(framework->probe(id).description.module, "");
  }
}

// REQ: DTMALLOC-06. Two types of one description: the one registered last has the probes.
TEST_F(DtmallocModuleTest, EqualAndCutDescriptionsCollide) {
  load_dtmalloc(*framework, *kernel);
  const std::string cut(191, 'y');
  for (const auto& [first, second] :
       {std::pair<std::string, std::string>{"dummynet", "dummynet"}, {cut + "1", cut + "2"}}) {
    malloc_type& older = kernel->define_type("M_OLDER", first);
    malloc_type& newer = kernel->define_type("M_NEWER", second);
    framework->open();
    const std::string function = first.substr(0, 191);
    ASSERT_EQ(probes(function), 2u);
    int firings = 0;
    const EnablingId enabling = count({"dtmalloc", "", function, "", 0}, &firings);
    pair(older);
    EXPECT_EQ(firings, 0);
    pair(newer);
    EXPECT_EQ(firings, 2);
    framework->disable(enabling);
  }
}

// REQ: DTMALLOC-07. The count is of probes: two of each type, however many enablings there are.
TEST_F(DtmallocModuleTest, CountIsOfEnabledProbes) {
  load_dtmalloc(*framework, *kernel);
  framework->open();
  const std::size_t types = kernel->types().size();
  int firings = 0;
  const EnablingId one = count({"dtmalloc", "", "", "", 0}, &firings);
  const EnablingId two = count({"dtmalloc", "", "", "", 0}, &firings);
  EXPECT_EQ(framework->enabled_probes(), 2 * types);
  framework->disable(one);
  EXPECT_EQ(framework->enabled_probes(), 2 * types);
  EXPECT_TRUE(kernel->cpus().cpu(0).dtrace_malloc_enabled);
  framework->disable(two);
  EXPECT_EQ(framework->enabled_probes(), 0u);
  EXPECT_FALSE(kernel->cpus().cpu(0).dtrace_malloc_enabled);
}

// REQ: DTMALLOC-09. Beyond the fifth there is none: DTRACE_ARGNONE.
TEST_F(DtmallocModuleTest, SixthArgumentDoesNotExist) {
  load_dtmalloc(*framework, *kernel);
  framework->open();
  const ProbeId id = framework->match({"dtmalloc", "", "temp", "free", 0}).at(0);
  const Probe& probe = *framework->impl().probe(id);
  for (const int index : {5, 6, 31}) {
    ArgDescription description;
    description.index = index;
    probe.provider->ops->getargdesc(id, probe.parg, description);
    EXPECT_EQ(description.index, -1);
    EXPECT_EQ(description.native, "");
  }
}

// REQ: DTMALLOC-25. Firings happen inside the critical section; zones of others fire nothing.
TEST_F(DtmallocModuleTest, FiresInACriticalSection) {
  load_dtmalloc(*framework, *kernel);
  framework->open();
  static bool inside;
  inside = false;
  auto enabling = framework->enable(
      {"dtmalloc", "", "temp", "", 0},
      [](const ProbeFiring&, std::uintptr_t, std::uintptr_t, std::uintptr_t, std::uintptr_t,
         std::uintptr_t) { inside = curcpu->critnest.load() != 0; },
      nullptr);
  ASSERT_TRUE(enabling);
  pair(*kernel->type("temp"));
  EXPECT_TRUE(inside);
  int firings = 0;
  count({"dtmalloc", "", "", "", 0}, &firings);
  uma_zone& zone = *kernel->impl().zones[0];
  uma_zfree_arg(&zone, uma_zalloc_arg(&zone, &zone, kM_WAITOK), nullptr);
  EXPECT_EQ(firings, 0);
}

// REQ: DTMALLOC-26. What runs already is unaffected by a type that comes later.
TEST_F(DtmallocModuleTest, LateTypeIsNoOnesBusiness) {
  load_dtmalloc(*framework, *kernel);
  framework->open();
  int all = 0, late_only = 0;
  count({"dtmalloc", "", "", "malloc", 0}, &all);
  malloc_type& late = kernel->define_type("M_LATE", "late");
  EXPECT_EQ(late.ks_mti.mti_probes[0], 0u);
  pair(late);
  EXPECT_EQ(all, 0);
  framework->open();
  all = 0;
  pair(late);
  EXPECT_EQ(all, 0);
  count({"dtmalloc", "", "late", "malloc", 0}, &late_only);
  pair(late);
  EXPECT_EQ(late_only, 1);
  EXPECT_EQ(all, 0);
}

// REQ: DTMALLOC-27. Enabling a probe of an unloaded type writes into the old object; disabling too.
TEST_F(DtmallocModuleTest, StaleProbeWritesToTheOldObject) {
  load_dtmalloc(*framework, *kernel);
  malloc_type& gone = kernel->define_type("M_A", "a");
  framework->open();
  const std::uint32_t* slots = gone.ks_mti.mti_probes;
  kernel->malloc_uninit(&gone);
  malloc_type& again = kernel->define_type("M_A", "a");
  framework->open();
  EXPECT_EQ(probes("a"), 2u);
  int firings = 0;
  const EnablingId enabling = count({"dtmalloc", "", "a", "malloc", 0}, &firings);
  EXPECT_EQ(slots[0], framework->match({"dtmalloc", "", "a", "malloc", 0}).at(0));
  EXPECT_EQ(again.ks_mti.mti_probes[0], 0u);
  pair(again);
  EXPECT_EQ(firings, 0);
  framework->disable(enabling);
  EXPECT_EQ(slots[0], 0u);
}

// REQ: DTMALLOC-28
TEST_F(DtmallocModuleTest, NodeOfOlderReleases) {
  for (const int release : KernelRelease::versions()) {
    boot(release);
    const std::vector<DeviceNode> nodes = dtmalloc_nodes(*kernel);
    ASSERT_EQ(nodes.size(), release == 16 ? 0u : 1u) << release;
    for (const DeviceNode& node : nodes) {
      EXPECT_EQ(node.path, "/dev/dtrace/dtmalloc");
      EXPECT_EQ(node.mode, 0600);
      EXPECT_EQ(node.owner + ":" + node.group, "root:wheel");
    }
  }
}

}  // namespace
}  // namespace dtmalloc::dtrace
