/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_LOG_H
#define PB_LOG_H
/* The service's log: lines on stderr. Under systemd the journal stamps the time and reads the level
 * from a "<N>" prefix; on a terminal or in a file each line carries time and level in words. One
 * line stays one line: control characters (a file name may hold them) are escaped. A flood is cut:
 * past PB_LOG_BURST lines in PB_LOG_WINDOW_MS only errors pass, and a line says how many were left
 * out. Thread: any, after init. */
#include <stdbool.h>

#define PB_LOG_BURST     400
#define PB_LOG_WINDOW_MS 10000

enum pb_log_level {
    PB_LOG_ERROR = 3, /* syslog's numbers */
    PB_LOG_WARNING = 4,
    PB_LOG_NOTICE = 5,
    PB_LOG_INFO = 6,
    PB_LOG_DEBUG = 7
};

/* Looks whether stderr is the journal. Lines over `most` are dropped. */
void pb_log_init(enum pb_log_level most);
void pb_log(enum pb_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Whether JOURNAL_STREAM ("device:inode", or NULL) names the file behind fd. */
bool pb_log_is_journal(const char *journal_stream, int fd);
#endif
