/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Exec and not a child: a child would leave the broken context's device memory held until its
 * parent ends, and signals and exit codes would have to be handed through.
 *
 * PUSHBROOM_REEXEC is "<try>:<failed>:<why>", for example "cpu:0:on the CPU after device.lost:
 * ...".
 */
#include "service/cli/cli_reexec.h"

#include <errno.h>
#include <limits.h>
#include <linux/close_range.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char variable[] = "PUSHBROOM_REEXEC";

static bool parse(const char *text, struct cli_reexec *out)
{
    for (int i = PB_DEVICE_TRY_FRESH; i <= PB_DEVICE_TRY_CPU; i++) {
        const char *name = pb_device_try_name((enum pb_device_try)i);
        size_t n = strlen(name);
        if (strncmp(text, name, n) != 0 || text[n] != ':' ||
            (text[n + 1] != '0' && text[n + 1] != '1') || text[n + 2] != ':')
            continue;
        out->device_try = (enum pb_device_try)i;
        out->failed = text[n + 1] == '1';
        (void)snprintf(out->why, sizeof out->why, "%s", text + n + 3);
        return true;
    }
    return false;
}

void cli_reexec_take(struct cli_reexec *out_again)
{
    struct cli_reexec again = {.device_try = PB_DEVICE_TRY_FIRST};
    const char *text = getenv(variable);
    if (text != NULL && !parse(text, &again))
        (void)fprintf(stderr, "pushbroom: %s is for its own use and is ignored\n", variable);
    (void)unsetenv(variable);
    *out_again = again;
}

static size_t count(char *const *list)
{
    size_t n = 0;
    while (list[n] != NULL)
        n++;
    return n;
}

int cli_reexec(const char *const *options, char *const *inputs, const struct cli_reexec *again)
{
    char text[sizeof again->why + 32];
    size_t n = 0, n_options = 0;
    while (options[n_options] != NULL)
        n_options++;
    /* exec takes pointers to char and leaves the strings alone. */
    const char **argv = calloc(n_options + count(inputs) + 4, sizeof *argv);
    if (argv == NULL)
        return -ENOMEM;
    argv[n++] = "pushbroom";
    argv[n++] = "run";
    for (size_t i = 0; options[i] != NULL; i++)
        argv[n++] = options[i];
    argv[n++] = "--"; /* an input's name may begin with a dash */
    for (size_t i = 0; inputs[i] != NULL; i++)
        argv[n++] = inputs[i];
    (void)snprintf(text, sizeof text, "%s:%d:%s", pb_device_try_name(again->device_try),
                   again->failed, again->why);
    int rc = setenv(variable, text, 1) != 0 ? -errno : 0;
    if (rc == 0) {
        (void)fflush(NULL);
        /* A descriptor of the driver that stayed open would keep the context. */
        (void)close_range(STDERR_FILENO + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC);
        (void)execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
        rc = -errno;
        (void)unsetenv(variable);
    }
    free(argv);
    return rc;
}
