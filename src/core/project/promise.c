#include "core/project/promise.h"

#include <string.h>

#include "base/bytes.h"
#include "core/state/key.h"

/* While a promise is put together: for how many rows there is room, and how many bytes they may have still. */
struct putting {
    struct promise promise;
    struct arena *memory;
    size_t room;
    size_t left;
};

static int begin(struct putting *p, struct arena *memory, size_t rows)
{
    *p = (struct putting){.memory = memory, .left = PROMISED_BYTES_MAX};
    p->room = rows < PROMISED_ROWS_MAX ? rows : PROMISED_ROWS_MAX;
    p->promise.rows = arena_take(memory, p->room * sizeof p->promise.rows[0]);
    return p->promise.rows ? PAWL_OK : PAWL_ENOMEM;
}

/* The row takes the place of one with the same key. */
static int put(struct putting *p, pawl_bytes key, pawl_bytes value, uint64_t number)
{
    struct promise *promise = &p->promise;
    size_t at = 0;
    while (at < promise->count && !bytes_equal(promise->rows[at].key, key))
        at++;
    if (at == p->room || key.size + value.size > p->left)
        return PAWL_ETOOBIG;
    struct promised_row row = {.key = arena_copy(p->memory, key), .number = number};
    if (value.data)
        row.value = arena_copy(p->memory, value);
    if (!row.key.data || (value.data && !row.value.data))
        return PAWL_ENOMEM;
    p->left -= key.size + value.size;
    promise->rows[at] = row;
    promise->count += at == promise->count;
    return PAWL_OK;
}

int promise_make(struct promise *promise, struct arena *memory, const struct changes *changes)
{
    struct putting p;
    int status = begin(&p, memory, changes->count);
    for (const struct row_change *c = changes->first; c && status == PAWL_OK; c = c->next)
        status = put(&p, c->key, c->value, 0);
    if (status == PAWL_OK)
        *promise = p.promise;
    return status;
}

int promise_pass_on(struct promise *promise, struct arena *memory, const struct promise *had,
                    const struct promise *made, uint64_t number, uint64_t staged, uint64_t wsid)
{
    struct putting p;
    int status = begin(&p, memory, had->count + made->count);
    for (size_t i = 0; i < had->count && status == PAWL_OK; i++)
        if (had->rows[i].number > staged && key_wsid(had->rows[i].key) == wsid)
            status = put(&p, had->rows[i].key, had->rows[i].value, had->rows[i].number);
    for (size_t i = 0; i < made->count && status == PAWL_OK; i++)
        if (key_wsid(made->rows[i].key) == wsid)
            status = put(&p, made->rows[i].key, made->rows[i].value, number);
    if (status == PAWL_OK)
        *promise = p.promise;
    return status;
}

bool promise_fits(const struct promise *had, const struct promise *made, uint64_t staged)
{
    size_t rows = made->count, bytes = 0;
    for (size_t i = 0; i < made->count; i++)
        bytes += made->rows[i].key.size + made->rows[i].value.size;
    for (size_t i = 0; i < had->count; i++)
        if (had->rows[i].number > staged) {
            rows++;
            bytes += had->rows[i].key.size + had->rows[i].value.size;
        }
    return rows <= PROMISED_ROWS_MAX && bytes <= PROMISED_BYTES_MAX;
}

uint64_t promise_find(const struct promise *promise, pawl_bytes key)
{
    for (size_t i = 0; i < promise->count; i++)
        if (bytes_equal(promise->rows[i].key, key))
            return UINT64_C(1) << i;
    return 0;
}

uint64_t promise_find_all(const struct promise *promise, pawl_bytes prefix)
{
    uint64_t found = 0;
    for (size_t i = 0; i < promise->count; i++) {
        pawl_bytes key = promise->rows[i].key;
        if (key.size >= prefix.size && memcmp(key.data, prefix.data, prefix.size) == 0)
            found |= UINT64_C(1) << i;
    }
    return found;
}
