/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * `pushbroomd --check`: finds the errors of a start without making anything. */
#include "service/daemon/daemon.h"

#include "config/config.h"
#include "config/yaml/report.h"
#include "pipeline/product/product_kinds.h"
#include "pipeline/raster/raster.h"
#include "service/inbox/dirs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int pb_daemon_exit_code(const struct pb_err *err)
{
    bool is_config = err->code == PB_E_CONFIG_VALUE || err->code == PB_E_CONFIG_SYNTAX ||
                     err->code == PB_E_CONFIG_LIMIT || err->code == PB_E_CONFIG_FILE;
    return is_config ? PB_DAEMON_EXIT_CONFIG : PB_DAEMON_EXIT_FAILED;
}

static void print(const struct pb_err *err)
{
    char text[1200];
    pb_err_text(err, text, sizeof text);
    (void)fprintf(stderr, "%s\n", text);
}

/* Checks the socket's path. The start replaces a socket of a dead service, but no other file. */
static int check_socket(const char *path, struct pb_err *err)
{
    struct stat st;
    if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
        return pb_fail(err, PB_E_SYSTEM, "%s is there and no socket; move it away", path);
    return 0;
}

static void print_warning(void *user, const char *file, int line, int col, const char *text)
{
    (void)user;
    (void)fprintf(stderr, "%s:%d:%d: warning: %s\n", file, line, col, text);
}

static int check_surroundings(const struct pb_config *config)
{
    struct pb_err err = {0};
    int rc = pb_raster_ready(&err);
    rc = rc ? rc : pb_dirs_check(&config->service, &err);
    rc = rc ? rc : check_socket(config->service.socket, &err);
    if (rc == 0)
        return PB_DAEMON_EXIT_OK;
    print(&err);
    return pb_daemon_exit_code(&err);
}

int pb_daemon_check(const char *path)
{
    struct pb_err_list errors;
    struct pb_config *config = NULL;
    int rc = pb_config_load(path, &pb_products, &errors, &config);
    for (size_t i = 0; i < errors.n; i++)
        print(&errors.err[i]);
    if (errors.n_more > 0)
        (void)fprintf(stderr, "and %zu mistakes more\n", errors.n_more);
    if (rc == 0)
        pb_config_warnings(config, print_warning, NULL);
    int code = rc == 0 ? check_surroundings(config) : PB_DAEMON_EXIT_CONFIG;
    if (code == PB_DAEMON_EXIT_OK)
        (void)printf("%s: ok, %zu pipeline%s\n", path, config->n_pipelines,
                     config->n_pipelines == 1 ? "" : "s");
    pb_config_destroy(config);
    return code;
}
