// SPDX-License-Identifier: BSD-2-Clause
// Traces as users see them: opening, checking, converting.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "workload/read.hpp"
#include "workload/trace_int.hpp"

namespace dtmalloc::workload {

Trace::Impl::Impl(std::unique_ptr<TraceInput> from, std::string name)
    : input(std::move(from)),
      path(std::move(name)),
      file(path == "-" ? "<stdin>" : path),
      parser(file) {
  const std::string_view first = input->window(sizeof kTraceMagic);
  binary = first.starts_with(std::string_view(kTraceMagic, sizeof kTraceMagic));
}

std::optional<Diagnostic> Trace::Impl::read_head() {
  try {
    if (binary)
      read_binary_head();
    else
      read_text_head();
  } catch (ParseError& error) {
    return binary && error.diagnostic.where.line != 0 ? placed(std::move(error.diagnostic))
                                                      : std::move(error.diagnostic);
  }
  return read_failed();
}

std::optional<Diagnostic> Trace::Impl::read_failed() const {
  if (input->error() == 0) return std::nullopt;
  return read_error(path, input->error());
}

const Batch& Trace::Impl::next() {
  begin_batch();
  if (ended_) {
    batch_.last = true;
    return batch_;
  }
  try {
    if (binary)
      next_binary();
    else
      next_text();
  } catch (ParseError& error) {
    Diagnostic& d = error.diagnostic;
    batch_.error = binary && d.where.line != 0 ? placed(std::move(d)) : std::move(d);
    ended_ = batch_.last = true;
  }
  if (used_ != 0) {
    batch_.ops = {ops_.data(), used_};
    batch_.places = {places_.data(), used_};
  }
  return batch_;
}

// Of the line that is being read.
Diagnostic Trace::Impl::placed(Diagnostic d) const {
  d.message += ", at byte " + std::to_string(batch_.offset + from_);
  return d;
}

Diagnostic Trace::Impl::placed(Diagnostic d, const Batch& batch, std::size_t op) const {
  if (!binary) return d;
  const std::uint64_t byte =
      batch.offset + (batch.places.empty() ? op * sizeof(TraceOp) : batch.places[op].from);
  d.message += ", at byte " + std::to_string(byte);
  return d;
}

void Trace::Impl::stand_at(const Batch& batch, std::size_t op, Index site) {
  *line_text = batch.places.empty() ? trace_statement(parser.workload(), names, batch.ops[op], site)
                                    : std::string(batch.text_of(op));
  parser.workload().text = line_text;
  parser.workload().first_line = batch.line_of(op);
}

Op Trace::Impl::statement_of(const Batch& batch, std::size_t op, Index site) {
  stand_at(batch, op, site);
  return parser.line(*line_text, batch.line_of(op)).value_or(Op{});
}

// A number, or one with a minus.
static std::optional<std::int64_t> constant(const Workload& workload, Index index) {
  if (index == kNone) return 0;
  const Expr& expr = workload.exprs[index];
  if (expr.kind == Expr::Kind::number) return expr.number;
  if (expr.kind != Expr::Kind::negate || workload.exprs[expr.a].kind != Expr::Kind::number)
    return std::nullopt;
  return -workload.exprs[expr.a].number;
}

std::optional<Index> Trace::Impl::block_number(const BlockRef& ref) {
  const Workload& workload = parser.workload();
  const auto first = constant(workload, ref.first), second = constant(workload, ref.second);
  if (!first || !second) return std::nullopt;
  const NameDecl& name = workload.names[ref.name];
  return names.number(name.text, name.arity, *first, *second);
}

void Trace::Impl::for_each_block(const Op& op,
                                 const std::function<void(const BlockRef&)>& function) {
  const Workload& workload = parser.workload();
  for (const BlockRef* ref : {&op.source, &op.target})
    if (ref->name != kNone) function(*ref);
  std::vector<Index> rest{op.value.expr, op.extra.expr};
  while (!rest.empty()) {
    const Index index = rest.back();
    rest.pop_back();
    if (index == kNone) continue;
    const Expr& expr = workload.exprs[index];
    const bool asks = expr.kind == Expr::Kind::size || expr.kind == Expr::Kind::domain ||
                      expr.kind == Expr::Kind::is_null;
    if (asks) {
      function({static_cast<Index>(expr.number), expr.a, expr.b});
      continue;
    }
    if (expr.kind >= Expr::Kind::negate && expr.kind <= Expr::Kind::logical_or)
      rest.insert(rest.end(), {expr.b, expr.a});
    rest.insert(rest.end(), expr.args.rbegin(), expr.args.rend());
  }
}

// Blocks get their numbers in the order in which the trace names them.
void Trace::Impl::number_blocks(const Op& op) {
  const Workload& workload = parser.workload();
  for_each_block(op, [&](const BlockRef& ref) {
    if (block_number(ref)) return;
    Diagnostic d = workload.diagnose(
        op, workload.exprs[constant(workload, ref.first) ? ref.second : ref.first], "WL_TRACE",
        "an index of a flat trace is a number");
    throw ParseError{std::move(d)};
  });
}

// --- Trace

Trace::Trace(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trace::~Trace() = default;

Result<std::unique_ptr<Trace>> Trace::open(const std::string& path) {
  auto trace = open_any(path);
  if (trace && !(*trace)->is_binary())
    if (auto wrong = (*trace)->impl_->read_head()) return std::move(*wrong);
  return trace;
}

Result<std::unique_ptr<Trace>> Trace::open_any(const std::string& path) {
  const bool standard = path == "-";
  const int fd = standard ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return read_error(path, errno);
  auto impl = std::make_unique<Impl>(std::make_unique<TraceInput>(fd, !standard), path);
  if (impl->binary)
    if (auto wrong = impl->read_head()) return std::move(*wrong);
  return std::unique_ptr<Trace>(new Trace(std::move(impl)));
}

Result<Workload> Trace::whole_workload() {
  TraceInput& input = *impl_->input;
  std::string text;
  TextCheck check(impl_->path);
  for (std::string_view more = input.window(1); !more.empty(); more = input.window(1)) {
    text += more;
    input.advance(more.size());
    if (auto bad = check.look(text)) return std::move(*bad);
  }
  if (auto failed = impl_->read_failed()) return std::move(*failed);
  return parse(std::move(text), impl_->file);
}

Result<std::unique_ptr<Trace>> Trace::from_memory(std::string_view bytes, std::string name) {
  auto impl = std::make_unique<Impl>(std::make_unique<TraceInput>(bytes), std::move(name));
  if (auto wrong = impl->read_head()) return std::move(*wrong);
  return std::unique_ptr<Trace>(new Trace(std::move(impl)));
}

bool Trace::is_binary() const { return impl_->binary; }
const Workload& Trace::head() const { return impl_->parser.workload(); }

Result<TraceCount> Trace::check() {
  TraceCount count;
  while (true) {
    const Batch& batch = impl_->next();
    for (const TraceOp& op : batch.ops) count.operations += op.kind() != TraceOp::site ? 1 : 0;
    if (batch.error) return *batch.error;
    if (batch.last) break;
  }
  count.bytes = impl_->input->offset();
  count.blocks = impl_->names.size();
  return count;
}

Result<TraceCount> convert(Trace& trace, TraceFormat format, const TraceSink& sink) {
  Trace::Impl& from = trace.impl();
  TraceWriter writer(format, sink, from.parser.workload(), from.names);
  writer.head(from.parser.workload());
  Index site = kNone;
  while (true) {
    const Batch& batch = from.next();
    for (std::size_t i = 0; i < batch.ops.size(); ++i) {
      const TraceOp& op = batch.ops[i];
      if (op.kind() == TraceOp::site) {
        site = op.block == 0 ? kNone : op.block - 1;
      } else if (op.kind() == kOtherStatement) {
        const Op& statement = batch.others[op.block];
        site = statement.site;
        writer.statement(statement, print_statement(from.parser.workload(), statement, {}));
      } else {
        writer.operation(op, site);
      }
    }
    if (batch.error) return *batch.error;
    if (batch.last) break;
  }
  writer.end();
  return TraceCount{writer.operations(), from.input->offset(), from.names.size()};
}

}  // namespace dtmalloc::workload
