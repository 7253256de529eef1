// SPDX-License-Identifier: BSD-2-Clause
// The simulated machine of a bench, and what traces it.
#pragma once

#include <cstdlib>
#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kernel.hpp>
#include <iostream>
#include <memory>
#include <string>

namespace dtmalloc::bench {

inline KernelConfig config_of(int cpus) {
  KernelConfig config;
  config.cpus = cpus;
  config.fixed_cpus = true;
  config.mem = 8ull << 30;
  config.console = [](std::string_view) {};
  return config;
}

// Boots; nobody is bound to it yet. enter() binds the calling thread to its CPU 0.
struct Machine {
  explicit Machine(int cpus = 1) : Machine(config_of(cpus)) {}
  explicit Machine(const KernelConfig& config) : kernel(config) {}
  void enter() { kernel.cpus().bind(0); }
  void leave() { kernel.cpus().unbind(); }
  Kernel kernel;
  malloc_type& type = kernel.define_type("M_BENCH", "bench type");
  malloc_type& other = kernel.define_type("M_OTHER", "other");
};

// The framework of a machine whose CPU 0 the caller owns.
struct Tracing {
  explicit Tracing(Kernel& kernel) : framework(kernel.cpus(), kernel.addresses()) {
    framework.load_standard_providers();
    dtrace::load_dtmalloc(framework, kernel);
    framework.open();
  }
  ~Tracing() {
    if (session != nullptr) session->stop();
    session = nullptr;
    framework.close();
  }
  void enable(const dtrace::ProbeDescription& description, dtrace::ProbeCallback callback) {
    if (!framework.enable(description, callback, nullptr)) {
      std::cerr << "bench: no probe " << to_string(description) << '\n';
      std::exit(1);
    }
  }
  void start(const std::string& text, const std::string& option) {
    session = std::make_unique<dtrace::Session>(
        framework, dtrace::SessionSinks{[](std::string_view) {}, [](std::string_view) {}});
    dtrace::ProgramSource source;
    source.text = text;
    if (!session->set_option(option)) {
      std::cerr << "bench: no option " << option << '\n';
      std::exit(1);
    }
    auto program = session->compile(source);
    if (!program) {
      std::cerr << message_of(source, program.error());
      std::exit(1);
    }
    if (!session->enable(*program) || !session->go()) {
      std::cerr << "bench: does not start: " << text << '\n';
      std::exit(1);
    }
  }
  dtrace::Framework framework;
  std::unique_ptr<dtrace::Session> session;
};

}  // namespace dtmalloc::bench
