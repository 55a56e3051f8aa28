/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The tables. A new key is one row here and one member in config.h. */
#include "config/schema_rows.h"
#include "config/compute_config.h"
#include "config/limits_config.h"
#include "config/pipeline_config.h"
#include "config/service_config.h"
#include "config/web_config.h"

#define MIB    1048576.0
#define TIB    1099511627776.0
#define SECOND 1000.0
#define DAY    86400000.0

#define AT(type, member)         offsetof(struct type, member)
#define TWO(type, member, other) offsetof(struct type, member), offsetof(struct type, other)
/* One macro per form of row, for readable rows. */
#define PATH(n, member, dflt, sample, text)                                                        \
    {                                                                                              \
        .name = n, .type = PB_KEY_PATH, .offset = AT(pb_service_config, member), .def = dflt,      \
        .example = sample, .doc = text                                                             \
    }
#define USER(n, at, dflt, text)                                                                    \
    {                                                                                              \
        .name = n, .type = PB_KEY_TEXT, .may_be_empty = true, .offset = at, .def = dflt,           \
        .doc = text                                                                                \
    }
/* As input, input.files and input.sources have it. */
#define COMPLEX(holder, text)                                                                      \
    {                                                                                              \
        .name = "complex", .type = PB_KEY_CHOICE, TWO(holder, complex, has_complex),               \
        .choices = "amplitude|power", .example = "amplitude", .doc = text                          \
    }
/* enum pb_bring */
#define BRING_WORDS "none|nearest|bilinear|cubic|average|mode|lanczos"

