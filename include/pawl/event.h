/* event.h: reading and following events of the log; entries that a reader leaves out. */
#ifndef PAWL_EVENT_H
#define PAWL_EVENT_H

#include <pawl/engine.h>
#include <pawl/log.h>
#include <pawl/row.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An event. A callback borrows it, with all that belongs to it, until it returns; the event of a lease
 * (pawl/worker.h) is there until the lease is freed. Its texts do not end in a 0; a text that the command did not
 * give is empty. */
struct pawl_event_source;
typedef struct pawl_event {
    uint16_t partition;
    uint64_t offset;
    uint64_t wsid;
    uint64_t workspace_offset;
    pawl_wall time;     /* when the command was processed, by the wall clock */
    pawl_bytes command; /* its qualified name */
    pawl_bytes actor;
    pawl_bytes correlation;
    pawl_bytes causation;
    pawl_bytes key;                         /* the idempotency key */
    const struct pawl_event_source *source; /* Pawl's own */
} pawl_event;

/* Return false to stop. */
typedef bool (*pawl_event_visit)(void *arg, const pawl_event *event);

/* The argument; pawl_row_children visits the objects in it. NULL: the command takes none. */
PAWL_API const pawl_row *pawl_event_argument(const pawl_event *event);

/* Visit the records that it creates and changes, in their order; only those of a type (NULL: all). Errors:
 * PAWL_ENOTFOUND (no such type), PAWL_ECORRUPT, PAWL_EVERSION. */
PAWL_API int pawl_event_records(const pawl_event *event, const char *type, pawl_row_visit visit, void *arg,
                                pawl_error *error);

/* The whole event as one JSON line, followed by a 0. It is made when it is first asked for. Errors:
 * PAWL_ENOMEM, PAWL_ECORRUPT, PAWL_EVERSION. */
PAWL_API int pawl_event_json(const pawl_event *event, pawl_bytes *ret_json, pawl_error *error);

/* Events from an offset on, at most limit: of a partition; or of a workspace, by the workspace's own offsets.
 * *ret_next is the offset to go on from. */
PAWL_API int pawl_events_read(pawl_engine *engine, uint16_t partition, uint64_t from, size_t limit,
                              pawl_event_visit visit, void *arg, uint64_t *ret_next, pawl_error *error);
PAWL_API int pawl_workspace_events_read(pawl_engine *engine, uint64_t wsid, uint64_t from, size_t limit,
                                        pawl_event_visit visit, void *arg, uint64_t *ret_next,
                                        pawl_error *error);

/* Events of a partition from an offset on, and later ones as they come. visit runs on one of Pawl's threads,
 * and must not block. Following ends when visit returns false, or by unfollow, which waits until visit is not
 * running. If it ends by an error, visit is called once more, with NULL, and unfollow returns the error. */
typedef struct pawl_events pawl_events;
PAWL_API int pawl_events_follow(pawl_engine *engine, uint16_t partition, uint64_t from, pawl_event_visit visit,
                                void *arg, pawl_events **ret_events, pawl_error *error);
PAWL_API int pawl_events_unfollow(pawl_events *events, pawl_error *error);

/* The entries that a read-only engine leaves out after the writing process was killed. They are whole in the
 * files of the log, but nothing proves that they are durable: no later entry, no position of the state, no
 * cursor of a lane. They may have been acknowledged. They are not shown, because a loss of power could still
 * take them. The next opening for writing makes them durable first; then they are shown. visit gets each stream
 * that has such entries ("plog/3"; borrowed until visit returns), with the offset of the first and their
 * number. visit is not called while a process writes, because its last entries are just being made durable; nor
 * if the engine itself was opened for writing. Blocks. Errors: those of reading the log. */
PAWL_API int pawl_unwitnessed(pawl_engine *engine, pawl_unwitnessed_visit visit, void *arg, pawl_error *error);

#ifdef __cplusplus
}
#endif
#endif
