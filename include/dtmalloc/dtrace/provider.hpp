// SPDX-License-Identifier: BSD-2-Clause
// Write a provider; enable a probe with a C++ callback.
//
// Example:
//   Framework framework(kernel.cpus(), kernel.addresses());
//   framework.load_standard_providers();                 // dtrace
//   load_fbt(framework, kernel);                         // fbt
//   load_dtmalloc(framework, kernel);                    // dtmalloc
//   framework.open();                                    // a consumer's open: probes are provided
//   EnablingId e = *framework.enable({"dtmalloc", "", "temp", "malloc"}, &on_malloc, &context);
//   ... allocate ...
//   framework.disable(e);                                // no CPU is inside on_malloc any more
//
// Errors:        registration and unregistration return an errno as the kernel does.
// Thread safety: any thread; providers are called with the framework's lock held. A callback runs
//                on the firing thread inside a critical section and must not allocate with
//                malloc(9), block or throw.
// Source:        spec/dtrace.md 4 and 5.
#pragma once

#include <cstdint>
#include <dtmalloc/dtrace/probe.hpp>
#include <dtmalloc/smp/cpu.hpp>
#include <dtmalloc/sys/address_map.hpp>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dtmalloc {
class Kernel;
}

namespace dtmalloc::dtrace {

class Framework;
using ProviderId = std::uintptr_t;  // dtrace_provider_id_t
using EnablingId = std::uint32_t;

// dtrace_argdesc_t: the type of args[index]; an empty native type: there is no such argument.
struct ArgDescription {
  int index = 0;
  std::string native;      // "struct malloc_type *"
  std::string translated;  // empty: the same
};

// A C structure of the traced program that a provider's argument types name: D programs see its
// members through args[n]->member. Types are named as in C: "struct malloc_type *", "uint32_t [2]".
struct TypeMember {
  std::string name;
  std::string type;
  std::uint32_t offset = 0;  // bytes
};
struct TypeDescription {
  std::string tag;         // "malloc_type"
  std::uint64_t size = 0;  // 0: only declared
  std::vector<TypeMember> members;
};

// Attributes that registrations are made of.
inline constexpr Attribute kStable{Stability::stable, Stability::stable, DependencyClass::common};
inline constexpr Attribute kEvolving{Stability::evolving, Stability::evolving,
                                     DependencyClass::common};
inline constexpr Attribute kPrivate{Stability::private_, Stability::private_,
                                    DependencyClass::unknown};

// dtrace_pops_t.
class Provider {
 public:
  virtual ~Provider() = default;
  // description == nullptr: create all probes now; else the one described, if it can be.
  virtual void provide(const ProbeDescription* description) = 0;
  virtual void enable(ProbeId id, void* parg) = 0;
  virtual void disable(ProbeId id, void* parg) = 0;
  virtual void getargdesc(ProbeId id, void* parg, ArgDescription& description);
  virtual std::uint64_t getargval(ProbeId id, void* parg, int index);
  // Whether `size` bytes at `offset` of what a pointer argument points at, and the text behind them
  // if they are a pointer, stay what they are as long as they can be read: a firing need not read
  // them again.
  virtual bool constant_memory(ProbeId id, void* parg, int index, std::uint64_t offset,
                               unsigned size) const;
  virtual void destroy(ProbeId id, void* parg);
  virtual std::vector<ArgumentRemark> remarks(ProbeId id, void* parg) const;
  // Names, given for a function, that stand for another one.
  virtual void hints(std::map<std::string, FunctionHint>& hints) const;
  // What has no probes until a consumer opens again: a probe it would have, and what to say to who
  // enabled such probes.
  struct Missing {
    ProbeDescription probe;
    std::string note;
  };
  virtual std::vector<Missing> missing() const;
};

// What a callback is told besides the arguments.
struct ProbeFiring {
  void* context = nullptr;  // what enable() was given
  ProbeId id = kNoProbe;
};

// Called at a firing, inside the critical section, with host addresses. As the kernel's hook, with
// a reference in place of the probe's id: the arguments stay in their registers.
using ProbeCallback = void (*)(const ProbeFiring& firing, std::uintptr_t arg0, std::uintptr_t arg1,
                               std::uintptr_t arg2, std::uintptr_t arg3, std::uintptr_t arg4);

// Privileges of a registration (dtrace_ppriv_t).
inline constexpr std::uint32_t DTRACE_PRIV_KERNEL = 0x0001;
inline constexpr std::uint32_t DTRACE_PRIV_USER = 0x0002;

// The framework of one machine.
class Framework {
 public:
  Framework(CpuSet& cpus, AddressMap& addresses);
  ~Framework();
  Framework(const Framework&) = delete;
  Framework& operator=(const Framework&) = delete;

  CpuSet& cpus();
  AddressMap& addresses();

