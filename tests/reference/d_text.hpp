// SPDX-License-Identifier: BSD-2-Clause
// What D's functions on text give, written from their descriptions: the reference of d_eval.cpp.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtmalloc::dtrace::reference {

inline std::string in_base(std::uint64_t value, std::uint64_t base) {
  std::string digits;
  do {
    const auto digit = static_cast<unsigned>(value % base);
    digits.insert(digits.begin(), static_cast<char>(digit < 10 ? '0' + digit : 'a' + digit - 10));
    value /= base;
  } while (value != 0);
  return digits;
}

inline std::string lltostr(std::uint64_t value, std::uint64_t base) {
  if (base < 2 || base > 36) throw EvalFault{Fault::illop, 0};
  if (base == 10 && static_cast<std::int64_t>(value) < 0) return "-" + in_base(0 - value, 10);
  if (base == 16) return "0x" + in_base(value, 16);
  if (base == 8 && value != 0) return "0" + in_base(value, 8);
  return in_base(value, base);
}

inline std::string substr(const std::string& text, std::int64_t index, std::int64_t count) {
  const auto length = static_cast<std::int64_t>(text.size());
  std::int64_t first = index;
  if (first < 0) {
    first += length;
    if (first < 0) {  // reaches before the start: what lies inside remains
      if (count < 0 || first + count <= 0) return "";
      count += first;
      first = 0;
    }
  }
  if (first >= length) return "";
  std::int64_t end = count < 0 ? length + count : std::min(length, first + count);
  return end <= first
             ? ""
             : text.substr(static_cast<std::size_t>(first), static_cast<std::size_t>(end - first));
}

inline std::int64_t index_of(const std::string& text, const std::string& part, std::int64_t from) {
  if (text.empty() && part.empty()) return 0;
  const auto length = static_cast<std::int64_t>(text.size());
  if (from < 0) from = 0;
  if (from >= length) return part.empty() ? length : -1;
  for (std::int64_t at = from; at <= length; ++at) {
    if (text.compare(static_cast<std::size_t>(at), part.size(), part) == 0) return at;
  }
  return -1;
}

inline std::int64_t rindex_of(const std::string& text, const std::string& part, std::int64_t from) {
  if (text.empty() && part.empty()) return 0;
  const auto length = static_cast<std::int64_t>(text.size());
  if (from < 0) return part.empty() ? 0 : -1;
  for (std::int64_t at = std::min(from, length); at >= 0; --at) {
    if (text.compare(static_cast<std::size_t>(at), part.size(), part) == 0) return at;
  }
  return -1;
}

inline std::string base_name(std::string path) {
  if (path.empty()) return ".";
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (path == "/") return path;
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

inline std::string dir_name(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  path.resize(slash);
  while (!path.empty() && path.back() == '/') path.pop_back();
  return path.empty() ? "/" : path;
}

// The next token, taken off `rest`; nothing at its end.
inline std::optional<std::string> token(std::string& rest, const std::string& ends,
                                        std::size_t most) {
  rest.erase(0, std::min(rest.find_first_not_of(ends), rest.size()));
  if (rest.empty()) return std::nullopt;
  const std::string result = rest.substr(0, rest.find_first_of(ends)).substr(0, most);
  rest.erase(0, result.size());
  return result;
}

// As it is described, character by character.
inline std::string clean_path(const std::string& path, std::size_t strsize) {
  std::string out;
  std::string first;  // what stood first in `out`
  std::size_t i = 0;
  const auto at = [&](std::size_t n) { return n < path.size() ? path[n] : '\0'; };
  while (i < path.size()) {
    if (out.size() + 5 >= strsize) break;
    if (path[i] == '/' && at(i + 1) == '/') {
      i += 1;
    } else if (path[i] == '/' && at(i + 1) == '.' && at(i + 2) == '/') {
      i += 2;
    } else if (path[i] == '/' && at(i + 1) == '.' && at(i + 2) == '.' &&
               (at(i + 3) == '/' || at(i + 3) == '\0')) {
      i += 3;
      const std::size_t slash = out.rfind('/');
      out.resize(slash == std::string::npos ? 0 : slash);
      if (i == path.size()) {
        out += !out.empty() || first.empty() || slash == 0 ? std::string("/") : first;
      }
    } else {
      std::size_t count = 1;
      if (path[i] == '/') {
        count = at(i + 1) != '.' ? 2 : at(i + 2) != '.' ? 3 : 4;
      }
      out += path.substr(i, count);
      i += count;
    }
    if (!out.empty()) first = out.substr(0, 1);
  }
  return out;
}

inline std::uint64_t strtoll(const std::string& text, std::uint64_t base) {
  if (base < 2 || base > 36) throw EvalFault{Fault::illop, 0};
  std::size_t i = 0;
  while (i < text.size() && std::strchr(" \t\n\v\f\r", text[i]) != nullptr) ++i;
  bool negative = false;
  if (i < text.size() && (text[i] == '+' || text[i] == '-')) negative = text[i++] == '-';
  std::uint64_t value = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    std::uint64_t digit = 99;
    if (c >= '0' && c <= '9') digit = static_cast<std::uint64_t>(c - '0');
    if (c >= 'a' && c <= 'z') digit = static_cast<std::uint64_t>(c - 'a' + 10);
    if (c >= 'A' && c <= 'Z') digit = static_cast<std::uint64_t>(c - 'A' + 10);
    if (digit >= base) break;
    value = value * base + digit;
  }
  return negative ? 0 - value : value;
}

