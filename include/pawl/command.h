/* command.h: a command to a workspace, and its answer.
 *
 *     pawl_request_begin ──► argument, records, fields ──► pawl_command ──► the answer: offsets, IDs, numbers
 *
 * A request is put together step by step, or comes as JSON (docs/API.md). The same request can be used for any
 * number of commands, one after the other, and then allocates nothing.
 *
 * Errors of a request. The calls that put it together return a status, but you need not check it: the request
 * keeps the first error, with the place in words ("$.records[0].fields.qty: ..."), and adds nothing more. The
 * command then ends with that error, and nothing is sent. So any number of calls needs one check, that of
 * pawl_command. pawl_request_begin clears the error. */
#ifndef PAWL_COMMAND_H
#define PAWL_COMMAND_H

#include <pawl/event.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pawl_request pawl_request;

/* Which event a command has become. */
typedef struct pawl_answer {
    uint16_t partition;
    uint64_t offset;           /* of the event, in its partition */
    uint64_t workspace_offset; /* and in its workspace */
    bool repeated; /* the idempotency key was used before: this is the answer to the first command */
} pawl_answer;

/* An empty request, for any number of commands one after the other. */
PAWL_API int pawl_request_new(pawl_engine *engine, pawl_request **ret_request);
PAWL_API void pawl_request_free(pawl_request *request);

/* Empty the request, and begin a command to a workspace. Clears the error that was kept. Errors: PAWL_ENOTFOUND
 * (there is no such command). */
PAWL_API int pawl_request_begin(pawl_request *request, uint64_t wsid, const char *command);

/* Empty the request, and read a whole command from JSON: docs/API.md. Errors: PAWL_EINVAL, PAWL_ENOTFOUND,
 * PAWL_ETOOBIG (above PAWL_REQUEST_JSON_MAX bytes, or too many objects), with the path. */
#define PAWL_REQUEST_JSON_MAX ((size_t)64 << 20)
PAWL_API int pawl_request_json(pawl_request *request, uint64_t wsid, pawl_bytes json);

/* The error that the request keeps; its code is PAWL_OK if there is none. Borrowed until the next call with the
 * request. */
PAWL_API const pawl_error *pawl_request_error(const pawl_request *request);

/* Add the command's argument; a child of an object of the argument; a record to create (id is raw: 1 to 65535)
 * or to change (any other id). Fields that are set afterwards belong to what was added last. Add the argument
 * before all records. Errors: PAWL_ENOTFOUND (no such type, container), PAWL_EINVAL, PAWL_ETOOBIG (more than
 * 65535). */
PAWL_API int pawl_request_argument(pawl_request *request, uint64_t id);
PAWL_API int pawl_request_child(pawl_request *request, uint64_t parent, const char *container, uint64_t id);
PAWL_API int pawl_request_record(pawl_request *request, uint64_t id, const char *type);

/* Say of the record that was added last whose child it is, and whether it is active. The parent is a record of
 * this command, or a stored record. The parent of an ORecord must be a record of this command. */
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

/* key: an idempotency key makes the command safe to repeat. Within the workspace's last 1,024 events, the same
 * key with the same body gives the first answer again, and the same key with another body is PAWL_ECONFLICT. A
 * command that has a key keeps it: another key is PAWL_EINVAL, until NULL takes the first one away. actor,
 * correlation and causation are kept with the event. At most 255 bytes each; NULL: none. */
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
 * has no room: try again), PAWL_EFULL (no space left), PAWL_EIO (it was not written), PAWL_EUNKNOWN (it may
 * have taken effect: the engine was closed, or the log could not be asked in time, or the event is in the log
 * but the state had no room for it; send the command again with the same key to find out). */
PAWL_API int pawl_command(pawl_engine *engine, pawl_request *request, pawl_answer *ret_answer,
                          pawl_error *error);

/* The same without waiting. done is called once, on one of Pawl's threads, and must not block. From then on the
 * request is the caller's again; done itself may send it again. If the call itself fails, error says why, and
 * done is not called. Errors of the call: the one that the request has kept; PAWL_EBUSY (too much is waiting),
 * PAWL_ECLOSED, PAWL_EREADONLY, PAWL_EINVAL (done is NULL). */
typedef void (*pawl_command_done)(void *arg, pawl_request *request, int status, const pawl_answer *answer,
                                  const pawl_error *error);
PAWL_API int pawl_command_async(pawl_engine *engine, pawl_request *request, pawl_command_done done, void *arg,
                                pawl_error *error);

/* After an answer: the ID that was given for a raw ID, 0 if the command had no such raw ID; the event that
 * answers, with its IDs and numbers, borrowed until the next call with the request; the whole answer as JSON. All
 * three may be called from inside done. Errors: PAWL_EMISUSE (there is no answer), PAWL_ENOMEM, PAWL_ECORRUPT. */
PAWL_API uint64_t pawl_request_id(const pawl_request *request, uint64_t raw);
PAWL_API int pawl_request_event(pawl_request *request, const pawl_event **ret_event, pawl_error *error);
PAWL_API int pawl_request_answer_json(const pawl_request *request, pawl_text *ret_text, pawl_error *error);

/* Create a workspace of a kind. This is an event too; the request is emptied and used for it. Errors: as
 * pawl_command; PAWL_EEXISTS. */
PAWL_API int pawl_workspace_create(pawl_engine *engine, pawl_request *request, uint64_t wsid, const char *kind,
                                   pawl_answer *ret_answer, pawl_error *error);

/* Freeze a workspace, or thaw it. A frozen one refuses commands with PAWL_EREADONLY, from the answer to this call on;
 * a command with a key that it has already answered gets that answer. It is read as before, and lanes go on with
 * the events that it has. This is an event of the workspace (sys.FreezeWorkspace, sys.ThawWorkspace), so it lasts, and
 * is in backups; the request is emptied and used for it. If it is so already, nothing is written, and offset and
 * workspace_offset of the answer are 0. Errors: as pawl_command; PAWL_ENOTFOUND. */
PAWL_API int pawl_workspace_freeze(pawl_engine *engine, pawl_request *request, uint64_t wsid, bool frozen,
                                   pawl_answer *ret_answer, pawl_error *error);

#ifdef __cplusplus
}
#endif
#endif
