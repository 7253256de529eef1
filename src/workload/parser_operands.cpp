// SPDX-License-Identifier: BSD-2-Clause
// Operands: blocks, types, flags, call sites, expressions.

#include <algorithm>

#include "workload/parser.hpp"

namespace dtmalloc::workload {

const std::array<FlagName, 12> kFlagNames{{{"M_NOWAIT", kM_NOWAIT},
                                           {"M_WAITOK", kM_WAITOK},
                                           {"M_NORECLAIM", kM_NORECLAIM},
                                           {"M_ZERO", kM_ZERO},
                                           {"M_NOVM", kM_NOVM},
                                           {"M_USE_RESERVE", kM_USE_RESERVE},
                                           {"M_NODUMP", kM_NODUMP},
                                           {"M_FIRSTFIT", kM_FIRSTFIT},
                                           {"M_BESTFIT", kM_BESTFIT},
                                           {"M_EXEC", kM_EXEC},
                                           {"M_NEXTFIT", kM_NEXTFIT},
                                           {"M_NEVERFREED", kM_NEVERFREED}}};

namespace {

constexpr std::size_t kMaxNodes = 1000;  // of one expression
constexpr std::size_t kMaxChoices = 256;

// Binary operators by level of precedence, loosest first.
struct Operator {
  std::string_view text;
  int level;
  Expr::Kind kind;
};
constexpr std::array<Operator, 13> kOperators{{{"||", 0, Expr::Kind::logical_or},
                                               {"&&", 1, Expr::Kind::logical_and},
                                               {"==", 2, Expr::Kind::equal},
                                               {"!=", 2, Expr::Kind::not_equal},
                                               {"<=", 3, Expr::Kind::less_equal},
                                               {">=", 3, Expr::Kind::greater_equal},
                                               {"<", 3, Expr::Kind::less},
                                               {">", 3, Expr::Kind::greater},
                                               {"+", 4, Expr::Kind::add},
                                               {"-", 4, Expr::Kind::subtract},
                                               {"*", 5, Expr::Kind::multiply},
                                               {"/", 5, Expr::Kind::divide},
                                               {"%", 5, Expr::Kind::modulo}}};
constexpr int kArithmetic = 4;
constexpr int kTightest = 5;

}  // namespace

std::pair<Index, bool> NameTable::insert(std::string_view name, Index next) {
  if (2 * used_ >= entries_.size()) grow();
  const auto hash = static_cast<std::uint32_t>(std::hash<std::string_view>{}(name));
  const std::size_t mask = entries_.size() - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    Entry& entry = entries_[at];
    if (entry.index == kNone) {
      if (copies_ != nullptr) name = copies_->emplace_back(name);
      entry = {name, hash, next};
      ++used_;
      return {next, true};
    }
    if (entry.hash == hash && entry.name == name) return {entry.index, false};
  }
}

void NameTable::grow() {
  std::vector<Entry> old = std::move(entries_);
  entries_.assign(std::max<std::size_t>(64, 2 * old.size()), Entry{});
  const std::size_t mask = entries_.size() - 1;
  for (const Entry& entry : old) {
    if (entry.index == kNone) continue;
    std::size_t at = entry.hash & mask;
    while (entries_[at].index != kNone) at = (at + 1) & mask;
    entries_[at] = entry;
  }
}

BlockRef Parser::block_ref(std::string_view name, bool sets) {
  BlockRef ref;
  int arity = 0;
  if (place_ < end_ && *place_ == '[') {
    ++place_;
    nodes_ = 0;
    ref.first = expression(Context::plain, kArithmetic, 0);
    arity = 1;
    if (eat(',')) {
      ref.second = expression(Context::plain, kArithmetic, 0);
      arity = 2;
    }
    if (!eat(']')) fail_here("WL_SYNTAX", "the index does not end", "\"]\" or \",\"");
  }
  const auto [index, added] = names_[static_cast<std::size_t>(arity)].insert(
      name, static_cast<Index>(result_.names.size()));
  if (added) {
    result_.names.push_back({std::string(name), arity});
    uses_.push_back({name, line_, line_start_, false});
  }
  if (sets) uses_[index].set = true;
  ref.name = index;
  return ref;
}

// A description stands where the symbol of a type belongs: which type is called so.
void Parser::described_type() {
  const char* from = place_;
  const std::string text = string_literal("a description");
  const std::string_view written(from, static_cast<std::size_t>(place_ - from));
  std::vector<std::string> symbols, descriptions;
  for (const TypeDecl& type : result_.types) descriptions.push_back(type.shortdesc);
  std::vector<std::string> near = nearest_names(text, descriptions);
  if (!near.empty() && near.front() == text) near.resize(1);
  for (const TypeDecl& type : result_.types) {
    if (std::find(near.begin(), near.end(), type.shortdesc) != near.end())
      symbols.push_back(type.symbol);
  }
  fail("WL_SYNTAX", written, "a description is no type", "the symbol of a type, such as M_TEMP",
       symbols);
}

