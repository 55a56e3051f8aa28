/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_MACHINE_H
#define PB_MACHINE_H
/* Metrics of the machine: free space of the service's directories, and the processes of the
 * service with their memory and CPU time. They are read on libuv's pool, because a network file
 * system may block the reader. Thread: loop. */
#include "service/inbox/dirs.h"
#include "service/status/facts.h"

#include <uv.h>

struct pb_machine {
    uv_loop_t *loop;
    const struct pb_dirs *dirs; /* may change between calls */
    struct pb_facts *facts;     /* receives the text */
    uv_work_t work;
    bool works;
    int64_t next_ms;          /* monotonic: earliest time of the next reading */
    struct pb_dirs read_dirs; /* copy for the pool */
    char *text;               /* result of the pool */
    double children_s;        /* last printed CPU time, which never decreases */
};

/* Reads the values again when the last ones are PB_MACHINE_MS old and no reading is in progress. */
#define PB_MACHINE_MS 5000
void pb_machine_run(struct pb_machine *machine);
#endif
