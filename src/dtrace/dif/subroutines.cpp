// SPDX-License-Identifier: BSD-2-Clause
// The subroutines of `call`.
// Counterpart:  dtrace_dif_subr
// Invariants:   strings are read up to strsize; results live in scratch; nothing is allocated.
#include <algorithm>
#include <cstring>
#include <limits>

#include "dtrace/dif/dif_int.hpp"

namespace dtmalloc::dtrace {
namespace {

std::uint64_t strjoin(DifState& state, std::string_view a, std::string_view b) {
  std::byte* room = result_room(state);
  if (room == nullptr) return 0;
  if (a.size() + b.size() + 1 > state.strsize) {
    set_fault(state, Fault::noscratch);
    return 0;
  }
  char* const chars = reinterpret_cast<char*>(room);
  std::copy_n(b.data(), b.size(), std::copy_n(a.data(), a.size(), chars));
  return take_result(state, room, a.size() + b.size());
}

constexpr std::int64_t kFar = std::int64_t{1} << 40;
std::int64_t clamp(std::uint64_t value) {
  return std::clamp(static_cast<std::int64_t>(value), -kFar, kFar);
}

std::uint64_t substr(DifState& state, std::string_view text, std::int64_t index,
                     std::int64_t remaining) {
  const auto length = static_cast<std::int64_t>(text.size());
  if (index < 0) {
    index += length;
    if (index < 0 && index + remaining > 0) {
      remaining += index;
      index = 0;
    }
  }
  if (index < 0 || index >= length) return text_to_scratch(state, {});
  if (remaining < 0) remaining += length - index;
  if (remaining <= 0) return text_to_scratch(state, {});
  return text_to_scratch(
      state, text.substr(static_cast<std::size_t>(index), static_cast<std::size_t>(remaining)));
}

std::int64_t index_of(std::string_view text, std::string_view part, std::int64_t from) {
  if (text.empty() && part.empty()) return 0;
  const auto length = static_cast<std::int64_t>(text.size());
  from = std::max<std::int64_t>(from, 0);
  if (from >= length) return part.empty() ? length : -1;
  const std::size_t found = text.find(part, static_cast<std::size_t>(from));
  return found == std::string_view::npos ? -1 : static_cast<std::int64_t>(found);
}

std::int64_t rindex_of(std::string_view text, std::string_view part, std::int64_t from) {
  if (text.empty() && part.empty()) return 0;
  if (from < 0) return part.empty() ? 0 : -1;
  const std::size_t found = text.rfind(part, std::min(static_cast<std::size_t>(from), text.size()));
  return found == std::string_view::npos ? -1 : static_cast<std::int64_t>(found);
}

std::uint64_t lltostr(DifState& state, std::uint64_t value, std::uint64_t base) {
  if (base < 2 || base > 36) {
    set_fault(state, Fault::illop);
    return 0;
  }
  const bool negative = base == 10 && static_cast<std::int64_t>(value) < 0;
  std::uint64_t left = negative ? 0 - value : value;
  char digits[72];
  std::size_t at = sizeof digits;
  const bool zero = left == 0;
  do {
    digits[--at] = "0123456789abcdefghijklmnopqrstuvwxyz"[left % base];
    left /= base;
  } while (left != 0);
  if (base == 16) {
    digits[--at] = 'x';
    digits[--at] = '0';
  } else if (base == 8 && !zero) {
    digits[--at] = '0';
  } else if (negative) {
    digits[--at] = '-';
  }
  std::byte* host = nullptr;
  const std::size_t length = sizeof digits - at;
  const std::uint64_t address = take_scratch(state, length + 1, &host);
  if (address != 0) std::memcpy(host, digits + at, length);
  return address;
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return std::numeric_limits<int>::max();
}

std::uint64_t strtoll(DifState& state, std::string_view text, std::uint64_t base) {
  if (base < 2 || base > 36) {
    set_fault(state, Fault::illop);
    return 0;
  }
  std::size_t i = 0;
  while (i < text.size() && (text[i] == ' ' || (text[i] >= '\t' && text[i] <= '\r'))) ++i;
  bool negative = false;
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) negative = text[i++] == '-';
  std::uint64_t value = 0;
  for (; i < text.size(); ++i) {
    const int digit = digit_of(text[i]);
    if (digit >= static_cast<int>(base)) break;
    value = value * base + static_cast<std::uint64_t>(digit);
  }
  return negative ? 0 - value : value;
}

std::string_view base_name(std::string_view path) {
  if (path.empty()) return ".";
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos || path.size() == 1 ? path : path.substr(slash + 1);
}

std::string_view dir_name(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  path = path.substr(0, slash);
  while (path.ends_with('/')) path.remove_suffix(1);
  return path.empty() ? "/" : path;
}

std::uint64_t change_case(DifState& state, std::string_view text, char first, char last) {
  const std::uint64_t address = text_to_scratch(state, text);
  if (address == 0) return 0;
  auto* bytes = reinterpret_cast<char*>(state.scratch + (address - kScratchBase));
  for (; *bytes != '\0'; ++bytes) {
    if (*bytes >= first && *bytes <= last) *bytes = static_cast<char>(*bytes ^ 0x20);
  }
  return address;
}

std::uint64_t next_random(DifState& state) {
  std::uint64_t x = state.random == 0 ? 1 : state.random;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  state.random = x;
  return x * 0x2545f4914f6cdd1d;
}

}  // namespace

