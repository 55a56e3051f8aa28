/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/worker_fork.h"

#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/gdal/vector.h"
#include "pipeline/run/run_areas.h"
#include "pipeline/run/run_columns.h"
#include "pipeline/device/device.h"
#include "pipeline/raster/raster.h"
#include "pipeline/raster/source_files.h"
#include "service/confine/confine.h"
#include "service/worker/worker_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Address space that a run needs in addition to its tile buffers: a thread's stack and malloc
 * arena, and allocations of GDAL, codecs and products. A generous estimate, not a measurement. */
#define THREAD_BYTES ((uint64_t)(8 + 64) << 20)
#define OTHER_BYTES  ((uint64_t)1 << 30)

/* Limit of the address space, 0 = no limit. Sanitizers reserve terabytes of it, CUDA hundreds of
 * GiB. */
static uint64_t address_bytes(const struct pb_config *config)
{
#ifdef PB_SANITIZED
    (void)config;
    return 0;
#else
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    bool known = file != NULL && fscanf(file, "%lu", &pages) == 1;
    if (file != NULL)
        (void)fclose(file);
    if (!known)
        return 0;
    uint64_t threads = 8 + 3 * (uint64_t)pb_device_threads(config->compute.threads);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) + 2 * config->compute.memory_bytes +
           4 * config->limits.max_block_bytes + threads * THREAD_BYTES + OTHER_BYTES;
#endif
}

#define DESCRIPTORS_MAX 256 /* far more than a worker has */

