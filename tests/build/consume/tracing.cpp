// SPDX-License-Identifier: BSD-2-Clause
// A user's program that traces a kernel of its own with a D program and with a C++ callback.

#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kernel.hpp>
#include <string>
#include <string_view>

namespace {

void count_firing(const dtmalloc::dtrace::ProbeFiring& firing, std::uintptr_t, std::uintptr_t,
                  std::uintptr_t, std::uintptr_t, std::uintptr_t) {
  ++*static_cast<int*>(firing.context);
}

}  // namespace

int main() {
  using namespace dtmalloc;
  Kernel kernel{KernelConfig{}};
  malloc_type& type = kernel.define_type("M_USER", "user");
  dtrace::Framework framework(kernel.cpus(), kernel.addresses());
  framework.load_standard_providers();
  load_dtmalloc(framework, kernel);
  framework.open();

  int fired = 0;
  dtrace::ProbeDescription malloc_probes;
  malloc_probes.provider = "dtmalloc";
  malloc_probes.name = "malloc";
  if (!framework.enable(malloc_probes, count_firing, &fired)) return 1;

  std::string out;
  dtrace::Session session(framework,
                          {.out = [&](std::string_view text) { out += text; }, .err = {}});
  dtrace::ProgramSource source;
  source.text = "dtmalloc:::malloc {@[probefunc] = count()}";
  auto program = session.compile(source);
  if (!program || !session.enable(*program) || !session.go()) return 2;

  for (int i = 0; i < 3; ++i) kernel.free(kernel.malloc(100, &type, M_WAITOK), &type);
  session.stop();
  framework.close();
  return out.find("user") != std::string::npos && fired >= 3 ? 0 : 3;
}
