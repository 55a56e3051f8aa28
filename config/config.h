/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CONFIG_H
#define PB_CONFIG_H
/* The configuration as one read-only value. Loading checks everything that can be known without an
 * image: syntax, names, types, ranges, operators and their parameters, expressions, products. All
 * mistakes of a file are reported at once (up to PB_CONFIG_ERRORS_MAX). The value owns every string
 * in it. Any thread may read. */
#include "config/base/checksum_kind.h"
#include "config/base/err.h"
#include "config/exchange.h"
#include "config/yaml/report.h"
#include "config/yaml/yaml_tree.h"
#include "kernels/op.h"
#include "kernels/view.h"

#include <stddef.h>
#include <stdint.h>

#define PB_BANDS_MAX 64

enum pb_device_kind { PB_DEVICE_AUTO, PB_DEVICE_CPU, PB_DEVICE_CUDA };
enum pb_buffers { PB_BUFFERS_AUTO, PB_BUFFERS_PINNED, PB_BUFFERS_MANAGED, PB_BUFFERS_HOST };
enum pb_sync { PB_SYNC_WIC, PB_SYNC_STREAM };
enum pb_codecs { PB_CODECS_AUTO, PB_CODECS_HOST, PB_CODECS_DEVICE };
enum pb_on_success { PB_INPUT_ARCHIVE, PB_INPUT_DELETE };
enum pb_products_mode {
    PB_MODE_UMASK,
    PB_MODE_0600,
    PB_MODE_0640,
    PB_MODE_0644,
    PB_MODE_0660,
    PB_MODE_0664
};
/* What to do when the place of the products is another input's. */
/* OWN is no word of the configuration: only products of this input are replaced, in whatever
 * version of the place they are. */
enum pb_existing { PB_EXISTING_REFUSE, PB_EXISTING_REPLACE, PB_EXISTING_VERSION, PB_EXISTING_OWN };
/* What says which pixels of a file are valid, as in input.valid; AUTO: as to GDAL. */
enum pb_valid { PB_VALID_AUTO, PB_VALID_MASK, PB_VALID_NODATA, PB_VALID_BOTH };

/* What complex pixels are read as, as in input.complex. */
enum pb_complex_as { PB_COMPLEX_AMPLITUDE, PB_COMPLEX_POWER };
enum pb_compress {
    PB_COMPRESS_NONE,
    PB_COMPRESS_DEFLATE,
    PB_COMPRESS_ZSTD,
    PB_COMPRESS_LZW,
    PB_COMPRESS_JPEG,
    PB_COMPRESS_WEBP,
    PB_COMPRESS_COUNT
};
enum pb_overviews {
    PB_OVERVIEWS_AUTO,
    PB_OVERVIEWS_AVERAGE,
    PB_OVERVIEWS_NEAREST,
    PB_OVERVIEWS_NONE
};

/* How long inputs are kept where the service puts them; 0 = for ever. */
struct pb_retention_config {
    int64_t done_ms, quarantine_ms;
    uint64_t min_free_bytes; /* below work and products; with less nothing is taken in */
};

enum pb_duplicate_then { PB_DUPLICATE_SKIP, PB_DUPLICATE_QUARANTINE };

/* What is done with an input whose content was done in its pipeline before. */
struct pb_duplicates_config {
    int32_t by; /* checksum is the one choice */
    enum pb_duplicate_then then;
    int64_t keep_ms;
};

enum pb_unmatched_files { PB_UNMATCHED_FILES_QUARANTINE, PB_UNMATCHED_FILES_LEAVE };
enum pb_unmatched_folders { PB_UNMATCHED_FOLDERS_LEAVE, PB_UNMATCHED_FOLDERS_QUARANTINE };

/* Entries of the inbox that no pipeline fits. Zero bytes: the defaults. */
struct pb_unmatched_config {
    enum pb_unmatched_files files;
    enum pb_unmatched_folders folders;
};

#define PB_INBOXES_MAX 16

/* A directory that is watched. */
struct pb_inbox_config {
    char *path;
    int32_t recurse;  /* not 0: files in its sub-folders, too */
    int32_t priority; /* of its jobs */
    /* Patterns of the name of a second file, with {name} for the input's: of one that says that the
     * input is there, or of one with its checksum. NULL = none. */
    struct {
        char *marker, *checksum;
    } complete;
    bool has_complete;
    int line, col;
};

