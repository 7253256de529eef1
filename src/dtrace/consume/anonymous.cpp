// SPDX-License-Identifier: BSD-2-Clause
// Anonymous enablings: programs that trace from boot on without a consumer, until one claims them.
// Counterpart:  dtrace.c (dtrace_anon_grab, dtrace_anon_property); dtrace.c of the command (-A, -a)
//
// As text: a first line; `option BYTES` and a line NAME or NAME=VALUE of so many bytes; for every
// library `library PATH-BYTES TEXT-BYTES` and both; for every program
// `program KIND CONTEXT ARGUMENTS NAME-BYTES TEXT-BYTES` followed by name, text and arguments, each
// argument with its own line of bytes. The texts are those that were compiled: who boots with them
// needs neither the preprocessor nor the libraries' files.
#include <charconv>
#include <utility>

#include "dtrace/consume/session_impl.hpp"

namespace dtmalloc::dtrace {
namespace {

constexpr std::string_view kFirstLine = "dtmalloc anonymous enabling 1\n";

Diagnostic error(std::string message) {
  Diagnostic diagnostic;
  diagnostic.tag = "D_ANON";
  diagnostic.message = std::move(message);
  return diagnostic;
}

// Reads words and counted bytes; nothing more once something was not there.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  bool good() const { return good_; }
  bool done() const { return !good_ || text_.empty(); }
  void fail() { good_ = false; }
  std::string_view word() {
    const std::size_t end = text_.find_first_of(" \n");
    if (end == std::string_view::npos) {
      fail();
      return {};
    }
    return take(end, 1);
  }
  std::uint64_t number() {
    const std::string_view digits = word();
    std::uint64_t value = 0;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (status != std::errc() || end != digits.data() + digits.size()) fail();
    return value;
  }
  // With the newline that ends them.
  std::string bytes(std::uint64_t count) {
    if (count >= text_.size() || text_[count] != '\n') {
      fail();
      return {};
    }
    return std::string(take(count, 1));
  }

 private:
  std::string_view take(std::size_t count, std::size_t skip) {
    const std::string_view taken = text_.substr(0, count);
    text_.remove_prefix(count + skip);
    return taken;
  }
  std::string_view text_;
  bool good_ = true;
};

}  // namespace

struct Session::Anonymous : AnonymousState {
  explicit Anonymous(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
  ~Anonymous() override {
    if (impl == nullptr) return;
    Framework& framework = impl->framework;
    impl = nullptr;
    framework.close();
  }
  std::unique_ptr<Impl> impl;  // null: claimed
};

std::string Session::anonymous_enabling() const {
  std::string text(kFirstLine);
  for (const std::string& option : impl_->options.given()) {
    text += "option " + std::to_string(option.size()) + "\n" + option + "\n";
  }
  for (const auto& [path, library] : impl_->libraries) {
    text += "library " + std::to_string(path.size()) + " " + std::to_string(library.size()) + "\n" +
            path + "\n" + library + "\n";
  }
  for (const CompiledProgram& program : impl_->programs) {
    const ProgramSource& source = program.source;
    text += "program " + std::to_string(source.kind) + " " + std::to_string(source.context) + " " +
            std::to_string(source.args.size()) + " " + std::to_string(source.name.size()) + " " +
            std::to_string(program.text.size()) + "\n" + source.name + "\n" + program.text + "\n";
    for (const std::string& argument : source.args) {
      text += std::to_string(argument.size()) + "\n" + argument + "\n";
    }
  }
  return text;
}

Result<void> Session::start_anonymous(Framework& framework, std::string_view enabling) {
  if (!enabling.starts_with(kFirstLine)) return error("not an anonymous enabling");
  Reader reader(enabling.substr(kFirstLine.size()));
  Session session(framework, {});
  Impl& impl = *session.impl_;
  impl.libraries_loaded = true;
  std::vector<ProgramSource> sources;
  while (!reader.done()) {
    const std::string_view what = reader.word();
    if (what == "option") {
      const std::string option = reader.bytes(reader.number());
      if (reader.good() && !session.set_option(option)) reader.fail();
    } else if (what == "library") {
      const std::uint64_t path = reader.number();
      const std::uint64_t text = reader.number();
      const std::string name = reader.bytes(path);
      const std::string library = reader.bytes(text);
      if (!reader.good()) break;
      if (auto compiled = impl.compile_library(name, library); !compiled) return compiled;
    } else if (what == "program") {
      ProgramSource source;
      const std::uint64_t kind = reader.number();
      const std::uint64_t context = reader.number();
      if (kind > ProgramSource::script || context > ProgramSource::probe_name) reader.fail();
      source.kind = static_cast<ProgramSource::Kind>(kind);
      source.context = static_cast<ProgramSource::Context>(context);
      const std::uint64_t arguments = reader.number();
      const std::uint64_t name = reader.number();
      const std::uint64_t text = reader.number();
      source.name = reader.bytes(name);
      source.text = reader.bytes(text);
      for (std::uint64_t i = 0; i < arguments && reader.good(); ++i) {
        source.args.push_back(reader.bytes(reader.number()));
      }
      sources.push_back(std::move(source));
    } else {
      reader.fail();
    }
  }
  if (!reader.good()) return error("an anonymous enabling is damaged");
  impl.anonymous = true;
  impl.tracer = framework.cpus().thread0();
  for (const ProgramSource& source : sources) {
    auto program = session.compile(source);
    if (!program) return program.error();
    if (auto enabled = session.enable(*program); !enabled) return enabled.error();
  }
  if (auto gone = session.go(); !gone) return gone;
  const std::lock_guard lock(framework.impl().mutex);
  if (framework.impl().anonymous != nullptr) return error("there is an anonymous state already");
  framework.impl().anonymous = std::make_unique<Anonymous>(std::move(session.impl_));
  return {};
}

Result<void> Session::claim_anonymous() {
  Framework& framework = impl_->framework;
  std::unique_ptr<AnonymousState> state;
  {
    const std::lock_guard lock(framework.impl().mutex);
    if (framework.impl().anonymous == nullptr) {
      return error("could not enable tracing: No anonymous tracing state");
    }
    if (impl_->matched > 0) {
      return error("could not enable tracing: Can't claim anonymous state and enable probes");
    }
    state = std::move(framework.impl().anonymous);
  }
  auto claimed = std::move(static_cast<Anonymous&>(*state).impl);
  claimed->sinks = std::move(impl_->sinks);
  claimed->tracer = impl_->tracer;
  claimed->options.take_all_but_runtime(impl_->options);
  if (auto good = claimed->check_sinks(); !good) return good;
  claimed->anonymous = false;
  impl_ = std::move(claimed);
  framework.close();  // of the two openings one is left
  const std::lock_guard lock(impl_->mutex);
  impl_->begin_passes();
  return {};
}

}  // namespace dtmalloc::dtrace
