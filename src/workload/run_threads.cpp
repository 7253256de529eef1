// SPDX-License-Identifier: BSD-2-Clause
// The threads of a running workload: start, wait for each other, end.
// Locking:      see runner.hpp

#include "workload/runner.hpp"

namespace dtmalloc::workload {

void Runner::State::spawn(Thread& thread, const Op& op) {
  if (thread.contexts != 0) {
    fail(op, "WL_CONTEXT", "a thread cannot be started inside critical, interrupt or nosleep");
  }
  const ThreadDecl& decl = workload.threads[op.detail];
  const auto number = [&](const std::optional<Value>& value, int otherwise) {
    if (!value) return otherwise;
    const std::int64_t n = evaluate(thread, op, *value);
    if (n < 0 || n > 0x7fffffff)
      fail(op, *value, "WL_RANGE", "a number of the thread is out of range");
    return static_cast<int>(n);
  };
  SimThread attributes;
  attributes.execname = decl.execname.empty() ? decl.name : decl.execname;
  attributes.pid = number(decl.pid, attributes.pid);
  attributes.ppid = number(decl.ppid, attributes.ppid);
  attributes.tid = number(decl.tid, attributes.tid);
  attributes.uid = number(decl.uid, attributes.uid);
  attributes.gid = number(decl.gid, attributes.gid);
  const int cpu = decl.cpu ? cpu_of(op, *decl.cpu, evaluate(thread, op, *decl.cpu)) : curcpu->id;
  Thread child{.random = Random(thread.random.next()), .loops = thread.loops};
  child.depth = thread.depth;
  ++alive;
  unusual |= kThreaded;
  cpus.spawn(attributes, cpu,
             [state = shared_from_this(), child, &op] { state->thread_body(child, op); });
}

void Runner::State::thread_body(Thread thread, const Op& op) {
  thread.self = &cpus.current_thread();
  enter_actor(thread);
  live(thread, [&] {
    if (!ending()) statements(thread, workload.bodies[op.body], 0);
  });
  if (ending() || alive <= 1) end_all();
}

// What a thread does. Whatever cuts it short ends the run.
void Runner::State::live(const Thread& thread, const std::function<void()>& body) {
  try {
    body();
  } catch (const KernelPanic& panic) {
    note_panic(thread, panic);
    end();
  } catch (RunError& error) {
    if (!outcome.error) outcome.error = std::move(error.diagnostic);
    end();
  } catch (const RunEnd&) {
    end();
  }
  --alive;
}

// The panic reaches every thread: the first is who caused it. A deadlock is of all whom it names.
void Runner::State::note_panic(const Thread& thread, const KernelPanic& panic) {
  const SimThread& self = *thread.self;
  const std::string text = panic.what();
  const bool deadlock = text.starts_with("deadlock: ");
  const bool named = text.find("(tid " + std::to_string(self.tid) + "): ") != text.npos;
  if (deadlock ? named : !outcome.panic)
    outcome.panic_places.push_back({self.execname, self.tid, self.line});
  if (!outcome.panic) outcome.panic = panic;
}

// Threads that wait for a block look again: it may never come.
void Runner::State::end_all() {
  for (NameStore& store : names) {
    if (store.waiters != 0) wake(store);
  }
}

// Whoever is woken is alive from here on, although it runs later.
void Runner::State::wake(NameStore& store) {
  alive += store.waiters;
  store.waiters = 0;
  cpus.wakeup(&store);
}

void Runner::State::join(const Thread& thread, const Op& op) {
  if (thread.self != main.self) fail(op, "WL_CONTEXT", "only the main thread joins the others");
  if (thread.contexts != 0) fail(op, "WL_CONTEXT", "join inside critical, interrupt or nosleep");
  if (!threaded()) return;
  --alive;
  end_all();
  cpus.join_all();
  ++alive;
}

void Runner::State::wait(Thread& thread, const Op& op) {
  const std::uint64_t ns = size_value(thread, op, op.value, "time");
  if (!clock.is_real() && !clock.can_advance(ns)) {
    fail(op, "WL_RANGE",
         "the clock would pass its end, " + std::to_string(Clock::kEndOfTime) + " ns after boot");
  }
  const std::uint64_t until = clock.after(ns);
  while (!cpus.sleep_until(until) && clock.now() < until) attend();
  if (ending()) throw RunEnd{};
}

}  // namespace dtmalloc::workload
