// SPDX-License-Identifier: BSD-2-Clause
// Providers and probes: registration, creation, look-up, matching, creation on demand.
// Counterpart:  dtrace.c (dtrace_register, dtrace_probe_create, dtrace_match, ...)
// Locking:      Framework::Impl::mutex in every public function.
// Differs:      probe ids are not reused.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "dtrace/core/buffer.hpp"
#include "dtrace/core/framework.hpp"
#include "dtrace/core/symbols.hpp"

namespace dtmalloc::dtrace {
namespace {

// Every bit of a registration's privileges; the last three have no use here.
constexpr std::uint32_t kKnownPrivileges = 0x001f;
constexpr std::uint32_t kUserPrivileges = DTRACE_PRIV_USER | 0x0008 /* owner */;

bool valid_attribute(const Attribute& attribute) {
  return attribute.name <= Stability::standard && attribute.data <= Stability::standard &&
         attribute.dependency <= DependencyClass::common;
}

bool valid_provider_name(std::string_view name) {
  const auto starts = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
  };
  if (name.empty() || !starts(name[0])) return false;
  return std::all_of(name.begin(), name.end(),
                     [&](char c) { return starts(c) || (c >= '0' && c <= '9') || c == '`'; });
}

std::string_view cut(std::string_view text, std::size_t size) { return text.substr(0, size - 1); }

void erase_id(std::unordered_map<std::string_view, std::vector<ProbeId>>& index,
              std::string_view key, ProbeId id) {
  const auto found = index.find(key);
  if (found == index.end()) return;
  auto& ids = found->second;
  const auto at = std::lower_bound(ids.begin(), ids.end(), id);
  if (at != ids.end() && *at == id) ids.erase(at);
}

bool has_glob(const ProbeDescription& description) {
  return is_glob(description.provider) || is_glob(description.module) ||
         is_glob(description.function) || is_glob(description.name);
}

}  // namespace

// --- what a provider need not define

void Provider::getargdesc(ProbeId, void*, ArgDescription& description) { description.native = ""; }
std::uint64_t Provider::getargval(ProbeId, void*, int) { return 0; }
bool Provider::constant_memory(ProbeId, void*, int, std::uint64_t, unsigned) const { return false; }
void Provider::destroy(ProbeId, void*) {}
std::vector<ArgumentRemark> Provider::remarks(ProbeId, void*) const { return {}; }
void Provider::hints(std::map<std::string, FunctionHint>&) const {}
std::vector<Provider::Missing> Provider::missing() const { return {}; }

// --- names

StringArena::~StringArena() {
  for (const auto& block : blocks_) addresses_.retire(block.get());
}

SimulatedString StringArena::intern(std::string_view text) {
  if (const auto found = known_.find(text); found != known_.end()) return found->second;
  DTM_CHECK(text.size() < kBlock, "a name longer than a block");
  if (used_ + text.size() + 1 > kBlock) {
    blocks_.push_back(std::make_unique<char[]>(kBlock));
    block_address_ = addresses_.add_data(blocks_.back().get(), kBlock);
    used_ = 0;
  }
  char* place = blocks_.back().get() + used_;
  std::memcpy(place, text.data(), text.size());
  const SimulatedString string{{place, text.size()}, block_address_ + used_};
  used_ += text.size() + 1;
  known_.emplace(string.text, string);
  return string;
}

// --- Framework::Impl

Framework::Impl::Impl(Framework& framework, CpuSet& cpus, AddressMap& addresses)
    : framework(framework), cpus(cpus), addresses(addresses), names(addresses) {
  grow_table(0);
}

Framework::Impl::~Impl() = default;

static void show_table(FiringCpu& cpu, const ProbeTable& table) {
  cpu.slots.store(table.slots.get(), std::memory_order_release);
  cpu.size.store(table.size, std::memory_order_release);
}

