// SPDX-License-Identifier: BSD-2-Clause
// Text traces: the lines that traces are made of, by hand; every other line, and every mistake, by
// the parser of the language.
// Invariants:   what the fast scanner takes, the parser takes and means the same

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "workload/trace_int.hpp"

namespace dtmalloc::workload {
namespace {

constexpr std::size_t kLines = 256;               // of a batch
constexpr std::size_t kMostOps = 2 * kLines + 2;  // each with its call site
constexpr int kMostDigits = 13;                   // of a size, so that it cannot overflow

enum CharClass : std::uint8_t { kOther = 0, kLetter = 1, kDigit = 2 };

constexpr std::array<std::uint8_t, 256> kClasses = [] {
  std::array<std::uint8_t, 256> classes{};
  for (int c = 'a'; c <= 'z'; ++c) classes[static_cast<std::size_t>(c)] = kLetter;
  for (int c = 'A'; c <= 'Z'; ++c) classes[static_cast<std::size_t>(c)] = kLetter;
  for (int c = '0'; c <= '9'; ++c) classes[static_cast<std::size_t>(c)] = kDigit;
  classes['_'] = kLetter;
  classes['.'] = kLetter;
  return classes;
}();
inline std::uint8_t class_of(char c) { return kClasses[static_cast<unsigned char>(c)]; }

// A text of up to 8 bytes as a loaded word.
constexpr std::uint64_t packed(std::string_view text) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    word |= std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
  return word;
}
inline bool starts_with(const char* at, std::string_view text) {
  return (WordKey::load(at) & WordKey::mask(text.size())) == packed(text);
}

inline const char* skip_blanks(const char* at) {
  while (*at == ' ' || *at == '\t') ++at;
  return at;
}

// The end of a word: its first blank or control character.
inline const char* word_end(const char* at) {
#if defined(__SSE2__)
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  const __m128i blanks = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(' ')), bytes);
  const auto found = static_cast<unsigned>(_mm_movemask_epi8(blanks));
  if (found != 0) return at + std::countr_zero(found);
  at += kWordSlack;
#endif
  while (static_cast<unsigned char>(*at) > ' ') ++at;
  return at;
}

// Decimal digits; null: none, or too many.
inline const char* scan_number(const char* at, std::uint64_t& number) {
  // Up to seven at once: the first byte that is no digit has its top bit set in `others`.
  std::uint64_t digits = WordKey::load(at) ^ 0x3030303030303030;
  const std::uint64_t others = ((digits + 0x7676767676767676) | digits) & 0x8080808080808080;
  if (others != 0) {
    const int bits = std::countr_zero(others) & ~7;
    if (bits == 0) return nullptr;
    digits <<= 64 - bits;
    digits = (digits * 10 + (digits >> 8)) & 0x00ff00ff00ff00ff;
    digits = (digits * 100 + (digits >> 16)) & 0x0000ffff0000ffff;
    number = (digits * 10000 + (digits >> 32)) & 0xffffffff;
    return at + bits / 8;
  }
  const char* const start = at;
  number = 0;
  while (class_of(*at) == kDigit) number = number * 10 + static_cast<unsigned>(*at++ - '0');
  return at == start || at - start > kMostDigits ? nullptr : at;
}

}  // namespace

const std::int32_t* trace_flag_table() {
  static const std::vector<std::int32_t> kBits = [] {
    std::vector<std::int32_t> bits(std::size_t{1} << kFlagNames.size(), 0);
    for (std::size_t set = 0; set < bits.size(); ++set)
      for (std::size_t i = 0; i < kFlagNames.size(); ++i)
        if ((set >> i & 1) != 0) bits[set] |= kFlagNames[i].bit;
    return bits;
  }();
  return kBits.data();
}

std::uint16_t to_trace_flags(std::int32_t bits) {
  unsigned flags = 0;
  for (std::size_t i = 0; i < kFlagNames.size(); ++i)
    if ((bits & kFlagNames[i].bit) != 0) flags |= 1u << i;
  return static_cast<std::uint16_t>(flags);
}

// --- the fast scanner: each part returns where it ends, or null: not this form