Index Parser::type_ref() {
  skip_blanks();
  const std::string_view name = peek_word();
  if (name.empty()) {
    if (place_ < end_ && *place_ == '"') described_type();
    fail_here("WL_SYNTAX", "a type is missing", "the symbol of a type, such as M_TEMP");
  }
  if (const auto found = types_.find(name); found != types_.end()) {
    place_ += name.size();
    return found->second;
  }
  std::vector<std::string> symbols, near;
  for (const TypeDecl& type : result_.types) {
    if (type.shortdesc == name) near.push_back(type.symbol);
    symbols.push_back(type.symbol);
  }
  for (std::string& symbol : nearest_names(name, symbols)) {
    if (std::find(near.begin(), near.end(), symbol) == near.end()) near.push_back(symbol);
  }
  fail("WL_UNKNOWN_TYPE", name, "unknown type " + std::string(name),
       "a type declared above with `type`, or M_CACHE M_DEVBUF M_TEMP M_UMA M_UMAHASH", near);
}

std::int32_t Parser::flags() {
  std::int32_t bits = 0;
  do {
    skip_blanks();
    const std::string_view name = peek_word();
    if (name.empty()) {
      fail_here("WL_SYNTAX", "flags are missing", "M_WAITOK or M_NOWAIT, more joined by |");
    }
    const auto* flag = std::find_if(kFlagNames.begin(), kFlagNames.end(),
                                    [&](const FlagName& f) { return f.name == name; });
    if (flag == kFlagNames.end()) {
      std::vector<std::string> names;
      for (const FlagName& f : kFlagNames) names.emplace_back(f.name);
      fail("WL_UNKNOWN_FLAG", name, "unknown flag " + std::string(name), "an M_* flag of malloc(9)",
           nearest_names(name, names));
    }
    place_ += name.size();
    bits |= flag->bit;
  } while (eat('|'));
  return bits;
}

Index Parser::site() {
  if (!eat('@')) return kNone;
  const char* start = place_;
  while (place_<end_&& static_cast<unsigned char>(*place_)> ' ' && *place_ != '{' &&
         *place_ != '}' && *place_ != '#' && *place_ != '"') {
    ++place_;
  }
  return site_of({start, static_cast<std::size_t>(place_ - start)});
}

Index Parser::site_of(std::string_view text) {
  if (const auto known = sites_.find(text); known != sites_.end()) return known->second;
  std::vector<std::string> frames;
  std::size_t from = 0;
  while (true) {
    const std::size_t semicolon = std::min(text.find(';', from), text.size());
    if (semicolon == from) {
      fail("WL_SYNTAX", {text.data() - 1, text.size() + 1}, "a call site is missing after @",
           "@function+0x1c, or @outer;inner for a stack");
    }
    frames.emplace_back(text.substr(from, semicolon - from));
    if (semicolon == text.size()) break;
    from = semicolon + 1;
  }
  const auto index = static_cast<Index>(result_.sites.size());
  sites_.emplace(text, index);
  result_.sites.push_back(std::move(frames));
  return index;
}

// Of an operation or a wait; before the call site.
void Parser::own_cpu(Op& op) {
  skip_blanks();
  if (peek_word() != "cpu") return;
  place_ += 3;
  if (!eat('=')) fail_here("WL_SYNTAX", "an attribute lacks its value", "\"=\"");
  skip_blanks();
  const char* const start = place_;
  if (place_ == end_ || *place_ < '0' || *place_ > '9')
    fail_here("WL_SYNTAX", "the number of a CPU is missing", "cpu=N, N a number");
  const std::int64_t id = number(Context::plain);
  if (id >= kSameCpu)
    fail("WL_RANGE", {start, static_cast<std::size_t>(place_ - start)}, "no machine has that CPU",
         "cpu=0 to cpu=1023");
  op.cpu = static_cast<std::uint16_t>(id);
}

Value Parser::value(Context context) {
  skip_blanks();
  nodes_ = 0;
  const Index root = expression(context, context == Context::condition ? 0 : kArithmetic, 0);
  // A lone number needs no node; it is the last one made.
  if (result_.exprs[root].kind == Expr::Kind::number && root + 1 == result_.exprs.size()) {
    const std::int64_t number = result_.exprs[root].number;
    result_.exprs.pop_back();
    return {number, kNone};
  }
  return {0, root};
}

