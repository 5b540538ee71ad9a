/* cli/talk/session.h: whom a verb talks to: a directory that it opens itself, or a server.
 *
 *     --url URL, or PAWL_URL               that server
 *     --dir DIR, and a process serves it   that process, by DIR/pawl.sock
 *     --dir DIR                            an engine of this process
 *
 * The functions below are what verbs ask for, and each works with both. The texts are the same, because both come
 * of one function of libpawl: the server calls it there. What is not below, a verb does with session_engine, which
 * is NULL if it is a server.
 *
 * Invariant
 *   S1  Exactly one of engine and remote is set while a session is open. */
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

#include "cli/talk/open.h"

struct remote;

struct session {
    pawl_engine *engine;
    struct remote *remote;
    struct courier *courier; /* commands to a server (cli/talk/courier.h); NULL: none were sent yet */
};

/* Options of a verb that works with both. */
#define OPTIONS_WHERE                                                                                          \
    OPTION_DIR, {"url", "URL", "a server instead: http://HOST:PORT; or the environment's PAWL_URL"},           \
    {                                                                                                          \
        "token-file", "FILE", "has the token for it; or the environment's PAWL_TOKEN is it"                    \
    }

/* As open_dir and close_dir. */
int session_open(const struct options *options, enum opening opening, struct session *ret_session);
int session_close(const struct options *options, struct session *session, int status, pawl_error *error);

/* The server at this URL, with the token of the options. */
int session_open_url(const struct options *options, const char *url, struct session *ret_session);

/* As open_dir_to_wait; a server is asked. */
int session_open_to_wait(const struct options *options, struct session *ret_session, bool *ret_reading);

/* Whether the options name a server. PAWL_EINVAL: they name two things. */
int session_url(const struct options *options, const char **ret_url, pawl_error *error);

/* --- schema, system --- */

int session_schema_apply(struct session *session, const char *json, uint64_t *ret_position, pawl_error *error);

enum schema_form { SCHEMA_TO_READ, SCHEMA_LINES, SCHEMA_LANES };
int session_schema_show(struct session *session, enum schema_form form, pawl_text *ret_text, pawl_error *error);
int session_system(struct session *session, const char *table, pawl_text *ret_text, pawl_error *error);

/* What it is doing, as one object. */
int session_figures(struct session *session, pawl_text *ret_text, pawl_error *error);

/* --- workspaces --- */

/* ret_text: the answer of its first event. */
int session_workspace_create(struct session *session, uint64_t wsid, const char *kind, pawl_text *ret_text,
                             pawl_error *error);
int session_workspace_freeze(struct session *session, uint64_t wsid, bool frozen, pawl_error *error);
int session_workspace_show(struct session *session, uint64_t wsid, const pawl_read_options *read,
                           pawl_text *ret_text, pawl_error *error);

/* A page of at most limit lines, which SESSION_PAGE bounds. *ret_after: where to go on; 0: there are no more. */
#define SESSION_PAGE ((size_t)1000)
int session_workspaces(struct session *session, uint64_t after, size_t limit, pawl_text *ret_text,
                       uint64_t *ret_after, pawl_error *error);

/* --- rows --- */

int session_record_get(struct session *session, uint64_t wsid, const char *type, uint64_t id,
                       const pawl_read_options *read, pawl_text *ret_text, pawl_error *error);
int session_record_list(struct session *session, uint64_t wsid, const char *type, uint64_t after, size_t limit,
                        const pawl_read_options *read, pawl_text *ret_text, pawl_error *error);
int session_entity_get(struct session *session, uint64_t wsid, const char *entity, pawl_bytes key,
                       const pawl_read_options *read, pawl_text *ret_text, pawl_error *error);
int session_entity_list(struct session *session, uint64_t wsid, const char *entity, pawl_bytes after,
                        size_t limit, const pawl_read_options *read, pawl_text *ret_text, pawl_error *error);
int session_view_get(struct session *session, const char *view, uint64_t wsid, pawl_bytes key,
                     const pawl_read_options *read, pawl_text *ret_text, pawl_error *error);

/* A page of a view. The cursor is moved: NULL before the first page, free() it behind the last one. *cursor is NULL
 * again if there is no more. query->cursor is not used. */
int session_view_list(struct session *session, const char *view, const pawl_view_query *query,
                      pawl_bytes prefix, pawl_bytes from, pawl_bytes to, char **cursor, pawl_text *ret_text,
                      pawl_view_answer *ret_answer, pawl_error *error);

/* --- lanes and leases --- */

/* JSON lines, of all lanes or of one. */
int session_projectors(struct session *session, pawl_text *ret_text, pawl_error *error);
int session_lanes(struct session *session, const char *lane, pawl_text *ret_text, pawl_error *error);
int session_lane_stats(struct session *session, const char *lane, pawl_text *ret_text, pawl_error *error);
int session_leases(struct session *session, const pawl_lease_query *query, pawl_text *ret_text,
                   pawl_error *error);

int session_lane_pause(struct session *session, const char *lane, bool paused, pawl_error *error);
int session_lane_rebuild(struct session *session, const char *lane, pawl_error *error);

/* An operator's decision about a number. */
enum lease_decision_kind { DECIDE_RETRY, DECIDE_RECLAIM, DECIDE_VOID };

