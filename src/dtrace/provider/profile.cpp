// SPDX-License-Identifier: BSD-2-Clause
// The provider profile on the machine's clock: some probes exist from the start, the others once a
// description names them.
// Counterpart:  sys/cddl/dev/profile/profile.c
// Locking:      a callout takes the framework's lock and stops the CPU that it fires on; it runs
//               outside critical sections, so it may wait for both.
// Differs:      DEVIATES: arg0 is never 0 and arg1 always: all that a simulated thread does is done
//               in the kernel; where it is in no function that is known, the idle loop stands for
//               it.
#include "dtrace/provider/profile.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <string>

#include "dtrace/core/framework.hpp"
#include "dtrace/core/stack.hpp"
#include "dtrace/core/time_unit.hpp"

namespace dtmalloc::dtrace {
namespace {

constexpr Attribute kIsa{Stability::private_, Stability::private_, DependencyClass::isa};

constexpr std::uint64_t kShortestInterval = 200000;  // 5000 hz
constexpr std::size_t kNameLimit = 15;

// What exists without being asked for.
constexpr const char* kPredefined[] = {
    "profile-97",   "profile-199",  "profile-499", "profile-997", "profile-1999",
    "profile-4001", "profile-4999", "tick-1",      "tick-10",     "tick-100",
    "tick-500",     "tick-1000",    "tick-5000"};

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
    if (description == nullptr) {
      for (const char* name : kPredefined) create(name);
      return;
    }
    if (!description->provider.empty() && description->provider != "profile") return;
    if (!description->module.empty() || !description->function.empty()) return;
    create(description->name);
  }

  // By how a name begins: its probes have no function.
  void hints(std::map<std::string, FunctionHint>& hints) const override {
    for (const char* begin : {"tick-", "profile-"})
      hints[begin] = {"an interval of 200us or more behind " + std::string(begin) +
                          ": a number with ns, us, ms, s, m, h, d or hz",
                      {},
                      {}};
  }

  void enable(ProbeId probe, void* parg) override {
    auto& timer = *static_cast<Timer*>(parg);
    Clock& clock = framework_.cpus().clock();
    timer.due = clock.now() + timer.interval;
    timer.callout =
        clock.schedule(timer.due, timer.interval, [this, probe, &timer] { fire(probe, timer); });
  }

  // A call that has begun elsewhere waits for the framework's lock, which is held here, and then
  // finds nothing enabled.
  void disable(ProbeId, void* parg) override {
    framework_.cpus().clock().stop(static_cast<Timer*>(parg)->callout);
  }

 private:
  struct Timer {
    std::uint64_t interval = 0;
    std::uint64_t due = 0;  // when it should fire next
    bool every_cpu = false;
    CalloutId callout = 0;
  };

  void create(const std::string& name) {
    bool every_cpu = false;
    const std::uint64_t interval = profile_interval(name, &every_cpu);
    if (interval == 0) return;
    if (framework_.probe_lookup(id_, nullptr, nullptr, name.c_str()) != kNoProbe) return;
    auto timer = std::make_unique<Timer>();
    timer->interval = interval;
    timer->every_cpu = every_cpu;
    const ProbeId probe = framework_.probe_create(id_, "", "", name, 0, timer.get());
    timers_[probe] = std::move(timer);
  }

  void fire(ProbeId probe, Timer& timer) {
    Framework::Impl& impl = framework_.impl();
    const std::lock_guard lock(impl.mutex);
    const int count = timer.every_cpu ? impl.cpus.count() : 1;
    const std::uint64_t now = impl.cpus.clock().now();
    const std::uint64_t late = timer.every_cpu && now > timer.due ? now - timer.due : 0;
    timer.due = std::max(timer.due + timer.interval, now - std::min(now, timer.interval));
    for (int id = 0; id < count; ++id) {
      Cpu& cpu = impl.cpus.cpu(id);
      SimThread* thread = timer.every_cpu && cpu.thread != nullptr ? cpu.thread : &tracer_;
      impl.cpus.run_on_cpu(cpu, [&] {
        const std::uint64_t arguments[5] = {interrupted_pc(impl, cpu), 0, late, 0, 0};
        impl.fire_on(cpu, thread, probe, arguments);
      });
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
