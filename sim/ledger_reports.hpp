// SPDX-License-Identifier: BSD-2-Clause
// The reports from the ledger, for the table in reports.cpp.

#pragma once

#include "reports.hpp"

namespace dtmalloc::sim {

std::optional<ReportError> read_leaks(Report& report, ReportContext& context);
std::optional<ReportError> read_of_type(Report& report, ReportContext& context);
std::optional<ReportError> read_history(Report& report, ReportContext& context);
std::optional<ReportError> read_series(Report& report, ReportContext& context);

std::string leaks(const Report& report, Kernel& kernel, bool json);
std::string peaks(const Report& report, Kernel& kernel, bool json);
std::string waste(const Report& report, Kernel& kernel, bool json);
std::string history(const Report& report, Kernel& kernel, bool json);
std::string findings(const Report& report, Kernel& kernel, bool json);
std::string series(const Report& report, Kernel& kernel, bool json);
std::string types(const Report& report, Kernel& kernel, bool json);

}  // namespace dtmalloc::sim
