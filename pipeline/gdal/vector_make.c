/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/gdal/vector_make.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int pb_vector_grow(void **list, size_t n, size_t more, size_t *room, size_t entry_bytes)
{
    size_t wanted = *room > 0 ? *room : 64;
    if (n + more <= *room)
        return 0;
    while (wanted < n + more)
        wanted *= 2;
    void *larger = realloc(*list, wanted * entry_bytes);
    if (larger == NULL)
        return -ENOMEM;
    *list = larger;
    *room = wanted;
    return 0;
}

int pb_vector_make_polygon(struct pb_vector_make *make, int64_t fid)
{
    void *list = make->polygon;
    int rc = pb_vector_grow(&list, make->n, 1, &make->room, sizeof *make->polygon);
    make->polygon = list;
    if (rc == 0)
        make->polygon[make->n++] = (struct pb_polygon){.fid = fid, .first_ring = make->n_rings};
    return rc;
}

int pb_vector_make_ring(struct pb_vector_make *make)
{
    void *list = make->ring;
    int rc = pb_vector_grow(&list, make->n_rings, 1, &make->ring_room, sizeof *make->ring);
    make->ring = list;
    if (rc < 0)
        return rc;
    make->ring[make->n_rings++] = (struct pb_ring){.first = make->n_vertices, .part = make->part};
    make->polygon[make->n - 1].n_rings++;
    return 0;
}

int pb_vector_make_vertex(struct pb_vector_make *make, double x, double y)
{
    void *list = make->xy;
    int rc = pb_vector_grow(&list, make->n_vertices, 1, &make->vertex_room, sizeof *make->xy);
    make->xy = list;
    if (rc < 0)
        return rc;
    make->xy[make->n_vertices][0] = x;
    make->xy[make->n_vertices++][1] = y;
    make->ring[make->n_rings - 1].n++;
    return 0;
}

int pb_vector_make_append(struct pb_vector_make *make, struct pb_vector_make *from)
{
    void *rings = make->ring, *xy = make->xy;
    int rc =
        pb_vector_grow(&rings, make->n_rings, from->n_rings, &make->ring_room, sizeof *make->ring);
    make->ring = rings;
    if (rc == 0)
        rc = pb_vector_grow(&xy, make->n_vertices, from->n_vertices, &make->vertex_room,
                            sizeof *make->xy);
    make->xy = xy;
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < from->n; i++) {
        struct pb_polygon *polygon = &make->polygon[from->polygon[i].fid];
        polygon->first_ring = make->n_rings + from->polygon[i].first_ring;
        polygon->n_rings = from->polygon[i].n_rings;
        polygon->is_beyond = from->polygon[i].is_beyond;
    }
    for (size_t i = 0; i < from->n_rings; i++) {
        make->ring[make->n_rings + i] = from->ring[i];
        make->ring[make->n_rings + i].first += make->n_vertices;
    }
    if (from->n_vertices > 0)
        memcpy(make->xy + make->n_vertices, from->xy, from->n_vertices * sizeof *make->xy);
    make->n_rings += from->n_rings;
    make->n_vertices += from->n_vertices;
    pb_vector_make_free(from);
    return 0;
}

int pb_vector_make_value(struct pb_vector_make *make, const struct pb_polygon_value *value)
{
    const char *text = value->text;
    const size_t bytes = text != NULL ? strlen(text) + 1 : 0;
    void *values = make->value, *texts = make->text;
    int rc = pb_vector_grow(&values, make->n_values, 1, &make->value_room, sizeof *make->value);
    make->value = values;
    if (rc == 0)
        rc = pb_vector_grow(&texts, make->text_bytes, bytes, &make->text_room, 1);
    make->text = texts;
    if (rc < 0)
        return rc;
    if (bytes > 0)
        memcpy(make->text + make->text_bytes, text, bytes);
    make->value[make->n_values++] =
        (struct pb_vector_value){bytes > 0 ? make->text_bytes : SIZE_MAX, *value};
    make->text_bytes += bytes;
    return 0;
}

/* Gives the unused room of the list of vertices back. */
static void trim_vertices(struct pb_vector_make *make)
{
    void *less = realloc(make->xy, (make->n_vertices + 1) * sizeof *make->xy);
    make->xy = less != NULL ? less : make->xy;
}

struct pb_polygons *pb_vector_make_polygons(struct pb_vector_make *make, size_t n_fields)
{
    struct pb_polygons *polygons = calloc(1, sizeof *polygons);
    const size_t bytes[] = {make->n * sizeof *make->polygon,
                            make->n_values * sizeof(struct pb_polygon_value),
                            make->n_rings * sizeof *make->ring, make->text_bytes};
    const size_t sum = bytes[0] + bytes[1] + bytes[2] + bytes[3] + 1;
    char *at = polygons != NULL ? malloc(sum) : NULL;
    if (at == NULL) {
        free(polygons);
        return NULL;
    }
    trim_vertices(make);
    *polygons = (struct pb_polygons){.n = make->n,
                                     .n_rings = make->n_rings,
                                     .n_vertices = make->n_vertices,
                                     .xy = make->xy,
                                     .memory = at,
                                     .memory_bytes = sum};
    make->xy = NULL;
    polygons->polygon = (struct pb_polygon *)(void *)at;
    struct pb_polygon_value *values = (struct pb_polygon_value *)(void *)(at += bytes[0]);
    polygons->ring = (struct pb_ring *)(void *)(at += bytes[1]);
    char *text = at + bytes[2];
    if (bytes[0] > 0)
        memcpy(polygons->polygon, make->polygon, bytes[0]);
    if (bytes[2] > 0)
        memcpy(polygons->ring, make->ring, bytes[2]);
    if (bytes[3] > 0)
        memcpy(text, make->text, bytes[3]);
    for (size_t i = 0; i < make->n_values; i++) {
        const struct pb_vector_value *v = &make->value[i];
        values[i] = v->value;
        values[i].text = v->at != SIZE_MAX ? text + v->at : NULL;
    }
    for (size_t i = 0; i < make->n; i++)
        polygons->polygon[i].values = values + i * n_fields;
    return polygons;
}

void pb_vector_make_free(struct pb_vector_make *make)
{
    free(make->polygon);
    free(make->ring);
    free(make->xy);
    free(make->text);
    free(make->value);
    memset(make, 0, sizeof *make);
}
