// SPDX-License-Identifier: BSD-2-Clause
// The command line: options to a command's struct, and nothing else.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <dtmalloc/sys/diagnostic.hpp>
#include <dtmalloc/workload/workload.hpp>
#include <map>
#include <set>

#include "commands.hpp"
#include "machine.hpp"
#include "machine_options.hpp"
#include "output.hpp"
#include "reports.hpp"
#include "tracing_flags.hpp"

namespace {

using namespace dtmalloc;
using namespace dtmalloc::sim;

const std::vector<std::string> kCommands{"run",   "replay", "record", "dtrace",  "list",
                                         "check", "test",   "import", "overhead"};
const std::vector<std::string> kLater{"generate", "shrink", "diff", "merge"};

std::string command_line() {
  std::string text;
  for (const std::string& command : kCommands)
    text += (text.empty() ? "Commands: " : ", ") + command;
  return text + ". Try `dtmalloc --help`.\n";
}

CLI::Validator file_name() {
  return CLI::Validator(
      [](const std::string& value) {
        return value.empty() ? std::string("expected the name of a file, or - for standard output")
                             : std::string();
      },
      "");
}

// What the command line gave to each of dtrace(1)'s flags, in the order of its kind.
using FlagValues = std::map<char, std::vector<std::string>>;
constexpr std::string_view kPrograms = "nsPmfia";

// The flags of dtrace(1) that a machine of ours has too; `only`: these of them.
void add_tracing_flags(CLI::App& app, FlagValues& flags, std::string_view only = {}) {
  const struct {
    char flag;
    const char* type;  // of its argument; null: it takes none
    const char* help;
  } known[] = {
      {'n', "PROG", "D program given in place"},
      {'s', "SCRIPT", "file with a D program, - for standard input"},
      {'P', "PROG", "the same, whose description begins with a provider"},
      {'m', "PROG", "... with a module"},
      {'f', "PROG", "... with a function"},
      {'i', "PROG", "... with the number of a probe"},
      {'x', "OPT[=V]", "tracing option"},
      {'b', "SIZE", "size of the trace buffers (-x bufsize)"},
      {'a', nullptr, "boot with the enabling that dtrace -A left, and claim it"},
      {'C', nullptr, "run the C preprocessor over scripts (-x cpp)"},
      {'D', "NAME[=V]", "define a macro of the preprocessor (-x define)"},
      {'U', "NAME", "undefine one (-x undef)"},
      {'I', "DIR", "directory of included files (-x incdir)"},
      {'H', nullptr, "print the names of included files (-x cpphdrs)"},
      {'L', "DIR", "directory of D libraries (-x libdir)"},
      {'d', nullptr, "print the programs without if and else"},
      {'e', nullptr, "compile the programs and run nothing"},
      {'S', nullptr, "print the intermediate code"},
      {'O', nullptr, "print aggregations at the end of structured output too"},
      {'v', nullptr, "print the stability of each program"},
      {'q', nullptr, "print only what the D programs print (-x quiet)"},
      {'Z', nullptr, "descriptions may match nothing (-x zdefs)"},
      {'w', nullptr, "allow destructive actions (-x destructive)"},
      {'F', nullptr, "indent by function (-x flowindent)"},
  };
  for (const auto& each : known) {
    if (!only.empty() && only.find(each.flag) == only.npos) continue;
    const std::string name = std::string("-") + each.flag;
    if (each.type != nullptr) {
      app.add_option(name, flags[each.flag], each.help)
          ->type_name(each.type)
          ->allow_extra_args(false);
    } else {
      app.add_flag_function(
          name,
          [&values = flags[each.flag]](std::int64_t count) {
            values.assign(static_cast<std::size_t>(count), "");
          },
          each.help);
    }
  }
}

// Options count in the order of the command line.
void enter_tracing_flags(const CLI::App& app, FlagValues& flags, TracingOptions& tracing) {
  std::map<char, std::size_t> used;
  for (const CLI::Option* each : app.parse_order()) {
    if (each->get_snames().empty()) continue;
    const char flag = each->get_snames().front().front();
    const auto values = flags.find(flag);
    if (values == flags.end() || used[flag] >= values->second.size()) continue;
    add_tracing_flag(tracing, flag, values->second[used[flag]++]);
  }
}

// Standard input is read once, and a flag without a program would do nothing.
void check_tracing_flags(const FlagValues& flags, const std::string& workload) {
  bool traces = false;
  int readers = workload == "-" ? 1 : 0;
  for (const auto& [flag, values] : flags) {
    traces = traces || (!values.empty() && kPrograms.find(flag) != kPrograms.npos);
    if (flag == 's') readers += static_cast<int>(std::count(values.begin(), values.end(), "-"));
  }
  if (readers > 1) throw CLI::ValidationError("-s -", "standard input is read already");
  if (traces) return;
  for (const auto& [flag, values] : flags)
    if (!values.empty())
      throw CLI::ValidationError(std::string("-") + flag,
                                 "there is no D program to trace with, expected -n or -s");
}

struct RunParser {
  RunParser(CLI::App& app, const char* operand, const char* help) : command(app) {
    app.add_option(operand, options.workload, help)->required()->type_name("");
    app.add_option("ARG", options.tracing.args, "$1, $2, ... of the D programs")->type_name("");
    add_tracing_flags(app, flags);
    app.add_option("--anonymous", options.tracing.anonymous, "the file of -a")->type_name("FILE");
    app.add_option("--report", options.reports, "reports after the run, joined by commas; below")
        ->type_name("LIST")
        ->allow_extra_args(false);
    app.add_flag("--json", json,
                 "reports as JSON, the tables of vmstat(8) as libxo prints it; without --report "
                 "what D programs print (-x oformat=json)");
    app.add_flag("--xml", xml, "the same as XML");
    app.add_flag("--libxo{json}", libxo, "the same: --libxo or --libxo=json, --libxo=xml");
    app.add_flag("--strict", options.strict, "leaks, drops and errors end with status 5");
    app.add_option("-o", options.output, "write results to a file")
        ->type_name("FILE")
        ->check(file_name());
    add_machine_options(app, options.machine, true);
    app.footer("REPORTS:\n" + report_help());
  }

