/* event.h: events as they are in the log: read, followed; and those that a reader does not show. */
#ifndef PAWL_EVENT_H
#define PAWL_EVENT_H

#include <pawl/engine.h>
#include <pawl/log.h>
#include <pawl/row.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An event, and all that it says, borrowed until the function returns that was called with it; one of a lease
 * (pawl/worker.h), until that is freed. Its texts do not end in a 0; those that the command did not give are
 * empty. */
struct pawl_event_source;
typedef struct pawl_event {
    uint16_t partition;
    uint64_t offset;
    uint64_t wsid;
    uint64_t workspace_offset;
    pawl_wall time;     /* a stamp */
    pawl_bytes command; /* its qualified name */
    pawl_bytes actor;
    pawl_bytes correlation;
    pawl_bytes causation;
    pawl_bytes key;                         /* by which the command can be repeated */
    const struct pawl_event_source *source; /* Pawl's own */
} pawl_event;

/* Return false to stop. */
typedef bool (*pawl_event_visit)(void *arg, const pawl_event *event);

/* The argument, and by pawl_row_children what is in it. NULL: the command takes none. */
PAWL_API const pawl_row *pawl_event_argument(const pawl_event *event);

/* The records that it creates and changes, in their order; or only those of a type (NULL: of all). Errors:
 * PAWL_ENOTFOUND (no such type), PAWL_ECORRUPT, PAWL_EVERSION. */
PAWL_API int pawl_event_records(const pawl_event *event, const char *type, pawl_row_visit visit, void *arg,
                                pawl_error *error);

/* All of it, as one JSON line, which a 0 follows. It is made when it is first asked for. Errors: PAWL_ENOMEM,
 * PAWL_ECORRUPT, PAWL_EVERSION. */
PAWL_API int pawl_event_json(const pawl_event *event, pawl_bytes *ret_json, pawl_error *error);

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
PAWL_API int pawl_unwitnessed(pawl_engine *engine, pawl_unwitnessed_visit visit, void *arg, pawl_error *error);

#ifdef __cplusplus
}
#endif
#endif