static const struct pb_key service_keys[] = {
    PATH("inbox", inbox, "/var/lib/pushbroom/inbox", NULL,
         "Watched directory. A complete file is claimed by renaming it into work, so both must be "
         "on one file system."),
    OPTION("inboxes", PB_KEY_INBOXES, AT(pb_service_config, own_inboxes),
           AT(pb_service_config, n_own_inboxes),
           "[{path: /srv/feed/kiruna, recurse: true, priority: 10}, {path: "
           "/srv/feed/svalbard, complete: {marker: \"{name}.done\"}}]",
           "Several watched directories, in place of inbox."),
    PATH("work", work, "/var/lib/pushbroom/work", NULL, "Inputs of jobs that wait or run."),
    PATH("products", products, "/var/lib/pushbroom/products", NULL,
         "Results, at output.path of the pipeline; published by one rename when all are complete."),
    CHOICE("products_mode", AT(pb_service_config, products_mode), "umask|0600|0640|0644|0660|0664",
           "umask",
           "Permissions of product files; directories also get search permission for users who may "
           "read them. umask: 0644 and 0755 without the bits of the service's umask (UMask= of its "
           "unit)."),
    PATH("quarantine", quarantine, "/var/lib/pushbroom/quarantine", NULL,
         "Inputs of failed jobs, each with a <name>.error.json next to it."),
    PATH("state", state, "/var/lib/pushbroom/state", NULL, "The job store."),
    PATH("socket", socket, "/run/pushbroom/status.sock", NULL,
         "Status socket (JSON-RPC 2.0, one object a line); at most 107 bytes."),
    PATH("archive", archive, NULL, "/var/lib/pushbroom/work/done",
         "Directory for inputs of successful jobs; without this key: the directory done in work."),
    CHOICE("on_success", AT(pb_service_config, on_success), "archive|delete", "archive",
           "Action for the input of a successful job."),
    RANGED("settle", PB_KEY_DURATION, AT(pb_service_config, settle_ms), 0, DAY, "10s",
           "A file that no process has open for writing is complete when it was renamed into the "
           "inbox, "
           "or has not changed for this long."),
    RANGED("rescan", PB_KEY_DURATION, AT(pb_service_config, rescan_ms), 100, DAY, "30s",
           "All names of the inbox are listed this often, in a huge inbox less often. Between "
           "listings only what events of the file system report is examined."),
    RANGED("stall", PB_KEY_DURATION, AT(pb_service_config, stall_ms), SECOND, 7 * DAY, "10m",
           "A job without progress for this long is ended."),
    RANGED("express", PB_KEY_DURATION, AT(pb_service_config, express_ms), 0, DAY, "60s",
           "When all parallel jobs have run for this long and others wait, one job more may run: a "
           "small one, for this time at most, on the CPU; 0s = never."),
    RANGED("parallel_jobs", PB_KEY_INT, AT(pb_service_config, parallel_jobs), 0, 64, "0",
           "Jobs that compute at the same time; each has the memory budget to itself. 0: one on a "
           "GPU; on the CPU as many as there are cores, if they have few tiles, and together they "
           "have one memory budget."),
    RANGED("publishing_jobs", PB_KEY_INT, AT(pb_service_config, publishing_jobs), 0, 16, "1",
           "Jobs that may publish in addition to parallel_jobs: when all tiles of a job are "
           "computed, the next one starts. Each may need compute.memory. With the key duplicates "
           "0 of them."),
    RANGED("max_attempts", PB_KEY_INT, AT(pb_service_config, max_attempts), 1, 100, "2",
           "How often a job is started in all when its worker dies."),
    RANGED("keep_jobs", PB_KEY_INT, AT(pb_service_config, keep_jobs), 0, 1000000, "1000",
           "Finished jobs kept in the job store; older ones are forgotten."),
    OPTION("ignore", PB_KEY_PATHS, AT(pb_service_config, ignore), AT(pb_service_config, n_ignore),
           "[\"*.aux.xml\", \"*.ovr\", \"browse/*\"]",
           "Patterns for names in the inbox that are no scenes: they are left alone and counted. "
           "One with a slash is for the path below the inbox. Upper and lower case are the "
           "same."),
    OPTION("admins", PB_KEY_PATTERNS, AT(pb_service_config, admins),
           AT(pb_service_config, n_admins), "[operator, \"1000\"]",
           "Users, by name or number, who may cancel and retry every job, in addition to root, the "
           "service's own user and each job's owner."),
    USER("notify_user", AT(pb_service_config, notify_user), "pushbroom-notify",
         "User that pushbroom-notify runs as: it may take events from the socket, and change no "
         "job. \"\": root, the service's own user and admins only."),
    USER("web_user", AT(pb_service_config, web_user), "pushbroom-web",
         "User that pushbroom-web runs as: by the socket it may query and watch jobs, submit no "
         "file and change no job, except as web.actions allows; the unit's read-only file "
         "system protects the inbox. \"\": no user is restricted in this way."),
    {.name = "retention",
     .type = PB_KEY_SECTION,
     TWO(pb_service_config, retention, has_retention),
     .section = &pb_section_retention,
     .example = "{done: 7d, quarantine: 30d, min_free: 50GiB}",
     .doc = "How long archived and quarantined inputs are kept: the service removes what it put "
            "there itself, oldest first; without a time for ever. min_free: with less free space "
            "below work or products nothing is taken from the inbox until there is more."},
    {.name = "duplicates",
     .type = PB_KEY_SECTION,
     TWO(pb_service_config, duplicates, has_duplicates),
     .section = &pb_section_duplicates,
     .example = "{by: checksum, keep: 90d, then: skip}",
     .doc =
         "An input of one file whose content was done in the same pipeline within keep, and whose "
         "products are still there, is not computed again. Without this key: it is."},
    {.name = "unmatched",
     .type = PB_KEY_SECTION,
     TWO(pb_service_config, unmatched, has_unmatched),
     .section = &pb_section_unmatched,
     .example = "{files: quarantine, folders: leave}",
     .doc = "Entries of the inbox that no pipeline fits: without this key files are quarantined "
            "and folders stay. Entries that stay are in "
            "'pushbroom status' and in the metric pushbroom_inbox_foreign."},
    OPTION("node", PB_KEY_TEXT, AT(pb_service_config, node), 0, "hot-1",
           "Name of this service among the nodes of its store; without this key: the machine's."),
    {.name = "store",
     .type = PB_KEY_SECTION,
     TWO(pb_service_config, store, has_store),
     .section = &pb_section_store,
     .example = "{postgresql: \"host=/run/postgresql dbname=pushbroom\", lease: 30s}",
     .doc = "PostgreSQL database that several services have their jobs in: each runs the jobs of "
            "all. They need one products directory, and see each other's inputs at the same "
            "paths, or the key fetch. Without this key: a file in state."},
    {.name = "fetch",
     .type = PB_KEY_SECTION,
     TWO(pb_service_config, fetch, has_fetch),
     .section = &pb_section_fetch,
     .example = "{listen: \"0.0.0.0:8447\", address: \"hot-1.example.org:8447\"}",
     .doc = "For nodes without a common file system: pushbroom-fetch copies inputs from the node "
            "that took them in, and brings products back to it. Each node has its own products "
            "directory then. All nodes need this key, or none."},
    USER("worker_user", AT(pb_service_config, worker_user), "pushbroom-worker",
         "User that scenes are decoded and products are written as, where the service runs as "
         "root or may change users and such a user exists; else the service's own. \"\": always "
         "its own."),
};

