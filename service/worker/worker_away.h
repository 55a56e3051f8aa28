/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_AWAY_H
#define PB_WORKER_AWAY_H
/* The worker of a run whose home, the node with the input, is another node. It copies the input to
 * a directory of its own, lets a child compute as usual, and sends the products home, where
 * worker_host.h publishes them. Both sides talk over a stream that pushbroom-fetch carries between
 * the nodes (service/fetch/bridge.h):
 *
 *   away -> home  {"job","epoch","node"}         hello; "node" is the home's name. pushbroom-fetch
 *                                                replaces it by the name in the certificate
 *   away -> home  {"files":true}                 false: they were copied before
 *   home -> away  {"event":"folder","path"}
 *   home -> away  {"event":"file","path","bytes","mtime_s","mtime_ns"}, the bytes,
 *                 {"event":"sum","sum"}          SHA-256
 *   home -> away  {"event":"open","place"}       "place" as in the command of the child
 *   away -> home  "place" and "inputs" of the child, answered like those (worker.h)
 *   away -> home  {"event":"product","name","bytes","kind"}, the bytes, {"event":"sum","sum"}
 *   away -> home  "done" of the child, with paths below "."
 *   away -> home  {"event":"alive"}              every 2 s while the child computes; home ends a
 *                                                run whose connection does not move
 *   home -> away  "done" or "failed" of worker.h, at any time
 *   home -> away  "progress" of worker.h, which only shows that it works
 *
 * A lost connection is made again: home then has another worker, or has published. Files are not
 * copied again, and the place must be the same. One thread. */
#include "config/base/json_reader.h"
#include "service/base/line_reader.h"
#include "service/worker/worker_publish.h"

#define PB_AWAY_FINAL 1 /* home has ended the run, with the line in *out_line (malloc'd) */

struct pb_worker_away {
    bool on; /* false: this node is the home, and nothing else is valid */
    const struct pb_json_value *command; /* "run", borrowed */
    char node[PB_JOB_NODE_BYTES], room[PB_WORKER_PATH_BYTES];
    uint64_t least_free;         /* bytes that stay free here */
    struct pb_line_reader lines; /* fd -1: not connected */
    struct pb_worker_wait wait;
    char *place;           /* place that home has chosen; NULL = unknown */
    char *question;        /* the child's "place" line; NULL: not sent yet */
    uint64_t before, last; /* bytes of earlier files, and of the present one */
    bool delivers;         /* true after the products are complete */
    int64_t alive_ms;      /* monotonic time of the last sign of life */
};

/* Makes the directory of the run and copies the input into it. Returns 0, PB_AWAY_FINAL, or
 * negative and *err (input.fetch, service.space). Needs close also after a failure. */
int pb_worker_away_open(struct pb_worker_away *away, const struct pb_json_value *command,
                        uint64_t least_free, const struct pb_worker_wait *wait, struct pb_err *err,
                        char **out_line);
/* Directory of the input: its paths are those at home, below this one. */
void pb_worker_away_input(const struct pb_worker_away *away, char out[PB_WORKER_PATH_BYTES]);
void pb_worker_away_products(const struct pb_worker_away *away, char out[PB_WORKER_PATH_BYTES]);
/* Sends the line of the child to home. Returns 0 and the answer in *out_line (malloc'd), or as
 * open. */
int pb_worker_away_ask(struct pb_worker_away *away, const char *line, bool is_place,
                       struct pb_err *err, char **out_line);
/* Sends the products, files of pb_worker_away_products, and "done" of the child. Returns
 * PB_AWAY_FINAL; negative and *err: home did not answer, and may have published. */
int pb_worker_away_deliver(struct pb_worker_away *away, const char *done,
                           const struct pb_json_value *products, struct pb_err *err,
                           char **out_line);
/* Returns the time in ms until the next sign of life, as a timeout of poll(2); -1 = unlimited. */
int pb_worker_away_pause_ms(const struct pb_worker_away *away);
/* Sends a sign of life to home if it is time. */
void pb_worker_away_show_life(struct pb_worker_away *away);
/* Total of the bytes that were copied, for progress lines. */
uint64_t pb_worker_away_bytes(const struct pb_worker_away *away);
void pb_worker_away_close(struct pb_worker_away *away);
#endif
