// SPDX-License-Identifier: BSD-2-Clause
// `dtmalloc test`: golden tests that D scripts carry in their comments (sim/README.md).
//
//   /*! run load.wl -q */      a case: the words after `dtmalloc`; `-s` and the script are added
//   /*! status 1 */            its exit status, when it is not 0
//   /*! expect                 its standard output, up to the line of the comment's end
//   ...
//   */
//   /*! messages               its standard error, the same way; not compared when it is missing
//   */

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <dtmalloc/workload/workload.hpp>
#include <filesystem>
#include <optional>

#include "commands.hpp"
#include "output.hpp"

namespace dtmalloc::sim {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kLongestRun = 60;  // seconds
constexpr std::string_view kOpen = "/*!";

// The text of a block within the script: what --update replaces.
struct Block {
  bool present = false;
  std::size_t begin = 0, end = 0;
};

struct Case {
  std::size_t line = 1;
  std::size_t end = 0;  // behind the last comment of the case
  std::vector<std::string> words;
  int status = 0;
  Block out, err;
};

struct Ran {
  int status = 0;
  bool too_long = false;
  std::string out, err;
};

// Words as a shell splits them, with quotes but without expansion.
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool open = false;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      open = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (open) words.push_back(std::move(word));
      word.clear();
      open = false;
    } else {
      word += c;
      open = true;
    }
  }
  if (open) words.push_back(std::move(word));
  return words;
}

// The cases of a script; a message instead when a comment is none of these.
std::optional<std::vector<Case>> cases_of(const std::string& name, std::string_view text,
                                          std::string& message) {
  std::vector<Case> cases;
  for (std::size_t at = text.find(kOpen); at != text.npos; at = text.find(kOpen, at)) {
    const std::size_t line =
        1 + static_cast<std::size_t>(std::count(text.begin(), text.begin() + at, '\n'));
    const auto wrong = [&](const std::string& what) {
      message = name + ":" + std::to_string(line) + ": " + what;
      return std::nullopt;
    };
    const std::size_t end = text.find("*/", at);
    if (end == text.npos) return wrong("the comment does not end");
    std::size_t begin = at + kOpen.size();
    while (begin < end && (text[begin] == ' ' || text[begin] == '\t')) ++begin;
    std::size_t rest = begin;
    while (rest < end && std::isalpha(static_cast<unsigned char>(text[rest])) != 0) ++rest;
    const std::string_view keyword = text.substr(begin, rest - begin);
    const std::string_view body = text.substr(rest, end - rest);
    at = end + 2;
    if (keyword == "run" || keyword == "dtrace") {
      Case added;
      added.line = line;
      added.words = split(body);
      added.words.insert(added.words.begin(), std::string(keyword));
      cases.push_back(std::move(added));
    } else if (cases.empty()) {
      return wrong("expected /*! run WORKLOAD ... */ first");
    } else if (keyword == "status") {
      const auto number =
          workload::parse_count(std::string(split(body).empty() ? "" : split(body)[0]));
      if (!number || *number > 255) return wrong("expected a status from 0 to 255");
      cases.back().status = static_cast<int>(*number);
    } else if (keyword == "expect" || keyword == "messages") {
      Block& block = keyword == "expect" ? cases.back().out : cases.back().err;
      const std::size_t newline = body.find('\n');
      if (newline == body.npos) return wrong("expected the text on lines of its own");
      block = {true, rest + newline + 1, end};
    } else {
      return wrong("expected run, dtrace, status, expect or messages, not '" +
                   std::string(keyword) + "'");
    }
    if (!cases.empty()) cases.back().end = at;
  }
  return cases;
}