  // What no single option shows to be wrong.
  void check() {
    if (!libxo.empty() && libxo != "json" && libxo != "xml")
      throw CLI::ValidationError("--libxo=" + libxo, "expected json or xml");
    std::set<std::string> styles;
    if (json) styles.insert("json");
    if (xml) styles.insert("xml");
    if (!libxo.empty()) styles.insert(libxo);
    if (styles.size() > 1) throw CLI::ValidationError("--json and --xml", "expected one of them");
    if (!styles.empty()) options.libxo = *styles.begin();
    check_tracing_flags(flags, options.workload);
  }

  RunOptions& ordered() {
    enter_tracing_flags(command, flags, options.tracing);
    return options;
  }

  CLI::App& command;
  RunOptions options;
  bool json = false, xml = false;
  std::string libxo;
  FlagValues flags;
};

struct OverheadParser {
  explicit OverheadParser(CLI::App& app) : command(app) {
    app.add_option("WORKLOAD", options.workload, "workload file, - for standard input")
        ->required()
        ->type_name("");
    app.add_option("ARG", options.tracing.args, "$1, $2, ... of the D programs")->type_name("");
    add_tracing_flags(app, flags, "nsPmfixbCDUIHLqZwF");
    app.add_option("--seconds", options.seconds, "how long to measure, about; 20")
        ->type_name("N")
        ->check(CLI::Validator(
            [](const std::string& value) {
              char* end = nullptr;
              const double seconds = std::strtod(value.c_str(), &end);
              return *end == '\0' && seconds >= 0.1 && seconds <= 86400
                         ? std::string()
                         : "'" + value + "', expected seconds from 0.1 to 86400";
            },
            ""));
    app.add_flag("--json", options.json, "one JSON object instead of the table");
    app.add_option("-o", options.output, "write results to a file")
        ->type_name("FILE")
        ->check(file_name());
    add_machine_options(app, options.machine, true);
    app.footer(
        "The workload runs again and again, in ways that take turns: without probe sites, with\n"
        "them disabled, with each probe that the programs name enabled empty, with all clauses,\n"
        "with each clause alone, without each aggregation. What D programs print is discarded;\n"
        "exit() does nothing, system() and freopen() are recorded and not done. Without a\n"
        "program the probes of dtmalloc are measured.");
  }
  OverheadOptions& ordered() {
    enter_tracing_flags(command, flags, options.tracing);
    return options;
  }
  CLI::App& command;
  OverheadOptions options;
  FlagValues flags;
};

void add_record_options(CLI::App& app, RecordOptions& options) {
  app.add_option("WORKLOAD", options.workload,
                 "workload to run, or binary trace to convert; - for standard input")
      ->required()
      ->type_name("");
  app.add_option("-o", options.output, "write the trace to a file")
      ->type_name("FILE")
      ->check(file_name());
  CLI::Option* binary = app.add_flag("--binary", options.binary, "write a binary trace");
  app.add_flag_function(
         "--text", [](std::int64_t) {}, "write a text (the default)")
      ->excludes(binary);
  add_machine_options(app, options.machine, true);
}

// What is wrong with the command line, with the options that may have been meant.
int usage_error(const CLI::App& app, const CLI::ParseError& error, const CLI::App& run) {
  std::string text = error.what();
  const CLI::App* command = &app;
  for (const CLI::App* sub : app.get_subcommands({})) {
    if (sub->parsed()) command = sub;
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::vector<std::string> names = option_names(*command);
    // CLI11 names the arguments behind a colon.
    const std::size_t colon = text.find(": ");
    if (colon != text.npos) {
      std::string name = text.substr(colon + 2);
      name = name.substr(0, name.find_first_of("= "));
      const std::vector<std::string> of_run = option_names(run);
      if (std::find(of_run.begin(), of_run.end(), name) != of_run.end())
        text = "the option " + name + " of dtmalloc run means nothing to dtmalloc" +
               (command == &app ? "" : " " + command->get_name());
      else
        text = (name.starts_with('-') ? "unknown option " : "unexpected argument ") + name +
               did_you_mean(name, names);
    }
  }
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) text += ", expected a number";
  complain(text);
  print_error("Try `dtmalloc " + (command == &app ? "" : command->get_name() + " ") + "--help`.\n");
  return kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_descriptors();
  CLI::App app(
      "FreeBSD's malloc(9) and dtmalloc(4), simulated: runs workloads, traces them with D.",
      "dtmalloc");
  app.set_version_flag("--version", "dtmalloc " DTM_VERSION);
  app.require_subcommand(1);

