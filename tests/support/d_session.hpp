// SPDX-License-Identifier: BSD-2-Clause
// A small machine with one D session: programs are started, probes fire, the output is text.
#pragma once

#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kernel.hpp>
#include <memory>
#include <string>
#include <vector>

namespace dtmalloc::dtrace::testing {

// Two CPUs, 1 GB, the type M_A "aa"; this thread is CPU 0.
struct DSession {
  DSession();
  ~DSession();
  DSession(const DSession&) = delete;
  DSession& operator=(const DSession&) = delete;
  // Compiles and enables; what refuses the program, as dtrace(1) prints it, or an empty string.
  // A program that names a file is a script.
  std::string add(const std::string& program, const std::string& file = {},
                  const std::vector<std::string>& args = {});
  // Ditto and go: BEGIN has fired afterwards.
  std::string start(const std::string& program, const std::string& file = {},
                    const std::vector<std::string>& args = {});
  // A whole run of a program that traces nothing but BEGIN, ERROR and END: what it prints, or what
  // refuses it.
  std::string run(const std::string& program);
  void pair() { kernel->free(kernel->malloc(100, type, M_WAITOK), type); }

  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Framework> framework;
  std::unique_ptr<Session> session;
  malloc_type* type = nullptr;
  ProgramId program = 0;    // compiled last
  std::size_t matched = 0;  // of that
  std::string out, err;
};

}  // namespace dtmalloc::dtrace::testing
