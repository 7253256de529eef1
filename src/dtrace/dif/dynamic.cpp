// SPDX-License-Identifier: BSD-2-Clause
// Loads and stores of thread variables and array elements: from a tuple to a name, from a register
// to a value.
// Counterpart:  dtrace_dif_emulate (DIF_OP_PUSHTR, LDTS ... STTAA)
// Invariants:   equal names are equal words: the variable with the shape of its tuple, the thread,
//               then every key: a value is its 64 bits, what is pushed by reference its size and
//               its bytes, zero-filled to whole words.
#include <algorithm>
#include <cstring>

#include "dtrace/dif/dif_int.hpp"

namespace dtmalloc::dtrace {
namespace {

enum class Name : std::uint8_t { built, too_long, fault };

// A key's bytes as D sees them, behind their number. A text was read when it was pushed and is
// still there: nothing between a push and the access gives memory back.
Name append_bytes(DifState& state, const Tuple& tuple, unsigned key, std::size_t* at) {
  DynamicVariables& dynamic = *state.dynamic;
  const std::uint64_t size = tuple.sizes[key];
  const char* text = tuple.texts[key];
  const std::byte* from = nullptr;
  if (text == nullptr) {
    from = bytes_at(state, tuple.values[key], size);
    if (from == nullptr) return Name::fault;
  }
  const std::size_t words = size / 8 + (size % 8 != 0 ? 1 : 0);
  if (words >= dynamic.capacity - *at) return Name::too_long;
  std::uint64_t* to = dynamic.name + *at;
  to[0] = size;
  to[words] = 0;
  auto* bytes = reinterpret_cast<std::byte*>(to + 1);
  if (text != nullptr) {
    std::memcpy(bytes, text, std::min<std::size_t>(tuple.lengths[key], size));
  } else {
    copy_readable(state, tuple.values[key], from, bytes, size);
  }
  *at += words + 1;
  return Name::built;
}

Name build_name(DifState& state, const DynamicRef& variable, const Tuple& tuple,
                std::size_t* words) {
  DynamicVariables& dynamic = *state.dynamic;
  std::uint64_t* name = dynamic.name;
  std::uint64_t shape = std::uint64_t{variable.id} << 32 | (variable.thread ? 1 : 0);
  name[0] = shape;  // what a drop is counted for, when the name is too long
  std::size_t at = 1;
  if (variable.thread) name[at++] = state.variable(state, kVarThread, 0);
  if (variable.array) {
    shape |= std::uint64_t{tuple.count} << 1;
    for (unsigned i = 0; i < tuple.count; ++i) {
      if (at == dynamic.capacity) return Name::too_long;
      if (tuple.sizes[i] == 0) {
        name[at++] = tuple.values[i];
        continue;
      }
      shape |= std::uint64_t{1} << (16 + i);
      const Name result = append_bytes(state, tuple, i, &at);
      if (result != Name::built) return result;
    }
  }
  name[0] = shape;
  *words = at;
  return Name::built;
}

// The bytes of a string or a struct at `address`, into DynamicVariables::value; their number, or 0
// with the fault set. A text that fits has its NUL.
std::size_t build_value(DifState& state, const DynamicRef& variable, std::uint64_t address) {
  DynamicVariables& dynamic = *state.dynamic;
  auto* to = reinterpret_cast<std::byte*>(dynamic.value);
  const std::size_t room = std::min<std::size_t>(variable.size, dynamic.capacity * 8);
  if (!variable.is_string) {
    const std::byte* from = bytes_at(state, address, variable.size);
    if (from == nullptr) return 0;
    copy_readable(state, address, from, to, room);
    return room;
  }
  std::string_view text;
  if (!string_at(state, address, &text)) return 0;
  const std::size_t length = std::min(text.size(), room);
  std::memcpy(to, text.data(), length);
  if (length == room) return room;
  to[length] = std::byte{0};
  return length + 1;
}

}  // namespace

bool measure_key(DifState& state, Tuple& tuple, DifKeyKind kind, std::uint64_t size) {
  std::uint64_t& measured = tuple.sizes[tuple.count];
  tuple.texts[tuple.count] = nullptr;
  if (kind != kKeyString) {
    measured = size;
    return true;
  }
  const std::uint64_t address = tuple.values[tuple.count];
  if (address == 0) return set_fault(state, Fault::badaddr, 0);
  std::string_view text;
  if (!string_at(state, address, &text)) return false;
  tuple.texts[tuple.count] = text.data();
  tuple.lengths[tuple.count] = text.size();
  const std::uint64_t most =
      size == 0 ? state.strsize : std::min<std::uint64_t>(size, state.strsize);
  measured = std::min<std::uint64_t>(text.size() + 1, most);
  return true;
}

std::uint64_t load_dynamic(DifState& state, const DynamicRef& variable, const Tuple& tuple) {
  if (state.dynamic == nullptr) return 0;
  std::size_t words = 0;
  if (build_name(state, variable, tuple, &words) != Name::built) return 0;
  std::uint64_t first = 0;
  std::uint64_t address = 0;
  if (!state.dynamic->find(words, &first, &address)) return 0;
  return variable.by_ref ? address : first;
}

bool store_dynamic(DifState& state, const DynamicRef& variable, const Tuple& tuple,
                   std::uint64_t value) {
  if (state.dynamic == nullptr) return true;
  std::size_t words = 0;
  switch (build_name(state, variable, tuple, &words)) {
    case Name::fault:
      return false;
    case Name::too_long:
      if (value != 0) state.dynamic->drop();
      return true;
    case Name::built:
      break;
  }
  if (value == 0) {
    state.dynamic->remove(words);
    return true;
  }
  if (!variable.by_ref) {
    state.dynamic->store(words, &value, sizeof value, sizeof value);
    return true;
  }
  const std::size_t bytes = build_value(state, variable, value);
  if (state.fault != Fault::none) return false;
  state.dynamic->store(words, state.dynamic->value, bytes, variable.size);
  return true;
}

}  // namespace dtmalloc::dtrace