std::uint32_t Parser::column() const {
  return static_cast<std::uint32_t>(place_ - line_start_ + 1);
}

Index Parser::add_expr(Expr expr, const char* start) {
  const char* last = place_;
  while (last > start && (last[-1] == ' ' || last[-1] == '\t')) --last;
  expr.column = static_cast<std::uint32_t>(start - line_start_ + 1);
  expr.length = static_cast<std::uint32_t>(last - start);
  if (++nodes_ > kMaxNodes) {
    fail_here("WL_TOO_LONG", "the expression is too long", "at most 1000 terms");
  }
  result_.exprs.push_back(std::move(expr));
  return static_cast<Index>(result_.exprs.size() - 1);
}

Index Parser::intern(std::string_view text) {
  if (const auto known = strings_.find(text); known != strings_.end()) return known->second;
  const auto index = static_cast<Index>(result_.strings.size());
  strings_.emplace(text, index);
  result_.strings.emplace_back(text);
  return index;
}

Index Parser::expression(Context context, int level, int depth) {
  if (level > kTightest) return unary(context, depth);
  skip_blanks();
  const char* const start = place_;
  Index left = expression(context, level + 1, depth);
  while (true) {
    skip_blanks();
    const std::string_view rest(place_, static_cast<std::size_t>(end_ - place_));
    const auto* op = std::find_if(kOperators.begin(), kOperators.end(),
                                  [&](const Operator& o) { return rest.starts_with(o.text); });
    if (op == kOperators.end() || op->level != level) return left;
    place_ += op->text.size();
    const Index right = expression(context, level + 1, depth);
    left = add_expr({op->kind, left, right, 0, {}}, start);
  }
}

Index Parser::unary(Context context, int depth) {
  skip_blanks();
  const char* const start = place_;
  if (depth > kMaxDepth) fail_here("WL_TOO_DEEP", "too many parentheses", "at most 64 levels");
  if (place_ < end_ && *place_ == '-') {
    ++place_;
    const Index operand = unary(context, depth + 1);
    return add_expr({Expr::Kind::negate, operand, kNone, 0, {}}, start);
  }
  if (context == Context::condition && place_ < end_ && *place_ == '!') {
    ++place_;
    const Index operand = unary(context, depth + 1);
    return add_expr({Expr::Kind::logical_not, operand, kNone, 0, {}}, start);
  }
  return primary(context, depth);
}

Index Parser::primary(Context context, int depth) {
  skip_blanks();
  const char* const start = place_;
  if (place_ < end_ && *place_ >= '0' && *place_ <= '9') {
    const std::int64_t n = number(context);
    return add_expr({Expr::Kind::number, kNone, kNone, n, {}}, start);
  }
  if (eat('(')) {
    const Index inner =
        expression(context, context == Context::condition ? 0 : kArithmetic, depth + 1);
    if (!eat(')')) fail_here("WL_SYNTAX", "a parenthesis is not closed", "\")\"");
    return inner;
  }
  const std::string_view name = peek_word();
  if (name.empty()) {
    fail_here("WL_SYNTAX", "a number is missing",
              context == Context::time ? "a time such as 5ms"
                                       : "a number, a loop variable or a function");
  }
  const char* after = place_ + name.size();
  if ((after < end_ && *after == '(') || name == "free_pages") {
    place_ = after;
    return call(name, context, depth);
  }
  const auto loop = std::find(loops_.rbegin(), loops_.rend(), name);
  if (loop == loops_.rend()) {
    const std::vector<std::string> known(loops_.begin(), loops_.end());
    fail("WL_UNKNOWN_VARIABLE", name, "unknown variable " + std::string(name),
         "a number, or the variable of an enclosing `repeat N as i`", nearest_names(name, known));
  }
  place_ = after;
  const auto slot = static_cast<std::int64_t>(loops_.rend() - loop - 1);
  return add_expr({Expr::Kind::variable, kNone, kNone, slot, {}}, start);
}

