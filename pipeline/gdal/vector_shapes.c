/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Two passes: the first finds the brackets of all coordinates, on one thread; the second reads
 * numbers, and checks them. A number with at most 15 digits and a small exponent is a product or a
 * quotient of two exact numbers, which has the bits of strtod; strtod reads the others. */
#include "pipeline/gdal/vector_shapes.h"
#include "pipeline/gdal/vector_make.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64, NUMBER_BYTES = 32 };

/* --- finding the coordinates ------------------------------------------------------------------ */

/* State of the first pass. */
struct scan {
    struct pb_vector_shapes *shapes;
    const char *at, *end;
    const char *done; /* text up to here is in `out` */
    char *out;
    size_t n, room; /* bytes of `out` */
    bool is_unusual, is_out_of_memory;
};

/* Ends the pass: the text stays as it is. */
static bool give_up(struct scan *s)
{
    s->is_unusual = true;
    return false;
}

/* Returns the first character that is not a space of JSON, or the end. */
static const char *after_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

static void skip_space(struct scan *s)
{
    s->at = after_space(s->at, s->end);
}

/* Skips spaces and the character; returns false without it. */
static bool take(struct scan *s, char c)
{
    skip_space(s);
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

/* Skips a string, whose first character is a quotation mark. */
static bool skip_string(struct scan *s)
{
    for (s->at++; s->at < s->end && *s->at != '"'; s->at++)
        if (*s->at == '\\')
            s->at++;
    if (s->at >= s->end)
        return give_up(s);
    s->at++;
    return true;
}

/* Skips a value of any kind. */
static bool skip_value(struct scan *s)
{
    int depth = 0;
    skip_space(s);
    do {
        const char c = s->at < s->end ? *s->at : '\0';
        if (c == '\0' || depth > DEPTH_MAX)
            return give_up(s);
        if (c == '"') {
            if (!skip_string(s))
                return false;
            continue;
        }
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        if (depth < 0)
            return give_up(s);
        s->at++;
    } while (depth > 0 || (s->at < s->end && s->at[-1] != '"' && s->at[-1] != '}' &&
                           s->at[-1] != ']' && strchr(",}] \n\r\t", *s->at) == NULL));
    return true;
}

/* Reads the next key of an object whose brace has been taken, and its colon. Returns false after
 * the last one, and if the text is unusual. */
static bool next_key(struct scan *s, bool is_first, const char **out, size_t *out_bytes)
{
    if (take(s, '}'))
        return false;
    if (!is_first && !take(s, ','))
        return give_up(s);
    skip_space(s);
    const char *key = s->at + 1;
    if (s->at == s->end || *s->at != '"' || !skip_string(s))
        return give_up(s);
    *out = key;
    *out_bytes = (size_t)(s->at - 1 - key);
    if (memchr(key, '\\', *out_bytes) != NULL || !take(s, ':'))
        return give_up(s);
    skip_space(s);
    return true;
}

static bool is_word(const char *text, size_t bytes, const char *word)
{
    return bytes == strlen(word) && memcmp(text, word, bytes) == 0;
}

static bool put(struct scan *s, const char *text, size_t bytes)
{
    if (s->n + bytes > s->room) {
        const size_t room = 2 * (s->n + bytes) + 4096;
        char *more = VSIRealloc(s->out, room);
        if (more == NULL) {
            s->is_out_of_memory = true;
            return give_up(s);
        }
        s->out = more;
        s->room = room;
    }
    memcpy(s->out + s->n, text, bytes);
    s->n += bytes;
    return true;
}

/* Adds a shape, and puts its number in the place of its coordinates. */
static bool add_shape(struct scan *s, const struct pb_vector_shape *shape)
{
    struct pb_vector_shapes *all = s->shapes;
    char number[64];
    void *list = all->shape;
    s->is_out_of_memory = pb_vector_grow(&list, all->n, 1, &all->room, sizeof *all->shape) < 0;
    all->shape = list;
    if (s->is_out_of_memory)
        return give_up(s);
    const int n =
        CPLsnprintf(number, sizeof number, shape->is_multi ? "[[[[%llu,0]]]]" : "[[[%llu,0]]]",
                    (unsigned long long)all->n);
    all->shape[all->n++] = *shape;
    const char *from = all->text + shape->at;
    if (!put(s, s->done, (size_t)(from - s->done)) || !put(s, number, (size_t)n))
        return false;
    s->done = from + shape->bytes;
    return true;
}

/* Reads a geometry, whose brace has been taken. */
static bool read_geometry(struct scan *s)
{
    struct pb_vector_shape shape = {.bytes = 0};
    const char *key, *type = NULL;
    size_t bytes, type_bytes = 0;
    for (bool is_first = true; next_key(s, is_first, &key, &bytes); is_first = false) {
        const char *value = s->at;
        if (!skip_value(s))
            return false;
        if (is_word(key, bytes, "type")) {
            if (type != NULL)
                return give_up(s);
            type = value;
            type_bytes = (size_t)(s->at - value);
        } else if (is_word(key, bytes, "coordinates")) {
            if (shape.bytes > 0)
                return give_up(s);
            shape.at = (size_t)(value - s->shapes->text);
            shape.bytes = (size_t)(s->at - value);
        }
    }
    shape.is_multi = is_word(type, type_bytes, "\"MultiPolygon\"");
    if (s->is_unusual || shape.bytes == 0 ||
        !(shape.is_multi || is_word(type, type_bytes, "\"Polygon\"")))
        return !s->is_unusual;
    return add_shape(s, &shape);
}

/* Reads a feature, whose brace has been taken. */
static bool read_feature(struct scan *s)
{
    const char *key;
    size_t bytes;
    bool has_geometry = false;
    for (bool is_first = true; next_key(s, is_first, &key, &bytes); is_first = false) {
        const bool is_geometry = is_word(key, bytes, "geometry");
        if (is_geometry && has_geometry)
            return give_up(s);
        has_geometry |= is_geometry;
        const bool is_object = is_geometry && take(s, '{'); /* or it is null */
        if (!(is_object ? read_geometry(s) : skip_value(s)))
            return false;
    }
    return !s->is_unusual;
}

static bool read_features(struct scan *s)
{
    if (!take(s, '['))
        return give_up(s);
    for (bool is_first = true; !take(s, ']'); is_first = false)
        if ((!is_first && !take(s, ',')) || !take(s, '{') || !read_feature(s))
            return give_up(s);
    return true;
}

static bool read_collection(struct scan *s)
{
    const char *key;
    size_t bytes;
    bool has_features = false;
    if (!take(s, '{'))
        return give_up(s);
    for (bool is_first = true; next_key(s, is_first, &key, &bytes); is_first = false) {
        const bool is_features = is_word(key, bytes, "features");
        if ((is_features && has_features) || !(is_features ? read_features(s) : skip_value(s)))
            return give_up(s);
        has_features |= is_features;
    }
    skip_space(s);
    return !s->is_unusual && s->at == s->end && put(s, s->done, (size_t)(s->end - s->done));
}

int pb_vector_shapes_take(struct pb_vector_shapes *shapes, const char *name)
{
    vsi_l_offset bytes = 0;
    GByte *text = VSIGetMemFileBuffer(name, &bytes, FALSE);
    struct scan s = {.shapes = shapes};
    if (text == NULL || bytes == 0)
        return 0;
    shapes->text = (char *)text;
    s.at = s.done = shapes->text;
    s.end = s.at + bytes;
    if (!read_collection(&s) || shapes->n == 0) {
        shapes->text = NULL; /* the file's still */
        shapes->n = 0;
        VSIFree(s.out);
        return s.is_out_of_memory ? -ENOMEM : 0;
    }
    (void)VSIGetMemFileBuffer(name, &bytes, TRUE);
    VSILFILE *smaller = VSIFileFromMemBuffer(name, (GByte *)s.out, s.n, TRUE);
    if (smaller == NULL) {
        VSIFree(s.out);
        return -ENOMEM;
    }
    (void)VSIFCloseL(smaller);
    return 0;
}

int64_t pb_vector_shapes_number(const struct pb_vector_shapes *shapes, OGRGeometryH geometry)
{
    OGRGeometryH part = geometry;
    if (shapes->n == 0)
        return -1;
    while (OGR_G_GetGeometryCount(part) > 0)
        part = OGR_G_GetGeometryRef(part, 0);
    const double number = OGR_G_GetPointCount(part) == 1 ? OGR_G_GetX(part, 0) : -1;
    return number >= 0 && number < (double)shapes->n ? (int64_t)number : -1;
}

void pb_vector_shapes_free(struct pb_vector_shapes *shapes)
{
    VSIFree(shapes->text);
    free(shapes->shape);
    memset(shapes, 0, sizeof *shapes);
}

/* --- reading a shape -------------------------------------------------------------------------- */

/* Text of a shape. */
struct text {
    const char *at, *end;
    struct pb_vector_shape_reader *reader;
};

static char next_sign(struct text *t)
{
    t->at = after_space(t->at, t->end);
    return t->at < t->end ? *t->at : '\0';
}

static bool take_sign(struct text *t, char c)
{
    const bool is = next_sign(t) == c;
    t->at += is;
    return is;
}

/* Adds digits to *value, at most 18 of them without zeros at the front. Returns their count; sets
 * *value to UINT64_MAX if there are more. */
static size_t take_digits(struct text *t, uint64_t *value)
{
    const char *from = t->at;
    for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++)
        *value = *value < UINT64_C(100000000000000000) ? *value * 10 + (uint64_t)(*t->at - '0')
                                                       : UINT64_MAX;
    return (size_t)(t->at - from);
}

