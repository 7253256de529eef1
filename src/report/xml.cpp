// SPDX-License-Identifier: BSD-2-Clause
// libxo's XML of what it prints as JSON: the same tree, written with tags.
// Counterpart:  contrib/libxo (XO_STYLE_XML)
// Differs:      ends with a newline

#include <dtmalloc/report/report.hpp>
#include <dtmalloc/sys/error.hpp>

namespace dtmalloc::report {
namespace {

constexpr std::string_view kVersion = "__version";

// Reads a document of this layer's own printers: objects, lists, strings and numbers, no blanks.
class Reader {
 public:
  explicit Reader(std::string_view json) : json_(json) {}

  // What stands in an object becomes elements; the version an attribute of the next one.
  // A list at the top stands in an element of its name, as a document has one root.
  void object(std::string& out, bool top) {
    expect('{');
    while (!accept('}')) {
      const std::string name = string();
      expect(':');
      if (name == kVersion)
        version_ = string();
      else if (top && json_[at_] == '[')
        tagged(name, out, [&] { value(name, out); });
      else
        value(name, out);
      (void)accept(',');
    }
  }

 private:
  bool accept(char c) {
    if (at_ >= json_.size() || json_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) { DTM_CHECK(accept(c), "a report's JSON is not what its reader knows"); }

  void value(const std::string& name, std::string& out) {
    if (accept('[')) {  // one element for each
      while (!accept(']')) {
        value(name, out);
        (void)accept(',');
      }
      return;
    }
    tagged(name, out, [&] {
      if (json_[at_] == '{') {
        object(out, false);
      } else if (json_[at_] == '"') {
        for (const char c : string())
          out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
      } else {
        while (at_ < json_.size() && json_[at_] != ',' && json_[at_] != '}' && json_[at_] != ']')
          out += json_[at_++];
      }
    });
  }

  template <typename Content>
  void tagged(const std::string& name, std::string& out, const Content& content) {
    out += '<' + name;
    if (!version_.empty()) out += " version=\"" + version_ + '"';
    version_.clear();
    out += '>';
    content();
    out += "</" + name + '>';
  }

  std::string string() {
    std::string out;
    expect('"');
    while (!accept('"')) {
      if (!accept('\\')) {
        out += json_[at_++];
        continue;
      }
      const char kind = json_[at_++];
      if (kind == 'u') {  // a byte that JSON cannot hold; XML cannot either
        out += '?';
        at_ += 4;
      } else {
        out += kind == 'n' ? '\n' : kind == 't' ? '\t' : kind == 'r' ? '\r' : kind;
      }
    }
    return out;
  }

  std::string_view json_;
  std::size_t at_ = 0;
  std::string version_;
};

}  // namespace

std::string xml_of_json(std::string_view json) {
  std::string out;
  Reader(json).object(out, true);
  return out + '\n';
}

}  // namespace dtmalloc::report
