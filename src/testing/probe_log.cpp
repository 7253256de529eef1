// SPDX-License-Identifier: BSD-2-Clause
// The probe log: two enablings of a C++ callback, one for each probe name.
// Locking:      a mutex that is held for one push; whoever waits for a CPU to leave its critical
//               section holds none

#include <dtmalloc/testing/probe_log.hpp>
#include <mutex>
#include <ostream>
#include <utility>

namespace dtmalloc {
namespace {

struct Sink {
  std::mutex mutex;
  std::vector<Firing> firings;
};

template <Firing::Probe kProbe>
void record(const dtrace::ProbeFiring& firing, std::uintptr_t arg0, std::uintptr_t, std::uintptr_t,
            std::uintptr_t arg3, std::uintptr_t arg4) {
  Sink& sink = *static_cast<Sink*>(firing.context);
  const std::lock_guard lock(sink.mutex);
  sink.firings.push_back(
      {reinterpret_cast<const malloc_type*>(arg0), kProbe, arg3, static_cast<std::int32_t>(arg4)});
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Firing& firing) {
  const char* type = firing.type == nullptr ? "(none)" : firing.type->ks_shortdesc;
  return out << type << (firing.probe == Firing::malloc ? ":malloc(" : ":free(") << firing.size
             << ", " << firing.zindx << ')';
}

struct ProbeLog::State {
  dtrace::Framework& framework;
  Sink sink;
  dtrace::EnablingId ids[2] = {};
};

ProbeLog::ProbeLog(dtrace::Framework& framework, const std::string& probefunc)
    : state_(new State{framework, {}, {}}) {
  const auto enable = [&](const char* name, dtrace::ProbeCallback callback) {
    auto id = framework.enable({"dtmalloc", "", probefunc, name}, callback, &state_->sink);
    DTM_CHECK(id.has_value(), "a probe log wants the provider dtmalloc loaded and opened");
    return *id;
  };
  state_->ids[0] = enable("malloc", &record<Firing::malloc>);
  state_->ids[1] = enable("free", &record<Firing::free>);
}

ProbeLog::~ProbeLog() {
  for (const dtrace::EnablingId id : state_->ids) state_->framework.disable(id);
}

std::vector<Firing> ProbeLog::firings() const {
  const std::lock_guard lock(state_->sink.mutex);
  return state_->sink.firings;
}

std::vector<Firing> ProbeLog::take() {
  const std::lock_guard lock(state_->sink.mutex);
  return std::exchange(state_->sink.firings, {});
}

}  // namespace dtmalloc
