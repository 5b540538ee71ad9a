/* engine/json/failure.h: what went wrong, as JSON.
 *
 *     {"code":"PAWL_EINVAL","message":"expected an integer, not null","where":"$.records[0].fields.qty"}
 *
 * where is the place in what was said, if the words begin with one: a path, or a line and a column. */
#ifndef ENGINE_JSON_FAILURE_H
#define ENGINE_JSON_FAILURE_H

#include "engine/json/out.h"

void json_failure(struct json_out *out, const pawl_error *error);

#endif
