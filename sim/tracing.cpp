// SPDX-License-Identifier: BSD-2-Clause
// D programs on a machine.
// Counterpart:  dtrace.c (the command)

#include "tracing.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "interrupt.hpp"

namespace dtmalloc::sim {
namespace {

dtrace::Framework& prepared(dtrace::Framework& framework, Kernel& kernel) {
  framework.load_standard_providers();
  dtrace::load_fbt(framework, kernel);
  dtrace::load_dtmalloc(framework, kernel);
  return framework;
}

bool refused(const Diagnostic& error) {
  const std::string& text = error.message;
  print_error((text.starts_with("dtrace: ") ? "" : "dtrace: ") + text +
              (text.ends_with('\n') ? "" : "\n") +
              (error.expected.empty() ? "" : "    expected " + error.expected + "\n"));
  return false;
}

}  // namespace

std::optional<dtrace::ProgramSource> read_program(const ProgramOption& program,
                                                  const std::vector<std::string>& args) {
  dtrace::ProgramSource source;
  source.args = args;
  if (!program.script) {
    source.text = program.text;
    source.context = program.context;
    return source;
  }
  source.kind = dtrace::ProgramSource::script;
  source.name = program.text == "-" ? "<stdin>" : program.text;
  auto text = workload::read_text(program.text);
  if (!text) {
    std::string reason = text.error().message;
    const std::string name = program.text == "-" ? "standard input" : program.text;
    const std::string prefix = "cannot read " + name + ": ";
    if (reason.starts_with(prefix)) reason = reason.substr(prefix.size());
    print_error("dtrace: failed to open " + name + ": " + reason + "\n");
    return std::nullopt;
  }
  source.text = std::move(*text);
  return source;
}

namespace {

// Where freopen() sends what actions print: the end of a file, at once.
dtrace::TextSink append_to(const std::string& path, int* error) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) {
    *error = errno;
    return nullptr;
  }
  const std::shared_ptr<const int> file(new int(fd), [](const int* owned) {
    close(*owned);
    delete owned;
  });
  return [file](std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = write(*file, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(written));
    }
  };
}

dtrace::SessionSinks printing(Output& output) {
  return {.out =
              [&output](std::string_view text) {
                output.write(text);
                if (!output.failed()) return;
                attention.store(true, std::memory_order_relaxed);
                Clock::wake();
              },
          .err =
              [&output](std::string_view text) {
                output.flush();
                print_error(text);
              },
          .system =
              [&output](const std::string& command) {
                output.flush();
                return std::system(command.c_str()) == -1 ? errno : 0;
              },
          .freopen = append_to,
          .ftruncate = [&output] { output.truncate(); }};
}

dtrace::SessionSinks discarding() {
  const dtrace::TextSink nowhere = [](std::string_view) {};
  return {.out = nowhere,
          .err = nowhere,
          .system = [](const std::string&) { return 0; },
          .freopen = [nowhere](const std::string&, int*) { return nowhere; },
          .ftruncate = [] {}};
}

}  // namespace

Tracing::Tracing(Kernel& kernel, Output& output, bool discards)
    : framework_(kernel.cpus(), kernel.addresses()),
      session_(prepared(framework_, kernel), discards ? discarding() : printing(output)),
      output_(output) {}

void Tracing::tell_later_types(const workload::Workload& workload) {
  for (std::size_t body = 0; body < workload.bodies.size(); ++body) {
    const std::vector<workload::Op>& ops = workload.bodies[body];
    for (std::size_t i = body == 0 ? workload.boot_statements() : 0; i < ops.size(); ++i) {
      if (ops[i].kind != workload::OpKind::type) continue;
      const workload::TypeDecl& type = workload.types.at(ops[i].type);
      dtrace::dtmalloc_type_later(framework_, type.symbol, type.shortdesc,
                                  "line " + std::to_string(ops[i].line));
    }
  }
}

bool Tracing::start_anonymous(const std::string& enabling) {
  const auto started = dtrace::Session::start_anonymous(framework_, enabling);
  return started || refused(started.error());
}

bool Tracing::set_options(const TracingOptions& options) {
  show_dif_ = options.show_dif;
  show_program_ = options.show_program;
  if (options.aggregations_at_exit) session_.print_aggregations_at_exit();
  for (const TracingOptions::Setting& setting : options.settings) {
    if (auto set = session_.set_option(setting.text); !set) {
      std::string text =
          "dtrace: failed to set " + setting.flag + ": " + set.error().message + "\n";
      for (const std::string& near : set.error().near_names) {
        text += (text.ends_with('\n') ? "  did you mean " : ", ") + near;
      }
      print_error(text.ends_with('\n') ? text : text + "?\n");
      return false;
    }
  }
  return true;
}

bool Tracing::compile(const dtrace::ProgramSource& source) {
  auto program = session_.compile(source);
  if (!program) {
    print_error(dtrace::message_of(source, program.error()));
    return false;
  }
  if (show_program_) output_.write(session_.dump(*program, "desugared"));
  if (show_dif_) print_error(session_.dump(*program, "dif"));
  programs_.push_back(*program);
  return true;
}

std::vector<Diagnostic> Tracing::warnings() const {
  std::vector<Diagnostic> result;
  for (const dtrace::ProgramId program : programs_)
    for (Diagnostic& warning : session_.warnings(program)) result.push_back(std::move(warning));
  return result;
}

void Tracing::list(bool verbose) { session_.list(programs_, verbose); }

bool Tracing::enable(const TracingOptions& options) {
  for (const dtrace::ProgramId program : programs_) {
    if (options.execute) {
      if (auto enabled = session_.enable(program); !enabled) return refused(enabled.error());
    }
    if (options.verbose) output_.write(session_.stability_report(program, !options.execute));
  }
  return true;
}

bool Tracing::enable_chosen(dtrace::ProgramId program, const dtrace::ClauseChoice& choice) {
  const auto enabled = session_.enable(program, choice);
  return enabled || refused(enabled.error());
}

bool Tracing::go() {
  InterruptGuard::arm();
  if (auto gone = session_.go(); !gone) return refused(gone.error());
  started_ = true;
  return true;
}

void Tracing::stop() {
  if (!started_ || stopped_) return;
  stopped_ = true;
  session_.stop();
}

}  // namespace dtmalloc::sim
