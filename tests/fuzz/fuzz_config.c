/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the configuration from text to struct, and what loads must print and load again as the
 * same. */
#include "config/config.h"
#include "config/yaml/report.h"
#include "pipeline/product/product_kinds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void print_again(const struct pb_config *config)
{
    struct pb_err_list errors;
    struct pb_config *again = NULL;
    char *first = pb_config_print(config);
    if (first == NULL)
        return;
    if (pb_config_parse(first, strlen(first), "printed", &pb_products, &errors, &again)) {
        (void)fprintf(stderr, "%s%d:%d: %s\n", first, errors.err[0].line, errors.err[0].col,
                      errors.err[0].msg);
        abort();
    }
    char *second = pb_config_print(again);
    if (second && strcmp(first, second) != 0)
        abort();
    free(second);
    free(first);
    pb_config_destroy(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct pb_err_list errors;
    struct pb_config *config = NULL;
    int rc = pb_config_parse((const char *)data, bytes, "fuzz", &pb_products, &errors, &config);
    if ((rc == 0) != (errors.n == 0))
        abort();
    for (size_t i = 1; i < errors.n; i++)
        if (errors.err[i].line < errors.err[i - 1].line)
            abort();
    if (rc == 0)
        print_again(config);
    if (rc == 0)
        pb_config_destroy(config);
    return 0;
}
