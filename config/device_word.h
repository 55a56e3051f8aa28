/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DEVICE_WORD_H
#define PB_DEVICE_WORD_H
/* The words of compute.device and of --device. Thread: any. */

struct pb_compute_config;

/* "auto", "cpu", "cuda" or "cuda:N" (N from 0 to 255) into device and device_index. 0, or -EINVAL
 * and *out_compute as it was. */
int pb_device_word(const char *text, struct pb_compute_config *out_compute);
#endif
