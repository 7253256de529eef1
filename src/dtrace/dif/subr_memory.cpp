// SPDX-License-Identifier: BSD-2-Clause
// Subroutines that deal in memory: scratch, what a user's process has, locks; and in processes.
// Counterpart:  dtrace_dif_subr
// Differs:      there is no user memory, so each access to it is an invalid address, and there are
//               no locks to be read: what lies at the address is none. alloca() gives zeroes.
#include <algorithm>
#include <cstring>

#include "dtrace/dif/dif_int.hpp"

namespace dtmalloc::dtrace {
namespace {

constexpr std::uint64_t kLongestMemstr = 4096;  // kern.dtrace.memstr_max
constexpr std::size_t kLockObject = 24;         // sizeof (struct lock_object)
constexpr std::uint64_t kInit = 1;              // the process from which all users' descend

// Scratch that was taken before. Null: fault set.
std::byte* scratch_at(DifState& state, std::uint64_t address, std::uint64_t size) {
  const std::uint64_t start = address - kScratchBase;
  if (start > state.scratch_used || size > state.scratch_used - start) {
    set_fault(state, Fault::badaddr, address);
    return nullptr;
  }
  return state.scratch + start;
}

std::uint64_t no_user_memory(DifState& state, std::uint64_t address, std::uint64_t size,
                             std::uint64_t result) {
  if (size == 0) return result;
  set_fault(state, Fault::badaddr, address);
  return 0;
}

}  // namespace

std::uint64_t subr_alloca(DifState& state, std::uint64_t size) {
  std::byte* host = nullptr;
  return take_scratch(state, size, &host);
}

std::uint64_t subr_bcopy(DifState& state, const SubrArguments& arguments) {
  const std::uint64_t source = arguments(0);
  const std::uint64_t size = arguments(2);
  std::byte* to = scratch_at(state, arguments(1), size);
  if (to == nullptr || size == 0) return 0;
  const std::byte* from = bytes_at(state, source, size);
  if (from == nullptr) return 0;
  copy_readable(state, source, from, to, size);
  return 0;
}

std::uint64_t subr_copyin(DifState& state, const SubrArguments& arguments) {
  std::byte* host = nullptr;
  const std::uint64_t result = take_scratch(state, arguments(1), &host);
  return result == 0 ? 0 : no_user_memory(state, arguments(0), arguments(1), result);
}

std::uint64_t subr_copyinstr(DifState& state, const SubrArguments& arguments) {
  const std::uint64_t most = arguments(1, state.strsize);
  const std::uint64_t size = most < state.strsize ? most + 1 : state.strsize;
  std::byte* host = nullptr;
  const std::uint64_t result = take_scratch(state, size, &host);
  return result == 0 ? 0 : no_user_memory(state, arguments(0), size, result);
}

std::uint64_t subr_copyinto(DifState& state, const SubrArguments& arguments) {
  if (scratch_at(state, arguments(2), arguments(1)) == nullptr) return 0;
  return no_user_memory(state, arguments(0), arguments(1), arguments(2));
}

std::uint64_t subr_copyout(DifState& state, const SubrArguments& arguments) {
  if (arguments(2) != 0 && bytes_at(state, arguments(0), arguments(2)) == nullptr) return 0;
  return no_user_memory(state, arguments(1), arguments(2), 0);
}

std::uint64_t subr_copyoutstr(DifState& state, const SubrArguments& arguments) {
  std::string_view text;
  if (!text_argument(state, arguments(0), &text)) return 0;
  return no_user_memory(state, arguments(1), arguments(2), 0);
}

std::uint64_t subr_memref(DifState& state, const SubrArguments& arguments) {
  const std::uint64_t pair[2] = {arguments(0), arguments(1)};
  std::byte* host = nullptr;
  const std::uint64_t result = take_scratch(state, sizeof pair, &host);
  if (result != 0) std::memcpy(host, pair, sizeof pair);
  return result;
}

// `size` counts the NUL at the end.
std::uint64_t subr_memstr(DifState& state, const SubrArguments& arguments) {
  const std::uint64_t source = arguments(0);
  const std::uint64_t size = arguments(2);
  if (size == 0) return 0;
  if (size > kLongestMemstr) {
    set_fault(state, Fault::illop);
    return 0;
  }
  const std::size_t length = size - 1;
  const std::byte* from = length == 0 ? nullptr : bytes_at(state, source, length);
  if (length != 0 && from == nullptr) return 0;
  std::byte* to = nullptr;
  const std::uint64_t result = take_scratch(state, size, &to);
  if (result == 0 || length == 0) return result;
  copy_readable(state, source, from, to, length);
  std::replace(to, to + length, std::byte{0}, static_cast<std::byte>(arguments(1)));
  return result;
}

std::uint64_t subr_lock(DifState& state, std::uint64_t address) {
  if (bytes_at(state, address, kLockObject) != nullptr) {
    set_fault(state, Fault::badaddr, address);  // its class is no class of locks
  }
  return 0;
}

std::uint64_t subr_progenyof(DifState& state, std::int32_t pid) {
  const auto number = [&](std::uint32_t id) {
    return static_cast<std::int32_t>(state.variable(state, id, 0));
  };
  const std::int32_t own = number(kVarPid);
  const std::int32_t parent = number(kVarPpid);
  if (pid == own || pid == 0) return 1;
  if (own == 0) return 0;
  return pid == parent || (parent != 0 && pid == static_cast<std::int32_t>(kInit)) ? 1 : 0;
}

}  // namespace dtmalloc::dtrace
