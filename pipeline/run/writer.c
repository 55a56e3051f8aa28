/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A writer thread: hands each finished tile to every sink, then gives the slot back. */
#include "pipeline/run/stream.h"

#include "config/base/clock.h"

#include <errno.h>
#include <string.h>

static int write_tile(struct pb_stream *s, const struct wic_slot *slot, uint32_t worker,
                      struct pb_err *err)
{
    const struct pb_tile *tile = slot->user;
    const struct pb_tile_out pixels = {.data = slot->data, .plane_px = pb_tile_out_px(tile)};
    int rc = 0;
    for (size_t i = 0; i < s->n_sinks && rc >= 0; i++)
        rc = s->sinks[i].tile(s->sinks[i].object, tile, &pixels, worker, err);
    return rc;
}

void pb_writer_run(struct pb_stream *s, uint32_t worker)
{
    struct wic_slot slot;
    struct pb_err err = {0};
    int rc;
    while ((rc = wic_wait(s->out, WIC_FOREVER, &slot)) == 0) {
        uint32_t unit = ((const struct pb_tile *)slot.user)->unit;
        uint64_t start = pb_clock_mono_ns();
        rc = write_tile(s, &slot, worker, &err);
        atomic_fetch_add(&s->write.busy_ns, pb_clock_mono_ns() - start);
        if (rc < 0) {
            (void)pb_fail(&err, PB_E_OUTPUT_WRITE, "a product could not take a tile");
            pb_stream_fail(s, &err);
            return;
        }
        atomic_fetch_add(&s->write.bytes, slot.bytes);
        atomic_fetch_add(&s->write.tiles, 1);
        rc = wic_release(s->out, &slot);
        if (rc < 0)
            break;
        pb_in_flight_done(s->in_flight, unit);
    }
    if (rc == -EPIPE || rc == -ECANCELED) /* the end of the stream, or the run was aborted */
        return;
    /* Without this the stages before it would wait for its slots for ever. */
    (void)pb_fail(&err, PB_E_SYSTEM, "the channels between the stages failed: %s", strerror(-rc));
    pb_stream_fail(s, &err);
}
