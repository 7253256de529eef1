// SPDX-License-Identifier: BSD-2-Clause
// Runs the statements of a workload on a kernel.
// Locking:      see runner.hpp
// Differs:      a thread that needs a block nobody has set sleeps on the block's name

#include <algorithm>
#include <bit>
#include <charconv>

#include "vm/vm.hpp"
#include "workload/runner.hpp"

namespace dtmalloc::workload {
namespace {

constexpr std::atomic<bool> kNoAttention{false};

// Leaves the critical section, interrupt or no-sleep region that it entered.
class ContextGuard {
 public:
  ContextGuard(Thread& thread, OpKind kind) : thread_(thread), kind_(kind) {
    ++thread_.contexts;
    if (kind_ == OpKind::critical) {
      critical_enter();
    } else {
      ++counter();
    }
  }
  ~ContextGuard() noexcept(false) {  // a callout that is due at the end may panic
    --thread_.contexts;
    if (kind_ == OpKind::critical) {
      critical_exit();
    } else {
      --counter();
    }
  }
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;

 private:
  int& counter() {
    return kind_ == OpKind::interrupt ? thread_.self->intr_nesting : thread_.self->no_sleeping;
  }
  Thread& thread_;
  OpKind kind_;
};

}  // namespace

Runner::State::State(const Workload& w, Kernel& k, RunHooks h)
    : workload(w),
      kernel(k),
      hooks(std::move(h)),
      cpus(k.cpus()),
      clock(k.cpus().clock()),
      op_cost(k.config().op_cost),
      attention(hooks.attention != nullptr ? hooks.attention : &kNoAttention),
      main{.random = Random(k.config().seed), .self = &k.cpus().current_thread()},
      names(w.names.size()),
      types(w.types.size(), nullptr),
      zones(w.zones.size(), nullptr),
      quick(w.bodies.size()),
      malloc_function(hooks.no_probe_sites ? kern_malloc_nohooks : kern_malloc),
      free_function(hooks.no_probe_sites ? kern_free_nohooks : kern_free) {
  if (clock.is_real()) unusual |= kRealClock;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (w.types[i].builtin) types[i] = k.type_by_symbol(w.types[i].symbol);
  }
  // Their program counters are in the order of the text, whatever runs first.
  for (const std::vector<std::string>& stack : w.sites)
    for (const std::string& site : stack) k.vm().call_sites.pc(site);
}

// --- boot

void Runner::State::type_statement(const Op& op) {
  const TypeDecl& type = workload.types[op.type];
  malloc_type*& mtp = types[op.type];
  if (mtp != nullptr) {
    begin_ledger();
    // One of the kernel's own takes this place in the order of registration.
    kernel.malloc_uninit(mtp);
    kernel.malloc_init(mtp);
    return;
  }
  mtp = &kernel.define_type(type.symbol, type.shortdesc, type.longdesc);
}

Result<void> Runner::State::history(const Op& op) {
  const History& h = workload.histories[op.detail];
  TypeStats stats;
  stats.numallocs = h.allocs.value_or(0);
  stats.memalloced = h.memalloced.value_or(0);
  stats.numfrees = h.frees.value_or(0);
  stats.memfreed = h.memfreed.value_or(0);
  const std::vector<std::uint32_t>& classes = kernel.classes();
  for (const std::uint32_t size : h.sizes) {
    std::size_t i = 0;
    while (i < classes.size() && classes[i] != size) ++i;
    if (i == classes.size()) {
      Diagnostic d = workload.diagnose(op, "WL_UNKNOWN_CLASS",
                                       "release " + std::to_string(kernel.release().version) +
                                           " has no size class " + std::to_string(size));
      for (const std::uint32_t known : classes) {
        d.expected += (d.expected.empty() ? "one of " : " ") + std::to_string(known);
      }
      return d;
    }
    stats.size_mask |= std::uint64_t{1} << i;
  }
  malloc_type* mtp = types[op.type];
  if (mtp == nullptr) {
    return workload.diagnose(op, "WL_UNREGISTERED_TYPE", "the type is not registered yet");
  }
  const TypeStats before = kernel.type_stats(*mtp);
  for (const auto member : {&TypeStats::numallocs, &TypeStats::memalloced, &TypeStats::numfrees,
                            &TypeStats::memfreed}) {
    std::uint64_t sum = 0;
    if (__builtin_add_overflow(before.*member, stats.*member, &sum))
      return workload.diagnose(op, "WL_RANGE", "the history of the type overflows 64 bits");
  }
  kernel.add_history(*mtp, stats);
  return {};
}

