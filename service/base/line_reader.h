/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_LINE_READER_H
#define PB_LINE_READER_H
/* Reads lines from a pipe or socket, and descriptors that are passed with them. One thread. */
#include "service/base/passed_fd.h"

#include <stdbool.h>
#include <stddef.h>

#define PB_LINE_READER_MAX (8 * 1024 * 1024)

struct pb_line_reader {
    int fd;      /* borrowed */
    bool passes; /* a Unix socket that may carry descriptors */
    /* the last ones, in order; the user takes them and sets the count to 0 */
    int passed[PB_PASSED_MAX];
    size_t n_passed;
    char *text;
    size_t start, end, room;
};

/* Frees the buffers, not fd. A zeroed struct with fd (and passes) set is ready for use. */
void pb_line_reader_fini(struct pb_line_reader *reader);
/* Reads the available bytes once (waits for at least one). Returns false at the end, if a line is
 * too long, or if out of memory. */
bool pb_line_reader_fill(struct pb_line_reader *reader);
/* Next complete line, NUL-terminated without its newline, borrowed until fill; NULL if absent. */
char *pb_line_reader_next(struct pb_line_reader *reader, size_t *out_bytes);
/* Reads the bytes that follow the last line. Returns false if the other end is gone before. */
bool pb_line_reader_bytes(struct pb_line_reader *reader, void *to, size_t bytes);
/* Writes bytes. Returns false if the other end is gone. */
bool pb_line_send_bytes(int fd, const void *from, size_t bytes);
/* Writes the text and a newline, with n_passed descriptors (only over a socket). Returns false if
 * the other end is gone. */
bool pb_line_send(int fd, const char *text, size_t bytes, const int *passed, size_t n_passed);
#endif
