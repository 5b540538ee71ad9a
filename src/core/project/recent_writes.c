/* core/project/recent_writes.c: what recent operations wrote, by hash.
 *
 * A map says of each hash which number touched it last; a ring, in the order of numbers, says what to forget
 * when the oldest must go. A hash that an operation touches twice is in the ring once for it.
 *
 *     ring    (n1, a) (n1, b) (n2, a) (n3, c)         oldest first
 *     newest  a: n2   b: n1   c: n3
 *
 * Invariants
 *   N1  Each hash in the map has an entry in the ring with its number, the last one of that hash.
 *   N2  So the map never holds more than the ring, and putting into it never fails.
 *   N3  Numbers in the ring are above the floor, and at most last. */
#include "base/alloc.h"
#include "base/map.h"
#include "base/ring.h"
#include "core/project/reads.h"
#include "core/project/reads_impl.h"

struct entry {
    uint64_t number;
    uint64_t hash;
};

struct recent_writes {
    const pawl_allocator *alloc;
    struct map newest; /* hash -> number */
    struct ring ring;  /* struct entry */
    uint64_t floor;    /* numbers up to this one may be forgotten */
    uint64_t last;     /* noted */
    uint64_t wrote;    /* the last number that wrote anything */
    uint64_t marks;    /* of the hashes that were touched since somebody asked */
};

int recent_writes_new(const pawl_allocator *alloc, uint32_t capacity, struct recent_writes **ret_recent)
{
    struct recent_writes *r = mem_new(alloc, 1, sizeof *r);
    if (!r)
        return PAWL_ENOMEM;
    r->alloc = alloc;
    map_init(&r->newest, alloc, sizeof(uint64_t), sizeof(uint64_t), capacity);
    int status = ring_init(&r->ring, alloc, capacity, sizeof(struct entry));
    if (status != PAWL_OK)
        goto no_ring;
    status = map_reserve(&r->newest, capacity);
    if (status != PAWL_OK)
        goto no_map;
    *ret_recent = r;
    return PAWL_OK;

no_map:
    ring_release(&r->ring);
no_ring:
    mem_free(alloc, r, sizeof *r);
    return status;
}

void recent_writes_free(struct recent_writes *r)
{
    if (!r)
        return;
    map_release(&r->newest);
    ring_release(&r->ring);
    mem_free(r->alloc, r, sizeof *r);
}

void recent_writes_reset(struct recent_writes *r, uint64_t next)
{
    assert(next > 0);
    map_clear(&r->newest);
    ring_clear(&r->ring);
    r->floor = r->last = r->wrote = next - 1;
}

/* Forget the oldest number, with everything that it wrote. */
static void forget_oldest(struct recent_writes *r)
{
    r->floor = ((struct entry *)ring_at(&r->ring, 0))->number;
    while (r->ring.count > 0) {
        const struct entry *oldest = ring_at(&r->ring, 0);
        if (oldest->number > r->floor)
            break;
        const uint64_t *number = map_get_u64(&r->newest, oldest->hash);
        if (number && *number == oldest->number)
            map_remove_u64(&r->newest, oldest->hash);
        ring_pop(&r->ring, 1);
    }
}

static void touch(struct recent_writes *r, uint64_t hash)
{
    r->marks |= mark_of(hash);
    uint64_t *number = map_get_u64(&r->newest, hash);
    if (r->floor == r->last || (number && *number == r->last))
        return; /* it did not fit, and is forgotten as a whole */
    if (r->ring.count == r->ring.capacity)
        forget_oldest(r);
    if (r->floor == r->last)
        return;
    struct entry *entry = ring_push(&r->ring);
    *entry = (struct entry){.number = r->last, .hash = hash};
    void *value;
    bool fresh;
    int status = map_put_u64(&r->newest, hash, &value, &fresh);
    assert(status == PAWL_OK);
    (void)status;
    *(uint64_t *)value = r->last;
}

