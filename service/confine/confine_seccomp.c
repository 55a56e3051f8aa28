/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The filter lists the calls that decoding, computing and writing products make. Arguments are
 * checked where a call could reach other files or processes. The table is made from traces of all
 * integration tests that decode, and from glibc's calls for memory, threads, time and standard I/O.
 * Every other call fails with EPERM, so that a library that tries one continues without it.
 * Calls that no library tries, because they are only useful to reach outside, end the process.
 * Calls that glibc replaces by older ones when a kernel lacks them fail with ENOSYS.
 *
 * Calls that take a path cannot be judged here, because a filter sees the pointer only. Open is
 * judged by Landlock; stat, statfs and access are passed to a handler (confine_paths.c) that
 * answers them by open.
 *
 * A library of a newer version that fails here: `strace -f` shows the call that got EPERM.
 *
 * The runtimes of sanitizers fork and trace to find leaks and to print stacks, and make further
 * calls at any time. Their builds have this filter with more calls, and a forbidden call fails
 * instead of ending the process. */
#include "service/confine/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/fs.h>
#include <linux/fiemap.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define FAILS_WITH(error) (SECCOMP_RET_ERRNO | (uint32_t)(error))

#ifdef PB_SANITIZED
#define DEADLY          FAILS_WITH(EPERM)
#define BY_PATH         SECCOMP_RET_ALLOW
#define LIMIT_ARGUMENTS 1 /* arguments of prlimit64 that are checked: its own process */
#else
#define DEADLY          SECCOMP_RET_KILL_PROCESS
#define BY_PATH         SECCOMP_RET_TRAP
#define LIMIT_ARGUMENTS 2 /* the process itself, and no new limit */
#endif

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

#define SELF 0x7fffff5aU /* the process id in a compiled filter; above those that Linux gives */

/* Calls by name: libseccomp knows the numbers of calls that the kernel headers here do not. A name
 * that it does not know either is a call that this architecture does not have. */

