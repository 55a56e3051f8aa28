// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/device/emulator.h"

#include "tests/device/emulate_ready.h"
#include "wic/depend/ready.cuh"

void emulate_push(const struct wic_ready *ready, uint32_t ring, uint32_t task, uint32_t n)
{
    wic_push(*ready, ring, task, n);
}

void emulate_list(const struct wic_ready *ready, uint32_t ring)
{
    wic_list(*ready, ring);
}

bool emulate_try(const struct wic_ready *ready, uint32_t ring, uint32_t *out_task)
{
    *out_task = wic_try(*ready, ring);
    return *out_task != WIC_READY_NONE;
}

bool emulate_arrive(uint32_t *counter, uint32_t needed)
{
    return wic_arrive(counter, needed);
}

void emulate_stop(const struct wic_ready *ready, uint32_t why)
{
    wic_stop(*ready, why);
}

void emulate_post(uint32_t *word, uint32_t epoch)
{
    wic_word_post(word, epoch);
}

bool emulate_is_at(const uint32_t *word, uint32_t epoch)
{
    return wic_word_is_at(wic_word_see(word), epoch);
}
