// SPDX-License-Identifier: BSD-2-Clause
// The fakes that D programs are compiled against and run in.
#include "support/d_program.hpp"

#include <cstddef>

#include "dtrace/dif/dif_int.hpp"

namespace dtmalloc::dtrace::testing {
namespace {

constexpr Attribute kStable = {Stability::stable, Stability::stable, DependencyClass::common};
constexpr Attribute kPrivate = {Stability::private_, Stability::private_, DependencyClass::unknown};
constexpr Attribute kUnstable = {Stability::unstable, Stability::unstable, DependencyClass::common};

}  // namespace

FakeCatalog::FakeCatalog() {
  const TypeId internal = types_.forward_struct("malloc_type_internal");
  const TypeId type = types_.forward_struct("malloc_type");
  const TypeId u64 = types_.find("uint64_t");
  types_.add_struct("malloc_type_stats", 64,
                    {{"mts_memalloced", u64, 0},
                     {"mts_memfreed", u64, 8},
                     {"mts_numallocs", u64, 16},
                     {"mts_numfrees", u64, 24},
                     {"mts_size", u64, 32}});
  types_.add_struct("malloc_type_internal", 88,
                    {{"mti_probes", types_.array_of(types_.find("uint32_t"), 2), 0},
                     {"mti_zone", types_.find("unsigned char"), 8}});
  types_.add_struct("malloc_type", 112,
                    {{"ks_next", types_.pointer_to(type), 0},
                     {"ks_version", types_.find("unsigned long"), 8},
                     {"ks_shortdesc", types_.find("char *"), 16},
                     {"ks_mti", internal, 24}});
  const ProviderAttributes stable = {kStable, kPrivate, kPrivate, kStable, kStable};
  const ProviderAttributes unstable = {kUnstable, kUnstable, kUnstable, kUnstable, kUnstable};
  const std::vector<std::string> arguments = {"struct malloc_type *",
                                              "struct malloc_type_internal *",
                                              "struct malloc_type_stats *", "unsigned long", "int"};
  add({"dtrace", "", "", "BEGIN"}, stable, {});
  add({"dtrace", "", "", "END"}, stable, {});
  add({"dtrace", "", "", "ERROR"}, stable, {});
  for (const char* function : {"temp", "solaris", "iov", "80211node"}) {
    add({"dtmalloc", "", function, "malloc"}, stable, arguments);
    add({"dtmalloc", "", function, "free"}, stable, arguments);
  }
  add({"shaky", "m", "f", "entry"}, unstable, {"int"});
  add({"shaky", "m", "g", "entry"}, unstable, {"int"});
}

void FakeCatalog::add(const ProbeDescription& description, const ProviderAttributes& attributes,
                      std::vector<std::string> arguments) {
  CatalogProbe probe;
  probe.id = static_cast<ProbeId>(probes_.size()) + 1;
  probe.description = description;
  probe.attributes = attributes;
  probe.arguments = std::move(arguments);
  probes_.push_back(std::move(probe));
}

std::vector<ProbeId> FakeCatalog::match(const ProbeDescription& wanted) {
  ++matches_asked;
  std::vector<ProbeId> ids;
  for (const CatalogProbe& probe : probes_) {
    const ProbeDescription& had = probe.description;
    if (glob_match(wanted.provider, had.provider) && glob_match(wanted.module, had.module) &&
        glob_match(wanted.function, had.function) && glob_match(wanted.name, had.name)) {
      ids.push_back(probe.id);
    }
  }
  return ids;
}

CatalogProbe FakeCatalog::probe(ProbeId id) {
  return id == 0 || id > probes_.size() ? CatalogProbe{} : probes_[id - 1];
}

std::vector<std::string> FakeCatalog::function_names(std::string_view) {
  std::vector<std::string> names;
  for (const CatalogProbe& probe : probes_) {
    const std::string& name = probe.description.function;
    if (!name.empty() && (names.empty() || names.back() != name)) names.push_back(name);
  }
  return names;
}

FakeKernel::FakeKernel() {
  type.ks_shortdesc = name;
  type_address = map.add_data(&type, sizeof type);
  stats_address = map.add_data(&stats, sizeof stats);
  name_address = map.add_data(name, sizeof name);
}

FakeState::FakeState(FakeKernel& kernel, std::uint32_t strsize)
    : execname_address(kernel.map.add_data(kExecname, sizeof kExecname)),
      probefunc_address(kernel.map.add_data(kProbefunc, sizeof kProbefunc)),
      scratch_(std::size_t{64} << 10),
      strtok_text_(strsize) {
  state.owner = this;
  state.variable = &variable;
  state.addresses = &kernel.map;
  state.scratch = scratch_.data();
  state.scratch_size = scratch_.size();
  state.strsize = strsize;
  state.strtok_text = strtok_text_.data();
  space_.reserve(std::size_t{256} << 10, 2048, 1);
  dynamic_.join(space_, 0);
  state.dynamic = &dynamic_;
  args = {kernel.type_address, 0x10, kernel.stats_address, 4096, static_cast<std::uint64_t>(-1)};
  builtins[kVarThread] = 100042;
  builtins[kVarPid] = 4711;
  builtins[kVarPpid] = 99;
  builtins[kVarTid] = 100042;
  builtins[kVarCpu] = 3;
  builtins[kVarTimestamp] = 123456789012345;
}

void FakeState::reserve(const ProgramSpace& space) {
  globals_.resize(space.globals);
  locals_.resize(space.locals);
  global_layout_ = lay_out_variables(space.variables, Scope::global, state.strsize);
  local_layout_ = lay_out_variables(space.variables, Scope::local, state.strsize);
  global_bytes_.resize(global_layout_.size);
  local_bytes_.resize(local_layout_.size);
  state.globals = globals_.data();
  state.locals = locals_.data();
  state.global_bytes = global_bytes_.data();
  state.local_bytes = local_bytes_.data();
  state.global_slots = global_layout_.slots.data();
  state.local_slots = local_layout_.slots.data();
  state.global_size = global_layout_.size;
  state.local_size = local_layout_.size;
  state.strings = space.strings.size() > 1 ? space.strings.data() : nullptr;
  state.strings_size = space.strings.size();
}

std::uint64_t FakeState::variable(DifState& state, std::uint32_t id, std::uint64_t index) {
  auto& self = *static_cast<FakeState*>(state.owner);
  if (id == kVarArgs) return index < self.args.size() ? self.args[index] : 0;
  if (id >= kVarArg0 && id <= kVarArg9) {
    const std::size_t at = id - kVarArg0;
    return at < self.args.size() ? self.args[at] : 0;
  }
  if (id == kVarExecname) return self.execname_address;
  if (id == kVarProbefunc) return self.probefunc_address;
  const auto found = self.builtins.find(id);
  return found == self.builtins.end() ? 0 : found->second;
}

Compiled::Compiled(std::string text, std::string file, SpecContext context) {
  input.text = std::move(text);
  input.file = std::move(file);
  input.context = context;
  input.arguments = {"dtrace"};
  compile();
}

bool Compiled::compile() {
  Result<CompileOutput> result = dtrace::compile(input, catalog, space);
  ok = result.has_value();
  if (ok) {
    output = std::move(*result);
  } else {
    error = std::move(result.error());
  }
  return ok;
}

Traced trace(const std::string& expression, const std::string& statements, std::uint32_t strsize) {
  Traced traced;
  Compiled program("BEGIN {}");
  program.input.text = "dtmalloc::temp:malloc { " + statements + " ; trace(" + expression + "); }";
  program.input.strsize = strsize;
  if (!program.compile()) {
    traced.error = program.error.tag + " " + program.error.message;
    return traced;
  }
  traced.compiled = true;
  FakeKernel kernel;
  FakeState state(kernel, strsize);
  state.reserve(program.space);
  const Action* last = nullptr;
  for (const Action& action : program.clause().actions) {
    last = &action;
    traced.bits = run(action.values[0].dif, state.state);
    traced.fault = state.state.fault;
    traced.fault_address = state.state.fault_address;
    traced.fault_offset = state.state.fault_offset;
    if (traced.fault != Fault::none) return traced;
  }
  traced.desc = last->values[0].desc;
  traced.type = program.catalog.types()[traced.desc.type].name;
  if (traced.desc.is_string) {
    std::string_view text;
    if (traced.bits == 0) {
      traced.fault = Fault::badaddr;
    } else if (string_at(state.state, traced.bits, &text)) {
      traced.text = text;
    } else {
      traced.fault = state.state.fault;
      traced.fault_address = state.state.fault_address;
    }
  }
  return traced;
}

}  // namespace dtmalloc::dtrace::testing
