/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Sentinel-2: MTD_MSIL1C.xml and MTD_MSIL2A.xml, the tile's MTD_TL.xml (metadata.xml in old
 * products), and the STAC item that Earth Search writes next to its copies of the bands.
 *
 * From processing baseline 04.00 on stored values have an offset, which the product names
 * (RADIO_ADD_OFFSET, BOA_ADD_OFFSET). The baseline, never a date, decides which products have
 * it: old scenes have been processed again. Copies of a catalogue may have the offset removed:
 * earthsearch:boa_offset_applied of the item defines it. Without that flag the scale and offset
 * of the item's bands define it, and must be those of the baseline. */
#include "pipeline/metadata/family.h"
#include "pipeline/metadata/meta_reader.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { BANDS = 13, OFFSET_BASELINE = 400 };

/* Names by bandId. */
static const char *const names[BANDS] = {"1", "2",  "3", "4",  "5",  "6", "7",
                                         "8", "8A", "9", "10", "11", "12"};

static const struct pb_meta_node *product_of(const struct pb_meta_node *root)
{
    const struct pb_meta_node *first = root->first;
    return first && strncmp(first->name, "Level-", 6) == 0 && strstr(first->name, "User_Product")
               ? first
               : NULL;
}

static const struct pb_meta_node *tile_of(const struct pb_meta_node *root)
{
    const struct pb_meta_node *first = root->first;
    return first && strncmp(first->name, "Level-", 6) == 0 && strstr(first->name, "Tile_ID") ? first
                                                                                             : NULL;
}

/* Returns the processing baseline of an item: that of the Sentinel-2 extension, else the version
 * of the processor, as in the items of the Copernicus Data Space. */
static const char *item_baseline(const struct pb_meta_node *properties)
{
    const char *text = pb_meta_text(properties, "s2:processing_baseline");
    return text != NULL ? text : pb_meta_text(properties, "processing:version");
}

static const char *item_type(const struct pb_meta_node *properties)
{
    const char *type = pb_meta_text(properties, "s2:product_type");
    return type != NULL ? type : pb_meta_text(properties, "product:type");
}

/* Returns an item of one of the two levels; derived products of other producers have another
 * type. */
static const struct pb_meta_node *item_of(const struct pb_meta_node *root)
{
    const struct pb_meta_node *properties = pb_meta_child(root, "document/properties");
    const char *of = pb_meta_text(properties, "constellation");
    const char *type = item_type(properties);
    bool known = pb_meta_text(properties, "s2:processing_baseline") != NULL ||
                 (type != NULL && strncmp(type, "S2MSI", 5) == 0 &&
                  pb_meta_text(properties, "processing:version") != NULL);
    return of != NULL && strcasecmp(of, "sentinel-2") == 0 && known ? properties : NULL;
}

static bool is_one(const struct pb_meta_node *root)
{
    return product_of(root) != NULL || tile_of(root) != NULL || item_of(root) != NULL;
}

/* Returns 509 for "05.09"; -1 = not a baseline. */
static int baseline_of(const char *text)
{
    int value = 0;
    if (strlen(text) != 5 || text[2] != '.')
        return -1;
    for (int i = 0; i < 5; i++) {
        if (i != 2 && !isdigit((unsigned char)text[i]))
            return -1;
        if (i != 2)
            value = value * 10 + (text[i] - '0');
    }
    return value;
}

static void set_baseline(struct pb_meta_reader *r, const char *text)
{
    if (text != NULL && baseline_of(text) < 0)
        pb_meta_wrong(r, "the processing baseline is '%.20s'; such as 05.09 is possible", text);
    PB_META_SET(r, baseline, text, "the processing baseline");
}

static void set_platform(struct pb_meta_reader *r, const char *text)
{
    char platform[32];
    size_t n = 0;
    for (; text && text[n] != '\0' && n + 1 < sizeof platform; n++)
        platform[n] = (char)tolower((unsigned char)text[n]);
    platform[n] = '\0';
    PB_META_SET(r, platform, platform, "the platform");
}

