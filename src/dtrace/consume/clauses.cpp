// SPDX-License-Identifier: BSD-2-Clause
// The clauses of a program one by one: what they use, enabling some of them, what they took.
// Differs:      dtrace(1) has none of this; it is for who measures what a program costs.
#include <algorithm>
#include <utility>

#include "dtrace/consume/session_impl.hpp"
#include "dtrace/dif/dif_int.hpp"

namespace dtmalloc::dtrace {
namespace {

// What an instruction does to a variable of a program.
struct Access {
  Scope scope;
  bool stores;
};
std::optional<Access> access_of(DifOp op) {
  switch (op) {
    case DifOp::ldgs:
    case DifOp::ldgaa:
      return Access{Scope::global, false};
    case DifOp::stgs:
    case DifOp::stgaa:
      return Access{Scope::global, true};
    case DifOp::ldts:
    case DifOp::ldtaa:
      return Access{Scope::thread, false};
    case DifOp::stts:
    case DifOp::sttaa:
      return Access{Scope::thread, true};
    case DifOp::ldls:
      return Access{Scope::local, false};
    case DifOp::stls:
      return Access{Scope::local, true};
    default:
      return std::nullopt;
  }
}

bool stores_memory(DifOp op) {
  return op == DifOp::stb || op == DifOp::sth || op == DifOp::stw || op == DifOp::stx ||
         op == DifOp::copys;
}

std::string name_of(const VariableDesc& variable) {
  static constexpr const char* kPrefixes[kScopes] = {"", "this->", "self->"};
  return kPrefixes[static_cast<std::size_t>(variable.scope)] + variable.name;
}

void add_variables(ClauseInfo& info, const VerifiedDif& dif, const VariableList& variables) {
  const std::vector<std::uint32_t>& text = dif.object().text;
  const bool writes = std::any_of(text.begin(), text.end(), [](std::uint32_t word) {
    return stores_memory(static_cast<DifOp>(DifWord{word}.op()));
  });
  for (const std::uint32_t instruction : text) {
    const DifWord word{instruction};
    const auto access = access_of(static_cast<DifOp>(word.op()));
    if (!access) continue;
    const VariableDesc* variable = variables.find(access->scope, word.index());
    if (variable == nullptr) continue;  // a built-in one
    const std::string name = name_of(*variable);
    (access->stores ? info.stores : info.reads).insert(name);
    // A member is stored by way of the variable's address.
    if (!access->stores && writes && variable->value.by_ref && !variable->value.is_string)
      info.stores.insert(name);
  }
}

std::string aggregation_name(const AggregationDesc& desc) {
  return desc.name == "_" ? "@" : "@" + desc.name;
}

}  // namespace

std::vector<ClauseInfo> Session::clauses(ProgramId program) const {
  DTM_CHECK(program < impl_->programs.size(), "no such program");
  const CompiledProgram& compiled = impl_->programs[program];
  const ProgramSpace& space = impl_->space;
  std::vector<ClauseInfo> result;
  for (const Clause& clause : compiled.program->clauses) {
    ClauseInfo info;
    info.description = clause.description;
    info.where = clause.where;
    info.predicate = clause.predicate.has_value();
    const auto add = [&](const VerifiedDif& dif) { add_variables(info, dif, space.variables); };
    if (clause.predicate) add(*clause.predicate);
    for (const Action& action : clause.actions) {
      action.for_each_dif(add);
      info.actions.push_back(action.kind == ActionKind::aggregate
                                 ? aggregation_name(space.aggregations.at(action.aggregation - 1))
                                 : std::string(action_name(action.kind)));
    }
    result.push_back(std::move(info));
  }
  return result;
}

std::shared_ptr<const Program> Session::Impl::chosen(CompiledProgram& compiled,
                                                     const ClauseChoice& choice) {
  const std::vector<Clause>& clauses = compiled.program->clauses;
  compiled.enabled.assign(clauses.size(), nullptr);
  if (!choice) {
    std::transform(clauses.begin(), clauses.end(), compiled.enabled.begin(),
                   [](const Clause& clause) { return &clause; });
    return compiled.program;
  }
  auto result = std::make_shared<Program>();
  std::vector<std::size_t> origins;
  for (std::size_t i = 0; i < clauses.size(); ++i) {
    if (!choice(i, std::nullopt)) continue;
    Clause clause = clauses[i];
    const bool had_actions = !clause.actions.empty();
    clause.actions.clear();
    for (std::size_t a = 0; a < clauses[i].actions.size(); ++a)
      if (choice(i, a)) clause.actions.push_back(clauses[i].actions[a]);
    // A clause without any action would record its firing.
    if (had_actions && clause.actions.empty()) clause.actions.emplace_back();
    result->clauses.push_back(std::move(clause));
    origins.push_back(i);
  }
  for (std::size_t i = 0; i < origins.size(); ++i)
    compiled.enabled[origins[i]] = &result->clauses[i];
  return result;
}

TraceFigures Session::figures() const {
  TraceFigures figures;
  const Consumer& consumer = impl_->consumer;
  figures.bufsize = consumer.config.bufsize;
  figures.aggsize = consumer.config.aggsize;
  figures.switchrate = impl_->switch_rate();
  figures.aggrate = impl_->aggregation_rate();
  figures.switches = impl_->reads_buffers();
  figures.aggregation_room = AggBuffer::room(figures.aggsize);
  figures.drops = impl_->drop_totals;
  for (ProgramId program = 0; program < impl_->programs.size(); ++program) {
    const std::vector<const Clause*>& enabled = impl_->programs[program].enabled;
    for (std::size_t i = 0; i < enabled.size(); ++i) {
      if (enabled[i] == nullptr) continue;
      const auto found = impl_->took.find(enabled[i]);
      TraceFigures::Clause clause{program, i, 0, 0};
      if (found != impl_->took.end()) {
        clause.size = found->second.size;
        clause.records = found->second.records;
      }
      figures.clauses.push_back(clause);
    }
  }
  for (const auto& [id, table] : impl_->aggregations.tables()) {
    TraceFigures::Aggregation aggregation{aggregation_name(table.desc), table.elements.size(), 0};
    for (const auto& [key, element] : table.elements)
      aggregation.bytes += AggBuffer::element_bytes(key.size(), table.spec.words);
    figures.aggregations.push_back(std::move(aggregation));
  }
  return figures;
}

void Session::Impl::collect_figures() {
  for (std::uint32_t epid = 1; const Ecb* ecb = consumer.ecb(epid); ++epid) {
    if (ecb->clause == nullptr) continue;
    Took& clause = took[ecb->clause];
    clause.size = std::max(clause.size, ecb->size);
    clause.records += ecb->records_read;
  }
}

}  // namespace dtmalloc::dtrace
