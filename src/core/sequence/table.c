#include "core/sequence/table.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

#define INDEX_MIN   ((uint64_t)64)
#define CHUNK_BYTES 65536u
#define NO_CHUNK    UINT32_MAX

static uint32_t stride_of(const struct kind *kind)
{
    return (uint32_t)(sizeof(struct record) + (2 * (size_t)kind->count + kind->words) * sizeof(uint64_t));
}

static bool evictable(const struct record *record)
{
    return record->state == 0 && record->staged == 0;
}

/* The order. */

static void link_newest(struct table *table, uint32_t slot)
{
    struct record *record = table_at(table, slot);
    record->older = table->newest;
    record->newer = NO_SLOT;
    if (table->newest == NO_SLOT)
        table->oldest = slot;
    else
        table_at(table, table->newest)->newer = slot;
    table->newest = slot;
}

static void unlink_slot(struct table *table, const struct record *record)
{
    if (record->newer == NO_SLOT)
        table->newest = record->older;
    else
        table_at(table, record->newer)->older = record->older;
    if (record->older == NO_SLOT)
        table->oldest = record->newer;
    else
        table_at(table, record->older)->newer = record->newer;
}

void table_pin(struct table *table, uint32_t slot, enum record_state why)
{
    struct record *record = table_at(table, slot);
    if (evictable(record))
        unlink_slot(table, record);
    record->state |= (uint16_t)why;
}

void table_unpin(struct table *table, uint32_t slot, enum record_state why)
{
    struct record *record = table_at(table, slot);
    assert(!evictable(record));
    record->state &= (uint16_t)~why;
    if (evictable(record))
        link_newest(table, slot);
}

/* The index. */

static int index_grow(struct table *table, uint64_t entries)
{
    uint64_t *index = mem_new(table->alloc, entries, sizeof *index);
    if (!index)
        return PAWL_ENOMEM;
    uint64_t mask = entries - 1;
    for (uint64_t i = 0; table->index && i <= table->mask; i++) {
        if (table->index[i] == 0)
            continue;
        uint64_t at = (table->index[i] >> 32) & mask;
        while (index[at])
            at = (at + 1) & mask;
        index[at] = table->index[i];
    }
    mem_free(table->alloc, table->index, (table->mask + 1) * sizeof *index);
    table->index = index;
    table->mask = mask;
    return PAWL_OK;
}

static void index_put(struct table *table, uint64_t wsid, uint32_t slot)
{
    uint32_t hash = (uint32_t)hash_mix(wsid);
    uint64_t at = hash & table->mask;
    while (table->index[at])
        at = (at + 1) & table->mask;
    table->index[at] = (uint64_t)hash << 32 | (slot + 1);
}

static void index_remove(struct table *table, uint64_t wsid, uint32_t slot)
{
    uint32_t hash = (uint32_t)hash_mix(wsid);
    uint64_t hole = hash & table->mask;
    while (table->index[hole] != ((uint64_t)hash << 32 | (slot + 1)))
        hole = (hole + 1) & table->mask;
    for (uint64_t at = (hole + 1) & table->mask; table->index[at]; at = (at + 1) & table->mask) {
        uint64_t from_home = (at - (table->index[at] >> 32)) & table->mask;
        uint64_t from_hole = (at - hole) & table->mask;
        if (from_home < from_hole)
            continue;
        table->index[hole] = table->index[at];
        hole = at;
    }
    table->index[hole] = 0;
}

/* Records. */

static int chunk_add(struct table *table, struct record_class *class)
{
    if (table->chunk_count == table->chunk_room) {
        uint32_t room = table->chunk_room ? 2 * table->chunk_room : 16;
        struct chunk *chunks =
            mem_resize(table->alloc, table->chunks, table->chunk_room * sizeof *chunks, room * sizeof *chunks);
        if (!chunks)
            return PAWL_ENOMEM;
        table->chunks = chunks;
        table->chunk_room = room;
    }
    uint32_t count = CHUNK_BYTES / class->stride;
    count = count < 1 ? 1 : count > 1u << CHUNK_BITS ? 1u << CHUNK_BITS : count;
    uint32_t number = table->chunk_count;
    uint8_t *records = mem_resize(table->alloc, NULL, 0, (size_t)count * class->stride);
    if (!records || number >= NO_SLOT >> CHUNK_BITS) {
        mem_free(table->alloc, records, (size_t)count * class->stride);
        return PAWL_ENOMEM;
    }
    table->chunks[number] = (struct chunk){records, class->stride, count, NO_CHUNK};
    table->chunk_count++;
    if (class->chunk_first == NO_CHUNK)
        class->chunk_first = number;
    else
        table->chunks[class->chunk_last].next = number;
    class->chunk_last = number;
    class->chunk_now = number;
    class->used = 0;
    return PAWL_OK;
}

