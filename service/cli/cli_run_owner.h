/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_RUN_OWNER_H
#define PB_CLI_RUN_OWNER_H
/* The process that owns the GPU of a `pushbroom run`: that of a service with the same socket, when
 * one is there and this user may connect to it, else one of the command's own, a fork of it. One
 * thread; create before the process has threads. */
#include "config/config.h"

#include <stdbool.h>
#include <uv.h>

struct cli_run_owner;

/* device: --device, NULL = as configured. ready: called from the loop, once, when the owner is
 * there or it is known that there is none. NULL, and ready is never called: no GPU is wanted, or
 * there is no memory. */
struct cli_run_owner *cli_run_owner_create(uv_loop_t *loop, const struct pb_config *config,
                                           const char *device, void (*ready)(void *user),
                                           void *user);
/* Its socket; NULL = workers compute. NULL is fine. */
const char *cli_run_owner_socket(const struct cli_run_owner *owner);
/* Why there is none although the machine has a GPU that is wanted; else NULL. */
const char *cli_run_owner_why(const struct cli_run_owner *owner);
/* Ends one of the command's own. NULL is fine. */
void cli_run_owner_destroy(struct cli_run_owner *owner);
#endif