static const struct pb_key retention_keys[] = {
    RANGED("done", PB_KEY_DURATION, AT(pb_retention_config, done_ms), 0, 36500 * DAY, "0s",
           "Archived inputs of successful jobs are removed after this time, counted while the "
           "machine is up; 0s: never."),
    RANGED("quarantine", PB_KEY_DURATION, AT(pb_retention_config, quarantine_ms), 0, 36500 * DAY,
           "0s",
           "Quarantined inputs and their records are removed after this time, counted while the "
           "machine is up; 0s: never."),
    RANGED("min_free", PB_KEY_SIZE, AT(pb_retention_config, min_free_bytes), 0, 1024 * TIB, "0",
           "With less free space below work or products nothing is taken in."),
};

static const struct pb_key compute_keys[] = {
    {.name = "device",
     .type = PB_KEY_DEVICE,
     TWO(pb_compute_config, device, device_index),
     .def = "auto",
     .doc =
         "Where pixels are computed: auto | cpu | cuda | cuda:N. auto takes a GPU if one works."},
    RANGED("memory", PB_KEY_SIZE, AT(pb_compute_config, memory_bytes), 16 * MIB, 16 * TIB, "512MiB",
           "Memory of a job: its tiles, its products while they are written, and managed planes."),
    CHOICE(
        "buffers", AT(pb_compute_config, buffers), "auto|pinned|managed|host", "auto",
        "Memory that a GPU works with. auto, pinned: tiles and blocks are sent in slots of pinned "
        "memory, and the planes of a scene that the GPU decodes are device memory. managed: "
        "these planes are managed memory, a part of which is on the GPU at a time; the scene "
        "may exceed device_memory. host: slots are not pinned, and the host decodes."),
    CHOICE(
        "sync", AT(pb_compute_config, sync), "wic|stream", "wic",
        "How a GPU gets the tiles of a scene that the host decodes. wic: a resident kernel, whose "
        "warps are parked until their tile is there; stream: a kernel for each tile. Without "
        "effect on the CPU, and where the GPU decodes: that is always done by launches."),
    CHOICE("codecs", AT(pb_compute_config, codecs), "auto|host|device", "auto",
           "Where a GPU's job decodes the scene's blocks: on the host, or on the GPU, from their "
           "stored bytes; auto: on the GPU when that is faster and the layout and codec (none, "
           "deflate, LZW) of a file allow it. device: also when it is not faster; blocks that the "
           "GPU cannot decode, or has no memory for, are decoded by the host, and the report lists "
           "the reason."),
    RANGED(
        "device_memory", PB_KEY_SIZE, AT(pb_compute_config, device_memory_bytes), 0, 16 * TIB, "0",
        "GPU memory for blocks and pixels that are decoded there; 0 = a quarter of what it has."),
    RANGED("share", PB_KEY_PERCENT, AT(pb_compute_config, share_percent), 1, 100, "100%",
           "Part of a GPU's multiprocessors for the kernels of this service; the rest is free for "
           "other programs. A driver since CUDA 12.5 keeps kernels on their part."),
    RANGED("threads", PB_KEY_INT, AT(pb_compute_config, threads), 0, 1024, "0",
           "Threads of a job; 0 = all cores."),
    RANGED("tile", PB_KEY_POWER, AT(pb_compute_config, tile_px), 64, 8192, "0",
           "Side of a tile in pixels, a power of two; 0 = chosen from the image and the memory."),
};

