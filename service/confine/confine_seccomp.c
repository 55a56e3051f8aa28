/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The filter lists forbidden calls, not allowed ones: the calls of glibc and GDAL
 * differ between their versions, and a call missing from a list of allowed ones would fail good
 * scenes. Calls that no library needs end the process; calls that some try and do without (clone3,
 * naming memory) fail with an error.
 *
 * The sanitizers' runtimes fork and trace to look for leaks and to print stacks; in their builds
 * those calls fail instead of ending the process. */
#include "service/confine/confine.h"

#include <errno.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef PB_SANITIZED
#define DEADLY SCMP_ACT_ERRNO(EPERM)
#else
#define DEADLY SCMP_ACT_KILL_PROCESS
#endif

#define API_KILL_PROCESS 3 /* libseccomp's level, which it finds out by seccomp(2) */

/* By name: libseccomp knows the numbers of calls that the kernel headers here do not. A name that
 * it does not know either is a call that this architecture does not have. */
static const char *const deadly[] = {
    /* another program */
    "execve", "execveat", "fork", "vfork", "uselib",
    /* other processes */
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_open",
    "pidfd_getfd", "pidfd_send_signal", "tkill", "rt_tgsigqueueinfo", "rt_sigqueueinfo",
    "setpriority", "migrate_pages", "move_pages",
    /* sockets */
    "socket", "socketpair", "connect", "bind", "listen", "accept", "accept4",
    /* names of files that Landlock does not see or that change what others see */
    "open_by_handle_at", "name_to_handle_at", "mount", "umount2", "pivot_root", "chroot",
    "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "mknod",
    "mknodat", "symlink", "symlinkat", "link", "linkat", "swapon", "swapoff", "quotactl",
    "quotactl_fd", "fanotify_init", "setxattr", "lsetxattr", "fsetxattr", "removexattr",
    "lremovexattr", "fremovexattr", "chown", "lchown", "fchownat",
    /* privileges and namespaces */
    "setns", "unshare", "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid",
    "setgroups", "setfsuid", "setfsgid", "capset", "personality",
    /* interfaces with a large attack surface */
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "io_uring_register", "add_key", "request_key", "keyctl", "init_module", "finit_module",
    "delete_module", "kexec_load", "kexec_file_load", "reboot", "sethostname", "setdomainname",
    "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "syslog", "acct", "iopl",
    "ioperm", "modify_ldt", "lookup_dcookie", "vhangup", "nfsservctl", "vmsplice",
    /* shared memory and queues with others */
    "shmget", "shmat", "semget", "msgget", "mq_open"};

static int add(scmp_filter_ctx filter, uint32_t action, const char *name, unsigned n,
               const struct scmp_arg_cmp *arg)
{
    int call = seccomp_syscall_resolve_name(name);
    if (call == __NR_SCMP_ERROR)
        return 0;
    int rc = seccomp_rule_add_array(filter, action, call, n, arg);
    return rc == -EDOM || rc == -EACCES ? 0 : rc; /* not of this architecture; the default */
}

/* A new process is a clone without CLONE_THREAD. clone3 hides its flags from a filter, and glibc
 * does without it. */
static int add_clone(scmp_filter_ctx filter, uint32_t refused)
{
    struct scmp_arg_cmp process = SCMP_A0_64(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0);
    int rc = add(filter, refused, "clone", 1, &process);
    return rc ? rc : add(filter, SCMP_ACT_ERRNO(ENOSYS), "clone3", 0, NULL);
}

/* Signals (abort, raise) and limits are this process's own. */
static int add_own(scmp_filter_ctx filter, uint32_t refused)
{
    struct scmp_arg_cmp other = SCMP_A0_64(SCMP_CMP_NE, (scmp_datum_t)getpid(), 0);
    struct scmp_arg_cmp not_self = SCMP_A0_64(SCMP_CMP_NE, 0, 0);
    int rc = add(filter, refused, "kill", 1, &other);
    rc = rc ? rc : add(filter, refused, "tgkill", 1, &other);
    return rc ? rc : add(filter, SCMP_ACT_ERRNO(EPERM), "prlimit64", 1, &not_self);
}

/* Memory is writable or executable, not both, and does not become executable. */
static int add_memory(scmp_filter_ctx filter)
{
    struct scmp_arg_cmp both =
        SCMP_A2_64(SCMP_CMP_MASKED_EQ, PROT_WRITE | PROT_EXEC, PROT_WRITE | PROT_EXEC);
    struct scmp_arg_cmp exec = SCMP_A2_64(SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC);
    int rc = add(filter, SCMP_ACT_ERRNO(EACCES), "mmap", 1, &both);
    rc = rc ? rc : add(filter, SCMP_ACT_ERRNO(EACCES), "mprotect", 1, &exec);
    rc = rc ? rc : add(filter, SCMP_ACT_ERRNO(EACCES), "pkey_mprotect", 1, &exec);
    return rc ? rc : add(filter, SCMP_ACT_ERRNO(EACCES), "memfd_create", 0, NULL);
}

/* Names of threads, and nothing else. */
static int add_prctl(scmp_filter_ctx filter)
{
    struct scmp_arg_cmp below = SCMP_A0_64(SCMP_CMP_LT, PR_SET_NAME, 0);
    struct scmp_arg_cmp above = SCMP_A0_64(SCMP_CMP_GT, PR_GET_NAME, 0);
    int rc = add(filter, SCMP_ACT_ERRNO(EPERM), "prctl", 1, &below);
    return rc ? rc : add(filter, SCMP_ACT_ERRNO(EPERM), "prctl", 1, &above);
}

static int fill(scmp_filter_ctx filter)
{
    int rc = 0;
    for (size_t i = 0; i < sizeof deadly / sizeof deadly[0] && rc == 0; i++)
        rc = add(filter, DEADLY, deadly[i], 0, NULL);
    rc = rc ? rc : add_memory(filter);
    rc = rc ? rc : add_clone(filter, DEADLY);
    rc = rc ? rc : add_own(filter, DEADLY);
#ifndef PB_SANITIZED
    rc = rc ? rc : add_prctl(filter);
#else
    (void)add_prctl;
#endif
    return rc;
}

int pb_seccomp_apply(struct pb_err *err)
{
    if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
        return 0; /* a kernel without it */
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (filter == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for a seccomp filter");
    int rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a binary tree of calls */
    rc = rc ? rc : fill(filter);
    rc = rc ? rc : seccomp_load(filter);
    seccomp_release(filter);
    if (rc < 0)
        return pb_fail(err, PB_E_SYSTEM, "cannot confine the worker with seccomp: %s%s",
                       strerror(-rc),
                       seccomp_api_get() < API_KILL_PROCESS
                           ? "; the sandbox around the service forbids seccomp(2)"
                           : "");
    return 1;
}