/* Touch the fields of a row that existed before and after. */
static void touch_fields(struct recent_writes *r, uint64_t rows, const struct operation_row *row)
{
    struct row set = {row->set};
    size_t count = row_fields(set);
    touch(r, hash_of_any_field(rows));
    for (size_t i = 0; i < count; i++)
        if (row_has(set, i))
            touch(r, hash_of_field(rows, i));
    for (size_t i = 0; i < row->cleared_count; i++)
        touch(r, hash_of_field(rows, operation_cleared(row, i)));
}

void recent_writes_note(struct recent_writes *r, const struct operation *o, const struct changes *changes)
{
    assert(o->number == r->last + 1); /* R1 */
    r->last = o->number;
    if (changes->count > 0)
        r->wrote = r->last;
    const struct row_change *change = changes->first;
    struct operation_write write;
    struct operation_row row;
    for (size_t at = 0; operation_next_write(o, &at, &write);)
        for (size_t in = 0; operation_next_row(&write, &in, &row); change = change->next) {
            assert(change);
            uint64_t rows = hash_of_rows(change->key);
            touch(r, hash_of_row(change->key));
            if (change->digest.rows != 0)
                touch(r, hash_of_membership(rows));
            else
                touch_fields(r, rows, &row);
        }
    assert(!change);
}

static bool untouched(const struct recent_writes *r, uint64_t hash, uint64_t since)
{
    const uint64_t *number = map_get_u64(&r->newest, hash);
    return !number || *number <= since;
}

static bool rows_stand(const struct recent_writes *r, const struct read_rows *rows, uint64_t since)
{
    if (!untouched(r, hash_of_membership(rows->hash), since))
        return false;
    if (!rows->fields)
        return untouched(r, hash_of_any_field(rows->hash), since);
    for (size_t w = 0; w < rows->words; w++)
        for (uint64_t left = rows->fields[w]; left; left &= left - 1) {
            size_t place = 64 * w + (size_t)__builtin_ctzll(left);
            if (!untouched(r, hash_of_field(rows->hash, place), since))
                return false;
        }
    return true;
}

bool reads_stand(const struct reads *reads, const struct recent_writes *r)
{
    if (reads_is_blind(reads) || reads->at >= r->wrote)
        return true;
    if (reads->all || reads->at < r->floor)
        return false;
    for (size_t i = 0; i < reads->row_count; i++)
        if (!untouched(r, reads->row[i], reads->at))
            return false;
    for (size_t i = 0; i < reads->rows_count; i++)
        if (!rows_stand(r, &reads->rows[i], reads->at))
            return false;
    return true;
}

/* Of the first row among those that are left. */
static uint64_t hash_of_promised(const struct reads *reads, uint64_t left)
{
    return hash_of_row(reads->promise.rows[__builtin_ctzll(left)].key);
}

uint64_t reads_marks(const struct reads *reads)
{
    uint64_t marks = reads->all || reads->rows_count > 0 ? UINT64_MAX : 0;
    for (size_t i = 0; i < reads->row_count && marks != UINT64_MAX; i++)
        marks |= mark_of(reads->row[i]);
    for (uint64_t left = reads->promised; left; left &= left - 1)
        marks |= mark_of(hash_of_promised(reads, left));
    return marks;
}

uint64_t recent_writes_marks(struct recent_writes *r)
{
    uint64_t marks = r->marks;
    r->marks = 0;
    return marks;
}

static uint64_t later_of(const struct recent_writes *r, uint64_t number, uint64_t hash)
{
    const uint64_t *touched = map_get_u64(&r->newest, hash);
    return touched && *touched > number ? *touched : number;
}

uint64_t reads_last_writer(const struct reads *reads, const struct recent_writes *r)
{
    uint64_t last = reads->all ? r->wrote : 0;
    for (size_t i = 0; i < reads->row_count; i++)
        last = later_of(r, last, reads->row[i]);
    for (uint64_t left = reads->promised; left; left &= left - 1)
        last = later_of(r, last, hash_of_promised(reads, left));
    for (size_t i = 0; i < reads->rows_count; i++) {
        last = later_of(r, last, hash_of_membership(reads->rows[i].hash));
        last = later_of(r, last, hash_of_any_field(reads->rows[i].hash));
    }
    return last;
}
