/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The face of the graph towards operators: names for values, mistakes that are reported while the
 * building goes on, and errors that stick, so that an operator may emit a whole formula and look at
 * the result once. */
#include "kernels/graph/builder_state.h"
#include "kernels/nearest.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BANDS_MAX    4096
#define MISTAKES_MAX 64 /* each costs a search for the nearest name; texts may be hostile */

void pb_builder_init(struct pb_builder *b, pb_diag_report *report, void *to)
{
    static const struct pb_scene_facts nothing = {.assumed = true};

    memset(b, 0, sizeof *b);
    b->output = SIZE_MAX;
    b->scene = &nothing;
    b->report = report;
    b->report_to = to;
    pb_graph_init(&b->graph);
    b->graph.first_image = PB_BUILDER_INPUTS_MAX;
    b->graph.images_max = PB_SOURCES_MAX - 1;
}

void pb_builder_fini(struct pb_builder *b)
{
    for (size_t i = 0; i < b->n_bands; i++)
        free(b->bands[i].name);
    free(b->bands);
    pb_graph_fini(&b->graph);
    pb_value_tags_fini(&b->tags);
    free(b->class_names);
    memset(b, 0, sizeof *b);
}

static int report(struct pb_builder *b, struct pb_diag *diag, const char *format, va_list list)
{
    if (b->error)
        return -EINVAL;
    diag->step = b->step;
    diag->output = b->output;
    (void)vsnprintf(diag->msg, sizeof diag->msg, format, list);
    if (b->report)
        b->report(b->report_to, diag);
    if (++b->n_mistakes == MISTAKES_MAX)
        b->error = -EINVAL;
    return -EINVAL;
}

int pb_builder_mistake(struct pb_builder *b, enum pb_diag_kind kind, const struct pb_item *item,
                       int col, const char *format, ...)
{
    struct pb_diag diag = {.kind = kind, .item = item, .col = col};
    va_list list;

    va_start(list, format);
    const int rc = report(b, &diag, format, list);
    va_end(list);
    return rc;
}

int pb_builder_wrong(struct pb_builder *b, const void *member, const char *format, ...)
{
    struct pb_diag diag = {.kind = PB_DIAG_VALUE, .member = member};
    va_list list;

    va_start(list, format);
    const int rc = report(b, &diag, format, list);
    va_end(list);
    return rc;
}

void pb_builder_note(struct pb_builder *b, const char *format, ...)
{
    char text[PB_BUILDER_NOTE_BYTES];
    va_list list;

    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    for (size_t i = 0; i < b->n_notes; i++)
        if (strcmp(b->notes[i], text) == 0)
            return;
    if (b->n_notes < PB_BUILDER_NOTES_MAX)
        memcpy(b->notes[b->n_notes++], text, sizeof text);
}

static pb_value out_of_memory(struct pb_builder *b)
{
    if (b->error == 0)
        b->error = -ENOMEM;
    return -1;
}

static pb_value fail(struct pb_builder *b, const char *message)
{
    (void)pb_builder_mistake(b, PB_DIAG_VALUE, NULL, 0, "%s", message);
    if (b->error == 0)
        b->error = -EINVAL;
    return -1;
}

/* A result of the graph as a result of the builder. */
static pb_value checked(struct pb_builder *b, pb_value v)
{
    if (v >= 0)
        return v;
    if (v == -ENOMEM)
        return out_of_memory(b);
    return fail(b, "the steps together make too many values; split the pipeline in two");
}

static bool known(const struct pb_builder *b, pb_value v)
{
    return v == PB_VALUE_POISON || (v >= 0 && (size_t)v < b->graph.n);
}

static struct pb_band *find_band(const struct pb_builder *b, const char *name)
{
    for (size_t i = 0; i < b->n_bands; i++)
        if (strcmp(b->bands[i].name, name) == 0)
            return &b->bands[i];
    return NULL;
}

pb_value pb_builder_find(struct pb_builder *b, const char *name)
{
    const struct pb_band *const band = b->error ? NULL : find_band(b, name);

    return band ? band->value : -1;
}

