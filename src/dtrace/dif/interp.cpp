// SPDX-License-Identifier: BSD-2-Clause
// Runs verified objects: threaded code, one jump per instruction.
// Counterpart:  dtrace_dif_emulate
// Locking:      none; a state belongs to one CPU's critical section, but for the global variables
//               (DifState::globals)
// Invariants:   what verify() proves. Memory is read only where readable_from() allows and written
//               only in scratch and variables. Never allocates, never throws.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "dtrace/dif/dif_int.hpp"

namespace dtmalloc::dtrace {
namespace {

std::size_t within(std::uint64_t address, std::uint64_t base, const void* start, std::size_t size,
                   const void** host) {
  if (address < base || address - base >= size) return 0;
  *host = static_cast<const std::byte*>(start) + (address - base);
  return size - static_cast<std::size_t>(address - base);
}

// AddressMap::readable_from(), which is asked only where this CPU has not read before.
std::size_t kernel_from(const DifState& state, std::uint64_t address, const void** host) {
  if (state.addresses == nullptr) return 0;
  AddressMap::Readable& view = state.kernel_view;
  const std::uint64_t generation = state.addresses->generation();
  if (generation != state.kernel_generation || address - view.begin >= view.size) {
    view = state.addresses->readable_around(address);
    state.kernel_generation = generation;
  }
  return within(address, view.begin, view.host, view.size, host);
}

bool is_dynamic(const DifState& state, std::uint64_t address) {
  return state.dynamic != nullptr && address >= kDynamicBase && address < kConsumerEnd;
}

// Host address of `size` bytes that a program may write: allocated scratch and the bytes of
// variables.
std::byte* writable_at(DifState& state, std::uint64_t address, std::uint64_t size) {
  const void* host = nullptr;
  std::size_t room = within(address, kScratchBase, state.scratch, state.scratch_used, &host);
  if (room == 0) {
    room = within(address, kVariableBase, state.global_bytes, state.global_size, &host);
  }
  if (room == 0) room = within(address, kLocalBase, state.local_bytes, state.local_size, &host);
  if (room == 0 && is_dynamic(state, address)) room = state.dynamic->view(address, &host);
  if (room == 0 || room < size) {
    set_fault(state, Fault::badaddr, address);
    return nullptr;
  }
  return static_cast<std::byte*>(const_cast<void*>(host));
}

std::uint64_t load_shared(std::uint64_t* word) {
  return std::atomic_ref(*word).load(std::memory_order_relaxed);
}
void store_shared(std::uint64_t* word, std::uint64_t value) {
  std::atomic_ref(*word).store(value, std::memory_order_relaxed);
}

// This CPU's view of global bytes becomes what the CPUs share.
void fetch_bytes(DifState& state, std::size_t at, std::size_t size) {
  if (state.shared_bytes == nullptr) return;
  for (std::size_t i = at; i < at + size; ++i) {
    state.global_bytes[i] = std::atomic_ref(state.shared_bytes[i]).load(std::memory_order_relaxed);
  }
}
void fetch_string(DifState& state, std::size_t at) {
  if (state.shared_bytes == nullptr) return;
  std::byte* shared = state.shared_bytes + at;
  std::byte* view = state.global_bytes + at;
  for (std::uint32_t i = 0; i < state.strsize; ++i) {
    view[i] = std::atomic_ref(shared[i]).load(std::memory_order_relaxed);
    if (view[i] == std::byte{0}) break;
  }
}

// What was written at `to` is shared, if it is in this CPU's view of the global bytes.
void publish(DifState& state, const std::byte* to, std::size_t size) {
  if (state.shared_bytes == nullptr || to < state.global_bytes ||
      to >= state.global_bytes + state.global_size) {
    if (state.dynamic != nullptr) state.dynamic->publish(to, size);
    return;
  }
  std::byte* shared = state.shared_bytes + (to - state.global_bytes);
  for (std::size_t i = 0; i < size; ++i) {
    std::atomic_ref(shared[i]).store(to[i], std::memory_order_relaxed);
  }
}

// Whether words there are the kernel's, in which addresses are the host's.
bool is_kernel(const DifState& state, std::uint64_t address) {
  return (address < kScratchBase || address >= kConsumerEnd) &&
         address - state.thread_address >= state.thread_size;
}

// A word of kernel memory as D sees it.
std::uint64_t shown_word(const AddressMap& addresses, std::uint64_t word) {
  // No process has memory below or above: most numbers and texts are not even looked for.
  constexpr std::uint64_t kLowest = 0x10000;
  constexpr unsigned kAddressBits = 56;
  if (word < kLowest || word >> kAddressBits != 0) return word;
  const std::uint64_t simulated = addresses.to_simulated(reinterpret_cast<const void*>(word));
  return simulated == AddressMap::kNoAddress ? word : simulated;
}

// Bytes from `at` to the end of its aligned word.
std::size_t to_next_word(const std::byte* at) {
  return 8 - reinterpret_cast<std::uintptr_t>(at) % 8;
}

std::size_t within_text(const void* text, const void* end) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(end) -
                                  static_cast<const std::byte*>(text));
}

