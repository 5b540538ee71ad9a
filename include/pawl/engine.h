/* engine.h: an event store in a directory.
 *
 * You describe your data in a schema (docs/SCHEMA.md), create workspaces (tenants), and send commands to them.
 * Each command becomes one event: numbered without gaps, durable before you get the answer, and applied to the
 * records that you read. Everything but the log of events is derived from it and can be derived again.
 *
 *     request ──► pawl_command ──► event in the log ──► records, entities ──► answer: offsets, IDs, numbers
 *
 *     pawl_engine *engine;
 *     pawl_request *request;
 *     pawl_answer answer;
 *     pawl_open("shop.pawl", NULL, &engine, &error);
 *     pawl_schema_apply(engine, schema_json, NULL, &error);
 *     pawl_request_new(engine, &request);
 *     pawl_workspace_create(engine, request, 7, "shop.tenant", &answer, &error);
 *     pawl_request_begin(request, 7, "shop.AddCustomer", &error);
 *     pawl_request_record(request, 1, "shop.Customer", &error);
 *     pawl_request_set_string(request, "name", "Ada", &error);
 *     pawl_command(engine, request, &answer, &error);
 *     printf("%llu\n", pawl_request_id(request, 1));
 *
 * Threads. An engine's functions are for any thread that is not one of Pawl's own; calling them from inside a
 * callback is PAWL_EMISUSE, save pawl_command_async. A request is used by one thread at a time, and belongs to
 * Pawl while a command with it is under way. Several engines may live in one process, on different directories.
 * After fork the child must not use an engine of the parent's, not even to close it.
 *
 * Ownership. Strings that are passed in are copied. What a callback is handed is borrowed until it returns. A
 * pawl_text is yours: pawl_text_free.
 *
 * Errors. Every function that can fail says so by its status, and in words in error, which may be NULL. A
 * refused command has written nothing and used no number. The words name the place in the request:
 * "$.records[0].fields.qty".
 *
 * Any function may end with PAWL_ENOMEM, PAWL_EMISUSE (as above), PAWL_ECLOSED (close has begun). */
#ifndef PAWL_ENGINE_H
#define PAWL_ENGINE_H

#include <pawl/lease.h>
#include <pawl/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pawl_engine pawl_engine;

/* Zero means the default, of everything. */
typedef struct pawl_options {
    uint32_t partitions;   /* of a new directory: 16; a power of two, at most 65536 */
    uint32_t shards;       /* of a new directory: 2; at most 64, and at most partitions */
    bool must_exist;       /* PAWL_ENOTFOUND instead of making a new directory */
    bool read_only;        /* only read, beside the process that writes or without one: as far as that has come.
                              Implies must_exist; whatever would write is PAWL_EREADONLY. What is left out
                              after a process that was killed, pawl_unwitnessed counts */
    uint32_t pool_threads; /* 2 */
    uint32_t mailbox;      /* 8192 commands waiting for a shard; a power of two. Then PAWL_EBUSY. */
    size_t event_bytes_max; /* 1 MiB; at most 64 MiB */
    pawl_duration wait; /* 10 s: how long a command waits for a partition that is recovering, or has no room */
    uint64_t
        checkpoint_lag_max; /* 1,000,000 events of a shard that the loss of power may cost a replay of. Where
                               the checkpoint cannot keep up, commands wait for it, and after wait PAWL_EBUSY */

    /* Of lanes: pawl/project.h. */
    pawl_duration max_run;        /* 10 minutes: after that a handler's lease is no longer extended */
    pawl_duration lease_first;    /* 30 s: before it is known how long the work takes; at most 10 minutes */
    pawl_duration lease_min;      /* 1 s; the same */
    pawl_duration backoff_min;    /* 100 ms after the first failure, then twice that, up to a minute */
    pawl_lease_thresholds alerts; /* what is alarming about a lane, in all its partitions together; zeros: as
                                     pawl/lease.h says */
    const pawl_allocator *allocator;
} pawl_options;

