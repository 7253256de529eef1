// SPDX-License-Identifier: BSD-2-Clause
// The workload language: what a workload is, and text to workload and back.
//
// Example:
//   Result<Workload> w = workload::parse("a = malloc 10 M_TEMP M_WAITOK\n", "load.wl");
//   if (!w) std::cerr << to_string(w.error());
//   std::string text = workload::print(*w);                 // parse(print(x)) == x
//
// Names, types, call sites and expressions are interned while parsing, so that running an
// operation looks nothing up by name.
//
// Units:         bytes; virtual nanoseconds.
// Errors:        Result with a Diagnostic, tag WL_*.
// Thread safety: values.
// Source:        sim/README.md.
#pragma once

#include <array>
#include <cstdint>
#include <dtmalloc/kernel.hpp>
#include <dtmalloc/sys/error.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtmalloc::workload {

using Index = std::uint32_t;
inline constexpr Index kNone = ~Index{0};

// What the kernel line sets; what is not set keeps its default.
struct KernelSettings {
  std::optional<int> release, cpus, domains, maxzones;
  std::optional<std::uint64_t> mem, seed, op_cost;
  std::optional<bool> real_clock, invariants, redzone, memguard, make_failures;
  std::string options;  // config=: a named set of kernel options; the single ones come on top
  std::vector<Tunable> tunables;
  std::optional<LedgerConfig> ledger;
  std::vector<std::uint32_t> classes;
  std::string capture;  // format of the imported table: "m1" to "m3", "m16", "z1" "z2" "z3" "z16"
  bool operator==(const KernelSettings&) const = default;
  // Writes what is set into a configuration.
  void apply(KernelConfig& config) const;
};

// The settings that bound the ledger, by their names on the kernel line.
inline constexpr std::array<std::pair<std::string_view, std::size_t LedgerConfig::*>, 5>
    kLedgerBounds{{{"ledger_blocks", &LedgerConfig::blocks},
                   {"ledger_addresses", &LedgerConfig::addresses},
                   {"ledger_past", &LedgerConfig::past},
                   {"ledger_stacks", &LedgerConfig::stacks},
                   {"ledger_findings", &LedgerConfig::findings}}};

// One node of an expression; children are indices into Workload::exprs.
struct Expr {
  enum class Kind : std::uint8_t {
    number,
    variable,  // number: depth of the loop that owns it
    negate,
    logical_not,  // a
    add,
    subtract,
    multiply,
    divide,
    modulo,  // a, b
    equal,
    not_equal,
    less,
    less_equal,
    greater,
    greater_equal,
    logical_and,
    logical_or,
    uniform,
    choice,
    normal,
    zipf,  // drawn anew at each use; args
    inuse,
    memuse,
    requests,  // number: type
    fails,
    sleeps,
    xdomain,  // number: string, UMA's name of a zone; a: the zone, if its symbol is given
    size,
    is_null,
    domain,  // number: name; a, b: its indexes
    free_pages,
  };
  Kind kind = Kind::number;
  Index a = kNone, b = kNone;
  std::int64_t number = 0;
  std::vector<Index> args;
  std::uint32_t column = 0, length = 0;  // on its statement's line, for messages
};

// A number known when parsing, or an expression.
struct Value {
  std::int64_t number = 0;
  Index expr = kNone;
};

// A block's name with its indexes: x, x[i], x[i,j].
struct BlockRef {
  Index name = kNone;  // into Workload::names
  Index first = kNone, second = kNone;
};

enum class OpKind : std::uint8_t {
  type,  // declare and register (late, after the first operation)
  history,
  cpu,
  malloc,
  realloc,
  reallocf,
  mallocarray,
  malloc_aligned,
  malloc_exec,
  contigmalloc,
  malloc_domainset,
  malloc_domainset_exec,
  malloc_domainset_aligned,
  mallocarray_domainset,
  contigmalloc_domainset,
  free,
  zfree,
  contigfree,
  repeat,
  wait,
  thread,
  join,
  unload,
  load,
  expect,
  critical,
  interrupt,
  nosleep,
  reclaim,  // flags: the request; detail: a zone's name in strings; value: domain if extra is 1
  zone,     // detail: into Workload::zones, as of the next three
  uma_zalloc,
  uma_zfree,
  zdestroy,
  sysctl,
  poke,
};

// Op::cpu of what stays where the thread is.
inline constexpr std::uint16_t kSameCpu = 0xffff;

