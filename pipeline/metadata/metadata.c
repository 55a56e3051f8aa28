/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/metadata/metadata.h"

#include "config/input_values.h"
#include "pipeline/metadata/family.h"
#include "pipeline/metadata/meta_reader.h"
#include "pipeline/raster/raster_file.h"
#include "pipeline/sar/sar_tables.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct pb_metadata_family *const families[] = {
#define PB_FAMILY(name) &pb_family_##name,
#include "pipeline/metadata/families.def"
#undef PB_FAMILY
};

size_t pb_metadata_family_count(void)
{
    return sizeof families / sizeof *families;
}

const struct pb_metadata_family *pb_metadata_family_at(size_t i)
{
    return families[i];
}

const char *pb_quantity_name(enum pb_quantity quantity)
{
    static const char *const names[] = {"toa",    "surface", "radiance", "temperature",
                                        "sigma0", "beta0",   "gamma0"};
    return names[quantity];
}

void pb_metadata_init(struct pb_metadata *out)
{
    *out = (struct pb_metadata){.sun_azimuth = NAN,
                                .sun_elevation = NAN,
                                .view_azimuth = NAN,
                                .off_nadir = NAN,
                                .incidence = NAN,
                                .cloud_cover = NAN,
                                .gsd = NAN,
                                .relative_orbit = NAN,
                                .absolute_orbit = NAN,
                                .radar_ghz = NAN,
                                .range_spacing = NAN,
                                .azimuth_spacing = NAN};
}

void pb_metadata_fini(struct pb_metadata *facts)
{
    pb_sar_destroy(facts->sar);
    pb_metadata_init(facts);
}

static const struct pb_metadata_family *family_of(const struct pb_meta_node *root)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (families[i]->is_one(root))
            return families[i];
    return NULL;
}

static void read_tree(struct pb_meta_reader *r, const struct pb_meta_tree *tree)
{
    const struct pb_metadata_family *family = family_of(tree->root);
    struct pb_metadata *out = r->out;
    r->name = tree->name;
    if (family == NULL) {
        r->rc = pb_fail_at(r->err, PB_E_INPUT_METADATA_UNKNOWN, tree->name, 0, 0,
                           "these are no metadata of a family of products that is known");
        return;
    }
    if (out->family != NULL && out->family != family)
        pb_meta_conflict(r, "it is of the family %s, the scene's other metadata are of %s",
                         family->name, out->family->name);
    if (r->rc < 0)
        return;
    out->family = family;
    PB_META_SET(r, constellation, family->constellation, "the constellation");
    family->read(r, tree->root);
}

int pb_metadata_parse(const struct pb_metadata_text *texts, size_t n_texts, struct pb_metadata *out,
                      struct pb_err *err)
{
    struct pb_err own = {0};
    struct pb_meta_reader r = {.out = out, .err = err != NULL ? err : &own};
    pb_metadata_init(out);
    for (size_t i = 0; i < n_texts && r.rc == 0; i++) {
        struct pb_meta_tree tree = {NULL, NULL, NULL, 0};
        r.rc = texts[i].bytes > PB_METADATA_BYTES_MAX
                   ? pb_fail_at(r.err, PB_E_INPUT_METADATA_INVALID, texts[i].name, 0, 0,
                                "it is larger than %d MiB", PB_METADATA_BYTES_MAX >> 20)
                   : pb_meta_tree_parse(texts[i].name, texts[i].text, texts[i].bytes, &tree, r.err);
        if (r.rc == 0)
            read_tree(&r, &tree);
        pb_meta_tree_fini(&tree);
    }
    if (r.rc == 0 && out->family != NULL && out->family->finish != NULL)
        out->family->finish(&r);
    if (r.rc < 0)
        pb_metadata_fini(out);
    return r.rc;
}

/* Reads a complete open file, malloc'd. */
static int load_open(struct pb_raster_file *file, struct pb_metadata_text *out, struct pb_err *err)
{
    if (file->bytes > PB_METADATA_BYTES_MAX)
        return pb_fail_at(err, PB_E_INPUT_METADATA_INVALID, file->path, 0, 0,
                          "it is larger than %d MiB", PB_METADATA_BYTES_MAX >> 20);
    size_t bytes = (size_t)file->bytes;
    char *text = malloc(bytes + 1);
    if (text == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory to read %s", file->path);
    ssize_t n = pb_raster_file_read(file, 0, text, bytes);
    if (n < 0) {
        free(text);
        return pb_raster_file_check(file, err);
    }
    *out = (struct pb_metadata_text){file->path, text, (size_t)n};
    return 0;
}

int pb_metadata_read_files(struct pb_raster_file *files, size_t n_files, struct pb_metadata *out,
                           struct pb_err *err)
{
    struct pb_metadata_text texts[PB_METADATA_FILES_MAX] = {{NULL, NULL, 0}};
    size_t n = 0;
    int rc = 0;
    pb_metadata_init(out);
    for (; rc == 0 && n < n_files && n < PB_METADATA_FILES_MAX; n++)
        rc = load_open(&files[n], &texts[n], err);
    rc = rc ? rc : pb_metadata_parse(texts, n, out, err);
    while (n > 0)
        free((void *)texts[--n].text);
    return rc;
}
