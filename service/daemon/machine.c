/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Children are found by their parent in /proc. Children of service.worker_user are hidden where
 * /proc is mounted with hidepid, or by ProtectProc=invisible, unless the service may trace them:
 * they are then missing in the counts and in the memory, and their CPU time is counted when they
 * end. */
#include "service/daemon/machine.h"

#include "config/base/clock.h"
#include "service/runner/metrics.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* --- directories -----------------------------------------------------------------------------*/

struct space {
    const char *use, *directory;
    uint64_t avail_bytes, size_bytes;
    bool known;
};

enum { SPACES_MAX = PB_INBOXES_MAX + 5 };

static size_t list_spaces(const struct pb_dirs *dirs, struct space *out)
{
    const struct space others[] = {{.use = "work", .directory = dirs->work},
                                   {.use = "archive", .directory = dirs->archive},
                                   {.use = "quarantine", .directory = dirs->quarantine},
                                   {.use = "products", .directory = dirs->products},
                                   {.use = "state", .directory = dirs->state}};
    size_t n = 0;
    for (size_t i = 0; i < dirs->n_inboxes; i++)
        out[n++] = (struct space){.use = "inbox", .directory = dirs->inbox[i]};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (others[i].directory[0] != '\0')
            out[n++] = others[i];
    for (size_t i = 0; i < n; i++) {
        struct statvfs st;
        out[i].known = statvfs(out[i].directory, &st) == 0;
        if (!out[i].known)
            continue;
        out[i].avail_bytes = (uint64_t)st.f_bavail * st.f_frsize;
        out[i].size_bytes = (uint64_t)st.f_blocks * st.f_frsize;
    }
    return n;
}

static void print_spaces(FILE *out, const struct space *space, size_t n, bool size)
{
    const char *name = size ? "size" : "avail";
    (void)fprintf(out,
                  "# HELP pushbroom_filesystem_%s_bytes %s of the file system of a directory.\n"
                  "# TYPE pushbroom_filesystem_%s_bytes gauge\n",
                  name, size ? "Size" : "Free space for the service's user", name);
    for (size_t i = 0; i < n; i++) {
        if (!space[i].known)
            continue;
        (void)fprintf(out, "pushbroom_filesystem_%s_bytes{use=\"%s\",directory=\"", name,
                      space[i].use);
        pb_metrics_label(out, space[i].directory);
        (void)fprintf(out, "\"} %" PRIu64 "\n", size ? space[i].size_bytes : space[i].avail_bytes);
    }
}

/* --- processes -------------------------------------------------------------------------------*/

enum kind { KIND_SERVICE, KIND_WORKER, KIND_OWNER, KIND_CHECKER, KINDS };

static const char *const kind_name[KINDS] = {"service", "worker", "device_owner", "checker"};

struct processes {
    int64_t n[KINDS], resident_bytes[KINDS];
    double living_s; /* CPU time of the running children */
};

