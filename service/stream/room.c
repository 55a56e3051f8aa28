/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The memory of a stream, mapped by its writer and by the service:
 *
 *   memfd              words of the channel | slots
 *   mapping     page | words of the channel | slots
 *
 * The page is private to the process; the head of the channel is at its end. */
#include "service/stream/writer.h"

#include "wic/wic.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, ALIGNMENT = 64 };

static const struct {
    const char *word;
    size_t bytes;
} types[PB_STREAM_TYPES] = {
    [PB_STREAM_UINT8] = {"uint8", 1},     [PB_STREAM_UINT16] = {"uint16", 2},
    [PB_STREAM_INT16] = {"int16", 2},     [PB_STREAM_UINT32] = {"uint32", 4},
    [PB_STREAM_INT32] = {"int32", 4},     [PB_STREAM_FLOAT32] = {"float32", 4},
    [PB_STREAM_FLOAT64] = {"float64", 8},
};

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static bool is_type(enum pb_stream_type type)
{
    return (unsigned)type < PB_STREAM_TYPES;
}

const char *pb_stream_type_word(enum pb_stream_type type)
{
    return is_type(type) ? types[type].word : NULL;
}

size_t pb_stream_type_bytes(enum pb_stream_type type)
{
    return is_type(type) ? types[type].bytes : 0;
}

size_t pb_stream_line_bytes(const struct pb_stream_format *format)
{
    return (size_t)format->bands * format->samples * pb_stream_type_bytes(format->type);
}

size_t pb_stream_times_offset(void)
{
    return sizeof(struct pb_stream_group);
}

size_t pb_stream_pixels_offset(const struct pb_stream_format *format)
{
    return pb_stream_times_offset() + round_up(format->group_lines * sizeof(int64_t), ALIGNMENT);
}

size_t pb_stream_slot_bytes(const struct pb_stream_format *format)
{
    if (!is_type(format->type) || format->bands < 1 || format->bands > PB_STREAM_BANDS_MAX ||
        format->samples < 1 || format->samples > PB_STREAM_SAMPLES_MAX || format->group_lines < 1 ||
        format->group_lines > PB_STREAM_GROUP_LINES_MAX)
        return 0;
    const size_t pixels = format->group_lines * pb_stream_line_bytes(format);
    return pixels <= PB_STREAM_GROUP_BYTES_MAX ? pb_stream_pixels_offset(format) + pixels : 0;
}

static struct wic_options options_of(uint32_t slots, size_t slot_bytes, void *payload)
{
    return (struct wic_options){
        .slots = slots, .slot_bytes = slot_bytes, .payload = payload, .shared = true};
}

/* Bytes of the channel's words, in whole pages; 0: such a channel is not possible. */
static size_t words_bytes(uint32_t slots, size_t slot_bytes)
{
    static char some; /* the address of the slots is not known yet */
    const struct wic_options options = options_of(slots, slot_bytes, &some);
    return round_up(wic_join_bytes(&options), PAGE);
}

size_t pb_stream_room_bytes(uint32_t slots, size_t slot_bytes)
{
    const size_t words = words_bytes(slots, slot_bytes);
    return words > 0 ? words + slots * wic_slot_stride(slot_bytes) : 0;
}

int pb_stream_room_open(int fd, uint32_t slots, size_t slot_bytes, bool first,
                        int (*check)(void *context, struct wic_slot *slot), void *context,
                        struct pb_stream_room *out_room)
{
    struct stat st;
    const size_t bytes = pb_stream_room_bytes(slots, slot_bytes);
    if (bytes == 0 || fstat(fd, &st) != 0 || st.st_size < 0 || (size_t)st.st_size < bytes)
        return -EINVAL;
    const int access = PROT_READ | PROT_WRITE;
    unsigned char *base = mmap(NULL, PAGE + bytes, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return -ENOMEM;
    struct pb_stream_room room = {.base = base, .bytes = PAGE + bytes};
    int rc =
        mmap(base + PAGE, bytes, access, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED ? 0 : -ENOMEM;
    struct wic_join join = {.first = first, .check = check, .context = context};
    join.options = options_of(slots, slot_bytes, base + PAGE + words_bytes(slots, slot_bytes));
    if (rc == 0 && wic_channel_join(base + PAGE, &join, &room.channel) != 0)
        rc = -EPROTO;
    if (rc != 0) {
        pb_stream_room_close(&room);
        return rc;
    }
    *out_room = room;
    return 0;
}

void pb_stream_room_close(struct pb_stream_room *room)
{
    if (room->base != NULL)
        (void)munmap(room->base, room->bytes);
    *room = (struct pb_stream_room){0};
}
