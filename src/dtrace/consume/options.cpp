// SPDX-License-Identifier: BSD-2-Clause
// Options: the table of spec/dtrace.md 19, and the three value syntaxes.
// DEVIATES:     compile-time options about what does not exist here (object files, module loading,
//               the process cache, a core file of the compiler) are accepted and change nothing;
//               other options whose feature is not modelled are refused.
#include "dtrace/consume/options.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <optional>

#include "dtrace/core/time_unit.hpp"
#include "dtrace/dif/attributes.hpp"
#include "dtrace/lang/lang.hpp"

namespace dtmalloc::dtrace {
namespace {

enum class Kind : std::uint8_t {
  flag,          // boolean or number
  size,          // bytes
  rate,          // ns
  policy,        // bufpolicy
  resize,        // bufresize
  encoding,      // encoding
  format,        // oformat
  cpp_argument,  // of the preprocessor
  cpp_path,
  stdc,
  attribute,  // amin
  directory,  // libdir, syslibdir
  version,
  word,     // one of `words`; accepted: it changes nothing here
  ignored,  // ditto, of any value
  refused,  // not modelled
};

struct OptionInfo {
  std::string_view name;
  OptionClass option_class;
  Kind kind;
  bool command_only = false;  // not from within a D program
  std::string_view words = {};
};

constexpr OptionClass kCompile = OptionClass::compile;
constexpr OptionClass kRuntime = OptionClass::runtime;
constexpr OptionClass kDynamic = OptionClass::dynamic;

constexpr OptionInfo kOptions[] = {
    {"aggpercpu", kCompile, Kind::refused},
    {"amin", kCompile, Kind::attribute},
    {"argref", kCompile, Kind::flag},
    {"core", kCompile, Kind::ignored},
    {"cpp", kCompile, Kind::flag},
    {"cpphdrs", kCompile, Kind::cpp_argument, true},
    {"cpppath", kCompile, Kind::cpp_path, true},
    {"ctypes", kCompile, Kind::refused},
    {"defaultargs", kCompile, Kind::flag},
    {"define", kCompile, Kind::cpp_argument, true},
    {"debug", kCompile, Kind::ignored},
    {"droptags", kCompile, Kind::flag},
    {"dtypes", kCompile, Kind::refused},
    {"empty", kCompile, Kind::flag},
    {"encoding", kCompile, Kind::encoding},
    {"errtags", kCompile, Kind::flag},
    {"evaltime", kCompile, Kind::word, false, "exec preinit postinit main"},
    {"incdir", kCompile, Kind::cpp_argument, true},
    {"iregs", kCompile, Kind::refused},
    {"kdefs", kCompile, Kind::ignored},
    {"knodefs", kCompile, Kind::ignored},
    {"late", kCompile, Kind::word, false, "dynamic static"},
    {"lazyload", kCompile, Kind::ignored},
    {"ldpath", kCompile, Kind::refused, true},
    {"libdir", kCompile, Kind::directory},
    {"linkmode", kCompile, Kind::word, false, "kernel primary dynamic static"},
    {"linktype", kCompile, Kind::word, false, "elf dof"},
    {"nolibs", kCompile, Kind::flag},
    {"objcopypath", kCompile, Kind::refused, true},
    {"pgmax", kCompile, Kind::ignored},
    {"pspec", kCompile, Kind::ignored},
    {"setenv", kCompile, Kind::refused, true},
    {"stdc", kCompile, Kind::stdc, true},
    {"strip", kCompile, Kind::ignored},
    {"syslibdir", kCompile, Kind::directory},
    {"tree", kCompile, Kind::refused},
    {"tregs", kCompile, Kind::refused},
    {"udefs", kCompile, Kind::ignored},
    {"undef", kCompile, Kind::cpp_argument, true},
    {"unodefs", kCompile, Kind::ignored},
    {"unsetenv", kCompile, Kind::refused, true},
    {"verbose", kCompile, Kind::refused},
    {"version", kCompile, Kind::version},
    {"zdefs", kCompile, Kind::flag},

    {"aggsize", kRuntime, Kind::size},
    {"bufpolicy", kRuntime, Kind::policy},
    {"bufresize", kRuntime, Kind::resize},
    {"bufsize", kRuntime, Kind::size},
    {"cleanrate", kRuntime, Kind::rate},
    {"cpu", kRuntime, Kind::flag},
    {"destructive", kRuntime, Kind::flag},
    {"dynvarsize", kRuntime, Kind::size},
    {"grabanon", kRuntime, Kind::flag},
    {"jstackframes", kRuntime, Kind::flag},
    {"jstackstrsize", kRuntime, Kind::size},
    {"nspec", kRuntime, Kind::flag},
    {"specsize", kRuntime, Kind::size},
    {"stackframes", kRuntime, Kind::flag},
    {"statusrate", kRuntime, Kind::rate},
    {"strsize", kRuntime, Kind::size},
    {"temporal", kRuntime, Kind::flag},
    {"ustackframes", kRuntime, Kind::flag},

    {"agghist", kDynamic, Kind::flag},
    {"aggpack", kDynamic, Kind::flag},
    {"aggrate", kDynamic, Kind::rate},
    {"aggsortkey", kDynamic, Kind::flag},
    {"aggsortkeypos", kDynamic, Kind::flag},
    {"aggsortpos", kDynamic, Kind::flag},
    {"aggsortrev", kDynamic, Kind::flag},
    {"aggzoom", kDynamic, Kind::flag},
    {"flowindent", kDynamic, Kind::flag},
    {"oformat", kDynamic, Kind::format},
    {"quiet", kDynamic, Kind::flag},
    {"rawbytes", kDynamic, Kind::flag},
    {"stackindent", kDynamic, Kind::flag},
    {"switchrate", kDynamic, Kind::rate},
};

const OptionInfo* find(std::string_view name) {
  const auto* end = std::end(kOptions);
  const auto* found = std::find_if(std::begin(kOptions), end,
                                   [&](const OptionInfo& option) { return option.name == name; });
  return found == end ? nullptr : found;
}

// Whether it says how the text of a program is found and read, not what happens with it.
bool reads_programs(const OptionInfo& option) {
  return option.kind == Kind::cpp_argument || option.kind == Kind::cpp_path ||
         option.kind == Kind::stdc || option.kind == Kind::directory || option.name == "cpp";
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// Digits of a C integer at the front of `text`; sets what follows. False: no number, or too big.
bool parse_number(std::string_view text, std::uint64_t* value, std::string_view* rest) {
  unsigned base = 10;
  std::size_t at = 0;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    base = 16;
    at = 2;
  } else if (text.size() > 1 && text[0] == '0' && std::isdigit(text[1]) != 0) {
    base = 8;
    at = 1;
  }
  const std::size_t first = at;
  std::uint64_t result = 0;
  for (; at < text.size(); ++at) {
    const auto c = static_cast<unsigned char>(text[at]);
    unsigned digit = 99;
    if (std::isdigit(c) != 0) digit = c - '0';
    if (base == 16 && std::isxdigit(c) != 0 && std::isdigit(c) == 0) {
      digit = static_cast<unsigned>(std::tolower(c)) - 'a' + 10;
    }
    if (digit >= base) break;
    if (result > (std::numeric_limits<std::uint64_t>::max() - digit) / base) return false;
    result = result * base + digit;
  }
  if (at == first) return false;
  *value = result;
  *rest = text.substr(at);
  return true;
}

// Empty: unset.
std::optional<std::optional<std::uint64_t>> parse_flag(std::string_view text) {
  if (text.data() == nullptr) return std::optional<std::uint64_t>(0);
  if (text.empty()) return std::optional<std::uint64_t>();
  const std::string word = lower(text);
  for (const char* yes : {"yes", "enable", "enabled", "true", "on", "set"}) {
    if (word == yes) return std::optional<std::uint64_t>(1);
  }
  for (const char* no : {"no", "disable", "disabled", "false", "off", "unset"}) {
    if (word == no) return std::optional<std::uint64_t>();
  }
  std::uint64_t value = 0;
  std::string_view rest;
  if (!parse_number(text, &value, &rest) || !rest.empty()) return std::nullopt;
  return std::optional<std::uint64_t>(value);
}

// In the order of BufferPolicy.
constexpr std::string_view kPolicies[] = {"switch", "fill", "ring"};

// A style and further words of libxo's: Document::Style + 1 (0: text), 4 for "pretty".
bool parse_format(std::string_view text, std::uint64_t* value) {
  static constexpr std::string_view kStyles[] = {"text", "json", "xml", "html"};
  *value = 0;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find_first_of(",:"), text.size());
    const std::string_view word = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (word == "pretty") {
      *value |= 4;
      continue;
    }
    const auto* style = std::find(std::begin(kStyles), std::end(kStyles), word);
    if (style == std::end(kStyles)) return false;
    *value = (*value & 4) | static_cast<std::uint64_t>(style - std::begin(kStyles));
  }
  if ((*value & 3) == 0) *value = 0;
  return true;
}