  CLI::App* run = app.add_subcommand("run", "run a workload, trace it, print reports");
  RunParser run_parser(*run, "WORKLOAD", "workload file, - for standard input");
  CLI::App* replay = app.add_subcommand("replay", "run a trace of any length, as run does");
  RunParser replay_parser(*replay, "TRACE", "trace, text or binary, - for standard input");
  RecordOptions record_options;
  CLI::App* record = app.add_subcommand("record", "write what a workload does as a trace");
  add_record_options(*record, record_options);
  ListOptions list_options;
  CLI::App* list = app.add_subcommand("list", "list the probes of a machine, as dtrace -l does");
  list->add_option("WORKLOAD", list_options.workload, "workload whose types are registered")
      ->type_name("");
  FlagValues list_flags;
  for (const char flag : {'n', 'P', 'm', 'f', 'i', 's'})
    list->add_option(std::string("-") + flag, list_flags[flag], "only the probes that it names")
        ->type_name(flag == 's' ? "SCRIPT" : "PROG")
        ->allow_extra_args(false);
  list->add_flag("-v", list_options.tracing.verbose, "attributes and arguments of each probe");
  add_machine_options(*list, list_options.machine, false);
  CheckOptions check_options;
  CLI::App* check = app.add_subcommand("check", "say what a script hardly means; runs nothing");
  check->add_option("SCRIPT", check_options.script, "file with a D program, - for standard input")
      ->required()
      ->type_name("");
  check->add_option("WORKLOAD", check_options.workload, "workload whose types are registered")
      ->type_name("");
  check->add_option("ARG", check_options.args, "$1, $2, ... of the script")->type_name("");
  FlagValues check_flags;
  for (const char flag : {'x', 'D', 'U', 'I', 'L'})
    check->add_option(std::string("-") + flag, check_flags[flag], "as of run")
        ->type_name(flag == 'x'   ? "OPT[=V]"
                    : flag == 'D' ? "NAME[=V]"
                                  : "NAME")
        ->allow_extra_args(false);
  for (const char flag : {'C', 'w', 'Z'})
    check->add_flag_function(
        std::string("-") + flag,
        [&values = check_flags[flag]](std::int64_t) { values.assign(1, ""); }, "as of run");
  check->add_flag("--strict", check_options.strict, "warnings end with status 5");
  add_machine_options(*check, check_options.machine, false);
  TestOptions test_options;
  CLI::App* test = app.add_subcommand("test", "run the golden tests that scripts carry");
  test->add_option("SCRIPT", test_options.paths, "scripts, and folders of them")
      ->required()
      ->type_name("");
  test->add_flag("--update", test_options.update, "write what comes out into the scripts");
  CLI::App* overhead =
      app.add_subcommand("overhead", "measure what probes and clauses cost a workload");
  OverheadParser overhead_parser(*overhead);
  app.add_subcommand("dtrace", "dtrace(1) on a machine that lives: dtmalloc dtrace --help");
  sim::ImportOptions import_options;
  CLI::App* import = app.add_subcommand("import", "make a workload from a capture");
  import->add_option("FORMAT", import_options.format, "vmstat-m or vmstat-z")
      ->required()
      ->type_name("");
  import->add_option("FILE", import_options.file, "the capture, - for standard input")
      ->required()
      ->type_name("");
  import->add_option("-o", import_options.output, "write the workload to a file")
      ->type_name("FILE")
      ->check(file_name());
  import->add_option("--release", import_options.release, "the release whose rules hold")
      ->type_name("N");
  import->add_flag("--replay-history", import_options.replay_history,
                   "make the past requests of vmstat-m for real");

