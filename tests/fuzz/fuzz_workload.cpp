// SPDX-License-Identifier: BSD-2-Clause
// Any bytes as a workload: parsing ends in a workload or in a diagnostic that points into the text,
// and what was parsed prints to text that parses to the same workload.

#include <cstdint>
#include <dtmalloc/workload/workload.hpp>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dtmalloc;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto parsed = workload::parse(text, "fuzz.wl");
  if (!parsed) {
    const Diagnostic& d = parsed.error();
    DTM_CHECK(d.tag.starts_with("WL_"), "a diagnostic of a workload has a tag WL_*");
    DTM_CHECK(d.where.line >= 1 && d.where.column >= 1, "a diagnostic has a place");
    DTM_CHECK(d.where.column <= d.source_line.size() + 1, "the place is inside the line");
    DTM_CHECK(!to_string(d).empty(), "a diagnostic prints");
    return 0;
  }
  const std::string printed = workload::print(*parsed);
  const auto again = workload::parse(printed, "printed.wl");
  DTM_CHECK(again.has_value(), "what print() writes parses");
  DTM_CHECK(*again == *parsed, "parse(print(x)) == x");
  DTM_CHECK(workload::print(*again) == printed, "print() has one way to write a workload");
  return 0;
}
