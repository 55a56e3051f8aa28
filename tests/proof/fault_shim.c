/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A library for LD_PRELOAD that makes chosen calls of a process fail, wait, hang or end it, and
 * shifts its wall clock. Its actions are set by a control file (named by PB_FAULTS) that all
 * processes map and that the test changes while they run: see control.py for the other side of the
 * layout. Nothing is logged from here; every rule counts its calls and its hits in the file. The
 * mapping outlives closed descriptors, fork and a sandbox.
 *
 * malloc and its kind call glibc's __libc_ functions, so that no symbol has to be looked up during
 * an allocation. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define MAGIC     0x70626661u
#define RULES_MAX 15

enum call {
    CALL_MALLOC = 1,
    CALL_OPEN,
    CALL_READ,
    CALL_PREAD,
    CALL_WRITE,
    CALL_PWRITE,
    CALL_FSYNC,
    CALL_RENAME,
    CALL_MKDIR,
    CALL_CLONE,
    CALL_MMAP,
    CALL_ACCEPT,
    CALL_UNLINK,
    CALL_LINK,
    CALL_CHANGE /* in a rule: any call that changes a directory or makes a change durable */
};
enum role { ROLE_ANY, ROLE_DAEMON, ROLE_WORKER, ROLE_OTHER };
enum caller { CALLER_ANY, CALLER_PROGRAM, CALLER_LIBRARY };
enum mode {
    MODE_OFF,
    MODE_FAIL_NTH,
    MODE_FAIL_ALL,
    MODE_FAIL_FROM,
    MODE_DELAY,
    MODE_HANG,
    MODE_KILL_NTH /* SIGKILL before the call; where a sandbox refuses that, the call hangs */
};

struct rule {
    uint32_t call, role, caller;
    _Atomic uint32_t mode;
    int32_t error;
    uint32_t delay_ms; /* each call waits a random part of it */
    uint64_t n;        /* 1 = the first matching call */
    _Atomic uint64_t count, hits;
    char path[128];      /* part of the path; "" = every call */
    _Atomic int32_t pid; /* process of MODE_KILL_NTH, once it is there */
    uint32_t at_call;    /* its call ... */
    char at_path[72];    /* ... and the end of its path; "" = unknown */
};

struct control {
    uint32_t magic;
    _Atomic uint32_t n_rules;
    _Atomic int64_t clock_offset_ns;
    char reserved[240];
    struct rule rules[RULES_MAX];
};
_Static_assert(sizeof(struct rule) == 256, "control.py spells this layout");
_Static_assert(offsetof(struct control, rules) == 256, "control.py spells this layout");

static struct control *control;
static enum role role;
static uintptr_t program_begin, program_end;

/* glibc's own entries below the public names. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

/* Constructors of the libraries that are linked into the program run before main; their failures
 * are not the program's. */
static _Atomic bool started;
static int (*program_main)(int, char **, char **);

static int start(int argc, char **argv, char **environment)
{
    atomic_store(&started, true);
    return program_main(argc, argv, environment);
}

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*loader_fini)(void), void *stack_end);

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*loader_fini)(void), void *stack_end)
{
    int (*real)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
                void (*)(void), void *);
    *(void **)(&real) = dlsym(RTLD_NEXT, "__libc_start_main");
    program_main = main;
    return real(start, argc, argv, init, fini, loader_fini, stack_end);
}

static int find_program(struct dl_phdr_info *info, size_t bytes, void *user)
{
    (void)bytes;
    (void)user;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) != 0) {
            program_begin = info->dlpi_addr + part->p_vaddr;
            program_end = program_begin + part->p_memsz;
        }
    }
    return 1; /* the first entry is the program */
}

static enum role find_role(void)
{
    char line[4096];
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, line, sizeof line - 1) : 0;
    if (fd >= 0)
        (void)close(fd);
    if (n <= 0)
        return ROLE_OTHER;
    line[n] = '\0';
    for (const char *at = line; at < line + n; at += strlen(at) + 1) {
        if (strcmp(at, "--worker") == 0)
            return ROLE_WORKER;
    }
    return strstr(line, "pushbroomd") != NULL ? ROLE_DAEMON : ROLE_OTHER;
}

