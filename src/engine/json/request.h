/* engine/json/request.h: a command as JSON. docs/API.md is the manual.
 *
 *     text ── json_request ──► request ── the partition's processor ──► event ── json_answer ──► text
 *
 * Only the form is judged here, and which names there are: whether a request makes sense is decided when it
 * becomes an event (core/command/build.h). Members may come in any order: whichever it was, the request's
 * digest is the same, by which a repeated key is told from a stolen one. */
#ifndef ENGINE_JSON_REQUEST_H
#define ENGINE_JSON_REQUEST_H

#include <pawl/command.h>

#include "core/command/request.h"

#define REQUEST_JSON_BYTES_MAX PAWL_REQUEST_JSON_MAX
#define REQUEST_JSON_DEPTH_MAX ((size_t)2 * SCHEMA_DEPTH_MAX + 2) /* a level of children is two brackets */

/* Everything is copied into the arena, which on failure is as it was. Errors:
 *   PAWL_EINVAL      not JSON, not UTF-8, a member twice, too deep: "line 1, column 14: ..."; a member, field
 *                    or container that is unknown, missing, or of the wrong form: "$.records[2].fields.qty: ..."
 *   PAWL_ENOTFOUND   there is no such command or type: "$.command: ..."
 *   PAWL_ETOOBIG     the text, or the number of objects
 *   PAWL_ENOMEM      jansson allocates by malloc, all else comes from the arena */
int json_request(pawl_bytes text, uint64_t wsid, const struct schema *schema, struct arena *arena,
                 struct request *ret_request, pawl_error *error);

/* A key of idempotency that came beside the text, as a header does; borrowed for as long as the request is
 * used. The same key in both places is fine. PAWL_EINVAL: the text has another one. */
int json_request_key(struct request *request, pawl_bytes key, pawl_error *error);

#endif
