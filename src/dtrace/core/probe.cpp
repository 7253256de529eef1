// SPDX-License-Identifier: BSD-2-Clause
// Firing a probe: the hot side of the framework.
// Counterpart:  dtrace.c (dtrace_probe)
// Locking:      runs inside the critical section of the CPU it fires on; takes no lock, allocates
//               nothing. (The first firing on a CPU that has just joined makes that CPU's state.)
//               Only panic() throws.
#include <algorithm>
#include <cstring>

#include "dtrace/core/consumer.hpp"
#include "dtrace/core/framework.hpp"
#include "dtrace/core/stack.hpp"

namespace dtmalloc::dtrace {
namespace {

constexpr std::uint64_t kUserRegisters = 19 + 28;  // those of i386's numbers, and amd64's own

std::uint64_t argument(const DifState& state, const Firing& firing, std::uint64_t index) {
  const Probe& probe = *firing.ecb->probe;
  const std::uint64_t value =
      index < firing.argument_count
          ? firing.arguments[index]
          : probe.provider->ops->getargval(probe.id, probe.parg, static_cast<int>(index));
  if (index >= 32 || (probe.pointer_arguments >> index & 1) == 0) return value;
  return state.addresses->to_simulated(reinterpret_cast<const void*>(value));
}

std::uint64_t stamp(Firing& firing) {
  if (!firing.stamped) {
    firing.stamped = true;
    firing.timestamp = firing.cpu->machine->clock().now();
  }
  return firing.timestamp;
}

// Whose variables self-> means: the thread's, in interrupt context those of its CPU.
std::uint64_t thread_key(const Firing& firing) {
  constexpr std::uint64_t kInterrupt = std::uint64_t{1} << 63;
  const SimThread* thread = firing.thread;
  if (firing.interrupt || thread == nullptr || thread->intr_nesting != 0) {
    return kInterrupt | static_cast<std::uint64_t>(firing.cpu->id);
  }
  return static_cast<std::uint64_t>(thread->tid);
}

std::uint64_t load_variable(DifState& state, std::uint32_t id, std::uint64_t index) {
  Firing& firing = *static_cast<Firing*>(state.owner);
  const Probe& probe = *firing.ecb->probe;
  switch (id) {
    case kVarArgs:
      return argument(state, firing, index);
    case kVarThread:
      return thread_key(firing);
    case kVarCurthread:
      return firing.thread != nullptr ? show_thread(state, *firing.thread) : 0;
    case kVarTimestamp:
      return stamp(firing);
    case kVarWalltimestamp:
      return static_cast<std::uint64_t>(firing.cpu->machine->clock().wall());
    case kVarVtimestamp:
      return firing.thread != nullptr ? firing.thread->run_time : 0;
    case kVarEpid:
      return firing.ecb->epid;
    case kVarId:
      return probe.id;
    case kVarProbeprov:
      return probe.provider_name.address;
    case kVarProbemod:
      return probe.module.address;
    case kVarProbefunc:
      return probe.function.address;
    case kVarProbename:
      return probe.name.address;
    case kVarCpu:
      return static_cast<std::uint64_t>(firing.cpu->id);
    case kVarPid:
      return static_cast<std::uint64_t>(firing.thread != nullptr ? firing.thread->pid : 0);
    case kVarPpid:
      return static_cast<std::uint64_t>(firing.thread != nullptr ? firing.thread->ppid : 0);
    case kVarTid:
      return static_cast<std::uint64_t>(firing.thread != nullptr ? firing.thread->tid : 0);
    case kVarUid:
      return static_cast<std::uint64_t>(firing.thread != nullptr ? firing.thread->uid : 0);
    case kVarGid:
      return static_cast<std::uint64_t>(firing.thread != nullptr ? firing.thread->gid : 0);
    case kVarExecname:
      return text_to_scratch(state, firing.thread != nullptr
                                        ? std::string_view(firing.thread->execname)
                                        : std::string_view());
    case kVarStackdepth:
      return stack_of(firing, nullptr, 0);
    case kVarCaller:
      return caller_of(firing);
    case kVarZonename:
      return text_to_scratch(state, "");
    case kVarExecargs:
      // The kernel's own processes have none.
      if (firing.thread == nullptr || firing.thread->pid == 0) return 0;
      return text_to_scratch(state, firing.thread->execname);
    case kVarJailname:
      return text_to_scratch(state, "0");  // prison0
    case kVarUregs:
      // A simulated thread has no user registers: those that exist are 0.
      if (index >= kUserRegisters) state.fault = Fault::illop;
      return 0;
    case kVarUcaller:
    case kVarUstackdepth:
    case kVarErrno:
    case kVarJid:
      return 0;
    default:
      if (id >= kVarArg0 && id <= kVarArg9) return argument(state, firing, id - kVarArg0);
      state.fault = Fault::illop;
      return 0;
  }
}

// The string at a simulated address, at most `size` bytes of it with its NUL. False: a fault.
bool copy_string(DifState& state, std::uint64_t address, std::byte* to, std::uint32_t size,
                 std::uint32_t* length) {
  std::uint32_t done = 0;
  while (done < size) {
    const void* host = nullptr;
    const std::size_t readable = readable_from(state, address + done, &host);
    if (readable == 0) {
      state.fault = Fault::badaddr;
      state.fault_address = address + done;
      return false;
    }
    const std::size_t most = std::min<std::size_t>(readable, size - done);
    const std::size_t count = copy_text(state, address + done, host, to + done, most);
    done += static_cast<std::uint32_t>(count);
    if (to[done - 1] == std::byte{0}) break;
  }
  *length = done;
  return true;
}

bool copy_bytes(DifState& state, std::uint64_t address, std::byte* to, std::uint32_t size) {
  std::uint32_t done = 0;
  while (done < size) {
    const void* host = nullptr;
    const std::size_t readable = readable_from(state, address + done, &host);
    if (readable == 0) {
      state.fault = Fault::badaddr;
      state.fault_address = address + done;
      return false;
    }
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(readable, size - done));
    copy_readable(state, address + done, host, to + done, count);
    done += count;
  }
  return true;
}

// CPUs that note at the same time may lose one.
void note_most(std::atomic<std::size_t>& most, std::size_t number) {
  if (number > most.load(std::memory_order_relaxed)) most.store(number, std::memory_order_relaxed);
}

// A stack or a user's address, as records and keys hold them: `size` bytes.
void copy_form(const Firing& firing, ValueForm form, std::uint64_t value, std::byte* to,
               std::uint32_t size) {
  std::memset(to, 0, size);
  const auto pid = static_cast<std::uint64_t>(firing.thread != nullptr ? firing.thread->pid : 0);
  switch (form) {
    case ValueForm::stack: {
      const std::size_t depth = stack_of(firing, to, size / 8);
      if (depth > size / 8 && size / 8 == firing.ecb->consumer->config.stackframes)
        note_most(firing.ecb->cut, depth);
      break;
    }
    case ValueForm::ustack:
      std::memcpy(to, &pid, 8);
      break;
    default:
      std::memcpy(to, &pid, 8);
      std::memcpy(to + 8, &value, 8);
      break;
  }
}

enum class Copied : std::uint8_t { yes, fault, too_long };

// What the pair at `pair` refers to: its length, then its bytes.
Copied copy_memory(DifState& state, std::uint64_t pair, std::byte* to, std::uint32_t size) {
  std::uint64_t reference[2];  // address, length
  if (!copy_bytes(state, pair, reinterpret_cast<std::byte*>(reference), sizeof reference)) {
    return Copied::fault;
  }
  const std::uint64_t length = reference[1];
  if (length > size - sizeof length) return Copied::too_long;
  std::memcpy(to, &length, sizeof length);
  to += sizeof length;
  if (!copy_bytes(state, reference[0], to, static_cast<std::uint32_t>(length))) {
    return Copied::fault;
  }
  std::memset(to + length, 0, size - sizeof length - length);
  return Copied::yes;
}

bool may_fire(EcbRole role, Activity activity) {
  switch (role) {
    case EcbRole::begin:
      return activity == Activity::warmup;
    case EcbRole::end:
      return activity == Activity::cooldown;
    case EcbRole::error:
    case EcbRole::hidden_error:
      return activity == Activity::warmup || activity == Activity::draining ||
             activity == Activity::cooldown;
    case EcbRole::normal:
      break;
  }
  return false;
}

}  // namespace