constexpr const char* kInvalidValue = "Invalid value for specified option";

}  // namespace

bool parse_size(std::string_view text, std::uint64_t* value) {
  std::string_view rest;
  if (!parse_number(text, value, &rest)) return false;
  unsigned shift = 0;
  if (!rest.empty()) {
    if (rest.size() > 1) return false;
    switch (std::tolower(static_cast<unsigned char>(rest[0]))) {
      case 'k':
        shift = 10;
        break;
      case 'm':
        shift = 20;
        break;
      case 'g':
        shift = 30;
        break;
      case 't':
        shift = 40;
        break;
      default:
        return false;
    }
  }
  if (shift > 0 && *value > (std::numeric_limits<std::uint64_t>::max() >> shift)) return false;
  *value <<= shift;
  return true;
}

bool parse_rate(std::string_view text, std::uint64_t* nanoseconds) {
  std::uint64_t value = 0;
  std::string_view rest;
  if (!parse_number(text, &value, &rest)) return false;
  if (lower(rest) == "hz") {
    if (value == 0) return false;
    *nanoseconds = 1000000000 / value;
    return *nanoseconds > 0;
  }
  const std::uint64_t unit = rest.empty() ? 1 : time_unit(rest);
  if (unit == 0 || value > std::numeric_limits<std::int64_t>::max() / unit) return false;
  *nanoseconds = value * unit;
  return true;
}

