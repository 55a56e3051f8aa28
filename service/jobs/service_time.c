/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/service_time.h"

#include "service/jobs/sql_engine.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

void pb_service_time_read(struct pb_service_time *out)
{
    struct timespec now = {0};
    *out = (struct pb_service_time){.boot = ""};
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    out->boot_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out->boot, sizeof out->boot - 1) : 0;
    if (fd >= 0)
        (void)close(fd);
    out->boot[n > 0 ? n : 0] = '\0';
    out->boot[strcspn(out->boot, "\n")] = '\0';
}

int64_t pb_service_time_at(const struct pb_service_time *saved, const struct pb_service_time *now)
{
    int64_t passed_ms = 0;
    if (saved->boot[0] != '\0' && strcmp(saved->boot, now->boot) == 0)
        passed_ms = now->boot_ms - saved->boot_ms;
    else if (saved->boot[0] != '\0' && now->boot[0] != '\0')
        passed_ms = now->boot_ms; /* the time without power is unknown */
    return saved->total_ms + (passed_ms > 0 ? passed_ms : 0);
}

int64_t pb_job_store_time_ms(const struct pb_job_store *store)
{
    struct pb_service_time now;
    pb_service_time_read(&now);
    const int64_t passed_ms = now.boot_ms - store->time.boot_ms;
    return store->time.total_ms + (passed_ms > 0 ? passed_ms : 0);
}

/* Reads the saved time; all 0 if there is no row. Returns 1: a row, 0: no row, or a negative
 * errno. */
static int read_saved(struct pb_job_store *store, struct pb_err *err, struct pb_service_time *out)
{
    *out = (struct pb_service_time){.boot = ""};
    struct pb_sql_statement *s = pb_job_store_prepare(
        store, "service time", "SELECT boot, boot_ms, total_ms FROM service_time", err);
    int rc = pb_job_store_step(store, "service time", s, err);
    if (rc > 0) {
        pb_sql_read_text(s, 0, out->boot, sizeof out->boot);
        out->boot_ms = pb_sql_int(s, 1);
        out->total_ms = pb_sql_int(s, 2);
    }
    pb_sql_finalize(s);
    return rc;
}

int pb_service_time_load(struct pb_job_store *store, struct pb_err *err)
{
    struct pb_service_time saved;
    store->time = (struct pb_service_time){.boot = ""}; /* an unknown time is not saved */
    if (store->kind->read_time != NULL) {
        pb_service_time_read(&store->time);
        return store->kind->read_time(store, err, &store->time.total_ms);
    }
    int rc = read_saved(store, err, &saved);
    if (rc < 0)
        return rc;
    pb_service_time_read(&store->time);
    store->time.total_ms = pb_service_time_at(&saved, &store->time);
    if (rc == 0 || strcmp(saved.boot, store->time.boot) != 0)
        (void)pb_job_store_save_time(store,
                                     /* if this fails, the time is saved at the end of the service
                                      */
                                     NULL);
    return 0;
}

static int apply_save(struct pb_job_store *store, struct pb_job_change *change)
{
    struct pb_service_time now;
    pb_service_time_read(&now);
    struct pb_sql_statement *s = pb_job_store_prepare(
        store, "service time",
        "INSERT INTO service_time (id, boot, boot_ms, total_ms) VALUES (1, ?1, ?2, ?3)"
        " ON CONFLICT (id) DO UPDATE SET boot = ?1, boot_ms = ?2, total_ms = ?3",
        &change->err);
    pb_sql_set_text(s, 1, now.boot);
    pb_sql_set_int(s, 2, now.boot_ms);
    pb_sql_set_int(s, 3, pb_job_store_time_ms(store));
    return pb_job_store_run(store, "service time", s, &change->err);
}

int pb_job_store_save_time(struct pb_job_store *store, struct pb_err *err)
{
    struct pb_job_change change = {.apply = apply_save, .bulk = true};
    if (store->kind->read_time != NULL)
        return 0;
    int rc = pb_job_store_commit(store, &change, err);
    return rc < 0 ? rc : 0;
}
