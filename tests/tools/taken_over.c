/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * `pushbroomd` or `pushbroom` with a decoder that a file has taken over: the linker replaces the
 * one function that opens a raster (--wrap) by the one here, all else is the product's. An input
 * that begins with "ATTACK name argument" is not decoded: the attack runs in its place, with
 * everything the process that decodes has. Its success is reported as the error "input.damaged"
 * with the message "REACHED ..."; its failure as "STOPPED by ...". An attack that seccomp ends
 * reports nothing: the signal does. */
#include "config/base/err.h"
#include "pipeline/raster/raster.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

int __real_pb_raster_open_page(const char *path, int32_t page, const struct pb_limits *limits,
                               struct pb_err *err, struct pb_raster **out_raster);
int __wrap_pb_raster_open_page(const char *path, int32_t page, const struct pb_limits *limits,
                               struct pb_err *err, struct pb_raster **out_raster);
int __wrap_pb_raster_open(const char *path, const struct pb_limits *limits, struct pb_err *err,
                          struct pb_raster **out_raster);

/* Each returns 0 or more when it got through, else -1 with errno. */
static long run_shell(const char *argument)
{
    char path[] = "/bin/true";
    char *const arguments[] = {path, NULL};
    (void)argument;
    return execve(path, arguments, NULL);
}

static long fork_process(const char *argument)
{
    (void)argument;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return pid;
}

static long spawn_by_vfork(const char *argument)
{
    (void)argument;
    return syscall(SYS_clone, CLONE_VM | SIGCHLD, 0, 0, 0, 0);
}

static long read_file(const char *path)
{
    char byte;
    int fd = open(path, O_RDONLY);
    return fd < 0 ? -1 : read(fd, &byte, 1);
}

static long list_directory(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY);
}

static long create_file(const char *path)
{
    return open(path, O_WRONLY | O_CREAT, 0666);
}

static long append_file(const char *path)
{
    return open(path, O_WRONLY | O_APPEND);
}

static long truncate_file(const char *path)
{
    return truncate(path, 0);
}

static long remove_file(const char *path)
{
    return unlink(path);
}

static long rename_away(const char *path)
{
    char to[4096];
    (void)snprintf(to, sizeof to, "%s.stolen", path);
    return rename(path, to);
}

/* Through every descriptor that is open here. */
static long open_beside(const char *name)
{
    for (int fd = 0; fd < 1024; fd++) {
        int at = openat(fd, name, O_RDONLY);
        if (at >= 0)
            return at;
    }
    errno = ENOENT;
    return -1;
}

static long count_descriptors(const char *argument)
{
    struct stat st;
    int open_ones = 0, allowed = atoi(argument);
    for (int fd = 3; fd < 4096; fd++) {
        if (fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
            open_ones++;
    }
    errno = EBADF;
    return open_ones > allowed ? open_ones : -1;
}

/* Leaves a mark for the next job in what the processes of two jobs may share: the position of an
 * open file. */
#define MARK 424242

static long leave_mark(const char *argument)
{
    struct stat st;
    (void)argument;
    for (int fd = 3; fd < 4096; fd++) {
        if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
            (void)lseek(fd, MARK, SEEK_SET);
    }
    errno = ENOMSG;
    return -1;
}

static long find_mark(const char *argument)
{
    (void)argument;
    for (int fd = 3; fd < 4096; fd++) {
        if (lseek(fd, 0, SEEK_CUR) == MARK)
            return fd;
    }
    errno = ENOMSG;
    return -1;
}

static long trace_parent(const char *argument)
{
    (void)argument;
    return ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
}

static long read_parent(const char *argument)
{
    static char here[8];
    struct iovec to = {here, sizeof here}, from = {(void *)here, sizeof here};
    (void)argument;
    return process_vm_readv(getppid(), &to, 1, &from, 1, 0);
}

static long open_parent_memory(const char *argument)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%s/mem", argument);
    if (argument[0] == '\0')
        (void)snprintf(path, sizeof path, "/proc/%d/mem", (int)getppid());
    return open(path, O_RDWR);
}

static long internet(const char *argument)
{
    (void)argument;
    return socket(AF_INET, SOCK_STREAM, 0);
}

static long netlink(const char *argument)
{
    (void)argument;
    return socket(AF_NETLINK, SOCK_RAW, 0);
}

static long local_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&address, sizeof address);
}

static long kill_parent(const char *argument)
{
    return kill(argument[0] ? atoi(argument) : getppid(), argument[0] ? SIGKILL : 0);
}

static long kill_by_thread(const char *argument)
{
    (void)argument;
    return syscall(SYS_tgkill, getppid(), getppid(), SIGKILL);
}

