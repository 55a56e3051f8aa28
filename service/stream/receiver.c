/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * With when_full: drop-oldest, a look that finds a full channel drops the older half of its groups:
 * a writer that is faster than the disk is never stopped for longer than one group takes. If the
 * disk takes no lines, they are dropped. With when_full: wait they stay in the channel, and the
 * writer waits; the scene ends, and the next scene begins when its file can be written. */
#include "service/stream/receiver.h"

#include "config/base/clock.h"
#include "service/base/log.h"
#include "service/base/passed_fd.h"
#include "wic/wic.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROOM_BYTES     (32u << 20)
#define SLOTS_MIN      4u
#define SLOTS_MAX      256u
#define LATENCY_MAX_NS INT64_C(3600000000000)
#define AGAIN_MS       1000 /* time until the disk is tried again */

/* Why a receiver ended. */
enum end { NOT_YET, CLOSED, GONE, STOPPED, WRONG };

struct pb_receiver {
    struct pb_receiver_options options;
    pthread_t thread;
    struct pb_stream_room room;
    uint32_t slots;
    struct wic_slot *slot; /* n_slots filled slots; the first `taken` of them are released */
    uint32_t n_slots, taken;
    struct pb_stream_group group; /* header of slot[taken]; kept while it waits for the disk */
    uint32_t stored;              /* count of its lines that are in a scene */
    bool waits;
    unsigned char user[WIC_USER_BYTES];
    int64_t *times_ns;
    atomic_bool stop;
    enum end end;
    char why[PB_HANDSHAKE_WHY_BYTES];
    struct pb_stream_scene *scene; /* NULL = not begun */
    bool has_lines;                /* a line has arrived, and `next` is known */
    uint64_t next;                 /* number of the next line */
    int64_t last_ms;               /* arrival of the last line */
    int64_t again_ms;              /* earliest time of the next try of the disk; 0 = at once */
    int64_t second_ms;             /* begin of the second that is counted */
    uint64_t second_lines;
    unsigned second_repeats;
};

static const struct pb_stream_format *format_of(const struct pb_receiver *receiver)
{
    return &receiver->options.source.request.format;
}

/* --- scenes ----------------------------------------------------------------------------------- */

static void end_scene(struct pb_receiver *receiver)
{
    if (receiver->scene == NULL)
        return;
    if (pb_scene_lines(receiver->scene) > 0)
        (void)atomic_fetch_add(&receiver->options.counts->scenes, 1);
    pb_scene_complete(receiver->scene);
    receiver->options.complete(receiver->options.user, receiver->scene);
    receiver->scene = NULL;
}

/* Call after a failed write: ends the scene with its complete lines. If no scene can be made of the
 * lines (input.limit), disconnects the writer, because another try would fail as well. */
static void refuse(struct pb_receiver *receiver, const struct pb_err *err)
{
    end_scene(receiver);
    if (err->code == PB_E_INPUT_LIMIT) {
        (void)snprintf(receiver->why, sizeof receiver->why, "%.190s", err->msg);
        receiver->end = WRONG;
        return;
    }
    receiver->again_ms = pb_clock_mono_ms() + AGAIN_MS;
    receiver->options.trouble(receiver->options.user, err);
}

static void accept_again(struct pb_receiver *receiver)
{
    receiver->again_ms = 0;
    receiver->options.trouble(receiver->options.user, &(struct pb_err){.code = PB_OK});
}

/* Accounts for lines between the expected number and the one that arrived. False: the writer
 * starts its numbers again too often. */
static bool take_number(struct pb_receiver *receiver, uint64_t line)
{
    struct pb_stream_counts *counts = receiver->options.counts;
    struct pb_err err = {0};
    if (receiver->has_lines && line < receiver->next) {
        end_scene(receiver);
        return ++receiver->second_repeats <= PB_RECEIVER_REPEATS;
    }
    if (!receiver->has_lines || line == receiver->next)
        return true;
    const uint64_t gap = line - receiver->next;
    (void)atomic_fetch_add(&counts->gaps, 1);
    (void)atomic_fetch_add(&counts->gap_lines, gap);
    if (receiver->scene != NULL && !pb_scene_fits(receiver->scene, gap))
        end_scene(receiver);
    else if (receiver->scene != NULL && pb_scene_gap(receiver->scene, gap, &err) != 0)
        refuse(receiver, &err);
    return true;
}

