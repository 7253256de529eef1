// SPDX-License-Identifier: BSD-2-Clause
// Consumers: from clauses to ECBs, activity, and the passes over the buffers.
// Counterpart:  dtrace.c (dtrace_ecb_*, dtrace_state_*, dtrace_enabling_match)
// Locking:      Framework::Impl::mutex in every public function but the passes, which stop one CPU
//               at a time.
#include "dtrace/core/consumer.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

namespace dtmalloc::dtrace {
namespace {

// Where consumers' states would lie in a kernel: what arg0 of BEGIN shows.
constexpr std::uint64_t kCookieBase = 0xfffffe0fff000000;

// How long a consumer may be late before the deadman kills it.
constexpr std::uint64_t kDeadmanTimeout = 10 * std::uint64_t{1000000000};

std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

// Natural alignment of a datum in a record.
std::uint32_t datum_alignment(const ValueDesc& desc, std::uint32_t size) {
  if (desc.by_ref && desc.is_string) return 1;
  for (std::uint32_t alignment = 8; alignment > 1; alignment /= 2) {
    if (size % alignment == 0) return alignment;
  }
  return 1;
}

// How a value gets into the record.
StepKind step_kind(const ValueDesc& desc) {
  switch (desc.form) {
    case ValueForm::plain:
    case ValueForm::sym:
    case ValueForm::mod:
      break;
    case ValueForm::stack:
      return StepKind::stack;
    case ValueForm::ustack:
      return StepKind::ustack;
    case ValueForm::usym:
    case ValueForm::umod:
    case ValueForm::uaddr:
      return StepKind::user_address;
  }
  if (!desc.by_ref) return StepKind::store;
  if (desc.userland) return StepKind::store_user;
  return desc.is_string ? StepKind::store_string : StepKind::store_bytes;
}

// Lays out a record while an ECB is made.
class RecordLayout {
 public:
  explicit RecordLayout(Ecb& ecb) : ecb_(ecb) {}
  std::uint32_t place(std::uint32_t size, std::uint32_t alignment) {
    used_ = align_up(used_, alignment);
    const auto offset = static_cast<std::uint32_t>(used_);
    used_ += size;
    if (alignment == 8) ecb_.alignment = 8;
    records_ = true;
    return offset;
  }
  void tuple(std::uint64_t size) { tuple_ = std::max(tuple_, size); }
  // `records`: even without a datum.
  void finish(bool records) {
    used_ = align_up(used_, 4);
    const std::uint64_t tuple_at = align_up(used_, 8);
    const std::uint64_t needed = tuple_ > 0 ? tuple_at + align_up(tuple_, 4) : used_;
    if (needed > std::numeric_limits<std::uint32_t>::max()) {
      // Offsets are 32 bits wide.
      ecb_.needed = kNeverFits;
      return;
    }
    ecb_.size = records_ || records ? static_cast<std::uint32_t>(used_) : 0;
    ecb_.tuple = static_cast<std::uint32_t>(tuple_at);
    ecb_.needed = needed;
  }

 private:
  Ecb& ecb_;
  std::uint64_t used_ = kRecordHeader;
  std::uint64_t tuple_ = 0;
  bool records_ = false;
};

bool calls(const Clause& clause, std::uint32_t subroutine) {
  bool found = clause.predicate && clause.predicate->calls(subroutine);
  for (const Action& action : clause.actions) {
    action.for_each_dif([&](const VerifiedDif& dif) { found = found || dif.calls(subroutine); });
  }
  return found;
}

bool is_destructive(const Clause& clause) {
  return calls(clause, kSubrCopyout) || calls(clause, kSubrCopyoutstr) ||
         std::any_of(clause.actions.begin(), clause.actions.end(),
                     [](const Action& action) { return is_destructive(action.kind); });
}

// What a statement without data does.
StepKind step_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::speculate:
      return StepKind::speculate;
    case ActionKind::commit:
      return StepKind::commit;
    case ActionKind::discard:
      return StepKind::discard;
    case ActionKind::panic:
      return StepKind::panic;
    case ActionKind::breakpoint:
      return StepKind::breakpoint;
    case ActionKind::chill:
      return StepKind::chill;
    case ActionKind::raise:
      return StepKind::raise;
    case ActionKind::stop:
      return StepKind::stop;
    default:
      return StepKind::eval;
  }
}

}  // namespace

