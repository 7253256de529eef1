// SPDX-License-Identifier: BSD-2-Clause
// Threads at the same time: blocks of their own, blocks that others free, blocks handed on.
//
// private: each replaces random blocks of its own, written or not. shared: all replace blocks of
// one table, so that most are freed by another thread. handed: one allocates, the other frees.
// A number is what an operation of one thread takes while all work.
#include <atomic>
#include <memory>
#include <string>

#include "machine.hpp"
#include "team.hpp"
#include "workloads.hpp"

namespace dtmalloc::bench {
namespace {

constexpr std::size_t kLive = 10000;

using Work = std::function<void(int member, std::size_t operations)>;

// A row: make(calls, type, members) is the work of an allocator's contender. Each thread of ours is
// a CPU of the machine.
template <class Make>
void row_of(benchmark::State& state, int members, Make make) {
  Machine machine(members);
  Team team(members);
  std::vector<Contender> list;
  const auto add = [&](std::string name, Work work, bool bound) {
    list.push_back({std::move(name), [&, work = std::move(work), bound](std::size_t operations) {
                      team.run([&](int member) {
                        if (bound) machine.kernel.cpus().bind(member);
                        work(member, operations);
                      });
                    }});
  };
  malloc_type* type = &machine.type;
  add("ours", make(kernel_calls(), type, members), true);
  add("null", make(null_calls(), type, members), false);
  for (const Peer& peer : peers()) add(peer.name, make(peer_calls(peer), type, members), false);
  ContestOptions options;
  options.seconds = 2e-3;
  options.least = 10000;  // the start of a team is no matter
  options.settle = 10 * kLive;
  options.warm = 2 * kLive;
  contest(state, "ours, ns an operation", list, options);
  team.run([&](int) { machine.leave(); });
}

template <bool Write, class Sizes>
void own_blocks(benchmark::State& state, int members) {
  row_of(state, members, [](auto calls, malloc_type* type, int count) -> Work {
    const auto tables = std::make_shared<std::vector<std::unique_ptr<RandomLive>>>();
    for (int i = 0; i < count; ++i)
      tables->push_back(std::make_unique<RandomLive>(kLive, std::vector<malloc_type*>{type},
                                                     static_cast<std::uint64_t>(i) + 1));
    return [calls, tables](int member, std::size_t operations) {
      RandomLive& table = *(*tables)[static_cast<std::size_t>(member)];
      table.fill(calls, Sizes());
      table.replace<Write>(calls, Sizes(), operations);
    };
  });
}

void shared_blocks(benchmark::State& state, int members) {
  row_of(state, members, [](auto calls, malloc_type* type, int count) -> Work {
    struct Table {
      explicit Table(int members) : slots(kLive) {
        for (int i = 0; i < members; ++i) random.emplace_back(static_cast<std::uint64_t>(i) + 1);
      }
      std::vector<std::atomic<void*>> slots;
      std::vector<Random> random;
    };
    const auto table = std::make_shared<Table>(count);
    return [calls, type, table](int member, std::size_t operations) {
      Random random = table->random[static_cast<std::size_t>(member)];
      for (std::size_t i = 0; i < operations; ++i) {
        const std::uint64_t word = random.next();
        void* block = calls.allocate(UpTo1K()(word), type);
        touch(block, i);
        block = table->slots[(word >> 32) * kLive >> 32].exchange(block);
        if (block != nullptr) calls.release(block, type);
      }
      table->random[static_cast<std::size_t>(member)] = random;
    };
  });
}

// One writer, one reader; each looks at the other's end only when it must.
class Ring {
 public:
  void push(void* block) {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    while (head - seen_tail_ == kSize) {
      seen_tail_ = tail_.load(std::memory_order_acquire);
      if (head - seen_tail_ == kSize) std::this_thread::yield();
    }
    blocks_[head % kSize] = block;
    head_.store(head + 1, std::memory_order_release);
  }
  void* pop() {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    while (tail == seen_head_) {
      seen_head_ = head_.load(std::memory_order_acquire);
      if (tail == seen_head_) std::this_thread::yield();
    }
    void* block = blocks_[tail % kSize];
    tail_.store(tail + 1, std::memory_order_release);
    return block;
  }

 private:
  static constexpr std::size_t kSize = 4096;
  alignas(128) std::atomic<std::size_t> head_{0};
  std::size_t seen_tail_ = 0;
  alignas(128) std::atomic<std::size_t> tail_{0};
  std::size_t seen_head_ = 0;
  alignas(128) void* blocks_[kSize];
};

template <bool kRandom>
void handed_on(benchmark::State& state) {
  row_of(state, 2, [](auto calls, malloc_type* type, int) -> Work {
    const auto ring = std::make_shared<Ring>();
    return [calls, type, ring](int member, std::size_t operations) {
      Random random(5);
      for (std::size_t i = 0; i < operations; ++i) {
        if (member == 0) {
          void* block = calls.allocate(kRandom ? UpTo1K()(random.next()) : 64, type);
          touch(block, i);
          ring->push(block);
        } else {
          calls.release(ring->pop(), type);
        }
      }
    };
  });
}

}  // namespace
}  // namespace dtmalloc::bench

void register_rows() {
  using namespace dtmalloc::bench;
  const int cpus = static_cast<int>(std::thread::hardware_concurrency());
  for (int members = 1; members <= 2 || members <= cpus; members *= 2) {
    const std::string name = "threads:" + std::to_string(members);
    row("private/8-1024/written/" + name,
        [members](benchmark::State& state) { own_blocks<true, UpTo1K>(state, members); });
    row("private/8-1024/unwritten/" + name,
        [members](benchmark::State& state) { own_blocks<false, UpTo1K>(state, members); });
    row("private/16-64K/written/" + name,
        [members](benchmark::State& state) { own_blocks<true, UpTo64K>(state, members); });
    row("shared/8-1024/" + name,
        [members](benchmark::State& state) { shared_blocks(state, members); });
  }
  row("handed/64", handed_on<false>);
  row("handed/8-1024", handed_on<true>);
}
