/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A line is built in one buffer and written by one write(): lines of several processes on one
 * stderr do not mix. Nothing is allocated, so that "out of memory" can be logged. */
#include "service/base/log.h"

#include "config/base/text_clean.h"
#include "config/base/clock.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEVELS (PB_LOG_DEBUG + 1)

static struct {
    bool journal;
    enum pb_log_level most;
    int64_t window_start_ms;
    unsigned in_window[LEVELS], left_out[LEVELS];
} state = {.most = PB_LOG_INFO};
static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* protects the state, except the settings of init */

/* A line about a job, without "job ID: ". */
struct kept {
    int64_t wall_ms;
    enum pb_log_level level;
    int64_t taken; /* number of the call that took it; 0 = none */
    char job[36], text[PB_LOG_KEPT_BYTES];
};

static struct kept kept[PB_LOG_KEPT]; /* protected by the lock; line n is at n % PB_LOG_KEPT */
static size_t n_kept;                 /* number of lines so far; protected by the lock */
static int64_t n_takes;               /* number of calls that took lines; protected by the lock */

bool pb_log_is_journal(const char *journal_stream, int fd)
{
    unsigned long long device = 0, inode = 0;
    struct stat st;
    if (journal_stream == NULL || sscanf(journal_stream, "%llu:%llu", &device, &inode) != 2)
        return false;
    return fstat(fd, &st) == 0 && st.st_dev == (dev_t)device && st.st_ino == (ino_t)inode;
}

void pb_log_init(enum pb_log_level most)
{
    state.most = most;
    state.journal = pb_log_is_journal(getenv("JOURNAL_STREAM"), STDERR_FILENO);
}

const char *pb_log_level_word(enum pb_log_level level)
{
    switch (level) {
    case PB_LOG_ERROR:
        return "error";
    case PB_LOG_WARNING:
        return "warning";
    case PB_LOG_NOTICE:
        return "notice";
    case PB_LOG_INFO:
        return "info";
    case PB_LOG_DEBUG:
        return "debug";
    }
    return "?";
}

static void emit(enum pb_log_level level, const char *text)
{
    char line[2300];
    size_t n = 0;
    if (state.journal) {
        n = (size_t)snprintf(line, sizeof line, "<%d>", (int)level);
    } else {
        char when[PB_CLOCK_TEXT_BYTES];
        pb_clock_text(pb_clock_wall_ms(), when);
        n = (size_t)snprintf(line, sizeof line, "%s %-7s ", when, pb_log_level_word(level));
    }
    while (*text && n < sizeof line - 18) { /* four escaped bytes, the newline, a NUL */
        uint32_t code = 0;
        size_t bytes = pb_text_character(text, &code);
        bool shown = bytes > 0 && !pb_text_is_control(code);
        bytes += bytes == 0;
        for (size_t i = 0; i < bytes; i++, text++) {
            if (shown)
                line[n++] = *text;
            else
                n += (size_t)snprintf(line + n, sizeof line - n, "\\x%02x", (unsigned char)*text);
        }
    }
    line[n++] = '\n';
    /* A failure to write the log cannot be reported. */
    ssize_t written = write(STDERR_FILENO, line, n);
    (void)written;
}

/* A new window begins when the old one is over; the number of lines that the old one left out is
 * logged. */
static void turn_window(void)
{
    int64_t now = pb_clock_mono_ms();
    if (now - state.window_start_ms < PB_LOG_WINDOW_MS)
        return;
    state.window_start_ms = now;
    for (int level = 0; level < LEVELS; level++) {
        char text[80];
        unsigned left_out = state.left_out[level];
        state.in_window[level] = state.left_out[level] = 0;
        if (left_out == 0)
            continue;
        (void)snprintf(text, sizeof text, "log: %u lines (%s) left out, too many at once", left_out,
                       pb_log_level_word((enum pb_log_level)level));
        emit(PB_LOG_WARNING, text);
    }
}