/* Reads an exponent if there is one; false: it has no digits, or too many. */
static bool take_exponent(struct text *t, int *exponent)
{
    uint64_t value = 0;
    if (t->at == t->end || (*t->at != 'e' && *t->at != 'E'))
        return true;
    t->at++;
    const bool minus = t->at < t->end && *t->at == '-';
    t->at += t->at < t->end && (*t->at == '-' || *t->at == '+');
    const size_t n = take_digits(t, &value);
    if (n == 0 || n > 4)
        return false;
    *exponent += minus ? -(int)value : (int)value;
    return true;
}

/* Reads a number of JSON's grammar, with the bits of strtod; an integer as int64. */
static bool take_number(struct text *t, double *out)
{
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    (void)next_sign(t);
    const char *from = t->at;
    const bool minus = t->at < t->end && *t->at == '-';
    uint64_t digits = 0;
    int exponent = 0;
    t->at += minus;
    const char *first = t->at;
    const size_t n = take_digits(t, &digits);
    if (n == 0 || (n > 1 && *first == '0'))
        return false;
    if (t->at == t->end || (*t->at != '.' && *t->at != 'e' && *t->at != 'E')) {
        *out = (double)(minus ? -(int64_t)digits : (int64_t)digits);
        return digits != UINT64_MAX;
    }
    if (*t->at == '.') {
        t->at++;
        const size_t decimals = take_digits(t, &digits);
        if (decimals == 0 || decimals > 1000)
            return false;
        exponent = -(int)decimals;
    }
    if (!take_exponent(t, &exponent))
        return false;
    if (digits < UINT64_C(1000000000000000) && exponent >= -22 && exponent <= 22) {
        const double value =
            exponent < 0 ? (double)digits / power[-exponent] : (double)digits * power[exponent];
        *out = minus ? -value : value;
        return true;
    }
    *out = CPLStrtod(from, NULL);
    return true;
}

