/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool cli_is_terminal(FILE *out)
{
    const char *term = getenv("TERM");
    return isatty(fileno(out)) && (term == NULL || strcmp(term, "dumb") != 0);
}

const char *cli_color(FILE *out, enum cli_color color)
{
    static const char *const code[] = {"\033[0m",  "\033[31m", "\033[32m", "\033[33m",
                                       "\033[34m", "\033[2m",  "\033[1m"};
    const char *no_color = getenv("NO_COLOR");
    if (!cli_is_terminal(out) || (no_color != NULL && no_color[0] != '\0'))
        return "";
    return code[color];
}

int cli_columns(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
        return size.ws_col;
    return 80;
}

char *cli_bytes(double bytes, char *out, size_t n)
{
    static const char *const unit[] = {"B", "kB", "MB", "GB", "TB"};
    int u = 0;
    while (bytes >= 999.5 && u < 4) {
        bytes /= 1000;
        u++;
    }
    (void)snprintf(out, n, bytes < 9.95 && u > 0 ? "%.1f %s" : "%.0f %s", bytes, unit[u]);
    return out;
}

char *cli_time(double seconds, char *out, size_t n)
{
    if (!(seconds >= 0) || seconds > 359999) {
        (void)snprintf(out, n, "-:--");
        return out;
    }
    int s = (int)(seconds + 0.5);
    if (s >= 3600)
        (void)snprintf(out, n, "%d:%02d:%02d", s / 3600, s / 60 % 60, s % 60);
    else
        (void)snprintf(out, n, "%d:%02d", s / 60, s % 60);
    return out;
}

void cli_bar_update(struct cli_bar *bar, double now_s, uint64_t tiles, uint64_t total,
                    uint64_t bytes)
{
    (void)total;
    if (!bar->started || tiles < bar->last_tiles) {
        bar->started = true;
        bar->first_s = bar->last_s = now_s;
        bar->last_tiles = tiles;
        bar->last_bytes = bytes;
        bar->rate_tiles = bar->rate_bytes = 0;
        return;
    }
    double dt = now_s - bar->last_s;
    if (dt < 0.15)
        return;
    /* Smoothed over about two seconds, so that the time left does not jump. */
    double tile_rate = (double)(tiles - bar->last_tiles) / dt,
           byte_rate = (double)(bytes - bar->last_bytes) / dt;
    double keep = bar->rate_tiles > 0 ? exp(-dt / 2.0) : 0;
    bar->rate_tiles = bar->rate_tiles * keep + tile_rate * (1 - keep);
    bar->rate_bytes = bar->rate_bytes * keep + byte_rate * (1 - keep);
    bar->last_s = now_s;
    bar->last_tiles = tiles;
    bar->last_bytes = bytes;
}

static void draw_cells(char *out, size_t width, double part)
{
    size_t full = (size_t)(part * (double)width + 1e-9);
    for (size_t i = 0; i < width; i++)
        out[i] = i < full ? '=' : i == full && part > 0 ? '>' : ' ';
    out[width] = '\0';
}

void cli_bar_text(const struct cli_bar *bar, const char *state, uint64_t tiles, uint64_t total,
                  char *out, size_t n)
{
    enum { NAME = 24, CELLS_MAX = 200 };
    int columns = cli_columns() < 80 ? cli_columns() : 80;
    double part = total > 0 ? (double)tiles / (double)total : 0;
    char right[64], cells[CELLS_MAX], rate[16], left[16];
    if (bar->rate_tiles > 0 && tiles < total)
        (void)snprintf(right, sizeof right, "%3d%% %5.0f tiles/s %7s/s %5s left", (int)(part * 100),
                       bar->rate_tiles, cli_bytes(bar->rate_bytes, rate, sizeof rate),
                       cli_time((double)(total - tiles) / bar->rate_tiles, left, sizeof left));
    else
        (void)snprintf(right, sizeof right, "%3d%% %s", (int)(part * 100), state);
    size_t name = strlen(bar->name);
    int width = columns - NAME - 4 - (int)strlen(right);
    draw_cells(cells, width < 5 ? 5 : (size_t)width, part);
    if (name > NAME) /* the end of a scene's name tells more than its beginning */
        (void)snprintf(out, n, "..%s [%s] %s", bar->name + name - (NAME - 2), cells, right);
    else
        (void)snprintf(out, n, "%-*s [%s] %s", NAME, bar->name, cells, right);
}
