// SPDX-License-Identifier: BSD-2-Clause
// D programs in tests: a catalog of a few probes, a state to run in, values as text.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dtrace/core/dynvar.hpp"
#include "dtrace/lang/lang.hpp"

namespace dtmalloc::dtrace::testing {

// dtrace BEGIN END ERROR; dtmalloc temp, solaris, iov, 80211node; an unstable provider "shaky".
class FakeCatalog : public Catalog {
 public:
  FakeCatalog();
  TypeTable& types() override { return types_; }
  std::vector<ProbeId> match(const ProbeDescription& description) override;
  CatalogProbe probe(ProbeId id) override;
  std::vector<std::string> function_names(std::string_view provider) override;
  std::size_t matches_asked = 0;

 private:
  void add(const ProbeDescription& description, const ProviderAttributes& attributes,
           std::vector<std::string> arguments);
  TypeTable types_;
  std::vector<CatalogProbe> probes_;
};

// The kernel's memory as D sees it: a malloc_type, its statistics and its strings.
struct FakeKernel {
  FakeKernel();
  struct Stats {
    std::uint64_t mts_memalloced = 4096, mts_memfreed = 1024, mts_numallocs = 7, mts_numfrees = 3,
                  mts_size = 0x11;
    std::uint64_t reserved[3] = {};
  };
  struct MallocType {
    MallocType* ks_next = nullptr;
    std::uint64_t ks_version = 20200804;
    const char* ks_shortdesc = nullptr;
    std::uint64_t ks_mti[11] = {};
  };
  AddressMap map;
  char name[16] = "temp";
  Stats stats;
  MallocType type;
  std::uint64_t type_address, stats_address, name_address;
};

// Variables, dynamic ones of at most 2 KB each, scratch and built-ins for run().
class FakeState {
 public:
  explicit FakeState(FakeKernel& kernel, std::uint32_t strsize = 256);
  void reserve(const ProgramSpace& space);
  DifState state;
  std::map<std::uint32_t, std::uint64_t> builtins;  // by variable id
  std::vector<std::uint64_t> args;                  // args[] and argN
  std::uint64_t execname_address, probefunc_address;

 private:
  static std::uint64_t variable(DifState& state, std::uint32_t id, std::uint64_t index);
  std::vector<std::byte> scratch_, global_bytes_, local_bytes_, strtok_text_;
  std::vector<std::uint64_t> globals_, locals_;
  VariableLayout global_layout_, local_layout_;
  DynamicSpace space_;
  DynamicCpu dynamic_;
  static constexpr char kExecname[] = "newsyslog";
  static constexpr char kProbefunc[] = "temp";
};

// One compile of a text with a catalog and a space of its own.
struct Compiled {
  explicit Compiled(std::string text, std::string file = {},
                    SpecContext context = SpecContext::name);
  bool compile();  // again, with what `input` now says
  std::string tag() const { return ok ? "" : error.tag; }
  std::string message() const { return ok ? "" : error.message; }
  const Clause& clause(std::size_t i = 0) const { return output.program.clauses.at(i); }

  FakeCatalog catalog;
  ProgramSpace space;
  CompileInput input;
  bool ok = false;
  CompileOutput output;
  Diagnostic error;
};

// What `trace(EXPRESSION)` records in a probe dtmalloc::temp:malloc, after the statements before
// it ran: the register (8 bytes, sign as it is), or the text of a string; a fault by its name.
struct Traced {
  bool compiled = false;
  std::string error;  // "TAG message"
  Fault fault = Fault::none;
  std::uint64_t fault_address = 0;
  std::int32_t fault_offset = -1;
  std::uint64_t bits = 0;
  std::string text;
  ValueDesc desc;
  std::string type;
};
Traced trace(const std::string& expression, const std::string& statements = {},
             std::uint32_t strsize = 256);

}  // namespace dtmalloc::dtrace::testing
