// SPDX-License-Identifier: BSD-2-Clause
// Traces: what their readers take and refuse, and what a replay does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <dtmalloc/workload/trace.hpp>
#include <memory>
#include <string>
#include <vector>

#include "workload/trace_int.hpp"

namespace dtmalloc::workload {
namespace {

// A trace on a machine of its own.
struct Machine {
  explicit Machine(const std::string& bytes) {
    auto opened = Trace::from_memory(bytes, "t.trace");
    if (!opened) {
      refused = opened.error();
      return;
    }
    trace = std::move(*opened);
    KernelConfig config;
    config.cpus = 2;
    config.mem = std::uint64_t{256} << 20;
    trace->head().kernel.apply(config);
    config.fixed_cpus = true;
    kernel = std::make_unique<Kernel>(config);
    kernel->cpus().bind(0);
    kernel->cpus().set_console([](std::string_view) {});
    runner = std::make_unique<Runner>(trace->head(), *kernel);
    if (auto booted = runner->boot(); !booted) {
      refused = booted.error();
      return;
    }
    replayer = std::make_unique<Replayer>(*trace, *runner);
    outcome = replayer->run();
    if (outcome.error) refused = outcome.error;
  }
  TypeStats stats(const char* symbol) {
    return kernel->type_stats(*kernel->type_by_symbol(symbol));
  }

