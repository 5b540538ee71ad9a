/* engine/json/results.h: what a worker or a handler made of an event, as JSON. docs/API.md is the manual.
 *
 *     {"writes": [{"upsert": "shop.Total", "key": {"customer": 7}, "set": {"orders": {"expr": "orders + 1"}}},
 *                 {"update": "shop.Total", "where": "cents > 100", "set": {"tier": "gold"}},
 *                 {"delete": "shop.Total", "key": [7]}]}
 *
 * The form is judged here, and whether values are of their fields' types; the rest by whoever takes the
 * results. */
#ifndef ENGINE_JSON_RESULTS_H
#define ENGINE_JSON_RESULTS_H

#include <pawl/pawl.h>

#include "core/schema/schema.h"

#define RESULTS_JSON_BYTES_MAX ((size_t)64 << 20)
#define RESULTS_JSON_DEPTH_MAX 5

/* Added to the results, write after write; on failure some of it may have been. Errors: PAWL_EINVAL ("line 1,
 * column 14: ...", "$.writes[2].set.qty: ..."); PAWL_ETOOBIG, PAWL_ENOMEM. */
int json_results_read(const char *json, size_t size, pawl_results *results, pawl_error *error);

/* What reading asks of the results besides the public calls: the schema they are made under, the entity of the
 * write begun last, and why the last call failed. */
const struct schema *results_schema(pawl_results *results);
const struct schema_type *results_entity(pawl_results *results);
const pawl_error *results_error(pawl_results *results);

#endif
