/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/feed.h"

#include "config/config.h"
#include "service/base/log.h"
#include "service/processes/describer.h"

#include <stdlib.h>

/* `user` of the handlers of one watch */
struct one {
    struct pb_feed *feed;
    struct pb_watch *watch;
};

struct pb_feed {
    struct pb_feed_options options;
    struct one inbox[PB_INBOXES_MAX];
    size_t n, n_looked;
    struct pb_describer *describer; /* one for all inboxes */
};

/* --- metadata queries ---------------------------------------------------------------------- */

/* A ticket of the describer consists of the number of the inbox and the ticket of its watch. */
#define INBOX_SHIFT 48

static int on_ask(void *user, uint64_t ticket, const char *pipeline, const char *path)
{
    const struct one *one = user;
    const struct pb_feed *feed = one->feed;
    const uint64_t inbox = (uint64_t)(one - feed->inbox);
    return pb_describer_ask(feed->describer, inbox << INBOX_SHIFT | ticket, pipeline, path);
}

static void on_answer(void *user, uint64_t ticket, const struct pb_described *answer)
{
    const struct pb_feed *feed = user;
    const uint64_t inbox = ticket >> INBOX_SHIFT;
    pb_watch_answer(feed->inbox[inbox].watch, ticket & (((uint64_t)1 << INBOX_SHIFT) - 1), answer);
}

static void on_say(void *user, enum pb_log_level level, const char *text)
{
    (void)user;
    pb_log(level, "inbox: metadata: %s", text);
}

static struct pb_describer *start_describer(struct pb_feed *feed)
{
    const struct pb_describer_options options = {.loop = feed->options.loop,
                                                 .program = {.path = feed->options.worker},
                                                 .config = feed->options.config,
                                                 .on_answer = on_answer,
                                                 .on_say = on_say,
                                                 .user = feed};
    return pb_describer_create(&options);
}

/* --- the inboxes ------------------------------------------------------------------------------*/

static void on_taken(void *user, const struct pb_claimed *files, size_t n)
{
    const struct pb_feed_options *options = &((struct one *)user)->feed->options;
    options->taken(options->user, files, n);
}

static void on_looked(void *user)
{
    struct pb_feed *feed = ((struct one *)user)->feed;
    if (++feed->n_looked == feed->n && feed->options.looked != NULL)
        feed->options.looked(feed->options.user);
}

/* Raises the trouble of the first inbox that has one, for all of them. */
static void on_trouble(void *user, enum pb_watch_fault fault)
{
    static const char *const keys[PB_WATCH_FAULTS] = {[PB_WATCH_READING] = "inbox",
                                                      [PB_WATCH_TAKING] = "intake",
                                                      [PB_WATCH_ALONE] = "delivery",
                                                      [PB_WATCH_REFUSED] = "refused"};
    const struct pb_feed *feed = ((struct one *)user)->feed;
    for (size_t i = 0; i < feed->n; i++) {
        const struct pb_watch_trouble *trouble = pb_watch_trouble(feed->inbox[i].watch, fault);
        if (trouble->code == PB_OK)
            continue;
        pb_trouble_raise(feed->options.troubles, keys[fault], trouble->code, trouble->text);
        return;
    }
    pb_trouble_clear(feed->options.troubles, keys[fault]);
}

int pb_feed_start(const struct pb_feed_options *options, struct pb_err *err,
                  struct pb_feed **out_feed)
{
    struct pb_feed *feed = calloc(1, sizeof *feed);
    int rc = 0;
    if (feed == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    feed->options = *options;
    feed->describer = start_describer(feed);
    if (feed->describer == NULL)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory");
    for (size_t i = 0; rc == 0 && i < options->dirs->n_inboxes; i++) {
        struct one *one = &feed->inbox[i];
        const struct pb_watch_options watch = {
            .loop = options->loop,
            .inbox = options->dirs->inbox[i],
            .number = i,
            .settle_ms = options->config->service.settle_ms,
            .rescan_ms = options->config->service.rescan_ms,
            .intake = options->intake,
            .taken = on_taken,
            .ask = on_ask,
            .looked = on_looked,
            .on_trouble = on_trouble,
            .user = one,
        };
        one->feed = feed;
        rc = pb_watch_start(&watch, err, &one->watch);
        feed->n += rc == 0;
    }
    if (rc == 0)
        *out_feed = feed;
    else
        pb_feed_stop(feed);
    return rc;
}

void pb_feed_set_config(struct pb_feed *feed, const struct pb_config *config)
{
    pb_describer_set_config(feed->describer, config);
    for (size_t i = 0; i < feed->n; i++)
        pb_watch_set_times(feed->inbox[i].watch, config->service.settle_ms,
                           config->service.rescan_ms);
}

size_t pb_feed_waiting(const struct pb_feed *feed)
{
    size_t sum = 0;
    for (size_t i = 0; feed != NULL && i < feed->n; i++)
        sum += pb_watch_waiting(feed->inbox[i].watch);
    return sum;
}

size_t pb_feed_ignored(const struct pb_feed *feed)
{
    size_t sum = 0;
    for (size_t i = 0; feed != NULL && i < feed->n; i++)
        sum += pb_watch_ignored(feed->inbox[i].watch);
    return sum;
}

const struct pb_gathering_told *pb_feed_gathering(const struct pb_feed *feed, size_t inbox)
{
    return feed != NULL && inbox < feed->n ? pb_watch_gathering(feed->inbox[inbox].watch) : NULL;
}

const struct pb_stays *pb_feed_stays(const struct pb_feed *feed, size_t inbox)
{
    return feed != NULL && inbox < feed->n ? pb_watch_stays(feed->inbox[inbox].watch) : NULL;
}

size_t pb_feed_alone(const struct pb_feed *feed)
{
    size_t sum = 0;
    for (size_t i = 0; feed != NULL && i < feed->n; i++)
        sum += pb_watch_alone(feed->inbox[i].watch);
    return sum;
}

void pb_feed_look(struct pb_feed *feed)
{
    for (size_t i = 0; feed != NULL && i < feed->n; i++)
        pb_watch_look(feed->inbox[i].watch);
}

void pb_feed_resume(struct pb_feed *feed)
{
    for (size_t i = 0; feed != NULL && i < feed->n; i++)
        pb_watch_resume(feed->inbox[i].watch);
}

void pb_feed_stop(struct pb_feed *feed)
{
    if (feed == NULL)
        return;
    for (size_t i = 0; i < feed->n; i++)
        pb_watch_stop(feed->inbox[i].watch);
    pb_describer_destroy(feed->describer);
    free(feed);
}
