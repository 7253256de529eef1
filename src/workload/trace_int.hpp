// SPDX-License-Identifier: BSD-2-Clause
// The inside of a Trace: bytes to windows, windows to batches of operations.
//
// Invariants:   a batch points into the window; the next call invalidates it
#pragma once

#include <dtmalloc/workload/trace.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workload/parser.hpp"
#include "workload/trace_names.hpp"

namespace dtmalloc::workload {

// In memory only: Batch::others[block].
inline constexpr std::uint16_t kOtherStatement = 15;

// The twelve flags of a TraceOp, by the order of kFlagNames, as M_* bits.
const std::int32_t* trace_flag_table();  // of 4096
std::uint16_t to_trace_flags(std::int32_t bits);

inline TraceOp make_trace_op(std::uint16_t kind, std::uint32_t block, std::uint16_t cpu,
                             std::uint64_t word, std::uint16_t flags = 0) {
  return {block, static_cast<std::uint16_t>(kind | flags << TraceOp::kKindBits), cpu, word};
}
inline std::uint64_t trace_word(std::uint64_t size, std::uint32_t type) {
  return size | std::uint64_t{type} << TraceOp::kSizeBits;
}

// Bytes of a file, a pipe or memory, from a place on.
class TraceInput {
 public:
  TraceInput(int fd, bool owned) : fd_(fd), owned_(owned) {}
  explicit TraceInput(std::string_view memory);
  ~TraceInput();
  TraceInput(const TraceInput&) = delete;
  TraceInput& operator=(const TraceInput&) = delete;

  // The bytes at the place: at least `least`, fewer only at the end. kWordSlack more are readable.
  // Views taken before are void.
  std::string_view window(std::size_t least);
  void advance(std::size_t bytes) { at_ += bytes; }
  std::uint64_t offset() const { return before_ + at_; }  // of the place
  bool at_end() const { return ended_; }                  // the window reaches to the end
  int error() const { return error_; }                    // errno of read(2), or 0

 private:
  void fill(std::size_t least);
  int fd_ = -1;
  bool owned_ = false;
  std::string_view memory_;  // what is not in the buffer yet
  std::vector<std::uint64_t> buffer_;
  const char* base_ = nullptr;     // of the window's source: the buffer, or memory
  std::size_t at_ = 0, size_ = 0;  // in it
  std::uint64_t before_ = 0;       // offset of base_
  bool in_memory_ = false;         // base_ is the caller's memory
  bool ended_ = false;
  int error_ = 0;
};

// Where an operation stands: its line, and where that begins in the window.
struct TracePlace {
  std::uint32_t line = 0;
  std::uint32_t from = 0;
};

struct Batch {
  std::span<const TraceOp> ops;
  std::span<const TracePlace> places;  // of each; empty: records of a binary trace
  std::uint32_t line = 0;              // of the first record: lines and records count alike
  std::uint64_t offset = 0;            // of the first record, or of the window
  std::string_view window;
  std::vector<Op> others;           // what a TraceOp does not hold
  std::optional<Diagnostic> error;  // behind these operations
  bool last = false;

  std::uint32_t line_of(std::size_t op) const {
    return places.empty() ? line + static_cast<std::uint32_t>(op) : places[op].line;
  }
  // The text of an operation's line.
  std::string_view text_of(std::size_t op) const {
    const std::string_view rest = window.substr(places[op].from);
    return rest.substr(0, rest.find('\n'));
  }
};

struct Trace::Impl {
  Impl(std::unique_ptr<TraceInput> from, std::string name);

  std::optional<Diagnostic> read_head();
  std::optional<Diagnostic> read_failed() const;
  const Batch& next();

  // --- for who runs or converts what was read
  // Messages quote the line of an operation of the batch.
  void stand_at(const Batch& batch, std::size_t op, Index site);
  // The statement of an operation, in full. Throws ParseError.
  Op statement_of(const Batch& batch, std::size_t op, Index site);
  // The number of a block that a statement names; nothing: its index is no number.
  std::optional<Index> block_number(const BlockRef& ref);
  // Every block that a statement names.
  void for_each_block(const Op& op, const std::function<void(const BlockRef&)>& function);
  // Says which byte of a binary trace an error is at.
  Diagnostic placed(Diagnostic d, const Batch& batch, std::size_t op) const;
  Diagnostic placed(Diagnostic d) const;

  std::unique_ptr<TraceInput> input;
  std::string path;
  std::string file;  // the path, as messages name it
  bool binary = false;
  Parser parser;
  TraceNames names;
  std::shared_ptr<std::string> line_text = std::make_shared<std::string>();

