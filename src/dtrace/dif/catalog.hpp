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
  std::vector<std::string> arguments;   // native types of args[0..]
  std::vector<std::string> translated;  // what D sees them as; empty: the same
};

// An object or function of the traced kernel.
struct CatalogSymbol {
  std::string module, name;
  std::string type;  // of an object, as in C; empty: a function
  std::uint64_t address = 0;
  std::uint64_t size = 0;  // bytes; of a function: of its code
};

class Catalog {
 public:
  virtual ~Catalog() = default;
  virtual TypeTable& types() = 0;
  // Probes that match, ascending ids. May create the one described.
  virtual std::vector<ProbeId> match(const ProbeDescription& description) = 0;
  virtual CatalogProbe probe(ProbeId id) = 0;  // id kNoProbe: does not exist
  virtual std::vector<ArgumentRemark> argument_remarks(ProbeId) { return {}; }
  // Names near a description's fields, for hints: the functions of a provider (empty: of all).
  virtual std::vector<std::string> function_names(std::string_view provider) = 0;
  virtual std::vector<std::string> provider_names() { return {}; }  // empty: not known
  // Names that are no function's, and what is to be said of them.
  virtual std::map<std::string, FunctionHint> hints() { return {}; }
  // A symbol of a module; module empty: of any.
  virtual std::optional<CatalogSymbol> symbol(std::string_view, std::string_view) { return {}; }
  virtual TypeId symbol_type(const CatalogSymbol&) { return kNoType; }
  virtual bool has_module(std::string_view) { return false; }
  virtual std::vector<std::string> symbol_names() { return {}; }
};

}  // namespace dtmalloc::dtrace
