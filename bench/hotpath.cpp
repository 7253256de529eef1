// SPDX-License-Identifier: BSD-2-Clause
// What a malloc/free pair and a firing cost in instructions, for counting under callgrind.
//
//   hotpath MODE PAIRS     runs PAIRS pairs of 64 bytes
//   MODE: null     the loop and its two indirect calls alone
//         inline   malloc and free inlined into the loop
//         absent   no hooks compiled in
//         present  hooks compiled in, disabled
//         other    the provider is enabled, another type is traced
//         enabled  this type is traced by an empty hook, malloc and free
//         empty    the framework's probes of this type, malloc and free, have an empty callback
//         a name of kPrograms below: they have that clause
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kern/inline.hpp>
#include <dtmalloc/kernel.hpp>
#include <memory>
#include <string>

using namespace dtmalloc;
using namespace dtmalloc::dtrace;

namespace {

struct NamedProgram {
  const char* mode;
  const char* text;
};
#define BOTH "dtmalloc::bench:malloc, dtmalloc::bench:free "
constexpr NamedProgram kPrograms[] = {
    {"count", BOTH "{@ = count();}"},
    {"count-probefunc", BOTH "{@[probefunc] = count();}"},
    {"count-pointer", BOTH "{@[args[0]] = count();}"},
    {"count-text", BOTH "{@[stringof(args[0]->ks_shortdesc)] = count();}"},
    {"count-tid", BOTH "{@[tid] = count();}"},
    {"quantize", BOTH "{@ = quantize(arg3);}"},
    {"predicate", BOTH "/arg3 > 16 && arg3 < 4096/ {@ = count();}"},
    {"predicate-false", BOTH "/arg3 > 4096/ {@ = count();}"},
    {"record-1", BOTH "{trace(arg3);}"},
    {"record-2", BOTH "{trace(arg3); trace(arg4);}"},
    {"record-4", BOTH "{printf(\"%d %d %d %d\\n\", arg3, tid, pid, id);}"},
    {"global-predicate", "BEGIN {x = 0;} " BOTH "/x == 0/ {@ = count();}"},
    {"thread-predicate", "BEGIN {self->n = 1;} " BOTH "/self->n == 0/ {@ = count();}"},
    {"global-store", BOTH "{size = arg3;}"},
    {"thread-store", BOTH "{self->size = arg3;}"},
    {"array-tid", BOTH "{x[tid]++;}"},
    {"array-text", BOTH "{x[probefunc]++;}"},
};

__attribute__((noinline)) void* null_malloc(std::size_t, malloc_type* type, int) { return type; }
__attribute__((noinline)) void null_free(void*, malloc_type*) { __asm__ volatile(""); }
void empty_hook(std::uint32_t, std::uintptr_t, std::uintptr_t, std::uintptr_t, std::uintptr_t,
                std::uintptr_t) {}
void empty_callback(const ProbeFiring&, std::uintptr_t, std::uintptr_t, std::uintptr_t,
                    std::uintptr_t, std::uintptr_t) {}

// What traces a machine that is bound to this thread.
struct Tracing {
  explicit Tracing(Kernel& kernel) : framework(kernel.cpus(), kernel.addresses()) {
    framework.load_standard_providers();
    load_dtmalloc(framework, kernel);
    framework.open();
  }
  bool callback() {
    return framework.enable({"dtmalloc", "", "bench", "", 0}, empty_callback, nullptr).has_value();
  }
  bool program(const char* text) {
    session = std::make_unique<Session>(
        framework, SessionSinks{[](std::string_view) {}, [](std::string_view) {}});
    ProgramSource source;
    source.text = text;
    auto compiled = session->compile(source);
    return compiled && session->enable(*compiled) && session->go();
  }
  Framework framework;
  std::unique_ptr<Session> session;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: hotpath MODE PAIRS\n");
    return 2;
  }
  const char* mode = argv[1];
  const auto is = [mode](const char* name) { return std::strcmp(mode, name) == 0; };
  const long pairs = std::atol(argv[2]);
  void* (*volatile malloc_function)(std::size_t, malloc_type*, int) = kern_malloc;
  void (*volatile free_function)(void*, malloc_type*) = kern_free;
  KernelConfig config;
  config.cpus = 1;
  config.fixed_cpus = true;
  Kernel kernel(config);
  kernel.cpus().bind(0);
  malloc_type& type = kernel.define_type("M_BENCH", "bench");
  kernel.free(kernel.malloc(64, &type, M_NOWAIT), &type);
  Tracing* tracing = nullptr;
  bool started = true;
  if (is("null")) {
    malloc_function = null_malloc;
    free_function = null_free;
  } else if (is("absent")) {
    malloc_function = kern_malloc_nohooks;
    free_function = kern_free_nohooks;
  } else if (is("enabled") || is("other")) {
    kernel.set_malloc_probe(empty_hook);
    kernel.set_malloc_probes_enabled(true);
    malloc_type& traced = mode[0] == 'e' ? type : *kernel.type("temp");
    traced.ks_mti.mti_probes[DTMALLOC_PROBE_MALLOC] = 1;
    traced.ks_mti.mti_probes[DTMALLOC_PROBE_FREE] = 2;
  } else if (is("empty")) {
    tracing = new Tracing(kernel);
    started = tracing->callback();
  } else if (!is("present") && !is("inline")) {
    started = false;
    for (const NamedProgram& program : kPrograms) {
      if (!is(program.mode)) continue;
      tracing = new Tracing(kernel);
      started = tracing->program(program.text);
    }
  }
  if (!started) {
    std::fprintf(stderr, "hotpath: no mode %s\n", mode);
    return 2;
  }
  if (is("inline")) {
    std::size_t size = 64;
    for (long i = 0; i < pairs; ++i) {
      __asm__ volatile("" : "+r"(size));  // not known to the compiler
      inline_free(inline_malloc(size, &type, kM_NOWAIT), &type);
    }
    std::_Exit(0);
  }
  void* (*const malloc_now)(std::size_t, malloc_type*, int) = malloc_function;
  void (*const free_now)(void*, malloc_type*) = free_function;
  for (long i = 0; i < pairs; ++i) free_now(malloc_now(64, &type, kM_NOWAIT), &type);
  std::_Exit(0);  // what stopping takes does not count
}
