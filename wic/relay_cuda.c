/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The thread that stands for a device at its two channels. All of the device's knowledge of tickets
 * is here: the link below counts tiles from 0 and knows slots only, so nothing of the channels'
 * state machine is written twice. */
#include "wic/channel.h"
#include "wic/futex.h"
#include "wic/spin.h"
#include "wic/wic_device.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BEAT_NS  INT64_C(1000000000) /* longest sleep; well under WIC_LINK_BEAT_NS */
#define ALERT_NS 200000              /* so long without an event the relay spins, then it naps */
#define NAP_NS   20000

struct pin { /* slots of a channel */
    unsigned char *slots;
    bool ours; /* to unpin */
};

struct wic_device {
    struct wic_channel *in, *out;
    struct wic_link *link;
    struct pin pin[2];
    uint32_t in_unit, out_unit, blocks;
    int gpu;
    pthread_t thread;
    struct wic_slot *taken, *made; /* of the tiles under way, by tile % window */
    uint32_t window;
    uint64_t in_first, out_first; /* tickets of tile 0 */
    uint64_t posted, finished;    /* tiles */
    bool ended;                   /* `in` has no more */
    bool holds;                   /* taken[posted % window] waits for an output slot */
    int64_t event_ns;             /* when something happened last */
    int64_t beat_ns, leave_ns;
    int status;
};

static int from_cuda(cudaError_t error)
{
    return error == cudaSuccess ? 0 : error == cudaErrorMemoryAllocation ? -ENOMEM : -EIO;
}

/* Memory that CUDA does not know is pinned here, what it knows is left as it is. */
static int pin_slots(struct pin *pin, struct wic_channel *channel)
{
    unsigned char *own = (unsigned char *)channel + channel->payload_offset;
    pin->slots = channel->payload != NULL ? channel->payload : own;
    struct cudaPointerAttributes found;
    cudaError_t error = cudaPointerGetAttributes(&found, pin->slots);
    if (error != cudaSuccess || found.type != cudaMemoryTypeUnregistered) {
        return from_cuda(error);
    }
    error = cudaHostRegister(pin->slots, (size_t)(channel->slots * channel->stride),
                             cudaHostRegisterPortable | cudaHostRegisterMapped);
    pin->ours = error == cudaSuccess;
    return from_cuda(error);
}

/* --- the thread --- */

static void beat(struct wic_device *device, int64_t now)
{
    if (now - device->beat_ns > BEAT_NS / 4) {
        device->beat_ns = now;
        wic_link_beat(device->link);
    }
}

/* Hands over what is done. How many tiles, or an error. */
static int finish_tiles(struct wic_device *device)
{
    int n = 0;
    for (; device->finished < device->posted && wic_link_done(device->link, device->finished);
         n++) {
        uint64_t at = device->finished % device->window;
        const struct wic_slot *taken = &device->taken[at];
        const struct wic_slot *made = &device->made[at];
        memcpy(made->user, taken->user, WIC_USER_BYTES);
        int rc = wic_publish(device->out, made, taken->bytes / device->in_unit * device->out_unit);
        if (rc == 0) {
            rc = wic_release(device->in, taken);
        }
        if (rc != 0) {
            return rc;
        }
        device->finished++;
    }
    return n;
}

/* Takes one ticket and posts it, if there are one and a slot for its results. 1, 0 or an error;
 * sleeps for them only if nothing is under way. */
static int post_tile(struct wic_device *device)
{
    int64_t patience = device->posted == device->finished ? BEAT_NS / 4 : 0;
    if (device->posted - device->finished == device->window || device->ended) {
        return 0;
    }
    uint64_t at = device->posted % device->window;
    struct wic_slot *taken = &device->taken[at];
    struct wic_slot *made = &device->made[at];
    if (!device->holds) {
        int rc = wic_wait(device->in, patience, taken);
        if (rc == -EPIPE) {
            device->ended = true;
            wic_link_close(device->link, device->posted);
            return 1;
        }
        if (rc != 0) {
            return rc == -ETIMEDOUT ? 0 : rc;
        }
        if (taken->ticket != device->in_first + device->posted ||
            taken->bytes % device->in_unit != 0) {
            return -EINVAL;
        }
        device->holds = true;
    }
    int rc = wic_acquire(device->out, patience, made);
    if (rc != 0) {
        return rc == -ETIMEDOUT ? 0 : rc;
    }
    if (made->ticket != device->out_first + device->posted) {
        return -EINVAL;
    }
    device->holds = false;
    wic_link_post(device->link, device->posted, (uint32_t)taken->bytes);
    device->posted++;
    return 1;
}

/* Nothing to do just now, but tiles are under way. */
static int idle(struct wic_device *device, int64_t now)
{
    if (now - device->event_ns < ALERT_NS) {
        for (int i = 0; i < 16; i++) {
            wic_cpu_relax();
        }
        return 0;
    }
    /* Long tiles, or none: the naps cost them little. And is it still alive? */
    if (wic_link_running(device->link) != 1 && device->finished < device->posted &&
        !wic_link_done(device->link, device->finished)) {
        return -EIO;
    }
    struct timespec nap = {.tv_nsec = NAP_NS};
    nanosleep(&nap, NULL);
    return 0;
}

