/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SERVED_H
#define PB_SERVED_H
/* A pass whose tiles arrive from another process and return to it: slots in memory that both map,
 * and the executor of this process between them. The other process is not trusted. It sends the
 * number and unit of a tile; the position of the tile and its inputs follow from this process' own
 * plan. If no gate leaves out tiles, struct pb_arrivals checks that each arrives in its order,
 * once. Slots hold only pixels. create, start, wait and destroy belong to one thread, abort to any.
 */
#include "pipeline/plan/served.h"
#include "pipeline/run/base/remote.h"
#include "pipeline/run/served/tile_room.h"

struct pb_served;
struct pb_whole_kept;

/* Memory that the passes of a job leave for its next pass. Zeroed before the first one. */
struct pb_served_job {
    struct pb_tile_room room; /* slots; used again if they fit, else made again */
    /* Decoded pixels on the device (run/whole/whole_kept.h); NULL: no pass has left any. */
    struct pb_whole_kept *kept;
};

/* base, said, tail: same as for pb_plan_serve; the tail is used up. job: the caller's; the pass
 * before has been destroyed, and the job stays until after destroy. *out_fd: memfd of the
 * channels' words for the other process, the caller's; the other process also needs job->room.fd.
 */
int pb_served_create(const struct pb_plan_request *base, const struct pb_served_request *said,
                     struct pb_served_tail *tail, struct pb_served_job *job, struct pb_err *err,
                     struct pb_served **out_served, int *out_fd);
const struct pb_plan *pb_served_plan(const struct pb_served *served);
/* "wic" or "stream"; and the count of threads that compute. */
const char *pb_served_sync(const struct pb_served *served);
uint32_t pb_served_threads(const struct pb_served *served);
/* As in struct pb_remote_session. */
bool pb_served_finds(const struct pb_served *served);
/* Tiles of a lower number stay on the device after the first round. */
uint32_t pb_served_stored(const struct pb_served *served);
int pb_served_start(struct pb_served *served, struct pb_err *err);
/* 0: all threads have ended; -ETIMEDOUT: some run; else the failure. */
int pb_served_wait(struct pb_served *served, int64_t timeout_ms, struct pb_err *err);
void pb_served_abort(struct pb_served *served);
void pb_served_end(const struct pb_served *served, struct pb_remote_end *out_end);
/* Aborts if needed, joins, frees; a complete pass leaves its pixels to the job as its plan
 * requires. NULL is fine. Memory that a hung GPU may still use is not freed: see
 * pb_device_left_behind. */
void pb_served_destroy(struct pb_served *served);
/* Frees the pixels, because the job waits for others, which need the device. */
void pb_served_job_waits(struct pb_served_job *job);
/* Frees all that the passes have left, when none is there any more. */
void pb_served_job_end(struct pb_served_job *job);
#endif
