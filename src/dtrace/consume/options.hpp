// SPDX-License-Identifier: BSD-2-Clause
// The options of a consumer: names, kinds, value syntax.
// Counterpart:  dt_options.c
#pragma once

#include <cstdint>
#include <dtmalloc/dtrace/probe.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtmalloc::dtrace {

enum class OptionClass : std::uint8_t { compile, runtime, dynamic };

class Options {
 public:
  Options();

  // -x name=value, or a pragma. `value` without data: none was given. The error's text
  // ("Invalid option name"), or empty.
  std::string set(std::string_view name, std::string_view value, bool from_program,
                  bool tracing_active);
  // "Unset" is a value of its own: is_set() with 0 is set.
  bool is_set(std::string_view name) const { return values_.find(name) != values_.end(); }
  std::uint64_t get(std::string_view name, std::uint64_t otherwise = 0) const;
  std::optional<Attribute> least_attribute() const;  // amin
  // Where libraries are looked for, the system's last.
  std::vector<std::string> library_paths() const;
  static std::vector<std::string> names();
  // What was set but not by a program, in that order, as NAME or NAME=VALUE; without those that say
  // how programs are read.
  const std::vector<std::string>& given() const { return given_; }
  // The options of another, but for those that are fixed once tracing is active.
  void take_all_but_runtime(const Options& other);

  // The preprocessor's: -D -U -I -H in the order given, and its path (empty: the system's).
  const std::vector<std::string>& cpp_arguments() const { return cpp_arguments_; }
  const std::string& cpp_path() const { return cpp_path_; }

 private:
  std::string change(std::string_view name, std::string_view value);
  std::string set_version(std::string_view text);

  std::map<std::string, std::uint64_t, std::less<>> values_;
  std::vector<std::string> cpp_arguments_;
  std::string cpp_path_;
  std::vector<std::string> library_paths_;
  std::string system_library_path_;
  std::vector<std::string> given_;
};

// "4m" -> 4194304, "101hz" -> 9900990 (ns), "yes" -> 1. False: not of this syntax.
bool parse_size(std::string_view text, std::uint64_t* value);
bool parse_rate(std::string_view text, std::uint64_t* nanoseconds);

}  // namespace dtmalloc::dtrace
