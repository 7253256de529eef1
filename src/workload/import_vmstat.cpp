// SPDX-License-Identifier: BSD-2-Clause
// A vmstat -m table becomes a workload that prints the same table again.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <dtmalloc/workload/import.hpp>
#include <dtmalloc/workload/workload.hpp>
#include <set>

#include "workload/import_text.hpp"

namespace dtmalloc::workload {
namespace {

constexpr std::uint64_t kPage = 4096;

const char* format_name(VmstatFormat format) {
  switch (format) {
    case VmstatFormat::m0:
    case VmstatFormat::m1:
      return "m1";
    case VmstatFormat::m2:
      return "m2";
    case VmstatFormat::m3:
      return "m3";
    case VmstatFormat::m16:
      return "m16";
  }
  return "m3";
}

std::string join(const std::vector<std::uint32_t>& sizes) {
  std::string out;
  for (const std::uint32_t size : sizes) out += (out.empty() ? "" : ",") + std::to_string(size);
  return out;
}

class Importer {
 public:
  Importer(VmstatTable table, const std::string& file, const ImportOptions& options)
      : table_(std::move(table)), file_(file), options_(options) {}

  Result<ImportResult> all() {
    take_first_state();
    choose_release();
    if (auto conflict = check_release()) {
      tell();
      return *conflict;
    }
    drop_unknown_classes();
    if (table_.rows.empty()) {
      tell();
      Diagnostic d;
      d.tag = "WL_IMPORT";
      d.where = {file_, 0, 0, 0};
      d.message = file_ + ": no row of vmstat -m is left";
      if (table_.humanized) {
        d.message = file_ +
                    ": a table of release 16 cannot be imported: 1.4K and 4.0M lost digits; "
                    "`vmstat -m --libxo json` keeps them";
      }
      d.expected = "rows such as `temp 12 1K 36 16,32,64` or `temp 12 1K - 36 16,32,64`";
      return d;
    }
    for (const VmstatRow& row : table_.rows) import_row(row);
    const std::uint64_t mem =
        std::max<std::uint64_t>(std::uint64_t{1} << 30, std::bit_ceil(made_ * 2));
    head_ = fmt::format(
        "# {} of vmstat -m, format {}: live blocks are allocated, what is over is {}.\n"
        "kernel release={} cpus=1 mem={} seed=1 capture={}\n",
        counted(table_.rows.size(), "row"), format_name(format_),
        options_.replay_history ? "replayed" : "history", release_, print_size(mem),
        format_name(format_));
    if (std::any_of(table_.rows.begin(), table_.rows.end(), [](const VmstatRow& row) {
          return row.format == VmstatFormat::m1 || row.format == VmstatFormat::m0;
        })) {
      table_.notes.push_back(file_ +
                             ": the numbers of HighUse are left out; --report "
                             "vmstat-m=capture prints a dash there");
    }
    tell();
    ImportResult result;
    result.text = head_ + boot_ + body_;
    result.notes = std::move(table_.notes);
    result.rows = table_.rows.size();
    return result;
  }

 private:
  void tell() const {
    if (!options_.note) return;
    for (const std::string& note : table_.notes) options_.note(note);
  }

  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;
  static constexpr std::uint64_t kMostCalls = std::uint64_t{1} << 28;  // of a row

  void note(const VmstatRow& row, const std::string& text) {
    table_.notes.push_back(fmt::format("{}:{}: {}", file_, row.line, text));
  }

