/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Lengths by Huffman's merge over two queues (the symbols sorted by count, and the inner nodes,
 * whose order of creation is sorted); codes over the limit are shortened to it and the Kraft sum
 * is repaired at the cost of the next longest ones. Ties are broken by symbol, so the result is the
 * same everywhere. */
#include "pipeline/codec/huffman.h"

#include <string.h>

struct leaf {
    uint32_t count;
    uint16_t symbol;
};

/* Stable sort by the bytes of the counts, the lowest first: leaves are in the order of symbols
 * before. The C library's sort would allocate. Returns the sorted leaves: leaf or room. */
static struct leaf *sort_by_count(struct leaf *leaf, struct leaf *room, unsigned n)
{
    for (unsigned shift = 0; shift < 32; shift += 8) {
        uint16_t next[256] = {0};
        unsigned sum = 0;
        for (unsigned i = 0; i < n; i++)
            next[leaf[i].count >> shift & 255]++;
        if (next[0] == n)
            continue; /* this byte is 0 in all */
        for (unsigned digit = 0; digit < 256; digit++) {
            unsigned own = next[digit];
            next[digit] = (uint16_t)sum;
            sum += own;
        }
        for (unsigned i = 0; i < n; i++)
            room[next[leaf[i].count >> shift & 255]++] = leaf[i];
        struct leaf *sorted = room;
        room = leaf;
        leaf = sorted;
    }
    return leaf;
}

/* Counts the leaves of each depth; leaves are sorted, at least two. */
static void depths(const struct leaf *leaf, unsigned n, uint32_t *of_depth)
{
    uint32_t weight[PB_HUFFMAN_SYMBOLS]; /* weight of inner node i */
    uint16_t parent[2 * PB_HUFFMAN_SYMBOLS], depth[PB_HUFFMAN_SYMBOLS];
    unsigned next_leaf = 0, next_node = 0;
    for (unsigned node = 0; node + 1 < n; node++) {
        weight[node] = 0;
        for (int child = 0; child < 2; child++) {
            int take_leaf =
                next_leaf < n && (next_node >= node || leaf[next_leaf].count <= weight[next_node]);
            unsigned at = take_leaf ? next_leaf : n + next_node;
            weight[node] += take_leaf ? leaf[next_leaf++].count : weight[next_node++];
            parent[at] = (uint16_t)node;
        }
    }
    depth[n - 2] = 0;
    for (unsigned node = n - 2; node-- > 0;)
        depth[node] = (uint16_t)(depth[parent[n + node]] + 1);
    for (unsigned i = 0; i < n; i++)
        of_depth[depth[parent[i]] + 1]++;
}

static void shorten(uint32_t *of_depth, unsigned limit)
{
    uint32_t sum = 0;
    for (unsigned d = limit + 1; d < PB_HUFFMAN_SYMBOLS; d++) {
        of_depth[limit] += of_depth[d];
        of_depth[d] = 0;
    }
    for (unsigned d = 1; d <= limit; d++)
        sum += of_depth[d] << (limit - d);
    /* Each step takes a leaf of the deepest level and makes it the sibling of a higher one. */
    for (; sum > 1u << limit; sum--) {
        unsigned d = limit - 1;
        while (of_depth[d] == 0)
            d--;
        of_depth[limit]--;
        of_depth[d]--;
        of_depth[d + 1] += 2;
    }
}

void pb_huffman_lengths(const uint32_t *count, unsigned n, unsigned limit, uint8_t *out_bits)
{
    struct leaf all[PB_HUFFMAN_SYMBOLS], room[PB_HUFFMAN_SYMBOLS];
    uint32_t of_depth[PB_HUFFMAN_SYMBOLS + 1] = {0};
    unsigned used = 0;
    memset(out_bits, 0, n);
    for (unsigned s = 0; s < n; s++)
        if (count[s] > 0)
            all[used++] = (struct leaf){count[s], (uint16_t)s};
    if (used == 1)
        out_bits[all[0].symbol] = 1;
    if (used < 2)
        return;
    const struct leaf *leaf = sort_by_count(all, room, used);
    depths(leaf, used, of_depth);
    shorten(of_depth, limit);
    unsigned at = used;
    for (unsigned d = 1; d <= limit; d++) /* the most frequent symbols get the shortest codes */
        for (uint32_t i = 0; i < of_depth[d]; i++)
            out_bits[leaf[--at].symbol] = (uint8_t)d;
}

/* Reverses the order of the 16 bits. */
static uint32_t turned(uint32_t v)
{
    v = (v & 0x5555) << 1 | (v >> 1 & 0x5555);
    v = (v & 0x3333) << 2 | (v >> 2 & 0x3333);
    v = (v & 0x0f0f) << 4 | (v >> 4 & 0x0f0f);
    return (v & 0x00ff) << 8 | v >> 8;
}

uint64_t pb_huffman_size(const uint32_t *count, const uint8_t *bits, unsigned n)
{
    uint64_t size = 0;
    for (unsigned s = 0; s < n; s++)
        size += (uint64_t)count[s] * bits[s];
    return size;
}

void pb_huffman_codes(const uint8_t *bits, unsigned n, uint16_t *out_code)
{
    uint32_t of_depth[16] = {0}, next[16] = {0};
    for (unsigned s = 0; s < n; s++)
        of_depth[bits[s]]++;
    of_depth[0] = 0;
    for (unsigned d = 1; d < 16; d++)
        next[d] = (next[d - 1] + of_depth[d - 1]) << 1;
    for (unsigned s = 0; s < n; s++) {
        uint32_t code = bits[s] ? next[bits[s]]++ : 0;
        out_code[s] = (uint16_t)(turned(code) >> (16 - bits[s]));
    }
}
