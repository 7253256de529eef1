// SPDX-License-Identifier: BSD-2-Clause
// The provider dtmalloc(4): dtmalloc::<type>:malloc and dtmalloc::<type>:free.
// Counterpart:  sys/cddl/dev/dtmalloc/dtmalloc.c
// Locking:      the operations run with the framework's lock held. A probe id slot of a type is
//               written here with a release store while its readers run: they are the
//               allocator's CPUs, which either see the id or do not yet.
// Invariants:   probe argument (parg) = &type->ks_mti.mti_probes[0 or 1]; `count_` = slots not 0.
// Differs:      DEVIATES: a type that was unloaded stays in the kernel's graveyard: a stale probe
//               writes to memory that nobody reads.
//               DEVIATES: after an unload that was refused disabling does nothing: a kernel would
//               call code that is gone, and no consumer could end.
//               DEVIATES: no type goes while types are listed: a kernel may make probes of one
//               that is gone.
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <dtmalloc/dtrace/provider.hpp>
#include <dtmalloc/kernel.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "dtrace/core/framework.hpp"
#include "dtrace/provider/dtmalloc_int.hpp"
#include "dtrace/provider/kernel_symbols.hpp"
#include "smp/functions.hpp"

namespace dtmalloc::dtrace {
namespace {

// A type's description as a function name: cut, whitespace -> '_', nothing else changed.
std::string function_name(const char* shortdesc) {
  std::string name(shortdesc, strnlen(shortdesc, kFunctionNameLength - 1));
  for (char& c : name) {
    if (c == ' ' || (c >= '\t' && c <= '\r')) c = '_';
  }
  return name;
}

class DtmallocProvider : public Provider {
 public:
  DtmallocProvider(Framework& framework, Kernel& kernel) : framework_(framework), kernel_(kernel) {}
  ~DtmallocProvider() override {
    if (loaded_) kernel_.set_malloc_probe(nullptr);
  }

  int load(std::string_view name) {
    const int error = framework_.register_provider(
        name, {kStable, kPrivate, kPrivate, kStable, kStable}, DTRACE_PRIV_USER, this, &id_);
    loaded_ = error == 0;
    if (loaded_) kernel_.set_malloc_probe(&Framework::probe_fire);
    return error;
  }

  int unload() {
    kernel_.set_malloc_probe(nullptr);
    loaded_ = false;
    gone_ = true;
    return framework_.unregister_provider(id_);
  }
  bool loaded() const { return loaded_; }

  void provide(const ProbeDescription* description) override {
    still_there();
    if (description != nullptr) return;
    ++pass_;
    kernel_.malloc_type_list([this](malloc_type* type) { provide_type(*type); });
  }

  void enable(ProbeId id, void* parg) override {
    still_there();
    Kernel::set_probe_id(static_cast<std::uint32_t*>(parg), id);
    if (++count_ == 1) kernel_.set_malloc_probes_enabled(true);
  }

  void disable(ProbeId, void* parg) override {
    if (gone_) return;
    Kernel::set_probe_id(static_cast<std::uint32_t*>(parg), 0);
    if (--count_ == 0) kernel_.set_malloc_probes_enabled(false);
  }

  void hints(std::map<std::string, FunctionHint>& hints) const override {
    for (const malloc_type* type : kernel_.types()) {
      const std::string description = type->ks_shortdesc;
      const std::string name = function_name(type->ks_shortdesc);
      const std::string symbol(kernel_.symbol(*type));
      if (!symbol.empty() && symbol != name) {
        hints[symbol] = {
            name + ": the type " + symbol + " is called \"" + description + '"', name, {}};
      }
      if (description.size() > name.size()) {
        hints[description] = {
            name + ": the probes' function is as much of the description as a kernel takes",
            name,
            {}};
      } else if (description != name) {
        hints[description] = {
            name + ": the probes' function of \"" + description + "\" has no blanks", name, {}};
      }
    }
  }

  std::vector<ArgumentRemark> remarks(ProbeId, void* parg) const override {
    const ArgumentRemark statistics{
        2, false, "args[2] are the statistics of the CPU that the probe fires on, not of the type",
        "the sums of vmstat -m; or aggregate args[3]"};
    const auto* slot = static_cast<const std::uint32_t*>(parg);
    const bool frees = is_free_slot(slot);
    if (frees)
      return {statistics, {4, false, "args[4] of free is always 0: no zone", "args[4] of malloc"}};
    return {statistics,
            {3, false,
             "args[3] is what the zone gave, the size of its class or whole pages, not what was "
             "asked for",
             "arg0 of fbt::malloc:entry for the request"},
            {3, true, "a small request that fails fires too, with size 0", "/args[3] > 0/"},
            {4, false, "args[4] is -1 for what comes from no zone of a class", "/args[4] >= 0/"}};
  }

  std::vector<Missing> missing() const override {
    std::vector<Missing> result;
    const std::map<std::string, FunctionHint> hints = framework_.hints();
    for (const malloc_type* type : kernel_.types()) {
      if (provided_.contains(type)) continue;
      const std::string name = function_name(type->ks_shortdesc);
      std::string note = "type " + std::string(type->ks_shortdesc) +
                         " is registered after the consumer started: it has no probes";
      if (const auto found = hints.find(name); found != hints.end() && !found->second.place.empty())
        note += " (" + found->second.place + ")";
      if (framework_.probe_lookup(id_, nullptr, name.c_str(), "malloc") != kNoProbe) {
        note += "; dtmalloc::" + name + ":malloc and dtmalloc::" + name +
                ":free fire for another type of its name";
      }
      for (const char* probe : {"malloc", "free"})
        result.push_back({{"dtmalloc", "", name, probe, kNoProbe}, note});
    }
    return result;
  }

