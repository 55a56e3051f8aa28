/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SERVED_SESSION_H
#define PB_SERVED_SESSION_H
/* The process that owns a device, inside the test's process: the calls of a struct pb_remote. */
#include "pipeline/run/served/served.h"
#include "pipeline/run/served/tile_room.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct served_session {
    struct pb_served *served;
    struct pb_tile_room room; /* mapping of the job */
    struct pb_tile_pool pool;
};

static inline struct pb_tile_pool_shape served_session_shape(const struct pb_plan *p)
{
    return (struct pb_tile_pool_shape){p->layout.in_slots, p->layout.out_slots,
                                       p->layout.in_slot_bytes, p->layout.out_slot_bytes, 0};
}

/* kept: of the side that computes; the caller's, also after an error. */
static inline int served_session_open(const struct pb_plan_request *base,
                                      const struct pb_plan *pass,
                                      const struct pb_served_request *request,
                                      const struct pb_served_tail *sent, struct pb_served_job *kept,
                                      struct pb_err *err, struct pb_remote_session *out)
{
    struct served_session *own = calloc(1, sizeof *own);
    int fd = -1;
    struct pb_served_tail tail = {.data = NULL};
    ck_assert_int_eq(pb_served_tail_add(&tail, sent->data, sent->bytes, err), 0);
    int rc = pb_served_create(base, request, &tail, kept, err, &own->served, &fd);
    pb_served_tail_free(&tail);
    if (rc < 0) {
        free(own);
        return rc;
    }
    const struct pb_plan *theirs = pb_served_plan(own->served);
    ck_assert_uint_eq(theirs->layout.in_slot_bytes, pass->layout.in_slot_bytes);
    ck_assert_uint_eq(theirs->layout.out_slot_bytes, pass->layout.out_slot_bytes);
    const struct pb_tile_pool_shape shape = served_session_shape(pass);
    size_t bytes = pb_tile_pool_room_bytes(&shape);
    ck_assert_int_eq(pb_tile_room_open(kept->room.fd, bytes, err, &own->room), 0);
    ck_assert_int_eq(pb_tile_pool_open(&shape, &own->room, fd, err, &own->pool), 0);
    close(fd);
    *out = (struct pb_remote_session){.in = own->pool.in,
                                      .out = own->pool.out,
                                      .threads = pb_served_threads(own->served),
                                      .finds = pb_served_finds(own->served),
                                      .own = own};
    snprintf(out->sync, sizeof out->sync, "%s", pb_served_sync(own->served));
    return pb_served_start(own->served, err);
}

static inline int served_session_wait(void *user, struct pb_remote_session *session,
                                      struct pb_err *err, struct pb_remote_end *out_end)
{
    struct served_session *own = session->own;
    (void)user;
    int rc = pb_served_wait(own->served, -1, err);
    pb_served_end(own->served, out_end);
    return rc;
}

static inline void served_session_close(void *user, struct pb_remote_session *session)
{
    struct served_session *own = session->own;
    (void)user;
    pb_served_destroy(own->served);
    pb_tile_pool_close(&own->pool);
    pb_tile_room_close(&own->room);
    free(own);
}

#endif