bool text_argument(DifState& state, std::uint64_t address, std::string_view* text) {
  if (address == 0) return set_fault(state, Fault::badaddr, 0);
  return string_at(state, address, text);
}

std::byte* result_room(DifState& state) {
  const std::size_t start = (state.scratch_used + 7) & ~std::size_t{7};
  if (start > state.scratch_size || state.scratch_size - start < state.strsize) {
    set_fault(state, Fault::noscratch);
    return nullptr;
  }
  return state.scratch + start;
}

std::uint64_t take_result(DifState& state, std::byte* start, std::size_t length) {
  start[length] = std::byte{0};
  state.scratch_used = static_cast<std::size_t>(start - state.scratch) + length + 1;
  return kScratchBase + static_cast<std::uint64_t>(start - state.scratch);
}

std::uint64_t text_to_scratch(DifState& state, std::string_view text) {
  std::byte* room = result_room(state);
  if (room == nullptr) return 0;
  const std::size_t length = std::min<std::size_t>(text.size(), state.strsize - 1);
  std::copy_n(text.data(), length, reinterpret_cast<char*>(room));
  return take_result(state, room, length);
}

std::uint64_t call_subroutine(DifState& state, std::uint32_t subroutine,
                              const SubrArguments& argument) {
  std::string_view text;
  std::string_view part;
  switch (subroutine) {
    case kSubrRand:
      return next_random(state);
    case kSubrSpeculation:
      return state.speculation != nullptr ? state.speculation(state) : 0;
    case kSubrHtons:
    case kSubrNtohs:
      return __builtin_bswap16(static_cast<std::uint16_t>(argument(0)));
    case kSubrHtonl:
    case kSubrNtohl:
      return __builtin_bswap32(static_cast<std::uint32_t>(argument(0)));
    case kSubrHtonll:
    case kSubrNtohll:
      return __builtin_bswap64(argument(0));
    case kSubrLltostr:
      return lltostr(state, argument(0), argument(1, 10));
    case kSubrAlloca:
      return subr_alloca(state, argument(0));
    case kSubrBcopy:
      return subr_bcopy(state, argument);
    case kSubrCopyin:
      return subr_copyin(state, argument);
    case kSubrCopyinstr:
      return subr_copyinstr(state, argument);
    case kSubrCopyinto:
      return subr_copyinto(state, argument);
    case kSubrCopyout:
      return subr_copyout(state, argument);
    case kSubrCopyoutstr:
      return subr_copyoutstr(state, argument);
    case kSubrMemref:
      return subr_memref(state, argument);
    case kSubrMemstr:
      return subr_memstr(state, argument);
    case kSubrMutexOwned:
    case kSubrMutexOwner:
    case kSubrMutexTypeAdaptive:
    case kSubrMutexTypeSpin:
    case kSubrRwReadHeld:
    case kSubrRwWriteHeld:
    case kSubrRwIswriter:
    case kSubrSxSharedHeld:
    case kSubrSxExclusiveHeld:
    case kSubrSxIsexclusive:
      return subr_lock(state, argument(0));
    case kSubrProgenyof:
      return subr_progenyof(state, static_cast<std::int32_t>(argument(0)));
    case kSubrStrtok:
      return subr_strtok(state, argument);
    case kSubrInetNtoa:
    case kSubrInetNtoa6:
    case kSubrInetNtop:
      return subr_inet(state, subroutine, argument);
    case kSubrDdiPathname:  // FreeBSD has no device tree to look in
      set_fault(state, Fault::illop);
      return 0;
    default:
      break;
  }
  if (!text_argument(state, argument(0), &text)) return 0;
  switch (subroutine) {
    case kSubrStrlen:
      return text.size();
    case kSubrStrtoll:
      return strtoll(state, text, argument(1, 10));
    case kSubrToupper:
      return change_case(state, text, 'a', 'z');
    case kSubrTolower:
      return change_case(state, text, 'A', 'Z');
    case kSubrBasename:
      return text_to_scratch(state, base_name(text));
    case kSubrDirname:
      return text_to_scratch(state, dir_name(text));
    case kSubrCleanpath:
      return subr_cleanpath(state, text);
    case kSubrSubstr:
      return substr(state, text, clamp(argument(1)), clamp(argument(2, state.strsize)));
    case kSubrStrchr:
    case kSubrStrrchr: {
      const char wanted = static_cast<char>(argument(1));
      std::size_t found = subroutine == kSubrStrchr ? text.find(wanted) : text.rfind(wanted);
      if (wanted == '\0') found = text.size();
      return found == std::string_view::npos ? 0 : argument(0) + found;
    }
    default:
      break;
  }
  if (!text_argument(state, argument(1), &part)) return 0;
  switch (subroutine) {
    case kSubrStrjoin:
      return strjoin(state, text, part);
    case kSubrJson:
      return subr_json(state, text, part);
    case kSubrStrstr: {
      const std::size_t found = text.find(part);
      return found == std::string_view::npos ? 0 : argument(0) + found;
    }
    case kSubrIndex:
      return static_cast<std::uint64_t>(index_of(text, part, clamp(argument(2))));
    case kSubrRindex:
      return static_cast<std::uint64_t>(rindex_of(text, part, clamp(argument(2, text.size()))));
    default:
      break;
  }
  set_fault(state, Fault::illop);
  return 0;
}

}  // namespace dtmalloc::dtrace
