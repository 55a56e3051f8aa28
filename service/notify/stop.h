/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STOP_H
#define PB_STOP_H
/* The end of the program, for threads that wait: a flag, and a descriptor that is readable from
 * then on. Thread: any. */
#include <stdatomic.h>
#include <stdbool.h>

struct pb_stop {
    atomic_bool is_set;
    int fd; /* eventfd */
};

int pb_stop_init(struct pb_stop *stop); /* 0 or negative errno */
void pb_stop_fini(struct pb_stop *stop);
void pb_stop_set(struct pb_stop *stop);
bool pb_stop_is_set(const struct pb_stop *stop);
#endif
