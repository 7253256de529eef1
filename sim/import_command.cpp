// SPDX-License-Identifier: BSD-2-Clause
// `dtmalloc import`: a foreign capture becomes a workload.

#include <algorithm>
#include <dtmalloc/workload/import.hpp>
#include <dtmalloc/workload/workload.hpp>

#include "commands.hpp"
#include "interrupt.hpp"
#include "output.hpp"

namespace dtmalloc::sim {

int import_command(const ImportOptions& options) {
  const bool zones = options.format == "vmstat-z";
  if (!zones && options.format != "vmstat-m") {
    static const std::vector<std::string> kFormats{"vmstat-m", "vmstat-z"};
    const auto near = nearest_names(options.format, kFormats);
    complain("unknown format '" + options.format + "' to import, expected vmstat-m or vmstat-z" +
             (near.empty() ? "" : "; did you mean " + near.front() + "?"));
    return kUsage;
  }
  if (zones && options.replay_history) {
    complain("--replay-history: a table of vmstat -z has no history to make, expected vmstat-m");
    return kUsage;
  }
  const InterruptGuard interrupts;
  auto text = workload::read_text(options.file);
  if (!text) {
    print_error(text.error().where.line == 0 ? "dtmalloc: " + text.error().message + "\n"
                                             : to_string(text.error()));
    return kRefused;
  }
  const auto output = Output::open(options.output, {options.file});
  if (output == nullptr) return kRefused;
  const std::string name = options.file == "-" ? "<stdin>" : options.file;
  workload::ImportOptions how;
  how.replay_history = options.replay_history;
  how.note = [](const std::string& note) { print_error(note + "\n"); };
  how.release = options.release;
  auto imported = zones ? workload::import_vmstat_z(*text, name, how)
                        : workload::import_vmstat_m(*text, name, how);
  if (!imported) {
    print_error("dtmalloc: " + imported.error().message + "\n  expected " +
                imported.error().expected + "\n");
    return kRefused;
  }
  output->write(imported->text);
  return output->commit() ? kOk : kRefused;
}

}  // namespace dtmalloc::sim
