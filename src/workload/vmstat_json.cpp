// SPDX-License-Identifier: BSD-2-Clause
// Reads the document of vmstat -m --libxo json, version 1 (KiB) or 2 (bytes).

#include <algorithm>
#include <dtmalloc/workload/import.hpp>
#include <functional>

#include "workload/import_text.hpp"
#include "workload/json_reader.hpp"

namespace dtmalloc::workload {
namespace {

class Reader : JsonReader {
 public:
  Reader(std::string_view text, const std::string& file) : JsonReader(text), file_(file) {}

  VmstatTable all() {
    // Reports of one run stand one behind the other.
    do {
      if (!object(0, [this](const std::string& key, int depth) { return member(key, depth); })) {
        note("skipped from here: no JSON");
        break;
      }
      if (!table_.rows.empty()) capture_ = table_.rows.back().capture + 1;
    } while (peek() != '\0');
    if (!version_2_) {
      table_.bytes = false;
      return std::move(table_);
    }
    table_.bytes = true;
    for (VmstatRow& row : table_.rows) {
      row.format = VmstatFormat::m16;
      row.memuse_bytes = row.memuse_kib;
      row.memuse_kib = (row.memuse_kib + 1023) / 1024;
    }
    return std::move(table_);
  }

 private:
  void note(const std::string& what) {
    table_.notes.push_back(file_ + ":" + std::to_string(line()) + ": " + what);
  }
  bool member(const std::string& key, int depth) {
    std::string version;
    if (key == "__version") {
      if (!word(version)) return false;
      version_2_ = version == "2";
      return true;
    }
    if (key == "memory" && peek() == '[') return array(depth, [this, depth] { return row(depth); });
    if (peek() != '{') return skip(depth);
    return object(depth,
                  [this](const std::string& inner, int deeper) { return member(inner, deeper); });
  }

  bool row(int depth) {
    VmstatRow row;
    row.format = VmstatFormat::m3;
    row.capture = capture_;
    bad_ = false;
    int seen = 0;
    (void)peek();
    row.line = line();
    const bool whole = object(depth, [&](const std::string& key, int inner) {
      const bool field =
          key == "type" || key == "in-use" || key == "memory-use" || key == "requests";
      seen += field ? 1 : 0;
      if (key == "type") return text(row.name, bad_);
      if (key == "in-use") return number(row.inuse, bad_);
      if (key == "memory-use") return number(row.memuse_kib, bad_);
      if (key == "requests") return number(row.requests, bad_);
      if (key == "high-use") row.format = VmstatFormat::m2;
      if (key != "size") return skip(inner);
      if (peek() != '[') {
        bad_ = true;
        return skip(inner);
      }
      return array(inner, [&] {
        std::uint64_t size = 0;
        if (!number(size, bad_)) return false;
        bad_ = bad_ || size == 0 || size > 1u << 30;
        row.sizes.push_back(static_cast<std::uint32_t>(size));
        return true;
      });
    });
    if (!whole) return false;
    const bool control = has_control_bytes(row.name);
    const bool ascend = std::adjacent_find(row.sizes.begin(), row.sizes.end(),
                                           std::greater_equal<>()) == row.sizes.end();
    if (bad_ || seen != 4 || row.name.empty() || control || !ascend ||
        row.memuse_kib > std::uint64_t{1} << 50) {
      note("skipped: a row needs type, in-use, memory-use, requests, and ascending sizes");
    } else {
      table_.rows.push_back(std::move(row));
    }
    return true;
  }

  const std::string& file_;
  VmstatTable table_;
  bool version_2_ = false;
  std::size_t capture_ = 0;
  bool bad_ = false;
};

}  // namespace

VmstatTable read_vmstat_json(std::string_view text, const std::string& file) {
  return Reader(text, file).all();
}

}  // namespace dtmalloc::workload
