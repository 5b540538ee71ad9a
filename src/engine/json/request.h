/* engine/json/request.h: a command as JSON. docs/API.md is the manual.
 *
 *     text ── json_request ──► request ── the partition's processor ──► event ── json_answer ──► text
 *
 * Only the form and the names are checked here. Whether a request makes sense is decided when it becomes an
 * event (core/command/build.h). The order of members does not change the request's digest. If an idempotency
 * key comes twice, the digest tells whether the command is the same. */
#ifndef ENGINE_JSON_REQUEST_H
#define ENGINE_JSON_REQUEST_H

#include <pawl/command.h>

#include "core/command/request.h"

#define REQUEST_JSON_BYTES_MAX PAWL_REQUEST_JSON_MAX
#define REQUEST_JSON_DEPTH_MAX ((size_t)2 * SCHEMA_DEPTH_MAX + 2) /* a level of children is two brackets */

/* Everything is copied into the arena, which on failure is as it was. Errors:
 *   PAWL_EINVAL      not JSON, not UTF-8, a member twice, too deep: "line 1, column 14: ..."; a member, field
 *                    or container that is unknown, missing, or of the wrong form:
 *                    "$.records[2].fields.qty: ..."
 *   PAWL_ENOTFOUND   there is no such command or type: "$.command: ..."
 *   PAWL_ETOOBIG     the text, or the number of objects
 *   PAWL_ENOMEM      jansson allocates by malloc, all else comes from the arena */
int json_request(pawl_bytes text, uint64_t wsid, const struct schema *schema, struct arena *arena,
                 struct request *ret_request, pawl_error *error);

/* Set an idempotency key that came beside the text, in a header for instance. It is borrowed as long as the
 * request is used. The text may have the same key. PAWL_EINVAL: the text has another one. */
int json_request_key(struct request *request, pawl_bytes key, pawl_error *error);

#endif
