/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/base/clock.h"
#include "config/base/text_clean.h"
#include "service/cli/cli_run.h"
#include "service/jobs/job.h"

#include <string.h>

void cli_progress_begin(struct cli_progress *progress, const char *input)
{
    const char *base = strrchr(input, '/');
    memset(&progress->bar, 0, sizeof progress->bar);
    (void)pb_text_clean(base ? base + 1 : input, progress->bar.name, sizeof progress->bar.name);
}

void cli_progress_show(struct cli_progress *progress, const struct pb_job *job)
{
    char text[256], state[40], size[16];
    struct cli_bar *bar = &progress->bar;
    if (!progress->wanted)
        return;
    cli_bar_update(bar, (double)pb_clock_mono_ms() / 1e3, (uint64_t)job->tiles_done,
                   (uint64_t)job->bytes_read);
    (void)snprintf(state, sizeof state, "%s", job->stage);
    if (strcmp(job->stage, "publish") == 0)
        (void)snprintf(state, sizeof state, "publish %s",
                       cli_bytes((double)job->bytes_written, size, sizeof size));
    cli_bar_text(bar, state, (uint64_t)job->tiles_done, (uint64_t)job->tiles_total,
                 cli_columns(stderr) - 1, text, sizeof text);
    (void)fprintf(stderr, "\r%s\033[K", text);
    (void)fflush(stderr);
    progress->shown = true;
}

void cli_progress_clear(struct cli_progress *progress)
{
    if (progress->shown)
        (void)fputs("\r\033[K", stderr);
    progress->shown = false;
}
