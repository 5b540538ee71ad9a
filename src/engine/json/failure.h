/* engine/json/failure.h: an error, as JSON.
 *
 *     {"code":"PAWL_EINVAL","message":"expected an integer, not null","where":"$.records[0].fields.qty"}
 *
 * where is the place in the request, if the error's text begins with one: a path, or a line and a column. */
#ifndef ENGINE_JSON_FAILURE_H
#define ENGINE_JSON_FAILURE_H

#include "engine/json/out.h"

void json_failure(struct json_out *out, const pawl_error *error);

#endif