/* Calls that are allowed with any argument. */
static const char *const allowed[] = {
    /* open descriptors */
    "read", "pread64", "readv", "preadv", "write", "pwrite64", "writev", "pwritev", "lseek",
    "close", "close_range", "dup", "dup3", "fstat", "fstatfs", "getdents64", "ftruncate",
    "fallocate", "fsync", "fdatasync", "sync_file_range", "fadvise64", "readahead",
    "copy_file_range", "unlink", "unlinkat",
    /* sockets that were passed to it, and the wake-up descriptor */
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
    /* access to other processes */
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_open",
    "pidfd_getfd", "pidfd_send_signal", "tkill", "rt_tgsigqueueinfo", "rt_sigqueueinfo",
    "migrate_pages", "move_pages",
    /* sockets */
    "socket", "socketpair", "connect", "bind", "listen", "accept", "accept4",
    /* file names that Landlock does not check or that change the view of other processes */
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

/* --- the list of rules --- */

/* The filter is written here and not by libseccomp, which does not handle a lack of memory: it
 * leaves rules out, never returns or crashes. This code does not allocate. libseccomp is used for
 * the numbers of calls. */

#define RULES_MAX     400
#define ARGUMENTS_MAX 2

struct arg { /* (argument number at & mask) == value */
    unsigned at;
    uint64_t mask, value;
};

/* The first rule of a call whose arguments match decides. */
struct rule {
    int call;
    uint32_t action;
    unsigned n;
    struct arg arg[ARGUMENTS_MAX];
};

struct rules {
    struct rule rule[RULES_MAX];
    size_t n;
    bool full;
};

static struct arg equal(unsigned at, uint64_t value)
{
    return (struct arg){at, UINT64_MAX, value};
}

static struct arg masked(unsigned at, uint64_t mask, uint64_t value)
{
    return (struct arg){at, mask, value};
}

static void add(struct rules *rules, uint32_t action, const char *name, unsigned n,
                const struct arg *arg)
{
    int call = seccomp_syscall_resolve_name(name);
    if (call < 0)
        return; /* not a call of this architecture; the default applies */
    if (rules->n == RULES_MAX) {
        rules->full = true;
        return;
    }
    struct rule *rule = &rules->rule[rules->n++];
    *rule = (struct rule){.call = call, .action = action, .n = n};
    for (unsigned i = 0; i < n; i++)
        rule->arg[i] = arg[i];
}

static void add_any(struct rules *rules, uint32_t action, const char *name)
{
    add(rules, action, name, 0, NULL);
}

static void allow_if(struct rules *rules, const char *name, struct arg arg)
{
    add(rules, SECCOMP_RET_ALLOW, name, 1, &arg);
}

/* Allows only threads: the flags that glibc uses, and no new namespace. A new process is a clone
 * without CLONE_THREAD. clone3 hides its flags from a filter, and glibc works without it. */
static void add_clone(struct rules *rules)
{
    const uint64_t thread =
        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    const uint64_t spaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                            CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_PTRACE |
                            CLONE_UNTRACED | CLONE_PARENT | CLONE_VFORK;
    const struct arg process = masked(0, CLONE_THREAD, 0);
    allow_if(rules, "clone", masked(0, thread | spaces, thread));
    add(rules, DEADLY, "clone", 1, &process);
}

/* Restricts signals (abort, raise), limits and cores to this process, and priorities to the calling
 * thread. */
static void add_own(struct rules *rules)
{
    static const char *const signals[] = {"kill", "tgkill"};
    static const char *const priorities[] = {"getpriority", "setpriority"};
    const struct arg asks[] = {equal(0, 0), equal(2, 0)}, self[] = {equal(0, 0), equal(1, 0)};
    add(rules, SECCOMP_RET_ALLOW, "prlimit64", LIMIT_ARGUMENTS, asks);
    allow_if(rules, "sched_getaffinity", equal(0, 0));
    for (size_t i = 0; i < COUNT(priorities); i++) /* 0: PRIO_PROCESS */
        add(rules, SECCOMP_RET_ALLOW, priorities[i], COUNT(self), self);
    add_any(rules, DEADLY, "setpriority");
    for (size_t i = 0; i < COUNT(signals); i++) {
        allow_if(rules, signals[i], equal(0, SELF));
        add_any(rules, DEADLY, signals[i]);
    }
}

/* Memory must not become executable, except code that is mapped already; memory is not merged with
 * that of other processes (the timing of MADV_MERGEABLE reveals their content). */
static void add_memory(struct rules *rules)
{
    static const uint64_t advice[] = {MADV_NORMAL,   MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED,
                                      MADV_DONTNEED, MADV_FREE,   MADV_HUGEPAGE,   MADV_NOHUGEPAGE};
    allow_if(rules, "mmap", masked(2, PROT_EXEC, 0));
    allow_if(rules, "mprotect", masked(2, PROT_EXEC, 0));
    for (size_t i = 0; i < COUNT(advice); i++)
        allow_if(rules, "madvise", equal(2, advice[i]));
}

/* Allows opening a file for reading or writing. O_PATH would bypass Landlock, and O_TRUNC empties
 * a file that is opened for reading, which Landlock before version 3 does not check. */
static void add_open(struct rules *rules)
{
    const uint64_t mask = O_PATH | O_TRUNC | O_ACCMODE, plain = O_PATH | O_TRUNC;
    allow_if(rules, "openat", masked(2, plain, 0));
    allow_if(rules, "openat", masked(2, mask, O_TRUNC | O_WRONLY));
    allow_if(rules, "openat", masked(2, mask, O_TRUNC | O_RDWR));
}

/* Allows duplicating and querying descriptors; no owner of signals, no lease, no lock, no flag
 * that is shared with the processes at the other ends. */
static void add_fcntl(struct rules *rules)
{
    static const uint64_t commands[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL};
    for (size_t i = 0; i < COUNT(commands); i++)
        allow_if(rules, "fcntl", equal(1, commands[i]));
}

/* Allows only names of threads. */
static void add_prctl(struct rules *rules)
{
    allow_if(rules, "prctl", equal(0, PR_SET_NAME));
    allow_if(rules, "prctl", equal(0, PR_GET_NAME));
}

static void add_names(struct rules *rules, uint32_t action, const char *const *name, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add_any(rules, action, name[i]);
}

/* Allows reading the extents of a file; every other request fails as if no file were a terminal. */
static void add_ioctl(struct rules *rules)
{
    allow_if(rules, "ioctl", equal(1, FS_IOC_FIEMAP));
    add_any(rules, FAILS_WITH(ENOTTY), "ioctl");
}

static bool is_among(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i], name) == 0)
            return true;
    }
    return false;
}

