/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The socket exists before the device is opened, which takes seconds: a client that connects
 * meanwhile is answered when the device is open. The main thread accepts, and each connection has
 * a thread. */
#include "service/device/owner.h"

#include "config/base/clock.h"
#include "config/base/json_writer.h"
#include "config/compute_config.h"
#include "config/device_word.h"
#include "pipeline/device/others.h"
#include "pipeline/io/thread.h"
#include "service/base/line_reader.h"
#include "service/device/owner_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS_MAX  128
#define OUT_FD           (STDERR_FILENO + 1)
#define GPU_SESSIONS_MAX 4
#define FULL_MS          60000
#define OTHERS_MS        5000 /* time for which found processes count */

static struct owner the_owner;
static atomic_int connections;

/* Reports the device to the parent, before any other line. */
static void say_device(int out, const char *device, const char *why)
{
    size_t bytes = 0;
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "event", "device");
    pb_json_string(json, "device", device);
    pb_json_string(json, "why", why);
    pb_json_end(json);
    const char *text = pb_json_text(json, &bytes);
    if (text == NULL || !pb_line_send(out, text, bytes, NULL, 0))
        _exit(1);
    pb_json_destroy(json);
}

void owner_loaded(struct owner *owner, int sessions, int64_t bytes)
{
    if (!pb_owner_out_add(&owner->out, sessions, bytes))
        _exit(1); /* the parent is gone */
}

static int open_device(struct owner *owner, const char *word, struct pb_err *err)
{
    char text[64], why[200];
    struct pb_compute_config compute = {.device_index = -1};
    bool cpu = strcmp(word, "cpu") == 0;
    (void)snprintf(text, sizeof text, cpu ? "cpu" : "cuda:%.20s", word);
    owner->index = -1;
    if (pb_device_word(text, &compute) != 0)
        return pb_fail(err, PB_E_USAGE, "--device is a number or cpu, not '%.40s'", word);
    int rc = pb_device_choose(&compute, &owner->index, why, err);
    if (rc == 0 && owner->index >= 0 && pb_device_traits(owner->index, &owner->traits) != 0)
        rc = pb_fail(err, PB_E_DEVICE_FAILED, "the properties of CUDA device %d cannot be read",
                     owner->index);
    if (rc == 0 && owner->index >= 0 && !owner->traits.time_limited)
        owner->calls_wait = pb_device_calls_wait(owner->index);
    (void)snprintf(owner->device, sizeof owner->device, owner->index < 0 ? "cpu" : "cuda:%d",
                   owner->index);
    return rc;
}

/* Returns the number of sessions that may compute at a time. */
static int session_count(const struct owner *owner, int wanted)
{
    int most = owner->index < 0 ? wanted : GPU_SESSIONS_MAX;
    return wanted < 1 ? 1 : wanted < most ? wanted : most;
}

void owner_stream_why(struct owner *owner, char why[PB_OWNER_WHY_BYTES])
{
    struct pb_owner_facts facts = {.time_limited = owner->traits.time_limited,
                                   .calls_wait = owner->calls_wait,
                                   .mps = owner->traits.mps};
    (void)pthread_mutex_lock(&owner->lock);
    facts.full = pb_clock_mono_ms() < owner->full_until_ms;
    if (owner->index >= 0 && pb_clock_mono_ms() >= owner->others_until_ms) {
        owner->others = pb_device_others(owner->index, &owner->other_pid);
        owner->others_until_ms = pb_clock_mono_ms() + (owner->others > 0 ? OTHERS_MS : 0);
    }
    facts.others = owner->others;
    facts.other_pid = owner->other_pid;
    pb_owner_stream_why(&facts, why);
    pb_owner_streams_say(&owner->streams, owner->device, why, stderr);
    (void)pthread_mutex_unlock(&owner->lock);
}

void owner_is_full(struct owner *owner)
{
    (void)pthread_mutex_lock(&owner->lock);
    owner->full_until_ms = pb_clock_mono_ms() + FULL_MS;
    (void)pthread_mutex_unlock(&owner->lock);
}