/* Stores the lines of the group that are in no scene yet. Returns false if the disk failed. */
static bool store(struct pb_receiver *receiver, const void *pixels)
{
    const struct pb_stream_group *group = &receiver->group;
    struct pb_err err = {0};
    while (receiver->stored < group->lines) {
        if (pb_clock_mono_ms() < receiver->again_ms)
            return false;
        const uint32_t at = receiver->stored;
        int n = 0;
        if (receiver->scene == NULL)
            n = pb_scene_begin(&receiver->options.source, group->line + at, receiver->times_ns[at],
                               &err, &receiver->scene);
        n = n ? n : pb_scene_append(receiver->scene, group, receiver->times_ns, pixels, at, &err);
        if (n < 0) {
            refuse(receiver, &err);
            return false;
        }
        const bool is_first = pb_scene_lines(receiver->scene) == n;
        receiver->stored += (uint32_t)n;
        if (receiver->again_ms != 0)
            accept_again(receiver);
        if (is_first)
            receiver->options.begun(receiver->options.user, receiver->scene);
        if (pb_scene_is_full(receiver->scene))
            end_scene(receiver);
    }
    return true;
}

/* --- groups ----------------------------------------------------------------------------------- */

/* The writer's clock is this machine's, but its word is not trusted. */
static int64_t published_at(int64_t said_ns, int64_t now_ns)
{
    return said_ns > now_ns || said_ns < now_ns - LATENCY_MAX_NS ? now_ns : said_ns;
}

static void count(struct pb_receiver *receiver)
{
    struct pb_stream_counts *counts = receiver->options.counts;
    const struct pb_stream_group *group = &receiver->group;
    receiver->has_lines = true;
    receiver->next = group->line + group->lines;
    receiver->last_ms = pb_clock_mono_ms();
    receiver->second_lines += group->lines;
    (void)atomic_fetch_add(&counts->lines, group->lines);
    atomic_store(&counts->next_line, receiver->next);
    atomic_store(&counts->last_ms, receiver->last_ms);
    atomic_store(&counts->latency_us, ((int64_t)pb_clock_mono_ns() - group->published_ns) / 1000);
}

/* Reads the header of a group, which the writer may change at any time, once. */
static bool read_group(struct pb_receiver *receiver, const struct wic_slot *slot)
{
    receiver->stored = 0;
    if (pb_handshake_group(slot->data, format_of(receiver), &receiver->group, receiver->times_ns,
                           receiver->why) == 0)
        return true;
    receiver->end = WRONG;
    return false;
}

/* Drops a group: the next group that is taken has a larger number, which makes a gap. */
static void drop_group(struct pb_receiver *receiver)
{
    const struct pb_stream_group *group = &receiver->group;
    (void)atomic_fetch_add(&receiver->options.counts->dropped, group->lines);
    if (!receiver->has_lines)
        receiver->next = group->line;
    receiver->has_lines = true;
}

/* Reads a group and its number. */
static bool begin_group(struct pb_receiver *receiver, const struct wic_slot *slot)
{
    if (!read_group(receiver, slot))
        return false;
    struct pb_stream_group *group = &receiver->group;
    group->published_ns = published_at(group->published_ns, (int64_t)pb_clock_mono_ns());
    if (take_number(receiver, group->line))
        return true;
    (void)snprintf(receiver->why, sizeof receiver->why,
                   "line numbers started again more than %d times in a second",
                   PB_RECEIVER_REPEATS);
    receiver->end = WRONG;
    return false;
}

/* Takes a group, or continues with the group that waited. */
static void take_group(struct pb_receiver *receiver, const struct wic_slot *slot)
{
    if (!receiver->waits && !begin_group(receiver, slot))
        return;
    const bool is_stored = store(receiver, (const unsigned char *)slot->data +
                                               pb_stream_pixels_offset(format_of(receiver)));
    receiver->waits =
        !is_stored && receiver->end == NOT_YET && !receiver->options.source.rules.drops;
    if (receiver->waits)
        return;
    (void)atomic_fetch_add(&receiver->options.counts->dropped,
                           receiver->group.lines - receiver->stored);
    count(receiver);
}

/* Takes the groups of the filled slots, until a group waits for the disk. */
static void take_groups(struct pb_receiver *receiver)
{
    const uint32_t n = receiver->n_slots;
    const bool is_full = receiver->options.source.rules.drops && n == receiver->slots;
    while (receiver->end == NOT_YET && receiver->taken < n) {
        const struct wic_slot *slot = &receiver->slot[receiver->taken];
        if (!is_full || receiver->taken >= n / 2)
            take_group(receiver, slot);
        else if (read_group(receiver, slot))
            drop_group(receiver);
        if (receiver->waits)
            return;
        (void)wic_release(receiver->room.channel, slot);
        receiver->taken++;
    }
}

/* Counts the lines that still wait for the disk at the end of the receiver as dropped. */
static void lose_waiting(struct pb_receiver *receiver)
{
    uint64_t n = receiver->group.lines - receiver->stored;
    if (!receiver->waits)
        return;
    while (++receiver->taken < receiver->n_slots &&
           read_group(receiver, &receiver->slot[receiver->taken]))
        n += receiver->group.lines;
    (void)atomic_fetch_add(&receiver->options.counts->dropped, n);
    pb_log(PB_LOG_ERROR, "stream %s: %llu lines that waited for the disk are lost",
           pb_receiver_stream(receiver), (unsigned long long)n);
}