static const struct pb_key limits_keys[] = {
    RANGED("max_pixels", PB_KEY_COUNT, AT(pb_limits, max_pixels), 1, 1e15, "200000000000",
           "Width times height, of a file and of every grid that steps make."),
    RANGED("max_side_px", PB_KEY_INT, AT(pb_limits, max_side_px), 1, 2147483647, "1000000",
           "Width, and height, of the same."),
    RANGED("max_growth", PB_KEY_COUNT, AT(pb_limits, max_growth), 1, 1e15, "1000",
           "Pixels of a grid that steps make, or of all tiles of a scene together, for each pixel "
           "of the scene's files, of grids above 500 million pixels."),
    RANGED("output", PB_KEY_SIZE, AT(pb_limits, output_bytes), 1 * MIB, 1024 * TIB, "1TiB",
           "The products of one run together, all tiles included. The size of images without "
           "compression is known and checked before the first pixel; of others a thousandth of it "
           "is, and the rest while they are written."),
    RANGED("max_block_bytes", PB_KEY_SIZE, AT(pb_limits, max_block_bytes), 4096, TIB, "256MiB",
           "One tile or strip of the file when decoded, with all bands it holds."),
    RANGED("max_ratio", PB_KEY_COUNT, AT(pb_limits, max_ratio), 1, 1e15, "10000",
           "Decoded bytes for each byte that the file stores, of images above 4 GiB."),
    RANGED("max_bands", PB_KEY_INT, AT(pb_limits, max_bands), 1, PB_BANDS_MAX, "64", "Bands."),
    RANGED("max_directories", PB_KEY_INT, AT(pb_limits, max_directories), 1, 65535, "64",
           "TIFF directories: the image, its overviews and masks."),
    RANGED("archive_members", PB_KEY_INT, AT(pb_limits, archive_members), 1, 1000000, "20000",
           "Files and folders in an archive."),
    RANGED("archive_bytes", PB_KEY_SIZE, AT(pb_limits, archive_bytes), 1, 1024 * TIB, "100GiB",
           "All files of an archive together when unpacked; those that are needed are."),
    RANGED("archive_ratio", PB_KEY_COUNT, AT(pb_limits, archive_ratio), 1, 1e15, "200",
           "Unpacked bytes for each byte of the archive, of archives that hold more than 1 GiB."),
    RANGED("archive_depth", PB_KEY_INT, AT(pb_limits, archive_depth), 1, 64, "10",
           "Folders below each other in an archive, the file being one more."),
    RANGED("job_time", PB_KEY_DURATION, AT(pb_limits, job_time_ms), 0, 30 * DAY, "6h",
           "A job of the service that runs for longer is ended and fails; 0s = no limit."),
};

static const struct pb_key web_keys[] = {
    CHOICE("actions", AT(pb_web_config, actions), "false|true", "false",
           "true: service.web_user may retry, repeat, cancel and drop every job, and submit files, "
           "and pushbroom-web does so for people whom it knows by a token or by the proxy before "
           "it. It needs TLS or the Unix socket of a proxy for that."),
    TEXT("basemap", AT(pb_web_config, basemap), "\"https://tiles.example/{z}/{x}/{y}.png\"",
         "Tiles of another server below the map, in Web Mercator; browsers load them from there. "
         "Without this key: coasts only, and nothing from other hosts."),
    TEXT("attribution", AT(pb_web_config, attribution), "\"Map: Example\"",
         "Text on the map that names the owner of the tiles; needed with basemap."),
};

static const struct pb_key quality_keys[] = {
    {.name = "band",
     .type = PB_KEY_TEXT,
     .offset = AT(pb_quality_config, band),
     .example = "SCL",
     .required = true,
     .doc = "The band with classes or bits."},
    {.name = "preset",
     .type = PB_KEY_TEXT,
     .offset = AT(pb_quality_config, preset),
     .example = "sentinel2-scl",
     .doc = "Meaning of its values, as in the step mask."},
};

static const struct pb_key lines_keys[] = {
    RANGED("every", PB_KEY_INT, AT(pb_lines_config, every), 16, 1000000, "4096",
           "Lines of a scene, at most; then the next scene begins."),
    RANGED("silence", PB_KEY_DURATION, AT(pb_lines_config, silence_ms), 100, DAY, "10s",
           "A scene is closed with the lines that it has after this long without a line."),
    CHOICE("when_full", AT(pb_lines_config, when_full), "wait|drop-oldest", "wait",
           "When lines arrive faster than they can be stored: wait stops the writer; drop-oldest "
           "drops the oldest lines that are not stored yet, which become gaps. Both are counted."),
    OPTION("writers", PB_KEY_PATTERNS, AT(pb_lines_config, writers), AT(pb_lines_config, n_writers),
           "[sensor, \"1003\"]",
           "Users, by name or number, who may write the stream, in addition to root, the "
           "service's own user and service.admins."),
    TEXT("token", AT(pb_lines_config, token), "/etc/pushbroom/swir.token",
         "File whose first line is a token; a writer that sends it may write, whichever its "
         "user."),
};

