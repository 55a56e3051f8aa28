/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CCSDS_RECEIVE_H
#define PB_CCSDS_RECEIVE_H
/* The program pushbroom-ccsds: reads UDP or a file, and writes lines into a stream of pushbroomd.
 * One thread. */
#include <stdint.h>

#define PB_CCSDS_EXIT_OK          0
#define PB_CCSDS_EXIT_FAILED      1 /* the input or the machine */
#define PB_CCSDS_EXIT_USAGE       2 /* options or the description */
#define PB_CCSDS_EXIT_UNREACHABLE 3 /* the service did not take all lines */

struct pb_receive_options {
    const char *downlink;   /* file with the description */
    const char *file;       /* "-" = standard input; NULL with udp */
    const char *udp;        /* ADDRESS:PORT to listen at; NULL with file */
    const char *from;       /* address of the only sender; NULL = any */
    const char *stream;     /* NULL = lines are only counted */
    const char *socket;     /* status socket of pushbroomd */
    const char *token_file; /* NULL = rights by the user */
    uint32_t group_lines;
    int64_t silence_ms; /* without datagrams for this long, missing packets are given up */
};

/* Runs until the end of the file, SIGTERM or SIGINT. Returns the exit status. */
int pb_receive_run(const struct pb_receive_options *options);
#endif
