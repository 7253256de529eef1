// SPDX-License-Identifier: BSD-2-Clause
// Reads the document of vmstat -m --libxo json, version 1 (KiB) or 2 (bytes).

#include <algorithm>
#include <charconv>
#include <dtmalloc/workload/import.hpp>
#include <functional>

namespace dtmalloc::workload {
namespace {

constexpr int kMaxNesting = 32;
constexpr std::uint64_t kMostNumber = std::uint64_t{1} << 62;

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  VmstatTable all() {
    if (!object(0, [this](const std::string& key, int depth) { return member(key, depth); })) {
      note("skipped from here: no JSON");
    }
    if (!version_2_) {
      table_.bytes = false;
      return std::move(table_);
    }
    table_.bytes = true;
    for (VmstatRow& row : table_.rows) row.memuse_kib = (row.memuse_kib + 1023) / 1024;
    return std::move(table_);
  }

 private:
  using Member = std::function<bool(const std::string& key, int depth)>;

  void note(const std::string& what) {
    table_.notes.push_back(file_ + ":" + std::to_string(line_) + ": " + what);
  }
  char peek() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) {
      line_ += text_[at_++] == '\n' ? 1 : 0;
    }
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool eat(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  bool string(std::string& out) {
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

  // A number, or anything else on one word, as text.
  bool word(std::string& out) {
    if (peek() == '"') return string(out);
    const std::size_t end = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
    out = std::string(text_.substr(at_, end - at_));
    at_ = end;
    return !out.empty();
  }

  bool number(std::uint64_t& out) {
    std::string digits;
    if (!word(digits)) return false;
    const char* last = digits.data() + digits.size();
    const auto [rest, error] = std::from_chars(digits.data(), last, out);
    if (error != std::errc{} || rest != last || out > kMostNumber) bad_ = true;
    return true;
  }

  bool object(int depth, const Member& each) {
    if (depth > kMaxNesting || !eat('{')) return false;
    if (eat('}')) return true;
    std::string key;
    do {
      if (!string(key) || !eat(':') || !each(key, depth + 1)) return false;
    } while (eat(','));
    return eat('}');
  }
  bool array(int depth, const std::function<bool()>& each) {
    if (depth > kMaxNesting || !eat('[')) return false;
    if (eat(']')) return true;
    do {
      if (!each()) return false;
    } while (eat(','));
    return eat(']');
  }
  bool skip(int depth) {
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

  bool member(const std::string& key, int depth) {
    std::string version;
    if (key == "__version") {
      if (!word(version)) return false;
      version_2_ = version == "2";
      return true;
    }
    if (key == "memory" && peek() == '[') return array(depth, [this, depth] { return row(depth); });
    if (peek() != '{') return skip(depth);
    return object(depth,
                  [this](const std::string& inner, int deeper) { return member(inner, deeper); });
  }

  bool row(int depth) {
    VmstatRow row;
    row.format = VmstatFormat::m3;
    bad_ = false;
    int seen = 0;
    (void)peek();
    row.line = line_;
    const bool whole = object(depth, [&](const std::string& key, int inner) {
      const bool field =
          key == "type" || key == "in-use" || key == "memory-use" || key == "requests";
      seen += field ? 1 : 0;
      if (key == "type") return string(row.name);
      if (key == "in-use") return number(row.inuse);
      if (key == "memory-use") return number(row.memuse_kib);
      if (key == "requests") return number(row.requests);
      if (key == "high-use") row.format = VmstatFormat::m2;
      if (key != "size") return skip(inner);
      return array(inner, [&] {
        std::uint64_t size = 0;
        if (!number(size)) return false;
        bad_ = bad_ || size == 0 || size > 1u << 30;
        row.sizes.push_back(static_cast<std::uint32_t>(size));
        return true;
      });
    });
    if (!whole) return false;
    const bool control = std::any_of(row.name.begin(), row.name.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    });
    const bool ascend = std::adjacent_find(row.sizes.begin(), row.sizes.end(),
                                           std::greater_equal<>()) == row.sizes.end();
    if (bad_ || seen != 4 || row.name.empty() || control || !ascend ||
        row.memuse_kib > std::uint64_t{1} << 50) {
      note("skipped: a row needs type, in-use, memory-use, requests, and ascending sizes");
    } else {
      table_.rows.push_back(std::move(row));
    }
    return true;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0, line_ = 1;
  VmstatTable table_;
  bool version_2_ = false;
  bool bad_ = false;
};

}  // namespace

VmstatTable read_vmstat_json(std::string_view text, const std::string& file) {
  return Reader(text, file).all();
}

}  // namespace dtmalloc::workload