// --- blocks

Slot* Runner::State::find_indexed(Thread& thread, const Op& op, const BlockRef& ref) {
  NameStore& store = names[ref.name];
  const std::int64_t first = evaluate(thread, op, ref.first);
  if (ref.second == kNone && static_cast<std::uint64_t>(first) < store.dense.size())
    return &store.dense[static_cast<std::size_t>(first)];
  const std::int64_t second = ref.second == kNone ? 0 : evaluate(thread, op, ref.second);
  const auto found = store.sparse.find({first, second});
  return found == store.sparse.end() ? nullptr : &found->second;
}

std::string Runner::State::name_of(Thread& thread, const Op& op, const BlockRef& ref) {
  std::string text = workload.names[ref.name].text;
  if (ref.first == kNone) return text;
  text += '[' + std::to_string(evaluate(thread, op, ref.first));
  if (ref.second != kNone) text += ',' + std::to_string(evaluate(thread, op, ref.second));
  return text + ']';
}

void Runner::State::wait_for(Thread& thread, const Op& op, const BlockRef& ref) {
  const std::string name = name_of(thread, op, ref);
  if (alive <= 1 || thread.contexts != 0) {
    fail(op, "WL_UNSET_BLOCK", "the block " + name + " is not set at this point");
  }
  NameStore& store = names[ref.name];
  ++store.waiters;
  --alive;
  cpus.sleep_on(&store, "use of " + name, "the block to be set");
  if (ending()) throw RunEnd{};
}

Slot& Runner::State::make(Thread& thread, const Op& op, const BlockRef& ref) {
  NameStore& store = names[ref.name];
  const std::int64_t first = evaluate(thread, op, ref.first);
  if (ref.second == kNone) {
    const auto at = static_cast<std::uint64_t>(first);
    if (at < store.dense.size()) return store.dense[at];
    if (at == store.dense.size() && store.sparse.empty()) return store.dense.emplace_back();
  }
  const std::int64_t second = ref.second == kNone ? 0 : evaluate(thread, op, ref.second);
  return store.sparse[{first, second}];
}

void Runner::State::bring(Thread& thread, const Op& op, const BlockRef& ref, void* addr,
                          Index type) {
  Slot& slot = ref.first == kNone ? names[ref.name].scalar : make(thread, op, ref);
  slot.addr = addr;
  slot.type = type;
}

void Runner::State::unregistered(const Op& op, Index type) const {
  fail(op, "WL_UNREGISTERED_TYPE",
       "the type " + workload.types[type].symbol + " is not registered yet");
}

// --- operations

void Runner::State::go_to_own_cpu(Thread& thread, const Op& op) {
  const int id = own_cpu_of(op);
  if (thread.contexts != 0 && id != curcpu->id)
    fail(op, "WL_CONTEXT", "a thread cannot leave its CPU inside critical, interrupt or nosleep");
  cpus.move_to(id);
  thread.where.cpu = id;
}

void Runner::State::change_site(Thread& thread, Index site) {
  thread.site = site;
  if (site == kNone) {
    thread.self->call_sites.clear();
  } else {
    thread.self->call_sites = workload.sites[site];
  }
}

// Any allocation but that of step().
void Runner::State::allocate(Thread& thread, const Op& op) {
  // The drawn index is drawn once: evaluate it before the size only when it is set.
  malloc_type* mtp = type_of(op, op.type);
  std::uint64_t size = size_value(thread, op, op.value, "size");
  const MallocFlags flags = MallocFlags::from_bits(op.flags);
  void* addr = nullptr;
  switch (op.kind) {
    case OpKind::mallocarray: {
      const std::uint64_t count = size_value(thread, op, op.extra, "size");
      addr = kernel.mallocarray(size, count, mtp, flags);
      size *= count;
      break;
    }
    case OpKind::malloc_aligned:
      addr = kernel.malloc_aligned(size, size_value(thread, op, op.extra, "alignment"), mtp, flags);
      break;
    case OpKind::malloc_exec:
      addr = kernel.malloc_exec(size, mtp, flags);
      break;
    default:
      addr = place(thread, op, size, mtp);
  }
  put(thread, op, addr, size);
}

