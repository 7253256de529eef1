// SPDX-License-Identifier: BSD-2-Clause
// Any bytes as a table of vmstat -m or -z: the import ends, and its workload parses.

#include <cstdint>
#include <dtmalloc/workload/import.hpp>
#include <dtmalloc/workload/workload.hpp>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dtmalloc;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto check = [](const Result<workload::ImportResult>& imported) {
    if (!imported) return;
    const auto parsed = workload::parse(imported->text, "imported.wl");
    DTM_CHECK(parsed.has_value(), "an imported workload parses");
  };
  for (const bool replay : {false, true})
    check(workload::import_vmstat_m(text, "fuzz.txt", {.replay_history = replay}));
  check(workload::import_vmstat_z(text, "fuzz.txt", {}));
  return 0;
}
