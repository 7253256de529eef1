// SPDX-License-Identifier: BSD-2-Clause
// The framework as the compiler's Catalog.
#include <set>

#include "dtrace/consume/session_impl.hpp"
#include "dtrace/core/symbols.hpp"

namespace dtmalloc::dtrace {

FrameworkCatalog::FrameworkCatalog(Framework& framework) : framework_(framework) {
  const std::vector<TypeDescription> descriptions = framework.types();
  for (const TypeDescription& description : descriptions) types_.forward_struct(description.tag);
  for (const auto& [name, type] : framework.typedefs()) {
    if (types_.find(name) == kNoType) types_.add_typedef(name, types_.find(type));
  }
  for (const TypeDescription& description : descriptions) {
    if (description.size == 0) continue;
    std::vector<Member> members;
    for (const TypeMember& member : description.members) {
      members.push_back({member.name, member_type(member.type), member.offset});
    }
    types_.add_struct(description.tag, description.size, std::move(members));
  }
}

// A type as in C, with at most one array dimension at its end.
TypeId FrameworkCatalog::member_type(const std::string& name) {
  const std::size_t bracket = name.find('[');
  std::string element = name.substr(0, bracket);
  while (!element.empty() && element.back() == ' ') element.pop_back();
  const TypeId type = types_.find(element);
  DTM_CHECK(type != kNoType, "a provider describes a member of an unknown type");
  if (bracket == std::string::npos) return type;
  return types_.array_of(type, static_cast<std::uint32_t>(std::stoul(name.substr(bracket + 1))));
}

std::vector<ProbeId> FrameworkCatalog::match(const ProbeDescription& description) {
  return framework_.match(description);
}

CatalogProbe FrameworkCatalog::probe(ProbeId id) {
  const Framework::ProbeInfo info = framework_.probe(id);
  CatalogProbe probe;
  if (info.id == kNoProbe) return probe;
  probe.id = info.id;
  probe.description = info.description;
  probe.attributes = info.attributes;
  for (const ArgDescription& argument : framework_.arguments(id)) {
    probe.arguments.push_back(argument.native);
    probe.translated.push_back(argument.translated == argument.native ? "" : argument.translated);
  }
  return probe;
}

std::optional<CatalogSymbol> FrameworkCatalog::symbol(std::string_view module,
                                                      std::string_view name) {
  const KernelSymbols* symbols = framework_.impl().symbols.get();
  if (symbols == nullptr) return {};
  const std::optional<KernelSymbol> found = symbols->find(module, name);
  if (!found) return {};
  return CatalogSymbol{found->module, found->name, found->type, found->address, found->size};
}

bool FrameworkCatalog::has_module(std::string_view module) {
  const KernelSymbols* symbols = framework_.impl().symbols.get();
  return symbols != nullptr && symbols->has_module(module);
}

std::vector<std::string> FrameworkCatalog::symbol_names() {
  const KernelSymbols* symbols = framework_.impl().symbols.get();
  return symbols != nullptr ? symbols->names() : std::vector<std::string>();
}

std::vector<std::string> FrameworkCatalog::function_names(std::string_view provider) {
  std::set<std::string> names;
  for (const Framework::ProbeInfo& probe : framework_.probes()) {
    const ProbeDescription& known = probe.description;
    if (!known.function.empty() && (provider.empty() || provider == known.provider)) {
      names.insert(known.function);
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace dtmalloc::dtrace
