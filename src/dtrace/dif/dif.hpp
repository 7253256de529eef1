// SPDX-License-Identifier: BSD-2-Clause
// DIF: the instruction set, objects, and the state in which they run.
// Counterpart:  dtrace.h (DIF part)
// Invariants:   only verify() makes a VerifiedDif; run() assumes all that verify() proves: opcodes,
//               registers, table indexes and variable ids in range, branches forward and inside,
//               ret last and only there. So every object terminates.
#pragma once

#include <cstdint>
#include <dtmalloc/sys/address_map.hpp>
#include <dtmalloc/sys/error.hpp>
#include <initializer_list>
#include <string>
#include <vector>

#include "dtrace/dif/types.hpp"

namespace dtmalloc::dtrace {

enum class DifOp : std::uint8_t {
#define DIF_OP(number, name, form, effect) name = number,
#include "dtrace/dif/opcodes.def"
#undef DIF_OP
};

// Instruction words: op(8) r1(8) r2(8) rd(8) | op(8) index(16) rd(8) | op(8) label(24).
// A load whose value is a kernel pointer has 1 in the unused field r2: the value read is a host
// address and becomes the simulated one. A copys with kCopyText in r2 ends with the NUL it copies.
inline constexpr unsigned kCopyText = 0x80;
constexpr std::uint32_t dif_registers(DifOp op, unsigned r1, unsigned r2, unsigned rd) {
  return static_cast<std::uint32_t>(op) << 24 | r1 << 16 | r2 << 8 | rd;
}
constexpr std::uint32_t dif_index(DifOp op, unsigned index, unsigned rd) {
  return static_cast<std::uint32_t>(op) << 24 | index << 8 | rd;
}
constexpr std::uint32_t dif_label(DifOp op, unsigned label) {
  return static_cast<std::uint32_t>(op) << 24 | label;
}

// Built-in variable ids (spec/dtrace.md 21).
enum DifVar : std::uint32_t {
  kVarArgs = 0x000,
  kVarRegs = 0x001,
  kVarUregs = 0x002,
  kVarCurthread = 0x100,
  kVarTimestamp = 0x101,
  kVarVtimestamp = 0x102,
  kVarIpl = 0x103,
  kVarEpid = 0x104,
  kVarId = 0x105,
  kVarArg0 = 0x106,
  kVarArg9 = 0x10f,
  kVarStackdepth = 0x110,
  kVarCaller = 0x111,
  kVarProbeprov = 0x112,
  kVarProbemod = 0x113,
  kVarProbefunc = 0x114,
  kVarProbename = 0x115,
  kVarPid = 0x116,
  kVarTid = 0x117,
  kVarExecname = 0x118,
  kVarZonename = 0x119,
  kVarWalltimestamp = 0x11a,
  kVarUstackdepth = 0x11b,
  kVarUcaller = 0x11c,
  kVarPpid = 0x11d,
  kVarUid = 0x11e,
  kVarGid = 0x11f,
  kVarErrno = 0x120,
  kVarExecargs = 0x121,
  kVarJid = 0x122,
  kVarJailname = 0x123,
  kVarCpu = 0x200,
  kVarUser = 0x500,  // first user-defined scalar
};

// Subroutines of `call`, by number (spec/dtrace.md 16, 21); subroutine_name() knows those modelled.
enum DifSubr : std::uint32_t {
  kSubrRand = 0,
  kSubrMutexOwned,
  kSubrMutexOwner,
  kSubrMutexTypeAdaptive,
  kSubrMutexTypeSpin,
  kSubrRwReadHeld,
  kSubrRwWriteHeld,
  kSubrRwIswriter,
  kSubrCopyin,
  kSubrCopyinstr,
  kSubrSpeculation,
  kSubrProgenyof,
  kSubrStrlen,
  kSubrCopyout,
  kSubrCopyoutstr,
  kSubrAlloca,
  kSubrBcopy,
  kSubrCopyinto,
  kSubrMsgdsize,
  kSubrMsgsize,
  kSubrGetmajor,
  kSubrGetminor,
  kSubrDdiPathname,
  kSubrStrjoin,
  kSubrLltostr,
  kSubrBasename,
  kSubrDirname,
  kSubrCleanpath,
  kSubrStrchr,
  kSubrStrrchr,
  kSubrStrstr,
  kSubrStrtok,
  kSubrSubstr,
  kSubrIndex,
  kSubrRindex,
  kSubrHtons,
  kSubrHtonl,
  kSubrHtonll,
  kSubrNtohs,
  kSubrNtohl,
  kSubrNtohll,
  kSubrInetNtop,
  kSubrInetNtoa,
  kSubrInetNtoa6,
  kSubrToupper,
  kSubrTolower,
  kSubrMemref,
  kSubrSxSharedHeld,
  kSubrSxExclusiveHeld,
  kSubrSxIsexclusive,
  kSubrMemstr,
  kSubrGetf,
  kSubrJson,
  kSubrStrtoll,
};
static_assert(kSubrSpeculation == 10 && kSubrStrjoin == 23 && kSubrStrchr == 28 &&
              kSubrHtons == 35 && kSubrMemref == 46 && kSubrJson == 52 && kSubrStrtoll == 53);
// "strlen"; empty: no such subroutine, or not modelled.
std::string_view subroutine_name(std::uint32_t subroutine);

inline constexpr unsigned kDifRegisters = 8;       // r0 is 0
inline constexpr unsigned kDifTupleRegisters = 8;  // keys of an array, arguments of a subroutine
// pushtr's r1: what the register points to.
enum DifKeyKind : std::uint8_t { kKeyBytes = 0, kKeyString = 1 };

// Simulated addresses of what belongs to the consumer, not to the kernel.
inline constexpr std::uint64_t kScratchBase = 0xffffffe000000000;
inline constexpr std::uint64_t kStringTableBase = 0xffffffe100000000;
inline constexpr std::uint64_t kVariableBase = 0xffffffe200000000;
inline constexpr std::uint64_t kLocalBase = 0xffffffea00000000;
inline constexpr std::uint64_t kDynamicBase = 0xfffffff200000000;
inline constexpr std::uint64_t kConsumerEnd = 0xfffffffa00000000;

// How a record's bytes are meant.
enum class ValueForm : std::uint8_t {
  plain,
  stack,   // program counters, up to one that is 0
  ustack,  // process id, then program counters, then text
  sym,     // an address: its symbol
  mod,     // ... its module
  usym,    // process id and address: the symbol
  umod,
  uaddr,
};

// How a value is kept and recorded.
struct ValueDesc {
  TypeId type = kNoType;
  std::uint32_t size = 8;  // bytes when recorded
  bool by_ref = false;     // the register holds the address of the bytes
  bool is_string = false;  // by_ref, ends at a NUL
  bool is_signed = true;
  // The memory it leads to, or its own bytes when by_ref, is a process's.
  bool userland = false;
  ValueForm form = ValueForm::plain;
};

struct DifObject {
  std::vector<std::uint32_t> text;
  std::vector<std::uint64_t> ints;  // setx
  std::string strings;              // sets: offsets into it; starts with a NUL
  // Where the table is seen: it has the address to itself, so a pointer into it outlives a run.
  std::uint64_t strings_address = kStringTableBase;
  ValueDesc result;
};

// A user-defined variable of a program (ids from kVarUser, one space per scope).
enum class Scope : std::uint8_t { global, local, thread };
inline constexpr std::size_t kScopes = 3;
struct VariableDesc {
  std::string name;
  Scope scope = Scope::global;
  std::uint32_t id = 0;
  ValueDesc value;
  bool array = false;                // associative: an element for every tuple of `keys`
  std::vector<ValueDesc> keys = {};  // of an array
};

// The variables of a consumer in the order of their definition; found by id in constant time.
class VariableList {
 public:
  VariableList() = default;
  VariableList(std::initializer_list<VariableDesc> list) {
    for (const VariableDesc& variable : list) push_back(variable);
  }
  void push_back(VariableDesc variable);  // ids of a scope ascend by one from kVarUser
  void resize(std::size_t size);          // only shrinks
  const VariableDesc* find(Scope scope, std::uint32_t id) const {
    const auto& positions = positions_[static_cast<std::size_t>(scope)];
    const std::size_t at = id - kVarUser;
    return id < kVarUser || at >= positions.size() ? nullptr : &list_[positions[at]];
  }
  std::size_t size() const { return list_.size(); }
  bool empty() const { return list_.empty(); }
  const VariableDesc& operator[](std::size_t i) const { return list_[i]; }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

