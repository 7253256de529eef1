// SPDX-License-Identifier: BSD-2-Clause
// A table of vmstat -z becomes a workload with the same zones, and what the table says to who asks
// where the memory is.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <dtmalloc/kernel.hpp>
#include <dtmalloc/workload/import.hpp>
#include <dtmalloc/workload/workload.hpp>
#include <map>
#include <set>
#include <tuple>

#include "vm/uma_int.hpp"
#include "workload/import_text.hpp"
#include "workload/zone_plan.hpp"

namespace dtmalloc::workload {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::string_view kWireCount = "vm.stats.vm.v_wire_count";  // pages
constexpr std::string_view kPageSize = "vm.stats.vm.v_page_size";
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;
constexpr std::uint64_t kMostItem = std::uint64_t{1} << 24;  // bytes, of a zone of a workload
constexpr std::uint64_t kMostUsed = std::uint64_t{1} << 28;  // items to be made
constexpr std::uint64_t kMostLimit = (std::uint64_t{1} << 31) - 1;  // items, ditto

// 1024 at a time, to the nearest unit; a half goes to the even neighbour, as printf(3) rounds.
std::string bytes_text(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"b", "KB", "MB", "GB", "TB", "PB", "EB"};
  std::size_t unit = 0;
  while (unit + 1 < std::size(kUnits) && bytes >> (10 * (unit + 1)) != 0) ++unit;
  std::uint64_t whole = bytes >> (10 * unit);
  const std::uint64_t half = (std::uint64_t{1} << (10 * unit)) / 2;
  const std::uint64_t rest = bytes - (whole << (10 * unit));
  if (rest > half || (rest == half && half != 0 && whole % 2 == 1)) ++whole;
  return std::to_string(whole) + kUnits[unit];
}

// No row of a real machine overflows; one that does is somebody's joke.
std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? ~std::uint64_t{0} : out;
}
std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
  std::uint64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? ~std::uint64_t{0} : out;
}

const char* format_name(ZoneFormat format) {
  switch (format) {
    case ZoneFormat::z1:
      return "z1";
    case ZoneFormat::z2:
      return "z2";
    case ZoneFormat::z3:
      return "z3";
    case ZoneFormat::z16:
      return "z16";
    case ZoneFormat::netstat:
      return "netstat -m";
    case ZoneFormat::sysctl:
      return "sysctl vm.uma";
  }
  return "z3";
}

bool is_table(ZoneFormat format) {
  return format != ZoneFormat::netstat && format != ZoneFormat::sysctl;
}

// The figure of a sysctl whose line stands beside the table, which goes.
std::optional<std::uint64_t> take_sysctl(std::string& text, std::string_view name) {
  std::size_t end = 0;
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, end)) {
    const std::size_t start = text.rfind('\n', at) + 1;
    end = std::min(text.find('\n', at), text.size());
    std::string_view line = read_line(std::string_view(text).substr(start, end - start)).text;
    if (!line.starts_with(name)) continue;
    line = trim(line.substr(name.size()));
    if (!line.starts_with(':') && !line.starts_with('=')) continue;
    const auto value = number(trim(line.substr(1)));
    if (!value) continue;
    std::fill(text.begin() + static_cast<std::ptrdiff_t>(start),
              text.begin() + static_cast<std::ptrdiff_t>(end), ' ');
    return value;
  }
  return std::nullopt;
}

class Importer {
 public:
  Importer(ZoneTable table, const std::string& file, const ImportOptions& options,
           std::optional<std::uint64_t> wired)
      : table_(std::move(table)), file_(file), options_(options), wired_(wired) {}