  std::unique_ptr<Trace> trace;
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Runner> runner;
  std::unique_ptr<Replayer> replayer;
  std::optional<Diagnostic> refused;
  Outcome outcome;
};

std::string converted(const std::string& bytes, TraceFormat format) {
  auto trace = Trace::from_memory(bytes, "t.trace");
  if (!trace) return to_string(trace.error());
  std::string out;
  const TraceSink sink = [&](std::string_view text) { out += text; };
  const auto done = convert(**trace, format, sink);
  return done ? out : to_string(done.error());
}

// What stands under the caret.
std::string marked(const Diagnostic& d) {
  return d.where.column == 0 ? "" : d.source_line.substr(d.where.column - 1, d.where.length);
}

const char* const kEverything = R"(kernel cpus=2 mem=256M
type M_A "a"
zone Z "z" size=100
history M_A allocs=10 memalloced=1000 frees=10 memfreed=1000 sizes=16
# comment
b0 = malloc 100 M_A M_WAITOK cpu=1 @outer+0x1c;inner
  b1=malloc 4K M_TEMP M_NOWAIT|M_ZERO   # comment
x[3] = malloc 0x10 M_A M_WAITOK
x[-1] = malloc 20 M_A M_WAITOK
y[3,4] = malloc 20 M_A M_WAITOK @one
b01 = malloc 8 M_A M_WAITOK
long_name_of_a_block_that_has_no_number = malloc 100 M_A M_WAITOK
b1 = realloc b1 9000 M_TEMP M_WAITOK cpu=0

cpu 1
wait 5ms
type M_LATE "late"
z = uma_zalloc Z M_WAITOK
l = malloc 70000 M_LATE M_WAITOK
free b0
free x[3] cpu=0 @two
free x[-1] M_A
free y[3,4]
zfree b01
uma_zfree Z z
expect inuse(M_A) == 1 && size(b1) == 16384 && inuse(M_LATE) == 1
free l
free b1
free long_name_of_a_block_that_has_no_number
)";

// REQ: TRACE-01
TEST(Trace, EveryStatementWithoutABlockRuns) {
  Machine m(kEverything);
  ASSERT_FALSE(m.refused) << to_string(*m.refused);
  EXPECT_FALSE(m.outcome.panic) << m.outcome.panic->what();
  EXPECT_EQ(m.outcome.failed_expects, 0u);
  EXPECT_EQ(m.outcome.operations, 23u);
  EXPECT_EQ(m.kernel->cpus().clock().now(), 23u * 100 + 5'000'000);
  EXPECT_EQ(m.stats("M_A").numallocs, 16u);
  EXPECT_EQ(m.stats("M_A").numfrees, 16u);
  EXPECT_EQ(m.stats("M_LATE").memfreed, 73728u);
  EXPECT_TRUE(m.replayer->is_set("x[3]"));
  EXPECT_NE(m.replayer->block("y[3,4]"), nullptr);
  EXPECT_FALSE(m.replayer->is_set("x[4]"));
  EXPECT_FALSE(m.replayer->is_set("b1["));
}

// REQ: TRACE-02
TEST(Trace, BinaryAndTextSayTheSame) {
  const std::string binary = converted(kEverything, TraceFormat::binary);
  ASSERT_TRUE(binary.starts_with("DTMTRACE")) << binary;
  EXPECT_EQ(binary.size() % 16, 0u);
  const std::string text = converted(binary, TraceFormat::text);
  EXPECT_EQ(converted(kEverything, TraceFormat::text), text);
  EXPECT_EQ(converted(text, TraceFormat::binary), binary);
  // It is a workload, the same as before.
  const auto before = parse(kEverything, "a"), after = parse(text, "b");
  ASSERT_TRUE(before && after) << to_string(after.error());
  EXPECT_TRUE(*before == *after) << text;
  Machine m(binary);
  ASSERT_FALSE(m.refused) << to_string(*m.refused);
  EXPECT_EQ(m.outcome.operations, 23u);
  EXPECT_EQ(m.stats("M_A").numfrees, 16u);
  EXPECT_EQ(m.kernel->cpus().clock().now(), 23u * 100 + 5'000'000);
}

// REQ: TRACE-03
TEST(Trace, ErrorsAreThoseOfRun) {
  const struct {
    const char *text, *tag, *at;
  } cases[] = {
      {"a = malloc 10 M_TEMPO M_WAITOK\n", "WL_UNKNOWN_TYPE", "M_TEMPO"},
      {"a = malloc 10 M_TEMP M_WAITOKK\n", "WL_UNKNOWN_FLAG", "M_WAITOKK"},
      {"a = malloc 10x M_TEMP M_WAITOK\n", "WL_NUMBER", "10x"},
      {"a = malloc 99999999999999999999 M_TEMP M_WAITOK\n", "WL_RANGE", "99999999999999999999"},
      {"a = malloc 10 M_TEMP M_WAITOK extra\n", "WL_SYNTAX", "extra"},
      {"a == malloc 10 M_TEMP M_WAITOK\n", "WL_UNKNOWN_STATEMENT", "a"},
      {"fre a\n", "WL_UNKNOWN_STATEMENT", "fre"},
      {"free\n", "WL_SYNTAX", ""},
      {"cpu 7\n", "WL_RANGE", "7"},
      {"b = malloc 10 M_TEMP M_WAITOK cpu=7\n", "WL_RANGE", "7"},
      {"b = malloc 10 M_TEMP M_WAITOK cpu=70000\n", "WL_RANGE", "70000"},
      {"b = malloc 10 M_TEMP M_WAITOK cpu\n", "WL_SYNTAX", ""},
      {"b = malloc 10 M_TEMP M_WAITOK @\n", "WL_SYNTAX", "@"},
      {"free c\n", "WL_UNSET_BLOCK", "free c"},
      {"kernel cpus=2\n", "WL_CONTEXT", "kernel"},
      {"history M_TEMP allocs=1\n", "WL_CONTEXT", "history"},
      {"repeat 3 { }\n", "WL_TRACE", "repeat"},
      {"thread \"a\" {\n", "WL_TRACE", "thread"},
      {"x[1+2] = realloc a 1 M_TEMP M_WAITOK\n", "WL_TRACE", "1+2"}};
  for (const auto& c : cases) {
    const std::string text =
        "kernel cpus=2\na = malloc 16 M_TEMP M_WAITOK\n\n" + std::string(c.text) + "free a\n";
    Machine m(text);
    ASSERT_TRUE(m.refused) << c.text;
    EXPECT_EQ(m.refused->tag, c.tag) << c.text;
    EXPECT_EQ(m.refused->where.line, 4u) << c.text;
    EXPECT_EQ(marked(*m.refused), c.at) << c.text;
    EXPECT_EQ(m.stats("M_TEMP").numfrees, 0u) << c.text;
    // As the parser of whole workloads has it.
    const auto parsed = parse(text, "t.trace");
    if (!parsed && parsed.error().tag != "WL_UNKNOWN_BLOCK" && m.refused->tag != "WL_TRACE") {
      EXPECT_EQ(to_string(parsed.error()), to_string(*m.refused));
    }
  }
  Machine nul(std::string("cpu 0\ncpu 1\0\n", 13));
  ASSERT_TRUE(nul.refused);
  EXPECT_EQ(nul.refused->tag, "WL_NUL");
  Machine endless("cpu 0\n" + std::string(kMaxLine + 10, 'a'));
  ASSERT_TRUE(endless.refused);
  EXPECT_EQ(endless.refused->tag, "WL_LINE_TOO_LONG");
}

// REQ: TRACE-04
TEST(Trace, ABuggyKernelsFreesReachTheKernel) {
  Machine twice("a = malloc 70000 M_TEMP M_WAITOK\nfree a\nfree a\n");
  ASSERT_TRUE(twice.outcome.panic);
  ASSERT_EQ(twice.outcome.panic_places.size(), 1u);
  EXPECT_EQ(twice.outcome.panic_places[0].line, 3u);
  EXPECT_EQ(twice.outcome.operations, 2u);
  Machine binary(
      converted("a = malloc 70000 M_TEMP M_WAITOK\nfree a\nfree a\n", TraceFormat::binary));
  ASSERT_TRUE(binary.outcome.panic);
  EXPECT_EQ(binary.outcome.panic_places[0].line, 3u);
}

// A binary trace, piece by piece.
struct Bytes {
  Bytes() { put(TraceHeader{{'D', 'T', 'M', 'T', 'R', 'A', 'C', 'E'}, 1, {}}); }
  template <typename T>
  Bytes& put(const T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Bytes& chunk(std::uint32_t kind, std::uint32_t count, const std::string& payload) {
    put(ChunkHeader{kind, count, payload.size()});
    bytes += payload;
    bytes.resize((bytes.size() + 15) / 16 * 16);
    return *this;
  }
  Bytes& ops(const std::vector<TraceOp>& records) {
    put(ChunkHeader{kOpsChunk, static_cast<std::uint32_t>(records.size()), records.size() * 16});
    for (const TraceOp& op : records) put(op);
    return *this;
  }
  Bytes& end() { return put(ChunkHeader{kEndChunk, 0, 0}); }
  std::string bytes;
};

TraceOp alloc(std::uint32_t block, std::uint32_t type) {
  return make_trace_op(TraceOp::malloc, block, kSameCpu, trace_word(64, type),
                       to_trace_flags(kM_WAITOK));
}

// REQ: TRACE-05
TEST(Trace, BinaryTracesAreCheckedAsTheyAreRead) {
  const TraceOp good = alloc(0, 2);  // M_TEMP
  const TraceOp release = make_trace_op(TraceOp::free, 0, 1, trace_word(0, TraceOp::kNoType));
  Bytes right;
  right.chunk(kTextChunk, 1, "kernel cpus=2\n").chunk(kNamesChunk, 2, "a\nx[3]\n");
  const std::string start = right.bytes;
  right.ops({good, release}).end();
  Machine m(right.bytes);
  ASSERT_FALSE(m.refused) << to_string(*m.refused);
  EXPECT_EQ(m.outcome.operations, 2u);
  EXPECT_EQ(m.stats("M_TEMP").numfrees, 1u);

  // Cut anywhere, it says where.
  for (std::size_t size = 8; size < right.bytes.size(); ++size) {
    Machine cut(right.bytes.substr(0, size));
    ASSERT_TRUE(cut.refused) << size;
    EXPECT_EQ(cut.refused->tag, "WL_TRACE") << size;
    EXPECT_NE(cut.refused->message.find("byte "), std::string::npos) << cut.refused->message;
  }

  const auto refusal = [&](const Bytes& bytes) {
    Machine wrong(bytes.bytes);
    return wrong.refused ? wrong.refused->message : std::string("not refused");
  };
  const auto records = [&](std::vector<TraceOp> ops) {
    Bytes bytes = right;
    bytes.bytes = start;
    return refusal(bytes.ops(ops).end());
  };
  const std::string at = "byte " + std::to_string(start.size() + 32) + ": the record ";
  EXPECT_EQ(records({good, alloc(2, 2)}), at + "names block 2 of 2");
  EXPECT_EQ(records({good, alloc(1, 5)}), at + "names type 5 of 5");
  EXPECT_EQ(records({good, make_trace_op(TraceOp::site, 1, kSameCpu, 0)}),
            at + "names call site 1 of 0");
  EXPECT_EQ(records({good, make_trace_op(TraceOp::move, 0, kSameCpu, 0)}), at + "names no CPU");
  EXPECT_EQ(records({good, make_trace_op(9, 0, kSameCpu, 0)}), at + "has kind 9");
  EXPECT_EQ(records({good, make_trace_op(15, 0, kSameCpu, 0)}), at + "has kind 15");
  EXPECT_EQ(records({good, make_trace_op(TraceOp::wait, 0, kSameCpu, ~std::uint64_t{0})}),
            at + "waits beyond the end of time");
  // What a text cannot say.
  TraceOp no_flags = good;
  no_flags.kind_flags = TraceOp::malloc;
  EXPECT_EQ(records({good, no_flags}), at + "has no flags");
  const std::string bits = at + "sets bits that its kind does not use";
  const auto any = trace_word(0, TraceOp::kNoType), sized = trace_word(7, TraceOp::kNoType);
  EXPECT_EQ(records({good, make_trace_op(TraceOp::free, 0, kSameCpu, any, 2)}), bits);
  EXPECT_EQ(records({good, make_trace_op(TraceOp::free, 0, kSameCpu, sized)}), bits);
  EXPECT_EQ(records({good, make_trace_op(TraceOp::move, 1, 0, 0)}), bits);
  EXPECT_EQ(records({good, make_trace_op(TraceOp::move, 0, 0, 9)}), bits);
  EXPECT_EQ(records({good, make_trace_op(TraceOp::move, 0, 0, 0, 1)}), bits);
  EXPECT_EQ(records({good, make_trace_op(TraceOp::wait, 1, kSameCpu, 5)}), bits);
  EXPECT_EQ(records({good, make_trace_op(TraceOp::wait, 0, kSameCpu, 5, 1)}), bits);
  EXPECT_EQ(records({good, make_trace_op(TraceOp::site, 0, 0, 0)}), bits);
  EXPECT_EQ(records({good, make_trace_op(TraceOp::site, 0, kSameCpu, 1)}), bits);
  EXPECT_EQ(records({good, make_trace_op(TraceOp::site, 0, kSameCpu, 0, 1)}), bits);
  // What only the machine knows is said as of a text, with the byte.
  EXPECT_EQ(records({good, make_trace_op(TraceOp::move, 0, 7, 0)}),
            "there is no CPU 7: this machine has 2, at byte " + std::to_string(start.size() + 32));
  EXPECT_EQ(
      records({good, make_trace_op(TraceOp::free, 1, kSameCpu, trace_word(0, TraceOp::kNoType))}),
      "the block x[3] is not set at this point, at byte " + std::to_string(start.size() + 32));

  Bytes version;
  version.bytes[8] = 2;
  EXPECT_EQ(refusal(version.end()), "byte 8: version 2 of the format is not known");
  EXPECT_EQ(refusal(Bytes().chunk(7, 0, "").end()), "byte 16: no kind of chunk is 7");
  EXPECT_EQ(refusal(Bytes().chunk(kNamesChunk, 1, "a").end()),
            "byte 33: the last line of a chunk does not end");
  EXPECT_EQ(refusal(Bytes().chunk(kNamesChunk, 2, "a\n").end()),
            "byte 16: a chunk says that it has 2 lines and has another number of them");
  EXPECT_EQ(refusal(Bytes().chunk(kNamesChunk, 2, "a\na\n").end()),
            "byte 34: the block a is declared already");
  EXPECT_EQ(refusal(Bytes().chunk(kNamesChunk, 1, "a b\n").end()),
            "byte 32: \"a b\" is no name of a block");
  EXPECT_EQ(refusal(Bytes().chunk(kSitesChunk, 1, "f;;g\n").end()),
            "byte 32: \"f;;g\" is no call site");
  EXPECT_EQ(refusal(Bytes().chunk(kTextChunk, 1, "cpu 0\n").chunk(kTextChunk, 1, "nope\n").end()),
            "unknown statement nope, at byte 64");
  EXPECT_EQ(refusal(Bytes().put(ChunkHeader{kTextChunk, 1, std::uint64_t{1} << 40})),
            "byte 16: a chunk of 1099511627776 bytes is too long");
  EXPECT_EQ(refusal(Bytes().end().end()), "byte 32: bytes behind the last chunk");
  Bytes empty;
  empty.chunk(kTextChunk, 0, "").ops({}).chunk(kNamesChunk, 0, "").end();
  EXPECT_EQ(refusal(empty), "not refused");
}

// REQ: TRACE-02
TEST(Trace, ACallSiteHoldsBehindWhatHasNone) {
  const auto record = [](std::uint16_t kind, std::uint16_t cpu, std::uint64_t word) {
    return make_trace_op(kind, 0, cpu, word);
  };
  const TraceOp site = make_trace_op(TraceOp::site, 1, kSameCpu, 0);
  const TraceOp none = make_trace_op(TraceOp::site, 0, kSameCpu, 0);
  TraceOp big = alloc(0, 2);
  big.word = trace_word(70000, 2);
  const TraceOp release = record(TraceOp::free, kSameCpu, trace_word(0, TraceOp::kNoType));
  const struct {
    std::vector<TraceOp> between;
    const char* text;
    bool holds;
  } cases[] = {{{}, nullptr, true},
               {{record(TraceOp::wait, kSameCpu, 1000)}, nullptr, true},
               {{record(TraceOp::wait, kSameCpu, 60'000'000'000)}, nullptr, true},  // UMA's timer
               {{record(TraceOp::wait, 1, 1000)}, nullptr, true},
               {{record(TraceOp::move, 1, 0)}, nullptr, true},
               {{none}, nullptr, false},
               {{}, "expect free_pages > 0\n", false},  // its own: none
               {{site}, "expect free_pages > 0\n", false},
               {{}, "b = mallocarray 2 8 M_TEMP M_WAITOK @foo+0x1c;bar\n", true}};
  for (const auto& c : cases) {
    Bytes bytes;
    bytes.chunk(kTextChunk, 1, "kernel cpus=2\n").chunk(kNamesChunk, 1, "a\n");
    bytes.chunk(kSitesChunk, 1, "foo+0x1c;bar\n").ops({site, big, release}).ops(c.between);
    if (c.text != nullptr) bytes.chunk(kTextChunk, 1, c.text);
    bytes.ops({release}).end();
    Machine binary(bytes.bytes);
    ASSERT_TRUE(binary.outcome.panic) << (binary.refused ? to_string(*binary.refused) : "");
    const std::vector<std::string> frames = binary.outcome.panic->backtrace();
    const bool holds = std::find(frames.begin(), frames.end(), "foo+0x1c") != frames.end();
    const std::string text = converted(bytes.bytes, TraceFormat::text);
    EXPECT_EQ(holds, c.holds) << text;
    Machine flat(text);
    ASSERT_TRUE(flat.outcome.panic) << text;
    EXPECT_EQ(flat.outcome.panic->backtrace(), frames) << text;
    Machine again(converted(text, TraceFormat::binary));
    ASSERT_TRUE(again.outcome.panic) << text;
    EXPECT_EQ(again.outcome.panic->backtrace(), frames) << text;
  }
}

// REQ: TRACE-06
TEST(Trace, LongTracesAreReadPieceByPiece) {
  // Blocks of two names; lines of every length, more than a buffer.
  std::string text = "kernel cpus=2\ntype M_A \"a\"\n";
  for (int i = 0; i < 30000; ++i) {
    const std::string name = "b" + std::to_string(i % 7);
    text += name + " = malloc " + std::to_string(1 + i % 5000) +
            " M_A M_WAITOK cpu=" + std::to_string(i % 2) +
            std::string(static_cast<std::size_t>(i % 5), ' ') + "\nfree " + name + "\n";
  }
  const std::string binary = converted(text, TraceFormat::binary);
  for (const std::string& bytes : {text, binary}) {
    Machine m(bytes);
    ASSERT_FALSE(m.refused) << to_string(*m.refused);
    EXPECT_EQ(m.outcome.operations, 60000u);
    EXPECT_EQ(m.stats("M_A").numallocs, 30000u);
    EXPECT_EQ(m.stats("M_A").numfrees, 30000u);
    auto again = Trace::from_memory(bytes, "t");
    ASSERT_TRUE(again);
    const auto count = (*again)->check();
    ASSERT_TRUE(count) << to_string(count.error());
    EXPECT_EQ(count->operations, 60000u);
    EXPECT_EQ(count->bytes, bytes.size());
    EXPECT_EQ(count->blocks, 7u);
  }
}

// REQ: TRACE-06
TEST(TraceNames, ANumberForEachName) {
  TraceNames names;
  const std::vector<std::string> all{"a",
                                     "b0",
                                     "b1",
                                     "b01",
                                     "b000",
                                     "x[0]",
                                     "x[1]",
                                     "x[-1]",
                                     "x[1,2]",
                                     "x[2,1]",
                                     "b1000000",
                                     "x[99999999]",
                                     "a_very_long_name_of_a_block7",
                                     "b",
                                     "x",
                                     "b.5"};
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(names.number(all[i]), i) << all[i];
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(names.number(all[i]), i) << all[i];
    EXPECT_EQ(names.find(all[i]), i) << all[i];
    EXPECT_EQ(names.text(static_cast<Index>(i)), all[i]);
  }
  for (const char* wrong : {"", "1a", "a[", "a[]", "a[1", "a[1,2,3]", "a b", "a[x]", ".a", "a[1]b"})
    EXPECT_FALSE(names.number(wrong)) << wrong;
  EXPECT_FALSE(names.find("b2"));
  EXPECT_FALSE(names.find("x[5,5]"));
  EXPECT_EQ(names.size(), all.size());
}

}  // namespace
}  // namespace dtmalloc::workload
