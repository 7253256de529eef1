// SPDX-License-Identifier: BSD-2-Clause
// Characters to tokens. Descriptions, declarations, predicates and statements have different
// tokens; the lexer tells by the first word and by the brackets it has seen where it is.
// Counterpart:  dt_lex.l
#include <algorithm>
#include <array>

#include "dtrace/dif/ascii.hpp"
#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {
namespace {

bool starts_description(char c) {
  return is_alpha(c) ||
         (c != '\0' && std::string_view("-$:_.?*[]!\\").find(c) != std::string::npos);
}
bool in_description(char c) { return starts_description(c) || is_digit(c) || c == '`'; }

constexpr std::array<std::string_view, 47> kKeywords = {
    "auto",     "break",    "case",   "char",     "const",  "continue",   "counter", "default",
    "do",       "double",   "else",   "enum",     "extern", "float",      "for",     "goto",
    "if",       "import",   "inline", "int",      "long",   "offsetof",   "probe",   "provider",
    "register", "restrict", "return", "self",     "short",  "signed",     "sizeof",  "static",
    "string",   "stringof", "struct", "switch",   "this",   "translator", "typedef", "union",
    "unsigned", "userland", "void",   "volatile", "while",  "xlate",      "_Bool"};

// The keywords that start a declaration where a description could stand.
constexpr std::array<std::string_view, 29> kDeclarations = {
    "auto",   "char",     "const",    "counter", "double",   "enum",     "extern",     "float",
    "import", "inline",   "int",      "long",    "provider", "register", "restrict",   "self",
    "short",  "signed",   "static",   "string",  "struct",   "this",     "translator", "typedef",
    "union",  "unsigned", "userland", "void",    "volatile"};

}  // namespace

std::string_view op_text(Op op) {
  static constexpr std::array kTexts = {
#define D_OPERATOR(name, text) std::string_view(text),
#include "dtrace/lang/operators.def"
#undef D_OPERATOR
  };
  return kTexts[static_cast<std::size_t>(op)];
}

Lexer::Lexer(const CompileInput& input, const SourceText& source, TypeTable& types)
    : input_(input), source_(source), types_(types), text_(source.text()) {}

Place Lexer::here(std::size_t length) const {
  return {static_cast<std::uint32_t>(at_), static_cast<std::uint32_t>(length), line_, region_};
}

Token Lexer::token(Tok kind, std::size_t start, Op op) {
  Token token;
  token.kind = kind;
  token.op = op;
  token.place = {static_cast<std::uint32_t>(start), static_cast<std::uint32_t>(at_ - start), line_,
                 region_};
  return token;
}

void Lexer::comment() {
  const Place start = here(2);
  at_ += 2;
  for (;; ++at_) {
    if (done()) source_.fail("D_SYNTAX", start, "end-of-file encountered before matching */");
    if (peek() == '\n') ++line_;
    if (peek() == '/' && peek(1) == '*') {
      source_.fail("D_SYNTAX", here(2), "/* encountered inside a comment");
    }
    if (peek() == '*' && peek(1) == '/') break;
  }
  at_ += 2;
}

void Lexer::skip_blanks() {
  while (!done()) {
    const char c = peek();
    if (c == '\n') {
      ++line_;
      ++at_;
      line_start_ = true;
    } else if (is_blank(c)) {
      ++at_;
    } else if (c == '#' && line_start_) {
      control_line();
    } else if (c == '/' && peek(1) == '*') {
      comment();
    } else {
      return;
    }
  }
}

Token Lexer::next() {
  skip_blanks();
  line_start_ = false;
  if (done()) {
    Token end = token(Tok::end, text_.size());
    end.place.length = 1;
    return end;
  }
  return state_ == State::clauses ? clause_token() : expression_token();
}

Token Lexer::clause_token() {
  const char c = peek();
  const std::size_t start = at_;
  if (starts_description(c)) return description();
  if (is_digit(c)) return number();
  ++at_;
  switch (c) {
    case '{':
      braces_ = 1;
      parens_ = brackets_ = 0;
      state_ = State::expression;
      region_ = Region::actions;
      return token(Tok::lbrace, start);
    case '/':
      parens_ = brackets_ = 0;
      state_ = State::expression;
      region_ = Region::predicate;
      return token(Tok::predicate, start);
    case ',':
      return token(Tok::op, start, Op::comma);
    case ';':
      return token(Tok::semicolon, start);
    case '}':
      source_.fail("D_SYNTAX", token(Tok::rbrace, start).place, "extra } in input stream");
    default:
      return token(Tok::other, start);
  }
}

// A word where a description could stand: keywords and the names of types start a declaration. In
// a command-line string a name does so only if a declarator follows, as probes are named there.
bool Lexer::starts_declaration(std::string_view word, std::size_t end) const {
  if (std::find(kDeclarations.begin(), kDeclarations.end(), word) != kDeclarations.end()) {
    return true;
  }
  if (word.find_first_of("-$:.?*[]!\\") != std::string_view::npos || types_.find(word) == kNoType) {
    return false;
  }
  if (source_.is_file()) return true;
  while (end < text_.size() && is_blank(text_[end])) ++end;
  const char c = end < text_.size() ? text_[end] : '\0';
  return is_alpha(c) || c == '_' || c == '*' || c == '(' || c == '`';
}

