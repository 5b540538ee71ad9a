#include "core/sequence/table.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

#define INDEX_MIN   ((uint64_t)64)
#define CHUNK_BYTES 65536u
#define LINE_BYTES  ((size_t)64)
#define SWEEP_MAX   256 /* records that are looked at to evict one */

static uint32_t stride_of(const struct kind *kind)
{
    size_t bytes = sizeof(struct record) + kind->count * (sizeof(uint64_t) + sizeof(uint32_t));
    return (uint32_t)((bytes + 7) / 8 * 8);
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
    uint32_t hash = table_hash(wsid);
    uint64_t at = hash & table->mask;
    while (table->index[at])
        at = (at + 1) & table->mask;
    table->index[at] = (uint64_t)hash << 32 | (slot + 1);
}

static void index_remove(struct table *table, uint64_t wsid, uint32_t slot)
{
    uint32_t hash = table_hash(wsid);
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

void table_prefetch(const struct table *table, const uint64_t *wsids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        __builtin_prefetch(&table->index[table_hash(wsids[i]) & table->mask]);
    for (size_t i = 0; i < count; i++) {
        uint32_t hash = table_hash(wsids[i]);
        uint64_t at = hash & table->mask;
        while (table->index[at] && (uint32_t)(table->index[at] >> 32) != hash)
            at = (at + 1) & table->mask;
        if (table->index[at])
            __builtin_prefetch(table_at(table, (uint32_t)table->index[at] - 1), 1);
    }
}

/* Records. */

static void slot_free(struct table *table, struct record_class *class, uint32_t slot)
{
    struct record *record = table_at(table, slot);
    record->wsid = 0;
    record->staged = class->free;
    class->free = slot;
}

/* From the last to the first, so that they are taken in the order in which they lie. */
static void chunk_free_all(struct table *table, struct record_class *class, uint32_t number)
{
    for (uint32_t i = table->chunks[number].count; i-- > 0;)
        slot_free(table, class, number << CHUNK_BITS | i);
}

static size_t chunk_bytes(uint32_t stride, uint32_t count)
{
    return (size_t)count * stride + LINE_BYTES - 1;
}

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
    if (number >= NO_SLOT >> CHUNK_BITS)
        return PAWL_ENOMEM;
    void *memory = mem_resize(table->alloc, NULL, 0, chunk_bytes(class->stride, count));
    if (!memory)
        return PAWL_ENOMEM;
    uint16_t skipped = (uint16_t)(-(uintptr_t)memory & (LINE_BYTES - 1));
    table->chunks[number] =
        (struct chunk){(uint8_t *)memory + skipped, class->stride, (uint16_t)count, skipped};
    table->chunk_count++;
    chunk_free_all(table, class, number);
    return PAWL_OK;
}

static struct record_class *class_of(const struct table *table, uint16_t kind_place)
{
    return &table->classes[table->kinds->list[kind_place].classed];
}

static bool pinned(const struct table *table, const struct record *record)
{
    return record->staged || record == table->held || record->batch == table->batch
           || (table->write && record->batch == table->write);
}

static void evict(struct table *table, struct record *record)
{
    assert(!pinned(table, record)); /* T2 */
    index_remove(table, record->wsid, record->slot);
    slot_free(table, class_of(table, record->kind), record->slot);
    table->count--;
    table->evictions++;
}

bool table_forget(struct table *table, struct record *record)
{
    if (pinned(table, record))
        return false;
    evict(table, record);
    return true;
}

/* Where the hand points; it moves on. There must be a chunk. */
static struct record *hand_next(struct table *table)
{
    if (table->hand_chunk >= table->chunk_count)
        table->hand_chunk = 0;
    uint32_t slot = table->hand_chunk << CHUNK_BITS | table->hand;
    if (++table->hand >= table->chunks[table->hand_chunk].count) {
        table->hand = 0;
        table->hand_chunk++;
    }
    return table_at(table, slot);
}

/* One that was used gets a second chance, but not for ever: the pause must be short. */
static void evict_one(struct table *table)
{
    struct record *second = NULL;
    for (int i = 0; i < SWEEP_MAX && table->chunk_count; i++) {
        struct record *record = hand_next(table);
        if (record->wsid == 0 || pinned(table, record))
            continue;
        if (!record->used) {
            evict(table, record);
            return;
        }
        record->used = false;
        second = second ? second : record;
    }
    if (second)
        evict(table, second);
}

/* At most twice round: the first time may only have taken the second chances away. */
void table_trim(struct table *table)
{
    uint64_t steps = 0;
    for (uint32_t i = 0; i < table->chunk_count && table->count > table->count_max; i++)
        steps += 2 * (uint64_t)table->chunks[i].count;
    for (; steps && table->count > table->count_max; steps--) {
        struct record *record = hand_next(table);
        if (record->wsid == 0 || pinned(table, record))
            continue;
        if (record->used)
            record->used = false;
        else
            evict(table, record);
    }
}

int table_insert(struct table *table, uint64_t wsid, uint16_t kind_place, struct record **ret_record)
{
    struct record_class *class = class_of(table, kind_place);
    if ((uint64_t)table->count + 1 > table->mask + 1 - (table->mask + 1) / 4) {
        int status = index_grow(table, 2 * (table->mask + 1));
        if (status)
            return status;
    }
    if (table->count >= table->count_max)
        evict_one(table);
    if (class->free == NO_SLOT) {
        int status = chunk_add(table, class);
        if (status)
            return status;
    }
    uint32_t slot = class->free;
    struct record *record = table_at(table, slot);
    class->free = record->staged;
    memset(record, 0, class->stride);
    record->wsid = wsid;
    record->slot = slot;
    record->kind = kind_place;
    index_put(table, wsid, slot);
    table->count++;
    *ret_record = record;
    return PAWL_OK;
}

void table_clear(struct table *table)
{
    memset(table->index, 0, (table->mask + 1) * sizeof table->index[0]);
    for (uint16_t c = 0; c < table->class_count; c++) {
        struct record_class *class = &table->classes[c];
        class->free = NO_SLOT;
        for (uint32_t i = 0; i < table->chunk_count; i++)
            if (table->chunks[i].stride == class->stride)
                chunk_free_all(table, class, i);
    }
    table->held = NULL;
    table->write = 0;
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
            table->classes[table->class_count++] = (struct record_class){stride, NO_SLOT};
        kind->classed = c;
    }
}

int table_init(struct table *table, const pawl_allocator *alloc, struct kinds *kinds, uint32_t count_max)
{
    *table = (struct table){.alloc = alloc, .kinds = kinds, .count_max = count_max, .batch = 1};
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
        mem_free(table->alloc, table->chunks[i].records - table->chunks[i].skipped,
                 chunk_bytes(table->chunks[i].stride, table->chunks[i].count));
    mem_free(table->alloc, table->chunks, table->chunk_room * sizeof table->chunks[0]);
    if (table->kinds)
        mem_free(table->alloc, table->classes, table->kinds->count * sizeof table->classes[0]);
    mem_free(table->alloc, table->index, (table->mask + 1) * sizeof table->index[0]);
    *table = (struct table){0};
}