/* --- the thread ------------------------------------------------------------------------------- */

static void look_at_time(struct pb_receiver *receiver)
{
    const int64_t now_ms = pb_clock_mono_ms();
    if (now_ms - receiver->second_ms >= 1000) {
        atomic_store(&receiver->options.counts->rate,
                     receiver->second_lines * 1000 / (uint64_t)(now_ms - receiver->second_ms));
        receiver->second_ms = now_ms;
        receiver->second_lines = 0;
        receiver->second_repeats = 0;
    }
    if (receiver->scene != NULL &&
        now_ms - receiver->last_ms >= receiver->options.source.rules.silence_ms) {
        pb_log(PB_LOG_NOTICE, "stream %s: no line for %g s; %s is closed with %d lines",
               pb_receiver_stream(receiver),
               (double)receiver->options.source.rules.silence_ms / 1e3,
               pb_scene_name(receiver->scene), (int)pb_scene_lines(receiver->scene));
        end_scene(receiver);
    }
}

/* Looks at the connection. A writer that ends with a slot in its hands cannot close the channel: it
 * shuts its side of the connection and waits for the answer. */
static enum end look_at_writer(const struct pb_receiver *receiver)
{
    struct pollfd fd = {.fd = receiver->options.connection, .events = POLLIN | POLLRDHUP};
    if (poll(&fd, 1, 0) <= 0)
        return NOT_YET;
    return fd.revents == (POLLIN | POLLRDHUP) ? CLOSED : GONE;
}

/* Waits for groups, unless some wait for the disk, and takes them. Returns the result of the
 * wait; -EAGAIN: lines wait for the disk. */
static int look(struct pb_receiver *receiver, int64_t wait_ms)
{
    int n = (int)receiver->n_slots;
    if (receiver->waits) {
        (void)poll(NULL, 0, (int)wait_ms);
    } else {
        n = wic_wait_some(receiver->room.channel, wait_ms * 1000000, receiver->slots,
                          receiver->slot);
        receiver->n_slots = n > 0 ? (uint32_t)n : 0;
        receiver->taken = 0;
        atomic_store(&receiver->options.counts->waiting, receiver->n_slots);
    }
    take_groups(receiver);
    look_at_time(receiver);
    return receiver->waits ? -EAGAIN : n;
}

/* Takes what is in the channel, but no more than it holds: the writer may still write. */
static void drain(struct pb_receiver *receiver)
{
    for (uint32_t taken = 0; receiver->end == NOT_YET && taken < receiver->slots;) {
        const int n = look(receiver, 0);
        if (n <= 0)
            return;
        taken += (uint32_t)n;
    }
}

static void serve(struct pb_receiver *receiver)
{
    int64_t checked_ms = 0;
    while (receiver->end == NOT_YET) {
        const int n = look(receiver, PB_RECEIVER_LOOK_MS);
        if (n == -EPIPE)
            receiver->end = CLOSED;
        else if (n < 0 && n != -ETIMEDOUT && n != -EAGAIN) {
            (void)snprintf(receiver->why, sizeof receiver->why, "the channel makes no sense: %s",
                           strerror(-n));
            receiver->end = WRONG;
        }
        if (receiver->end != NOT_YET || pb_clock_mono_ms() - checked_ms < PB_RECEIVER_LOOK_MS)
            continue;
        checked_ms = pb_clock_mono_ms();
        const enum end end = atomic_load(&receiver->stop) ? STOPPED : look_at_writer(receiver);
        if (end == NOT_YET)
            continue;
        drain(receiver);
        if (receiver->end == NOT_YET && (end == STOPPED || !receiver->waits))
            receiver->end = end;
    }
    lose_waiting(receiver);
}

static void report(const struct pb_receiver *receiver)
{
    const char *stream = pb_receiver_stream(receiver);
    const long long uid = (long long)receiver->options.source.uid;
    if (receiver->end == CLOSED)
        pb_log(PB_LOG_NOTICE, "stream %s: the writer of user %lld ended it", stream, uid);
    else if (receiver->end == GONE)
        pb_log(PB_LOG_WARNING, "stream %s: the writer of user %lld is gone; its scene is closed",
               stream, uid);
    else if (receiver->end == WRONG)
        pb_log(PB_LOG_ERROR, "stream %s: the writer of user %lld is disconnected: %s", stream, uid,
               receiver->why);
}