/* Open a directory, make it if it is not there, bring the state up to the log, and be ready for commands.
 * Errors: PAWL_EINVAL (options), PAWL_ELOCKED (another process has it), PAWL_ECORRUPT (the log, or a state that
 * is not of this log; error names the place), PAWL_EFORMAT, PAWL_EVERSION, PAWL_EACCES, PAWL_EFULL, PAWL_EIO.
 */
PAWL_API int pawl_open(const char *dir, const pawl_options *options, pawl_engine **ret_engine,
                       pawl_error *error);

/* Answer what is under way, put everything away, free. Requests are freed before. NULL is allowed.
 * Errors: PAWL_EMISUSE from a thread of Pawl's: nothing happened. Any other, such as PAWL_EIO: it is closed,
 * and the next opening will have a little more to do. */
PAWL_API int pawl_close(pawl_engine *engine);

/* Text that a function made. data ends with a zero that size does not count. */
typedef struct pawl_text {
    char *data;
    size_t size;
    size_t room;
    const pawl_allocator *allocator;
} pawl_text;

PAWL_API void pawl_text_free(pawl_text *text);

/* --- schema --- */

/* Apply a package's schema, in JSON. ret_position, which may be NULL, gets the position of the schema that is
 * now in force; applying what is so already changes nothing. Errors: PAWL_EINVAL, with line and column, or with
 * the JSON path: also when the change would break what is stored. */
PAWL_API int pawl_schema_apply(pawl_engine *engine, const char *json, uint64_t *ret_position,
                               pawl_error *error);

/* All packages, as JSON that could be applied again. */
PAWL_API int pawl_schema_show(pawl_engine *engine, pawl_text *ret_text, pawl_error *error);

/* The lanes of its projectors, one JSON object on a line:
 * {"lane":"shop.totals","id":1,"generation":2,"serving":1,
 * "projectors":["shop.totals"],"entities":["shop.CustomerTotal"]}. generation is the newest, serving the one
 * that is read; 0: none of this lane yet. */
PAWL_API int pawl_schema_lanes(pawl_engine *engine, pawl_text *ret_text, pawl_error *error);

/* --- commands --- */

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

/* Begin anew: a command to a workspace. Errors: PAWL_ENOTFOUND (there is no such command). */
PAWL_API int pawl_request_begin(pawl_request *request, uint64_t wsid, const char *command, pawl_error *error);

/* The same, all of it, from JSON: docs/API.md. Errors: PAWL_EINVAL, PAWL_ENOTFOUND, PAWL_ETOOBIG, with the
 * path. */
PAWL_API int pawl_request_json(pawl_request *request, uint64_t wsid, pawl_bytes json, pawl_error *error);

/* The command's argument; a child of an argument that was added before; a record to create (id is raw: 1 to
 * 65535) or to change (any other). Fields that are set afterwards are its own. The argument comes before all
 * records. Errors: PAWL_ENOTFOUND (no such type, container), PAWL_EINVAL, PAWL_ETOOBIG (more than 65535). */
PAWL_API int pawl_request_argument(pawl_request *request, uint64_t id, pawl_error *error);
PAWL_API int pawl_request_child(pawl_request *request, uint64_t parent, const char *container, uint64_t id,
                                pawl_error *error);
PAWL_API int pawl_request_record(pawl_request *request, uint64_t id, const char *type, pawl_error *error);

/* Of the record that was added last: whose child it is, and whether it is active. The parent is a record of
 * this command or, but for an ORecord, a stored one. */
PAWL_API int pawl_request_parent(pawl_request *request, uint64_t parent, const char *container,
                                 pawl_error *error);
PAWL_API int pawl_request_active(pawl_request *request, bool active, pawl_error *error);

/* Set a field of what was added last. Errors: PAWL_ENOTFOUND (no such field), PAWL_EEXISTS (it was set),
 * PAWL_EINVAL (of another type). */
PAWL_API int pawl_request_set_int64(pawl_request *request, const char *field, int64_t value, pawl_error *error);
PAWL_API int pawl_request_set_float64(pawl_request *request, const char *field, double value,
                                      pawl_error *error);
PAWL_API int pawl_request_set_bool(pawl_request *request, const char *field, bool value, pawl_error *error);
PAWL_API int pawl_request_set_string(pawl_request *request, const char *field, const char *value,
                                     pawl_error *error);
