// SPDX-License-Identifier: BSD-2-Clause
// What --report names.

#pragma once

#include <dtmalloc/kernel.hpp>
#include <dtmalloc/workload/workload.hpp>
#include <string>
#include <vector>

namespace dtmalloc::sim {

struct Report {
  std::string name;
  int format = 2;  // of vmstat -m
};

// Reads the lists of --report. False: a message was printed, and `status` is the exit status.
bool read_reports(const std::vector<std::string>& lists, const workload::Workload& workload,
                  const KernelRelease& release, std::vector<Report>& reports, int& status);
std::string print_report(const Report& report, const Kernel& kernel, bool json);

}  // namespace dtmalloc::sim