static void *run(void *user)
{
    struct pb_receiver *receiver = user;
    (void)pthread_setname_np(pthread_self(), "pb-receiver");
    receiver->second_ms = pb_clock_mono_ms();
    serve(receiver);
    end_scene(receiver);
    if (receiver->again_ms != 0) /* no writer needs the scene any more */
        receiver->options.trouble(receiver->options.user, &(struct pb_err){.code = PB_OK});
    wic_abort(receiver->room.channel);
    report(receiver);
    atomic_store(&receiver->options.counts->rate, 0);
    atomic_store(&receiver->options.counts->waiting, 0);
    /* Before the writer sees the end: one that connects again then is not refused as a second one.
     */
    receiver->options.ended(receiver->options.user, receiver);
    if (receiver->end == CLOSED)
        (void)send(receiver->options.connection, "{}\n", 3, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)shutdown(receiver->options.connection, SHUT_RDWR);
    return NULL;
}

/* --- start ------------------------------------------------------------------------------------ */

/* Replaces the words of the writer by values of this process. */
static int check_slot(void *context, struct wic_slot *slot)
{
    struct pb_receiver *receiver = context;
    slot->bytes = pb_stream_slot_bytes(format_of(receiver));
    slot->user = receiver->user;
    return 0;
}

static int make_memory(size_t bytes)
{
    const int fd = memfd_create("pushbroom-stream", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int rc = fd < 0 || fallocate(fd, 0, 0, (off_t)bytes) != 0 ? -errno : 0;
    if (rc == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        rc = -errno;
    if (rc != 0 && fd >= 0)
        (void)close(fd);
    return rc ? rc : fd;
}

/* Sends the channel. The answer fits into the empty buffer of a connection. */
static int send_room(const struct pb_receiver *receiver, int fd, size_t slot_bytes)
{
    char text[100];
    const int n = snprintf(text, sizeof text, "{\"slots\": %u, \"slot_bytes\": %zu}\n",
                           receiver->slots, slot_bytes);
    const ssize_t sent =
        pb_passed_fd_send(receiver->options.connection, text, (size_t)n, fd, MSG_DONTWAIT);
    return sent == n ? 0 : sent < 0 ? -errno : -EIO;
}

static int open_room(struct pb_receiver *receiver, struct pb_err *err)
{
    const size_t slot_bytes = pb_stream_slot_bytes(format_of(receiver));
    const size_t fitting = ROOM_BYTES / slot_bytes;
    receiver->slots = fitting < SLOTS_MIN   ? SLOTS_MIN
                      : fitting > SLOTS_MAX ? SLOTS_MAX
                                            : (uint32_t)fitting;
    receiver->slot = calloc(receiver->slots, sizeof *receiver->slot);
    receiver->times_ns = calloc(format_of(receiver)->group_lines, sizeof *receiver->times_ns);
    if (receiver->slot == NULL || receiver->times_ns == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    const int fd = make_memory(pb_stream_room_bytes(receiver->slots, slot_bytes));
    int rc = fd < 0 ? fd
                    : pb_stream_room_open(fd, receiver->slots, slot_bytes, true, check_slot,
                                          receiver, &receiver->room);
    rc = rc < 0 ? rc : send_room(receiver, fd, slot_bytes);
    if (fd >= 0)
        (void)close(fd);
    return rc < 0
               ? pb_fail(err, PB_E_MEMORY, "cannot make the memory of a stream: %s", strerror(-rc))
               : 0;
}

/* Starts the thread with all signals blocked, because the main thread handles them. */
static int start_thread(struct pb_receiver *receiver)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int rc = pthread_create(&receiver->thread, NULL, run, receiver);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -rc;
}

static void destroy(struct pb_receiver *receiver)
{
    pb_stream_room_close(&receiver->room);
    free(receiver->slot);
    free(receiver->times_ns);
    free(receiver);
}

int pb_receiver_start(const struct pb_receiver_options *options, struct pb_err *err,
                      struct pb_receiver **out_receiver)
{
    struct pb_receiver *receiver = calloc(1, sizeof *receiver);
    if (receiver == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    receiver->options = *options;
    int rc = open_room(receiver, err);
    if (rc == 0 && (rc = start_thread(receiver)) != 0)
        rc = pb_fail(err, PB_E_SYSTEM, "cannot start a thread: %s", strerror(-rc));
    if (rc != 0) {
        destroy(receiver);
        return rc;
    }
    *out_receiver = receiver;
    return 0;
}

void pb_receiver_stop(struct pb_receiver *receiver)
{
    atomic_store(&receiver->stop, true);
}

void pb_receiver_join(struct pb_receiver *receiver)
{
    (void)pthread_join(receiver->thread, NULL);
    (void)close(receiver->options.connection);
    destroy(receiver);
}

int64_t pb_receiver_uid(const struct pb_receiver *receiver)
{
    return receiver->options.source.uid;
}

const char *pb_receiver_stream(const struct pb_receiver *receiver)
{
    return receiver->options.source.rules.stream;
}
