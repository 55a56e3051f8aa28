/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * One timer starts everything: it is set to the earliest of "an event arrived", "a file may be
 * complete now" and "a listing is due". struct pb_pace has the delay
 * between an event and its round.
 *
 * The work is in round.h. While a part of a round runs on the pool, it uses the request and the
 * result that is not shown; between two parts the loop reads that result, and shows it. */
#include "service/inbox/watch.h"

#include "config/base/clock.h"
#include "service/base/files.h"
#include "service/inbox/folder_watches.h"
#include "service/inbox/round.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PAUSE_MS 5000 /* back-off after a failed claim or an incomplete update */

enum state {
    RESTS,          /* the timer is set */
    WORKS,          /* a part runs on the pool */
    CLOSES,         /* stopped; libuv closes the timer */
    CLOSES_WORKING, /* stopped; a part runs, and libuv closes the timer */
    ENDS_WORKING,   /* stopped; a part runs, and the timer is closed */
    ENDED,          /* the memory is freed */
    STATES
};

#define BIT(state) (1u << (state))

/* States that may follow a state. */
static const unsigned follows[STATES] = {
    [RESTS] = BIT(WORKS) | BIT(CLOSES),
    [WORKS] = BIT(RESTS) | BIT(CLOSES_WORKING),
    [CLOSES] = BIT(ENDED),
    [CLOSES_WORKING] = BIT(CLOSES) | BIT(ENDS_WORKING),
    [ENDS_WORKING] = BIT(ENDED),
};

struct pb_watch {
    struct pb_watch_options options;
    char *path; /* options.inbox */
    enum state state;
    struct pb_watch_trouble trouble[PB_WATCH_FAULTS];
    uv_timer_t timer;
    int64_t due_ms;          /* time that the timer is set to */
    int64_t listing_ms;      /* time of the next scheduled listing; INT64_MAX while that runs */
    int64_t rest_cost_ms;    /* cost of the round, for the pause after it */
    int64_t paused_until_ms; /* no file is taken before */
    struct pb_pace pace;
    struct pb_folder_watches *folders;
    struct pb_changes changes; /* since the begin of the last round */
    /* --- the pool's during a part --- */
    uv_work_t work;
    struct pb_round *round;
    struct pb_round_request request;
    struct pb_round_result *result; /* result of the part */
    /* --- */
    struct pb_round_result *shown; /* the last state of the inbox */
};

static void on_timer(uv_timer_t *timer);

static void enter(struct pb_watch *watch, enum state state)
{
    const bool is_legal = (follows[watch->state] & BIT(state)) != 0;
    assert(is_legal);
    (void)is_legal;
    watch->state = state;
}

/* Sets the timer to `in_ms` from now unless it fires earlier. During a part the end of the round
 * sets it. */
static void scan_within(struct pb_watch *watch, int64_t in_ms)
{
    int64_t due = pb_clock_mono_ms() + in_ms;
    if (watch->state != RESTS ||
        (uv_is_active((uv_handle_t *)&watch->timer) && watch->due_ms <= due))
        return;
    watch->due_ms = due;
    uv_update_time(watch->options.loop);
    (void)uv_timer_start(&watch->timer, on_timer, (uint64_t)in_ms, 0);
}

static void on_event(void *user)
{
    struct pb_watch *watch = user;
    scan_within(watch, pb_pace_event(&watch->pace, pb_clock_mono_ms()));
}

/* --- troubles --------------------------------------------------------------------------------- */

static void clear(struct pb_watch *watch, enum pb_watch_fault fault)
{
    if (watch->trouble[fault].code == PB_OK)
        return;
    watch->trouble[fault].code = PB_OK;
    watch->options.on_trouble(watch->options.user, fault);
}

static void __attribute__((format(printf, 4, 5)))
report(struct pb_watch *watch, enum pb_watch_fault fault, enum pb_code code, const char *format,
       ...)
{
    struct pb_watch_trouble *trouble = &watch->trouble[fault];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(trouble->text, sizeof trouble->text, format, args);
    va_end(args);
    trouble->code = code;
    watch->options.on_trouble(watch->options.user, fault);
}

static void report_reading(struct pb_watch *watch, int rc)
{
    char remedy[100] = "";
    if (rc == -EACCES)
        (void)snprintf(remedy, sizeof remedy, "; give user id %d read, write and search permission",
                       (int)geteuid());
    if (rc == 0)
        clear(watch, PB_WATCH_READING);
    else
        report(watch, PB_WATCH_READING,
               rc == -EMFILE || rc == -ENFILE ? PB_E_SYSTEM_FILES : PB_E_SYSTEM,
               "inbox: cannot read %.300s: %s%s; trying again every %g s", watch->path,
               strerror(-rc), remedy, (double)watch->options.rescan_ms / 1e3);
}