PAWL_API int pawl_request_set_bytes(pawl_request *request, const char *field, pawl_bytes value,
                                    pawl_error *error);
PAWL_API int pawl_request_set_time(pawl_request *request, const char *field, pawl_wall value,
                                   pawl_error *error);
PAWL_API int pawl_request_set_name(pawl_request *request, const char *field, const char *qname,
                                   pawl_error *error);
PAWL_API int pawl_request_set_ref(pawl_request *request, const char *field, uint64_t id, pawl_error *error);
PAWL_API int pawl_request_set_null(pawl_request *request, const char *field, pawl_error *error);

/* The command is refused (PAWL_ECONFLICT) unless the workspace's last offset is this one. */
PAWL_API void pawl_request_expect(pawl_request *request, uint64_t workspace_offset);

/* A key that makes the command safe to repeat: within the workspace's last 1,024 events the same key and body
 * give the answer of the first time, and the same key with another body PAWL_ECONFLICT. The others are kept
 * with the event. At most 255 bytes each; NULL: none. A command that has a key keeps it: PAWL_EINVAL for
 * another one, until it is taken away by NULL. */
PAWL_API int pawl_request_key(pawl_request *request, const char *key, pawl_error *error);
PAWL_API int pawl_request_actor(pawl_request *request, const char *actor, pawl_error *error);
PAWL_API int pawl_request_correlation(pawl_request *request, const char *correlation, pawl_error *error);
PAWL_API int pawl_request_causation(pawl_request *request, const char *causation, pawl_error *error);

/* When an answer comes: once the event's changes can be read, or as soon as the event is durable. */
typedef enum pawl_ack { PAWL_ACK_APPLIED, PAWL_ACK_DURABLE } pawl_ack;
PAWL_API void pawl_request_ack(pawl_request *request, pawl_ack ack);

/* Send it, and wait for the answer.
 * Errors: PAWL_EINVAL, PAWL_ENOTFOUND, PAWL_EEXISTS, PAWL_ETOOBIG (the request does not make sense; error names
 * the path), PAWL_ECONFLICT (an expectation, or a key), PAWL_EEXHAUSTED (a sequence has ended), PAWL_EBUSY (too
 * much is waiting, or the partition is recovering or has no room: try again), PAWL_EFULL (no space left),
 * PAWL_EIO (it was not written), PAWL_EUNKNOWN (the engine was closed before it was known, or the log cannot be
 * asked for so long, or the event is in the log and the state has had no room for it; ask again with the same
 * key). */
PAWL_API int pawl_command(pawl_engine *engine, pawl_request *request, pawl_answer *ret_answer,
                          pawl_error *error);

/* The same without waiting: done is called once, on a thread of Pawl's, and must not block; the request is the
 * caller's again from then on, and may be sent again from inside. If the call itself fails, done is not called.
 */
typedef void (*pawl_command_done)(void *arg, pawl_request *request, int status, const pawl_answer *answer,
                                  const pawl_error *error);
PAWL_API int pawl_command_async(pawl_engine *engine, pawl_request *request, pawl_command_done done, void *arg);

/* After an answer: the ID that a raw one became, 0 if there was none; the whole answer as JSON. */
PAWL_API uint64_t pawl_request_id(const pawl_request *request, uint64_t raw);
PAWL_API int pawl_request_answer_json(const pawl_request *request, pawl_text *ret_text, pawl_error *error);

/* Create a workspace of a kind, by an event; request is used for it. Errors: as pawl_command; PAWL_EEXISTS. */
PAWL_API int pawl_workspace_create(pawl_engine *engine, pawl_request *request, uint64_t wsid, const char *kind,
                                   pawl_answer *ret_answer, pawl_error *error);

/* --- reading --- */

/* Any read may give, besides what it says itself, PAWL_EBUSY (as many snapshots are held as the store gives
 * out, 126 of a shard: try again), PAWL_ENOMEM, PAWL_EIO or PAWL_ECORRUPT.
 *
 * Which state a read sees: at least that of min_offset of the partition (0: whatever is applied now), waiting
 * up to timeout for it (0: 10 s). NULL is allowed in place of it. */
