/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/expr/speckle_args.h"

float pb_speckle_args_noise(double looks, int32_t data)
{
    const double of_one_look = data == 0 ? 1.0 : 4.0 / 3.14159265358979323846 - 1.0;

    return (float)(of_one_look / looks);
}

pb_value pb_speckle_args_lee(struct pb_builder *b, pb_value x, pb_value mean, pb_value variance,
                             float noise)
{
    const pb_value c = pb_builder_constant(b, noise), zero = pb_builder_constant(b, 0.0f);
    const pb_value one_and_c = pb_builder_constant(b, 1.0f + noise);
    const pb_value square = pb_builder_emit(b, PB_VM_MUL, mean, mean, -1);
    const pb_value speckle = pb_builder_emit(b, PB_VM_MUL, square, c, -1);
    const pb_value rest = pb_builder_emit(b, PB_VM_SUB, variance, speckle, -1);
    const pb_value below = pb_builder_emit(b, PB_VM_MUL, one_and_c, variance, -1);
    /* Chosen, not computed, where there is no variance: 0 / 0 is invalid. */
    const pb_value k = pb_builder_emit(b, PB_VM_WHERE, pb_builder_emit(b, PB_VM_GT, rest, zero, -1),
                                       pb_builder_emit(b, PB_VM_DIV, rest, below, -1), zero);
    const pb_value above = pb_builder_emit(b, PB_VM_SUB, x, mean, -1);

    return pb_builder_emit(b, PB_VM_ADD, mean, pb_builder_emit(b, PB_VM_MUL, k, above, -1), -1);
}