  if (argc < 2) {
    print_error(app.help());
    return kUsage;
  }
  const std::string first = argv[1];
  if (!first.starts_with('-') &&
      std::find(kCommands.begin(), kCommands.end(), first) == kCommands.end()) {
    const bool later = std::find(kLater.begin(), kLater.end(), first) != kLater.end();
    complain(later ? "the command " + first + " is not modelled yet"
                   : "unknown command '" + first + "'" + did_you_mean(first, kCommands));
    print_error(command_line());
    return kUsage;
  }
  static const std::vector<std::string> kTop{"--help", "-h", "--version"};
  if (first.starts_with('-') && std::find(kTop.begin(), kTop.end(), first) == kTop.end()) {
    const std::vector<std::string> of_run = option_names(*run);
    complain(std::find(of_run.begin(), of_run.end(), first) != of_run.end()
                 ? "the option " + first + " belongs to a command: dtmalloc run " + first + " ..."
                 : "unknown option " + first + did_you_mean(first, kTop));
    print_error(command_line());
    return kUsage;
  }
  if (first == "dtrace") {
    try {
      return dtrace_command({argv + 2, argv + argc});
    } catch (const KernelPanic& panic) {  // at boot
      print_panic(panic);
      return kPanic;
    }
  }
  try {
    app.parse(argc, argv);
    if (run->parsed()) run_parser.check();
    if (overhead->parsed())
      check_tracing_flags(overhead_parser.flags, overhead_parser.options.workload);
    if (replay->parsed()) replay_parser.check();
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error, *run);
  }
  try {
    if (run->parsed()) return run_command(run_parser.ordered());
    if (replay->parsed()) return replay_command(replay_parser.ordered());
    if (record->parsed()) return record_command(record_options);
    if (test->parsed()) return test_command(test_options);
    if (overhead->parsed()) return overhead_command(overhead_parser.ordered());
    if (check->parsed()) {
      enter_tracing_flags(*check, check_flags, check_options.tracing);
      return check_command(check_options);
    }
    if (list->parsed()) {
      enter_tracing_flags(*list, list_flags, list_options.tracing);
      return list_command(list_options);
    }
  } catch (const KernelPanic& panic) {  // at boot
    print_panic(panic);
    return kPanic;
  }
  return import_command(import_options);
}
