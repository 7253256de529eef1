// SPDX-License-Identifier: BSD-2-Clause
// Reads tables of vmstat -m as people paste them: without a header, cut, quoted, inside a diff.

#include <algorithm>
#include <dtmalloc/workload/import.hpp>
#include <functional>

#include "workload/import_text.hpp"

namespace dtmalloc::workload {
namespace {

constexpr std::uint64_t kMostKib = std::uint64_t{1} << 50;

// Removes and returns the last blank-separated word.
std::string_view pop_word(std::string_view& text) {
  text = trim(text);
  const std::size_t blank = text.find_last_of(" \t");
  const std::string_view word = blank == text.npos ? text : text.substr(blank + 1);
  text = text.substr(0, text.size() - word.size());
  return word;
}

bool kilobyte_word(std::string_view word) {
  return word.size() > 1 && word.back() == 'K' && digits(word.substr(0, word.size() - 1));
}

// "16,32,64", perhaps cut in the middle or ending in a comma.
bool size_list(std::string_view word) {
  return !word.empty() && word[0] >= '0' && word[0] <= '9' &&
         word.find_first_not_of("0123456789,") == word.npos;
}

struct Reader {
  VmstatRow row;
  std::string error;

  bool sizes(std::string_view list) {
    while (!list.empty()) {
      const std::size_t comma = std::min(list.find(','), list.size());
      const auto size = number(list.substr(0, comma));
      if (!size || *size == 0 || *size > 1u << 30) return fail("a size is no number");
      row.sizes.push_back(static_cast<std::uint32_t>(*size));
      list.remove_prefix(std::min(comma + 1, list.size()));
    }
    if (std::adjacent_find(row.sizes.begin(), row.sizes.end(), std::greater_equal<>()) !=
        row.sizes.end()) {
      return fail("sizes do not ascend");
    }
    return true;
  }
  bool fail(const char* text) {
    error = text;
    return false;
  }
  bool set(std::uint64_t& field, std::string_view text) {
    const auto n = number(text);
    if (!n) return fail("a number is out of range or missing");
    field = *n;
    return true;
  }

  // Name, InUse and MemUse may touch one another: %13s%6lu%6luK.
  bool glued_head(std::string_view head) {
    head.remove_suffix(1);  // K
    std::size_t end = head.find_last_not_of("0123456789");
    std::size_t run = head.size() - (end == head.npos ? 0 : end + 1);
    if (run == 0) return fail("MemUse is missing");
    const std::size_t memuse = std::min<std::size_t>(run, 6);
    if (!set(row.memuse_kib, head.substr(head.size() - memuse))) return false;
    head = head.substr(0, head.size() - memuse);
    const std::string_view trimmed = trim(head);
    const std::size_t tail = head.find_last_not_of(" \t");
    head = tail == head.npos ? std::string_view{} : head.substr(0, tail + 1);
    end = head.find_last_not_of("0123456789");
    run = head.size() - (end == head.npos ? 0 : end + 1);
    if (run == 0 || trimmed.empty()) return fail("InUse is missing");
    // Behind a blank it stands alone; else the column is six wide.
    const bool alone = end != head.npos && (head[end] == ' ' || head[end] == '\t');
    const std::size_t inuse = alone ? run : std::min<std::size_t>(run, 6);
    if (!set(row.inuse, head.substr(head.size() - inuse))) return false;
    row.name = trim(head.substr(0, head.size() - inuse));
    return true;
  }

  // Name InUse MemUseK, the rest of the columns gone.
  bool head(std::string_view text) {
    std::string_view rest = text;
    const std::string_view memuse = pop_word(rest);
    std::string_view name = rest;
    const std::string_view inuse = pop_word(name);
    if (kilobyte_word(memuse) && digits(inuse)) {
      row.name = trim(name);
      return set(row.memuse_kib, memuse.substr(0, memuse.size() - 1)) && set(row.inuse, inuse);
    }
    if (kilobyte_word(memuse) && inuse.size() > 1 && inuse[0] == '-' && digits(inuse.substr(1)))
      return fail("InUse is negative");
    if (trim(text).empty() || trim(text).back() != 'K')
      return fail("MemUse (such as 12K) is missing");
    return glued_head(trim(text));
  }

  bool line(std::string_view text) {
    std::string_view rest = text;
    // Sizes end the line unless it ends with Requests.
    std::string_view before = rest;
    std::string_view last = pop_word(before);
    std::string_view list, requests;
    const std::string_view last_but_one = [&] {
      std::string_view copy = before;
      return pop_word(copy);
    }();
    const bool requests_before = digits(last_but_one) || glued_requests(last_but_one);
    if (size_list(last) && requests_before && !kilobyte_word(last_but_one)) {
      list = last;
      rest = before;
    }
    requests = pop_word(rest);
    if (!list.empty() && !sizes(list)) return false;
    if (digits(requests)) {
      if (!set(row.requests, requests)) return false;
    } else if (const std::size_t k = requests.rfind('K');
               k != requests.npos && digits(requests.substr(k + 1))) {
      // HighUse with its K touches Requests: m1.
      if (!set(row.requests, requests.substr(k + 1))) return false;
      rest = text.substr(0, static_cast<std::size_t>(requests.data() + k + 1 - text.data()));
    } else {
      return fail("Requests is missing");
    }
    return columns(rest);
  }

