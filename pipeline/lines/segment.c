/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Layout of the file, all offsets computed from the spec alone:
 *
 *   0        header: PB_SEGMENT_MAGIC while the segment is open, then that of a BigTIFF
 *   64       struct state, mapped by all processes
 *   4096     struct pb_segment_line for each line
 *            directory of the full height and its tables
 *            directory of the height at the end, if it is less
 *   pages    strips
 *
 * The directory of the full height is never rewritten: a process that computes the growing file
 * reads it. The writer uses system calls, whose errors it can report, for all of the file except
 * the atomics of struct state. These are stored through its mapping, and never after a failed
 * write, because a store to the mapping of a lost disk ends the process. Lines are written before
 * `complete` is stored (release), which readers load (acquire). `word` changes after each store of
 * `complete` or `state`, and readers sleep on it. Readers map the file read-only and cannot change
 * `word`; therefore they sleep for PARK_NS at most, and then look for an abort of their own
 * process. */
#include "pipeline/lines/segment.h"

#include "kernels/nodata.h"
#include "pipeline/codec/quantize.h"
#include "pipeline/io/file_room.h"
#include "pipeline/io/io_fail.h"
#include "wic/futex.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { STATE_AT = 64, LINES_AT = 4096, PAGE = 4096, TEXT_BYTES = 32, MODE = 0640 };
#define PARK_NS INT64_C(50000000)

struct state {
    char magic[8];
    struct pb_segment_spec spec;
    /* The words that change follow in a cache line of their own. */
    char unused[64 - (8 + sizeof(struct pb_segment_spec)) % 64];
    _Atomic uint64_t complete;
    _Atomic uint32_t word; /* futex */
    _Atomic uint32_t state;
};
_Static_assert(STATE_AT + sizeof(struct state) <= LINES_AT, "the state needs one page");
_Static_assert((STATE_AT + offsetof(struct state, complete)) % 64 == 0, "a line of their own");

struct layout {
    uint64_t line_bytes; /* bytes of a line of one band */
    uint64_t tables_at[2], tables_bytes;
    uint64_t data_at, total;
};

struct pb_segment {
    int fd;
    bool is_writer;
    bool is_broken; /* the last write failed */
    char *path;
    struct pb_segment_spec spec;
    struct layout layout;
    const unsigned char *map;
    struct state *state; /* in the mapping; NULL if not mapped */
    const struct pb_segment_line *line;
    void *nodata; /* one line of one band; NULL without a nodata value, or for a reader */
    int64_t spin_ns;
    _Atomic bool aborted;
};

