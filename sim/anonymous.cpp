// SPDX-License-Identifier: BSD-2-Clause
// The counterpart of /boot/dtrace.dof: a file that stays until it is replaced or removed.
// Counterpart:  dtrace.c (anon_prog, and main's DMODE_ANON)

#include "anonymous.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dtmalloc/workload/workload.hpp>
#include <filesystem>

#include "output.hpp"

namespace dtmalloc::sim {

std::string anonymous_file(const std::string& given) {
  if (!given.empty()) return given;
  const char* const state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && state[0] != '\0') return std::string(state) + "/dtmalloc/anonymous";
  const char* const home = std::getenv("HOME");
  return std::string(home != nullptr ? home : "") + "/.local/state/dtmalloc/anonymous";
}

bool keep_anonymous(const std::string& file, const std::string& text) {
  std::error_code error;
  if (text.empty()) {
    std::filesystem::remove(file, error);
    if (!error) {
      print_error("dtrace: cleaned up old anonymous enabling in " + file + "\n");
      return true;
    }
  } else {
    const std::filesystem::path folder = std::filesystem::path(file).parent_path();
    if (!folder.empty()) std::filesystem::create_directories(folder, error);
    if (!error) {
      const auto output = Output::open(file, {});
      if (output == nullptr) return false;
      output->write(text);
      if (!output->commit()) return false;
      print_error("dtrace: saved anonymous enabling in " + file + "\n");
      return true;
    }
  }
  print_error("dtrace: failed to open '" + file + "': " + error.message() + "\n");
  return false;
}

std::optional<std::string> kept_anonymous(const std::string& file) {
  auto text = workload::read_text(file);
  if (text) return std::move(*text);
  print_error("dtrace: could not enable tracing: No anonymous tracing state\n");
  return std::nullopt;
}

}  // namespace dtmalloc::sim
