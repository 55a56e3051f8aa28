/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TARGET_H
#define PB_TARGET_H
/* The worker of an entry of notify: a thread with a connection of its own to the service, which
 * requests the waiting events of the entry, sends them in order and acknowledges delivered ones. It
 * keeps nothing: after a kill of either side the service has the remaining events. */
#include "service/notify/news.h"
#include "service/notify/stop.h"

struct pb_notify_config;
struct pb_target;

/* All pointers are borrowed until stop has returned. NULL if the target cannot be started. */
struct pb_target *pb_target_start(const struct pb_notify_config *notify, const char *socket,
                                  struct pb_news_board *news, const struct pb_stop *stop);
/* Call after pb_stop_set: ends and frees the target. NULL is allowed. */
void pb_target_stop(struct pb_target *target);
#endif
