/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/config.h"
#include "config/yaml/report.h"
#include "pipeline/product/product_kinds.h"
#include "service/daemon/daemon.h"

#include <inttypes.h>
#include <stdio.h>

#define MIB           ((uint64_t)1 << 20)
#define SERVICE_BYTES (256 * MIB) /* the service itself, its store and clients */
#define JOB_BYTES                                                                                  \
    (512 * MIB) /* memory of a job in addition to its tiles: libraries, codecs, products */

/* Maximum number of jobs at a time; jobs that publish and an express job (express.h) are
 * additional. */
static uint64_t jobs_at_most(const struct pb_config *config)
{
    bool express = config->service.express_ms > 0 && config->compute.device != PB_DEVICE_CUDA;
    return (uint64_t)config->service.parallel_jobs +
           (uint64_t)pb_publishing_jobs(&config->service) + express;
}

int pb_daemon_drop_in(const char *path)
{
    struct pb_err_list errors;
    struct pb_config *config = NULL;
    char text[1200];
    int code = PB_DAEMON_EXIT_CONFIG;
    if (pb_config_load(path, &pb_products, &errors, &config) == 0) {
        uint64_t jobs = jobs_at_most(config);
        uint64_t bytes = SERVICE_BYTES + jobs * (config->compute.memory_bytes +
                                                 config->limits.max_block_bytes + JOB_BYTES);
        (void)printf("# From %s: 256M for the service, and for each of %" PRIu64
                     " jobs at most\n# (service.parallel_jobs, service.publishing_jobs, one more "
                     "for service.express)\n# compute.memory, limits.max_block_bytes and 512M.\n"
                     "[Service]\nMemoryMax=%" PRIu64 "M\n",
                     path, jobs, (bytes + MIB - 1) / MIB);
        code = PB_DAEMON_EXIT_OK;
    }
    for (size_t i = 0; i < errors.n; i++) {
        pb_err_text(&errors.err[i], text, sizeof text);
        (void)fprintf(stderr, "%s\n", text);
    }
    pb_config_destroy(config);
    return code;
}
