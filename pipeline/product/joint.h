/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PRODUCT_JOINT_H
#define PB_PRODUCT_JOINT_H
/* Products whose bands are valid or invalid together: those with a mask or an alpha band, and
 * pictures. Pure; any thread. */
#include "kernels/codec/pixel_join.h"
#include "kernels/key.h"

struct pb_product_env;

/* Values of the key `valid`. AUTO: a picture of three bands is shown where any of them is valid,
 * every other product where all bands are. */
enum pb_joint { PB_JOINT_AUTO, PB_JOINT_ALL, PB_JOINT_ANY };

/* A row for a table of keys; config: the kind's struct, which has a member int32_t valid. */
#define PB_JOINT_KEY(config, doc_)                                                                 \
    {                                                                                              \
        .name = "valid", .type = PB_KEY_CHOICE, .offset = offsetof(config, valid),                 \
        .choices = "auto|all|any", .def = "auto", .doc = doc_                                      \
    }

/* Returns true if pixels are valid where any of n bands is. picture: they are shown as red,
 * green, blue. */
bool pb_joint_any(int32_t valid, uint32_t n, bool picture);
/* Join of the first n of n_planes planes, where n is the count for `any`; `all` joins all
 * planes. A single plane is not joined. */
struct pb_pixel_join pb_joint_of(bool any, uint32_t n, uint32_t n_planes);
/* Nodata value that all of n planes of tiles have in the scene's file; NaN: absent, different,
 * or not unchanged bands of the file. */
double pb_joint_nodata(const struct pb_product_env *env, const uint32_t *plane, uint32_t n);
#endif
