/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The device proxy: the host thread that consumes one channel and produces into the other on behalf
 * of a device. Tickets are handled here alone: the link below counts tiles from 0 and knows slots
 * only, so no part of the channels' state machine exists twice. Tiles are numbered from the
 * beginning of the run; a launch of the kernel begins with tile `base`, which is tile 0 of the
 * link. */
#include "wic/channel.h"
#include "wic/futex.h"
#include "wic/spin.h"
#include "wic/device/pause.h"
#include "wic/device/proxy_inside.h"
#include "wic/device/stay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define BEAT_NS INT64_C(250000000) /* well under WIC_LINK_BEAT_NS */
#define ALERT_NS                                                                                   \
    200000 /* without an event the device proxy spins for this long, then it sleeps NAP_NS at a    \
              time */
#define NAP_NS   20000
#define SLACK_NS 1000UL /* the kernel's default would make 70 us of a nap */
#define GLANCE_NS                                                                                  \
    50000000 /* while parked at one channel: between two checks whether the other is aborted */
#define LEAVE_NS     (2 * (int64_t)WIC_LINK_BEAT_NS)
#define TIMEOUTS_MAX 3  /* in a row, without a tile done in between */
#define STARTS_MAX   20 /* tries of WIC_LINK_START_NS to get all blocks onto the device */

static void beat(struct wic_device *device, int64_t now)
{
    if (now - device->beat_ns > BEAT_NS) {
        device->beat_ns = now;
        wic_link_beat(device->link);
    }
}

/* Both are checked: an abort of the channel that the device proxy does not wait for does not wake
 * it. */
static bool aborted(const struct wic_device *device)
{
    return atomic_load(&device->options.in->aborted) || atomic_load(&device->options.out->aborted);
}

/* --- launches of the kernel ------------------------------------------------------------------ */

static void launch_is_over(const struct wic_device *device)
{
    if (device->options.left != NULL) {
        device->options.left(device->options.context);
    }
    wic_gpu_left();
}

/* Launches the kernel and posts the tiles that an earlier launch left unfinished. */
static int launch(struct wic_device *device)
{
    int rc = -EBUSY;
    uint32_t starts = device->options.starts ? device->options.starts : STARTS_MAX;
    device->base = device->finished;
    if (device->options.enter != NULL) {
        wic_link_share(device->link, device->options.enter(device->options.context));
    }
    wic_gpu_enter();
    for (uint32_t i = 0; i < starts && rc == -EBUSY; i++) {
        rc = aborted(device) ? -ECANCELED
                             : wic_link_start(device->link, device->in_first + device->base,
                                              device->out_first + device->base);
    }
    if (rc < 0) {
        launch_is_over(device);
        return rc;
    }
    device->resident = true;
    device->stats.launches += rc == 0; /* else it was there, with other lanes */
    rc = 0;
    device->beat_ns = device->event_ns = device->came_ns = wic_now_ns();
    for (uint64_t tile = device->finished; tile < device->posted && rc == 0; tile++) {
        rc = wic_proxy_post(device, tile);
    }
    return rc;
}

/* The kernel has left or was told to: waits for its end and adds its counters to the statistics. */
static int leave(struct wic_device *device)
{
    struct wic_link_state state;
    device->resident = false;
    int rc = wic_link_join(device->link, LEAVE_NS);
    int64_t now = wic_now_ns();
    launch_is_over(device);
    device->stats.leave_ns = (uint64_t)(now - device->event_ns);
    device->stats.resident_ns += (uint64_t)(now - device->came_ns);
    if (rc == 0) {
        rc = wic_link_report(device->link, &state);
    }
    if (rc != 0) {
        return rc;
    }
    device->stats.in_bytes += state.pulled_bytes;
    device->stats.starved_ns += state.started > 0 ? state.starved_ns / state.started : 0;
    return 0;
}

/* The kernel left because the heartbeat had stopped (this process or the machine was suspended):
 * launches it again. */
