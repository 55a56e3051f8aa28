/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_PROXY_INSIDE_H
#define WIC_PROXY_INSIDE_H
/* Inside of the device proxy, for proxy*.c alone. Thread: that of wic_device_run or
 * wic_device_step. */
#include "wic/channel.h"
#include "wic/watchdog.h"
#include "wic/device/wic_device.h"

struct wic_device {
    struct wic_device_options options;
    struct wic_link *link;
    /* The tiles that are taken and not finished, by tile % window. */
    struct wic_slot *in, *out;
    struct wic_device_tile *what;
    uint64_t window;
    uint64_t in_first, out_first;    /* tickets of tile 0 */
    uint64_t taken;                  /* tiles whose input ticket was taken */
    uint64_t paired;                 /* and for which there is a slot for the results */
    int failure;                     /* why the tile `paired` cannot be posted */
    uint64_t posted, finished, base; /* tiles; base: the first of this launch */
    bool steps;                      /* served by wic_device_step, which never sleeps */
    bool resident;                   /* the kernel is there */
    bool ended;                      /* `in` has no more */
    uint32_t timeouts;               /* of the heartbeat, in a row */
    int64_t came_ns;                 /* when the kernel came */
    int64_t event_ns;                /* when something happened last */
    int64_t beat_ns;
    int64_t looked_ns;         /* when it was last checked whether the kernel runs */
    struct wic_watchdog quiet; /* with tiles under way */
    struct wic_device_stats stats;
    char why[256];         /* written before is_failed is set */
    atomic_bool is_failed; /* for readers on other threads */
};

/* proxy_tiles.c. Publishes the results of finished tiles and releases their inputs. Returns how
 * many, or an error. */
int wic_proxy_finish(struct wic_device *device);

/* Takes the next tickets and slots for their results; waits up to `patience` ns for each. How many
 * tiles may be posted; 0: not yet, or there are no more; or an error. */
int wic_proxy_take(struct wic_device *device, int64_t patience);

/* Posts the tiles that were taken and are not posted. 0 or an error. */
int wic_proxy_post_taken(struct wic_device *device);

/* Posts this tile, which was posted to an earlier launch already. 0 or an error. */
int wic_proxy_post(struct wic_device *device, uint64_t tile);
#endif