/* Raises or clears the trouble of companions without their inputs. */
static void report_alone(struct pb_watch *watch, const struct pb_pairing *pairing)
{
    if (pairing->n_alone == 0)
        clear(watch, PB_WATCH_ALONE);
    else
        report(watch, PB_WATCH_ALONE, PB_E_INPUT_ALONE,
               "inbox: %.200s is in %.200s, but the file that it belongs to is missing%s",
               pairing->first, watch->path, pairing->n_alone > 1 ? ", and so are others" : "");
}

static void report_refused(struct pb_watch *watch, const struct pb_stays *stays)
{
    char more[40] = "";
    if (stays->n_refused > 1)
        (void)snprintf(more, sizeof more, " (and %zu more)", stays->n_refused - 1);
    if (stays->n_refused == 0 || stays->n == 0)
        clear(watch, PB_WATCH_REFUSED);
    else
        report(watch, PB_WATCH_REFUSED, stays->at[0].code, "inbox: %s%s cannot be taken: %s",
               stays->at[0].name, more, stays->at[0].text);
}

/* --- metadata queries ------------------------------------------------------------------------- */

/* Starts the metadata queries of the scan. */
static void ask(struct pb_watch *watch)
{
    struct pb_asked *asked = pb_round_asked(watch->round);
    struct pb_asked_question question;
    bool good = true;
    while (good && pb_asked_next(asked, &question)) {
        char path[PB_FILES_PATH_BYTES];
        good =
            pb_files_join(path, watch->path, question.name) == 0 &&
            watch->options.ask(watch->options.user, question.ticket, question.pipeline, path) == 0;
        if (!good)
            pb_asked_drop(asked, question.ticket);
        free(question.name);
        free(question.pipeline);
    }
}

void pb_watch_answer(struct pb_watch *watch, uint64_t ticket, const struct pb_described *answer)
{
    if (pb_asked_answer(pb_round_asked(watch->round), ticket, answer))
        on_event(watch);
}

/* --- results of parts ------------------------------------------------------------------------- */

static void run_part(struct pb_watch *watch, bool begins);

static void free_jobs(const struct pb_round_result *result)
{
    for (size_t i = 0; result->stage == PB_ROUND_HAND_OVER && i < result->n_batch; i++)
        if (result->batch[i].rc == 0)
            pb_job_fini(&result->batch[i].job);
}

static void end(struct pb_watch *watch)
{
    enter(watch, ENDED);
    pb_round_destroy(watch->round);
    pb_changes_fini(&watch->changes);
    pb_changes_fini(&watch->request.changes);
    free(watch->result);
    free(watch->shown);
    free(watch->path);
    free(watch);
}

/* Follows the folders that the scan found, and plans the next listing. */
static void take_scan(struct pb_watch *watch, const struct pb_round_result *result)
{
    /* After a failed scan all watches end: a later directory with that name is another one. */
    if (pb_folder_watches_follow(watch->folders, result->folders))
        (void)pb_pace_event(&watch->pace, pb_clock_mono_ms());
    /* The pause after a round follows from its cost. A scheduled listing costs 0 here, because its
     * period follows from its duration already. The cost of another listing is its duration,
     * because it mostly waits for the storage; that of an update is its CPU time, because the
     * duration grows with the load of the machine. */
    watch->rest_cost_ms = watch->listing_ms == INT64_MAX ? 0
                          : result->has_listed           ? result->took_ms
                                                         : result->cpu_ms;
    if (result->has_listed) {
        int64_t period_ms = pb_pace_period(watch->options.rescan_ms, result->took_ms);
        watch->listing_ms = pb_clock_mono_ms() + period_ms;
    }
    report_reading(watch, result->read_rc);
    report_alone(watch, &result->pairing);
    ask(watch);
}

/* Hands the claimed files over. */
static void take_batch(struct pb_watch *watch, const struct pb_round_result *result)
{
    bool took = false;
    for (size_t i = 0; i < result->n_batch; i++)
        took = took || result->batch[i].rc == 0;
    if (took)
        watch->options.taken(watch->options.user, result->batch, result->n_batch);
    free_jobs(result);
    if (result->fault != PB_OK) {
        watch->paused_until_ms = pb_clock_mono_ms() + PAUSE_MS;
        report(watch, PB_WATCH_TAKING, result->fault, "%s", result->fault_text);
        return;
    }
    bool none_left = result->has_claimed && !result->has_more && result->waiting == 0;
    if (took || none_left) /* the file that could not be taken may be gone */
        clear(watch, PB_WATCH_TAKING);
}

