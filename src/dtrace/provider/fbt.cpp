// SPDX-License-Identifier: BSD-2-Clause
// The provider fbt: fbt:kernel:<function>:entry and :return for the functions that the machine
// models (smp/functions.def).
// Counterpart:  sys/cddl/dev/fbt/fbt.c
// Locking:      the operations run with the framework's lock held; ids are written with release
//               stores while the CPUs read them.
// Invariants:   probe argument (parg) = the id's slot in the kernel's FunctionProbes; `count_` =
//               slots not 0; kGuardTwin stands on every CPU while it is not 0.
// Differs:      DEVIATES: the functions that the machine has not modelled have no probes, so there
//               are tens of these and not tens of thousands.
#include <array>
#include <cerrno>
#include <dtmalloc/dtrace/provider.hpp>
#include <dtmalloc/kernel.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "dtrace/core/framework.hpp"
#include "dtrace/provider/kernel_symbols.hpp"
#include "smp/functions.hpp"

namespace dtmalloc::dtrace {
namespace {

constexpr Attribute kIsa{Stability::private_, Stability::private_, DependencyClass::isa};

// The argument of a prototype, or empty.
std::string_view argument_type(std::string_view prototype, int index) {
  while (index-- > 0) {
    const std::size_t comma = prototype.find(',');
    if (comma == std::string_view::npos) return {};
    prototype.remove_prefix(comma + 1);
  }
  return prototype.substr(0, prototype.find(','));
}

class FbtProvider : public Provider {
 public:
  FbtProvider(Framework& framework, Kernel& kernel)
      : framework_(framework), kernel_(kernel), probes_(kernel.function_probes()) {}
  ~FbtProvider() override {
    if (count_ != 0) kernel_.set_functions_traced(false);
  }

  int load() {
    probes_.fire = &Framework::probe_fire;
    return framework_.register_provider("fbt", {kEvolving, kPrivate, kIsa, kEvolving, kIsa},
                                        DTRACE_PRIV_KERNEL, this, &id_);
  }

  void provide(const ProbeDescription* description) override {
    if (description != nullptr || provided_) return;
    provided_ = true;
    for (std::size_t i = 0; i < kKernelFunctions; ++i) {
      const KernelFunctionInfo& function = info_of(static_cast<KernelFunction>(i));
      if (function.since > kernel_.release().version) continue;
      FunctionProbes::Pair& pair = probes_.ids[i];
      // The probed function's own frame is not part of the stack.
      framework_.probe_create(id_, "kernel", function.name, "entry", 1, &pair.entry);
      framework_.probe_create(id_, "kernel", function.name, "return", 1, &pair.return_);
    }
  }

  void enable(ProbeId id, void* parg) override {
    static_cast<std::atomic<std::uint32_t>*>(parg)->store(id, std::memory_order_release);
    if (++count_ == 1) kernel_.set_functions_traced(true);
  }

  void disable(ProbeId, void* parg) override {
    static_cast<std::atomic<std::uint32_t>*>(parg)->store(0, std::memory_order_release);
    if (--count_ == 0) kernel_.set_functions_traced(false);
  }

  void getargdesc(ProbeId, void* parg, ArgDescription& description) override {
    const Place place = place_of(parg);
    const KernelFunctionInfo& function = info_of(place.function);
    if (place.entry) {
      description.native = argument_type(function.arguments, description.index);
    } else if (description.index < 2) {
      description.native = description.index == 0 ? "int" : function.returns;
    }
    if (description.native.empty()) description.index = -1;
  }

  // Beyond the five that are passed: the function still has them all.
  std::uint64_t getargval(ProbeId, void*, int index) override {
    const Frame* frame = curcpu->thread != nullptr ? curcpu->thread->frames : nullptr;
    const auto at = static_cast<std::size_t>(index);
    return frame != nullptr && at < frame->argument_count ? frame->arguments[at] : 0;
  }

 private:
  struct Place {
    KernelFunction function;
    bool entry;
  };
  Place place_of(const void* parg) const {
    const auto offset = static_cast<std::size_t>(
        static_cast<const std::byte*>(parg) - reinterpret_cast<const std::byte*>(&probes_.ids[0]));
    const std::size_t at = offset / sizeof(FunctionProbes::Pair);
    return {static_cast<KernelFunction>(at), parg == &probes_.ids[at].entry};
  }

  Framework& framework_;
  Kernel& kernel_;
  FunctionProbes& probes_;
  ProviderId id_ = 0;
  bool provided_ = false;
  std::uint32_t count_ = 0;  // enabled probes
};

}  // namespace

int load_fbt(Framework& framework, Kernel& kernel) {
  load_kernel_symbols(framework, kernel);
  auto provider = std::make_unique<FbtProvider>(framework, kernel);
  const int error = provider->load();
  if (error == 0) framework.keep(std::move(provider));
  return error;
}

}  // namespace dtmalloc::dtrace