static int heartbeat_lost(struct wic_device *device)
{
    int rc = leave(device);
    device->stats.timeouts++;
    if (rc == 0 && device->options.stays) {
        return wic_stay_refuse(-EIO, "the kernel that guests depend on left, because the GPU saw "
                                     "no heartbeat of this process");
    }
    if (rc == 0 && ++device->timeouts > TIMEOUTS_MAX) {
        rc = wic_stay_refuse(-EIO,
                             "the kernel left %u times in a row without a result, because the GPU "
                             "saw no heartbeat of this process",
                             device->timeouts);
    }
    return rc == 0 ? launch(device) : rc;
}

/* Tiles are under way and none has finished: waits a moment and checks that the kernel still
 * runs. */
static int watch(struct wic_device *device, int64_t now)
{
    if (now - device->event_ns < ALERT_NS) {
        device->quiet = (struct wic_watchdog){0, 0};
        if (device->steps) {
            return 0;
        }
        if (device->options.nap_ns > 0) {
            wic_nap_ns(device->options.nap_ns);
            return 0;
        }
        for (int i = 0; i < 16; i++) {
            wic_cpu_relax();
        }
        return 0;
    }
    if (device->steps && now - device->looked_ns < NAP_NS) {
        return 0;
    }
    device->looked_ns = now;
    /* The tiles take long, so sleeping adds little delay. Whether the kernel runs is read before
     * whether the tile is computed: a result written before the kernel left is then seen. */
    int running = wic_link_running(device->link);
    if (running == 0 && !wic_link_computed(device->link, device->finished - device->base)) {
        return heartbeat_lost(device);
    }
    if (device->posted == device->finished) {
        device->quiet = (struct wic_watchdog){0, 0}; /* it stays without tiles */
        return running < 0 ? running : 0;
    }
    if (wic_watchdog_expired(&device->quiet, (uint64_t)now, (uint64_t)device->options.hang_ns)) {
        if (device->options.stays) {
            return wic_stay_refuse(-ETIMEDOUT,
                                   "the guests did not finish frame %llu within %lld ms: all "
                                   "blocks of their kernel must be launched, and call done()",
                                   (unsigned long long)device->finished,
                                   (long long)(device->options.hang_ns / 1000000));
        }
        return wic_stay_refuse(-ETIMEDOUT,
                               "the GPU did not finish tile %llu within %lld ms: the work must not "
                               "wait for anything outside its block, nor call __syncthreads()",
                               (unsigned long long)device->finished,
                               (long long)(device->options.hang_ns / 1000000));
    }
    if (!device->steps) {
        struct timespec nap = {.tv_nsec = NAP_NS};
        nanosleep(&nap, NULL);
    }
    return running < 0 ? running : 0;
}

static bool is_unwanted(const struct wic_device *device)
{
    const struct wic_device_options *o = &device->options;
    return !o->stays &&
           (wic_gpu_is_paused() || (o->is_unwanted != NULL && o->is_unwanted(o->context)));
}

/* No tile is under way and no ticket there: whether the kernel leaves, because of the end of the
 * stream, because it is unwanted, or after idle_ns. Without steps that time is over: wic_proxy_take
 * has waited for it. */
static bool is_over(const struct wic_device *device, int64_t now)
{
    bool is_quiet = !device->steps || now - device->event_ns > device->options.idle_ns;
    return device->ended || (!device->options.stays && (is_quiet || is_unwanted(device)));
}

/* One iteration while the kernel is resident. */
static int serve(struct wic_device *device)
{
    int64_t now = wic_now_ns();
    beat(device, now);
    int finished = wic_proxy_finish(device);
    if (finished < 0) {
        return finished;
    }
    if (finished > 0) {
        device->event_ns = now;
    }
    bool idle = device->posted == device->finished;
    int64_t patience = idle && !device->steps ? device->options.idle_ns : 0;
    int rc = is_unwanted(device) ? 0 : wic_proxy_take(device, patience);
    if (rc > 0) {
        device->event_ns = now;
        return wic_proxy_post_taken(device);
    }
    if (rc == 0 && idle && is_over(device, now)) {
        wic_link_close(device->link, device->posted - device->base);
        return leave(device);
    }
    return rc == 0 && finished == 0 ? watch(device, now) : rc;
}