static void learn(FiringLine& line, std::uint64_t tag, ProbeId id, const ChainEntry& entry) {
  line = {};
  line.tag = tag;
  line.context = entry.context;
  line.id = id;
  line.fire = entry.fire;
  line.entry = &entry;
}

void fire_chain(const ProbeFiring& head, std::uintptr_t arg0, std::uintptr_t arg1,
                std::uintptr_t arg2, std::uintptr_t arg3, std::uintptr_t arg4) {
  auto& firing = *static_cast<FiringCpu*>(curcpu->dtrace);
  const auto* chain = reinterpret_cast<const Chain*>(line_of(head).entry);
  const ProbeId id = head.id;
  for (std::uint32_t i = 0; i < chain->count; ++i) {
    const ChainEntry& entry = chain->entries[i];
    FiringLine& of_entry = firing.line(entry.number);
    const std::uint64_t tag = acquire(firing.version) | entry.number;
    compiler_barrier();
    if (__builtin_expect(of_entry.tag != tag, 0)) learn(of_entry, tag, id, entry);
    of_entry.fire(of_entry, arg0, arg1, arg2, arg3, arg4);
  }
}

// What has no line here yet, or one that no longer counts. A CPU that joined after the framework
// was made learns of it here.
[[gnu::cold, gnu::noinline]] static void fire_anew(ProbeId id, std::uintptr_t arg0,
                                                   std::uintptr_t arg1, std::uintptr_t arg2,
                                                   std::uintptr_t arg3, std::uintptr_t arg4) {
  Cpu& cpu = *curcpu;
  auto* firing = static_cast<FiringCpu*>(cpu.dtrace);
  if (firing == nullptr) {
    if (cpu.machine == nullptr || cpu.machine->cpu(0).dtrace == nullptr) return;
    firing = static_cast<FiringCpu*>(cpu.machine->cpu(0).dtrace)->framework->join(cpu);
    cpu.dtrace = firing;
    if (firing == nullptr) return;
  }
  const std::uint64_t tag = firing->version.load(std::memory_order_acquire) | id;
  if (id >= firing->size.load(std::memory_order_acquire)) return;
  const Chain* chain =
      firing->slots.load(std::memory_order_acquire)[id].load(std::memory_order_acquire);
  if (chain == nullptr) return;
  FiringLine& line = firing->line(id);
  learn(line, tag, id, chain->head);
  line.fire(line, arg0, arg1, arg2, arg3, arg4);
}