/* Reads /proc/<pid>/<file>, with a zero byte after it. Returns its size, 0 = unreadable. */
static size_t read_proc(int proc_fd, const char *pid, const char *file, char *out, size_t bytes)
{
    char path[64];
    (void)snprintf(path, sizeof path, "%.20s/%.20s", pid, file);
    int fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, bytes - 1) : -1;
    if (fd >= 0)
        (void)close(fd);
    out[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* The process that checks submitted files has the arguments of the service. */
static enum kind kind_of(int proc_fd, const char *pid)
{
    char line[4096];
    size_t n = read_proc(proc_fd, pid, "cmdline", line, sizeof line);
    for (size_t at = 0; at < n; at += strlen(line + at) + 1) {
        if (strcmp(line + at, "--device") == 0)
            return KIND_OWNER;
        if (strcmp(line + at, "--worker") == 0)
            return KIND_WORKER;
    }
    return KIND_CHECKER;
}

/* Adds the process if it is this one or a child of it. */
static void add_process(int proc_fd, const char *pid, struct processes *out)
{
    char stat[1024], state;
    long parent;
    unsigned long user_ticks, system_ticks;
    long resident_pages;
    const bool own = strtol(pid, NULL, 10) == (long)getpid();
    if (read_proc(proc_fd, pid, "stat", stat, sizeof stat) == 0)
        return;
    const char *rest = strrchr(stat, ')'); /* the name may contain any character */
    if (rest == NULL || sscanf(rest + 1,
                               " %c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d "
                               "%*d %*d %*d %*u %*u %ld",
                               &state, &parent, &user_ticks, &system_ticks, &resident_pages) != 5)
        return;
    if ((!own && parent != (long)getpid()) || state == 'Z')
        return;
    const enum kind kind = own ? KIND_SERVICE : kind_of(proc_fd, pid);
    out->n[kind]++;
    out->resident_bytes[kind] += (int64_t)resident_pages * sysconf(_SC_PAGESIZE);
    if (!own)
        out->living_s += (double)(user_ticks + system_ticks) / (double)sysconf(_SC_CLK_TCK);
}

static void read_processes(struct processes *out)
{
    DIR *proc = opendir("/proc");
    *out = (struct processes){.living_s = 0};
    for (const struct dirent *e; proc != NULL && (e = readdir(proc)) != NULL;)
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
            add_process(dirfd(proc), e->d_name, out);
    if (proc != NULL)
        (void)closedir(proc);
}

static double cpu_s(int who)
{
    struct rusage usage;
    if (getrusage(who, &usage) != 0)
        return 0;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void print_processes(FILE *out, const struct processes *processes, double children_s)
{
    (void)fputs("# HELP pushbroom_processes Processes of the service by kind.\n"
                "# TYPE pushbroom_processes gauge\n",
                out);
    for (int i = 0; i < KINDS; i++)
        (void)fprintf(out, "pushbroom_processes{kind=\"%s\"} %" PRId64 "\n", kind_name[i],
                      processes->n[i]);
    (void)fputs("# HELP pushbroom_process_resident_memory_bytes Resident memory of these "
                "processes; shared pages count in each.\n"
                "# TYPE pushbroom_process_resident_memory_bytes gauge\n",
                out);
    for (int i = 0; i < KINDS; i++)
        (void)fprintf(out, "pushbroom_process_resident_memory_bytes{kind=\"%s\"} %" PRId64 "\n",
                      kind_name[i], processes->resident_bytes[i]);
    (void)fprintf(out,
                  "# HELP pushbroom_process_cpu_seconds_total CPU time of the service and of its "
                  "children, with those that ended.\n"
                  "# TYPE pushbroom_process_cpu_seconds_total counter\n"
                  "pushbroom_process_cpu_seconds_total{kind=\"service\"} %.2f\n"
                  "pushbroom_process_cpu_seconds_total{kind=\"children\"} %.2f\n",
                  cpu_s(RUSAGE_SELF), children_s);
}

/* --- readings --------------------------------------------------------------------------------- */

static void gather(uv_work_t *work)
{
    struct pb_machine *machine = work->data;
    struct space space[SPACES_MAX];
    struct processes processes;
    size_t bytes = 0;
    machine->text = NULL;
    FILE *out = open_memstream(&machine->text, &bytes);
    if (out == NULL)
        return;
    size_t n = list_spaces(&machine->read_dirs, space);
    read_processes(&processes);
    /* A child that ends between the two reads counts twice here, but not at the next reading: the
     * value then stays until the sum has caught up. */
    const double children_s = processes.living_s + cpu_s(RUSAGE_CHILDREN);
    if (children_s > machine->children_s)
        machine->children_s = children_s;
    print_spaces(out, space, n, false);
    print_spaces(out, space, n, true);
    print_processes(out, &processes, machine->children_s);
    const bool failed = ferror(out) != 0;
    if (fclose(out) == 0 && !failed)
        return;
    free(machine->text);
    machine->text = NULL;
}

static void gathered(uv_work_t *work, int status)
{
    struct pb_machine *machine = work->data;
    (void)status;
    machine->works = false;
    machine->next_ms = pb_clock_mono_ms() + PB_MACHINE_MS;
    pb_facts_set_machine(machine->facts, machine->text);
    machine->text = NULL;
}

void pb_machine_run(struct pb_machine *machine)
{
    if (machine->works || pb_clock_mono_ms() < machine->next_ms)
        return;
    machine->read_dirs = *machine->dirs;
    machine->work.data = machine;
    machine->works = uv_queue_work(machine->loop, &machine->work, gather, gathered) == 0;
}
