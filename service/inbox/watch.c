/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * One timer starts everything: it is set to the earliest of "an event arrived", "a file may be
 * complete now" and "rescan". The delay between an event and its scan is in pace.h.
 *
 * A round is a scan and the claims of the files that were complete in it, batch after batch. Its
 * parts run on libuv's pool, one at a time; between them the loop logs and reports. While a part
 * runs, settle, `told` and batch belong to the pool's thread. */
#include "service/inbox/watch.h"

#include "config/base/clock.h"
#include "service/base/files.h"
#include "service/inbox/gathering.h"
#include "service/inbox/inbox.h"
#include "service/inbox/pace.h"
#include "service/inbox/pairing.h"
#include "service/inbox/folder_watches.h"
#include "service/inbox/writer_events.h"
#include "service/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PAUSE_MS 5000

struct pb_watch {
    struct pb_watch_options options;
    char *path;
    struct pb_inbox inbox; /* its path and events are owned by the watch */
    struct pb_watch_trouble trouble[PB_WATCH_FAULTS];
    uv_timer_t timer;
    bool closed; /* true if the timer is closed */
    bool stopped;
    uv_work_t work;
    bool works; /* true if a part of a round runs */
    /* true if that part is the scan with the first batch, false for a further batch */
    bool scans;
    struct pb_settle *settle;
    struct pb_gathering *gathering;
    struct pb_pairing pairing; /* pairing of the last scan */
    size_t seen_alone;         /* loop thread's copy of pairing.n_alone */
    size_t waiting;            /* waiting files of settle after the last part */
    size_t seen_waiting;       /* loop thread's copy of `waiting` */
    size_t seen_ignored;
    struct pb_stays stays; /* owned by the loop, collected after each part */
    int64_t settle_ms;
    int64_t scan_cost_ms;      /* duration of the last scan */
    int64_t gather_cost_ms;    /* loop thread's copy of scan_cost_ms */
    int read_rc;               /* result of the last scan */
    struct pb_inbox_seen seen; /* statistics of the last scan */
    struct pb_folder_watches *folders;
    struct pb_claimed *batch; /* PB_INTAKE_BATCH entries */
    size_t n_batch;           /* entries of the last part */
    bool offered;             /* false during the back-off after a failed claim */
    bool more;                /* complete files remain that were not offered in this round */
    bool scan_again;          /* a scan was requested during this round */
    bool looked;              /* the first round is over */
    int64_t due_ms;           /* time that the timer is set to */
    struct pb_pace pace;
    int64_t paused_until_ms; /* no file is taken before */
    struct pb_inbox_told told;
};

static void on_timer(uv_timer_t *timer);

/* Sets the timer to `in_ms` from now unless it fires earlier. */
static void scan_within(struct pb_watch *watch, int64_t in_ms)
{
    if (watch->works) { /* the end of the part sets the timer */
        watch->scan_again = true;
        return;
    }
    int64_t due = pb_clock_mono_ms() + in_ms;
    if (uv_is_active((uv_handle_t *)&watch->timer) && watch->due_ms <= due)
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
    if (rc == 0)
        clear(watch, PB_WATCH_READING);
    else
        report(watch, PB_WATCH_READING,
               rc == -EMFILE || rc == -ENFILE ? PB_E_SYSTEM_FILES : PB_E_SYSTEM,
               "inbox: cannot read %.300s: %s; trying again every %g s", watch->inbox.path,
               strerror(-rc), (double)watch->options.rescan_ms / 1e3);
}

/* Raises or clears the trouble of companions without their inputs. */
static void report_alone(struct pb_watch *watch)
{
    const struct pb_pairing *pairing = &watch->pairing;
    watch->seen_alone = pairing->n_alone;
    if (pairing->n_alone == 0)
        clear(watch, PB_WATCH_ALONE);
    else
        report(watch, PB_WATCH_ALONE, PB_E_INPUT_ALONE,
               "inbox: %.200s is in %.200s, but the file that it belongs to is missing%s",
               pairing->first, watch->inbox.path,
               pairing->n_alone > 1 ? ", and so are others" : "");
}