// A name has no number yet: the line may turn out to be of another form.
const char* Trace::Impl::scan_name(const char* at, ScannedName& name) {
  const char* const start = at;
  const char* digits = nullptr;
  std::int64_t index = 0;
  if (class_of(*at) != kLetter || *at == '.') return nullptr;
  while (true) {
    const std::uint8_t c = class_of(*++at);
    if (c == kDigit) {
      if (digits == nullptr) {
        digits = at;
        index = 0;
      }
      index = static_cast<std::int64_t>(static_cast<std::uint64_t>(index) * 10 +
                                        static_cast<unsigned>(*at - '0'));
    } else if (c == kLetter) {
      digits = nullptr;
    } else {
      break;
    }
  }
  const bool is_indexed = *at == '[';
  std::size_t length = static_cast<std::size_t>(at - start);
  if (is_indexed) {
    std::uint64_t value = 0;
    at = scan_number(at + 1, value);
    if (at == nullptr || *at != ']') return nullptr;
    ++at;
    index = static_cast<std::int64_t>(value);
  } else if (digits != nullptr) {
    if (at - digits > kMostDigits || (*digits == '0' && at - digits > 1)) return nullptr;
    length = static_cast<std::size_t>(digits - start);
  } else {
    name = {start, length, 0, TraceNames::plain};
    return at;
  }
  name = {start, length, index, is_indexed ? TraceNames::indexed : TraceNames::numbered};
  return at;
}

Index Trace::Impl::number_of(const ScannedName& name) {
  const auto stem_of = [&] {
    const Index known = names.find_stem(name.form, name.start, name.length);
    return known != kNone ? known : names.stem(name.form, {name.start, name.length});
  };
  if (name.form == TraceNames::plain) return names.number(stem_of(), 0);
  CachedStem& cached = cached_[name.form == TraceNames::indexed ? 1 : 0];
  const WordKey key = WordKey::of(name.start, name.length);
  if (!(key == cached.key) || name.length != cached.length || name.length > 16)
    cached = {key, name.length, stem_of()};
  return names.number(cached.stem, name.index);
}

const char* Trace::Impl::scan_flags(const char* at, std::uint16_t& flags) {
  const char* const end = word_end(at);
  const auto length = static_cast<std::size_t>(end - at);
  const Index known = flags_.find(at, length);
  if (known != kNone) {
    flags = static_cast<std::uint16_t>(known);
    return end;
  }
  const std::string_view text(at, length);
  std::int32_t bits = 0;
  for (std::size_t from = 0; from <= length;) {
    const std::size_t bar = std::min(text.find('|', from), length);
    const std::string_view name = text.substr(from, bar - from);
    const auto* flag = std::find_if(kFlagNames.begin(), kFlagNames.end(),
                                    [&](const FlagName& f) { return f.name == name; });
    if (flag == kFlagNames.end()) return nullptr;
    bits |= flag->bit;
    from = bar + 1;
  }
  flags = to_trace_flags(bits);
  if (flags_.size() < 4096) flags_.add(text, flags);  // a joke may write M_ZERO a thousand times
  return end;
}

// [cpu=N] [@site] and the end of the line.
const char* Trace::Impl::scan_end(const char* at, std::uint16_t& cpu, Index& site) {
  at = skip_blanks(at);
  cpu = kSameCpu;
  site = kNone;
  if (starts_with(at, "cpu=")) {
    std::uint64_t id = 0;
    at = scan_number(at + 4, id);
    if (at == nullptr || id >= kSameCpu) return nullptr;
    cpu = static_cast<std::uint16_t>(id);
    at = skip_blanks(at);
  }
  if (*at == '@') {
    const char* const start = ++at;
    while (static_cast<unsigned char>(*at) > ' ' && *at != '{' && *at != '}' && *at != '#' &&
           *at != '"')
      ++at;
    site = sites_.find(start, static_cast<std::size_t>(at - start));
    if (site == kNone) return nullptr;
    at = skip_blanks(at);
  }
  if (*at == '\r') ++at;
  return *at == '\n' ? at + 1 : nullptr;
}

