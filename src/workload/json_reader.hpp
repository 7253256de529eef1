// SPDX-License-Identifier: BSD-2-Clause
// A reader of libxo's JSON documents that keeps nothing: each member goes to a function.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace dtmalloc::workload {

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  // Every function is false where the text is no JSON. Nesting is bounded.
  using Member = std::function<bool(const std::string& key, int depth)>;
  bool object(int depth, const Member& each);
  bool array(int depth, const std::function<bool()>& each);
  bool string(std::string& out);
  // A number, or anything else on one word, as text.
  bool word(std::string& out);
  // A string; anything else is passed over and sets `bad`.
  bool text(std::string& out, bool& bad);
  // A word that should be a number up to 2^62; anything else leaves `out` and sets `bad`.
  bool number(std::uint64_t& out, bool& bad);
  bool skip(int depth);
  char peek();
  std::size_t line() const { return line_; }

 private:
  bool eat(char c);

  std::string_view text_;
  std::size_t at_ = 0, line_ = 1;
};

}  // namespace dtmalloc::workload
