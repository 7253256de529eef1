// SPDX-License-Identifier: BSD-2-Clause
// Golden cases: what the user sees, byte for byte.
//
// tests/golden/cases/**/NAME.cmd is a shell script, run in the project's root with `dtmalloc` on
// the PATH and an empty folder in $TMP. Its first line is `# status N`. NAME.out is its standard
// output, NAME.err its standard error (missing files: empty). DTM_UPDATE_GOLDEN=1 writes them anew.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/paths.hpp"

namespace {

namespace fs = std::filesystem;

const fs::path kCases = fs::path(dtmalloc::support::source_dir()) / "tests/golden/cases";

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> cases() {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(kCases)) {
    if (entry.path().extension() == ".cmd") {
      found.push_back(fs::relative(entry.path(), kCases).replace_extension().string());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

// The first line in which two texts differ, for a message.
std::string difference(const std::string& expected, const std::string& got) {
  std::istringstream a(expected), b(got);
  std::string x, y;
  for (int line = 1;; ++line) {
    const bool more_a = static_cast<bool>(std::getline(a, x));
    const bool more_b = static_cast<bool>(std::getline(b, y));
    if (!more_a && !more_b) return "a last newline";
    if (!more_a) return "line " + std::to_string(line) + " is too much: " + y;
    if (!more_b) return "line " + std::to_string(line) + " is missing: " + x;
    if (x != y) return "line " + std::to_string(line) + "\n  expected: " + x + "\n  got:      " + y;
  }
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, PrintsWhatIsRecorded) {
  const fs::path base = kCases / GetParam();
  const std::string script = contents(base.string() + ".cmd");
  ASSERT_TRUE(script.starts_with("# status ")) << "the first line must be `# status N`";
  const int status = std::atoi(script.c_str() + 9);

  std::string folder = (fs::temp_directory_path() / "dtm_golden.XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const fs::path out = folder + "/out.txt", err = folder + "/err.txt";
  fs::create_directory(folder + "/tmp");
  const std::string command =
      "cd '" + dtmalloc::support::source_dir() + "' && PATH='" +
      fs::path(dtmalloc::support::command()).parent_path().string() + "':\"$PATH\" TMP='" + folder +
      "/tmp' TZ=Asia/Kathmandu LC_ALL=C.UTF-8 NO_COLOR=1 sh '" + base.string() + ".cmd' >'" +
      out.string() + "' 2>'" + err.string() + "' </dev/null";
  const int raw = std::system(command.c_str());
  const int got_status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  const std::string got_out = contents(out), got_err = contents(err);
  fs::remove_all(folder);

  EXPECT_EQ(got_status, status) << got_err;
  if (std::getenv("DTM_UPDATE_GOLDEN") != nullptr) {
    for (const auto& [suffix, text] : {std::pair{".out", got_out}, std::pair{".err", got_err}}) {
      const fs::path file = base.string() + suffix;
      if (text.empty()) {
        fs::remove(file);
      } else {
        std::ofstream(file, std::ios::binary) << text;
      }
    }
    return;
  }
  const std::string want_out = contents(base.string() + ".out");
  const std::string want_err = contents(base.string() + ".err");
  EXPECT_TRUE(got_out == want_out) << "standard output: " << difference(want_out, got_out);
  EXPECT_TRUE(got_err == want_err) << "standard error: " << difference(want_err, got_err);
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, ::testing::ValuesIn(cases()), [](const auto& param) {
  std::string name = param.param;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

// Every example is run by some case.
TEST(GoldenExamples, EachIsACase) {
  std::string scripts;
  for (const std::string& name : cases()) scripts += contents(kCases / (name + ".cmd"));
  for (const auto& entry :
       fs::directory_iterator(fs::path(dtmalloc::support::source_dir()) / "sim/examples")) {
    const std::string file = "sim/examples/" + entry.path().filename().string();
    EXPECT_NE(scripts.find(file), std::string::npos) << file;
  }
}

}  // namespace
