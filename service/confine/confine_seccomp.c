/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The filter lists the calls that decoding, computing and writing products make. Arguments are
 * checked where a call could reach other files or processes. The table comes from traces of all
 * integration tests that decode, and from what glibc calls for memory, threads, time and standard
 * I/O. Every other call fails with EPERM, so that a library that tries one goes on without it.
 * Calls that no library tries, because they are only useful to reach outside, end the process.
 * Calls that glibc replaces by older ones when a kernel lacks them fail with ENOSYS.
 *
 * Calls that take a path cannot be judged here, because a filter sees the pointer only. Open is
 * judged by Landlock; stat, statfs and access go to a handler (confine_paths.c) that answers them
 * by open.
 *
 * A library of a newer version that fails here: `strace -f` shows the call that got EPERM.
 *
 * The runtimes of sanitizers fork and trace to look for leaks and to print stacks, and make further
 * calls at any time. Their builds have this filter with more calls, and a forbidden call fails
 * instead of ending the process. */
#include "service/confine/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/fiemap.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef PB_SANITIZED
#define DEADLY          SCMP_ACT_ERRNO(EPERM)
#define BY_PATH         SCMP_ACT_ALLOW
#define LIMIT_ARGUMENTS 1 /* of prlimit64 that are checked: its own process */
#else
#define DEADLY          SCMP_ACT_KILL_PROCESS
#define BY_PATH         SCMP_ACT_TRAP
#define LIMIT_ARGUMENTS 2 /* and that nothing changes */
#endif

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

#define SELF 0x7fffff5aU /* the process id in a compiled filter; above those that Linux gives */

#define API_KILL_PROCESS 3 /* libseccomp's level, which it finds out by seccomp(2) */

/* Calls by name: libseccomp knows the numbers of calls that the kernel headers here do not. A name
 * that it does not know either is a call that this architecture does not have. */

/* Calls that are allowed with any argument. */
static const char *const allowed[] = {
    /* open descriptors */
    "read", "pread64", "readv", "preadv", "write", "pwrite64", "writev", "pwritev", "lseek",
    "close", "close_range", "dup", "dup3", "fstat", "fstatfs", "getdents64", "ftruncate",
    "fallocate", "fsync", "fdatasync", "sync_file_range", "fadvise64", "readahead",
    "copy_file_range", "unlink", "unlinkat",
    /* the sockets that it was given, and the wake-up descriptor */
    "poll", "ppoll", "select", "pselect6", "recvfrom", "recvmsg", "sendto", "sendmsg", "shutdown",
    /* its own memory */
    "brk", "munmap", "mremap",
    /* its own threads and signals */
    "futex", "set_robust_list", "set_tid_address", "rseq", "gettid", "getpid", "getcpu",
    "sched_yield", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigtimedwait",
    "rt_sigsuspend", "sigaltstack", "pause", "restart_syscall", "exit", "exit_group",
    /* time, sizes of the machine, random numbers, its user and parent */
    "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time",
    "getrusage", "times", "sysinfo", "uname", "getrandom", "getuid", "geteuid", "getgid", "getegid",
    "getresuid", "getresgid", "getgroups", "capget", "getppid"};

#ifdef PB_SANITIZED
/* Calls of the runtimes of sanitizers. */
static const char *const sanitizers[] = {
    "pipe",  "pipe2",   "readlink",         "readlinkat", "prctl",  "madvise",    "getrlimit",
    "msync", "mincore", "membarrier",       "statx",      "getcwd", "arch_prctl", "setitimer",
    "mlock", "munlock", "sched_getaffinity"};
#endif

/* Calls that take a path and that libraries make for files that they may read. */
static const char *const by_path[] = {"stat",      "lstat",      "newfstatat", "access",
                                      "faccessat", "faccessat2", "statfs"};

/* Calls of a process that looks at a file for a client (service/status/check_file.c): it becomes
 * the client's user, and opens files to read them, which is checked below. */
