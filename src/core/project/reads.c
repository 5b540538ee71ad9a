#include "core/project/reads.h"

#include <assert.h>

#include "base/alloc.h"
#include "core/project/reads_impl.h"
#include "core/schema/schema.h"

void reads_init(struct reads *r, const pawl_allocator *alloc)
{
    *r = (struct reads){.alloc = alloc};
    arena_init(&r->fields, alloc, 1024);
}

void reads_release(struct reads *r)
{
    mem_free(r->alloc, r->row, r->row_room * sizeof r->row[0]);
    mem_free(r->alloc, r->rows, r->rows_room * sizeof r->rows[0]);
    arena_release(&r->fields);
    reads_init(r, r->alloc);
}

void reads_reset(struct reads *r, uint64_t at)
{
    r->at = at;
    r->row_count = r->rows_count = 0;
    r->all = false;
    r->promised = 0;
    arena_reset(&r->fields);
}

/* A place for one more element. NULL with PAWL_OK: there are too many to remember, and reads->all is set. */
static int one_more(struct reads *r, void **array, size_t size, size_t *count, size_t *room, void **ret_slot)
{
    *ret_slot = NULL;
    if (r->all || *count == READS_MAX) {
        r->all = true;
        return PAWL_OK;
    }
    if (*count == *room) {
        size_t more = *room ? 2 * *room : 16;
        void *grown = mem_resize(r->alloc, *array, *room * size, more * size);
        if (!grown)
            return PAWL_ENOMEM;
        *array = grown;
        *room = more;
    }
    *ret_slot = (uint8_t *)*array + (*count)++ * size;
    return PAWL_OK;
}

static int add_hash(struct reads *r, uint64_t hash)
{
    void *array = r->row, *slot;
    int status = one_more(r, &array, sizeof r->row[0], &r->row_count, &r->row_room, &slot);
    r->row = array;
    if (slot)
        *(uint64_t *)slot = hash;
    return status;
}

int reads_add_row(struct reads *r, pawl_bytes key)
{
    uint64_t promised = promise_find(&r->promise, key);
    r->promised |= promised;
    if (promised)
        return PAWL_OK;
    return add_hash(r, hash_of_row(key));
}

static int add_hash_of_rows(struct reads *r, uint64_t hash, const uint64_t *fields, size_t words)
{
    void *array = r->rows, *slot;
    int status = one_more(r, &array, sizeof r->rows[0], &r->rows_count, &r->rows_room, &slot);
    r->rows = array;
    if (slot)
        *(struct read_rows *)slot = (struct read_rows){.hash = hash, .fields = fields, .words = words};
    return status;
}

static int add_rows(struct reads *r, uint32_t table, uint64_t wsid, const uint64_t *fields, size_t words)
{
    uint8_t key[KEY_WORKSPACE];
    pawl_bytes prefix = key_of_workspace(table, wsid, key);
    r->promised |= promise_find_all(&r->promise, prefix);
    return add_hash_of_rows(r, hash_of_rows(prefix), fields, words);
}

int reads_add(struct reads *r, const struct reads *others)
{
    int status = PAWL_OK;
    assert(others->promise.count == 0);
    for (size_t i = 0; i < others->row_count && status == PAWL_OK && !r->all; i++)
        status = add_hash(r, others->row[i]);
    for (size_t i = 0; i < others->rows_count && status == PAWL_OK && !r->all; i++) {
        assert(!others->rows[i].fields);
        status = add_hash_of_rows(r, others->rows[i].hash, NULL, 0);
    }
    if (status != PAWL_OK)
        return status;
    r->all = r->all || others->all;
    r->at = r->at < others->at ? r->at : others->at;
    return PAWL_OK;
}

void reads_coarsen(struct reads *r)
{
    struct promise promise = r->promise;
    uint64_t at = r->at;
    reads_release(r);
    r->at = at;
    r->all = true;
    r->promise = promise;
}

static int put_field(void *ctx, uint32_t slot)
{
    if (slot_of(slot) == SLOT_ROW)
        fields_put(ctx, slot_place(slot));
    return 0;
}

int reads_add_rows(struct reads *r, uint32_t table, uint64_t wsid, const struct expr *where, size_t field_count)
{
    size_t words = where ? FIELD_WORDS(field_count) : 0;
    uint64_t *fields = arena_take(&r->fields, words * sizeof *fields);
    if (!fields)
        return PAWL_ENOMEM;
    memset(fields, 0, words * sizeof *fields);
    if (where)
        expr_uses(where, put_field, fields);
    return add_rows(r, table, wsid, fields, words);
}

int reads_add_range(struct reads *r, uint32_t table, uint64_t wsid)
{
    return add_rows(r, table, wsid, NULL, 0);
}
