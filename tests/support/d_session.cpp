// SPDX-License-Identifier: BSD-2-Clause
// A small machine with one D session.
#include "support/d_session.hpp"

namespace dtmalloc::dtrace::testing {

DSession::DSession() {
  KernelConfig config;
  config.cpus = 2;
  config.fixed_cpus = true;
  config.mem = 1ull << 30;
  kernel = std::make_unique<Kernel>(config);
  kernel->cpus().bind(0);
  type = &kernel->define_type("M_A", "aa");
  framework = std::make_unique<Framework>(kernel->cpus(), kernel->addresses());
  framework->load_standard_providers();
  load_dtmalloc(*framework, *kernel);
  session = std::make_unique<Session>(*framework,
                                      SessionSinks{[this](std::string_view text) { out += text; },
                                                   [this](std::string_view text) { err += text; }});
}

DSession::~DSession() {
  session = nullptr;
  framework = nullptr;
  kernel->cpus().unbind();
}

std::string DSession::add(const std::string& text, const std::string& file,
                          const std::vector<std::string>& args) {
  ProgramSource source;
  source.text = text;
  source.args = args;
  source.name = file;
  source.kind = file.empty() ? ProgramSource::specifier : ProgramSource::script;
  auto compiled = session->compile(source);
  if (!compiled) return message_of(source, compiled.error());
  program = *compiled;
  auto enabled = session->enable(program);
  if (!enabled) return enabled.error().message;
  matched = *enabled;
  return {};
}

std::string DSession::start(const std::string& text, const std::string& file,
                            const std::vector<std::string>& args) {
  if (std::string refused = add(text, file, args); !refused.empty()) return refused;
  auto started = session->go();
  return started ? "" : started.error().message;
}

std::string DSession::run(const std::string& text) {
  (void)session->set_option("quiet");
  if (std::string refused = start(text); !refused.empty()) return refused;
  session->stop();
  return out;
}

}  // namespace dtmalloc::dtrace::testing