/* Waits for a ticket while no kernel is resident. */
static int rest(struct wic_device *device)
{
    int64_t since = wic_now_ns();
    int rc = wic_proxy_take(device, device->steps ? 0 : GLANCE_NS);
    device->stats.parked_ns += (uint64_t)(wic_now_ns() - since);
    if (rc <= 0) {
        return rc;
    }
    rc = launch(device);
    return rc == 0 ? wic_proxy_post_taken(device) : rc;
}

/* The words for an error of the run; those of the call that failed, if it has any. */
static void explain(struct wic_device *device, int rc)
{
    const char *const cause = wic_link_why();
    const char *const words =
        rc == -ECANCELED   ? "one of the channels was aborted"
        : rc == -EBUSY     ? "another process fills the GPU, and the kernel found no room for all "
                             "its blocks: end the other, or choose a plan of fewer blocks"
        : rc == -ETIMEDOUT ? "the kernel or a copy is still on the GPU: the process can only end, "
                             "by _exit"
        : rc == -EINVAL    ? "a ticket is not a tile of the plan, or another thread took it"
        : rc == -EIO       ? "the kernel or a copy failed, and this process has lost the GPU"
                           : NULL;
    if (cause[0] != '\0' || words != NULL) {
        (void)snprintf(device->why, sizeof(device->why), "%s", cause[0] != '\0' ? cause : words);
    } else {
        (void)snprintf(device->why, sizeof(device->why), "the stream ended with error %d", -rc);
    }
    atomic_store(&device->is_failed, true);
}

const char *wic_strerror(const struct wic_device *device)
{
    return device == NULL ? wic_link_why() : atomic_load(&device->is_failed) ? device->why : "";
}

static int begin(struct wic_device *device)
{
    wic_stay_forget();
    return device->options.stays ? launch(device) : 0;
}

static bool goes_on(const struct wic_device *device, int rc)
{
    return rc == 0 && (device->resident || !device->ended);
}

static int turn(struct wic_device *device)
{
    return aborted(device) ? -ECANCELED : device->resident ? serve(device) : rest(device);
}

/* rc: how the run ended. */
static int end(struct wic_device *device, int rc)
{
    if (device->resident) {
        wic_link_abort(device->link);
        int left = leave(device);
        rc = left < 0 && rc == 0 ? left : rc;
    }
    device->stats.tiles = device->finished;
    if (rc == 0) {
        wic_close(device->options.out);
    } else {
        explain(device, rc);
        wic_abort(device->options.in);
        wic_abort(device->options.out);
    }
    return rc;
}

int wic_device_run(struct wic_device *device)
{
    const int slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0); /* the caller's; < 0: not known */
    (void)prctl(PR_SET_TIMERSLACK, SLACK_NS, 0, 0, 0);
    int rc = begin(device);
    while (goes_on(device, rc)) {
        rc = turn(device);
    }
    rc = end(device, rc);
    if (slack >= 0) {
        (void)prctl(PR_SET_TIMERSLACK, (unsigned long)slack, 0, 0, 0);
    }
    return rc;
}

int wic_device_step(struct wic_device *device)
{
    int rc = device->steps ? 0 : begin(device);
    device->steps = true;
    if (goes_on(device, rc)) {
        rc = turn(device);
    }
    return goes_on(device, rc) ? 1 : end(device, rc);
}

/* --- open and close ------------------------------------------------------------------------- */

static unsigned char *slots_of(struct wic_channel *channel)
{
    unsigned char *own = (unsigned char *)channel + channel->payload_offset;
    return channel->payload != NULL ? channel->payload : own;
}

