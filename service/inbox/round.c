/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/round.h"

#include "config/base/clock.h"
#include "service/base/files.h"
#include "service/base/log.h"
#include "service/inbox/inbox.h"
#include "service/inbox/writers.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLICE_MS     20  /* duration of a part of a scan */
#define STEP_ENTRIES 256 /* entries between two looks at the clock */

struct pb_round {
    enum pb_round_stage stage;
    struct pb_intake *intake;
    size_t inbox_number;
    char *path;
    struct pb_inbox inbox; /* its path and events are owned by the round */
    struct pb_settle *settle;
    struct pb_left *left;
    struct pb_scan *scan;
    struct pb_gathering *gathering;
    struct pb_pairing pairing;
    struct pb_inbox_told told;
    unsigned long config_number; /* configuration of the entries in `left` */
    int64_t mono_ms, wall_ms;    /* clocks at the begin of the scan */
    int64_t took_ns, cpu_ns;     /* cost of the scan and the assembly */
    int read_rc;
    bool has_scanned; /* since the last batch */
    struct pb_claimed batch[PB_CLAIM_BATCH];
    size_t n_batch;
};

/* --- stages ----------------------------------------------------------------------------------- */

#define BIT(stage) (1u << (stage))

/* Stages that may follow a stage. */
static const unsigned follows[PB_ROUND_STAGES] = {
    [PB_ROUND_SCAN] = BIT(PB_ROUND_SETTLE),
    [PB_ROUND_SETTLE] = BIT(PB_ROUND_ASSEMBLE),
    [PB_ROUND_ASSEMBLE] = BIT(PB_ROUND_CLAIM),
    [PB_ROUND_CLAIM] = BIT(PB_ROUND_HAND_OVER),
    [PB_ROUND_HAND_OVER] = BIT(PB_ROUND_SCAN) | BIT(PB_ROUND_CLAIM),
};

static void enter(struct pb_round *round, enum pb_round_stage stage)
{
    const bool is_legal = (follows[round->stage] & BIT(stage)) != 0;
    assert(is_legal);
    (void)is_legal;
    round->stage = stage;
}

/* --- scan ------------------------------------------------------------------------------------- */

static bool takes_folder(void *user, const char *name)
{
    const struct pb_round *round = user;
    return pb_intake_takes_folder(round->intake, round->inbox_number, name, round->inbox.recurse);
}

static bool ignores(void *user, const char *path)
{
    return pb_intake_ignores(((const struct pb_round *)user)->intake, path);
}

static bool leaves(void *user, const char *path)
{
    const struct pb_round *round = user;
    return pb_intake_leaves(round->intake, round->inbox_number, path);
}

static void begin(struct pb_round *round, struct pb_changes *changes)
{
    unsigned long number = pb_intake_config_number(round->intake);
    if (number != round->config_number) {
        pb_left_reopen(round->left);
        pb_changes_add_all(changes);
    }
    round->config_number = number;
    pb_intake_set_up(round->intake, round->inbox_number, &round->inbox);
    round->mono_ms = pb_clock_mono_ms();
    round->wall_ms = pb_clock_wall_ms();
    round->took_ns = round->cpu_ns = 0;
    round->has_scanned = true;
    enter(round, PB_ROUND_SCAN);
    round->read_rc = pb_scan_begin(round->scan, changes);
    if (round->read_rc != 0)
        enter(round, PB_ROUND_SETTLE);
}

/* Scans until the slice is over or the stage is. */
static void scan(struct pb_round *round, int64_t until_ms)
{
    int rc;
    do
        rc = pb_scan_step(round->scan, STEP_ENTRIES);
    while (rc > 0 && pb_clock_mono_ms() < until_ms);
    if (rc > 0)
        return;
    round->read_rc = rc;
    enter(round, PB_ROUND_SETTLE);
}

/* Files that were renamed into the inbox and not touched since become complete. Files of
 * sub-folders settle, because no events report their renames. The events are read after the scan
 * has read the files' attributes: a file that was written in between is not marked, and a file that
 * is written later has changed at its claim. */
