/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/profile/trace_file.h"
#include "config/base/json_writer.h"
#include "pipeline/profile/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pb_trace_file {
    const char *path;
    FILE *out;
    bool has_events;
    uint64_t left_out;
};

static const char *const numbers[] = {
#define PB_WORK(name, word, storage, number) number,
#include "pipeline/profile/work.def"
#undef PB_WORK
};

int pb_trace_file_open(const char *path, struct pb_err *err, struct pb_trace_file **out_file)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return pb_fail_at(err, errno == EEXIST ? PB_E_USAGE : PB_E_OUTPUT_WRITE, path, 0, 0,
                          errno == EEXIST ? "the file is there already, and a trace replaces none; "
                                            "name another one"
                                          : "cannot create the file of the trace: %s",
                          strerror(errno));
    struct pb_trace_file *file = calloc(1, sizeof *file);
    FILE *out = file != NULL ? fdopen(fd, "w") : NULL;
    if (out == NULL || pb_trace_open() < 0) {
        free(file);
        (void)(out != NULL ? fclose(out) : close(fd));
        (void)unlink(path);
        return pb_fail(err, PB_E_MEMORY, "out of memory for the trace");
    }
    file->path = path;
    file->out = out;
    (void)fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", out);
    *out_file = file;
    return 0;
}

/* --- events ----------------------------------------------------------------------------------*/

static void begin(struct pb_trace_file *file)
{
    (void)fputs(file->has_events ? ",\n" : "\n", file->out);
    file->has_events = true;
}

/* Writes a name of a process or thread: arbitrary text. */
static void put_name(struct pb_trace_file *file, const char *what,
                     const struct pb_trace_thread *thread, const char *name)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "name", name);
    pb_json_end(json);
    const char *text = pb_json_text(json, NULL);
    begin(file);
    (void)fprintf(file->out,
                  "{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%" PRId32 ",\"tid\":%" PRId32
                  ",\"args\":%s}",
                  what, thread->process, thread->thread, text != NULL ? text : "{}");
    pb_json_destroy(json);
}

static bool is_first_of_process(const struct pb_trace_thread *threads, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (threads[k].process == threads[i].process)
            return false;
    return true;
}

/* A worker serves all inputs, a computing process one. */
static void put_names(struct pb_trace_file *file, const char *input)
{
    size_t n;
    const struct pb_trace_thread *threads = pb_trace_threads(&n);
    for (size_t i = 0; i < n; i++) {
        struct pb_trace_thread thread = threads[i];
        char name[sizeof thread.name + 1] = "", process[4200];
        memcpy(name, thread.name, sizeof thread.name);
        put_name(file, "thread_name", &thread, name);
        if (!is_first_of_process(threads, i))
            continue;
        (void)snprintf(process, sizeof process, "%s: process that computes", input);
        if (thread.role != PB_TRACE_CHILD)
            (void)snprintf(process, sizeof process, "worker, which opens, checks and publishes");
        put_name(file, "process_name", &thread, process);
    }
}

/* Writes microseconds with three digits. */
static void put_us(FILE *out, const char *key, uint64_t ns)
{
    (void)fprintf(out, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

static void put_part(struct pb_trace_file *file, const struct pb_trace_event *event)
{
    enum pb_work work = (enum pb_work)(event->what < PB_WORK_KINDS ? event->what : PB_WORK_OTHER);
    (void)fprintf(file->out, "{\"name\":\"%s\",\"cat\":\"work\",\"ph\":\"X\"", pb_work_name(work));
    put_us(file->out, "dur", event->span_ns);
    if (numbers[work][0] != '\0')
        (void)fprintf(file->out, ",\"args\":{\"%s\":%" PRIu32 "}", numbers[work], event->number);
}

static void put_count(struct pb_trace_file *file, const struct pb_trace_event *event)
{
    static const char *const names[][2] = {
        {"input slots", "filled"}, {"output slots", "filled"}, {"written", "bytes"}};
    unsigned what = event->what < PB_TRACE_COUNTS ? event->what : 0;
    (void)fprintf(file->out, "{\"name\":\"%s\",\"ph\":\"C\",\"args\":{\"%s\":%" PRIu64 "}",
                  names[what][0], names[what][1], event->span_ns);
}

/* Writes the stages of a tile as a pair of nested slices with the tile's number as their id. */
static void put_tile(struct pb_trace_file *file, const struct pb_trace_event *event)
{
    bool outer = event->kind == PB_TRACE_TILE || event->kind == PB_TRACE_TILE_END;
    bool begins = event->kind == PB_TRACE_TILE || event->kind == PB_TRACE_READY;
    (void)fprintf(file->out,
                  "{\"name\":\"%s\",\"cat\":\"tile\",\"ph\":\"%c\",\"id2\":{\"local\":\"%" PRIu32
                  "\"}",
                  outer ? "tile" : "in slots, computed", begins ? 'b' : 'e', event->number);
}

static void put(struct pb_trace_file *file, const struct pb_trace_event *event,
                const struct pb_trace_thread *thread)
{
    uint64_t began = pb_trace_began_ns();
    begin(file);
    if (event->kind == PB_TRACE_PART)
        put_part(file, event);
    else if (event->kind == PB_TRACE_COUNT)
        put_count(file, event);
    else
        put_tile(file, event);
    put_us(file->out, "ts", event->start_ns > began ? event->start_ns - began : 0);
    (void)fprintf(file->out, ",\"pid\":%" PRId32 ",\"tid\":%" PRId32 "}", thread->process,
                  thread->thread);
}

void pb_trace_file_add(struct pb_trace_file *file, const char *input)
{
    size_t n, n_threads;
    uint64_t left_out;
    const struct pb_trace_event *event = pb_trace_events(&n, &left_out);
    const struct pb_trace_thread *threads = pb_trace_threads(&n_threads);
    put_names(file, input);
    for (size_t i = 0; i < n; i++) {
        const struct pb_trace_event one = event[i]; /* a hanging process may change it */
        if (one.thread < n_threads)
            put(file, &one, &threads[one.thread]);
    }
    file->left_out += left_out;
    pb_trace_clear();
}

int pb_trace_file_close(struct pb_trace_file *file, struct pb_err *err, uint64_t *out_left_out)
{
    int rc = 0;
    *out_left_out = 0;
    if (file == NULL)
        return 0;
    (void)fprintf(file->out,
                  "\n],\"otherData\":{\"program\":\"pushbroom " PB_VERSION
                  "\",\"events_left_out\":%" PRIu64 "}}\n",
                  file->left_out);
    bool failed = ferror(file->out) != 0;
    failed = fclose(file->out) != 0 || failed;
    if (failed)
        rc = pb_fail_at(err, PB_E_OUTPUT_WRITE, file->path, 0, 0, "cannot write the trace: %s",
                        strerror(errno));
    if (failed || !file->has_events)
        (void)unlink(file->path);
    *out_left_out = file->left_out;
    pb_trace_close();
    free(file);
    return rc;
}