__attribute__((constructor)) static void load(void)
{
    const char *name = getenv("PB_FAULTS");
    int fd = name != NULL ? open(name, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    (void)dl_iterate_phdr(find_program, NULL);
    role = find_role();
    struct control *mapped = mmap(NULL, sizeof *mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (mapped != MAP_FAILED && mapped->magic == MAGIC)
        control = mapped;
}

static bool is_caller(const struct rule *rule, const void *from)
{
    bool ours = (uintptr_t)from >= program_begin && (uintptr_t)from < program_end;
    return rule->caller == CALLER_ANY || ours == (rule->caller == CALLER_PROGRAM);
}

/* The ends of the paths that descriptors were opened by: a confined process may not read the links
 * in /proc. */
#define OPENED_MOST 1024
static char opened[OPENED_MOST][256];

static const char *end_of(const char *path, size_t most)
{
    const size_t n = strlen(path);
    return path + (n > most ? n - most : 0);
}

/* at: the directory that a relative path begins in, or AT_FDCWD. */
static int note_opened(int fd, int at, const char *path)
{
    if (fd < 0 || fd >= OPENED_MOST)
        return fd;
    const bool is_below = path[0] != '/' && at >= 0 && at < OPENED_MOST;
    (void)snprintf(opened[fd], sizeof opened[fd], "%s/%s", is_below ? end_of(opened[at], 120) : "",
                   end_of(path, 120));
    return fd;
}

static bool is_path(const struct rule *rule, const char *path, int fd)
{
    char link[64], target[4096];
    if (rule->path[0] == '\0')
        return true;
    if (path != NULL)
        return strstr(path, rule->path) != NULL;
    if (fd < 0)
        return false;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, target, sizeof target - 1);
    target[n > 0 ? n : 0] = '\0';
    if (n < 0 && fd < OPENED_MOST)
        return strstr(opened[fd], rule->path) != NULL;
    return strstr(target, rule->path) != NULL;
}

/* Returns true if the path below directory `at` is meant; both parts are looked at. */
static bool is_path_at(const struct rule *rule, int at, const char *path)
{
    char link[64], whole[8192];
    if (rule->path[0] == '\0' || path[0] == '/' || at == AT_FDCWD)
        return is_path(rule, path, -1);
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", at);
    ssize_t n = readlink(link, whole, 4095);
    n = n > 0 ? n : 0;
    (void)snprintf(whole + n, sizeof whole - (size_t)n, "/%s", path);
    return strstr(whole, rule->path) != NULL;
}

static void wait_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    (void)nanosleep(&time, NULL);
}

/* Ends the process in the call, after a note of it in the rule. */
static void end_process(struct rule *rule, enum call call, const char *path, int fd)
{
    if (path == NULL)
        path = fd >= 0 && fd < OPENED_MOST ? opened[fd] : "";
    rule->at_call = call;
    (void)snprintf(rule->at_path, sizeof rule->at_path, "%s",
                   end_of(path, sizeof rule->at_path - 1));
    atomic_store(&rule->pid, (int32_t)getpid());
    atomic_fetch_add(&rule->hits, 1);
    (void)kill(getpid(), SIGKILL);
    while (atomic_load(&rule->mode) == MODE_KILL_NTH)
        wait_ms(20);
}

/* Returns true if the rule makes this call fail. Waits, hangs and kills happen here. */
static bool acts(struct rule *rule, enum call call, const char *path, int fd)
{
    static _Atomic uint64_t random = 88172645463325252u;
    uint64_t number = atomic_fetch_add(&rule->count, 1) + 1;
    switch (atomic_load(&rule->mode)) {
    case MODE_FAIL_NTH:
        return number == rule->n;
    case MODE_FAIL_ALL:
        return true;
    case MODE_FAIL_FROM:
        return number >= rule->n;
    case MODE_DELAY: {
        uint64_t mixed = (atomic_fetch_add(&random, 0x9e3779b97f4a7c15u) ^ number * 2654435761u);
        mixed ^= mixed >> 29;
        wait_ms((long)(mixed % (rule->delay_ms + 1u)));
        atomic_fetch_add(&rule->hits, 1);
        return false;
    }
    case MODE_KILL_NTH:
        if (number == rule->n)
            end_process(rule, call, path, fd);
        return false;
    case MODE_HANG:
        atomic_fetch_add(&rule->hits, 1);
        while (atomic_load(&rule->mode) == MODE_HANG)
            wait_ms(20);
        return false;
    default:
        return false;
    }
}

static bool is_call(const struct rule *rule, enum call call)
{
    return rule->call == call || (rule->call == CALL_CHANGE &&
                                  (call == CALL_FSYNC || call == CALL_RENAME ||
                                   call == CALL_MKDIR || call == CALL_UNLINK || call == CALL_LINK));
}

/* Finds the next rule in force for the call, from number *at on, and sets *at to the number after
 * it; NULL if there is no other one. fd: the file, or the directory of path. */
static struct rule *find_rule(enum call call, const char *path, int fd, const void *from,
                              uint32_t *at)
{
    uint32_t n = control != NULL && atomic_load(&started) ? atomic_load(&control->n_rules) : 0;
    while (*at < n && *at < RULES_MAX) {
        struct rule *rule = &control->rules[(*at)++];
        if (!is_call(rule, call) || (rule->role != ROLE_ANY && rule->role != role) ||
            atomic_load(&rule->mode) == MODE_OFF || !is_caller(rule, from))
            continue;
        int keep = errno;
        bool matches =
            path != NULL && fd != -1 ? is_path_at(rule, fd, path) : is_path(rule, path, fd);
        errno = keep;
        if (matches)
            return rule;
    }
    return NULL;
}

