// SPDX-License-Identifier: BSD-2-Clause
// Delta debugging (Zeller's ddmin) on a workload's statements.

#include "support/shrink.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace dtmalloc::support {
namespace {

using workload::Index;
using workload::kNone;
using workload::Op;
using workload::OpKind;
using workload::Workload;

// A statement's place: body and index in it.
using Place = std::pair<Index, std::size_t>;

void collect(const Workload& w, Index body, std::vector<Place>& places) {
  const std::vector<Op>& ops = w.bodies[body];
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind != OpKind::type) places.push_back({body, i});
    if (ops[i].body != kNone) collect(w, ops[i].body, places);
  }
}

std::vector<Place> places_of(const Workload& w) {
  std::vector<Place> places;
  collect(w, 0, places);
  return places;
}

// The workload with only the statements of `kept` (and the types).
Workload only(const Workload& w, const std::vector<Place>& kept) {
  const std::set<Place> wanted(kept.begin(), kept.end());
  Workload result = w;
  for (Index body = 0; body < w.bodies.size(); ++body) {
    std::vector<Op> ops;
    for (std::size_t i = 0; i < w.bodies[body].size(); ++i) {
      const Op& op = w.bodies[body][i];
      if (op.kind == OpKind::type || wanted.count({body, i}) != 0) ops.push_back(op);
    }
    result.bodies[body] = std::move(ops);
  }
  return result;
}

template <typename Function>
void visit(const Workload& w, Index body, const Function& function) {
  for (const Op& op : w.bodies[body]) {
    function(op);
    if (op.body != kNone) visit(w, op.body, function);
  }
}

bool sets_block(const Op& op) {
  switch (op.kind) {
    case OpKind::malloc:
    case OpKind::realloc:
    case OpKind::reallocf:
    case OpKind::mallocarray:
    case OpKind::malloc_aligned:
    case OpKind::malloc_exec:
    case OpKind::contigmalloc:
    case OpKind::uma_zalloc:
      return true;
    default:
      return false;
  }
}

// Leaves out what uses a block that nothing sets, until everything fits.
void leave_out_dependents(Workload& w) {
  for (bool changed = true; changed;) {
    changed = false;
    std::set<Index> set;
    visit(w, 0, [&](const Op& op) {
      if (sets_block(op)) set.insert(op.target.name);
    });
    const auto lacks = [&](Index name) { return name != kNone && set.count(name) == 0; };
    for (std::vector<Op>& body : w.bodies) {
      changed |= std::erase_if(body, [&](const Op& op) {
                   return lacks(op.source.name) || (!sets_block(op) && lacks(op.target.name));
                 }) != 0;
    }
  }
}

// Leaves out the types that nothing uses.
void leave_out_types(Workload& w) {
  std::set<Index> used;
  visit(w, 0, [&](const Op& op) {
    if (op.kind != OpKind::type) used.insert(op.type);
  });
  std::erase_if(w.bodies[0],
                [&](const Op& op) { return op.kind == OpKind::type && used.count(op.type) == 0; });
}

class Shrinker {
 public:
  Shrinker(const StillFails& fails, int attempts) : fails_(fails), attempts_(attempts) {}

  bool attempt(Workload& best, Workload candidate) {
    if (attempts_ == 0) return false;
    --attempts_;
    if (!fails_(candidate)) return false;
    best = std::move(candidate);
    return true;
  }

  // One pass of ddmin; true if something was left out.
  bool statements(Workload& best) {
    bool shrunk = false;
    for (std::size_t chunk = std::max<std::size_t>(places_of(best).size() / 2, 1);;) {
      bool any = false;
      for (std::size_t from = 0; attempts_ != 0;) {
        const std::vector<Place> places = places_of(best);
        if (from >= places.size()) break;
        std::vector<Place> kept(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(from));
        const std::size_t to = std::min(from + chunk, places.size());
        kept.insert(kept.end(), places.begin() + static_cast<std::ptrdiff_t>(to), places.end());
        Workload candidate = only(best, kept);
        leave_out_dependents(candidate);
        if (attempt(best, std::move(candidate))) {
          any = shrunk = true;  // the next chunk has moved to `from`
        } else {
          from = to;
        }
      }
      if (attempts_ == 0) return false;
      if (chunk > 1) {
        chunk = (chunk + 1) / 2;
      } else if (!any) {
        return shrunk;
      }
    }
  }

  // Rounder sizes and fewer flags, where that makes no difference.
  void numbers(Workload& best) {
    for (const auto& [body, index] : places_of(best)) {
      const Op op = best.bodies[body][index];
      if (!sets_block(op) || op.value.expr != kNone) continue;
      for (const std::int64_t number : {std::int64_t{16}, std::int64_t{4096}}) {
        if (number >= op.value.number) break;
        Workload candidate = best;
        candidate.bodies[body][index].value.number = number;
        if (attempt(best, std::move(candidate))) break;
      }
      if ((op.flags & kM_ZERO) != 0) {
        Workload candidate = best;
        candidate.bodies[body][index].flags &= ~kM_ZERO;
        attempt(best, std::move(candidate));
      }
    }
  }

 private:
  const StillFails& fails_;
  int attempts_;
};

}  // namespace

std::size_t statement_count(const Workload& workload) { return places_of(workload).size(); }

Workload shrink(const Workload& workload, const StillFails& fails, int attempts) {
  Workload best = workload;
  Shrinker shrinker(fails, attempts);
  while (shrinker.statements(best)) {
  }
  shrinker.numbers(best);
  leave_out_types(best);
  return best;
}

}  // namespace dtmalloc::support