// One line, if it is of the forms that traces are made of; returns the next line, or null.
const char* Trace::Impl::fast_line(const char* at) {
  at = skip_blanks(at);
  std::uint16_t cpu = kSameCpu;
  Index site = kNone;
  ScannedName block;
  if (*at == '\n') return at + 1;
  if (starts_with(at, "free ")) {
    at = scan_name(skip_blanks(at + 5), block);
    if (at == nullptr || (at = scan_end(at, cpu, site)) == nullptr) return nullptr;
    use_site(site);
    push(make_trace_op(TraceOp::free, number_of(block), cpu, trace_word(0, TraceOp::kNoType)));
    return at;
  }
  if (starts_with(at, "cpu ")) {
    std::uint64_t id = 0;
    at = scan_number(skip_blanks(at + 4), id);
    if (at == nullptr || id >= kSameCpu || *at != '\n') return nullptr;
    use_site(kNone);
    push(make_trace_op(TraceOp::move, 0, static_cast<std::uint16_t>(id), 0));
    return at + 1;
  }
  if ((at = scan_name(at, block)) == nullptr) return nullptr;
  at = skip_blanks(at);
  if (*at != '=') return nullptr;
  at = skip_blanks(at + 1);
  if (!starts_with(at, "malloc ")) return nullptr;
  std::uint64_t size = 0;
  if ((at = scan_number(skip_blanks(at + 7), size)) == nullptr) return nullptr;
  if (*at == 'K' || *at == 'M' || *at == 'G') {
    const int shift = *at == 'K' ? 10 : *at == 'M' ? 20 : 30;
    if (size > TraceOp::kSizeMask >> shift) return nullptr;
    size <<= shift;
    ++at;
  }
  if (*at != ' ' && *at != '\t') return nullptr;
  at = skip_blanks(at);
  const char* const symbol = at;
  at = word_end(at);
  const auto length = static_cast<std::size_t>(at - symbol);
  Index type = types_.find(symbol, length);
  if (type == kNone) {
    type = parser.known_type({symbol, length});
    if (type == kNone || type >= TraceOp::kNoType) return nullptr;
    types_.add({symbol, length}, type);
  }
  if (*at != ' ' && *at != '\t') return nullptr;
  std::uint16_t flags = 0;
  if ((at = scan_flags(skip_blanks(at), flags)) == nullptr) return nullptr;
  if ((at = scan_end(at, cpu, site)) == nullptr) return nullptr;
  use_site(site);
  push(make_trace_op(TraceOp::malloc, number_of(block), cpu, trace_word(size, type), flags));
  return at;
}

// --- operations

void Trace::Impl::push(const TraceOp& op) {
  ops_[used_] = op;
  places_[used_] = {line_, from_};
  ++used_;
}

void Trace::Impl::use_site(Index site) {
  if (site == site_) return;
  site_ = site;
  push(make_trace_op(TraceOp::site, site == kNone ? 0 : site + 1, kSameCpu, 0));
}

// A statement that a TraceOp holds.
bool Trace::Impl::add_common(const Op& op) {
  if (op.value.expr != kNone || op.extra.expr != kNone) return false;
  const auto value = static_cast<std::uint64_t>(op.value.number);
  TraceOp record;
  if (op.kind == OpKind::malloc || op.kind == OpKind::free) {
    const auto block = block_number(op.target);
    if (!block || op.extra.number != 0 || value > TraceOp::kSizeMask) return false;
    const Index type = op.type == kNone ? TraceOp::kNoType : op.type;
    if (op.type != kNone && type >= TraceOp::kNoType) return false;
    record = make_trace_op(op.kind == OpKind::malloc ? TraceOp::malloc : TraceOp::free, *block,
                           op.cpu, trace_word(value, type), to_trace_flags(op.flags));
  } else if (op.kind == OpKind::cpu) {
    if (value >= kSameCpu) return false;
    record = make_trace_op(TraceOp::move, 0, static_cast<std::uint16_t>(value), 0);
  } else if (op.kind == OpKind::wait) {
    record = make_trace_op(TraceOp::wait, 0, op.cpu, value);
  } else {
    return false;
  }
  use_site(op.site);
  push(record);
  return true;
}

