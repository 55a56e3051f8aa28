/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * tasseled_cap: brightness, greenness and wetness as weighted sums of a sensor's bands. The weights
 * are those that were published for the sensor; each row was compared with a second source. */
#include "kernels/expr/band_list.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { BANDS_MAX = 13, COMPONENTS = 3 };

struct tasseled_cap {
    struct pb_items bands, as;
    int32_t sensor;
};

static const char *const components[COMPONENTS] = {"brightness", "greenness", "wetness"};

#define SENSORS "landsat-tm|landsat-etm|landsat-oli|landsat-oli-sr|sentinel2|sentinel2-13|modis"

/* By what people call the satellites and instruments. */
#define CALLED                                                                                     \
    "landsat4 landsat5 l4 l5 tm=landsat-tm|landsat7 l7 etm=landsat-etm"                            \
    "|landsat landsat8 landsat9 l8 l9 oli=landsat-oli (top of the atmosphere) or landsat-oli-sr "  \
    "(surface)"                                                                                    \
    "|sentinel-2a sentinel-2b sentinel-2c s2 s2a s2b s2c msi=sentinel2 (six bands) or "            \
    "sentinel2-13|terra aqua mod09 myd09 mcd43=modis"

/* In the order of SENSORS. bands: what to call them in messages; those that are names of the index
 * catalogue are found when the step names none. */
static const struct weights {
    const char *bands;
    size_t n;
    double weight[COMPONENTS][BANDS_MAX];
} sensors[] = {
    {"B, G, R, N, S1, S2",
     6,
     {{0.2043, 0.4158, 0.5524, 0.5741, 0.3124, 0.2303},
      {-0.1603, -0.2819, -0.4934, 0.7940, -0.0002, -0.1446},
      {0.0315, 0.2021, 0.3102, 0.1594, -0.6806, -0.6109}}},
    {"B, G, R, N, S1, S2",
     6,
     {{0.3561, 0.3972, 0.3904, 0.6966, 0.2286, 0.1596},
      {-0.3344, -0.3544, -0.4556, 0.6966, -0.0242, -0.2630},
      {0.2626, 0.2141, 0.0926, 0.0656, -0.7629, -0.5388}}},
    {"B, G, R, N, S1, S2",
     6,
     {{0.3029, 0.2786, 0.4733, 0.5599, 0.5080, 0.1872},
      {-0.2941, -0.2430, -0.5424, 0.7276, 0.0713, -0.1608},
      {0.1511, 0.1973, 0.3283, 0.3407, -0.7117, -0.4559}}},
    {"B, G, R, N, S1, S2",
     6,
     {{0.3690, 0.4271, 0.4689, 0.5073, 0.3824, 0.2406},
      {-0.2870, -0.2685, -0.4087, 0.8145, 0.0637, -0.1052},
      {0.0382, 0.2137, 0.3536, 0.2270, -0.6108, -0.6351}}},
    {"B, G, R, N, S1, S2",
     6,
     {{0.3510, 0.3813, 0.3437, 0.7196, 0.2396, 0.1949},
      {-0.3599, -0.3533, -0.4734, 0.6633, 0.0087, -0.2856},
      {0.2578, 0.2305, 0.0883, 0.1071, -0.7611, -0.5308}}},
    {"B1 to B8, B9 to B12, B8A of the product",
     13,
     {{0.0356, 0.0822, 0.1360, 0.2611, 0.2964, 0.3338, 0.3877, 0.3895, 0.0949, 0.0009, 0.3882,
       0.1366, 0.4750},
      {-0.0635, -0.1128, -0.1680, -0.3480, -0.3303, 0.0852, 0.3302, 0.3165, 0.0467, -0.0009,
       -0.4578, -0.4064, 0.3625},
      {0.0649, 0.1363, 0.2802, 0.3072, 0.5288, 0.1379, -0.0001, -0.0807, -0.0302, 0.0003, -0.4064,
       -0.5602, -0.1389}}},
    {"bands 1 to 7 of the product",
     7,
     {{0.4395, 0.5945, 0.2460, 0.3918, 0.3506, 0.2136, 0.2678},
      {-0.4064, 0.5129, -0.2744, -0.2893, 0.4882, -0.0036, -0.4169},
      {0.1147, 0.2489, 0.2408, 0.3132, -0.3122, -0.6416, -0.5087}}},
};

static const struct pb_key keys[] = {
    {.name = "sensor",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct tasseled_cap, sensor),
     .choices = SENSORS,
     .called = CALLED,
     .required = true,
     .doc = "Whose weights: of Landsat 4 and 5 TM; Landsat 7 ETM+; Landsat 8 and 9 OLI at the top "
            "of the atmosphere, or at the surface; Sentinel-2, six bands or all thirteen; MODIS."},
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct tasseled_cap, bands),
     .doc = "The sensor's bands in the order of the notes; B, G, R, N, S1 and S2 when not given, "
            "for the sensors with these six."},
    {.name = "as",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct tasseled_cap, as),
     .required = true,
     .makes_bands = true,
     .doc = "Bands to make: {TCB: brightness, TCG: greenness, TCW: wetness}, or some of them; or a "
            "list of these words, which are then the names of the bands."},
};

