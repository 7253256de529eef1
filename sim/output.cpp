// SPDX-License-Identifier: BSD-2-Clause
// Output to standard output or, by way of a temporary, to a file.

#include "output.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace dtmalloc::sim {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 16;

// Writes all; 0 or an errno.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

// The file that a name stands for: links are followed, the last one may lead nowhere.
std::string follow_links(const std::string& path) {
  std::filesystem::path at = path;
  std::error_code error;
  for (int i = 0; i < 40 && std::filesystem::is_symlink(at, error); ++i) {
    const auto to = std::filesystem::read_symlink(at, error);
    if (error) break;
    at = at.parent_path() / to;
  }
  return at.string();
}

}  // namespace

void occupy_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // The wrong direction: what a program reads or writes there is refused, as it was. The lowest
    // free descriptor is this one.
    (void)::open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
  }
}

void print_error(std::string_view text) { (void)write_all(STDERR_FILENO, text); }

void complain(std::string_view text) { print_error("dtmalloc: " + std::string(text) + "\n"); }

std::unique_ptr<Output> Output::open(const std::string& path,
                                     const std::vector<std::string>& inputs) {
  std::unique_ptr<Output> out(new Output);
  if (to_standard_output(path)) {
    out->eager_ = ::isatty(STDOUT_FILENO) == 1;
    return out;
  }
  out->path_ = path;
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  for (const std::string& input : inputs) {
    struct stat other {};
    const bool known =
        input == "-" ? ::fstat(STDIN_FILENO, &other) == 0 : ::stat(input.c_str(), &other) == 0;
    if (exists && known && S_ISREG(status.st_mode) && other.st_dev == status.st_dev &&
        other.st_ino == status.st_ino) {
      complain("cannot write " + path + ": it is the input " +
               (input == "-" ? std::string("standard input") : input));
      return nullptr;
    }
  }
  out->owned_ = true;
  if (exists && !S_ISREG(status.st_mode)) {  // a device or a pipe has no name to give
    out->fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    out->target_ = follow_links(path);
    out->temporary_ = out->target_ + ".XXXXXX";
    out->fd_ = ::mkostemp(out->temporary_.data(), O_CLOEXEC);
    if (out->fd_ < 0) {
      out->temporary_.clear();
    } else {
      const mode_t mask = ::umask(0);
      ::umask(mask);
      (void)::fchmod(out->fd_, exists ? status.st_mode & 0777 : 0666 & ~mask);
    }
  }
  if (out->fd_ < 0) {
    complain("cannot write " + path + ": " + std::strerror(errno));
    return nullptr;
  }
  return out;
}

int Output::append_to(const std::string& path) {
  flush();
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return errno;
  path_ = path;
  fd_ = fd;
  owned_ = true;
  eager_ = false;
  return 0;
}

Output::~Output() {
  if (owned_ && fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void Output::write(std::string_view text) {
  if (failed()) return;
  buffer_ += text;
  if (eager_ || buffer_.size() >= kBuffer) flush();
}

void Output::flush() {
  if (!failed()) error_ = write_all(fd_, buffer_);
  buffer_.clear();
}

void Output::truncate() {
  flush();
  // What is not a regular file cannot be emptied.
  if (::ftruncate(fd_, 0) == 0) ::lseek(fd_, 0, SEEK_SET);
}

bool Output::commit() {
  flush();
  if (owned_ && fd_ >= 0) {
    if (::close(fd_) != 0 && error_ == 0) error_ = errno;
    fd_ = -1;
  }
  if (error_ == 0 && !temporary_.empty()) {
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
      error_ = errno;
    } else {
      temporary_.clear();
    }
  }
  if (error_ == 0) return true;
  // Whoever closed the pipe knows.
  if (error_ != EPIPE) {
    complain("cannot write " + (path_.empty() ? std::string("standard output") : path_) + ": " +
             std::strerror(error_));
  }
  return false;
}

}  // namespace dtmalloc::sim