pb_value pb_builder_input(const struct pb_builder *b, int32_t input)
{
    return b->error == 0 && input >= 0 && input < b->n_inputs ? b->input[input] : -1;
}

size_t pb_builder_band_count(const struct pb_builder *b)
{
    return b->n_bands;
}

const char *pb_builder_band_name(const struct pb_builder *b, size_t i)
{
    return b->bands[i].name;
}

int pb_builder_define(struct pb_builder *b, const char *name, pb_value value)
{
    if (b->error)
        return b->error;
    if (!known(b, value))
        return fail(b, "a step names a value that it did not make"), b->error;
    struct pb_band *const band = find_band(b, name);
    if (band) {
        band->scale = 0.0f;
        band->value = value;
        return 0;
    }
    if (b->n_bands == b->bands_room) {
        const size_t room = b->bands_room ? 2 * b->bands_room : 16;
        if (room > BANDS_MAX)
            return fail(b, "the steps make more than 4096 bands"), b->error;
        struct pb_band *const more = realloc(b->bands, room * sizeof *more);
        if (!more)
            return out_of_memory(b), b->error;
        b->bands = more;
        b->bands_room = room;
    }
    char *const copy = strdup(name);
    if (!copy)
        return out_of_memory(b), b->error;
    b->bands[b->n_bands++] = (struct pb_band){copy, value, 0.0f, 0.0f};
    return 0;
}

bool pb_builder_is_number(const struct pb_builder *b, pb_value value, float *out)
{
    if (value == PB_VALUE_POISON || !known(b, value) || b->graph.nodes[value].kind != PB_NODE_CONST)
        return false;
    *out = b->graph.nodes[value].number;
    return true;
}

pb_value pb_builder_constant(struct pb_builder *b, float number)
{
    return b->error ? -1 : checked(b, pb_graph_constant(&b->graph, number));
}

/* --- grids ----------------------------------------------------------------------------------- */

int32_t pb_builder_grid(const struct pb_builder *b, pb_value value)
{
    return value >= 0 && (size_t)value < b->graph.n ? b->graph.nodes[value].grid : -1;
}

struct pb_geometry pb_builder_geometry(const struct pb_builder *b, int32_t grid)
{
    return b->graph.grids[grid];
}

const struct pb_scene_facts *pb_builder_scene(const struct pb_builder *b)
{
    return b->scene;
}

bool pb_builder_grid_fits(struct pb_builder *b, double w, double h)
{
    const struct pb_grid_limits *const limits = b->scene->limits;

    if (limits == NULL || b->scene->assumed)
        return true;
    if (w > limits->side_px || h > limits->side_px)
        (void)pb_builder_mistake(b, PB_DIAG_LIMIT, NULL, 0,
                                 "the grid would have %.0f x %.0f pixels; %d are allowed along an "
                                 "axis (limits.max_side_px)",
                                 w, h, limits->side_px);
    else if (w * h > (double)limits->pixels)
        (void)pb_builder_mistake(b, PB_DIAG_LIMIT, NULL, 0,
                                 "the grid would have %.0f x %.0f pixels; %.0f are allowed "
                                 "(limits.max_pixels)",
                                 w, h, (double)limits->pixels);
    else if (w * h > (double)limits->growth_pixels)
        (void)pb_builder_mistake(
            b, PB_DIAG_LIMIT, NULL, 0,
            "the grid would have %.0f x %.0f pixels, more than %.0f times as many as the scene "
            "(limits.max_growth); check the scene's georeferencing and the size of its pixels",
            w, h, (double)limits->growth);
    else
        return true;
    return false;
}

int32_t pb_builder_add_grid(struct pb_builder *b, const struct pb_geometry *grid)
{
    if (!pb_builder_grid_fits(b, grid->w, grid->h))
        return -1;
    const int32_t number = b->error ? -1 : pb_graph_grid(&b->graph, grid);

    return number == -E2BIG ? fail(b, "the steps make more than 64 grids") : number;
}

