/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* pushbroom-compute: the commands of `pushbroom` that need GDAL, a GPU or TLS. `pushbroom` starts
 * it for these commands. */
#include "pipeline/gdal/vector.h"
#include "pipeline/product/product_kinds.h"
#include "service/cli/cli.h"
#include "service/fetch/tls.h"

#include <string.h>

static int check_config(int argc, char **argv)
{
    struct pb_product_kinds kinds = pb_products;
    kinds.is_crs = pb_vector_is_crs;
    return cli_check_config_as(argc, argv, &kinds);
}

static int store(int argc, char **argv)
{
    return cli_store_as(argc, argv, pb_tls_check);
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {{"run", cli_run},
                {"devices", cli_devices},
                {"check-config", check_config},
                {"feed", cli_feed},
                {"store", store}};

int main(int argc, char **argv)
{
    cli_json_if_wanted(argc, argv);
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return cli_end(commands[i].run(argc - 1, argv + 1));
    fputs("pushbroom-compute is a part of pushbroom, which starts it: pushbroom run\n", stderr);
    return CLI_USAGE;
}