struct pb_service_config {
    char *inbox;                         /* as written; NULL = own_inboxes are */
    struct pb_inbox_config *own_inboxes; /* as written */
    size_t n_own_inboxes;
    struct pb_inbox_config *inboxes; /* what follows: 1 or more */
    size_t n_inboxes;
    char *work, *products, *quarantine, *state, *socket;
    char *archive; /* inputs of successful jobs; default <work>/done */
    enum pb_on_success on_success;
    enum pb_products_mode products_mode;
    int64_t settle_ms;
    int64_t rescan_ms;     /* periodic look at the inbox */
    int64_t stall_ms;      /* a job without progress for this long is ended */
    int64_t express_ms;    /* time that an express job has; 0 = there are none */
    int32_t parallel_jobs; /* 1 .. 64 */
    int32_t max_attempts;  /* how often a job is started in all when its worker dies */
    int32_t keep_jobs;     /* finished jobs kept in the store */
    char **ignore;         /* patterns for names of the inbox that are left alone */
    size_t n_ignore;
    char **admins; /* users (names or numbers) who may change every job */
    size_t n_admins;
    char *notify_user; /* that events are delivered as, by pushbroom-notify */
    struct pb_retention_config retention;
    bool has_retention;
    struct pb_duplicates_config duplicates;
    bool has_duplicates;
    struct pb_unmatched_config unmatched;
    bool has_unmatched;
    char *worker_user; /* that scenes are computed as, where the service may change users */
};

struct pb_compute_config {
    enum pb_device_kind device;
    int32_t device_index; /* cuda:N, else -1 */
    uint64_t memory_bytes;
    enum pb_buffers buffers;
    enum pb_sync sync;
    enum pb_codecs codecs;
    uint64_t
        device_memory_bytes; /* for what codecs there hold; 0 = a quarter of what the GPU has */
    int32_t threads;         /* 0 = all cores */
    int32_t tile_px;         /* side of a tile, 0 = chosen by the plan; power of two, 64 .. 8192 */
};

/* Checked before the first read of pixels. */
struct pb_limits {
    uint64_t max_pixels;      /* width x height, of files and of grids that steps make */
    uint64_t max_block_bytes; /* one decoded block, all bands it holds */
    uint64_t max_ratio;       /* decoded bytes for each stored one; 0 = any */
    uint64_t max_growth;      /* pixels of a grid that steps make, for each one of the scene */
    uint64_t output_bytes;    /* of the products of one run */
    int32_t max_side_px;
    int32_t max_bands;
    int32_t max_directories;
    int32_t archive_members, archive_depth; /* of an archive: members, folders below one another */
    uint64_t archive_bytes;                 /* of all its members together */
    uint64_t archive_ratio;                 /* of them for each byte that it has itself */
    int64_t job_time_ms;                    /* of one run of a job in the service; 0 = no limit */
};

struct pb_band_config {
    char *name;
    int32_t index; /* 1-based */
};

/* How bands of a file reach the scene's grid; words of the schema, PB_BRING_NO + 1 + an enum
 * pb_resampling. */
enum pb_bring { PB_BRING_NO };

/* A file that a pipeline reads beside the one that gives the grid. */
struct pb_source_config {
    char *name;
    char *file; /* path; {scene} = base name of the delivered file without its suffix; relative
                   paths begin at the configuration's directory. of_scene: a pattern, as in struct
                   pb_file_config */
    struct pb_band_config *bands;
    size_t n_bands;
    double scale, offset;
    bool has_nodata; /* overrides the file's */
    double nodata;
    bool has_complex; /* else complex pixels are refused */
    int32_t complex;  /* enum pb_complex_as */
    int32_t resample; /* enum pb_bring */
    bool of_scene;    /* one of input.files */
    int32_t nth;      /* of_scene: as in struct pb_file_config */
    bool optional;
    bool is_needed; /* an output may depend on it; known when the load is over */
};

/* An entry of input.files: one band of a scene of many files. */
struct pb_file_config {
    char *band;
    char *match;      /* pattern (config/base/glob.h) of the base name, or with a slash of the path
                         inside the scene;      {scene} = the scene's name; upper and lower case are
                         alike */
    int32_t nth;      /* which of the files that fit, in input.order, from 1; 0 = one fits */
    int32_t optional; /* not 0: a scene without the file has the band, valid nowhere */
    int32_t index;    /* of the band in the file, 1-based */
    int32_t resample; /* enum pb_bring */
    double scale, offset;
    bool has_scale, has_offset; /* else those of the input */
    bool has_nodata;
    double nodata;
    bool has_complex; /* else as the input */
    int32_t complex;  /* enum pb_complex_as */
};