static const struct pb_key input_keys[] = {
    TEXT("preset", AT(pb_input_config, preset), "sentinel2-l2a",
         "Name of a preset ('pushbroom new' lists them): its input is the base of this one, "
         "and the other keys here replace its keys. In files, bands, sources, quality and "
         "complete each entry replaces one or is added; match, scene and group replace each other. "
         "input: sentinel2-l2a is short for input: {preset: sentinel2-l2a}."),
    LISTED("match", PB_KEY_PATTERNS, AT(pb_input_config, match), AT(pb_input_config, n_match),
           "[\"*.tif\", \"*.tiff\"]",
           "Patterns for the file name without its directory; upper and lower case are the same."),
    {.name = "bands",
     .type = PB_KEY_BAND_MAP,
     TWO(pb_input_config, own_bands, n_own_bands),
     .sample = "{B: 1, G: 2, R: 3, N: 4}",
     .doc = "Names by band number, counted from 1; without this key: B1, B2, ..."},
    CHOICE("pages", AT(pb_input_config, pages), "first|all", "first",
           "Which pages of a TIFF are read. all: it has a page for each band, and the numbers of "
           "bands are those of pages, counted from 1 without overviews and masks. All have one "
           "band, one size and one place."),
    {.name = "scale",
     .type = PB_KEY_NUMBER,
     .offset = AT(pb_input_config, scale),
     .min = -1e12,
     .max = 1e12,
     .def = "1",
     .sample = "0.0001",
     .doc = "Steps see stored value * scale + offset."},
    RANGED("offset", PB_KEY_NUMBER, AT(pb_input_config, offset), -1e12, 1e12, "0", "See scale."),
    OPTION("nodata", PB_KEY_NODATA, AT(pb_input_config, nodata), AT(pb_input_config, has_nodata),
           "0", "Stored value that means there is no measurement; overrides the file's."),
    CHOICE(
        "valid", AT(pb_input_config, valid), "auto|mask|nodata|both", "auto",
        "Source of the validity of pixels. auto is GDAL's rule: a mask in the file "
        "alone, else nodata values that the type can hold, else an alpha band that bands does not "
        "name; a value of the key nodata counts in any case. mask: mask or alpha alone; nodata: "
        "values alone; both: a pixel must be valid by each that is there."),
    COMPLEX(pb_input_config,
            "Quantity that complex pixels (single-look SAR) are read as: amplitude is sqrt(re^2 + "
            "im^2), "
            "power re^2 + im^2, in double and rounded to float32; without this key such files are "
            "refused. A nodata value counts where the imaginary part is 0."),
    OPTION(
        "sources", PB_KEY_SOURCES, AT(pb_input_config, own_sources),
        AT(pb_input_config, n_own_sources),
        "{PAN: {file: \"/data/pan/{scene}.tif\", bands: {P: 1}}}",
        "Up to 15 files that are read in addition to the scene, with the keys file, bands, scale, "
        "offset, nodata, complex and resample. Their pixels may be of any size, in the scene's "
        "coordinate system. "
        "{scene} in a path is the name of the scene's file without its suffix; a relative path "
        "begins at the directory of this file."),
    TEXT("scene", AT(pb_input_config, scene), "\"S2?_*_L2A/\"",
         "Pattern for the names of folders that are one scene each, in place of match; a ZIP or "
         "TAR archive of a folder fits by its name without .zip, .tar, .tar.gz and the like."),
    OPTION(
        "archives", PB_KEY_PATTERNS, AT(pb_input_config, archives), AT(pb_input_config, n_archives),
        "[\"*_psscene_*.zip\"]",
        "Patterns for the names of more ZIP and TAR archives, which have neither the name of the "
        "folder in them nor that of a scene of group. Each scene in an archive is a scene."),
    TEXT("group", AT(pb_input_config, group),
         "\"(?<scene>LC0[89]_L2SP_.*)_(SR_B[1-7]|QA_PIXEL|MTL)\\\\.(TIF|txt)\"",
         "Regular expression (Perl's) for the names of loose files that make a scene together, in "
         "place of match: files with the same (?<scene>...) belong to one (see by). "
         "sentinel2 and landsat stand for the names of the files of these products, with the "
         "groups scene, date and tile (of Landsat path and row). Pass any one of them to "
         "'pushbroom run'; the others are found next to it. The service takes them from the inbox "
         "when all are there (complete). A file that fits is never a scene of its own, even if a "
         "match fits."),
    TEXT("by", AT(pb_input_config, by), "\"{tile}_{date:%Y%m}\"",
         "Name that loose files of one scene share, in place of (?<scene>...): a text with named "
         "groups of input.group in braces. {date:%Y%m} is (?<date>...), which begins with year, "
         "month and day in digits, in a format of strftime. date is {date:%Y%m%d}, tile is "
         "{tile}. {meta.date} and {meta.tile} are read from the file's metadata: those of "
         "input.metadata that are its own (a * stands for the begin of its name), which are moved "
         "with it; for the date also GDAL's "
         "ACQUISITIONDATETIME (domain IMAGERY) of the file itself. The date is that of the "
         "acquisition in UTC ({meta.date:%Y%m}), never TIFFTAG_DATETIME, which is when the file "
         "was made; the tile is T33XWJ of MGRS, path and row of Landsat (001062), or a "
         "grid:code. meta.date is {meta.date:%Y%m%d}, meta.tile is {meta.tile}. A file without "
         "them fails alone."),
    CHOICE("order", AT(pb_input_config, order),
           "name|name-descending|date|date-descending|cloud|list", "name",
           "The order in which nth of input.files counts: by the names of files, or by "
           "(?<date>...) of input.group and then by their names. cloud: the least cloudy first, "
           "of all files that fit. Then input.metadata are those of each file, with a * for the "
           "begin of its name (\"*_MTL.txt\"); a file without takes its own metadata (GDAL's "
           "CLOUDCOVER, domain IMAGERY). A file without a cloud cover is last, and the report "
           "lists it; when no file has one, the job fails. In addition to those that count, up to "
           "32 files are read for it; all are part of the input's identity. list: as the file of "
           "input.list names them, and no others."),
    TEXT("list", AT(pb_input_config, list), "\"{scene}.lst\"",
         "With order: list, the pattern for the file of the scene that lists its counted files, "
         "the first one first: in each line the name of one, or its path inside the scene; a # "
         "begins a comment. It belongs to a complete scene."),
    OPTION("files", PB_KEY_FILES, AT(pb_input_config, files), AT(pb_input_config, n_files),
           "{R: B04.tif, N: B08.tif, SCL: {match: SCL.tif, resample: nearest, scale: 1}}",
           "The bands of a scene of many files, in place of bands: each a pattern for the file's "
           "name, or, with a slash, for its path inside the scene; or a map with the keys match, "
           "band, page, nth, optional, resample, scale, offset, nodata and complex. {scene} is the "
           "scene's name, @(a|b) one of several; upper and lower case are the same. A band that no "
           "product needs is not opened."),
    TEXT("grid", AT(pb_input_config, grid), "R",
         "The band of files whose grid is the scene's; without this key the first of them. Files "
         "with resample are brought onto it in the same pass; the others stay on their own, for "
         "steps that choose."),
    {.name = "quality",
     .type = PB_KEY_SECTION,
     TWO(pb_input_config, quality, has_quality),
     .section = &pb_section_quality,
     .example = "{band: SCL, preset: sentinel2-scl}",
     .doc = "The quality band, which a step mask without band and bands takes: clouds are then "
            "masked by `- mask`."},
    TEXT("stream", AT(pb_input_config, stream), "swir",
         "Name of a stream, in place of match: lines that another program writes while a sensor "
         "records them. The service cuts them into scenes, see service/doc/streams.md."),
    {.name = "lines",
     .type = PB_KEY_SECTION,
     TWO(pb_input_config, lines, has_lines),
     .section = &pb_section_lines,
     .example = "{every: 4096, silence: 10s, when_full: wait}",
     .doc = "With stream: the length of its scenes, and who may write it."},
    {.name = "complete",
     .type = PB_KEY_SECTION,
     TWO(pb_input_config, complete, has_complete),
     .section = &pb_section_complete,
     .example = "{all: true, expire: 30m}",
     .doc =
         "When a scene of many files is complete. all: true = with every file of files, false = "
         "with those that products need, true of one file = with each of its sidecars. expire: "
         "a scene of the inbox to which nothing was added for this long is moved to quarantine "
         "incomplete, or is computed where optional files alone are missing. reopen: for how long "
         "after its job files may join loose ones."},
    {.name = "metadata",
     .type = PB_KEY_FILE_NAMES,
     TWO(pb_input_config, metadata, n_metadata),
     .example = "\"{scene}_MTL.txt\"",
     .doc = "Pattern for the file with the product's metadata (MTL, MTD_MSIL2A.xml, IMD, ...), for "
            "steps that calibrate and for STAC: next to the scene's file, or inside its folder, "
            "where it belongs to a complete scene. A list when one product has several, such as "
            "[MTD_MSIL2A.xml, \"GRANULE/*/MTD_TL.xml\"]: their facts are combined, and must not "
            "contradict each other. {scene} is the scene's name. 'pushbroom operators calibrate' "
            "lists the "
            "families. For a file of the inbox the service waits for them (complete) and moves "
            "them with it."},
    OPTION(
        "sidecars", PB_KEY_PATTERNS, AT(pb_input_config, sidecars), AT(pb_input_config, n_sidecars),
        "[.msk, .tfw, .aux.xml, .RPB, _RPC.TXT]",
        "Endings of files next to the scene's that are read with it as GDAL reads them: masks, "
        "world files, statistics and tags, RPCs; and .prj, the coordinate system of a file without "
        "one. They follow the file's name, with its suffix "
        "or in its place. Files with such endings that are not listed are moved with it unread, "
        "and the report lists them."),
};