/* Counts the line; returns false if the limit of its level is exceeded. */
static bool admit(enum pb_log_level level)
{
    turn_window();
    if (level > PB_LOG_ERROR && state.in_window[level] >= PB_LOG_BURST) {
        state.left_out[level]++;
        return false;
    }
    state.in_window[level]++;
    return true;
}

/* --- lines about jobs --- */

/* Keeps a line that begins with "job ID: ". */
static void keep(enum pb_log_level level, const char *text)
{
    static const char prefix[] = "job ";
    if (strncmp(text, prefix, sizeof prefix - 1) != 0)
        return;
    const char *id = text + sizeof prefix - 1;
    const size_t n = strcspn(id, ": ");
    if (n >= sizeof kept[0].job || strncmp(id + n, ": ", 2) != 0)
        return;
    struct kept *line = &kept[n_kept++ % PB_LOG_KEPT];
    line->wall_ms = pb_clock_wall_ms();
    line->level = level;
    line->taken = 0;
    (void)snprintf(line->job, sizeof line->job, "%.*s", (int)n, id);
    (void)snprintf(line->text, sizeof line->text, "%s", id + n + 2);
}

void pb_log_take(const char *job, pb_log_visit *visit, void *user)
{
    struct kept *found[PB_LOG_TAKEN];
    size_t n = 0;
    (void)pthread_mutex_lock(&lock);
    for (size_t i = n_kept > PB_LOG_KEPT ? n_kept - PB_LOG_KEPT : 0; i < n_kept; i++) {
        struct kept *line = &kept[i % PB_LOG_KEPT];
        if (line->taken != 0 || strcmp(line->job, job) != 0)
            continue;
        line->taken = n_takes + 1;
        found[n++ % PB_LOG_TAKEN] = line;
    }
    for (size_t i = n > PB_LOG_TAKEN ? n - PB_LOG_TAKEN : 0; i < n; i++) {
        const struct kept *line = found[i % PB_LOG_TAKEN];
        visit(user, line->wall_ms, line->level, line->text);
    }
    n_takes += n > 0;
    (void)pthread_mutex_unlock(&lock);
}

int64_t pb_log_takes(void)
{
    (void)pthread_mutex_lock(&lock);
    const int64_t n = n_takes;
    (void)pthread_mutex_unlock(&lock);
    return n;
}

void pb_log_give_back(int64_t takes)
{
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < PB_LOG_KEPT; i++)
        if (kept[i].taken > takes)
            kept[i].taken = 0;
    (void)pthread_mutex_unlock(&lock);
}

void pb_log_lines(const char *job, pb_log_visit *visit, void *user)
{
    struct kept line;
    bool more = true;
    for (size_t i = 0; more; i++) {
        (void)pthread_mutex_lock(&lock);
        if (n_kept > PB_LOG_KEPT && i < n_kept - PB_LOG_KEPT)
            i = n_kept - PB_LOG_KEPT;
        more = i < n_kept;
        line = kept[i % PB_LOG_KEPT];
        (void)pthread_mutex_unlock(&lock);
        if (more && line.taken == 0 && strcmp(line.job, job) == 0)
            visit(user, line.wall_ms, line.level, line.text);
    }
}

void pb_log_flush(void)
{
    (void)pthread_mutex_lock(&lock);
    turn_window();
    (void)pthread_mutex_unlock(&lock);
}

/* Keeps a line, and writes it unless its level's limit is exceeded. */
static void log_line(enum pb_log_level level, bool is_limited, const char *format, va_list args)
{
    char text[2048];
    if (level > state.most)
        return;
    (void)vsnprintf(text, sizeof text, format, args);
    (void)pthread_mutex_lock(&lock);
    keep(level, text);
    if (!is_limited || admit(level))
        emit(level, text);
    (void)pthread_mutex_unlock(&lock);
}

void pb_log(enum pb_log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    log_line(level, true, format, args);
    va_end(args);
}

void pb_log_always(enum pb_log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    log_line(level, false, format, args);
    va_end(args);
}
