/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FILE_LIST_H
#define PB_FILE_LIST_H
/* List of the files of an input, made when its job ends: paths, inodes, sizes and times. Later it
 * identifies the input after a move, and the files in it that were delivered with it and are
 * unchanged. Thread: any. */
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

struct pb_listed_file {
    char *path; /* path below the input; "" = the input itself */
    char kind;  /* 'f' plain file, 'd' directory, 'o' any other */
    uint64_t inode;
    int64_t bytes, mtime_ns, ctime_ns;
};

/* Files sorted by path; n = 0: no list is known. */
struct pb_file_list {
    struct pb_listed_file *file;
    size_t n;
};

/* Lists of the input and of its companion of one job. */
struct pb_input_lists {
    struct pb_file_list input, companion;
    bool is_deleted; /* input and companion are deleted completely */
    bool is_over;    /* the store deletes the input's list */
};

/* Lists a file, or a folder with all below it. 0 or a negative errno, and *out empty. */
int pb_file_list_read(const char *path, struct pb_file_list *out);
void pb_file_list_fini(struct pb_file_list *files);
void pb_input_lists_fini(struct pb_input_lists *lists);
/* Packs the list into bytes for the job store, malloc'd; NULL if out of memory or for an empty
 * list. */
char *pb_file_list_pack(const struct pb_file_list *files, size_t *out_bytes);
/* Returns 0; -EINVAL or -ENOMEM, with *out empty. */
int pb_file_list_unpack(const void *data, size_t bytes, struct pb_file_list *out);
/* Finds the input in a directory, under any name. The name does not begin with a dot. */
bool pb_file_list_find(const struct pb_file_list *files, const char *directory, char out_name[256]);
/* Updates the list after a move, because a rename changes the ctime of a plain file: reads the new
 * ctime if the input is at `path`. */
void pb_file_list_moved(struct pb_file_list *files, const char *path);

/* Removes the entry `name` of an open directory if everything in it was delivered with the input
 * and is unchanged; with an empty list, if no ctime in it is later than until_ms (wall clock).
 * Links are not followed. Returns 0: removed; 1: it stays, and out_other is the path of an entry
 * that was not delivered with the input or was changed; negative errno: the rest stays. */
int pb_file_list_remove(const struct pb_file_list *files, int64_t until_ms, int directory,
                        const char *name, char out_other[4096]);
#endif
