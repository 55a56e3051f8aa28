/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * random_scene [--side N] [--damage N] SEED OUT.tif... Makes a GeoTIFF of random size (at most N
 * pixels a side, 1500), type, layout, codec and content, and prints a line of JSON of what it is.
 * Several files: of SEED, SEED + 1 and so on. --damage N: then N random changes of the file's
 * bytes, most of them where its blocks are. */
#include "tests/tools/random_scene.h"

#include <unistd.h>

enum { SIDE = 1500 };

static uint8_t *read_all(FILE *file, size_t *out_bytes)
{
    if (fseek(file, 0, SEEK_END) != 0)
        return NULL;
    long bytes = ftell(file);
    uint8_t *all = malloc(bytes > 0 ? (size_t)bytes : 1);
    rewind(file);
    *out_bytes = all != NULL ? fread(all, 1, (size_t)bytes, file) : 0;
    return all;
}

/* Directories are at the end or the beginning: seven changes of eight are after the first half
 * kilobyte. One file of six is cut. */
static bool damage(const char *path, uint64_t seed, int changes)
{
    enum { HEAD = 512 };
    struct mutate m = {~seed};
    size_t bytes = 0;
    FILE *file = fopen(path, "r+b");
    uint8_t *all = file != NULL ? read_all(file, &bytes) : NULL;
    for (int i = 0; i < changes && all != NULL; i++) {
        size_t head = bytes > HEAD && mutate_below(&m, 8) > 0 ? HEAD : 0;
        mutate_once(&m, all + head, bytes - head);
    }
    bool good = all != NULL && fseek(file, 0, SEEK_SET) == 0 &&
                fwrite(all, 1, bytes, file) == bytes && fflush(file) == 0;
    if (good && random_one_in(&m, 6))
        good = ftruncate(fileno(file), (off_t)mutate_below(&m, bytes)) == 0;
    if (file != NULL)
        (void)fclose(file);
    free(all);
    return good;
}

int main(int argc, char **argv)
{
    int side = SIDE, changes = 0, i = 1;
    for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        int n = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--side") == 0 && n > 0)
            side = n;
        else if (strcmp(argv[i], "--damage") == 0 && n > 0)
            changes = n;
        else
            return 2;
    }
    if (argc - i < 2)
        return 2;
    uint64_t seed = strtoull(argv[i], NULL, 10);
    GDALAllRegister();
    CPLPushErrorHandler(CPLQuietErrorHandler);
    for (i++; i < argc; i++, seed++) {
        struct random_scene scene;
        if (!random_scene_make(seed, side, argv[i], &scene) ||
            (changes > 0 && !damage(argv[i], seed, changes))) {
            (void)fprintf(stderr, "%s: %s\n", argv[i], CPLGetLastErrorMsg());
            return 1;
        }
        random_scene_say(&scene, stdout);
    }
    return 0;
}