struct Op {
  OpKind kind = OpKind::join;
  std::uint16_t cpu = kSameCpu;  // cpu=N: the thread goes there first, in no time
  std::int32_t flags = 0;        // M_* bits
  Index type = kNone;            // into Workload::types; free: kNone is the type of the allocation
  BlockRef target;               // what is set or freed
  BlockRef source;               // realloc's old block
  Value value;                   // size, count, CPU, time, condition
  Value extra;                   // second size, alignment, offset of free and poke
  Index site = kNone;            // into Workload::sites
  Index body = kNone;            // into Workload::bodies
  Index detail = kNone;          // into Workload::histories, threads, sysctls or placements
  std::uint32_t line = 0, column = 0;
  // Column of what the machine may not have: a CPU, a byte, a domain, a set of domains, a sysctl.
  std::uint32_t operand = 0;
};
static_assert(sizeof(Op) <= 96);  // a trace has millions

struct TypeDecl {
  std::string symbol, shortdesc, longdesc;
  bool builtin = false;   // one of the kernel's own five
  bool declared = false;  // a type statement names it
};

struct History {
  std::optional<std::uint64_t> allocs, memalloced, frees, memfreed;
  std::vector<std::uint32_t> sizes;
  bool operator==(const History&) const = default;
};

struct ThreadDecl {
  std::string name, execname;
  std::optional<Value> cpu, pid, ppid, tid, uid, gid;
};

struct ZoneDecl {
  std::string symbol, name, warning;
  std::uint64_t size = 0, align = 0, limit = 0;  // bytes, bytes, items; 0: not given
  std::uint32_t flags = 0;                       // UMA_ZONE_*
  bool operator==(const ZoneDecl&) const = default;
};

struct SysctlDecl {
  std::string name;
  std::optional<std::string> value;  // what is written
  bool operator==(const SysctlDecl&) const = default;
};

// Where a block is to come from.
struct Placement {
  // The set of NUMA domains; none: an operation without one.
  enum class Set : std::uint8_t {
    none,
    roundrobin,
    firsttouch,
    interleave,
    prefer,
    fixed,  // number: the domain
    mask,   // number: the domains, round-robin; 0: the empty set
  };
  Set set = Set::none;
  std::uint32_t number = 0;
  std::optional<std::uint64_t> low, high, align, boundary;  // contigmalloc's
  bool operator==(const Placement&) const = default;
};

struct NameDecl {
  std::string text;
  int arity = 0;  // number of indexes; x and x[i] are two names
};

struct Workload {
  KernelSettings kernel;
  std::vector<TypeDecl> types;
  std::vector<NameDecl> names;
  std::vector<std::string> strings;             // zone names
  std::vector<std::vector<std::string>> sites;  // call sites, outermost first
  std::vector<Expr> exprs;
  std::vector<History> histories;
  std::vector<ThreadDecl> threads;
  std::vector<ZoneDecl> zones;
  std::vector<SysctlDecl> sysctls;
  std::vector<Placement> placements;
  std::vector<std::vector<Op>> bodies;      // bodies[0]: the statements outside any block
  std::string file;                         // for messages
  std::shared_ptr<const std::string> text;  // the source, if it came from one
  std::uint32_t first_line = 1;             // of `text`, which may be a part of the source

  // Same settings and statements; places, and how things are interned, do not count.
  bool operator==(const Workload& other) const;

  // Statements of bodies[0] that belong to boot: types, zones and history before the first
  // operation.
  std::size_t boot_statements() const;
  // A Diagnostic at an operation's place, with its source line; or at one of its terms.
  Diagnostic diagnose(const Op& op, std::string tag, std::string message) const;
  Diagnostic diagnose(const Op& op, const Expr& term, std::string tag, std::string message) const;
};

// Longest line accepted, bytes.
inline constexpr std::size_t kMaxLine = std::size_t{1} << 20;
// Deepest nesting of blocks and of parentheses.
inline constexpr int kMaxDepth = 64;

Result<Workload> parse(std::string text, std::string file);
// The text of a workload. Inverse of parse().
std::string print(const Workload& workload);

// Reads a text file ("-": standard input), refusing NUL bytes and endless lines as they come, so
// that memory stays bounded. Tags WL_READ, WL_NUL, WL_LINE_TOO_LONG.
Result<std::string> read_text(const std::string& path);

// "100", "4K", "2M", "1G" (powers of 1024); nothing for anything else.
std::optional<std::uint64_t> parse_size(std::string_view text);
// A number without a suffix: "4", "0x10".
std::optional<std::uint64_t> parse_count(std::string_view text);
// "20ns", "3us", "5ms", "2s".
std::optional<std::uint64_t> parse_time(std::string_view text);
std::string print_size(std::uint64_t bytes);
std::string print_time(std::uint64_t ns);

}  // namespace dtmalloc::workload