Consumer::Consumer(Framework::Impl& framework)
    : framework_(framework), cleaner_(framework.cpus.clock()) {
  watch_.overdue = [this] { overdue(); };
  const std::lock_guard lock(framework_.mutex);
  cookie_ = kCookieBase + framework_.consumers_made++ * 0x1000;
  framework_.consumers.push_back(this);
}

Consumer::~Consumer() {
  cleaner_.cancel();
  const std::lock_guard lock(framework_.mutex);
  close();
  std::erase(framework_.consumers, this);
}

const Ecb* Consumer::ecb(std::uint32_t epid) const {
  const std::lock_guard lock(framework_.mutex);
  return epid == 0 || epid > ecbs_.size() ? nullptr : ecbs_[epid - 1].get();
}

std::unique_ptr<Ecb> Consumer::make_ecb(const std::shared_ptr<const Program>& program,
                                        const Clause& clause,
                                        const std::vector<AggregationDesc>& aggregations,
                                        Probe& probe) {
  auto ecb = std::make_unique<Ecb>();
  ecb->consumer = this;
  ecb->probe = &probe;
  ecb->program = program;
  ecb->clause = &clause;
  if (probe.id == framework_.begin) ecb->role = EcbRole::begin;
  if (probe.id == framework_.end) ecb->role = EcbRole::end;
  if (probe.id == framework_.error) ecb->role = EcbRole::error;
  if (clause.predicate) ecb->predicate = &*clause.predicate;
  ecb->tokens = calls(clause, kSubrStrtok);
  RecordLayout layout(*ecb);
  const auto recorded_size = [this](const ValueDesc& desc) {
    return desc.is_string ? config.strsize : desc.size;
  };
  const auto store = [&](const Value& value, std::uint32_t index, RecordedAction& recorded) {
    Step step;
    step.dif = &value.dif;
    step.index = index;
    step.size = recorded_size(value.desc);
    step.offset = layout.place(step.size, datum_alignment(value.desc, step.size));
    step.kind = step_kind(value.desc);
    recorded.fields.push_back({step.offset, step.size, value.desc});
    ecb->steps.push_back(std::move(step));
  };
  const auto store_constant = [&](std::uint64_t constant, std::uint32_t index,
                                  RecordedAction& recorded) {
    Step step;
    step.kind = StepKind::constant;
    step.constant = constant;
    step.index = index;
    step.size = 4;
    step.offset = layout.place(4, 4);
    recorded.fields.push_back({step.offset, 4, {}});
    ecb->steps.push_back(std::move(step));
  };
  for (const Action& action : clause.actions) {
    RecordedAction recorded{&action, {}};
    std::uint32_t index = action.first_index;
    switch (action.kind) {
      case ActionKind::eval:
        for (const Value& value : action.values) {
          Step step;
          step.dif = &value.dif;
          step.index = index++;
          ecb->steps.push_back(std::move(step));
        }
        break;
      case ActionKind::speculate:
      case ActionKind::commit:
      case ActionKind::discard:
      case ActionKind::panic:
      case ActionKind::breakpoint:
      case ActionKind::chill:
      case ActionKind::raise:
      case ActionKind::stop: {
        Step step;
        step.kind = step_of(action.kind);
        step.index = index;
        if (!action.values.empty()) step.dif = &action.values[0].dif;
        speculates_ = speculates_ || action.kind == ActionKind::speculate;
        ecb->steps.push_back(std::move(step));
        break;
      }
      case ActionKind::ftruncate:
        store_constant(0, index, recorded);
        break;
      case ActionKind::setopt:
      case ActionKind::system:
      case ActionKind::freopen:
      case ActionKind::trace:
      case ActionKind::print:
      case ActionKind::tracemem:
      case ActionKind::printf:
        for (const Value& value : action.values) store(value, index++, recorded);
        if (action.values.empty()) layout.place(0, 1);  // a printf of literal text
        break;
      case ActionKind::printm:
        store(action.values.at(0), index, recorded);
        ecb->steps.back().kind = StepKind::store_memory;
        break;
      case ActionKind::exit:
        store(action.values.at(0), index, recorded);
        ecb->steps.back().kind = StepKind::exit;
        break;
      case ActionKind::printa:
        for (const std::uint32_t id : action.printed) store_constant(id, index++, recorded);
        break;
      case ActionKind::clear:
      case ActionKind::denormalize:
      case ActionKind::trunc:
      case ActionKind::normalize:
        store_constant(action.aggregation, index++, recorded);
        for (const Value& value : action.values) store(value, index++, recorded);
        break;
      case ActionKind::aggregate: {
        Step step;
        step.kind = StepKind::aggregate;
        step.aggregation = AggSpec::of(aggregations.at(action.aggregation - 1));
        step.index = index;
        std::uint64_t size = 4;  // the aggregation's id
        for (const Value& value : action.values) {
          KeyStep key{&value.dif, value.desc, recorded_size(value.desc)};
          size = align_up(size, datum_alignment(key.desc, key.size)) + key.size;
          step.keys.push_back(key);
        }
        if (action.argument) step.argument = &action.argument->dif;
        if (action.increment) step.increment = &action.increment->dif;
        layout.tuple(align_up(size, 8) + 8);
        has_aggregations_ = true;
        ecb->steps.push_back(std::move(step));
        break;
      }
      default:
        DTM_CHECK(false, "an action without steps");
    }
    if (action.kind != ActionKind::eval && action.kind != ActionKind::aggregate &&
        step_of(action.kind) == StepKind::eval) {
      ecb->recorded.push_back(std::move(recorded));
    }
  }
  layout.finish(clause.actions.empty() ||
                (clause.actions.size() == 1 && clause.actions[0].kind == ActionKind::speculate));
  return ecb;
}

