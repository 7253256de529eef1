// SPDX-License-Identifier: BSD-2-Clause
// Binary traces: chunks of records, checked as they are read (sim/README.md, "Traces").
// Invariants:   a batch of records holds none that names a block, a type or a call site that the
//               trace has not declared

#include <algorithm>
#include <bit>
#include <cstring>

#include "workload/trace_int.hpp"

namespace dtmalloc::workload {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t kBatch = 4096;                             // records
constexpr std::uint64_t kMostPayload = std::uint64_t{16} << 20;  // of what is no record

std::uint64_t padded(std::uint64_t bytes) { return (bytes + 15) & ~std::uint64_t{15}; }

// Whether a record sets bits that its kind does not use.
bool sets_other_bits(const TraceOp& op) {
  switch (op.kind()) {
    case TraceOp::free:
      return op.flags() != 0 || op.size() != 0;
    case TraceOp::move:
      return op.flags() != 0 || op.block != 0 || op.word != 0;
    case TraceOp::wait:
      return op.flags() != 0 || op.block != 0;
    case TraceOp::site:
      return op.flags() != 0 || op.cpu != kSameCpu || op.word != 0;
    default:
      return false;
  }
}

}  // namespace

void Trace::Impl::refuse(std::uint64_t byte, const std::string& message,
                         std::string expected) const {
  Diagnostic d;
  d.tag = "WL_TRACE";
  d.where.file = file;
  d.message = "byte " + std::to_string(byte) + ": " + message;
  d.expected = std::move(expected);
  throw ParseError{std::move(d)};
}

void Trace::Impl::read_header() {
  const std::string_view bytes = input->window(sizeof(TraceHeader));
  if (bytes.size() < sizeof(TraceHeader)) refuse(bytes.size(), "the trace ends in its header");
  TraceHeader header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.version != kTraceVersion)
    refuse(8, "version " + std::to_string(header.version) + " of the format is not known",
           "version " + std::to_string(kTraceVersion));
  for (const std::uint16_t reserved : header.reserved)
    if (reserved != 0) refuse(10, "reserved bytes of the header are not 0");
  input->advance(sizeof header);
}

// False: the end. The chunk's payload is the next thing in the input.
bool Trace::Impl::read_chunk() {
  const std::uint64_t at = input->offset();
  const std::string_view bytes = input->window(sizeof(ChunkHeader));
  if (bytes.size() < sizeof(ChunkHeader))
    refuse(at + bytes.size(), "the trace ends without its last chunk", "a chunk of kind 0");
  ChunkHeader header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  input->advance(sizeof header);
  chunk_ = {header.kind, header.count, header.bytes, header.bytes, at};
  switch (header.kind) {
    case kEndChunk:
      if (header.count != 0 || header.bytes != 0) refuse(at, "the last chunk is not empty");
      if (!input->window(1).empty()) refuse(input->offset(), "bytes behind the last chunk");
      return false;
    case kOpsChunk:
      if (header.bytes != std::uint64_t{header.count} * sizeof(TraceOp))
        refuse(at,
               "a chunk of " + std::to_string(header.count) + " records has " +
                   std::to_string(header.bytes) + " bytes",
               "16 bytes a record");
      return true;
    case kTextChunk:
    case kNamesChunk:
    case kSitesChunk:
      if (header.bytes > kMostPayload)
        refuse(at, "a chunk of " + std::to_string(header.bytes) + " bytes is too long",
               "at most 16 MiB but for records");
      return true;
    default:
      refuse(at, "no kind of chunk is " + std::to_string(header.kind), "0 to 4");
  }
}

