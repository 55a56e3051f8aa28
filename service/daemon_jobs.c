/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What needs the job store: the jobs of the last run, the runner and the watcher. */
#include "service/daemon_parts.h"

#include "service/clock.h"
#include "service/log.h"

#define SELF         "/proc/self/exe"
#define TRY_AGAIN_MS 4000

static void on_change(void *user, const struct pb_job *job)
{
    struct pb_daemon *daemon = user;
    if (daemon->methods.status == NULL)
        return;
    pb_methods_publish(&daemon->methods); /* who hears of the event finds it in the metrics */
    pb_status_tell(daemon->methods.status, job);
}

static void on_hold(void *user, const struct pb_job *job)
{
    struct pb_daemon *daemon = user;
    if (daemon->methods.status != NULL)
        pb_status_hold(daemon->methods.status, job);
}

static int on_take(void *user, const struct pb_settle_file *file, struct pb_err *err)
{
    struct pb_daemon *daemon = user;
    struct pb_job job;
    int rc = pb_intake_claim(&daemon->intake, file, err, &job);
    if (rc != 0)
        return rc;
    daemon->metrics.jobs[PB_JOB_ACCEPTED]++;
    pb_log(PB_LOG_NOTICE, "job %s: %s taken from the inbox (%llu bytes)", job.id, job.name,
           (unsigned long long)file->size);
    on_change(daemon, &job);
    pb_job_fini(&job);
    pb_runner_kick(daemon->methods.runner);
    return 0;
}

static int open_store(struct pb_daemon *daemon, struct pb_err *err)
{
    char moved[PB_FILES_PATH_BYTES];
    int rc = pb_job_store_connect(daemon->store, err, moved);
    if (moved[0] != '\0')
        pb_log(PB_LOG_ERROR,
               "the job store was damaged and lies at %s now; a new one was started. Inputs in "
               "work/ are taken up again; the list of old jobs is lost",
               moved);
    if (rc != 0)
        return rc;
    rc = pb_job_store_recover(daemon->store, pb_clock_wall_ms(), err);
    if (rc > 0)
        pb_log(PB_LOG_NOTICE, "%d job%s of the last run will run again", rc, rc == 1 ? "" : "s");
    if (rc < 0) {
        pb_job_store_disconnect(daemon->store);
        return rc;
    }
    pb_job_store_admit_readers(daemon->store);
    (void)pb_intake_adopt(&daemon->intake, true, &daemon->troubles);
    (void)pb_job_store_prune(daemon->store, daemon->config->service.keep_jobs, NULL);
    return 0;
}

static int start_work(struct pb_daemon *daemon, struct pb_err *err)
{
    struct pb_methods *methods = &daemon->methods;
    struct pb_runner_options runner = {
        .loop = &daemon->loop,
        .store = daemon->store,
        .dirs = &daemon->dirs,
        .config = daemon->config,
        .worker = daemon->options->worker ? daemon->options->worker : SELF,
        .metrics = &daemon->metrics,
        .troubles = &daemon->troubles,
        .on_change = on_change,
        .on_hold = on_hold,
        .user = daemon,
    };
    struct pb_watch_options watch = {&daemon->loop,
                                     daemon->dirs.inbox,
                                     daemon->config->service.settle_ms,
                                     daemon->config->service.rescan_ms,
                                     on_take,
                                     daemon,
                                     &daemon->troubles};
    int rc = methods->runner ? 0 : pb_runner_create(&runner, err, &methods->runner);
    rc = rc ? rc : pb_watch_start(&watch, err, &methods->watch);
    if (rc == 0)
        pb_runner_set_config(methods->runner, daemon->config);
    return rc;
}

void pb_daemon_open_jobs(struct pb_daemon *daemon)
{
    struct pb_err err = {0};
    int64_t now = pb_clock_mono_ms();
    if (daemon->methods.watch != NULL || daemon->methods.stopping || now < daemon->open_at_ms)
        return;
    int rc = daemon->store_open ? 0 : open_store(daemon, &err);
    daemon->store_open = rc == 0;
    rc = rc ? rc : start_work(daemon, &err);
    daemon->open_at_ms = now + TRY_AGAIN_MS;
    if (rc == 0)
        pb_trouble_clear(&daemon->troubles, "store");
    else
        pb_trouble_raise(&daemon->troubles, "store", err.code, err.msg);
}

void pb_daemon_sweep_work(struct pb_daemon *daemon)
{
    int64_t now = pb_clock_mono_ms();
    if (now < daemon->sweep_at_ms || daemon->methods.stopping || daemon->methods.watch == NULL ||
        !pb_intake_has_left(&daemon->intake, &daemon->troubles))
        return;
    if (pb_intake_adopt(&daemon->intake, false, &daemon->troubles) > 0)
        pb_runner_kick(daemon->methods.runner);
    daemon->sweep_at_ms = pb_clock_mono_ms() + TRY_AGAIN_MS;
}
