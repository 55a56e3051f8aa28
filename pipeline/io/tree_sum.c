/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The library's interface hashes from the first byte to the last only. Its hasher, a public
 * struct, is therefore begun at the position of a subtree, and holds the values of the subtree's
 * two halves afterwards. Values above are combined here: one for each granule, therefore portable
 * code is fast enough. A test compares all this with the library's own order. */
#include "pipeline/io/tree_sum.h"

#include <assert.h>
#include <blake3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are in the order of memory");

enum { VALUE_BYTES = 32, CHUNK_START = 1, CHUNK_END = 2, PARENT = 4, ROOT = 8 };

struct value {
    uint32_t word[8];
};

struct pb_tree_sum {
    uint64_t total, n;
    struct value *value;       /* value of each granule; the digest if there is only one */
    _Atomic uint32_t *written; /* bytes of each granule that were counted */
    atomic_bool *added;
};

static const struct value initial = {{0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F,
                                      0x9B05688C, 0x1F83D9AB, 0x5BE0CD19}};

static uint32_t rotate(uint32_t x, unsigned bits)
{
    return x >> bits | x << (32 - bits);
}

static void mix(uint32_t v[16], const unsigned at[4], uint32_t x, uint32_t y)
{
    uint32_t *a = &v[at[0]], *b = &v[at[1]], *c = &v[at[2]], *d = &v[at[3]];
    *a += *b + x;
    *d = rotate(*d ^ *a, 16);
    *c += *d;
    *b = rotate(*b ^ *c, 12);
    *a += *b + y;
    *d = rotate(*d ^ *a, 8);
    *c += *d;
    *b = rotate(*b ^ *c, 7);
}

/* The compression function. data: up to 64 bytes. */
static struct value compress(const struct value *before, const void *data, uint32_t bytes,
                             uint64_t counter, uint32_t flags)
{
    static const unsigned lanes[8][4] = {{0, 4, 8, 12},  {1, 5, 9, 13},  {2, 6, 10, 14},
                                         {3, 7, 11, 15}, {0, 5, 10, 15}, {1, 6, 11, 12},
                                         {2, 7, 8, 13},  {3, 4, 9, 14}};
    static const unsigned order[16] = {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8};
    uint32_t m[16] = {0}, next[16], v[16];
    struct value out;
    memcpy(m, data, bytes);
    memcpy(v, before->word, VALUE_BYTES);
    memcpy(v + 8, initial.word, VALUE_BYTES / 2);
    v[12] = (uint32_t)counter;
    v[13] = (uint32_t)(counter >> 32);
    v[14] = bytes;
    v[15] = flags;
    for (int round = 0; round < 7; round++) {
        for (int i = 0; i < 8; i++)
            mix(v, lanes[i], m[2 * i], m[2 * i + 1]);
        for (int i = 0; i < 16; i++)
            next[i] = m[order[i]];
        memcpy(m, next, sizeof m);
    }
    for (int i = 0; i < 8; i++)
        out.word[i] = v[i] ^ v[i + 8];
    return out;
}

static struct value parent_of(const struct value *left, const struct value *right, uint32_t flags)
{
    const struct value both[2] = {*left, *right};
    return compress(&initial, both, sizeof both, 0, PARENT | flags);
}

/* 1 to 1024 bytes. */
static struct value chunk_value(const char *data, size_t bytes, uint64_t counter)
{
    struct value value = initial;
    for (size_t at = 0; at < bytes; at += BLAKE3_BLOCK_LEN) {
        size_t n = bytes - at < BLAKE3_BLOCK_LEN ? bytes - at : BLAKE3_BLOCK_LEN;
        uint32_t flags = (at == 0 ? CHUNK_START : 0) | (at + n == bytes ? CHUNK_END : 0);
        value = compress(&value, data + at, (uint32_t)n, counter, flags);
    }
    return value;
}

/* The largest power of 2 below n, which is at least 2. */
static uint64_t left_of(uint64_t n)
{
    uint64_t left = 1;
    while (2 * left < n)
        left *= 2;
    return left;
}

/* A subtree of 2 chunks or more, a power of 2, which begins at a multiple of its length. */
static struct value full_value(const char *data, size_t bytes, uint64_t counter)
{
    blake3_hasher hasher;
    struct value half[2];
    blake3_hasher_init(&hasher);
    hasher.chunk.chunk_counter = counter;
    blake3_hasher_update(&hasher, data, bytes);
    assert(hasher.cv_stack_len == 2);
    memcpy(half, hasher.cv_stack, sizeof half);
    return parent_of(&half[0], &half[1], 0);
}