std::string contents(int fd) {
  std::string text;
  std::array<char, 65536> part;
  ::lseek(fd, 0, SEEK_SET);
  for (ssize_t count = 0; (count = ::read(fd, part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(count));
  return text;
}

// Runs this command in a folder; nothing: it could not be started.
std::optional<Ran> execute(const std::vector<std::string>& words, const std::string& folder) {
  std::vector<std::string> all{"dtmalloc"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int out = ::memfd_create("out", MFD_CLOEXEC), err = ::memfd_create("err", MFD_CLOEXEC);
  const pid_t child = out < 0 || err < 0 ? -1 : ::fork();
  if (child == 0) {
    const int none = ::open("/dev/null", O_RDONLY);
    ::dup2(none, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(err, STDERR_FILENO);
    if (!folder.empty() && ::chdir(folder.c_str()) != 0) ::_exit(126);
    ::alarm(kLongestRun);
    ::execv("/proc/self/exe", argv.data());
    ::_exit(126);
  }
  std::optional<Ran> ran;
  if (child > 0) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    ran.emplace();
    ran->too_long = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    ran->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ran->out = contents(out);
    ran->err = contents(err);
  }
  if (out >= 0) ::close(out);
  if (err >= 0) ::close(err);
  return ran;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
  }
  return lines;
}

// "-" lines were expected, "+" lines came instead, blank ones are both. What begins and ends alike
// is left out but for a line; a difference too large to be compared line by line is shown whole.
std::string difference(std::string_view expected, std::string_view got) {
  constexpr std::size_t kMost = 2000;
  const std::vector<std::string_view> a = lines_of(expected), b = lines_of(got);
  std::size_t head = 0, tail = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  while (tail < a.size() - head && tail < b.size() - head &&
         a[a.size() - 1 - tail] == b[b.size() - 1 - tail])
    ++tail;
  const std::size_t n = a.size() - head - tail, m = b.size() - head - tail;
  std::string text = "--- expected\n+++ got\n@@ line " + std::to_string(head + 1) + " @@\n";
  const auto add = [&text](char mark, std::string_view line) {
    text += mark;
    text += line;
    text += '\n';
  };
  if (head > 0) add(' ', a[head - 1]);
  // length[i][j]: of the longest common run of lines behind i and j.
  const bool whole = n > kMost || m > kMost;
  std::vector<std::uint16_t> length(whole ? 0 : (n + 1) * (m + 1), 0);
  const auto at = [&](std::size_t i, std::size_t j) -> std::uint16_t& {
    return length[i * (m + 1) + j];
  };
  for (std::size_t i = whole ? 0 : n; i-- > 0;)
    for (std::size_t j = m; j-- > 0;)
      at(i, j) = a[head + i] == b[head + j] ? static_cast<std::uint16_t>(at(i + 1, j + 1) + 1)
                                            : std::max(at(i + 1, j), at(i, j + 1));
  std::size_t i = 0, j = 0;
  while (i < n || j < m) {
    if (!whole && i < n && j < m && a[head + i] == b[head + j]) {
      add(' ', a[head + i]);
      ++i, ++j;
    } else if (i < n && (whole || j == m || at(i + 1, j) >= at(i, j + 1))) {
      add('-', a[head + i++]);
    } else {
      add('+', b[head + j++]);
    }
  }
  if (tail > 0) add(' ', a[a.size() - tail]);
  if (n == 0 && m == 0) text += "the last line's end differs\n";
  return text;
}

class ScriptTest {
 public:
  ScriptTest(bool update, Output& output) : update_(update), output_(output) {}

  // False: the script cannot be a test, and a message was printed.
  bool script(const fs::path& path, bool asked_for) {
    const auto text = workload::read_text(path.string());
    if (!text) {
      complain(text.error().message);
      return false;
    }
    std::string message;
    const auto cases = cases_of(path.string(), *text, message);
    if (!cases) {
      complain(message);
      return false;
    }
    if (cases->empty()) {
      if (asked_for) complain(path.string() + ": it has no /*! run WORKLOAD ... */ comment");
      return !asked_for;
    }
    ++scripts_;
    std::vector<std::pair<Block, std::string>> updates;
    for (const Case& each : *cases) {
      std::vector<std::string> words = each.words;
      words.push_back("-s");
      words.push_back(path.filename().string());
      const auto ran = execute(words, path.parent_path().string());
      if (!ran) {
        complain("cannot run " + path.string() + ": " + std::strerror(errno));
        return false;
      }
      ++runs_;
      judge(path, each, *text, *ran, updates);
    }
    return updates.empty() || rewrite(path, *text, updates);
  }

  int finish() {
    const auto count = [](std::size_t n, const char* noun) {
      return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
    };
    output_.write(count(scripts_, "script") + ", " + count(runs_, "run") + ", " +
                  std::to_string(failed_) + " failed\n");
    return failed_ == 0 ? kOk : kRefused;
  }

 private:
  void judge(const fs::path& path, const Case& expected, std::string_view text, const Ran& ran,
             std::vector<std::pair<Block, std::string>>& updates) {
    const std::string place = path.string() + ":" + std::to_string(expected.line);
    std::string report;
    if (ran.too_long) {
      report = "it took more than " + std::to_string(kLongestRun) + " seconds\n";
    } else if (ran.status != expected.status) {
      report = "status " + std::to_string(ran.status) + ", expected " +
               std::to_string(expected.status) + "\n" + ran.err;
    }
    const bool update = update_ && report.empty();  // what a failed run prints is no expectation
    const auto compare = [&](const Block& block, const std::string& got, const char* what) {
      if (!block.present) return;
      const std::string_view wanted = text.substr(block.begin, block.end - block.begin);
      if (wanted == got) return;
      if (update)
        updates.emplace_back(block, got);
      else
        report += std::string(what) + " differs\n" + difference(wanted, got);
    };
    compare(expected.out, ran.out, "standard output");
    compare(expected.err, ran.err, "standard error");
    if (update && !expected.out.present)
      updates.emplace_back(Block{false, expected.end, expected.end},
                           "\n/*! expect\n" + ran.out + "*/");
    if (report.empty()) {
      output_.write("ok   " + place + "\n");
      return;
    }
    ++failed_;
    output_.write("FAIL " + place + ": " + report + (report.ends_with('\n') ? "" : "\n"));
  }

  static bool rewrite(const fs::path& path, std::string text,
                      std::vector<std::pair<Block, std::string>>& updates) {
    std::sort(updates.begin(), updates.end(),
              [](const auto& a, const auto& b) { return a.first.begin < b.first.begin; });
    for (auto update = updates.rbegin(); update != updates.rend(); ++update) {
      const auto& [block, got] = *update;
      const std::string_view shown(got);
      if (shown.substr(0, shown.size() - (block.present ? 0 : 2)).find("*/") != shown.npos) {
        complain(path.string() + ": the output has */ in it, which no comment can hold");
        return false;
      }
      text.replace(block.begin, block.end - block.begin, got);
    }
    const auto file = Output::open(path.string(), {});
    if (file == nullptr) return false;
    file->write(text);
    return file->commit();
  }

  const bool update_;
  Output& output_;
  std::size_t scripts_ = 0, runs_ = 0, failed_ = 0;
};

}  // namespace

int test_command(const TestOptions& options) {
  const auto output = Output::open("", {});
  ScriptTest test(options.update, *output);
  bool good = true;
  for (const std::string& path : options.paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      good = test.script(path, true) && good;
      continue;
    }
    std::vector<fs::path> scripts;
    for (fs::recursive_directory_iterator at(path, error), end; !error && at != end;
         at.increment(error)) {
      std::error_code unknown;
      if (at->path().extension() == ".d" && at->is_regular_file(unknown))
        scripts.push_back(at->path());
    }
    if (error) {
      complain("cannot read " + path + ": " + error.message());
      good = false;
    }
    std::sort(scripts.begin(), scripts.end());
    for (const fs::path& script : scripts) good = test.script(script, false) && good;
  }
  const int status = test.finish();
  if (!output->commit() || !good) return kRefused;
  return status;
}

}  // namespace dtmalloc::sim
