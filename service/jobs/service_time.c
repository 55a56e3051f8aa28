/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/service_time.h"

#include "service/jobs/job_store_sql.h"

#include <errno.h>
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
    sqlite3_stmt *s = pb_job_store_prepare(store, "service time",
                                           "SELECT boot, boot_ms, total_ms FROM service_time", err);
    if (s == NULL)
        return -EIO;
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) {
        pb_job_read_text(s, 0, out->boot, sizeof out->boot);
        out->boot_ms = sqlite3_column_int64(s, 1);
        out->total_ms = sqlite3_column_int64(s, 2);
    }
    int result = rc == SQLITE_ROW || rc == SQLITE_DONE
                     ? rc == SQLITE_ROW
                     : pb_job_store_fail(store, "service time", err);
    (void)sqlite3_finalize(s);
    return result;
}

int pb_service_time_load(struct pb_job_store *store, struct pb_err *err)
{
    struct pb_service_time saved;
    store->time = (struct pb_service_time){.boot = ""}; /* an unknown time is not saved */
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
    sqlite3_stmt *s = pb_job_store_prepare(
        store, "service time",
        "INSERT OR REPLACE INTO service_time (id, boot, boot_ms, total_ms) VALUES (1, ?1, ?2, ?3)",
        &change->err);
    if (s == NULL)
        return -EIO;
    (void)sqlite3_bind_text(s, 1, now.boot, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(s, 2, now.boot_ms);
    (void)sqlite3_bind_int64(s, 3, pb_job_store_time_ms(store));
    int rc =
        sqlite3_step(s) == SQLITE_DONE ? 0 : pb_job_store_fail(store, "service time", &change->err);
    (void)sqlite3_finalize(s);
    return rc;
}

int pb_job_store_save_time(struct pb_job_store *store, struct pb_err *err)
{
    struct pb_job_change change = {.apply = apply_save, .bulk = true};
    int rc = pb_job_store_commit(store, &change, err);
    return rc < 0 ? rc : 0;
}
