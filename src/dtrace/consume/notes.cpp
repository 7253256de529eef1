// SPDX-License-Identifier: BSD-2-Clause
// What became of a run, where dtrace(1) leaves it to be found out: buffers that filled, run-time
// errors added up, stacks that were cut, the variables whose stores were dropped.
// Differs:      dtrace(1) has none of this; `dtmalloc run` prints it, full buffers everybody.
#include "dtrace/consume/session_impl.hpp"

namespace dtmalloc::dtrace {
namespace {

std::string plural(std::uint64_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// `self->x[]`
std::string as_written(const VariableDesc& variable) {
  return (variable.scope == Scope::thread ? "self->" : "") + variable.name +
         (variable.array ? "[]" : "");
}

std::string dropped(const VariableDesc& variable, const DynamicSpace::Drops& drops) {
  std::string text = as_written(variable) + ": " +
                     plural(drops.empty + drops.rinsing + drops.dirty, "dynamic variable drop");
  if (drops.rinsing != 0)
    text += ", " + std::to_string(drops.rinsing) + " with non-empty rinsing list";
  if (drops.dirty != 0) text += ", " + std::to_string(drops.dirty) + " with non-empty dirty list";
  return text;
}

}  // namespace

void Session::Impl::tell_full_buffers() {
  // The policy counts no drops.
  const std::vector<int> full = consumer.full_cpus();
  if (full.empty()) return;
  lost_records = true;
  std::string text = full.size() == 1 ? "the buffer of CPU " : "the buffers of CPUs ";
  for (std::size_t i = 0; i < full.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(full[i]);
  remark(text + (full.size() == 1 ? " is" : " are") +
         " full (bufpolicy=fill): nothing more was recorded there, and no drops are counted");
}

void Session::Impl::collect_notes() {
  std::map<const Clause*, std::size_t> cut;  // the clause's deepest stack
  for (std::uint32_t epid = 1; const Ecb* ecb = consumer.ecb(epid); ++epid) {
    if (ecb->errors != 0) {
      notes.push_back(plural(ecb->errors, "error") + " on " + enabled_probe(*ecb));
    }
    const std::size_t deepest = ecb->cut.load(std::memory_order_relaxed);
    if (deepest != 0 && ecb->clause != nullptr)
      cut[ecb->clause] = std::max(cut[ecb->clause], deepest);
  }
  for (const CompiledProgram& compiled : programs) {
    for (const Clause& clause : compiled.program->clauses) {
      const auto found = cut.find(&clause);
      if (found == cut.end()) continue;
      const std::string depth = std::to_string(found->second);
      notes.push_back("stack() of " + to_string(clause.description) + " shows " +
                      plural(consumer.config.stackframes, "frame") + " of up to " + depth +
                      (options.is_set("stackframes") ? "" : ", the default") +
                      ": stackframes=" + depth + " shows all");
    }
  }
  for (const VariableDesc& variable : space.variables) {
    const DynamicSpace::Drops drops = consumer.drops(variable);
    if (drops.empty + drops.rinsing + drops.dirty != 0) notes.push_back(dropped(variable, drops));
  }
}

std::vector<std::string> Session::notes() const { return impl_->notes; }

}  // namespace dtmalloc::dtrace