typedef struct pawl_read_options {
    uint64_t min_offset;
    pawl_duration timeout;
} pawl_read_options;

/* One record, as JSON. type: its qualified name, or NULL: any. O documents are found in their events.
 * Errors: PAWL_ENOTFOUND, PAWL_ETIMEOUT. */
PAWL_API int pawl_record_get(pawl_engine *engine, uint64_t wsid, const char *type, uint64_t id,
                             const pawl_read_options *options, pawl_text *ret_text, pawl_error *error);

/* One record without a copy: visit is called on this thread, with a record that is borrowed until it returns,
 * and must not take long: what it looks at keeps the store from reusing its pages. type is the record's, which
 * has a table. Errors: as pawl_record_get. */
typedef struct pawl_record pawl_record;
typedef void (*pawl_record_visit)(void *arg, const pawl_record *record);
PAWL_API int pawl_record_read(pawl_engine *engine, uint64_t wsid, const char *type, uint64_t id,
                              const pawl_read_options *options, pawl_record_visit visit, void *arg,
                              pawl_error *error);

PAWL_API uint64_t pawl_record_id(const pawl_record *record);
PAWL_API uint64_t pawl_record_parent(const pawl_record *record); /* 0: none */
PAWL_API bool pawl_record_active(const pawl_record *record);

/* A field. PAWL_ENOTFOUND: the type has no such field. PAWL_EINVAL: it is of another type. PAWL_ECORRUPT: what
 * is stored is no such value. *ret_null, which may be NULL, tells whether the field is null; then the value is
 * 0 or empty. A ref is its ID. */
PAWL_API int pawl_record_int64(const pawl_record *record, const char *field, int64_t *ret_value,
                               bool *ret_null);
PAWL_API int pawl_record_float64(const pawl_record *record, const char *field, double *ret_value,
                                 bool *ret_null);
PAWL_API int pawl_record_bool(const pawl_record *record, const char *field, bool *ret_value, bool *ret_null);
PAWL_API int pawl_record_string(const pawl_record *record, const char *field, pawl_bytes *ret_value,
                                bool *ret_null);
PAWL_API int pawl_record_bytes(const pawl_record *record, const char *field, pawl_bytes *ret_value,
                               bool *ret_null);
PAWL_API int pawl_record_time(const pawl_record *record, const char *field, pawl_wall *ret_value,
                              bool *ret_null);
PAWL_API int pawl_record_ref(const pawl_record *record, const char *field, uint64_t *ret_value, bool *ret_null);

/* Records of a type with IDs above after, ascending, one JSON line each, at most limit. */
PAWL_API int pawl_record_list(pawl_engine *engine, uint64_t wsid, const char *type, uint64_t after,
                              size_t limit, const pawl_read_options *options, pawl_text *ret_text,
                              pawl_error *error);

/* One row of an entity, as JSON. key is JSON too: an object with the fields of its key, or an array of their
 * values in the key's order. min_offset is about the entity's own tables: those that a lane fills may be behind
 * the partition. Errors: PAWL_ENOTFOUND, PAWL_EINVAL (the key), PAWL_ETIMEOUT. */
PAWL_API int pawl_entity_get(pawl_engine *engine, uint64_t wsid, const char *entity, pawl_bytes key,
                             const pawl_read_options *options, pawl_text *ret_text, pawl_error *error);

/* Rows in the order of their keys, from behind the key after (NULL data: from the first), one JSON line each,
 * at most limit. Keys of more than 491 bytes are sorted by their first 474 bytes; those that agree in these
 * come in an order that means nothing but never changes. */
PAWL_API int pawl_entity_list(pawl_engine *engine, uint64_t wsid, const char *entity, pawl_bytes after,
                              size_t limit, const pawl_read_options *options, pawl_text *ret_text,
                              pawl_error *error);

/* A workspace, as its last event left it. */
typedef struct pawl_workspace {
    uint64_t wsid;
    pawl_bytes kind; /* its qualified name; stays until the engine is closed */
    uint16_t partition;
    uint64_t offset;           /* of its last event, in its partition */
    uint64_t workspace_offset; /* and in the workspace: it has as many events */
} pawl_workspace;