static long take_privileges(const char *argument)
{
    (void)argument;
    return syscall(SYS_setresuid, 0, 0, 0); /* glibc would involve every thread */
}

static long new_namespace(const char *argument)
{
    (void)argument;
    return unshare(CLONE_NEWUSER);
}

static long load_bpf(const char *argument)
{
    (void)argument;
    return syscall(SYS_bpf, 0, NULL, 0);
}

static long ring(const char *argument)
{
    (void)argument;
    return syscall(SYS_io_uring_setup, 1, NULL);
}

static long write_code(const char *argument)
{
    (void)argument;
    void *page =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? -1 : 0;
}

static long file_of_memory(const char *argument)
{
    (void)argument;
    return memfd_create("code", 0);
}

/* Gives a name to an unpacked file, which has no name. */
static long give_name(const char *path)
{
    long rc = -1;
    for (int fd = 3; fd < 64 && rc < 0; fd++) {
        char from[40];
        (void)snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
        rc = linkat(AT_FDCWD, from, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
    }
    return rc;
}

static long make_link(const char *target)
{
    return symlink(target, "link");
}

static long eat_memory(const char *argument)
{
    size_t bytes = (size_t)strtoull(argument, NULL, 10) << 20;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? -1 : 0;
}

static long limit_others(const char *argument)
{
    struct rlimit none = {0, 0};
    (void)argument;
    return prlimit(getppid(), RLIMIT_NOFILE, &none, NULL);
}

static long hang(const char *argument)
{
    (void)sleep(600);
    return argument == NULL;
}

/* Sends its own words to any reader: a result elsewhere. */
static long lie(const char *directory)
{
    char line[1000];
    int n = snprintf(line, sizeof line,
                     "{\"event\":\"done\",\"job\":\"x\",\"directory\":\"%s\",\"products\":[],"
                     "\"report\":{}}\n",
                     directory);
    for (int fd = 3; fd < 64; fd++)
        (void)!write(fd, line, (size_t)n);
    (void)sleep(30);
    errno = ETIME;
    return -1;
}

/* Success is to be that user still, or to have a capability. */
static long be_user(const char *uid)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    uid_t r, e, s;
    (void)syscall(SYS_capget, &header, data);
    (void)getresuid(&r, &e, &s);
    uid_t as = (uid_t)atoi(uid);
    if (r == as || e == as || s == as || getgroups(0, NULL) > 0 || data[0].permitted != 0 ||
        data[1].permitted != 0)
        return 0;
    errno = EPERM;
    return -1;
}

static long open_up(const char *mode)
{
    return chmod(".", (mode_t)strtoul(mode, NULL, 8));
}

/* --- facts and modes of files by their path --- */

static long change_mode(const char *path)
{
    return chmod(path, 0777);
}

static long change_mode_at(const char *path)
{
    return syscall(SYS_fchmodat, AT_FDCWD, path, 0777);
}

/* Changes every file that is open here, the input among them. */
static long change_open_modes(const char *argument)
{
    long rc = -1;
    (void)argument;
    for (int fd = 0; fd < 64; fd++)
        rc = syscall(SYS_fchmod, fd, 0777) == 0 ? 0 : rc;
    return rc;
}

static long change_open_owners(const char *argument)
{
    long rc = -1;
    (void)argument;
    for (int fd = 0; fd < 64; fd++)
        rc = syscall(SYS_fchown, fd, 65534, 65534) == 0 ? 0 : rc;
    return rc;
}

static const struct timespec long_ago[2] = {{1000, 0}, {1000, 0}};

static long change_times(const char *path)
{
    return utimensat(AT_FDCWD, path, long_ago, 0);
}

static long change_open_times(const char *argument)
{
    long rc = -1;
    (void)argument;
    for (int fd = 3; fd < 64; fd++)
        rc = futimens(fd, long_ago) == 0 ? 0 : rc;
    return rc;
}

static long truncate_read_only(const char *path)
{
    return open(path, O_RDONLY | O_TRUNC);
}

static long ask_stat(const char *path)
{
    struct stat st;
    return stat(path, &st);
}

static long ask_lstat(const char *path)
{
    struct stat st;
    return lstat(path, &st);
}

/* The flag that fstat of glibc gives with an empty path, here with one that is not. */
static long ask_stat_flag(const char *path)
{
    struct stat st;
    return syscall(SYS_newfstatat, AT_FDCWD, path, &st, AT_EMPTY_PATH);
}

static long ask_statx(const char *path)
{
    char facts[512];
    return syscall(SYS_statx, AT_FDCWD, path, 0, 0x7ff, facts);
}

