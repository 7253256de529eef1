// SPDX-License-Identifier: BSD-2-Clause
// Statements: the kernel line, types and history, operations, blocks in braces.

#include <algorithm>
#include <limits>

#include "workload/parser.hpp"

namespace dtmalloc::workload {

const std::array<OperationName, 13> kAssigning{
    {{"malloc", OpKind::malloc},
     {"realloc", OpKind::realloc},
     {"reallocf", OpKind::reallocf},
     {"mallocarray", OpKind::mallocarray},
     {"malloc_aligned", OpKind::malloc_aligned},
     {"malloc_exec", OpKind::malloc_exec},
     {"contigmalloc", OpKind::contigmalloc},
     {"malloc_domainset", OpKind::malloc_domainset},
     {"malloc_domainset_exec", OpKind::malloc_domainset_exec},
     {"malloc_domainset_aligned", OpKind::malloc_domainset_aligned},
     {"mallocarray_domainset", OpKind::mallocarray_domainset},
     {"contigmalloc_domainset", OpKind::contigmalloc_domainset},
     {"uma_zalloc", OpKind::uma_zalloc}}};

namespace {

// What the language knows and this machine does not model.
constexpr std::array<std::string_view, 2> kNotModelled{"stream", "phase"};

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

void Parser::statements(std::vector<Op>& ops, bool in_block, int depth) {
  while (true) {
    skip_blanks();
    if (place_ == end_) return;  // block() says which brace is open
    const char c = *place_;
    if (c == '#') {
      while (place_ < end_ && *place_ != '\n') ++place_;
    } else if (c == '\n') {
      if (static_cast<std::size_t>(place_ - line_start_) > kMaxLine) {
        fail("WL_LINE_TOO_LONG", {line_start_, 1}, "the line is too long", "at most 1 MiB");
      }
      ++place_;
      ++line_;
      line_start_ = place_;
    } else if (c == '}') {
      if (!in_block) fail_here("WL_SYNTAX", "no block is open here", "a statement");
      return;
    } else {
      statement(ops, depth);
      end_statement();
    }
  }
}

void Parser::statement(std::vector<Op>& ops, int depth) {
  const std::string_view word = peek_word();
  if (word.empty()) {
    fail_here("WL_SYNTAX", "no statement begins like this", "NAME = malloc ..., free NAME, ...");
  }
  Op op;
  op.line = line_;
  op.column = static_cast<std::uint32_t>(place_ - line_start_ + 1);
  place_ += word.size();

  // NAME = ..., NAME[...] = ...
  const char* look = place_;
  while (look < end_ && (*look == ' ' || *look == '\t')) ++look;
  if (look < end_ && ((*look == '=' && (look + 1 == end_ || look[1] != '=')) ||
                      (*look == '[' && look == place_))) {
    operated_ = started_ = true;
    assignment(ops, op, word);
    return;
  }

  if (word == "kernel") return kernel_line();
  started_ = true;
  if (word == "type") return type_statement(ops, op, depth);
  if (word == "history") return history_statement(ops, op, depth);
  operated_ = operated_ || word != "zone";
  if (zone_statement(ops, op, word, depth)) return;

  if (word == "free" || word == "zfree" || word == "contigfree") {
    op.kind = word == "free" ? OpKind::free : word == "zfree" ? OpKind::zfree : OpKind::contigfree;
    const std::string_view name = this->word("the name of a block");
    op.target = block_ref(name, false);
    offset(op);
    skip_blanks();
    if (next_is_word() && peek_word() != "cpu") op.type = type_ref();
    own_cpu(op);
    op.site = site();
  } else if (word == "cpu") {
    op.kind = OpKind::cpu;
    skip_blanks();
    op.operand = column();
    op.value = value(Context::plain);
  } else if (word == "repeat") {
    repeat_statement(op, depth);
  } else if (word == "wait") {
    op.kind = OpKind::wait;
    skip_blanks();
    const char* start = place_;
    op.value = value(Context::time);
    const char* last = place_;
    while (last > start && std::string_view(" \t\r)").find(last[-1]) != std::string_view::npos)
      --last;
    if (op.value.expr == kNone && op.value.number != 0 && last[-1] != 's') {
      fail("WL_NUMBER", {start, static_cast<std::size_t>(last - start)}, "a time needs a unit",
           "20ns, 3us, 5ms, 2s");
    }
    own_cpu(op);
  } else if (word == "thread") {
    thread_statement(op, depth);
  } else if (word == "join") {
    op.kind = OpKind::join;
  } else if (word == "unload" || word == "load") {
    op.kind = word == "load" ? OpKind::load : OpKind::unload;
    op.type = type_ref();
  } else if (word == "expect") {
    op.kind = OpKind::expect;
    op.value = value(Context::condition);
    if (eat('=')) fail("WL_SYNTAX", {place_ - 1, 1}, "= compares nothing", "\"==\"");
  } else if (word == "critical" || word == "interrupt" || word == "nosleep") {
    op.kind = word == "critical"    ? OpKind::critical
              : word == "interrupt" ? OpKind::interrupt
                                    : OpKind::nosleep;
    block(op, depth);
  } else if (word == "sysctl") {
    sysctl_statement(op);
  } else if (word == "poke") {
    poke_statement(op);
  } else {
    place_ = word.data();
    refuse_unknown_statement(word);
  }
  ops.push_back(op);
}

void Parser::refuse_unknown_statement(std::string_view word) {
  if (is_one_of(word, kNotModelled)) {
    fail("WL_NOT_MODELLED", word, "`" + std::string(word) + "` is not modelled yet");
  }
  for (const OperationName& assigning : kAssigning) {
    if (assigning.name == word) {
      fail("WL_SYNTAX", word, "the block that " + std::string(word) + " returns needs a name",
           "NAME = " + std::string(word) + " ...");
    }
  }
  static const std::vector<std::string> kWords{
      "kernel", "type",   "zone",       "reclaim",   "uma_zfree", "zdestroy", "history", "cpu",
      "free",   "zfree",  "contigfree", "repeat",    "wait",      "thread",   "join",    "unload",
      "load",   "expect", "critical",   "interrupt", "nosleep",   "sysctl",   "poke"};
  fail("WL_UNKNOWN_STATEMENT", word, "unknown statement " + std::string(word),
       "NAME = malloc ..., or a statement", nearest_names(word, kWords));
}

void Parser::assignment(std::vector<Op>& ops, Op op, std::string_view name) {
  op.target = block_ref(name, true);
  if (!eat('=')) fail_here("WL_SYNTAX", "an assignment lacks its =", "\"=\"");
  const std::string_view verb = word("malloc, realloc, mallocarray, contigmalloc, ...");
  const auto* found = std::find_if(kAssigning.begin(), kAssigning.end(),
                                   [&](const OperationName& o) { return o.name == verb; });
  if (found == kAssigning.end()) {
    if (is_one_of(verb, kNotModelled)) {
      fail("WL_NOT_MODELLED", verb, "`" + std::string(verb) + "` is not modelled yet");
    }
    std::vector<std::string> names;
    for (const OperationName& o : kAssigning) names.emplace_back(o.name);
    fail("WL_UNKNOWN_OPERATION", verb, "unknown operation " + std::string(verb),
         "an operation that returns a block", nearest_names(verb, names));
  }
  op.kind = found->kind;
  if (op.kind == OpKind::uma_zalloc) {
    op.detail = zone_ref();
    op.flags = flags();
    own_cpu(op);
    op.site = site();
    ops.push_back(op);
    return;
  }
  if (op.kind == OpKind::realloc || op.kind == OpKind::reallocf) {
    const std::string_view old = word("the name of the old block");
    op.source = block_ref(old, false);
  }
  op.value = value(Context::size);
  if (has_second_number(op.kind)) op.extra = value(Context::size);
  Placement placement;
  if (has_domain_set(op.kind)) {
    skip_blanks();
    op.operand = column();
    domain_set(placement);
  }
  op.type = type_ref();
  op.flags = flags();
  if (has_address_range(op.kind)) address_range(placement);
  if (placement != Placement{}) {
    op.detail = static_cast<Index>(result_.placements.size());
    result_.placements.push_back(placement);
  }
  own_cpu(op);
  op.site = site();
  ops.push_back(op);
}

void Parser::sysctl_statement(Op& op) {
  op.kind = OpKind::sysctl;
  skip_blanks();
  op.operand = column();
  const char* const start = place_;
  while (place_<end_&& static_cast<unsigned char>(*place_)> ' ' && *place_ != '=' &&
         *place_ != '#' && *place_ != '}')
    ++place_;
  SysctlDecl sysctl{std::string(start, place_), std::nullopt};
  if (sysctl.name.empty())
    fail_here("WL_SYNTAX", "a name is missing", "a name of sysctl(8), such as vm.kmem_zmax");
  if (place_ < end_ && *place_ == '=') {
    ++place_;
    sysctl.value = word_or_string("the value to be written");
  }
  op.detail = static_cast<Index>(result_.sysctls.size());
  result_.sysctls.push_back(std::move(sysctl));
}

void Parser::poke_statement(Op& op) {
  op.kind = OpKind::poke;
  const std::string_view name = word("the name of a block");
  op.target = block_ref(name, false);
  offset(op);
  skip_blanks();
  op.operand = column();
  op.value = value(Context::size);
  own_cpu(op);
  op.site = site();
}

// NAME+8, NAME-1
void Parser::offset(Op& op) {
  skip_blanks();
  if (place_ == end_ || (*place_ != '+' && *place_ != '-')) return;
  if (*place_ == '+') ++place_;  // a minus belongs to the number
  op.extra = value(Context::size);
}

void Parser::block(Op& op, int depth) {
  if (!eat('{')) fail_here("WL_SYNTAX", "a block is missing", "\"{\"");
  const std::string_view brace(place_ - 1, 1);
  const char* const brace_line = line_start_;
  const std::uint32_t brace_number = line_;
  if (depth + 1 > kMaxDepth) fail_here("WL_TOO_DEEP", "blocks are nested too deeply", "64 levels");
  op.body = static_cast<Index>(result_.bodies.size());
  result_.bodies.emplace_back();
  std::vector<Op> ops;
  statements(ops, true, depth + 1);
  if (place_ == end_) {
    line_ = brace_number;
    line_start_ = brace_line;
    fail("WL_SYNTAX", brace, "the block that begins here is not closed", "\"}\"");
  }
  result_.bodies[op.body] = std::move(ops);
  ++place_;  // the closing brace
}

void Parser::repeat_statement(Op& op, int depth) {
  op.kind = OpKind::repeat;
  op.value = value(Context::size);
  skip_blanks();
  std::string_view variable;
  if (peek_word() == "as") {
    place_ += 2;
    variable = word("the name of the loop's variable");
  }
  loops_.push_back(variable);
  block(op, depth);
  loops_.pop_back();
  // Loops own slots by depth; a nameless one has its slot too.
  op.detail = variable.empty() ? kNone : intern(variable);
}

void Parser::thread_statement(Op& op, int depth) {
  op.kind = OpKind::thread;
  ThreadDecl thread;
  thread.name = string_literal("the name of the thread");
  while (true) {
    skip_blanks();
    const std::string_view key = peek_word();
    if (key.empty()) break;
    place_ += key.size();
    if (!eat('=')) fail_here("WL_SYNTAX", "an attribute lacks its value", "\"=\"");
    std::optional<Value>* slot = key == "cpu"    ? &thread.cpu
                                 : key == "pid"  ? &thread.pid
                                 : key == "ppid" ? &thread.ppid
                                 : key == "tid"  ? &thread.tid
                                 : key == "uid"  ? &thread.uid
                                 : key == "gid"  ? &thread.gid
                                                 : nullptr;
    if (key == "execname" ? !thread.execname.empty() : slot != nullptr && slot->has_value()) {
      fail("WL_REDECLARED", key, std::string(key) + " is set twice");
    }
    if (key == "execname") {
      thread.execname = string_literal("the program's name");
    } else if (slot != nullptr) {
      skip_blanks();
      if (key == "cpu") op.operand = column();
      const char* const start = place_;
      *slot = value(Context::plain);
      if ((*slot)->expr == kNone && (*slot)->number > std::numeric_limits<std::int32_t>::max())
        fail("WL_RANGE", {start, static_cast<std::size_t>(place_ - start)},
             std::string(key) + " is out of range", "0 to 2147483647");
    } else {
      static const std::vector<std::string> kKeys{"cpu", "execname", "pid", "ppid",
                                                  "tid", "uid",      "gid"};
      fail("WL_UNKNOWN_ATTRIBUTE", key, "unknown attribute " + std::string(key),
           "cpu execname pid ppid tid uid gid", nearest_names(key, kKeys));
    }
  }
  op.detail = static_cast<Index>(result_.threads.size());
  result_.threads.push_back(std::move(thread));
  block(op, depth);
}

void Parser::type_statement(std::vector<Op>& ops, Op op, int depth) {
  op.kind = OpKind::type;
  const std::string_view symbol = word("the symbol of the type, such as M_FOO");
  if (depth > 0) fail("WL_CONTEXT", symbol, "a type cannot be declared inside a block");
  const std::string shortdesc = string_literal("the short description in double quotes");
  std::string longdesc;
  skip_blanks();
  if (place_ < end_ && *place_ == '"') longdesc = string_literal("the long description");
  const auto [entry, added] =
      types_.try_emplace(std::string(symbol), static_cast<Index>(result_.types.size()));
  if (added) result_.types.push_back({std::string(symbol), shortdesc, "", false, false});
  TypeDecl& type = result_.types[entry->second];
  if (type.declared) {
    fail("WL_REDECLARED", symbol, "the type " + std::string(symbol) + " is declared already",
         "another symbol");
  }
  if (type.builtin && type.shortdesc != shortdesc) {
    fail("WL_REDECLARED", symbol,
         std::string(symbol) + " is the kernel's own type \"" + type.shortdesc + "\"",
         "its own description, or another symbol");
  }
  type.longdesc = std::move(longdesc);
  type.declared = true;
  op.type = entry->second;
  ops.push_back(op);
}

void Parser::history_statement(std::vector<Op>& ops, Op op, int depth) {
  op.kind = OpKind::history;
  if (operated_ || depth > 0) {
    fail("WL_CONTEXT", {line_start_ + op.column - 1, 7}, "history is what happened before the run",
         "a place above the first operation");
  }
  op.type = type_ref();
  History history;
  while (!at_statement_end()) {
    const std::string_view key = word("allocs= memalloced= frees= memfreed= sizes=");
    if (!eat('=')) fail_here("WL_SYNTAX", "a number is missing", "\"=\"");
    skip_blanks();
    if (key == "sizes") {
      if (!history.sizes.empty()) fail("WL_REDECLARED", key, "sizes is set twice");
      do {
        const std::string_view at = rest_token();
        const std::int64_t size = number(Context::size);
        if (size <= 0 || size > std::numeric_limits<std::int32_t>::max()) {
          fail("WL_RANGE", at, "no size class is that large");
        }
        history.sizes.push_back(static_cast<std::uint32_t>(size));
      } while (eat(','));
      continue;
    }
    std::optional<std::uint64_t>* slot = key == "allocs"       ? &history.allocs
                                         : key == "memalloced" ? &history.memalloced
                                         : key == "frees"      ? &history.frees
                                         : key == "memfreed"   ? &history.memfreed
                                                               : nullptr;
    if (slot == nullptr) {
      static const std::vector<std::string> kKeys{"allocs", "memalloced", "frees", "memfreed",
                                                  "sizes"};
      fail("WL_UNKNOWN_ATTRIBUTE", key, "unknown attribute " + std::string(key),
           "allocs memalloced frees memfreed sizes", nearest_names(key, kKeys));
    }
    if (slot->has_value()) fail("WL_REDECLARED", key, std::string(key) + " is set twice");
    *slot = static_cast<std::uint64_t>(number(Context::size));
  }
  op.detail = static_cast<Index>(result_.histories.size());
  result_.histories.push_back(std::move(history));
  ops.push_back(op);
}

}  // namespace dtmalloc::workload