// An allocation that says where from. An array's size becomes that of the whole.
void* Runner::State::place(Thread& thread, const Op& op, std::uint64_t& size, malloc_type* mtp) {
  const Placement from = op.detail == kNone ? Placement{} : workload.placements[op.detail];
  const domainset set = to_domainset(from);
  const MallocFlags flags = MallocFlags::from_bits(op.flags);
  switch (op.kind) {
    case OpKind::malloc_domainset:
      return kernel.malloc_domainset(size, mtp, &set, flags);
    case OpKind::malloc_domainset_exec:
      return kernel.malloc_domainset_exec(size, mtp, &set, flags);
    case OpKind::malloc_domainset_aligned:
      return kernel.malloc_domainset_aligned(size, size_value(thread, op, op.extra, "alignment"),
                                             mtp, &set, flags);
    case OpKind::mallocarray_domainset: {
      const std::uint64_t count = size_value(thread, op, op.extra, "size");
      void* addr = kernel.mallocarray_domainset(size, count, mtp, &set, flags);
      size *= count;
      return addr;
    }
    default:
      break;
  }
  const std::uint64_t low = from.low.value_or(0);
  const std::uint64_t high = from.high.value_or(~std::uint64_t{0});
  const std::size_t align = from.align.value_or(kPageSize);
  const std::uint64_t boundary = from.boundary.value_or(0);
  return op.kind == OpKind::contigmalloc
             ? kernel.contigmalloc(size, mtp, flags, low, high, align, boundary)
             : kernel.contigmalloc_domainset(size, mtp, &set, flags, low, high, align, boundary);
}

void Runner::State::reallocate(Thread& thread, const Op& op) {
  Slot& source = get(thread, op, op.source);
  const Slot old = source;
  malloc_type* mtp = type_of(op, op.type);
  const std::uint64_t size = size_value(thread, op, op.value, "size");
  const MallocFlags flags = MallocFlags::from_bits(op.flags);
  const bool known = ending(old, op.type) != nullptr;
  void* addr = op.kind == OpKind::realloc ? kernel.realloc(old.addr, size, mtp, flags)
                                          : kernel.reallocf(old.addr, size, mtp, flags);
  if (known && owners != nullptr)
    reallocated(thread, op, source, old, addr, size);
  else
    put(thread, op, addr, size);
}

// The address at the statement's offset from a block. Only the arena has addresses to free.
void* Runner::State::shifted(Thread& thread, const Op& op, void* addr) {
  const std::int64_t offset = evaluate(thread, op, op.extra);
  const std::uint64_t from = kernel.addresses().to_simulated(addr);
  const std::uint64_t to = from + static_cast<std::uint64_t>(offset);
  const bool wraps = offset < 0 ? to > from : to < from;
  const void* host = from < AddressMap::kArena || from >= AddressMap::kData || wraps ||
                             to < AddressMap::kArena || to >= AddressMap::kData
                         ? nullptr
                         : kernel.addresses().to_host(to, 1);
  if (host == nullptr) {
    fail(op, "WL_RANGE",
         "the block's address + " + std::to_string(offset) + " lies outside the kernel's memory");
  }
  return const_cast<void*>(host);
}

// Any free but that of step().
void Runner::State::release(Thread& thread, const Op& op, const Slot& slot) {
  if (op.type == kNone && slot.type == kNone)
    fail(op, "WL_NO_TYPE",
         "the block came from a zone: it goes back with uma_zfree, or under a type");
  malloc_type* mtp = type_of(op, op.type == kNone ? slot.type : op.type);
  void* addr = slot.addr;
  Owners::Entry* ends = nullptr;
  if (op.extra.number != 0 || op.extra.expr != kNone) {
    begin_ledger();
    addr = shifted(thread, op, addr);
  } else {
    ends = ending(slot, op.type == kNone ? slot.type : op.type);
  }
  switch (op.kind) {
    case OpKind::free:
      free_function(addr, mtp);
      break;
    case OpKind::zfree:
      kernel.zfree(addr, mtp);
      break;
    default:
      kernel.contigfree(addr, kernel.block_size(addr), mtp);
  }
  if (ends != nullptr) ends->freed = event(thread, op);
}

void Runner::State::context(Thread& thread, const Op& op) {
  const ContextGuard guard(thread, op.kind);
  statements(thread, workload.bodies[op.body], 0);
}

void Runner::State::expect(Thread& thread, const Op& op) {
  const std::int64_t value = evaluate(thread, op, op.value);
  if (value != 0 || again) return;
  ++outcome.failed_expects;
  std::string message = "this does not hold";
  if (op.value.expr != kNone) {
    const std::string terms = explain(thread, op, op.value.expr);
    if (!terms.empty()) message += ": " + terms;
  }
  if (hooks.report) hooks.report(workload.diagnose(op, "WL_EXPECT", message));
}

