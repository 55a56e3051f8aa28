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

static const char *level_word(enum pb_log_level level)
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
        n = (size_t)snprintf(line, sizeof line, "%s %-7s ", when, level_word(level));
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
                       level_word((enum pb_log_level)level));
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

void pb_log_flush(void)
{
    (void)pthread_mutex_lock(&lock);
    turn_window();
    (void)pthread_mutex_unlock(&lock);
}

void pb_log(enum pb_log_level level, const char *format, ...)
{
    if (level > state.most)
        return;
    char text[2048];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)pthread_mutex_lock(&lock);
    if (admit(level))
        emit(level, text);
    (void)pthread_mutex_unlock(&lock);
}