  Result<ImportResult> all() {
    drop_large();
    take_first_state();
    if (table_.rows.empty()) return refused("no row of vmstat -z is left", kExpected);
    if (auto wrong = choose_release()) return *wrong;
    groups();
    for (const ZoneRow& row : table_.rows) zone(row);
    totals();
    tell();
    std::uint64_t bytes = 0;
    for (const ZoneRow& row : table_.rows)
      bytes = sum(bytes, product(sum(row.used, row.free), std::max<std::uint64_t>(row.size, 16)));
    const std::uint64_t mem = std::max<std::uint64_t>(
        std::uint64_t{1} << 30, std::bit_ceil(std::min(bytes, kMostBytes) * 2));
    const ZoneFormat format = table_.rows.front().format;
    ImportResult result;
    result.text = fmt::format(
        "# {} of {}{}: items in use are allocated; past requests and refusals are not made.\n"
        "kernel release={} cpus=1 mem={} seed=1{}\n",
        counted(table_.rows.size(), "row"), is_table(format) ? "vmstat -z, format " : "",
        format_name(format), release_, print_size(mem),
        is_table(format) ? fmt::format(" capture={}", format_name(format)) : "");
    result.text += boot_ + body_;
    result.notes = std::move(table_.notes);
    result.rows = table_.rows.size();
    return result;
  }

 private:
  static constexpr const char* kExpected =
      "rows such as `mbuf: 256, 0, 1, 137, 137, 0, 0`, netstat -m, or vm.uma.ZONE.NAME: value";

  Diagnostic refused(const std::string& why, const std::string& expected) {
    tell();
    Diagnostic d;
    d.tag = "WL_IMPORT";
    d.where = {file_, 0, 0, 0};
    d.message = file_ + ": " + why;
    d.expected = expected;
    return d;
  }
  void tell() const {
    if (!options_.note) return;
    for (const std::string& note : table_.notes) options_.note(note);
  }
  void note(const ZoneRow& row, const std::string& text) {
    table_.notes.push_back(fmt::format("{}:{}: {}: {}", file_, row.line, row.name, text));
  }

  void drop_large() {
    std::erase_if(table_.rows, [this](const ZoneRow& row) {
      const bool bad = row.size == 0 || row.size > kMostItem;
      if (bad) note(row, fmt::format("skipped: items of {} bytes", row.size));
      return bad;
    });
  }

  // A diff, or two tables in one file, show two states: the first is imported, the change is told.
  void take_first_state() {
    auto& rows = table_.rows;
    const bool diff =
        std::any_of(rows.begin(), rows.end(), [](const ZoneRow& row) { return row.side == '-'; });
    const auto later = [diff](const ZoneRow& row) {
      return row.capture > 0 || (diff && row.side == '+');
    };
    std::set<const ZoneRow*> matched;
    std::uint64_t unchanged = 0;
    for (const ZoneRow& after : rows) {
      if (!later(after)) continue;
      // The row of that name in the state before, of those not spoken for yet.
      const ZoneRow* before = nullptr;
      for (const ZoneRow& row : rows) {
        if (&row == &after) break;
        const bool earlier = row.capture < after.capture || (diff && row.side == '-');
        if (earlier && row.name == after.name && !matched.contains(&row)) {
          if (before == nullptr || row.capture > before->capture) before = &row;
        }
      }
      if (before == nullptr) {
        note(after, "new in the later state, left out");
        continue;
      }
      matched.insert(before);
      if (std::tie(before->requests, before->used, before->free, before->fail) ==
          std::tie(after.requests, after.used, after.free, after.fail)) {
        ++unchanged;
        continue;
      }
      const auto change = [](std::uint64_t from, std::uint64_t to) {
        return from == to ? fmt::format("unchanged ({})", to)
                          : fmt::format("{:+}", static_cast<std::int64_t>(to - from));
      };
      note(after, fmt::format("since line {}: requests {}, used {}, free {}, fail {}; the earlier "
                              "state is imported",
                              before->line, change(before->requests, after.requests),
                              change(before->used, after.used), change(before->free, after.free),
                              change(before->fail, after.fail)));
    }
    if (unchanged != 0) {
      table_.notes.push_back(
          fmt::format("{}: {} unchanged in the later state", file_, counted(unchanged, "zone")));
    }
    std::erase_if(rows, later);
  }

