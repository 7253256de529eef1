// SPDX-License-Identifier: BSD-2-Clause
// What the framework asks about the traced kernel's symbols; a provider that knows the kernel
// answers.
// Counterpart:  /dev/ksyms and the linker's kobj tables, as libdtrace reads them
// Locking:      an answer may take locks of its own but for pc() of a call site that is known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtmalloc::dtrace {

struct KernelSymbol {
  std::string module, name;
  std::string type;  // of an object: "struct malloc_type [1]"; empty: a function
  std::uint64_t address = 0, size = 0;
};

class KernelSymbols {
 public:
  virtual ~KernelSymbols() = default;
  // module empty: of any.
  virtual std::optional<KernelSymbol> find(std::string_view module,
                                           std::string_view name) const = 0;
  // The one whose bytes an address is in.
  virtual std::optional<KernelSymbol> at(std::uint64_t address) const = 0;
  virtual bool has_module(std::string_view module) const = 0;
  // A place in a module by which all places in it are meant.
  virtual std::uint64_t module_address(std::string_view module) const = 0;
  // Of objects, for who asked for one that does not exist.
  virtual std::vector<std::string> names() const = 0;
  // The program counter of a simulated call site.
  virtual std::uint64_t pc(const std::string& site) = 0;
};

}  // namespace dtmalloc::dtrace
