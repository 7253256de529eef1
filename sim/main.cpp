// SPDX-License-Identifier: BSD-2-Clause
// The command line: options to a command's struct, and nothing else.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <dtmalloc/sys/diagnostic.hpp>
#include <dtmalloc/workload/workload.hpp>
#include <set>

#include "commands.hpp"
#include "machine.hpp"
#include "output.hpp"
#include "reports.hpp"

namespace {

using namespace dtmalloc;
using namespace dtmalloc::sim;

const std::vector<std::string> kCommands{"run", "list", "import"};
const std::vector<std::string> kLater{"dtrace", "check", "generate", "shrink",  "replay",
                                      "record", "diff",  "merge",    "overhead"};

std::string did_you_mean(const std::string& name, const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& near : nearest_names(name, names)) {
    out += (out.empty() ? "; did you mean " : ", ") + near;
  }
  return out.empty() ? out : out + "?";
}

// An option whose kind the help need not tell.
CLI::Validator quiet(CLI::Validator check) { return check.description(""); }

// What only a run has is left out of a list.
void add_machine_options(CLI::App& app, MachineOptions& machine, bool runs) {
  const auto read = [](std::optional<std::uint64_t>& slot, auto parse, const std::string& option,
                       const std::string& expected) {
    return [&slot, parse, option, expected](const CLI::results_t& values) {
      slot = parse(values.back());
      if (!slot)
        throw CLI::ValidationError(option, "'" + values.back() + "', expected " + expected);
      return true;
    };
  };
  app.add_option("--cpus", machine.cpus, "simulated CPUs, 1 to 1024")
      ->type_name("N")
      ->check(quiet(CLI::Range(1, 1024)));
  app.add_option("--domains", machine.domains, "NUMA domains, 1 to 8")->type_name("N");
  app.add_option("--release", machine.release, "FreeBSD release whose rules hold: 8, 12, 14, 16")
      ->type_name("N");
  app.add_option("--mem", read(machine.mem, workload::parse_size, "--mem", "a size: 512M, 2G, ..."),
                 "physical memory: 512M, 2G, ...")
      ->type_name("SIZE");
  app.add_option("--config", machine.config, "kernel configuration: GENERIC, GENERIC-NODEBUG")
      ->type_name("NAME");
  app.add_flag("--invariants", machine.invariants, "kernel option INVARIANTS");
  app.add_flag("--redzone", machine.redzone, "kernel option DEBUG_REDZONE");
  app.add_flag("--memguard", machine.memguard, "kernel option DEBUG_MEMGUARD");
  app.add_flag("--make-failures", machine.make_failures, "kernel option MALLOC_MAKE_FAILURES");
  app.add_option("--maxzones", machine.maxzones, "kernel option MALLOC_DEBUG_MAXZONES")
      ->type_name("N");
  app.add_option("--tunable", machine.tunables, "a line of loader.conf(5)")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  if (!runs) return;
  app.add_option("--seed",
                 read(machine.seed, workload::parse_count, "--seed", "a number from 0 to 2^64-1"),
                 "seed of the run")
      ->type_name("N");
  app.add_flag("--ledger", machine.ledger, "books beyond the kernel: owners, peaks, findings");
  app.add_option_function<std::string>(
         "--clock", [&machine](const std::string& clock) { machine.real_clock = clock == "real"; },
         "virtual (default) or real")
      ->type_name("CLOCK")
      ->check(quiet(CLI::IsMember({"virtual", "real"})));
}

CLI::Validator file_name() {
  return CLI::Validator(
      [](const std::string& value) {
        return value.empty() ? std::string("expected the name of a file, or - for standard output")
                             : std::string();
      },
      "");
}

