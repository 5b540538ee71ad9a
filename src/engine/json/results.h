/* engine/json/results.h: the results of a worker or a handler, as JSON. docs/API.md is the manual.
 *
 *     {"writes": [{"upsert": "shop.Total", "key": {"customer": 7}, "set": {"orders": {"expr": "orders + 1"}}},
 *                 {"update": "shop.Total", "where": "cents > 100", "set": {"tier": "gold"}},
 *                 {"delete": "shop.Total", "key": [7]}]}
 *
 * The form and the types of values are checked here; engine/lanes/results.c checks the rest. */
#ifndef ENGINE_JSON_RESULTS_H
#define ENGINE_JSON_RESULTS_H

#include <pawl/pawl.h>

#include "core/schema/schema.h"

#define RESULTS_JSON_BYTES_MAX ((size_t)64 << 20)
#define RESULTS_JSON_DEPTH_MAX 5

/* Add the writes to the results, one after the other; on failure some may have been added. Errors: PAWL_EINVAL
 * ("line 1, column 14: ...", "$.writes[2].set.qty: ..."); PAWL_ETOOBIG, PAWL_ENOMEM. */
int json_results_read(const char *json, size_t size, pawl_results *results, pawl_error *error);

/* engine/lanes/results.c has these, for reading: the schema of the results, the entity of the write that was
 * begun last, and the error of the last call. */
const struct schema *results_schema(pawl_results *results);
const struct schema_type *results_entity(pawl_results *results);
const pawl_error *results_error(pawl_results *results);

#endif
