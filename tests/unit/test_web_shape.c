/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/web/shape.h"

#include "config/base/json_reader.h"
#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#define SQUARE                                                                                     \
    "{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[4,0],[4,4],[0,4],[0,0]],"                      \
    "[[1,1],[1,3],[3,3],[3,1],[1,1]]]}" /* with a hole */

static int read_shape(const char *text, struct pb_web_shape *out)
{
    struct pb_json_value *value = NULL;
    ck_assert_int_eq(pb_json_parse(text, strlen(text), 65536, &value), 0);
    const int rc = pb_web_shape_read(value, out);
    pb_json_release(value);
    return rc;
}

static bool meets(const char *text, const char *other)
{
    struct pb_web_shape a = {0}, b = {0};
    ck_assert_msg(read_shape(text, &a) == 0, "%s", text);
    ck_assert_msg(read_shape(other, &b) == 0, "%s", other);
    const bool found = pb_web_shape_meets(&a, &b);
    ck_assert_msg(pb_web_shape_meets(&b, &a) == found, "not symmetric: %s", text);
    pb_web_shape_fini(&a);
    pb_web_shape_fini(&b);
    return found;
}

START_TEST(test_shapes_meet_at_common_points)
{
    static const struct {
        const char *shape;
        bool meets;
    } rows[] = {
        {"{\"type\":\"Point\",\"coordinates\":[0.5,0.5]}", true},
        {"{\"type\":\"Point\",\"coordinates\":[0.5,0.5,100]}", true},
        {"{\"type\":\"Point\",\"coordinates\":[2,2]}", false}, /* in the hole */
        {"{\"type\":\"Point\",\"coordinates\":[1,2]}", true},  /* on its edge */
        {"{\"type\":\"Point\",\"coordinates\":[4,4]}", true},
        {"{\"type\":\"Point\",\"coordinates\":[4.001,4]}", false},
        {"{\"type\":\"MultiPoint\",\"coordinates\":[[9,9],[2,2],[3.5,2]]}", true},
        {"{\"type\":\"LineString\",\"coordinates\":[[-1,2],[5,2]]}", true},
        {"{\"type\":\"LineString\",\"coordinates\":[[1.5,1.5],[2.5,2.5]]}", false},
        {"{\"type\":\"LineString\",\"coordinates\":[[5,0],[5,4]]}", false},
        {"{\"type\":\"LineString\",\"coordinates\":[[4,-1],[4,-0.5]]}", false}, /* same line */
        {"{\"type\":\"MultiLineString\",\"coordinates\":[[[9,9],[8,8]],[[0,9],[0,4]]]}", true},
        {"{\"type\":\"Polygon\",\"coordinates\":[[[-9,-9],[9,-9],[9,9],[-9,9],[-9,-9]]]}", true},
        {"{\"type\":\"Polygon\",\"coordinates\":[[[2,2],[2.5,2],[2,2.5],[2,2]]]}", false},
        {"{\"type\":\"Polygon\",\"coordinates\":[[[4,0],[8,0],[8,4],[4,0]]]}", true},
        {"{\"type\":\"MultiPolygon\",\"coordinates\":[[[[2,2],[2.5,2],[2,2.5],[2,2]]],"
         "[[[0.2,0.2],[0.5,0.2],[0.2,0.5],[0.2,0.2]]]]}",
         true},
        {"{\"type\":\"GeometryCollection\",\"geometries\":[{\"type\":\"Point\",\"coordinates\":"
         "[9,9]},{\"type\":\"LineString\",\"coordinates\":[[3.5,3.5],[9,9]]}]}",
         true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_msg(meets(SQUARE, rows[i].shape) == rows[i].meets, "%s", rows[i].shape);
}
END_TEST

START_TEST(test_malformed_shapes_are_refused)
{
    static const char *const rows[] = {
        "{}",
        "[]",
        "{\"type\":\"Point\"}",
        "{\"type\":\"Point\",\"coordinates\":[1]}",
        "{\"type\":\"Point\",\"coordinates\":[1,\"2\"]}",
        "{\"type\":\"Point\",\"coordinates\":[1,null]}",
        "{\"type\":\"Circle\",\"coordinates\":[1,2]}",
        "{\"type\":\"MultiPoint\",\"coordinates\":[]}",
        "{\"type\":\"LineString\",\"coordinates\":[[1,2]]}",
        "{\"type\":\"Polygon\",\"coordinates\":[]}",
        "{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[1,0],[1,1],[0,1]]]}", /* open */
        "{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[1,0],[0,0]]]}",
        "{\"type\":\"GeometryCollection\",\"geometries\":[{}]}"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pb_web_shape shape = {0};
        ck_assert_msg(read_shape(rows[i], &shape) == -EINVAL, "%s", rows[i]);
        ck_assert_ptr_null(shape.point);
    }
}
END_TEST

START_TEST(test_box_contains_all_points)
{
    struct pb_web_shape shape = {0};
    double box[4];
    ck_assert_int_eq(
        read_shape("{\"type\":\"MultiPoint\",\"coordinates\":[[3,-2],[-1,5]]}", &shape), 0);
    pb_web_shape_bbox(&shape, box);
    ck_assert(box[0] == -1 && box[1] == -2 && box[2] == 3 && box[3] == 5);
    pb_web_shape_fini(&shape);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("web_shape");
    TCase *all = tcase_create("all");
    tcase_add_test(all, test_shapes_meet_at_common_points);
    tcase_add_test(all, test_malformed_shapes_are_refused);
    tcase_add_test(all, test_box_contains_all_points);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