/* Reads a position; numbers after the second one count for the size only. */
static int read_position(struct text *t, double xy[2])
{
    double more;
    if (!take_sign(t, '[') || !take_number(t, &xy[0]) || !take_sign(t, ',') ||
        !take_number(t, &xy[1]))
        return -EBADMSG;
    t->reader->n_positions++;
    while (take_sign(t, ',')) {
        if (!take_number(t, &more))
            return -EBADMSG;
        t->reader->has_z = true;
    }
    return take_sign(t, ']') ? 0 : -EBADMSG;
}

static int read_ring(struct text *t, OGRGeometryH polygon)
{
    struct pb_vector_shape_reader *reader = t->reader;
    size_t n = 0;
    if (!take_sign(t, '['))
        return -EBADMSG;
    do {
        void *list = reader->xy;
        const int rc = pb_vector_grow(&list, n, 1, &reader->room, sizeof *reader->xy);
        reader->xy = list;
        if (rc < 0)
            return rc;
        if (n == INT32_MAX || read_position(t, reader->xy[n]) < 0)
            return -EBADMSG;
        n++;
    } while (take_sign(t, ','));
    if (!take_sign(t, ']'))
        return -EBADMSG;
    OGRGeometryH ring = OGR_G_CreateGeometry(wkbLinearRing);
    OGR_G_SetPoints(ring, (int)n, &reader->xy[0][0], 2 * sizeof(double), &reader->xy[0][1],
                    2 * sizeof(double), NULL, 0);
    reader->n_rings++;
    return OGR_G_AddGeometryDirectly(polygon, ring) == OGRERR_NONE ? 0 : -ENOMEM;
}

static int read_polygon(struct text *t, pb_vector_polygon *polygon, void *user)
{
    if (!take_sign(t, '['))
        return -EBADMSG;
    OGRGeometryH made = OGR_G_CreateGeometry(wkbPolygon);
    int rc;
    t->reader->n_polygons++;
    do
        rc = read_ring(t, made);
    while (rc == 0 && take_sign(t, ','));
    if (rc == 0)
        rc = take_sign(t, ']') ? polygon(user, made) : -EBADMSG;
    OGR_G_DestroyGeometry(made);
    return rc;
}

int pb_vector_shape_read(struct pb_vector_shape_reader *reader,
                         const struct pb_vector_shapes *shapes, size_t number,
                         pb_vector_polygon *polygon, void *user)
{
    enum { HEAD_BYTES = 9 };
    const struct pb_vector_shape *shape = &shapes->shape[number];
    const char *from = shapes->text + shape->at;
    struct text t = {from, from + shape->bytes, reader};
    int rc;
    reader->n_polygons = reader->n_rings = reader->n_positions = 0;
    reader->has_z = false;
    if (shape->is_multi && !take_sign(&t, '['))
        return -EBADMSG;
    do
        rc = read_polygon(&t, polygon, user);
    while (rc == 0 && shape->is_multi && take_sign(&t, ','));
    if (rc == 0 && ((shape->is_multi && !take_sign(&t, ']')) || next_sign(&t) != '\0'))
        rc = -EBADMSG;
    reader->wkb_bytes += (shape->is_multi + reader->n_polygons) * HEAD_BYTES +
                         reader->n_rings * sizeof(uint32_t) +
                         reader->n_positions * (reader->has_z ? 3 : 2) * sizeof(double);
    return rc;
}

void pb_vector_shape_reader_free(struct pb_vector_shape_reader *reader)
{
    free(reader->xy);
    memset(reader, 0, sizeof *reader);
}