static const char *const looking[] = {
    "read",         "close",          "fstat",           "stat",      "newfstatat", "poll",
    "ppoll",        "recvfrom",       "recvmsg",         "sendto",    "sendmsg",    "getuid",
    "geteuid",      "getgid",         "getegid",         "setgroups", "setresuid",  "setresgid",
    "rt_sigreturn", "rt_sigprocmask", "restart_syscall", "futex",     "exit",       "exit_group"};

/* Calls that fail with another error than EPERM, which is the one that callers continue with. */
static const struct {
    const char *name;
    int error;
} failing[] = {{"clone3", ENOSYS},        {"openat2", ENOSYS},     {"statx", ENOSYS},
               {"fchmodat2", ENOSYS},     {"futex_wait", ENOSYS},  {"futex_wake", ENOSYS},
               {"futex_requeue", ENOSYS}, {"futex_waitv", ENOSYS}, {"membarrier", ENOSYS},
               {"readlink", EINVAL},      {"readlinkat", EINVAL},  {"truncate", EACCES},
               {"rename", EACCES},        {"renameat", EACCES},    {"renameat2", EACCES},
               {"mkdir", EACCES},         {"mkdirat", EACCES}};

/* Calls that no library makes. */
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

static int allow_if(scmp_filter_ctx filter, const char *name, struct scmp_arg_cmp arg)
{
    return add(filter, SCMP_ACT_ALLOW, name, 1, &arg);
}

/* Only threads: the flags that glibc gives, and no new namespace. A new process is a clone without
 * CLONE_THREAD. clone3 hides its flags from a filter, and glibc does without it. */
static int add_clone(scmp_filter_ctx filter)
{
    const scmp_datum_t thread =
        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    const scmp_datum_t spaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_PTRACE |
                                CLONE_UNTRACED | CLONE_PARENT | CLONE_VFORK;
    struct scmp_arg_cmp process = SCMP_A0_64(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0);
    int rc = allow_if(filter, "clone", SCMP_A0_64(SCMP_CMP_MASKED_EQ, thread | spaces, thread));
    return rc ? rc : add(filter, DEADLY, "clone", 1, &process);
}

/* Signals (abort, raise), limits and cores are this process's own. */
static int add_own(scmp_filter_ctx filter)
{
    static const char *const signals[] = {"kill", "tgkill"};
    struct scmp_arg_cmp other = SCMP_A0_64(SCMP_CMP_NE, SELF, 0);
    struct scmp_arg_cmp asks[] = {SCMP_A0_64(SCMP_CMP_EQ, 0, 0), SCMP_A2_64(SCMP_CMP_EQ, 0, 0)};
    int rc = add(filter, SCMP_ACT_ALLOW, "prlimit64", LIMIT_ARGUMENTS, asks);
    rc = rc ? rc : allow_if(filter, "sched_getaffinity", SCMP_A0_64(SCMP_CMP_EQ, 0, 0));
    for (size_t i = 0; i < COUNT(signals) && rc == 0; i++) {
        rc = allow_if(filter, signals[i], SCMP_A0_64(SCMP_CMP_EQ, SELF, 0));
        rc = rc ? rc : add(filter, DEADLY, signals[i], 1, &other);
    }
    return rc;
}

/* Memory is never executable but for the code that is there; memory of other processes is not
 * merged with it (MADV_MERGEABLE tells by its timing what they hold). */
