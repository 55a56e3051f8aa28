/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The gaps are derived from the layout of the largest possible file: a BigTIFF in which every block
 * has the most bytes that its codec makes. Each part of it is at least as long as that of the real
 * file, therefore data after a gap never have to move away from the beginning. A gap is a hole: it
 * uses no disk space. */
#include "pipeline/cog/cog_file.h"
#include "pipeline/io/tree_sum.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(PB_BLOCK_RUNS_MAX <= PB_GAP_FILE_GAPS, "a run has a gap before it");

#define POOL_LEAST_BYTES (UINT64_C(3) << 20)
#define POOL_MOST_BYTES  (UINT64_C(16) << 20)

struct pb_cog_file {
    struct pb_cog_file_options options;
    struct pb_tiff_level *level;  /* levels of options.image */
    struct pb_tiff_block **block; /* blocks of each level */
    uint64_t *n_blocks;           /* their count */
    struct pb_tiff_layout *even;  /* for blocks of one size; else NULL, and ... */
    struct pb_block_store *store; /* ... the blocks are here */
    uint64_t run_at[PB_BLOCK_RUNS_MAX];
    uint32_t run_level[PB_BLOCK_RUNS_MAX]; /* in the order of the file */
    uint32_t n_runs;
    struct pb_gap_file *file;
    pthread_mutex_t lock; /* protects which even blocks have arrived */
};

static bool is_even(const struct pb_cog_file_options *o)
{
    return o->image.block_bytes != 0;
}

static uint64_t most_bytes(const struct pb_cog_file_options *o, uint32_t level)
{
    return o->image.masks && level % 2 == 1 ? o->most_mask_bytes : o->most_bytes;
}

/* Returns the largest size of all blocks together, with `more` bytes for each. */
static uint64_t all_bytes(const struct pb_cog_file_options *o, uint64_t more)
{
    uint64_t all = 0;
    for (uint32_t k = 0; k < o->image.n_levels; k++)
        all += o->image.level[k].n_blocks * (most_bytes(o, k) + more);
    return all;
}

/* Memory to keep all blocks. */
static uint64_t store_bytes(const struct pb_cog_file_options *o)
{
    return all_bytes(o, 32 << 10);
}

/* Memory for an early block from each thread; for all blocks if they are few. */
static uint64_t pool_bytes(const struct pb_cog_file_options *o)
{
    uint64_t wanted = o->most_bytes * o->workers, all = store_bytes(o);
    wanted = wanted > POOL_LEAST_BYTES ? wanted : POOL_LEAST_BYTES;
    wanted = wanted < POOL_MOST_BYTES ? wanted : POOL_MOST_BYTES;
    wanted = wanted < all ? wanted : all;
    return o->pool_bytes > 0 ? o->pool_bytes : wanted;
}

/* Upper limit of the bytes of the file, without tags: a block has an offset and a size of 8 bytes
 * each. */
static uint64_t largest_bytes(const struct pb_cog_file_options *o)
{
    return all_bytes(o, PB_TIFF_FRAME + 16);
}

uint64_t pb_cog_file_bytes(const struct pb_cog_file_options *o, size_t n_tags)
{
    const struct pb_tiff_image *image = &o->image;
    uint64_t bytes = sizeof(struct pb_cog_file) + PB_TIFF_WRITE_BYTES + PB_GAP_FILE_BYTES;
    bytes += pb_tiff_layout_bytes(image->n_levels, n_tags);
    bytes += image->n_levels *
             (sizeof(struct pb_tiff_level) + sizeof(struct pb_tiff_block *) + sizeof(uint64_t));
    for (uint32_t k = 0; k < image->n_levels; k++)
        bytes += image->level[k].n_blocks * sizeof(struct pb_tiff_block);
    bytes += pb_tree_sum_memory(largest_bytes(o));
    return is_even(o) ? bytes : bytes + pb_block_store_bytes(o->workers, pool_bytes(o));
}

static int create_index(struct pb_cog_file *file, struct pb_err *err)
{
    struct pb_tiff_image *image = &file->options.image;
    file->level = calloc(image->n_levels, sizeof *file->level);
    file->block = calloc(image->n_levels, sizeof *file->block);
    file->n_blocks = calloc(image->n_levels, sizeof *file->n_blocks);
    bool ok = file->level != NULL && file->block != NULL && file->n_blocks != NULL;
    for (uint32_t k = 0; ok && k < image->n_levels; k++) {
        file->level[k] = image->level[k];
        file->n_blocks[k] = image->level[k].n_blocks;
        file->block[k] = calloc(file->n_blocks[k], sizeof **file->block);
        file->level[k].block = file->block[k];
        ok = file->block[k] != NULL;
    }
    image->level = file->level;
    return ok ? 0 : pb_fail(err, PB_E_MEMORY, "no memory for the index of a product's blocks");
}

