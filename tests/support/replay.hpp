// SPDX-License-Identifier: BSD-2-Clause
// Runs a flat workload on a kernel and on the model at once, and compares them after each step.
#pragma once

#include <dtmalloc/dtrace/provider.hpp>
#include <dtmalloc/kernel.hpp>
#include <dtmalloc/testing/probe_log.hpp>
#include <dtmalloc/workload/workload.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reference/flat_malloc.hpp"

namespace dtmalloc::support {

struct ReplayOptions {
  bool probes = true;              // every firing is recorded and compared
  std::optional<bool> invariants;  // else as the workload says
  std::optional<LedgerConfig> ledger = {};
  // After each statement; what it says ends the run.
  std::function<std::string(class Replay&)> after_step = {};
};

class Replay {
 public:
  explicit Replay(const workload::Workload& workload, const ReplayOptions& options = {});
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // All statements; the first contradiction with its statement, or nothing. A panic is one.
  std::string run();
  // The model begins with the statistics that the machine has now: consumers were opened since
  // boot. Nothing may be live.
  void start_from_here();
  // Frees what lives, in the order of addresses.
  std::string free_all();
  // Compares all statistics, of each CPU and in sum, the usable sizes and what the walkers say.
  std::string compare_all();

  Kernel& kernel() { return *kernel_; }
  reference::FlatMalloc& model() { return model_; }
  const std::vector<malloc_type*>& types() const { return types_; }
  // What the machine answered, as simulated addresses, one for each allocating statement.
  const std::vector<std::uint64_t>& answers() const { return answers_; }

 private:
  struct Held {
    void* address = nullptr;
    workload::Index type = 0;
  };

  reference::FlatStats line_of(int cpu, const malloc_type& type) const;
  std::string step(const workload::Op& op);
  std::string allocate(const workload::Op& op);
  std::string allocate_from_set(const workload::Op& op, reference::FlatCall call, void** address);
  std::string reallocate(const workload::Op& op);
  std::string release(const workload::Op& op);
  std::string answered(const workload::Op& op, void* address);
  std::string compare_firings();
  // A null that M_NOWAIT got: nothing of the class may be left.
  std::string plausible_failure(int zindx, std::uint64_t size);
  std::string stamp(void* address, bool zeroed);
  std::string check_stamp(const void* address, std::uint64_t valid) const;

  const workload::Workload& workload_;
  const ReplayOptions options_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<dtrace::Framework> framework_;
  std::unique_ptr<ProbeLog> log_;
  reference::FlatMalloc model_;
  std::vector<malloc_type*> types_;               // by the workload's index
  std::map<const malloc_type*, int> type_index_;  // and back
  std::map<workload::Index, Held> held_;          // by name
  std::vector<std::uint64_t> answers_;
};

}  // namespace dtmalloc::support