/* Returns due_ms or, if it is earlier, the end of in_ms and of the pause. in_ms -1: never. */
static int64_t earlier(const struct pb_watch *watch, int64_t now_ms, int64_t due_ms, int64_t in_ms)
{
    const int64_t delay_ms = pb_pace_delay(&watch->pace, now_ms, in_ms + 1);
    return in_ms >= 0 && delay_ms < due_ms ? delay_ms : due_ms;
}

static void end_round(struct pb_watch *watch, const struct pb_round_result *result)
{
    int64_t now = pb_clock_mono_ms();
    int64_t due = watch->listing_ms > now ? watch->listing_ms - now : 0;
    pb_pace_end(&watch->pace, now, watch->rest_cost_ms);
    if (watch->paused_until_ms > now)
        due = earlier(watch, now, due, watch->paused_until_ms - now);
    if (result->lacks_files)
        due = earlier(watch, now, due, PAUSE_MS);
    due = earlier(watch, now, due, result->settled_in_ms);
    due = earlier(watch, now, due, result->expires_in_ms);
    if (pb_pace_has_event(&watch->pace))
        due = earlier(watch, now, due, 0);
    enter(watch, RESTS);
    scan_within(watch, due);
    if (watch->options.looked != NULL)
        watch->options.looked(watch->options.user);
    watch->options.looked = NULL; /* only the first round is reported */
}

static void on_worked(uv_work_t *request, int status)
{
    struct pb_watch *watch = request->data;
    struct pb_round_result *result = watch->result;
    (void)status;
    if (watch->state == CLOSES_WORKING || watch->state == ENDS_WORKING) {
        free_jobs(result);
        if (watch->state == ENDS_WORKING)
            end(watch);
        else
            enter(watch, CLOSES);
        return;
    }
    if (result->stage == PB_ROUND_SCAN) {
        run_part(watch, false);
        return;
    }
    watch->result = watch->shown;
    watch->shown = result;
    if (result->has_scanned)
        take_scan(watch, result);
    take_batch(watch, result);
    if (watch->state != WORKS) { /* a handler stopped the watch */
        enter(watch, CLOSES);
        return;
    }
    report_refused(watch, &result->stays);
    if (result->has_more && result->fault == PB_OK)
        run_part(watch, false);
    else
        end_round(watch, result);
}

/* --- parts ------------------------------------------------------------------------------------ */

static void work(uv_work_t *request)
{
    struct pb_watch *watch = request->data;
    pb_round_run(watch->round, &watch->request, watch->result);
}

static void run_part(struct pb_watch *watch, bool begins)
{
    struct pb_round_request *request = &watch->request;
    request->begins = begins;
    request->settle_ms = watch->options.settle_ms;
    request->may_claim = pb_clock_mono_ms() >= watch->paused_until_ms &&
                         !atomic_load(&watch->options.intake->drains);
    watch->work.data = watch;
    (void)uv_queue_work(watch->options.loop, &watch->work, work, on_worked);
}

static void begin_round(struct pb_watch *watch)
{
    pb_pace_begin(&watch->pace);
    pb_folder_watches_read(watch->folders);
    const bool is_scheduled = pb_clock_mono_ms() >= watch->listing_ms;
    if (is_scheduled)
        watch->listing_ms = INT64_MAX;
    if (is_scheduled || !pb_folder_watches_see_all(watch->folders))
        pb_changes_add_all(&watch->changes);
    watch->request.changes = watch->changes;
    watch->changes = (struct pb_changes){0};
    enter(watch, WORKS);
    run_part(watch, true);
}

static void on_timer(uv_timer_t *timer)
{
    struct pb_watch *watch = timer->data;
    if (pb_pace_gathers(&watch->pace, pb_clock_mono_ms()))
        scan_within(watch, PB_PACE_QUIET_MS);
    else
        begin_round(watch);
}

/* Watches the inbox itself before the first listing, after which its sub-folders follow. */
static void watch_inbox(struct pb_watch *watch)
{
    struct stat st;
    struct pb_scan_folder root = {.path = (char[]){""}};
    if (stat(watch->path, &st) != 0)
        return;
    root.device = st.st_dev;
    root.inode = st.st_ino;
    (void)pb_folder_watches_follow(watch->folders, &(struct pb_scan_folders){&root, 1, 1});
}

int pb_watch_start(const struct pb_watch_options *options, struct pb_err *err,
                   struct pb_watch **out_watch)
{
    struct pb_watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    watch->options = *options;
    watch->path = strdup(options->inbox);
    watch->result = calloc(1, sizeof *watch->result);
    watch->shown = calloc(1, sizeof *watch->shown);
    if (watch->path != NULL) {
        watch->round = pb_round_create(options->intake, options->number, watch->path);
        watch->folders =
            pb_folder_watches_create(options->loop, watch->path, &watch->changes, on_event, watch);
    }
    if (watch->result == NULL || watch->shown == NULL || watch->round == NULL ||
        watch->folders == NULL) {
        pb_folder_watches_stop(watch->folders);
        watch->state = CLOSES;
        end(watch);
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    }
    (void)uv_timer_init(options->loop, &watch->timer);
    watch->timer.data = watch;
    watch_inbox(watch);
    scan_within(watch, 0);
    *out_watch = watch;
    return 0;
}

