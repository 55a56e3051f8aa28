/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DOWNLINK_H
#define PB_DOWNLINK_H
/* The description of a downlink for pushbroom-ccsds: its transfer frames, the time code of its
 * packets, and the place of lines in packets. A YAML file of its own, because frames are of a
 * mission and pipelines are of a user. The value owns every string in it. Any thread may read. */
#include "kernels/key.h"

struct pb_err_list;

enum pb_frame_kind { PB_FRAMES_AOS, PB_FRAMES_TM, PB_FRAMES_NONE };
enum pb_time_code { PB_TIME_CUC, PB_TIME_CDS };
/* Types of pixels, in the order of enum pb_stream_type of the streams' writers. */
enum pb_pixel_type {
    PB_PIXEL_UINT8,
    PB_PIXEL_UINT16,
    PB_PIXEL_INT16,
    PB_PIXEL_UINT32,
    PB_PIXEL_INT32,
    PB_PIXEL_FLOAT32,
    PB_PIXEL_FLOAT64
};

struct pb_downlink_frames {
    enum pb_frame_kind kind;
    int32_t length; /* octets of a frame without its sync marker; 0: not given */
    int32_t has_sync, is_randomized, has_crc, has_ocf, has_header_crc; /* 1 = true */
    int32_t insert_zone;                                               /* octets */
    int32_t spacecraft;
    bool has_spacecraft;
    struct pb_items channels; /* numbers of virtual channels; n == 0: all */
    int32_t reorder;          /* frames or packets; 0 = none */
};

struct pb_downlink_time {
    enum pb_time_code code;
    bool is_given;
    int32_t at;                    /* octet of the packet */
    int32_t coarse, fine;          /* octets of CUC */
    int32_t days, submilliseconds; /* octets of CDS */
    char *epoch;                   /* as written; NULL: not given */
    int64_t epoch_s;               /* seconds since 1970 */
    double leap_seconds;           /* subtracted from CUC times */
    bool has_leap_seconds;
};

struct pb_downlink_lines {
    struct pb_items bands; /* name = APID */
    int32_t samples;
    int32_t counter_at, counter_bits;
    int32_t pixels_at;
    enum pb_pixel_type type;
    int32_t is_little; /* 1 = little endian */
    int32_t bits;      /* bits of a packed pixel; 0 = those of the type */
    int32_t has_crc;   /* 1 = a packet ends with a checksum */
};

struct pb_downlink {
    struct pb_downlink_frames frames;
    struct pb_downlink_time time;
    struct pb_downlink_lines lines;
    void *memory; /* arena that owns everything above */
};

/* Reads and checks a file. 0 and *out_downlink (the caller's, destroy it), or a negative errno and
 * at least one error in *errors. path is borrowed. Thread: any. */
int pb_downlink_load(const char *path, struct pb_err_list *errors,
                     struct pb_downlink **out_downlink);
/* The same from text in memory; name is the file's name in messages. */
int pb_downlink_parse(const char *text, size_t bytes, const char *name, struct pb_err_list *errors,
                      struct pb_downlink **out_downlink);
/* NULL is allowed. */
void pb_downlink_destroy(struct pb_downlink *downlink);
/* Octets of a pixel of the type. */
size_t pb_pixel_type_bytes(enum pb_pixel_type type);
/* A commented file with every key; malloc'd string, the caller's. NULL: no memory. */
char *pb_downlink_example(void);
#endif
