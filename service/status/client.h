/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLIENT_H
#define PB_CLIENT_H
/* Small blocking client of the status socket: one connection, one call at a time; events in
 * between are kept for pb_client_event. Every wait has a limit. One thread for each object. */
#include "config/base/err.h"
#include "config/base/json_reader.h"

#include <stdbool.h>
#include <stdint.h>

struct pb_client;

/* Connects. path NULL: $PUSHBROOM_SOCKET, otherwise /run/pushbroom/status.sock.
 * service.unreachable if no service listens there, service.group if the user is not in the
 * socket's group. timeout_ms applies to connecting and to every call. */
int pb_client_open(const char *path, int64_t timeout_ms, struct pb_err *err,
                   struct pb_client **out_client);
void pb_client_close(struct pb_client *client); /* NULL is allowed */
/* Connects again if the service refused the connection (service.busy as a reply to no request);
 * events of the old connection are dropped. Otherwise the connection is unchanged: 0. After an
 * error the client can only be closed or opened again. */
int pb_client_reopen(struct pb_client *client, struct pb_err *err);
/* Path that pb_client_open(NULL, ...) would use. Static or from the environment. */
const char *pb_client_default_path(void);

/* Ends all its calls and waits, now and later, as if the service had gone; after that it can only
 * be closed. Thread: any, not at the same time as close. */
void pb_client_hang_up(struct pb_client *client);

/* Calls a method. params is JSON text of an object, or NULL. Returns 0 and *out_reply (release
 * it), whose member "result" is *out_result (borrowed from it). An error reply fills *err with its
 * message, its code if that is known here (otherwise "system") and the code's errno. After
 * service.busy nothing was done: the call may be sent again, after pb_client_reopen. After
 * service.unreachable or service.protocol the client can only be closed. */
int pb_client_call(struct pb_client *client, const char *method, const char *params,
                   struct pb_err *err, struct pb_json_value **out_reply,
                   const struct pb_json_value **out_result);
/* The two halves of pb_client_call: `send` returns once the request is on its way, `receive` waits
 * for its reply, and must follow before another call. Replies of several clients can be waited for
 * while the service works on all of them. */
int pb_client_send(struct pb_client *client, const char *method, const char *params,
                   struct pb_err *err);
int pb_client_receive(struct pb_client *client, struct pb_err *err,
                      struct pb_json_value **out_reply, const struct pb_json_value **out_result);
/* Lets the next call pass this opened file (borrowed until it returns) if the service requests it.
 */
void pb_client_pass(struct pb_client *client, int fd);
/* Waits after a job.watch call for the next job.event or job.change. Returns 1 and *out_event
 * (release it) with its job, or the change, in *out_job; 0 if timeout_ms passed (-1 = no limit)
 * without an event; negative errno. */
int pb_client_event(struct pb_client *client, int64_t timeout_ms, struct pb_err *err,
                    struct pb_json_value **out_event, const struct pb_json_value **out_job);
/* Returns whether events were dropped since the last such call, because too many arrived while a
 * call waited for its reply. */
bool pb_client_lost_events(struct pb_client *client);
#endif
