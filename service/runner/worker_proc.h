/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_PROC_H
#define PB_WORKER_PROC_H
/* One worker process seen from its owner, the service or `pushbroom run`: started, spoken to by
 * lines over its stdin and stdout, killed. Knows nothing of jobs. Thread: loop. */
#include "config/base/err.h"
#include "service/base/log.h"
#include "service/runner/worker_launch.h"
#include "service/worker/worker_lines.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct pb_worker_proc;

struct pb_worker_proc_handlers {
    /* One line without its newline, NUL-terminated, borrowed. */
    void (*on_line)(void *user, const char *line, size_t bytes);
    /* Once: the process is gone and everything it wrote was delivered. `how` says it in words
     * ("exit status 3", "signal 11 (Segmentation fault)"). The handler may destroy. */
    void (*on_end)(void *user, const char *how);
    /* A line that it wrote on its stderr (PB_LOG_INFO), or what is to be said of it. */
    void (*on_say)(void *user, enum pb_log_level level, const char *text);
    void *user;
};

/* Handlers are called from the loop only. */
int pb_worker_proc_start(uv_loop_t *loop, const struct pb_worker_program *program,
                         const struct pb_worker_proc_handlers *handlers, struct pb_err *err,
                         struct pb_worker_proc **out_proc);
/* Sends a line; text is without newline and copied. A dead worker is told by on_end alone. The
 * process ignores SIGPIPE. */
int pb_worker_proc_send(struct pb_worker_proc *proc, const char *text, size_t bytes);
void pb_worker_proc_close_stdin(struct pb_worker_proc *proc); /* asks it to leave */
void pb_worker_proc_kill(struct pb_worker_proc *proc);        /* SIGKILL */
/* Monotonic time of the first SIGKILL, 0 = none yet. A process that hangs in the kernel (storage
 * that does not answer) outlives it. */
int64_t pb_worker_proc_killed_ms(const struct pb_worker_proc *proc);
/* Whether it ever wrote a line, be it an empty one: its program runs. */
bool pb_worker_proc_spoke(const struct pb_worker_proc *proc);
int pb_worker_proc_pid(const struct pb_worker_proc *proc);
/* Frees when libuv has closed the handles; no handler is called any more. Kills a process that is
 * still there. NULL is fine. */
void pb_worker_proc_destroy(struct pb_worker_proc *proc);
#endif
