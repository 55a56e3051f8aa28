/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COLLECTION_FILE_H
#define PB_COLLECTION_FILE_H
/* Shared JSON files of the directory of products: reads one, and writes one as a file of the lock
 * (publish_lock.h). Thread: any. */
#include <stddef.h>

struct pb_json;
struct pb_json_value;
struct pb_publish_lock;

/* Reads a file. Returns 0 and *out_root (the caller's), whose permissions are *out_mode;
 * -ENOENT: the name is unused; another negative errno: not a regular file of JSON of at most
 * max_bytes, *out_root is untouched. */
int pb_collection_file_read(int products_fd, const char *name, size_t max_bytes,
                            struct pb_json_value **out_root, unsigned *out_mode);
/* Writes a file; takes json. Returns 0 or a negative errno (-ESTALE: the lock was broken). mode:
 * permissions; 0 = 0644 without the umask's bits. */
int pb_collection_file_stage(struct pb_publish_lock *lock, const char *name, struct pb_json *json,
                             unsigned mode);
#endif
