/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GRID_ARGS_H
#define PB_GRID_ARGS_H
/* What operators share that change the grid of bands: their parameter `method`, coordinates of a
 * grid, and the definition of bands on another grid. During an operator's build() only. */
#include "kernels/expr/band_list.h"

/* The row for a member int32_t method, an enum pb_resampling. */
#define PB_KEY_METHOD(params, def_)                                                                \
    {                                                                                              \
        .name = "method", .type = PB_KEY_CHOICE, .offset = offsetof(params, method), .def = def_,  \
        .choices = "nearest|bilinear|cubic|average|mode|lanczos",                                  \
        .doc = "How pixels of one grid are made from those of another."                            \
    }

/* The same where nothing is given: has_method tells so. What is taken then is for pb_grid_args_how;
 * `usual` is its name for measurements. */
#define PB_KEY_METHOD_BY_BAND(params, usual)                                                       \
    {                                                                                              \
        .name = "method", .type = PB_KEY_CHOICE, .offset = offsetof(params, method),               \
        .more = offsetof(params, has_method),                                                      \
        .choices = "nearest|bilinear|cubic|average|mode|lanczos",                                  \
        .doc =                                                                                     \
            "How pixels of one grid are made from those of another. " usual                        \
            " unless given; of a band of classes nearest, and mode where the new pixels are "      \
            "at least twice as wide. A band has classes when its file has a colour table or "      \
            "names of categories for it, when it is a quality band by its name or its file's "     \
            "(SCL, QA_PIXEL, ...), when a mask step or a product takes its values for classes, "   \
            "or when steps make a few values of it."                                               \
    }

/* The method for a band that goes to the grid `to`: the one given, else `usual`, or what keeps its
 * classes. Where the one given mixes classes of files a note says so. has: whether one is given. */
struct pb_grid_method {
    int32_t given;
    bool has;
    enum pb_resampling usual;
};
enum pb_resampling pb_grid_args_how(const struct pb_grid_method *method, struct pb_builder *b,
                                    const struct pb_band_pick *pick, int32_t to);

/* The transform of a grid, in GDAL's order; false: the scene has none. */
bool pb_grid_args_transform(const struct pb_builder *b, int32_t grid, double out_transform[6]);
/* Pixel coordinates of a place; false: the transform cannot be inverted. */
bool pb_grid_args_pixel(const double transform[6], double x, double y, double *out_column,
                        double *out_row);
/* A grid that is a window of another. */
struct pb_geometry pb_grid_args_window(const struct pb_geometry *grid,
                                       const struct pb_rect *window);
/* A grid of w x h pixels over another from its upper left corner, with factor_x, factor_y times as
 * many pixels a length. */
struct pb_geometry pb_grid_args_scaled(const struct pb_geometry *grid, int32_t w, int32_t h,
                                       double factor_x, double factor_y);
#endif
