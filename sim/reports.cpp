// SPDX-License-Identifier: BSD-2-Clause
// The reports of a run.

#include "reports.hpp"

#include <algorithm>
#include <charconv>
#include <dtmalloc/report/report.hpp>

#include "commands.hpp"
#include "output.hpp"

namespace dtmalloc::sim {
namespace {

bool fail(int& status, int with, const std::string& text,
          const std::vector<std::string>& near = {}) {
  std::string message = text;
  for (std::size_t i = 0; i < near.size(); ++i) {
    message += (i == 0 ? "; did you mean " : ", ") + near[i];
  }
  if (!near.empty()) message += '?';
  complain(message);
  status = with;
  return false;
}

}  // namespace

bool read_reports(const std::vector<std::string>& lists, const workload::Workload& workload,
                  const KernelRelease& release, std::vector<Report>& reports, int& status) {
  static const std::vector<std::string> kLater{
      "vmstat-z", "ddb-malloc", "ddb-uma", "sysctl", "malloc-stats-stream",
      "leaks",    "peaks",      "waste",   "series"};
  for (const std::string& list : lists) {
    for (std::size_t from = 0; from <= list.size();) {
      const std::size_t comma = std::min(list.find(',', from), list.size());
      const std::string item = list.substr(from, comma - from);
      from = comma + 1;
      const std::size_t equals = std::min(item.find('='), item.size());
      const std::string name = item.substr(0, equals);
      const std::string value = equals < item.size() ? item.substr(equals + 1) : std::string();
      if (name.empty()) return fail(status, kUsage, "an empty name in the list of --report");
      if (std::find(kLater.begin(), kLater.end(), name) != kLater.end()) {
        return fail(status, kUsage, "the report " + name + " is not modelled yet");
      }
      if (name != "vmstat-m") {
        return fail(status, kUsage, "unknown report '" + name + "'",
                    nearest_names(name, std::vector<std::string>{"vmstat-m"}));
      }
      Report report{name, release.vmstat_format};
      if (equals < item.size()) {
        if (value == "capture") {
          const std::string& format = workload.kernel.capture;
          if (format.empty()) {
            return fail(status, kRefused,
                        "--report vmstat-m=capture: the kernel line of the workload has no "
                        "capture=m1, m2 or m3");
          }
          report.format = format == "m3" ? 1 : 0;
        } else {
          int version = 0;
          const auto [rest, error] =
              std::from_chars(value.data(), value.data() + value.size(), version);
          const KernelRelease* other = KernelRelease::find(version);
          if (error != std::errc{} || rest != value.data() + value.size() || other == nullptr) {
            std::string known;
            for (const int v : KernelRelease::versions()) known += std::to_string(v) + ", ";
            return fail(status, kUsage,
                        "--report vmstat-m=" + value + ": expected " + known + "or capture");
          }
          report.format = other->vmstat_format;
        }
      }
      reports.push_back(std::move(report));
    }
  }
  return true;
}

std::string print_report(const Report& report, const Kernel& kernel, bool json) {
  const report::Snapshot snapshot = report::take_snapshot(kernel);
  return json ? report::print_vmstat_m_json(snapshot, report.format)
              : report::print_vmstat_m(snapshot, report.format);
}

}  // namespace dtmalloc::sim