static void fill(struct rules *rules)
{
    add_names(rules, SECCOMP_RET_ALLOW, allowed, COUNT(allowed));
#ifdef PB_SANITIZED /* first: a call that sanitizers need does not fail for them */
    add_names(rules, SECCOMP_RET_ALLOW, sanitizers, COUNT(sanitizers));
#endif
    add_names(rules, BY_PATH, by_path, COUNT(by_path));
    add_names(rules, DEADLY, deadly, COUNT(deadly));
    for (size_t i = 0; i < COUNT(failing); i++)
        add_any(rules, FAILS_WITH(failing[i].error), failing[i].name);
    add_open(rules);
    add_memory(rules);
    add_clone(rules);
    add_own(rules);
    add_fcntl(rules);
    add_prctl(rules);
    add_ioctl(rules);
}

/* Files of a client are only read, and the descriptor that it passed is not changed. */
static void fill_looking(struct rules *rules)
{
    const uint64_t mask = O_PATH | O_TRUNC | O_CREAT | O_ACCMODE;
    add_names(rules, SECCOMP_RET_ALLOW, looking, COUNT(looking));
#ifdef PB_SANITIZED
    add_names(rules, SECCOMP_RET_ALLOW, sanitizers, COUNT(sanitizers));
    add_names(rules, SECCOMP_RET_ALLOW, allowed, COUNT(allowed));
    add_memory(rules);
#endif
    for (size_t i = 0; i < COUNT(deadly); i++) {
        if (!is_among(deadly[i], looking, COUNT(looking)))
            add_any(rules, DEADLY, deadly[i]);
    }
    allow_if(rules, "openat", masked(2, mask, O_RDONLY));
    allow_if(rules, "fcntl", equal(1, F_GETFL));
}

/* --- the programs of the filters --- */

#define CODE_MAX 2048

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#define X32_CALLS    0x40000000U /* numbers from here on are calls of another architecture */
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#else
#error "no seccomp filter for this architecture"
#endif

/* The program of a filter. Writing it takes part of a millisecond; therefore it is written once,
 * and a child that inherits it only writes its process id into it. */
static struct filter {
    void (*fill)(struct rules *rules);
    unsigned n; /* 0 = not written yet */
    struct sock_filter code[CODE_MAX];
} decoding = {.fill = fill}, of_look = {.fill = fill_looking};

/* Appends an instruction and returns its index. Instructions beyond the end are only counted. */
static unsigned put(struct filter *filter, uint16_t code, uint32_t k)
{
    if (filter->n < CODE_MAX)
        filter->code[filter->n] = (struct sock_filter){.code = code, .k = k};
    return filter->n++;
}

static void put_if(struct filter *filter, uint16_t code, uint32_t k, uint8_t then,
                   uint8_t otherwise)
{
    unsigned at = put(filter, BPF_JMP | code | BPF_K, k);
    if (at < CODE_MAX) {
        filter->code[at].jt = then;
        filter->code[at].jf = otherwise;
    }
}

static void put_load(struct filter *filter, size_t offset)
{
    (void)put(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset);
}