static const struct pb_key file_keys[] = {
    {.name = "match",
     .type = PB_KEY_TEXT,
     .offset = AT(pb_file_config, match),
     .example = "B11.tif",
     .required = true,
     .doc = "Pattern for the file's name, or with a slash for its path inside the scene."},
    RANGED("band", PB_KEY_INT, AT(pb_file_config, index), 1, PB_BANDS_MAX, "1",
           "Number of the band in the file, counted from 1."),
    RANGED("page", PB_KEY_INT, AT(pb_file_config, page), 0, 65535, "0",
           "Which page of a TIFF has the band, counted from 1 without overviews and masks. 0: the "
           "first, and a note has the count of the others."),
    RANGED("nth", PB_KEY_INT, AT(pb_file_config, nth), 0, PB_FILES_MAX, "0",
           "Which of the files that fit, in input.order, counted from 1: R_1, R_2, ... of the "
           "observations of a place. 0: one file may fit."),
    CHOICE("optional", AT(pb_file_config, optional), "false|true", "false",
           "true: a scene may lack the file; its bands are valid nowhere then. The service waits "
           "for it until complete.expire."),
    CHOICE("resample", AT(pb_file_config, resample), BRING_WORDS, "none",
           "How the band reaches the scene's grid; none = it stays on its own."),
    {.name = "scale",
     .type = PB_KEY_NUMBER,
     .offset = AT(pb_file_config, scale),
     .more = AT(pb_file_config, has_scale),
     .min = -1e12,
     .max = 1e12,
     .example = "1",
     .doc = "Steps see stored value * scale + offset; without these keys those of input."},
    {.name = "offset",
     .type = PB_KEY_NUMBER,
     .offset = AT(pb_file_config, offset),
     .more = AT(pb_file_config, has_offset),
     .min = -1e12,
     .max = 1e12,
     .example = "0",
     .doc = "See scale."},
    OPTION("nodata", PB_KEY_NODATA, AT(pb_file_config, nodata), AT(pb_file_config, has_nodata), "0",
           "Stored value that means there is no measurement; overrides input.nodata and the "
           "file's."),
    COMPLEX(pb_file_config,
            "Quantity that complex pixels are read as; without this key that of input.complex."),
};

