/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_RUN_OWNER_H
#define PB_CLI_RUN_OWNER_H
/* Process that owns the GPU for `pushbroom run`: that of a service with the same socket, if it
 * runs and this user may connect to it, otherwise a fork of this command. One thread; create it
 * before the process has threads. */
#include <stdbool.h>
#include <uv.h>

struct cli_run_owner;
struct pb_config;

/* device: --device, NULL = as configured. ready: called once from the loop, when the owner is
 * ready or is known to be unavailable. Returns NULL, and ready is never called, if no GPU is
 * wanted or out of memory. */
struct cli_run_owner *cli_run_owner_create(uv_loop_t *loop, const struct pb_config *config,
                                           const char *device, void (*ready)(void *user),
                                           void *user);
/* Socket of the owner; NULL = workers compute themselves. NULL is allowed. */
const char *cli_run_owner_socket(const struct cli_run_owner *owner);
/* Reason if there is no owner although the machine has a GPU that is wanted; otherwise NULL. */
const char *cli_run_owner_why(const struct cli_run_owner *owner);
/* Ends the owner that this command started. NULL is allowed. */
void cli_run_owner_destroy(struct cli_run_owner *owner);
#endif