  // The class of malloc(9) that a zone's name says, or 0.
  static std::uint64_t class_of(const ZoneRow& row) {
    std::string_view name = row.name;
    if (name.starts_with("malloc-")) name.remove_prefix(7);
    const auto n = number(name);
    return n && *n == row.size && *n >= 16 && *n <= 65536 ? *n : 0;
  }

  std::optional<Diagnostic> choose_release() {
    bool prefix = false, bare = false;
    std::uint64_t largest = 0;
    for (const ZoneRow& row : table_.rows) {
      if (class_of(row) == 0) continue;
      (row.name.starts_with("malloc-") ? prefix : bare) = true;
      largest = std::max(largest, class_of(row));
    }
    const ZoneFormat format = table_.rows.front().format;
    const bool old = format == ZoneFormat::z1 && largest <= 4096;
    // A whole dump of the sysctls is taken for one of the newest release.
    const bool whole_dump = format == ZoneFormat::sysctl && prefix;
    release_ = format == ZoneFormat::z16  ? 16
               : whole_dump               ? 16
               : prefix                   ? 14
               : bare                     ? (old ? 8 : 12)
               : format == ZoneFormat::z1 ? 8
               : format == ZoneFormat::z2 ? 12
                                          : 14;
    if (options_.release) release_ = *options_.release;
    const KernelRelease* release = KernelRelease::find(release_);
    if (release == nullptr)
      return refused(fmt::format("no release {}", release_), "one of 8, 12, 14, 16");
    classes_ = release->classes;
    for (const ZoneRow& row : table_.rows) {
      const std::uint64_t size = class_of(row);
      if (size == 0 || std::binary_search(classes_.begin(), classes_.end(), size)) continue;
      if (!options_.release) continue;  // a class of somebody's own: a zone as any other
      return refused(
          fmt::format("line {}: release {} has no size class {}", row.line, release_, size),
          fmt::format("a release with class {}{}", size,
                      size == 384 ? ": 14 or 16" : ": 12, 14 or 16"));
    }
    return std::nullopt;
  }

  // Zones of one name, as a kernel with INVARIANTS has for groups of malloc types.
  void groups() {
    std::map<std::string, ZoneRow> sums;
    std::map<std::string, std::uint64_t> rows;
    std::vector<std::string> order;
    for (const ZoneRow& row : table_.rows) {
      if (++rows[row.name] == 1) order.push_back(row.name);
      ZoneRow& all = sums[row.name];
      all.line = row.line;
      all.name = row.name;
      all.size = row.size;
      all.used = sum(all.used, row.used);
      all.free = sum(all.free, row.free);
      all.requests = sum(all.requests, row.requests);
    }
    for (const std::string& name : order) {
      if (rows[name] == 1) continue;
      const ZoneRow& all = sums[name];
      note(all, fmt::format("{} zones of this name: used {}, free {}, requests {}", rows[name],
                            all.used, all.free, all.requests));
      if (class_of(all) == 0) continue;
      note(all,
           "these share one zone when the workload runs: whose blocks they are is not in the "
           "table, so maxzones= could not part them");
    }
  }

  void limits(const ZoneRow& row) {
    const std::uint64_t taken = sum(row.used, row.free);
    if (row.limit != 0 && row.used != 0) {
      const double percent = 100.0 * static_cast<double>(row.used) / static_cast<double>(row.limit);
      note(row,
           fmt::format("{} of {} items, {:.2f} % of the limit{}", row.used, row.limit, percent,
                       row.used >= row.limit ? ": the next request that does not wait fails" : ""));
    }
    if (row.fail != 0) {
      if (row.limit == 0) {
        note(row, fmt::format("{} refusals; the zone has no limit", row.fail));
      } else if (taken < row.limit) {
        note(row, fmt::format("{} refusals not explained by the zone limit ({:.0f} % full): memory "
                              "was short",
                              row.fail,
                              100.0 * static_cast<double>(taken) / static_cast<double>(row.limit)));
      } else {
        note(row, fmt::format("{} refusals; the zone is at its limit", row.fail));
      }
    }
    if (row.sleep != 0) note(row, fmt::format("{} sleeps at the limit", row.sleep));
  }