static void mark_renamed(const struct pb_inbox *inbox, struct pb_settle *settle, int64_t mono_ms)
{
    pb_writers_events_follow(inbox->events, mono_ms);
    for (size_t i = 0; i < pb_settle_count(settle); i++) {
        const struct pb_settle_file *file = pb_settle_at(settle, i);
        if (!file->is_folder && pb_writers_events_took_in(inbox->events, file->name))
            pb_settle_arrived(settle, i, mono_ms);
    }
}

static void settle(struct pb_round *round, int64_t settle_ms)
{
    pb_settle_end(round->settle, settle_ms, round->mono_ms, round->wall_ms, pb_clock_mono_ms());
    mark_renamed(&round->inbox, round->settle, round->mono_ms);
    enter(round, PB_ROUND_ASSEMBLE);
}

static void assemble(struct pb_round *round)
{
    pb_gathering_sort(round->gathering, &round->inbox, round->intake, round->settle, round->mono_ms,
                      round->wall_ms);
    pb_pairing_sort(&round->inbox, round->settle, &round->pairing);
    enter(round, PB_ROUND_CLAIM);
}

/* --- claim ------------------------------------------------------------------------------------ */

/* Logs a folder that lacks files, once. */
static void log_lack(struct pb_round *round, const struct pb_claimed *claimed)
{
    char key[PB_FILES_PATH_BYTES], expires[PB_CLOCK_TEXT_BYTES] = "";
    const struct pb_settle_note *note =
        pb_settle_note(round->settle, pb_settle_index(round->settle, claimed->file));
    (void)snprintf(key, sizeof key, "%.4000s lacks files", claimed->file->name);
    if (note == NULL || !pb_inbox_is_news(&round->told, key))
        return;
    pb_clock_text(note->expires_ms, expires);
    pb_log(PB_LOG_NOTICE, "inbox: %s waits until %s: %s", claimed->file->name, expires,
           claimed->err.msg);
}

/* Logs why a file was not taken, or reports it as a fault if no other can be taken either. */
static void report(struct pb_round *round, const struct pb_claimed *claimed,
                   struct pb_round_result *out)
{
    if (claimed->rc == -EAGAIN) {
        if (claimed->set == NULL && claimed->err.code == PB_E_INPUT_INCOMPLETE)
            log_lack(round, claimed);
    } else if (pb_code_class(claimed->err.code) == PB_CLASS_INPUT) {
        if (pb_inbox_is_news(&round->told, claimed->file->name))
            pb_log(PB_LOG_WARNING, "inbox: %s stays: %s", claimed->file->name, claimed->err.msg);
    } else if (out->fault == PB_OK) {
        out->fault = claimed->err.code;
        (void)snprintf(out->fault_text, sizeof out->fault_text, "inbox: %s stays: %s",
                       claimed->file->name, claimed->err.msg);
    }
}

/* A file that cannot be taken (for example because the store has no space) may have been moved out
 * and back, which causes an event again: without a back-off this would be an endless loop. */
static void claim(struct pb_round *round, bool may_claim, struct pb_round_result *out)
{
    struct pb_claimed *batch = round->batch;
    size_t n = 0;
    while (may_claim && n < PB_CLAIM_BATCH &&
           pb_gathering_next(round->gathering, round->settle, &batch[n]))
        n++;
    round->n_batch = n ? pb_claim_files(round->intake, &round->inbox, batch, n) : 0;
    out->has_more = n == PB_CLAIM_BATCH; /* perhaps: the batch is full */
    out->fault = PB_OK;
    for (size_t i = 0; i < round->n_batch; i++) {
        pb_gathering_claimed(round->settle, &batch[i]);
        if (batch[i].rc != 0)
            report(round, &batch[i], out);
    }
    enter(round, PB_ROUND_HAND_OVER);
}

/* --- parts ------------------------------------------------------------------------------------ */

