// SPDX-License-Identifier: BSD-2-Clause
// Output to standard output or, by way of a temporary, to a file.

#include "output.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

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

}  // namespace

void print_error(std::string_view text) { (void)write_all(STDERR_FILENO, text); }

void complain(std::string_view text) { print_error("dtmalloc: " + std::string(text) + "\n"); }

std::unique_ptr<Output> Output::open(const std::string& path) {
  std::unique_ptr<Output> out(new Output);
  if (path.empty()) {
    out->eager_ = ::isatty(STDOUT_FILENO) == 1;
    return out;
  }
  out->path_ = path;
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {  // a device or a pipe has no name to give
    out->fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    out->temporary_ = path + ".XXXXXX";
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

Output::~Output() {
  if (fd_ > STDERR_FILENO) ::close(fd_);
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

bool Output::commit() {
  flush();
  if (fd_ > STDERR_FILENO) {
    if (::close(fd_) != 0 && error_ == 0) error_ = errno;
    fd_ = -1;
  }
  if (error_ == 0 && !temporary_.empty()) {
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
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