  // What is known of a zone's slabs, and what the model makes of its size.
  void slabs(const ZoneRow& row) {
    const int align = static_cast<int>(std::min<std::uint64_t>(row.keg.align.value_or(7), 4095));
    const KegLayout layout = keg_layout(row.size, align, false);
    if (zone_flags(row).find("PCPU") != std::string::npos) return;  // a slab has a page a CPU
    if (row.keg.ipers) {
      const auto other = [](const char* what, const std::optional<std::uint64_t>& captured,
                            std::uint64_t model) {
        return captured && *captured != model ? fmt::format(", {} {}", what, model) : std::string();
      };
      const std::string differs = other("rsize", row.keg.rsize, layout.rsize) +
                                  other("ppera", row.keg.ppera, layout.ppera) +
                                  other("ipers", row.keg.ipers, layout.ipers) +
                                  other("efficiency", row.keg.efficiency, layout.efficiency) +
                                  other("bucket_size_max", row.keg.bucket_size_max, BUCKET_MAX);
      if (differs.empty() || is_own(row)) {
        ++agree_;
        return;
      }
      note(row,
           fmt::format("size {}, align {}: rsize {}, {}, {} a slab, efficiency {} %; in the "
                       "model{}",
                       row.size, align, row.keg.rsize.value_or(0),
                       counted(row.keg.ppera.value_or(0), "page"), counted(*row.keg.ipers, "item"),
                       row.keg.efficiency.value_or(0), differs.substr(1)));
    } else if (row.size > kPage && class_of(row) == 0) {
      note(row, fmt::format("{} a slab, {} an item", counted(layout.ipers, "item"),
                            counted((row.size + kPage - 1) / kPage, "page")));
    }
  }

  void zone(const ZoneRow& row) {
    limits(row);
    slabs(row);
    const std::uint64_t taken = sum(row.used, row.free);
    body_ +=
        fmt::format("# {}: used {}, free {}, total {}, {} % free; requests {}, fail {}\n", row.name,
                    bytes_text(product(row.used, row.size)),
                    bytes_text(product(row.free, row.size)), bytes_text(product(taken, row.size)),
                    taken == 0 ? 0 : static_cast<unsigned __int128>(row.free) * 100 / taken,
                    row.requests, row.fail);
    if (row.name == "mt_zone") note(row, counted(row.used, "malloc type") + " registered");
    const std::uint64_t size = class_of(row);
    if (size != 0 && std::binary_search(classes_.begin(), classes_.end(), size)) {
      malloc_zone(row);
    } else if (is_own(row)) {
      body_ += "# the machine's own\n";
    } else if (is_secondary(row)) {
      body_ += "# a secondary zone: its items are the mbufs and clusters above\n";
    } else {
      uma_zone_statements(row);
    }
  }

  // What every machine has from its boot.
  static bool is_own(const ZoneRow& row) {
    return row.name.starts_with("UMA ") || row.name.ends_with(" Bucket") ||
           (row.name.starts_with("pcpu-") && digits(std::string_view(row.name).substr(5)));
  }

  // The flags of a workload's zone, as far as the capture tells them.
  static std::string zone_flags(const ZoneRow& row) {
    static constexpr std::string_view kFlags[] = {"ZINIT", "NOFREE", "PCPU"};
    std::string out;
    const std::size_t open = std::min(row.flags.find('<'), row.flags.size());
    std::string names = row.flags.substr(open);
    for (char& c : names)
      if (c == '<' || c == '>') c = ',';
    for (const std::string_view flag : kFlags) {
      const bool named = names.find(',' + std::string(flag) + ',') != names.npos ||
                         (flag == "PCPU" && row.name.ends_with(" pcpu"));
      if (named) out += (out.empty() ? " flags=" : "|") + std::string(flag);
    }
    return out;
  }

  // netstat(1) counts the items of the packet zone as mbufs and as clusters too.
  static bool is_secondary(const ZoneRow& row) {
    return row.format == ZoneFormat::netstat && row.name == "mbuf_packet";
  }

