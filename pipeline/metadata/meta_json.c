/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* JSON by config/base/json_reader.h. Entries of an array become children named "item". */
#include "pipeline/metadata/meta_tree.h"

#include "config/base/json_reader.h"
#include "pipeline/metadata/metadata.h"

#include <errno.h>
#include <string.h>

enum { KEYS_MAX = 4096 }; /* keys of an object */

static int take(struct pb_meta_tree *tree, struct pb_meta_node *parent, const char *name,
                const struct pb_json_value *value, struct pb_err *err)
{
    const char *text = pb_json_text_of(value);
    if (text == NULL && pb_json_is_plain(value))
        text = pb_json_source(value);
    if (text == NULL && pb_json_is_plain(value))
        return pb_fail(err, PB_E_MEMORY, "out of memory for the metadata");
    struct pb_meta_node *node =
        pb_meta_add(tree, parent, name, strlen(name), text, text ? strlen(text) : 0, err);
    int rc = node != NULL ? 0 : -1;
    for (size_t i = 0; rc == 0 && i < pb_json_count(value); i++)
        rc = take(tree, node, "item", pb_json_at(value, i), err);
    for (size_t i = 0; rc == 0 && pb_json_key(value, i) != NULL; i++) {
        const char *key = pb_json_key(value, i);
        rc = i < KEYS_MAX ? take(tree, node, key, pb_json_get(value, key, NULL), err)
                          : pb_meta_bad(tree, 0, err, "an object has more than %d keys", KEYS_MAX);
    }
    return rc;
}

int pb_meta_parse_json(struct pb_meta_tree *tree, const char *text, size_t bytes,
                       struct pb_err *err)
{
    struct pb_json_value *value = NULL;
    int rc = pb_json_parse(text, bytes, PB_METADATA_BYTES_MAX, &value);
    if (rc == -ENOMEM)
        return pb_fail(err, PB_E_MEMORY, "no memory to read %s", tree->name);
    if (rc < 0)
        return pb_meta_bad(tree, 0, err, "it is no valid JSON%s",
                           rc == -EFBIG ? ", or nested too deep" : "");
    rc = take(tree, tree->root, "document", value, err);
    pb_json_release(value);
    return rc;
}
