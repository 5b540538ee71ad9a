/* core/project/reproject.h: a lane's operations, worked out again from the events and compared with the log.
 *
 *     event ──► matches ──► for each: the log's next operation ──┬─► run again, and compared
 *                                                                └─► applied as it was logged (redo.h)
 *
 * Everything runs serially, in the order of the log, on the tables as the logged operations make them. So the
 * first operation that differs can be named, and later ones are judged by themselves. A void is a decision: it
 * is not run again. If this process does not have a handler, its operations are only applied; that they belong
 * to the right events is checked all the same (N1 of lane.h). */
#ifndef CORE_PROJECT_REPROJECT_H
#define CORE_PROJECT_REPROJECT_H

#include "core/event/event.h"
#include "core/project/redo.h"

/* An operation of the log. Borrowed until the next one is asked for. */
struct logged {
    uint64_t number;
    pawl_place place;
    pawl_bytes body;
};

/* The first operation that was not the same when it was run again. */
struct reproject_difference {
    uint64_t number;
    uint64_t event;
    uint64_t wsid;
    const struct schema_projector *projector;
    const struct schema *schema;
    const struct schema_type *entity; /* NULL: it is not about a row */
    pawl_bytes key;                   /* of the row; a copy, empty if there was no memory for it */
    const char *words;
};

struct reproject {
    struct redo redo;
    uint16_t lane;
    uint32_t generation;
    const struct schema *(*schema_for)(void *ctx, uint16_t lane, uint32_t generation, uint64_t event_schema);

    /* The log's next operation; PAWL_ENOTFOUND at its end. */
    int (*next)(void *ctx, struct logged *ret_logged, pawl_error *error);

    /* Run a handler and give its intents, in memory. PAWL_ENOTFOUND: this process does not have it. May be
     * NULL. */
    int (*handle)(void *ctx, const struct derivation *derivation, const struct schema_projector *projector,
                  uint32_t attempt, const struct state *state, struct arena *memory,
                  const struct intent **ret_intents, size_t *ret_count, pawl_error *error);
    void *ctx;

    const pawl_allocator *alloc;
    pawl_bytes body; /* of the present event */
    struct operation_maker writes;
    uint64_t operations; /* applied */
    uint64_t compared;   /* run again */
    uint64_t differences;
    struct reproject_difference first;
};

/* Before the first event the caller sets redo, with a cursor at 0, and the functions. */
void reproject_init(struct reproject *reproject, const pawl_allocator *alloc);
void reproject_release(struct reproject *reproject);

/* Take the next event, in order. *ret_ended: the log of operations ended before it, so nothing of this event or
 * of later ones can be compared. Errors: those of redo_operation and of next; PAWL_ECORRUPT: body is no
 * event. */
int reproject_event(struct reproject *reproject, uint64_t offset, pawl_bytes body, bool *ret_ended,
                    pawl_error *error);

#endif
