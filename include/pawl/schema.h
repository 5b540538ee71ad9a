/* schema.h: what may be stored, said in JSON: docs/SCHEMA.md. */
#ifndef PAWL_SCHEMA_H
#define PAWL_SCHEMA_H

#include <pawl/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A package's schema, as JSON, has at most this many bytes. */
#define PAWL_SCHEMA_JSON_MAX ((size_t)4 << 20)

/* Apply a package's schema, in JSON. ret_position may be NULL; *ret_position is the position of the schema that
 * is in force now. Applying the same package again changes nothing. Errors: PAWL_EINVAL, with line and column,
 * or with the JSON path; also if the change would break stored data. */
PAWL_API int pawl_schema_apply(pawl_engine *engine, const char *json, uint64_t *ret_position,
                               pawl_error *error);

/* All packages, as JSON that could be applied again. */
PAWL_API int pawl_schema_show(pawl_engine *engine, pawl_text *ret_text, pawl_error *error);

/* The same, one package on a line. */
PAWL_API int pawl_schema_list(pawl_engine *engine, pawl_text *ret_text, pawl_error *error);

/* A lane of its projectors. Names are borrowed until visit returns. */
typedef struct pawl_schema_lane {
    pawl_bytes name;
    uint16_t id;
    uint32_t generation; /* the newest; 0: there is none of this lane yet */
    uint32_t serving;    /* the one that is read; 0: none */
    const pawl_bytes *projectors;
    size_t projector_count;
    const pawl_bytes *entities;
    size_t entity_count;
} pawl_schema_lane;

/* All lanes; return false to stop. How they are doing is pawl_lanes_read's to say. */
typedef bool (*pawl_schema_lane_visit)(void *arg, const pawl_schema_lane *lane);
PAWL_API int pawl_schema_lanes_read(pawl_engine *engine, pawl_schema_lane_visit visit, void *arg,
                                    pawl_error *error);

/* The same, one JSON object on a line:
 * {"lane":"shop.totals","id":1,"generation":2,"serving":1,
 * "projectors":["shop.totals"],"entities":["shop.CustomerTotal"]}. generation is the newest one, serving the
 * one that readers see; 0: none yet. */
PAWL_API int pawl_schema_lanes_list(pawl_engine *engine, pawl_text *ret_text, pawl_error *error);

#ifdef __cplusplus
}
#endif
#endif