template <typename T>
bool load(DifState& state, std::uint64_t address, std::uint64_t* value) {
  const std::byte* bytes = bytes_at(state, address, sizeof(T));
  if (bytes == nullptr) return false;
  T raw;
  if (sizeof(T) == 8 && reinterpret_cast<std::uintptr_t>(bytes) % 8 == 0) {
    std::memcpy(value, bytes, sizeof *value);
    if (is_kernel(state, address) && state.addresses != nullptr) {
      *value = shown_word(*state.addresses, *value);
    }
    return true;
  }
  copy_readable(state, address, bytes, reinterpret_cast<std::byte*>(&raw), sizeof raw);
  *value = static_cast<std::uint64_t>(static_cast<std::int64_t>(raw));
  if constexpr (!std::is_signed_v<T>) *value = raw;
  return true;
}

template <typename T>
bool store(DifState& state, std::uint64_t address, std::uint64_t value) {
  if (address % sizeof(T) != 0) return set_fault(state, Fault::badalign, address);
  std::byte* bytes = writable_at(state, address, sizeof(T));
  if (bytes == nullptr) return false;
  const T raw = static_cast<T>(value);
  std::memcpy(bytes, &raw, sizeof raw);
  publish(state, bytes, sizeof raw);
  return true;
}

// A kernel pointer; one that is not in a registered range has no address.
bool load_pointer(DifState& state, std::uint64_t address, std::uint64_t* value) {
  const std::byte* bytes = bytes_at(state, address, sizeof *value);
  if (bytes == nullptr) return false;
  std::memcpy(value, bytes, sizeof *value);
  if (is_kernel(state, address) && state.addresses != nullptr) {
    *value = state.addresses->to_simulated(reinterpret_cast<const void*>(*value));
  }
  return true;
}

// NULL stays NULL; else the text is copied, NUL included when it fits.
bool store_string(DifState& state, std::uint64_t value, std::uint64_t* variable, std::byte* bytes) {
  if (value == 0) {
    store_shared(variable, 0);
    return true;
  }
  std::string_view text;
  if (!string_at(state, value, &text)) return false;
  std::memmove(bytes, text.data(), text.size());
  if (text.size() < state.strsize) bytes[text.size()] = std::byte{0};
  publish(state, bytes, std::min<std::size_t>(text.size() + 1, state.strsize));
  store_shared(variable, 1);
  return true;
}

// Bytes to where a program may write; `text`: at most so many, up to and with a NUL.
bool copy_bytes(DifState& state, std::uint64_t from, std::uint64_t to, std::uint64_t size,
                bool text) {
  if (size == 0) return true;
  std::byte* target = writable_at(state, to, size);
  if (target == nullptr) return false;
  if (text) {
    const void* host = nullptr;
    const std::size_t readable = readable_from(state, from, &host);
    std::size_t copied = 0;
    if (readable != 0) {
      copied = copy_text(state, from, host, target, std::min<std::size_t>(readable, size));
    }
    if (copied < size && (copied == 0 || target[copied - 1] != std::byte{0})) {
      return set_fault(state, Fault::badaddr, from);
    }
    publish(state, target, copied);
    return true;
  }
  const std::byte* source = bytes_at(state, from, size);
  if (source == nullptr) return false;
  copy_readable(state, from, source, target, size);
  publish(state, target, size);
  return true;
}

std::uint64_t shift_right_signed(std::uint64_t value, std::uint64_t count) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value) >> (count & 63));
}

}  // namespace

