// SPDX-License-Identifier: BSD-2-Clause
// Records the firings of the provider dtmalloc through a C++ callback.
//
// Example:
//   dtrace::Framework framework(kernel.cpus(), kernel.addresses());
//   dtrace::load_dtmalloc(framework, kernel);
//   framework.open();
//   ProbeLog log(framework);                       // from here on
//   void* p = kernel.malloc(100, &foo, M_WAITOK);
//   EXPECT_EQ(log.take(), (std::vector<Firing>{{&foo, Firing::malloc, 128, 3}}));
//
// Units:         bytes.
// Errors:        DTM_CHECK when the framework has no dtmalloc probes.
// Thread safety: firings may come from any thread; the order of firings of one CPU is kept.
// Source:        dtrace_dtmalloc(4).
#pragma once

#include <dtmalloc/kern/malloc_type.h>

#include <cstdint>
#include <dtmalloc/dtrace/provider.hpp>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

namespace dtmalloc {

struct Firing {
  enum Probe : std::uint8_t { malloc, free };
  const malloc_type* type = nullptr;
  Probe probe = malloc;
  std::uint64_t size = 0;
  std::int32_t zindx = 0;
  bool operator==(const Firing&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Firing& firing);

class ProbeLog {
 public:
  // Enables the malloc and free probes of one type, or of all that exist.
  explicit ProbeLog(dtrace::Framework& framework, const std::string& probefunc = {});
  ~ProbeLog();  // disables them
  ProbeLog(const ProbeLog&) = delete;
  ProbeLog& operator=(const ProbeLog&) = delete;

  std::vector<Firing> firings() const;
  std::vector<Firing> take();  // the firings so far, which the log forgets

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtmalloc
