/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Speed of every case of every operator on a GPU whose memory has the scene, in both ways that a
 * GPU runs a chain, compared with all cores of the host; and that of a chain of 1 to 16 pixel-wise
 * steps.
 *
 *   check_ops_speed [--side 8192] [--seconds 0.2] [OPERATOR ...]
 *
 * A JSON object a line. The first: the device, the rate of a copy from device memory to device
 * memory (bytes read and written), the number of cores. Then a case a line, nanoseconds a pixel
 * made:
 *   cpu     tiles of 512 x 512 pixels that stay in the caches, a thread a core, all at once
 *   stages  pb_chain_cuda_launch: a kernel a stage over the whole scene
 *   parts   pb_chain_block_launch: all stages on a part of the scene by a block, the best of some
 *           shapes; as the resident kernel does it
 * need_bytes: of a pixel made, its samples read once and its outputs written; stage_bytes: bytes
 * that the kernels of `stages` load and store, scratch planes among it. The scene has UInt16 bands
 * of random samples with nodata. Times on the GPU are medians of 9 of several launches each, by
 * events. Without CUDA or a device: only the cores. Exits 1 when a chain fails, 2 without a figure
 * when the kernels were compiled quickly (figures.h). */
#include "tests/op_cases.h"
#include "tests/op_tile.h"
#include "tests/gpu/ops_on_cores.h"
#ifdef PB_HAVE_CUDA
#include "tests/gpu/figures.h"
#include "tests/gpu/ops_on_gpu.h"
#endif
#include "kernels/chain/chain_stage.h"

static struct {
    int32_t side;
    double seconds;
    uint32_t cores;
    char *const *wanted; /* names of operators; none = all */
    bool has_gpu;
} options = {.side = 8192, .seconds = 0.2};

/* --- what a chain is ------------------------------------------------------------------------- */

/* Bytes of a pixel made: its samples, read once, and its outputs. */
static double need_bytes(const struct pb_chain *chain, const struct pb_tile_in *in)
{
    const struct pb_rect read = in->window[0].rect;
    const double made_px = (double)in->core.w * in->core.h;
    const uint32_t *used;
    const size_t n_planes = pb_chain_used(chain, &used);

    return (double)n_planes * sizeof(uint16_t) * (double)read.w * read.h / made_px +
           (double)pb_chain_output_count(chain) * sizeof(float);
}

static double plane_px(const struct pb_chain *chain, const struct pb_rect *core, uint16_t grid,
                       int32_t margin)
{
    const struct pb_rect rect = pb_chain_rect_on(chain, grid, core, margin);

    return (double)rect.w * rect.h;
}

/* Loads and stores of the kernels that run stage by stage, of a pixel made. Neighbours of focal
 * operations count once. */
static double stage_bytes(const struct pb_chain *chain, const struct pb_tile_in *in)
{
    double bytes = 0.0;

    for (size_t k = 0; k < chain->n_stages; k++) {
        const struct pb_stage *const s = &chain->stages[k];
        const double px = plane_px(chain, &in->core, s->grid, s->margin);

        for (uint32_t i = 0; i < s->n_code; i++) {
            const uint8_t code = s->code[i].code;
            bytes += code == PB_CODE_INPUT                            ? px * sizeof(uint16_t)
                     : code == PB_CODE_PLANE || code == PB_CODE_STORE ? px * sizeof(float)
                                                                      : 0.0;
        }
        for (size_t i = 0; i < s->n_focals; i++) {
            const struct pb_stage_focal *const f = &s->focals[i];
            bytes += sizeof(float) * (plane_px(chain, &in->core, f->from_grid, f->from_margin) +
                                      plane_px(chain, &in->core, f->to_grid, f->to_margin));
        }
    }
    return bytes / ((double)in->core.w * in->core.h);
}

/* Its focal operations by name: "separable 2 median 3", the number being the radius. */
static void print_focals(const struct pb_chain *chain)
{
    int n = 0, most = 0;

    printf(",\"focals\":[");
    for (size_t k = 0; k < chain->n_stages; k++)
        for (size_t i = 0; i < chain->stages[k].n_focals; i++) {
            const struct pb_stage_focal *const f = &chain->stages[k].focals[i];
            const bool places = f->is_resample || f->is_warp;
            const int32_t radius = places ? 0 : f->focal.radius;

            printf("%s\"%s %d\"", n++ ? "," : "",
                   f->is_warp       ? "warp"
                   : f->is_resample ? "resample"
                                    : pb_focal_name(f->focal.kind),
                   radius);
            most = radius > most ? radius : most;
        }
    printf("],\"radius\":%d", most);
}

static void print_chain(const struct pb_chain *chain, const struct pb_tile_in *in)
{
    printf(",\"stages_n\":%zu,\"instructions\":%zu,\"registers\":%u,\"keeps_grid\":%s,"
           "\"made_px\":%.0f,\"need_bytes\":%.2f,\"stage_bytes\":%.2f",
           chain->n_stages, pb_chain_instruction_count(chain), chain->n_registers,
           pb_chain_keeps_grid(chain) ? "true" : "false", (double)in->core.w * in->core.h,
           need_bytes(chain, in), stage_bytes(chain, in));
    print_focals(chain);
}

/* --- cases ----------------------------------------------------------------------------------- */