/* Reads "T33XWJ" from an identifier "..._T33XWJ_..."; a product of before 2016 has many tiles
 * and no tile in its name. */
static void set_tile(struct pb_meta_reader *r, const char *id)
{
    char tile[7];
    for (const char *at = id; at != NULL && (at = strstr(at, "_T")) != NULL; at++)
        if (isdigit((unsigned char)at[2]) && isdigit((unsigned char)at[3]) && strlen(at) > 7 &&
            (at[7] == '_' || at[7] == '.')) {
            (void)snprintf(tile, sizeof tile, "%.6s", at + 1);
            PB_META_SET(r, tile, tile, "the tile");
            return;
        }
}

static void set_level(struct pb_meta_reader *r, bool is_2a)
{
    PB_META_SET(r, level, is_2a ? "L2A" : "L1C", "the level");
    PB_META_SET(r, instrument, "msi", "the instrument");
    if (r->rc < 0)
        return;
    struct pb_metadata *out = r->out;
    (void)snprintf(out->why_not[is_2a ? PB_QUANTITY_TOA : PB_QUANTITY_SURFACE],
                   sizeof out->why_not[0], "this is a product of Level %s",
                   is_2a ? "2A, whose bands are surface reflectance: use to: surface"
                         : "1C, whose bands are reflectance at the top of the atmosphere: use "
                           "to: toa");
    (void)snprintf(out->why_not[PB_QUANTITY_RADIANCE], sizeof out->why_not[0],
                   "Sentinel-2 products hold reflectance");
    (void)snprintf(out->why_not[PB_QUANTITY_TEMPERATURE], sizeof out->why_not[0],
                   "Sentinel-2 has no thermal bands");
}

/* Sets gain and offset of all bands, with the reason. */
static void set_scales(struct pb_meta_reader *r, const double offset[BANDS], double quantum,
                       const char *why)
{
    enum pb_quantity to = strcmp(r->out->level, "L2A") == 0 ? PB_QUANTITY_SURFACE : PB_QUANTITY_TOA;
    struct pb_metadata *out = r->out;
    for (int i = 0; i < BANDS && r->rc == 0; i++)
        pb_meta_set_scale(pb_meta_band(r, names[i]), to, 1 / quantum, offset[i] / quantum);
    (void)snprintf(out->boa_offset, sizeof out->boa_offset, "%s", why);
    char sum[32] = "DN";
    if (offset[3] != 0)
        (void)snprintf(sum, sizeof sum, "(DN %c %g)", offset[3] < 0 ? '-' : '+', fabs(offset[3]));
    (void)snprintf(out->rule[to], sizeof out->rule[to], "%s / %g, %s", sum, quantum, why);
}

/* --- MTD_MSIL1C.xml, MTD_MSIL2A.xml ----------------------------------------------------------- */

/* Reads the list of offsets, 0 for missing bands; returns true if there is a list. */
static bool read_offsets(struct pb_meta_reader *r, const struct pb_meta_node *top, bool is_2a,
                         double offset[BANDS])
{
    const char *name = is_2a ? "BOA_ADD_OFFSET" : "RADIO_ADD_OFFSET";
    bool has[BANDS] = {false};
    int n = 0;
    for (const struct pb_meta_node *at = NULL; (at = pb_meta_below(top, name, at)) != NULL;) {
        double id = pb_meta_need_number(r, at, "@band_id", 0, BANDS - 1);
        double value = pb_meta_number_of(r, at->text, name, -30000, 30000);
        if (r->rc < 0)
            return false;
        if (has[(int)id] && offset[(int)id] != value)
            pb_meta_conflict(r, "%s of band_id %d is %g and %g", name, (int)id, offset[(int)id],
                             value);
        n += !has[(int)id];
        has[(int)id] = true;
        offset[(int)id] = value;
    }
    if (n > 0 && n < BANDS)
        pb_meta_wrong(r, "%s is there for %d of %d bands", name, n, BANDS);
    return n > 0;
}