pb_value pb_builder_index(struct pb_builder *b, uint32_t axis, int32_t grid)
{
    return b->error ? -1 : checked(b, pb_graph_index(&b->graph, axis, grid));
}

static bool scale_fits(double scale)
{
    return scale <= PB_RESAMPLE_SCALE_MAX && scale * PB_RESAMPLE_SCALE_MAX >= 1.0;
}

pb_value pb_builder_resample(struct pb_builder *b, enum pb_resampling how, pb_value x, int32_t grid)
{
    if (b->error)
        return -1;
    if (!known(b, x) || (size_t)grid >= b->graph.n_grids)
        return fail(b, "a step uses a value or a grid that does not exist");
    const int32_t own = pb_builder_grid(b, x);
    if (x == PB_VALUE_POISON || own < 0 || own == grid)
        return x;
    const struct pb_map map = pb_graph_map(&b->graph, grid, own);
    if (pb_graph_warp(&b->graph, b->graph.grids[own].frame, b->graph.grids[grid].frame) != NULL)
        return checked(b, pb_graph_warped(&b->graph, how, x, grid));
    if (pb_graph_is_part(&b->graph, grid, own))
        return checked(b, pb_graph_view(&b->graph, x, grid));
    if (pb_map_is_shift(&map))
        how = PB_NEAREST; /* each makes the same of whole pixels */
    if (scale_fits(map.scale_x) && scale_fits(map.scale_y))
        return checked(b, pb_graph_resample(&b->graph, how, x, grid));
    if (isnan(map.scale_x)) {
        (void)pb_builder_mistake(b, PB_DIAG_GRID, NULL, 0, "a band is of " PB_UNPLACED_SOURCE);
        return PB_VALUE_POISON;
    }
    (void)pb_builder_mistake(b, PB_DIAG_GRID, NULL, 0,
                             "pixels become %g times as large; a step may change their size by 64 "
                             "at most",
                             scale_fits(map.scale_x) ? map.scale_y : map.scale_x);
    return PB_VALUE_POISON;
}

double pb_builder_coarser(const struct pb_builder *b, pb_value x, int32_t grid)
{
    const int32_t own = pb_builder_grid(b, x);

    if (own < 0 || grid < 0 || own == grid)
        return 1.0;
    const struct pb_geometry *const from = &b->graph.grids[own], *const to = &b->graph.grids[grid];
    const struct pb_graph_warp *const way = pb_graph_warp(&b->graph, from->frame, to->frame);
    const struct pb_map map = pb_graph_map(&b->graph, grid, own);
    double across = map.scale_x, down = map.scale_y;

    if (way != NULL && way->warp != NULL) { /* its scales are of the frames' first grids */
        across = way->warp->scale_x * from->map.scale_x / to->map.scale_x;
        down = way->warp->scale_y * from->map.scale_y / to->map.scale_y;
    }
    return isfinite(across) && isfinite(down) ? fmin(across, down) : 1.0;
}

static bool is_class_name(const struct pb_builder *b, const char *name)
{
    for (size_t i = 0; name != NULL && i < b->n_class_names; i++)
        if (strcmp(b->class_names[i], name) == 0)
            return true;
    return false;
}

enum pb_builder_class pb_builder_class(struct pb_builder *b, pb_value x, const char *name)
{
    static const enum pb_builder_class by_graph[] = {[PB_CLASSES_NONE] = PB_CLASS_NO,
                                                     [PB_CLASSES_FEW] = PB_CLASS_STEPS,
                                                     [PB_CLASSES_FILE] = PB_CLASS_FILE};
    if (b->error || x == PB_VALUE_POISON || !known(b, x))
        return PB_CLASS_NO;
    if (is_class_name(b, name))
        return PB_CLASS_FILE;
    uint8_t *const classes = calloc(b->graph.n, 1);
    if (!classes) {
        (void)out_of_memory(b);
        return PB_CLASS_NO;
    }
    pb_graph_classes(&b->graph, classes);
    const enum pb_builder_class found = by_graph[classes[x]];
    free(classes);
    return found;
}

