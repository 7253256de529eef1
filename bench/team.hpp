// SPDX-License-Identifier: BSD-2-Clause
// Threads that work at the same time, over and over.
#pragma once

#include <barrier>
#include <functional>
#include <thread>
#include <vector>

namespace dtmalloc::bench {

// The caller is member 0, the others are threads that live as long as the team.
class Team {
 public:
  explicit Team(int members) : members_(members), gate_(members) {
    for (int member = 1; member < members; ++member)
      threads_.emplace_back([this, member] {
        while (true) {
          gate_.arrive_and_wait();
          if (!work_) return;
          work_(member);
          gate_.arrive_and_wait();
        }
      });
  }
  ~Team() {
    work_ = nullptr;
    gate_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Every member does `work`, which is given its number; returns when all are done.
  void run(const std::function<void(int)>& work) {
    work_ = work;
    gate_.arrive_and_wait();
    work_(0);
    gate_.arrive_and_wait();
  }
  int members() const { return members_; }

 private:
  const int members_;
  std::barrier<> gate_;
  std::function<void(int)> work_;
  std::vector<std::thread> threads_;
};

}  // namespace dtmalloc::bench