void Consumer::attach(std::unique_ptr<Ecb> ecb, Probe& probe) {
  ecb->first_tokens =
      ecb->tokens && std::none_of(probe.entries.begin(), probe.entries.end(), [&](const auto& had) {
        return had.consumer == this && had.ecb->tokens;
      });
  ecb->epid = static_cast<std::uint32_t>(ecbs_.size() + 1);
  framework_.know_arguments(probe);
  auto quick = quick_clause(*ecb, probe, framework_);
  if (quick != nullptr && quick->memos() > memo_limit_ - memos_) quick = nullptr;
  const auto take_memos = [this](std::uint32_t count) {
    memos_ += count;
    return static_cast<std::uint32_t>((memos_ - count) * sizeof(QuickMemo));
  };
  if (quick != nullptr) {
    for (QuickStep& step : quick->steps) step.memo = take_memos(step.memos());
  } else {
    for (Step& step : ecb->steps) {
      step.has_memo = step.kind == StepKind::aggregate && memos_ < memo_limit_;
      if (step.has_memo) step.memo = take_memos(1);
    }
  }
  ecb->quick = std::move(quick);
  ChainEntry entry;
  entry.fire = ecb->quick != nullptr ? ecb->quick->fire
               : ecb->first_tokens   ? &Consumer::fire_first_callback
                                     : &Consumer::fire_callback;
  entry.context = ecb.get();
  if (ecb->quick != nullptr) entry.context = ecb->quick.get();
  entry.ecb = ecb.get();
  entry.consumer = this;
  know_size(*ecb);
  ecbs_.push_back(std::move(ecb));
  probe.entries.push_back(entry);
}

void Consumer::know_size(const Ecb& ecb) {
  if (size_tables_.empty() || ecb.epid >= size_tables_.back().size()) {
    std::vector<std::uint32_t> next(std::max<std::size_t>(64, std::size_t{ecb.epid} * 2));
    if (!size_tables_.empty()) {
      std::copy(size_tables_.back().begin(), size_tables_.back().end(), next.begin());
    }
    size_tables_.push_back(std::move(next));
  }
  size_tables_.back()[ecb.epid] = ecb.size;
  record_sizes_.store(size_tables_.back().data(), std::memory_order_release);
}

std::size_t Consumer::add_ecbs(const RetainedProgram& retained, ProbeId after) {
  std::vector<Probe*> touched;
  std::size_t pairs = 0;
  for (const Clause& clause : retained.program->clauses) {
    const std::vector<ProbeId> ids = after == 0
                                         ? framework_.match(clause.description)
                                         : framework_.match_existing(clause.description, after);
    destructive_ = destructive_ || (!ids.empty() && is_destructive(clause));
    for (const ProbeId id : ids) {
      Probe& probe = *framework_.probe(id);
      attach(make_ecb(retained.program, clause, retained.aggregations, probe), probe);
      touched.push_back(&probe);
      ++pairs;
    }
  }
  std::sort(touched.begin(), touched.end(),
            [](const Probe* a, const Probe* b) { return a->id < b->id; });
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  if (activity() != Activity::inactive) {
    framework_.publish_added(touched);
    return pairs;
  }
  // Nothing fires before go(): a chain that grows with every program is published there, once.
  for (Probe* probe : framework_.publish_new(touched)) unpublished_.insert(probe->id);
  return pairs;
}