static uint64_t rounded(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

static uint64_t strips(int32_t height)
{
    return rounded((uint64_t)height, PB_SEGMENT_ROWS) / PB_SEGMENT_ROWS;
}

static bool is_sound(const struct pb_segment_spec *spec)
{
    bool fine = spec->width > 0 && spec->height > 0 && spec->height <= PB_SEGMENT_LINES_MAX &&
                spec->n_bands > 0 && spec->n_bands <= PB_BANDS_MAX &&
                (unsigned)spec->type < PB_TYPE_COUNT &&
                (!spec->has_nodata || pb_nodata_fits(spec->type, spec->nodata));
    for (size_t i = 0; fine && spec->has_transform && i < 6; i++)
        fine = isfinite(spec->transform[i]);
    return fine && (uint64_t)spec->width * (uint64_t)spec->n_bands * 8 < UINT64_C(1) << 31;
}

static struct layout layout_of(const struct pb_segment_spec *spec)
{
    struct layout l;
    const uint64_t blocks = strips(spec->height) * (uint64_t)spec->n_bands;
    l.line_bytes = (uint64_t)spec->width * pb_type_bytes(spec->type);
    l.tables_at[0] =
        LINES_AT + rounded((uint64_t)spec->height * sizeof(struct pb_segment_line), 64);
    l.tables_bytes = rounded(2048 + (uint64_t)spec->n_bands * 6 + blocks * 16, 64);
    l.tables_at[1] = l.tables_at[0] + l.tables_bytes;
    l.data_at = rounded(l.tables_at[1] + l.tables_bytes, PAGE);
    l.total = l.data_at + blocks * PB_SEGMENT_ROWS * l.line_bytes;
    return l;
}

static uint64_t offset_in(const struct layout *layout, int32_t n_bands, int32_t band, int32_t line)
{
    const uint64_t strip = (uint64_t)(line / PB_SEGMENT_ROWS) * (uint64_t)n_bands;
    const uint64_t row = (strip + (uint64_t)band) * PB_SEGMENT_ROWS;
    return layout->data_at + (row + (uint64_t)(line % PB_SEGMENT_ROWS)) * layout->line_bytes;
}

/* Offset of a line of band `band`, from 0. */
static uint64_t offset(const struct pb_segment *s, int32_t band, int32_t line)
{
    return offset_in(&s->layout, s->spec.n_bands, band, line);
}

/* --- writes --- */

/* Writes rows that are contiguous in the file. Changes the array. */
static int write_rows(struct pb_segment *s, struct iovec *row, int n, uint64_t at)
{
    while (n > 0) {
        const ssize_t got = pwritev(s->fd, row, n, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        s->is_broken = got <= 0;
        if (s->is_broken)
            return got < 0 ? -errno : -EIO;
        at += (uint64_t)got;
        for (size_t left = (size_t)got; n > 0; row++, n--) {
            if (left < row->iov_len) {
                row->iov_base = (unsigned char *)row->iov_base + left;
                row->iov_len -= left;
                break;
            }
            left -= row->iov_len;
        }
    }
    return 0;
}

static int write_at(struct pb_segment *s, const void *data, size_t bytes, uint64_t at)
{
    struct iovec row = {(void *)(uintptr_t)data, bytes};
    return write_rows(s, &row, 1, at);
}

static int fail(struct pb_err *err, enum pb_code code, const char *path, const char *text)
{
    return pb_fail_at(err, code, path, 0, 0, "%s", text);
}

static int write_fail(const struct pb_segment *s, int rc, struct pb_err *err)
{
    return pb_io_fail(err, -rc, "cannot write", s->path);
}

/* --- the directory --- */

enum { TEXT = 2, SHORT = 3, LONG = 4, DOUBLE = 12, LONG8 = 16, ENTRY_BYTES = 20 };

/* TIFF directory under construction, for offset `at` of the file: n entries, then the values that
 * do not fit into entries; the next value is stored at `next`, in bytes from the begin. */
struct directory {
    unsigned char *bytes;
    uint64_t at, next, n;
};

/* Adds an entry. Returns the address of its value, or of the offset of its value. */
static unsigned char *add_entry(struct directory *d, uint16_t tag, uint16_t type, uint64_t count)
{
    unsigned char *const entry = d->bytes + 8 + d->n++ * ENTRY_BYTES;
    memcpy(entry, &tag, 2);
    memcpy(entry + 2, &type, 2);
    memcpy(entry + 4, &count, 8);
    return entry + 12;
}

/* Reserves a value of that size after the entries, and stores its offset in the entry. Returns its
 * address. */
static unsigned char *add_value(struct directory *d, unsigned char *entry, uint64_t bytes)
{
    const uint64_t offset = d->at + d->next;
    unsigned char *const value = d->bytes + d->next;
    memcpy(entry, &offset, 8);
    d->next += rounded(bytes, 8);
    return value;
}

static void put_entry(struct directory *d, uint16_t tag, uint16_t type, uint64_t count,
                      const void *value)
{
    static const unsigned char size[] = {
        [TEXT] = 1, [SHORT] = 2, [LONG] = 4, [DOUBLE] = 8, [LONG8] = 8};
    unsigned char *const entry = add_entry(d, tag, type, count);
    const uint64_t bytes = count * size[type];
    memcpy(bytes <= 8 ? entry : add_value(d, entry, bytes), value, (size_t)bytes);
}

static void put_short(struct directory *d, uint16_t tag, uint16_t value)
{
    put_entry(d, tag, SHORT, 1, &value);
}

/* One value for each of n bands. */
static void put_shorts(struct directory *d, uint16_t tag, uint16_t value, int32_t n)
{
    uint16_t values[PB_BANDS_MAX];
    for (int32_t i = 0; i < n; i++)
        values[i] = value;
    if (n > 0)
        put_entry(d, tag, SHORT, (uint64_t)n, values);
}

/* Offsets of strips, or their sizes; band after band. */
static void put_table(struct directory *d, const struct pb_segment *s, uint16_t tag, int32_t height)
{
    const uint64_t n = strips(height), count = n * (uint64_t)s->spec.n_bands;
    unsigned char *const entry = add_entry(d, tag, LONG8, count);
    unsigned char *const values = count == 1 ? entry : add_value(d, entry, count * 8);
    for (uint64_t i = 0; i < count; i++) {
        const int32_t band = (int32_t)(i / n), line = (int32_t)(i % n) * PB_SEGMENT_ROWS;
        const int32_t rows = height - line < PB_SEGMENT_ROWS ? height - line : PB_SEGMENT_ROWS;
        const uint64_t value =
            tag == 273 ? offset(s, band, line) : (uint64_t)rows * s->layout.line_bytes;
        memcpy(values + i * 8, &value, 8);
    }
}

static void put_place(struct directory *d, const struct pb_segment_spec *spec)
{
    const double *const t = spec->transform;
    const bool is_upright = t[2] == 0 && t[4] == 0 && t[1] > 0 && t[5] < 0;
    const double scale[3] = {t[1], -t[5], 0}, tie[6] = {0, 0, 0, t[0], t[3], 0};
    const double matrix[16] = {t[1], t[2], 0, t[0], t[4], t[5], 0, t[3], [15] = 1};
    if (spec->has_transform && is_upright) {
        put_entry(d, 33550, DOUBLE, 3, scale);
        put_entry(d, 33922, DOUBLE, 6, tie);
    } else if (spec->has_transform) {
        put_entry(d, 34264, DOUBLE, 16, matrix);
    }
    const uint16_t model = spec->is_geographic ? 2 : 1, key = spec->is_geographic ? 2048 : 3072;
    const uint16_t keys[16] = {1, 1, 0, 3, 1024, 0, 1, model, 1025, 0, 1, 1, key, 0, 1, spec->epsg};
    if (spec->epsg != 0)
        put_entry(d, 34735, SHORT, 16, keys);
}

static void put_nodata(struct directory *d, const struct pb_segment_spec *spec)
{
    char text[TEXT_BYTES];
    if (!spec->has_nodata)
        return;
    if (isnan(spec->nodata))
        (void)snprintf(text, sizeof text, "nan");
    else
        (void)snprintf(text, sizeof text, "%.17g", spec->nodata);
    put_entry(d, 42113, TEXT, strlen(text) + 1, text);
}

/* Writes the directory of an image of that height at the offset `at`. */
static int put_directory(struct pb_segment *s, uint64_t at, int32_t height, struct pb_err *err)
{
    static const uint16_t format[PB_TYPE_COUNT] = {
        [PB_U8] = 1,  [PB_I16] = 2, [PB_U16] = 1, [PB_I32] = 2,
        [PB_U32] = 1, [PB_F32] = 3, [PB_F64] = 3};
    const struct pb_segment_spec *const spec = &s->spec;
    struct directory d = {calloc(1, s->layout.tables_bytes), at, 1024, 0};
    if (d.bytes == NULL)
        return fail(err, PB_E_MEMORY, s->path, "no memory for the directory");
    const uint32_t size[] = {(uint32_t)spec->width, (uint32_t)height};
    put_entry(&d, 256, LONG, 1, &size[0]);
    put_entry(&d, 257, LONG, 1, &size[1]);
    put_shorts(&d, 258, (uint16_t)(8 * pb_type_bytes(spec->type)), spec->n_bands);
    put_short(&d, 259, 1); /* uncompressed */
    put_short(&d, 262, 1); /* gray */
    put_table(&d, s, 273, height);
    put_short(&d, 277, (uint16_t)spec->n_bands);
    put_short(&d, 278, PB_SEGMENT_ROWS);
    put_table(&d, s, 279, height);
    put_short(&d, 284, spec->n_bands > 1 ? 2 : 1);
    put_shorts(&d, 338, 0, spec->n_bands - 1);
    put_shorts(&d, 339, format[spec->type], spec->n_bands);
    put_place(&d, spec);
    put_nodata(&d, spec);
    memcpy(d.bytes, &d.n, 8);
    const int rc = write_at(s, d.bytes, (size_t)d.next, at);
    free(d.bytes);
    return rc < 0 ? write_fail(s, rc, err) : 0;
}

static void make_head(uint64_t directory, unsigned char out[PB_SEGMENT_HEAD_BYTES])
{
    const uint16_t magic[] = {__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 0x4d4d : 0x4949, 43, 8, 0};
    memcpy(out, magic, 8);
    memcpy(out + 8, &directory, 8);
}

void pb_segment_head(const struct pb_segment *segment, unsigned char out[PB_SEGMENT_HEAD_BYTES])
{
    make_head(segment->layout.tables_at[0], out);
}

uint64_t pb_segment_bytes(const struct pb_segment *segment)
{
    return segment->layout.total;
}

/* --- creation --- */

static struct pb_segment *allocate(const char *path, bool is_writer)
{
    struct pb_segment *const s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->fd = -1;
    s->is_writer = is_writer;
    s->map = MAP_FAILED;
    s->path = strdup(path);
    if (s->path != NULL)
        return s;
    free(s);
    return NULL;
}

static int map(struct pb_segment *s, struct pb_err *err)
{
    const int rights = s->is_writer ? PROT_READ | PROT_WRITE : PROT_READ;
    unsigned char *const bytes = mmap(NULL, s->layout.total, rights, MAP_SHARED, s->fd, 0);
    if (bytes == MAP_FAILED)
        return pb_io_fail(err, errno, "cannot map", s->path);
    s->map = bytes;
    s->state = (struct state *)(void *)(bytes + STATE_AT);
    s->line = (const struct pb_segment_line *)(const void *)(bytes + LINES_AT);
    return 0;
}

static int make_nodata(struct pb_segment *s, struct pb_err *err)
{
    struct pb_quantizer nodata;
    if (!s->spec.has_nodata)
        return 0;
    s->nodata = malloc(s->layout.line_bytes);
    if (s->nodata == NULL)
        return fail(err, PB_E_MEMORY, s->path, "no memory for a line");
    if (pb_quantizer_init(&nodata, s->spec.type, s->spec.nodata) < 0)
        return fail(err, PB_E_INPUT_LIMIT, s->path, "the nodata value is not one of the type");
    pb_quantize_nodata(&nodata, (size_t)s->spec.width, s->nodata);
    return 0;
}

/* Marks the process as the writer: released by the kernel when it ends. */
static int lock(const struct pb_segment *s, struct pb_err *err)
{
    if (flock(s->fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    if (errno == EWOULDBLOCK) {
        (void)fail(err, PB_E_SERVICE_BUSY, s->path, "another process writes this segment");
        return -EBUSY;
    }
    return pb_io_fail(err, errno, "cannot lock", s->path);
}

static int start(struct pb_segment *s, struct pb_err *err)
{
    const struct state state = {.magic = PB_SEGMENT_MAGIC, .spec = s->spec};
    s->layout = layout_of(&s->spec);
    int rc = lock(s, err);
    if (rc == 0 && (rc = -posix_fallocate(s->fd, 0, (off_t)s->layout.total)) < 0)
        rc = pb_io_fail(err, -rc, "cannot reserve space for", s->path);
    rc = rc ? rc : make_nodata(s, err);
    rc = rc ? rc : put_directory(s, s->layout.tables_at[0], s->spec.height, err);
    if (rc == 0 && ((rc = write_at(s, &state, sizeof state, STATE_AT)) < 0 ||
                    (rc = write_at(s, PB_SEGMENT_MAGIC, 8, 0)) < 0))
        rc = write_fail(s, rc, err);
    return rc ? rc : map(s, err);
}

int pb_segment_create(const char *path, const struct pb_segment_spec *spec, struct pb_err *err,
                      struct pb_segment **out_segment)
{
    if (!is_sound(spec))
        return fail(err, PB_E_INPUT_LIMIT, path,
                    "the lines' sizes or nodata value are not possible");
    struct pb_segment *const s = allocate(path, true);
    if (s == NULL)
        return fail(err, PB_E_MEMORY, path, "no memory for a segment");
    s->spec = *spec;
    s->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, MODE);
    const bool is_made = s->fd >= 0;
    const bool is_taken = !is_made && errno == EEXIST;
    int rc = is_made ? start(s, err) : pb_io_fail(err, errno, "cannot create", path);
    if (rc == 0) {
        *out_segment = s;
        return 0;
    }
    if (is_made)
        (void)unlink(path);
    rc = is_taken ? -EEXIST : rc;
    pb_segment_destroy(s);
    return rc;
}

/* Reads the state of a file. Returns 0, or -EINVAL if it is no segment. */
static int read_state(int fd, struct state *out)
{
    struct stat stat;
    if (fstat(fd, &stat) < 0)
        return -errno;
    if (!S_ISREG(stat.st_mode) || stat.st_size < LINES_AT)
        return -EINVAL;
    const ssize_t n = pread(fd, out, sizeof *out, STATE_AT);
    if (n < 0)
        return -errno;
    if (n != (ssize_t)sizeof *out || memcmp(out->magic, PB_SEGMENT_MAGIC, sizeof out->magic) != 0 ||
        !is_sound(&out->spec))
        return -EINVAL;
    if (out->complete > (uint64_t)out->spec.height)
        return -EINVAL;
    /* All complete lines are there: a closed file ends with the last one of the last band. */
    const struct layout layout = layout_of(&out->spec);
    const int32_t last = (int32_t)out->complete - 1, n_bands = out->spec.n_bands;
    const uint64_t end = last < 0
                             ? layout.data_at + 1
                             : offset_in(&layout, n_bands, n_bands - 1, last) + layout.line_bytes;
    return (uint64_t)stat.st_size >= end ? 0 : -EINVAL;
}

int pb_segment_is_growing(int fd)
{
    struct state state = {.magic = {0}};
    const int rc = read_state(fd, &state);
    if (rc == -EINVAL)
        return 0;
    return rc < 0 ? rc : state.state != PB_SEGMENT_CLOSED;
}

int pb_segment_is_closed(int fd)
{
    struct state state = {.magic = {0}};
    const int rc = read_state(fd, &state);
    if (rc == -EINVAL)
        return 0;
    return rc < 0 ? rc : state.state == PB_SEGMENT_CLOSED;
}

/* Maps the file that s->fd has open. */
static int adopt(struct pb_segment *s, struct pb_err *err)
{
    struct state state;
    if (read_state(s->fd, &state) < 0) {
        (void)fail(err, PB_E_INPUT_DAMAGED, s->path, "the file is no segment of lines");
        return -EINVAL;
    }
    s->spec = state.spec;
    s->layout = layout_of(&s->spec);
    return map(s, err);
}

int pb_segment_open(int fd, const char *path, struct pb_err *err, struct pb_segment **out_segment)
{
    struct pb_segment *const s = allocate(path, false);
    if (s == NULL)
        return fail(err, PB_E_MEMORY, path, "no memory for a segment");
    s->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    int rc = s->fd < 0 ? pb_io_fail(err, errno, "cannot open", path) : adopt(s, err);
    if (rc == 0)
        *out_segment = s;
    else
        pb_segment_destroy(s);
    return rc;
}

static void publish(struct pb_segment *s, enum pb_segment_state state)
{
    atomic_store_explicit(&s->state->state, (uint32_t)state, memory_order_release);
    atomic_fetch_add_explicit(&s->state->word, 1, memory_order_release);
    wic_futex_wake(&s->state->word, INT32_MAX, true);
}

int pb_segment_recover(const char *path, struct pb_err *err, struct pb_segment **out_segment)
{
    struct pb_segment *const s = allocate(path, true);
    if (s == NULL)
        return fail(err, PB_E_MEMORY, path, "no memory for a segment");
    s->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    int rc = s->fd < 0 ? pb_io_fail(err, errno, "cannot open", path) : lock(s, err);
    rc = rc ? rc : adopt(s, err);
    rc = rc ? rc : make_nodata(s, err);
    if (rc == 0 && pb_segment_state(s) == PB_SEGMENT_CLOSED) {
        (void)fail(err, PB_E_INPUT_CHANGED, path, "the segment is closed");
        rc = -EALREADY;
    }
    if (rc == 0) {
        publish(s, PB_SEGMENT_OPEN);
        *out_segment = s;
        return 0;
    }
    s->is_writer = false; /* nothing to abandon */
    pb_segment_destroy(s);
    return rc;
}

void pb_segment_destroy(struct pb_segment *segment)
{
    if (segment == NULL)
        return;
    if (segment->map != MAP_FAILED) {
        if (segment->is_writer && !segment->is_broken &&
            pb_segment_state(segment) == PB_SEGMENT_OPEN)
            publish(segment, PB_SEGMENT_ABANDONED);
        (void)munmap((void *)(uintptr_t)segment->map, segment->layout.total);
    }
    if (segment->fd >= 0)
        (void)close(segment->fd);
    free(segment->nodata);
    free(segment->path);
    free(segment);
}

/* --- the writer --- */

/* Count of lines that fit, at most n. */
static uint32_t fitting(const struct pb_segment *s, uint32_t n)
{
    const uint32_t left = (uint32_t)(s->spec.height - pb_segment_lines(s));
    return pb_segment_state(s) != PB_SEGMENT_OPEN ? 0 : n < left ? n : left;
}

static void complete(struct pb_segment *s, uint32_t n)
{
    atomic_fetch_add_explicit(&s->state->complete, n, memory_order_release);
    publish(s, PB_SEGMENT_OPEN);
}

/* Writes n lines of one row of strips, from line `first` on: lines of the group from its line
 * `from` on; group NULL: lines of a gap. */
static int write_strip(struct pb_segment *s, int32_t first, int n,
                       const struct pb_segment_line *facts, const struct pb_segment_group *group,
                       uint32_t from)
{
    struct iovec rows[PB_SEGMENT_ROWS];
    int rc = 0;
    for (int32_t b = 0; rc == 0 && b < s->spec.n_bands; b++) {
        for (int i = 0; i < n; i++)
            rows[i] = (struct iovec){
                group == NULL ? s->nodata
                              : (void *)(uintptr_t)((const unsigned char *)group->data +
                                                    (from + (uint32_t)i) * group->line_bytes +
                                                    (size_t)b * group->band_bytes),
                s->layout.line_bytes};
        rc = write_rows(s, rows, n, offset(s, b, first));
    }
    return rc ? rc
              : write_at(s, facts, (size_t)n * sizeof *facts,
                         LINES_AT + (uint64_t)first * sizeof *facts);
}

/* Adds n lines of the group; NULL: a gap. The lines become complete together. */
static int add(struct pb_segment *s, const struct pb_segment_group *group, uint32_t n,
               struct pb_err *err)
{
    struct pb_segment_line facts[PB_SEGMENT_ROWS];
    const int32_t first = pb_segment_lines(s);
    const int64_t now =
        group != NULL && group->published_ns != 0 ? group->published_ns : wic_now_ns();
    n = fitting(s, n);
    for (uint32_t done = 0; done < n;) {
        const int32_t line = first + (int32_t)done, room = PB_SEGMENT_ROWS - line % PB_SEGMENT_ROWS;
        const uint32_t part = n - done < (uint32_t)room ? n - done : (uint32_t)room;
        for (uint32_t i = 0; i < part; i++)
            facts[i] = (struct pb_segment_line){
                group != NULL && group->acquired_ns != NULL ? group->acquired_ns[done + i] : 0, now,
                group == NULL, 0};
        const int rc = write_strip(s, line, (int)part, facts, group, done);
        if (rc < 0)
            return write_fail(s, rc, err);
        done += part;
    }
    if (n > 0)
        complete(s, n);
    return (int)n;
}

int pb_segment_append(struct pb_segment *segment, const struct pb_segment_group *group,
                      struct pb_err *err)
{
    return add(segment, group, group->n, err);
}

int pb_segment_gap(struct pb_segment *segment, uint32_t n, struct pb_err *err)
{
    if (segment->nodata == NULL)
        return fail(err, PB_E_INPUT_LIMIT, segment->path, "a gap needs a nodata value");
    return add(segment, NULL, n, err);
}

/* Clears the rows of the last strips that have no line: a failed write may have left values there.
 * These rows are part of the file, because strips of other bands follow them. */
static int clear_rows(struct pb_segment *s, int32_t lines)
{
    struct iovec rows[PB_SEGMENT_ROWS];
    const int n = (int)(strips(lines) * PB_SEGMENT_ROWS) - lines;
    void *const zeros = n > 0 && s->spec.n_bands > 1 ? calloc(1, s->layout.line_bytes) : NULL;
    int rc = n > 0 && s->spec.n_bands > 1 && zeros == NULL ? -ENOMEM : 0;
    for (int32_t b = 0; zeros != NULL && rc == 0 && b + 1 < s->spec.n_bands; b++) {
        for (int i = 0; i < n; i++)
            rows[i] = (struct iovec){zeros, s->layout.line_bytes};
        rc = write_rows(s, rows, n, offset(s, b, lines));
    }
    free(zeros);
    return rc;
}

int pb_segment_close(struct pb_segment *segment, struct pb_err *err)
{
    struct pb_segment *const s = segment;
    const int32_t lines = pb_segment_lines(s);
    const bool is_full = lines == s->spec.height;
    unsigned char head[PB_SEGMENT_HEAD_BYTES];
    if (lines == 0) {
        (void)fail(err, PB_E_INPUT_EMPTY, s->path, "no line arrived");
        return -ENODATA;
    }
    int rc = is_full ? 0 : put_directory(s, s->layout.tables_at[1], lines, err);
    if (rc < 0)
        return rc;
    const uint64_t end = offset(s, s->spec.n_bands - 1, lines - 1) + s->layout.line_bytes;
    make_head(s->layout.tables_at[is_full ? 0 : 1], head);
    rc = clear_rows(s, lines);
    if (rc == 0 && ftruncate(s->fd, (off_t)end) < 0) {
        rc = -errno;
        s->is_broken = true;
    }
    rc = rc ? rc : write_at(s, head + 8, 8, 8);
    rc = rc ? rc : write_at(s, head, 8, 0);
    if (rc < 0)
        return write_fail(s, rc, err);
    publish(s, PB_SEGMENT_CLOSED);
    return 0;
}

int pb_segment_sync(const struct pb_segment *segment, struct pb_err *err)
{
    return fsync(segment->fd) == 0
               ? 0
               : pb_io_fail(err, errno, "cannot write to the disk", segment->path);
}

/* --- readers --- */

const struct pb_segment_spec *pb_segment_spec(const struct pb_segment *segment)
{
    return &segment->spec;
}

enum pb_segment_state pb_segment_state(const struct pb_segment *segment)
{
    return (enum pb_segment_state)atomic_load_explicit(&segment->state->state,
                                                       memory_order_acquire);
}

int32_t pb_segment_lines(const struct pb_segment *segment)
{
    const uint64_t n = atomic_load_explicit(&segment->state->complete, memory_order_acquire);
    return n < (uint64_t)segment->spec.height ? (int32_t)n : segment->spec.height;
}

struct pb_segment_line pb_segment_line(const struct pb_segment *segment, int32_t line)
{
    return segment->line[line];
}

/* Returns 1 if a wait continues, else its result. */
static int look(const struct pb_segment *s, int32_t lines)
{
    const enum pb_segment_state state =
        pb_segment_state(s); /* before the lines: it is stored last */
    if (pb_segment_lines(s) >= lines)
        return 0;
    if (state != PB_SEGMENT_OPEN)
        return -ENODATA;
    return atomic_load_explicit(&s->aborted, memory_order_acquire) ? -ECANCELED : 1;
}

int pb_segment_wait(const struct pb_segment *segment, int32_t lines, int64_t deadline_ns)
{
    int rc = look(segment, lines);
    const int64_t spin_to = rc == 1 && segment->spin_ns > 0 ? wic_now_ns() + segment->spin_ns : 0;
    while (rc == 1) {
        const uint32_t seen = atomic_load_explicit(&segment->state->word, memory_order_acquire);
        rc = look(segment, lines);
        const int64_t now = rc == 1 ? wic_now_ns() : 0;
        if (rc == 1 && now >= deadline_ns)
            rc = -ETIMEDOUT;
        const int64_t until = deadline_ns - now < PARK_NS ? deadline_ns : now + PARK_NS;
        if (rc == 1 && now >= spin_to)
            (void)wic_futex_wait(&segment->state->word, seen, until, true);
    }
    return rc;
}

int pb_segment_wait_end(const struct pb_segment *segment, int64_t deadline_ns)
{
    const int rc = pb_segment_wait(segment, INT32_MAX, deadline_ns);
    return rc == -ENODATA ? 0 : rc;
}

void pb_segment_abort(struct pb_segment *segment)
{
    atomic_store_explicit(&segment->aborted, true, memory_order_release);
    wic_futex_wake(&segment->state->word, INT32_MAX, true);
}

void pb_segment_spin(struct pb_segment *segment, int64_t spin_ns)
{
    segment->spin_ns = spin_ns;
}

void pb_segment_copy(const struct pb_segment *segment, int32_t band, const struct pb_rect *rect,
                     void *out, size_t row_bytes)
{
    const size_t each = pb_type_bytes(segment->spec.type);
    for (int32_t y = 0; y < rect->h; y++)
        memcpy((unsigned char *)out + (size_t)y * row_bytes,
               segment->map + offset(segment, band - 1, rect->y + y) + (size_t)rect->x * each,
               (size_t)rect->w * each);
}