void Runner::State::operation(Thread& thread, const Op& op) {
  switch (op.kind) {
    case OpKind::malloc:
    case OpKind::mallocarray:
    case OpKind::malloc_aligned:
    case OpKind::malloc_exec:
    case OpKind::contigmalloc:
    case OpKind::malloc_domainset:
    case OpKind::malloc_domainset_exec:
    case OpKind::malloc_domainset_aligned:
    case OpKind::mallocarray_domainset:
    case OpKind::contigmalloc_domainset:
      return allocate(thread, op);
    case OpKind::free:
    case OpKind::zfree:
    case OpKind::contigfree:
      return release(thread, op, get(thread, op, op.target));
    case OpKind::realloc:
    case OpKind::reallocf:
      return reallocate(thread, op);
    case OpKind::reclaim:
    case OpKind::zone:
    case OpKind::uma_zalloc:
    case OpKind::uma_zfree:
    case OpKind::zdestroy:
      return zone_operation(thread, op);
    case OpKind::repeat:
      return repeat(thread, op);
    case OpKind::critical:
    case OpKind::interrupt:
    case OpKind::nosleep:
      return context(thread, op);
    case OpKind::thread:
      return spawn(thread, op);
    case OpKind::expect:
      return expect(thread, op);
    case OpKind::type:
      return type_statement(op);
    case OpKind::history:
      return;  // the parser lets none through
    case OpKind::cpu: {
      const std::int64_t id = evaluate(thread, op, op.value);
      if (thread.contexts != 0) {
        fail(op, "WL_CONTEXT",
             "a thread cannot leave its CPU inside critical, interrupt or nosleep");
      }
      cpus.move_to(cpu_of(op, op.value, id));
      thread.where.cpu = curcpu->id;
      return;
    }
    case OpKind::wait:
      return wait(thread, op);
    case OpKind::join:
      return join(thread, op);
    case OpKind::unload: {
      malloc_type* mtp = type_of(op, op.type);
      const TypeStats s = kernel.type_stats(*mtp);
      if (static_cast<std::int64_t>(s.numallocs - s.numfrees) > 0 ||
          static_cast<std::int64_t>(s.memalloced - s.memfreed) > 0) {
        ++outcome.leaked_types;
      }
      begin_ledger();
      kernel.malloc_uninit(mtp);
      return;
    }
    case OpKind::sysctl:
      return sysctl(thread, op);
    case OpKind::poke:
      return poke(thread, op);
    case OpKind::load:
      begin_ledger();
      kernel.malloc_init(type_of(op, op.type));
      return;
  }
}

void Runner::State::after_unusual() {
  bool asked = false;
  if ((unusual & kRealClock) == 0) {
    asked = !clock.advance(op_cost);
  } else {
    clock.run_due();
  }
  if (threaded()) cpus.operation_done();
  if ((operations & kLookMask) == 0) asked = asked || clock.interrupted();
  if (asked || attention->load(std::memory_order_relaxed)) attend();
  if (ending()) throw RunEnd{};
}

void Runner::State::attend() {
  if (hooks.attend && !hooks.attend()) {
    outcome.stopped = true;
    end();
  }
  if (ending()) throw RunEnd{};
}

// What a load consists of costs no further call.
DTM_RUN_INLINE void Runner::State::run_op(Thread& thread, const Op& op) {
  set_site(thread, op.line, op.site);
  if (op.kind == OpKind::malloc) {
    malloc_type* mtp = type_of(op, op.type);
    const std::uint64_t size = size_value(thread, op, op.value, "size");
    put(thread, op, malloc_function(size, mtp, op.flags), size);
  } else if (op.kind == OpKind::free) {
    const Slot& slot = get(thread, op, op.target);
    const Index type = op.type == kNone ? slot.type : op.type;
    if (type != kNone && op.extra.number == 0 && op.extra.expr == kNone) {
      malloc_type* mtp = type_of(op, type);
      Owners::Entry* const ends = ending(slot, type);
      free_function(slot.addr, mtp);
      if (ends != nullptr) ends->freed = event(thread, op);
    } else {
      release(thread, op, slot);
    }
  } else {
    operation(thread, op);
  }
}

void Runner::State::perform(Thread& thread, const Op& op) {
  if (op.cpu != kSameCpu) {
    thread.self->line = op.line;
    go_to_own_cpu(thread, op);
  }
  run_op(thread, op);
}

void Runner::State::step(Thread& thread, const Op& op) {
  if (op.cpu == kSameCpu && log == nullptr) [[likely]]
    run_op(thread, op);
  else if (log == nullptr)
    perform(thread, op);
  else
    log->operation(*this, thread, op);
  ++operations;
  after_operation();
}

