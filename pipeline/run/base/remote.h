/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_REMOTE_H
#define PB_REMOTE_H
/* Another process that computes for this one: it owns the device, and this process needs no driver.
 * A pass opens a session, which has the pass's channels in shared memory, fills and empties their
 * slots itself, and waits for the end. The implementation chooses the protocol. */
#include "config/base/err.h"
#include "pipeline/device/device.h"
#include "pipeline/plan/served.h"
#include "pipeline/run/base/run_report.h"

struct wic_channel;

struct pb_remote_session {
    struct wic_channel *in, *out;
    uint32_t threads;  /* count of threads that compute */
    uint32_t n_stored; /* tiles of a lower number stay on the device after the first round */
    bool finds; /* pixels of the job's last pass are on the device, if the request expects them */
    char sync[16]; /* "wic" or "stream" */
    void *own;     /* state of the implementation */
};

/* Totals of a session. */
struct pb_remote_end {
    uint64_t tiles, bytes, busy_ns, parked_ns;
    struct pb_link_report link; /* with rates */
};

struct pb_remote {
    const char *device;                    /* "cuda:0", "cpu" */
    const struct pb_device_traits *traits; /* NULL: the process computes on a CPU */
    int32_t device_index;
    const char *stream_why; /* why it keeps no kernel on the device; NULL = it may keep one */
    void *user;
    /* The request was made from the plan `pass`; slots have the sizes of this plan. */
    int (*open)(void *user, const struct pb_plan *pass, const struct pb_served_request *request,
                const struct pb_served_tail *tail, struct pb_err *err,
                struct pb_remote_session *out_session);
    /* Returns when the session has stopped computing: 0 when the channels ended or were aborted
     * here, else the session's error; device.lost when the process has died. Thread: one. */
    int (*wait)(void *user, struct pb_remote_session *session, struct pb_err *err,
                struct pb_remote_end *out_end);
    /* With or without a wait before. */
    void (*close)(void *user, struct pb_remote_session *session);
};
#endif
