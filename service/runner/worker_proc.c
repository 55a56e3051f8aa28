/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The end of a process is told twice: by SIGCHLD and by the end of its stdout. The last line (a
 * job's result) may be read after the first, so on_end waits for both; not for ever, as a
 * grandchild could keep the pipe open. */
#include "service/runner/worker_proc.h"

#include "config/base/clock.h"
#include "service/base/log.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRACE_MS     500
#define LOG_LINE_MAX 1000
#define READ_BYTES   16384
#define HANDLES      5

struct pb_worker_proc {
    uv_process_t process;
    uv_pipe_t in, out, log;
    uv_timer_t grace;
    int open_handles;
    int64_t killed_ms;
    struct pb_worker_proc_handlers handlers;
    bool spoke, started, exited, out_ended, ended, destroyed, stdin_closed;
    char how[96];
    char read_buffer[READ_BYTES];
    char *line;
    size_t n_line, room;
    char log_line[LOG_LINE_MAX + 1];
    size_t n_log;
};

static void on_close(uv_handle_t *handle)
{
    struct pb_worker_proc *proc = handle->data;
    if (--proc->open_handles > 0)
        return;
    free(proc->line);
    free(proc);
}

static void end_if_over(struct pb_worker_proc *proc, bool wait_no_more)
{
    if (proc->ended || proc->destroyed || !proc->exited || !(proc->out_ended || wait_no_more))
        return;
    proc->ended = true;
    proc->handlers.on_end(proc->handlers.user, proc->how);
}

static void on_grace(uv_timer_t *timer)
{
    end_if_over(timer->data, true);
}

static void on_exit_status(uv_process_t *process, int64_t status, int signal)
{
    struct pb_worker_proc *proc = process->data;
    proc->exited = true;
    if (signal != 0)
        (void)snprintf(proc->how, sizeof proc->how, "signal %d (%s)", signal, strsignal(signal));
    else
        (void)snprintf(proc->how, sizeof proc->how, "exit status %lld", (long long)status);
    if (!proc->destroyed)
        (void)uv_timer_start(&proc->grace, on_grace, GRACE_MS, 0);
    end_if_over(proc, false);
}

static void on_alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *buffer)
{
    (void)wanted;
    struct pb_worker_proc *proc = handle->data;
    *buffer = uv_buf_init(proc->read_buffer, READ_BYTES);
}

static bool append(struct pb_worker_proc *proc, const char *data, size_t bytes)
{
    if (proc->n_line + bytes + 1 > PB_WORKER_LINE_MAX)
        return false;
    if (proc->n_line + bytes + 1 > proc->room) {
        size_t room = (proc->n_line + bytes + 1) * 2;
        char *more = realloc(proc->line, room);
        if (more == NULL)
            return false;
        proc->line = more;
        proc->room = room;
    }
    (void)memcpy(proc->line + proc->n_line, data, bytes);
    proc->n_line += bytes;
    proc->line[proc->n_line] = '\0';
    return true;
}

/* Handlers may destroy proc; its memory stays until the close callbacks, so it can be asked. */
static void take_lines(struct pb_worker_proc *proc, const char *data, size_t bytes)
{
    while (bytes > 0 && !proc->destroyed) {
        const char *end = memchr(data, '\n', bytes);
        size_t part = end ? (size_t)(end - data) : bytes;
        if (!append(proc, data, part)) {
            pb_log(PB_LOG_ERROR, "worker %d: a line over %d bytes; it is ended",
                   pb_worker_proc_pid(proc), PB_WORKER_LINE_MAX);
            pb_worker_proc_kill(proc);
            proc->n_line = 0;
            return;
        }
        if (end == NULL)
            return;
        size_t n = proc->n_line;
        proc->n_line = 0;
        proc->spoke = true;
        if (n > 0)
            proc->handlers.on_line(proc->handlers.user, proc->line, n);
        data += part + 1;
        bytes -= part + 1;
    }
}

static void on_out(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
    struct pb_worker_proc *proc = stream->data;
    if (n > 0)
        take_lines(proc, buffer->base, (size_t)n);
    if (n >= 0 || proc->destroyed)
        return;
    (void)uv_read_stop(stream);
    proc->out_ended = true;
    end_if_over(proc, false);
}

static void flush_log(struct pb_worker_proc *proc)
{
    proc->log_line[proc->n_log] = '\0';
    if (proc->n_log > 0)
        pb_log(PB_LOG_INFO, "worker %d: %s", pb_worker_proc_pid(proc), proc->log_line);
    proc->n_log = 0;
}