std::size_t Consumer::enable(std::shared_ptr<const Program> program, const ProgramSpace& space) {
  const std::lock_guard lock(framework_.mutex);
  for (const Clause& clause : program->clauses) {
    has_tokens_ = has_tokens_ || calls(clause, kSubrStrtok);
  }
  RetainedProgram retained{std::move(program), space.aggregations, 0};
  const std::size_t pairs = add_ecbs(retained, 0);
  retained.seen = static_cast<ProbeId>(framework_.probes.size());
  programs_.push_back(std::move(retained));
  return pairs;
}

void Consumer::match_new_probes() {
  const auto last = static_cast<ProbeId>(framework_.probes.size());
  for (RetainedProgram& retained : programs_) {
    if (retained.seen == last) continue;
    const ProbeId after = std::exchange(retained.seen, last);
    if (after > 0) add_ecbs(retained, after);
  }
}

std::vector<std::string> Consumer::notes() const {
  const std::lock_guard lock(framework_.mutex);
  std::vector<std::string> result;
  for (const auto& [probe, texts] : framework_.notes) {
    const bool enabled = std::any_of(
        ecbs_.begin(), ecbs_.end(), [id = probe](const auto& ecb) { return ecb->probe->id == id; });
    if (!enabled) continue;
    for (const std::string& text : texts) {
      if (std::find(result.begin(), result.end(), text) == result.end()) result.push_back(text);
    }
  }
  for (const auto& provider : framework_.providers) {
    if (provider->invalid) continue;
    for (const Provider::Missing& missing : provider->ops->missing()) {
      if (wants(missing.probe) &&
          std::find(result.begin(), result.end(), missing.note) == result.end()) {
        result.push_back(missing.note);
      }
    }
  }
  return result;
}

bool Consumer::wants(const ProbeDescription& probe) const {
  for (const RetainedProgram& retained : programs_) {
    for (const Clause& clause : retained.program->clauses) {
      const ProbeDescription& wanted = clause.description;
      if (wanted.id == kNoProbe && glob_match(wanted.provider, probe.provider) &&
          glob_match(wanted.module, probe.module) && glob_match(wanted.function, probe.function) &&
          glob_match(wanted.name, probe.name)) {
        return true;
      }
    }
  }
  return false;
}

bool Consumer::attach_hidden_error() {
  Probe* probe = framework_.probe(framework_.error);
  if (probe == nullptr) return false;
  auto ecb = std::make_unique<Ecb>();
  ecb->consumer = this;
  ecb->probe = probe;
  ecb->role = EcbRole::hidden_error;
  RecordLayout layout(*ecb);
  RecordedAction recorded;
  for (std::uint64_t argument = 1; argument <= 5; ++argument) {
    Step step;
    step.kind = StepKind::argument;
    step.constant = argument;
    step.size = 8;
    step.offset = layout.place(8, 8);
    recorded.fields.push_back({step.offset, 8, {}});
    ecb->steps.push_back(std::move(step));
  }
  layout.finish(false);
  ecb->recorded.push_back(std::move(recorded));
  attach(std::move(ecb), *probe);
  framework_.publish_added({probe});
  has_hidden_error_ = true;
  return true;
}