std::size_t readable_from(const DifState& state, std::uint64_t address, const void** host) {
  if (address >= kScratchBase) {
    if (const std::size_t room =
            within(address, kScratchBase, state.scratch, state.scratch_used, host)) {
      return room;
    }
    if (state.strings != nullptr) {
      if (const std::size_t room =
              within(address, kStringTableBase, state.strings, state.strings_size, host)) {
        return room;
      }
    } else if (state.object != nullptr) {
      const std::string& strings = state.object->strings;
      if (const std::size_t room = within(address, state.object->strings_address, strings.data(),
                                          strings.size(), host)) {
        return room;
      }
    }
    if (const std::size_t room =
            within(address, kVariableBase, state.global_bytes, state.global_size, host)) {
      return room;
    }
    if (const std::size_t room =
            within(address, kLocalBase, state.local_bytes, state.local_size, host)) {
      return room;
    }
    if (is_dynamic(state, address)) return state.dynamic->view(address, host);
  }
  if (const std::size_t room = kernel_from(state, address, host)) return room;
  return within(address, state.thread_address, state.thread_view, state.thread_size, host);
}

void copy_readable(const DifState& state, std::uint64_t address, const void* host, std::byte* to,
                   std::size_t size) {
  const auto* from = static_cast<const std::byte*>(host);
  if (!is_kernel(state, address) || state.addresses == nullptr) {
    std::memmove(to, from, size);
    return;
  }
  std::memcpy(to, from, size);
  const AddressMap& addresses = *state.addresses;
  const auto length = static_cast<std::ptrdiff_t>(size);
  auto at = -static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(from) % 8);
  for (; at < length; at += 8) {
    const bool whole = at >= 0 && at + 8 <= length;
    const std::uint64_t start = address + static_cast<std::uint64_t>(at);
    const void* there = nullptr;
    if (!whole && (kernel_from(state, start, &there) < 8 || there != from + at))
      continue;  // no such word
    std::uint64_t word = 0;
    std::memcpy(&word, from + at, 8);
    const std::uint64_t shown = shown_word(addresses, word);
    if (shown == word) continue;
    const std::ptrdiff_t first = std::max<std::ptrdiff_t>(at, 0);
    const std::ptrdiff_t last = std::min(at + 8, length);
    std::memcpy(to + first, reinterpret_cast<const std::byte*>(&shown) + (first - at),
                static_cast<std::size_t>(last - first));
  }
}

std::size_t copy_text(const DifState& state, std::uint64_t address, const void* host, std::byte* to,
                      std::size_t size) {
  if (!is_kernel(state, address) || state.addresses == nullptr) {
    const void* end = std::memchr(host, 0, size);
    if (end != nullptr) size = within_text(host, end) + 1;
    std::memmove(to, host, size);
    return size;
  }
  const auto* from = static_cast<const std::byte*>(host);
  for (std::size_t done = 0; done < size;) {
    const std::size_t count = std::min(to_next_word(from + done), size - done);
    copy_readable(state, address + done, from + done, to + done, count);
    if (const void* end = std::memchr(to + done, 0, count)) return within_text(to, end) + 1;
    done += count;
  }
  return size;
}

const std::byte* bytes_at(DifState& state, std::uint64_t address, std::size_t size) {
  const void* host = nullptr;
  if (readable_from(state, address, &host) < size) {
    set_fault(state, Fault::badaddr, address);
    return nullptr;
  }
  if (address >= kVariableBase && address - kVariableBase < state.global_size) {
    fetch_bytes(state, static_cast<std::size_t>(address - kVariableBase), size);
  }
  return static_cast<const std::byte*>(host);
}