void Trace::Impl::slow_line(std::string_view line) {
  if (line.size() > kMaxLine) {
    Diagnostic d;
    d.tag = "WL_LINE_TOO_LONG";
    d.where = {file, line_, 1, 1};
    d.source_line = line.substr(0, 200);
    d.message = "the line is too long";
    d.expected = "at most 1 MiB";
    throw ParseError{std::move(d)};
  }
  const std::optional<Op> op = parser.line(line, line_);
  if (!op) return;
  if (op->site != kNone) {
    const std::string text = site_text(parser.workload().sites[op->site]);
    if (sites_.find(text) == kNone) sites_.add(text, op->site);
  }
  if (add_common(*op)) return;
  *line_text = line;
  parser.workload().text = line_text;
  parser.workload().first_line = line_;
  number_blocks(*op);
  site_ = op->site;
  push(make_trace_op(kOtherStatement, static_cast<std::uint32_t>(batch_.others.size()), kSameCpu,
                     0));
  batch_.others.push_back(*op);
}

void Trace::Impl::scan_line(const char*& at, const char* end) {
  ++line_;
  from_ = static_cast<std::uint32_t>(at - batch_.window.data());
  const std::size_t before = used_;
  const Index site = site_;
  if (const char* next = fast_line(at)) {
    at = next;
    return;
  }
  used_ = before;
  site_ = site;
  const auto* newline =
      static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
  const char* const stop = newline == nullptr ? end : newline;
  const std::string_view line(at, static_cast<std::size_t>(stop - at));
  at = newline == nullptr ? end : newline + 1;
  slow_line(line);
}

void Trace::Impl::begin_batch() {
  if (ops_.empty()) {
    ops_.resize(kMostOps);
    places_.resize(kMostOps);
  }
  used_ = 0;
  parser.forget();
  batch_.others.clear();
  batch_.ops = {};
  batch_.places = {};
}

// The lines at hand, each with its newline; the last line of the text may lack it. Empty: the end.
std::string_view Trace::Impl::whole_lines() {
  std::string_view window = input->window(1);
  while (!window.empty()) {
    const void* last = ::memrchr(window.data(), '\n', window.size());
    if (last != nullptr)
      return window.substr(
          0, static_cast<std::size_t>(static_cast<const char*>(last) - window.data()) + 1);
    if (input->at_end() || window.size() > kMaxLine) return window;
    window = input->window(window.size() + 1);
  }
  return window;
}

void Trace::Impl::next_text() {
  std::string_view lines = whole_lines();
  if (lines.empty()) {
    ended_ = batch_.last = true;
    if (auto failed = read_failed()) throw ParseError{std::move(*failed)};
    return;
  }
  scan_lines(lines);
}

void Trace::Impl::scan_lines(std::string_view lines) {
  batch_.window = lines;
  batch_.offset = input->offset();
  const char* at = lines.data();
  const char* const end = at + lines.size();
  if (lines.back() != '\n') {  // the last line of the text, or an endless one
    ++line_;
    from_ = 0;
    leave(lines.size());
    return slow_line(lines);
  }
  const std::uint32_t last = line_ + static_cast<std::uint32_t>(kLines);
  // The place of the input is behind what was read, whatever is thrown.
  struct Leave {
    Impl& trace;
    const char* const from;
    const char*& at;
    ~Leave() { trace.leave(static_cast<std::size_t>(at - from)); }
  } leave_lines{*this, at, at};
  while (at != end && line_ != last) scan_line(at, end);
}

// --- the head

// False: boot is over; the line is to be read again.
bool Trace::Impl::read_head_line(std::string_view line) {
  const std::optional<Op> op = parser.line(line, line_ + 1);
  if (parser.operated()) return false;
  ++line_;
  if (op) parser.workload().bodies[0].push_back(*op);
  return true;
}

void Trace::Impl::read_text_head() {
  while (true) {
    const std::string_view lines = whole_lines();
    if (lines.empty()) return;
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    if (end > kMaxLine || !read_head_line(lines.substr(0, end))) return;
    leave(std::min(end + 1, lines.size()));
  }
}

std::string site_text(const std::vector<std::string>& frames) {
  std::string out;
  for (const std::string& frame : frames) out += (out.empty() ? "" : ";") + frame;
  return out;
}

}  // namespace dtmalloc::workload