ConsumerCpu* Consumer::join(Cpu& cpu, std::size_t** refused) {
  const std::lock_guard lock(join_mutex_);
  auto& slot = cpus_[static_cast<std::size_t>(cpu.id)];
  if (ConsumerCpu* state = slot.load(std::memory_order_relaxed); state != nullptr) return state;
  const auto refuse = [&](std::size_t* size) {
    if (refused != nullptr) *refused = size;
    return nullptr;
  };
  auto state = std::make_unique<ConsumerCpu>();
  if (config.cpu < 0 || config.cpu == cpu.id) {
    if (!state->buffer.reserve(config.bufsize, config.policy)) return refuse(&config.bufsize);
    if (has_aggregations_ && !state->aggregations.reserve(config.aggsize)) {
      return refuse(&config.aggsize);
    }
    state->buffer.kept_for_end = end_needs();
  }
  if (!state->speculative.reserve(speculations_.count(), speculates_ ? config.specsize : 0)) {
    return refuse(speculates_ ? &config.specsize : nullptr);
  }
  const Activity now = activity();
  if (now != Activity::inactive && now != Activity::warmup) {
    state->buffer.turn_on();
    state->buffer.want(Wanted::passes);
  }
  if (!state->local_bytes.reserve(local_layout_.size)) return refuse(nullptr);
  state->locals.resize(local_layout_.slots.size());
  if (!state->memos.reserve(memo_limit_ * sizeof(QuickMemo))) return refuse(nullptr);
  if (!state->global_view.reserve(global_layout_.size)) return refuse(nullptr);
  if (has_tokens_ && !state->strtok_text.reserve(std::size_t{2} * config.strsize)) {
    return refuse(nullptr);
  }
  DifState& dif = state->dif;
  if (dynamic_.reserved()) {
    if (!state->dynamic.join(dynamic_, cpu.id)) return refuse(nullptr);
    dif.dynamic = &state->dynamic;
  }
  dif.addresses = &framework_.addresses;
  dif.strsize = config.strsize;
  dif.globals = globals_.data();
  dif.shared_bytes = global_bytes_.data();
  dif.global_bytes = state->global_view.data();
  dif.global_slots = global_layout_.slots.data();
  dif.global_size = global_layout_.size;
  dif.strings = strings_.data();
  dif.strings_size = strings_.size();
  dif.strtok_text = state->strtok_text.data();
  dif.thread_view = reinterpret_cast<std::byte*>(&state->thread);
  dif.locals = state->locals.data();
  dif.local_bytes = state->local_bytes.data();
  dif.speculation = &speculation;
  dif.local_slots = local_layout_.slots.data();
  dif.local_size = local_layout_.size;
  dif.random = 0x9e3779b97f4a7c15 + static_cast<std::uint64_t>(cpu.id);
  ConsumerCpu* made = state.get();
  cpu_states_.push_back(std::move(state));
  slot.store(made, std::memory_order_release);
  return made;
}

// The buffers of every CPU: with `resize` a size is halved until the host grants it.
int Consumer::reserve_all() {
  memo_limit_ = memos_ + kSpareMemos;
  std::size_t need = 0;  // of a firing on an empty buffer
  std::size_t hidden = 0;
  for (const auto& ecb : ecbs_) {
    std::size_t& most = ecb->role == EcbRole::hidden_error ? hidden : need;
    most = std::max(most, ecb->needed);
  }
  if (need == kNeverFits) return ENOSPC;
  const auto whole_words = [](std::size_t size) { return size & ~std::size_t{7}; };
  if (has_aggregations_) {
    config.bufsize = std::max({config.bufsize, need + 7, hidden + 7});
    config.aggsize = whole_words(config.aggsize);
    if (config.aggsize < kSmallestBuffer) return ENOSPC;
  }
  config.bufsize = whole_words(config.bufsize);
  config.specsize = whole_words(config.specsize);
  if (config.bufsize < std::max(need, kSmallestBuffer)) return ENOSPC;
  if (speculates_ && config.specsize < kSmallestBuffer) return ENOSPC;
  const auto join_all = [this](std::size_t** refused) {
    for (int id = 0; id < framework_.cpus.count(); ++id) {
      if (join(framework_.cpus.cpu(id), refused) == nullptr) return false;
    }
    return true;
  };
  std::size_t* refused = nullptr;
  while (true) {
    if (config.bufsize < end_needs()) return E2BIG;
    if (join_all(&refused)) break;
    for (auto& slot : cpus_) slot.store(nullptr, std::memory_order_relaxed);
    cpu_states_.clear();
    if (refused == nullptr || !config.resize) return ENOMEM;
    *refused = whole_words(*refused / 2);
    const std::size_t least = refused == &config.bufsize ? need : 0;
    if (*refused < std::max(least, kSmallestBuffer)) return ENOMEM;
  }
  return 0;
}

