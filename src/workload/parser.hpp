// SPDX-License-Identifier: BSD-2-Clause
// The parser of the workload language: one pass over the text, no token list.
// Invariants:   place_ points into text_; every view kept points there too
// Differs:      errors unwind as ParseError, which parse() turns into a Result
#pragma once

#include <array>
#include <deque>
#include <dtmalloc/workload/workload.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dtmalloc::workload {

struct ParseError {
  Diagnostic diagnostic;
};

// Looks a string up by a view without making a string.
struct ViewHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};
using StringIndex = std::unordered_map<std::string, Index, ViewHash, std::equal_to<>>;

// What a number's suffix may be, and which functions exist.
enum class Context { size, time, plain, condition };

// Names to their numbers; views into the text are the keys, or into copies when the text goes.
// Open addressing: a trace has millions.
class NameTable {
 public:
  void keep_copies() { copies_ = std::make_unique<std::deque<std::string>>(); }
  // The number of a name; `next` and true when it is new.
  std::pair<Index, bool> insert(std::string_view name, Index next);

 private:
  struct Entry {
    std::string_view name;
    std::uint32_t hash = 0;
    Index index = kNone;
  };
  void grow();
  std::vector<Entry> entries_;
  std::size_t used_ = 0;
  std::unique_ptr<std::deque<std::string>> copies_;
};

class Parser {
 public:
  Parser(std::string text, std::string file);
  Workload take();  // throws ParseError

  // --- one line after another, each forgotten when it is parsed (parser_lines.cpp)
  explicit Parser(std::string file);
  // The statement of a line, if it has one. Throws ParseError, also for what has a block.
  std::optional<Op> line(std::string_view text, std::uint32_t number);
  bool operated() const { return operated_; }  // boot is over
  Workload& workload() { return result_; }
  // Forgets what only the statements parsed since the last time had.
  void forget();
  Index site_of(std::string_view text);             // "outer;inner"; throws ParseError
  Index known_type(std::string_view symbol) const;  // kNone: not declared

 private:
  void builtin_types();
  // --- scanning (parser.cpp)
  void skip_blanks();
  bool at_statement_end();
  bool eat(char c);
  bool next_is_word() const;
  std::string_view peek_word() const;
  std::string_view word(const char* expected);
  std::string string_literal(const char* expected);
  std::string word_or_string(const char* expected);  // up to a blank, # or }, or in quotes
  std::int64_t number(Context context);
  void end_statement();
  [[noreturn]] void fail(const char* tag, std::string_view at, std::string message,
                         std::string expected = {}, std::vector<std::string> near = {}) const;
  [[noreturn]] void described_type();
  [[noreturn]] void fail_here(const char* tag, std::string message,
                              std::string expected = {}) const;
  std::string_view rest_token() const;  // what stands at the place, for messages

  // --- statements (parser_statements.cpp)
  void statements(std::vector<Op>& ops, bool in_block, int depth);
  void statement(std::vector<Op>& ops, int depth);
  void kernel_line();
  void kernel_key(std::string_view key, std::string_view value, bool has_value);
  void ledger_key(std::string_view key, std::string_view value, bool has_value);
  void kernel_tunable(std::string_view key, std::string value, bool has_value);
  void check_tunables();
  void sysctl_statement(Op& op);
  void poke_statement(Op& op);
  void offset(Op& op);
  void type_statement(std::vector<Op>& ops, Op op, int depth);
  void history_statement(std::vector<Op>& ops, Op op, int depth);
  void repeat_statement(Op& op, int depth);
  void thread_statement(Op& op, int depth);
  void assignment(std::vector<Op>& ops, Op op, std::string_view name);
  void block(Op& op, int depth);
  // parser_zones.cpp. False: not its statement.
  bool zone_statement(std::vector<Op>& ops, Op& op, std::string_view word, int depth);
  void declare_zone(std::vector<Op>& ops, Op op, int depth);
  void reclaim_statement(Op& op);
  std::uint32_t zone_flags();
  Index zone_ref();
  void refuse_unknown_statement(std::string_view word);

  // --- operands (parser_operands.cpp)
  BlockRef block_ref(std::string_view name, bool sets);
  Index type_ref();
  std::int32_t flags();
  Index site();
  void own_cpu(Op& op);                      // cpu=N
  void domain_set(Placement& placement);     // placement.cpp
  void address_range(Placement& placement);  // ditto
  Value value(Context context);
  Index expression(Context context, int level, int depth);
  Index unary(Context context, int depth);
  Index primary(Context context, int depth);
  Index call(std::string_view name, Context context, int depth);
  void zone_argument(Expr& expr);
  std::uint32_t column() const;                  // of place_
  Index add_expr(Expr expr, const char* start);  // its text: from there up to place_
  Index intern(std::string_view text);           // into Workload::strings
  void check_names();

  std::shared_ptr<const std::string> source_;
  std::string_view text_;
  const char* place_;
  const char* end_;
  const char* line_start_;
  std::uint32_t line_ = 1;
  Workload result_;

  struct FirstUse {
    std::string_view at;
    std::uint32_t line = 0;
    const char* line_start = nullptr;
    bool set = false;
  };
  std::array<NameTable, 3> names_;  // by arity
  std::vector<FirstUse> uses_;
  StringIndex types_, strings_, zones_, sites_;
  std::vector<std::string_view> loops_;
  std::size_t nodes_ = 0;  // of the expression being parsed
  std::vector<std::string_view> tunables_at_;
  bool started_ = false;   // a statement other than kernel was seen
  bool operated_ = false;  // an operation was seen: boot is over
};

// The kernel's own types, symbol and description, in the order of their numbers.
extern const std::array<std::array<const char*, 2>, 5> kBuiltinTypes;
// Flag names in the order in which they print; looked up by name or bit.
struct FlagName {
  std::string_view name;
  std::int32_t bit;
};
extern const std::array<FlagName, 12> kFlagNames;
// Flags of a zone; ways to reclaim.
extern const std::array<FlagName, 14> kZoneFlagNames;
extern const std::array<FlagName, 3> kReclaimNames;
// Keywords of operations that set a block.
struct OperationName {
  std::string_view name;
  OpKind kind;
};
extern const std::array<OperationName, 13> kAssigning;
// What operations have besides a size, by kind.
inline bool has_second_number(OpKind kind) {
  return kind == OpKind::mallocarray || kind == OpKind::malloc_aligned ||
         kind == OpKind::mallocarray_domainset || kind == OpKind::malloc_domainset_aligned;
}
inline bool has_domain_set(OpKind kind) {
  return kind >= OpKind::malloc_domainset && kind <= OpKind::contigmalloc_domainset;
}
inline bool has_address_range(OpKind kind) {
  return kind == OpKind::contigmalloc || kind == OpKind::contigmalloc_domainset;
}
// print.cpp: one statement, with what the loop variables (by depth) are to be called.
std::string print_statement(const Workload& workload, const Op& op, std::vector<std::string> loops);
// placement.cpp
std::string print_domain_set(const Placement& placement);

}  // namespace dtmalloc::workload
