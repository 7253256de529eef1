// SPDX-License-Identifier: BSD-2-Clause
// Writes traces, as text or binary.

#include <algorithm>
#include <cstring>

#include "workload/trace_int.hpp"

namespace dtmalloc::workload {
namespace {

constexpr std::size_t kFlush = std::size_t{1} << 16;  // bytes
constexpr std::size_t kRecords = 4096;                // of a chunk

}  // namespace

std::string trace_statement(const Workload& workload, const TraceNames& names, const TraceOp& op,
                            Index site) {
  std::string out;
  switch (op.kind()) {
    case TraceOp::malloc: {
      out = names.text(op.block) + " = malloc " + std::to_string(op.size()) + ' ' +
            workload.types[op.type()].symbol;
      char before = ' ';
      for (std::size_t i = 0; i < kFlagNames.size(); ++i) {
        if ((op.flags() >> i & 1) == 0) continue;
        out += before;
        out += kFlagNames[i].name;
        before = '|';
      }
      break;
    }
    case TraceOp::free:
      out = "free " + names.text(op.block);
      if (op.type() != TraceOp::kNoType) out += ' ' + workload.types[op.type()].symbol;
      break;
    case TraceOp::move:
      return "cpu " + std::to_string(op.cpu);
    default:
      out = "wait " + print_time(op.word);
  }
  if (op.cpu != kSameCpu) out += " cpu=" + std::to_string(op.cpu);
  if (site != kNone && op.kind() != TraceOp::wait) out += " @" + site_text(workload.sites[site]);
  return out;
}

TraceWriter::TraceWriter(TraceFormat format, const TraceSink& sink, const Workload& workload,
                         const TraceNames& names)
    : format_(format), sink_(sink), workload_(workload), names_(names) {}

void TraceWriter::put(std::string_view text) {
  out_ += text;
  if (out_.size() < kFlush) return;
  sink_(out_);
  out_.clear();
}

void TraceWriter::chunk(ChunkKind kind, std::uint32_t count, std::string_view payload) {
  const ChunkHeader header{kind, count, payload.size()};
  put({reinterpret_cast<const char*>(&header), sizeof header});
  put(payload);
  static constexpr char kZeros[16] = {};
  put({kZeros, (16 - payload.size() % 16) % 16});
}

// Types are numbered as the parser numbers them: the kernel's own, then the others as they are
// declared.
void TraceWriter::declare(Index type) {
  if (type >= type_ids_.size()) type_ids_.resize(type + 1, kNone);
  if (type_ids_[type] != kNone) return;
  for (std::size_t i = 0; i < kBuiltinTypes.size(); ++i)
    if (workload_.types[type].symbol == kBuiltinTypes[i][0])
      type_ids_[type] = static_cast<Index>(i);
  if (type_ids_[type] == kNone) type_ids_[type] = next_type_++;
}

void TraceWriter::head(const Workload& head) {
  for (std::size_t i = 0; i < head.types.size(); ++i)
    if (head.types[i].builtin) declare(static_cast<Index>(i));
  for (const Op& op : head.bodies[0])
    if (op.kind == OpKind::type) declare(op.type);
  const std::string text = print(head);
  if (format_ == TraceFormat::text) return put(text);
  TraceHeader header{{}, kTraceVersion, {}};
  std::memcpy(header.magic, kTraceMagic, sizeof header.magic);
  put({reinterpret_cast<const char*>(&header), sizeof header});
  std::size_t from = 0;
  while (from < text.size()) {  // chunks of whole lines
    std::size_t end = std::min(from + kFlush, text.size());
    end = end == text.size() ? end : text.find('\n', end) + 1;
    const std::string_view part = std::string_view(text).substr(from, end - from);
    chunk(kTextChunk, static_cast<std::uint32_t>(std::count(part.begin(), part.end(), '\n')), part);
    from = end;
  }
}

void TraceWriter::use_site(Index site) {
  if (site == site_) return;
  site_ = site;
  Index id = 0;
  if (site != kNone) {
    if (site >= site_ids_.size()) site_ids_.resize(site + 1, 0);
    if (site_ids_[site] == 0) {
      site_ids_[site] = ++last_site_id_;
      new_sites_ += site_text(workload_.sites[site]) + '\n';
      ++new_site_count_;
    }
    id = site_ids_[site];
  }
  records_.push_back(make_trace_op(TraceOp::site, id, kSameCpu, 0));
}

void TraceWriter::operation(const TraceOp& op, Index site) {
  ++operations_;
  if (format_ == TraceFormat::text) return put(trace_statement(workload_, names_, op, site) + '\n');
  if (!text_.empty()) flush_text();
  use_site(op.kind() == TraceOp::move || op.kind() == TraceOp::wait ? kNone : site);
  records_.push_back(op);
  if (op.type() != TraceOp::kNoType && op.kind() <= TraceOp::free)
    records_.back().word = trace_word(op.size(), type_ids_[op.type()]);
  if (records_.size() >= kRecords) flush_records();
}

void TraceWriter::statement(const Op& op, const std::string& text) {
  const Index site = op.site;
  if (op.kind == OpKind::type) declare(op.type);
  ++operations_;
  if (format_ == TraceFormat::text) return put(text + '\n');
  if (!records_.empty()) flush_records();
  if (site != kNone) {  // it is declared before the statement names it
    use_site(site);
    records_.clear();
    flush_names();
  }
  site_ = site;
  text_ += text + '\n';
  ++text_lines_;
  if (text_.size() >= kFlush) flush_text();
}

void TraceWriter::flush_names() {
  if (new_site_count_ != 0) chunk(kSitesChunk, new_site_count_, new_sites_);
  new_sites_.clear();
  new_site_count_ = 0;
  std::string text;
  Index count = 0;
  for (; named_ < names_.size(); ++named_) {
    text += names_.text(named_) + '\n';
    ++count;
    if (text.size() < kFlush) continue;
    chunk(kNamesChunk, count, text);
    text.clear();
    count = 0;
  }
  if (count != 0) chunk(kNamesChunk, count, text);
}

void TraceWriter::flush_records() {
  flush_names();
  chunk(kOpsChunk, static_cast<std::uint32_t>(records_.size()),
        {reinterpret_cast<const char*>(records_.data()), records_.size() * sizeof(TraceOp)});
  records_.clear();
}

void TraceWriter::flush_text() {
  flush_names();
  chunk(kTextChunk, text_lines_, text_);
  text_.clear();
  text_lines_ = 0;
}

void TraceWriter::end() {
  if (format_ == TraceFormat::binary) {
    if (!records_.empty()) flush_records();
    if (!text_.empty()) flush_text();
    chunk(kEndChunk, 0, {});
  }
  if (!out_.empty()) sink_(out_);
  out_.clear();
}

}  // namespace dtmalloc::workload
