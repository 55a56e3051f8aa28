/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/device/emulator.h"

#include "kernels/codec/unpredict.cuh"

#include "tests/device/emulate_codecs.h"

namespace
{
template <class T, bool FLOATS>
void rows(const pb_unpredict_form &form, const pb_unpredict_block &block)
{
    emulate(block.h, 32, 0, [&] {
        if (form.as == PB_UNPREDICT_MASK) {
            pb_unpredict::run_mask<T, FLOATS>(form, block, blockIdx.x);
        } else {
            pb_unpredict::run<T, FLOATS>(form, block, blockIdx.x);
        }
    });
}
} // namespace

void emulate_unpredict(const struct pb_unpredict_form *form, const struct pb_unpredict_block *block,
                       unsigned order)
{
    emulator.order = order;
    if (form->as == PB_UNPREDICT_BITS) {
        return emulate(block->h, 32, 0, [&] { pb_unpredict::run_bits(*form, *block, blockIdx.x); });
    }
    if (form->predictor == 3) {
        return form->sample_bytes == 4 ? rows<uint32_t, true>(*form, *block)
                                       : rows<uint64_t, true>(*form, *block);
    }
    switch (form->sample_bytes) {
    case 1:
        return rows<uint8_t, false>(*form, *block);
    case 2:
        return rows<uint16_t, false>(*form, *block);
    case 4:
        return rows<uint32_t, false>(*form, *block);
    default:
        return rows<uint64_t, false>(*form, *block);
    }
}

void emulate_copy_rect(const struct pb_rect_copy *copy, unsigned order)
{
    emulator.order = order;
    emulate(copy->h, 32, 0, [&] { pb_unpredict::copy_row(*copy, blockIdx.x); });
}