/* In which order `nth` counts files, as in input.order. */
enum pb_file_order {
    PB_FILES_BY_NAME,
    PB_FILES_BY_NAME_DOWN,
    PB_FILES_BY_DATE,
    PB_FILES_BY_DATE_DOWN,
    PB_FILES_BY_CLOUD, /* the least cloudy first, by what the metadata of each file say */
    PB_FILES_BY_LIST   /* as a file of the scene lists them (input.list) */
};

static inline bool pb_files_by_date(int32_t order)
{
    return order == PB_FILES_BY_DATE || order == PB_FILES_BY_DATE_DOWN;
}

/* Whether who decodes the scene counts its files, by what it reads. */
static inline bool pb_files_by_content(int32_t order)
{
    return order == PB_FILES_BY_CLOUD || order == PB_FILES_BY_LIST;
}

static inline bool pb_files_from_the_last(int32_t order)
{
    return order == PB_FILES_BY_NAME_DOWN || order == PB_FILES_BY_DATE_DOWN;
}

/* When a scene of many files is complete. */
struct pb_complete_config {
    int32_t all;       /* not 0: every file of input.files, else those that outputs need */
    int64_t expire_ms; /* how long the service waits for what is missing */
    int64_t reopen_ms; /* for how long after its last job loose files may join a scene; 0 = never */
};

#define PB_FILES_MAX          16 /* that a pipeline reads: the scene's, and those of input.sources */
#define PB_SPARE_FILES_MAX    32 /* of one scene, that are looked at to choose (input.order) */
#define PB_METADATA_FILES_MAX 8  /* of one scene, or of one observation */
#define PB_METADATA_OPEN_MAX  64 /* of all observations of a scene */
#define PB_SIDECARS_MAX       48 /* of one scene, that are read */

/* The band whose values say which pixels are clouds and the like. */
struct pb_quality_config {
    char *band, *preset; /* as in the operator mask */
};

struct pb_input_config {
    char *preset; /* NULL once it is in effect: the other members are what it says then */
    char **match; /* patterns (config/base/glob.h) for the base name */
    size_t n_match;
    char *scene; /* pattern of the folders that are a scene each; NULL = none */
    char *group; /* regular expression of the names of loose files that make a scene; NULL = none */
    char *by;    /* the scene's name from groups of the expression; NULL = its group "scene" */
    int32_t order;                          /* enum pb_file_order */
    struct pb_group_pattern *group_pattern; /* compiled; the config's */
    struct pb_file_config *files; /* of a scene of many files; n_files 0 = scenes are one file */
    size_t n_files;
    char *list;      /* pattern of the file that lists the scene's; NULL = none */
    char *grid;      /* the band whose grid is the scene's; NULL = the first of files */
    char **metadata; /* patterns of the files with the product's metadata */
    size_t n_metadata;
    bool metadata_each; /* files are counted, and each has metadata of its own: what those say of
                           one file is asked (order: cloud, {meta.*} of by) */
    char **sidecars;    /* endings of files beside the scene's that GDAL is to see */
    size_t n_sidecars;
    struct pb_complete_config complete;
    bool has_complete;
    struct pb_quality_config quality;
    bool has_quality;
    double scale, offset;
    bool has_nodata; /* overrides the file's */
    double nodata;
    int32_t valid;                    /* enum pb_valid */
    bool has_complex;                 /* else complex pixels are refused */
    int32_t complex;                  /* enum pb_complex_as */
    struct pb_band_config *own_bands; /* as written: input.bands, input.sources */
    size_t n_own_bands;
    struct pb_source_config *own_sources;
    size_t n_own_sources;
    /* What follows from the above (config/input_files.h): the bands of the file that gives the
     * grid, how they are scaled, and all other files, those of the scene first. */
    char *file;                   /* pattern of that file; NULL = the scene is one file */
    int32_t file_nth;             /* as in struct pb_file_config */
    struct pb_band_config *bands; /* empty: B1, B2, ... by number */
    size_t n_bands;
    struct pb_source_config *sources;
    size_t n_sources;
};

struct pb_output_config {
    char *path; /* of the directory of a scene's products; config/output/output_path.h */
    char *name; /* of a product's file without its suffix; NULL = <scene>, <scene>.<product> */
    enum pb_existing exists;
    enum pb_checksum checksum; /* of inputs, and of files unless stac.checksum says another */
};

struct pb_product_config;

struct pb_step_config {
    const struct pb_op *op;
    void *params;                       /* the operator's struct */
    struct pb_exchange_config exchange; /* that the operator chose for its rounds; pattern NULL =
                                           none */
    const struct pb_product_config *product; /* that made the step for itself; NULL = of the file */
    int line, col;
};

struct pb_product_kind;
struct pb_pipeline_config;

