/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/cli/cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int cli_flush(void)
{
    static int first;
    if (first == 0 && (fflush(stdout) != 0 || ferror(stdout)))
        first = errno != 0 ? -errno : -EIO;
    return first;
}

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

int cli_list_columns(FILE *out)
{
    struct winsize size;
    const char *given = getenv("COLUMNS");
    const long columns = given != NULL ? strtol(given, NULL, 10) : 0;
    if (columns > 0 && columns < 10000)
        return (int)columns;
    if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 0;
}

int cli_columns(FILE *out)
{
    const int columns = cli_list_columns(out);
    return columns > 0 ? columns : 80;
}

int cli_lines(FILE *out)
{
    struct winsize size;
    if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_row > 0)
        return size.ws_row;
    return 24;
}

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7F;
}

static int width_of(const char *text)
{
    int width = 0;
    for (; *text != '\0'; text++)
        width += !is_continuation(*text);
    return width;
}

char *cli_fit(const char *text, int columns, char *out, size_t n)
{
    int width = width_of(text);
    bool cut = width > columns && columns > 2;
    for (int keep = cut ? columns - 2 : columns; width > keep && *text != '\0'; width--) {
        text++;
        while (is_continuation(*text))
            text++;
    }
    (void)snprintf(out, n, "%s%s", cut ? ".." : "", text);
    for (char *c = out; *c != '\0'; c++)
        if (is_control(*c))
            *c = '?';
    return out;
}

void cli_wrap(FILE *out, int indent, int columns, const char *text)
{
    int at = indent;
    for (const char *word = text; *word != '\0';) {
        size_t bytes = strcspn(word, " \n");
        int width = 0;
        for (size_t i = 0; i < bytes; i++)
            width += !is_continuation(word[i]);
        if (at > indent && at + 1 + width > columns) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            putc(' ', out);
            at++;
        }
        for (size_t i = 0; i < bytes; i++)
            putc(is_control(word[i]) ? '?' : word[i], out);
        at += width;
        word += bytes + strspn(word + bytes, " \n");
    }
    putc('\n', out);
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

void cli_bar_update(struct cli_bar *bar, double now_s, uint64_t tiles, uint64_t bytes)
{
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

static void draw_cells(char *out, int width, double part)
{
    int full = (int)(part * (double)width + 1e-9);
    for (int i = 0; i < width; i++)
        out[i] = i < full ? '=' : i == full && part > 0 ? '>' : ' ';
    out[width] = '\0';
}

/* Text to the right of the bar; a smaller `level` gives a longer text. */
static void describe(const struct cli_bar *bar, const char *state, uint64_t tiles, uint64_t total,
                     int level, char *out, size_t n)
{
    char rate[16], left[16];
    int percent = total > 0 ? (int)(100 * tiles / total) : 0;
    (void)cli_bytes(bar->rate_bytes, rate, sizeof rate);
    bool moves = bar->rate_tiles > 0 && tiles < total;
    if (moves)
        (void)cli_time((double)(total - tiles) / bar->rate_tiles, left, sizeof left);
    if (level >= 2)
        (void)snprintf(out, n, "%3d%%", percent);
    else if (!moves)
        (void)snprintf(out, n, "%3d%% %s", percent, state);
    else if (level == 1)
        (void)snprintf(out, n, "%3d%% %5s left", percent, left);
    else
        (void)snprintf(out, n, "%3d%% %5.0f tiles/s %7s/s %5s left", percent, bar->rate_tiles, rate,
                       left);
}

void cli_bar_text(const struct cli_bar *bar, const char *state, uint64_t tiles, uint64_t total,
                  int columns, char *out, size_t n)
{
    enum { NAME_MIN = 8, NAME_MAX = 24, CELLS_MIN = 5, CELLS_MAX = 60, FRAME = 4 };
    char right[80], name[sizeof bar->name], cells[CELLS_MAX + 1];
    int room = 0, wide = columns < 80 ? columns : 80;
    for (int level = 0; level < 3; level++) {
        describe(bar, state, tiles, total, level, right, sizeof right);
        room = wide - FRAME - (int)strlen(right);
        if (room >= NAME_MIN + CELLS_MIN)
            break;
    }
    if (room < NAME_MIN + CELLS_MIN) { /* there is only room for a percentage */
        (void)snprintf(out, n, "%.*s", wide > 0 ? wide : 0, right);
        return;
    }
    int names = room - NAME_MAX >= CELLS_MIN + 3 ? NAME_MAX : room - CELLS_MIN;
    int width = room - names < CELLS_MAX ? room - names : CELLS_MAX;
    draw_cells(cells, width, total > 0 ? (double)tiles / (double)total : 0);
    (void)cli_fit(bar->name, names, name, sizeof name);
    (void)snprintf(out, n, "%s%*s [%s] %s", name, names - width_of(name), "", cells, right);
}
