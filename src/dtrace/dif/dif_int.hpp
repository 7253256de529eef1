// SPDX-License-Identifier: BSD-2-Clause
// What verify, run and the subroutines share.
#pragma once

#include "dtrace/dif/dif.hpp"

namespace dtmalloc::dtrace {

// Opcodes of VerifiedDif::code() that no object may hold.
inline constexpr unsigned kOpLoadBuiltin = 80;
inline constexpr unsigned kOpLoadGlobalString = 81;
inline constexpr unsigned kOpStoreGlobalString = 82;
inline constexpr unsigned kOpLoadLocalString = 83;
inline constexpr unsigned kOpStoreLocalString = 84;
inline constexpr unsigned kOpLoadGlobalBytes = 85;
inline constexpr unsigned kOpStoreGlobalBytes = 86;
inline constexpr unsigned kOpLoadLocalBytes = 87;
inline constexpr unsigned kOpStoreLocalBytes = 88;
inline constexpr unsigned kOpLoadDynamic = 89;  // index: of VerifiedDif::dynamic()
inline constexpr unsigned kOpStoreDynamic = 90;
inline constexpr unsigned kOpCount = 91;

enum class DifForm : std::uint8_t {
  unknown,
  rrr,
  rr,
  rd,
  r1,
  cmp,
  label,
  index,
  load,
  uload,
  store,
  none,
  var,
  setvar,
  arr,
  call,
  push,
};
struct DifOpInfo {
  std::string_view name;  // "add"
  DifForm form = DifForm::unknown;
};
const DifOpInfo& dif_op_info(unsigned op);  // op < 256

struct DifWord {
  std::uint32_t word;
  unsigned op() const { return word >> 24; }
  unsigned r1() const { return word >> 16 & 0xff; }
  unsigned r2() const { return word >> 8 & 0xff; }
  unsigned rd() const { return word & 0xff; }
  unsigned index() const { return word >> 8 & 0xffff; }
  unsigned label() const { return word & 0xffffff; }
};

inline bool set_fault(DifState& state, Fault fault, std::uint64_t address = 0) {
  state.fault = fault;
  state.fault_address = address;
  return false;
}

// Up to strsize readable bytes before a NUL at `address` (0: an empty text). False: fault set.
bool string_at(DifState& state, std::uint64_t address, std::string_view* text);
// The same for an argument of a subroutine: NULL is an invalid address.
bool text_argument(DifState& state, std::uint64_t address, std::string_view* text);
// `size` readable bytes. Null: fault set.
const std::byte* bytes_at(DifState& state, std::uint64_t address, std::size_t size);
// Zeroed scratch, 8-aligned; its simulated address, or 0 with fault set.
std::uint64_t take_scratch(DifState& state, std::uint64_t size, std::byte** host);

// Room for a text of strsize bytes, of which take_result() takes `length` and a NUL. Null: fault
// set.
std::byte* result_room(DifState& state);
std::uint64_t take_result(DifState& state, std::byte* start, std::size_t length);

// The arguments of a subroutine.
struct SubrArguments {
  const std::uint64_t* values;
  unsigned count;
  std::uint64_t operator()(unsigned i, std::uint64_t otherwise = 0) const {
    return i < count ? values[i] : otherwise;
  }
};

// ---- dynamic.cpp: thread variables and arrays
// What was pushed; `sizes` of what was pushed by reference, and where a text was found.
struct Tuple {
  std::uint64_t values[kDifTupleRegisters];
  std::uint64_t sizes[kDifTupleRegisters];
  const char* texts[kDifTupleRegisters];  // null: bytes that are yet to be read
  std::size_t lengths[kDifTupleRegisters];
  unsigned count = 0;
};
// Measures a value pushed by reference: sizes, texts, lengths. False: fault set.
bool measure_key(DifState& state, Tuple& tuple, DifKeyKind kind, std::uint64_t size);
// 0 or NULL when there is no such variable, or with the fault set.
std::uint64_t load_dynamic(DifState& state, const DynamicRef& variable, const Tuple& tuple);
bool store_dynamic(DifState& state, const DynamicRef& variable, const Tuple& tuple,
                   std::uint64_t value);

// The value, or 0 with the fault set.
std::uint64_t call_subroutine(DifState& state, std::uint32_t subroutine,
                              const SubrArguments& arguments);

// --- subr_memory.cpp
std::uint64_t subr_alloca(DifState& state, std::uint64_t size);
std::uint64_t subr_bcopy(DifState& state, const SubrArguments& arguments);
std::uint64_t subr_copyin(DifState& state, const SubrArguments& arguments);
std::uint64_t subr_copyinstr(DifState& state, const SubrArguments& arguments);
std::uint64_t subr_copyinto(DifState& state, const SubrArguments& arguments);
std::uint64_t subr_copyout(DifState& state, const SubrArguments& arguments);
std::uint64_t subr_copyoutstr(DifState& state, const SubrArguments& arguments);
std::uint64_t subr_memref(DifState& state, const SubrArguments& arguments);
std::uint64_t subr_memstr(DifState& state, const SubrArguments& arguments);
std::uint64_t subr_lock(DifState& state, std::uint64_t address);
std::uint64_t subr_progenyof(DifState& state, std::int32_t pid);
// --- subr_text.cpp, subr_json.cpp, subr_inet.cpp
std::uint64_t subr_strtok(DifState& state, const SubrArguments& arguments);
std::uint64_t subr_cleanpath(DifState& state, std::string_view path);
std::uint64_t subr_json(DifState& state, std::string_view text, std::string_view path);
std::uint64_t subr_inet(DifState& state, std::uint32_t subroutine, const SubrArguments& arguments);

}  // namespace dtmalloc::dtrace
