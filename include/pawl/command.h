/* command.h: a command to a workspace, and what has become of it.
 *
 *     pawl_request_begin ──► argument, records, fields ──► pawl_command ──► the answer: offsets, IDs, numbers
 *
 * A request is put together step by step, or comes as JSON (docs/API.md). The same request can be used for any
 * number of commands, one after the other, and then allocates nothing.
 *
 * Errors of a request. The calls that put it together return their status, and nobody has to look at it: the
 * request keeps the first error, with the place in words ("$.records[0].fields.qty: ..."), and adds nothing
 * more. The command then ends with that error, and nothing is sent. So any number of calls needs one check,
 * that of pawl_command. The next beginning clears it. */
#ifndef PAWL_COMMAND_H
#define PAWL_COMMAND_H

#include <pawl/event.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pawl_request pawl_request;

/* What a command has become. */
typedef struct pawl_answer {
    uint16_t partition;
    uint64_t offset;           /* of the event, in its partition */
    uint64_t workspace_offset; /* and in its workspace */
    bool repeated;             /* the idempotency key was used before: this is the answer of then */
} pawl_answer;

/* An empty request, for any number of commands one after the other. */
PAWL_API int pawl_request_new(pawl_engine *engine, pawl_request **ret_request);
PAWL_API void pawl_request_free(pawl_request *request);

/* Begin anew: a command to a workspace. An error that was kept is gone. Errors: PAWL_ENOTFOUND (there is no
 * such command). */
PAWL_API int pawl_request_begin(pawl_request *request, uint64_t wsid, const char *command);

/* The same, all of it, from JSON: docs/API.md. Errors: PAWL_EINVAL, PAWL_ENOTFOUND, PAWL_ETOOBIG (above
 * PAWL_REQUEST_JSON_MAX bytes, or too many objects), with the path. */
#define PAWL_REQUEST_JSON_MAX ((size_t)64 << 20)
PAWL_API int pawl_request_json(pawl_request *request, uint64_t wsid, pawl_bytes json);

/* The error that the request keeps; its code is PAWL_OK if there is none. Borrowed until the next call with the
 * request. */
PAWL_API const pawl_error *pawl_request_error(const pawl_request *request);

/* The command's argument; a child of an argument that was added before; a record to create (id is raw: 1 to
 * 65535) or to change (any other). Fields that are set afterwards are its own. The argument comes before all
 * records. Errors: PAWL_ENOTFOUND (no such type, container), PAWL_EINVAL, PAWL_ETOOBIG (more than 65535). */
PAWL_API int pawl_request_argument(pawl_request *request, uint64_t id);
PAWL_API int pawl_request_child(pawl_request *request, uint64_t parent, const char *container, uint64_t id);
PAWL_API int pawl_request_record(pawl_request *request, uint64_t id, const char *type);

/* Of the record that was added last: whose child it is, and whether it is active. The parent is a record of
 * this command or, but for an ORecord, a stored one. */
PAWL_API int pawl_request_parent(pawl_request *request, uint64_t parent, const char *container);
PAWL_API int pawl_request_active(pawl_request *request, bool active);

/* Set a field of what was added last. set_text: a string, too: one that does not end in a 0. Errors:
 * PAWL_ENOTFOUND (no such field), PAWL_EEXISTS (it was set), PAWL_EINVAL (of another type). */
PAWL_API int pawl_request_set_int64(pawl_request *request, const char *field, int64_t value);
PAWL_API int pawl_request_set_float64(pawl_request *request, const char *field, double value);
PAWL_API int pawl_request_set_bool(pawl_request *request, const char *field, bool value);
PAWL_API int pawl_request_set_string(pawl_request *request, const char *field, const char *value);
PAWL_API int pawl_request_set_text(pawl_request *request, const char *field, pawl_bytes value);
PAWL_API int pawl_request_set_bytes(pawl_request *request, const char *field, pawl_bytes value);
PAWL_API int pawl_request_set_time(pawl_request *request, const char *field, pawl_wall value);
PAWL_API int pawl_request_set_name(pawl_request *request, const char *field, const char *qname);
PAWL_API int pawl_request_set_ref(pawl_request *request, const char *field, uint64_t id);
PAWL_API int pawl_request_set_null(pawl_request *request, const char *field);