static int relay(struct wic_device *device)
{
    while (!device->ended || device->finished < device->posted) {
        int64_t now = wic_now_ns();
        beat(device, now);
        int finished = finish_tiles(device);
        int posted = finished < 0 ? 0 : post_tile(device);
        int rc = finished < 0 ? finished : posted < 0 ? posted : 0;
        if (rc == 0 && finished + posted > 0) {
            device->event_ns = now;
        } else if (rc == 0 && device->finished < device->posted) {
            rc = idle(device, now);
        } else if (rc == 0 && wic_link_running(device->link) != 1) {
            rc = -EIO;
        }
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static void *relay_main(void *argument)
{
    struct wic_device *device = argument;
    cudaSetDevice(device->gpu);
    device->event_ns = wic_now_ns();
    device->status = relay(device);
    if (device->status == 0) {
        wic_close(device->out);
    } else {
        wic_link_abort(device->link);
    }
    int64_t last = wic_now_ns();
    int rc = wic_link_join(device->link, 2 * (int64_t)WIC_LINK_BEAT_NS);
    device->leave_ns = wic_now_ns() - last;
    if (device->status == 0 && rc != 0) {
        device->status = -EIO;
    }
    if (device->status != 0) {
        wic_abort(device->in);
        wic_abort(device->out);
    }
    return NULL;
}

/* --- open and close --- */

static int choose_plan(const struct wic_device_options *options, int gpu,
                       struct wic_chunk_plan *out_plan)
{
    if (options->plan != NULL) {
        *out_plan = *options->plan;
        return 0;
    }
    struct wic_gpu what;
    struct wic_tile_shape shape = {.slot_bytes = (size_t)options->in->slot_bytes,
                                   .in_unit = options->in_unit,
                                   .out_unit = options->out_unit};
    int rc = wic_gpu_read(gpu, &what);
    return rc == 0 ? wic_chunk_plan_choose(&what, &shape, out_plan) : rc;
}

static int make_link(struct wic_device *device, const struct wic_device_options *options)
{
    struct wic_link_options link = {
        .in = device->pin[0].slots,
        .out = device->pin[1].slots,
        .in_stride = (size_t)options->in->stride,
        .out_stride = (size_t)options->out->stride,
        .in_first = device->in_first,
        .out_first = device->out_first,
        .in_slots = options->in->slots,
        .out_slots = options->out->slots,
        .kernel = options->kernel,
        .argument = options->argument,
    };
    int rc = choose_plan(options, device->gpu, &link.plan);
    if (rc != 0) {
        return rc;
    }
    /* A full tile and its results fit into the slots, and the pieces cover it. */
    uint64_t units = options->in->slot_bytes / options->in_unit;
    uint64_t piece_units = link.plan.in_piece / options->in_unit;
    if (units * options->out_unit > options->out->slot_bytes || piece_units == 0 ||
        link.plan.pieces < (units + piece_units - 1) / piece_units ||
        link.plan.in_unit != options->in_unit || link.plan.out_unit != options->out_unit) {
        return -EINVAL;
    }
    device->blocks = link.plan.blocks;
    return wic_link_create(&link, &device->link);
}

static void destroy(struct wic_device *device)
{
    wic_link_destroy(device->link);
    for (int i = 0; i < 2; i++) {
        if (device->pin[i].ours) {
            cudaHostUnregister(device->pin[i].slots);
        }
    }
    free(device->taken);
    free(device->made);
    free(device);
}

static int start(struct wic_device *device)
{
    int rc = wic_link_start(device->link);
    if (rc == 0 && pthread_create(&device->thread, NULL, relay_main, device) != 0) {
        wic_link_abort(device->link);
        wic_link_join(device->link, (int64_t)WIC_LINK_BEAT_NS);
        rc = -EAGAIN;
    }
    return rc;
}

int wic_device_open(const struct wic_device_options *options, struct wic_device **out_device)
{
    if (options == NULL || out_device == NULL || options->in == NULL || options->out == NULL ||
        options->in_unit == 0 || options->out_unit == 0) {
        return -EINVAL;
    }
    struct wic_device *device = calloc(1, sizeof(*device));
    if (device == NULL) {
        return -ENOMEM;
    }
    device->in = options->in;
    device->out = options->out;
    device->in_unit = options->in_unit;
    device->out_unit = options->out_unit;
    device->in_first = atomic_load(&options->in->side[WIC_CONSUMER].next);
    device->out_first = atomic_load(&options->out->side[WIC_PRODUCER].next);
    device->window =
        options->in->slots < options->out->slots ? options->in->slots : options->out->slots;
    device->taken = calloc(device->window, sizeof(*device->taken));
    device->made = calloc(device->window, sizeof(*device->made));
    int rc = device->taken != NULL && device->made != NULL ? 0 : -ENOMEM;
    if (rc == 0) {
        rc = from_cuda(cudaGetDevice(&device->gpu));
    }
    if (rc == 0) {
        rc = pin_slots(&device->pin[0], options->in);
    }
    if (rc == 0) {
        rc = pin_slots(&device->pin[1], options->out);
    }
    if (rc == 0) {
        rc = make_link(device, options);
    }
    if (rc == 0) {
        rc = start(device);
    }
    if (rc != 0) {
        destroy(device);
        return rc;
    }
    *out_device = device;
    return 0;
}

int wic_device_close(struct wic_device *device, struct wic_device_stats *out_stats)
{
    pthread_join(device->thread, NULL);
    int status = device->status;
    struct wic_link_state state = {0};
    if (status != -EIO && wic_link_report(device->link, &state) != 0) {
        status = -EIO;
    }
    if (out_stats != NULL) {
        *out_stats = (struct wic_device_stats){
            .tiles = device->finished,
            .in_bytes = state.pulled_bytes,
            .starved_ns = state.starved_ns,
            .leave_ns = (uint64_t)device->leave_ns,
            .blocks = device->blocks,
        };
    }
    destroy(device);
    return status;
}
