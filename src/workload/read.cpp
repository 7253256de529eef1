// SPDX-License-Identifier: BSD-2-Clause
// Reading a text file with bounded memory, and the small notations for sizes and times.

#include "workload/read.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "workload/trace_int.hpp"

namespace dtmalloc::workload {
namespace {

struct Unit {
  std::string_view suffix;
  std::uint64_t factor;
};

template <std::size_t N>
std::optional<std::uint64_t> parse_number(std::string_view text, const Unit (&units)[N]) {
  std::uint64_t number = 0;
  const char* last = text.data() + text.size();
  int base = 10;
  const char* first = text.data();
  if (text.starts_with("0x")) {
    base = 16;
    first += 2;
  }
  const auto [rest, error] = std::from_chars(first, last, number, base);
  if (error != std::errc{} || rest == first) return std::nullopt;
  const std::string_view suffix(rest, static_cast<std::size_t>(last - rest));
  for (const Unit& unit : units) {
    if (unit.suffix != suffix) continue;
    std::uint64_t product = 0;
    if (__builtin_mul_overflow(number, unit.factor, &product)) return std::nullopt;
    return product;
  }
  return std::nullopt;
}

constexpr Unit kCounts[] = {{"", 1}};
constexpr Unit kSizes[] = {{"", 1},
                           {"K", std::uint64_t{1} << 10},
                           {"M", std::uint64_t{1} << 20},
                           {"G", std::uint64_t{1} << 30},
                           {"T", std::uint64_t{1} << 40}};
constexpr Unit kTimes[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};

template <std::size_t N>
std::string print_number(std::uint64_t number, const Unit (&units)[N]) {
  const Unit* best = &units[0];
  for (const Unit& unit : units) {
    if (number != 0 && number % unit.factor == 0) best = &unit;
  }
  return std::to_string(number / best->factor) + std::string(best->suffix);
}

Diagnostic text_error(const std::string& path, const std::string& text, std::size_t line_start,
                      std::size_t at, const char* tag, const char* message, const char* expected) {
  Diagnostic d;
  d.tag = tag;
  std::uint32_t line = 1;
  for (std::size_t i = 0; i < line_start; ++i) line += text[i] == '\n' ? 1 : 0;
  d.where = {path == "-" ? "<stdin>" : path, line, static_cast<std::uint32_t>(at - line_start + 1),
             1};
  d.source_line = text.substr(line_start, std::min<std::size_t>(at - line_start + 1, 200));
  if (at - line_start >= d.source_line.size()) d.source_line.clear();
  d.message = message;
  d.expected = expected;
  return d;
}

}  // namespace

Diagnostic read_error(const std::string& path, int error) {
  Diagnostic d;
  d.tag = "WL_READ";
  d.message = "cannot read " + (path == "-" ? std::string("standard input") : path) + ": " +
              std::strerror(error);
  return d;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  return parse_number(text, kSizes);
}
std::optional<std::uint64_t> parse_count(std::string_view text) {
  return parse_number(text, kCounts);
}
std::optional<std::uint64_t> parse_time(std::string_view text) {
  return parse_number(text, kTimes);
}
std::string print_size(std::uint64_t bytes) { return print_number(bytes, kSizes); }
std::string print_time(std::uint64_t ns) { return print_number(ns, kTimes); }

std::optional<Diagnostic> TextCheck::look(const std::string& text) {
  if (text.starts_with(std::string_view(kTraceMagic, sizeof kTraceMagic)))
    return text_error(path_, text, 0, 0, "WL_TRACE", "this is a binary trace",
                      "a workload; `dtmalloc replay` runs traces, `dtmalloc record` makes texts of "
                      "them");
  for (; at_ < text.size(); ++at_) {
    if (text[at_] == '\n') {
      line_start_ = at_ + 1;
    } else if (text[at_] == '\0') {
      return text_error(path_, text, line_start_, at_, "WL_NUL", "a NUL byte: this is no text file",
                        "a text file");
    } else if (at_ - line_start_ > kMaxLine) {
      return text_error(path_, text, line_start_, at_, "WL_LINE_TOO_LONG", "the line is too long",
                        "at most 1 MiB");
    }
  }
  return std::nullopt;
}

Result<std::string> read_text(const std::string& path) {
  const int fd = path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return read_error(path, errno);
  std::string text;
  TextCheck check(path);
  std::optional<Diagnostic> bad;
  constexpr std::size_t kChunk = std::size_t{1} << 18;
  while (!bad) {
    const std::size_t had = text.size();
    text.resize(had + kChunk);
    const ssize_t got = ::read(fd, text.data() + had, kChunk);
    text.resize(had + static_cast<std::size_t>(got > 0 ? got : 0));
    if (got < 0) {
      if (errno == EINTR) continue;
      bad = read_error(path, errno);
      break;
    }
    if (got == 0) break;
    bad = check.look(text);
  }
  if (fd != STDIN_FILENO) ::close(fd);
  if (bad) return std::move(*bad);
  return text;
}

}  // namespace dtmalloc::workload