/* The entries that stay are listed again, because another configuration may take them. */
void pb_watch_set_times(struct pb_watch *watch, int64_t settle_ms, int64_t rescan_ms)
{
    watch->options.settle_ms = settle_ms;
    watch->options.rescan_ms = rescan_ms;
    watch->listing_ms = pb_clock_mono_ms();
    if (watch->state == RESTS)
        watch->paused_until_ms = 0; /* the new configuration may have removed the cause */
    (void)pb_pace_event(&watch->pace, pb_clock_mono_ms());
    scan_within(watch, 0);
}

void pb_watch_look(struct pb_watch *watch)
{
    on_event(watch);
}

void pb_watch_resume(struct pb_watch *watch)
{
    if (watch->state == RESTS)
        watch->paused_until_ms = 0;
    on_event(watch);
}

const struct pb_watch_trouble *pb_watch_trouble(const struct pb_watch *watch,
                                                enum pb_watch_fault fault)
{
    return &watch->trouble[fault];
}

const struct pb_gathering_told *pb_watch_gathering(const struct pb_watch *watch)
{
    return &watch->shown->gathering;
}

const struct pb_stays *pb_watch_stays(const struct pb_watch *watch)
{
    return &watch->shown->stays;
}

size_t pb_watch_alone(const struct pb_watch *watch)
{
    return watch ? watch->shown->pairing.n_alone : 0;
}

size_t pb_watch_ignored(const struct pb_watch *watch)
{
    return watch ? watch->shown->ignored : 0;
}

size_t pb_watch_waiting(const struct pb_watch *watch)
{
    return watch ? watch->shown->waiting : 0;
}

static void on_close(uv_handle_t *handle)
{
    struct pb_watch *watch = handle->data;
    if (watch->state == CLOSES)
        end(watch);
    else
        enter(watch, ENDS_WORKING);
}

void pb_watch_stop(struct pb_watch *watch)
{
    if (watch == NULL)
        return;
    enter(watch, watch->state == WORKS ? CLOSES_WORKING : CLOSES);
    pb_folder_watches_stop(watch->folders);
    watch->folders = NULL;
    uv_close((uv_handle_t *)&watch->timer, on_close);
}

/* --- pace of the rounds ----------------------------------------------------------------------- */

#define SHARE 10 /* scans use this fraction of a core: 1 / SHARE */

int64_t pb_pace_event(struct pb_pace *pace, int64_t now_ms)
{
    pace->last_ms = now_ms;
    if (pace->first_ms == 0)
        pace->first_ms = now_ms;
    return pb_pace_rest(pace, now_ms);
}

bool pb_pace_has_event(const struct pb_pace *pace)
{
    return pace->first_ms != 0;
}

bool pb_pace_gathers(const struct pb_pace *pace, int64_t now_ms)
{
    return pace->first_ms != 0 && now_ms < pace->last_ms + PB_PACE_QUIET_MS &&
           now_ms < pace->first_ms + PB_PACE_GATHER_MS;
}

void pb_pace_begin(struct pb_pace *pace)
{
    pace->first_ms = 0;
}

void pb_pace_end(struct pb_pace *pace, int64_t now_ms, int64_t scan_ms)
{
    if (pace->paid_ms < now_ms - PB_PACE_CREDIT_MS)
        pace->paid_ms = now_ms - PB_PACE_CREDIT_MS;
    pace->paid_ms += SHARE * scan_ms;
    pace->rested_ms = now_ms + PB_PACE_REST_MS;
    if (pace->rested_ms < pace->paid_ms)
        pace->rested_ms = pace->paid_ms;
}

int64_t pb_pace_rest(const struct pb_pace *pace, int64_t now_ms)
{
    int64_t left = pace->rested_ms - now_ms;
    return left > PB_PACE_QUIET_MS ? left : PB_PACE_QUIET_MS;
}

int64_t pb_pace_delay(const struct pb_pace *pace, int64_t now_ms, int64_t in_ms)
{
    const int64_t rest_ms = pb_pace_rest(pace, now_ms);
    return in_ms > rest_ms ? in_ms : rest_ms;
}

int64_t pb_pace_period(int64_t rescan_ms, int64_t cost_ms)
{
    return rescan_ms > SHARE * cost_ms ? rescan_ms : SHARE * cost_ms;
}