static int open_file(struct pb_cog_file *file, uint64_t expected_bytes, struct pb_err *err)
{
    const struct pb_cog_file_options *o = &file->options;
    int rc = pb_gap_file_create(o->path, expected_bytes, err, &file->file);
    if (rc == 0)
        pb_gap_file_watch(file->file, o->progress);
    if (rc == 0 && o->move_gaps)
        pb_gap_file_move(file->file);
    return rc;
}

static int create_even(struct pb_cog_file *file, struct pb_err *err)
{
    int rc = pb_tiff_layout_create(&file->options.image, err, &file->even);
    rc = rc ? rc : open_file(file, pb_tiff_layout_total(file->even), err);
    if (rc == 0 && file->options.checksum == PB_CHECKSUM_BLAKE3)
        rc = pb_gap_file_tree_early(file->file, pb_tiff_layout_total(file->even), err);
    return rc;
}

/* Finds the levels that are written after a gap, and their offsets: none if all blocks wait in
 * memory, if a gap uses space, or if the largest possible file is over a limit that the real one
 * may keep. */
static int find_runs(struct pb_cog_file *file, struct pb_err *err)
{
    struct pb_tiff_image largest = file->options.image;
    struct pb_tiff_layout *layout;
    largest.block_bytes = file->options.most_bytes;
    largest.mask_block_bytes = file->options.most_mask_bytes;
    largest.force_big = true;
    if (pool_bytes(&file->options) >= store_bytes(&file->options))
        return 0;
    int rc = pb_tiff_layout_create(&largest, err, &layout);
    if (rc != 0)
        return rc;
    bool reaches = pb_gap_file_may_reach(file->file, pb_tiff_layout_total(layout));
    for (uint32_t k = largest.n_levels; reaches && k-- > 0;)
        if (pb_tiff_begins_page(&largest, k)) {
            file->run_level[file->n_runs] = k;
            file->run_at[file->n_runs++] = pb_tiff_layout_data(layout, k);
        }
    pb_tiff_layout_destroy(layout);
    return 0;
}

static int create_store(struct pb_cog_file *file, struct pb_err *err)
{
    struct pb_block_store_options options = {
        .block = file->block,
        .n_blocks = file->n_blocks,
        .directory = file->options.directory,
        .workers = file->options.workers,
        .pool_bytes = pool_bytes(&file->options),
    };
    int rc = open_file(file, 0, err);
    if (rc == 0)
        rc = find_runs(file, err);
    options.file = file->file;
    options.n_runs = file->n_runs;
    for (uint32_t r = 0; r < file->n_runs; r++) {
        options.run[r].level = file->run_level[r];
        options.run[r].at = file->run_at[r];
    }
    return rc != 0 ? rc : pb_block_store_create(&options, err, &file->store);
}

