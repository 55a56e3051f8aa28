/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The end of a process is visible as SIGCHLD and as the end of its stdout and stderr. The last
 * lines (a job's result, a library's message) may be read after SIGCHLD; therefore on_end waits
 * for all three, with a time limit, because a grandchild could keep the pipes open. */
#include "service/processes/worker_proc.h"

#include "config/base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_MS     500
#define LOG_LINE_MAX 1000
#define READ_BYTES   16384
#define HANDLES      5

struct pb_worker_proc {
    pid_t pid;
    uv_signal_t child; /* SIGCHLD of any child of this process */
    uv_pipe_t in, out, log;
    uv_timer_t grace;
    int open_handles;
    int64_t killed_ms;
    struct pb_worker_proc_handlers handlers;
    bool spoke, started, exited, out_ended, log_ended, ended, destroyed, stdin_closed;
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
    bool read = proc->out_ended && proc->log_ended;
    if (proc->ended || proc->destroyed || !proc->exited || !(read || wait_no_more))
        return;
    proc->ended = true;
    proc->handlers.on_end(proc->handlers.user, proc->how);
}

static void on_grace(uv_timer_t *timer)
{
    end_if_over(timer->data, true);
}

static void on_child(uv_signal_t *handle, int number)
{
    struct pb_worker_proc *proc = handle->data;
    int status = 0;
    (void)number;
    if (proc->exited || waitpid(proc->pid, &status, WNOHANG) != proc->pid)
        return;
    proc->exited = true;
    if (WIFSIGNALED(status))
        (void)snprintf(proc->how, sizeof proc->how, "signal %d (%s)", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
    else
        (void)snprintf(proc->how, sizeof proc->how, "exit status %d", WEXITSTATUS(status));
    (void)uv_timer_start(&proc->grace, on_grace, GRACE_MS, 0);
    end_if_over(proc, false);
}

static void say(struct pb_worker_proc *proc, enum pb_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void say(struct pb_worker_proc *proc, enum pb_log_level level, const char *format, ...)
{
    char text[LOG_LINE_MAX + 1];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    proc->handlers.on_say(proc->handlers.user, level, text);
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

/* Calls the handlers for the lines. Handlers may destroy proc; its memory stays valid until the
 * close callbacks. */
static void take_lines(struct pb_worker_proc *proc, const char *data, size_t bytes)
{
    while (bytes > 0 && !proc->destroyed) {
        const char *end = memchr(data, '\n', bytes);
        size_t part = end ? (size_t)(end - data) : bytes;
        if (!append(proc, data, part)) {
            say(proc, PB_LOG_ERROR, "it wrote a line over %d bytes and is ended",
                PB_WORKER_LINE_MAX);
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
        say(proc, PB_LOG_INFO, "%s", proc->log_line);
    proc->n_log = 0;
}

static void on_log(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
    struct pb_worker_proc *proc = stream->data;
    for (ssize_t i = 0; i < n && !proc->destroyed; i++) {
        if (buffer->base[i] == '\n' || proc->n_log == LOG_LINE_MAX)
            flush_log(proc);
        if (buffer->base[i] != '\n')
            proc->log_line[proc->n_log++] = buffer->base[i];
    }
    if (n < 0 && !proc->destroyed) {
        flush_log(proc);
        (void)uv_read_stop(stream);
        proc->log_ended = true;
        end_if_over(proc, false);
    }
}

static enum pb_code launch_code(int rc)
{
    if (rc == -EMFILE || rc == -ENFILE)
        return PB_E_SYSTEM_FILES;
    return rc == -ENOMEM ? PB_E_MEMORY : PB_E_SYSTEM;
}

static struct pb_worker_proc *create(uv_loop_t *loop,
                                     const struct pb_worker_proc_handlers *handlers)
{
    struct pb_worker_proc *proc = calloc(1, sizeof *proc);
    if (proc == NULL)
        return NULL;
    proc->handlers = *handlers;
    (void)uv_signal_init(loop, &proc->child);
    (void)uv_pipe_init(loop, &proc->in, 0);
    (void)uv_pipe_init(loop, &proc->out, 0);
    (void)uv_pipe_init(loop, &proc->log, 0);
    (void)uv_timer_init(loop, &proc->grace);
    proc->child.data = proc->in.data = proc->out.data = proc->log.data = proc->grace.data = proc;
    proc->open_handles = HANDLES;
    return proc;
}

/* Passes the descriptors to libuv; closes those that it refuses. */
static int take_pipes(struct pb_worker_proc *proc, const struct pb_worker_pipes *pipes)
{
    uv_pipe_t *const handles[] = {&proc->in, &proc->out, &proc->log};
    const int fds[] = {pipes->in, pipes->out, pipes->log};
    int rc = 0;
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        int opened = uv_pipe_open(handles[i], fds[i]);
        if (opened != 0)
            (void)close(fds[i]);
        rc = rc ? rc : opened;
    }
    rc = rc ? rc : uv_read_start((uv_stream_t *)&proc->out, on_alloc, on_out);
    return rc ? rc : uv_read_start((uv_stream_t *)&proc->log, on_alloc, on_log);
}

int pb_worker_proc_start(uv_loop_t *loop, const struct pb_worker_program *program,
                         const struct pb_worker_proc_handlers *handlers, struct pb_err *err,
                         struct pb_worker_proc **out_proc)
{
    struct pb_worker_pipes pipes;
    struct pb_worker_proc *proc = create(loop, handlers);
    if (proc == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    /* Registered before the process exists, because the process may end immediately. */
    int rc = uv_signal_start(&proc->child, on_child, SIGCHLD);
    rc = rc ? rc : pb_worker_launch(program, &proc->pid, &pipes);
    if (rc == 0) {
        proc->started = true;
        rc = take_pipes(proc, &pipes);
    }
    if (rc != 0) {
        pb_worker_proc_destroy(proc);
        return pb_fail(err, launch_code(rc), "cannot start a worker (%s): %s",
                       program->path ? program->path : "a fork", strerror(-rc));
    }
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

bool pb_worker_proc_is_closing(const struct pb_worker_proc *proc)
{
    return proc != NULL && (proc->stdin_closed || proc->killed_ms > 0);
}

void pb_worker_proc_kill(struct pb_worker_proc *proc)
{
    if (!proc->started || proc->exited)
        return;
    if (proc->killed_ms == 0)
        proc->killed_ms = pb_clock_mono_ms();
    (void)kill(proc->pid, SIGKILL);
}

int64_t pb_worker_proc_killed_ms(const struct pb_worker_proc *proc)
{
    return proc->killed_ms;
}

bool pb_worker_proc_is_killed(const char *how)
{
    int number = 0;
    if (sscanf(how, "signal %d ", &number) != 1)
        return false;
    return number != SIGSEGV && number != SIGBUS && number != SIGILL && number != SIGFPE &&
           number != SIGABRT && number != SIGTRAP && number != SIGSYS;
}

bool pb_worker_proc_spoke(const struct pb_worker_proc *proc)
{
    return proc->spoke;
}

int pb_worker_proc_pid(const struct pb_worker_proc *proc)
{
    return proc->pid;
}

void pb_worker_proc_destroy(struct pb_worker_proc *proc)
{
    if (proc == NULL || proc->destroyed)
        return;
    proc->destroyed = true;
    pb_worker_proc_kill(proc);
    pb_worker_proc_close_stdin(proc);
    uv_close((uv_handle_t *)&proc->child, on_close);
    uv_close((uv_handle_t *)&proc->out, on_close);
    uv_close((uv_handle_t *)&proc->log, on_close);
    uv_close((uv_handle_t *)&proc->grace, on_close);
}
