// SPDX-License-Identifier: BSD-2-Clause
// One table for `dtmalloc dtrace` and `dtmalloc run`.

#include "tracing_flags.hpp"

namespace dtmalloc::sim {
namespace {

using Context = dtrace::ProgramSource::Context;

struct OptionFlag {
  char flag;
  const char* option;
  bool argument;
};
constexpr OptionFlag kOptionFlags[] = {
    {'b', "bufsize", true},      {'C', "cpp", false},     {'D', "define", true},
    {'F', "flowindent", false},  {'H', "cpphdrs", false}, {'I', "incdir", true},
    {'L', "libdir", true},       {'q', "quiet", false},   {'U', "undef", true},
    {'w', "destructive", false}, {'X', "stdc", true},     {'Z', "zdefs", false},
};

struct SpecifierFlag {
  char flag;
  Context context;
};
constexpr SpecifierFlag kSpecifierFlags[] = {{'P', Context::provider},
                                             {'m', Context::module},
                                             {'f', Context::function},
                                             {'n', Context::probe_name},
                                             {'i', Context::probe_name}};

}  // namespace

bool add_tracing_flag(TracingOptions& options, char flag, const std::string& argument) {
  const std::string letter = std::string("-") + flag;
  for (const OptionFlag& each : kOptionFlags) {
    if (each.flag != flag) continue;
    options.settings.push_back({each.argument ? letter + " " + argument : letter,
                                std::string(each.option) + (each.argument ? "=" + argument : "")});
    return true;
  }
  for (const SpecifierFlag& each : kSpecifierFlags) {
    if (each.flag != flag) continue;
    options.programs.push_back({false, argument, each.context});
    return true;
  }
  switch (flag) {
    case 'a':
      options.claim = true;
      options.settings.push_back({"-a", "grabanon"});
      return true;
    case 's':
      options.programs.push_back({true, argument});
      return true;
    case 'x':
      options.settings.push_back({"-x " + argument.substr(0, argument.find('=')), argument});
      return true;
    case 'e':
      options.execute = false;
      return true;
    case 'd':
      options.show_program = true;
      return true;
    case 'O':
      options.aggregations_at_exit = true;
      return true;
    case 'S':
      options.show_dif = true;
      return true;
    case 'v':
      options.verbose = true;
      return true;
    default:
      return false;
  }
}

}  // namespace dtmalloc::sim