// The lines of a chunk; its last byte is a newline.
std::string_view Trace::Impl::payload() {
  const std::uint64_t all = padded(chunk_.bytes);
  const std::string_view bytes = input->window(static_cast<std::size_t>(all));
  if (bytes.size() < all)
    refuse(input->offset() + bytes.size(),
           "the trace ends in a chunk of " + std::to_string(chunk_.bytes) + " bytes");
  const std::string_view text = bytes.substr(0, static_cast<std::size_t>(chunk_.bytes));
  if (!text.empty() && text.back() != '\n')
    refuse(input->offset() + text.size(), "the last line of a chunk does not end");
  if (static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n')) != chunk_.count)
    refuse(chunk_.offset, "a chunk says that it has " + std::to_string(chunk_.count) +
                              " lines and has another number of them");
  return text;
}

void Trace::Impl::names_chunk() {
  const std::string_view text = payload();
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = text.find('\n', from);
    const std::string_view name = text.substr(from, end - from);
    const Index next = names.size();
    const auto number = names.number(name);
    if (!number)
      refuse(input->offset() + from, "\"" + std::string(name) + "\" is no name of a block",
             "a, b12, x[3] or y[3,4]");
    if (*number != next)
      refuse(input->offset() + from, "the block " + std::string(name) + " is declared already");
    from = end + 1;
  }
  input->advance(static_cast<std::size_t>(padded(chunk_.bytes)));
}

void Trace::Impl::sites_chunk() {
  const std::string_view text = payload();
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = text.find('\n', from);
    const std::string_view site = text.substr(from, end - from);
    const bool good = std::all_of(site.begin(), site.end(), [](char c) {
      return static_cast<unsigned char>(c) > ' ' && c != '{' && c != '}' && c != '#' && c != '"';
    });
    const std::size_t next = parser.workload().sites.size();
    bool framed = good && !site.empty() && site.front() != ';' && site.back() != ';' &&
                  site.find(";;") == site.npos;
    if (!framed)
      refuse(input->offset() + from, "\"" + std::string(site.substr(0, 80)) + "\" is no call site",
             "outer+0x1c;inner");
    if (parser.site_of(site) != next)
      refuse(input->offset() + from, "the call site " + std::string(site) + " is declared already");
    from = end + 1;
  }
  input->advance(static_cast<std::size_t>(padded(chunk_.bytes)));
}

// The records before the first wrong one are the batch.
void Trace::Impl::check_records(std::span<const TraceOp> records) {
  const Index blocks = names.size();
  const auto types = static_cast<Index>(parser.workload().types.size());
  const auto sites = static_cast<Index>(parser.workload().sites.size());
  std::size_t good = 0;
  for (; good < records.size(); ++good) {
    const TraceOp& op = records[good];
    const std::uint16_t kind = op.kind();
    // One branch for both kinds: which of them comes next nothing can foretell.
    static_assert(TraceOp::malloc == 0 && TraceOp::free == 1);
    // Each difference is below 0 iff the record is good: a malloc has flags, a free has neither
    // flags nor a size, and may have no type.
    const std::uint64_t is_free = kind & 1;
    const std::uint64_t type = (op.type() + is_free) & TraceOp::kNoType;
    const std::uint64_t extra = op.flags() | (op.size() & -is_free);
    const std::uint64_t below = (kind - std::uint64_t{2}) & (op.block - std::uint64_t{blocks}) &
                                (type - (types + is_free)) & ((extra - 1) ^ (is_free - 1));
    if (static_cast<std::int64_t>(below) < 0) continue;
    if (sets_other_bits(op)) break;
    if (kind == TraceOp::move) {
      if (op.cpu != kSameCpu) continue;
    } else if (kind == TraceOp::wait) {
      if (op.word <= Clock::kEndOfTime) continue;
    } else if (kind == TraceOp::site && op.block <= sites) {
      site_ = op.block == 0 ? kNone : op.block - 1;
      continue;
    }
    break;
  }
  batch_.ops = records.first(good);
  line_ += static_cast<std::uint32_t>(good);
  if (good == records.size()) return;
  const TraceOp& op = records[good];
  std::string what = "the record ", expected;
  const auto names = [&](const char* kind, std::uint64_t number, std::uint64_t count) {
    what += std::string("names ") + kind + std::to_string(number) + " of " + std::to_string(count);
  };
  switch (op.kind()) {
    case TraceOp::malloc:
    case TraceOp::free:
      if (op.block >= blocks) {
        names("block ", op.block, blocks);
      } else if (op.type() >= types &&
                 (op.kind() == TraceOp::malloc || op.type() != TraceOp::kNoType)) {
        names("type ", op.type(), types);
      } else if (op.kind() == TraceOp::malloc) {
        what += "has no flags";
        expected = "M_WAITOK or M_NOWAIT, and others";
      }
      break;
    case TraceOp::move:
      if (op.cpu == kSameCpu) what += "names no CPU";
      break;
    case TraceOp::wait:
      if (op.word > Clock::kEndOfTime) what += "waits beyond the end of time";
      break;
    case TraceOp::site:
      if (op.block > sites) names("call site ", op.block, sites);
      break;
    default:
      what += "has kind " + std::to_string(op.kind());
      expected = "kinds 0 to 4";
  }
  if (what.back() == ' ') {
    what += "sets bits that its kind does not use";
    expected = "zeros";
    if (op.kind() == TraceOp::site) expected += ", and CPU 65535";
  }
  refuse(batch_.offset + good * sizeof(TraceOp), what, std::move(expected));
}

