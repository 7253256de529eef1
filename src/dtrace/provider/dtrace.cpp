// SPDX-License-Identifier: BSD-2-Clause
// The provider dtrace: BEGIN, END and ERROR, the framework's own probes (ids 1, 2 and 3).
// Counterpart:  dtrace.c (dtrace_provider_ops)
#include "dtrace/core/framework.hpp"
#include "dtrace/provider/profile.hpp"

namespace dtmalloc::dtrace {
namespace {

// The framework fires these itself, so there is nothing to switch on.
class DtraceProvider : public Provider {
 public:
  void provide(const ProbeDescription*) override {}
  void enable(ProbeId, void*) override {}
  void disable(ProbeId, void*) override {}
};

}  // namespace

void Framework::load_standard_providers() {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->begin != kNoProbe) return;
  auto provider = std::make_unique<DtraceProvider>();
  ProviderId id = 0;
  const int error = register_provider("dtrace", {kStable, kPrivate, kPrivate, kStable, kStable}, 0,
                                      provider.get(), &id);
  DTM_CHECK(error == 0, "the provider dtrace does not register");
  impl_->begin = probe_create(id, "", "", "BEGIN", 0, nullptr);
  impl_->end = probe_create(id, "", "", "END", 0, nullptr);
  impl_->error = probe_create(id, "", "", "ERROR", 0, nullptr);
  keep(std::move(provider));
  load_profile(*this);
}

}  // namespace dtmalloc::dtrace