  void getargdesc(ProbeId, void*, ArgDescription& description) override {
    static constexpr const char* kTypes[] = {"struct malloc_type *",
                                             "struct malloc_type_internal *",
                                             "struct malloc_type_stats *", "unsigned long", "int"};
    if (description.index >= 0 && description.index < static_cast<int>(std::size(kTypes))) {
      description.native = kTypes[description.index];
    } else {
      description.index = -1;
      description.native.clear();
    }
  }

  // A type keeps its description.
  bool constant_memory(ProbeId, void*, int index, std::uint64_t offset,
                       unsigned size) const override {
    return index == 0 && offset == offsetof(malloc_type, ks_shortdesc) && size == sizeof(char*);
  }

 private:
  // Which of a type's two slots an address is.
  bool is_free_slot(const std::uint32_t* slot) const {
    for (const malloc_type* type : provided_)
      if (slot == &type->ks_mti.mti_probes[DTMALLOC_PROBE_FREE]) return true;
    return false;
  }

  void still_there() const {
    if (gone_) kernel_.cpus().panic("page fault: the code of provider dtmalloc is unloaded");
  }

  void provide_type(malloc_type& type) {
    provided_.insert(&type);
    const std::string name = function_name(type.ks_shortdesc);
    std::uint32_t* slots = type.ks_mti.mti_probes;
    // One look-up stands for both: "free" is never asked for.
    if (const ProbeId found = framework_.probe_lookup(id_, nullptr, name.c_str(), "malloc");
        found != kNoProbe) {
      if (framework_.probe_arg(id_, found) != slots) note_collision(found, type, name);
      return;
    }
    const ProbeId malloc_probe =
        framework_.probe_create(id_, "", name, "malloc", 0, &slots[DTMALLOC_PROBE_MALLOC]);
    const ProbeId free_probe =
        framework_.probe_create(id_, "", name, "free", 0, &slots[DTMALLOC_PROBE_FREE]);
    fires_in(malloc_probe, KernelFunction::malloc);
    fires_in(free_probe, KernelFunction::free);
    wired_[malloc_probe] = {type.ks_shortdesc, pass_};
  }

  // The hot malloc() and free() fire without a frame.
  void fires_in(ProbeId id, KernelFunction function) const {
    if (Probe* probe = framework_.impl().probe(id); probe != nullptr)
      probe->fires_in = static_cast<int>(function);
  }

  // The probes of `type` exist, wired to another type.
  void note_collision(ProbeId malloc_probe, const malloc_type& type, const std::string& name) {
    if (!noted_.insert(&type).second) return;
    const Wired& wired = wired_[malloc_probe];
    const std::string other = type.ks_shortdesc;
    std::string text = "types '" + wired.name + "' and '" + other + "' share dtmalloc::" + name +
                       ":malloc and dtmalloc::" + name + ":free, which ";
    if (wired.name != other) {
      text += "fire for '" + wired.name + "' and never for '" + other + "'";
    } else {
      // The list begins with the type registered last.
      const bool last = wired.pass == pass_;
      text += std::string("fire for the one registered ") + (last ? "last" : "first") +
              " and never for the other";
    }
    framework_.add_note(malloc_probe, text);
    framework_.add_note(framework_.probe_lookup(id_, nullptr, name.c_str(), "free"), text);
  }

  Framework& framework_;
  Kernel& kernel_;
  ProviderId id_ = 0;
  bool loaded_ = false;
  bool gone_ = false;        // unloaded
  std::uint32_t count_ = 0;  // enabled probes
  // Whose the probes are, by their malloc probe: the description, and the pass that made them.
  struct Wired {
    std::string name;
    std::uint64_t pass = 0;
  };
  std::map<ProbeId, Wired> wired_;
  std::set<const malloc_type*> noted_;     // types without probes
  std::set<const malloc_type*> provided_;  // types that a pass has seen
  std::uint64_t pass_ = 0;
};

}  // namespace

int load_dtmalloc_as(std::string_view name, Framework& framework, Kernel& kernel) {
  load_kernel_symbols(framework, kernel);
  auto provider = std::make_unique<DtmallocProvider>(framework, kernel);
  const int error = provider->load(name);
  if (error == 0) framework.keep(std::move(provider));
  return error;
}

int load_dtmalloc(Framework& framework, Kernel& kernel) {
  return load_dtmalloc_as("dtmalloc", framework, kernel);
}

void dtmalloc_type_later(Framework& framework, std::string_view symbol, std::string_view shortdesc,
                         const std::string& place) {
  const std::string description(shortdesc);
  const FunctionHint hint{"a type that exists when tracing starts: " + place + " registers \"" +
                              description + "\" later",
                          {},
                          place};
  framework.add_hint(function_name(description.c_str()), hint);
  framework.add_hint(description, hint);
  framework.add_hint(std::string(symbol), hint);
}

int unload_dtmalloc(Framework& framework) {
  Framework::Impl& impl = framework.impl();
  const std::lock_guard lock(impl.mutex);
  for (const auto& kept : impl.kept)
    if (auto* provider = dynamic_cast<DtmallocProvider*>(kept.get());
        provider != nullptr && provider->loaded())
      return provider->unload();
  return EINVAL;
}

int dtmalloc_modevent(ModuleEvent event) { return event == ModuleEvent::quiesce ? EOPNOTSUPP : 0; }

std::vector<DeviceNode> dtmalloc_nodes(const Kernel& kernel) {
  if (!kernel.release().dtmalloc_node) return {};
  return {{"/dev/dtrace/dtmalloc", 0600, "root", "wheel"}};
}

}  // namespace dtmalloc::dtrace
