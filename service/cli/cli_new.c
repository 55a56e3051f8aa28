/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom new`: lists the presets or prints one. */
#include "service/cli/cli.h"

#include "config/base/json_writer.h"
#include "config/presets.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static int list(bool as_json)
{
    struct pb_preset *presets = NULL;
    const size_t n = pb_preset_list(&presets);
    int rc = CLI_DONE;
    size_t longest = 0;
    for (size_t i = 0; i < n; i++)
        longest = strlen(presets[i].name) > longest ? strlen(presets[i].name) : longest;
    for (size_t i = 0; rc == CLI_DONE && i < n; i++) {
        if (!as_json) {
            printf("%-*s  %s\n", (int)longest, presets[i].name, presets[i].about);
            continue;
        }
        struct pb_json *json = pb_json_create(false);
        pb_json_object(json, NULL);
        pb_json_string(json, "name", presets[i].name);
        pb_json_string(json, "about", presets[i].about);
        pb_json_string(json, "path", presets[i].path);
        pb_json_end(json);
        rc = cli_finish_json(json);
    }
    pb_preset_list_free(presets, n);
    if (as_json)
        return rc;
    puts("\n'pushbroom new NAME > my.yaml' starts a configuration from one, "
         "'pushbroom run -c NAME' runs it.");
    return CLI_DONE;
}

/* Reads a file; the text is malloc'd; NULL with errno. */
static char *read_text(const char *path)
{
    enum { ROOM = 1024 * 1024 };
    FILE *file = fopen(path, "re");
    char *text = file != NULL ? malloc(ROOM + 1) : NULL;
    const size_t bytes = text != NULL ? fread(text, 1, ROOM, file) : 0;
    if (text != NULL)
        text[bytes] = '\0';
    if (file != NULL)
        (void)fclose(file);
    return text;
}

static int print_json(const char *name, const char *path, const char *text)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "name", name);
    pb_json_string(json, "path", path);
    pb_json_string(json, "text", text);
    pb_json_end(json);
    return cli_finish_json(json);
}

int cli_new(int argc, char **argv)
{
    const char *name = NULL;
    bool as_json = false;
    char path[PATH_MAX + 512], known[700];
    int rc = cli_parse_word("new", argc, argv, &as_json, &name);
    if (rc != CLI_DONE)
        return rc;
    if (name == NULL)
        return list(as_json);
    if (!pb_preset_find(name, path, sizeof path)) {
        fprintf(stderr, "pushbroom new: there is no preset '%s'%s\n", name,
                pb_preset_suggest(name, known, sizeof known));
        return CLI_USAGE;
    }
    char *text = read_text(path);
    if (text == NULL)
        fprintf(stderr, "pushbroom new: cannot read %s: %s\n", path, strerror(errno));
    else if (as_json)
        rc = print_json(name, path, text);
    else
        fputs(text, stdout);
    rc = text != NULL ? rc : CLI_JOB_FAILED;
    free(text);
    return rc;
}
