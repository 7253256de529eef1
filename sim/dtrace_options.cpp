// SPDX-License-Identifier: BSD-2-Clause
// Reads the words after `dtmalloc dtrace`.
// Counterpart:  dtrace.c (main's passes over argv, usage)

#include "dtrace_options.hpp"

#include <cctype>

#include "machine_options.hpp"
#include "output.hpp"
#include "tracing_flags.hpp"

namespace dtmalloc::sim {
namespace {

// As getopt(3) takes them: a colon behind those with an argument.
constexpr std::string_view kFlags = "3:6:aAb:Bc:CdD:ef:FGhHi:I:lL:m:n:o:Op:P:qs:SU:vVwx:X:Z";

class Parser {
 public:
  explicit Parser(const std::vector<std::string>& words) : words_(words), ours_("", "dtrace") {
    ours_.set_help_flag();
    ours_.add_flag("--help", options_.help, "print this");
    ours_
        .add_option("--workload", options_.workload,
                    "run this workload instead of the machine's own load, and end with it")
        ->type_name("FILE");
    ours_
        .add_option("--libxo", libxo_,
                    "structured output: json, xml or html, with pretty after a comma")
        ->type_name("STYLE");
    ours_
        .add_option("--anonymous", options_.tracing.anonymous,
                    "file of the enabling that -A leaves and -a boots with")
        ->type_name("FILE");
    add_machine_options(ours_, options_.machine, true);
  }

  std::optional<DtraceOptions> parse() {
    while (at_ < words_.size()) {
      const std::string& word = words_[at_];
      if (word == "--") {  // the next word is an operand, whatever it looks like
        ++at_;
        if (at_ < words_.size()) options_.tracing.args.push_back(words_[at_++]);
      } else if (word.size() > 2 && word.starts_with("--")) {
        if (!long_option(word)) return std::nullopt;
      } else if (word.size() > 1 && word[0] == '-') {
        if (!flags(word)) return std::nullopt;
      } else {
        options_.tracing.args.push_back(word);
        ++at_;
      }
    }
    if (modes_ > 1) {
      return wrong("only one of the [-AGhlV] options can be specified at a time\n", false);
    }
    if (options_.mode == DtraceOptions::version) return options_;
    if (options_.buffered && options_.mode != DtraceOptions::trace)
      return wrong("-B not valid in combination with [-AGl] options\n", false);
    if (options_.buffered && !options_.output.empty())
      return wrong("-B not valid in combination with -o option\n", false);
    if (!long_options()) return std::nullopt;
    return options_;
  }

  std::string help() { return ours_.help(); }

 private:
  std::nullopt_t wrong(const std::string& text, bool usage) {
    print_error("dtrace: " + text + (usage ? dtrace_usage() : ""));
    return std::nullopt;
  }

  // A word of flags; the last one's argument is the rest of the word, or the next word.
  bool flags(const std::string& word) {
    ++at_;
    for (std::size_t i = 1; i < word.size(); ++i) {
      const char flag = word[i];
      const std::size_t known = flag == ':' ? kFlags.npos : kFlags.find(flag);
      if (known == kFlags.npos) {
        wrong(std::string("illegal option -- ") + flag + "\n", true);
        return false;
      }
      if (known + 1 == kFlags.size() || kFlags[known + 1] != ':') {
        if (!enter(flag, {})) return false;
        continue;
      }
      std::string argument = word.substr(i + 1);
      if (argument.empty()) {
        if (at_ == words_.size()) {
          wrong(std::string("option requires an argument -- ") + flag + "\n", true);
          return false;
        }
        argument = words_[at_++];
      }
      return enter(flag, argument);
    }
    return true;
  }

  void mode(DtraceOptions::Mode mode) {
    options_.mode = mode;
    ++modes_;
  }

  bool enter(char flag, const std::string& argument) {
    if (add_tracing_flag(options_.tracing, flag, argument)) return true;
    switch (flag) {
      case '3':
      case '6':
        if (argument != (flag == '3' ? "2" : "4")) {
          wrong(std::string("illegal option -- ") + flag + argument + "\n", true);
          return false;
        }
        options_.thirty_two = flag == '3';
        return true;
      case 'A':
        mode(DtraceOptions::anonymous);
        return true;
      case 'B':
        options_.buffered = true;
        return true;
      case 'c':
        options_.command = argument;
        return true;
      case 'G':
        mode(DtraceOptions::elf);
        return true;
      case 'h':
        mode(DtraceOptions::header);
        return true;
      case 'l':
        mode(DtraceOptions::list);
        return true;
      case 'o':
        options_.output = argument;
        return true;
      case 'p':
        options_.process = argument;
        return true;
      default:  // V
        mode(DtraceOptions::version);
        return true;
    }
  }

