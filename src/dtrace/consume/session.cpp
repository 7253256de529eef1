// SPDX-License-Identifier: BSD-2-Clause
// Session: what libdtrace and the command around it do, in order.
// Counterpart:  dt_open.c, dt_work.c, dtrace.c (the command)
#include <algorithm>
#include <cerrno>
#include <utility>

#include "dtrace/consume/preprocess.hpp"
#include "dtrace/consume/session_impl.hpp"

namespace dtmalloc::dtrace {
namespace {

Diagnostic error(std::string tag, std::string message) {
  Diagnostic diagnostic;
  diagnostic.tag = std::move(tag);
  diagnostic.message = std::move(message);
  return diagnostic;
}

// The command's simulated process: the leader of its process group, in the session of a shell.
constexpr int kShell = 999;

// Macro variables: the process's own numbers, so that they are the same in every run. There is no
// victim process ($target), and FreeBSD has neither tasks nor projects.
std::vector<std::pair<std::string, std::int64_t>> macros_of(const SimThread& tracer) {
  return {{"pid", tracer.pid}, {"ppid", tracer.ppid}, {"pgid", tracer.pid}, {"sid", tracer.ppid},
          {"uid", tracer.uid}, {"euid", tracer.uid},  {"gid", tracer.gid},  {"egid", tracer.gid},
          {"taskid", 0},       {"projid", 0},         {"target", 0}};
}

SpecContext spec_context(ProgramSource::Context context) {
  switch (context) {
    case ProgramSource::provider:
      return SpecContext::provider;
    case ProgramSource::module:
      return SpecContext::module;
    case ProgramSource::function:
      return SpecContext::function;
    case ProgramSource::probe_name:
      break;
  }
  return SpecContext::name;
}

std::string size_text(std::size_t bytes) {
  static constexpr char kUnits[] = {'t', 'g', 'm', 'k'};
  int shift = 40;
  for (const char unit : kUnits) {
    if (bytes != 0 && bytes % (std::size_t{1} << shift) == 0) {
      return std::to_string(bytes >> shift) + unit;
    }
    shift -= 10;
  }
  return std::to_string(bytes) + " bytes";
}

std::string_view go_error(int failure) {
  switch (failure) {
    case EACCES:
      return "Destructive actions not allowed";
    case E2BIG:
      return "END enablings exceed size of principal buffer";
    case ENOSPC:
      return "Enabling exceeds size of buffer";
    case ENOMEM:
      return "Cannot allocate memory";
    default:
      return "Failed to enable probe";
  }
}

// What go() that failed is in want of.
std::string go_advice(int failure, const Consumer& consumer) {
  const ConsumerConfig& config = consumer.config;
  if (failure == EACCES) return "-w, or the option destructive";
  if (failure == E2BIG) return "a larger bufsize: the records of END must fit beside others";
  if (failure == ENOMEM)
    return std::string("smaller sizes") + (config.resize ? "" : ", or bufresize=auto") +
           ": the host refuses the memory";
  if (failure != ENOSPC) return {};
  const Ecb* largest = nullptr;
  for (std::uint32_t epid = 1; const Ecb* ecb = consumer.ecb(epid); ++epid)
    if (ecb->clause != nullptr && (largest == nullptr || ecb->needed > largest->needed))
      largest = ecb;
  if (largest == nullptr || largest->needed <= config.bufsize)
    return "sizes of buffers of at least 8 bytes";
  const std::string clause = to_string(largest->clause->description);
  if (largest->needed == kNeverFits)
    return "a smaller strsize: no buffer holds a record of " + clause;
  return "a bufsize of at least " + std::to_string((largest->needed + 7) / 8 * 8) + ": " + clause +
         " records that much at once";
}

// The source line and a caret below its place. A long line is cut around the place; a tab keeps its
// place below itself, other control bytes show as '?'.
void append_place(std::string& text, const Diagnostic& diagnostic) {
  constexpr std::size_t kColumns = 100;
  if (diagnostic.source_line.empty() || diagnostic.where.column == 0) return;
  std::string line = diagnostic.source_line;
  std::size_t at = std::min<std::size_t>(diagnostic.where.column - 1, line.size());
  if (line.size() > kColumns) {
    const std::size_t first = at > kColumns / 2 ? at - kColumns / 2 : 0;
    const bool cut_end = line.size() - first > kColumns;
    line = (first > 0 ? "..." : "") + line.substr(first, kColumns) + (cut_end ? "..." : "");
    at = at - first + (first > 0 ? 3 : 0);
  }
  std::string caret;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto c = static_cast<unsigned char>(line[i]);
    if (i < at) caret += c == '\t' ? '\t' : ' ';
    if (c != '\t' && (c < ' ' || c == 0x7f)) line[i] = '?';
  }
  caret += '^';
  const std::size_t rest = line.size() > caret.size() ? line.size() - caret.size() : 0;
  const std::size_t tail = diagnostic.where.length > 1 ? diagnostic.where.length - 1 : 0;
  caret.append(std::min(rest, tail), '~');
  text += "    " + line + "\n    " + caret + "\n";
}

}  // namespace