void pb_builder_note_mixed(struct pb_builder *b, const char *band, enum pb_resampling how)
{
    pb_builder_note(b,
                    "band %.63s has classes, and %s makes values between them, which are no "
                    "classes; nearest and mode keep them",
                    band, pb_resampling_name(how));
}

void pb_builder_say_grids(const struct pb_builder *b, int32_t one, int32_t other, char *text,
                          size_t bytes)
{
    const struct pb_geometry *const x = &b->graph.grids[one], *const y = &b->graph.grids[other];
    const bool same = x->w == y->w && x->h == y->h;

    text[0] = '\0';
    if (!b->scene->assumed)
        (void)snprintf(text, bytes, " (%d x %d pixels, %d x %d%s)", x->w, x->h, y->w, y->h,
                       same ? " in another place" : "");
}

/* Whether the operands lie on one grid; else reports that, once a step. */
static bool on_one_grid(struct pb_builder *b, const pb_value *arg, int n)
{
    int32_t grid = -1;

    for (int i = 0; i < n; i++) {
        const int32_t own = pb_builder_grid(b, arg[i]);

        if (grid >= 0 && own >= 0 && own != grid) {
            char sizes[100];

            pb_builder_say_grids(b, grid, own, sizes, sizeof sizes);
            if (!b->told_grids)
                (void)pb_builder_mistake(b, PB_DIAG_GRID, NULL, 0,
                                         "bands on different grids%s; bring them onto one with a "
                                         "resample step before this one",
                                         sizes);
            b->told_grids = true;
            return false;
        }
        grid = own >= 0 ? own : grid;
    }
    return true;
}

/* --- values ---------------------------------------------------------------------------------- */

pb_value pb_builder_emit(struct pb_builder *b, enum pb_vm_op op, pb_value x, pb_value y, pb_value z)
{
    if (b->error)
        return -1;
    const pb_value arg[3] = {x, y, z};
    bool poison = false;
    for (int i = 0; i < pb_vm_arity(op); i++) {
        if (!known(b, arg[i])) /* NOLINT(clang-analyzer-core.CallAndMessage): arity <= 3 */
            return fail(b, "a step uses a value that does not exist");
        poison = poison || arg[i] == PB_VALUE_POISON;
    }
    if (poison || !on_one_grid(b, arg, pb_vm_arity(op)))
        return PB_VALUE_POISON;
    return checked(b, pb_graph_op(&b->graph, op, x, y, z));
}

pb_value pb_builder_stored(struct pb_builder *b, const char *name)
{
    const struct pb_band *const band = b->error ? NULL : find_band(b, name);

    if (!band || band->scale == 0.0f || band->value == PB_VALUE_POISON)
        return band ? band->value : -1;
    const pb_value scale = pb_builder_constant(b, band->scale),
                   offset = pb_builder_constant(b, band->offset);
    const pb_value shifted = pb_builder_emit(b, PB_VM_SUB, band->value, offset, -1);
    return pb_builder_emit(b, PB_VM_ROUND, pb_builder_emit(b, PB_VM_DIV, shifted, scale, -1), -1,
                           -1);
}

pb_value pb_builder_focal(struct pb_builder *b, const struct pb_focal *focal, pb_value x)
{
    if (b->error)
        return -1;
    if (!known(b, x))
        return fail(b, "a step uses a value that does not exist");
    if (focal->radius < 1 || 2 * focal->radius + 1 > pb_focal_side_max(focal->kind))
        return fail(b, "a focal's radius is out of range");
    return x == PB_VALUE_POISON ? PB_VALUE_POISON : checked(b, pb_graph_focal(&b->graph, focal, x));
}

pb_value pb_builder_reduce(struct pb_builder *b, const struct pb_reduce *reduce, pb_value x,
                           uint32_t result, const char *band)
{
    if (b->error)
        return -1;
    if (!known(b, x))
        return fail(b, "a step uses a value that does not exist");
    if (result >= reduce->n)
        return fail(b, "a step uses a result that its reduction does not have");
    return x == PB_VALUE_POISON
               ? PB_VALUE_POISON
               : checked(b, pb_graph_reduce(&b->graph, reduce, x, result, b->step, band));
}