/* Describes the state after this part. */
static void describe(struct pb_round *round, bool may_claim, struct pb_round_result *out)
{
    out->has_scanned = round->has_scanned;
    out->has_listed = round->has_scanned && pb_scan_is_listing(round->scan);
    out->lacks_files = round->read_rc == 0 && pb_scan_needs_listing(round->scan);
    out->read_rc = round->read_rc;
    out->took_ms = round->took_ns / 1000000;
    out->cpu_ms = round->cpu_ns / 1000000;
    out->folders = pb_scan_folders(round->scan);
    out->pairing = round->pairing;
    out->has_claimed = may_claim;
    out->batch = round->batch;
    out->n_batch = round->n_batch;
    out->waiting = pb_gathering_waiting(round->gathering, round->settle);
    out->ignored = pb_left_count(round->left, PB_SETTLE_IGNORED);
    pb_stays_collect(round->left, round->settle, &out->stays);
    pb_gathering_show(round->gathering, round->settle, &out->gathering);
    out->settled_in_ms = pb_settle_due_ms(round->settle, pb_clock_mono_ms());
    out->expires_in_ms = pb_gathering_due_ms(round->gathering, pb_clock_wall_ms());
    round->has_scanned = false;
}

static int64_t thread_cpu_ns(void)
{
    struct timespec time = {.tv_sec = 0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return pb_clock_ns(&time);
}

void pb_round_run(struct pb_round *round, struct pb_round_request *request,
                  struct pb_round_result *out)
{
    const int64_t start_ns = (int64_t)pb_clock_mono_ns(), start_cpu_ns = thread_cpu_ns();
    if (request->begins)
        begin(round, &request->changes);
    else if (round->stage == PB_ROUND_HAND_OVER)
        enter(round, PB_ROUND_CLAIM);
    if (round->stage == PB_ROUND_SCAN)
        scan(round, pb_clock_mono_ms() + SLICE_MS);
    if (round->stage == PB_ROUND_SETTLE)
        settle(round, request->settle_ms);
    if (round->stage == PB_ROUND_ASSEMBLE)
        assemble(round);
    round->took_ns += (int64_t)pb_clock_mono_ns() - start_ns;
    round->cpu_ns += thread_cpu_ns() - start_cpu_ns;
    if (round->stage == PB_ROUND_CLAIM) {
        /* After a reload the files are assembled again before they are taken, and after an
         * incomplete scan, which may lack files of a scene, they are listed first. */
        bool may_claim = request->may_claim && !pb_scan_needs_listing(round->scan) &&
                         pb_intake_config_number(round->intake) == round->config_number &&
                         pb_intake_begin_take(round->intake, round->inbox_number);
        claim(round, may_claim, out);
        if (may_claim)
            pb_intake_end_take(round->intake, round->inbox_number);
        describe(round, may_claim, out);
    }
    out->stage = round->stage;
}

struct pb_asked *pb_round_asked(const struct pb_round *round)
{
    return pb_gathering_asked(round->gathering);
}

struct pb_round *pb_round_create(struct pb_intake *intake, size_t inbox_number, const char *path)
{
    struct pb_round *round = calloc(1, sizeof *round);
    if (round == NULL)
        return NULL;
    const struct pb_scan_rules rules = {takes_folder, ignores, leaves, round};
    round->stage = PB_ROUND_HAND_OVER;
    round->intake = intake;
    round->inbox_number = inbox_number;
    round->inbox.path = round->path = strdup(path);
    round->settle = pb_settle_create();
    round->left = pb_left_create();
    round->gathering = pb_gathering_create();
    round->scan = pb_scan_create(&round->inbox, &rules, round->settle, round->left);
    if (round->path == NULL || round->settle == NULL || round->left == NULL ||
        round->gathering == NULL || round->scan == NULL) {
        pb_round_destroy(round);
        return NULL;
    }
    round->inbox.events = pb_writers_events_create(path);
    return round;
}

void pb_round_destroy(struct pb_round *round)
{
    if (round == NULL)
        return;
    pb_scan_destroy(round->scan);
    pb_gathering_destroy(round->gathering);
    pb_left_destroy(round->left);
    pb_settle_destroy(round->settle);
    pb_writers_events_destroy(round->inbox.events);
    pb_inbox_told_fini(&round->told);
    free(round->path);
    free(round);
}
