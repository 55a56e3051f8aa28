/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_LOG_H
#define PB_LOG_H
/* The service's log: lines on stderr. Under systemd the journal adds the time and reads the level
 * from a "<N>" prefix; on a terminal or in a file each line has the time and the level in words. A
 * message is one line: control characters and bytes that are not UTF-8 (a file name may have them)
 * are escaped. The rate is limited: for each level except errors, PB_LOG_BURST lines pass in
 * PB_LOG_WINDOW_MS, and a line reports the number that was left out; each level has a limit of its
 * own. The newest lines about jobs ("job ID: ...") are kept in memory for queries. Thread: any,
 * after init. */
#include <stdbool.h>
#include <stdint.h>

#define PB_LOG_BURST      400
#define PB_LOG_WINDOW_MS  10000
#define PB_LOG_KEPT       1000 /* lines about jobs that are kept */
#define PB_LOG_KEPT_BYTES 400  /* limit of their text; a longer one is cut */
#define PB_LOG_TAKEN      32   /* lines of a job that are taken at a time */

enum pb_log_level {
    PB_LOG_ERROR = 3, /* syslog's numbers */
    PB_LOG_WARNING = 4,
    PB_LOG_NOTICE = 5,
    PB_LOG_INFO = 6,
    PB_LOG_DEBUG = 7
};

/* Checks whether stderr is the journal. Lines above level `most` are dropped. */
void pb_log_init(enum pb_log_level most);
void pb_log(enum pb_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same without the limit of the rate: for lines whose number known people bound. */
void pb_log_always(enum pb_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Logs the number of lines that were left out, when their window is over and no line was logged
 * since. */
void pb_log_flush(void);
/* The word of a level: "error", "warning" ... */
const char *pb_log_level_word(enum pb_log_level level);
typedef void pb_log_visit(void *user, int64_t wall_ms, enum pb_log_level level, const char *text);
/* Visits the kept lines of a job that were not taken, oldest first, without "job ID: ". */
void pb_log_lines(const char *job, pb_log_visit *visit, void *user);
/* The same of the newest PB_LOG_TAKEN, which are taken then: they are stored elsewhere. visit must
 * not log. */
void pb_log_take(const char *job, pb_log_visit *visit, void *user);
/* Number of calls of pb_log_take that took lines. */
int64_t pb_log_takes(void);
/* Gives back what was taken since pb_log_takes returned that number: it was not stored. */
void pb_log_give_back(int64_t takes);
/* Returns true if JOURNAL_STREAM ("device:inode", or NULL) names the file of fd. */
bool pb_log_is_journal(const char *journal_stream, int fd);
#endif