/* 0, or the errno that the call has to fail with. */
static int fault(enum call call, const char *path, int fd, const void *from)
{
    uint32_t at = 0;
    for (struct rule *rule; (rule = find_rule(call, path, fd, from, &at)) != NULL;)
        if (acts(rule, call, path, fd)) {
            atomic_fetch_add(&rule->hits, 1);
            return rule->error;
        }
    return 0;
}

#define FROM __builtin_return_address(0)
#define FAIL(call, path, fd, value)                                                                \
    do {                                                                                           \
        int error_ = fault(call, path, fd, FROM);                                                  \
        if (error_ != 0) {                                                                         \
            errno = error_;                                                                        \
            return value;                                                                          \
        }                                                                                          \
    } while (0)
#define REAL(type, name, ...)                                                                      \
    static type (*real)(__VA_ARGS__);                                                              \
    if (real == NULL)                                                                              \
    *(void **)(&real) = dlsym(RTLD_NEXT, name)

void *malloc(size_t bytes)
{
    FAIL(CALL_MALLOC, NULL, -1, NULL);
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    FAIL(CALL_MALLOC, NULL, -1, NULL);
    return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    FAIL(CALL_MALLOC, NULL, -1, NULL);
    return __libc_realloc(old, bytes);
}

static mode_t mode_of(int flags, va_list args)
{
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
}

