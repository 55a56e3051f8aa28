/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SERVICE_TIME_H
#define PB_SERVICE_TIME_H
/* Service time: milliseconds that the machine was up since the job store was made. No setting of
 * the wall clock changes it. It is CLOCK_BOOTTIME, summed over the boots of the machine in the job
 * store, so it continues while the service is stopped. The time that the machine is switched off
 * does not count: after a boot it is indistinguishable from a step of the wall clock. Where /proc
 * does not have the id of the boot, only the time that the service runs counts. Thread: any. */
#include "config/base/err.h"

#include <stdint.h>

#define PB_SERVICE_BOOT_BYTES 48

/* Service time at a moment of a boot. */
struct pb_service_time {
    char boot[PB_SERVICE_BOOT_BYTES]; /* the kernel's id of the boot; "" = not known */
    int64_t boot_ms;                  /* CLOCK_BOOTTIME then */
    int64_t total_ms;                 /* service time then */
};

/* The boot that the machine is in, and its CLOCK_BOOTTIME; total_ms is 0. */
void pb_service_time_read(struct pb_service_time *out);
/* The service time now. now: as read. */
int64_t pb_service_time_at(const struct pb_service_time *saved, const struct pb_service_time *now);

struct pb_job_store;
/* The service time of a connected store. */
int64_t pb_job_store_time_ms(const struct pb_job_store *store);
/* Stores it, so that the next boot continues from there. 0 or a negative errno. */
int pb_job_store_save_time(struct pb_job_store *store, struct pb_err *err);
#endif
