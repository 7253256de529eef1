// SPDX-License-Identifier: BSD-2-Clause
// What a malloc/free pair costs in instructions, for counting under callgrind.
//
//   hotpath MODE PAIRS     runs PAIRS pairs of 64 bytes
//   MODE: null     the loop and its two indirect calls alone
//         absent   no hooks compiled in
//         present  hooks compiled in, disabled
//         other    the provider is enabled, another type is traced
//         enabled  this type is traced by an empty callback
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dtmalloc/kernel.hpp>

using namespace dtmalloc;

namespace {

__attribute__((noinline)) void* null_malloc(std::size_t, malloc_type* type, int) { return type; }
__attribute__((noinline)) void null_free(void*, malloc_type*) { __asm__ volatile(""); }
void empty_hook(std::uint32_t, std::uintptr_t, std::uintptr_t, std::uintptr_t, std::uintptr_t,
                std::uintptr_t) {}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: hotpath null|absent|present|other|enabled PAIRS\n");
    return 2;
  }
  const char* mode = argv[1];
  const long pairs = std::atol(argv[2]);
  void* (*volatile malloc_function)(std::size_t, malloc_type*, int) = kern_malloc;
  void (*volatile free_function)(void*, malloc_type*) = kern_free;
  KernelConfig config;
  config.cpus = 1;
  Kernel kernel(config);
  malloc_type& type = kernel.define_type("M_BENCH", "bench");
  kernel.free(kernel.malloc(64, &type, M_NOWAIT), &type);
  if (std::strcmp(mode, "null") == 0) {
    malloc_function = null_malloc;
    free_function = null_free;
  } else if (std::strcmp(mode, "absent") == 0) {
    malloc_function = kern_malloc_nohooks;
    free_function = kern_free_nohooks;
  } else if (std::strcmp(mode, "enabled") == 0 || std::strcmp(mode, "other") == 0) {
    kernel.set_malloc_probe(empty_hook);
    kernel.set_malloc_probes_enabled(true);
    malloc_type& traced = mode[0] == 'e' ? type : *kernel.type("temp");
    traced.ks_mti.mti_probes[DTMALLOC_PROBE_MALLOC] = 1;
    traced.ks_mti.mti_probes[DTMALLOC_PROBE_FREE] = 2;
  } else if (std::strcmp(mode, "present") != 0) {
    std::fprintf(stderr, "hotpath: no mode %s\n", mode);
    return 2;
  }
  void* (*const malloc_now)(std::size_t, malloc_type*, int) = malloc_function;
  void (*const free_now)(void*, malloc_type*) = free_function;
  for (long i = 0; i < pairs; ++i) free_now(malloc_now(64, &type, kM_NOWAIT), &type);
  return 0;
}