void Trace::Impl::next_binary() {
  while (true) {
    if (chunk_.left == 0 && !read_chunk()) {
      ended_ = batch_.last = true;
      return;
    }
    if (chunk_.kind == kOpsChunk && chunk_.left != 0) {
      std::string_view bytes = input->window(sizeof(TraceOp));
      if (bytes.size() < sizeof(TraceOp))
        refuse(input->offset() + bytes.size(), "the trace ends in a chunk of records");
      const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(
          {bytes.size() / sizeof(TraceOp), chunk_.left / sizeof(TraceOp), kBatch}));
      batch_.window = bytes;
      batch_.offset = input->offset();
      batch_.line = line_ + 1;
      input->advance(count * sizeof(TraceOp));
      chunk_.left -= count * sizeof(TraceOp);
      return check_records({reinterpret_cast<const TraceOp*>(bytes.data()), count});
    }
    read_lines_chunk();
    if (chunk_.kind == kTextChunk && chunk_.left != 0) {
      const std::string_view text = input->window(static_cast<std::size_t>(chunk_.left))
                                        .substr(0, static_cast<std::size_t>(chunk_.left));
      return scan_lines(text);
    }
  }
}

// Names and call sites are read; of text is made sure that it is there.
void Trace::Impl::read_lines_chunk() {
  if (chunk_.kind == kOpsChunk || chunk_.kind == kEndChunk || chunk_.left != chunk_.bytes) return;
  if (chunk_.kind == kTextChunk) {
    payload();
    return;
  }
  chunk_.left = 0;
  if (chunk_.kind == kNamesChunk) return names_chunk();
  sites_chunk();
}

void Trace::Impl::leave(std::size_t bytes) {
  input->advance(bytes);
  if (!binary) return;
  chunk_.left -= bytes;
  if (chunk_.left == 0)
    input->advance(static_cast<std::size_t>(padded(chunk_.bytes) - chunk_.bytes));
}

void Trace::Impl::read_binary_head() {
  read_header();
  while (true) {
    if (chunk_.left == 0 && !read_chunk()) {
      ended_ = true;
      return;
    }
    if (chunk_.kind == kOpsChunk && chunk_.left != 0) return;
    read_lines_chunk();
    if (chunk_.kind != kTextChunk) continue;
    while (chunk_.left != 0) {
      batch_.offset = input->offset();
      from_ = 0;
      const std::string_view text = input->window(static_cast<std::size_t>(chunk_.left));
      const std::size_t end = text.find('\n');
      if (!read_head_line(text.substr(0, end))) return;
      leave(end + 1);
    }
  }
}

}  // namespace dtmalloc::workload
