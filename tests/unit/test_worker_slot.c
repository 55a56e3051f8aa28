/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/processes/worker_slot_table.h"

#include "config/config.h"
#include "run_suite.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- the table, pair by pair ----------------------------------------------------------------*/

static const struct {
    bool process, job;
} has[PB_SLOT_STATES] = {
    [PB_SLOT_IDLE] = {true, false},    [PB_SLOT_RUNNING] = {true, true},
    [PB_SLOT_STOPPING] = {true, true}, [PB_SLOT_KILLED] = {true, true},
    [PB_SLOT_RENEWING] = {true, true}, [PB_SLOT_CLEARING] = {false, true},
    [PB_SLOT_LEAVING] = {true, false},
};

static bool reports_job(enum pb_slot_action action)
{
    return action == PB_SLOT_DO_SUCCEED || action == PB_SLOT_DO_FAIL ||
           action == PB_SLOT_DO_FAIL_KILL || action == PB_SLOT_DO_END ||
           action == PB_SLOT_DO_END_KILL || action == PB_SLOT_DO_FORSAKE;
}

static bool starts_process(enum pb_slot_action action)
{
    return action == PB_SLOT_DO_START || action == PB_SLOT_DO_RESTART;
}

static bool is_end_of_process(enum pb_slot_event event)
{
    return event == PB_SLOT_ON_GONE || event == PB_SLOT_ON_HUNG;
}

static bool is_word_of_worker(enum pb_slot_event event)
{
    return event == PB_SLOT_ON_DONE || event == PB_SLOT_ON_FAILED || event == PB_SLOT_ON_DEVICE ||
           event == PB_SLOT_ON_LOST;
}

/* Calls check for each pair, and counts them. */
static int walk(void (*check)(enum pb_slot_state state, enum pb_slot_event event,
                              struct pb_slot_cell cell))
{
    int pairs = 0;
    for (int s = 0; s < PB_SLOT_STATES; s++) {
        for (int e = 0; e < PB_SLOT_EVENTS; e++, pairs++)
            check((enum pb_slot_state)s, (enum pb_slot_event)e,
                  pb_slot_cell((enum pb_slot_state)s, (enum pb_slot_event)e));
    }
    return pairs;
}

#define ASSERT(what)                                                                               \
    ck_assert_msg(what, "state %d, event %d, action %d, next %d: " #what, (int)state, (int)event,  \
                  (int)cell.action, (int)cell.next)

static void job_is_kept(enum pb_slot_state state, enum pb_slot_event event,
                        struct pb_slot_cell cell)
{
    ASSERT(cell.next < PB_SLOT_STATES && cell.action < PB_SLOT_ACTIONS);
    ASSERT(cell.action != PB_SLOT_IGNORE || cell.next == state);
    ASSERT(reports_job(cell.action) == (has[state].job && !has[cell.next].job));
    ASSERT((event == PB_SLOT_ON_RUN && state == PB_SLOT_IDLE) ==
           (!has[state].job && has[cell.next].job));
}

START_TEST(a_job_comes_with_run_and_goes_with_one_report)
{
    ck_assert_int_eq(walk(job_is_kept), PB_SLOT_STATES * PB_SLOT_EVENTS);
}
END_TEST

static void process_is_known(enum pb_slot_state state, enum pb_slot_event event,
                             struct pb_slot_cell cell)
{
    bool before = has[state].process, after = has[cell.next].process;
    ASSERT(starts_process(cell.action) == (!before && after));
    ASSERT((before && is_end_of_process(event)) == (before && !after));
    ASSERT(before || !is_end_of_process(event) || cell.action == PB_SLOT_IGNORE);
    ASSERT(before || (cell.action != PB_SLOT_DO_KILL && cell.action != PB_SLOT_DO_CANCEL &&
                      cell.action != PB_SLOT_DO_LET_GO && cell.action != PB_SLOT_DO_END_KILL &&
                      cell.action != PB_SLOT_DO_FAIL_KILL && cell.action != PB_SLOT_DO_RENEW));
}

START_TEST(a_process_comes_with_a_start_and_goes_with_its_end)
{
    (void)walk(process_is_known);
}
END_TEST