// The space of dynamic variables, if a program stores one: with `resize` its size is halved until
// the host grants it.
int Consumer::reserve_dynamic(const ProgramSpace& space) {
  std::size_t chunk = 0;
  const auto look = [&chunk](const VerifiedDif& dif) { chunk = std::max(chunk, dif.chunk_size()); };
  for (const RetainedProgram& retained : programs_) {
    for (const Clause& clause : retained.program->clauses) {
      if (clause.predicate) look(*clause.predicate);
      for (const Action& action : clause.actions) {
        for (const Value& value : action.values) look(value.dif);
        if (action.argument) look(action.argument->dif);
        if (action.increment) look(action.increment->dif);
      }
    }
  }
  if (chunk == 0) return 0;
  const std::size_t variables = std::max(space.globals, space.threads);
  while (!dynamic_.reserve(config.dynvarsize, chunk, framework_.cpus.count(), variables)) {
    if (!config.resize || config.dynvarsize / 2 < chunk) return ENOMEM;
    config.dynvarsize /= 2;
  }
  dynamic_.when_dirty([this] { cleaner_.request(); });
  return 0;
}

int Consumer::home_cpu() const {
  return config.cpu >= 0 && config.cpu < framework_.cpus.count() ? config.cpu : 0;
}

std::size_t Consumer::end_needs() const {
  std::size_t needs = 0;
  if (config.policy == BufferPolicy::switch_) return needs;
  for (const auto& ecb : ecbs_) {
    if (ecb->role == EcbRole::end) needs += ecb->needed + ecb->alignment;
  }
  return needs;
}

int Consumer::go(const ProgramSpace& space, SimThread* thread) {
  const std::lock_guard lock(framework_.mutex);
  if (activity() != Activity::inactive) return EBUSY;
  if (!has_hidden_error_ && !attach_hidden_error()) return ENXIO;
  if (destructive_ && !config.destructive) return EACCES;
  globals_.assign(space.globals, 0);
  global_layout_ = lay_out_variables(space.variables, Scope::global, config.strsize);
  local_layout_ = lay_out_variables(space.variables, Scope::local, config.strsize);
  // What has no place among the addresses of variables has none in memory.
  if (global_layout_.size > kLocalBase - kVariableBase ||
      local_layout_.size > kDynamicBase - kLocalBase) {
    return ENOMEM;
  }
  if (!global_bytes_.reserve(global_layout_.size)) return ENOMEM;
  strings_ = space.strings;
  if (!speculations_.reserve(config.nspec)) return ENOMEM;
  if (const int error = reserve_dynamic(space); error != 0) return error;
  if (const int error = reserve_all(); error != 0) return error;
  std::vector<Probe*> grown;
  for (const ProbeId id : std::exchange(unpublished_, {})) {
    if (Probe* probe = framework_.probe(id); probe != nullptr) grown.push_back(probe);
  }
  framework_.publish_added(grown);
  config.cleanrate = std::clamp(config.cleanrate, kFastestCleanRate, kSlowestCleanRate);
  cleaner_.start(config.cleanrate, [this] { clean(); });
  become(Activity::warmup);
  Cpu& cpu = framework_.cpus.cpu(home_cpu());
  const std::uint64_t arguments[6] = {cookie_, 0, 0, 0, 0, 0};
  framework_.cpus.run_on_cpu(cpu, [&] {
    cpu_state(cpu)->buffer.turn_on();
    framework_.fire_for(*this, framework_.begin, cpu, thread, arguments);
  });
  Activity expected = Activity::warmup;
  activity_.compare_exchange_strong(expected, Activity::active, std::memory_order_acq_rel);
  framework_.forget_lines();
  framework_.cpus.run_on_each_cpu([this](Cpu& other) {
    if (ConsumerCpu* state = cpu_state(other); state != nullptr) state->buffer.turn_on();
  });
  return 0;
}

// Firings that know their line do not look at the activity.
void Consumer::become(Activity activity) {
  activity_.store(activity, std::memory_order_release);
  framework_.forget_lines();
}

void Consumer::hear_until(std::uint64_t time) {
  if (!config.destructive) {
    watch_.deadline.store(time + kDeadmanTimeout, std::memory_order_relaxed);
  }
}

bool Consumer::rest() {
  bool fired = false;
  for (int cpu = 0; cpu < framework_.cpus.count(); ++cpu) {
    ConsumerCpu* state = cpus_[static_cast<std::size_t>(cpu)].load(std::memory_order_acquire);
    if (state == nullptr) continue;
    framework_.cpus.run_on_cpu(framework_.cpus.cpu(cpu), [&] {
      if (state->buffer.on && state->buffer.want(Wanted::passes)) fired = true;
    });
  }
  return fired;
}