/* Logs further properties of the device. */
static void say_traits(struct owner *owner, int sessions)
{
    char why[PB_OWNER_WHY_BYTES];
    const struct pb_device_traits *t = &owner->traits;
    if (owner->index < 0)
        return;
    if (sessions > 1)
        (void)fprintf(stderr, "up to %d jobs at a time share its %u multiprocessors\n", sessions,
                      t->gpu.multiprocessors);
    if (t->all_multiprocessors > 0)
        (void)fprintf(stderr, "it has %u of %u multiprocessors (compute.share)%s%s\n",
                      t->gpu.multiprocessors, t->all_multiprocessors,
                      t->share_why[0] != '\0' ? ", but kernels that do not stay may use all: " : "",
                      t->share_why);
    if (t->mps)
        (void)fprintf(stderr, "MPS shares the GPU with other programs\n");
    if (t->tuning.why[0] != '\0')
        (void)fprintf(stderr, "measured transfer plans are ignored: %s\n", t->tuning.why);
    owner_stream_why(owner, why);
}

static void *connection(void *user)
{
    owner_session_run(&the_owner, (int)(intptr_t)user);
    (void)atomic_fetch_sub(&connections, 1);
    return NULL;
}

static void take_connection(int listener, int64_t *io_again_ms)
{
    pthread_t thread;
    const int fd = pb_socket_bind_accept(listener, 0, io_again_ms);
    if (fd < 0)
        return;
    if (atomic_fetch_add(&connections, 1) < CONNECTIONS_MAX &&
        pb_thread_start(&thread, connection, (void *)(intptr_t)fd) == 0) {
        (void)pthread_detach(thread);
        return;
    }
    (void)atomic_fetch_sub(&connections, 1);
    (void)close(fd);
}

void owner_retire(struct owner *owner)
{
    if (pb_socket_bind_is_there(owner->path, &owner->bound))
        (void)unlink(owner->path);
    (void)shutdown(owner->bound.fd, SHUT_RDWR);
}

static int accept_all(int listener)
{
    for (int64_t again_ms = 0;;) {
        const int64_t pause_ms = again_ms - pb_clock_mono_ms();
        struct pollfd watched[2 + PB_OWNER_OUT_WATCHED] = {
            {.fd = pause_ms > 0 ? -1 : listener, .events = POLLIN},
            {.fd = STDIN_FILENO, .events = POLLIN}};
        char byte;
        pb_owner_out_watch(&the_owner.out, watched + 2);
        if (poll(watched, 2 + PB_OWNER_OUT_WATCHED, pause_ms > 0 ? (int)pause_ms : -1) < 0) {
            if (errno != EINTR)
                return 1;
            continue;
        }
        if (watched[1].revents != 0 && read(STDIN_FILENO, &byte, 1) <= 0) {
            owner_retire(&the_owner); /* the parent does not need it any more */
            _exit(0);
        }
        if (!pb_owner_out_go_on(&the_owner.out, watched + 2))
            _exit(1);
        if (watched[0].revents != 0)
            take_connection(listener, &again_ms);
    }
}

int pb_owner_main(const char *device, const char *socket, int sessions_max, int share_percent)
{
    struct pb_err err = {0};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NAME, "pushbroom-dev");
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGINT, SIG_IGN); /* the parent ends this process, as in a worker */
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    int out = dup3(STDOUT_FILENO, OUT_FD, O_CLOEXEC);
    (void)pthread_mutex_init(&the_owner.lock, NULL);
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    (void)close_range(OUT_FD + 1, ~0U, 0); /* a fork has inherited descriptors of its parent */
    /* With lazy loading, a resident kernel would block the load of another at its first launch. */
    (void)setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    /* Streams of other jobs must not share a hardware queue with the stream of a resident kernel,
     * where an event waits for the kernel's end. CUDA's default is 8 queues, the most is 32. */
    (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    if (pb_socket_bind_open(socket, 0600, &err, &the_owner.bound) != 0) {
        (void)fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    the_owner.path = socket;
    if (open_device(&the_owner, device, &err) != 0) {
        pb_socket_bind_close(socket, &the_owner.bound);
        say_device(out, "", err.msg);
        return PB_OWNER_NO_DEVICE;
    }
    if (the_owner.index >= 0)
        pb_device_share(share_percent, &the_owner.traits);
    int sessions = session_count(&the_owner, sessions_max);
    pb_admission_init(&the_owner.admission, sessions);
    say_traits(&the_owner, sessions);
    say_device(out, the_owner.device, "");
    if (pb_owner_out_init(&the_owner.out, out) < 0)
        return 1;
    return accept_all(the_owner.bound.fd);
}
