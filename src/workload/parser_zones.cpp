// SPDX-License-Identifier: BSD-2-Clause
// Statements about zones: reclaim, zone, uma_zalloc, uma_zfree, zdestroy.

#include <algorithm>
#include <limits>

#include "workload/parser.hpp"

namespace dtmalloc::workload {

const std::array<FlagName, 14> kZoneFlagNames{{{"UNMANAGED", UMA_ZONE_UNMANAGED},
                                               {"ZINIT", UMA_ZONE_ZINIT},
                                               {"CONTIG", UMA_ZONE_CONTIG},
                                               {"NOTOUCH", UMA_ZONE_NOTOUCH},
                                               {"NOFREE", UMA_ZONE_NOFREE},
                                               {"MTXCLASS", UMA_ZONE_MTXCLASS},
                                               {"VM", UMA_ZONE_VM},
                                               {"NOBUCKET", UMA_ZONE_NOBUCKET},
                                               {"MAXBUCKET", UMA_ZONE_MAXBUCKET},
                                               {"NOTRIM", UMA_ZONE_NOTRIM},
                                               {"NODUMP", UMA_ZONE_NODUMP},
                                               {"PCPU", UMA_ZONE_PCPU},
                                               {"FIRSTTOUCH", UMA_ZONE_FIRSTTOUCH},
                                               {"ROUNDROBIN", UMA_ZONE_ROUNDROBIN}}};

const std::array<FlagName, 3> kReclaimNames{{{"trim", UMA_RECLAIM_TRIM},
                                             {"drain", UMA_RECLAIM_DRAIN},
                                             {"drain_cpu", UMA_RECLAIM_DRAIN_CPU}}};

namespace {

constexpr std::array<std::string_view, 4> kNotModelled{"NOTPAGE", "SECONDARY", "CACHESPREAD",
                                                       "SMR"};
constexpr std::uint64_t kMaxItem = std::uint64_t{1} << 24;
constexpr std::uint64_t kMaxPcpuItem = 4096;
constexpr std::uint64_t kMaxAlign = 4096;

template <std::size_t N>
std::vector<std::string> names_of(const std::array<FlagName, N>& table) {
  std::vector<std::string> out;
  for (const FlagName& row : table) out.emplace_back(row.name);
  return out;
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : " ") + name;
  return out;
}

template <std::size_t N>
const FlagName* find_name(const std::array<FlagName, N>& table, std::string_view name) {
  const auto* found = std::find_if(table.begin(), table.end(),
                                   [&](const FlagName& row) { return row.name == name; });
  return found == table.end() ? nullptr : found;
}

}  // namespace

bool Parser::zone_statement(std::vector<Op>& ops, Op& op, std::string_view word, int depth) {
  if (word == "zone") {
    declare_zone(ops, op, depth);
    return true;
  }
  if (word == "reclaim") {
    reclaim_statement(op);
  } else if (word == "uma_zfree") {
    op.kind = OpKind::uma_zfree;
    op.detail = zone_ref();
    op.target = block_ref(this->word("the name of a block"), false);
    own_cpu(op);
    op.site = site();
  } else if (word == "zdestroy") {
    op.kind = OpKind::zdestroy;
    op.detail = zone_ref();
  } else {
    return false;
  }
  ops.push_back(op);
  return true;
}

void Parser::reclaim_statement(Op& op) {
  op.kind = OpKind::reclaim;
  const std::string_view how = word("trim, drain or drain_cpu");
  const FlagName* found = find_name(kReclaimNames, how);
  if (found == nullptr)
    fail("WL_UNKNOWN_OPERATION", how, "no way to reclaim: " + std::string(how),
         "trim, drain or drain_cpu", nearest_names(how, names_of(kReclaimNames)));
  op.flags = found->bit;
  static const std::vector<std::string> kReclaimKeys{"zone", "domain"};
  while (!at_statement_end() && *place_ != '}') {
    const std::string_view key = word("zone=\"name\" or domain=N");
    if (!eat('=')) fail_here("WL_SYNTAX", "an attribute lacks its value", "\"=\"");
    if (key == "zone") {
      if (op.detail != kNone) fail("WL_REDECLARED", key, "zone is set twice");
      op.detail = intern(string_literal("the name of a zone in double quotes"));
    } else if (key == "domain") {
      if (op.extra.number != 0) fail("WL_REDECLARED", key, "domain is set twice");
      op.extra.number = 1;
      skip_blanks();
      op.operand = column();
      op.value = value(Context::plain);
    } else {
      fail("WL_UNKNOWN_ATTRIBUTE", key, "unknown attribute " + std::string(key), "zone domain",
           nearest_names(key, kReclaimKeys));
    }
  }
}