static void read_product_scales(struct pb_meta_reader *r, const struct pb_meta_node *top,
                                bool is_2a)
{
    double offset[BANDS] = {0};
    const char *key = is_2a ? "BOA_QUANTIFICATION_VALUE" : "QUANTIFICATION_VALUE";
    const char *quantum = pb_meta_text_below(top, key);
    if (quantum == NULL && is_2a) /* key of the first products */
        quantum = pb_meta_text_below(top, "L2A_BOA_QUANTIFICATION_VALUE");
    if (quantum == NULL) {
        pb_meta_wrong(r, "it has no %s", key);
        return;
    }
    double divisor = pb_meta_number_of(r, quantum, key, 1, 1e6);
    bool has = read_offsets(r, top, is_2a, offset);
    int baseline = baseline_of(r->out->baseline);
    bool any = false;
    for (int i = 0; i < BANDS; i++)
        any = any || offset[i] != 0;
    if (r->rc == 0 && baseline >= OFFSET_BASELINE && !has)
        pb_meta_conflict(r, "baseline %s has an offset, but the list of %s is not there",
                         r->out->baseline, is_2a ? "BOA_ADD_OFFSET" : "RADIO_ADD_OFFSET");
    if (r->rc == 0 && baseline < OFFSET_BASELINE && any)
        pb_meta_conflict(r, "baseline %s has no offset, but %s is %g", r->out->baseline,
                         is_2a ? "BOA_ADD_OFFSET" : "RADIO_ADD_OFFSET", offset[3]);
    if (r->rc < 0)
        return;
    char why[96];
    (void)snprintf(why, sizeof why,
                   has ? "offset of processing baseline %s"
                       : "no offset before processing baseline 04.00 (this is %s)",
                   r->out->baseline);
    set_scales(r, offset, divisor, why);
}

static void read_orbit(struct pb_meta_reader *r, const struct pb_meta_node *info)
{
    const char *number = pb_meta_text_below(info, "SENSING_ORBIT_NUMBER");
    pb_meta_set_orbit(r, pb_meta_text_below(info, "SENSING_ORBIT_DIRECTION"));
    if (number != NULL)
        pb_meta_set_number(r, &r->out->relative_orbit,
                           pb_meta_number_of(r, number, "SENSING_ORBIT_NUMBER", 1, 143),
                           "the relative orbit");
}

static void read_product(struct pb_meta_reader *r, const struct pb_meta_node *top)
{
    const struct pb_meta_node *info = pb_meta_child(top, "General_Info/Product_Info");
    if (info == NULL)
        info = pb_meta_child(top, "General_Info/L2A_Product_Info");
    bool is_2a = strstr(top->name, "2A") != NULL;
    set_level(r, is_2a);
    const char *uri = pb_meta_text(info, "PRODUCT_URI");
    uri = uri ? uri : pb_meta_text(info, "PRODUCT_URI_2A");
    PB_META_SET(r, product, uri, "the product");
    set_tile(r, uri);
    set_baseline(r, pb_meta_need_text(r, info, "PROCESSING_BASELINE"));
    set_platform(r, pb_meta_text_below(info, "SPACECRAFT_NAME"));
    read_orbit(r, info);
    pb_meta_set_time(r, pb_meta_need_text(r, info, "PRODUCT_START_TIME"), false);
    const char *cloud = pb_meta_text_below(top, "Cloud_Coverage_Assessment");
    if (cloud != NULL)
        pb_meta_set_number(r, &r->out->cloud_cover,
                           pb_meta_number_of(r, cloud, "Cloud_Coverage_Assessment", 0, 100),
                           "the cloud cover");
    if (r->rc == 0)
        read_product_scales(r, top, is_2a);
}

/* --- MTD_TL.xml ------------------------------------------------------------------------------- */

/* Returns "02.09" from "..._N02.09" at the end of an identifier. */
static const char *tile_baseline(const char *id)
{
    size_t n = id != NULL ? strlen(id) : 0;
    return n > 7 && strncmp(id + n - 7, "_N", 2) == 0 ? id + n - 5 : NULL;
}

