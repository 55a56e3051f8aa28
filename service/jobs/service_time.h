/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SERVICE_TIME_H
#define PB_SERVICE_TIME_H
/* Service time: milliseconds for which the machine was running since the job store was made. No
 * setting of the wall clock changes it. It is CLOCK_BOOTTIME, summed over the boots of the machine
 * in the job store, therefore it continues while the service is stopped. The time for which the
 * machine is switched off does not count: after a boot it is indistinguishable from a step of the
 * wall clock. If /proc does not have the id of the boot, only the time for which the service runs
 * counts. Thread: any. */
#include "config/base/err.h"

#include <stdint.h>

#define PB_SERVICE_BOOT_BYTES 48

/* Service time at a moment of a boot. */
struct pb_service_time {
    char boot[PB_SERVICE_BOOT_BYTES]; /* the kernel's id of the boot; "" = unknown */
    int64_t boot_ms;                  /* CLOCK_BOOTTIME at that moment */
    int64_t total_ms;                 /* service time at that moment */
};

/* Reads the id of the current boot and its CLOCK_BOOTTIME; total_ms is 0. */
void pb_service_time_read(struct pb_service_time *out);
/* Computes the service time now. now: from pb_service_time_read. */
int64_t pb_service_time_at(const struct pb_service_time *saved, const struct pb_service_time *now);

struct pb_job_store;
/* Returns the service time of a connected store. */
int64_t pb_job_store_time_ms(const struct pb_job_store *store);
/* Stores the service time, so that the next boot continues from there. Returns 0 or a negative
 * errno. */
int pb_job_store_save_time(struct pb_job_store *store, struct pb_err *err);
#endif