  // A diff, or two tables in one file, show two states: the first is imported, the change is told.
  void take_first_state() {
    auto& rows = table_.rows;
    const bool diff =
        std::any_of(rows.begin(), rows.end(), [](const VmstatRow& row) { return row.side == '-'; });
    // Fragments of one table, each under its header, have no type in common.
    std::set<std::string> first;
    for (const VmstatRow& row : rows)
      if (row.capture == 0) first.insert(row.name);
    const bool again = std::any_of(rows.begin(), rows.end(), [&](const VmstatRow& row) {
      return row.capture > 0 && first.contains(row.name);
    });
    const auto is_after = [diff, again](const VmstatRow& row) {
      return (again && row.capture > 0) || (diff && row.side == '+');
    };
    std::set<const VmstatRow*> matched;
    std::uint64_t unchanged = 0;
    for (const VmstatRow& after : rows) {
      if (!is_after(after)) continue;
      // The row of that name in the state before, of those not spoken for yet.
      const VmstatRow* before = nullptr;
      for (const VmstatRow& row : rows) {
        if (&row == &after) break;
        const bool earlier = row.capture < after.capture || (diff && row.side == '-');
        if (!earlier || row.name != after.name || matched.contains(&row)) continue;
        if (before == nullptr || row.capture > before->capture) before = &row;
      }
      if (before == nullptr) {
        note(after, fmt::format("{}: new after the change, left out", after.name));
        continue;
      }
      matched.insert(before);
      if (before->inuse == after.inuse && before->requests == after.requests &&
          memory(*before).hi == memory(after).hi) {
        ++unchanged;
        continue;
      }
      const auto change = [](std::uint64_t from, std::uint64_t to) {
        return static_cast<std::int64_t>(to - from);
      };
      note(after, fmt::format("{}: {:+} blocks, {:+}K, {:+} requests after the change; the state "
                              "before it is imported",
                              after.name, change(before->inuse, after.inuse),
                              change(before->memuse_kib, after.memuse_kib),
                              change(before->requests, after.requests)));
    }
    if (unchanged != 0) {
      table_.notes.push_back(
          fmt::format("{}: {} unchanged in the later state", file_, counted(unchanged, "type")));
    }
    std::erase_if(rows, is_after);
  }

  void choose_release() {
    if (table_.rows.empty()) return;
    format_ = table_.rows.front().format;
    bool has_384 = false, old = true;
    for (const VmstatRow& row : table_.rows) {
      has_384 |= std::count(row.sizes.begin(), row.sizes.end(), 384u) != 0;
      old &= row.format == VmstatFormat::m1 || row.format == VmstatFormat::m0;
    }
    if (options_.release) {
      release_ = *options_.release;
      take_classes();
      return;
    }
    const bool modern = format_ == VmstatFormat::m3 || format_ == VmstatFormat::m16;
    release_ = table_.bytes ? 16 : old ? 8 : modern || has_384 ? 14 : 12;
    if (has_384 && !modern) {
      table_.notes.push_back(file_ + ": class 384 is in the table: release 14's rules are taken");
    }
    take_classes();
    // The largest class may not be enough for what the table shows.
    if (old) {
      for (const VmstatRow& row : table_.rows) {
        if (!row.sizes.empty() && row.sizes.back() > classes_.back()) {
          release_ = 12;
          take_classes();
          break;
        }
      }
    }
  }

  void take_classes() {
    const KernelRelease* release = KernelRelease::find(release_);
    if (release == nullptr) return;
    classes_ = release->classes;
    least_pages_ = classes_.back() / kPage + 1;
  }

  // The release that was asked for cannot have printed this table.
  std::optional<Diagnostic> check_release() const {
    if (!options_.release) return std::nullopt;
    Diagnostic d;
    d.tag = "WL_IMPORT";
    d.where = {file_, 0, 0, 0};
    const KernelRelease* asked = KernelRelease::find(release_);
    if (asked == nullptr) {
      d.message = fmt::format("no release {}", release_);
      d.expected = "one of 8, 12, 14, 16";
      return d;
    }
    for (const VmstatRow& row : table_.rows) {
      for (const std::uint32_t size : row.sizes) {
        std::string has;
        for (const int version : KernelRelease::versions()) {
          const std::vector<std::uint32_t>& classes = KernelRelease::find(version)->classes;
          if (std::binary_search(classes.begin(), classes.end(), size))
            has += (has.empty() ? "" : " or ") + std::to_string(version);
        }
        if (has.empty() || std::binary_search(classes_.begin(), classes_.end(), size)) continue;
        d.message = fmt::format("{}:{}: {} used class {}, which release {} has not", file_,
                                row.line, row.name, size, release_);
        d.expected = "--release " + has + ", or none";
        return d;
      }
    }
    return std::nullopt;
  }