// What the command sets before anything else.
Options::Options() {
  values_["bufsize"] = 4u << 20;
  values_["aggsize"] = 4u << 20;
  values_["temporal"] = 1;
}

std::uint64_t Options::get(std::string_view name, std::uint64_t otherwise) const {
  const auto found = values_.find(name);
  return found == values_.end() ? otherwise : found->second;
}

std::optional<Attribute> Options::least_attribute() const {
  if (!is_set("amin")) return std::nullopt;
  const std::uint64_t value = get("amin");
  return Attribute{static_cast<Stability>(value >> 16), static_cast<Stability>(value >> 8 & 0xff),
                   static_cast<DependencyClass>(value & 0xff)};
}

std::vector<std::string> Options::library_paths() const {
  std::vector<std::string> paths = library_paths_;
  if (!system_library_path_.empty()) paths.push_back(system_library_path_);
  return paths;
}

// A version only goes down.
std::string Options::set_version(std::string_view text) {
  constexpr std::array<std::string_view, 24> kVersions = {
      "1.0",   "1.1", "1.2",   "1.2.1", "1.2.2", "1.3",  "1.4",    "1.4.1",
      "1.5",   "1.6", "1.6.1", "1.6.2", "1.6.3", "1.7",  "1.7.1",  "1.8",
      "1.8.1", "1.9", "1.9.1", "1.10",  "1.11",  "1.12", "1.12.1", "1.13"};
  const std::optional<std::uint32_t> version = parse_version(text);
  if (!version) return "Version is not properly formatted or is too large";
  const std::uint64_t now = get("version", kDVersion);
  if (*version > now) return "Requested version conflicts with earlier setting";
  const bool exists = std::any_of(kVersions.begin(), kVersions.end(), [&](std::string_view known) {
    return parse_version(known) == version;
  });
  if (!exists) return "Requested version is not supported by compiler";
  values_["version"] = *version;
  return {};
}

std::vector<std::string> Options::names() {
  std::vector<std::string> result;
  for (const OptionInfo& option : kOptions) result.emplace_back(option.name);
  return result;
}

void Options::take_all_but_runtime(const Options& other) {
  const auto runtime = [](const std::string& name) { return find(name)->option_class == kRuntime; };
  std::erase_if(values_, [&](const auto& entry) { return !runtime(entry.first); });
  for (const auto& [name, value] : other.values_) {
    if (!runtime(name)) values_[name] = value;
  }
}