/* Prints one line. Returns false if it could not be run; the line has the reason. */
static bool measure(const char *op, const char *label, const struct pb_chain *chain)
{
    const struct pb_rect all = op_tile_core(chain, options.side, INT32_MAX);
    const struct pb_tile_in in = op_tile_in(chain, options.side, all);
    const double cpu = ops_on_cores(chain, options.side, options.cores, options.seconds);
    bool good = cpu > 0.0;

    printf("{\"op\":\"%s\",\"case\":\"%s\"", op, label);
    print_chain(chain, &in);
    printf(",\"cpu\":%.5g", cpu);
#ifdef PB_HAVE_CUDA
    if (options.has_gpu) {
        struct ops_gpu_times times = {0};

        good = good && ops_on_gpu(chain, &in, &times);
        printf(",\"stages\":%.5g,\"stages_us\":%.5g,\"parts\":%.5g,\"parts_shape\":\"%s\"",
               times.stages_ns, times.stages_us, times.parts_ns, times.shape);
    }
#endif
    printf("}\n");
    (void)fflush(stdout);
    if (!good)
        (void)fprintf(stderr, "%s %s: it did not run\n", op, label);
    return good;
}

static bool measure_case(const struct pb_op *op, const struct pb_op_case *c)
{
    struct pb_chain *chain = NULL;
    struct pb_diag diag;

    if (!op_is_among(options.wanted, op->name))
        return true;
    if (op_case_chain(op, c, PB_U16, true, 0.0, 0.0001, 0.0, options.side, &diag, &chain) < 0) {
        (void)fprintf(stderr, "%s %s: %s\n", op->name, c->label, diag.msg);
        return false;
    }
    const bool good = measure(op->name, c->label, chain);
    pb_chain_destroy(chain);
    return good;
}

/* Measures n steps, each of which makes band X again from itself and N. */
static bool measure_steps(size_t n)
{
    static const struct pb_item first = {.key = "X", .text = "N * R"},
                                next = {.key = "X", .text = "X * 0.5 + N"};
    struct pb_chain_input inputs[OP_CASE_BANDS];
    struct op_params params[2];
    struct pb_chain_step steps[16];
    struct pb_chain *chain = NULL;
    struct pb_diag diag = {.kind = PB_DIAG_NONE};
    const char *const output = "X";
    const struct pb_op *const math = pb_op_find("math");
    const struct pb_chain_source source = {
        .w = options.side, .h = options.side, .placed = true, .map = pb_map_identity()};
    char label[16];
    size_t at;

    for (size_t i = 0; i < OP_CASE_BANDS; i++)
        inputs[i] = (struct pb_chain_input){
            .name = op_case_bands[i], .type = PB_U16, .has_nodata = true, .scale = 0.0001};
    for (size_t i = 0; i < 2; i++) {
        op_defaults(math, &params[i]);
        if (!op_give(math, &params[i], "bands", i ? &next : &first, 1))
            return false;
    }
    for (size_t i = 0; i < n; i++)
        steps[i] = (struct pb_chain_step){math, &params[i > 0]};
    const struct pb_chain_spec spec = {.inputs = inputs,
                                       .n_inputs = OP_CASE_BANDS,
                                       .steps = steps,
                                       .n_steps = n,
                                       .outputs = &output,
                                       .n_outputs = 1,
                                       .sources = &source,
                                       .n_sources = 1};
    if (pb_chain_create(&spec, &diag, &at, &chain) < 0) {
        (void)fprintf(stderr, "%zu steps: %s\n", n, diag.msg);
        return false;
    }
    (void)snprintf(label, sizeof label, "%zu", n);
    const bool good = measure("steps", label, chain);
    pb_chain_destroy(chain);
    return good;
}

/* --- the program ----------------------------------------------------------------------------- */

static bool print_machine(void)
{
    bool good = true;

    printf("{\"cores\":%u,\"side\":%d", options.cores, options.side);
#ifdef PB_HAVE_CUDA
    if (options.has_gpu) {
        struct ops_gpu_machine machine;

        good = ops_gpu_open(options.side, OP_CASE_BANDS, &machine);
        printf(",\"device\":\"%s\",\"multiprocessors\":%d,\"l2_bytes\":%d,\"copy_gb_per_s\":%.1f,"
               "\"shared_bytes\":%d",
               machine.name, machine.multiprocessors, machine.l2_bytes, machine.copy_gb_per_s,
               machine.shared_bytes);
    }
#endif
    printf("}\n");
    return good;
}

static bool parse(int argc, char **argv)
{
    int i = 1;

    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        if (strcmp(argv[i], "--side") == 0)
            options.side = (int32_t)strtol(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--seconds") == 0)
            options.seconds = strtod(argv[i + 1], NULL);
        else
            return false;
    }
    options.wanted = argv + (i < argc ? i : argc);
    return options.side >= 64 && options.seconds > 0.0;
}

int main(int argc, char **argv)
{
    if (!parse(argc, argv)) {
        (void)fprintf(stderr, "check_ops_speed [--side PIXELS] [--seconds S] [OPERATOR ...]\n");
        return 2;
    }
    options.cores = ops_cores();
#ifdef PB_HAVE_CUDA
    options.has_gpu = ops_gpu_is_there();
    if (options.has_gpu && !figures_are_sound("check_ops_speed"))
        return 2;
#endif
    bool good = print_machine() && op_cases_walk(measure_case);
    for (size_t n = 1; n <= 16 && good && op_is_among(options.wanted, "steps"); n *= 2)
        good = measure_steps(n);
#ifdef PB_HAVE_CUDA
    ops_gpu_close();
#endif
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