 private:
  std::vector<VariableDesc> list_;
  std::vector<std::uint32_t> positions_[kScopes];  // by scope and id
};

// Where the bytes of a variable that is kept by reference lie in its scope.
struct VariableSlot {
  std::uint64_t offset = 0;
  std::uint32_t size = 0;  // 0: not kept by reference, or larger than kStatvarMax
};
struct VariableLayout {
  std::vector<VariableSlot> slots;  // by id - kVarUser
  std::uint64_t size = 0;
};
inline constexpr std::uint32_t kStatvarMax = 16 << 10;  // of a struct, union or array
VariableLayout lay_out_variables(const VariableList& variables, Scope scope, std::uint32_t strsize);

// What the code of a verified object knows of a dynamic variable: one of a thread, or an array.
struct DynamicRef {
  std::uint32_t id = 0;
  bool thread = false;
  bool array = false;
  bool by_ref = false;
  bool is_string = false;
  std::uint32_t size = 8;  // of the value
};

class VerifiedDif {
 public:
  const DifObject& object() const { return object_; }
  // What the dynamic accesses of code() index.
  const std::vector<DynamicRef>& dynamic() const { return dynamic_; }
  // Bytes that the largest dynamic variable it stores needs, as the kernel counts them: header,
  // keys and value. 0: it stores none.
  std::size_t chunk_size() const { return chunk_size_; }
  // The text with variable accesses told apart by kind (dif_int.hpp): what run() executes.
  const std::vector<std::uint32_t>& code() const { return code_; }
  bool calls(std::uint32_t subroutine) const;

