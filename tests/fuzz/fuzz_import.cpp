// SPDX-License-Identifier: BSD-2-Clause
// Any bytes as a table of vmstat -m: the import ends, and its workload parses.

#include <cstdint>
#include <dtmalloc/workload/import.hpp>
#include <dtmalloc/workload/workload.hpp>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dtmalloc;
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const bool replay : {false, true}) {
    const auto imported = workload::import_vmstat_m(text, "fuzz.txt", {.replay_history = replay});
    if (!imported) continue;
    const auto parsed = workload::parse(imported->text, "imported.wl");
    DTM_CHECK(parsed.has_value(), "an imported workload parses");
  }
  return 0;
}
