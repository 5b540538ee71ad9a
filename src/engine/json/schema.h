/* engine/json/schema.h: a package as JSON. docs/SCHEMA.md is the manual.
 *
 *     text ── schema_read ──► definition ── group0 ──► schema
 *     schema ── schema_package ──► definition ── schema_show ──► text
 *
 * What is shown can be read and applied again, and then changes nothing. */
#ifndef ENGINE_JSON_SCHEMA_H
#define ENGINE_JSON_SCHEMA_H

#include <pawl/schema.h>

#include "core/schema/definition.h"
#include "engine/json/out.h"

#define SCHEMA_JSON_BYTES_MAX PAWL_SCHEMA_JSON_MAX
#define SCHEMA_JSON_DEPTH_MAX 32

/* Everything is copied into the arena. Only the form is checked; group0 checks the meaning.
 * Errors: PAWL_EINVAL: not JSON, a member twice, too deep ("line 3, column 14: ..."); a member that is unknown,
 * missing or of the wrong form ("$.types.Order.fields.qty.type: ..."). PAWL_ETOOBIG, PAWL_ENOMEM. */
int schema_read(pawl_bytes text, struct arena *arena, struct definition *ret_definition, pawl_error *error);

/* Indented, ending in a newline, in the arena. PAWL_ENOMEM. */
int schema_show(const struct definition *definition, struct arena *arena, pawl_bytes *ret_text);

/* The same on one line. */
int schema_show_line(const struct definition *definition, struct arena *arena, pawl_bytes *ret_text);

/* Its lanes: {"lane":"shop.totals","id":1,"generation":2,"serving":1,"projectors":[...],"entities":[...]}, one
 * on a line. */
void schema_lanes_show(const struct schema *schema, struct json_out *out);

/* schema_views.c: a view that was made at run time:
 * {"view":"shop.by_customer","base":"shop.Invoice","key":[...],"include":[...],"filter":"...","unique":true},
 * on a line. name, base: qualified. */
void schema_view_show(pawl_bytes name, pawl_bytes base, const struct definition_view *view,
                      struct json_out *out);

#endif
