// SPDX-License-Identifier: BSD-2-Clause
// Statements from outside malloc(9): sysctl(8), and a stray store.
//
// Counterpart:  sbin/sysctl
// Differs:      what sysctl(8) prints goes to the kernel's console; a name that does not exist ends
//               the run

#include <cstring>

#include "workload/runner.hpp"

namespace dtmalloc::workload {

void Runner::State::sysctl(Thread& thread, const Op& op) {
  const SysctlDecl& decl = workload.sysctls[op.detail];
  if (thread.contexts != 0)
    fail(op, "WL_CONTEXT", "sysctl(8) is a program: it runs in no critical section or interrupt");
  const std::vector<SysctlNode> nodes = kernel.sysctl().list(decl.name);
  if (nodes.empty()) refuse_sysctl(op);
  if (decl.value) return write_sysctl(op, decl);
  for (const SysctlNode& node : nodes)
    if (node.read) cpus.console(node.name + ": " + node.read() + "\n");
}

void Runner::State::write_sysctl(const Op&, const SysctlDecl& decl) {
  const auto complain = [&](const std::string& text) { cpus.console("sysctl: " + text + "\n"); };
  const std::optional<SysctlNode> node = kernel.sysctl().find(decl.name);
  if (!node) return complain("oid '" + decl.name + "' isn't a leaf node");
  if (!node->write && node->tunable) {
    complain("oid '" + decl.name + "' is a read only tunable");
    return complain("Tunable values are set in /boot/loader.conf");
  }
  if (!node->write) return complain("oid '" + decl.name + "' is read only");
  const std::string old = node->read ? node->read() : std::string();
  if (const int error = node->write(*decl.value); error != 0)
    return complain(decl.name + "=" + *decl.value + ": " + std::strerror(error));
  cpus.console(decl.name + ": " + old + " -> " + (node->read ? node->read() : std::string()) +
               "\n");
}

void Runner::State::poke(Thread& thread, const Op& op) {
  const Slot slot = get(thread, op, op.target);
  const std::int64_t offset = evaluate(thread, op, op.extra);
  const std::uint8_t byte = byte_of(op, evaluate(thread, op, op.value));
  auto* const addr = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(slot.addr) +
                                             static_cast<std::uintptr_t>(offset));
  if (auto stored = kernel.poke(addr, byte); !stored)
    fail(op, "WL_RANGE",
         name_of(thread, op, op.target) + (offset < 0 ? "" : "+") + std::to_string(offset) + ": " +
             stored.error().message);
}

}  // namespace dtmalloc::workload
