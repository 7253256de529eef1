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
  if (options.format == "vmstat-z") {
    complain("to import vmstat-z is not modelled yet, expected vmstat-m");
    return kUsage;
  }
  if (options.format != "vmstat-m") {
    static const std::vector<std::string> kFormats{"vmstat-m"};
    const auto near = nearest_names(options.format, kFormats);
    complain("unknown format '" + options.format + "' to import, expected vmstat-m" +
             (near.empty() ? "" : "; did you mean " + near.front() + "?"));
    return kUsage;
  }
  auto text = workload::read_text(options.file);
  if (!text) {
    print_error(text.error().where.line == 0 ? "dtmalloc: " + text.error().message + "\n"
                                             : to_string(text.error()));
    return kRefused;
  }
  const std::string name = options.file == "-" ? "<stdin>" : options.file;
  workload::ImportOptions how;
  how.replay_history = options.replay_history;
  how.note = [](const std::string& note) { print_error(note + "\n"); };
  auto imported = workload::import_vmstat_m(*text, name, how);
  if (!imported) {
    print_error("dtmalloc: " + imported.error().message + "\n  expected " +
                imported.error().expected + "\n");
    return kRefused;
  }
  const InterruptGuard interrupts;
  const auto output = Output::open(options.output, {options.file});
  if (output == nullptr) return kRefused;
  output->write(imported->text);
  return output->commit() ? kOk : kRefused;
}

}  // namespace dtmalloc::sim