// A script's file; of an argument the part that is the description.
std::string report_name(const ProgramSource& source) {
  if (source.kind == ProgramSource::script) return source.name;
  return source.text.substr(0, source.text.find_first_of("{/;"));
}

Session::Impl::Impl(Framework& framework, SessionSinks sinks)
    : framework(framework),
      sinks(std::move(sinks)),
      catalog((framework.open(), framework)),
      consumer(framework.impl()) {
  space.types = &catalog.types();
  tracer.execname = "dtrace";
  tracer.pid = 1000;
  tracer.ppid = kShell;
  tracer.tid = 100100;
}

Session::Impl::~Impl() {
  if (scheduled) framework.cpus().clock().cancel(callout);
}

void Session::Impl::out(std::string_view text) const {
  if (sinks.out && !text.empty()) sinks.out(text);
}

void Session::Impl::message(std::string_view text) const {
  if (sinks.err) sinks.err("dtrace: " + std::string(text) + "\n");
}
void Session::Impl::remark(std::string_view text) const {
  if (sinks.err) sinks.err("dtmalloc: " + std::string(text) + "\n");
}

// Less than a word is what sizes are rounded by.
void Session::Impl::report_lowered(const char* what, std::size_t wanted, std::size_t given) const {
  if (given + sizeof(std::uint64_t) > wanted) return;
  message(std::string(what) + " lowered to " + size_text(given));
}

void Session::Impl::report_rate(const char* what, std::uint64_t wanted, std::uint64_t given) const {
  constexpr std::uint64_t kSecond = 1000000000;
  if (wanted == given) return;
  std::string text = std::string(what) + (given > wanted ? " reduced to " : " increased to ");
  if (given <= kSecond && kSecond % given == 0) {
    text += std::to_string(kSecond / given) + " hz";
  } else if (given % kSecond == 0) {
    text += "once every " + std::to_string(given / kSecond) + " seconds";
  } else {
    text += "once every " + std::to_string(given) + " nanoseconds";
  }
  message(text);
}

Session::Session(Framework& framework, SessionSinks sinks)
    : impl_(std::make_unique<Impl>(framework, std::move(sinks))) {}

Session::~Session() {
  if (impl_ == nullptr) return;  // it has become the anonymous state
  Framework& framework = impl_->framework;
  impl_ = nullptr;
  framework.close();
}

Result<void> Session::set_option(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return impl_->set_option(text, {});
  return impl_->set_option(text.substr(0, equals), text.substr(equals + 1));
}

Result<void> Session::Impl::set_option(std::string_view name, std::string_view value) {
  const std::lock_guard lock(mutex);
  const std::string failure = options.set(name, value, false, active);
  if (failure.empty()) return {};
  Diagnostic diagnostic = error("CLI_OPTION", failure);
  if (failure == "Invalid option name") {
    const std::vector<std::string> names = Options::names();
    diagnostic.near_names = nearest_names(name, names);
  }
  return diagnostic;
}

bool Session::quiet() const { return impl_->quiet(); }
bool Session::structured() const { return impl_->options.is_set("oformat"); }
void Session::print_aggregations_at_exit() { impl_->print_at_exit = true; }

