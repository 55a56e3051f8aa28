/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/notify/stop.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int pb_stop_init(struct pb_stop *stop)
{
    atomic_init(&stop->is_set, false);
    stop->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return stop->fd < 0 ? -errno : 0;
}

void pb_stop_fini(struct pb_stop *stop)
{
    (void)close(stop->fd);
}

void pb_stop_set(struct pb_stop *stop)
{
    uint64_t one = 1;
    atomic_store(&stop->is_set, true);
    (void)!write(stop->fd, &one, sizeof one);
}

bool pb_stop_is_set(const struct pb_stop *stop)
{
    return atomic_load(&stop->is_set);
}
