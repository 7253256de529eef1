// SPDX-License-Identifier: BSD-2-Clause
// curthread: struct thread and what hangs on it.
// Counterpart:  see thread_view.hpp
#include "dtrace/core/thread_view.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace dtmalloc::dtrace {
namespace {

// Where threads would lie in a kernel.
constexpr std::uint64_t kThreads = 0xfffffe1000000000;
constexpr std::uint64_t kStride = 0x1000;
static_assert(sizeof(ThreadView) <= kStride);

void copy_name(char (&to)[ThreadView::kComm], std::string_view from) {
  std::memset(to, 0, sizeof to);
  std::memcpy(to, from.data(), std::min(from.size(), sizeof to - 1));
}

}  // namespace

std::uint64_t show_thread(DifState& state, const SimThread& thread) {
  const std::uint64_t address = kThreads + static_cast<std::uint64_t>(thread.tid) * kStride;
  if (state.thread_view == nullptr) return address;
  auto& view = *reinterpret_cast<ThreadView*>(state.thread_view);
  view.thread.td_proc = address + offsetof(ThreadView, proc);
  view.thread.td_ucred = view.proc.p_ucred = address + offsetof(ThreadView, ucred);
  view.thread.td_tid = thread.tid;
  copy_name(view.thread.td_name, thread.execname);
  view.proc.p_pid = thread.pid;
  copy_name(view.proc.p_comm, thread.execname);
  view.ucred.cr_prison = address + offsetof(ThreadView, prison);
  view.ucred.cr_uid = view.ucred.cr_ruid = static_cast<std::uint32_t>(thread.uid);
  view.ucred.cr_rgid = static_cast<std::uint32_t>(thread.gid);
  state.thread_address = address;
  state.thread_size = sizeof view;
  return address;
}

#define DTM_MEMBER(structure, member, type) \
  TypeMember { #member, type, static_cast < std::uint32_t>(offsetof(structure, member)) }

void describe_threads(Framework& framework) {
  using Thread = ThreadView::Thread;
  using Proc = ThreadView::Proc;
  using Ucred = ThreadView::Ucred;
  using Prison = ThreadView::Prison;
  framework.add_type(
      {"thread",
       sizeof(Thread),
       {DTM_MEMBER(Thread, td_proc, "struct proc *"),
        DTM_MEMBER(Thread, td_ucred, "struct ucred *"), DTM_MEMBER(Thread, td_tid, "int"),
        DTM_MEMBER(Thread, td_errno, "int"), DTM_MEMBER(Thread, td_name, "char [20]")}});
  framework.add_type({"proc",
                      sizeof(Proc),
                      {DTM_MEMBER(Proc, p_ucred, "struct ucred *"), DTM_MEMBER(Proc, p_pid, "int"),
                       DTM_MEMBER(Proc, p_comm, "char [20]")}});
  framework.add_type(
      {"ucred",
       sizeof(Ucred),
       {DTM_MEMBER(Ucred, cr_prison, "struct prison *"), DTM_MEMBER(Ucred, cr_uid, "uint32_t"),
        DTM_MEMBER(Ucred, cr_ruid, "uint32_t"), DTM_MEMBER(Ucred, cr_rgid, "uint32_t")}});
  framework.add_type({"prison",
                      sizeof(Prison),
                      {DTM_MEMBER(Prison, pr_id, "int"), DTM_MEMBER(Prison, pr_name, "char [4]")}});
}

#undef DTM_MEMBER

}  // namespace dtmalloc::dtrace