 private:
  // --- trace_text.cpp
  void next_text();
  void read_text_head();
  void scan_lines(std::string_view lines);
  void leave(std::size_t bytes);  // of a text, which are read
  // Reads the line at `at` and goes behind it. Requires: a newline before `end`.
  void scan_line(const char*& at, const char* end);
  const char* fast_line(const char* at);
  struct ScannedName {
    const char* start = nullptr;
    std::size_t length = 0;  // of the stem
    std::int64_t index = 0;
    TraceNames::Form form = TraceNames::plain;
  };
  const char* scan_name(const char* at, ScannedName& name);
  Index number_of(const ScannedName& name);
  const char* scan_flags(const char* at, std::uint16_t& flags);
  const char* scan_end(const char* at, std::uint16_t& cpu, Index& site);
  void slow_line(std::string_view line);
  bool add_common(const Op& op);
  void number_blocks(const Op& op);
  void push(const TraceOp& op);
  void use_site(Index site);
  bool read_head_line(std::string_view line);
  std::string_view whole_lines();

  // --- trace_binary.cpp
  void next_binary();
  void read_binary_head();
  void read_header();
  void read_lines_chunk();
  bool read_chunk();
  std::string_view payload();
  void names_chunk();
  void sites_chunk();
  void check_records(std::span<const TraceOp> records);
  [[noreturn]] void refuse(std::uint64_t byte, const std::string& message,
                           std::string expected = {}) const;

  void begin_batch();

  Batch batch_;
  std::vector<TraceOp> ops_;
  std::vector<TracePlace> places_;
  std::size_t used_ = 0;    // of both
  std::uint32_t from_ = 0;  // where the line begins in the window
  std::uint32_t line_ = 0;  // of the line or record read last
  bool ended_ = false;
  Index site_ = kNone;           // of the operation read last
  Words types_, flags_, sites_;  // as the scanner met them
  struct CachedStem {
    WordKey key;
    std::size_t length = 0;
    Index stem = kNone;
  };
  CachedStem cached_[2];

  struct Chunk {
    std::uint32_t kind = 0, count = 0;
    std::uint64_t bytes = 0, left = 0;  // of the payload
    std::uint64_t offset = 0;           // of its header
  };
  Chunk chunk_;
};

// --- the binary format (sim/README.md, "Traces")
inline constexpr char kTraceMagic[8] = {'D', 'T', 'M', 'T', 'R', 'A', 'C', 'E'};
inline constexpr std::uint16_t kTraceVersion = 1;
struct TraceHeader {
  char magic[8];
  std::uint16_t version;
  std::uint16_t reserved[3];
};
struct ChunkHeader {
  std::uint32_t kind;   // ChunkKind
  std::uint32_t count;  // lines or records
  std::uint64_t bytes;  // of the payload, without the padding to a multiple of 16
};
enum ChunkKind : std::uint32_t {
  kEndChunk = 0,
  kTextChunk = 1,
  kNamesChunk = 2,
  kSitesChunk = 3,
  kOpsChunk = 4,
};
static_assert(sizeof(TraceHeader) == 16 && sizeof(ChunkHeader) == 16);

// Writes statements as one of the formats.
class TraceWriter {
 public:
  TraceWriter(TraceFormat format, const TraceSink& sink, const Workload& workload,
              const TraceNames& names);

  void head(const Workload& head);
  // `site`: of the operation; ignored for a TraceOp that is one.
  void operation(const TraceOp& op, Index site);
  void statement(const Op& op, const std::string& text);  // anything else
  void end();
  std::uint64_t operations() const { return operations_; }

 private:
  void use_site(Index site);
  void declare(Index type);
  void flush_records();
  void flush_text();
  void flush_names();
  void chunk(ChunkKind kind, std::uint32_t count, std::string_view payload);
  void put(std::string_view text);

  const TraceFormat format_;
  const TraceSink& sink_;
  const Workload& workload_;
  const TraceNames& names_;
  std::string out_;
  std::vector<TraceOp> records_;
  std::string text_;  // statements of a text chunk
  std::uint32_t text_lines_ = 0;
  Index named_ = 0;              // names that are written
  Index site_ = kNone;           // in force
  std::vector<Index> type_ids_;  // by the workload's index: the number in the trace
  Index next_type_ = static_cast<Index>(kBuiltinTypes.size());
  std::vector<Index> site_ids_;  // by the workload's index; 0: not written yet
  std::string new_sites_;
  std::uint32_t new_site_count_ = 0;
  Index last_site_id_ = 0;
  std::uint64_t operations_ = 0;
};

// One statement as text, with its CPU and site.
std::string trace_statement(const Workload& workload, const TraceNames& names, const TraceOp& op,
                            Index site);
std::string site_text(const std::vector<std::string>& frames);

}  // namespace dtmalloc::workload
