/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_HUFFMAN_H
#define PB_HUFFMAN_H
/* Length-limited canonical Huffman codes in the form of deflate. Pure functions. */
#include <stdint.h>

#define PB_HUFFMAN_SYMBOLS 288

/* Bits of each of n <= PB_HUFFMAN_SYMBOLS symbols, 0 for those that do not occur (count 0), at most
 * limit <= 15 if the symbols that occur fit into it. A single symbol gets one bit. */
void pb_huffman_lengths(const uint32_t *count, unsigned n, unsigned limit, uint8_t *out_bits);
/* Bits of all n symbols, as often as they are counted, in codes of these lengths. */
uint64_t pb_huffman_size(const uint32_t *count, const uint8_t *bits, unsigned n);
/* Codes for those lengths, first bit lowest (the order of deflate's bit stream). */
void pb_huffman_codes(const uint8_t *bits, unsigned n, uint16_t *out_code);
#endif