/* Errors: PAWL_ENOTFOUND, PAWL_ETIMEOUT. */
PAWL_API int pawl_workspace_get(pawl_engine *engine, uint64_t wsid, const pawl_read_options *options,
                                pawl_workspace *ret_workspace, pawl_error *error);

/* All workspaces, at most limit, in an order that never changes but means nothing, from behind after (0: from
 * the first) on. Return false to stop. */
typedef bool (*pawl_workspace_visit)(void *arg, const pawl_workspace *workspace);
PAWL_API int pawl_workspaces_read(pawl_engine *engine, uint64_t after, size_t limit, pawl_workspace_visit visit,
                                  void *arg, pawl_error *error);

/* The last number that a sequence has given. */
typedef struct pawl_last_number {
    uint64_t wsid;       /* 0: the partition's own */
    pawl_bytes sequence; /* its qualified name; stays until the engine is closed */
    uint64_t number;
} pawl_last_number;

/* The last numbers in a partition, those of its own first, then by ascending workspace; or of one workspace
 * (wsid 0: of all). They are those of all durable events, whether or not the sequences view has them yet.
 * Errors: PAWL_ENOTFOUND (the workspace). Return false to stop. */
typedef bool (*pawl_last_number_visit)(void *arg, const pawl_last_number *last);
PAWL_API int pawl_last_numbers_read(pawl_engine *engine, uint16_t partition, uint64_t wsid,
                                    pawl_last_number_visit visit, void *arg, pawl_error *error);

/* An event as it is shown. */
typedef struct pawl_event {
    uint16_t partition;
    uint64_t offset;
    uint64_t wsid;
    uint64_t workspace_offset;
    const char *json; /* all of it, as one line */
    size_t json_size;
} pawl_event;

/* Return false to stop. */
typedef bool (*pawl_event_visit)(void *arg, const pawl_event *event);

/* Events from an offset on, at most limit: of a partition, or of a workspace by its own offsets. ret_next gets
 * the offset to go on from. */
PAWL_API int pawl_events_read(pawl_engine *engine, uint16_t partition, uint64_t from, size_t limit,
                              pawl_event_visit visit, void *arg, uint64_t *ret_next, pawl_error *error);
PAWL_API int pawl_workspace_events_read(pawl_engine *engine, uint64_t wsid, uint64_t from, size_t limit,
                                        pawl_event_visit visit, void *arg, uint64_t *ret_next,
                                        pawl_error *error);

/* Events of a partition from an offset on, and those to come, on a thread of Pawl's, which visit must not
 * block. It ends when visit returns false or by unfollow, which waits until visit is not running. If it ends by
 * an error, visit is called once more, with NULL, and unfollow says which. */
typedef struct pawl_events pawl_events;
PAWL_API int pawl_events_follow(pawl_engine *engine, uint16_t partition, uint64_t from, pawl_event_visit visit,
                                void *arg, pawl_events **ret_events, pawl_error *error);
PAWL_API int pawl_events_unfollow(pawl_events *events, pawl_error *error);

/* What an engine that was opened read-only leaves out, because a process that wrote was killed: entries that
 * are whole in the files of the log, and that nothing says are durable; no later entry, no position of the
 * state and no cursor of a lane. They may have been acknowledged. They are not shown, because a loss of power
 * could still take them; the next opening for writing makes them durable first, and then they show. visit gets
 * each stream of the log that has such entries ("plog/3"; borrowed until visit returns), with the offset of the
 * first and how many they are. Never called beside a process that writes, for which they are what it is writing
 * just now, nor of an engine that writes itself. Blocks. Errors: those of reading the log. */
typedef void (*pawl_unwitnessed_visit)(void *arg, const char *stream, uint64_t first, uint64_t count);
PAWL_API int pawl_unwitnessed(pawl_engine *engine, pawl_unwitnessed_visit visit, void *arg, pawl_error *error);

PAWL_API uint32_t pawl_partitions(const pawl_engine *engine);
PAWL_API uint16_t pawl_partition_of(const pawl_engine *engine, uint64_t wsid);

#ifdef __cplusplus
}
#endif
#endif