void Runner::State::statements(Thread& thread, const std::vector<Op>& ops, std::size_t from) {
  const Op* const end = ops.data() + ops.size();
  for (const Op* op = ops.data() + from; op != end; ++op) step(thread, *op);
}

// --- Runner

Runner::Runner(const Workload& workload, Kernel& kernel, RunHooks hooks)
    : state_(std::make_shared<State>(workload, kernel, std::move(hooks))) {}
Runner::~Runner() = default;

std::uint64_t Runner::operations() const { return state_->operations; }

void* Runner::block(std::string_view name) const {
  const Slot* slot = state_->slot(name);
  return slot == nullptr ? nullptr : slot->addr;
}

bool Runner::is_set(std::string_view name) const { return state_->slot(name) != nullptr; }

const Slot* Runner::State::slot(std::string_view name) const {
  const std::size_t bracket = name.find('[');
  std::int64_t indexes[2] = {};
  int arity = 0;
  if (bracket != name.npos) {
    const char* at = name.data() + bracket + 1;
    const char* const end = name.data() + name.size();
    while (arity < 2) {
      const auto [rest, error] = std::from_chars(at, end, indexes[arity]);
      if (error != std::errc{} || rest == end) return nullptr;
      ++arity;
      at = rest + 1;
      if (*rest != ',') break;
    }
    if (at != end || name.back() != ']') return nullptr;
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const NameDecl& decl = workload.names[i];
    if (decl.arity != arity || decl.text != name.substr(0, bracket)) continue;
    const NameStore& store = names[i];
    if (arity == 0) return store.scalar.is_set() ? &store.scalar : nullptr;
    const std::int64_t first = indexes[0];
    if (arity == 1 && first >= 0 && static_cast<std::uint64_t>(first) < store.dense.size())
      return &store.dense[static_cast<std::size_t>(first)];
    const auto found = store.sparse.find({first, indexes[1]});
    return found == store.sparse.end() ? nullptr : &found->second;
  }
  return nullptr;
}

Result<void> Runner::boot() {
  State& s = *state_;
  if (s.kernel.config().mode != RunMode::deterministic && !s.workload.threads.empty()) {
    Diagnostic d;
    d.tag = "WL_NOT_MODELLED";
    d.message = "threads of a workload in a parallel run are not modelled yet";
    return d;
  }
  const std::vector<Op>& ops = s.workload.bodies.at(0);
  for (std::size_t i = 0; i < s.workload.boot_statements(); ++i) {
    if (ops[i].kind == OpKind::type) {
      s.type_statement(ops[i]);
    } else if (ops[i].kind == OpKind::zone) {
      s.make_zone(ops[i]);
    } else if (auto entered = s.history(ops[i]); !entered) {
      return entered;
    }
  }
  auto checked = s.check();
  if (checked) s.notes();
  return checked;
}

Outcome Runner::State::guarded(const std::function<void()>& body) {
  live(main, body);
  if (threaded()) {
    try {
      end_all();
      cpus.join_all();
    } catch (const KernelPanic& panic) {
      // A run that was ended by force may leave threads that nobody can wake.
      if (!outcome.panic && !ending()) outcome.panic = panic;
    }
  }
  outcome.operations = operations;
  std::sort(outcome.panic_places.begin(), outcome.panic_places.end(),
            [](const ThreadPlace& a, const ThreadPlace& b) { return a.tid < b.tid; });
  return outcome;
}

Outcome Runner::run() {
  State& s = *state_;
  s.keep_owners();
  return s.guarded(
      [&s] { s.statements(s.main, s.workload.bodies.at(0), s.workload.boot_statements()); });
}

bool Runner::repeatable() const {
  const auto changes_names = [](const Op& op) {
    return op.kind == OpKind::type || op.kind == OpKind::zone || op.kind == OpKind::zdestroy ||
           op.kind == OpKind::load || op.kind == OpKind::unload;
  };
  const Workload& workload = state_->workload;
  const auto boot = static_cast<std::ptrdiff_t>(workload.boot_statements());
  return std::none_of(
      workload.bodies.begin(), workload.bodies.end(), [&](const std::vector<Op>& body) {
        const bool first = &body == &workload.bodies.front();
        return std::any_of(body.begin() + (first ? boot : 0), body.end(), changes_names);
      });
}

Outcome Runner::run_again() {
  State& s = *state_;
  for (NameStore& store : s.names) store = {};
  s.cpus.move_to(0);
  ++s.alive;
  s.again = true;
  return run();
}

}  // namespace dtmalloc::workload