#define OPEN(function)                                                                             \
    int function(const char *path, int flags, ...)                                                 \
    {                                                                                              \
        REAL(int, #function, const char *, int, mode_t);                                           \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        mode_t mode = mode_of(flags, args);                                                        \
        va_end(args);                                                                              \
        FAIL(CALL_OPEN, path, -1, -1);                                                             \
        return note_opened(real(path, flags, mode), AT_FDCWD, path);                               \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(function)                                                                           \
    int function(int at, const char *path, int flags, ...)                                         \
    {                                                                                              \
        REAL(int, #function, int, const char *, int, mode_t);                                      \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        mode_t mode = mode_of(flags, args);                                                        \
        va_end(args);                                                                              \
        FAIL(CALL_OPEN, path, at, -1);                                                             \
        return note_opened(real(at, path, flags, mode), at, path);                                 \
    }
OPENAT(openat)
OPENAT(openat64)

ssize_t read(int fd, void *to, size_t bytes)
{
    REAL(ssize_t, "read", int, void *, size_t);
    FAIL(CALL_READ, NULL, fd, -1);
    return real(fd, to, bytes);
}

ssize_t write(int fd, const void *from, size_t bytes)
{
    REAL(ssize_t, "write", int, const void *, size_t);
    FAIL(CALL_WRITE, NULL, fd, -1);
    return real(fd, from, bytes);
}

#define PREAD(function, call, pointer)                                                             \
    ssize_t function(int fd, pointer data, size_t bytes, off_t at)                                 \
    {                                                                                              \
        REAL(ssize_t, #function, int, pointer, size_t, off_t);                                     \
        FAIL(call, NULL, fd, -1);                                                                  \
        return real(fd, data, bytes, at);                                                          \
    }
PREAD(pread, CALL_PREAD, void *)
PREAD(pread64, CALL_PREAD, void *)
PREAD(pwrite, CALL_PWRITE, const void *)
PREAD(pwrite64, CALL_PWRITE, const void *)

#define PWRITEV(function)                                                                          \
    ssize_t function(int fd, const struct iovec *part, int n, off_t at)                            \
    {                                                                                              \
        REAL(ssize_t, #function, int, const struct iovec *, int, off_t);                           \
        FAIL(CALL_PWRITE, NULL, fd, -1);                                                           \
        return real(fd, part, n, at);                                                              \
    }
PWRITEV(pwritev)
PWRITEV(pwritev64)

/* With RWF_NOWAIT: a file with a fault is not in the page cache, therefore the read that may wait
 * meets the fault. */
#define PREADV2(function)                                                                          \
    ssize_t function(int fd, const struct iovec *part, int n, off_t offset, int flags)             \
    {                                                                                              \
        REAL(ssize_t, #function, int, const struct iovec *, int, off_t, int);                      \
        uint32_t at_ = 0;                                                                          \
        if ((flags & RWF_NOWAIT) != 0 && find_rule(CALL_PREAD, NULL, fd, FROM, &at_) != NULL) {    \
            errno = EAGAIN;                                                                        \
            return -1;                                                                             \
        }                                                                                          \
        FAIL(CALL_PREAD, NULL, fd, -1);                                                            \
        return real(fd, part, n, offset, flags);                                                   \
    }
PREADV2(preadv2)
PREADV2(preadv64v2)

#define ON_FD(function)                                                                            \
    int function(int fd)                                                                           \
    {                                                                                              \
        REAL(int, #function, int);                                                                 \
        FAIL(CALL_FSYNC, NULL, fd, -1);                                                            \
        return real(fd);                                                                           \
    }
ON_FD(fsync)
ON_FD(fdatasync)

int rename(const char *from, const char *to)
{
    REAL(int, "rename", const char *, const char *);
    FAIL(CALL_RENAME, to, -1, -1);
    return real(from, to);
}

int renameat(int from_at, const char *from, int to_at, const char *to)
{
    REAL(int, "renameat", int, const char *, int, const char *);
    FAIL(CALL_RENAME, to, to_at, -1);
    return real(from_at, from, to_at, to);
}

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
    REAL(int, "renameat2", int, const char *, int, const char *, unsigned);
    FAIL(CALL_RENAME, to, to_at, -1);
    return real(from_at, from, to_at, to, flags);
}

int mkdir(const char *path, mode_t mode)
{
    REAL(int, "mkdir", const char *, mode_t);
    FAIL(CALL_MKDIR, path, -1, -1);
    return real(path, mode);
}

int mkdirat(int at, const char *path, mode_t mode)
{
    REAL(int, "mkdirat", int, const char *, mode_t);
    FAIL(CALL_MKDIR, path, at, -1);
    return real(at, path, mode);
}

int unlink(const char *path)
{
    REAL(int, "unlink", const char *);
    FAIL(CALL_UNLINK, path, -1, -1);
    return real(path);
}

int unlinkat(int at, const char *path, int flags)
{
    REAL(int, "unlinkat", int, const char *, int);
    FAIL(CALL_UNLINK, path, at, -1);
    return real(at, path, flags);
}

int rmdir(const char *path)
{
    REAL(int, "rmdir", const char *);
    FAIL(CALL_UNLINK, path, -1, -1);
    return real(path);
}

int link(const char *from, const char *to)
{
    REAL(int, "link", const char *, const char *);
    FAIL(CALL_LINK, to, -1, -1);
    return real(from, to);
}

int linkat(int from_at, const char *from, int to_at, const char *to, int flags)
{
    REAL(int, "linkat", int, const char *, int, const char *, int);
    FAIL(CALL_LINK, to, to_at, -1);
    return real(from_at, from, to_at, to, flags);
}

int symlink(const char *target, const char *to)
{
    REAL(int, "symlink", const char *, const char *);
    FAIL(CALL_LINK, to, -1, -1);
    return real(target, to);
}

int symlinkat(const char *target, int to_at, const char *to)
{
    REAL(int, "symlinkat", const char *, int, const char *);
    FAIL(CALL_LINK, to, to_at, -1);
    return real(target, to_at, to);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *user)
{
    REAL(int, "pthread_create", pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int error = fault(CALL_CLONE, NULL, -1, FROM);
    return error != 0 ? error : real(thread, attributes, start, user);
}

pid_t fork(void)
{
    REAL(pid_t, "fork", void);
    FAIL(CALL_CLONE, NULL, -1, -1);
    return real();
}

pid_t _Fork(void)
{
    REAL(pid_t, "_Fork", void);
    FAIL(CALL_CLONE, NULL, -1, -1);
    return real();
}

#define MMAP(function)                                                                             \
    void *function(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)        \
    {                                                                                              \
        REAL(void *, #function, void *, size_t, int, int, int, off_t);                             \
        FAIL(CALL_MMAP, NULL, fd, MAP_FAILED);                                                     \
        return real(at, bytes, protection, flags, fd, offset);                                     \
    }
MMAP(mmap)
MMAP(mmap64)

int accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags)
{
    REAL(int, "accept4", int, struct sockaddr *, socklen_t *, int);
    FAIL(CALL_ACCEPT, NULL, -1, -1);
    return real(fd, address, bytes, flags);
}

static int64_t offset_ns(void)
{
    return control != NULL ? atomic_load(&control->clock_offset_ns) : 0;
}

static void shift(struct timespec *time)
{
    int64_t ns = (int64_t)time->tv_sec * 1000000000 + time->tv_nsec + offset_ns();
    time->tv_sec = ns / 1000000000;
    time->tv_nsec = ns % 1000000000;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    REAL(int, "clock_gettime", clockid_t, struct timespec *);
    int rc = real(clock, out);
    if (rc == 0 && clock == CLOCK_REALTIME)
        shift(out);
    return rc;
}

time_t time(time_t *out)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL)
        *out = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}