static void report_refused(struct pb_watch *watch)
{
    const struct pb_stays *stays = &watch->stays;
    char more[40] = "";
    if (stays->n_refused > 1)
        (void)snprintf(more, sizeof more, " (and %zu more)", stays->n_refused - 1);
    if (stays->n_refused == 0 || stays->n == 0)
        clear(watch, PB_WATCH_REFUSED);
    else
        report(watch, PB_WATCH_REFUSED, stays->at[0].code, "inbox: %s%s cannot be taken: %s",
               stays->at[0].name, more, stays->at[0].text);
}

/* Logs a folder that lacks files, once. */
static void log_lack(struct pb_watch *watch, const struct pb_settle_file *file, const char *missing)
{
    char key[PB_FILES_PATH_BYTES], expires[PB_CLOCK_TEXT_BYTES] = "";
    const struct pb_settle_note *note =
        pb_settle_note(watch->settle, pb_settle_index(watch->settle, file));
    (void)snprintf(key, sizeof key, "%.4000s lacks files", file->name);
    if (note == NULL || !pb_inbox_is_news(&watch->told, key))
        return;
    pb_clock_text(note->expires_ms, expires);
    pb_log(PB_LOG_NOTICE, "inbox: %s waits until %s: %s", file->name, expires, missing);
}

/* Reports a file that cannot be taken. Returns true if other files can be taken. */
static bool can_go_on(struct pb_watch *watch, const struct pb_settle_file *file, int rc,
                      const struct pb_err *err)
{
    if (rc == -EAGAIN)
        return true;
    if (pb_code_class(err->code) == PB_CLASS_INPUT) {
        if (pb_inbox_is_news(&watch->told, file->name))
            pb_log(PB_LOG_WARNING, "inbox: %s stays: %s", file->name, err->msg);
        return true;
    }
    report(watch, PB_WATCH_TAKING, err->code, "inbox: %s stays: %s", file->name, err->msg);
    watch->paused_until_ms = pb_clock_mono_ms() + PAUSE_MS;
    return false;
}

/* --- a round's parts, on the pool --- */

static bool takes_folder(void *user, const char *name)
{
    const struct pb_watch *watch = user;
    return pb_intake_takes_folder(watch->options.intake, name, watch->inbox.recurse);
}

static bool ignores(void *user, const char *name)
{
    return pb_intake_ignores(((const struct pb_watch *)user)->options.intake, name);
}

static void scan(struct pb_watch *watch)
{
    int64_t start = pb_clock_mono_ms(), wall = pb_clock_wall_ms();
    pb_settle_begin(watch->settle);
    const struct pb_inbox_rules rules = {takes_folder, ignores, watch};
    pb_intake_set_up(watch->options.intake, watch->options.number, &watch->inbox);
    watch->read_rc =
        pb_inbox_read(&watch->inbox, &rules, watch->settle, &watch->told, &watch->seen);
    pb_settle_end(watch->settle, watch->settle_ms, start, wall);
    pb_inbox_mark_renamed(&watch->inbox, watch->settle, start);
    pb_gathering_sort(watch->gathering, &watch->inbox, watch->options.intake, watch->settle, start,
                      wall);
    pb_pairing_sort(&watch->inbox, watch->settle, &watch->pairing);
    watch->scan_cost_ms = pb_clock_mono_ms() - start;
}

/* A file that cannot be taken (for example because the store has no space) may have been moved out
 * and back, which causes an event again: without the pause this would be an endless loop. */
static void claim(struct pb_watch *watch)
{
    size_t n = 0;
    watch->n_batch = 0;
    watch->more = false;
    watch->offered = pb_clock_mono_ms() >= watch->paused_until_ms;
    if (!watch->offered)
        return;
    while (n < PB_INTAKE_BATCH &&
           pb_gathering_next(watch->gathering, watch->settle, &watch->batch[n]))
        n++;
    watch->n_batch = n ? pb_intake_claim(watch->options.intake, &watch->inbox, watch->batch, n) : 0;
    for (size_t i = 0; i < watch->n_batch; i++) {
        if (watch->batch[i].rc != 0)
            pb_gathering_again(watch->gathering, watch->options.intake, watch->settle,
                               &watch->batch[i]);
    }
    watch->more = n == PB_INTAKE_BATCH; /* perhaps: the batch is full */
}

