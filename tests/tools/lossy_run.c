/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * `pushbroom` with a device that fails when a test wants it, for machines without one: the linker
 * puts functions of the pipeline behind the ones here (--wrap), all else is the product's. The n-th
 * run ends with the n-th error code of $LOSSY_CODES ("-": no error; a "!" behind the code: and
 * something stays on the GPU that does not end), whatever follows runs through. All is computed on
 * the CPU, in the processes that a GPU has; what was asked for goes to stderr, a line
 * "LOSSY pid n device input" a run, the n-th of its process; the device is "stream" where kernels
 * are to come and go. */
#include "pipeline/device/device.h"
#include "pipeline/device/device_nodes.h"
#include "pipeline/run/run.h"

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
int __wrap_pb_run_device(const struct pb_compute_config *compute, char device[64], char why[200],
                         struct pb_err *err);
bool __wrap_pb_device_nodes_exist(void);

/* As where there are GPUs. */
bool __wrap_pb_device_nodes_exist(void)
{
    return true;
}

int __wrap_pb_run_device(const struct pb_compute_config *compute, char device[64], char why[200],
                         struct pb_err *err)
{
    (void)err;
    (void)snprintf(device, 64, "%s", compute->device == PB_DEVICE_CPU ? "cpu" : "cuda:0");
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

static enum pb_code outcome; /* of the current run */
static bool stays;           /* something on the GPU, behind it */

static enum pb_code code_at(const char *codes, int at)
{
    for (; at > 0 && codes != NULL; at--)
        codes = strchr(codes, ',') ? strchr(codes, ',') + 1 : NULL;
    for (int i = PB_OK + 1; codes != NULL && i < PB_E_COUNT; i++) {
        const char *id = pb_code_id((enum pb_code)i);
        if (strncmp(codes, id, strlen(id)) != 0 || strchr(",!", codes[strlen(id)]) == NULL)
            continue;
        stays = codes[strlen(id)] == '!';
        return (enum pb_code)i;
    }
    return PB_OK;
}

int __wrap_pb_run_create(const struct pb_run_options *options, struct pb_err *err,
                         struct pb_run **out_run)
{
    static const char *const devices[] = {"auto", "cpu", "cuda"};
    static struct pb_config config;
    static int runs;
    struct pb_run_options mine = *options;
    const char *name = strrchr(options->input, '/');
    int before = atomic_fetch_add(count, 1);
    (void)fprintf(stderr, "LOSSY %d %d %s %s\n", (int)getpid(), ++runs,
                  options->stream_why ? "stream" : devices[options->config->compute.device],
                  name ? name + 1 : options->input);
    if (getenv("LOSSY_HANG") != NULL) /* as a driver may */
        (void)sleep(600);
    outcome = code_at(getenv("LOSSY_CODES"), before);
    config = *options->config;
    config.compute.device = PB_DEVICE_CPU;
    mine.config = &config;
    return __real_pb_run_create(&mine, err, out_run);
}

int __wrap_pb_run_wait(struct pb_run *run, int64_t timeout_ms, struct pb_err *err)
{
    if (outcome == PB_OK)
        return __real_pb_run_wait(run, timeout_ms, err);
    struct pb_err ignored = {0};
    pb_run_abort(run);
    (void)__real_pb_run_wait(run, -1, &ignored);
    if (stays)
        pb_device_leave_behind();
    return pb_fail(err, outcome, "the GPU failed while computing: unspecified launch failure");
}