pb_value pb_builder_match(struct pb_builder *b, pb_value x, pb_value from, pb_value to)
{
    const pb_value value[] = {x, from, to};

    if (b->error)
        return -1;
    for (int i = 0; i < 3; i++) {
        if (!known(b, value[i]))
            return fail(b, "a step uses a value that does not exist");
        if (value[i] == PB_VALUE_POISON)
            return PB_VALUE_POISON;
        if (pb_builder_grid(b, value[i]) < 0)
            return fail(b, "a step matches a number");
    }
    return checked(b, pb_graph_match(&b->graph, x, from, to, b->step));
}

pb_value pb_builder_sieve(struct pb_builder *b, const struct pb_sieve *sieve, pb_value x)
{
    if (b->error)
        return -1;
    if (!known(b, x))
        return fail(b, "a step uses a value that does not exist");
    if (x == PB_VALUE_POISON)
        return x;
    const pb_value made = pb_graph_sieve(&b->graph, sieve, x, b->step);
    if (made != -E2BIG)
        return checked(b, made);
    (void)pb_builder_mistake(b, PB_DIAG_VALUE, NULL, 0,
                             "the pipeline sieves more than %zu bands, the limit with this number "
                             "of files; sieve the others in another pipeline",
                             b->graph.images_max);
    return PB_VALUE_POISON;
}

int pb_builder_gate(struct pb_builder *b, pb_value keep, double minimum)
{
    if (b->error)
        return b->error;
    if (b->has_gate)
        return pb_builder_mistake(b, PB_DIAG_VALUE, NULL, 0,
                                  "the second gate of the pipeline; join the two conditions with "
                                  "'and' in one");
    b->has_gate = true;
    b->gate_keep = keep;
    b->gate_minimum = minimum;
    return 0;
}

/* --- loops ----------------------------------------------------------------------------------- */

int32_t pb_builder_loop(struct pb_builder *b, const struct pb_reduce *reduce, pb_value *numbers)
{
    const int32_t loop = b->error ? -1 : checked(b, pb_graph_loop(&b->graph, reduce, b->step));

    for (uint32_t k = 0; k < reduce->n_numbers && loop >= 0; k++) {
        if (!known(b, numbers[k]))
            return fail(b, "a loop starts from a number that does not exist");
        if (numbers[k] == PB_VALUE_POISON)
            return -1;
        numbers[k] = checked(b, pb_graph_loop_number(&b->graph, (uint32_t)loop, k, numbers[k]));
    }
    return b->error ? -1 : loop;
}

int pb_builder_loop_over(struct pb_builder *b, int32_t loop, const pb_value *inputs)
{
    struct pb_graph_reduction *const reduction = loop < 0 ? NULL : &b->graph.reductions[loop];

    if (b->error || !reduction)
        return -EINVAL;
    for (uint32_t i = 0; i < reduction->reduce.n_inputs; i++)
        if (inputs[i] == PB_VALUE_POISON || !known(b, inputs[i]))
            return -EINVAL;
    for (uint32_t i = 0; i < reduction->reduce.n_inputs; i++)
        reduction->input[i] = inputs[i];
    return 0;
}

pb_value pb_builder_loop_result(struct pb_builder *b, int32_t loop, uint32_t result)
{
    if (b->error)
        return -1;
    return loop < 0 ? PB_VALUE_POISON
                    : checked(b, pb_graph_result(&b->graph, (uint32_t)loop, result));
}

int pb_builder_loop_tell(struct pb_builder *b, int32_t loop, uint32_t first, uint32_t n,
                         const char *band)
{
    struct pb_graph_use use = {
        .reduction = (uint32_t)loop, .first = first, .n = n, .step = b->step};

    if (b->error || loop < 0)
        return -EINVAL;
    (void)snprintf(use.band, sizeof use.band, "%s", band);
    return checked(b, pb_graph_use(&b->graph, &use)) < 0 ? -EINVAL : 0;
}
