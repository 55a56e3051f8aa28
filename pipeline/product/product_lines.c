/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/product_lines.h"

#include "pipeline/product/product.h"
#include "pipeline/raster/raster.h"

#include <stdio.h>
#include <time.h>

void pb_product_line_time(int64_t time_ns, char out[PB_LINE_TIME_BYTES])
{
    const time_t seconds = (time_t)(time_ns / 1000000000);
    char day[24];
    struct tm utc;
    out[0] = '\0';
    if (time_ns > 0 && gmtime_r(&seconds, &utc) != NULL &&
        strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &utc) > 0)
        (void)snprintf(out, PB_LINE_TIME_BYTES, "%s.%06dZ", day, (int)(time_ns / 1000 % 1000000));
}

bool pb_product_line_span(const struct pb_product_env *env, char out_start[PB_LINE_TIME_BYTES],
                          char out_end[PB_LINE_TIME_BYTES])
{
    int64_t first = 0, last = 0;
    for (int32_t y = 0; env->raster != NULL && y < env->info->height; y++) {
        const int64_t ns = pb_raster_acquired_ns(env->raster, y);
        if (ns > 0 && (first == 0 || ns < first))
            first = ns;
        if (ns > last)
            last = ns;
    }
    pb_product_line_time(first, out_start);
    pb_product_line_time(last, out_end);
    return out_start[0] != '\0';
}