 private:
  friend Result<VerifiedDif, std::string> verify(DifObject, const VariableList&);
  explicit VerifiedDif(DifObject object) : object_(std::move(object)) {}
  DifObject object_;
  std::vector<std::uint32_t> code_;
  std::vector<DynamicRef> dynamic_;
  std::size_t chunk_size_ = 0;
};
Result<VerifiedDif, std::string> verify(DifObject object, const VariableList& variables);

enum class Fault : std::uint16_t {
  none = 0xffff,
  unknown = 0,
  badaddr = 1,
  badalign = 2,
  illop = 3,
  divzero = 4,
  noscratch = 5,
  kpriv = 6,
  upriv = 7,
  tupoflow = 8,
  badstack = 9,
  library = 1000,
};
std::string_view fault_text(Fault fault);  // "invalid address"

// The dynamic variables of a consumer as one CPU reaches them (core/dynvar.hpp). A name is `words`
// words at `name`: which variable, the thread it belongs to, the keys. What a string or a struct
// holds is built at `value` before it is stored.
class DynamicVariables {
 public:
  std::uint64_t* name = nullptr;
  std::uint64_t* value = nullptr;
  std::size_t capacity = 0;  // words, of each

  // The first word of the value, and where its bytes are seen. False: there is no such variable.
  virtual bool find(std::size_t words, std::uint64_t* first, std::uint64_t* address) = 0;
  // The first `bytes` of a value that may have `size` of them. Makes the variable when it is not
  // there; without room for it a drop is counted.
  virtual void store(std::size_t words, const std::uint64_t* data, std::size_t bytes,
                     std::size_t size) = 0;
  virtual void remove(std::size_t words) = 0;
  // A name that is too long for any variable; its first word says which it is of.
  virtual void drop() = 0;
  // Readable and writable bytes at an address; `*host` is this CPU's view of them, renewed now.
  virtual std::size_t view(std::uint64_t address, const void** host) = 0;
  // Bytes that were written into the view become what the CPUs share. False: not in the view.
  virtual bool publish(const std::byte* from, std::size_t size) = 0;

