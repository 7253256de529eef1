// SPDX-License-Identifier: BSD-2-Clause
// The provider profile on the machine's clock: a probe exists once a description names it.
// Counterpart:  sys/cddl/dev/profile/profile.c
// Locking:      a callout takes the framework's lock and stops the CPU that it fires on; it runs
//               outside critical sections, so it may wait for both.
// Differs:      the probes that FreeBSD creates beforehand (profile-97, tick-10, ...) are created
// on
//               demand like the others; arg0 and arg1 are 0, as there is no program counter.
#include "dtrace/provider/profile.hpp"

#include <cctype>
#include <map>
#include <memory>
#include <string>

#include "dtrace/core/framework.hpp"
#include "dtrace/core/time_unit.hpp"

namespace dtmalloc::dtrace {
namespace {

constexpr Attribute kIsa{Stability::private_, Stability::private_, DependencyClass::isa};

constexpr std::uint64_t kShortestInterval = 200000;  // 5000 hz
constexpr std::size_t kNameLimit = 15;

class ProfileProvider : public Provider {
 public:
  explicit ProfileProvider(Framework& framework) : framework_(framework) {
    tracer_.execname = "dtrace";
    tracer_.pid = 1000;
    tracer_.tid = 100100;
  }

  ~ProfileProvider() override {
    for (const auto& [probe, timer] : timers_) framework_.cpus().clock().cancel(timer->callout);
  }

  void load() {
    const int error = framework_.register_provider(
        "profile", {kEvolving, kPrivate, kIsa, kEvolving, kIsa}, 0, this, &id_);
    DTM_CHECK(error == 0, "the provider profile does not register");
  }

  void provide(const ProbeDescription* description) override {
    if (description == nullptr) return;
    if (!description->provider.empty() && description->provider != "profile") return;
    if (!description->module.empty() || !description->function.empty()) return;
    bool every_cpu = false;
    const std::uint64_t interval = profile_interval(description->name, &every_cpu);
    if (interval == 0) return;
    if (framework_.probe_lookup(id_, nullptr, nullptr, description->name.c_str()) != kNoProbe) {
      return;
    }
    auto timer = std::make_unique<Timer>();
    timer->interval = interval;
    timer->every_cpu = every_cpu;
    const ProbeId probe = framework_.probe_create(id_, "", "", description->name, 0, timer.get());
    timers_[probe] = std::move(timer);
  }

  void enable(ProbeId probe, void* parg) override {
    auto& timer = *static_cast<Timer*>(parg);
    Clock& clock = framework_.cpus().clock();
    timer.callout = clock.schedule(clock.now() + timer.interval, timer.interval,
                                   [this, probe, &timer] { fire(probe, timer); });
  }

  // A call that has begun elsewhere waits for the framework's lock, which is held here, and then
  // finds nothing enabled.
  void disable(ProbeId, void* parg) override {
    framework_.cpus().clock().stop(static_cast<Timer*>(parg)->callout);
  }

 private:
  struct Timer {
    std::uint64_t interval = 0;
    bool every_cpu = false;
    CalloutId callout = 0;
  };

  void fire(ProbeId probe, const Timer& timer) {
    Framework::Impl& impl = framework_.impl();
    const std::lock_guard lock(impl.mutex);
    const int count = timer.every_cpu ? impl.cpus.count() : 1;
    for (int id = 0; id < count; ++id) {
      Cpu& cpu = impl.cpus.cpu(id);
      SimThread* thread = timer.every_cpu && cpu.thread != nullptr ? cpu.thread : &tracer_;
      static constexpr std::uint64_t kArguments[5] = {};
      impl.cpus.run_on_cpu(cpu, [&] { impl.fire_on(cpu, thread, probe, kArguments); });
    }
  }

  Framework& framework_;
  ProviderId id_ = 0;
  SimThread tracer_;
  std::map<ProbeId, std::unique_ptr<Timer>> timers_;
};

}  // namespace

std::uint64_t profile_interval(std::string_view name, bool* every_cpu) {
  if (name.size() >= kNameLimit) return 0;
  if (name.rfind("tick-", 0) == 0) {
    *every_cpu = false;
    name.remove_prefix(5);
  } else if (name.rfind("profile-", 0) == 0) {
    *every_cpu = true;
    name.remove_prefix(8);
  } else {
    return 0;
  }
  std::uint64_t value = 0;
  std::size_t digits = 0;
  while (digits < name.size() && std::isdigit(static_cast<unsigned char>(name[digits])) != 0) {
    value = value * 10 + static_cast<std::uint64_t>(name[digits++] - '0');
  }
  if (digits == 0 || value == 0) return 0;
  const std::string_view suffix = name.substr(digits);
  const std::uint64_t unit = time_unit(suffix);
  std::uint64_t interval = 0;
  if (suffix.empty() ||
      (suffix.size() == 2 && std::tolower(suffix[0]) == 'h' && std::tolower(suffix[1]) == 'z')) {
    interval = 1000000000 / value;
  } else if (unit != 0 && value <= ~std::uint64_t{0} / 4 / unit) {
    interval = value * unit;
  }
  return interval < kShortestInterval ? 0 : interval;
}

void load_profile(Framework& framework) {
  auto provider = std::make_unique<ProfileProvider>(framework);
  provider->load();
  framework.keep(std::move(provider));
}

}  // namespace dtmalloc::dtrace