  // --- providers: dtrace_register and friends; 0 or an errno
  int register_provider(std::string_view name, const ProviderAttributes& attributes,
                        std::uint32_t privileges, Provider* ops, ProviderId* id);
  int unregister_provider(ProviderId id);
  // dtrace_invalidate: nothing matches its probes any more; what is enabled goes on. It may be
  // unregistered while consumers are open.
  void invalidate_provider(ProviderId id);
  // dtrace_condense: destroys its probes that nobody has enabled.
  int condense_provider(ProviderId id);
  ProbeId probe_create(ProviderId provider, std::string_view module, std::string_view function,
                       std::string_view name, int aframes, void* parg);
  // Exact names of that provider's probes; nullptr: do not care. kNoProbe: none.
  ProbeId probe_lookup(ProviderId provider, const char* module, const char* function,
                       const char* name);
  void* probe_arg(ProviderId provider, ProbeId id);
  // What users of a probe would not expect: a session that had it enabled says so when it stops.
  void add_note(ProbeId probe, std::string text);
  // The notes of the probes that match, each once.
  std::vector<std::string> notes(const ProbeDescription& description) const;
  // For descriptions that match nothing; the hints of providers come first.
  void add_hint(const std::string& name, FunctionHint hint);
  std::map<std::string, FunctionHint> hints() const;
  std::vector<std::string> provider_names() const;  // sorted
  // A loaded provider object that lives as long as the framework.
  void keep(std::unique_ptr<Provider> provider);
  void load_standard_providers();  // dtrace (BEGIN END ERROR), profile (tick-N, profile-N)

  // Makes a structure known to the consumers that open after this; a tag given again is ignored.
  void add_type(TypeDescription type);
  std::vector<TypeDescription> types() const;  // in the order of add_type()
  // typedef `type` `name`; ditto.
  void add_typedef(std::string name, std::string type);
  std::vector<std::pair<std::string, std::string>> typedefs() const;

  // --- probes
  struct ProbeInfo {
    ProbeId id;
    ProbeDescription description;
    ProviderAttributes attributes;
  };
  std::vector<ProbeInfo> probes() const;  // in id order
  // Ids that match, ascending; asks providers to create the probe when nothing does.
  std::vector<ProbeId> match(const ProbeDescription& description);
  ProbeInfo probe(ProbeId id) const;
  std::vector<ArgDescription> arguments(ProbeId id);
  std::vector<ArgumentRemark> remarks(ProbeId id) const;

  // A consumer opens the framework: every provider is asked to provide everything.
  void open();
  void close();

  // --- C++ callbacks
  // Enables every probe that matches; a Diagnostic (D_PDESC_ZERO) when none does.
  Result<EnablingId> enable(const ProbeDescription& description, ProbeCallback callback,
                            void* context);
  // Afterwards no CPU is, or will be, inside the callback for this enabling.
  void disable(EnablingId id);
  std::uint32_t enabled_probes() const;  // probes with at least one enabling

  // dtrace_probe(): fires a probe on the current CPU (critical section entered by the caller).
  static void probe_fire(ProbeId id, std::uintptr_t arg0, std::uintptr_t arg1, std::uintptr_t arg2,
                         std::uintptr_t arg3, std::uintptr_t arg4);

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// Loads the provider dtmalloc(4) for a kernel: dtmalloc::<type>:malloc and :free. 0, or the errno
// of its registration; then the kernel's hook stays null, and nothing can be enabled.
int load_dtmalloc(Framework& framework, Kernel& kernel);
// A type that the machine will register later: who names it in a description, or misses its probes,
// is told where.
void dtmalloc_type_later(Framework& framework, std::string_view symbol, std::string_view shortdesc,
                         const std::string& place);
// Unloads it, as kldunload does: the hook goes first, then the provider is unregistered. The errno
// of that is returned, though a kernel ignores it: EBUSY while a consumer is open or a probe is
// enabled. Then the provider stays registered although its code is gone: the next allocation of a
// traced type, and whoever asks it for probes, is a page fault (KernelPanic). EINVAL: not loaded.
int unload_dtmalloc(Framework& framework);

// Loads the provider fbt for a kernel: the boundaries of the functions that the machine models.
// Before dtmalloc, so that the probes of fbt come after its. 0, or the errno of its registration.
int load_fbt(Framework& framework, Kernel& kernel);

// What a module's event handler is asked. That of dtmalloc never refuses: 0, or EOPNOTSUPP for what
// it does not know.
enum class ModuleEvent { load, unload, shutdown, quiesce };
int dtmalloc_modevent(ModuleEvent event);

// What the module adds to /dev: releases before 16 only.
struct DeviceNode {
  std::string path;
  int mode = 0;
  std::string owner, group;
};
std::vector<DeviceNode> dtmalloc_nodes(const Kernel& kernel);

}  // namespace dtmalloc::dtrace