std::string Options::set(std::string_view name, std::string_view value, bool from_program,
                         bool tracing_active) {
  const OptionInfo* option = find(name);
  if (option == nullptr) return "Invalid option name";
  if (from_program && option->command_only) {
    return "Option cannot be used from within a D program";
  }
  if (tracing_active && option->option_class != OptionClass::dynamic) {
    return "Operation illegal when tracing is active";
  }
  std::string failure = change(name, value);
  if (failure.empty() && !from_program && !reads_programs(*option)) {
    given_.emplace_back(name);
    if (value.data() != nullptr) given_.back().append("=").append(value);
  }
  return failure;
}

std::string Options::change(std::string_view name, std::string_view value) {
  const OptionInfo* option = find(name);
  const bool has_value = value.data() != nullptr && !value.empty();
  std::uint64_t number = 0;
  switch (option->kind) {
    case Kind::flag: {
      const auto parsed = parse_flag(value);
      if (!parsed) return kInvalidValue;
      if (*parsed) {
        values_[std::string(name)] = **parsed;
      } else {
        values_.erase(std::string(name));
      }
      return {};
    }
    case Kind::size:
      if (!has_value || !parse_size(value, &number)) return kInvalidValue;
      if (name == "strsize" && (number == 0 || number > 0xffffffff)) return kInvalidValue;
      values_[std::string(name)] = number;
      return {};
    case Kind::rate:
      if (!has_value || !parse_rate(value, &number)) return kInvalidValue;
      if (number == 0 && name != "cleanrate") return kInvalidValue;
      values_[std::string(name)] = number;
      return {};
    case Kind::policy: {
      const auto* found = std::find(std::begin(kPolicies), std::end(kPolicies), value);
      if (found == std::end(kPolicies)) return kInvalidValue;
      values_["bufpolicy"] = static_cast<std::uint64_t>(found - std::begin(kPolicies));
      return {};
    }
    case Kind::resize:
      if (value != "auto" && value != "manual") return kInvalidValue;
      values_[std::string(name)] = value == "manual";
      return {};
    case Kind::encoding:
      if (value != "ascii" && value != "utf8") return kInvalidValue;
      values_[std::string(name)] = value == "ascii" ? 1 : 2;  // enum Encoding
      return {};
    case Kind::cpp_argument:
      if (name == "cpphdrs") {
        if (value.data() != nullptr) return kInvalidValue;
        cpp_arguments_.emplace_back("-H");
        return {};
      }
      if (!has_value) return kInvalidValue;
      cpp_arguments_.push_back((name == "define"   ? "-D"
                                : name == "incdir" ? "-I"
                                                   : "-U") +
                               std::string(value));
      return {};
    case Kind::directory:
      if (!has_value) return kInvalidValue;
      if (name == "libdir") {
        library_paths_.emplace_back(value);
      } else {
        system_library_path_ = value;
      }
      return {};
    case Kind::version:
      return set_version(has_value ? value : "");
    case Kind::cpp_path:
      if (!has_value) return kInvalidValue;
      cpp_path_ = value;
      return {};
    case Kind::stdc:
      // The host's preprocessor is an ISO one in each of them.
      return value == "a" || value == "c" || value == "s" || value == "t" ? "" : kInvalidValue;
    case Kind::word: {
      for (std::string_view words = option->words; has_value && !words.empty();) {
        const std::string_view word = words.substr(0, words.find(' '));
        if (value == word) return {};
        words.remove_prefix(std::min(words.size(), word.size() + 1));
      }
      return kInvalidValue;
    }
    case Kind::attribute: {
      const std::optional<Attribute> attribute = parse_attribute(has_value ? value : "");
      if (!attribute) return kInvalidValue;
      values_[std::string(name)] = static_cast<std::uint64_t>(attribute->name) << 16 |
                                   static_cast<std::uint64_t>(attribute->data) << 8 |
                                   static_cast<std::uint64_t>(attribute->dependency);
      return {};
    }
    case Kind::format:
      if (!has_value || !parse_format(value, &number)) return kInvalidValue;
      if (number == 0) {
        values_.erase(std::string(name));
      } else {
        values_[std::string(name)] = number;
      }
      return {};
    case Kind::ignored:
      return {};
    case Kind::refused:
      break;
  }
  return "not modelled: option " + std::string(name);
}

}  // namespace dtmalloc::dtrace
