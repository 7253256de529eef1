// SPDX-License-Identifier: BSD-2-Clause
// Where results go: standard output, or a file that appears only when it is whole.

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dtmalloc::sim {

// Whether a path of -o names it.
inline bool to_standard_output(std::string_view path) { return path.empty() || path == "-"; }

class Output {
 public:
  // Empty path or "-": standard output. Null: cannot be opened, or is one of the inputs, and a
  // message was printed.
  static std::unique_ptr<Output> open(const std::string& path,
                                      const std::vector<std::string>& inputs);
  ~Output();  // an uncommitted file is removed
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void write(std::string_view text);
  void flush();
  // What is written from here on is added to the end of a file, which is made when it is not there;
  // 0 or an errno. Only once, and not with a path of open().
  int append_to(const std::string& path);
  void truncate();  // what was written goes, if it went to a file
  // Nothing more can be written (a closed pipe, a full disk).
  bool failed() const { return error_ != 0; }
  // Writes the rest and gives the file its name; false: a message was printed where one helps.
  bool commit();

 private:
  Output() = default;
  std::string path_, target_;  // as named; behind its links
  std::string temporary_;      // empty: written in place
  std::string buffer_;
  int fd_ = 1;
  bool owned_ = false;  // fd_ was opened here
  int error_ = 0;
  bool eager_ = false;  // a terminal
};

// Occupies the standard descriptors that were closed, so that no file becomes one: reading and
// writing there fails, and messages are lost. Call first.
void occupy_standard_descriptors();
// "dtmalloc: TEXT\n" on standard error.
void complain(std::string_view text);
// Text on standard error, as it is.
void print_error(std::string_view text);

}  // namespace dtmalloc::sim