static void on_log(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
    struct pb_worker_proc *proc = stream->data;
    for (ssize_t i = 0; i < n; i++) {
        if (buffer->base[i] == '\n' || proc->n_log == LOG_LINE_MAX)
            flush_log(proc);
        if (buffer->base[i] != '\n')
            proc->log_line[proc->n_log++] = buffer->base[i];
    }
    if (n < 0) {
        flush_log(proc);
        (void)uv_read_stop(stream);
    }
}

static enum pb_code spawn_code(int rc)
{
    if (rc == UV_EMFILE || rc == UV_ENFILE)
        return PB_E_SYSTEM_FILES;
    return rc == UV_ENOMEM ? PB_E_MEMORY : PB_E_SYSTEM;
}

int pb_worker_proc_start(uv_loop_t *loop, const char *program,
                         const struct pb_worker_proc_handlers *handlers, struct pb_err *err,
                         struct pb_worker_proc **out_proc)
{
    struct pb_worker_proc *proc = calloc(1, sizeof *proc);
    if (proc == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    proc->handlers = *handlers;
    (void)uv_pipe_init(loop, &proc->in, 0);
    (void)uv_pipe_init(loop, &proc->out, 0);
    (void)uv_pipe_init(loop, &proc->log, 0);
    (void)uv_timer_init(loop, &proc->grace);
    proc->process.data = proc->in.data = proc->out.data = proc->log.data = proc->grace.data = proc;
    proc->open_handles = HANDLES;
    char name[] = "pushbroomd", flag[] = "--worker";
    char *arguments[] = {name, flag, NULL};
    uv_stdio_container_t stdio[3] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&proc->in},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&proc->out},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&proc->log},
    };
    uv_process_options_t options = {.file = program,
                                    .args = arguments,
                                    .stdio_count = 3,
                                    .stdio = stdio,
                                    .exit_cb = on_exit_status};
    int rc = uv_spawn(loop, &proc->process, &options);
    if (rc != 0) {
        pb_worker_proc_destroy(proc);
        return pb_fail(err, spawn_code(rc), "cannot start a worker (%s): %s", program,
                       uv_strerror(rc));
    }
    proc->started = true;
    (void)uv_read_start((uv_stream_t *)&proc->out, on_alloc, on_out);
    (void)uv_read_start((uv_stream_t *)&proc->log, on_alloc, on_log);
    *out_proc = proc;
    return 0;
}

static void on_written(uv_write_t *request, int status)
{
    (void)status;
    free(request);
}

int pb_worker_proc_send(struct pb_worker_proc *proc, const char *text, size_t bytes)
{
    if (proc->stdin_closed)
        return -EPIPE;
    struct {
        uv_write_t request;
        char text[];
    } *message = malloc(sizeof *message + bytes + 1);
    if (message == NULL)
        return -ENOMEM;
    (void)memcpy(message->text, text, bytes);
    message->text[bytes] = '\n';
    uv_buf_t buffer = uv_buf_init(message->text, (unsigned)bytes + 1);
    int rc = uv_write(&message->request, (uv_stream_t *)&proc->in, &buffer, 1, on_written);
    if (rc != 0)
        free(message);
    return rc;
}

void pb_worker_proc_close_stdin(struct pb_worker_proc *proc)
{
    if (!proc->stdin_closed)
        uv_close((uv_handle_t *)&proc->in, on_close);
    proc->stdin_closed = true;
}

void pb_worker_proc_kill(struct pb_worker_proc *proc)
{
    if (!proc->started || proc->exited)
        return;
    if (proc->killed_ms == 0)
        proc->killed_ms = pb_clock_mono_ms();
    (void)uv_process_kill(&proc->process, SIGKILL);
}

int64_t pb_worker_proc_killed_ms(const struct pb_worker_proc *proc)
{
    return proc->killed_ms;
}

bool pb_worker_proc_spoke(const struct pb_worker_proc *proc)
{
    return proc->spoke;
}

int pb_worker_proc_pid(const struct pb_worker_proc *proc)
{
    return proc->process.pid;
}

void pb_worker_proc_destroy(struct pb_worker_proc *proc)
{
    if (proc == NULL || proc->destroyed)
        return;
    proc->destroyed = true;
    pb_worker_proc_kill(proc);
    pb_worker_proc_close_stdin(proc);
    uv_close((uv_handle_t *)&proc->process, on_close);
    uv_close((uv_handle_t *)&proc->out, on_close);
    uv_close((uv_handle_t *)&proc->log, on_close);
    uv_close((uv_handle_t *)&proc->grace, on_close);
}
