/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each call, line or time limit is an event; the table has the action and the next state for each
 * state and event. An action changes only the slot. The owner's handlers, which may use the slot
 * again, are called after the transition. */
#include "config/base/clock.h"
#include "config/config.h"
#include "service/processes/worker_slot_table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
#define CELL(event, action, next) [PB_SLOT_ON_##event] = {PB_SLOT_##action, PB_SLOT_##next}

/* Events that are not listed cannot happen, or change nothing. */
static const struct pb_slot_cell table[PB_SLOT_STATES][PB_SLOT_EVENTS] = {
    [PB_SLOT_EMPTY] = {CELL(START, DO_START, IDLE)},
    [PB_SLOT_IDLE] = {CELL(RUN, DO_TELL, RUNNING),
                      CELL(BREACH, DO_KILL, LEAVING),
                      CELL(KILL, DO_KILL, LEAVING),
                      CELL(LEAVE, DO_LET_GO, LEAVING),
                      CELL(GONE, DO_REPORT, EMPTY),
                      CELL(HUNG, DO_REPORT_HUNG, EMPTY)},
    [PB_SLOT_RUNNING] = {CELL(DONE, DO_SUCCEED, IDLE),
                         CELL(FAILED, DO_FAIL, IDLE),
                         CELL(DEVICE, DO_RENEW, RENEWING),
                         CELL(LOST, DO_FAIL_KILL, LEAVING),
                         CELL(BREACH, DO_KILL, KILLED),
                         CELL(STOP, DO_CANCEL, STOPPING),
                         CELL(KILL, DO_KILL, KILLED),
                         CELL(GONE, DO_END, EMPTY),
                         CELL(HUNG, DO_FORSAKE, EMPTY)},
    [PB_SLOT_STOPPING] = {CELL(DONE, DO_SUCCEED, IDLE), /* too late: the job is done */
                          CELL(FAILED, DO_END, IDLE),
                          CELL(DEVICE, DO_END_KILL, LEAVING),
                          CELL(LOST, DO_END_KILL, LEAVING),
                          CELL(BREACH, DO_KILL, KILLED),
                          CELL(STOP, DO_HURRY, STOPPING),
                          CELL(KILL, DO_KILL, KILLED),
                          CELL(GONE, DO_END, EMPTY),
                          CELL(HUNG, DO_FORSAKE, EMPTY)},
    [PB_SLOT_KILLED] = {CELL(DONE, DO_SUCCEED, LEAVING), /* its last lines were still in the pipe */
                        CELL(FAILED, DO_END, LEAVING),
                        CELL(DEVICE, DO_END, LEAVING),
                        CELL(LOST, DO_END, LEAVING),
                        CELL(STOP, DO_HURRY, KILLED),
                        CELL(KILL, DO_HURRY, KILLED),
                        CELL(GONE, DO_END, EMPTY),
                        CELL(HUNG, DO_FORSAKE, EMPTY)},
    [PB_SLOT_RENEWING] = {CELL(STOP, DO_END, LEAVING),
                          CELL(KILL, DO_END, LEAVING),
                          CELL(GONE, DO_CLEAR, CLEARING),
                          CELL(HUNG, DO_CLEAR_HUNG, CLEARING)},
    [PB_SLOT_CLEARING] = {CELL(STOP, DO_END, EMPTY),
                          CELL(KILL, DO_END, EMPTY),
                          CELL(CLEARED, DO_RESTART, RUNNING)},
    [PB_SLOT_LEAVING] = {CELL(KILL, DO_KILL, LEAVING),
                         CELL(GONE, DO_REPORT, EMPTY),
                         CELL(HUNG, DO_REPORT_HUNG, EMPTY)},
};
/* clang-format on */

struct pb_slot_cell pb_slot_cell(enum pb_slot_state state, enum pb_slot_event event)
{
    struct pb_slot_cell cell = table[state][event];
    return cell.action == PB_SLOT_IGNORE ? (struct pb_slot_cell){PB_SLOT_IGNORE, state} : cell;
}

void pb_slot_say(const struct pb_worker_slot *slot, int pid, enum pb_log_level level,
                 const char *format, ...)
{
    char text[1200];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    slot->owner->on_say(slot->owner->user, pid, level, text);
}

/* --- actions --------------------------------------------------------------------------------*/

static void on_end(void *user, const char *how)
{
    struct pb_worker_slot *slot = user;
    slot->gone.how = how;
    slot->gone.spoke = pb_worker_proc_spoke(slot->proc);
    slot->gone.by_us = pb_worker_proc_killed_ms(slot->proc) > 0;
    slot->gone.pid = pb_worker_proc_pid(slot->proc);
    pb_worker_proc_destroy(slot->proc); /* `how` is valid until the next iteration of the loop */
    slot->proc = NULL;
    (void)pb_slot_event(slot, PB_SLOT_ON_GONE);
}