/* The step's bands, in order. False: a mistake was told. */
static bool find_bands(const struct tasseled_cap *step, struct pb_builder *b,
                       pb_value out[BANDS_MAX])
{
    static const char *const usual[] = {"B", "G", "R", "N", "S1", "S2"};
    static const struct pb_item item[] = {{.text = "B"}, {.text = "G"},  {.text = "R"},
                                          {.text = "N"}, {.text = "S1"}, {.text = "S2"}};
    const struct weights *const sensor = &sensors[step->sensor];
    const struct pb_items six = {.items = item, .n = sizeof usual / sizeof usual[0]};
    const struct pb_items *const names = step->bands.n > 0 ? &step->bands : &six;
    bool good = true;

    if (names->n != sensor->n) {
        if (!step->bands.is_partial)
            (void)pb_builder_wrong(b,
                                   step->bands.n > 0 ? (const void *)&step->bands : &step->sensor,
                                   "this sensor has %zu bands here, in this order: %s; 'bands' "
                                   "names %zu",
                                   sensor->n, sensor->bands, step->bands.n);
        return false;
    }
    for (size_t i = 0; i < names->n; i++) {
        if (names == &six && pb_builder_find(b, usual[i]) == -1) {
            (void)pb_builder_wrong(b, &step->sensor,
                                   "there is no band '%s'; name the scene's in 'bands', in this "
                                   "order: %s",
                                   usual[i], sensor->bands);
            return false;
        }
        out[i] = pb_band_list_at(names, b, i).value;
        good = good && out[i] != PB_VALUE_POISON && out[i] >= 0;
    }
    return good;
}

static pb_value weighted(struct pb_builder *b, const double *weight, const pb_value *band, size_t n)
{
    pb_value sum = -1;

    for (size_t i = 0; i < n; i++) {
        const pb_value part =
            pb_builder_emit(b, PB_VM_MUL, band[i], pb_builder_constant(b, (float)weight[i]), -1);

        sum = i == 0 ? part : pb_builder_emit(b, PB_VM_ADD, sum, part, -1);
    }
    return sum;
}

/* Which component an entry of `as` is of; COMPONENTS: a mistake was told. */
static size_t component_of(struct pb_builder *b, const struct pb_item *item)
{
    size_t c = 0;

    while (c < COMPONENTS && strcmp(item->text, components[c]) != 0)
        c++;
    if (c == COMPONENTS)
        (void)pb_builder_mistake(
            b, PB_DIAG_VALUE, item, 0,
            "'%.60s' is none of brightness, greenness and wetness; to give one "
            "of them a name write {NAME: brightness}",
            item->text);
    return c;
}

static int build(const void *params, struct pb_builder *b)
{
    const struct tasseled_cap *const step = params;
    pb_value band[BANDS_MAX] = {0}, made[COMPONENTS];
    const bool good = find_bands(step, b, band);
    int rc = 0;

    for (size_t c = 0; c < COMPONENTS; c++) /* before a band is replaced that is read */
        made[c] = good ? weighted(b, sensors[step->sensor].weight[c], band, sensors[step->sensor].n)
                       : PB_VALUE_POISON;
    for (size_t i = 0; i < step->as.n && rc == 0; i++) {
        const size_t c = component_of(b, &step->as.items[i]);

        rc = pb_builder_define(b, pb_item_band(&step->as.items[i]),
                               c < COMPONENTS ? made[c] : PB_VALUE_POISON);
    }
    return rc;
}

static const struct pb_op_case cases[] = {
    {"six bands",
     "wetness",
     true,
     {{"sensor", {{.text = "landsat-oli"}}},
      {"as", {{.text = "brightness"}, {.text = "greenness"}, {.text = "wetness"}}}}},
};

const struct pb_op pb_op_tasseled_cap = {
    .name = "tasseled_cap",
    .doc =
        {
            .summary = "makes brightness, greenness and wetness of a sensor's bands",
            .formula = "The sum of weight * band over the sensor's bands, in float32, in their "
                       "order.",
            .units = "Those of the bands, which are reflectance from 0 to 1.",
            .nodata = "A pixel is invalid where one of the bands is.",
            .source =
                "TM: E. P. Crist, Remote Sensing of Environment 17 (1985), 301-306. ETM+: C. Huang "
                "et al., International Journal of Remote Sensing 23 (2002), 1741-1748. OLI: M. H. "
                "A. Baig et al., Remote Sensing Letters 5 (2014), 423-431; at the surface Y. Zhai "
                "et al., Remote Sensing of Environment 274 (2022), 112992. Sentinel-2: T. Shi and "
                "H. Xu, IEEE JSTARS 12 (2019), 4038-4048; of thirteen bands R. Nedkov, Comptes "
                "rendus de l'Academie bulgare des sciences 70 (2017), 687-692. MODIS: S. E. Lobser "
                "and W. B. Cohen, International Journal of Remote Sensing 28 (2007), 5017-5038.",
            .notes =
                "The sensor is never guessed, because the weights of another one give numbers that "
                "look right.\n"
                "\n"
                "  sensor          reflectance        bands, in this order\n"
                "  landsat-tm      reflectance factor B, G, R, N, S1, S2 (1, 2, 3, 4, 5, 7)\n"
                "  landsat-etm     top of atmosphere  B, G, R, N, S1, S2 (1, 2, 3, 4, 5, 7)\n"
                "  landsat-oli     top of atmosphere  B, G, R, N, S1, S2 (2 to 7)\n"
                "  landsat-oli-sr  surface            B, G, R, N, S1, S2 (2 to 7)\n"
                "  sentinel2       top of atmosphere  B, G, R, N, S1, S2 (2, 3, 4, 8, 11, 12)\n"
                "  sentinel2-13    top of atmosphere  1 to 12, then 8A\n"
                "  modis           surface            1 to 7 (NBAR)\n"
                "\n"
                "All bands need one grid: bring those of 20 m onto it with the step resample.\n"
                "\n"
                "  - tasseled_cap: {sensor: landsat-oli, as: [brightness, wetness]}\n"
                "  - tasseled_cap: {sensor: modis, bands: [R, N, B, G, N2, S1, S2],\n"
                "                   as: {TCB: brightness, TCG: greenness, TCW: wetness}}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct tasseled_cap),
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
