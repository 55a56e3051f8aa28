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
    struct pb_watch *watch; /* NULL: another node watches the inbox */
    unsigned char count;    /* count of its watches: queries of an earlier one are not answered */
    bool is_first;          /* a watch of the start, before the end of its first scan */
};

struct pb_feed {
    struct pb_feed_options options;
    struct one inbox[PB_INBOXES_MAX];
    size_t n;
    struct pb_describer *describer; /* one for all inboxes */
};

/* --- metadata queries ---------------------------------------------------------------------- */

/* A ticket of the describer consists of the number of the inbox, the count of its watches, and the
 * ticket of its watch. */
#define INBOX_SHIFT 48
#define COUNT_SHIFT 40

static int on_ask(void *user, uint64_t ticket, const char *pipeline, const char *path)
{
    const struct one *one = user;
    const struct pb_feed *feed = one->feed;
    const uint64_t inbox = (uint64_t)(one - feed->inbox);
    return pb_describer_ask(feed->describer,
                            inbox << INBOX_SHIFT | (uint64_t)one->count << COUNT_SHIFT | ticket,
                            pipeline, path);
}

static void on_answer(void *user, uint64_t ticket, const struct pb_described *answer)
{
    const struct pb_feed *feed = user;
    const struct one *one = &feed->inbox[ticket >> INBOX_SHIFT];
    if (one->watch != NULL && one->count == (unsigned char)(ticket >> COUNT_SHIFT))
        pb_watch_answer(one->watch, ticket & (((uint64_t)1 << COUNT_SHIFT) - 1), answer);
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

/* Reports the end of the first scans, once. */
static void report_looked(struct pb_feed *feed)
{
    for (size_t i = 0; i < feed->n; i++)
        if (feed->inbox[i].is_first)
            return;
    if (feed->options.looked != NULL)
        feed->options.looked(feed->options.user);
    feed->options.looked = NULL;
}

static void on_looked(void *user)
{
    struct one *one = user;
    one->is_first = false;
    report_looked(one->feed);
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
        if (feed->inbox[i].watch == NULL)
            continue;
        const struct pb_watch_trouble *trouble = pb_watch_trouble(feed->inbox[i].watch, fault);
        if (trouble->code == PB_OK)
            continue;
        pb_trouble_raise(feed->options.troubles, keys[fault], trouble->code, trouble->text);
        return;
    }
    pb_trouble_clear(feed->options.troubles, keys[fault]);
}

static int start(struct one *one, struct pb_err *err)
{
    const struct pb_feed_options *options = &one->feed->options;
    const size_t number = (size_t)(one - one->feed->inbox);
    const struct pb_watch_options watch = {
        .loop = options->loop,
        .inbox = options->dirs->inbox[number],
        .number = number,
        .settle_ms = options->config->service.settle_ms,
        .rescan_ms = options->config->service.rescan_ms,
        .intake = options->intake,
        .taken = on_taken,
        .ask = on_ask,
        .looked = on_looked,
        .on_trouble = on_trouble,
        .user = one,
    };
    one->count++;
    return pb_watch_start(&watch, err, &one->watch);
}

/* Its troubles end, and so does the wait for its first scan. */
static void stop(struct one *one)
{
    pb_watch_stop(one->watch);
    one->watch = NULL;
    for (int fault = 0; fault < PB_WATCH_FAULTS; fault++)
        on_trouble(one, (enum pb_watch_fault)fault);
    on_looked(one);
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
    for (; rc == 0 && feed->n < options->dirs->n_inboxes; feed->n++) {
        struct one *one = &feed->inbox[feed->n];
        one->feed = feed;
        one->is_first = pb_intake_may_take(options->intake, feed->n);
        rc = one->is_first ? start(one, err) : 0;
    }
    if (rc != 0) {
        pb_feed_stop(feed);
        return rc;
    }
    *out_feed = feed;
    report_looked(feed); /* there may be no watch */
    return 0;
}

void pb_feed_follow(struct pb_feed *feed)
{
    for (size_t i = 0; feed != NULL && i < feed->n; i++) {
        struct one *one = &feed->inbox[i];
        const bool may = pb_intake_may_take(feed->options.intake, i);
        if (may == (one->watch != NULL))
            continue;
        pb_log(PB_LOG_NOTICE, "inbox: %s %.300s",
               may ? "begins to watch" : "leaves to another node", feed->options.dirs->inbox[i]);
        if (may)
            (void)start(one, NULL); /* out of memory: the next call tries again */
        else
            stop(one);
    }
}

void pb_feed_set_config(struct pb_feed *feed, const struct pb_config *config)
{
    feed->options.config = config;
    pb_describer_set_config(feed->describer, config);
    for (size_t i = 0; i < feed->n; i++)
        if (feed->inbox[i].watch != NULL)
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
    static const struct pb_gathering_told none;
    if (feed == NULL || inbox >= feed->n)
        return NULL;
    return feed->inbox[inbox].watch != NULL ? pb_watch_gathering(feed->inbox[inbox].watch) : &none;
}

const struct pb_stays *pb_feed_stays(const struct pb_feed *feed, size_t inbox)
{
    static const struct pb_stays none;
    if (feed == NULL || inbox >= feed->n)
        return NULL;
    return feed->inbox[inbox].watch != NULL ? pb_watch_stays(feed->inbox[inbox].watch) : &none;
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
        if (feed->inbox[i].watch != NULL)
            pb_watch_look(feed->inbox[i].watch);
}

void pb_feed_resume(struct pb_feed *feed)
{
    for (size_t i = 0; feed != NULL && i < feed->n; i++)
        if (feed->inbox[i].watch != NULL)
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
