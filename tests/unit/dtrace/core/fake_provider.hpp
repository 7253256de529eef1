// SPDX-License-Identifier: BSD-2-Clause
// A provider that only counts what it is asked.
#pragma once

#include <dtmalloc/dtrace/provider.hpp>
#include <dtmalloc/smp/cpu.hpp>
#include <string>
#include <vector>

namespace dtmalloc::dtrace {

inline constexpr Attribute kFakeStable{Stability::stable, Stability::stable,
                                       DependencyClass::common};
inline constexpr ProviderAttributes kFakeAttributes{kFakeStable, kFakeStable, kFakeStable,
                                                    kFakeStable, kFakeStable};

class FakeProvider : public Provider {
 public:
  void provide(const ProbeDescription* description) override {
    if (description == nullptr) {
      ++provided;
    } else {
      asked.push_back(to_string(*description));
      if (framework != nullptr && description->name == on_demand) {
        framework->probe_create(id, "", "", on_demand, 0, nullptr);
      }
    }
  }
  void enable(ProbeId probe, void*) override { log.push_back("enable " + std::to_string(probe)); }
  void disable(ProbeId probe, void*) override { log.push_back("disable " + std::to_string(probe)); }
  void getargdesc(ProbeId, void*, ArgDescription& description) override {
    if (description.index < static_cast<int>(types.size())) {
      description.native = types[static_cast<std::size_t>(description.index)];
    }
  }
  void destroy(ProbeId probe, void*) override { log.push_back("destroy " + std::to_string(probe)); }

  Framework* framework = nullptr;
  ProviderId id = 0;
  std::string on_demand;  // a name to create when it is asked for
  int provided = 0;
  std::vector<std::string> asked, log;
  std::vector<std::string> types;
};

}  // namespace dtmalloc::dtrace
