// SPDX-License-Identifier: BSD-2-Clause
// The D programs of a run: compiled and enabled after boot, stopped once.

#pragma once

#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kernel.hpp>
#include <dtmalloc/workload/workload.hpp>
#include <memory>
#include <vector>

#include "commands.hpp"
#include "output.hpp"

namespace dtmalloc::sim {

// The sources of -n and -s; false: a message was printed.
bool read_programs(const RunOptions& options, std::vector<dtrace::ProgramSource>& sources);

class Tracing {
 public:
  Tracing(Kernel& kernel, Output& output);

  // Options, compilation, enabling, BEGIN; false: a message was printed.
  bool start(const RunOptions& options, const std::vector<dtrace::ProgramSource>& sources,
             const workload::Workload& workload);
  // Tracing ended by exit(); the workload goes on.
  bool exited() const { return !stopped_ && session_.done(); }
  // END, the last pass, aggregations. Later calls do nothing.
  void stop();
  int exit_status() const { return session_.exit_status(); }
  bool had_errors() const { return session_.had_errors(); }
  dtrace::Session& session() { return session_; }

 private:
  bool set_options(const RunOptions& options);  // -x and its like
  dtrace::Framework framework_;
  dtrace::Session session_;
  bool started_ = false;
  bool stopped_ = false;
};

}  // namespace dtmalloc::sim