struct lease_decision {
    enum lease_decision_kind kind;
    uint16_t partition;
    const char *lane;
    uint32_t generation; /* 0: the one that has it under way */
    uint64_t number;
    const char *reason; /* of a void; otherwise NULL */
};

int session_decide(struct session *session, const struct lease_decision *decision, pawl_error *error);

/* Wait until all lanes, or one, have caught up. PAWL_ETIMEOUT: not in this time; the totals are there then, too. */
struct lane_totals {
    uint64_t lanes; /* generations of them */
    uint64_t operations, repeated, leased, waiting, lag;
};

int session_lanes_wait(struct session *session, const char *lane, pawl_duration timeout,
                       struct lane_totals *ret_totals, pawl_error *error);

/* Operations of a lane's log, as JSON, one after the other, until line returns false. */
struct operation_query {
    const char *lane;
    const char *entity; /* NULL: whatever they write */
    uint32_t generation;
    uint64_t from, limit;
    uint64_t source; /* 0: of any event */
    uint64_t wsid;   /* 0: of any workspace */
    uint64_t partition;
    bool one; /* only that partition */
};

typedef bool (*session_line)(void *arg, pawl_bytes json);
int session_operations(struct session *session, const struct operation_query *query, session_line line,
                       void *arg, pawl_error *error);

/* --- jobs and tokens --- */

/* Jobs are of servers only. begin takes body. *ret_job: json_decref it. */
int session_job_begin(struct session *session, const char *kind, json_t *body, uint64_t *ret_id,
                      pawl_error *error);
int session_job_show(struct session *session, uint64_t id, json_t **ret_job, pawl_error *error);
int session_job_cancel(struct session *session, uint64_t id, pawl_error *error);

/* The failure in {"code":...,"message":...}. Returns its code. */
int session_error(const json_t *tree, pawl_error *error);

/* A new token, as JSON with its secret. Overwrite it before it is freed. lasts 0: for ever. */
int session_token_create(struct session *session, const pawl_token_definition *definition, pawl_duration lasts,
                         json_t **ret_token, pawl_error *error);
int session_tokens(struct session *session, pawl_text *ret_text, pawl_error *error);
int session_token_revoke(struct session *session, const char *name, pawl_error *error);

/* --- views and tablets --- */

/* How views are doing: as JSON lines, or one after the other. name NULL: all. */
int session_view_lines(struct session *session, const char *name, pawl_text *ret_text, pawl_error *error);
int session_views(struct session *session, const char *name, pawl_view_status_visit visit, void *arg,
                  pawl_error *error);

/* As pawl_view_wait; timeout is not 0. */
int session_view_wait(struct session *session, const char *view, pawl_duration timeout, pawl_error *error);

int session_view_create(struct session *session, const pawl_view_definition *definition, pawl_error *error);
int session_view_drop(struct session *session, const char *view, pawl_error *error);
int session_view_rebuild(struct session *session, const char *view, pawl_error *error);
int session_view_pause(struct session *session, const char *view, bool paused, pawl_error *error);
int session_view_throttle(struct session *session, uint64_t rows_per_second, pawl_error *error);

int session_tablets(struct session *session, pawl_text *ret_text, pawl_error *error);
int session_tablets_resize(struct session *session, bool split, pawl_error *error);

/* --- events --- */

/* Events as JSON, each without a newline, of a workspace by its own offsets, or, if wsid is 0, of a partition.
 * line: returns false to end it. At most limit. */
struct event_range {
    uint64_t wsid;
    uint16_t partition;
    uint64_t from;
    uint64_t limit;
};

/* Hand out the lines of a text. Returns whether more are wanted. */
bool lines_visit(const pawl_text *text, session_line line, void *arg);

/* The last numbers of sequences, as lines; wsid 0: of all. */
int session_numbers(struct session *session, uint64_t wsid, session_line line, void *arg, pawl_error *error);

int session_events(struct session *session, const struct event_range *range, session_line line, void *arg,
                   pawl_error *error);

/* For whoever asks a server for events itself: where they are, and a failure in the words of an engine. */
struct target;
void events_target(struct target *target, const struct event_range *range);
int events_failure(const struct event_range *range, int status, pawl_error *error);

/* --- commands --- */

/* What all commands of a feed have in common. Borrowed as long as the session is open. */
struct command_wish {
    uint64_t wsid;
    pawl_ack ack;
    const char *key, *actor, *correlation, *causation; /* NULL: not given */
    bool expects;
    uint64_t expected;
};

/* A command under way. All zeros before it is first used; may be used again when it is answered. */
struct session_command {
    pawl_request *request; /* to an engine */
    char *json;            /* to a server */
    size_t size;
    pawl_text answer;
    struct session_command *next;

    void (*done)(void *arg); /* called once, by another thread, when status and error are there */
    void *arg;
    int status;
    pawl_error error;
};

/* Send it. Commands are taken in the order in which they are sent. A command of several lines must be the only one. Copies json. If it fails, done is not called. */
int session_send(struct session *session, const struct command_wish *wish, pawl_bytes json,
                 struct session_command *command, pawl_error *error);

/* The answer to one that was not refused. */
int session_answer(struct session *session, struct session_command *command, pawl_text *ret_text,
                   pawl_error *error);
void session_command_release(struct session_command *command);

/* Wait no longer for a server's answers: what is under way ends with PAWL_EUNKNOWN. An engine always answers. */
void session_give_up(struct session *session);

#endif
