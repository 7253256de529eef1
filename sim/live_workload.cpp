// SPDX-License-Identifier: BSD-2-Clause
// The load of a machine that nobody troubles: a web server, a database, logins, jobs of cron, and
// the kernel's own threads, on the types that a GENERIC kernel of amd64 in a virtual machine has.
// Some 1900 operations a second; about 2 % of a core (sim/README.md says how it was measured).
// Invariants:   every list of blocks has a fixed number of places, so memory does not grow.

#include "live_workload.hpp"

#include <algorithm>
#include <cctype>

namespace dtmalloc::sim {
namespace {

// Short descriptions in the order of registration: the kernel's own first, then file systems,
// network, devices. A symbol is made from each.
constexpr const char* kTypes[] = {
    // kern
    "proc-args", "filedesc", "filedesc_to_leader", "sigio", "filecaps", "kdtrace", "kenv", "kqueue",
    "hhook", "ithread", "prison", "prison_racct", "KTRACE", "linker", "lockf", "loginclass",
    "malloc_stats", "module", "osd", "pgrp", "session", "proc", "subproc", "cred", "plimit",
    "uidinfo", "rctl", "racct", "sysctl", "sysctloid", "sysctltmp", "tidhash", "umtx", "p1003.1b",
    "callout", "SWAP", "stack", "bus", "bus-sc", "devstat", "eventhandler", "gtaskqueue", "kobj",
    "Per-cpu", "rman", "sbuf", "epoch", "taskqueue", "terminal", "toponodes", "turnstiles",
    "Unitno", "vmem", "ioctlops", "select", "selfd", "iov", "msg", "sem", "shm", "shmfd", "ksem",
    "mqueue", "tty", "pts", "accf", "mbuf_tag", "soname", "pcb", "acl", "domainset", "cpuset",
    "entropy", "procdesc", "ktls", "tslog", "memdesc", "vm_pgdata", "vm_fictitious", "swap_pager",
    "rangeset", "sfs_nodes", "pmchooks", "aesni_data", "crypto", "cryptodev",
    // vfs
    "vfscache", "cl_savebuf", "vfs_hash", "vnodes", "mount", "statfs", "vnodemarker", "biobuf",
    "export_host", "DEVFS", "DEVFS1", "DEVFS2", "DEVFS3", "DEVFS4", "DEVFSP", "DEVFS_RULE", "cdev",
    "pfs_nodes", "pfs_vncache", "tmpfs mount", "tmpfs name", "fdesc_mount", "msdosfs_fat",
    "msdosfs_mount", "msdosfs_node", "isofs_mount", "isofs_node", "NFS req", "NFS fh", "newnfsmnt",
    "NFSD session", "NFSD string", "rpc", "nlm", "ufs_mount", "ufs_dirhash", "ufs_quota",
    "ufs_trim", "softdep", "pagedep", "inodedep", "bmsafemap", "newblk", "allocdirect", "indirdep",
    "allocindir", "freefrag", "freeblks", "freefile", "diradd", "mkdir", "dirrem", "newdirblk",
    "freework", "freedep", "jaddref", "jremref", "jmvref", "jnewblk", "jfreeblk", "jfreefrag",
    "jseg", "jsegdep", "sbdep", "jtrunc", "jfsync", "savedino", "jblocks", "audit_evclass",
    "audit_pipe", "solaris", "kstat_data",
    // net
    "ifnet", "ifaddr", "ifdescr", "ether_multi", "clone", "arpcom", "lltable", "routetbl",
    "rtentry", "nhops", "fib_algo", "BPF", "igmp", "in_mfilter", "in_multi", "in6_multi",
    "ip_moptions", "ip6ndp", "mld", "inpcbpolicy", "ipsecpolicy", "secasvar", "xform", "hostcache",
    "tcpfunc", "tcp_hpts", "cc_mem", "syncache", "LRO", "netlink", "vnet", "vnet_data",
    "vnet_data_free", "encap_export_host", "pf_hash", "pf_rule", "80211com", "80211vap",
    "80211node", "iflib",
    // dev
    "CAM XPT", "CAM DEV", "CAM CCB", "CAM path", "CAM periph", "CAM queue", "CAM dev queue",
    "CAM I/O Scheduler", "CAM SIM", "scsi_da", "scsi_cd", "ata_pci", "AHCI driver", "nvme", "nvd",
    "virtio", "virtqueue", "vtblk", "vtnet", "GEOM", "GEOM_PART", "eli_data", "label_data",
    "md_disk", "md_sectors", "USB", "USBdev", "USBHC", "UART", "kbdmux", "atkbddev", "vt", "vtbuf",
    "vtfont", "evdev", "acpica", "acpidev", "acpisem", "acpitask", "acpiintr", "acpi_perf",
    "pci_link", "nexusdev", "isadev", "apic", "io_apic", "msi", "intr", "MCA", "cpuctl", "efi_rt",
    "iommu", "busdma", "feeder", "mixer", "smbios", "tpm", "ichwd"};

// `cpu=N` becomes a CPU that the machine has.
constexpr std::string_view kLoad = R"(
repeat 64 as i { vn[i] = malloc 128 M_VFSCACHE M_WAITOK @namei;cache_enter;cache_alloc }
repeat 32 as i { pc[i] = malloc 304 M_PCB M_WAITOK|M_ZERO @sys_socket;socreate;in_pcballoc }
repeat 16 as i { fd[i] = malloc 1280 M_FILEDESC M_WAITOK|M_ZERO @sys_fork;fork1;fdinit }
repeat 48 as i { sd[i] = malloc 256 M_INODEDEP M_WAITOK|M_ZERO @ffs_write;softdep_setup_allocdirect }
repeat 8 as i { cc[i] = malloc 1360 M_CAM_CCB M_WAITOK|M_ZERO @xpt_run_allocq;xpt_get_ccb }
repeat 24 as i { za[i] = malloc uniform(512,4096) M_SOLARIS M_WAITOK @spa_sync;zfs_kmem_alloc }

# The thread of a device: commands that complete, buffers of DMA.
thread "cam" cpu=0 execname="intr" pid=12 tid=100042 {
  repeat 1000000000000 {
    repeat 3 as i {
      free cc[i]
      cc[i] = malloc 1360 M_CAM_CCB M_NOWAIT|M_ZERO @ithread_loop;xpt_done_process;xpt_get_ccb
    }
    d = malloc choice(64,128,512,2048) M_DEVBUF M_NOWAIT @ithread_loop;ahci_ch_intr;ahci_begin_transaction
    free d
    wait uniform(4ms,60ms)
  }
}

# A web server answers requests.
thread "nginx" cpu=1 execname="nginx" pid=1021 tid=100311 {
  repeat 1000000000000 {
    repeat choice(1,2,6) as r {
      s = malloc choice(16,28) M_SONAME M_WAITOK @amd64_syscall;sys_accept4;kern_accept4
      repeat 2 as i {
        v = malloc uniform(16,1024) M_IOV M_WAITOK @amd64_syscall;sys_writev;copyinuio
        free v
      }
      t = malloc choice(256,1024,4096,8192) M_TEMP M_WAITOK @amd64_syscall;sys_sendfile;vn_sendfile
      free t
      free s
    }
    repeat 4 as i {
      free pc[i]
      pc[i] = malloc 304 M_PCB M_NOWAIT|M_ZERO @tcp_input;syncache_expand;in_pcballoc
    }
    wait uniform(5ms,70ms)
  }
}

# A database waits for its clients and writes its log.
thread "postgres" cpu=2 execname="postgres" pid=1187 tid=100340 {
  repeat 1000000000000 {
    f = malloc 80 M_SELFD M_WAITOK @amd64_syscall;sys_poll;seltdinit
    k = malloc zipf(2048) M_TEMP M_WAITOK @amd64_syscall;sys_pwritev;kern_pwritev
    free k
    free f
    repeat 5 as i {
      free sd[i]
      n = malloc 512 M_NEWBLK M_WAITOK|M_ZERO @ffs_write;ffs_balloc_ufs2;softdep_setup_allocdirect
      sd[i] = malloc 256 M_INODEDEP M_WAITOK|M_ZERO @ffs_write;softdep_setup_allocdirect
      free n
    }
    wait uniform(10ms,80ms)
  }
}

# Somebody works in a shell.
thread "sshd" cpu=3 execname="sshd" pid=2290 tid=100402 {
  repeat 1000000000000 {
    o = malloc uniform(16,128) M_IOCTLOPS M_WAITOK @amd64_syscall;sys_ioctl
    y = malloc 64 M_TTY M_WAITOK @amd64_syscall;sys_write;ttydisc_write
    free y
    free o
    wait uniform(20ms,200ms)
  }
}

# cron runs a job: a process comes and goes.
thread "cron" cpu=1 execname="cron" pid=903 tid=100287 {
  repeat 1000000000000 {
    p = malloc 4096 M_SUBPROC M_WAITOK|M_ZERO @amd64_syscall;sys_fork;fork1
    c = malloc 256 M_CRED M_WAITOK|M_ZERO @amd64_syscall;sys_fork;crget
    a = malloc uniform(24,200) M_PROC_ARGS M_WAITOK @amd64_syscall;sys_execve;pargs_alloc
    x = malloc 528384 M_TEMP M_WAITOK @amd64_syscall;sys_execve;exec_alloc_args
    repeat 8 as i {
      free vn[i]
      vn[i] = malloc uniform(64,256) M_VFSCACHE M_WAITOK @amd64_syscall;sys_execve;namei;cache_enter
    }
    l = malloc 128 M_LOCKF M_WAITOK|M_ZERO @amd64_syscall;sys_fcntl;lf_alloc_lock
    free fd[0]
    fd[0] = malloc 1280 M_FILEDESC M_WAITOK|M_ZERO @sys_fork;fork1;fdinit
    wait uniform(1ms,20ms)
    free x
    free a
    free l
    free c
    free p
    wait uniform(200ms,900ms)
  }
}

# Names and inodes age.
thread "vnlru" cpu=2 execname="vnlru" pid=21 tid=100078 {
  repeat 1000000000000 {
    repeat 20 as i {
      free vn[i+8]
      vn[i+8] = malloc uniform(64,256) M_VFSCACHE M_WAITOK @vnlru_proc;vgonel;cache_purge
    }
    wait uniform(100ms,400ms)
  }
}

# Dirty data goes out.
thread "syncer" cpu=3 execname="syncer" pid=22 tid=100079 {
  repeat 1000000000000 {
    repeat choice(4,8,24) as i {
      free za[i]
      za[i] = malloc uniform(512,8192) M_SOLARIS M_WAITOK @sched_sync;spa_sync;zfs_kmem_alloc
    }
    b = malloc 16384 M_BIOBUF M_NOWAIT @sched_sync;ffs_sync;cluster_write
    free b
    wait uniform(300ms,1s)
  }
}

# The kernel's own housekeeping.
thread "taskq" cpu=0 execname="kernel" pid=0 tid=100011 {
  repeat 1000000000000 {
    e = malloc choice(72,104,136) M_ACPICA M_WAITOK|M_ZERO @taskqueue_thread_loop;acpi_tz_monitor;AcpiOsAllocate
    free e
    q = malloc 64 M_TASKQUEUE M_NOWAIT @taskqueue_thread_loop;taskqueue_enqueue
    free q
    g = malloc uniform(100,400) M_SYSCTLTMP M_WAITOK @sysctl_root_handler_locked
    free g
    wait uniform(50ms,500ms)
  }
}
)";

std::string symbol(std::string_view description) {
  std::string name = "M_";
  for (const char c : description) {
    const auto byte = static_cast<unsigned char>(c);
    name += std::isalnum(byte) != 0 ? static_cast<char>(std::toupper(byte)) : '_';
  }
  return name;
}

}  // namespace

std::string live_workload_text(int cpus) {
  std::string text;
  for (const char* type : kTypes) text += "type " + symbol(type) + " \"" + type + "\"\n";
  std::string load(kLoad);
  for (std::size_t at = load.find(" cpu="); at != load.npos; at = load.find(" cpu=", at + 1))
    load[at + 5] = static_cast<char>('0' + (load[at + 5] - '0') % std::max(cpus, 1));
  return text + load;
}

std::optional<workload::Workload> live_workload(int cpus) {
  auto parsed = workload::parse(live_workload_text(cpus), "<live>");
  DTM_CHECK(static_cast<bool>(parsed), "the live machine's workload is no workload");
  return std::move(*parsed);
}

}  // namespace dtmalloc::sim