  // Whose blocks they are is not in the table: one type stands for all.
  void malloc_zone(const ZoneRow& row) {
    if (captured_.empty()) {
      captured_ = symbols_.of_type("captured");
      boot_ += fmt::format("type {} \"captured\"\n", captured_);
      note(row,
           "a class of malloc(9): its items are blocks of the type captured; so are those of "
           "the other classes");
    }
    const std::string block = block_name(symbols_.of_zone("m" + std::to_string(row.size)));
    const std::uint64_t size = row.size;
    const bool power = (size & (size - 1)) == 0;
    items(row, power ? static_cast<int>(std::min(size, kPage) - 1) : UMA_ALIGN_PTR, block,
          fmt::format("malloc {} {} M_WAITOK", size, captured_), "free ");
  }

  void uma_zone_statements(const ZoneRow& row) {
    const std::string symbol = symbols_.of_zone(row.name), flags = zone_flags(row);
    std::uint64_t align = row.keg.align.value_or(UMA_ALIGN_PTR) + 1;
    if (!std::has_single_bit(align) || align > kPage) align = UMA_ALIGN_PTR + 1;
    boot_ += fmt::format("zone {} {} size={}", symbol, quoted(row.name), row.size);
    if (row.keg.align) boot_ += fmt::format(" align={}", align);
    if (row.limit > kMostLimit) {
      body_ += fmt::format("# its limit of {} is beyond a workload's\n", row.limit);
    } else if (row.limit != 0) {
      if (row.used > row.limit && row.used <= kMostUsed) {
        note(row, fmt::format("{} items are beyond the limit of {}: it is raised to hold them",
                              row.used, row.limit));
      }
      boot_ += fmt::format(" limit={}",
                           row.used <= kMostUsed ? std::max(row.limit, row.used) : row.limit);
    }
    boot_ += flags;
    boot_ += '\n';
    items(row, static_cast<int>(align - 1), block_name(symbol),
          fmt::format("uma_zalloc {} M_WAITOK", symbol), fmt::format("uma_zfree {} ", symbol));
  }

  // Items in use, and those that stay in buckets and slabs.
  void items(const ZoneRow& row, int align, const std::string& block, const std::string& take,
             const std::string& give) {
    // A near limit makes buckets smaller; and zones of one name share one keg here.
    if (row.used > kMostUsed) {
      note(row, fmt::format("{} items are too many to make: none is", row.used));
      body_ += "# too many to make\n";
      return;
    }
    const bool plain = row.limit == 0 || row.limit / 8 > BUCKET_MAX;
    const bool alone = std::count_if(table_.rows.begin(), table_.rows.end(),
                                     [&](const auto& each) { return each.name == row.name; }) == 1;
    ZonePlan plan;
    const bool pcpu = zone_flags(row).find("PCPU") != std::string::npos;
    if (plain && alone && row.size <= kPage && !pcpu) {
      plan = plan_zone(row.used, row.free, row.size, align);
      if (row.limit != 0 && row.used + plan.extra > row.limit) plan = {};
      if (plan.extra == 0 && row.used == 0) plan = {};
      if (plan.free != row.free)
        body_ += fmt::format("# {} free here: items come by buckets and slabs\n", plan.free);
    } else if (row.free != 0)
      body_ += fmt::format("# free items, not made: {}\n", row.free);
    allocate(block, row.used, take);
    if (plan.extra == 0) return;
    const std::string idle = block + "_idle";
    allocate(idle, plan.extra, take);
    if (plan.extra == 1) {
      body_ += give + idle + '\n';
    } else {
      body_ += fmt::format("repeat {} as i {{ {}{}[i] }}\n", plan.extra, give, idle);
    }
  }

  void allocate(const std::string& block, std::uint64_t count, const std::string& op) {
    if (count == 1) {
      body_ += fmt::format("{} = {}\n", block, op);
    } else if (count > 1) {
      body_ += fmt::format("repeat {} as i {{ {}[i] = {} }}\n", count, block, op);
    }
  }

