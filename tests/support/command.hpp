// SPDX-License-Identifier: BSD-2-Clause
// Runs shell lines with the command `dtmalloc` on the PATH, in an empty folder.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "support/paths.hpp"

namespace dtmalloc::support {

struct Ran {
  int status = 0;
  std::string out, err;
};

class CommandLine : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / "dtm_cli.XXXXXX").string();
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // `command` with `dtmalloc` on the PATH, in an empty folder.
  Ran run(const std::string& command) {
    std::ofstream(folder_ + "/script") << command;
    const std::string line = "cd '" + folder_ + "' && mkdir -p work && cd work && PATH='" +
                             std::filesystem::path(support::command()).parent_path().string() +
                             "':\"$PATH\" sh ../script >../out 2>../err </dev/null";
    const int raw = std::system(line.c_str());
    return {WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw), contents("out"),
            contents("err")};
  }
  std::string contents(const std::string& name) {
    std::ifstream in(folder_ + "/" + name, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }

  std::string folder_;
};

}  // namespace dtmalloc::support
