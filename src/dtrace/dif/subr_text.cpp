// SPDX-License-Identifier: BSD-2-Clause
// Subroutines that take texts apart: strtok() and cleanpath().
// Counterpart:  dtrace_dif_subr
// Differs:      strtok() keeps a copy of its text, so that a variable may change between two calls.
#include <bitset>
#include <cstring>

#include "dtrace/dif/dif_int.hpp"

namespace dtmalloc::dtrace {

std::uint64_t subr_strtok(DifState& state, const SubrArguments& arguments) {
  std::string_view delimiters;
  if (!text_argument(state, arguments(1), &delimiters)) return 0;
  if (arguments(0) != 0) {
    std::string_view text;
    if (!string_at(state, arguments(0), &text)) return 0;
    std::memcpy(state.strtok_text, text.data(), text.size());
    state.strtok_at = 0;
    state.strtok_end = static_cast<std::uint32_t>(text.size());
  }
  std::byte* room = result_room(state);
  if (room == nullptr) return 0;
  std::bitset<256> ends;
  for (const char c : delimiters) ends.set(static_cast<unsigned char>(c));
  const auto is_end = [&](std::uint32_t at) {
    return ends.test(std::to_integer<unsigned char>(state.strtok_text[at]));
  };
  std::uint32_t first = state.strtok_at;
  while (first < state.strtok_end && is_end(first)) ++first;
  if (first == state.strtok_end) {
    start_firing(state);
    return 0;
  }
  std::uint32_t last = first;
  while (last < state.strtok_end && last - first < state.strsize - 1 && !is_end(last)) ++last;
  std::memcpy(room, state.strtok_text + first, last - first);
  state.strtok_at = last;
  return take_result(state, room, last - first);
}

// One pass from left to right, without a look at any file system (spec/dtrace.md 16).
std::uint64_t subr_cleanpath(DifState& state, std::string_view path) {
  std::byte* room = result_room(state);
  if (room == nullptr) return 0;
  char* const out = reinterpret_cast<char*>(room);
  constexpr std::size_t kLongestStep = 5;  // "/..c" and the NUL
  std::size_t length = 0;
  bool started = false;  // out[0] was written
  std::size_t at = 0;
  while (at < path.size() && length + kLongestStep < state.strsize) {
    if (path[at] != '/') {
      out[length++] = path[at++];
      started = true;
      continue;
    }
    const std::string_view rest = path.substr(at + 1);
    if (rest.starts_with('/')) {
      at += 1;
    } else if (rest.starts_with("./")) {
      at += 2;
    } else if (rest == ".." || rest.starts_with("../")) {
      at += 3;
      while (length != 0 && out[--length] != '/') continue;
      if (at == path.size()) {
        // The '/' that was cut, or what stood first, remains.
        if (!started) out[0] = '/';
        ++length;
      }
    } else {
      // The slash, the dots that are no component of their own, and the byte after them.
      std::size_t size = 2;
      if (rest.starts_with('.')) size = rest.starts_with("..") ? 4 : 3;
      const std::string_view step = path.substr(at, size);
      std::memcpy(out + length, step.data(), step.size());
      length += step.size();
      at += step.size();
      started = true;
    }
  }
  return take_result(state, room, length);
}

}  // namespace dtmalloc::dtrace