static void work(uv_work_t *request)
{
    struct pb_watch *watch = request->data;
    if (watch->scans)
        scan(watch);
    claim(watch);
    watch->waiting = pb_gathering_waiting(watch->gathering, watch->settle);
}

/* --- their results, on the loop --- */

static void start_part(struct pb_watch *watch, bool scans);

static void take_results(struct pb_watch *watch)
{
    bool took = false, fault = false;
    for (size_t i = 0; i < watch->n_batch; i++)
        took = took || watch->batch[i].rc == 0;
    if (took)
        watch->options.taken(watch->options.user, watch->batch, watch->n_batch);
    for (size_t i = 0; i < watch->n_batch; i++) {
        struct pb_claimed *file = &watch->batch[i];
        if (file->rc == 0)
            pb_job_fini(&file->job);
        else if (!fault)
            fault = !can_go_on(watch, file->file, file->rc, &file->err);
        if (file->set == NULL && file->rc == -EAGAIN && file->err.code == PB_E_INPUT_INCOMPLETE)
            log_lack(watch, file->file, file->err.msg);
    }
    watch->more = watch->more && !fault;
    bool none_left = watch->offered && !watch->more && watch->waiting == 0;
    if (!fault && (took || none_left)) /* the file that could not be taken may be gone */
        clear(watch, PB_WATCH_TAKING);
}

static void free_watch(struct pb_watch *watch)
{
    pb_inbox_told_fini(&watch->told);
    pb_inbox_seen_fini(&watch->seen);
    pb_settle_destroy(watch->settle);
    pb_gathering_destroy(watch->gathering);
    free(watch->batch);
    pb_writer_events_destroy(watch->inbox.events);
    free((char *)watch->inbox.path);
    free(watch);
}

static void end_stopped(struct pb_watch *watch)
{
    for (size_t i = 0; i < watch->n_batch; i++) {
        if (watch->batch[i].rc == 0)
            pb_job_fini(&watch->batch[i].job);
    }
    if (watch->closed)
        free_watch(watch);
}

static void end_round(struct pb_watch *watch)
{
    int64_t now = pb_clock_mono_ms(), due = watch->options.rescan_ms;
    pb_pace_end(&watch->pace, now, watch->gather_cost_ms);
    int64_t paused = watch->paused_until_ms - now;
    if (paused > 0 && paused < due)
        due = paused + 1;
    int64_t settled = pb_settle_due_ms(watch->settle, now);
    if (settled >= 0 && settled + 1 < due)
        due = settled + 1;
    int64_t expires = pb_gathering_due_ms(watch->gathering, pb_clock_wall_ms());
    if (expires >= 0 && expires + 1 < due)
        due = expires + 1;
    if (watch->scan_again && pb_pace_rest(&watch->pace, now) < due)
        due = pb_pace_rest(&watch->pace, now);
    watch->scan_again = false;
    scan_within(watch, due);
    if (!watch->looked && watch->options.looked != NULL)
        watch->options.looked(watch->options.user);
    watch->looked = true;
}

/* Starts the metadata queries of the scan. */
static void ask(struct pb_watch *watch)
{
    struct pb_asked *asked = pb_gathering_asked(watch->gathering);
    struct pb_asked_question question;
    bool good = true;
    while (good && pb_asked_next(asked, &question)) {
        char path[PB_FILES_PATH_BYTES];
        good =
            pb_files_join(path, watch->inbox.path, question.name) == 0 &&
            watch->options.ask(watch->options.user, question.ticket, question.pipeline, path) == 0;
        if (!good)
            pb_asked_drop(asked, question.ticket);
        free(question.name);
        free(question.pipeline);
    }
}

void pb_watch_answer(struct pb_watch *watch, uint64_t ticket, const struct pb_described *answer)
{
    if (pb_asked_answer(pb_gathering_asked(watch->gathering), ticket, answer))
        on_event(watch);
}

