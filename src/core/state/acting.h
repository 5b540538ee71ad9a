/* core/state/acting.h: upserts, updates and deletes of entities' rows, whoever asks for them.
 *
 *     a synchronous projector's actions (project.c) ──┐
 *                                                     ├──► intents ── act ──► changes, on the overlay
 *     a lane's projector, a handler (explode.c) ──────┘                 └──► watch: what was read and written
 *
 * All sets of an intent are computed on the row as it was before the intent, as in SQL. A clause is first run
 * over the workspace's rows of the entity, and the rows that it matched are changed afterwards: so an intent
 * never sees its own changes. Only the keys that matched are kept meanwhile; a row that does not match costs no
 * memory.
 *
 * An update or delete by a key that is not there does nothing. */
#ifndef CORE_STATE_ACTING_H
#define CORE_STATE_ACTING_H

#include "core/schema/row.h"
#include "core/state/derive.h"

#ifndef ACTING_SLICE
#define ACTING_SLICE 1024 /* rows that are looked at between two pauses */
#endif

/* One thing to be done. Its expressions see the event, and the row at hand (but for a key's: only the event).
 */
struct intent {
    enum action_kind kind;
    const struct schema_type *entity;
    const struct expr *const *key_exprs; /* for each of the key's fields, in the key's order; or NULL */
    const struct value *key;             /* the same as values; both NULL: where says which rows */
    const struct schema_set *sets;       /* fields outside the key; a later set of the same field wins */
    const struct value *values;          /* for each set whose expression is NULL; else may be NULL */
    size_t set_count;
    const struct expr *where; /* NULL: all of the workspace's rows; always NULL if there is a key */
};

/* A declarative action is an intent; nothing is copied. */
struct intent intent_of(const struct schema_action *action);

/* Is told what an intent reads and writes. Each function returns PAWL_OK, or a status that ends the intent. */
struct acting_watch {
    void *ctx;

    /* A row's value decides what is written, or whether there is such a row. */
    int (*row)(void *ctx, pawl_bytes key);

    /* Which rows the workspace has, and the values of the fields that the clause reads, decide what is
     * written. */
    int (*rows)(void *ctx, uint32_t table, uint64_t wsid, const struct intent *intent);

    /* A row is written: values by place; set, bit by bit, says which of them the intent sets. NULL: deleted. */
    int (*wrote)(void *ctx, const struct intent *intent, pawl_bytes key, const struct value *values,
                 const uint64_t *set);

    /* Between slices, when nothing is borrowed from the reader: it may be exchanged. May be NULL. */
    int (*pause)(void *ctx, pawl_reader **reader);

    size_t match_bytes_max; /* of all keys that a clause matches; more is PAWL_ETOOBIG */
};

struct acting {
    const struct derivation *derivation;
    struct state state;
    uint32_t generation; /* of the tables */
    struct arena *memory;
    struct changes *changes;
    const struct acting_watch *watch; /* NULL: nobody */
    pawl_error *error;

    uint8_t *row; /* room for a row, in memory */
    size_t row_room;
};

/* Errors as derive's, or the watch's. What was pushed before one is in changes. */
int act(struct acting *acting, const struct intent *intent);

#endif
