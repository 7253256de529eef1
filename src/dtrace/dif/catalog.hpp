// SPDX-License-Identifier: BSD-2-Clause
// What the compiler may ask of the world: probes, argument types, symbols. Compiling needs no
// running kernel; tests pass a catalog of their own.
#pragma once

#include <dtmalloc/dtrace/probe.hpp>
#include <map>
#include <optional>
#include <vector>

#include "dtrace/dif/types.hpp"

namespace dtmalloc::dtrace {

struct CatalogProbe {
  ProbeId id = kNoProbe;
  ProbeDescription description;
  ProviderAttributes attributes;
  std::vector<std::string> arguments;  // native types of args[0..]
};

class Catalog {
 public:
  virtual ~Catalog() = default;
  virtual TypeTable& types() = 0;
  // Probes that match, ascending ids. May create the one described.
  virtual std::vector<ProbeId> match(const ProbeDescription& description) = 0;
  virtual CatalogProbe probe(ProbeId id) = 0;  // id kNoProbe: does not exist
  // Names near a description's fields, for hints.
  virtual std::vector<std::string> function_names() = 0;
  // Names that are no function's, and what is to be said of them.
  virtual std::map<std::string, FunctionHint> hints() { return {}; }
};

}  // namespace dtmalloc::dtrace
