/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/config.h"
#include "config/yaml/report.h"
#include "pipeline/device/device.h"
#include "pipeline/product/product_kinds.h"
#include "service/daemon/daemon.h"

#include <inttypes.h>
#include <stdio.h>

#define MIB           ((uint64_t)1 << 20)
#define SERVICE_BYTES (256 * MIB) /* the service itself, its store and clients */
#define JOB_BYTES                                                                                  \
    (512 * MIB) /* memory of a job in addition to its tiles: libraries, codecs, products */

struct jobs {
    uint64_t n;       /* maximum number of jobs at a time */
    uint64_t budgets; /* memory budgets that they have together */
};

/* Jobs that publish and an express job (express.h) are additional. Jobs that share a budget are as
 * many as the cores. */
static struct jobs jobs_at_most(const struct pb_config *config)
{
    const struct pb_compute_config *compute = &config->compute;
    const int32_t parallel = config->service.parallel_jobs;
    const bool express = config->service.express_ms > 0 && compute->device != PB_DEVICE_CUDA;
    const bool device = compute->device == PB_DEVICE_CUDA ||
                        (compute->device == PB_DEVICE_AUTO && pb_device_nodes_count() > 0);
    const uint64_t more = (uint64_t)pb_publishing_jobs(&config->service) + express;
    uint64_t n = (uint64_t)pb_device_jobs(&config->service);
    const uint64_t budgets = n;
    if (parallel == 0 && !device)
        n = pb_device_threads(compute->threads);
    return (struct jobs){n + more, budgets + more};
}

int pb_daemon_drop_in(const char *path)
{
    struct pb_err_list errors;
    struct pb_config *config = NULL;
    char text[1200];
    int code = PB_DAEMON_EXIT_CONFIG;
    if (pb_config_load(path, &pb_products, &errors, &config) == 0) {
        const struct jobs jobs = jobs_at_most(config);
        uint64_t bytes = SERVICE_BYTES + jobs.budgets * config->compute.memory_bytes +
                         jobs.n * (config->limits.max_block_bytes + JOB_BYTES);
        (void)printf("# From %s: 256M for the service, %" PRIu64
                     " times compute.memory, and for each of %" PRIu64
                     " jobs at most\n# (service.parallel_jobs, service.publishing_jobs, one more "
                     "for service.express)\n# limits.max_block_bytes and 512M.\n"
                     "[Service]\nMemoryMax=%" PRIu64 "M\n",
                     path, jobs.budgets, jobs.n, (bytes + MIB - 1) / MIB);
        code = PB_DAEMON_EXIT_OK;
    }
    for (size_t i = 0; i < errors.n; i++) {
        pb_err_text(&errors.err[i], text, sizeof text);
        (void)fprintf(stderr, "%s\n", text);
    }
    pb_config_destroy(config);
    return code;
}