  void totals() {
    if (agree_ != 0) {
      table_.notes.push_back(
          fmt::format("{}: the model agrees with the slabs of {}", file_, counted(agree_, "zone")));
    }
    if (std::any_of(table_.rows.begin(), table_.rows.end(), [](const ZoneRow& row) {
          return row.format == ZoneFormat::z1 && row.fail != 0;
        })) {
      table_.notes.push_back(file_ +
                             ": FAILURES are told here only: --report vmstat-z=capture has "
                             "no such column");
    }
    std::uint64_t used = 0, free = 0, most = 0;
    const ZoneRow* biggest = &table_.rows.front();
    for (const ZoneRow& row : table_.rows) {
      if (is_secondary(row)) continue;
      used = sum(used, product(row.used, row.size));
      free = sum(free, product(row.free, row.size));
      if (product(row.used, row.size) <= most) continue;
      most = product(row.used, row.size);
      biggest = &row;
    }
    table_.notes.push_back(
        fmt::format("{}: {}: {} bytes used, {} free, {} in all; most in {}: {} x {} = {}", file_,
                    counted(table_.rows.size(), "zone"), used, free, sum(used, free), biggest->name,
                    biggest->used, biggest->size, most));
    // netstat(1) counts the zones of the network only.
    if (table_.rows.front().format != ZoneFormat::netstat) wired(sum(used, free));
  }

  // How much of the machine's wired memory is not the zones'.
  void wired(std::uint64_t zones) {
    std::string text;
    if (!wired_) {
      text = fmt::format(
          "whether memory is wired that is in no zone is not in the capture: put the line of "
          "`sysctl {}` into it",
          kWireCount);
    } else if (*wired_ < zones) {
      text =
          fmt::format("{} bytes are wired, fewer than the zones have: of another moment", *wired_);
    } else {
      const std::uint64_t beside = *wired_ - zones;
      text = fmt::format(
          "{} of {} wired bytes, {}%, are in no zone: not in malloc or UMA, but for malloc's "
          "blocks "
          "above {} bytes, which vmstat -m counts",
          beside, *wired_,
          *wired_ == 0
              ? 0
              : static_cast<std::uint64_t>(static_cast<unsigned __int128>(beside) * 100 / *wired_),
          classes_.back());
    }
    table_.notes.push_back(file_ + ": " + text);
  }

  ZoneTable table_;
  const std::string& file_;
  const ImportOptions& options_;
  std::optional<std::uint64_t> wired_;  // bytes
  int release_ = 14;
  std::vector<std::uint32_t> classes_;
  Symbols symbols_;
  std::uint64_t agree_ = 0;  // zones
  std::string captured_;     // the type of malloc's blocks
  std::string boot_, body_;
};

ZoneTable read_any(std::string_view text, const std::string& file) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && text[first] == '{') return read_vmstat_z_json(text, file);
  if (text.find("vm.uma.") != text.npos) return read_sysctl_uma(text, file);
  if (text.find(" mbufs in use") != text.npos) return read_netstat_m(text, file);
  return read_vmstat_z(text, file);
}

}  // namespace

Result<ImportResult> import_vmstat_z(std::string_view text, const std::string& file,
                                     const ImportOptions& options) {
  std::string copy(text);
  const auto pages = take_sysctl(copy, kWireCount);
  const std::uint64_t page = take_sysctl(copy, kPageSize).value_or(kPage);
  const std::optional<std::uint64_t> wired =
      pages ? std::optional(product(*pages, page)) : std::nullopt;
  text = copy;
  ZoneTable table = read_any(text, file);
  const bool none = table.rows.empty();
  auto result = Importer(std::move(table), file, options, wired).all();
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool json = first != text.npos && text[first] == '{';
  if (!result && none &&
      !(json ? read_vmstat_json(text, file) : read_vmstat_m(text, file)).rows.empty()) {
    Diagnostic d = result.error();
    d.expected = "zones; this is a table of vmstat -m: use import vmstat-m";
    return d;
  }
  return result;
}

}  // namespace dtmalloc::workload
