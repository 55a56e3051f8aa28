/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as the list of a scene's files (input.list): it is refused with words, or every name is
 * a part of one of its lines without trailing blanks, and means the file of that name and no other.
 */
#include "fuzz_check.h"
#include "pipeline/scene/scene_files.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Returns true if line number n of the bytes has the name in it. */
static bool has_line(const uint8_t *data, size_t bytes, int n, const char *name)
{
    const uint8_t *line = data, *end = data + bytes;
    for (int i = 1; i < n && line != NULL; i++) {
        line = memchr(line, '\n', (size_t)(end - line));
        line = line != NULL ? line + 1 : NULL;
    }
    if (line == NULL)
        return false;
    const uint8_t *stop = memchr(line, '\n', (size_t)(end - line));
    return memmem(line, (size_t)((stop != NULL ? stop : end) - line), name, strlen(name)) != NULL;
}

static void check_line(const struct pb_scene_list_line *one, const uint8_t *data, size_t bytes)
{
    const size_t n = strlen(one->name);
    char path[4200] = "folder/";
    require(n > 0 && strchr(one->name, '\n') == NULL, "a line that names nothing");
    require(!is_blank(one->name[n - 1]), "blanks behind a name");
    require(has_line(data, bytes, one->line, one->name), "a name that its line does not have");
    require(pb_scene_list_means(one, one->name), "a name that does not mean itself");
    if (n < 4096) {
        (void)strcat(path, one->name);
        require(pb_scene_list_means(one, path) == (strchr(one->name, '/') == NULL),
                "the path inside the scene");
        (void)strcat(path, "x");
        require(!pb_scene_list_means(one, path), "a name that means another file");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct pb_scene_list list;
    struct pb_err err = {0};
    struct pb_raster_file file = {.fd = memfd_create("list", MFD_CLOEXEC), .bytes = bytes};
    char path[] = "list.txt";
    require(file.fd >= 0 && write(file.fd, data, bytes) == (ssize_t)bytes, "a file");
    file.path = path;
    if (pb_scene_list_read(&file, &err, &list) != 0) {
        require(err.code == PB_E_INPUT_METADATA_INVALID, "the code");
        check_err(&err);
    } else {
        require(list.n > 0 && list.n <= PB_SCENE_LIST_MAX, "how many");
        for (size_t i = 0; i < list.n; i++) {
            require(i == 0 || list.one[i].line > list.one[i - 1].line, "the order of lines");
            check_line(&list.one[i], data, bytes);
        }
    }
    pb_scene_list_fini(&list);
    (void)close(file.fd);
    return 0;
}
