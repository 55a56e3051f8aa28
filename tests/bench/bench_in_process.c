/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * bench_in_process CONFIG PRODUCTS INPUT...: the inputs one after the other in this one process,
 * unconfined: tests/bench/isolation.py compares a confined process a job with it. */
#include "config/config.h"
#include "config/match.h"
#include "config/yaml/report.h"
#include "pipeline/run/run.h"
#include "pipeline/scene/scene.h"

#include <stdio.h>

static void say(const struct pb_run_report *r)
{
    printf("%s, codecs %s %s, by %s: stream %lld ms, publishing %lld ms", r->device,
           r->codecs != NULL ? r->codecs : "host", r->codecs_why != NULL ? r->codecs_why : "",
           r->sync, (long long)r->elapsed_ms, (long long)r->publish_ms);
    for (int i = 0; i < 3; i++)
        printf(", %s %.0f ms busy", r->stage[i].name, (double)r->stage[i].busy_ns / 1e6);
    printf(", %.0f MB up, %.0f MB down\n", (double)r->link.to_device_bytes / 1e6,
           (double)r->link.from_device_bytes / 1e6);
}

static int run_one(const struct pb_config *config, const char *products, const char *input)
{
    struct pb_err err = {0};
    const struct pb_scene scene = pb_scene_at(input);
    struct pb_run_options options = {.config = config,
                                     .pipeline = pb_config_match(config, input),
                                     .input = &scene,
                                     .products = products};
    struct pb_run_result result;
    struct pb_run *run = NULL;
    int rc = pb_run_create(&options, &err, &run);
    rc = rc ? rc : pb_run_start(run, &err);
    rc = rc ? rc : pb_run_wait(run, -1, &err);
    rc = rc ? rc : pb_run_publish(run, &err, &result);
    if (rc != 0)
        (void)fprintf(stderr, "%s: %s\n", input, err.msg);
    else
        say(&result.report);
    pb_run_destroy(run);
    return rc;
}

int main(int argc, char **argv)
{
    static struct pb_err_list errors;
    struct pb_config *config = NULL;
    int rc = argc > 3 ? pb_config_load(argv[1], &pb_products, &errors, &config) : -1;
    for (int i = 3; i < argc && rc == 0; i++)
        rc = run_one(config, argv[2], argv[i]);
    pb_config_destroy(config);
    return rc == 0 ? 0 : 1;
}