static long ask_handle(const char *path)
{
    struct stat st;
    int fd = open(path, O_PATH);
    return fd < 0 ? -1 : fstat(fd, &st);
}

static long ask_access(const char *path)
{
    return access(path, F_OK);
}

static long ask_link(const char *path)
{
    char target[300];
    return readlink(path, target, sizeof target);
}

static long ask_file_system(const char *path)
{
    char facts[500];
    return syscall(SYS_statfs, path, facts);
}

static long ask_attributes(const char *path)
{
    char names[500];
    return syscall(SYS_listxattr, path, names, sizeof names);
}

static long go_to(const char *path)
{
    return chdir(path);
}

static long watch(const char *path)
{
    int fd = inotify_init1(0);
    return fd < 0 ? -1 : inotify_add_watch(fd, path, IN_ALL_EVENTS);
}

/* --- other processes --- */

static long take_cores(const char *pid)
{
    unsigned long mask = 1;
    return syscall(SYS_sched_setaffinity, atoi(pid), sizeof mask, &mask);
}

static long ask_cores(const char *pid)
{
    unsigned long mask[16];
    return syscall(SYS_sched_getaffinity, atoi(pid), sizeof mask, mask);
}

static long make_idle(const char *pid)
{
    const struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t times[3];
    } idle = {.size = sizeof idle, .policy = SCHED_IDLE, .nice = 19};
    return syscall(SYS_sched_setattr, atoi(pid), &idle, 0);
}

static long slow_down_disk(const char *pid)
{
    return syscall(SYS_ioprio_set, 1, atoi(pid), 3 << 13);
}

static long ask_policy(const char *pid)
{
    return sched_getscheduler(atoi(pid));
}

static long ask_group(const char *pid)
{
    return getpgid(atoi(pid));
}

static long ask_locks(const char *pid)
{
    void *head;
    size_t bytes;
    return syscall(SYS_get_robust_list, atoi(pid), &head, &bytes);
}

static long join_group(const char *pid)
{
    return setpgid(0, atoi(pid));
}

static long new_session(const char *argument)
{
    (void)argument;
    return setsid();
}

/* A signal to another process, sent by the kernel when something can be read: from a pipe, or from
 * any descriptor that is open here. */
static long own_signals(int fd, const char *pid)
{
    return fcntl(fd, F_SETOWN, atoi(pid)) != 0 || fcntl(fd, F_SETSIG, SIGKILL) != 0 ||
                   fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK) != 0
               ? -1
               : 0;
}

static long signal_by_pipe(const char *pid)
{
    int ends[2];
    if (pipe(ends) != 0 || own_signals(ends[0], pid) != 0 || write(ends[1], "x", 1) != 1)
        return -1;
    (void)usleep(300000);
    return 0;
}

static long signal_by_descriptor(const char *pid)
{
    long rc = -1;
    for (int fd = 0; fd < 64; fd++) {
        int owner = atoi(pid);
        if (fcntl(fd, F_SETOWN, owner) == 0 || ioctl(fd, FIOSETOWN, &owner) == 0)
            rc = 0;
    }
    return rc;
}

/* Flags, locks and leases that the processes at the other ends of a descriptor share. */
static long change_flags(const char *argument)
{
    struct flock all = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    long rc = -1;
    (void)argument;
    for (int fd = 0; fd < 64; fd++) {
        if (fcntl(fd, F_SETFL, O_NONBLOCK) == 0 || fcntl(fd, F_SETLK, &all) == 0 ||
            fcntl(fd, F_SETLEASE, F_RDLCK) == 0)
            rc = 0;
    }
    return rc;
}

/* --- the kernel --- */

static long clone_by_struct(const char *argument)
{
    (void)argument;
    return syscall(SYS_clone3, NULL, 0) == -1 && errno == EINVAL ? 0 : -1;
}

static long ask_clock(const char *argument)
{
    struct timex time = {0};
    (void)argument;
    return adjtimex(&time);
}

static long use_queues(const char *argument)
{
    (void)argument;
    return syscall(SYS_shmget, 0, 4096, 01600);
}

/* Code from a file that it has written itself. */
static long run_file(const char *argument)
{
    (void)argument;
    for (int fd = 3; fd < 64; fd++) {
        if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED)
            return 0;
    }
    return -1;
}

static long merge_memory(const char *argument)
{
    static char pages[2 << 16];
    const size_t page = 1 << 16;
    (void)argument;
    return madvise(pages + (page - (uintptr_t)pages % page), page, MADV_MERGEABLE);
}

