// SPDX-License-Identifier: BSD-2-Clause
// Runs the preprocessor: its input is an unnamed file, its output a pipe; no shell.
// Differs:      DEVIATES: __STDC__ stays the preprocessor's own in each mode of -X.
//               DEVIATES: the text that comes back is bounded (kMostOutput).
#include "dtrace/consume/preprocess.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

namespace dtmalloc::dtrace {
namespace {

constexpr std::size_t kMostOutput = std::size_t{64} << 20;
constexpr int kNotFound = 127, kNotExecuted = 126;

// The machine is an amd64 of 16.0-CURRENT; the version is that of D, 1.13: 8, 12 and 12 bits.
constexpr std::array kPredefined = {
    "-D__sun",
    "-D__unix",
    "-D__SVR4",
    "-D__SUNW_D=1",
    "-D__SUNW_D_64",
    "-D__FreeBSD_16_0_CURRENT",
    "-D__amd64",
#if defined(__x86_64__)
    "-m64",
#endif
    "-P",
    "-D__SUNW_D_VERSION=0x0100d000",
};

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::lseek(fd, 0, SEEK_SET) == 0;
}

// The whole of it; nothing when it is longer than the bound.
bool read_all(int fd, std::string& text) {
  std::array<char, 65536> part;
  while (true) {
    const ssize_t count = ::read(fd, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count == 0;
    text.append(part.data(), static_cast<std::size_t>(count));
    if (text.size() > kMostOutput) return false;
  }
}

Diagnostic failure(const char* message) {
  Diagnostic diagnostic;
  diagnostic.tag = "D_CPP";
  diagnostic.message = message;
  return diagnostic;
}

// An argument list for exec; the strings must outlive it.
std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

}  // namespace

Result<std::string> preprocess(std::string_view text, const std::string& path,
                               const std::vector<std::string>& arguments) {
  if (text.starts_with("#!")) {
    const std::size_t end = text.find('\n');
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
  }
  std::vector<std::string> words{path.empty() ? "cpp" : path};
  words.insert(words.end(), kPredefined.begin(), kPredefined.end());
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> compiler{"cc", "-E", "-xc"};
  compiler.insert(compiler.end(), words.begin() + 1, words.end());
  compiler.emplace_back("-");
  const std::vector<char*> first = pointers(words), second = pointers(compiler);

  Descriptor input(::memfd_create("script", MFD_CLOEXEC));
  if (input.get() < 0 || !write_all(input.get(), text))
    return failure("Failed to fork preprocessor");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failure("Failed to fork preprocessor");
  Descriptor output(ends[0]), output_end(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return failure("Failed to fork preprocessor");
  if (child == 0) {
    ::signal(SIGPIPE, SIG_DFL);
    ::dup2(input.get(), STDIN_FILENO);
    ::dup2(output_end.get(), STDOUT_FILENO);
    ::execvp(first[0], first.data());
    if (errno == ENOENT && path.empty()) ::execvp(second[0], second.data());
    ::_exit(errno == ENOENT ? kNotFound : kNotExecuted);
  }
  output_end.close();
  std::string result;
  const bool whole = read_all(output.get(), result);
  output.close();
  if (!whole) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (whole && WIFEXITED(status)) {
    if (WEXITSTATUS(status) == 0) return result;
    if (WEXITSTATUS(status) == kNotFound) return failure("Preprocessor not found");
    if (WEXITSTATUS(status) == kNotExecuted) return failure("Failed to exec preprocessor");
  }
  return failure("Preprocessor failed to process input program");
}

}  // namespace dtmalloc::dtrace