static int make_link(struct wic_device *device)
{
    const struct wic_device_options *o = &device->options;
    struct wic_link_options link = {
        .in = slots_of(o->in),
        .out = slots_of(o->out),
        .in_stride = (size_t)o->in->stride,
        .out_stride = (size_t)o->out->stride,
        .in_slots = o->in->slots,
        .out_slots = o->out->slots,
        .plan = o->plan,
        .kernel = o->kernel,
        .argument = o->argument,
        .launch = o->launch,
        .argument_bytes = o->argument_bytes,
        .priority = o->priority,
        .share = o->share,
    };
    return wic_link_create(&link, &device->link);
}

static void free_device(struct wic_device *device)
{
    free(device->in);
    free(device->out);
    free(device->what);
    free(device);
}

int wic_device_open_as(uint64_t layout, const struct wic_device_options *options,
                       struct wic_device **out_device)
{
    wic_stay_forget();
    if (layout != WIC_DEVICE_LAYOUT) {
        return wic_stay_refuse(-EPROTO,
                               "the program was compiled with the headers of another wic than the "
                               "library (%#llx and %#llx): compile it again",
                               (unsigned long long)layout, (unsigned long long)WIC_DEVICE_LAYOUT);
    }
    if (options == NULL || out_device == NULL || options->in == NULL || options->out == NULL ||
        (options->describe == NULL && options->plan.in_unit == 0) || options->idle_ns < 0 ||
        options->idle_ns >= (int64_t)WIC_LINK_BEAT_NS / 2 || options->hang_ns < 0 ||
        options->nap_ns > WIC_NAP_NS_MOST) {
        return wic_stay_refuse(-EINVAL, "the options of the device have no channels, no plan, or "
                                        "time limits out of range");
    }
    struct wic_device *device = calloc(1, sizeof(*device));
    if (device == NULL) {
        return wic_stay_refuse(-ENOMEM, "no memory for the device");
    }
    device->options = *options;
    if (options->idle_ns == 0) {
        device->options.idle_ns = WIC_DEVICE_IDLE_NS;
    }
    if (options->hang_ns == 0) {
        device->options.hang_ns = WIC_DEVICE_HANG_NS;
    }
    device->in_first = atomic_load(&options->in->side[WIC_CONSUMER].next);
    device->out_first = atomic_load(&options->out->side[WIC_PRODUCER].next);
    device->window =
        options->in->slots < options->out->slots ? options->in->slots : options->out->slots;
    device->stats.blocks = options->plan.blocks;
    device->in = calloc(device->window, sizeof(*device->in));
    device->out = calloc(device->window, sizeof(*device->out));
    device->what = calloc(device->window, sizeof(*device->what));
    bool has_memory = device->in != NULL && device->out != NULL && device->what != NULL;
    int rc = has_memory ? make_link(device) : -ENOMEM;
    if (rc != 0) {
        free_device(device);
        return rc;
    }
    if (options->launch == NULL) {
        struct wic_shaped shaped;
        wic_link_shaped(device->link, &shaped);
        device->stats.blocks = shaped.blocks;
    }
    *out_device = device;
    return 0;
}

void wic_device_shaped(const struct wic_device *device, struct wic_shaped *out_shaped)
{
    wic_link_shaped(device->link, out_shaped);
}

void wic_device_stats_get(const struct wic_device *device, struct wic_device_stats *out_stats)
{
    *out_stats = device->stats;
}

int wic_device_close(struct wic_device *device, struct wic_device_stats *out_stats)
{
    if (out_stats != NULL) {
        *out_stats = device->stats;
    }
    int rc = wic_gpu_pause(WIC_GPU_PAUSE_NS); /* what follows waits for other resident kernels */
    rc = rc ? rc : wic_link_destroy(device->link);
    wic_gpu_resume();
    free_device(device);
    return rc;
}
