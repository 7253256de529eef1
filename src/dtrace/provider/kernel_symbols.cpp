// SPDX-License-Identifier: BSD-2-Clause
// The symbols of a simulated kernel: the functions that it models, the call sites that it was
// given, its global variables and malloc types. And the types that they are of.
// Counterpart:  libdtrace's dt_module.c over the linker's symbol tables and CTF
// Locking:      none of its own; the lists of the kernel have theirs.
// Differs:      DEVIATES: kmemzones[] and the heads and links of lists are of anonymous structures
//               in the kernel; here these have tags.
#include "dtrace/provider/kernel_symbols.hpp"

#include <dtmalloc/kern/malloc_type.h>

#include <cstddef>
#include <dtmalloc/dtrace/provider.hpp>
#include <dtmalloc/kernel.hpp>
#include <memory>

#include "dtrace/core/framework.hpp"
#include "dtrace/core/symbols.hpp"
#include "dtrace/core/thread_view.hpp"
#include "kern/objects.hpp"
#include "smp/functions.hpp"
#include "vm/vm.hpp"

namespace dtmalloc::dtrace {
namespace {

constexpr std::string_view kModule = "kernel";

class SimulatedSymbols : public KernelSymbols {
 public:
  explicit SimulatedSymbols(Kernel& kernel) : kernel_(kernel), sites_(kernel.vm().call_sites) {}

  std::optional<KernelSymbol> find(std::string_view module, std::string_view name) const override {
    if (module.empty() || module == kModule) {
      for (const KernelObject& object : kernel_.impl().objects->list())
        if (object.name == name) return symbol(object);
      if (const malloc_type* type = kernel_.type_by_symbol(name)) return symbol(name, *type);
      if (const auto function = find_function(name);
          function && info_of(*function).since <= kernel_.release().version) {
        return symbol(*function);
      }
    }
    if (const auto code = sites_.find(module, name)) return symbol(*code);
    return std::nullopt;
  }

  std::optional<KernelSymbol> at(std::uint64_t address) const override {
    if (const auto function = function_at(address)) return symbol(*function);
    if (const auto code = sites_.at(address)) return symbol(*code);
    for (const KernelObject& object : kernel_.impl().objects->list())
      if (address - object.address < object.size) return symbol(object);
    for (const malloc_type* type : kernel_.types()) {
      const std::string_view name = kernel_.symbol(*type);
      if (!name.empty() && address - address_of_type(*type) < sizeof *type)
        return symbol(name, *type);
    }
    return std::nullopt;
  }

  bool has_module(std::string_view module) const override {
    return module == kModule || sites_.first(module).has_value();
  }

  std::uint64_t module_address(std::string_view module) const override {
    if (module == kModule) return address_of(KernelFunction::malloc);
    const auto code = sites_.first(module);
    return code ? code->start : 0;
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const KernelObject& object : kernel_.impl().objects->list()) names.push_back(object.name);
    for (const malloc_type* type : kernel_.types())
      if (const std::string_view name = kernel_.symbol(*type); !name.empty())
        names.emplace_back(name);
    for (std::size_t i = 0; i < kKernelFunctions; ++i)
      names.emplace_back(info_of(static_cast<KernelFunction>(i)).name);
    return names;
  }

  std::uint64_t pc(const std::string& site) override { return sites_.pc(site); }

 private:
  std::uint64_t address_of_type(const malloc_type& type) const {
    return kernel_.addresses().to_simulated(&type);
  }
  static KernelSymbol symbol(const KernelObject& object) {
    return {std::string(kModule), object.name, object.type, object.address, object.size};
  }
  KernelSymbol symbol(std::string_view name, const malloc_type& type) const {
    return {std::string(kModule), std::string(name), "struct malloc_type [1]",
            address_of_type(type), sizeof type};
  }
  static KernelSymbol symbol(KernelFunction function) {
    const KernelFunctionInfo& info = info_of(function);
    return {std::string(kModule), std::string(info.name), {}, address_of(function), info.size};
  }
  static KernelSymbol symbol(const CallSites::Code& code) {
    return {code.module, code.function, {}, code.start, code.size};
  }

  Kernel& kernel_;
  CallSites& sites_;
};

#define DTM_MEMBER(structure, member, type) \
  TypeMember { #member, type, static_cast < std::uint32_t>(offsetof(structure, member)) }

void describe_types(Framework& framework) {
  framework.add_type({"malloc_type_stats",
                      sizeof(malloc_type_stats),
                      {DTM_MEMBER(malloc_type_stats, mts_memalloced, "uint64_t"),
                       DTM_MEMBER(malloc_type_stats, mts_memfreed, "uint64_t"),
                       DTM_MEMBER(malloc_type_stats, mts_numallocs, "uint64_t"),
                       DTM_MEMBER(malloc_type_stats, mts_numfrees, "uint64_t"),
                       DTM_MEMBER(malloc_type_stats, mts_size, "uint64_t"),
                       DTM_MEMBER(malloc_type_stats, _mts_reserved1, "uint64_t"),
                       DTM_MEMBER(malloc_type_stats, _mts_reserved2, "uint64_t"),
                       DTM_MEMBER(malloc_type_stats, _mts_reserved3, "uint64_t")}});
  framework.add_type({"malloc_type_internal",
                      sizeof(malloc_type_internal),
                      {DTM_MEMBER(malloc_type_internal, mti_probes, "uint32_t [2]"),
                       DTM_MEMBER(malloc_type_internal, mti_zone, "unsigned char"),
                       DTM_MEMBER(malloc_type_internal, mti_stats, "struct malloc_type_stats *"),
                       DTM_MEMBER(malloc_type_internal, mti_spare, "unsigned long [8]")}});
  framework.add_type({"malloc_type",
                      sizeof(malloc_type),
                      {DTM_MEMBER(malloc_type, ks_next, "struct malloc_type *"),
                       DTM_MEMBER(malloc_type, ks_version, "unsigned long"),
                       DTM_MEMBER(malloc_type, ks_shortdesc, "char *"),
                       DTM_MEMBER(malloc_type, ks_mti, "struct malloc_type_internal")}});
}

#undef DTM_MEMBER

}  // namespace

void load_kernel_symbols(Framework& framework, Kernel& kernel) {
  Framework::Impl& impl = framework.impl();
  const std::lock_guard lock(impl.mutex);
  if (impl.symbols != nullptr) return;
  impl.symbols = std::make_unique<SimulatedSymbols>(kernel);
  describe_types(framework);
  describe_uma(framework);
  framework.add_type({"domainset", 0, {}});  // only the kernel itself looks into it
  describe_threads(framework);
  const std::string zones = std::to_string(kernel.impl().numzones);
  framework.add_type({"kmemzone",
                      kernel.impl().objects->kmemzone_size(),
                      {{"kz_size", "int", 0},
                       {"kz_name", "const char *", 8},
                       {"kz_zone", "struct uma_zone * [" + zones + "]",
                        static_cast<std::uint32_t>(KernelObjects::kZonesOffset)}}});
  static constexpr std::pair<const char*, const char*> kNames[] = {
      {"uma_ctor", "void *"},          {"uma_dtor", "void *"},         {"uma_init", "void *"},
      {"uma_fini", "void *"},          {"uma_import", "void *"},       {"uma_release", "void *"},
      {"vm_paddr_t", "unsigned long"}, {"vm_size_t", "unsigned long"}, {"vm_memattr_t", "char"}};
  for (const auto& [name, type] : kNames) framework.add_typedef(name, type);
}

}  // namespace dtmalloc::dtrace
