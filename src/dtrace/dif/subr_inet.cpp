// SPDX-License-Identifier: BSD-2-Clause
// inet_ntoa(), inet_ntoa6() and inet_ntop(): Internet addresses as text.
// Counterpart:  dtrace_dif_subr
#include <cstring>

#include "dtrace/dif/dif_int.hpp"

namespace dtmalloc::dtrace {
namespace {

constexpr std::int32_t kInet = 2;    // AF_INET
constexpr std::int32_t kInet6 = 28;  // AF_INET6
constexpr std::size_t kGroups = 8;

// A text of at most 45 bytes under construction.
class AddressText {
 public:
  void add(std::string_view text) {
    std::memcpy(bytes_ + size_, text.data(), text.size());
    size_ += text.size();
  }
  void number(unsigned value, unsigned base) {
    char digits[5];
    std::size_t at = sizeof digits;
    do {
      digits[--at] = "0123456789abcdef"[value % base];
      value /= base;
    } while (value != 0);
    add({digits + at, sizeof digits - at});
  }
  void dotted(const unsigned char* address) {
    for (std::size_t i = 0; i < 4; ++i) {
      if (i != 0) add(".");
      number(address[i], 10);
    }
  }
  std::string_view text() const { return {bytes_, size_}; }

 private:
  char bytes_[64];
  std::size_t size_ = 0;
};

// Eight groups, the longest run of at least two zeroes left out.
void add_groups(AddressText& out, const unsigned char* address) {
  unsigned groups[kGroups];
  for (std::size_t i = 0; i < kGroups; ++i) groups[i] = address[2 * i] * 256U + address[2 * i + 1];
  std::size_t first = kGroups;
  std::size_t length = 1;
  for (std::size_t i = 0; i < kGroups; ++i) {
    std::size_t end = i;
    while (end < kGroups && groups[end] == 0) ++end;
    if (end - i > length) {
      first = i;
      length = end - i;
    }
  }
  for (std::size_t i = 0; i < kGroups; ++i) {
    if (i == first) {
      out.add("::");
      i += length - 1;
      continue;
    }
    if (i != 0 && i != first + length) out.add(":");
    out.number(groups[i], 16);
  }
}

}  // namespace

std::uint64_t subr_inet(DifState& state, std::uint32_t subroutine, const SubrArguments& arguments) {
  std::int32_t family = subroutine == kSubrInetNtoa ? kInet : kInet6;
  std::uint64_t from = arguments(0);
  if (subroutine == kSubrInetNtop) {
    family = static_cast<std::int32_t>(arguments(0));
    from = arguments(1);
  }
  if (family != kInet && family != kInet6) {
    set_fault(state, Fault::illop);
    return 0;
  }
  const std::size_t size = family == kInet ? 4 : 16;
  const std::byte* bytes = bytes_at(state, from, size);
  if (bytes == nullptr) return 0;
  unsigned char address[16];
  copy_readable(state, from, bytes, reinterpret_cast<std::byte*>(address), size);
  AddressText out;
  if (family == kInet) {
    out.dotted(address);
  } else {
    static constexpr unsigned char kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    static constexpr unsigned char kCompatible[15] = {};
    const bool mapped = std::memcmp(address, kMapped, sizeof kMapped) == 0;
    // :: and ::1 are addresses of their own.
    const bool compatible = std::memcmp(address, kCompatible, 12) == 0 &&
                            (std::memcmp(address, kCompatible, 15) != 0 || address[15] > 1);
    if (!mapped && !compatible) {
      add_groups(out, address);
    } else {
      if (subroutine == kSubrInetNtop) out.add(mapped ? "::ffff:" : "::");
      out.dotted(address + 12);
    }
  }
  return text_to_scratch(state, out.text());
}

}  // namespace dtmalloc::dtrace