static void on_say(void *user, enum pb_log_level level, const char *text)
{
    struct pb_worker_slot *slot = user;
    pb_slot_say(slot, pb_worker_slot_pid(slot), level, "%s", text);
}

static int start(struct pb_worker_slot *slot)
{
    const struct pb_worker_slot_owner *owner = slot->owner;
    struct pb_worker_proc_handlers handlers = {pb_slot_on_line, on_end, on_say, slot};
    int rc = pb_worker_proc_start(owner->loop, &owner->program, &handlers, slot->err, &slot->proc);
    pb_worker_lines_reset(&slot->lines);
    slot->next[0] = '\0';
    if (rc == 0)
        owner->on_start(owner->user, slot->number);
    return rc;
}

static void take_ending(struct pb_worker_slot *slot)
{
    enum pb_ending now = slot->ending;
    if (slot->asked == PB_ENDING_NONE)
        return;
    /* A cancel by a client overrides a shutdown; a stall is known already. */
    if (now == PB_ENDING_NONE || now == PB_ENDING_BREACH ||
        (slot->asked == PB_ENDING_CANCEL && (now == PB_ENDING_PUT_BACK || now == PB_ENDING_TIME)))
        slot->ending = slot->asked;
}

static int hurry(struct pb_worker_slot *slot)
{
    int64_t kill_at_ms = pb_clock_mono_ms() + slot->grace_ms;
    take_ending(slot);
    if (slot->state != PB_SLOT_KILLED && (slot->kill_at_ms == 0 || kill_at_ms < slot->kill_at_ms))
        slot->kill_at_ms = kill_at_ms;
    return 0;
}

static int cancel(struct pb_worker_slot *slot)
{
    static const char line[] = "{\"cmd\":\"cancel\"}";
    slot->next[0] = '\0';
    (void)pb_worker_proc_send(slot->proc, line, sizeof line - 1);
    return hurry(slot);
}

static int kill_worker(struct pb_worker_slot *slot)
{
    take_ending(slot);
    slot->kill_at_ms = 0;
    slot->next[0] = '\0';
    pb_worker_proc_kill(slot->proc);
    return 0;
}

static int let_go(struct pb_worker_slot *slot)
{
    slot->kill_at_ms = pb_clock_mono_ms() + slot->grace_ms;
    pb_worker_proc_close_stdin(slot->proc);
    return 0;
}

/* Stops waiting for the process. */
static void leave_behind(struct pb_worker_slot *slot)
{
    slot->gone.pid = pb_worker_proc_pid(slot->proc);
    pb_slot_say(slot, slot->gone.pid, PB_LOG_ERROR,
                "does not end on SIGKILL (does its storage hang?) and is abandoned");
    slot->over.hung_pid = slot->gone.pid;
    pb_worker_proc_destroy(slot->proc);
    slot->proc = NULL;
}

static int tell_run(struct pb_worker_slot *slot)
{
    pb_slot_send_run(slot);
    slot->tell = PB_SLOT_TELL_RUNS;
    return 0;
}

/* Runs the job again. A failure of the device does not count as an attempt. */
static int renew(struct pb_worker_slot *slot)
{
    const struct pb_job_error *error = &slot->line->error;
    struct pb_job *job = &slot->job;
    enum pb_device_kind kind = slot->owner->config->compute.device;
    bool demanded = slot->how.device[0] != '\0' ? strncmp(slot->how.device, "cuda", 4) == 0
                                                : kind == PB_DEVICE_CUDA;
    slot->device_try = pb_device_try_next(slot->device_try, error->code);
    slot->ending = PB_ENDING_NONE;
    pb_device_try_why(slot->device_try, demanded, error->code, error->message, job->device_why,
                      sizeof job->device_why);
    pb_job_restart(job, pb_clock_wall_ms());
    pb_worker_lines_end(&slot->lines);
    slot->tell = PB_SLOT_TELL_RETRY;
    return kill_worker(slot);
}

static int restart(struct pb_worker_slot *slot)
{
    struct pb_err err = {0};
    slot->err = &err;
    int rc = start(slot);
    slot->err = NULL;
    if (rc == 0) {
        pb_slot_say(slot, 0, PB_LOG_NOTICE, "job %s: worker %d has it now", slot->job.id,
                    pb_worker_proc_pid(slot->proc));
        return tell_run(slot);
    }
    pb_job_fail(&slot->job, err.code, "%s", err.msg);
    slot->over.end = PB_RUN_FAILED;
    slot->tell = PB_SLOT_TELL_OVER;
    return rc;
}

static int report(struct pb_worker_slot *slot, void (*end)(struct pb_worker_slot *slot))
{
    take_ending(slot); /* for an end that is reported immediately */
    end(slot);
    slot->tell = PB_SLOT_TELL_OVER;
    return 0;
}

static int succeed(struct pb_worker_slot *slot)
{
    return report(slot, pb_slot_end_well);
}

static int fail(struct pb_worker_slot *slot)
{
    return report(slot, pb_slot_end_failed);
}

