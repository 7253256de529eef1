// SPDX-License-Identifier: BSD-2-Clause
// Reading workloads from files: whole, or refused where they stop being text.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <dtmalloc/workload/workload.hpp>
#include <filesystem>
#include <fstream>

namespace dtmalloc::workload {
namespace {

class ReadText : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() / "dtm_read.XXXXXX").string();
    const int fd = mkstemp(path_.data());
    ASSERT_GE(fd, 0);
    ::close(fd);
  }
  void TearDown() override { std::filesystem::remove(path_); }
  Result<std::string> read(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return read_text(path_);
  }
  std::string path_;
};

TEST_F(ReadText, ReturnsTheFile) {
  const std::string text = "a = malloc 1 M_TEMP M_WAITOK\n" + std::string(500000, '#') + "\nlast";
  const auto got = read(text);
  ASSERT_TRUE(got);
  EXPECT_EQ(*got, text);
}

// REQ: WL-05
TEST_F(ReadText, RefusesWhatIsNoText) {
  const auto nul = read(std::string("one\ntwo") + '\0' + "\n");
  ASSERT_FALSE(nul);
  EXPECT_EQ(nul.error().tag, "WL_NUL");
  EXPECT_EQ(nul.error().where.line, 2u);
  EXPECT_EQ(nul.error().where.column, 4u);
  const auto line = read("one\n" + std::string(kMaxLine + 2, 'x'));
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().tag, "WL_LINE_TOO_LONG");
  EXPECT_EQ(line.error().where.line, 2u);
  EXPECT_TRUE(read(std::string(kMaxLine - 1, 'x') + "\n"));
}

TEST_F(ReadText, NamesTheReason) {
  const auto missing = read_text("/nonexistent/file");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().tag, "WL_READ");
  EXPECT_EQ(missing.error().message, "cannot read /nonexistent/file: No such file or directory");
}

}  // namespace
}  // namespace dtmalloc::workload
