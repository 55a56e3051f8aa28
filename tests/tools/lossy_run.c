/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * `pushbroom` with a device that fails when a test wants it, for machines without one: the linker
 * puts two functions of the pipeline behind the ones here (--wrap), all else is the product's. The
 * n-th run ends with the n-th error code of $LOSSY_CODES ("-": no error; a "!" behind the code: and
 * something stays on the GPU that does not end), whatever follows runs through. All is computed on
 * the CPU; what was asked for goes to the file $LOSSY_LOG, a line "pid n device input" a run, the
 * n-th since the program was executed; the device is "stream" where kernels are to come and go. */
#include "pipeline/device/device.h"
#include "pipeline/run/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int __real_pb_run_create(const struct pb_run_options *options, struct pb_err *err,
                         struct pb_run **out_run);
int __wrap_pb_run_create(const struct pb_run_options *options, struct pb_err *err,
                         struct pb_run **out_run);
int __real_pb_run_wait(struct pb_run *run, int64_t timeout_ms, struct pb_err *err);
int __wrap_pb_run_wait(struct pb_run *run, int64_t timeout_ms, struct pb_err *err);

bool __wrap_cli_compute_is_apart(const struct pb_config *config);

/* As where there are GPUs. */
bool __wrap_cli_compute_is_apart(const struct pb_config *config)
{
    (void)config;
    return false;
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
    const char *path = getenv("LOSSY_LOG");
    FILE *log = path ? fopen(path, "a+") : NULL;
    int before = 0;
    if (log == NULL)
        return pb_fail(err, PB_E_SYSTEM, "LOSSY_LOG: %s", strerror(errno));
    for (int c; (c = fgetc(log)) != EOF;)
        before += c == '\n';
    const char *name = strrchr(options->input, '/');
    (void)fprintf(log, "%d %d %s %s\n", (int)getpid(), ++runs,
                  options->stream_why ? "stream" : devices[options->config->compute.device],
                  name ? name + 1 : options->input);
    (void)fclose(log);
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