static int fail_kill(struct pb_worker_slot *slot)
{
    (void)kill_worker(slot);
    return fail(slot);
}

static int end(struct pb_worker_slot *slot)
{
    return report(slot, pb_slot_end_ended);
}

static int end_kill(struct pb_worker_slot *slot)
{
    (void)kill_worker(slot);
    return end(slot);
}

static int forsake(struct pb_worker_slot *slot)
{
    leave_behind(slot);
    return report(slot, pb_slot_end_hung);
}

static int clear(struct pb_worker_slot *slot)
{
    slot->tell = PB_SLOT_TELL_CLEAR;
    return 0;
}

static int clear_hung(struct pb_worker_slot *slot)
{
    leave_behind(slot);
    return clear(slot);
}

static int say_gone(struct pb_worker_slot *slot)
{
    if (slot->state == PB_SLOT_IDLE)
        pb_slot_say(slot, slot->gone.pid, PB_LOG_WARNING, "ended without a job with %s",
                    slot->gone.how);
    slot->tell = PB_SLOT_TELL_GONE;
    return 0;
}

static int say_hung(struct pb_worker_slot *slot)
{
    leave_behind(slot);
    slot->tell = PB_SLOT_TELL_GONE;
    return 0;
}

static int (*const actions[PB_SLOT_ACTIONS])(struct pb_worker_slot *slot) = {
    [PB_SLOT_IGNORE] = NULL,
    [PB_SLOT_DO_START] = start,
    [PB_SLOT_DO_TELL] = tell_run,
    [PB_SLOT_DO_CANCEL] = cancel,
    [PB_SLOT_DO_HURRY] = hurry,
    [PB_SLOT_DO_KILL] = kill_worker,
    [PB_SLOT_DO_LET_GO] = let_go,
    [PB_SLOT_DO_SUCCEED] = succeed,
    [PB_SLOT_DO_FAIL] = fail,
    [PB_SLOT_DO_FAIL_KILL] = fail_kill,
    [PB_SLOT_DO_END] = end,
    [PB_SLOT_DO_END_KILL] = end_kill,
    [PB_SLOT_DO_FORSAKE] = forsake,
    [PB_SLOT_DO_RENEW] = renew,
    [PB_SLOT_DO_CLEAR] = clear,
    [PB_SLOT_DO_CLEAR_HUNG] = clear_hung,
    [PB_SLOT_DO_RESTART] = restart,
    [PB_SLOT_DO_REPORT] = say_gone,
    [PB_SLOT_DO_REPORT_HUNG] = say_hung,
};

/* --- events ---------------------------------------------------------------------------------*/

/* Reports the end of the run. The handler takes the job; the slot is ready for the next one. */
static void tell_over(struct pb_worker_slot *slot)
{
    struct pb_run_over over = slot->over;
    over.began_ms = slot->began_ms;
    over.job = slot->job;
    memset(&slot->job, 0, sizeof slot->job);
    memset(&slot->over, 0, sizeof slot->over);
    pb_worker_lines_end(&slot->lines);
    slot->ending = PB_ENDING_NONE;
    slot->device_try = PB_DEVICE_TRY_FIRST;
    slot->untold = false;
    slot->kill_at_ms = 0;
    slot->owner->on_over(slot->owner->user, slot->number, &over);
}

static void tell_gone(struct pb_worker_slot *slot)
{
    bool hung = slot->over.hung_pid != 0;
    memset(&slot->over, 0, sizeof slot->over);
    slot->ending = PB_ENDING_NONE;
    slot->kill_at_ms = 0;
    slot->owner->on_gone(slot->owner->user, slot->number, slot->gone.pid, hung);
}

static void tell_owner(struct pb_worker_slot *slot)
{
    const struct pb_worker_slot_owner *owner = slot->owner;
    switch (slot->tell) {
    case PB_SLOT_TELL_NOTHING:
        break;
    case PB_SLOT_TELL_RUNS:
        owner->on_news(owner->user, slot->number, &slot->job, true);
        break;
    case PB_SLOT_TELL_RETRY:
        owner->on_retry(owner->user, slot->number, &slot->job, slot->device_try);
        break;
    case PB_SLOT_TELL_CLEAR:
        owner->on_clear(owner->user, slot->number, slot->how.products);
        break;
    case PB_SLOT_TELL_OVER:
        tell_over(slot);
        break;
    case PB_SLOT_TELL_GONE:
        tell_gone(slot);
        break;
    }
}

int pb_slot_event(struct pb_worker_slot *slot, enum pb_slot_event event)
{
    struct pb_slot_cell cell = pb_slot_cell(slot->state, event);
    slot->tell = PB_SLOT_TELL_NOTHING;
    int rc = cell.action == PB_SLOT_IGNORE ? 0 : actions[cell.action](slot);
    slot->state = rc == 0 ? cell.next : PB_SLOT_EMPTY;
    slot->asked = PB_ENDING_NONE;
    tell_owner(slot);
    return rc;
}