/* A subtree of any length, at least 1 byte. Chunks, halves: the depth is that of a granule. */
static struct value subtree_value(const char *data, size_t bytes, uint64_t counter)
{
    const uint64_t chunks = (bytes + BLAKE3_CHUNK_LEN - 1) / BLAKE3_CHUNK_LEN;
    if (chunks == 1)
        return chunk_value(data, bytes, counter);
    if ((bytes & (bytes - 1)) == 0)
        return full_value(data, bytes, counter);
    const size_t left_bytes = (size_t)left_of(chunks) * BLAKE3_CHUNK_LEN;
    const struct value left = subtree_value(data, left_bytes, counter);
    const struct value right = subtree_value(data + left_bytes, bytes - left_bytes,
                                             counter + left_bytes / BLAKE3_CHUNK_LEN);
    return parent_of(&left, &right, 0);
}

static uint64_t count_granules(uint64_t total)
{
    return total == 0 ? 1 : (total - 1) / PB_TREE_GRANULE + 1;
}

uint64_t pb_tree_sum_memory(uint64_t total)
{
    return sizeof(struct pb_tree_sum) +
           count_granules(total) *
               (sizeof(struct value) + sizeof(_Atomic uint32_t) + sizeof(atomic_bool));
}

struct pb_tree_sum *pb_tree_sum_create(uint64_t total)
{
    struct pb_tree_sum *tree = calloc(1, sizeof *tree);
    if (tree == NULL)
        return NULL;
    tree->total = total;
    tree->n = count_granules(total);
    tree->value = calloc(tree->n, sizeof *tree->value);
    tree->written = calloc(tree->n, sizeof *tree->written);
    tree->added = calloc(tree->n, sizeof *tree->added);
    if (tree->value != NULL && tree->written != NULL && tree->added != NULL)
        return tree;
    pb_tree_sum_destroy(tree);
    return NULL;
}

uint64_t pb_tree_sum_granules(const struct pb_tree_sum *tree)
{
    return tree->n;
}

size_t pb_tree_sum_bytes(const struct pb_tree_sum *tree, uint64_t granule)
{
    const uint64_t left = tree->total - granule * PB_TREE_GRANULE;
    return left < PB_TREE_GRANULE ? (size_t)left : PB_TREE_GRANULE;
}

bool pb_tree_sum_count(struct pb_tree_sum *tree, uint64_t granule, size_t bytes)
{
    const uint32_t before =
        atomic_fetch_add_explicit(&tree->written[granule], (uint32_t)bytes, memory_order_acq_rel);
    return before + bytes == pb_tree_sum_bytes(tree, granule);
}

void pb_tree_sum_add(struct pb_tree_sum *tree, uint64_t granule, const void *data)
{
    const size_t bytes = pb_tree_sum_bytes(tree, granule);
    struct value *value = &tree->value[granule];
    if (tree->n > 1) {
        *value = subtree_value(data, bytes, granule * (PB_TREE_GRANULE / BLAKE3_CHUNK_LEN));
    } else {
        blake3_hasher hasher;
        blake3_hasher_init(&hasher);
        blake3_hasher_update(&hasher, data, bytes);
        blake3_hasher_finalize(&hasher, (uint8_t *)value->word, VALUE_BYTES);
    }
    atomic_store_explicit(&tree->added[granule], true, memory_order_release);
}

bool pb_tree_sum_has(const struct pb_tree_sum *tree, uint64_t granule)
{
    return atomic_load_explicit(&tree->added[granule], memory_order_acquire);
}

/* Value of n granules from `first` on. */
static struct value granules_value(const struct pb_tree_sum *tree, uint64_t first, uint64_t n,
                                   uint32_t flags)
{
    if (n == 1)
        return tree->value[first];
    const uint64_t left_n = left_of(n);
    const struct value left = granules_value(tree, first, left_n, 0);
    const struct value right = granules_value(tree, first + left_n, n - left_n, 0);
    return parent_of(&left, &right, flags);
}

void pb_tree_sum_text(const struct pb_tree_sum *tree, char out_text[PB_CHECKSUM_TEXT_BYTES])
{
    const struct value root = granules_value(tree, 0, tree->n, ROOT);
    pb_checksum_text(PB_CHECKSUM_BLAKE3, (const unsigned char *)root.word, out_text);
}

void pb_tree_sum_destroy(struct pb_tree_sum *tree)
{
    if (tree == NULL)
        return;
    free(tree->value);
    free(tree->written);
    free(tree->added);
    free(tree);
}