  // Collects a word of ours, with its argument.
  bool long_option(const std::string& word) {
    ++at_;
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const CLI::Option* option = ours_.get_option_no_throw(name);
    if (option == nullptr) {
      complain("unknown option " + name + did_you_mean(name, option_names(ours_)));
      print_error("Try `dtmalloc dtrace --help`.\n");
      return false;
    }
    long_.push_back(word);
    const bool takes = option->get_items_expected_max() > 0;
    if (takes && equals == word.npos && at_ < words_.size()) long_.push_back(words_[at_++]);
    return true;
  }

  bool long_options() {
    try {
      std::vector<std::string> reversed(long_.rbegin(), long_.rend());
      ours_.parse(std::move(reversed));
    } catch (const CLI::ParseError& error) {
      std::string text = error.what();
      if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr)
        text += ", expected a number";
      complain(text);
      print_error("Try `dtmalloc dtrace --help`.\n");
      return false;
    }
    if (!libxo_.empty()) {
      options_.tracing.settings.push_back({"--libxo " + libxo_, "oformat=" + libxo_});
    }
    return true;
  }

  const std::vector<std::string>& words_;
  std::size_t at_ = 0;
  DtraceOptions options_;
  int modes_ = 0;
  CLI::App ours_;  // the options with long names
  std::vector<std::string> long_;
  std::string libxo_;
};

// The options of CLI11's help, without its heading.
std::string long_help() {
  const std::vector<std::string> none;
  const std::string text = Parser(none).help();
  const std::size_t at = text.find("--help");
  return at == text.npos ? "" : text.substr(text.rfind('\n', at) + 1);
}

}  // namespace

std::optional<DtraceOptions> parse_dtrace(const std::vector<std::string>& words) {
  return Parser(words).parse();
}

std::string dtrace_usage() {
  static const char* const kAction = "[[ predicate ] action ]";
  std::string text =
      "Usage: dtrace [-32|-64] [-aACdeFGhHlOqSvVwZ] [-b bufsz] [-c cmd] [-D name[=def]]\n"
      "\t[-I path] [-L path] [-o output] [-p pid] [-s script] [-U name]\n"
      "\t[-x opt[=val]] [-X a|c|s|t]\n\n";
  for (const char* const specifier :
       {"-P provider", "-m [ provider: ] module", "-f [[ provider: ] module: ] func",
        "-n [[[ provider: ] module: ] func: ] name", "-i probe-id"}) {
    text += std::string("\t[") + specifier + " " + kAction + "]";
    text += specifier[1] == 'i' ? " [ args ... ]\n\n" : "\n";
  }
  text +=
      "\tpredicate -> '/' D-expression '/'\n"
      "\t   action -> '{' D-statements '}'\n\n";
  const struct {
    const char* flag;
    const char* what;
  } flags[] = {
      {"-32", "take the kernel for a 32-bit one (refused: it is LP64)"},
      {"-64", "take the kernel for a 64-bit one"},
      {"-a ", "claim anonymous tracing state"},
      {"-A ", "leave an enabling for the next boot"},
      {"-b ", "set the size of the trace buffers"},
      {"-B ", "pass output through the buffering handler"},
      {"-c ", "run a command and trace it (refused)"},
      {"-C ", "run the C preprocessor over scripts"},
      {"-d ", "print the programs without if and else"},
      {"-D ", "define a macro for the preprocessor"},
      {"-e ", "exit when all is compiled, before probes are enabled"},
      {"-f ", "enable or list probes by function"},
      {"-F ", "indent the output by function"},
      {"-G ", "make an ELF file of the program (refused)"},
      {"-h ", "make a header of static probes (refused)"},
      {"-H ", "print the names of files that the preprocessor includes"},
      {"-i ", "enable or list the probe with a number"},
      {"-I ", "add a directory of included files"},
      {"-l ", "list probes"},
      {"-L ", "add a directory of D libraries"},
      {"-m ", "enable or list probes by module"},
      {"-n ", "enable or list probes by name"},
      {"-o ", "append the output to a file"},
      {"-O ", "print aggregations at the end of structured output too"},
      {"-p ", "trace a process (refused)"},
      {"-P ", "enable or list probes by provider"},
      {"-q ", "be quiet: print only what is traced"},
      {"-s ", "enable or list the probes of a script"},
      {"-S ", "print the intermediate code"},
      {"-U ", "undefine a macro of the preprocessor"},
      {"-v ", "be verbose: report stability, attributes and arguments"},
      {"-V ", "report the version of the D API"},
      {"-w ", "permit destructive actions"},
      {"-x ", "set an option of compiler or tracing"},
      {"-X ", "choose the conformance of the preprocessor to ISO C"},
      {"-Z ", "permit descriptions that match no probe"},
  };
  for (const auto& each : flags) text += std::string("\t") + each.flag + " " + each.what + "\n";
  text += "\nof dtmalloc alone:\n" + long_help();
  return text;
}

}  // namespace dtmalloc::sim