static const struct {
    const char *name;
    long (*run)(const char *argument);
} attacks[] = {
    {"exec", run_shell},
    {"fork", fork_process},
    {"clone", spawn_by_vfork},
    {"read", read_file},
    {"list", list_directory},
    {"create", create_file},
    {"append", append_file},
    {"truncate", truncate_file},
    {"remove", remove_file},
    {"rename", rename_away},
    {"beside", open_beside},
    {"descriptors", count_descriptors},
    {"ptrace", trace_parent},
    {"vm_read", read_parent},
    {"mem", open_parent_memory},
    {"inet", internet},
    {"netlink", netlink},
    {"unix", local_socket},
    {"kill", kill_parent},
    {"tgkill", kill_by_thread},
    {"setuid", take_privileges},
    {"namespace", new_namespace},
    {"bpf", load_bpf},
    {"io_uring", ring},
    {"wx", write_code},
    {"memfd", file_of_memory},
    {"symlink", make_link},
    {"link", give_name},
    {"be_user", be_user},
    {"open_up", open_up},
    {"mark", leave_mark},
    {"find_mark", find_mark},
    {"memory", eat_memory},
    {"prlimit", limit_others},
    {"lie", lie},
    {"hang", hang},
    {"chmod", change_mode},
    {"chmod_at", change_mode_at},
    {"fchmod", change_open_modes},
    {"fchown", change_open_owners},
    {"times", change_times},
    {"open_times", change_open_times},
    {"truncate_read_only", truncate_read_only},
    {"stat", ask_stat},
    {"lstat", ask_lstat},
    {"stat_flag", ask_stat_flag},
    {"statx", ask_statx},
    {"handle", ask_handle},
    {"access", ask_access},
    {"readlink", ask_link},
    {"statfs", ask_file_system},
    {"attributes", ask_attributes},
    {"chdir", go_to},
    {"inotify", watch},
    {"affinity", take_cores},
    {"ask_affinity", ask_cores},
    {"idle", make_idle},
    {"ioprio", slow_down_disk},
    {"policy", ask_policy},
    {"group", ask_group},
    {"locks", ask_locks},
    {"join_group", join_group},
    {"session", new_session},
    {"signal_pipe", signal_by_pipe},
    {"signal_descriptor", signal_by_descriptor},
    {"flags", change_flags},
    {"clone3", clone_by_struct},
    {"adjtimex", ask_clock},
    {"shared_memory", use_queues},
    {"run_file", run_file},
    {"merge", merge_memory},
};

static int attack(const char *name, const char *argument, struct pb_err *err)
{
    for (size_t i = 0; i < sizeof attacks / sizeof attacks[0]; i++) {
        if (strcmp(attacks[i].name, name) != 0)
            continue;
        errno = 0;
        long rc = attacks[i].run(argument);
        int error = errno;
        return rc >= 0 ? pb_fail(err, PB_E_INPUT_DAMAGED, "REACHED %s %s", name, argument)
                       : pb_fail(err, PB_E_INPUT_DAMAGED, "STOPPED by %s", strerror(error));
    }
    return pb_fail(err, PB_E_SYSTEM, "no attack '%s'", name);
}

#ifdef WITHOUT_LANDLOCK
struct pb_confine;
int __wrap_pb_landlock_apply(const struct pb_confine *confine, struct pb_err *err);

int __wrap_pb_landlock_apply(const struct pb_confine *confine, struct pb_err *err)
{
    (void)confine;
    (void)err;
    return 0;
}
#endif

#ifdef LANDLOCK_ABI
/* Landlock as an older kernel has it: the version that it answers, and thereby the rights that it
 * is given to handle. */
long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    long rc = __real_syscall(number, a, b, c, d, e, f);
    bool asks =
        number == SYS_landlock_create_ruleset && a == 0 && c == LANDLOCK_CREATE_RULESET_VERSION;
    return asks && rc > LANDLOCK_ABI ? LANDLOCK_ABI : rc;
}
#endif

int __wrap_pb_raster_open_page(const char *path, int32_t page, const struct pb_limits *limits,
                               struct pb_err *err, struct pb_raster **out_raster)
{
    char text[600] = "", name[32] = "", argument[500] = "";
    for (int fd = 3; fd < 64 && strncmp(text, "ATTACK ", 7) != 0; fd++) {
        ssize_t n = pread(fd, text, sizeof text - 1, 0);
        text[n > 0 ? n : 0] = '\0';
    }
    if (sscanf(text, "ATTACK %31s %499s", name, argument) < 1)
        return __real_pb_raster_open_page(path, page, limits, err, out_raster);
    return attack(name, argument, err);
}

int __wrap_pb_raster_open(const char *path, const struct pb_limits *limits, struct pb_err *err,
                          struct pb_raster **out_raster)
{
    return __wrap_pb_raster_open_page(path, 0, limits, err, out_raster);
}