 protected:
  ~DynamicVariables() = default;
};

// Asked of DifState::variable(), by no program: which thread self-> means.
inline constexpr std::uint32_t kVarThread = 0x300;

// What one run of an object sees. Built once per CPU and consumer, reset per clause.
struct DifState {
  void* owner = nullptr;
  // Built-in variables; `index` for args[]. May set fault. Strings come back as simulated address.
  std::uint64_t (*variable)(DifState& state, std::uint32_t id, std::uint64_t index) = nullptr;
  std::uint64_t (*speculation)(DifState& state) = nullptr;  // speculation(); null: it says 0
  const AddressMap* addresses = nullptr;
  // Where the kernel's memory was read last, good as long as the map's generation stays.
  mutable AddressMap::Readable kernel_view;
  mutable std::uint64_t kernel_generation = 0;
  std::byte* scratch = nullptr;  // seen at kScratchBase
  std::size_t scratch_size = 0;
  std::size_t scratch_used = 0;
  std::uint32_t strsize = 256;
  // User-defined scalars by id - kVarUser: the register's 64 bits. For strings: 0 is NULL, else the
  // bytes in `*_bytes` where their slot says, seen at kVariableBase and kLocalBase. Structs, unions
  // and arrays have their bytes only.
  // `globals` and `shared_bytes` are shared by the CPUs and accessed as relaxed atomics only;
  // `global_bytes` is this CPU's view of `shared_bytes`, renewed when something of it is loaded and
  // published when it is stored. Bytes that two CPUs store at once may come out as a mixture.
  std::uint64_t* globals = nullptr;
  std::byte* shared_bytes = nullptr;  // null: `global_bytes` is shared with nobody
  std::byte* global_bytes = nullptr;
  const VariableSlot* global_slots = nullptr;
  std::size_t global_size = 0;
  DynamicVariables* dynamic = nullptr;  // null: there are none, and every load gives 0
  std::uint64_t* locals = nullptr;
  std::byte* local_bytes = nullptr;
  const VariableSlot* local_slots = nullptr;
  std::size_t local_size = 0;
  // The string tables of all objects, seen at kStringTableBase (ProgramSpace::strings). Null: an
  // object sees its own table only.
  const char* strings = nullptr;
  std::size_t strings_size = 0;
  // What strtok() has yet to take apart: a text of its own, strsize bytes, with the rest from
  // `strtok_at` to `strtok_end`. Begun anew by every firing of a probe (start_firing()).
  std::byte* strtok_text = nullptr;
  std::uint32_t strtok_at = 0, strtok_end = 0;
  // The thread that `curthread` named last, seen at its address. Null: it is not shown.
  std::byte* thread_view = nullptr;
  std::uint64_t thread_address = 0;
  std::size_t thread_size = 0;
  const DifObject* object = nullptr;  // set by run()
  Fault fault = Fault::none;
  std::uint64_t fault_address = 0;
  std::int32_t fault_offset = -1;  // bytes into the object's text
  std::uint64_t random = 1;
};
// What lives for one firing of a probe, however many clauses it has, is forgotten.
inline void start_firing(DifState& state) { state.strtok_at = state.strtok_end = 0; }

// Runs to ret; the result is meaningless when state.fault is set. Never allocates, never throws.
std::uint64_t run(const VerifiedDif& dif, DifState& state);
// Readable bytes at a simulated address in this state: scratch, string table, variables, kernel.
std::size_t readable_from(const DifState& state, std::uint64_t address, const void** host);
// A text of at most strsize - 1 bytes, copied to scratch: its simulated address. 0 with the fault
// set when strsize bytes of scratch are not left.
std::uint64_t text_to_scratch(DifState& state, std::string_view text);
// Copies bytes that readable_from() found at `host`, as D sees them. An aligned word of kernel
// memory that holds a host address inside a registered range comes out as the simulated address,
// whatever type D reads it with, so that no value differs from run to run.
void copy_readable(const DifState& state, std::uint64_t address, const void* host, std::byte* to,
                   std::size_t size);
// As copy_readable(), up to and with the NUL that D sees: the bytes copied.
std::size_t copy_text(const DifState& state, std::uint64_t address, const void* host, std::byte* to,
                      std::size_t size);

// Instructions as dtrace -S prints them; without the variables those of programs have no names.
std::string disassemble(const DifObject& object, const VariableList* variables = nullptr);
std::string_view builtin_name(std::uint32_t id);  // "execname"; empty: no such variable

}  // namespace dtmalloc::dtrace