FiringCpu* FiringCpu::make() {
  std::byte* memory = reserve_memory(sizeof(FiringCpu));
  return memory != nullptr ? new (memory) FiringCpu : nullptr;
}

void FiringCpu::Release::operator()(FiringCpu* cpu) const {
  std::destroy_at(cpu);
  release_memory(reinterpret_cast<std::byte*>(cpu), sizeof(FiringCpu));
}

FiringCpu* Framework::Impl::join(Cpu& cpu) {
  const std::lock_guard lock(firing_mutex);
  auto& slot = firing[static_cast<std::size_t>(cpu.id)];
  FiringCpu* made = slot.load(std::memory_order_relaxed);
  if (made != nullptr) return made;
  made = FiringCpu::make();
  if (made == nullptr) return nullptr;
  firing_cpus.emplace_back(made);
  made->framework = this;
  show_table(*made, *table.load(std::memory_order_acquire));
  slot.store(made, std::memory_order_release);
  return made;
}

void Framework::Impl::grow_table(ProbeId probe) {
  const ProbeTable* old = table.load(std::memory_order_relaxed);
  if (old != nullptr && probe < old->size) return;
  std::size_t size = old != nullptr ? old->size : 1024;
  while (size <= probe) size *= 2;
  auto next = std::make_unique<ProbeTable>(size);
  if (old != nullptr) {
    for (std::size_t i = 0; i < old->size; ++i) {
      next->slots[i].store(old->slots[i].load(std::memory_order_relaxed),
                           std::memory_order_relaxed);
    }
  }
  const std::lock_guard lock(firing_mutex);
  table.store(next.get(), std::memory_order_release);
  for (const auto& cpu : firing_cpus) show_table(*cpu, *next);
  tables.push_back(std::move(next));
}

ProviderEntry* Framework::Impl::provider(ProviderId id) {
  if (id == 0 || id > providers.size() || providers[id - 1]->invalid) return nullptr;
  return providers[id - 1].get();
}

std::vector<ProbeId> Framework::Impl::match_existing(const ProbeDescription& description,
                                                     ProbeId after) {
  std::vector<ProbeId> result;
  if (description.id != kNoProbe) {
    const Probe* found = probe(description.id);
    if (description.id > after && found != nullptr && !found->provider->defunct) {
      result.push_back(description.id);
    }
    return result;
  }
  // The shortest list among the fields given exactly; all probes when there is none.
  const std::vector<ProbeId>* candidates = nullptr;
  const auto narrow = [&](const Index& index, const std::string& field) {
    if (field.empty() || is_glob(field)) return true;
    const auto found = index.find(field);
    if (found == index.end()) return false;
    if (candidates == nullptr || found->second.size() < candidates->size()) {
      candidates = &found->second;
    }
    return true;
  };
  if (!narrow(by_provider, description.provider) || !narrow(by_module, description.module) ||
      !narrow(by_function, description.function) || !narrow(by_name, description.name)) {
    return result;
  }
  const bool all_empty = description.provider.empty() && description.module.empty() &&
                         description.function.empty() && description.name.empty();
  const auto consider = [&](const Probe& probe) {
    if (probe.provider->defunct) return;
    if (all_empty ? probe.function.text.empty()
                  : !(glob_match(description.provider, probe.provider_name.text) &&
                      glob_match(description.module, probe.module.text) &&
                      glob_match(description.function, probe.function.text) &&
                      glob_match(description.name, probe.name.text))) {
      return;
    }
    result.push_back(probe.id);
  };
  if (candidates != nullptr) {
    const auto first = std::upper_bound(candidates->begin(), candidates->end(), after);
    for (auto at = first; at != candidates->end(); ++at) consider(*probes[*at - 1]);
  } else {
    for (std::size_t i = after; i < probes.size(); ++i) {
      if (probes[i] != nullptr) consider(*probes[i]);
    }
  }
  return result;
}

