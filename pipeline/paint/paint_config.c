/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/paint/paint_config.h"
#include "config/product_config.h"
#include "pipeline/paint/colour_file.h"
#include "pipeline/paint/stretch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads the file's text, malloc'd; NULL after a reported error. */
static char *read_file(const char *path, const struct pb_product_check *check, size_t *out_bytes)
{
    char *text = malloc(PB_COLOUR_FILE_BYTES_MAX + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    size_t bytes = 0;
    ssize_t n = -1;
    if (fd >= 0 && fstat(fd, &status) == 0 && !S_ISREG(status.st_mode))
        errno = EINVAL;
    else if (fd >= 0 && text != NULL)
        while ((n = read(fd, text + bytes, PB_COLOUR_FILE_BYTES_MAX + 1 - bytes)) > 0)
            bytes += (size_t)n;
    if (n < 0)
        pb_product_key_wrong(check, "colours", "colours: cannot read %.200s: %s", path,
                             text == NULL      ? "out of memory"
                             : errno == EINVAL ? "it is no regular file"
                                               : strerror(errno));
    else if (bytes > PB_COLOUR_FILE_BYTES_MAX)
        pb_product_key_wrong(check, "colours", "colours: %.200s has more than %d bytes", path,
                             PB_COLOUR_FILE_BYTES_MAX);
    if (fd >= 0)
        (void)close(fd);
    if (n < 0 || bytes > PB_COLOUR_FILE_BYTES_MAX) {
        free(text);
        return NULL;
    }
    *out_bytes = bytes;
    return text;
}

static struct pb_ramp *read_colours(const char *path, const struct pb_product_check *check)
{
    char mistake[300];
    size_t bytes = 0;
    char *text = read_file(path, check, &bytes);
    if (text == NULL)
        return NULL;
    struct pb_ramp *ramp = pb_product_key_alloc(check, 1, sizeof *ramp);
    struct pb_ramp_stop *stops =
        pb_product_key_alloc(check, pb_colour_file_lines(text, bytes), sizeof *stops);
    int line = ramp != NULL && stops != NULL
                   ? pb_colour_file_parse(text, bytes, stops, ramp, mistake, sizeof mistake)
                   : -1;
    if (line > 0)
        pb_product_key_wrong(check, "colours", "%.200s:%d: %s", path, line, mistake);
    free(text);
    return line == 0 ? ramp : NULL;
}

static struct pb_ramp *name_ramp(int choice, const struct pb_product_check *check)
{
    struct pb_ramp *ramp = pb_product_key_alloc(check, 1, sizeof *ramp);
    struct pb_ramp_stop *stops = pb_product_key_alloc(check, PB_RAMP_NAMED_STOPS, sizeof *stops);
    if (ramp == NULL || stops == NULL)
        return NULL;
    pb_ramp_named(choice, stops, ramp);
    return ramp;
}

bool pb_paint_has_gamma(const struct pb_paint_config *paint)
{
    return paint->gamma > 0 && paint->gamma != 1;
}

static void check_file(const struct pb_paint_config *paint, struct pb_ramp *ramp,
                       const struct pb_product_check *check)
{
    bool shares = pb_ramp_needs_range(ramp);
    if (ramp->between == PB_RAMP_EXACT && shares)
        pb_product_key_wrong(check, "between",
                             "between: exact is for values, and %.100s has percentages; use blend "
                             "or nearest",
                             paint->colours);
    static const uint8_t none[4];
    if (ramp->between != PB_RAMP_EXACT && memcmp(ramp->other, none, sizeof none) != 0)
        pb_product_key_wrong(check, "between",
                             "%.100s has a line 'default', for values that no line names; between: "
                             "%s covers all values, write between: exact",
                             paint->colours, ramp->between == PB_RAMP_BLEND ? "blend" : "nearest");
    if (!shares && paint->has_range)
        pb_product_key_wrong(check, "range",
                             "range: the lines of %.100s have values of their own; leave the key "
                             "out, or write percentages there",
                             paint->colours);
    if (!shares && pb_paint_has_gamma(paint))
        pb_product_key_wrong(check, "gamma",
                             "gamma: the lines of %.100s have values of their own; leave the key "
                             "out, or write percentages there",
                             paint->colours);
    if (!shares && paint->has_stretch)
        pb_product_key_wrong(check, "stretch",
                             "stretch: the lines of %.100s have values of their own; leave the key "
                             "out, or write percentages there",
                             paint->colours);
}

static void check_stretch(struct pb_paint_config *paint, const struct pb_product_check *check)
{
    if (paint->has_method && paint->has_range)
        pb_product_key_wrong(check, "stretch_method",
                             "range and stretch_method both set the ends; keep one of them");
    if (paint->has_method && paint->has_stretch && paint->method != 0)
        pb_product_key_wrong(check, "stretch",
                             "stretch has percentiles, and stretch_method does without; keep one "
                             "of them");
    if (paint->deviations != 2 && paint->method != PB_STRETCH_STDDEV &&
        pb_product_key_is_sound(check, "stretch_method"))
        pb_product_key_wrong(check, "deviations",
                             "deviations are for stretch_method: stddev; leave the key out");
    if (paint->has_method && !paint->has_stretch) {
        paint->stretch[0] = 2;
        paint->stretch[1] = 98;
        paint->has_stretch = true;
    }
}

static void check_shade(const struct pb_paint_config *paint, size_t n_bands,
                        const struct pb_product_check *check)
{
    if (paint->has_blend && paint->shade == NULL)
        pb_product_key_wrong(check, "blend",
                             "blend is for shade; leave the key out, or name the band with shade");
    if (paint->shade != NULL && n_bands == 0 && pb_product_key_is_sound(check, "bands"))
        pb_product_key_wrong(check, "shade",
                             "shade: which bands are coloured? write bands: [NAME] as well");
}

void pb_paint_take_shade(const struct pb_paint_config *paint, struct pb_product_config *product,
                         const struct pb_product_check *check)
{
    const size_t n = product->n_bands;
    if (paint->shade == NULL || n == 0)
        return;
    char **bands = pb_product_key_alloc(check, n + 1, sizeof *bands);
    char **planes = pb_product_key_alloc(check, n + 1, sizeof *planes);
    if (bands == NULL || planes == NULL)
        return;
    for (size_t i = 0; i < n; i++) {
        bands[i] = product->bands[i];
        planes[i] = product->planes != NULL ? product->planes[i] : bands[i];
    }
    bands[n] = planes[n] = paint->shade;
    product->planes = product->planes != NULL ? planes : NULL;
    product->bands = bands;
    product->n_more = 1;
}

void pb_paint_check(struct pb_paint_config *paint, size_t n_bands,
                    const struct pb_product_check *check)
{
    bool ramp = paint->ramp != 0 || paint->colours != NULL;
    check_stretch(paint, check);
    check_shade(paint, n_bands, check);
    paint->is_asked = ramp || paint->has_range || paint->has_stretch || pb_paint_has_gamma(paint) ||
                      paint->shade != NULL;
    if (paint->ramp != 0 && paint->colours != NULL)
        pb_product_key_wrong(check, "colours",
                             "ramp and colours both set the colours; keep one of them");
    if (paint->has_range && paint->has_stretch)
        pb_product_key_wrong(check, "stretch",
                             "range and stretch both set the ends; keep one of them");
    if (ramp && n_bands != 1 && pb_product_key_is_sound(check, "bands"))
        pb_product_key_wrong(check, pb_product_key_is_given(check, "bands") ? "bands" : "ramp",
                             "a ramp colours one band, not %zu; write bands: [NAME]", n_bands);
    if (paint->has_between && paint->colours == NULL)
        pb_product_key_wrong(check, "between",
                             "between is for a colour file; leave the key out, or name the file "
                             "with colours");
    struct pb_ramp *chosen = NULL;
    const char *path = paint->colours != NULL ? pb_product_key_path(check, paint->colours) : NULL;
    if (path != NULL)
        chosen = read_colours(path, check);
    else if (paint->ramp != 0)
        chosen = name_ramp(paint->ramp, check);
    if (chosen != NULL && paint->colours != NULL) {
        chosen->between = (enum pb_ramp_between)paint->between;
        check_file(paint, chosen, check);
    }
    paint->chosen = chosen;
}

const char *pb_paint_ramp_text(const struct pb_paint_config *paint, char *out, size_t bytes)
{
    size_t length;
    const char *word = pb_key_choice(pb_ramp_choices, paint->ramp, &length);
    if (paint->colours != NULL)
        (void)snprintf(out, bytes, "%s", paint->colours);
    else
        (void)snprintf(out, bytes, "%.*s", (int)length, word);
    return paint->colours != NULL || paint->ramp != 0 ? out : NULL;
}