static const struct pb_key complete_keys[] = {
    CHOICE("all", AT(pb_complete_config, all), "false|true", "true",
           "Whether every file of input.files belongs to a complete scene, or those that products "
           "need."),
    RANGED("expire", PB_KEY_DURATION, AT(pb_complete_config, expire_ms), 0, 30 * DAY, "30m",
           "A scene of the inbox to which nothing was added for this long and that still lacks "
           "files is moved to quarantine; one that lacks only optional files is computed then."),
    RANGED("reopen", PB_KEY_DURATION, AT(pb_complete_config, reopen_ms), 0, 3650 * DAY, "0s",
           "For loose files (input.group) in the inbox: time after the last job of a scene in "
           "which another of its files starts a new job with all of them, which replaces its "
           "products. The files stay in the archive for that time. 0s: never."),
};

static const struct pb_key source_keys[] = {
    {.name = "file",
     .type = PB_KEY_PATH,
     .offset = AT(pb_source_config, file),
     .required = true,
     .doc = "Path; {scene} is the name of the scene's file without its suffix; a relative path "
            "begins at the configuration's directory. No symbolic link; users who may write to "
            "its directory decide what is read."},
    OPTION("bands", PB_KEY_BAND_MAP, AT(pb_source_config, bands), AT(pb_source_config, n_bands),
           "{P: 1}", "Names by band number, counted from 1."),
    RANGED("scale", PB_KEY_NUMBER, AT(pb_source_config, scale), -1e12, 1e12, "1",
           "Steps see stored value * scale + offset."),
    RANGED("offset", PB_KEY_NUMBER, AT(pb_source_config, offset), -1e12, 1e12, "0", "See scale."),
    OPTION("nodata", PB_KEY_NODATA, AT(pb_source_config, nodata), AT(pb_source_config, has_nodata),
           "0", "Stored value that means there is no measurement; overrides the file's."),
    COMPLEX(pb_source_config,
            "Quantity that complex pixels are read as; without this key such a file is refused."),
    CHOICE("resample", AT(pb_source_config, resample), BRING_WORDS, "none",
           "How its bands reach the scene's grid; none = they stay on their own."),
};

