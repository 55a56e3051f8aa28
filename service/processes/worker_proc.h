/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_PROC_H
#define PB_WORKER_PROC_H
/* One worker process of the service or of `pushbroom run`: start, lines over its stdin and stdout,
 * kill. It does not know jobs. Thread: loop. */
#include "config/base/err.h"
#include "service/base/log.h"
#include "service/processes/worker_launch.h"
#include "service/worker/worker_lines.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct pb_worker_proc;

struct pb_worker_proc_handlers {
    /* Called with one line without its newline, NUL-terminated, borrowed. */
    void (*on_line)(void *user, const char *line, size_t bytes);
    /* Called once, when the process has ended and all its output was delivered. `how`: description
     * ("exit status 3", "signal 11 (Segmentation fault)"). The handler may destroy. */
    void (*on_end)(void *user, const char *how);
    /* Called with a line of its stderr (PB_LOG_INFO), or a message about the process. */
    void (*on_say)(void *user, enum pb_log_level level, const char *text);
    void *user;
};

/* Handlers are called from the loop only. */
int pb_worker_proc_start(uv_loop_t *loop, const struct pb_worker_program *program,
                         const struct pb_worker_proc_handlers *handlers, struct pb_err *err,
                         struct pb_worker_proc **out_proc);
/* Sends a line; text has no newline and is copied. Only on_end reports the death of a worker. This
 * process ignores SIGPIPE. */
int pb_worker_proc_send(struct pb_worker_proc *proc, const char *text, size_t bytes);
void pb_worker_proc_close_stdin(
    struct pb_worker_proc *proc); /* closes its stdin, so that it ends */
/* Returns true if its stdin was closed, or it was killed; false for NULL. */
bool pb_worker_proc_is_closing(const struct pb_worker_proc *proc);
void pb_worker_proc_kill(struct pb_worker_proc *proc); /* SIGKILL */
/* Monotonic time of the first SIGKILL, 0 = not sent yet. A process that hangs in the kernel
 * (storage that does not respond) survives it. */
int64_t pb_worker_proc_killed_ms(const struct pb_worker_proc *proc);
/* Returns true if it ever wrote a line, even an empty one: its program runs. */
bool pb_worker_proc_spoke(const struct pb_worker_proc *proc);
/* Returns true if `how` of on_end is a signal that another process or the kernel sent, not one that
 * a program causes itself. */
bool pb_worker_proc_is_killed(const char *how);
int pb_worker_proc_pid(const struct pb_worker_proc *proc);
/* Frees the memory when libuv has closed the handles; no handler is called any more. Kills a
 * process that still runs. NULL is allowed. */
void pb_worker_proc_destroy(struct pb_worker_proc *proc);
#endif