int pb_cog_file_create(const struct pb_cog_file_options *options, struct pb_err *err,
                       struct pb_cog_file **out_file)
{
    struct pb_cog_file *file = calloc(1, sizeof *file);
    if (file == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for a product");
    pthread_mutex_init(&file->lock, NULL);
    file->options = *options;
    int rc = create_index(file, err);
    if (rc == 0)
        rc = is_even(options) ? create_even(file, err) : create_store(file, err);
    if (rc != 0) {
        pb_cog_file_destroy(file);
        return rc;
    }
    *out_file = file;
    return 0;
}

/* Offsets of later data depend on the size of a block, and gaps on its largest size. */
static int check_bytes(const struct pb_cog_file *file, uint32_t level, uint64_t i, size_t bytes,
                       struct pb_err *err)
{
    const struct pb_cog_file_options *o = &file->options;
    uint64_t most = most_bytes(o, level), least = is_even(o) ? most : 1;
    if (bytes >= least && bytes <= most)
        return 0;
    return pb_fail(err, PB_E_SYSTEM,
                   "block %llu of level %u of '%s' has %zu bytes, where there can be %llu to %llu",
                   (unsigned long long)i, level, o->path, bytes, (unsigned long long)least,
                   (unsigned long long)most);
}

void pb_cog_file_expect(struct pb_cog_file *file, uint32_t level, uint64_t i, size_t bytes)
{
    if (file->store != NULL && check_bytes(file, level, i, bytes, NULL) == 0)
        pb_block_store_expect(file->store, level, i, bytes);
}

int pb_cog_file_add(struct pb_cog_file *file, uint32_t level, uint64_t i,
                    const struct pb_block_bytes *bytes, uint32_t worker, struct pb_err *err)
{
    int rc = check_bytes(file, level, i, bytes->bytes, err);
    if (rc != 0)
        return rc;
    if (file->store != NULL)
        return pb_block_store_add(file->store, level, i, bytes, worker, err);
    pthread_mutex_lock(&file->lock);
    bool again = file->block[level][i].bytes != 0;
    file->block[level][i].bytes = bytes->bytes;
    pthread_mutex_unlock(&file->lock);
    return again ? pb_block_came_twice(level, i, err)
                 : pb_tiff_place_even(file->even, level, i, bytes->data, file->file, err);
}

static int check_complete(const struct pb_cog_file *file, struct pb_err *err)
{
    for (uint32_t k = 0; k < file->options.image.n_levels; k++)
        for (uint64_t i = 0; i < file->n_blocks[k]; i++)
            if (file->block[k][i].bytes == 0)
                return pb_block_is_missing(k, i, err);
    return 0;
}

/* Begins the checksum of the file. If all blocks are written from memory, the bytes are hashed in
 * the order of the file. If levels are in the file already, threads hash a tree, from its end: the
 * placed levels are there. A file of even blocks has begun its tree before. */
static int begin_sum(const struct pb_cog_file *file, const struct pb_tiff_layout *layout,
                     const struct pb_tiff_blocks *source, struct pb_err *err)
{
    const struct pb_cog_file_options *o = &file->options;
    const uint64_t total = pb_tiff_layout_total(layout);
    if (o->checksum != PB_CHECKSUM_BLAKE3 || source->placed == 0)
        return pb_gap_file_sum(file->file, o->checksum, err);
    assert(!is_even(o) || total == pb_tiff_layout_total(file->even));
    if (is_even(o))
        return 0;
    struct pb_gap_file_tree tree = {
        .total = total, .ready = total, .n_gaps = source->n_gaps, .threads = o->workers};
    memcpy(tree.gap, source->gaps, source->n_gaps * sizeof *source->gaps);
    for (uint32_t k = 0; k < o->image.n_levels && source->placed >> k & 1; k++)
        tree.ready = pb_tiff_layout_data(layout, k);
    return pb_gap_file_tree(file->file, &tree, err);
}

/* Writes everything except the placed levels, and completes the file. */
static int assemble(struct pb_cog_file *file, const struct pb_tiff_layout *layout, uint64_t placed,
                    struct pb_err *err, char out_checksum[PB_CHECKSUM_TEXT_BYTES])
{
    struct pb_gap gap[PB_BLOCK_RUNS_MAX];
    struct pb_tiff_blocks source = {
        .placed = placed,
        .read = pb_block_store_read,
        .at = pb_block_store_at,
        .user = file->store,
        .gaps = gap,
    };
    uint64_t before = 0;
    for (uint32_t r = 0; r < file->n_runs && placed != 0; r++) {
        uint64_t at = pb_tiff_layout_data(layout, file->run_level[r]);
        gap[source.n_gaps++] = (struct pb_gap){at, file->run_at[r] - at - before};
        before = file->run_at[r] - at;
    }
    int rc = begin_sum(file, layout, &source, err);
    if (rc == 0)
        rc = pb_tiff_write(layout, &source, file->file, err);
    return rc != 0 ? rc
                   : pb_gap_file_finish(file->file, pb_tiff_layout_total(layout), gap,
                                        source.n_gaps, err, out_checksum);
}

int pb_cog_file_finish(struct pb_cog_file *file, struct pb_err *err, uint64_t *out_bytes,
                       char out_checksum[PB_CHECKSUM_TEXT_BYTES])
{
    struct pb_tiff_layout *layout = NULL;
    uint64_t placed = UINT64_MAX;
    int rc = check_complete(file, err);
    if (rc == 0 && file->store != NULL)
        rc = pb_block_store_settle(file->store, err, &placed);
    if (rc == 0)
        rc = pb_tiff_layout_create(&file->options.image, err, &layout);
    if (rc == 0)
        rc = assemble(file, layout, placed, err, out_checksum);
    if (rc == 0)
        *out_bytes = pb_tiff_layout_total(layout);
    pb_tiff_layout_destroy(layout);
    return rc;
}

void pb_cog_file_destroy(struct pb_cog_file *file)
{
    if (file == NULL)
        return;
    pb_gap_file_destroy(file->file);
    pb_block_store_destroy(file->store);
    pb_tiff_layout_destroy(file->even);
    for (uint32_t k = 0; file->block != NULL && k < file->options.image.n_levels; k++)
        free(file->block[k]);
    free(file->block);
    free(file->level);
    free(file->n_blocks);
    pthread_mutex_destroy(&file->lock);
    free(file);
}
