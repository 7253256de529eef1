// SPDX-License-Identifier: BSD-2-Clause
// A machine of two CPUs with one type, dtmalloc loaded and one session: what tests of D programs
// share.
#pragma once

#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kernel.hpp>
#include <memory>
#include <string>
#include <vector>

namespace dtmalloc::dtrace::testing {

struct TracedMachine {
  // `parallel`: host threads may bind to its CPUs; the clock is real.
  explicit TracedMachine(bool parallel = false) {
    KernelConfig config;
    config.cpus = 2;
    config.fixed_cpus = !parallel;
    config.mem = 1ull << 30;
    if (parallel) {
      config.mode = RunMode::parallel;
      config.real_clock = true;
    }
    kernel = std::make_unique<Kernel>(config);
    kernel->cpus().bind(0);
    type = &kernel->define_type("M_A", "aa");
    framework = std::make_unique<Framework>(kernel->cpus(), kernel->addresses());
    framework->load_standard_providers();
    load_dtmalloc(*framework, *kernel);
    session = open(out, err);
  }
  ~TracedMachine() {
    session = nullptr;
    framework = nullptr;
    kernel->cpus().unbind();
  }
  TracedMachine(const TracedMachine&) = delete;
  TracedMachine& operator=(const TracedMachine&) = delete;

  std::unique_ptr<Session> open(std::string& to_out, std::string& to_err) {
    return std::make_unique<Session>(
        *framework, SessionSinks{[&to_out](std::string_view text) { to_out += text; },
                                 [&to_err](std::string_view text) { to_err += text; }});
  }
  // What refuses the program, or an empty string.
  static std::string enable(Session& session, const std::string& program,
                            const std::vector<std::string>& args = {}) {
    ProgramSource source;
    source.text = program;
    source.args = args;
    auto compiled = session.compile(source);
    if (!compiled) return message_of(source, compiled.error());
    auto enabled = session.enable(*compiled);
    return enabled ? "" : enabled.error().message;
  }
  static std::string start(Session& session, const std::string& program,
                           const std::vector<std::string>& args = {}) {
    if (std::string text = enable(session, program, args); !text.empty()) return text;
    auto started = session.go();
    return started ? "" : started.error().message;
  }
  std::string start(const std::string& program, const std::vector<std::string>& args = {}) {
    return start(*session, program, args);
  }
  void* malloc(std::size_t size = 100) { return kernel->malloc(size, type, M_WAITOK); }
  void pair() { kernel->free(malloc(), type); }

  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Framework> framework;
  std::string out, err;
  std::unique_ptr<Session> session;
  malloc_type* type = nullptr;
};

}  // namespace dtmalloc::dtrace::testing