// One element of a JSON text, by recursive descent; throws NotFound.
struct NotFound {};
class Json {
 public:
  explicit Json(const std::string& text) : text_(text) {}
  std::string find(const std::string& path) {
    std::vector<std::string> elements(1);
    for (std::size_t i = 0; i < path.size(); ++i) {
      if ((i == 0 && path[i] == '[') || path[i] == ']') continue;
      if (path[i] == '.' || path[i] == '[') {
        elements.emplace_back();
      } else {
        elements.back() += path[i];
      }
    }
    return descend(elements, 0);
  }

 private:
  char look() {
    while (at_ < text_.size() && std::strchr(" \t\n\v\f\r", text_[at_]) != nullptr) ++at_;
    return here();
  }
  char here() const { return at_ < text_.size() ? text_[at_] : throw NotFound(); }
  void expect(char c) {
    if (look() != c) throw NotFound();
    ++at_;
  }
  std::string descend(const std::vector<std::string>& path, std::size_t depth) {
    if (depth == path.size()) return value();
    const char open = look();
    if (open != '{' && open != '[') throw NotFound();
    ++at_;
    for (std::int64_t i = 0;; ++i) {
      bool mine = open == '[' && i == static_cast<std::int64_t>(strtoll(path[depth], 10));
      if (open == '{') {
        if (look() != '"') throw NotFound();
        mine = value() == path[depth];
        expect(':');
      }
      if (mine) return descend(path, depth + 1);
      value();
      expect(',');
    }
  }
  std::string value() {
    const char c = look();
    if (c == '"') {
      std::string result;
      for (++at_; here() != '"'; ++at_) {
        result += here();
        if (here() != '\\') continue;
        ++at_;
        result += here();
        for (int i = 0; i < 4 && (i > 0 || text_[at_] == 'u'); ++i) {
          ++at_;
          if (std::isxdigit(static_cast<unsigned char>(here())) == 0) throw NotFound();
          result += here();
        }
      }
      ++at_;
      return result;
    }
    if (c == '{' || c == '[') {
      const std::size_t start = at_;
      std::int64_t braces = 0;
      std::int64_t brackets = 0;
      do {
        if (here() == '"') {
          value();
          continue;
        }
        braces += here() == '{' ? 1 : here() == '}' ? -1 : 0;
        brackets += here() == '[' ? 1 : here() == ']' ? -1 : 0;
        if (braces < 0 || brackets < 0) throw NotFound();
        ++at_;
      } while (braces != 0 || brackets != 0);
      return text_.substr(start, at_ - start);
    }
    std::string result;
    if (c >= 'a' && c <= 'z') {
      for (; here() >= 'a' && here() <= 'z'; ++at_) result += here();
      if (result != "true" && result != "false" && result != "null") throw NotFound();
      return result;
    }
    if (c != '-' && (c < '0' || c > '9')) throw NotFound();
    result += text_[at_++];
    const auto digits = [&](const char* more) {
      for (; std::strchr("0123456789", here()) != nullptr || std::strchr(more, here()) != nullptr;
           ++at_) {
        result += here();
      }
    };
    digits("");
    const bool whole = here() != '.';
    if (!whole) {
      result += text_[at_++];
      digits("");
    }
    if (here() == 'e' || here() == 'E') {
      result += text_[at_++];
      digits("+-");
    } else if (std::strchr(whole ? "+-xX" : "+-", here()) != nullptr) {
      throw NotFound();
    }
    return result;
  }

  const std::string text_;
  std::size_t at_ = 0;
};

}  // namespace dtmalloc::dtrace::reference
