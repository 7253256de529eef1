// SPDX-License-Identifier: BSD-2-Clause
// A reader of libxo's JSON documents.
#include "workload/json_reader.hpp"

#include <algorithm>
#include <charconv>

namespace dtmalloc::workload {
namespace {

constexpr int kMaxNesting = 32;
constexpr std::uint64_t kMostNumber = std::uint64_t{1} << 62;

}  // namespace

char JsonReader::peek() {
  while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) {
    line_ += text_[at_++] == '\n' ? 1 : 0;
  }
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonReader::eat(char c) {
  if (peek() != c) return false;
  ++at_;
  return true;
}

bool JsonReader::string(std::string& out) {
  if (!eat('"')) return false;
  out.clear();
  while (at_ < text_.size() && text_[at_] != '"') {
    char c = text_[at_++];
    if (c == '\\') {
      if (at_ == text_.size()) return false;
      c = text_[at_++];
      if (c == 'u') {
        unsigned code = 0;
        if (at_ + 4 > text_.size()) return false;
        const char* last = text_.data() + at_ + 4;
        const auto [rest, error] = std::from_chars(text_.data() + at_, last, code, 16);
        if (error != std::errc{} || rest != last || code > 0xff) return false;
        at_ += 4;
        c = static_cast<char>(code);
      } else if (c == 'n' || c == 't' || c == 'r') {
        c = c == 'n' ? '\n' : c == 't' ? '\t' : '\r';
      }
    }
    out.push_back(c);
  }
  return at_++ < text_.size();
}

bool JsonReader::word(std::string& out) {
  if (peek() == '"') return string(out);
  const std::size_t end = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
  out = std::string(text_.substr(at_, end - at_));
  at_ = end;
  return !out.empty();
}

bool JsonReader::text(std::string& out, bool& bad) {
  if (peek() == '"') return string(out);
  bad = true;
  return skip(0);
}

bool JsonReader::number(std::uint64_t& out, bool& bad) {
  std::string digits;
  if (peek() == '{' || peek() == '[') {
    bad = true;
    return skip(0);
  }
  if (!word(digits)) return false;
  const char* last = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), last, out);
  if (error != std::errc{} || rest != last || out > kMostNumber) bad = true;
  return true;
}

bool JsonReader::object(int depth, const Member& each) {
  if (depth > kMaxNesting || !eat('{')) return false;
  if (eat('}')) return true;
  std::string key;
  do {
    if (!string(key) || !eat(':') || !each(key, depth + 1)) return false;
  } while (eat(','));
  return eat('}');
}

bool JsonReader::array(int depth, const std::function<bool()>& each) {
  if (depth > kMaxNesting || !eat('[')) return false;
  if (eat(']')) return true;
  do {
    if (!each()) return false;
  } while (eat(','));
  return eat(']');
}

bool JsonReader::skip(int depth) {
  std::string ignored;
  switch (peek()) {
    case '{':
      return object(depth, [this](const std::string&, int inner) { return skip(inner); });
    case '[':
      return array(depth, [this, depth] { return skip(depth + 1); });
    default:
      return word(ignored);
  }
}

}  // namespace dtmalloc::workload
