// SPDX-License-Identifier: BSD-2-Clause
// Types: registration, look-up, statistics, the static ones.
//
// Counterpart:  sys/kern/kern_malloc.c (malloc_init, malloc_uninit, malloc_type_list, ...)
// Locking:      malloc_mtx; not held while a callback runs or a line is printed. A registration
// that
//               is refused panics with it and gives it back as it unwinds; a lookup takes no lock
// Differs:      DEVIATES: a type that is unregistered keeps its object and lines, unreadable for D,
//               and its use is a panic: a kernel would touch freed memory. Under a type that never
//               was registered only free() may pass unseen, counted nowhere.
//               DEVIATES: malloc_uninit of a stranger panics without INVARIANTS too: a kernel would
//               lower the count and sum statistics through a null pointer
#include <dtmalloc/kern/malloc_type.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kern/kernel_impl.hpp"
#include "kern/ledger_impl.hpp"

// spec/malloc9.md 1.6
static_assert(sizeof(malloc_type_stats) == 64);
static_assert(offsetof(malloc_type_stats, mts_memalloced) == 0);
static_assert(offsetof(malloc_type_stats, mts_memfreed) == 8);
static_assert(offsetof(malloc_type_stats, mts_numallocs) == 16);
static_assert(offsetof(malloc_type_stats, mts_numfrees) == 24);
static_assert(offsetof(malloc_type_stats, mts_size) == 32);
static_assert(offsetof(malloc_type_stats, _mts_reserved1) == 40);
static_assert(offsetof(malloc_type_stats, _mts_reserved3) == 56);
static_assert(sizeof(malloc_type_internal) == 88);
static_assert(offsetof(malloc_type_internal, mti_probes) == 0);
static_assert(offsetof(malloc_type_internal, mti_zone) == 8);
static_assert(offsetof(malloc_type_internal, mti_stats) == 16);
static_assert(offsetof(malloc_type_internal, mti_spare) == 24);
static_assert(sizeof(malloc_type) == 112);
static_assert(offsetof(malloc_type, ks_next) == 0);
static_assert(offsetof(malloc_type, ks_version) == 8);
static_assert(offsetof(malloc_type, ks_shortdesc) == 16);
static_assert(offsetof(malloc_type, ks_mti) == 24);

extern "C" {
malloc_type M_CACHE[1] = {{nullptr, M_VERSION, "cache", {}}};
malloc_type M_DEVBUF[1] = {{nullptr, M_VERSION, "devbuf", {}}};
malloc_type M_TEMP[1] = {{nullptr, M_VERSION, "temp", {}}};
}

