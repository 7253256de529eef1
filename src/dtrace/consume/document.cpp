// SPDX-License-Identifier: BSD-2-Clause
// Documents in libxo's three styles.
#include "dtrace/consume/document.hpp"

#include <utility>

namespace dtmalloc::dtrace {
namespace {

// Bytes of the UTF-8 sequence at the front; 0: it is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool outside = (first == 0xed && byte(1) >= 0xa0) || (first == 0xf4 && byte(1) >= 0x90);
  return overlong || outside ? 0 : length;
}

}  // namespace

std::string Document::escaped(std::string_view value) const {
  std::string result;
  while (!value.empty()) {
    const std::size_t length = sequence_length(value);
    const char c = length == 0 ? '?' : value[0];
    if (length > 1) {
      result += value.substr(0, length);
    } else if (style_ == Style::json) {
      switch (c) {
        case '"':
        case '\\':
          result += '\\';
          result += c;
          break;
        case '\n':
          result += "\\n";
          break;
        case '\r':
          result += "\\r";
          break;
        case '\t':
          result += "\\t";
          break;
        default:
          if (static_cast<unsigned char>(c) < ' ') {
            result += "\\u00";
            result += "0123456789abcdef"[c >> 4 & 15];
            result += "0123456789abcdef"[c & 15];
          } else {
            result += c;
          }
          break;
      }
    } else if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else {
      // XML has no way to write other control characters.
      const bool control = static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t';
      result += control ? '?' : c;
    }
    value.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

std::string Document::quoted(std::string_view value) const {
  const std::string text = escaped(value);
  return style_ == Style::json ? '"' + text + '"' : text;
}

void Document::line() {
  if (!pretty_) return;
  out_ += '\n';
  std::size_t depth = style_ == Style::json ? 1 : 0;
  for (const Level& level : levels_) {
    depth += style_ == Style::json || level.kind != Kind::list ? 1 : 0;
  }
  if (style_ != Style::html) out_.append(2 * depth, ' ');
}

void Document::begin() {
  if (std::exchange(begun_, true)) return;
  if (style_ == Style::json) out_ += '{';
  if (style_ == Style::xml) out_ += "<?xml version=\"1.0\"?>\n";
}

void Document::separate() {
  const bool first = levels_.empty() || std::exchange(levels_.back().first, false);
  if (style_ == Style::json && !first) out_ += ',';
}

void Document::open(Kind kind, std::string_view name) {
  begin();
  const bool first = levels_.empty() || levels_.back().first;
  separate();
  switch (style_) {
    case Style::json:
      if (pretty_) {
        line();
      } else if (!first) {
        out_ += ' ';
      }
      if (kind != Kind::instance) out_ += quoted(name) + ": ";
      out_ += kind == Kind::list ? '[' : '{';
      break;
    case Style::xml:
      // The instances of a list have its name; it has no element of its own.
      if (kind == Kind::list) break;
      if (!levels_.empty()) line();
      out_ += '<' + std::string(name) + '>';
      break;
    case Style::html:
      // A line for each instance of the outer list; inside it there are data only.
      if (kind == Kind::instance && levels_.size() == 2) {
        if (pretty_ && !first) out_ += '\n';
        out_ += "<div class=\"line\">";
      }
      break;
  }
  levels_.push_back({kind, std::string(name), true});
}

void Document::close() {
  const Level level = std::move(levels_.back());
  levels_.pop_back();
  switch (style_) {
    case Style::json:
      if (!level.first) line();
      out_ += level.kind == Kind::list ? ']' : '}';
      break;
    case Style::xml:
      if (level.kind == Kind::list) break;
      if (!level.first) line();
      out_ += "</" + level.name + '>';
      break;
    case Style::html:
      if (level.kind == Kind::instance && levels_.size() == 2) {
        line();
        out_ += "</div>";
      }
      break;
  }
}

void Document::field(std::string_view name, const std::string& value) {
  separate();
  if (style_ != Style::html || levels_.size() > 2) line();
  switch (style_) {
    case Style::json:
      out_ += quoted(name) + (pretty_ ? ": " : ":") + value;
      break;
    case Style::xml:
      out_ += value.empty()
                  ? '<' + std::string(name) + "/>"
                  : '<' + std::string(name) + '>' + value + "</" + std::string(name) + '>';
      break;
    case Style::html:
      out_ += "<div class=\"data\" data-tag=\"" + std::string(name) + "\">" + value + "</div>";
      break;
  }
}

void Document::text(std::string_view name, std::string_view value) { field(name, quoted(value)); }

void Document::element(std::int64_t value) {
  if (style_ == Style::json) {
    separate();
    line();
    out_ += std::to_string(value);
  } else {
    field(levels_.back().name, std::to_string(value));
  }
}

void Document::element(std::string_view value) {
  if (style_ == Style::json) {
    separate();
    line();
    out_ += quoted(value);
  } else {
    field(levels_.back().name, quoted(value));
  }
}

void Document::finish() {
  begin();
  while (!levels_.empty()) close();
  if (style_ == Style::json) {
    if (pretty_) out_ += '\n';
    out_ += '}';
  }
  out_ += '\n';
}

}  // namespace dtmalloc::dtrace