// Saves no register and moves no argument; ends in a tail call.
void Framework::probe_fire(ProbeId id, std::uintptr_t arg0, std::uintptr_t arg1,
                           std::uintptr_t arg2, std::uintptr_t arg3, std::uintptr_t arg4) {
  auto* firing = static_cast<FiringCpu*>(curcpu->dtrace);
  if (__builtin_expect(firing == nullptr, 0)) return fire_anew(id, arg0, arg1, arg2, arg3, arg4);
  FiringLine& line = firing->line(id);
  if (__builtin_expect(line.tag != (acquire(firing->version) | id), 0)) {
    return fire_anew(id, arg0, arg1, arg2, arg3, arg4);
  }
  compiler_barrier();
  line.fire(line, arg0, arg1, arg2, arg3, arg4);
}

void Framework::Impl::fire_on(Cpu& cpu, SimThread* thread, ProbeId id,
                              const std::uint64_t* arguments) {
  const ProbeTable* now = table.load(std::memory_order_acquire);
  const Chain* chain = id < now->size ? now->slots[id].load(std::memory_order_acquire) : nullptr;
  for (std::uint32_t i = 0; chain != nullptr && i < chain->count; ++i) {
    const ChainEntry& entry = chain->entries[i];
    if (entry.ecb == nullptr) {
      entry.fire({entry.context, id}, arguments[0], arguments[1], arguments[2], arguments[3],
                 arguments[4]);
      continue;
    }
    Firing firing;
    firing.cpu = &cpu;
    firing.thread = thread;
    firing.interrupt = true;
    firing.arguments = arguments;
    firing.argument_count = 5;
    entry.ecb->first_tokens ? entry.consumer->fire_first(*entry.ecb, firing)
                            : entry.consumer->fire(*entry.ecb, firing);
  }
}

