// SPDX-License-Identifier: BSD-2-Clause
// json(): finds one element of a JSON text.
// Counterpart:  dtrace_json
// Invariants:   reads each byte once, from left to right, and no further than the element: what
//               follows it need not be well-formed. What it returns is a part of the text.
#include <algorithm>
#include <optional>

#include "dtrace/dif/ascii.hpp"
#include "dtrace/dif/dif_int.hpp"

namespace dtmalloc::dtrace {
namespace {

// A path, element by element: "a.b[2].c", "[1].x". A closing bracket says nothing.
class Path {
 public:
  explicit Path(std::string_view text) : rest_(text) {
    if (rest_.starts_with('[')) rest_.remove_prefix(1);
    next();
  }
  bool has_more() const { return more_; }
  void next() {
    const std::size_t end = rest_.find_first_of(".[");
    element_ = rest_.substr(0, end);
    more_ = end != std::string_view::npos;
    rest_ = more_ ? rest_.substr(end + 1) : std::string_view();
  }
  bool is(std::string_view name) const {
    std::size_t at = 0;
    for (const char c : element_) {
      if (c == ']') continue;
      if (at == name.size() || name[at] != c) return false;
      ++at;
    }
    return at == name.size();
  }
  // The element as the index of an array; a name is index 0.
  std::int64_t index() const {
    std::uint64_t value = 0;
    std::size_t at = element_.find_first_not_of(" \t\n\v\f\r");
    if (at == std::string_view::npos) return 0;
    const bool negative = element_[at] == '-';
    if (negative || element_[at] == '+') ++at;
    for (; at < element_.size() && (is_digit(element_[at]) || element_[at] == ']'); ++at) {
      if (element_[at] != ']') value = value * 10 + static_cast<std::uint64_t>(element_[at] - '0');
    }
    return static_cast<std::int64_t>(negative ? 0 - value : value);
  }

 private:
  std::string_view rest_, element_;
  bool more_ = false;
};

class Reader {
 public:
  Reader(std::string_view text, std::string_view path) : text_(text), path_(path) {}

  // Nothing: there is no such element, or the text up to it is malformed.
  std::optional<std::string_view> find() {
    char open = peek_after_blanks();
    while (open == '{' || open == '[') {
      ++at_;
      if (!find_member(open == '[')) return std::nullopt;
      open = peek_after_blanks();
      if (!path_.has_more()) return value();
      path_.next();
    }
    return std::nullopt;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char peek_after_blanks() {
    while (is_blank(peek())) ++at_;
    return peek();
  }
  bool accept(char c) {
    if (peek_after_blanks() != c) return false;
    ++at_;
    return true;
  }

  // Goes to the value, in the container just opened, that the path's element names.
  bool find_member(bool array) {
    const std::int64_t wanted = array ? path_.index() : 0;
    for (std::int64_t position = 0;; ++position) {
      bool found = array && position == wanted;
      if (!array) {
        if (peek_after_blanks() != '"') return false;
        const std::optional<std::string_view> key = string();
        if (!key || !accept(':')) return false;
        found = path_.is(*key);
      }
      if (found) return true;
      if (!value() || !accept(',')) return false;
    }
  }

  std::optional<std::string_view> value() {
    const char c = peek_after_blanks();
    if (c == '"') return string();
    if (c == '{' || c == '[') return container();
    if (is_lower(c)) return word();
    if (c == '-' || is_digit(c)) return number();
    return std::nullopt;
  }

  // What stands between the quotes, escapes as they are.
  std::optional<std::string_view> string() {
    const std::size_t start = ++at_;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return text_.substr(start, at_ - 1 - start);
      if (c == '\\' && peek() != '\0' && text_[at_++] == 'u') {
        for (int i = 0; i < 4; ++i) {
          if (!is_hex(peek())) return std::nullopt;
          ++at_;
        }
      }
    }
    return std::nullopt;
  }

  std::optional<std::string_view> container() {
    const std::size_t start = at_;
    std::size_t braces = 0;
    std::size_t brackets = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        if (!string()) return std::nullopt;
        continue;
      }
      ++at_;
      if (c == '{') ++braces;
      if (c == '[') ++brackets;
      if ((c == '}' && braces-- == 0) || (c == ']' && brackets-- == 0)) return std::nullopt;
      if (braces == 0 && brackets == 0) return text_.substr(start, at_ - start);
    }
    return std::nullopt;
  }

  std::optional<std::string_view> word() {
    const std::size_t start = at_;
    while (is_lower(peek())) ++at_;
    const std::string_view word = text_.substr(start, at_ - start);
    const bool known = word == "true" || word == "false" || word == "null";
    return known && at_ < text_.size() ? std::optional(word) : std::nullopt;
  }

  // Digits with a fraction and an exponent, in which alone signs may stand.
  std::optional<std::string_view> number() {
    const std::size_t start = at_++;
    bool fraction = false;
    bool exponent = false;
    for (;; ++at_) {
      const char c = peek();
      if (is_digit(c)) continue;
      if (exponent && (c == '+' || c == '-')) continue;
      if (!exponent && (c == 'e' || c == 'E')) {
        exponent = true;
        continue;
      }
      if (!exponent && !fraction && c == '.') {
        fraction = true;
        continue;
      }
      if (!exponent && (c == '+' || c == '-')) return std::nullopt;
      if (!exponent && !fraction && (c == 'x' || c == 'X')) return std::nullopt;
      break;
    }
    if (at_ == text_.size()) return std::nullopt;
    return text_.substr(start, at_ - start);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Path path_;
};

}  // namespace

std::uint64_t subr_json(DifState& state, std::string_view text, std::string_view path) {
  // As much as the kernel works in: both texts.
  const std::size_t left =
      state.scratch_size - std::min<std::size_t>(state.scratch_used, state.scratch_size);
  if (text.size() + path.size() + 2 > left) {
    set_fault(state, Fault::noscratch);
    return 0;
  }
  const std::optional<std::string_view> found = Reader(text, path).find();
  return found ? text_to_scratch(state, *found) : 0;
}

}  // namespace dtmalloc::dtrace
