// SPDX-License-Identifier: BSD-2-Clause
// Text tables: columns as wide as what is in them, numbers at the right.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sys/visible.hpp"

namespace dtmalloc::report {

class Table {
 public:
  // A heading that begins with '-' stands at the left, as its column does.
  explicit Table(std::vector<std::string> headings) {
    for (std::string& heading : headings) {
      left_.push_back(heading.starts_with('-'));
      if (left_.back()) heading.erase(0, 1);
    }
    rows_.push_back(std::move(headings));
  }
  void row(std::vector<std::string> cells) {
    for (std::string& cell : cells) cell = visible(cell);
    rows_.push_back(std::move(cells));
  }
  bool empty() const { return rows_.size() == 1; }
  std::string text() const {
    std::vector<std::size_t> widths(left_.size());
    for (const auto& cells : rows_)
      for (std::size_t i = 0; i < cells.size(); ++i)
        widths[i] = std::max(widths[i], cells[i].size());
    std::string out;
    for (const auto& cells : rows_) {
      std::string line;
      for (std::size_t i = 0; i < cells.size(); ++i) {
        if (i != 0) line += "  ";
        const std::string blanks(widths[i] - cells[i].size(), ' ');
        line += left_[i] ? cells[i] + blanks : blanks + cells[i];
      }
      while (!line.empty() && line.back() == ' ') line.pop_back();
      out += line + '\n';
    }
    return out;
  }

 private:
  std::vector<bool> left_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace dtmalloc::report