void Parser::declare_zone(std::vector<Op>& ops, Op op, int depth) {
  op.kind = OpKind::zone;
  const std::string_view symbol = word("the symbol of the zone, such as Z");
  if (depth > 0) fail("WL_CONTEXT", symbol, "a zone cannot be declared inside a block");
  if (zones_.count(symbol) != 0)
    fail("WL_REDECLARED", symbol, "the zone " + std::string(symbol) + " is declared already",
         "another symbol");
  ZoneDecl zone;
  zone.symbol = symbol;
  zone.name = string_literal("the zone's name in double quotes");
  static const std::vector<std::string> kZoneKeys{"size", "align", "limit", "flags", "warning"};
  bool sized = false;
  std::string_view size_at;
  while (!at_statement_end()) {
    const std::string_view key = word("size=, align=, limit=, flags= or warning=");
    if (!eat('=')) fail_here("WL_SYNTAX", "an attribute lacks its value", "\"=\"");
    const auto once = [&](bool is_set) {
      if (is_set) fail("WL_REDECLARED", key, std::string(key) + " is set twice");
    };
    skip_blanks();
    const std::string_view at = rest_token();
    const auto in_range = [&](std::uint64_t most, const char* expected) {
      const std::int64_t n = number(Context::size);
      if (n <= 0 || static_cast<std::uint64_t>(n) > most)
        fail("WL_RANGE", at, std::string(key) + " is out of range", expected);
      return static_cast<std::uint64_t>(n);
    };
    if (key == "size") {
      once(sized);
      sized = true;
      size_at = at;
      zone.size = in_range(kMaxItem, "1 to 16M");
    } else if (key == "align") {
      once(zone.align != 0);
      zone.align = in_range(kMaxAlign, "a power of two up to 4096");
      if ((zone.align & (zone.align - 1)) != 0)
        fail("WL_RANGE", at, "align is no power of two", "a power of two up to 4096");
    } else if (key == "limit") {
      once(zone.limit != 0);
      zone.limit = in_range(std::numeric_limits<std::int32_t>::max(), "a number of items");
    } else if (key == "warning") {
      once(!zone.warning.empty());
      zone.warning = string_literal("a text in double quotes");
    } else if (key == "flags") {
      once(zone.flags != 0);
      zone.flags = zone_flags();
    } else {
      fail("WL_UNKNOWN_ATTRIBUTE", key, "unknown attribute " + std::string(key),
           "size align limit flags warning", nearest_names(key, kZoneKeys));
    }
  }
  if (!sized) fail("WL_SYNTAX", symbol, "the zone's items have no size", "size=256");
  if ((zone.flags & UMA_ZONE_PCPU) != 0 && zone.size > kMaxPcpuItem)
    fail("WL_RANGE", size_at, "the size of a per-CPU item is out of range", "1 to 4096 with PCPU");
  op.detail = static_cast<Index>(result_.zones.size());
  zones_.emplace(std::string(symbol), op.detail);
  result_.zones.push_back(std::move(zone));
  ops.push_back(op);
}

std::uint32_t Parser::zone_flags() {
  std::uint32_t bits = 0;
  do {
    const std::string_view name = word("flags such as NOFREE, joined by |");
    if (std::find(kNotModelled.begin(), kNotModelled.end(), name) != kNotModelled.end())
      fail("WL_NOT_MODELLED", name, "`" + std::string(name) + "` is not modelled in a workload");
    const FlagName* flag = find_name(kZoneFlagNames, name);
    if (flag == nullptr)
      fail("WL_UNKNOWN_FLAG", name, "unknown flag " + std::string(name),
           "flags of uma(9) joined by |: " + joined(names_of(kZoneFlagNames)),
           nearest_names(name, names_of(kZoneFlagNames)));
    bits |= static_cast<std::uint32_t>(flag->bit);
  } while (eat('|'));
  if (place_ < end_ && (*place_ == ',' || *place_ == '+'))
    fail("WL_SYNTAX", {place_, 1}, "flags are joined by |", "\"|\"");
  return bits;
}

Index Parser::zone_ref() {
  const std::string_view symbol = word("the symbol of a zone");
  if (const auto found = zones_.find(symbol); found != zones_.end()) return found->second;
  std::vector<std::string> known;
  for (const ZoneDecl& zone : result_.zones) known.push_back(zone.symbol);
  fail("WL_UNKNOWN_ZONE", symbol, "unknown zone " + std::string(symbol),
       "a zone declared above with `zone`", nearest_names(symbol, known));
}

}  // namespace dtmalloc::workload
