// SPDX-License-Identifier: BSD-2-Clause
// Any bytes as a trace, text or binary: reading ends in a count or in a diagnostic; a trace that is
// good converts to both forms, and back to the same; a short one runs and ends.

#include <cstdint>
#include <dtmalloc/workload/trace.hpp>
#include <string>

using namespace dtmalloc;

namespace {

std::string converted(std::string_view bytes, workload::TraceFormat format) {
  const auto trace = workload::Trace::from_memory(bytes, "fuzz.trace");
  DTM_CHECK(trace.has_value(), "what was checked opens");
  std::string out;
  const auto done = workload::convert(**trace, format, [&](std::string_view text) { out += text; });
  DTM_CHECK(done.has_value(), "what was checked converts");
  return out;
}

void run(std::string_view bytes) {
  const auto trace = workload::Trace::from_memory(bytes, "fuzz.trace");
  KernelConfig config;
  config.cpus = 2;
  config.mem = std::uint64_t{64} << 20;
  config.fixed_cpus = true;
  Kernel kernel(config);
  kernel.cpus().bind(0);
  kernel.cpus().set_console([](std::string_view) {});
  workload::Runner runner((*trace)->head(), kernel);
  if (!runner.boot()) return;
  workload::Replayer(**trace, runner).run();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto trace = workload::Trace::from_memory(bytes, "fuzz.trace");
  if (!trace || !(*trace)->check()) return 0;
  const std::string text = converted(bytes, workload::TraceFormat::text);
  const std::string binary = converted(text, workload::TraceFormat::binary);
  DTM_CHECK(converted(binary, workload::TraceFormat::text) == text, "text -> binary -> text");
  // Waits of virtual years take their time, and pokes hit what they like.
  if (size < 2000 && text.find("wait") == text.npos && text.find("poke") == text.npos &&
      text.find("sysctl") == text.npos)
    run(bytes);
  return 0;
}