static const struct pb_key output_keys[] = {
    {.name = "path",
     .type = PB_KEY_TEXT,
     .offset = AT(pb_output_config, path),
     .def = "\"{scene}/{pipeline}\"",
     .doc = "Directory of a scene's products, below service.products or -o: {scene}, {pipeline}, "
            "{sensor}, {datetime:%Y/%m/%d} (UTC). The component with {scene} belongs to one scene; "
            "one more may follow. A value that the scene does not have is an error."},
    OPTION("name", PB_KEY_TEXT, AT(pb_output_config, name), 0, "\"{scene}_{product}\"",
           "Name of a product's file without its suffix, also with {product}: the product's name, "
           "else its kind, and with {tile}: the tile of a grid (warp); {scene} stands for "
           "<scene>_<tile> where there is no {tile}. Without this key: {scene}, or "
           "{scene}.{product} for products with a name."),
    CHOICE("exists", AT(pb_output_config, exists), "refuse|replace|version", "refuse",
           "Action when another input has the place already: fail, replace the products that "
           "pushbroom made there, or use {scene}~2. The same input again always replaces its own."),
    CHOICE("checksum", AT(pb_output_config, checksum), "blake3|sha2-256", "blake3",
           "Checksum that identifies an input, in .pushbroom.json, in STAC items and for "
           "service.duplicates, and that of the products' files unless stac.checksum is set. "
           "sha2-256 takes several times as long: set it for a catalogue whose readers know only "
           "SHA-256. Products and inputs that have the other one are still recognized: an input of "
           "the same size gets both before anything is computed."),
};

static const struct pb_key pipeline_keys[] = {
    RANGED("priority", PB_KEY_INT, AT(pb_pipeline_config, priority), -100, 100, "0",
           "Of the jobs that wait, those of the highest priority start first, and get a GPU first; "
           "jobs of a lower one wait as long as there are any."),
};

const struct pb_section pb_section_service = {
    "service", "The service: directories, socket and jobs. 'pushbroom run' needs none of it.",
    service_keys, N_OF(service_keys)};
const struct pb_section pb_section_retention = {"retention", "How long inputs are kept.",
                                                retention_keys, N_OF(retention_keys)};
const struct pb_section pb_section_compute = {"compute", "How pixels are computed.", compute_keys,
                                              N_OF(compute_keys)};
const struct pb_section pb_section_limits = {
    "limits", "Limits for an input and its products; checked before its first pixel is read.",
    limits_keys, N_OF(limits_keys)};
const struct pb_section pb_section_web = {
    "web", "The page of pushbroom-web; the service passes this on by service.info.", web_keys,
    N_OF(web_keys)};
const struct pb_section pb_section_input = {"input", "Which scenes, and what their bands are.",
                                            input_keys, N_OF(input_keys)};
const struct pb_section pb_section_output = {"output", "Place and names of products.", output_keys,
                                             N_OF(output_keys)};
const struct pb_section pb_section_source = {
    "source", "A file that is read in addition to the scene.", source_keys, N_OF(source_keys)};
const struct pb_section pb_section_file = {"file", "A band of a scene of many files.", file_keys,
                                           N_OF(file_keys)};
const struct pb_section pb_section_complete = {
    "complete", "When a scene of many files is complete.", complete_keys, N_OF(complete_keys)};
const struct pb_section pb_section_lines = {"lines", "Scenes and writers of a stream.", lines_keys,
                                            N_OF(lines_keys)};
const struct pb_section pb_section_quality = {"quality", "The quality band of a scene.",
                                              quality_keys, N_OF(quality_keys)};
const struct pb_section pb_section_pipeline = {"pipeline", "Processing of a scene.", pipeline_keys,
                                               N_OF(pipeline_keys)};