bool string_at(DifState& state, std::uint64_t address, std::string_view* text) {
  if (address == 0) {
    *text = {};
    return true;
  }
  const void* host = nullptr;
  const std::size_t limit =
      std::min<std::size_t>(readable_from(state, address, &host), state.strsize);
  const auto* from = static_cast<const std::byte*>(host);
  const bool kernel = is_kernel(state, address) && state.addresses != nullptr;
  bool as_it_is = true;
  std::size_t length = limit;
  for (std::size_t done = 0; done < limit;) {
    std::byte word[8];
    const std::byte* shown = from + done;
    std::size_t count = limit - done;
    if (kernel) {
      count = std::min(to_next_word(shown), count);
      copy_readable(state, address + done, shown, word, count);
      as_it_is = as_it_is && std::memcmp(word, shown, count) == 0;
      shown = word;
    }
    if (const void* end = std::memchr(shown, 0, count)) {
      length = done + within_text(shown, end);
      break;
    }
    done += count;
  }
  if (length == limit && limit < state.strsize) return set_fault(state, Fault::badaddr, address);
  if (!as_it_is) {
    std::byte* copy = nullptr;
    if (take_scratch(state, length, &copy) == 0) return false;
    copy_text(state, address, from, copy, length);
    from = copy;
  }
  *text = {reinterpret_cast<const char*>(from), length};
  return true;
}

std::uint64_t take_scratch(DifState& state, std::uint64_t size, std::byte** host) {
  const std::size_t start = (state.scratch_used + 7) & ~std::size_t{7};
  if (start > state.scratch_size || size > state.scratch_size - start) {
    set_fault(state, Fault::noscratch);
    return 0;
  }
  *host = state.scratch + start;
  std::memset(*host, 0, size);
  state.scratch_used = start + size;
  return kScratchBase + start;
}

std::uint64_t run(const VerifiedDif& dif, DifState& state) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
  static const void* const kJump[kOpCount] = {
      &&op_bad,   &&op_or,    &&op_xor,    &&op_and,   &&op_sll,   &&op_srl,   &&op_sub,
      &&op_add,   &&op_mul,   &&op_sdiv,   &&op_udiv,  &&op_srem,  &&op_urem,  &&op_not,
      &&op_mov,   &&op_cmp,   &&op_tst,    &&op_ba,    &&op_be,    &&op_bne,   &&op_bg,
      &&op_bgu,   &&op_bge,   &&op_bgeu,   &&op_bl,    &&op_blu,   &&op_ble,   &&op_bleu,
      &&op_ldsb,  &&op_ldsh,  &&op_ldsw,   &&op_ldub,  &&op_lduh,  &&op_lduw,  &&op_ldx,
      &&op_ret,   &&op_nop,   &&op_setx,   &&op_sets,  &&op_scmp,  &&op_ldga,  &&op_ldgs,
      &&op_stgs,  &&op_bad,   &&op_bad,    &&op_bad,   &&op_sra,   &&op_call,  &&op_ptr,
      &&op_push,  &&op_pop,   &&op_flush,  &&op_bad,   &&op_bad,   &&op_bad,   &&op_bad,
      &&op_ldls,  &&op_stls,  &&op_allocs, &&op_copys, &&op_stb,   &&op_sth,   &&op_stw,
      &&op_stx,   &&op_uld,   &&op_uld,    &&op_uld,   &&op_uld,   &&op_uld,   &&op_uld,
      &&op_uld,   &&op_bad,   &&op_bad,    &&op_bad,   &&op_bad,   &&op_bad,   &&op_bad,
      &&op_bad,   &&op_bad,   &&op_bad,    &&op_ldb,   &&op_ldgss, &&op_stgss, &&op_ldlss,
      &&op_stlss, &&op_ldgsb, &&op_stgsb,  &&op_ldlsb, &&op_stlsb, &&op_lddyn, &&op_stdyn};

  const std::uint32_t* const code = dif.code().data();
  const std::uint32_t* pc = code;
  std::uint64_t regs[kDifRegisters] = {};
  Tuple tuple;
  // The condition codes, as the two operands that set them.
  std::uint64_t left = 0;
  std::uint64_t right = 0;
  DifWord word{0};
  state.object = &dif.object();
  state.fault = Fault::none;

#define R1 regs[word.r1()]
#define R2 regs[word.r2()]
#define RD regs[word.rd()]
#define SIGNED(x) static_cast<std::int64_t>(x)
#define NEXT                \
  do {                      \
    word.word = *pc++;      \
    goto* kJump[word.op()]; \
  } while (false)
#define BRANCH(condition)                    \
  do {                                       \
    if (condition) pc = code + word.label(); \
    NEXT;                                    \
  } while (false)

  NEXT;
op_or:
  RD = R1 | R2;
  NEXT;
op_xor:
  RD = R1 ^ R2;
  NEXT;
op_and:
  RD = R1 & R2;
  NEXT;
