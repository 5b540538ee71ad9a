/* schema.h: what may be stored, said in JSON: docs/SCHEMA.md. */
#ifndef PAWL_SCHEMA_H
#define PAWL_SCHEMA_H

#include <pawl/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Apply a package's schema, in JSON. ret_position may be NULL; *ret_position is the position of the schema that
 * is in force now. Applying the same package again changes nothing. Errors: PAWL_EINVAL, with line and column,
 * or with the JSON path; also if the change would break stored data. */
PAWL_API int pawl_schema_apply(pawl_engine *engine, const char *json, uint64_t *ret_position,
                               pawl_error *error);

/* All packages, as JSON that could be applied again. */
PAWL_API int pawl_schema_show(pawl_engine *engine, pawl_text *ret_text, pawl_error *error);

/* The lanes of its projectors, one JSON object on a line:
 * {"lane":"shop.totals","id":1,"generation":2,"serving":1,
 * "projectors":["shop.totals"],"entities":["shop.CustomerTotal"]}. generation is the newest one, serving the
 * one that readers see; 0: none yet. */
PAWL_API int pawl_schema_lanes(pawl_engine *engine, pawl_text *ret_text, pawl_error *error);

#ifdef __cplusplus
}
#endif
#endif