CompileInput Session::Impl::compile_input() {
  CompileInput input;
  input.settings = [this] {
    CompileSettings settings;
    settings.allow_zero_matches = options.is_set("zdefs");
    settings.allow_empty = options.is_set("empty");
    settings.argref = options.is_set("argref");
    settings.defaultargs = options.is_set("defaultargs");
    settings.strsize = strsize();
    // 0 is the default, too.
    const auto frames = [this](const char* option, std::uint64_t otherwise) {
      const std::uint64_t number = options.get(option);
      return number != 0 ? number : otherwise;
    };
    settings.stackframes = frames("stackframes", 20);
    settings.ustackframes = frames("ustackframes", 20);
    settings.jstackframes = frames("jstackframes", 50);
    settings.jstackstrsize = options.get("jstackstrsize", 512);
    settings.least_attribute = options.least_attribute();
    settings.version = static_cast<std::uint32_t>(options.get("version", kDVersion));
    return settings;
  };
  static_cast<CompileSettings&>(input) = input.settings();
  input.macros = macros_of(tracer);
  input.set_option = [this](std::string_view name, std::string_view value) {
    return options.set(name, value, true, active);
  };
  return input;
}

Diagnostic Session::Impl::tagged(Diagnostic diagnostic) const {
  if (options.is_set("errtags") && !diagnostic.tag.empty()) {
    diagnostic.message = "[" + diagnostic.tag + "] " + diagnostic.message;
  }
  return diagnostic;
}

Result<ProgramId> Session::compile(const ProgramSource& source) {
  if (auto loaded = impl_->load_libraries(); !loaded) return impl_->tagged(loaded.error());
  CompileInput input = impl_->compile_input();
  input.text = source.text;
  if (source.kind == ProgramSource::script && impl_->options.is_set("cpp")) {
    auto text = preprocess(source.text, impl_->options.cpp_path(), impl_->options.cpp_arguments());
    if (!text) return text.error();
    input.text = std::move(*text);
  }
  std::string text = input.text;
  if (source.kind == ProgramSource::script) input.file = source.name;
  input.context = spec_context(source.context);
  input.arguments.push_back(source.kind == ProgramSource::script ? source.name : "dtrace");
  input.arguments.insert(input.arguments.end(), source.args.begin(), source.args.end());
  auto output = dtrace::compile(input, impl_->catalog, impl_->space);
  if (!output) return impl_->tagged(output.error());
  impl_->programs.push_back({source, std::move(text),
                             std::make_shared<const Program>(std::move(output->program)),
                             std::move(output->parse_dump), std::move(output->desugar_dump),
                             std::move(output->type_dump), std::move(output->warnings)});
  return impl_->programs.size() - 1;
}

Result<std::size_t> Session::enable(ProgramId program) { return enable(program, nullptr); }

Result<std::size_t> Session::enable(ProgramId program, const ClauseChoice& choice) {
  DTM_CHECK(program < impl_->programs.size(), "no such program");
  if (impl_->active) return error("D_ENABLE", "Operation illegal when tracing is active");
  CompiledProgram& compiled = impl_->programs[program];
  const bool script = compiled.source.kind == ProgramSource::script;
  const std::string name = report_name(compiled.source);
  if (uses_large_variable(*compiled.program, impl_->space.variables)) {
    return error("D_ENABLE", "failed to enable '" + name + "': DIF program content is invalid");
  }
  impl_->consumer.config.strsize = impl_->strsize();
  const std::size_t pairs = impl_->consumer.enable(impl_->chosen(compiled, choice), impl_->space);
  impl_->matched += pairs;
  if (!impl_->quiet()) {
    impl_->message(std::string(script ? "script" : "description") + " '" + name + "' matched " +
                   std::to_string(pairs) + " probe" + (pairs == 1 ? "" : "s"));
  }
  return pairs;
}

