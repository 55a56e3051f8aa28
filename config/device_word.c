/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/device_word.h"
#include "config/compute_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INDEX_MAX 255

int pb_device_word(const char *text, struct pb_compute_config *out_compute)
{
    static const char *const words[] = {
        [PB_DEVICE_AUTO] = "auto", [PB_DEVICE_CPU] = "cpu", [PB_DEVICE_CUDA] = "cuda"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(text, words[i]) != 0)
            continue;
        out_compute->device = (enum pb_device_kind)i;
        out_compute->device_index = -1;
        return 0;
    }
    const char *number = strncmp(text, "cuda:", 5) == 0 ? text + 5 : "";
    size_t digits = strspn(number, "0123456789");
    if (digits == 0 || digits > 3 || number[digits] != '\0' || atoi(number) > INDEX_MAX)
        return -EINVAL;
    out_compute->device = PB_DEVICE_CUDA;
    out_compute->device_index = atoi(number);
    return 0;
}