static void read_tile(struct pb_meta_reader *r, const struct pb_meta_node *top)
{
    const struct pb_meta_node *info = pb_meta_child(top, "General_Info");
    const struct pb_meta_node *sun = pb_meta_below(top, "Mean_Sun_Angle", NULL);
    const char *id = pb_meta_text(info, "TILE_ID");
    struct pb_metadata *out = r->out;
    set_level(r, strstr(top->name, "2A") != NULL);
    id = id ? id : pb_meta_text(info, "TILE_ID_2A");
    set_baseline(r, tile_baseline(id));
    set_tile(r, id);
    if (id != NULL && strncmp(id, "S2", 2) == 0 && isalpha((unsigned char)id[2])) {
        char platform[] = "sentinel-2?";
        platform[sizeof platform - 2] = id[2];
        set_platform(r, platform);
    }
    pb_meta_set_time(r, pb_meta_need_text(r, info, "SENSING_TIME"), true);
    const char *crs = pb_meta_text_below(top, "HORIZONTAL_CS_CODE");
    PB_META_SET(r, crs, crs, "the coordinate system");
    double zenith = pb_meta_number(r, sun, "ZENITH_ANGLE", 0, 180);
    pb_meta_set_number(r, &out->sun_elevation, 90 - zenith, "the sun's height");
    pb_meta_set_number(r, &out->sun_azimuth, pb_meta_number(r, sun, "AZIMUTH_ANGLE", 0, 360),
                       "the sun's azimuth");
    const struct pb_meta_node *view = pb_meta_below(top, "Mean_Viewing_Incidence_Angle", NULL);
    for (; view != NULL; view = pb_meta_below(top, "Mean_Viewing_Incidence_Angle", view)) {
        const char *band = pb_meta_text(view, "@bandId");
        if (band == NULL || strcmp(band, "3") != 0) /* B04 represents all bands */
            continue;
        pb_meta_set_number(r, &out->incidence, pb_meta_number(r, view, "ZENITH_ANGLE", 0, 90),
                           "the angle of incidence");
        pb_meta_set_number(r, &out->view_azimuth, pb_meta_number(r, view, "AZIMUTH_ANGLE", 0, 360),
                           "the azimuth of the view");
    }
}

/* --- items of catalogues ---------------------------------------------------------------------- */

#define QUANTUM         10000.0
#define SCALE_TOLERANCE 1e-9

/* Index in names of the band of an asset's file; -1 = not a band. From the end of its path,
 * B04.tif or T32UQD_20230601T101559_B04_10m.jp2. */
static int band_of_asset(const struct pb_meta_node *asset)
{
    const char *href = pb_meta_text(asset, "href");
    const char *slash = href != NULL ? strrchr(href, '/') : NULL;
    const char *name = slash != NULL ? slash + 1 : href;
    for (const char *at = name; at != NULL && (at = strchr(at, 'B')) != NULL; at++) {
        bool begins = at == name || !isalnum((unsigned char)at[-1]);
        if (!begins || !isdigit((unsigned char)at[1]) || !isalnum((unsigned char)at[2]) ||
            isalnum((unsigned char)at[3]))
            continue;
        const char *id = at[1] == '0' ? at + 2 : at + 1;
        for (int i = 0; i < BANDS; i++)
            if (strncmp(id, names[i], strlen(names[i])) == 0 && id + strlen(names[i]) == at + 3)
                return i;
    }
    return -1;
}

/* The scale and offset that an item gives for its bands. */
struct item_scale {
    bool any; /* other members are valid only then */
    double scale, offset;
};

/* Reads "raster:bands", which has them by band, or version 2 of that extension in the asset or
 * its band. An asset of several bands is a picture. Returns false if absent. */
