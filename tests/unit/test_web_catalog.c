/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads */
#include "service/web/catalog.h"

#include "config/base/json_reader.h"
#include "pipeline/publish/manifest.h"
#include "run_suite.h"
#include "service/web/document.h"
#include "service/web/request.h"
#include "service/web/stac.h"

#include <check.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define ITEMS_MAX 10

static char root[64];
static struct pb_web_catalog *catalog;
static bool is_twice; /* readdir returns each entry twice: renames may cause that */

struct dirent *readdir(DIR *list)
{
    static struct dirent *(*real)(DIR *);
    static struct dirent *last;
    static DIR *last_list;
    struct dirent *again = is_twice && list == last_list ? last : NULL;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "readdir64");
    last_list = list;
    last = again != NULL ? NULL : real(list);
    return again != NULL ? again : last;
}

static void begin(void)
{
    (void)snprintf(root, sizeof root, "/tmp/pb-web-catalog-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    catalog = pb_web_catalog_create(ITEMS_MAX);
    ck_assert_ptr_nonnull(catalog);
}

static int drop(const char *path, const struct stat *st, int kind, struct FTW *place)
{
    (void)st;
    (void)kind;
    (void)place;
    return remove(path);
}

static void remove_tree(const char *path)
{
    (void)nftw(path, drop, 8, FTW_DEPTH | FTW_PHYS);
}

static void end(void)
{
    pb_web_catalog_destroy(catalog);
    remove_tree(root);
}

/* Makes an item; place: members with commas, "" for none. */
static char *item_of(const char *id, const char *time, const char *place)
{
    char *text = NULL;
    ck_assert_int_gt(asprintf(&text,
                              "{\"type\":\"Feature\",\"id\":\"%s\",%s\"properties\":{\"datetime\":"
                              "\"%s\"},\"links\":[{\"rel\":\"root\",\"href\":\"../c.json\"},"
                              "{\"rel\":\"via\",\"href\":\"https://a.example/x\"}],\"assets\":{"
                              "\"data\":{\"href\":\"./a%%20b.tif\"},\"far\":{\"href\":"
                              "\"s3://b/c\"}}}",
                              id, place, time),
                     0);
    return text;
}

/* Publishes a folder with one item (text taken), as a publication does: the manifest is new. */
static void publish(const char *scene, const char *pipeline, char *text)
{
    char path[400];
    struct pb_err err = {0};
    struct pb_manifest_file file = {.type = "stac",
                                    .file = "i.json",
                                    .media_type = "application/geo+json",
                                    .bytes = strlen(text)};
    struct pb_manifest manifest = {.file = &file, .n_files = 1};
    (void)snprintf(manifest.scene, sizeof manifest.scene, "%s", scene);
    (void)snprintf(manifest.pipeline, sizeof manifest.pipeline, "%s", pipeline);
    pb_input_id_set(&manifest.input, "/in/a.tif", 77, 1);
    (void)snprintf(path, sizeof path, "%s/%s", root, scene);
    (void)mkdir(path, 0755);
    (void)snprintf(path, sizeof path, "%s/%s/%s", root, scene, pipeline);
    remove_tree(path);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    const int directory = open(path, O_RDONLY | O_DIRECTORY);
    const int fd = openat(directory, "i.json", O_WRONLY | O_CREAT, 0644);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(pb_manifest_write(directory, &manifest, 0644, path, &err), 0);
    ck_assert_int_eq(close(directory), 0);
    free(text);
}

/* Finds items, and returns their ids with blanks. */
static const char *find(struct pb_web_search search)
{
    static char ids[2048];
    struct pb_web_item item[16];
    size_t matched;
    const int n = pb_web_catalog_find(catalog, &search, item, 16, &matched);
    ck_assert_int_ge(n, 0);
    ids[0] = '\0';
    for (int i = 0; i < n; i++) {
        (void)snprintf(ids + strlen(ids), sizeof ids - strlen(ids), "%s%s", i ? " " : "",
                       item[i].id);
        pb_web_item_fini(&item[i]);
    }
    return ids;
}

/* Updates until all items have these ids. */
static void wait_for(const char *ids)
{
    do {
        (void)usleep(20000);
        ck_assert_int_eq(pb_web_catalog_update(catalog, root), 0);
    } while (strcmp(find((struct pb_web_search){0}), ids) != 0);
}

START_TEST(test_items_follow_the_directory)
{
    wait_for("");
    publish("a", "p", item_of("a.p", "2026-01-01T00:00:00Z", ""));
    publish("b", "p", item_of("b.p", "2026-01-03T00:00:00Z", ""));
    publish("b", "q", item_of("b.q", "2026-01-02T00:00:00Z", "\"collection\":\"mine\","));
    publish("c", "q", strdup("{\"id\":\"no time\",\"properties\":{}}"));
    publish("d", "q", strdup("no item"));
    publish("e", "q", item_of("far", "9999-12-31T23:59:59-12:00", ""));
    wait_for("b.p b.q a.p");
    publish("a", "p", item_of("a.new", "2026-01-04T00:00:00Z", ""));
    wait_for("a.new b.p b.q");
    char path[100];
    (void)snprintf(path, sizeof path, "%s/b/p/.pushbroom.json", root);
    ck_assert_int_eq(unlink(path), 0); /* not published any more */
    wait_for("a.new b.q");
    struct pb_web_collection *collections = NULL;
    ck_assert_int_eq(pb_web_catalog_collections(catalog, &collections), 2);
    ck_assert_str_eq(collections[0].id, "mine");
    ck_assert_str_eq(collections[1].id, "p");
    ck_assert_uint_eq(collections[1].n_items, 1);
    ck_assert_str_eq(collections[1].extent.start, "2026-01-04T00:00:00Z");
    pb_web_collections_free(collections, 2);
}
END_TEST

/* Leaves root, whose rights have no limit; LSan needs a process that can be inspected. */
static void change_user(uid_t user)
{
    if (getuid() != 0)
        return;
    (void)chown(root, 65534, 65534);
    ck_assert_int_eq(seteuid(user), 0);
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

START_TEST(test_unreadable_item_is_tried_again)
{
    char path[100];
    change_user(65534);
    publish("a", "p", item_of("a", "2026-01-01T00:00:00Z", ""));
    (void)snprintf(path, sizeof path, "%s/a/p/i.json", root);
    ck_assert_int_eq(chmod(path, 0), 0);
    ck_assert_int_eq(pb_web_catalog_update(catalog, root), 0);
    ck_assert_str_eq(find((struct pb_web_search){0}), "");
    ck_assert_int_eq(chmod(path, 0644), 0);
    wait_for("a");
    change_user(0);
}
END_TEST

START_TEST(test_update_without_descriptors_is_given_up)
{
    struct rlimit before, few;
    int rc;
    publish("a", "p", item_of("a", "2026-01-01T00:00:00Z", ""));
    publish("b", "p", item_of("b", "2026-01-02T00:00:00Z", ""));
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    const int fd = open(root, O_PATH);
    few = before;
    few.rlim_cur = (rlim_t)fd;
    ck_assert_int_eq(close(fd), 0);
    do {
        pb_web_catalog_destroy(catalog);
        catalog = pb_web_catalog_create(ITEMS_MAX);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
        rc = pb_web_catalog_update(catalog, root);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        if (rc != 0) {
            ck_assert_int_eq(rc, -EMFILE);
            ck_assert_int_eq(pb_web_catalog_update(catalog, root), 0);
        }
        ck_assert_str_eq(find((struct pb_web_search){0}), "b a");
        few.rlim_cur++;
    } while (rc != 0);
    ck_assert_uint_gt(few.rlim_cur, (rlim_t)fd + 4); /* it failed at the files, too */
}
END_TEST

START_TEST(test_folder_that_is_seen_twice_is_one)
{
    publish("a", "p", item_of("a", "2026-01-01T00:00:00Z", ""));
    is_twice = true;
    wait_for("a");
    publish("b", "p", item_of("b", "2026-01-02T00:00:00Z", ""));
    wait_for("b a"); /* both folders "a" take their item from the index before */
    publish("c", "p", item_of("c", "2026-01-03T00:00:00Z", ""));
    wait_for("c b a");
    is_twice = false;
}
END_TEST

START_TEST(test_memory_is_that_of_the_newest_items)
{
    static const atomic_bool go_on;
    struct pb_web_index before = {0}, now = {0};
    char name[8], time[32], path[100];
    for (int i = 0; i < 2 * ITEMS_MAX; i++) { /* more than a walk keeps at a time */
        (void)snprintf(name, sizeof name, "%02d", i);
        (void)snprintf(time, sizeof time, "2026-01-%02dT00:00:00Z", i + 1);
        publish(name, "p", item_of(name, time, ""));
    }
    publish("none", "p", strdup("no item"));
    ck_assert_int_eq(pb_web_index_read(root, &before, ITEMS_MAX, &go_on, &now), 0);
    ck_assert_uint_eq(now.n, ITEMS_MAX);
    ck_assert_uint_eq(now.n_items, ITEMS_MAX);
    ck_assert_uint_eq(now.n_older, ITEMS_MAX);
    ck_assert_uint_eq(now.n_left, ITEMS_MAX + 1);
    ck_assert_str_eq(now.item[0]->id, "19");
    ck_assert_str_eq(now.item[ITEMS_MAX - 1]->id, "10");
    ck_assert_uint_eq(now.collection[0].n_items, ITEMS_MAX);
    /* A folder that is left out is not read again: its new file with the old manifest is unknown.
     */
    (void)snprintf(path, sizeof path, "%s/none/p/i.json", root);
    char *newer = item_of("newer", "2026-02-01T00:00:00Z", "");
    FILE *file = fopen(path, "w");
    ck_assert_int_gt(fputs(newer, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    free(newer);
    for (int i = 0; i < 2; i++) { /* two items are removed, then older ones take their place */
        before = now;
        ck_assert_int_eq(pb_web_index_read(root, &before, ITEMS_MAX, &go_on, &now), 0);
        pb_web_index_free(&before);
        ck_assert_str_eq(now.item[0]->id, i == 0 ? "19" : "17");
        ck_assert_uint_eq(now.n_items, i == 0 ? ITEMS_MAX : ITEMS_MAX - 2);
        ck_assert_uint_eq(now.n_left, i == 0 ? ITEMS_MAX + 1 : 0);
        for (int k = 18; k < 20 && i == 0; k++) {
            (void)snprintf(path, sizeof path, "%s/%d", root, k);
            remove_tree(path);
        }
    }
    before = now;
    ck_assert_int_eq(pb_web_index_read(root, &before, ITEMS_MAX, &go_on, &now), 0);
    pb_web_index_free(&before);
    ck_assert_uint_eq(now.n_items, ITEMS_MAX);
    ck_assert_str_eq(now.item[0]->id, "newer"); /* all folders were read again */
    ck_assert_str_eq(now.item[ITEMS_MAX - 1]->id, "09");
    pb_web_index_free(&now);
}
END_TEST

START_TEST(test_search_selects_place_and_time)
{
    publish("a", "p", item_of("a", "2026-01-01T00:00:00Z", "\"bbox\":[10,50,11,51],"));
    publish("b", "p", item_of("b", "2026-01-02T00:00:00Z", "\"bbox\":[179,-10,-179,10],"));
    publish("c", "q", item_of("c", "2026-01-03T00:00:00Z", ""));
    wait_for("c b a");
    static const struct {
        double bbox[4];
        const char *ids;
    } rows[] = {{{11, 51, 12, 52}, "a"},       {{11.1, 50, 12, 52}, ""},
                {{-180, -90, 180, 90}, "b a"}, {{-180, 0, -179.5, 1}, "b"},
                {{179.5, 0, 180, 1}, "b"},     {{170, 0, -170, 1}, "b"},
                {{-178, 0, 178, 1}, ""},       {{0, 11, 1, 12}, ""}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pb_web_search search = {.has_bbox = true};
        (void)memcpy(search.bbox, rows[i].bbox, sizeof search.bbox);
        ck_assert_str_eq(find(search), rows[i].ids);
    }
    ck_assert_str_eq(find((struct pb_web_search){.ids = "c,a,x"}), "c a");
    ck_assert_str_eq(find((struct pb_web_search){.ids = "ca"}), "");
    ck_assert_str_eq(find((struct pb_web_search){.ids = ",b,,a,"}), "b a");
    ck_assert_str_eq(find((struct pb_web_search){.ids = ","}), "");
    ck_assert_str_eq(find((struct pb_web_search){.ids = "a", .collections = "p,q"}), "a");
    char list[2 * PB_WEB_WORDS_MAX + 3] = "";
    for (size_t i = 0; i <= PB_WEB_WORDS_MAX; i++)
        (void)strcpy(list + 2 * i, "c,");
    size_t matched;
    const struct pb_web_search many = {.ids = list};
    ck_assert_int_eq(pb_web_catalog_find(catalog, &many, NULL, 0, &matched), -E2BIG);
    list[2 * PB_WEB_WORDS_MAX] = '\0';
    ck_assert_str_eq(find(many), "c");
    ck_assert_str_eq(find((struct pb_web_search){.collections = "q"}), "c");
    ck_assert_str_eq(find((struct pb_web_search){.collection = "p", .id = "b"}), "b");
    const double second = 2461042.5; /* 2026-01-02 */
    ck_assert_str_eq(find((struct pb_web_search){.time = {.has_from = true, .from = second}}),
                     "c b");
    ck_assert_str_eq(find((struct pb_web_search){.time = {.has_to = true, .to = second}}), "b a");
}
END_TEST

START_TEST(test_pages_continue_at_a_cursor)
{
    char name[8], cursor[PB_WEB_CURSOR_BYTES] = "";
    for (int i = 0; i < 5; i++) { /* the first three have the same time */
        (void)snprintf(name, sizeof name, "%d", i);
        publish(name, "p",
                item_of(name, i < 3 ? "2026-01-09T00:00:00Z" : "2026-01-01T00:00:00Z", ""));
    }
    wait_for("0 1 2 3 4");
    for (int i = 0; i < 5; i++) {
        struct pb_web_search search = {.after = i > 0 ? cursor : NULL};
        struct pb_web_item item;
        size_t matched;
        ck_assert_int_eq(pb_web_catalog_find(catalog, &search, &item, 1, &matched), 1);
        ck_assert_int_eq(atoi(item.id), i);
        ck_assert_uint_eq(matched, 5);
        pb_web_item_cursor(&item, cursor);
        pb_web_item_fini(&item);
    }
    size_t matched;
    static const char *const bad[] = {"", "x", ",", "x,y", "2026-01-09T00:00:00Z"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct pb_web_search search = {.after = bad[i]};
        ck_assert_int_eq(pb_web_catalog_find(catalog, &search, NULL, 0, &matched), -EINVAL);
    }
}
END_TEST

START_TEST(test_updates_have_pauses)
{
    struct pb_web_pace pace = {0};
    ck_assert(pb_web_pace_is_due(&pace, 1));
    pb_web_pace_begin(&pace);
    pb_web_pace_end(&pace, 1000, 1010); /* a short one */
    ck_assert(!pb_web_pace_is_due(&pace, 1609));
    ck_assert(pb_web_pace_is_due(&pace, 1610));
    pace.is_changed = true;
    ck_assert(!pb_web_pace_is_due(&pace, 1509));
    ck_assert(pb_web_pace_is_due(&pace, 1510));
    pb_web_pace_begin(&pace);
    ck_assert(!pace.is_changed);
    pb_web_pace_end(&pace, 2000, 5000); /* a long one */
    ck_assert(!pb_web_pace_is_due(&pace, 14999));
    ck_assert(pb_web_pace_is_due(&pace, 15000));
    pace.is_changed = true; /* half of the time is for updates */
    ck_assert(!pb_web_pace_is_due(&pace, 7999));
    ck_assert(pb_web_pace_is_due(&pace, 8000));
}
END_TEST

START_TEST(test_other_directory_is_read_at_once)
{
    char other[80];
    publish("a", "p", item_of("a", "2026-01-01T00:00:00Z", ""));
    wait_for("a");
    pb_web_catalog_changed(catalog);
    (void)snprintf(other, sizeof other, "%s/a", root);
    ck_assert_int_eq(pb_web_catalog_update(catalog, other), 0);
    ck_assert_str_eq(find((struct pb_web_search){0}), "a");
    ck_assert_int_eq(pb_web_catalog_update(catalog, "/nowhere/x"), -ENOENT);
    ck_assert_str_eq(find((struct pb_web_search){0}), "");
    ck_assert_int_eq(pb_web_catalog_update(catalog, "/nowhere/x"), -ENOENT);
}
END_TEST

/* Requests a document. `arguments` are pairs, up to NULL. */
static struct pb_json_value *get(const char *path, unsigned status, const char *const *arguments)
{
    static struct pb_web_query query;
    struct pb_web_document document;
    struct pb_json_value *root_value = NULL;
    query = (struct pb_web_query){.path = path};
    ck_assert(pb_web_query_base(&query, "h:1", NULL));
    for (; arguments != NULL && *arguments != NULL; arguments += 2)
        pb_web_query_add(&query, arguments[0], arguments[1]);
    pb_web_stac(catalog, root, &query, &document);
    ck_assert_msg(document.status == status, "%s: %u", path, document.status);
    ck_assert_int_eq(pb_json_parse(document.text, strlen(document.text), 1 << 20, &root_value), 0);
    free(document.text);
    return root_value;
}

START_TEST(test_item_has_addresses_of_this_server)
{
    publish("a b", "p", item_of("x <y>", "2026-01-01T00:00:00Z", ""));
    wait_for("x <y>");
    struct pb_json_value *item = get("collections/p/items/x <y>", 200, NULL);
    const struct pb_json_value *assets = pb_json_get(item, "assets", NULL);
    ck_assert_str_eq(pb_json_get_text(pb_json_get(assets, "data", NULL), "href"),
                     "http://h:1/products/a%20b/p/a%20b.tif");
    ck_assert_str_eq(pb_json_get_text(pb_json_get(assets, "far", NULL), "href"), "s3://b/c");
    ck_assert_str_eq(pb_json_get_text(item, "collection"), "p");
    const struct pb_json_value *links = pb_json_get(item, "links", NULL);
    static const char *const expected[] = {"http://h:1/stac/collections/p/items/x%20%3Cy%3E",
                                           "http://h:1/stac",
                                           "http://h:1/stac/collections/p",
                                           "http://h:1/stac/collections/p",
                                           "http://h:1/products/a%20b/p/i.json",
                                           "https://a.example/x"};
    ck_assert_uint_eq(pb_json_count(links), sizeof expected / sizeof expected[0]);
    for (size_t i = 0; i < pb_json_count(links); i++)
        ck_assert_str_eq(pb_json_get_text(pb_json_at(links, i), "href"), expected[i]);
    pb_json_release(item);
    pb_json_release(get("collections/q/items/x <y>", 404, NULL));
    pb_json_release(get("collections/p/items/x", 404, NULL));
    pb_json_release(get("collections/p/items/x <y>/z", 404, NULL));
}
END_TEST

START_TEST(test_malformed_arguments_are_refused)
{
    static const char *const rows[][3] = {
        {"limit", "0"},
        {"limit", "-1"},
        {"limit", "x"},
        {"limit", ""},
        {"bbox", "1,2,3"},
        {"bbox", "1,2,3,4,5"},
        {"bbox", "1,2,3,x"},
        {"bbox", " 1,2,3,4"},
        {"bbox", "1,9,3,4"},
        {"bbox", "nan,2,3,4"},
        {"bbox", "-181,2,3,4"},
        {"bbox", "1,2,3,4,5,6,7,8"},
        {"datetime", ""},
        {"datetime", "../.."},
        {"datetime", "/"},
        {"datetime", "2026-01-01"},
        {"datetime", "2026-01-01T00:00:00"},
        {"datetime", "2026-01-01T00:00:00.Z"},
        {"datetime", "2026-01-02T00:00:00Z/2026-01-01T00:00:00Z"},
        {"datetime", "2026-01-01T00:00:00Z/../.."},
        {"next", "x"},
        {"intersects", "{"},
        {"intersects", "{\"type\":\"Point\",\"coordinates\":[1]}"},
        {"limit", "%zz"},
        {"unknown", "1"},
        {"limit%00", "1"}};
    wait_for("");
    char list[2 * PB_WEB_WORDS_MAX + 2];
    for (size_t i = 0; i <= PB_WEB_WORDS_MAX; i++)
        (void)memcpy(list + 2 * i, "c,", 2);
    list[sizeof list - 1] = '\0';
    const char *const words[] = {"ids", list, NULL};
    pb_json_release(get("search", 400, words));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pb_json_value *answer = get("search", 400, rows[i]);
        ck_assert_str_eq(pb_json_get_text(answer, "code"), "400");
        pb_json_release(answer);
    }
    static const char *const twice[] = {"limit", "1", "limit", "2", NULL};
    pb_json_release(get("search", 400, twice));
    static const char *const both[] = {"bbox", "1,2,3,4", "intersects",
                                       "{\"type\":\"Point\",\"coordinates\":[1,2]}", NULL};
    pb_json_release(get("search", 400, both));
    static const char *const fine[][3] = {{"limit", "99999999999999999999"},
                                          {"bbox", "170,-10,-170,10"},
                                          {"bbox", "1,2,0,3,4,9"},
                                          {"datetime", "../2026-01-01t00%3A00%3A00.5%2B01:00"},
                                          {"datetime", "2026-01-01T00:00:00Z/"}};
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++)
        pb_json_release(get("search", 200, fine[i]));
}
END_TEST

/* Requests a search by POST: the answer, or of a failure its status. */
static struct pb_json_value *post(const char *body, unsigned status)
{
    static struct pb_web_query query;
    struct pb_web_document document;
    struct pb_json_value *json = NULL, *answer = NULL;
    ck_assert_int_eq(pb_json_parse(body, strlen(body), PB_WEB_BODY_MAX, &json), 0);
    query = (struct pb_web_query){.path = "search"};
    ck_assert(pb_web_query_base(&query, "h:1", NULL));
    pb_web_query_add_body(&query, json);
    pb_web_stac(catalog, root, &query, &document);
    ck_assert_msg(document.status == status, "%s: %u", body, document.status);
    ck_assert_int_eq(pb_json_parse(document.text, strlen(document.text), 1 << 20, &answer), 0);
    free(document.text);
    pb_json_release(json);
    return answer;
}

START_TEST(test_body_has_the_arguments_of_a_query)
{
    publish("a", "p",
            item_of("a,b", "2026-01-02T00:00:00Z",
                    "\"bbox\":[1,2,3,4],\"geometry\":{\"type\":\"Point\","
                    "\"coordinates\":[2,3]},"));
    publish("c", "p", item_of("c", "2026-01-01T00:00:00Z", "\"bbox\":[1,2,3,4],"));
    wait_for("a,b c");
    static const struct {
        const char *body;
        size_t n;
    } rows[] = {{"{}", 2},
                {"{\"ids\":[\"a,b\",\"x\"]}", 1}, /* the comma is no separator */
                {"{\"ids\":[\"a\",\"b\"]}", 0},
                {"{\"ids\":[]}", 0},
                {"{\"collections\":[\"p\"],\"bbox\":null}", 2},
                {"{\"bbox\":[0,0,1.5,9],\"limit\":1}", 1},
                {"{\"bbox\":[10,0,11,9]}", 0},
                {"{\"datetime\":\"../2026-01-01T00:00:00Z\"}", 1},
                {"{\"intersects\":{\"type\":\"Point\",\"coordinates\":[2,3]}}", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pb_json_value *page = post(rows[i].body, 200);
        ck_assert_msg(pb_json_count(pb_json_get(page, "features", NULL)) == rows[i].n, "%s",
                      rows[i].body);
        pb_json_release(page);
    }
    static const char *const refused[] = {
        "{\"limit\":0}",
        "{\"limit\":\"x\"}",
        "{\"limit\":{}}",
        "{\"bbox\":[1,2,3]}",
        "{\"bbox\":[\"1\",\"2\",\"3\",\"4\"]}",
        "{\"bbox\":[[1],2,3,4]}",
        "{\"ids\":[\"a\\nb\"]}",
        "{\"ids\":[{}]}",
        "{\"datetime\":5}",
        "{\"unknown\":1}",
        "{\"next\":\"x\"}",
        "{\"intersects\":{\"type\":\"Point\",\"coordinates\":[2,3]},\"bbox\":[1,2,3,4]}"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        pb_json_release(post(refused[i], 400));
    /* The next page is requested with the body of its link. */
    struct pb_json_value *page = post("{\"limit\":1,\"collections\":[\"p\"]}", 200);
    const struct pb_json_value *links = pb_json_get(page, "links", NULL);
    const struct pb_json_value *next = pb_json_at(links, 2);
    ck_assert_str_eq(pb_json_get_text(pb_json_at(links, 0), "href"), "http://h:1/stac/search");
    ck_assert_str_eq(pb_json_get_text(next, "href"), "http://h:1/stac/search");
    ck_assert_str_eq(pb_json_get_text(next, "method"), "POST");
    struct pb_json_value *last = post(pb_json_source(pb_json_get(next, "body", NULL)), 200);
    const struct pb_json_value *item = pb_json_at(pb_json_get(last, "features", NULL), 0);
    ck_assert_str_eq(pb_json_get_text(item, "id"), "c");
    ck_assert_uint_eq(pb_json_count(pb_json_get(last, "links", NULL)), 2);
    pb_json_release(last);
    pb_json_release(page);
}
END_TEST

START_TEST(test_query_that_fills_its_room_is_refused)
{
    static char value[PB_WEB_ARGS_BYTES - 2]; /* with "a" and two NULs it leaves no byte */
    (void)memset(value, 'v', sizeof value - 1);
    const char *const arguments[] = {"a", value, "", "x", NULL};
    wait_for("");
    pb_json_release(get("search", 400, arguments));
}
END_TEST

START_TEST(test_next_page_has_the_same_search)
{
    publish("a", "p", item_of("a", "2026-01-02T00:00:00Z", "\"bbox\":[1,2,3,4],"));
    publish("b&c", "p", item_of("b", "2026-01-02T00:00:00Z", "\"bbox\":[1,2,3,4],"));
    wait_for("a b");
    static const char *const arguments[] = {"limit", "1", "bbox", "0,0%2C9,9", NULL};
    struct pb_json_value *page = get("search", 200, arguments);
    const struct pb_json_value *links = pb_json_get(page, "links", NULL);
    ck_assert_str_eq(pb_json_get_text(pb_json_at(links, 0), "href"),
                     "http://h:1/stac/search?limit=1&bbox=0%2C0%2C9%2C9");
    ck_assert_str_eq(pb_json_get_text(pb_json_at(links, 2), "rel"), "next");
    ck_assert_str_eq(pb_json_get_text(pb_json_at(links, 2), "href"),
                     "http://h:1/stac/search?limit=1&bbox=0%2C0%2C9%2C9&next=2026-01-02T00%3A00%3A"
                     "00Z%2Ca%2Fp%2Fi.json");
    pb_json_release(page);
    static const char *const last[] = {"limit", "1", "next",
                                       "2026-01-02T00%3A00%3A00Z%2Ca%2Fp%2Fi.json", NULL};
    page = get("search", 200, last);
    ck_assert_uint_eq(pb_json_count(pb_json_get(page, "links", NULL)), 2);
    ck_assert_uint_eq(pb_json_count(pb_json_get(page, "features", NULL)), 1);
    pb_json_release(page);
}
END_TEST

START_TEST(test_base_is_the_requested_host)
{
    static struct pb_web_query query;
    ck_assert(pb_web_query_base(&query, "[::1]:8080", "HTTPS"));
    ck_assert_str_eq(query.base, "https://[::1]:8080");
    ck_assert(pb_web_query_base(&query, "ground.example", "ftp"));
    ck_assert_str_eq(query.base, "http://ground.example");
    ck_assert(!pb_web_query_base(&query, "localhost:1/x", NULL));
    ck_assert(!pb_web_query_base(&query, "localhost:", NULL));
    ck_assert(!pb_web_query_base(&query, "[::1]:8\"", NULL));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("web_catalog");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, begin, end);
    tcase_add_test(all, test_items_follow_the_directory);
    tcase_add_test(all, test_unreadable_item_is_tried_again);
    tcase_add_test(all, test_update_without_descriptors_is_given_up);
    tcase_add_test(all, test_folder_that_is_seen_twice_is_one);
    tcase_add_test(all, test_memory_is_that_of_the_newest_items);
    tcase_add_test(all, test_search_selects_place_and_time);
    tcase_add_test(all, test_pages_continue_at_a_cursor);
    tcase_add_test(all, test_updates_have_pauses);
    tcase_add_test(all, test_other_directory_is_read_at_once);
    tcase_add_test(all, test_item_has_addresses_of_this_server);
    tcase_add_test(all, test_malformed_arguments_are_refused);
    tcase_add_test(all, test_body_has_the_arguments_of_a_query);
    tcase_add_test(all, test_query_that_fills_its_room_is_refused);
    tcase_add_test(all, test_next_page_has_the_same_search);
    tcase_add_test(all, test_base_is_the_requested_host);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