Result<void> Session::go() {
  if (!impl_->active && impl_->options.is_set("grabanon")) return claim_anonymous();
  Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  if (impl.active) return error("D_GO", "Operation illegal when tracing is active");
  if (impl.matched == 0 && !impl.options.is_set("zdefs")) {
    return error("D_GO", impl.programs.empty() ? "no probes specified" : "no probes matched");
  }
  if (!impl.anonymous) {
    if (auto good = impl.check_sinks(); !good) return good;
  }
  ConsumerConfig& config = impl.consumer.config;
  const Options& options = impl.options;
  config.bufsize = options.get("bufsize");
  config.aggsize = options.get("aggsize");
  config.resize = options.get("bufresize") == 0;
  config.policy = static_cast<BufferPolicy>(options.get("bufpolicy"));
  config.cpu = options.is_set("cpu")
                   ? static_cast<int>(std::min<std::uint64_t>(options.get("cpu"), MAXCPU))
                   : -1;
  config.dynvarsize = options.get("dynvarsize", std::size_t{1} << 20);
  config.stackframes = options.get("stackframes", 20);
  config.nspec = options.get("nspec", 1);
  config.specsize = options.get("specsize", std::size_t{32} << 10);
  config.cleanrate = options.get("cleanrate", kDefaultCleanRate);
  config.destructive = options.is_set("destructive");
  const ConsumerConfig wanted = config;
  impl.aggregations.define(impl.space.aggregations, impl.strsize(), impl.symbol_text());
  if (const int failure = impl.consumer.go(impl.space, &impl.tracer); failure != 0) {
    Diagnostic refused =
        error("D_GO", "could not enable tracing: " + std::string(go_error(failure)));
    refused.expected = go_advice(failure, impl.consumer);
    return refused;
  }
  impl.begin_document();
  impl.active = true;
  if (impl.anonymous) return {};
  impl.report_lowered("buffer size", wanted.bufsize, config.bufsize);
  if (impl.consumer.has_aggregations()) {
    impl.report_lowered("aggregation size", wanted.aggsize, config.aggsize);
  }
  if (impl.consumer.speculates() && options.is_set("specsize")) {
    impl.report_lowered("speculation size", wanted.specsize, config.specsize);
  }
  if (options.is_set("dynvarsize")) {
    impl.report_lowered("dynamic variable size", wanted.dynvarsize, config.dynvarsize);
  }
  impl.report_rate("cleaning rate", wanted.cleanrate, config.cleanrate);
  impl.report_rate("status rate", options.get("statusrate", impl.status_interval()),
                   impl.status_interval());
  if (impl.options.is_set("destructive") && !impl.quiet()) {
    impl.message("allowing destructive actions");
  }
  impl.begin_passes();
  return {};
}

void Session::work() {
  const std::lock_guard lock(impl_->mutex);
  impl_->guarded_pass();
}

bool Session::done() const { return impl_->stopped; }
int Session::exit_status() const { return impl_->exit_status; }
bool Session::had_errors() const { return impl_->had_errors; }

void Session::stop() {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->active && !impl_->stopped && !impl_->passing) impl_->finish();
}

std::string Session::dump(ProgramId program, std::string_view stage) const {
  DTM_CHECK(program < impl_->programs.size(), "no such program");
  const CompiledProgram& compiled = impl_->programs[program];
  if (stage == "parse") return compiled.parse_dump;
  if (stage == "desugared") return compiled.desugar_dump;
  if (stage == "types") return compiled.type_dump;
  if (stage == "dif") return impl_->dif_listing(program);
  std::string text;
  for (const Clause& clause : compiled.program->clauses) {
    text += to_string(clause.description) + "\n";
    append(text, "  %s, %zu actions\n", clause.predicate ? "predicate" : "no predicate",
           clause.actions.size());
  }
  return text;
}

std::string message_of(const ProgramSource& source, const Diagnostic& diagnostic) {
  std::string text = "dtrace: ";
  if (source.kind == ProgramSource::script) {
    text += "failed to compile script " + source.name + ": ";
  } else {
    text += "invalid probe specifier " + source.text + ": ";
  }
  std::string_view body = diagnostic.message;
  if (!body.empty() && body.back() == '\n') body.remove_suffix(1);
  text += body;
  text += '\n';
  append_place(text, diagnostic);
  if (!diagnostic.expected.empty()) text += "    expected " + diagnostic.expected + "\n";
  if (!diagnostic.near_names.empty()) {
    text += "    did you mean ";
    for (std::size_t i = 0; i < diagnostic.near_names.size(); ++i) {
      if (i > 0) text += i + 1 == diagnostic.near_names.size() ? " or " : ", ";
      text += diagnostic.near_names[i];
    }
    text += "?\n";
  }
  return text;
}

}  // namespace dtmalloc::dtrace