op_sll:
  RD = R1 << (R2 & 63);
  NEXT;
op_srl:
  RD = R1 >> (R2 & 63);
  NEXT;
op_sra:
  RD = shift_right_signed(R1, R2);
  NEXT;
op_sub:
  RD = R1 - R2;
  NEXT;
op_add:
  RD = R1 + R2;
  NEXT;
op_mul:
  RD = R1 * R2;
  NEXT;
op_sdiv:
  if (R2 == 0) goto divide_by_zero;
  RD = SIGNED(R2) == -1 ? 0 - R1 : static_cast<std::uint64_t>(SIGNED(R1) / SIGNED(R2));
  NEXT;
op_udiv:
  if (R2 == 0) goto divide_by_zero;
  RD = R1 / R2;
  NEXT;
op_srem:
  if (R2 == 0) goto divide_by_zero;
  RD = SIGNED(R2) == -1 ? 0 : static_cast<std::uint64_t>(SIGNED(R1) % SIGNED(R2));
  NEXT;
op_urem:
  if (R2 == 0) goto divide_by_zero;
  RD = R1 % R2;
  NEXT;
op_not:
  RD = ~R1;
  NEXT;
op_mov:
  RD = R1;
  NEXT;
op_cmp:
  left = R1;
  right = R2;
  NEXT;
op_tst:
  left = R1;
  right = 0;
  NEXT;
op_scmp : {
  std::string_view a;
  std::string_view b;
  if (!string_at(state, R1, &a) || !string_at(state, R2, &b)) goto fault;
  left = static_cast<std::uint64_t>(static_cast<std::int64_t>(a.compare(b)));
  right = 0;
  NEXT;
}
op_ba:
  BRANCH(true);
op_be:
  BRANCH(left == right);
op_bne:
  BRANCH(left != right);
op_bg:
  BRANCH(SIGNED(left) > SIGNED(right));
op_bgu:
  BRANCH(left > right);
op_bge:
  BRANCH(SIGNED(left) >= SIGNED(right));
op_bgeu:
  BRANCH(left >= right);
op_bl:
  BRANCH(SIGNED(left) < SIGNED(right));
op_blu:
  BRANCH(left < right);
op_ble:
  BRANCH(SIGNED(left) <= SIGNED(right));
op_bleu:
  BRANCH(left <= right);
op_ldsb:
  if (!load<std::int8_t>(state, R1, &RD)) goto fault;
  NEXT;
op_ldsh:
  if (!load<std::int16_t>(state, R1, &RD)) goto fault;
  NEXT;
op_ldsw:
  if (!load<std::int32_t>(state, R1, &RD)) goto fault;
  NEXT;
op_ldub:
  if (!load<std::uint8_t>(state, R1, &RD)) goto fault;
  NEXT;
op_lduh:
  if (!load<std::uint16_t>(state, R1, &RD)) goto fault;
  NEXT;
op_lduw:
  if (!load<std::uint32_t>(state, R1, &RD)) goto fault;
  NEXT;
op_ldx:
  if (word.r2() != 0) {
    if (!load_pointer(state, R1, &RD)) goto fault;
  } else if (!load<std::uint64_t>(state, R1, &RD)) {
    goto fault;
  }
  NEXT;
op_uld:  // there is no user memory
  set_fault(state, Fault::badaddr, R1);
  goto fault;
op_setx:
  RD = dif.object().ints[word.index()];
  NEXT;
op_sets:
  RD = dif.object().strings_address + word.index();
  NEXT;
op_ldga:
  RD = state.variable(state, word.r1(), R2);
  if (state.fault != Fault::none) goto fault;
  NEXT;
op_ldb:
  RD = state.variable(state, word.index(), 0);
  if (state.fault != Fault::none) goto fault;
  NEXT;
op_ldgs:
  RD = load_shared(&state.globals[word.index() - kVarUser]);
  NEXT;
op_stgs:
  store_shared(&state.globals[word.index() - kVarUser], RD);
  NEXT;
op_ldls:
  RD = state.locals[word.index() - kVarUser];
  NEXT;
op_stls:
  state.locals[word.index() - kVarUser] = RD;
  NEXT;
