/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PREDICTORS_H
#define PB_PREDICTORS_H
/* TIFF's predictors (tag 317): none, differences to the pixel on the left, differences of the bytes
 * of floats. C11 and C++17. */
enum { PB_PREDICTOR_NONE = 1, PB_PREDICTOR_HORIZONTAL = 2, PB_PREDICTOR_FLOAT = 3 };
#endif
