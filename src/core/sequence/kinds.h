/* core/sequence/kinds.h: which sequences a workspace of a kind has, and where in its record each of them lies.
 *
 * The sequences of a kind are numbered 0, 1, 2, ... in the order in which they were given: their places. Names
 * (of kinds, of sequences) are any u16; they are looked up in an array over their span, so that finding one is
 * a subtraction, a comparison and a load.
 *
 * Made at open, never changed: read from any thread. */
#ifndef CORE_SEQUENCE_KINDS_H
#define CORE_SEQUENCE_KINDS_H

#include <pawl/sequencer.h>

#define NO_PLACE UINT16_MAX

/* From u16 names to places. */
struct places {
    uint16_t *at; /* NO_PLACE where there is none */
    uint32_t base;
    uint32_t span;
};

static inline uint16_t places_find(const struct places *places, uint16_t name)
{
    uint32_t i = (uint32_t)name - places->base; /* wraps far beyond any span if the name is below the base */
    return i < places->span ? places->at[i] : NO_PLACE;
}

struct kind_limits {
    uint64_t first;
    uint64_t end;
};

struct kind {
    struct places places;
    struct kind_limits *limits; /* by place */
    uint16_t *seqs;             /* by place; and behind them PAWL_SEQUENCE_KIND, so that one read brings all */
    uint16_t name;
    uint16_t count;
    uint16_t words;   /* of 64 bits, one for each place */
    uint16_t classed; /* which of the table's size classes its records are of */
};

struct kinds {
    struct places places;
    struct kind *list;
    uint16_t count;
    uint16_t sequences_max; /* of any kind; at least 1 */
    const pawl_allocator *alloc;
};

/* Copies. Errors: PAWL_EINVAL, PAWL_ENOMEM. */
int kinds_init(struct kinds *kinds, const pawl_allocator *alloc, const pawl_workspace_kind *from, size_t count,
               pawl_error *error);
void kinds_release(struct kinds *kinds);

static inline const struct kind *kinds_find(const struct kinds *kinds, uint16_t name)
{
    uint16_t place = places_find(&kinds->places, name);
    return place == NO_PLACE ? NULL : &kinds->list[place];
}

#endif