op_ldgss : {
  const std::uint64_t at = word.index() - kVarUser;
  RD = 0;
  if (load_shared(&state.globals[at]) != 0) {
    fetch_string(state, state.global_slots[at].offset);
    RD = kVariableBase + state.global_slots[at].offset;
  }
  NEXT;
}
op_ldlss : {
  const std::uint64_t at = word.index() - kVarUser;
  RD = state.locals[at] == 0 ? 0 : kLocalBase + state.local_slots[at].offset;
  NEXT;
}
op_stgss : {
  const std::uint64_t at = word.index() - kVarUser;
  std::byte* bytes = state.global_bytes + state.global_slots[at].offset;
  if (!store_string(state, RD, &state.globals[at], bytes)) goto fault;
  NEXT;
}
op_stlss : {
  const std::uint64_t at = word.index() - kVarUser;
  std::byte* bytes = state.local_bytes + state.local_slots[at].offset;
  if (!store_string(state, RD, &state.locals[at], bytes)) goto fault;
  NEXT;
}
op_ldgsb : {
  const VariableSlot& slot = state.global_slots[word.index() - kVarUser];
  fetch_bytes(state, slot.offset, slot.size);
  RD = kVariableBase + slot.offset;
  NEXT;
}
op_ldlsb:
  RD = kLocalBase + state.local_slots[word.index() - kVarUser].offset;
  NEXT;
op_stgsb : {
  const VariableSlot& slot = state.global_slots[word.index() - kVarUser];
  if (!copy_bytes(state, RD, kVariableBase + slot.offset, slot.size, false)) goto fault;
  NEXT;
}
op_stlsb : {
  const VariableSlot& slot = state.local_slots[word.index() - kVarUser];
  if (!copy_bytes(state, RD, kLocalBase + slot.offset, slot.size, false)) goto fault;
  NEXT;
}
op_lddyn:
  RD = load_dynamic(state, dif.dynamic()[word.index()], tuple);
  if (state.fault != Fault::none) goto fault;
  NEXT;
op_stdyn:
  if (!store_dynamic(state, dif.dynamic()[word.index()], tuple, RD)) goto fault;
  NEXT;
op_push:
  if (tuple.count == kDifTupleRegisters) goto tuple_full;
  tuple.values[tuple.count] = RD;
  tuple.sizes[tuple.count++] = 0;
  NEXT;
op_ptr:
  if (tuple.count == kDifTupleRegisters) goto tuple_full;
  tuple.values[tuple.count] = RD;
  if (!measure_key(state, tuple, static_cast<DifKeyKind>(word.r1()), R2)) goto fault;
  ++tuple.count;
  NEXT;
op_pop:
  if (tuple.count != 0) --tuple.count;
  NEXT;
op_flush:
  tuple.count = 0;
  NEXT;
op_call:
  RD = call_subroutine(state, word.index(), {tuple.values, tuple.count});
  if (state.fault != Fault::none) goto fault;
  NEXT;
op_allocs : {
  std::byte* host = nullptr;
  RD = take_scratch(state, R1, &host);
  if (state.fault != Fault::none) goto fault;
  NEXT;
}
op_copys:
  if (!copy_bytes(state, R1, RD, regs[word.r2() & ~kCopyText], (word.r2() & kCopyText) != 0)) {
    goto fault;
  }
  NEXT;
op_stb:
  if (!store<std::uint8_t>(state, RD, R1)) goto fault;
  NEXT;
op_sth:
  if (!store<std::uint16_t>(state, RD, R1)) goto fault;
  NEXT;
op_stw:
  if (!store<std::uint32_t>(state, RD, R1)) goto fault;
  NEXT;
op_stx:
  if (!store<std::uint64_t>(state, RD, R1)) goto fault;
  NEXT;
op_nop:
  NEXT;
op_ret:
  return RD;
tuple_full:
  set_fault(state, Fault::tupoflow);
  goto fault;
divide_by_zero:
  set_fault(state, Fault::divzero);
fault:
  state.fault_offset = static_cast<std::int32_t>((pc - 1 - code) * 4);
  return 0;
op_bad:
  check_failed(__FILE__, __LINE__, "verified", "an opcode that verify() refuses");
#undef R1
#undef R2
#undef RD
#undef SIGNED
#undef NEXT
#undef BRANCH
#pragma GCC diagnostic pop
}

}  // namespace dtmalloc::dtrace
