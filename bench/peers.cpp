// SPDX-License-Identifier: BSD-2-Clause
// Opens the peers. They are called by pointer, as calls through a PLT are.
#include "peers.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace dtmalloc::bench {
namespace {

struct Library {
  const char* peer;
  const char* files[3];
  const char* allocate;
  const char* release;
};
constexpr Library kLibraries[] = {
    {"jemalloc", {"libjemalloc.so.2"}, "malloc", "free"},
    {"mimalloc",
     {"libmimalloc.so.2", "libmimalloc.so.2.0", "libmimalloc.so"},
     "mi_malloc",
     "mi_free"},
    {"tcmalloc", {"libtcmalloc_minimal.so.4", "libtcmalloc.so.4"}, "tc_malloc", "tc_free"},
};

bool open(const Library& library, std::vector<Peer>& found) {
  std::string why;
  for (const char* file : library.files) {
    if (file == nullptr) break;
    void* handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      if (why.empty()) why = dlerror();
      continue;
    }
    void* allocate = dlsym(handle, library.allocate);
    void* release = dlsym(handle, library.release);
    if (allocate != nullptr && release != nullptr) {
      found.push_back({library.peer, reinterpret_cast<void* (*)(std::size_t)>(allocate),
                       reinterpret_cast<void (*)(void*)>(release)});
      return true;
    }
    why = std::string(file) + " has no " + library.allocate;
  }
  std::fprintf(stderr, "bench: without %s: %s\n", library.peer, why.c_str());
  return false;
}

}  // namespace

const std::vector<Peer>& peers() {
  static const std::vector<Peer> kPeers = [] {
    std::vector<Peer> found = {{"glibc", std::malloc, std::free}};
    for (const Library& library : kLibraries) open(library, found);
    return found;
  }();
  return kPeers;
}

}  // namespace dtmalloc::bench