Token Lexer::description() {
  const std::size_t start = at_;
  while (!done() && in_description(peek())) ++at_;
  // "int*x" may declare x.
  const std::string_view whole = text_.substr(start, at_ - start);
  const std::string_view word = whole.substr(0, whole.find('*'));
  if (whole.find(':') == std::string_view::npos && starts_declaration(word, start + word.size())) {
    at_ = start;
    state_ = State::declaration;
    parens_ = brackets_ = braces_ = 0;
    return this->word();
  }
  Token result = token(Tok::description, start);
  result.text = text_.substr(start, at_ - start);
  return result;
}

Token Lexer::expression_token() {
  const char c = peek();
  if (is_alpha(c) || c == '_' || c == '`') return word();
  if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
  if (c == '"') return string_literal();
  if (c == '\'') return character();
  if (c == '/' && peek(1) != '=') return slash();
  if (c == '@') {
    const std::size_t start = at_++;
    while (!done() && is_word(peek()) && !(at_ == start + 1 && is_digit(peek()))) ++at_;
    Token result = token(Tok::aggregation, start);
    result.text = at_ == start + 1 ? "_" : std::string(text_.substr(start + 1, at_ - start - 1));
    return result;
  }
  if (c == '$' && (is_word(peek(1)) || peek(1) == '$')) return macro();
  return punctuation();
}

Token Lexer::word() {
  const std::size_t start = at_;
  while (!done() && (is_word(peek()) || peek() == '`')) ++at_;
  const std::string_view text = text_.substr(start, at_ - start);
  const bool keyword = std::find(kKeywords.begin(), kKeywords.end(), text) != kKeywords.end();
  Token result = token(keyword ? Tok::keyword : Tok::identifier, start);
  result.text = text;
  return result;
}

// '/' ends a predicate when what follows can only come after one.
Token Lexer::slash() {
  const std::size_t start = at_++;
  if (state_ == State::declaration) return token(Tok::op, start, Op::div);
  std::size_t ahead = at_;
  while (ahead < text_.size() && is_blank(text_[ahead])) ++ahead;
  const char c = ahead < text_.size() ? text_[ahead] : '\0';
  if (c != '\0' && c != '{' && c != ';' && c != '/') return token(Tok::op, start, Op::div);
  Token result = token(Tok::end_predicate, start);
  if (parens_ != 0) {
    source_.fail("D_SYNTAX", result.place, "closing ) expected in predicate before /");
  }
  if (brackets_ != 0) {
    source_.fail("D_SYNTAX", result.place, "closing ] expected in predicate before /");
  }
  if (braces_ == 0) {
    state_ = State::clauses;
    region_ = Region::none;
  }
  return result;
}

Token Lexer::punctuation() {
  struct Operator {
    std::string_view text;
    Op op;
  };
  // Longest first.
  static constexpr std::array<Operator, 37> kOperators = {{
      {"<<=", Op::shl_assign}, {">>=", Op::shr_assign}, {"+=", Op::add_assign},
      {"-=", Op::sub_assign},  {"*=", Op::mul_assign},  {"/=", Op::div_assign},
      {"%=", Op::mod_assign},  {"&=", Op::and_assign},  {"^=", Op::xor_assign},
      {"|=", Op::or_assign},   {"||", Op::lor},         {"^^", Op::lxor},
      {"&&", Op::land},        {"==", Op::eq},          {"!=", Op::ne},
      {"<=", Op::le},          {">=", Op::ge},          {"<<", Op::shl},
      {">>", Op::shr},         {"++", Op::inc},         {"--", Op::dec},
      {"->", Op::arrow},       {",", Op::comma},        {"=", Op::assign},
      {"|", Op::bor},          {"^", Op::bxor},         {"&", Op::band},
      {"<", Op::lt},           {">", Op::gt},           {"+", Op::add},
      {"-", Op::sub},          {"*", Op::mul},          {"%", Op::mod},
      {"!", Op::lnot},         {"~", Op::bnot},         {".", Op::dot},
      {"/", Op::div},
  }};
  const std::size_t start = at_;
  const std::string_view rest = text_.substr(at_, 3);
  for (const Operator& entry : kOperators) {
    if (!rest.starts_with(entry.text)) continue;
    at_ += entry.text.size();
    return token(Tok::op, start, entry.op);
  }
  const char c = text_[at_++];
  const auto closes = [&](int& count, Tok kind, const char* message) {
    Token result = token(kind, start);
    if (--count < 0) source_.fail("D_SYNTAX", result.place, message);
    return result;
  };
  switch (c) {
    case '(':
      ++parens_;
      return token(Tok::lparen, start);
    case ')':
      return closes(parens_, Tok::rparen, "extra ) in input stream");
    case '[':
      ++brackets_;
      return token(Tok::lbracket, start);
    case ']':
      return closes(brackets_, Tok::rbracket, "extra ] in input stream");
    case '{':
      ++braces_;
      return token(Tok::lbrace, start);
    case '}': {
      Token result = closes(braces_, Tok::rbrace, "extra } in input stream");
      if (braces_ == 0 && state_ == State::expression) {
        state_ = State::clauses;
        region_ = Region::none;
      }
      return result;
    }
    case ';':
      if (state_ == State::declaration && parens_ + brackets_ + braces_ == 0) {
        state_ = State::clauses;
      }
      return token(Tok::semicolon, start);
    case ':':
      return token(Tok::colon, start);
    case '?':
      return token(Tok::question, start);
    default:
      return token(Tok::other, start);
  }
}

}  // namespace dtmalloc::dtrace