void pb_worker_fork_warm(struct pb_worker_fork *child, int epsg)
{
    bool known[DESCRIPTORS_MAX];
    struct stat st;
    for (size_t i = 0; i < child->n_epsg; i++)
        if (child->epsg[i] == epsg)
            return;
    if (child->n_epsg == PB_WORKER_FORK_CRSS)
        return;
    child->epsg[child->n_epsg++] = epsg;
    for (int fd = 0; fd < DESCRIPTORS_MAX; fd++)
        known[fd] = fcntl(fd, F_GETFD) >= 0;
    pb_raster_warm(epsg);
    pb_seccomp_prepare();
    for (int fd = 3; fd < DESCRIPTORS_MAX && child->n_kept < PB_WORKER_FORK_KEPT; fd++) {
        if (!known[fd] && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
            child->kept[child->n_kept++] = fd;
    }
}

/* Replaces the file at fd by the same file with an open file description of its own. */
static void reopen(int fd)
{
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int own = open(path, O_RDONLY | O_CLOEXEC);
    if (own < 0)
        _exit(1);
    (void)dup3(own, fd, O_CLOEXEC);
    (void)close(own);
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Closes all descriptors except those of the child, the libraries and stderr; stdin becomes
 * /dev/null. */
static void close_others(const struct pb_worker_child *child, const struct pb_worker_fork *fork)
{
    int stay[PB_WORKER_FORK_KEPT + 3 + PB_SCENE_FDS_MAX] = {child->socket, child->owner_fd,
                                                            child->room};
    size_t n = 3;
    unsigned from = STDERR_FILENO + 1;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)dup2(null, STDIN_FILENO);
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    for (size_t i = 0; i < fork->n_kept; i++)
        stay[n++] = fork->kept[i];
    n += pb_scene_fds(child->scene, stay + n);
    qsort(stay, n, sizeof stay[0], by_number);
    for (size_t i = 0; i < n; i++) {
        if (stay[i] < (int)from)
            continue;
        if (stay[i] > (int)from)
            (void)close_range(from, (unsigned)stay[i] - 1, 0);
        from = (unsigned)stay[i] + 1;
    }
    (void)close_range(from, ~0U, 0);
    for (size_t i = 0; i < fork->n_kept; i++)
        reopen(fork->kept[i]);
}

/* Passes the sources on. Called while this process may still open files other than the scene. */
static void hand_sources(const struct pb_config *config, const struct pb_json_value *command)
{
    const char *scene = pb_json_get_text(command, "scene");
    const struct pb_pipeline_config *pipeline =
        pb_config_pipeline(config, pb_json_get_text(command, "pipeline"));
    struct pb_source_files files;
    if (pipeline == NULL)
        return;
    pb_source_files_open(config, pipeline, scene, &files);
    pb_source_files_hand(config, pipeline, scene, &files);
    pb_run_areas_hand(config, pipeline);
    pb_run_columns_hand(config, pipeline);
    for (size_t i = 0; i < pipeline->n_products; i++) {
        const struct pb_product_config *product = pipeline->products[i];
        const char *path = product->kind->vector != NULL ? product->kind->vector(product) : NULL;
        if (path != NULL)
            pb_vector_hand(path);
    }
}

static _Noreturn void run_child(int socket, pid_t parent, const struct pb_worker_fork *fork,
                                struct pb_config *config, const struct pb_worker_job *job)
{
    struct pb_confine confine = {.directory = job->describes ? NULL : job->lines.directory,
                                 .address_bytes = address_bytes(config),
                                 .user = &fork->user};
    struct pb_worker_child child = {.socket = socket,
                                    .config = config,
                                    .scene = &job->scene,
                                    .room = job->room,
                                    .room_name = job->room_name,
                                    .owner_fd = fork->owner_fd,
                                    .confine = &confine};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    config->compute.device = PB_DEVICE_CPU;
    close_others(&child, fork);
    if (!job->describes)
        hand_sources(config, job->command);
    /* Another user may lack the right to search all directories of the path. */
    if (fork->user.own && chdir(job->describes ? "/" : pb_worker_job_directory(job)) != 0)
        _exit(1);
    if (job->describes)
        pb_worker_child_describe(&child, job->pipeline);
    pb_worker_child_main(&child);
}

/* Forks without the handlers of pthread_atfork: PROJ's handler would close its database and drop
 * its caches, which costs two thirds of a small scene's time, because two processes must not share
 * a file position; here they do not share it, see reopen. This process has one thread, therefore
 * no handler needs to release a lock. The sanitizers support only fork. */
static pid_t fork_warm(void)
{
#if defined(__GLIBC__) && !defined(PB_SANITIZED) && __GLIBC_PREREQ(2, 34)
    return _Fork();
#else
    return fork();
#endif
}

void pb_worker_fork_drop_owner(struct pb_worker_fork *child)
{
    if (child->owner_fd >= 0)
        (void)close(child->owner_fd);
    child->owner_fd = -1;
}

int pb_worker_fork_start(struct pb_worker_fork *child, struct pb_config *config,
                         const struct pb_worker_job *job, struct pb_err *err)
{
    int ends[2];
    pb_worker_fork_end(child);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return pb_fail(err, errno == EMFILE || errno == ENFILE ? PB_E_SYSTEM_FILES : PB_E_SYSTEM,
                       "cannot make a socket for the process that computes: %s", strerror(errno));
    pid_t parent = getpid();
    pid_t pid = fork_warm();
    if (pid == 0)
        run_child(ends[1], parent, child, config, job);
    int error = errno;
    (void)close(ends[1]);
    pb_worker_fork_drop_owner(child);
    if (pid < 0) {
        (void)close(ends[0]);
        return pb_fail(err, PB_E_MEMORY, "cannot start the process that computes: %s",
                       strerror(error));
    }
    child->pid = pid;
    child->lines = (struct pb_line_reader){.fd = ends[0]};
    return 0;
}

int pb_worker_fork_wait(struct pb_worker_fork *child)
{
    int status = 0, fd = child->lines.fd;
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        ;
    pb_line_reader_fini(&child->lines);
    (void)close(fd);
    child->pid = 0;
    return status;
}

void pb_worker_fork_remote(struct pb_worker_fork *child, int socket)
{
    pb_worker_fork_end(child);
    child->is_remote = true;
    child->lines = (struct pb_line_reader){.fd = socket};
}

bool pb_worker_fork_is_on(const struct pb_worker_fork *child)
{
    return child->pid > 0 || child->is_remote;
}

void pb_worker_fork_end(struct pb_worker_fork *child)
{
    if (child->is_remote)
        pb_line_reader_fini(&child->lines);
    child->is_remote = false;
    if (child->pid <= 0)
        return;
    (void)kill(child->pid, SIGKILL);
    (void)pb_worker_fork_wait(child);
}

_Noreturn void pb_worker_fork_die_like(int status)
{
    if (WIFSIGNALED(status)) {
        /* the core dump would be of the wrong process */
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        (void)signal(WTERMSIG(status), SIG_DFL);
        (void)raise(WTERMSIG(status));
    }
    _exit(WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : 1);
}