  // A class the release lacks: the line was cut inside its last number, or the row is wrong.
  void drop_unknown_classes() {
    std::erase_if(table_.rows, [this](VmstatRow& row) {
      const auto known = [this](std::uint32_t size) {
        return std::binary_search(classes_.begin(), classes_.end(), size);
      };
      const auto bad = std::find_if_not(row.sizes.begin(), row.sizes.end(), known);
      if (bad == row.sizes.end()) return false;
      const std::string digits = std::to_string(*bad);
      const bool prefix = std::any_of(classes_.begin(), classes_.end(), [&](std::uint32_t size) {
        return std::to_string(size).starts_with(digits);
      });
      if (bad + 1 == row.sizes.end() && row.sizes.size() > 1 && prefix) {
        note(row, fmt::format("the last size {} is cut, left out", digits));
        row.sizes.pop_back();
        return false;
      }
      note(row, fmt::format("skipped: release {} has no size class {}", release_, digits));
      return true;
    });
  }

  static MemoryRange memory(const VmstatRow& row) {
    return row.memuse_bytes ? MemoryRange::exactly(*row.memuse_bytes)
                            : MemoryRange::of_kib(row.memuse_kib);
  }
  static std::string memory_text(const VmstatRow& row) {
    return row.memuse_bytes ? fmt::format("{} bytes", *row.memuse_bytes)
                            : fmt::format("{}K", row.memuse_kib);
  }

  void allocate(const std::string& block, std::uint64_t count, std::uint64_t size,
                const std::string& symbol, bool contiguous) {
    const std::string op =
        fmt::format("{} {} {} M_WAITOK", contiguous ? "contigmalloc" : "malloc", size, symbol);
    if (count == 1) {
      body_ += fmt::format("{} = {}\n", block, op);
    } else if (count > 1) {
      body_ += fmt::format("repeat {} as i {{ {}[i] = {} }}\n", count, block, op);
    }
  }

  void import_row(const VmstatRow& row) {
    const std::string symbol = symbols_.of_type(row.name);
    boot_ += fmt::format("type {} {}\n", symbol, quoted(row.name));
    const std::uint64_t past = row.requests >= row.inuse ? row.requests - row.inuse : 0;
    if (row.inuse > kMostCalls || memory(row).hi > kMostBytes - made_) {
      note(row, fmt::format("{}: {} in {} are too many to make: none is; the row enters as "
                            "statistics only",
                            row.name, counted(row.inuse, "block"), memory_text(row)));
      boot_ += fmt::format("# {}: too many to make\n", symbol);
      return import_statistics(row, symbol);
    }
    const auto choice = row.requests < row.inuse
                            ? std::nullopt
                            : choose_blocks(row.inuse, memory(row), row.sizes, past, least_pages_);
    if (!choice) return import_contradiction(row, symbol);
    made_ += memory(row).hi;
    if (!choice->all_classes_seen) {
      note(row, fmt::format("{}: {} requests cannot have used {} classes", row.name, row.requests,
                            row.sizes.size()));
    }
    history(row, symbol, past, *choice);
    live(row, symbol, *choice);
  }

  // Nothing that malloc(9) does gives this row: its numbers enter as they are.
  void import_contradiction(const VmstatRow& row, const std::string& symbol) {
    note(row, fmt::format("{}: no {} blocks of {} take {}; the row enters as statistics only",
                          row.name, row.inuse, row.sizes.empty() ? "any size" : join(row.sizes),
                          memory_text(row)));
    boot_ += fmt::format("# {}: no set of blocks gives this row\n", symbol);
    import_statistics(row, symbol);
  }

  void import_statistics(const VmstatRow& row, const std::string& symbol) {
    boot_ +=
        fmt::format("history {} allocs={} memalloced={} frees={} memfreed=0", symbol, row.requests,
                    memory(row).hi, row.requests >= row.inuse ? row.requests - row.inuse : 0);
    if (!row.sizes.empty()) boot_ += " sizes=" + join(row.sizes);
    boot_ += '\n';
  }

