/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FOCAL_WINDOW_H
#define PB_FOCAL_WINDOW_H
/* The pixel functions of all window kinds: float pb_focal_<name>(window, stride, radius, focal) of
 * the window whose upper left pixel is *window, rows `stride` floats apart, 2 * radius + 1 pixels a
 * side; focal has the parameters of the kind. NaN of a window with an invalid pixel, which FLAT
 * leaves out. C11 and C++17.
 */
#include "kernels/focal/adaptive_pixel.h"
#include "kernels/focal/directional_pixel.h"
#include "kernels/focal/extreme_pixel.h"
#include "kernels/focal/flat_pixel.h"
#include "kernels/focal/gradient_pixel.h"
#include "kernels/focal/moments_pixel.h"
#include "kernels/focal/rank_pixel.h"
#include "kernels/focal/relief_pixel.h"
#endif
