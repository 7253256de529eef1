// SPDX-License-Identifier: BSD-2-Clause
// Results in files: whole or not at all, behind links, never over an input.

#include "output.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace dtmalloc::sim {
namespace {

namespace fs = std::filesystem;

class OutputFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "dtm_output.XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  static std::string contents(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  fs::path folder_;
};

TEST_F(OutputFile, AppearsWhenItIsCommitted) {
  const fs::path file = folder_ / "out";
  auto out = Output::open(file, {});
  ASSERT_NE(out, nullptr);
  out->write("one\n");
  EXPECT_FALSE(fs::exists(file));
  EXPECT_TRUE(out->commit());
  EXPECT_EQ(contents(file), "one\n");
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFile, LeavesNothingWhenItIsDropped) {
  {
    auto out = Output::open(folder_ / "out", {});
    ASSERT_NE(out, nullptr);
    out->write("one\n");
  }
  EXPECT_EQ(files(), 0u);
}

TEST_F(OutputFile, GoesBehindALink) {
  fs::create_directory(folder_ / "there");
  fs::create_symlink("there/out", folder_ / "link");
  for (int i = 0; i < 2; ++i) {
    auto out = Output::open(folder_ / "link", {});
    ASSERT_NE(out, nullptr);
    out->write("one\n");
    EXPECT_TRUE(out->commit());
    EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
    EXPECT_EQ(contents(folder_ / "there/out"), "one\n");
  }
}

TEST_F(OutputFile, IsRefused_WhenItIsAnInput) {
  const fs::path file = folder_ / "in";
  std::ofstream(file) << "text\n";
  fs::create_hard_link(file, folder_ / "other");
  EXPECT_EQ(Output::open(file, {"-", folder_ / "other"}), nullptr);
  EXPECT_EQ(contents(file), "text\n");
}

}  // namespace
}  // namespace dtmalloc::sim