namespace dtmalloc {
namespace {

// What a thread does that owns a CPU of another machine, or none, belongs to no thread of this one.
template <typename Body>
void at_boundary(Kernel& kernel, KernelFunction function, Body&& body, malloc_type* mtp) {
  if (curcpu->kernel != &kernel) return body();
  in_function(function, body, mtp);
}

malloc_type M_UMA[1] = {{nullptr, M_VERSION, "UMA", {}}};
malloc_type M_UMAHASH[1] = {{nullptr, M_VERSION, "UMAHash", {}}};

struct BuiltIn {
  const char* symbol;
  const char* shortdesc;
  malloc_type* object;  // the default kernel's
};
constexpr BuiltIn kBuiltIns[] = {{"M_CACHE", "cache", M_CACHE},
                                 {"M_DEVBUF", "devbuf", M_DEVBUF},
                                 {"M_TEMP", "temp", M_TEMP},
                                 {"M_UMA", "UMA", M_UMA},
                                 {"M_UMAHASH", "UMAHash", M_UMAHASH}};

// What data_alloc() gave to an owned type.
constexpr std::size_t object_bytes() { return (sizeof(malloc_type) + 15) / 16 * 16; }
std::size_t name_bytes(const malloc_type& type) {
  return (std::strlen(type.ks_shortdesc) + 16) / 16 * 16;
}

// A static type as it was before any kernel knew it.
void reset(malloc_type* mtp) {
  mtp->ks_next = nullptr;
  std::memset(&mtp->ks_mti, 0, sizeof mtp->ks_mti);
  mark_registered(mtp, false);
}

}  // namespace

// Never destroyed: static types leave it when their object files are unloaded, at any time.
DefaultKernel& default_kernel_state() {
  static auto& state = *new DefaultKernel;
  return state;
}

void mark_registered(malloc_type* mtp, bool registered) {
  std::atomic_ref<std::uint32_t> slot(mtp->ks_mti.mti_probes[DTMALLOC_PROBE_FREE]);
  std::uint32_t expected = registered ? kUnregistered : 0;
  slot.compare_exchange_strong(expected, registered ? 0 : kUnregistered);
}

void Kernel::set_probe_id(std::uint32_t* slot, std::uint32_t id) {
  // The ids are one aligned word, so the second is known by its address.
  static_assert(offsetof(malloc_type, ks_mti.mti_probes) % 8 == 0);
  const bool is_free = reinterpret_cast<std::uintptr_t>(slot) % 8 != 0;
  if (id == 0 && is_free) {
    const auto* mti = reinterpret_cast<const malloc_type_internal*>(slot - 1);
    if (__atomic_load_n(&mti->mti_stats, __ATOMIC_ACQUIRE) == nullptr) id = kUnregistered;
  }
  std::atomic_ref<std::uint32_t>(*slot).store(id, std::memory_order_release);
}

void* Kernel::Impl::data_alloc(std::size_t size) {
  const std::size_t at = data_used;
  data_used += (size + 15) / 16 * 16;
  if (data_used > kDataBytes) panic("not modelled: more than 64 MiB of type objects and names");
  return data.get() + at;
}

const char* Kernel::Impl::data_string(std::string_view text) {
  auto* copy = static_cast<char*>(data_alloc(text.size() + 1));
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

malloc_type& Kernel::Impl::make_type(std::string_view symbol, std::string_view shortdesc,
                                     std::string_view longdesc) {
  malloc_type* type;
  {
    const std::lock_guard lock(malloc_mtx);
    type = new (data_alloc(sizeof(malloc_type))) malloc_type{};
    type->ks_version = M_VERSION;
    type->ks_shortdesc = data_string(shortdesc);
    TypeRecord& record = records.emplace_back();
    record.type = type;
    record.symbol = symbol;
    record.longdesc = longdesc;
    record.owned = true;
    by_type[type] = &record;
  }
  at_boundary(
      self, KernelFunction::malloc_init, [&] { register_type(type, symbol); }, type);
  return *type;
}

void Kernel::Impl::register_type(malloc_type* mtp, std::string_view symbol) {
  if (mtp->ks_version != M_VERSION)
    panic("malloc_init: type %s with unsupported version %lu", mtp->ks_shortdesc, mtp->ks_version);
  const std::lock_guard lock(malloc_mtx);
  const auto known = by_type.find(mtp);
  TypeRecord* record = known == by_type.end() ? nullptr : known->second;
  if (record == nullptr) {
    if (mtp->ks_mti.mti_stats != nullptr)
      panic("malloc_init: type %s belongs to another kernel", mtp->ks_shortdesc);
    record = &records.emplace_back();
    record->type = mtp;
    record->symbol = symbol;
    by_type[mtp] = record;
  }
  if (record->registered) panic("malloc_init: type %s is registered already", mtp->ks_shortdesc);
  if (next_line + sizeof(malloc_type_stats) > kColumnLines)
    panic("not modelled: more than %zu registrations of types",
          kColumnLines / sizeof(malloc_type_stats));
  if (record->owned) {
    if (record->retired) {
      addresses.restore(mtp, object_bytes());
      addresses.restore(mtp->ks_shortdesc, name_bytes(*mtp));
    }
  } else {
    const std::size_t name = std::strlen(mtp->ks_shortdesc) + 1;
    if (addresses.add_data(mtp, sizeof *mtp) == AddressMap::kNoAddress ||
        addresses.add_data(mtp->ks_shortdesc, name) == AddressMap::kNoAddress)
      panic("not modelled: more than 64 MiB of registered objects");
  }
  mtp->ks_mti.mti_zone = subzone_of(mtp->ks_shortdesc);
  line_owner(next_line).store(mtp, std::memory_order_release);
  mtp->ks_mti.mti_stats = reinterpret_cast<malloc_type_stats*>(next_line);
  mark_registered(mtp, true);
  next_line += sizeof(malloc_type_stats);
  mtp->ks_next = kmemstatistics;
  kmemstatistics = mtp;
  ++kmemcount;
  record->registered = true;
  registered.push_back(record);
}

void Kernel::Impl::unregister_type(malloc_type* mtp) {
  if (invariants() && mtp->ks_version != M_VERSION) panic("malloc_uninit: bad malloc type version");
  {
    std::unique_lock lock(malloc_mtx);
    auto known = by_type.find(mtp);
    if (known == by_type.end() || !known->second->registered) {
      lock.unlock();
      panic("malloc_uninit: type '%s' not found", mtp->ks_shortdesc);
    }
    malloc_type** link = &kmemstatistics;
    while (*link != mtp) link = &(*link)->ks_next;
    *link = mtp->ks_next;
    mtp->ks_next = nullptr;
    --kmemcount;
    known->second->registered = false;
    line_owner(reinterpret_cast<std::uintptr_t>(mtp->ks_mti.mti_stats))
        .store(nullptr, std::memory_order_release);
    std::erase(registered, known->second);
  }
  // From here on each use is a panic; what is under way ends first, and is counted.
  mark_registered(mtp, false);
  cpus->synchronize();
  const TypeStats stats = stats_of(*mtp);
  const auto allocs = static_cast<long>(stats.numallocs - stats.numfrees);
  const auto bytes = static_cast<long>(stats.memalloced - stats.memfreed);
  if (allocs > 0 || bytes > 0)
    cpus->console(kernel_format(addresses,
                                "Warning: memory type %s leaked memory on destroy (%ld "
                                "allocations, %ld bytes leaked).\n",
                                mtp->ks_shortdesc, allocs, bytes));
  if (ledger != nullptr) ledger->impl().unloaded(mtp);
  std::vector<AddressMap::Part> parts;
  for (int id = 0; id < cpus->count(); ++id)
    parts.push_back({&line(cpus->cpu(id), *mtp), sizeof(malloc_type_stats)});
  const std::lock_guard lock(malloc_mtx);
  __atomic_store_n(&mtp->ks_mti.mti_stats, nullptr, __ATOMIC_RELEASE);
  TypeRecord& record = *by_type[mtp];
  record.retired = true;
  if (record.owned) {
    parts.push_back({mtp, object_bytes()});
    parts.push_back({mtp->ks_shortdesc, name_bytes(*mtp)});
  }
  addresses.retire(parts);
  if (!record.owned) {
    addresses.retire(mtp);
    addresses.retire(mtp->ks_shortdesc);
  }
}

TypeStats Kernel::Impl::stats_of(const malloc_type& mtp) const {
  TypeStats out;
  if (mtp.ks_mti.mti_stats == nullptr) return out;
  for (int id = 0; id < cpus->count(); ++id) {
    if (!has_counted[static_cast<std::size_t>(id)].load(std::memory_order_relaxed)) continue;
    add_up(out, line(cpus->cpu(id), mtp));
  }
  return out;
}

// The built-in types, then, in the default kernel, those that waited for it.
void Kernel::Impl::boot_types() {
  DefaultKernel& state = default_kernel_state();
  const std::lock_guard lock(state.mutex);
  if (state.kernel.load() != nullptr) {
    for (const BuiltIn& type : kBuiltIns) make_type(type.symbol, type.shortdesc, {});
    temp = self.type_by_symbol("M_TEMP");
    return;
  }
  for (const BuiltIn& type : kBuiltIns) register_type(type.object, type.symbol);
  temp = M_TEMP;
  for (malloc_type* type : state.static_types) register_type(type, {});
  state.kernel.store(&self);
}

// Nothing of the user's points into this kernel any more.
void Kernel::Impl::detach_static_types() {
  DefaultKernel& state = default_kernel_state();
  const std::lock_guard lock(state.mutex);
  if (state.kernel.load() == &self) state.kernel.store(nullptr);
  for (TypeRecord& record : records)
    if (!record.owned && record.registered) reset(record.type);
}

Kernel* Kernel::default_kernel() { return default_kernel_state().kernel.load(); }

malloc_type& Kernel::define_type(std::string_view symbol, std::string_view shortdesc,
                                 std::string_view longdesc) {
  return impl_->make_type(symbol, shortdesc, longdesc);
}

void Kernel::malloc_init(malloc_type* mtp) {
  at_boundary(
      *this, KernelFunction::malloc_init, [&] { impl_->register_type(mtp, {}); }, mtp);
}
void Kernel::malloc_uninit(malloc_type* mtp) {
  at_boundary(
      *this, KernelFunction::malloc_uninit, [&] { impl_->unregister_type(mtp); }, mtp);
}

malloc_type* Kernel::type(std::string_view shortdesc) {
  const std::lock_guard lock(impl_->malloc_mtx);
  for (malloc_type* mtp = impl_->kmemstatistics; mtp != nullptr; mtp = mtp->ks_next)
    if (shortdesc == mtp->ks_shortdesc) return mtp;
  return nullptr;
}

malloc_type* Kernel::type_by_symbol(std::string_view symbol) {
  const std::lock_guard lock(impl_->malloc_mtx);
  for (auto record = impl_->registered.rbegin(); record != impl_->registered.rend(); ++record)
    if ((*record)->symbol == symbol) return (*record)->type;
  return nullptr;
}

std::string_view Kernel::symbol(const malloc_type& mtp) const {
  const std::lock_guard lock(impl_->malloc_mtx);
  auto known = impl_->by_type.find(&mtp);
  return known == impl_->by_type.end() ? std::string_view{} : known->second->symbol;
}

std::vector<malloc_type*> Kernel::types() const {
  const std::lock_guard lock(impl_->malloc_mtx);
  std::vector<malloc_type*> out;
  for (const TypeRecord* record : impl_->registered) out.push_back(record->type);
  return out;
}

// The kernel's own defects with a list that shrinks meanwhile cannot arise: what is copied is what
// is passed on.
void Kernel::malloc_type_list(const std::function<void(malloc_type*)>& function) {
  malloc_type* const temp = impl_->temp;
  std::vector<malloc_type*> copied;
  while (true) {
    std::size_t count;
    {
      const std::lock_guard lock(impl_->malloc_mtx);
      count = impl_->kmemcount;
    }
    void* const array = malloc(count * sizeof(malloc_type*), temp, M_WAITOK);
    {
      const std::lock_guard lock(impl_->malloc_mtx);
      if (impl_->kmemcount <= count)
        for (malloc_type* mtp = impl_->kmemstatistics; mtp != nullptr; mtp = mtp->ks_next)
          copied.push_back(mtp);
    }
    if (!copied.empty()) {
      for (malloc_type* mtp : copied) function(mtp);
      free(array, temp);
      return;
    }
    free(array, temp);  // the list grew meanwhile
  }
}

TypeStats Kernel::type_stats(const malloc_type& mtp) const { return impl_->stats_of(mtp); }

void Kernel::add_history(malloc_type& mtp, const TypeStats& history) {
  check_type(*impl_, &mtp, "add_history");
  const auto blocks = static_cast<std::int64_t>(history.numallocs - history.numfrees);
  const auto bytes = static_cast<std::int64_t>(history.memalloced - history.memfreed);
  note_counted(*impl_, &mtp, blocks, bytes);
  note_manual(*impl_, &mtp, blocks, bytes);
  Cpu& cpu = impl_->cpus->cpu(0);
  impl_->cpus->run_on_cpu(cpu, [&] {
    malloc_type_stats& stats = impl_->line_to_count(cpu, mtp);
    owner_add(stats.mts_memalloced, history.memalloced);
    owner_add(stats.mts_memfreed, history.memfreed);
    owner_add(stats.mts_numallocs, history.numallocs);
    owner_add(stats.mts_numfrees, history.numfrees);
    owner_add(stats.mts_size, history.size_mask & ~stats.mts_size);
  });
}

std::vector<Leak> Kernel::leaks() const {
  std::vector<Leak> out;
  for (const malloc_type* mtp : types()) {
    const TypeStats stats = type_stats(*mtp);
    const auto allocations = static_cast<std::int64_t>(stats.numallocs - stats.numfrees);
    const auto bytes = static_cast<std::int64_t>(stats.memalloced - stats.memfreed);
    if (allocations > 0 || bytes > 0) out.push_back({mtp, allocations, bytes});
  }
  return out;
}

}  // namespace dtmalloc

extern "C" {

void kern_static_type_register(malloc_type* mtp) {
  dtmalloc::DefaultKernel& state = dtmalloc::default_kernel_state();
  const std::lock_guard lock(state.mutex);
  state.static_types.push_back(mtp);
  if (mtp->ks_mti.mti_stats == nullptr) dtmalloc::mark_registered(mtp, false);
  if (dtmalloc::Kernel* kernel = state.kernel.load()) kernel->malloc_init(mtp);
}

void kern_static_type_unregister(malloc_type* mtp) {
  dtmalloc::DefaultKernel& state = dtmalloc::default_kernel_state();
  const std::lock_guard lock(state.mutex);
  std::erase(state.static_types, mtp);
  dtmalloc::Kernel* kernel = state.kernel.load();
  if (kernel != nullptr && mtp->ks_mti.mti_stats != nullptr) kernel->malloc_uninit(mtp);
}
}
