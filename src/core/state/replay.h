/* core/state/replay.h: events of a log, derived one after the other into a store.
 *
 * Recovery replays the events that the state lacks, a check of the state replays all events. Events of one
 * transaction see each other through the store's writer, and what they change themselves through the overlay.
 *
 *     replay_event, replay_event, ... ──► replay_put ──► whoever owns the store commits
 *
 * After any failure the caller aborts the store's transaction, and reads the position again before it replays
 * anything, because the position is ahead of the store then. */
#ifndef CORE_STATE_REPLAY_H
#define CORE_STATE_REPLAY_H

#include "core/state/derive.h"
#include "core/state/position.h"

struct replay {
    pawl_store *store;
    struct position *position; /* the store's, and ahead of it by what is not committed */
    struct overlay *overlay;   /* empty between events */
    struct arena *memory;      /* reset by whoever owns it, between transactions */
    uint8_t *scratch;          /* STATE_SCRATCH_BYTES */
    struct put_watch *watch;   /* is told of each row; NULL: nobody */
    const struct schema *(*schema_at)(void *ctx, uint64_t position);
    void *ctx;
    uint64_t rows; /* written or removed so far */
};

/* Errors: PAWL_ECORRUPT, PAWL_EVERSION, and what derive ends with; those of the store. error says what, not
 * where. */
int replay_event(struct replay *replay, uint64_t offset, pawl_place place, pawl_bytes body, pawl_error *error);

/* The position, behind all that it speaks of. Errors: those of the store. */
int replay_put(struct replay *replay);

#endif