static bool scale_of_asset(struct pb_meta_reader *r, const struct pb_meta_node *asset,
                           struct item_scale *out)
{
    const struct pb_meta_node *bands = pb_meta_child(asset, "raster:bands");
    const struct pb_meta_node *band = bands != NULL ? bands->first : NULL;
    const char *scale = "scale", *offset = "offset";
    if (band == NULL) {
        const struct pb_meta_node *own = pb_meta_child(asset, "bands");
        bands = own;
        scale = "raster:scale";
        offset = "raster:offset";
        band = own != NULL && pb_meta_text(own->first, scale) != NULL ? own->first : asset;
    }
    if ((bands != NULL && bands->n > 1) || pb_meta_text(band, scale) == NULL)
        return false;
    out->scale = pb_meta_need_number(r, band, scale, 1e-9, 1e9);
    out->offset = pb_meta_number(r, band, offset, -1e9, 1e9);
    if (isnan(out->offset))
        out->offset = 0;
    return true;
}

/* Reads the scale of all assets of bands; a difference is a conflict. */
static struct item_scale read_asset_scales(struct pb_meta_reader *r,
                                           const struct pb_meta_node *root)
{
    const struct pb_meta_node *assets = pb_meta_child(root, "document/assets");
    const struct pb_meta_node *asset = assets != NULL ? assets->first : NULL;
    struct item_scale all = {.any = false}, one = {.any = true};
    for (; asset != NULL && r->rc == 0; asset = asset->next) {
        if (band_of_asset(asset) < 0 || !scale_of_asset(r, asset, &one) || r->rc < 0)
            continue;
        if (all.any && (fabs(all.scale - one.scale) > SCALE_TOLERANCE ||
                        fabs(all.offset - one.offset) > SCALE_TOLERANCE))
            pb_meta_conflict(r,
                             "its bands have different scales: %g and %g, offsets %g and %g; give "
                             "scale and offset in input.files in place of the calibrate step",
                             all.scale, one.scale, all.offset, one.offset);
        all = one;
    }
    return all;
}

/* Returns true if stored values have the offset of the baseline. The item's scale is compared
 * with the baseline's; if they differ, and no flag explains it, nothing is guessed. */
static bool has_offset(struct pb_meta_reader *r, const struct item_scale *given)
{
    const bool by_baseline = baseline_of(r->out->baseline) >= OFFSET_BASELINE;
    const double offset = by_baseline ? -0.1 : 0;
    if (r->rc < 0)
        return false;
    if (!given->any && by_baseline)
        pb_meta_wrong(
            r,
            "baseline %s has an offset, and neither earthsearch:boa_offset_applied nor the bands "
            "(raster:bands, raster:offset) show whether the stored values still include it; give "
            "scale and offset in input.files in place of the calibrate "
            "step",
            r->out->baseline);
    else if (given->any && (fabs(given->scale - 1 / QUANTUM) > SCALE_TOLERANCE ||
                            fabs(given->offset - offset) > SCALE_TOLERANCE))
        pb_meta_conflict(r,
                         "baseline %s has scale 0.0001 and offset %g, but the item's bands have %g "
                         "and %g; find out which holds for the files, and give scale and offset in "
                         "input.files in place of the calibrate step",
                         r->out->baseline, offset, given->scale, given->offset);
    return by_baseline;
}

/* Called with a false flag: stored values have the offset of the baseline, and the bands must
 * agree. A true flag decides alone, because older items keep the offset in raster:bands after it
 * was applied (Earth Search, sentinel-2-l2a). */
static void check_flag(struct pb_meta_reader *r, bool has, const struct item_scale *given)
{
    if (r->rc == 0 && has && given->any && fabs(given->offset + 0.1) > SCALE_TOLERANCE)
        pb_meta_conflict(r,
                         "earthsearch:boa_offset_applied is false, but the item's bands have the "
                         "offset %g; find out which holds for the files, and give scale and offset "
                         "in input.files in place of the calibrate step",
                         given->offset);
}