  static bool glued_requests(std::string_view word) {
    const std::size_t k = word.rfind('K');
    return k != word.npos && digits(word.substr(k + 1));
  }

  // What stands between MemUse and Requests: nothing, a dash, a number with K, or limits.
  bool columns(std::string_view rest) {
    rest = trim(rest);
    if (rest.ends_with(" -") || rest.ends_with("K-")) {
      row.format = VmstatFormat::m2;
      rest.remove_suffix(1);
      return head(trim(rest));
    }
    const std::size_t last_k = rest.rfind('K');
    if (last_k == rest.npos || last_k + 1 != rest.size()) {
      return fail("MemUse (such as 12K) is missing");
    }
    const std::size_t before = rest.find_last_not_of("0123456789", last_k - (last_k > 0 ? 1 : 0));
    // A second number with K before it: HighUse, as the kernel of 5.x printed.
    std::string_view left = trim(rest.substr(0, before == rest.npos ? 0 : before + 1));
    if (left.size() > 1 && left.back() == 'K' && left[left.size() - 2] >= '0' &&
        left[left.size() - 2] <= '9') {
      row.format = VmstatFormat::m1;
      // A third one is the limit of 4.x; its table has more columns.
      std::string_view more = left;
      const std::string_view word = pop_word(more);
      const std::string_view again = trim(more);
      if (kilobyte_word(word) && again.size() > 1 && again.back() == 'K') {
        row.format = VmstatFormat::m0;
        return head(again);
      }
      return head(left);
    }
    row.format = VmstatFormat::m3;
    return head(rest);
  }
};

// Of release 16: Type Use Memory Req Size(s).
bool humanized_header(std::string_view text) {
  return text.starts_with("Type") && text.find("Use") != text.npos &&
         text.find("Memory") != text.npos && text.find("Req") != text.npos;
}

bool header(std::string_view text) {
  return text.find("Type") != text.npos && text.find("InUse") != text.npos &&
         text.find("MemUse") != text.npos;
}

}  // namespace

VmstatTable read_vmstat_m(std::string_view text, const std::string& file) {
  VmstatTable table;
  std::size_t line_number = 0, capture = 0;
  const auto note = [&](const std::string& what) {
    table.notes.push_back(file + ":" + std::to_string(line_number) + ": " + what);
  };
  bool limits = false;  // a 4.x header was seen
  while (!text.empty()) {
    const std::size_t newline = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, newline);
    const bool cut = newline == text.size();  // no newline: perhaps the paste ends here
    text.remove_prefix(std::min(newline + 1, text.size()));
    ++line_number;
    const auto [inner, side, diff_head] = read_line(line);
    if (diff_head) continue;
    line = inner;
    if (line.empty()) continue;
    if (line.find_first_not_of('.') == line.npos) {
      note("the table is cut here");
      continue;
    }
    if (humanized_header(line)) {
      table.humanized = true;
      note("skipped from here: a table of release 16, whose numbers lost digits");
      break;
    }
    if (header(line)) {
      limits = line.find("Limit") != line.npos;
      if (!table.rows.empty() && side == ' ') ++capture;
      continue;
    }
    if (line.find_first_not_of("-=+ ") == line.npos) continue;
    Reader reader;
    std::string_view row_text = line;
    if (limits) {
      // Type Limit and Kern Limit stand between Requests and the sizes.
      std::string_view rest = line;
      std::string_view list = pop_word(rest);
      std::string_view copy = rest;
      if (!size_list(list) || !digits(pop_word(copy))) list = {};
      if (list.empty()) rest = line;
      pop_word(rest);
      pop_word(rest);
      reader.row.side = side;
      static thread_local std::string joined;
      joined = std::string(trim(rest)) + "  " + std::string(list);
      row_text = joined;
    }
    const bool read = reader.line(row_text);
    if (read && reader.row.memuse_kib > kMostKib) {
      note("skipped: MemUse is out of range");
      continue;
    }
    if (!read) {
      note("skipped: " + reader.error);
      continue;
    }
    if (reader.row.name.empty()) {
      note("skipped: the name of the type is missing");
      continue;
    }
    if (has_control_bytes(reader.row.name)) {
      note("skipped: the name of the type holds control bytes");
      continue;
    }
    reader.row.side = side;
    reader.row.line = line_number;
    reader.row.capture = capture;
    if (cut && line.back() == ',') note("the line is cut after its last comma");
    table.rows.push_back(std::move(reader.row));
  }
  return table;
}

}  // namespace dtmalloc::workload