void Consumer::overdue() {
  for (auto& slot : cpus_) {
    ConsumerCpu* state = slot.load(std::memory_order_acquire);
    if (state != nullptr) state->buffer.want(Wanted::deadman);
  }
}

Consumer::Status Consumer::status(std::uint64_t interval) {
  hear_until(framework_.cpus.clock().now() + interval);
  Status status;
  status.busy_speculations = speculations_.busy();
  status.unavailable_speculations = speculations_.unavailable();
  const DynamicSpace::Drops drops = dynamic_.drops();
  status.dynamic_drops = drops.empty;
  status.rinsing_drops = drops.rinsing;
  status.dirty_drops = drops.dirty;
  status.error_drops = error_drops_.load(std::memory_order_relaxed);
  for (int cpu = 0; cpu < framework_.cpus.count(); ++cpu) {
    ConsumerCpu* state = cpus_[static_cast<std::size_t>(cpu)].load(std::memory_order_acquire);
    if (state == nullptr) continue;
    status.speculative_drops += racy_read(state->speculative.dropped);
    status.filled = status.filled || state->buffer.filled.load(std::memory_order_relaxed);
  }
  return status;
}

std::vector<int> Consumer::full_cpus() const {
  std::vector<int> full;
  for (int cpu = 0; cpu < framework_.cpus.count(); ++cpu) {
    ConsumerCpu* state = cpus_[static_cast<std::size_t>(cpu)].load(std::memory_order_acquire);
    if (state != nullptr && state->buffer.filled.load(std::memory_order_relaxed))
      full.push_back(cpu);
  }
  return full;
}

void Consumer::clean() {
  const std::lock_guard lock(framework_.mutex);
  clean_speculations();
  if (dynamic_.clean([this] { framework_.cpus.synchronize(); })) cleaner_.request();
}

void Consumer::stop(SimThread* thread) {
  const std::lock_guard lock(framework_.mutex);
  const Activity now = activity();
  if (now != Activity::active && now != Activity::draining && now != Activity::warmup) return;
  become(Activity::draining);
  framework_.cpus.synchronize();
  // DEVIATES: parts that other CPUs have still to commit are not lost when tracing ends before the
  // cleaner's next pass: a load that takes no time leaves it none.
  if (cleaner_.requested()) clean_speculations();
  become(Activity::cooldown);
  Cpu& cpu = framework_.cpus.cpu(home_cpu());
  const std::uint64_t arguments[6] = {cookie_, 0, 0, 0, 0, 0};
  framework_.cpus.run_on_cpu(cpu, [&] {
    cpu_state(cpu)->buffer.ending = true;
    framework_.fire_for(*this, framework_.end, cpu, thread, arguments);
  });
  become(Activity::stopped);
}

void Consumer::close() {
  const std::lock_guard lock(framework_.mutex);
  programs_.clear();
  unpublished_.clear();
  std::vector<ProbeId> ids;
  for (const auto& ecb : ecbs_) ids.push_back(ecb->probe->id);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (ids.empty()) return;
  framework_.remove(ids, [this](const ChainEntry& entry) { return entry.consumer == this; });
  ecbs_.clear();
}

Consumer::Taken Consumer::take_records(int cpu) {
  Taken taken;
  ConsumerCpu* state = cpus_[static_cast<std::size_t>(cpu)].load(std::memory_order_acquire);
  if (state == nullptr) return taken;
  framework_.cpus.run_on_cpu(framework_.cpus.cpu(cpu), [&] {
    taken.records = state->buffer.take();
    taken.time = framework_.cpus.clock().now();
  });
  return taken;
}

std::uint64_t Consumer::take_aggregations(
    int cpu, const std::function<void(const AggBuffer::Element&)>& function) {
  ConsumerCpu* state = cpus_[static_cast<std::size_t>(cpu)].load(std::memory_order_acquire);
  if (state == nullptr) return 0;
  std::uint64_t drops = 0;
  framework_.cpus.run_on_cpu(framework_.cpus.cpu(cpu), [&] {
    state->aggregations.exchange();
    FiringCpu* firing =
        framework_.firing[static_cast<std::size_t>(cpu)].load(std::memory_order_acquire);
    if (firing != nullptr) firing->forget();
    drops = state->aggregations.drops;
  });
  state->aggregations.visit(function);
  return drops;
}

}  // namespace dtmalloc::dtrace
