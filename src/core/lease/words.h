/* core/lease/words.h: why attempts ended, for the few numbers that failed.
 *
 * A text is named by a number: 0 is none, some are fixed, the others are places in chunks that are allocated as
 * they are needed, and given back when the table is freed. So a table without failures has none, and however
 * many there are, they are bounded by the window. Without memory there are no words, and nothing else changes.
 */
#ifndef CORE_LEASE_WORDS_H
#define CORE_LEASE_WORDS_H

#include <pawl/lease.h>

#define WORDS_CHUNK     64
#define WORDS_NONE      ((uint32_t)0)
#define WORDS_EXPIRED   ((uint32_t)1)
#define WORDS_RECLAIMED ((uint32_t)2)
#define WORDS_FIRST     ((uint32_t)3)

union words_place {
    uint32_t next_free;
    char text[PAWL_LEASE_WORDS_MAX + 1];
};

struct words {
    union words_place **chunks;
    uint32_t chunks_max;
    uint32_t chunk_count;
    uint32_t free; /* the first, or 0 */
    const pawl_allocator *alloc;
};

/* Room for so many texts. PAWL_ENOMEM. */
int words_init(struct words *words, const pawl_allocator *alloc, uint32_t room);
void words_release(struct words *words);

/* *place becomes the place of a copy of the text, cut where it is too long; NULL: of none. */
void words_set(struct words *words, uint32_t *place, const char *text);

void words_give_back(struct words *words, uint32_t place);

/* The same for one of the fixed ones, or none. */
static inline void words_fix(struct words *words, uint32_t *place, uint32_t fixed)
{
    if (*place >= WORDS_FIRST)
        words_give_back(words, *place);
    *place = fixed;
}

const char *words_look_up(const struct words *words, uint32_t place);

static inline const char *words_get(const struct words *words, uint32_t place)
{
    return place == WORDS_NONE ? "" : words_look_up(words, place);
}

#endif