static void put_return(struct filter *filter, uint32_t action)
{
    (void)put(filter, BPF_RET | BPF_K, action);
}

/* Makes the jump at `from` end here. A jump beyond the end of the code is not written, see write.
 */
static void end_jump(struct filter *filter, unsigned from)
{
    if (from < CODE_MAX)
        filter->code[from].k = filter->n - from - 1;
}

/* Compares half an argument; the jump at *out_jump is taken when it does not match. */
static void put_half(struct filter *filter, size_t offset, uint32_t mask, uint32_t value,
                     unsigned *out_jump)
{
    put_load(filter, offset);
    if (mask != UINT32_MAX)
        (void)put(filter, BPF_ALU | BPF_AND | BPF_K, mask);
    put_if(filter, BPF_JEQ, value, 1, 0);
    *out_jump = put(filter, BPF_JMP | BPF_JA, 0);
}

static void put_rule(struct filter *filter, const struct rule *rule)
{
    unsigned jump[2 * ARGUMENTS_MAX], n = 0;
    const bool big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    for (unsigned i = 0; i < rule->n; i++) {
        const struct arg *arg = &rule->arg[i];
        size_t at = offsetof(struct seccomp_data, args) + arg->at * sizeof(uint64_t);
        if (arg->mask >> 32 != 0)
            put_half(filter, at + (big ? 0 : 4), (uint32_t)(arg->mask >> 32),
                     (uint32_t)(arg->value >> 32), &jump[n++]);
        put_half(filter, at + (big ? 4 : 0), (uint32_t)arg->mask, (uint32_t)arg->value, &jump[n++]);
    }
    put_return(filter, rule->action);
    while (n > 0)
        end_jump(filter, jump[--n]);
}

/* Appends all rules of the call of rule[0]. */
static void put_call(struct filter *filter, const struct rule *rule, size_t n)
{
    bool decided = false;
    for (size_t i = 0; i < n && !decided; i++) {
        put_rule(filter, &rule[i]);
        decided = rule[i].n == 0;
    }
    if (!decided)
        put_return(filter, FAILS_WITH(EPERM));
}

static int by_call(const struct rule *a, const struct rule *b)
{
    return (a->call > b->call) - (a->call < b->call);
}

/* Sorts the rules by call; rules of one call keep their order. qsort may allocate. */
static void sort(struct rules *rules)
{
    for (size_t i = 1; i < rules->n; i++) {
        struct rule rule = rules->rule[i];
        size_t at = i;
        for (; at > 0 && by_call(&rules->rule[at - 1], &rule) > 0; at--)
            rules->rule[at] = rules->rule[at - 1];
        rules->rule[at] = rule;
    }
}

/* Calls from `first` to the next range's, which end alike: by the rules of one call, or by an
 * action. */
struct range {
    uint32_t first;
    uint32_t action;
    size_t rule, n; /* n 0: the action */
};

struct ranges {
    struct range range[2 * RULES_MAX + 1];
    size_t n;
};

/* Appends a range, or extends the last one if that has the same action. */
static void add_range(struct ranges *ranges, const struct range *range)
{
    const struct range *const last = ranges->n > 0 ? &ranges->range[ranges->n - 1] : NULL;
    if (last == NULL || last->n > 0 || range->n > 0 || last->action != range->action)
        ranges->range[ranges->n++] = *range;
}

/* Divides the numbers of calls into ranges: most calls have neighbours with the same action, and
 * numbers without rules fail. The rules are sorted. */
static void divide(const struct rules *rules, struct ranges *out)
{
    uint32_t next = 0; /* first number that has no range */
    out->n = 0;
    for (size_t i = 0, n; i < rules->n; i += n) {
        const struct rule *const rule = &rules->rule[i];
        const uint32_t call = (uint32_t)rule->call;
        for (n = 1; i + n < rules->n && rules->rule[i + n].call == rule->call; n++)
            ;
        if (call > next)
            add_range(out, &(struct range){.first = next, .action = FAILS_WITH(EPERM)});
        add_range(out, &(struct range){call, rule->action, i, rule->n > 0 ? n : 0});
        next = call + 1;
    }
    add_range(out, &(struct range){.first = next, .action = FAILS_WITH(EPERM)});
}

