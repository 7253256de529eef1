// SPDX-License-Identifier: BSD-2-Clause
// A document as libxo writes it: one tree of containers, lists and fields, as JSON, XML or HTML.
// Counterpart:  contrib/libxo
// Differs:      bytes that are no UTF-8 are question marks; HTML has neither head nor style.
// Invariants:   what was opened last is closed first; finish() closes the rest.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtmalloc::dtrace {

class Document {
 public:
  enum class Style : std::uint8_t { json, xml, html };

  Document(Style style, bool pretty) : style_(style), pretty_(pretty) {}

  void open_container(std::string_view name) { open(Kind::container, name); }
  void open_list(std::string_view name) { open(Kind::list, name); }
  void open_instance(std::string_view name) { open(Kind::instance, name); }
  void close();
  void number(std::string_view name, std::int64_t value) { field(name, std::to_string(value)); }
  void number(std::string_view name, std::uint64_t value) { field(name, std::to_string(value)); }
  void text(std::string_view name, std::string_view value);
  // Elements of a list that has no instances.
  void element(std::int64_t value);
  void element(std::string_view value);

  // What was written since the last call.
  std::string take() { return std::exchange(out_, {}); }
  void finish();

 private:
  enum class Kind : std::uint8_t { container, list, instance };
  struct Level {
    Kind kind;
    std::string name;
    bool first = true;
  };

  void begin();
  void open(Kind kind, std::string_view name);
  void field(std::string_view name, const std::string& value);  // `value` as it is to stand
  void separate();  // JSON: the comma before the next of a level
  void line();      // pretty: a new line with its indentation
  std::string quoted(std::string_view value) const;
  std::string escaped(std::string_view value) const;

  Style style_;
  bool pretty_;
  bool begun_ = false;
  std::vector<Level> levels_;
  std::string out_;
};

}  // namespace dtmalloc::dtrace
