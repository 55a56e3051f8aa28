/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/metadata/observation.h"

#include "config/base/json_writer.h"
#include "config/input_values.h"

void pb_observations_print(const struct pb_observations *observations, struct pb_json *json)
{
    if (observations == NULL || observations->n == 0)
        return;
    pb_json_object(json, "order");
    const bool by_list = observations->order == PB_FILES_BY_LIST;
    pb_json_string(json, "by",
                   by_list                                    ? "list"
                   : observations->order == PB_FILES_BY_CLOUD ? "cloud"
                   : pb_files_by_date(observations->order)    ? "date"
                                                              : "name");
    pb_json_bool(json, "descending", pb_files_from_the_last(observations->order));
    pb_json_array(json, "files");
    for (size_t i = 0; i < observations->n; i++) {
        const struct pb_observation *one = &observations->one[i];
        pb_json_object(json, NULL);
        if (one->nth > 0)
            pb_json_int(json, "nth", one->nth);
        else
            pb_json_null(json, "nth");
        pb_json_string(json, "file", one->file);
        if (!by_list) {
            pb_json_number(json, "cloud_cover", one->cloud_cover); /* NaN: null */
            pb_json_string(json, "datetime", one->datetime[0] != '\0' ? one->datetime : NULL);
        }
        pb_json_bool(json, "used", one->is_used);
        pb_json_end(json);
    }
    pb_json_end(json);
    pb_json_end(json);
}