static void on_worked(uv_work_t *request, int status)
{
    struct pb_watch *watch = request->data;
    (void)status;
    watch->works = false;
    watch->seen_waiting = watch->waiting;
    watch->seen_ignored = watch->seen.ignored;
    pb_gathering_show(watch->gathering, watch->settle);
    pb_stays_collect(&watch->seen, watch->settle, &watch->stays);
    watch->gather_cost_ms = watch->scan_cost_ms;
    if (watch->stopped) {
        end_stopped(watch);
        return;
    }
    if (watch->scans) {
        /* After a failed scan all watches end: a later directory with that name is another one. */
        size_t n = watch->read_rc == 0 ? watch->seen.n_folders : 0;
        if (pb_folder_watches_follow(watch->folders, watch->seen.folder, n))
            watch->scan_again =
                true; /* files that arrived between the scan and this call caused no event */
        report_reading(watch, watch->read_rc);
        report_alone(watch);
        ask(watch);
    }
    take_results(watch);
    if (watch->stopped)
        return;
    report_refused(watch);
    if (watch->more)
        start_part(watch, false);
    else
        end_round(watch);
}

static void start_part(struct pb_watch *watch, bool scans)
{
    watch->works = true;
    watch->scans = scans;
    watch->settle_ms = watch->options.settle_ms;
    watch->work.data = watch;
    (void)uv_queue_work(watch->options.loop, &watch->work, work, on_worked);
}

static void on_timer(uv_timer_t *timer)
{
    struct pb_watch *watch = timer->data;
    if (pb_pace_gathers(&watch->pace, pb_clock_mono_ms())) {
        scan_within(watch, PB_PACE_QUIET_MS);
        return;
    }
    pb_pace_begin(&watch->pace);
    start_part(watch, true);
}

int pb_watch_start(const struct pb_watch_options *options, struct pb_err *err,
                   struct pb_watch **out_watch)
{
    struct pb_watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    watch->options = *options;
    watch->inbox.path = watch->path = strdup(options->inbox);
    watch->settle = pb_settle_create();
    watch->gathering = pb_gathering_create();
    watch->batch = calloc(PB_INTAKE_BATCH, sizeof *watch->batch);
    if (watch->path != NULL)
        watch->folders = pb_folder_watches_create(options->loop, watch->path, on_event, watch);
    if (watch->path == NULL || watch->settle == NULL || watch->gathering == NULL ||
        watch->batch == NULL || watch->folders == NULL) {
        pb_folder_watches_stop(watch->folders);
        free_watch(watch);
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    }
    watch->inbox.events = pb_writer_events_create(watch->path);
    (void)uv_timer_init(options->loop, &watch->timer);
    watch->timer.data = watch;
    scan_within(watch, 0);
    *out_watch = watch;
    return 0;
}

void pb_watch_set_times(struct pb_watch *watch, int64_t settle_ms, int64_t rescan_ms)
{
    watch->options.settle_ms = settle_ms;
    watch->options.rescan_ms = rescan_ms;
    if (!watch->works)
        watch->paused_until_ms = 0; /* the new configuration may have removed the cause */
    scan_within(watch, 0);
}

void pb_watch_look(struct pb_watch *watch)
{
    on_event(watch);
}

const struct pb_watch_trouble *pb_watch_trouble(const struct pb_watch *watch,
                                                enum pb_watch_fault fault)
{
    return &watch->trouble[fault];
}

const struct pb_gathering_told *pb_watch_gathering(const struct pb_watch *watch)
{
    return pb_gathering_shown(watch->gathering);
}

const struct pb_stays *pb_watch_stays(const struct pb_watch *watch)
{
    return &watch->stays;
}

size_t pb_watch_alone(const struct pb_watch *watch)
{
    return watch ? watch->seen_alone : 0;
}

size_t pb_watch_ignored(const struct pb_watch *watch)
{
    return watch ? watch->seen_ignored : 0;
}

size_t pb_watch_waiting(const struct pb_watch *watch)
{
    return watch ? watch->seen_waiting : 0;
}

static void on_close(uv_handle_t *handle)
{
    struct pb_watch *watch = handle->data;
    watch->closed = true;
    if (!watch->works)
        free_watch(watch);
}

void pb_watch_stop(struct pb_watch *watch)
{
    if (watch == NULL)
        return;
    watch->stopped = true;
    pb_folder_watches_stop(watch->folders);
    watch->folders = NULL;
    uv_close((uv_handle_t *)&watch->timer, on_close);
}
