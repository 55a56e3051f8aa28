/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Evaluates every index of the catalogue through a real chain, for tests that compute the values by
 * other means. Standard input, words and lines:
 *
 *   kernel rbf
 *   constants lambdaN=842 L=0.5
 *   bands N R B
 *   pixels 2
 *   0.4 0.1 nan
 *   0.3 0.1 0.05
 *
 * Standard output: a line for each index, its name and its value for every pixel ("nan" where it is
 * invalid). --each: a chain of its own for every index; --all: one chain that makes all of them. An
 * index that does not compile ends the program with its message and exit code 1. */
#include "kernels/chain/chain.h"
#include "kernels/index/index_table.h"
#include "tests/op_params.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ITEMS_MAX 64
#define WORD      64

struct input {
    char kernel[WORD];
    char name[ITEMS_MAX][WORD];
    double value[ITEMS_MAX];
    size_t n_constants;
    char band[ITEMS_MAX][WORD];
    size_t n_bands;
    int32_t n_pixels;
    float *planes; /* n_bands of n_pixels */
};

static _Noreturn void fail(const char *what, const char *detail)
{
    fprintf(stderr, "eval_index: %s%s\n", what, detail);
    exit(1);
}

static void *need(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    if (memory == NULL) {
        fail("out of memory", "");
    }
    return memory;
}

static void add_constant(struct input *input, const char *word)
{
    const char *equals = strchr(word, '=');
    if (equals == NULL || input->n_constants == ITEMS_MAX || equals - word >= WORD) {
        fail("constant: ", word);
    }
    snprintf(input->name[input->n_constants], WORD, "%.*s", (int)(equals - word), word);
    input->value[input->n_constants++] = strtod(equals + 1, NULL);
}

static void read_pixels(struct input *input)
{
    if (scanf("%d", &input->n_pixels) != 1 || input->n_pixels < 1) {
        fail("number of pixels", "");
    }
    size_t n = (size_t)input->n_pixels;
    input->planes = need(input->n_bands * n * sizeof *input->planes);
    for (size_t i = 0; i < n * input->n_bands; i++) {
        if (scanf("%f", &input->planes[i % input->n_bands * n + i / input->n_bands]) != 1) {
            fail("too few pixels", "");
        }
    }
}

static void read_input(struct input *input)
{
    char word[WORD], section[WORD] = "";
    while (scanf("%63s", word) == 1) {
        if (strcmp(word, "pixels") == 0) {
            read_pixels(input);
            return;
        }
        if (strcmp(word, "kernel") == 0 || strcmp(word, "constants") == 0 ||
            strcmp(word, "bands") == 0) {
            snprintf(section, sizeof section, "%s", word);
        } else if (strcmp(section, "kernel") == 0) {
            snprintf(input->kernel, WORD, "%s", word);
        } else if (strcmp(section, "constants") == 0) {
            add_constant(input, word);
        } else if (strcmp(section, "bands") == 0 && input->n_bands < ITEMS_MAX) {
            snprintf(input->band[input->n_bands++], WORD, "%s", word);
        } else {
            fail("not understood: ", word);
        }
    }
    fail("no pixels", "");
}

/* A chain that makes the indices `name`, n of them. */
static struct pb_chain *make_chain(const struct input *input, const char *const *name, size_t n)
{
    const struct pb_op *op = pb_op_find("index");
    struct pb_item *names = calloc(n, sizeof *names), constants[ITEMS_MAX] = {{0}};
    struct pb_item kernel = {.text = input->kernel};
    struct op_params params;
    for (size_t i = 0; i < n; i++) {
        names[i].text = name[i];
    }
    for (size_t i = 0; i < input->n_constants; i++) {
        constants[i].key = input->name[i];
        constants[i].num = input->value[i];
    }
    op_defaults(op, &params);
    if (!op_give(op, &params, "names", names, n) ||
        !op_give(op, &params, "constants", constants, input->n_constants) ||
        !op_give(op, &params, "kernel", &kernel, 1)) {
        fail("index lacks a key", "");
    }
    struct pb_chain_input bands[ITEMS_MAX] = {{0}};
    for (size_t i = 0; i < input->n_bands; i++) {
        bands[i] = (struct pb_chain_input){.name = input->band[i], .type = PB_F32, .scale = 1};
    }
    struct pb_chain_step step = {op, &params};
    struct pb_chain_spec spec = {.inputs = bands,
                                 .n_inputs = input->n_bands,
                                 .steps = &step,
                                 .n_steps = 1,
                                 .outputs = name,
                                 .n_outputs = n};
    struct pb_diag diag = {0};
    struct pb_chain *chain = NULL;
    size_t where;
    if (pb_chain_create(&spec, &diag, &where, &chain) < 0) {
        fail("does not compile: ", diag.msg);
    }
    free(names);
    return chain;
}

/* All pixels as one tile, one row. out: as many planes as the chain has outputs. */
static void run_chain(const struct input *input, const struct pb_chain *chain, float *out)
{
    const uint32_t *used;
    size_t n_used = pb_chain_used(chain, &used), px = (size_t)input->n_pixels;
    float *in = need(n_used * px * sizeof *in);
    for (size_t i = 0; i < n_used; i++) {
        memcpy(in + i * px, input->planes + used[i] * px, px * sizeof *in);
    }
    struct pb_rect rect = {0, 0, input->n_pixels, 1};
    struct pb_tile_in tile = {.window[0].data = in,
                              .window[0].row_bytes = px * sizeof *in,
                              .window[0].plane_bytes = px * sizeof *in,
                              .window[0].rect = rect,
                              .core = rect,
                              .image_w = rect.w,
                              .image_h = 1};
    struct pb_tile_out to = {out, px};
    void *scratch = need(pb_chain_scratch_bytes(chain, rect.w, 1));
    if (pb_chain_run_cpu(chain, &tile, &to, scratch) < 0) {
        fail("the chain does not run", "");
    }
    free(in);
    free(scratch);
}

static void evaluate(const struct input *input, const char *const *name, size_t n)
{
    size_t px = (size_t)input->n_pixels;
    struct pb_chain *chain = make_chain(input, name, n);
    float *out = need(n * px * sizeof *out);
    run_chain(input, chain, out);
    for (size_t i = 0; i < n; i++) {
        printf("%s", name[i]);
        for (size_t p = 0; p < px; p++) {
            printf(" %.9g", (double)out[i * px + p]);
        }
        printf("\n");
    }
    free(out);
    pb_chain_destroy(chain);
}

int main(int argc, char **argv)
{
    struct input input = {.kernel = "rbf"};
    bool all = argc == 2 && strcmp(argv[1], "--all") == 0;
    if (!all && (argc != 2 || strcmp(argv[1], "--each") != 0)) {
        fail("usage: eval_index --each|--all < values", "");
    }
    read_input(&input);
    size_t n = pb_index_count();
    const char **names = calloc(n, sizeof *names);
    for (size_t i = 0; i < n; i++) {
        names[i] = pb_index_at(i)->name;
    }
    if (all) {
        evaluate(&input, names, n);
    }
    for (size_t i = 0; !all && i < n; i++) {
        evaluate(&input, &names[i], 1);
    }
    free(names);
    free(input.planes);
    return 0;
}