/* What all kinds have; the struct of each kind begins with one. */
struct pb_product_config {
    const struct pb_product_kind *kind;
    char *name;   /* distinguishes several of a kind: <scene>.<name>.tif; NULL = <scene>.tif */
    char **bands; /* empty: every band a step made, or every input band when there are no steps */
    size_t n_bands;
    size_t n_more; /* bands behind those, and planes, that it needs and other keys name */
    char **planes; /* what the chain calls these bands when a step of the product's own makes them
                      (pb_product_stretch); NULL = as bands does */
    int line, col;
};

struct pb_product_check;

/* A kind of product as the configuration sees it. Static, read-only. */
struct pb_product_kind {
    struct pb_section section; /* its name and keys */
    size_t bytes;              /* of its struct */
    bool
        describes_others; /* describes the other products: made last, one in a pipeline, no bands */
    bool is_optional;     /* the default file has it as comments: it needs what not every pipeline
                             has */
    /* Checks of keys against each other, after reading (config/product_check.h). May set values
     * that follow from others. NULL = none. */
    void (*check)(struct pb_product_config *product, const struct pb_product_check *check);
    /* The vector file that it reads, or NULL. NULL = none does. */
    const char *(*vector)(const struct pb_product_config *product);
    /* The file in the directory of products that its rows go into (publish/series.h), or NULL, of
     * which a configuration names each once. NULL = there is none. */
    const char *(*series)(const struct pb_product_config *product);
    /* The band whose values are to be classes, and the key that names it; NULL = there is none. */
    const char *(*classes)(const struct pb_product_config *product, const char **out_key);
    /* A band whose values the product takes for classes; NULL = none. NULL = it never does. */
    const char *(*class_band)(const struct pb_product_config *product);
    /* Why no scene of that pipeline can have the product, in words; static. NULL = one can, and a
     * kind without the function always can. */
    const char *(*never)(const struct pb_product_config *product,
                         const struct pb_pipeline_config *pipeline);
};

/* The kinds that there are, in the order in which the default file shows them. config/ has none
 * itself: the caller of a load passes them. Must outlive every configuration made with it. */
struct pb_product_kinds {
    const struct pb_product_kind *const *kinds;
    size_t n;
    bool (*is_crs)(const char *text); /* whether it is a coordinate system; NULL: nobody knows */
};

struct pb_warp_op; /* kernels/ops/geometry/warp.h */

struct pb_pipeline_config {
    char *name;
    int32_t priority; /* of its jobs; the highest goes first */
    struct pb_input_config input;
    struct pb_output_config output;
    struct pb_exchange_config exchange; /* exchange of tiles; default: unidirectional */
    struct pb_step_config *steps;
    size_t n_steps;
    struct pb_product_config **products;
    size_t n_products;
    int line, col;
};

enum pb_notify_kind {
    PB_NOTIFY_EXEC,
    PB_NOTIFY_WEBHOOK,
    PB_NOTIFY_MQTT,
    PB_NOTIFY_STAC,
    PB_NOTIFY_KINDS
};
#define PB_NOTIFY_MAX 32

/* Somebody who is told of events. Members of other kinds are NULL or 0. A secret is the path of a
 * file, or the name of a credential of the unit. */
struct pb_notify_config {
    enum pb_notify_kind kind;
    char *name; /* unique */
    char **events;
    size_t n_events;
    char **pipelines; /* none: all */
    size_t n_pipelines;
    int64_t timeout_ms; /* of one try */
    int64_t retry_ms;   /* the longest wait between two tries */
    int64_t overdue_ms, expire_ms;
    char **command; /* exec: program and arguments */
    size_t n_command;
    char *url, *token;                    /* webhook and stac */
    char *secret;                         /* webhook */
    char *collection, *base_url;          /* stac; collection NULL = the item's */
    char *host, *topic, *user, *password; /* mqtt */
    int32_t port, qos;                    /* port 0: 8883 with tls, else 1883 */
    int32_t tls;                          /* 0 on, 1 off */
    char *ca_file;                        /* NULL = the system's */
    int line, col;
};

struct pb_config {
    const struct pb_product_kinds *kinds; /* borrowed */
    char *path;                           /* as given, for messages */
    char *text;                           /* text of all its files, for pb_config_parse */
    const char *const *files;             /* their names by number, the first is path */
    struct pb_service_config service;
    struct pb_compute_config compute;
    struct pb_limits limits;
    struct pb_pipeline_config *pipelines;
    size_t n_pipelines;
    struct pb_notify_config *notify;
    size_t n_notify;
    void *memory; /* arena that owns everything above */
};