static void read_item_scales(struct pb_meta_reader *r, const struct pb_meta_node *root)
{
    const struct pb_meta_node *item = item_of(root);
    const char *applied = pb_meta_text(item, "earthsearch:boa_offset_applied");
    const bool flagged = applied != NULL && applied[0] != '\0';
    const bool is_out = flagged && strcmp(applied, "true") == 0;
    bool has = baseline_of(r->out->baseline) >= OFFSET_BASELINE;
    double offset[BANDS] = {0};
    char why[96];
    if (!has && is_out)
        pb_meta_conflict(r, "baseline %s has no offset, but earthsearch:boa_offset_applied is true",
                         r->out->baseline);
    if (!is_out) {
        const struct item_scale given = read_asset_scales(r, root);
        if (!flagged)
            has = has_offset(r, &given);
        else
            check_flag(r, has, &given);
    }
    if (r->rc < 0)
        return;
    for (int i = 0; i < BANDS && has && !is_out; i++)
        offset[i] = -1000;
    (void)snprintf(why, sizeof why,
                   !has     ? "no offset before processing baseline 04.00 (this is %s)"
                   : is_out ? "boa_offset_applied: the offset of baseline %s is taken out already"
                            : "offset of processing baseline %s",
                   r->out->baseline);
    set_scales(r, offset, QUANTUM, why);
}

/* Sets the tile of an item without a tile from the name of its product. */
static void set_item_tile(struct pb_meta_reader *r, const struct pb_meta_node *root)
{
    pb_meta_set_item_tile(r, item_of(root));
    if (r->out->tile[0] == '\0')
        set_tile(r, pb_meta_text(root, "document/id"));
}

static void read_item(struct pb_meta_reader *r, const struct pb_meta_node *root)
{
    const struct pb_meta_node *item = item_of(root);
    struct pb_metadata *out = r->out;
    const char *type = item_type(item);
    set_level(r, type == NULL || strstr(type, "2A") != NULL);
    PB_META_SET(r, product, pb_meta_text(item, "s2:product_uri"), "the product");
    set_platform(r, pb_meta_text(item, "platform"));
    set_baseline(r, item_baseline(item));
    pb_meta_set_time(r, pb_meta_need_text(r, item, "datetime"), false);
    set_item_tile(r, root);
    pb_meta_set_number(r, &out->sun_azimuth, pb_meta_number(r, item, "view:sun_azimuth", 0, 360),
                       "the sun's azimuth");
    pb_meta_set_number(r, &out->sun_elevation,
                       pb_meta_number(r, item, "view:sun_elevation", -90, 90), "the sun's height");
    pb_meta_set_number(r, &out->cloud_cover, pb_meta_number(r, item, "eo:cloud_cover", 0, 100),
                       "the cloud cover");
    if (r->rc == 0)
        read_item_scales(r, root);
}

static void read(struct pb_meta_reader *r, const struct pb_meta_node *root)
{
    pb_meta_set_number(r, &r->out->gsd, 10, "the ground sample distance");
    if (product_of(root) != NULL)
        read_product(r, product_of(root));
    else if (tile_of(root) != NULL)
        read_tile(r, tile_of(root));
    else
        read_item(r, root);
}

/* MTD_TL.xml alone has no scale. */
static void finish(struct pb_meta_reader *r)
{
    for (int to = PB_QUANTITY_TOA; to <= PB_QUANTITY_SURFACE; to++)
        if (r->out->rule[to][0] == '\0' && r->out->why_not[to][0] == '\0')
            (void)snprintf(r->out->why_not[to], sizeof r->out->why_not[to],
                           "the scale is in MTD_MSIL1C.xml or MTD_MSIL2A.xml; name that file in "
                           "input.metadata as well");
}

const struct pb_metadata_family pb_family_sentinel2 = {
    .name = "sentinel2",
    .files = "MTD_MSIL1C.xml, MTD_MSIL2A.xml, MTD_TL.xml, a STAC item (Earth Search, Planetary "
             "Computer, "
             "Copernicus Data Space)",
    .source = "Sentinel-2 Products Specification Document (S2-PDGS-TAS-DI-PSD), 14.5 and later",
    .constellation = "sentinel-2",
    .companion = "GRANULE/*/MTD_TL.xml",
    .is_one = is_one,
    .read = read,
    .finish = finish,
};