/* The command is refused (PAWL_ECONFLICT) unless the workspace's last offset is this one. */
PAWL_API void pawl_request_expect(pawl_request *request, uint64_t workspace_offset);

/* A key that makes the command safe to repeat: within the workspace's last 1,024 events the same key and body
 * give the answer of the first time, and the same key with another body PAWL_ECONFLICT. The others are kept
 * with the event. At most 255 bytes each; NULL: none. A command that has a key keeps it: PAWL_EINVAL for
 * another one, until it is taken away by NULL. */
PAWL_API int pawl_request_key(pawl_request *request, const char *key);
PAWL_API int pawl_request_actor(pawl_request *request, const char *actor);
PAWL_API int pawl_request_correlation(pawl_request *request, const char *correlation);
PAWL_API int pawl_request_causation(pawl_request *request, const char *causation);

/* When an answer comes: once the event's changes can be read, or as soon as the event is durable. */
typedef enum pawl_ack { PAWL_ACK_APPLIED, PAWL_ACK_DURABLE } pawl_ack;
PAWL_API void pawl_request_ack(pawl_request *request, pawl_ack ack);

/* Send it, and wait for the answer.
 * Errors: the one that the request has kept; PAWL_EINVAL, PAWL_ENOTFOUND, PAWL_EEXISTS, PAWL_ETOOBIG (the
 * request does not make sense; error names the path), PAWL_ECONFLICT (an expectation, or a key),
 * PAWL_EEXHAUSTED (a sequence has ended), PAWL_EBUSY (too much is waiting, or the partition is recovering or
 * has no room: try again), PAWL_EFULL (no space left), PAWL_EIO (it was not written), PAWL_EUNKNOWN (the engine
 * was closed before it was known, or the log cannot be asked for so long, or the event is in the log and the
 * state has had no room for it; ask again with the same key). */
PAWL_API int pawl_command(pawl_engine *engine, pawl_request *request, pawl_answer *ret_answer,
                          pawl_error *error);

/* The same without waiting: done is called once, on a thread of Pawl's, and must not block; the request is the
 * caller's again from then on, and may be sent again from inside. If the call itself fails, error says why, and
 * done is not called. Errors of the call: the one that the request has kept; PAWL_EBUSY (too much is waiting),
 * PAWL_ECLOSED, PAWL_EREADONLY, PAWL_EINVAL (done is NULL). */
typedef void (*pawl_command_done)(void *arg, pawl_request *request, int status, const pawl_answer *answer,
                                  const pawl_error *error);
PAWL_API int pawl_command_async(pawl_engine *engine, pawl_request *request, pawl_command_done done, void *arg,
                                pawl_error *error);

/* After an answer: the ID that a raw one became, 0 if there was none; the event that answers, with the IDs and
 * numbers that it was given, borrowed until the next call with the request; the whole answer as JSON. All three
 * may be called from inside done. Errors: PAWL_EMISUSE (there is no answer), PAWL_ENOMEM, PAWL_ECORRUPT. */
PAWL_API uint64_t pawl_request_id(const pawl_request *request, uint64_t raw);
PAWL_API int pawl_request_event(pawl_request *request, const pawl_event **ret_event, pawl_error *error);
PAWL_API int pawl_request_answer_json(const pawl_request *request, pawl_text *ret_text, pawl_error *error);

/* Create a workspace of a kind, by an event; the request begins anew for it. Errors: as pawl_command;
 * PAWL_EEXISTS. */
PAWL_API int pawl_workspace_create(pawl_engine *engine, pawl_request *request, uint64_t wsid, const char *kind,
                                   pawl_answer *ret_answer, pawl_error *error);

#ifdef __cplusplus
}
#endif
#endif
