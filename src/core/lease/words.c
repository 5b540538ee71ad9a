#include "core/lease/words.h"

#include <string.h>

#include "base/alloc.h"

static union words_place *place_at(const struct words *words, uint32_t place)
{
    uint32_t i = place - WORDS_FIRST;
    return &words->chunks[i / WORDS_CHUNK][i % WORDS_CHUNK];
}

int words_init(struct words *words, const pawl_allocator *alloc, uint32_t room)
{
    uint32_t chunks = (room + WORDS_CHUNK - 1) / WORDS_CHUNK;
    union words_place **memory = mem_new(alloc, chunks, sizeof memory[0]);
    if (!memory)
        return PAWL_ENOMEM;
    *words = (struct words){.chunks = memory, .chunks_max = chunks, .alloc = alloc};
    return PAWL_OK;
}

void words_release(struct words *words)
{
    for (uint32_t i = 0; i < words->chunk_count; i++)
        mem_free(words->alloc, words->chunks[i], WORDS_CHUNK * sizeof words->chunks[i][0]);
    mem_free(words->alloc, words->chunks, words->chunks_max * sizeof words->chunks[0]);
}

void words_give_back(struct words *words, uint32_t place)
{
    place_at(words, place)->next_free = words->free;
    words->free = place;
}

/* False: there is no memory. */
static bool grow(struct words *words)
{
    if (words->chunk_count == words->chunks_max)
        return false;
    union words_place *chunk = mem_new(words->alloc, WORDS_CHUNK, sizeof *chunk);
    if (!chunk)
        return false;
    uint32_t first = WORDS_FIRST + words->chunk_count * WORDS_CHUNK;
    words->chunks[words->chunk_count++] = chunk;
    for (uint32_t i = WORDS_CHUNK; i > 0; i--)
        words_give_back(words, first + i - 1);
    return true;
}

/* Not in the middle of a character of UTF-8. */
static size_t cut_length(const char *text)
{
    size_t length = strnlen(text, PAWL_LEASE_WORDS_MAX + 1);
    if (length <= PAWL_LEASE_WORDS_MAX)
        return length;
    length = PAWL_LEASE_WORDS_MAX;
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--;
    return length;
}

/* The text may be the one that is there: it is copied before its place is given back. */
void words_set(struct words *words, uint32_t *place, const char *text)
{
    char copy[PAWL_LEASE_WORDS_MAX + 1];
    size_t length = text ? cut_length(text) : 0;
    memcpy(copy, text ? text : "", length);
    copy[length] = 0;
    words_fix(words, place, WORDS_NONE);
    if (length == 0 || (!words->free && !grow(words)))
        return;
    *place = words->free;
    union words_place *at = place_at(words, *place);
    words->free = at->next_free;
    memcpy(at->text, copy, length + 1);
}

const char *words_look_up(const struct words *words, uint32_t place)
{
    switch (place) {
    case WORDS_EXPIRED: return "it took longer than its lease";
    case WORDS_RECLAIMED: return "its lease was taken back";
    default: return place_at(words, place)->text;
    }
}
