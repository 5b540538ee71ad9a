#include "core/sequence/kinds.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

static void places_release(struct places *places, const pawl_allocator *alloc)
{
    mem_free(alloc, places->at, places->span * sizeof places->at[0]);
    *places = (struct places){0};
}

/* Room for the names from lowest to highest, none of them taken. */
static int places_init(struct places *places, const pawl_allocator *alloc, uint16_t lowest, uint16_t highest)
{
    uint32_t span = (uint32_t)highest - lowest + 1;
    uint16_t *at = mem_new(alloc, span, sizeof *at);
    if (!at)
        return PAWL_ENOMEM;
    memset(at, 0xff, span * sizeof *at);
    *places = (struct places){.at = at, .base = lowest, .span = span};
    return PAWL_OK;
}

/* False: it is taken. */
static bool places_take(struct places *places, uint16_t name, uint16_t place)
{
    uint16_t *at = &places->at[name - places->base];
    if (*at != NO_PLACE)
        return false;
    *at = place;
    return true;
}

static void kind_release(struct kind *kind, const pawl_allocator *alloc)
{
    places_release(&kind->places, alloc);
    mem_free(alloc, kind->limits, kind->count * sizeof kind->limits[0]);
    if (kind->seqs)
        mem_free(alloc, kind->seqs, (kind->count + (size_t)1) * sizeof kind->seqs[0]);
}

static int fill_sequence(struct kind *kind, uint16_t place, const pawl_sequence *from, pawl_error *error)
{
    if (from->seq == PAWL_SEQUENCE_KIND)
        return error_set(error, PAWL_EINVAL, "kind %u: %u is not a sequence's name", kind->name,
                         PAWL_SEQUENCE_KIND);
    struct kind_limits limits = {from->first ? from->first : 1, from->end ? from->end : UINT64_MAX};
    if (limits.first > limits.end)
        return error_set(error, PAWL_EINVAL,
                         "kind %u, sequence %u: its first number %llu is above its end %llu", kind->name,
                         from->seq, (unsigned long long)limits.first, (unsigned long long)limits.end);
    if (!places_take(&kind->places, from->seq, place))
        return error_set(error, PAWL_EINVAL, "kind %u has the sequence %u twice", kind->name, from->seq);
    kind->limits[place] = limits;
    kind->seqs[place] = from->seq;
    return PAWL_OK;
}

static int kind_fill(struct kind *kind, const pawl_allocator *alloc, const pawl_workspace_kind *from,
                     pawl_error *error)
{
    kind->name = from->kind;
    if (from->count > PAWL_SEQUENCES_MAX)
        return error_set(error, PAWL_EINVAL, "kind %u has %zu sequences, more than %d", from->kind, from->count,
                         PAWL_SEQUENCES_MAX);
    kind->count = (uint16_t)from->count;
    kind->seqs = mem_new(alloc, from->count + 1, sizeof kind->seqs[0]);
    if (!kind->seqs)
        return error_set(error, PAWL_ENOMEM, "no memory for the sequences of kind %u", kind->name);
    kind->seqs[kind->count] = PAWL_SEQUENCE_KIND;
    if (kind->count == 0)
        return PAWL_OK;
    kind->words = (uint16_t)((from->count + 63) / 64);
    uint16_t lowest = UINT16_MAX;
    uint16_t highest = 0;
    for (size_t i = 0; i < from->count; i++) {
        uint16_t seq = from->sequences[i].seq;
        lowest = seq < lowest ? seq : lowest;
        highest = seq > highest ? seq : highest;
    }
    kind->limits = mem_new(alloc, kind->count, sizeof kind->limits[0]);
    if (!kind->limits || places_init(&kind->places, alloc, lowest, highest))
        return error_set(error, PAWL_ENOMEM, "no memory for the sequences of kind %u", kind->name);
    for (uint16_t i = 0; i < kind->count; i++) {
        int status = fill_sequence(kind, i, &from->sequences[i], error);
        if (status)
            return status;
    }
    return PAWL_OK;
}

static int fill_all(struct kinds *kinds, const pawl_workspace_kind *from, pawl_error *error)
{
    for (uint16_t i = 0; i < kinds->count; i++) {
        if (!places_take(&kinds->places, from[i].kind, i))
            return error_set(error, PAWL_EINVAL, "the workspace kind %u is given twice", from[i].kind);
        int status = kind_fill(&kinds->list[i], kinds->alloc, &from[i], error);
        if (status)
            return status;
        if (kinds->list[i].count > kinds->sequences_max)
            kinds->sequences_max = kinds->list[i].count;
    }
    return PAWL_OK;
}

int kinds_init(struct kinds *kinds, const pawl_allocator *alloc, const pawl_workspace_kind *from, size_t count,
               pawl_error *error)
{
    *kinds = (struct kinds){.alloc = alloc, .sequences_max = 1};
    if (count == 0)
        return PAWL_OK;
    if (count >= NO_PLACE)
        return error_set(error, PAWL_EINVAL, "%zu workspace kinds are too many", count);
    uint16_t lowest = UINT16_MAX;
    uint16_t highest = 0;
    for (size_t i = 0; i < count; i++) {
        lowest = from[i].kind < lowest ? from[i].kind : lowest;
        highest = from[i].kind > highest ? from[i].kind : highest;
    }
    kinds->list = mem_new(alloc, count, sizeof kinds->list[0]);
    if (!kinds->list)
        return error_set(error, PAWL_ENOMEM, "no memory for %zu workspace kinds", count);
    kinds->count = (uint16_t)count;
    int status = places_init(&kinds->places, alloc, lowest, highest);
    if (status)
        error_set(error, status, "no memory for %zu workspace kinds", count);
    else
        status = fill_all(kinds, from, error);
    if (status)
        kinds_release(kinds);
    return status;
}

void kinds_release(struct kinds *kinds)
{
    for (uint16_t i = 0; i < kinds->count; i++)
        kind_release(&kinds->list[i], kinds->alloc);
    mem_free(kinds->alloc, kinds->list, kinds->count * sizeof kinds->list[0]);
    places_release(&kinds->places, kinds->alloc);
    *kinds = (struct kinds){0};
}