static void words_fit(enum pb_slot_state state, enum pb_slot_event event, struct pb_slot_cell cell)
{
    bool listened_to = has[state].job && has[state].process && state != PB_SLOT_RENEWING;
    if (is_word_of_worker(event))
        ASSERT(listened_to == (cell.action != PB_SLOT_IGNORE));
    if (event == PB_SLOT_ON_DONE && listened_to)
        ASSERT(cell.action == PB_SLOT_DO_SUCCEED);
    ASSERT((cell.action == PB_SLOT_DO_RENEW) ==
           (event == PB_SLOT_ON_DEVICE && state == PB_SLOT_RUNNING));
    /* After SIGKILL nothing is left that could take a job. */
    if (state == PB_SLOT_KILLED || state == PB_SLOT_RENEWING || state == PB_SLOT_LEAVING)
        ASSERT(cell.next != PB_SLOT_IDLE && cell.next != PB_SLOT_RUNNING);
    if (event == PB_SLOT_ON_LOST && listened_to)
        ASSERT(cell.next != PB_SLOT_IDLE);
    if (event == PB_SLOT_ON_BREACH && has[state].process)
        ASSERT(cell.next != PB_SLOT_IDLE && cell.next != PB_SLOT_RUNNING &&
               cell.next != PB_SLOT_STOPPING);
}

START_TEST(a_worker_is_listened_to_while_it_has_the_job)
{
    (void)walk(words_fit);
}
END_TEST

static void end_can_be_had(enum pb_slot_state state, enum pb_slot_event event,
                           struct pb_slot_cell cell)
{
    enum pb_slot_state at = state;
    if (has[state].job && (event == PB_SLOT_ON_STOP || event == PB_SLOT_ON_KILL))
        ASSERT(!has[cell.next].job || cell.next == PB_SLOT_STOPPING || cell.next == PB_SLOT_KILLED);
    for (int i = 0; i < 3; i++) {
        at = pb_slot_cell(at, PB_SLOT_ON_KILL).next;
        at = pb_slot_cell(at, PB_SLOT_ON_GONE).next;
    }
    ASSERT(at == PB_SLOT_EMPTY);
    if (event == PB_SLOT_ON_START)
        ASSERT((state == PB_SLOT_EMPTY) == (cell.action == PB_SLOT_DO_START));
}

START_TEST(every_state_can_be_ended)
{
    (void)walk(end_can_be_had);
}
END_TEST

/* --- a slot with a process ------------------------------------------------------------------*/

#define HEAD "{\"event\":\"failed\",\"job\":\"" JOB "\",\"error\":{\"code\":\""
#define JOB  "20261121-081530-4f2a"

static const char *script; /* the worker's reactions to its commands, one letter a command */

static uv_loop_t loop;
static uv_timer_t timer;
static struct pb_config config;
static struct pb_worker_slot *slot;
static struct pb_run_over over;
static bool runs_next; /* when a run is over */
static bool permits;   /* runs wait for a permit */
static bool live;      /* runs of scenes whose lines still arrive */
static int n_permits;
static int n_over, n_starts, n_retries, n_gone;
static char devices[100]; /* requested devices, run by run */

/* The worker's own descriptors are there in a child of it. */
static bool forks_well(void)
{
    int fds[8], status = 0;
    struct stat null, st;
    bool same = stat("/dev/null", &null) == 0;
    for (int i = 0; i < 8; i++)
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    pid_t pid = fork();
    for (int i = 0; i < 8 && pid == 0; i++)
        same = same && fstat(fds[i], &st) == 0 && st.st_rdev == null.st_rdev;
    if (pid == 0)
        _exit(same ? 0 : 1);
    return waitpid(pid, &status, 0) == pid && status == 0;
}