static int add_memory(scmp_filter_ctx filter)
{
    static const scmp_datum_t advice[] = {MADV_NORMAL,   MADV_RANDOM,    MADV_SEQUENTIAL,
                                          MADV_WILLNEED, MADV_DONTNEED,  MADV_FREE,
                                          MADV_HUGEPAGE, MADV_NOHUGEPAGE};
    int rc = allow_if(filter, "mmap", SCMP_A2_64(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    rc = rc ? rc : allow_if(filter, "mprotect", SCMP_A2_64(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    for (size_t i = 0; i < COUNT(advice) && rc == 0; i++)
        rc = allow_if(filter, "madvise", SCMP_A2_64(SCMP_CMP_EQ, advice[i], 0));
    return rc;
}

/* A file is opened to be read or written. O_PATH would pass by Landlock, and O_TRUNC empties a file
 * that is opened to be read, which Landlock before version 3 does not check. */
static int add_open(scmp_filter_ctx filter)
{
    const scmp_datum_t mask = O_PATH | O_TRUNC | O_ACCMODE, plain = O_PATH | O_TRUNC;
    int rc = allow_if(filter, "openat", SCMP_A2_64(SCMP_CMP_MASKED_EQ, plain, 0));
    rc = rc ? rc
            : allow_if(filter, "openat", SCMP_A2_64(SCMP_CMP_MASKED_EQ, mask, O_TRUNC | O_WRONLY));
    return rc ? rc
              : allow_if(filter, "openat", SCMP_A2_64(SCMP_CMP_MASKED_EQ, mask, O_TRUNC | O_RDWR));
}

/* Descriptors are copied and asked; no owner of signals, no lease, no lock, no flag that the
 * processes at the other ends share. */
static int add_fcntl(scmp_filter_ctx filter)
{
    static const scmp_datum_t commands[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL};
    int rc = 0;
    for (size_t i = 0; i < COUNT(commands) && rc == 0; i++)
        rc = allow_if(filter, "fcntl", SCMP_A1_64(SCMP_CMP_EQ, commands[i], 0));
    return rc;
}

/* Names of threads, and nothing else. */
static int add_prctl(scmp_filter_ctx filter)
{
    int rc = allow_if(filter, "prctl", SCMP_A0_64(SCMP_CMP_EQ, PR_SET_NAME, 0));
    return rc ? rc : allow_if(filter, "prctl", SCMP_A0_64(SCMP_CMP_EQ, PR_GET_NAME, 0));
}

static int add_names(scmp_filter_ctx filter, uint32_t action, const char *const *name, size_t n)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = add(filter, action, name[i], 0, NULL);
    return rc;
}

/* The extents of a file; every other request is answered as if nothing were a terminal. */
static int add_ioctl(scmp_filter_ctx filter)
{
    struct scmp_arg_cmp other = SCMP_A1_64(SCMP_CMP_NE, FS_IOC_FIEMAP, 0);
    int rc = allow_if(filter, "ioctl", SCMP_A1_64(SCMP_CMP_EQ, FS_IOC_FIEMAP, 0));
    return rc ? rc : add(filter, SCMP_ACT_ERRNO(ENOTTY), "ioctl", 1, &other);
}

static bool is_among(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i], name) == 0)
            return true;
    }
    return false;
}

/* A call that sanitizers need does not fail for them. */
static int add_failing(scmp_filter_ctx filter)
{
    int rc = 0;
    for (size_t i = 0; i < COUNT(failing) && rc == 0; i++) {
#ifdef PB_SANITIZED
        if (is_among(failing[i].name, sanitizers, COUNT(sanitizers)))
            continue;
#endif
        rc = add(filter, SCMP_ACT_ERRNO((uint32_t)failing[i].error), failing[i].name, 0, NULL);
    }
    return rc;
}

static int fill(scmp_filter_ctx filter)
{
    int rc = add_names(filter, SCMP_ACT_ALLOW, allowed, COUNT(allowed));
#ifdef PB_SANITIZED
    rc = rc ? rc : add_names(filter, SCMP_ACT_ALLOW, sanitizers, COUNT(sanitizers));
#endif
    rc = rc ? rc : add_names(filter, BY_PATH, by_path, COUNT(by_path));
    rc = rc ? rc : add_names(filter, DEADLY, deadly, COUNT(deadly));
    rc = rc ? rc : add_failing(filter);
    rc = rc ? rc : add_open(filter);
    rc = rc ? rc : add_memory(filter);
    rc = rc ? rc : add_clone(filter);
    rc = rc ? rc : add_own(filter);
    rc = rc ? rc : add_fcntl(filter);
    rc = rc ? rc : add_prctl(filter);
    return rc ? rc : add_ioctl(filter);
}