/* Whether the chunk that fresh records come from has one; moves on to the class's next chunk if there is one.
 */
static bool class_has_fresh(const struct table *table, struct record_class *class)
{
    if (class->chunk_now == NO_CHUNK)
        return false;
    const struct chunk *now = &table->chunks[class->chunk_now];
    if (class->used < now->count)
        return true;
    if (now->next == NO_CHUNK)
        return false;
    class->chunk_now = now->next;
    class->used = 0;
    return true;
}

static int slot_take(struct table *table, struct record_class *class, uint32_t *ret_slot)
{
    if (class->free != NO_SLOT) {
        *ret_slot = class->free;
        class->free = table_at(table, class->free)->older;
        return PAWL_OK;
    }
    if (!class_has_fresh(table, class)) {
        int status = chunk_add(table, class);
        if (status)
            return status;
    }
    *ret_slot = class->chunk_now << CHUNK_BITS | class->used++;
    return PAWL_OK;
}

void table_remove(struct table *table, uint32_t slot)
{
    struct record *record = table_at(table, slot);
    struct record_class *class = &table->classes[table->kinds->list[record->kind].classed];
    index_remove(table, record->wsid, slot);
    record->older = class->free;
    class->free = slot;
    table->count--;
}

static bool evict_one(struct table *table)
{
    uint32_t slot = table->oldest;
    if (slot == NO_SLOT)
        return false;
    assert(evictable(table_at(table, slot))); /* T2 */
    unlink_slot(table, table_at(table, slot));
    table_remove(table, slot);
    table->evictions++;
    return true;
}

void table_trim(struct table *table)
{
    while (table->count > table->count_max && evict_one(table))
        ;
}

int table_insert(struct table *table, uint64_t wsid, uint16_t kind_place, uint32_t *ret_slot)
{
    struct record_class *class = &table->classes[table->kinds->list[kind_place].classed];
    if ((uint64_t)table->count + 1 > table->mask + 1 - (table->mask + 1) / 4) {
        int status = index_grow(table, 2 * (table->mask + 1));
        if (status)
            return status;
    }
    uint32_t slot;
    if (table->count >= table->count_max)
        evict_one(table);
    int status = slot_take(table, class, &slot);
    if (status)
        return status;
    struct record *record = table_at(table, slot);
    memset(record, 0, class->stride);
    record->wsid = wsid;
    record->kind = kind_place;
    index_put(table, wsid, slot);
    table->count++;
    *ret_slot = slot;
    return PAWL_OK;
}

void table_clear(struct table *table)
{
    memset(table->index, 0, (table->mask + 1) * sizeof table->index[0]);
    for (uint16_t i = 0; i < table->class_count; i++) {
        struct record_class *class = &table->classes[i];
        class->free = NO_SLOT;
        class->chunk_now = class->chunk_first;
        class->used = 0;
    }
    table->newest = table->oldest = NO_SLOT;
    table->count = 0;
}

static void class_kinds(struct table *table)
{
    for (uint16_t k = 0; k < table->kinds->count; k++) {
        struct kind *kind = &table->kinds->list[k];
        uint32_t stride = stride_of(kind);
        uint16_t c = 0;
        while (c < table->class_count && table->classes[c].stride != stride)
            c++;
        if (c == table->class_count)
            table->classes[table->class_count++] = (struct record_class){
                .stride = stride,
                .free = NO_SLOT,
                .chunk_first = NO_CHUNK,
                .chunk_now = NO_CHUNK,
            };
        kind->classed = c;
    }
}

int table_init(struct table *table, const pawl_allocator *alloc, struct kinds *kinds, uint32_t count_max)
{
    *table = (struct table){
        .alloc = alloc, .kinds = kinds, .count_max = count_max, .newest = NO_SLOT, .oldest = NO_SLOT};
    uint64_t entries = INDEX_MIN;
    while (entries - entries / 4 < count_max)
        entries *= 2;
    if (index_grow(table, entries))
        return PAWL_ENOMEM;
    if (kinds->count == 0)
        return PAWL_OK;
    table->classes = mem_new(alloc, kinds->count, sizeof table->classes[0]);
    if (!table->classes) {
        table_release(table);
        return PAWL_ENOMEM;
    }
    class_kinds(table);
    return PAWL_OK;
}

void table_release(struct table *table)
{
    for (uint32_t i = 0; i < table->chunk_count; i++)
        mem_free(table->alloc, table->chunks[i].records,
                 (size_t)table->chunks[i].count * table->chunks[i].stride);
    mem_free(table->alloc, table->chunks, table->chunk_room * sizeof table->chunks[0]);
    if (table->kinds)
        mem_free(table->alloc, table->classes, table->kinds->count * sizeof table->classes[0]);
    mem_free(table->alloc, table->index, (table->mask + 1) * sizeof table->index[0]);
    *table = (struct table){0};
}