static void answer(char what, const char *command)
{
    static const char failed[] = HEAD "%s\",\"message\":\"m\",\"hint\":\"h\"}}\n";
    if (strstr(command, "\"cancel\"") != NULL) {
        (void)printf(failed, "job.dismissed");
        return;
    }
    const char *device = strstr(command, "\"device\":\"");
    (void)fprintf(stderr, "%c", device != NULL ? device[10] : '-');
    (void)fputs("\n", stderr);
    if (what == 'c' || (what == 'f' && !forks_well()))
        abort();
    if (what == 'k')
        (void)kill(getpid(), SIGKILL);
    if (what == 'p')
        (void)printf("{\"event\":\"permit\",\"job\":\"" JOB "\",\"epoch\":7}\n");
    if (what == 'g')
        (void)printf(failed,
                     strstr(command, "\"granted\":true") ? "input.damaged" : "output.write");
    if (what == 'l')
        (void)printf(failed, "device.lost");
    if (what == 'i' || what == 'f')
        (void)printf(failed, "input.damaged");
    if (what == 'm') /* lines of its scene are missing, now and later */
        for (int i = 0; i < 2; i++, (void)fflush(stdout), (void)usleep(20000))
            (void)printf(
                "{\"event\":\"progress\",\"job\":\"" JOB
                "\",\"stage\":\"compute\",\"tiles_total\":1,\"tiles_done\":0,\"bytes_read\":0,"
                "\"bytes_written\":0,\"elapsed_ms\":0,\"waits\":true}\n");
    if (what == 'n') /* nonsense */
        (void)printf("{\"event\":\"thanks\",\"job\":\"" JOB "\"}\n");
}

/* A worker: "wait" does nothing, and 'w' not even on cancel. */
static int act_worker(void)
{
    static char text[100000];
    (void)printf("\n");
    (void)fflush(stdout);
    for (const char *at = script; fgets(text, sizeof text, stdin) != NULL;) {
        if (*at == 'w')
            continue;
        answer(*at, text);
        (void)fflush(stdout);
        at += *at != '\0' && at[1] != '\0';
    }
    return 0;
}

static int n_news;

static void on_news(void *user, int number, const struct pb_job *job, bool at_once)
{
    (void)user, (void)number, (void)job, (void)at_once;
    n_news++;
}

static void on_device(void *user, const char *device, const char *why)
{
    (void)user, (void)device, (void)why;
}

static void on_permit(void *user, int number)
{
    (void)user;
    ck_assert_int_eq(number, 0);
    ck_assert(pb_worker_slot_wants_permit(slot));
    n_permits++;
}

static void on_start(void *user, int number)
{
    (void)user, (void)number;
    n_starts++;
}

static void on_retry(void *user, int number, const struct pb_job *job, enum pb_device_try which)
{
    (void)user, (void)number, (void)job, (void)which;
    n_retries++;
}

static void on_clear(void *user, int number, const char *products)
{
    (void)user, (void)number;
    ck_assert_str_eq(products, "/p");
    pb_worker_slot_cleared(slot);
}

static void run(void);

static void on_over(void *user, int number, struct pb_run_over *ended)
{
    (void)user, (void)number;
    pb_job_fini(&over.job);
    over = *ended;
    n_over++;
    if (runs_next)
        run();
    runs_next = false;
}

static void on_gone(void *user, int number, int pid, bool hung)
{
    (void)user, (void)number, (void)pid, (void)hung;
    n_gone++;
}

static void on_say(void *user, int pid, enum pb_log_level level, const char *text)
{
    (void)user, (void)pid;
    if (level == PB_LOG_INFO && strlen(text) == 1)
        (void)strcat(devices, text);
}

static void on_tick(uv_timer_t *handle)
{
    (void)handle;
    pb_worker_slot_tick(slot, (int64_t)(uv_hrtime() / 1000000));
}

static struct pb_worker_slot_owner owner;

static void start(const char *what)
{
    struct pb_err err = {0};
    script = what;
    (void)uv_loop_init(&loop);
    (void)uv_timer_init(&loop, &timer);
    (void)uv_timer_start(&timer, on_tick, 20, 20);
    config.text = (char *)(uintptr_t) "text";
    config.path = (char *)(uintptr_t) "path";
    config.service.max_attempts = 2;
    owner = (struct pb_worker_slot_owner){.loop = &loop,
                                          .program = {.main = act_worker},
                                          .config = &config,
                                          .on_news = on_news,
                                          .on_device = on_device,
                                          .on_permit = on_permit,
                                          .on_start = on_start,
                                          .on_retry = on_retry,
                                          .on_clear = on_clear,
                                          .on_over = on_over,
                                          .on_gone = on_gone,
                                          .on_say = on_say};
    slot = pb_worker_slot_create(&owner, 0);
    ck_assert_ptr_nonnull(slot);
    ck_assert_int_eq(pb_worker_slot_start(slot, &err), 0);
}