std::vector<ProbeId> Framework::Impl::match(const ProbeDescription& description) {
  std::vector<ProbeId> ids = match_existing(description);
  if (!ids.empty() || description.id != kNoProbe || has_glob(description)) return ids;
  const std::size_t before = probes.size();
  provide(&description);
  if (probes.size() == before) return ids;
  match_retained();
  return match_existing(description);
}

// The provider dtrace first, then the others, the one registered last before the rest.
void Framework::Impl::provide(const ProbeDescription* description) {
  if (providers.empty()) return;
  if (!providers[0]->invalid) providers[0]->ops->provide(description);
  for (std::size_t i = providers.size(); i-- > 1;) {
    if (!providers[i]->invalid) providers[i]->ops->provide(description);
  }
}

std::vector<ArgDescription> Framework::Impl::arguments(const Probe& probe) {
  std::vector<ArgDescription> result;
  for (int i = 0; i < kMaxArguments; ++i) {
    ArgDescription argument;
    argument.index = i;
    probe.provider->ops->getargdesc(probe.id, probe.parg, argument);
    if (argument.native.empty() || argument.index < 0) break;
    result.push_back(std::move(argument));
  }
  return result;
}

bool Framework::Impl::is_pointer(std::string_view type) const {
  const auto named = std::find_if(typedefs.begin(), typedefs.end(),
                                  [&](const auto& known) { return known.first == type; });
  return (named != typedefs.end() ? std::string_view(named->second) : type).ends_with('*');
}

void Framework::Impl::know_arguments(Probe& probe) {
  if (probe.arguments_known) return;
  probe.arguments_known = true;
  std::uint32_t bit = 1;
  for (const ArgDescription& argument : arguments(probe)) {
    if (is_pointer(argument.native)) probe.pointer_arguments |= bit;
    bit <<= 1;
  }
}

// --- Framework: providers

int Framework::register_provider(std::string_view name, const ProviderAttributes& attributes,
                                 std::uint32_t privileges, Provider* ops, ProviderId* id) {
  const std::lock_guard lock(impl_->mutex);
  const auto refuse = [&](const char* why) {
    impl_->cpus.console("failed to register provider '" + std::string(name) + "': " + why + "\n");
    return EINVAL;
  };
  if (name.data() == nullptr || ops == nullptr || id == nullptr) return refuse("missing argument");
  if (!valid_provider_name(name)) return refuse("invalid provider name");
  if (!valid_attribute(attributes.provider) || !valid_attribute(attributes.module) ||
      !valid_attribute(attributes.function) || !valid_attribute(attributes.name) ||
      !valid_attribute(attributes.args)) {
    return refuse("invalid provider attributes");
  }
  if ((privileges & ~kKnownPrivileges) != 0) return refuse("invalid privilege attributes");
  // dtps_usermode is not among the operations, so what needs it is refused.
  if ((privileges & DTRACE_PRIV_KERNEL) != 0 && (privileges & kUserPrivileges) != 0) {
    return refuse("need dtps_usermode() op for given privilege attributes");
  }
  auto entry = std::make_unique<ProviderEntry>();
  entry->id = impl_->providers.size() + 1;
  entry->framework = impl_.get();
  entry->name = cut(name, kProviderNameLength);
  entry->attributes = attributes;
  entry->privileges = privileges;
  entry->ops = ops;
  *id = entry->id;
  impl_->providers.push_back(std::move(entry));
  if (impl_->has_retained()) {
    ops->provide(nullptr);
    impl_->match_retained();
  }
  return 0;
}

int Framework::unregister_provider(ProviderId id) {
  const std::lock_guard lock(impl_->mutex);
  ProviderEntry* entry = impl_->provider(id);
  if (entry == nullptr) return EINVAL;
  if (impl_->opens > 0 && !entry->defunct) return EBUSY;
  for (const auto& probe : impl_->probes) {
    if (probe != nullptr && probe->provider == entry && !probe->entries.empty()) return EBUSY;
  }
  impl_->destroy_disabled(*entry);
  entry->invalid = true;
  return 0;
}

