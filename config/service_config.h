/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SERVICE_CONFIG_H
#define PB_SERVICE_CONFIG_H
/* The section `service` of a configuration. Its owner is struct pb_config. Read-only; any thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pb_on_success { PB_INPUT_ARCHIVE, PB_INPUT_DELETE };

enum pb_products_mode {
    PB_MODE_UMASK,
    PB_MODE_0600,
    PB_MODE_0640,
    PB_MODE_0644,
    PB_MODE_0660,
    PB_MODE_0664
};

/* How long inputs are kept where the service puts them; 0 = for ever. */
struct pb_retention_config {
    int64_t done_ms, quarantine_ms;
    uint64_t min_free_bytes; /* below work and products; with less nothing is taken in */
};

enum pb_duplicate_then { PB_DUPLICATE_SKIP, PB_DUPLICATE_QUARANTINE };

/* Treatment of an input whose content its pipeline has processed before. */
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

/* Database for the jobs of several nodes. */
struct pb_store_config {
    char *postgresql; /* connection as libpq takes it */
    int64_t lease_ms;
};

/* Transfer of files between nodes without a common file system, by pushbroom-fetch. */
#define PB_FETCH_SOCKET_MAX 100
struct pb_fetch_config {
    char *listen;  /* address and port at which it listens */
    char *address; /* host and port at which other nodes reach this one */
    char *certificate, *key, *ca;
    char *socket; /* at which pushbroomd reaches it */
    char *user;   /* user of pushbroom-fetch; "": root and the service's own only */
};

#define PB_INBOXES_MAX 16

/* A directory that is watched. */
struct pb_inbox_config {
    char *path;
    int32_t recurse;  /* not 0: files in its sub-folders, too */
    int32_t priority; /* priority of its jobs */
    /* Patterns of the name of a second file, with {name} for the input's: of one that says that the
     * input is there, or of one with its checksum. NULL = none. */
    struct {
        char *marker, *checksum;
    } complete;
    bool has_complete;
    char *node; /* name of the node that watches it while that one reports; NULL: this one */
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
    int64_t rescan_ms;       /* period of the listings of the inbox */
    int64_t stall_ms;        /* a job without progress for this long is ended */
    int64_t express_ms;      /* time that an express job has; 0 = no job is one */
    int32_t parallel_jobs;   /* 0 .. 64; 0 = by their plans (processes/turns.h) */
    int32_t publishing_jobs; /* as written; see pb_publishing_jobs */
    int32_t max_attempts;    /* how often a job is started in all when its worker dies */
    int32_t keep_jobs;       /* finished jobs kept in the store */
    char **ignore;           /* patterns for names of the inbox that are left alone */
    size_t n_ignore;
    char **admins; /* users (names or numbers) who may change every job */
    size_t n_admins;
    char *notify_user; /* that events are delivered as, by pushbroom-notify */
    char *web_user;    /* user of pushbroom-web, who may only query */
    struct pb_retention_config retention;
    bool has_retention;
    struct pb_duplicates_config duplicates;
    bool has_duplicates;
    struct pb_unmatched_config unmatched;
    bool has_unmatched;
    char *node; /* name of this service among those of its store; NULL: the machine's name */
    struct pb_store_config store;
    bool has_store; /* false: the jobs are in a file in `state` */
    struct pb_fetch_config fetch;
    bool has_fetch;    /* false: all nodes see each other's directories */
    char *worker_user; /* that scenes are computed as, where the service may change users */
};

/* Name of the socket at which pushbroomd takes runs of other nodes from pushbroom-fetch. */
void pb_fetch_guests_socket(const char *socket, char out[108]);
/* True if the connection string names a password, which other users could read there. */
bool pb_store_has_password(const char *conninfo);
/* Permissions of product files, 0 = the umask decides. */
unsigned pb_products_mode(const struct pb_service_config *service);
/* Largest number of publishing jobs that do not count for parallel_jobs. 0 with duplicates, because
 * an input is compared with those of jobs that are done. */
int32_t pb_publishing_jobs(const struct pb_service_config *service);
/* Largest number of jobs that a GPU computes at the same time. */
int32_t pb_device_jobs(const struct pb_service_config *service);
#endif