struct RunParser {
  explicit RunParser(CLI::App& app) : command(app) {
    app.add_option("WORKLOAD", options.workload, "workload file, - for standard input")
        ->required()
        ->type_name("");
    app.add_option("ARG", options.args, "$1, $2, ... of the D programs")->type_name("");
    name = app.add_option("-n", names, "D program given in place")->type_name("PROG");
    script = app.add_option("-s", scripts, "file with a D program, - for standard input")
                 ->type_name("SCRIPT");
    option = app.add_option("-x", settings, "tracing option")->type_name("OPT[=V]");
    for (CLI::Option* each : {name, script, option}) each->allow_extra_args(false);
    quiet_flag = app.add_flag("-q", on[0], "print only what the D programs print (-x quiet)");
    zdefs = app.add_flag("-Z", on[1], "descriptions may match nothing (-x zdefs)");
    destructive = app.add_flag("-w", on[2], "allow destructive actions (-x destructive)");
    flowindent = app.add_flag("-F", on[3], "indent by function (-x flowindent)");
    app.add_option("--report", options.reports, "reports after the run, joined by commas; below")
        ->type_name("LIST")
        ->allow_extra_args(false);
    app.add_flag("--json", json, "reports as JSON, the tables of vmstat(8) as libxo prints it");
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
    const auto readers = std::count(scripts.begin(), scripts.end(), "-");
    if (readers + (options.workload == "-" ? 1 : 0) > 1)
      throw CLI::ValidationError("-s -", "standard input is read already");
    if (!names.empty() || !scripts.empty()) return;
    for (const CLI::Option* each : {option, quiet_flag, zdefs, destructive, flowindent})
      if (each->count() != 0)
        throw CLI::ValidationError(each->get_name(),
                                   "there is no D program to trace with, expected -n or -s");
  }

  // Options count in the order of the command line.
  RunOptions& ordered() {
    std::size_t n = 0, s = 0, x = 0;
    for (const CLI::Option* each : command.parse_order()) {
      if (each == name && n < names.size()) options.programs.push_back({false, names[n++]});
      if (each == script && s < scripts.size()) options.programs.push_back({true, scripts[s++]});
      if (each == option && x < settings.size()) options.tracing.push_back(settings[x++]);
      if (each == quiet_flag) options.tracing.emplace_back("quiet");
      if (each == zdefs) options.tracing.emplace_back("zdefs");
      if (each == destructive) options.tracing.emplace_back("destructive");
      if (each == flowindent) options.tracing.emplace_back("flowindent");
    }
    return options;
  }

  CLI::App& command;
  RunOptions options;
  bool on[4] = {}, json = false, xml = false;
  std::string libxo;
  std::vector<std::string> names, scripts, settings;
  CLI::Option *name, *script, *option, *quiet_flag, *zdefs, *destructive, *flowindent;
};

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
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
        text = "the option " + name + " means something to dtmalloc run only";
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
  RunParser run_parser(*run);
  ListOptions list_options;
  CLI::App* list = app.add_subcommand("list", "list the probes of a machine, as dtrace -l does");
  list->add_option("WORKLOAD", list_options.workload, "workload whose types are registered")
      ->type_name("");
  add_machine_options(*list, list_options.machine, false);
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
    print_error("Commands: run, list, import. Try `dtmalloc --help`.\n");
    return kUsage;
  }
  static const std::vector<std::string> kTop{"--help", "-h", "--version"};
  if (first.starts_with('-') && std::find(kTop.begin(), kTop.end(), first) == kTop.end()) {
    const std::vector<std::string> of_run = option_names(*run);
    complain(std::find(of_run.begin(), of_run.end(), first) != of_run.end()
                 ? "the option " + first + " belongs to a command: dtmalloc run " + first + " ..."
                 : "unknown option " + first + did_you_mean(first, kTop));
    print_error("Commands: run, list, import. Try `dtmalloc --help`.\n");
    return kUsage;
  }
  try {
    app.parse(argc, argv);
    if (run->parsed()) run_parser.check();
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error, *run);
  }
  try {
    if (run->parsed()) return run_command(run_parser.ordered());
    if (list->parsed()) return list_command(list_options);
  } catch (const KernelPanic& panic) {  // at boot
    print_panic(panic);
    return kPanic;
  }
  return import_command(import_options);
}
