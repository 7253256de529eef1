// SPDX-License-Identifier: BSD-2-Clause
// Remarks on what a kernel takes without a word and nobody means, made once before the run.
// Differs:      DEVIATES: a kernel says none of this; we do, beside its console, because a run that
//               guards nothing or that only a kernel without INVARIANTS survives looks like a good
//               one

#include <algorithm>

#include "workload/parser.hpp"
#include "workload/runner.hpp"

namespace dtmalloc::workload {
namespace {

constexpr std::size_t kMostNotes = 10;  // on flags; a trace has millions

bool asserts_wait_flags(OpKind kind) {
  return kind >= OpKind::malloc && kind <= OpKind::contigmalloc_domainset &&
         kind != OpKind::contigmalloc && kind != OpKind::contigmalloc_domainset;
}

}  // namespace

// Whether vm.memguard.desc names anything that this run has.
void Runner::State::note_guarded(Diagnostic d, const std::string& name) const {
  if (name.empty()) return;
  std::vector<std::string> known = zone_names(), near;
  for (const TypeDecl& type : workload.types) {
    known.push_back(type.shortdesc);
    if (type.symbol == name) near.push_back(type.shortdesc);
  }
  for (const malloc_type* type : kernel.types()) known.emplace_back(type->ks_shortdesc);
  for (const ZoneDecl& zone : workload.zones)
    if (zone.symbol == name) near.push_back(zone.name);
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  d.message = "vm.memguard.desc=" + name + " is the description of no type and the name of no zone";
  d.near_names = near.empty() ? nearest_names(name, known) : near;
  hooks.note(d);
}

void Runner::State::notes() const {
  if (!hooks.note) return;
  const auto desc = kernel.sysctl().find("vm.memguard.desc");
  if (desc) note_guarded({}, desc->read());
  std::size_t bad_flags = 0;
  for (const std::vector<Op>& body : workload.bodies) {
    for (const Op& op : body) {
      if (op.kind == OpKind::sysctl) {
        const SysctlDecl& decl = workload.sysctls[op.detail];
        if (desc && decl.value && decl.name == desc->name)
          note_guarded(workload.diagnose(op, "WL_NOTE", ""), *decl.value);
        continue;
      }
      const std::int32_t wait = op.flags & (kM_WAITOK | kM_NOWAIT);
      if (!asserts_wait_flags(op.kind) || wait == kM_WAITOK || wait == kM_NOWAIT) continue;
      if (kernel.config().invariants || ++bad_flags > kMostNotes) continue;
      hooks.note(workload.diagnose(
          op, "WL_NOTE",
          std::string(wait == 0 ? "neither M_WAITOK nor M_NOWAIT" : "both M_WAITOK and M_NOWAIT") +
              ": a kernel with INVARIANTS " +
              (kernel.release().wait_flags_asserted ? "panics" : "complains") + " here"));
    }
  }
  if (bad_flags <= kMostNotes) return;
  Diagnostic more;
  more.message = std::to_string(bad_flags - kMostNotes) + " more statements with such flags";
  hooks.note(more);
}

}  // namespace dtmalloc::workload