/* Files of a client are only read, and nothing of the descriptor that it passed changes. */
static int fill_looking(scmp_filter_ctx filter)
{
    const scmp_datum_t mask = O_PATH | O_TRUNC | O_CREAT | O_ACCMODE;
    int rc = add_names(filter, SCMP_ACT_ALLOW, looking, COUNT(looking));
#ifdef PB_SANITIZED
    rc = rc ? rc : add_names(filter, SCMP_ACT_ALLOW, sanitizers, COUNT(sanitizers));
    rc = rc ? rc : add_names(filter, SCMP_ACT_ALLOW, allowed, COUNT(allowed));
    rc = rc ? rc : add_memory(filter);
#endif
    for (size_t i = 0; i < COUNT(deadly) && rc == 0; i++) {
        if (!is_among(deadly[i], looking, COUNT(looking)))
            rc = add(filter, DEADLY, deadly[i], 0, NULL);
    }
    rc = rc ? rc : allow_if(filter, "openat", SCMP_A2_64(SCMP_CMP_MASKED_EQ, mask, O_RDONLY));
    return rc ? rc : allow_if(filter, "fcntl", SCMP_A1_64(SCMP_CMP_EQ, F_GETFL, 0));
}

/* --- the programs of the filters --- */

/* Compiling takes a millisecond, so it is done once, and a child that inherits the program only
 * writes its process id into it. */
static struct filter {
    int (*fill)(scmp_filter_ctx filter);
    struct sock_fprog program; /* no code: not compiled yet */
} decoding = {.fill = fill}, of_look = {.fill = fill_looking};

/* Reads what libseccomp writes to a descriptor. */
static int export(scmp_filter_ctx from, struct sock_fprog *out_program)
{
    int fd = memfd_create("filter", MFD_CLOEXEC);
    int rc = fd < 0 ? -errno : seccomp_export_bpf(from, fd);
    off_t bytes = rc == 0 ? lseek(fd, 0, SEEK_END) : 0;
    struct sock_filter *code = bytes > 0 ? malloc((size_t)bytes) : NULL;
    if (rc == 0 && code == NULL)
        rc = -ENOMEM;
    if (rc == 0 && pread(fd, code, (size_t)bytes, 0) != bytes)
        rc = -EIO;
    if (fd >= 0)
        (void)close(fd);
    if (rc != 0) {
        free(code);
        return rc;
    }
    out_program->len = (unsigned short)((size_t)bytes / sizeof *code);
    out_program->filter = code;
    return 0;
}

static int compile(struct filter *filter)
{
    scmp_filter_ctx calls = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (calls == NULL)
        return -ENOMEM;
    int rc = seccomp_attr_set(calls, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a binary tree of calls */
    rc = rc ? rc : filter->fill(calls);
    rc = rc ? rc : export(calls, &filter->program);
    seccomp_release(calls);
    return rc;
}

static void write_process_id(const struct sock_fprog *program)
{
    for (unsigned i = 0; i < program->len; i++) {
        struct sock_filter *at = &program->filter[i];
        if (at->code == (BPF_JMP | BPF_JEQ | BPF_K) && at->k == SELF)
            at->k = (uint32_t)getpid();
    }
}

static bool is_supported(void)
{
    return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
}

/* An error shows when the filter is applied, which compiles it again. */
static void prepare(struct filter *filter)
{
    if (filter->program.len == 0 && is_supported())
        (void)compile(filter);
}

static int apply(struct filter *filter)
{
    int rc = filter->program.len > 0 ? 0 : compile(filter);
    if (rc != 0)
        return rc;
    write_process_id(&filter->program);
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter->program, 0, 0) == 0 ? 0 : -errno;
}

void pb_seccomp_prepare(void)
{
    prepare(&decoding);
}

int pb_seccomp_apply(struct pb_err *err)
{
    if (!is_supported())
        return 0;
    int rc = pb_confine_paths_answer();
    rc = rc ? rc : apply(&decoding);
    if (rc < 0)
        return pb_fail(err, PB_E_SYSTEM, "cannot confine the worker with seccomp: %s%s",
                       strerror(-rc),
                       seccomp_api_get() < API_KILL_PROCESS
                           ? "; the sandbox around the service forbids seccomp(2)"
                           : "");
    return 1;
}

void pb_seccomp_prepare_look(void)
{
    prepare(&of_look);
}

int pb_seccomp_apply_look(void)
{
    if (of_look.program.len == 0)
        return -ENOSYS;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? apply(&of_look) : -errno;
}
