// SPDX-License-Identifier: BSD-2-Clause
// Reads tables of vmstat -z as people paste them: without a header, cut, in other columns, with
// figures of their own behind the numbers.

#include <algorithm>
#include <dtmalloc/workload/import.hpp>

#include "workload/import_text.hpp"
#include "workload/json_reader.hpp"

namespace dtmalloc::workload {
namespace {

bool header(std::string_view line) {
  return line.find("ITEM") != line.npos && line.find("SIZE") != line.npos &&
         line.find("LIMIT") != line.npos;
}

// The numbers that begin `text`, which commas part, or blanks where there is no comma; what follows
// them is somebody's own.
std::vector<std::uint64_t> leading_numbers(std::string_view text) {
  std::vector<std::uint64_t> out;
  const bool commas = text.find(',') != text.npos;
  while (true) {
    text = trim(text);
    const std::size_t end = std::min(text.find_first_of(commas ? "," : " \t"), text.size());
    const auto n = number(trim(text.substr(0, end)));
    if (!n) return out;
    out.push_back(*n);
    if (end == text.size()) return out;
    text.remove_prefix(end + 1);
  }
}

// The columns of a row by their number: SIZE LIMIT USED FREE REQ [FAIL [SLEEP [XDOMAIN]]].
bool fill(ZoneRow& row, const std::vector<std::uint64_t>& n) {
  if (n.size() < 5 || n.size() > 8) return false;
  std::uint64_t* const fields[] = {&row.size,     &row.limit, &row.used,  &row.free,
                                   &row.requests, &row.fail,  &row.sleep, &row.xdomain};
  for (std::size_t i = 0; i < n.size(); ++i) *fields[i] = n[i];
  row.format = n.size() < 7 ? ZoneFormat::z1 : n.size() == 7 ? ZoneFormat::z2 : ZoneFormat::z3;
  return true;
}

class JsonZones : JsonReader {
 public:
  JsonZones(std::string_view text, const std::string& file) : JsonReader(text), file_(file) {}

  ZoneTable all() {
    // Reports of one run stand one behind the other.
    do {
      if (!object(0, [this](const std::string& key, int depth) { return member(key, depth); })) {
        note("skipped from here: no JSON");
        break;
      }
      if (!table_.rows.empty()) capture_ = table_.rows.back().capture + 1;
    } while (peek() != '\0');
    for (ZoneRow& row : table_.rows) row.format = version_2_ ? ZoneFormat::z16 : ZoneFormat::z3;
    return std::move(table_);
  }

 private:
  void note(const std::string& what) {
    table_.notes.push_back(file_ + ":" + std::to_string(line()) + ": " + what);
  }

  bool member(const std::string& key, int depth) {
    if (key == "__version") {
      std::string version;
      if (!word(version)) return false;
      version_2_ = version == "2";
      return true;
    }
    if (key == "zone" && peek() == '[') return array(depth, [this, depth] { return row(depth); });
    if (peek() != '{') return skip(depth);
    return object(depth,
                  [this](const std::string& inner, int deeper) { return member(inner, deeper); });
  }

  bool row(int depth) {
    ZoneRow row;
    bool bad = false;
    int seen = 0;
    (void)peek();
    row.line = line();
    row.capture = capture_;
    const std::pair<const char*, std::uint64_t*> fields[] = {
        {"size", &row.size},   {"limit", &row.limit},       {"used", &row.used},
        {"free", &row.free},   {"requests", &row.requests}, {"fail", &row.fail},
        {"sleep", &row.sleep}, {"xdomain", &row.xdomain}};
    const bool whole = object(depth, [&](const std::string& key, int inner) {
      if (key == "name") return text(row.name, bad);
      for (const auto& [name, slot] : fields) {
        if (key != name) continue;
        ++seen;
        return number(*slot, bad);
      }
      return skip(inner);
    });
    if (!whole) return false;
    // libxo keeps the colon that the table of 13 to 15 prints behind the name.
    if (row.name.ends_with(':')) row.name.pop_back();
    if (bad || seen < 5 || row.name.empty() || has_control_bytes(row.name)) {
      note("skipped: a row needs name, size, limit, used, free and requests");
    } else {
      table_.rows.push_back(std::move(row));
    }
    return true;
  }

  const std::string& file_;
  ZoneTable table_;
  bool version_2_ = false;
  std::size_t capture_ = 0;
};

}  // namespace

ZoneTable read_vmstat_z(std::string_view text, const std::string& file) {
  ZoneTable table;
  std::size_t line_number = 0, capture = 0;
  bool sixteen = false;  // a header of release 16 was seen
  const auto note = [&](const std::string& what) {
    table.notes.push_back(file + ":" + std::to_string(line_number) + ": " + what);
  };
  while (!text.empty()) {
    const std::size_t newline = std::min(text.find('\n'), text.size());
    const auto [line, side, diff_head] = read_line(text.substr(0, newline));
    text.remove_prefix(std::min(newline + 1, text.size()));
    ++line_number;
    if (diff_head || line.empty()) continue;
    if (line.find_first_not_of('.') == line.npos) {
      note("the table is cut here");
      continue;
    }
    if (header(line)) {
      sixteen = line.find("XDOM") != line.npos && line.find("XDOMAIN") == line.npos;
      if (!table.rows.empty()) ++capture;
      continue;
    }
    const std::size_t colon = line.rfind(':');
    if (colon == line.npos) {
      if (line.find_first_not_of("-=+ ") != line.npos) note("skipped: no zone and colon");
      continue;
    }
    ZoneRow row;
    row.name = trim(line.substr(0, colon));
    const std::vector<std::uint64_t> numbers = leading_numbers(line.substr(colon + 1));
    if (row.name.empty()) {
      note("skipped: the name of the zone is missing");
    } else if (has_control_bytes(row.name)) {
      note("skipped: the name of the zone holds control bytes");
    } else if (!fill(row, numbers)) {
      note("skipped: " + counted(numbers.size(), "number") + " behind the zone, expected 5 to 8");
    } else {
      if (sixteen && row.format == ZoneFormat::z3) row.format = ZoneFormat::z16;
      row.line = line_number;
      row.side = side;
      row.capture = capture;
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

ZoneTable read_vmstat_z_json(std::string_view text, const std::string& file) {
  return JsonZones(text, file).all();
}

}  // namespace dtmalloc::workload