void Framework::invalidate_provider(ProviderId id) {
  const std::lock_guard lock(impl_->mutex);
  if (ProviderEntry* entry = impl_->provider(id); entry != nullptr) entry->defunct = true;
}

int Framework::condense_provider(ProviderId id) {
  const std::lock_guard lock(impl_->mutex);
  ProviderEntry* entry = impl_->provider(id);
  if (entry == nullptr) return EINVAL;
  impl_->destroy_disabled(*entry);
  return 0;
}

void Framework::Impl::destroy_disabled(ProviderEntry& entry) {
  for (auto& probe : probes) {
    if (probe == nullptr || probe->provider != &entry || !probe->entries.empty()) continue;
    erase_id(by_provider, probe->provider_name.text, probe->id);
    erase_id(by_module, probe->module.text, probe->id);
    erase_id(by_function, probe->function.text, probe->id);
    erase_id(by_name, probe->name.text, probe->id);
    entry.ops->destroy(probe->id, probe->parg);
    probe = nullptr;
  }
}

ProbeId Framework::probe_create(ProviderId provider, std::string_view module,
                                std::string_view function, std::string_view name, int aframes,
                                void* parg) {
  const std::lock_guard lock(impl_->mutex);
  ProviderEntry* entry = impl_->provider(provider);
  if (entry == nullptr) return kNoProbe;
  auto probe = std::make_unique<Probe>();
  probe->id = static_cast<ProbeId>(impl_->probes.size() + 1);
  probe->provider = entry;
  probe->provider_name = impl_->names.intern(entry->name);
  probe->module = impl_->names.intern(cut(module, kModuleNameLength));
  probe->function = impl_->names.intern(cut(function, kFunctionNameLength));
  probe->name = impl_->names.intern(cut(name, kNameLength));
  probe->aframes = aframes;
  probe->parg = parg;
  impl_->by_provider[probe->provider_name.text].push_back(probe->id);
  impl_->by_module[probe->module.text].push_back(probe->id);
  impl_->by_function[probe->function.text].push_back(probe->id);
  impl_->by_name[probe->name.text].push_back(probe->id);
  impl_->grow_table(probe->id);
  const ProbeId id = probe->id;
  impl_->probes.push_back(std::move(probe));
  return id;
}

ProbeId Framework::probe_lookup(ProviderId provider, const char* module, const char* function,
                                const char* name) {
  const std::lock_guard lock(impl_->mutex);
  const ProviderEntry* entry = impl_->provider(provider);
  if (entry == nullptr) return kNoProbe;
  const std::vector<ProbeId>* candidates = nullptr;
  const auto narrow = [&](const Impl::Index& index, const char* text) {
    if (text == nullptr) return true;
    const auto found = index.find(std::string_view(text));
    if (found == index.end()) return false;
    if (candidates == nullptr || found->second.size() < candidates->size()) {
      candidates = &found->second;
    }
    return true;
  };
  if (!narrow(impl_->by_provider, entry->name.c_str()) || !narrow(impl_->by_module, module) ||
      !narrow(impl_->by_function, function) || !narrow(impl_->by_name, name)) {
    return kNoProbe;
  }
  for (const ProbeId id : *candidates) {
    const Probe& probe = *impl_->probes[id - 1];
    if (probe.provider == entry && (module == nullptr || probe.module.text == module) &&
        (function == nullptr || probe.function.text == function) &&
        (name == nullptr || probe.name.text == name)) {
      return id;
    }
  }
  return kNoProbe;
}

void* Framework::probe_arg(ProviderId provider, ProbeId id) {
  const std::lock_guard lock(impl_->mutex);
  const Probe* probe = impl_->probe(id);
  return probe != nullptr && probe->provider->id == provider ? probe->parg : nullptr;
}

void Framework::keep(std::unique_ptr<Provider> provider) {
  const std::lock_guard lock(impl_->mutex);
  impl_->kept.push_back(std::move(provider));
}

