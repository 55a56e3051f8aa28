/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/cli/cli_plan_lines.h"

#include "config/base/text_clean.h"
#include "service/cli/cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define KEY_COLUMNS 13 /* two spaces, the key and a space */

void cli_line(const char *key, const char *format, ...)
{
    char raw[4096], text[4096];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    (void)pb_text_clean(raw, text, sizeof text); /* names of files may hold control characters */
    printf("  %s%-10s%s ", cli_color(stdout, CLI_DIM), key, cli_color(stdout, CLI_PLAIN));
    if (cli_is_terminal(stdout))
        cli_wrap(stdout, KEY_COLUMNS, cli_columns(stdout), text);
    else
        puts(text);
}

const char *cli_json_text(const struct pb_json_value *object, const char *key)
{
    const char *text = pb_json_get_text(object, key);
    return text != NULL ? text : "";
}

double cli_json_number(const struct pb_json_value *object, const char *key)
{
    return pb_json_number_of(pb_json_get(object, key, NULL), (double)NAN);
}

bool cli_json_is_true(const struct pb_json_value *object, const char *key)
{
    bool value = false;
    return pb_json_get_bool(object, key, &value) == 0 && value;
}

double cli_json_at(const struct pb_json_value *array, size_t i)
{
    return pb_json_number_of(pb_json_at(array, i), (double)NAN);
}

void cli_add(char *text, size_t n, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text + used, n - used, format, args);
    va_end(args);
}

/* Appends "349 x 352 px of 28.5 m" or "120 x 1200 px of 24.39 x 92.66 m in the middle". */
void cli_add_size(const struct pb_json_value *of, char *text, size_t n)
{
    const struct pb_json_value *metres = pb_json_get(of, "pixel_metres", NULL);
    double x = cli_json_at(metres, 0), y = cli_json_at(metres, 1);
    cli_add(text, n, "%.0f x %.0f px", cli_json_number(of, "width"), cli_json_number(of, "height"));
    if (metres == NULL)
        return;
    if (fabs(x - y) <= 0.001 * x)
        cli_add(text, n, " of %.4g m", x);
    else
        cli_add(text, n, " of %.4g x %.4g m", x, y);
    if (pb_json_get(of, "pixel_varies", NULL) != NULL)
        cli_add(text, n, " in the middle");
}

void cli_add_scale(const struct pb_json_value *of, char *text, size_t n)
{
    double scale = cli_json_number(of, "scale"), offset = cli_json_number(of, "offset");
    if (scale != 1 || offset != 0)
        cli_add(text, n, "; value = stored * %.10g", scale);
    if (offset != 0)
        cli_add(text, n, " %c %.10g", offset < 0 ? '-' : '+', fabs(offset));
}