void Framework::Impl::fire_for(Consumer& consumer, ProbeId id, Cpu& cpu, SimThread* thread,
                               const std::uint64_t* arguments) {
  const ProbeTable* now = table.load(std::memory_order_acquire);
  if (id >= now->size) return;
  const Chain* chain = now->slots[id].load(std::memory_order_acquire);
  if (chain == nullptr) return;
  for (std::uint32_t i = 0; i < chain->count; ++i) {
    const ChainEntry& entry = chain->entries[i];
    if (entry.ecb == nullptr) {
      entry.fire({entry.context, id}, arguments[0], arguments[1], arguments[2], arguments[3],
                 arguments[4]);
    } else if (entry.consumer == &consumer) {
      Firing firing;
      firing.cpu = &cpu;
      firing.thread = thread;
      firing.arguments = arguments;
      firing.argument_count = 6;
      entry.ecb->first_tokens ? consumer.fire_first(*entry.ecb, firing)
                              : consumer.fire(*entry.ecb, firing);
    }
  }
}

// A run-time error: fires dtrace:::ERROR for this consumer.
[[gnu::cold, gnu::noinline]] void Consumer::fault(const Ecb& ecb, Firing& firing,
                                                  ConsumerCpu& state, std::uint32_t action) {
  if (ecb.role == EcbRole::error || ecb.role == EcbRole::hidden_error) {
    error_drops_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  DifState& dif = state.dif;
  const std::uint64_t arguments[6] = {
      cookie_,
      ecb.epid,
      action,
      static_cast<std::uint64_t>(static_cast<std::int64_t>(dif.fault_offset)),
      static_cast<std::uint64_t>(dif.fault),
      dif.fault_address,
  };
  // ERROR is a firing of its own; what this one has yet to take apart waits.
  const std::uint32_t at = dif.strtok_at;
  const std::uint32_t end = dif.strtok_end;
  std::byte* const text = dif.strtok_text;
  if (text != nullptr) dif.strtok_text += dif.strsize;
  framework_.fire_for(*this, framework_.error, *firing.cpu, firing.thread, arguments);
  dif.strtok_text = text;
  dif.strtok_at = at;
  dif.strtok_end = end;
}

// Builds the key behind the record and adds to its element. False: a fault; state.fault_action says
// in which action.
bool Consumer::aggregate(const Step& step, ConsumerCpu& state, std::byte* tuple, QuickMemo* memo) {
  DifState& dif = state.dif;
  std::uint32_t size = 0;
  std::uint32_t action = step.index + 1;  // the hidden id comes first
  for (const KeyStep& key : step.keys) {
    const std::uint64_t value = run(*key.dif, dif);
    bool good = dif.fault == Fault::none;
    if (key.desc.by_ref && key.desc.form != ValueForm::plain) {
      if (good) {
        copy_form(*static_cast<const Firing*>(dif.owner), key.desc.form, value, tuple + size,
                  key.size);
      }
      size += key.size;
    } else if (!key.desc.by_ref) {
      std::memcpy(tuple + size, &value, key.size);
      size += key.size;
    } else if (good && key.desc.userland) {
      dif.fault = Fault::badaddr;
      dif.fault_address = value;
      good = false;
    } else if (good && key.desc.is_string) {
      std::uint32_t length = 0;
      good = copy_string(dif, value, tuple + size, key.size, &length);
      size += length;
    } else if (good) {
      good = copy_bytes(dif, value, tuple + size, key.size);
      size += key.size;
    }
    if (!good) {
      state.fault_action = action;
      return false;
    }
    ++action;
  }
  std::uint64_t increment = 1;
  if (step.increment != nullptr) {
    increment = run(*step.increment, dif);
    if (dif.fault != Fault::none) {
      state.fault_action = action;
      return false;
    }
    ++action;
  }
  std::uint64_t value = 0;
  if (step.argument != nullptr) {
    value = run(*step.argument, dif);
    if (dif.fault != Fault::none) {
      state.fault_action = action;
      return false;
    }
  }
  AggBuffer::Hint* hint = nullptr;
  if (memo != nullptr) {
    hint = &memo->hint;
    memo->memory = 0;
  }
  std::int64_t* data = state.aggregations.find(step.aggregation, tuple, size, hint);
  if (data != nullptr) {
    aggregate_value(step.aggregation, data, static_cast<std::int64_t>(value),
                    static_cast<std::int64_t>(increment));
  }
  return true;
}

// What the interpreter sees of a clause whose record begins at `start`.
void Consumer::prepare(const Ecb& ecb, Firing& firing, ConsumerCpu& state, std::size_t start) {
  const PrincipalBuffer& buffer = state.buffer;
  firing.ecb = &ecb;
  firing.stamped = false;
  DifState& dif = state.dif;
  dif.owner = &firing;
  dif.variable = &load_variable;
  dif.fault = Fault::none;
  dif.fault_address = 0;
  dif.fault_offset = -1;
  dif.scratch_used = 0;
  const std::size_t scratch = (start + ecb.needed + 7) & ~std::size_t{7};
  dif.scratch = buffer.active + scratch;
  dif.scratch_size = scratch < buffer.size ? buffer.size - scratch : 0;
}

template <void (Consumer::*Fire)(Ecb&, Firing&)>
static void fire_clause(Ecb& ecb, std::uintptr_t arg0, std::uintptr_t arg1, std::uintptr_t arg2,
                        std::uintptr_t arg3, std::uintptr_t arg4) {
  const std::uint64_t arguments[5] = {arg0, arg1, arg2, arg3, arg4};
  Firing firing;
  firing.cpu = curcpu;
  firing.thread = curcpu->thread;
  firing.arguments = arguments;
  firing.argument_count = 5;
  (ecb.consumer->*Fire)(ecb, firing);
}

void Consumer::fire_callback(const ProbeFiring& firing, std::uintptr_t arg0, std::uintptr_t arg1,
                             std::uintptr_t arg2, std::uintptr_t arg3, std::uintptr_t arg4) {
  fire_clause<&Consumer::fire>(*line_of(firing).entry->ecb, arg0, arg1, arg2, arg3, arg4);
}

void Consumer::fire_first_callback(const ProbeFiring& firing, std::uintptr_t arg0,
                                   std::uintptr_t arg1, std::uintptr_t arg2, std::uintptr_t arg3,
                                   std::uintptr_t arg4) {
  fire_clause<&Consumer::fire_first>(*line_of(firing).entry->ecb, arg0, arg1, arg2, arg3, arg4);
}

// Room for a record that the buffer's limit does not grant, and an answer to who wanted to know.
// False: the clause does not run.
[[gnu::cold, gnu::noinline]] bool Consumer::make_room(const Ecb& ecb, PrincipalBuffer& buffer,
                                                      std::size_t* start) {
  if (buffer.answer()) {
    Clock& clock = framework_.cpus.clock();
    clock.rouse(watch_);
    if (clock.now() > watch_.deadline.load(std::memory_order_relaxed)) {
      become(Activity::killed);
      return false;
    }
  }
  return buffer.reserve(ecb.needed, ecb.alignment, record_sizes(), start);
}

void Consumer::fire_first(Ecb& ecb, Firing& firing) {
  if (activity() == Activity::inactive) return;
  if (ConsumerCpu* state = cpu_state(*firing.cpu); state != nullptr) start_firing(state->dif);
  fire(ecb, firing);
}

void Consumer::fire(Ecb& ecb, Firing& firing) {
  const Activity now = activity_.load(std::memory_order_acquire);
  if (__builtin_expect(now != Activity::active, 0)) {
    if (!may_fire(ecb.role, now)) return;
  }
  ConsumerCpu* found = cpu_state(*firing.cpu);
  if (found == nullptr) return;
  ConsumerCpu& state = *found;
  PrincipalBuffer& buffer = state.buffer;
  std::size_t start = align_record(buffer.used, ecb.alignment);
  std::byte* scratch = nullptr;  // of policies fill and ring
  if (__builtin_expect(start + ecb.needed > buffer.limit.load(std::memory_order_relaxed), 0)) {
    if (!make_room(ecb, buffer, &start)) return;
    if (buffer.policy != BufferPolicy::switch_) scratch = buffer.other;
  }
  RecordSpace* space = &buffer;
  std::byte* record = buffer.active + start;
  prepare(ecb, firing, state, start);
  DifState& dif = state.dif;
  if (__builtin_expect(scratch != nullptr, 0)) {
    dif.scratch = scratch;
    dif.scratch_size = buffer.size;
  }
  std::uint64_t recorded_at = 0;
  if (ecb.size != 0) {
    recorded_at = stamp(firing);
    if (__builtin_expect(recorded_at > watch_.deadline.load(std::memory_order_relaxed), 0)) {
      become(Activity::killed);
      return;
    }
  }
  if (ecb.predicate != nullptr) {
    const std::uint64_t holds = run(*ecb.predicate, dif);
    if (dif.fault != Fault::none) return fault(ecb, firing, state, 0);
    if (holds == 0) return;
  }
  for (const Step& step : ecb.steps) {
    std::uint64_t value = step.constant;
    if (step.dif != nullptr) {
      value = run(*step.dif, dif);
      if (dif.fault != Fault::none) return fault(ecb, firing, state, step.index);
    }
    std::byte* place = record + step.offset;
    switch (step.kind) {
      case StepKind::eval:
        break;
      case StepKind::argument:
        value = firing.arguments[step.constant];
        [[fallthrough]];
      case StepKind::constant:
      case StepKind::store:
        std::memcpy(place, &value, std::min<std::uint32_t>(step.size, 8));
        break;
      case StepKind::store_bytes:
        if (!copy_bytes(dif, value, place, step.size)) {
          return fault(ecb, firing, state, step.index);
        }
        break;
      case StepKind::store_string: {
        std::uint32_t length = 0;
        if (!copy_string(dif, value, place, step.size, &length)) {
          return fault(ecb, firing, state, step.index);
        }
        std::memset(place + length, 0, step.size - length);
        break;
      }
      case StepKind::stack:
        copy_form(firing, ValueForm::stack, value, place, step.size);
        break;
      case StepKind::ustack:
        copy_form(firing, ValueForm::ustack, value, place, step.size);
        break;
      case StepKind::user_address:
        copy_form(firing, ValueForm::uaddr, value, place, step.size);
        break;
      case StepKind::store_memory:
        switch (copy_memory(dif, value, place, step.size)) {
          case Copied::yes:
            break;
          case Copied::fault:
            return fault(ecb, firing, state, step.index);
          case Copied::too_long:
            ++buffer.drops;
            return;
        }
        break;
      case StepKind::exit: {
        std::memcpy(place, &value, step.size);
        Activity current = activity_.load(std::memory_order_acquire);
        if (current == Activity::cooldown) break;
        do {
          // Another exit() came first: this clause and its record do not count.
          if (current != Activity::active && current != Activity::warmup) return;
        } while (!activity_.compare_exchange_weak(current, Activity::draining,
                                                  std::memory_order_acq_rel));
        framework_.forget_lines();
        break;
      }
      case StepKind::aggregate:
        if (!aggregate(step, state, record + ecb.tuple,
                       step.has_memo ? memo_at(state, step.memo) : nullptr)) {
          return fault(ecb, firing, state, state.fault_action);
        }
        break;
      case StepKind::speculate:
        record = speculate(ecb, state, static_cast<std::uint32_t>(value), &space, &start);
        if (record == nullptr) return;
        break;
      default:
        if (!act(step, value, ecb, firing, state)) return fault(ecb, firing, state, step.index);
        break;
    }
  }
  if (ecb.size == 0) return;
  std::memset(space->active + space->used, 0, start - space->used);
  std::memcpy(record, &ecb.epid, 4);
  std::memcpy(record + 4, &recorded_at, 8);
  space->used = start + ecb.size;
}

}  // namespace dtmalloc::dtrace