void Framework::add_type(TypeDescription type) {
  const std::lock_guard lock(impl_->mutex);
  for (const TypeDescription& known : impl_->types) {
    if (known.tag == type.tag) return;
  }
  impl_->types.push_back(std::move(type));
}

void Framework::add_typedef(std::string name, std::string type) {
  const std::lock_guard lock(impl_->mutex);
  for (const auto& known : impl_->typedefs) {
    if (known.first == name) return;
  }
  impl_->typedefs.emplace_back(std::move(name), std::move(type));
}

std::vector<std::pair<std::string, std::string>> Framework::typedefs() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->typedefs;
}

std::vector<TypeDescription> Framework::types() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->types;
}

// --- Framework: probes

Framework::ProbeInfo Framework::probe(ProbeId id) const {
  const std::lock_guard lock(impl_->mutex);
  const Probe* probe = impl_->probe(id);
  if (probe == nullptr) return {};
  return {id,
          {std::string(probe->provider_name.text), std::string(probe->module.text),
           std::string(probe->function.text), std::string(probe->name.text), kNoProbe},
          probe->provider->attributes};
}

std::vector<Framework::ProbeInfo> Framework::probes() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<ProbeInfo> result;
  result.reserve(impl_->probes.size());
  for (const auto& entry : impl_->probes) {
    if (entry != nullptr) result.push_back(probe(entry->id));
  }
  return result;
}

std::vector<ProbeId> Framework::match(const ProbeDescription& description) {
  const std::lock_guard lock(impl_->mutex);
  return impl_->match(description);
}

std::vector<ArgDescription> Framework::arguments(ProbeId id) {
  const std::lock_guard lock(impl_->mutex);
  const Probe* probe = impl_->probe(id);
  return probe != nullptr ? impl_->arguments(*probe) : std::vector<ArgDescription>();
}

std::vector<ArgumentRemark> Framework::remarks(ProbeId id) const {
  const std::lock_guard lock(impl_->mutex);
  const Probe* probe = impl_->probe(id);
  if (probe == nullptr || probe->provider->invalid) return {};
  return probe->provider->ops->remarks(id, probe->parg);
}

void Framework::add_note(ProbeId probe, std::string text) {
  const std::lock_guard lock(impl_->mutex);
  impl_->notes[probe].push_back(std::move(text));
}

std::vector<std::string> Framework::notes(const ProbeDescription& description) const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<std::string> result;
  for (const ProbeId id : impl_->match_existing(description)) {
    const auto found = impl_->notes.find(id);
    if (found == impl_->notes.end()) continue;
    for (const std::string& text : found->second)
      if (std::find(result.begin(), result.end(), text) == result.end()) result.push_back(text);
  }
  return result;
}

void Framework::add_hint(const std::string& name, FunctionHint hint) {
  const std::lock_guard lock(impl_->mutex);
  impl_->hints.emplace(name, std::move(hint));
}

std::map<std::string, FunctionHint> Framework::hints() const {
  const std::lock_guard lock(impl_->mutex);
  std::map<std::string, FunctionHint> result;
  for (const auto& provider : impl_->providers) {
    if (!provider->invalid) provider->ops->hints(result);
  }
  result.insert(impl_->hints.begin(), impl_->hints.end());
  return result;
}

std::vector<std::string> Framework::provider_names() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<std::string> names;
  for (const auto& provider : impl_->providers) {
    if (!provider->invalid) names.push_back(provider->name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void Framework::open() {
  const std::lock_guard lock(impl_->mutex);
  ++impl_->opens;
  impl_->provide(nullptr);
  impl_->match_retained();
}

void Framework::close() {
  const std::lock_guard lock(impl_->mutex);
  DTM_CHECK(impl_->opens > 0, "close without open");
  --impl_->opens;
}

}  // namespace dtmalloc::dtrace