/* Makes the comparison at `from`, which is true for the later numbers, jump to the end of the
 * code. Its own jump reaches 255 instructions; a longer one is an instruction of its own. */
static void jump_over(struct filter *filter, unsigned from)
{
    const unsigned bytes = filter->n - from - 1;
    if (filter->n >= CODE_MAX) {
        filter->n = CODE_MAX + 1;
        return;
    }
    struct sock_filter *const at = &filter->code[from];
    if (bytes <= UINT8_MAX) {
        at->jt = (uint8_t)bytes;
        return;
    }
    memmove(at + 2, at + 1, bytes * sizeof *at);
    at->jf = 1;
    at[1] = (struct sock_filter){.code = BPF_JMP | BPF_JA, .k = bytes};
    filter->n++;
}

/* Appends a binary tree of comparisons with numbers of calls; its leaves are ranges. Jumps are
 * relative and stay inside a branch, which may therefore be moved. */
static void put_tree(struct filter *filter, const struct rules *rules, const struct range *range,
                     size_t n)
{
    if (n == 1 && range->n > 0) {
        put_call(filter, &rules->rule[range->rule], range->n);
        return;
    }
    if (n == 1) {
        put_return(filter, range->action);
        return;
    }
    const unsigned from = filter->n;
    put_if(filter, BPF_JGE, range[n / 2].first, 0, 0);
    put_tree(filter, rules, range, n / 2);
    jump_over(filter, from);
    put_tree(filter, rules, range + n / 2, n - n / 2);
}

static int compile(struct filter *filter)
{
    struct rules rules;
    struct ranges ranges;
    rules.n = 0;
    rules.full = false;
    filter->fill(&rules);
    sort(&rules);
    divide(&rules, &ranges);
    put_load(filter, offsetof(struct seccomp_data, arch));
    put_if(filter, BPF_JEQ, ARCHITECTURE, 1, 0);
    put_return(filter, SECCOMP_RET_KILL_PROCESS);
    put_load(filter, offsetof(struct seccomp_data, nr));
#ifdef X32_CALLS
    put_if(filter, BPF_JGE, X32_CALLS, 0, 1);
    put_return(filter, SECCOMP_RET_KILL_PROCESS);
#endif
    put_tree(filter, &rules, ranges.range, ranges.n);
    if (filter->n <= CODE_MAX && !rules.full)
        return 0;
    filter->n = 0;
    return -E2BIG;
}

static void write_process_id(struct filter *filter)
{
    for (unsigned i = 0; i < filter->n; i++) {
        struct sock_filter *at = &filter->code[i];
        if (at->code == (BPF_JMP | BPF_JEQ | BPF_K) && at->k == SELF)
            at->k = (uint32_t)getpid();
    }
}

static bool is_supported(void)
{
    return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
}

static void prepare(struct filter *filter)
{
    if (filter->n == 0 && is_supported())
        (void)compile(filter); /* apply reports an error */
}

static int apply(struct filter *filter)
{
    int rc = filter->n > 0 ? 0 : compile(filter);
    if (rc != 0)
        return rc;
    write_process_id(filter);
    struct sock_fprog program = {(unsigned short)filter->n, filter->code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0 ? 0 : -errno;
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
        return pb_fail(err, PB_E_SYSTEM, "cannot confine the worker with seccomp: %s",
                       strerror(-rc));
    return 1;
}

void pb_seccomp_prepare_look(void)
{
    prepare(&of_look);
}

int pb_seccomp_apply_look(void)
{
    if (of_look.n == 0)
        return -ENOSYS;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? apply(&of_look) : -errno;
}
