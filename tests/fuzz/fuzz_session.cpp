// SPDX-License-Identifier: BSD-2-Clause
// Any bytes as the program of a session on a small machine that allocates: it ends, and what it
// prints in a structured format is well-formed.

#include <cctype>
#include <cstdint>
#include <cstring>
#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kernel.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace dtmalloc;
using namespace dtmalloc::dtrace;

// RFC 8259, with a stack of its own: nesting is no recursion.
class Json {
 public:
  explicit Json(std::string_view text) : text_(text) {}
  bool good() {
    do {
      if (!value()) return false;
      while (!open_.empty() && look() == open_.back()) close();
      if (open_.empty()) return look() == '\0' && at_ == text_.size();
      if (!eat(',')) return false;
      if (open_.back() == '}' && !name()) return false;
    } while (true);
  }

 private:
  char look() {
    while (at_ < text_.size() && std::strchr(" \t\r\n", text_[at_]) != nullptr) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool eat(char c) {
    if (look() != c) return false;
    ++at_;
    return true;
  }
  void close() {
    ++at_;
    open_.pop_back();
  }
  bool name() { return string() && eat(':'); }
  // A scalar, an empty structure, or what stands in structures that are opened here.
  bool value() {
    for (;;) {
      const char c = look();
      if (c == '"') return string();
      if (c != '{' && c != '[') return word();
      ++at_;
      const char closing = c == '{' ? '}' : ']';
      if (eat(closing)) return true;
      open_.push_back(closing);
      if (c == '{' && !name()) return false;
    }
  }
  bool string() {
    if (!eat('"')) return false;
    for (; at_ < text_.size(); ++at_) {
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') return ++at_ != 0;
      if (c < ' ') return false;
      if (c != '\\') continue;
      if (++at_ == text_.size()) return false;
      if (text_[at_] == 'u') {
        for (int i = 0; i < 4; ++i) {
          if (++at_ == text_.size() || std::isxdigit(static_cast<unsigned char>(text_[at_])) == 0)
            return false;
        }
      } else if (std::strchr("\"\\/bfnrt", text_[at_]) == nullptr) {
        return false;
      }
    }
    return false;
  }
  bool word() {
    const std::size_t start = at_;
    while (at_ < text_.size() && std::strchr(",]} \t\r\n", text_[at_]) == nullptr) ++at_;
    const std::string_view text = text_.substr(start, at_ - start);
    if (text == "true" || text == "false" || text == "null") return true;
    const std::size_t sign = text.starts_with('-') ? 1 : 0;
    const std::string_view digits = text.substr(sign);
    return !digits.empty() && digits.find_first_not_of("0123456789.eE+-") == digits.npos &&
           std::isdigit(static_cast<unsigned char>(digits[0])) != 0 &&
           (digits.size() == 1 || digits[0] != '0' || digits[1] == '.');
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<char> open_;  // what will close each
};

// Every element is closed by its own name, the one opened last first.
bool balanced(std::string_view text) {
  std::vector<std::string_view> open;
  for (std::size_t at = text.find('<'); at != text.npos; at = text.find('<', at)) {
    const std::size_t end = text.find('>', at);
    if (end == text.npos) return false;
    std::string_view tag = text.substr(at + 1, end - at - 1);
    at = end + 1;
    if (tag.starts_with('?') || tag.starts_with('!')) continue;
    const bool closes = tag.starts_with('/');
    if (closes) tag.remove_prefix(1);
    const std::string_view name = tag.substr(0, tag.find_first_of(" \t\r\n"));
    if (name.empty() || name.find('<') != name.npos) return false;
    if (!closes) {
      if (!tag.ends_with('/')) open.push_back(name);
      continue;
    }
    if (open.empty() || open.back() != name) return false;
    open.pop_back();
  }
  return open.empty();
}

// The program may set options itself: those that take memory, and the format, are not its own here.
bool is_bounded(std::string_view text) {
  for (const char* word : {"size", "nspec", "frames", "oformat", "rawbytes"}) {
    if (text.find(word) != text.npos) return false;
  }
  return true;
}

constexpr const char* kFormats[] = {"json", "xml", "html", "json,pretty"};
constexpr const char* kOptions[] = {"bufsize=16k", "aggsize=64k",  "dynvarsize=64k",
                                    "specsize=8k", "strsize=64",   "nspec=2",
                                    "defaultargs", "stackframes=4"};

}  // namespace

// The first byte chooses the format and what the rest is: a script, or a program of the command
// line.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > 4096) return 0;
  const unsigned choice = *data;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (!is_bounded(text)) return 0;
  KernelConfig config;
  config.cpus = 2;
  config.fixed_cpus = true;
  config.mem = std::uint64_t{64} << 20;
  Kernel kernel(config);
  kernel.cpus().bind(0);
  std::string out;
  bool ended = false;
  {
    malloc_type& type = kernel.define_type("M_A", "aa");
    Framework framework(kernel.cpus(), kernel.addresses());
    framework.load_standard_providers();
    load_dtmalloc(framework, kernel);
    Session session(framework,
                    {[&out](std::string_view part) { out += part; }, [](std::string_view) {}});
    for (const char* option : kOptions)
      DTM_CHECK(session.set_option(option), "an option of the target");
    DTM_CHECK(session.set_option(std::string("oformat=") + kFormats[choice & 3]), "a format");
    ProgramSource source;
    source.text = text;
    if ((choice & 4) != 0) {
      source.kind = ProgramSource::script;
      source.name = "fuzz.d";
    }
    try {
      if (const auto program = session.compile(source); program) {
        if (session.enable(*program) && session.go()) {
          for (int i = 0; i < 4 && !session.done(); ++i) {
            kernel.free(kernel.malloc(100, &type, M_WAITOK), &type);
            kernel.cpus().clock().advance(500000);
            session.work();
          }
          session.stop();
          ended = session.done();
        }
      }
    } catch (const KernelPanic&) {
      ended = false;  // panic() and what a destructive program breaks
    }
  }
  kernel.cpus().unbind();
  if (!ended) return 0;
  if ((choice & 3) == 0 || (choice & 3) == 3) {
    DTM_CHECK(Json(out).good(), "JSON is well-formed");
  } else {
    DTM_CHECK(balanced(out), "elements are closed");
  }
  return 0;
}