  // Requests that are over: one for each class without a live block, the rest in the smallest.
  void history(const VmstatRow& row, const std::string& symbol, std::uint64_t past,
               const BlockChoice& choice) {
    std::vector<std::uint32_t> idle;
    for (std::size_t i = 0; i < row.sizes.size(); ++i) {
      if (choice.per_class[i] == 0) idle.push_back(row.sizes[i]);
    }
    if (past == 0 && idle.empty()) return;
    const std::uint64_t usual = row.sizes.empty() ? least_pages_ * kPage : row.sizes.front();
    const std::uint64_t rest = past > idle.size() ? past - idle.size() : 0;
    const bool too_many = options_.replay_history && rest > kMostCalls;
    if (too_many) {
      note(row, fmt::format("{}: {} past requests are too many to replay: they are history",
                            row.name, past));
    }
    if (options_.replay_history && past >= idle.size() && !too_many) {
      const std::string block = block_name(symbol) + "_past";
      for (const std::uint32_t size : idle) {
        body_ += fmt::format("{0} = malloc {1} {2} M_WAITOK\nfree {0}\n", block, size, symbol);
      }
      if (rest != 0) {
        body_ += fmt::format("repeat {0} {{\n  {1} = malloc {2} {3} M_WAITOK\n  free {1}\n}}\n",
                             rest, block, usual, symbol);
      }
      return;
    }
    // What past requests took in all is not in the table; any number will do.
    std::uint64_t bytes = rest < kMostBytes ? rest * usual : kMostBytes;
    for (const std::uint32_t size : idle) bytes += past == 0 ? 0 : size;
    boot_ += fmt::format("history {} allocs={} memalloced={} frees={} memfreed={}", symbol, past,
                         bytes, past, bytes);
    if (!row.sizes.empty()) boot_ += " sizes=" + join(row.sizes);
    boot_ += '\n';
  }

  void live(const VmstatRow& row, const std::string& symbol, const BlockChoice& choice) {
    if (row.inuse == 0) return;
    const std::string block = block_name(symbol);
    if (!choice.pages.empty()) {
      const bool contiguous = choice.pages.front() < least_pages_;
      std::uint64_t pages = 0;
      for (const std::uint64_t n : choice.pages) pages += n;
      const std::string text = fmt::format(
          "{}: at least {} {}; {} of {}K in all chosen", counted(row.inuse, "block"),
          choice.pages.size(), contiguous ? "contiguous" : "large", choice.pages.size(), pages * 4);
      body_ += fmt::format("# {}: {}\n", symbol, text);
      note(row, fmt::format("{}: {}", row.name, text));
    } else if (row.sizes.size() > 1) {
      body_ += fmt::format("# {}: {}, {}, classes {}: this mix is chosen\n", symbol,
                           counted(row.inuse, "block"), memory_text(row), join(row.sizes));
    }
    for (std::size_t i = 0; i < row.sizes.size(); ++i) {
      allocate(row.sizes.size() == 1 ? block : fmt::format("{}_{}", block, row.sizes[i]),
               choice.per_class[i], row.sizes[i], symbol, false);
    }
    std::size_t group = 0;
    for (std::size_t i = 0; i < choice.pages.size();) {
      std::size_t same = i;
      while (same < choice.pages.size() && choice.pages[same] == choice.pages[i]) ++same;
      allocate(fmt::format("{}_large{}", block, group == 0 ? "" : std::to_string(group)), same - i,
               choice.pages[i] * kPage, symbol, choice.pages[i] < least_pages_);
      i = same;
      ++group;
    }
  }

  VmstatTable table_;
  const std::string& file_;
  const ImportOptions& options_;
  VmstatFormat format_ = VmstatFormat::m3;
  int release_ = 14;
  std::uint64_t least_pages_ = 17;
  std::vector<std::uint32_t> classes_;
  Symbols symbols_;
  std::uint64_t made_ = 0;  // bytes of the blocks
  std::string head_, boot_, body_;
};

}  // namespace

Result<ImportResult> import_vmstat_m(std::string_view text, const std::string& file,
                                     const ImportOptions& options) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool json = first != text.npos && text[first] == '{';
  VmstatTable table = json ? read_vmstat_json(text, file) : read_vmstat_m(text, file);
  const bool none = table.rows.empty() && !table.humanized;
  auto result = Importer(std::move(table), file, options).all();
  if (!result && none &&
      !(json ? read_vmstat_z_json(text, file) : read_vmstat_z(text, file)).rows.empty()) {
    Diagnostic d = result.error();
    d.expected = "types; this is a table of vmstat -z: use import vmstat-z";
    return d;
  }
  return result;
}

}  // namespace dtmalloc::workload
