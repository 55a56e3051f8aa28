/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_REMOTE_H
#define PB_REMOTE_H
/* Another process that computes for this one: it owns the device, and this one needs no driver. A
 * pass opens a session, which has the pass's channels in shared memory, fills and empties their
 * slots itself, and waits for the end. How the two talk is the business of who implements this. */
#include "config/base/err.h"
#include "pipeline/device/device.h"
#include "pipeline/plan/plan_served.h"
#include "pipeline/run/base/run_report.h"

struct wic_channel;

struct pb_remote_session {
    struct wic_channel *in, *out;
    uint32_t threads;  /* that compute */
    uint32_t n_stored; /* tiles of a lower number stay there after the first round */
    char sync[16];     /* "wic" or "stream" */
    void *own;         /* the implementation's */
};

/* What a session did. */
struct pb_remote_end {
    uint64_t tiles, bytes, busy_ns, parked_ns;
    struct pb_link_report link; /* with the rates */
};

struct pb_remote {
    const char *device;                    /* "cuda:0", "cpu" */
    const struct pb_device_traits *traits; /* NULL: it computes on a CPU */
    int32_t device_index;
    const char *stream_why; /* why it keeps no kernel on the device; NULL = it may */
    void *user;
    /* The plan is what the request was made from; slots have its sizes. stored: of a request with
     * `whole`; else n is 0. */
    int (*open)(void *user, const struct pb_plan *pass, const struct pb_served_request *request,
                const struct pb_served_stored *stored, struct pb_err *err,
                struct pb_remote_session *out_session);
    /* Returns when the session computes no longer: 0 when the channels came to their end or were
     * aborted here, else its error; device.lost when the process has died. Thread: one. */
    int (*wait)(void *user, struct pb_remote_session *session, struct pb_err *err,
                struct pb_remote_end *out_end);
    /* After wait, or without it. */
    void (*close)(void *user, struct pb_remote_session *session);
};
#endif
