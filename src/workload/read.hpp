// SPDX-License-Identifier: BSD-2-Clause
// What the readers of texts share.
#pragma once

#include <dtmalloc/workload/workload.hpp>
#include <optional>
#include <string>

namespace dtmalloc::workload {

// Looks at a text that grows: no NUL bytes, no endless lines.
class TextCheck {
 public:
  explicit TextCheck(std::string path) : path_(std::move(path)) {}
  // At what has joined the text since the last time.
  std::optional<Diagnostic> look(const std::string& text);

 private:
  const std::string path_;
  std::size_t at_ = 0, line_start_ = 0;
};

Diagnostic read_error(const std::string& path, int error);

}  // namespace dtmalloc::workload