/* Reads and checks a file with the presets that it names and, if it is called pushbroom.yaml, the
 * files of pipelines.d in the same directory; path may be the name of a preset (config/presets.h).
 * 0 and *out_config (the caller's, destroy it), or a negative errno and at least one error in
 * *errors. path is borrowed. Thread: any. */
int pb_config_load(const char *path, const struct pb_product_kinds *kinds,
                   struct pb_err_list *errors, struct pb_config **out_config);
/* The same from text in memory, of one file or as `text` of a configuration has several, without
 * opening any; name is what messages call it. */
int pb_config_parse(const char *text, size_t bytes, const char *name,
                    const struct pb_product_kinds *kinds, struct pb_err_list *errors,
                    struct pb_config **out_config);
void pb_config_destroy(struct pb_config *config);
/* The name of the file that a line of the configuration is of (of a step, an item, ...), and its
 * number there. */
const char *pb_config_place(const struct pb_config *config, int line, int *out_line);

/* The step whose grid cuts products into tiles; NULL: there is none. */
const struct pb_warp_op *pb_pipeline_tile_step(const struct pb_pipeline_config *pipeline);
const struct pb_pipeline_config *pb_config_pipeline(const struct pb_config *config,
                                                    const char *name);
/* First pipeline one of whose patterns fits the base name of path, upper and lower case being
 * alike; NULL = none. An archive (base/archive_name.h) fits an input.scene, too, by its name
 * without the suffix, or with .SAFE in its place, and an input.group when a name that fits that
 * may begin so. */
const struct pb_pipeline_config *pb_config_match(const struct pb_config *config, const char *path);
/* The same for a folder, by input.scene. A slash at the end of path counts for nothing. */
const struct pb_pipeline_config *pb_config_match_folder(const struct pb_config *config,
                                                        const char *path);
/* Whether the pipeline's input.scene fits the name. */
bool pb_config_takes_folder(const struct pb_pipeline_config *pipeline, const char *path);
/* The same for a loose file of a scene of many, by input.group; out_scene (256 bytes): the scene
 * that it belongs to, "" where its metadata tell it (pb_group_pattern_asks) and facts, their
 * content, is NULL or lacks it. Such a file is no scene of its own, whatever input.match fits. */
struct pb_group_facts;
const struct pb_pipeline_config *pb_config_match_group(const struct pb_config *config,
                                                       const char *path,
                                                       const struct pb_group_facts *facts,
                                                       char *out_scene);

/* What the name of an input stands for. */
enum pb_config_kind { PB_INPUT_FILE, PB_INPUT_FOLDER, PB_INPUT_GROUP };
/* Why the pipeline takes the input, in words ("its name fits '*.tif' of input.match"); false: its
 * name does not fit. */
bool pb_config_match_why(const struct pb_pipeline_config *pipeline, const char *path,
                         enum pb_config_kind kind, char *out, size_t bytes);
/* Which names of files, or of folders, pipelines take: "vegetation takes *.tif *.tiff; dem takes
 * dem*", cut with "...". */
void pb_config_takes(const struct pb_config *config, bool folders, char *out, size_t bytes);

/* What is no mistake, but does not do what was probably meant, in the order of the file: pipelines
 * that no file reaches, as an earlier one takes all that fits (of patterns with '?' and '[' only
 * equal ones are recognised), and those whose every job would fail. text is borrowed for the call.
 */
typedef void pb_config_warning(void *user, const char *file, int line, int col, const char *text);
void pb_config_warnings(const struct pb_config *config, pb_config_warning *warn, void *user);

/* The effective configuration as YAML (defaults filled in); malloc'd string, the caller's. */
char *pb_config_print(const struct pb_config *config);
/* A step on one line, without what has its default: "index: {names: [NDVI]}"; malloc'd. */
char *pb_config_step_text(const struct pb_step_config *step);
/* All sections of keys, with their places in a file ("pipelines.NAME.input"): for documents. Those
 * of operators are found by kernels/op.h. */
void pb_config_sections(const struct pb_product_kinds *kinds,
                        void (*visit)(void *user, const char *path,
                                      const struct pb_section *section),
                        void *user);
/* The commented default file, generated from the schema; malloc'd string, the caller's. */
char *pb_config_default_text(const struct pb_product_kinds *kinds);

/* Enum words, both ways, for messages and products: "deflate", "uint16", ... Static strings. */
const char *pb_type_name(enum pb_type type);
const char *pb_compress_name(enum pb_compress compress);
/* The number of a word of output.exists, or -1. */
int pb_existing_find(const char *word);
/* Permissions of product files, 0 = the umask decides. */
unsigned pb_products_mode(const struct pb_service_config *service);
#endif
