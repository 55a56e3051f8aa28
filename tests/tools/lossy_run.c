/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * `pushbroom` with a device that fails when a test wants it, for machines without one: the linker
 * replaces functions of the pipeline by the ones here (--wrap), all else is the product's. The n-th
 * run ends with the n-th error code of $LOSSY_CODES ("-": no error), later runs succeed. The owner
 * of the device computes on the CPU; the requested device is written to stderr, a line "LOSSY pid
 * device input" a run; the device is "stream" where kernels start and end. */
#include "pipeline/device/device.h"
#include "pipeline/run/run.h"
#include "pipeline/scene/scene.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int __real_pb_run_create(const struct pb_run_options *options, struct pb_err *err,
                         struct pb_run **out_run);
int __wrap_pb_run_create(const struct pb_run_options *options, struct pb_err *err,
                         struct pb_run **out_run);
int __real_pb_run_wait(struct pb_run *run, int64_t timeout_ms, struct pb_err *err);
int __wrap_pb_run_wait(struct pb_run *run, int64_t timeout_ms, struct pb_err *err);
int __wrap_pb_device_choose(const struct pb_compute_config *compute, int32_t *out_index,
                            char why[200], struct pb_err *err);
int __wrap_pb_device_nodes_count(void);

/* Answers like a host with a GPU. */
int __wrap_pb_device_nodes_count(void)
{
    return 1;
}

int __wrap_pb_device_choose(const struct pb_compute_config *compute, int32_t *out_index,
                            char why[200], struct pb_err *err)
{
    (void)compute, (void)err;
    *out_index = -1;
    why[0] = '\0';
    return 0;
}

/* Runs so far, of all processes: they are forks of the one that makes this. */
static atomic_int *count;

__attribute__((constructor)) static void share_count(void)
{
    count = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (count == MAP_FAILED)
        abort();
}

static enum pb_code outcome; /* error code of the current run */

static enum pb_code code_at(const char *codes, int at)
{
    for (; at > 0 && codes != NULL; at--)
        codes = strchr(codes, ',') ? strchr(codes, ',') + 1 : NULL;
    for (int i = PB_OK + 1; codes != NULL && i < PB_E_COUNT; i++) {
        const char *id = pb_code_id((enum pb_code)i);
        if (strncmp(codes, id, strlen(id)) == 0 && strchr(",", codes[strlen(id)]) != NULL)
            return (enum pb_code)i;
    }
    return PB_OK;
}

int __wrap_pb_run_create(const struct pb_run_options *options, struct pb_err *err,
                         struct pb_run **out_run)
{
    const char *name = strrchr(options->input->path, '/');
    int before = atomic_fetch_add(count, 1);
    (void)fprintf(stderr, "LOSSY %d %s %s\n", (int)getpid(),
                  options->stream_why       ? "stream"
                  : options->remote != NULL ? "gpu"
                                            : "cpu",
                  name ? name + 1 : options->input->path);
    if (getenv("LOSSY_HANG") != NULL) /* like a driver */
        (void)sleep(600);
    outcome = code_at(getenv("LOSSY_CODES"), before);
    return __real_pb_run_create(options, err, out_run);
}

int __wrap_pb_run_wait(struct pb_run *run, int64_t timeout_ms, struct pb_err *err)
{
    if (outcome == PB_OK)
        return __real_pb_run_wait(run, timeout_ms, err);
    struct pb_err ignored = {0};
    pb_run_abort(run);
    (void)__real_pb_run_wait(run, -1, &ignored);
    return pb_fail(err, outcome, "the GPU failed while computing: unspecified launch failure");
}