static void run(void)
{
    struct pb_job job;
    struct pb_run_how how = {.products = "/p", .permit = permits, .live = live};
    pb_job_init(&job);
    job.epoch = 7;
    (void)strcpy(job.id, JOB);
    (void)strcpy(job.pipeline, "p");
    (void)strcpy(job.scene, "s");
    (void)pb_scene_manifest_set_input(&job.manifest, "/in.tif");
    job.attempts = 1;
    ck_assert(pb_worker_slot_is_idle(slot));
    pb_worker_slot_run(slot, &job, &how);
}

static void until_over(void)
{
    int before = n_over;
    while (n_over == before)
        (void)uv_run(&loop, UV_RUN_ONCE);
}

static void until_empty(void)
{
    while (!pb_worker_slot_is_empty(slot))
        (void)uv_run(&loop, UV_RUN_ONCE);
}

static void finish(void)
{
    pb_worker_slot_destroy(slot);
    pb_job_fini(&over.job);
    memset(&over.job, 0, sizeof over.job);
    uv_close((uv_handle_t *)&timer, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}

START_TEST(input_error_keeps_the_worker_for_the_next_job)
{
    start("i");
    for (int i = 0; i < 2; i++) {
        run();
        until_over();
        ck_assert_int_eq(over.end, PB_RUN_FAILED);
        ck_assert_str_eq(over.job.error.code, "input.damaged");
    }
    ck_assert_int_eq(n_starts, 1);
    pb_worker_slot_leave(slot, 1000);
    until_empty();
    ck_assert_int_eq(n_gone, 1);
    finish();
}
END_TEST

START_TEST(a_job_that_was_told_ahead_is_not_told_again)
{
    struct pb_run_how how = {.products = "/p"};
    start("i");
    run();
    pb_worker_slot_tell_next(slot, pb_worker_slot_job(slot), &how); /* the same again */
    pb_worker_slot_tell_next(slot, pb_worker_slot_job(slot), &how); /* only one can wait */
    runs_next = true;
    while (n_over < 2)
        (void)uv_run(&loop, UV_RUN_ONCE);
    ck_assert_str_eq(over.job.error.code, "input.damaged");
    pb_worker_slot_leave(slot, 1000);
    until_empty();
    ck_assert_int_eq(n_over, 2);
    ck_assert_str_eq(devices, "--"); /* two commands */
    finish();
}
END_TEST

START_TEST(file_opened_by_a_forked_worker_is_in_its_children)
{
    start("f");
    run();
    until_over();
    ck_assert_msg(over.end == PB_RUN_FAILED, "%s", over.job.error.message);
    finish();
}
END_TEST

START_TEST(a_crash_and_a_kill_are_told_apart)
{
    start("c");
    run();
    until_over();
    ck_assert(over.end == PB_RUN_CRASHED && over.died);
    ck_assert_str_eq(over.job.error.code, "job.crashed");
    ck_assert_ptr_nonnull(strstr(over.job.error.message, "signal 6"));
    ck_assert(pb_worker_slot_is_empty(slot));
    finish();
    start("k");
    run();
    until_over();
    ck_assert(over.end == PB_RUN_FAILED && over.died);
    ck_assert_str_eq(over.job.error.code, "memory");
    finish();
}
END_TEST

START_TEST(a_lost_device_is_tried_afresh_and_then_left)
{
    start("l");
    run();
    until_over();
    ck_assert_int_eq(n_starts, 3);
    ck_assert_int_eq(n_retries, 2);
    ck_assert_str_eq(over.job.error.code, "device.lost");
    until_empty(); /* its output was read to its end */
    ck_assert_str_eq(devices, "--c");
    finish();
}
END_TEST

START_TEST(a_worker_that_says_what_none_says_is_ended)
{
    start("n");
    run();
    until_over();
    ck_assert_int_eq(over.end, PB_RUN_CRASHED);
    finish();
}
END_TEST

START_TEST(a_cancel_is_obeyed_or_enforced)
{
    start("-");
    run();
    pb_worker_slot_end(slot, PB_ENDING_CANCEL, 60000);
    until_over();
    ck_assert(over.end == PB_RUN_ENDED && over.ending == PB_ENDING_CANCEL);
    ck_assert(pb_worker_slot_is_idle(slot));
    finish();
    start("w");
    run();
    pb_worker_slot_end(slot, PB_ENDING_PUT_BACK, 60000);
    pb_worker_slot_end(slot, PB_ENDING_CANCEL, 1); /* a person counts more, and sooner */
    until_over();
    ck_assert(over.end == PB_RUN_ENDED && over.ending == PB_ENDING_CANCEL);
    until_empty();
    finish();
}
END_TEST

START_TEST(a_run_that_takes_too_long_is_ended)
{
    config.limits.job_time_ms = 30;
    start("-");
    run();
    until_over();
    ck_assert_str_eq(over.job.error.code, "input.limit");
    finish();
    config.limits.job_time_ms = 0;
    config.service.stall_ms = 30;
    start("w");
    run();
    until_over();
    ck_assert_str_eq(over.job.error.code, "job.stalled");
    finish();
}
END_TEST

static int64_t now_ms(void)
{
    return (int64_t)(uv_hrtime() / 1000000);
}

/* Starts a run, and waits until it requests its permit. */
static void run_to_permit(const char *what)
{
    permits = true;
    start(what);
    run();
    for (const int before = n_permits; n_permits == before;)
        (void)uv_run(&loop, UV_RUN_ONCE);
}

START_TEST(test_no_time_limit_while_a_permit_is_awaited)
{
    const int64_t hour_ms = 3600000;
    config.limits.job_time_ms = config.service.stall_ms = hour_ms;
    run_to_permit("pg");
    pb_worker_slot_tick(slot, now_ms() + 2 * hour_ms);
    ck_assert_int_eq(pb_worker_slot_ending(slot), PB_ENDING_NONE);
    pb_worker_slot_permit(slot, true);
    ck_assert(!pb_worker_slot_wants_permit(slot));
    until_over();
    ck_assert_str_eq(over.job.error.code, "input.damaged");
    finish();
    config.limits.job_time_ms = 0;
    run_to_permit("pw"); /* it hangs with its permit */
    pb_worker_slot_permit(slot, true);
    pb_worker_slot_tick(slot, now_ms() + 2 * hour_ms);
    until_over();
    ck_assert_str_eq(over.job.error.code, "job.stalled");
    finish();
}
END_TEST

/* A wait for lines does not count as time of a run; the claimed wait of a worker of a file does. */
START_TEST(test_time_of_a_run_begins_after_its_lines)
{
    live = _i == 1;
    start("m");
    run();
    const int64_t began_ms = pb_worker_slot_began_ms(slot);
    for (const int before = n_news; n_news < before + 2;)
        (void)uv_run(&loop, UV_RUN_ONCE);
    ck_assert_int_eq(pb_worker_slot_began_ms(slot) > began_ms, live);
    pb_worker_slot_end(slot, PB_ENDING_CANCEL, 60000);
    until_over();
    finish();
}
END_TEST

START_TEST(test_refused_run_fails_and_its_worker_stays)
{
    run_to_permit("pg");
    pb_worker_slot_permit(slot, false);
    pb_worker_slot_permit(slot, true); /* there is one answer */
    until_over();
    ck_assert_int_eq(over.end, PB_RUN_FAILED);
    ck_assert_str_eq(over.job.error.code, "output.write");
    ck_assert(pb_worker_slot_is_idle(slot));
    finish();
}
END_TEST

START_TEST(test_run_is_cancelled_while_it_awaits_a_permit)
{
    run_to_permit("p-");
    pb_worker_slot_end(slot, PB_ENDING_CANCEL, 60000);
    ck_assert(!pb_worker_slot_wants_permit(slot));
    pb_worker_slot_permit(slot, true); /* too late */
    until_over();
    ck_assert(over.end == PB_RUN_ENDED && over.ending == PB_ENDING_CANCEL);
    finish();
}
END_TEST

START_TEST(test_permit_that_was_not_requested_is_a_breach)
{
    start("p");
    run();
    until_over();
    ck_assert_int_eq(over.end, PB_RUN_CRASHED);
    ck_assert_int_eq(n_permits, 0);
    finish();
}
END_TEST

START_TEST(a_program_that_cannot_run_is_said)
{
    struct pb_err err = {0};
    start("i");
    pb_worker_slot_leave(slot, 1000);
    until_empty();
    owner.program.path = "/no/such/program";
    ck_assert_int_lt(pb_worker_slot_start(slot, &err), 0);
    ck_assert_msg(strstr(err.msg, "No such file") != NULL, "%s", err.msg);
    ck_assert(pb_worker_slot_is_empty(slot));
    owner.program.path = "/bin/false"; /* runs, and prints nothing */
    ck_assert_int_eq(pb_worker_slot_start(slot, &err), 0);
    run();
    until_over();
    ck_assert_str_eq(over.job.error.code, "system");
    ck_assert_ptr_nonnull(strstr(over.job.error.message, "before it wrote a line"));
    finish();
}
END_TEST

START_TEST(worker_killed_at_its_start_has_its_signal_named)
{
    char path[] = "/tmp/pb_test_slot_XXXXXX";
    static const char text[] = "#!/bin/sh\nkill -KILL $$\n";
    struct pb_err err = {0};
    int fd = mkstemp(path);
    ck_assert_int_eq(write(fd, text, sizeof text - 1), sizeof text - 1);
    ck_assert_int_eq(fchmod(fd, 0700), 0);
    (void)close(fd);
    start("i");
    pb_worker_slot_leave(slot, 1000);
    until_empty();
    owner.program.path = path;
    ck_assert_int_eq(pb_worker_slot_start(slot, &err), 0);
    run();
    until_over();
    ck_assert_str_eq(over.job.error.code, "memory");
    ck_assert_ptr_nonnull(strstr(over.job.error.message, "signal 9 (Killed) before it wrote"));
    ck_assert_ptr_null(strstr(over.job.error.message, "can its program run"));
    (void)unlink(path);
    finish();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("worker_slot");
    TCase *tests = tcase_create("worker_slot");
    (void)signal(SIGPIPE, SIG_IGN);
    tcase_add_test(tests, a_job_comes_with_run_and_goes_with_one_report);
    tcase_add_test(tests, a_process_comes_with_a_start_and_goes_with_its_end);
    tcase_add_test(tests, a_worker_is_listened_to_while_it_has_the_job);
    tcase_add_test(tests, every_state_can_be_ended);
    tcase_add_test(tests, input_error_keeps_the_worker_for_the_next_job);
    tcase_add_test(tests, a_job_that_was_told_ahead_is_not_told_again);
    tcase_add_test(tests, file_opened_by_a_forked_worker_is_in_its_children);
    tcase_add_test(tests, a_crash_and_a_kill_are_told_apart);
    tcase_add_test(tests, a_lost_device_is_tried_afresh_and_then_left);
    tcase_add_test(tests, a_worker_that_says_what_none_says_is_ended);
    tcase_add_test(tests, a_cancel_is_obeyed_or_enforced);
    tcase_add_test(tests, a_run_that_takes_too_long_is_ended);
    tcase_add_test(tests, test_no_time_limit_while_a_permit_is_awaited);
    tcase_add_loop_test(tests, test_time_of_a_run_begins_after_its_lines, 0, 2);
    tcase_add_test(tests, test_refused_run_fails_and_its_worker_stays);
    tcase_add_test(tests, test_run_is_cancelled_while_it_awaits_a_permit);
    tcase_add_test(tests, test_permit_that_was_not_requested_is_a_breach);
    tcase_add_test(tests, a_program_that_cannot_run_is_said);
    tcase_add_test(tests, worker_killed_at_its_start_has_its_signal_named);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
