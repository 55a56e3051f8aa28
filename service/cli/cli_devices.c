/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom devices`: lists the devices, and with --tune measures their fastest transfer plans. */
#include "service/cli/cli.h"
#include "service/cli/cli_as.h"
#include "service/cli/cli_tune.h"
#include "service/confine/confine.h"

#include "config/base/json_writer.h"
#include "pipeline/device/device.h"
#include "pipeline/tune/device_plan.h"

#include <stdlib.h>
#include <string.h>

#define PEER_BYTES ((size_t)64 << 20)

static void json_plans(struct pb_json *json, const struct pb_device *d)
{
    struct pb_device_plan plans[PB_DEVICE_PLANS];
    int n = d->usable ? pb_device_plans(d->index, plans) : 0;
    pb_json_array(json, "plans");
    for (int i = 0; i < n; i++) {
        pb_json_object(json, NULL);
        pb_json_string(json, "tile", plans[i].tile);
        pb_json_string(json, "plan", plans[i].plan);
        pb_json_bool(json, "measured", plans[i].measured);
        pb_json_end(json);
    }
    pb_json_end(json);
}

static void print_plans(const struct pb_device *d)
{
    struct pb_device_plan plans[PB_DEVICE_PLANS];
    int n = pb_device_plans(d->index, plans);
    for (int i = 0; i < n; i++) {
        printf("        %-7s %s%s:\n                ", i == 0 ? "plans" : "", plans[i].tile,
               plans[i].measured ? ", as measured" : "");
        cli_wrap(stdout, 16, 80, plans[i].plan);
    }
}

static void json_peer(struct pb_json *json, const struct pb_device *to, bool reaches, double copies,
                      const struct pb_tune_peer *peer)
{
    char id[24];
    (void)snprintf(id, sizeof id, "cuda:%d", to->index);
    pb_json_object(json, NULL);
    pb_json_string(json, "device", id);
    pb_json_bool(json, "reaches", reaches);
    pb_json_number(json, "copies_bytes_per_s", copies);
    if (peer->rate > 0) {
        pb_json_int(json, "channel_bytes_per_s", (int64_t)peer->rate);
        pb_json_string(json, "channel_plan", peer->plan);
        pb_json_int(json, "word_ns", peer->word_ns);
    }
    pb_json_end(json);
}

static void print_peer(const struct pb_device *to, bool reaches, double copies,
                       const struct pb_tune_peer *peer)
{
    char rate[16];
    printf("        peer    cuda:%d, %s/s by copies%s\n", to->index,
           cli_bytes(copies, rate, sizeof rate),
           reaches ? "" : "; its kernels cannot reach that memory");
    if (peer->rate == 0)
        return;
    printf("                %s/s between kernels, a word in %.2f us:\n                ",
           cli_bytes((double)peer->rate, rate, sizeof rate), peer->word_ns / 1e3);
    cli_wrap(stdout, 16, 80, peer->plan);
}

static void json_device(struct pb_json *json, const struct pb_device *d, double to, double from)
{
    char id[24];
    (void)snprintf(id, sizeof id, "cuda:%d", d->index);
    pb_json_string(json, "device", id);
    pb_json_string(json, "name", d->name);
    pb_json_string(json, "arch", d->arch);
    pb_json_int(json, "memory_bytes", (int64_t)d->memory_bytes);
    pb_json_int(json, "free_bytes", (int64_t)d->free_bytes);
    pb_json_int(json, "multiprocessors", d->multiprocessors);
    pb_json_bool(json, "integrated", d->integrated);
    pb_json_bool(json, "managed", d->managed);
    pb_json_bool(json, "time_limited", d->time_limited);
    pb_json_bool(json, "mps", d->mps);
    pb_json_number(json, "to_device_bytes_per_s", to);
    pb_json_number(json, "from_device_bytes_per_s", from);
    pb_json_bool(json, "usable", d->usable);
    pb_json_string(json, "why", d->usable ? NULL : d->why);
    cli_tune_origin(d, json);
    json_plans(json, d);
}

static void print_device(const struct pb_device *d, double to, double from)
{
    char memory[16], available[16], in[16], out[16];
    if (!d->usable) {
        printf("cuda:%d  %s  %snot usable%s: %s\n", d->index, d->name, cli_color(stdout, CLI_RED),
               cli_color(stdout, CLI_PLAIN), d->why);
        return;
    }
    printf("cuda:%d  %s (%s), %d multiprocessors\n", d->index, d->name, d->arch,
           d->multiprocessors);
    printf("        memory  %s, %s free%s\n",
           cli_bytes((double)d->memory_bytes, memory, sizeof memory),
           cli_bytes((double)d->free_bytes, available, sizeof available),
           d->integrated ? ", shared with the CPU" : "");
    printf("        link    %s/s to the device, %s/s from it (pinned memory)\n",
           cli_bytes(to, in, sizeof in), cli_bytes(from, out, sizeof out));
    printf("        buffers pinned%s\n",
           d->managed      ? "; managed planes are possible"
           : d->integrated ? "; no managed planes: the memory is shared with the CPU"
                           : "; no managed planes: they would not work while the host uses them");
    printf(
        "        kernels %s\n",
        d->time_limited ? "end by force after seconds, for a display waits: by streams alone"
        : d->mps
            ? "may stay; processes share the GPU through MPS"
            : "may stay, of the process that owns it; without MPS other programs wait their turn");
    cli_tune_origin(d, NULL);
    print_plans(d);
}

/* The way from a GPU to each other one; measured alone, because no job uses it. */
static int show_peers(const struct pb_device *d, const struct pb_device *devices, int n, bool tune,
                      struct pb_json *json)
{
    int rc = CLI_DONE;
    if (json != NULL)
        pb_json_array(json, "peers");
    for (int i = 0; i < n; i++) {
        struct pb_tune_peer peer = {0};
        double copies = 0;
        if (devices[i].index == d->index || !d->usable || !devices[i].usable)
            continue;
        const bool reaches = pb_device_peer(d->index, devices[i].index, PEER_BYTES, &copies);
        if (tune && reaches && cli_tune_peer(d, &devices[i], &peer) != CLI_DONE)
            rc = CLI_JOB_FAILED;
        if (json != NULL)
            json_peer(json, &devices[i], reaches, copies, &peer);
        else
            print_peer(&devices[i], reaches, copies, &peer);
    }
    if (json != NULL)
        pb_json_end(json);
    return rc;
}

static void print_confinement(const char *text)
{
    char line[PB_CONFINE_TEXT_BYTES + 32];
    (void)snprintf(line, sizeof line, "service jobs: %s", text);
    printf("        ");
    cli_wrap(stdout, 8, 80, line);
}

static int show_cpu(bool as_json)
{
    char cpu[128], confined[PB_CONFINE_TEXT_BYTES];
    pb_confine_describe(&(struct pb_confine){.address_bytes = 1}, confined);
    pb_device_cpu_name(cpu, sizeof cpu);
    if (!as_json) {
        printf("cpu     %s, %u core%s for this process\n", cpu, pb_device_cores(),
               pb_device_cores() == 1 ? "" : "s");
        print_confinement(confined);
        return CLI_DONE;
    }
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "device", "cpu");
    pb_json_string(json, "name", cpu);
    pb_json_int(json, "cores", pb_device_cores());
    pb_json_bool(json, "usable", true);
    pb_json_string(json, "confined", confined);
    pb_json_end(json);
    return cli_finish_json(json);
}

/* Prints device `number` of n; with tune, measures its transfer plans first. */
static int show_device(const struct pb_device *devices, int number, int n, bool tune, bool as_json)
{
    const struct pb_device *d = &devices[number];
    struct pb_json *json = as_json ? pb_json_create(false) : NULL;
    double to = 0, from = 0;
    int rc = CLI_DONE;
    if (json != NULL)
        pb_json_object(json, NULL);
    if (tune && d->usable)
        rc = cli_tune(d, json);
    if (d->usable)
        pb_device_link(d->index, 64u << 20, &to, &from);
    if (json != NULL) {
        json_device(json, d, to, from);
    } else {
        print_device(d, to, from);
    }
    const int peers = show_peers(d, devices, n, tune && rc == CLI_DONE, json);
    rc = rc != CLI_DONE ? rc : peers;
    if (json != NULL) {
        pb_json_end(json);
        const int printed = cli_finish_json(json);
        rc = rc != CLI_DONE ? rc : printed;
    }
    return rc;
}

static int parse(int argc, char **argv, bool *json, bool *tune, const char **as)
{
    static const char *const options[] = {"--json", "--tune", "--as"};
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--json") == 0)
            *json = true;
        else if (strcmp(argv[i], "--tune") == 0)
            *tune = true;
        else if (strncmp(argv[i], "--as=", 5) == 0)
            *as = argv[i] + 5;
        else if (strcmp(argv[i], "--as") == 0 && i + 1 < argc)
            *as = argv[++i];
        else if (strcmp(argv[i], "--as") == 0)
            return cli_usage("devices", "--as wants the name of a device");
        else if (argv[i][0] == '-')
            return cli_unknown_option("devices", argv[i], options, 3);
        else
            return cli_usage("devices", "what does '%s' mean?", argv[i]);
    if (*as != NULL && *tune)
        return cli_usage(
            "devices",
            "--tune measures a device that is here, --as plans for one that is not: leave one out");
    return CLI_DONE;
}

int cli_devices(int argc, char **argv)
{
    bool as_json = false, tune = false;
    const char *as = NULL;
    char why[200];
    struct pb_device devices[16];
    int rc = parse(argc, argv, &as_json, &tune, &as);
    if (rc != CLI_DONE)
        return rc;
    if (as != NULL)
        return cli_as_show(as, as_json);
    /* with lazy loading, a kernel that is resident would block the load of another at its first
     * launch */
    if (tune)
        (void)setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    int n = pb_device_list(devices, 16, why);
    rc = show_cpu(as_json);
    for (int i = 0; i < n; i++) {
        int shown = show_device(devices, i, n, tune, as_json);
        rc = shown != CLI_DONE ? shown : rc;
    }
    if (n == 0 && !as_json)
        printf("cuda    none: %s\n", why);
    if (n == 0 && tune) {
        fprintf(stderr, "pushbroom: there is no GPU to tune\n");
        rc = CLI_JOB_FAILED;
    }
    return rc;
}
