// SPDX-License-Identifier: BSD-2-Clause
// A malloc and a free against the peers: tight pairs of each class, random sizes, batches.
//
// Contenders: `ours` (out of line, statistics on, probes compiled in and disabled), `inlined` (the
// same in the caller), `absent` (no hooks compiled in), `other` (another type is traced), `enabled`
// (this type is, by an empty hook), `null` (the harness), and the peers.
#include <memory>
#include <string>

#include "machine.hpp"
#include "workloads.hpp"

namespace dtmalloc::bench {
namespace {

void empty_hook(std::uint32_t, std::uintptr_t, std::uintptr_t, std::uintptr_t, std::uintptr_t,
                std::uintptr_t) {}

constexpr std::size_t kLive = 10000;

// The machines that a row's contenders run on.
struct Stage {
  explicit Stage(int type_count = 1) {
    for (int i = 0; i < type_count; ++i)
      types.push_back(
          &plain.kernel.define_type("M_T" + std::to_string(i), "t" + std::to_string(i)));
    for (int i = 0; i < type_count; ++i)
      traced_types.push_back(
          &traced.kernel.define_type("M_T" + std::to_string(i), "t" + std::to_string(i)));
    traced.enter();
    traced.kernel.set_malloc_probe(empty_hook);
    traced.kernel.set_malloc_probes_enabled(true);
    for (malloc_type* type : traced_types) {
      Kernel::set_probe_id(&type->ks_mti.mti_probes[DTMALLOC_PROBE_MALLOC], 1);
      Kernel::set_probe_id(&type->ks_mti.mti_probes[DTMALLOC_PROBE_FREE], 2);
    }
    traced.leave();
  }
  Machine plain, traced;
  std::vector<malloc_type*> types, traced_types;
};

// One contender for each allocator; make(calls, types) is its work.
template <class Make>
std::vector<Contender> all_contenders(const std::shared_ptr<Stage>& stage, Make make) {
  std::vector<Contender> list;
  const auto on = [&](Machine& machine, std::string name, std::function<void(std::size_t)> run) {
    list.push_back({std::move(name), std::move(run), [stage, &machine] { machine.enter(); },
                    [stage, &machine] { machine.leave(); }});
  };
  on(stage->plain, "ours", make(kernel_calls(), stage->types));
  on(stage->plain, "inlined", make(InlinedCalls(), stage->types));
  on(stage->plain, "absent", make(kernel_calls_without_hooks(), stage->types));
  const std::vector<malloc_type*> others(stage->types.size(), &stage->traced.other);
  on(stage->traced, "other", make(kernel_calls(), others));
  on(stage->traced, "enabled", make(kernel_calls(), stage->traced_types));
  list.push_back({"null", make(null_calls(), stage->types)});
  for (const Peer& peer : peers())
    list.push_back({peer.name, make(peer_calls(peer), stage->types)});
  return list;
}

constexpr char kLabel[] = "ours, ns a pair";
ContestOptions options(double seconds, std::size_t settle = 1000, std::size_t warm = 1000) {
  ContestOptions options;
  options.seconds = seconds;
  options.subject = "enabled";
  options.base = "ours";
  options.firings = 2;
  options.settle = settle;
  options.warm = warm;
  return options;
}

void tight(benchmark::State& state, std::size_t size) {
  const auto stage = std::make_shared<Stage>();
  contest(state, kLabel,
          all_contenders(stage,
                         [size](auto calls, const std::vector<malloc_type*>& types) {
                           return [calls, size, type = types[0]](std::size_t pairs) {
                             tight_pairs(calls, size, type, pairs);
                           };
                         }),
          options(200e-6));
}

template <class Sizes>
void random_sizes(benchmark::State& state, std::size_t live, int types) {
  const auto stage = std::make_shared<Stage>(types);
  contest(state, kLabel,
          all_contenders(stage,
                         [live](auto calls, const std::vector<malloc_type*>& types) {
                           const auto table = std::make_shared<RandomLive>(live, types);
                           return [calls, table](std::size_t pairs) {
                             table->fill(calls, Sizes());
                             table->replace<true>(calls, Sizes(), pairs);
                           };
                         }),
          options(800e-6, 10 * live, 10 * live));
}

template <Order kOrder, bool kRandom>
void batch(benchmark::State& state) {
  const auto stage = std::make_shared<Stage>();
  contest(state, kLabel,
          all_contenders(stage,
                         [](auto calls, const std::vector<malloc_type*>& types) {
                           const auto work = std::make_shared<Batch<kOrder, kRandom>>(types[0]);
                           return [calls, work](std::size_t pairs) { work->run(calls, pairs); };
                         }),
          options(400e-6, 20000, 4000));
}

}  // namespace
}  // namespace dtmalloc::bench

void register_rows() {
  using namespace dtmalloc::bench;
  for (const std::uint32_t size : dtmalloc::KernelRelease::find(16)->classes)
    row("tight/" + std::to_string(size), [size](benchmark::State& state) { tight(state, size); });
  for (const int types : {1, 64})
    row("random/8-1024/types:" + std::to_string(types),
        [types](benchmark::State& state) { random_sizes<UpTo1K>(state, kLive, types); });
  row("random/8-1024/live:1000",
      [](benchmark::State& state) { random_sizes<UpTo1K>(state, 1000, 1); });
  row("random/16-64K", [](benchmark::State& state) { random_sizes<UpTo64K>(state, kLive, 1); });
  row("batch/64/fifo", batch<Order::fifo, false>);
  row("batch/64/lifo", batch<Order::lifo, false>);
  row("batch/8-1024/fifo", batch<Order::fifo, true>);
  row("batch/8-1024/lifo", batch<Order::lifo, true>);
}