Index Parser::call(std::string_view name, Context context, int depth) {
  struct Function {
    std::string_view name;
    Expr::Kind kind;
    std::size_t least, most;  // arguments that are expressions
    bool reads_kernel;
  };
  static constexpr std::array<Function, 14> kFunctions{
      {{"uniform", Expr::Kind::uniform, 2, 2, false},
       {"choice", Expr::Kind::choice, 1, kMaxChoices, false},
       {"normal", Expr::Kind::normal, 2, 2, false},
       {"zipf", Expr::Kind::zipf, 1, 1, false},
       {"inuse", Expr::Kind::inuse, 0, 0, true},
       {"memuse", Expr::Kind::memuse, 0, 0, true},
       {"requests", Expr::Kind::requests, 0, 0, true},
       {"fails", Expr::Kind::fails, 0, 0, true},
       {"sleeps", Expr::Kind::sleeps, 0, 0, true},
       {"xdomain", Expr::Kind::xdomain, 0, 0, true},
       {"size", Expr::Kind::size, 0, 0, true},
       {"domain", Expr::Kind::domain, 0, 0, true},
       {"null", Expr::Kind::is_null, 0, 0, true},
       {"free_pages", Expr::Kind::free_pages, 0, 0, true}}};
  const auto* function = std::find_if(kFunctions.begin(), kFunctions.end(),
                                      [&](const Function& f) { return f.name == name; });
  if (function == kFunctions.end() || (function->reads_kernel && context != Context::condition)) {
    std::vector<std::string> names;
    for (const Function& f : kFunctions) {
      if (!f.reads_kernel || context == Context::condition) names.emplace_back(f.name);
    }
    fail("WL_UNKNOWN_FUNCTION", name, "no function " + std::string(name) + " here",
         context == Context::condition
             ? "inuse memuse requests fails sleeps xdomain size domain null free_pages, or a "
               "distribution"
             : "uniform(a,b) choice(a,b,...) normal(mean,deviation) zipf(n)",
         nearest_names(name, names));
  }
  Expr expr{function->kind, kNone, kNone, 0, {}};
  if (function->kind == Expr::Kind::free_pages) {
    if (eat('(') && !eat(')')) fail_here("WL_SYNTAX", "free_pages takes no argument", "\")\"");
    return add_expr(std::move(expr), name.data());
  }
  ++place_;  // the parenthesis
  skip_blanks();
  switch (function->kind) {
    case Expr::Kind::inuse:
    case Expr::Kind::memuse:
    case Expr::Kind::requests:
      expr.number = type_ref();
      break;
    case Expr::Kind::fails:
    case Expr::Kind::sleeps:
    case Expr::Kind::xdomain:
      zone_argument(expr);
      break;
    case Expr::Kind::size:
    case Expr::Kind::domain:
    case Expr::Kind::is_null: {
      const std::string_view block = word("the name of a block");
      const std::size_t nodes = nodes_;
      const BlockRef ref = block_ref(block, false);
      nodes_ += nodes;
      expr.number = ref.name;
      expr.a = ref.first;
      expr.b = ref.second;
      break;
    }
    default:
      do {
        if (expr.args.size() == function->most) {
          fail_here("WL_ARGUMENTS", std::string(name) + " takes fewer arguments", "\")\"");
        }
        expr.args.push_back(expression(context, kArithmetic, depth + 1));
      } while (eat(','));
      if (expr.args.size() < function->least) {
        fail_here("WL_ARGUMENTS", std::string(name) + " takes more arguments", "\",\"");
      }
  }
  if (!eat(')')) fail_here("WL_SYNTAX", "a parenthesis is not closed", "\")\"");
  return add_expr(std::move(expr), name.data());
}

// A symbol, or UMA's name; in quotes it is always the latter. Whether UMA has the name is known at
// boot.
void Parser::zone_argument(Expr& expr) {
  if (place_ < end_ && *place_ == '"') {
    expr.number = intern(string_literal("the name of a zone"));
    return;
  }
  const char* const start = place_;
  while (place_ < end_ && *place_ != ')' && static_cast<unsigned char>(*place_) > ' ') ++place_;
  const std::string_view name(start, static_cast<std::size_t>(place_ - start));
  if (name.empty())
    fail_here("WL_SYNTAX", "a zone is missing",
              "the symbol of a zone, or a name such as malloc-64");
  const auto found = zones_.find(name);
  if (found != zones_.end()) expr.a = found->second;
  expr.number = intern(found != zones_.end() ? result_.zones[found->second].name : name);
}

void Parser::check_names() {
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    if (uses_[i].set) continue;
    const NameDecl& name = result_.names[i];
    std::vector<std::string> set_names;
    std::string hint = "a block that some NAME = malloc ... sets";
    for (std::size_t j = 0; j < uses_.size() && set_names.size() < 10000; ++j) {
      if (!uses_[j].set) continue;
      set_names.push_back(result_.names[j].text);
      if (result_.names[j].text == name.text) {
        hint = "as many indexes as where it is set: " + std::to_string(result_.names[j].arity);
      }
    }
    // Stand where the name was first used.
    line_ = uses_[i].line;
    line_start_ = uses_[i].line_start;
    fail("WL_UNKNOWN_BLOCK", uses_[i].at,
         "no statement sets the block " + name.text +
             (name.arity == 0   ? ""
              : name.arity == 1 ? "[]"
                                : "[,]"),
         hint, nearest_names(name.text, set_names));
  }
}

}  // namespace dtmalloc::workload
