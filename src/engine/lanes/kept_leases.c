/* engine/lanes/kept_leases.c: leases of external workers, kept in DIR/local so that they survive a restart.
 *
 *     lane (shard) ── keep, drop, find ──► rows of its partition_lane ── local_add ──► the thread of engine/local
 *     worker       ── settle ─────────────────────────────────────────── local_sync ──► durable: it is answered
 *     opening      ── local_scan ──► rows ──► each to the partition_lane that it is of; the others are removed
 *
 * The store of pawl/lease.h. In memory, the rows of a partition_lane are a list by number. There are at most as
 * many as the lane's window has numbers, and they come and go at its ends: new leases at the last one, commits
 * at the first.
 *
 * A row's key is "lease/", lane, generation, partition and number, so that rows of one list lie side by side and
 * in its order. docs/FORMAT.md has the bytes. The memory of a removal is allocated with its row: to drop cannot
 * fail. */
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/heap.h"
#include "engine/lanes/impl.h"

#define PREFIX       "lease/"
#define PREFIX_BYTES 6
#define KEY_BYTES    (PREFIX_BYTES + 2 + 4 + 2 + 8)
#define VALUE_BYTES  (1 + 16 + 4 + 4 + 4 + 8)
#define VERSION      1

/* A row, and the write that will remove it. */
struct kept_lease {
    struct kept_lease *prev, *next;
    pawl_lease_row row;
    uint16_t lane;
    uint32_t generation;
    uint16_t partition;
    struct local_write removal;
    const pawl_allocator *alloc;
    size_t key_size;
    uint8_t key[]; /* as it lies in the store, also if it makes no sense */
};

/* A write that keeps a row. */
struct keeping {
    struct local_write write;
    const pawl_allocator *alloc;
    uint8_t key[KEY_BYTES];
    uint8_t value[VALUE_BYTES];
};

/* --- bytes --- */

static void encode_key(const struct partition_lane *pl, uint64_t number, uint8_t *key)
{
    memcpy(key, PREFIX, PREFIX_BYTES);
    put_u16_sorted(key + 6, pl->generation->id);
    put_u32_sorted(key + 8, pl->generation->number);
    put_u16_sorted(key + 12, pl->partition);
    put_u64_sorted(key + 14, number);
}

static void encode_value(const pawl_lease_row *row, uint8_t *value)
{
    put_u8(value, VERSION);
    put_u64(value + 1, row->operation.high);
    put_u64(value + 9, row->operation.low);
    put_u32(value + 17, row->projection);
    put_u32(value + 21, row->attempt);
    put_u32(value + 25, row->failures);
    put_u64(value + 29, row->duration);
}

/* False: it is not a row of this version. */
static bool decode(struct kept_lease *kept, pawl_bytes value)
{
    const uint8_t *key = kept->key, *bytes = value.data;
    if (kept->key_size != KEY_BYTES || value.size != VALUE_BYTES || bytes[0] != VERSION)
        return false;
    kept->lane = get_u16_sorted(key + 6);
    kept->generation = get_u32_sorted(key + 8);
    kept->partition = get_u16_sorted(key + 12);
    kept->row = (pawl_lease_row){.number = get_u64_sorted(key + 14),
                                 .operation = {get_u64(bytes + 1), get_u64(bytes + 9)},
                                 .projection = get_u32(bytes + 17),
                                 .attempt = get_u32(bytes + 21),
                                 .failures = get_u32(bytes + 25),
                                 .duration = get_u64(bytes + 29)};
    return true;
}

/* --- memory --- */

static void kept_free(struct kept_lease *kept)
{
    mem_free(kept->alloc, kept, sizeof *kept + kept->key_size);
}

static void removed(struct local_write *write)
{
    kept_free(heap_entry(write, struct kept_lease, removal));
}

static struct kept_lease *kept_new(const pawl_allocator *alloc, pawl_bytes key)
{
    struct kept_lease *kept = mem_new(alloc, 1, sizeof *kept + key.size);
    if (!kept)
        return NULL;
    kept->alloc = alloc;
    kept->key_size = key.size;
    memcpy(kept->key, key.data, key.size);
    kept->removal = (struct local_write){.key = {kept->key, key.size}, .done = removed};
    return kept;
}

static void kept_down(struct local_write *write)
{
    struct keeping *keeping = heap_entry(write, struct keeping, write);
    mem_free(keeping->alloc, keeping, sizeof *keeping);
}

/* --- the list of a partition_lane, by number --- */

static void insert(struct kept_leases *list, struct kept_lease *kept)
{
    struct kept_lease *before = list->last;
    while (before && before->row.number > kept->row.number)
        before = before->prev;
    kept->prev = before;
    kept->next = before ? before->next : list->first;
    *(kept->next ? &kept->next->prev : &list->last) = kept;
    *(before ? &before->next : &list->first) = kept;
}

static void unlink_kept(struct kept_leases *list, struct kept_lease *kept)
{
    *(kept->next ? &kept->next->prev : &list->last) = kept->prev;
    *(kept->prev ? &kept->prev->next : &list->first) = kept->next;
}

/* The first one whose number is not below this. */
static struct kept_lease *find_from(const struct kept_leases *list, uint64_t number)
{
    struct kept_lease *kept = list->first;
    if (list->last && list->last->row.number < number)
        return NULL;
    while (kept && kept->row.number < number)
        kept = kept->next;
    return kept;
}

/* --- the store of pawl/lease.h: on the shard, but for settle --- */

static bool is_same(const pawl_lease_row *a, const pawl_lease_row *b)
{
    return a->operation.high == b->operation.high && a->operation.low == b->operation.low
           && a->projection == b->projection && a->attempt == b->attempt && a->failures == b->failures;
}

static int add_write(struct partition_lane *pl, struct local_write *write, bool must)
{
    uint64_t number;
    int status = local_add(pl->generation->engine->local, write, must, &number);
    if (status == PAWL_OK)
        atomic_store(&pl->kept.written, number);
    return status;
}

static int queue_keeping(struct partition_lane *pl, const pawl_lease_row *row)
{
    const pawl_allocator *alloc = pl->generation->engine->options.allocator;
    struct keeping *keeping = mem_new(alloc, 1, sizeof *keeping);
    if (!keeping)
        return PAWL_ENOMEM;
    keeping->alloc = alloc;
    encode_key(pl, row->number, keeping->key);
    encode_value(row, keeping->value);
    keeping->write = (struct local_write){
        .key = {keeping->key, KEY_BYTES}, .value = {keeping->value, VALUE_BYTES}, .done = kept_down};
    int status = add_write(pl, &keeping->write, false);
    if (status != PAWL_OK)
        kept_down(&keeping->write);
    return status;
}

static int keep(void *ctx, const pawl_lease_row *row)
{
    struct partition_lane *pl = ctx;
    struct kept_lease *kept = find_from(&pl->kept, row->number);
    if (kept && kept->row.number == row->number) {
        if (is_same(&kept->row, row) && kept->row.duration >= row->duration)
            return PAWL_OK;
        int status = queue_keeping(pl, row);
        if (status == PAWL_OK)
            kept->row = *row;
        return status;
    }
    uint8_t key[KEY_BYTES];
    encode_key(pl, row->number, key);
    kept = kept_new(pl->generation->engine->options.allocator, (pawl_bytes){key, KEY_BYTES});
    if (!kept)
        return PAWL_ENOMEM;
    kept->row = *row;
    int status = queue_keeping(pl, row);
    if (status == PAWL_OK)
        insert(&pl->kept, kept);
    else
        kept_free(kept);
    return status;
}

static void drop(void *ctx, uint64_t number)
{
    struct partition_lane *pl = ctx;
    struct kept_lease *kept = find_from(&pl->kept, number);
    if (!kept || kept->row.number != number)
        return;
    unlink_kept(&pl->kept, kept);
    (void)add_write(pl, &kept->removal, true);
}

static bool find(void *ctx, uint64_t from, pawl_lease_row *ret_row)
{
    const struct partition_lane *pl = ctx;
    const struct kept_lease *kept = find_from(&pl->kept, from);
    if (kept)
        *ret_row = kept->row;
    return kept != NULL;
}

int kept_leases_settle(struct partition_lane *pl, pawl_error *error)
{
    return local_sync(pl->generation->engine->local, atomic_load(&pl->kept.written), error);
}

static int settle(void *ctx)
{
    return kept_leases_settle(ctx, NULL);
}

const pawl_lease_store kept_leases_store = {.keep = keep, .drop = drop, .find = find, .settle = settle};

/* --- with the engine --- */

struct loading {
    pawl_engine *engine;
    struct kept_lease **last;
    int status;
};

/* A row that cannot be read names no generation, so it is removed with those that nobody has. */
static bool load_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct loading *loading = arg;
    pawl_engine *e = loading->engine;
    struct kept_lease *kept = kept_new(e->options.allocator, key);
    if (!kept) {
        loading->status = PAWL_ENOMEM;
        return false;
    }
    (void)decode(kept, value);
    *loading->last = kept;
    loading->last = &kept->next;
    return true;
}

int lanes_load_kept(pawl_engine *e, pawl_error *error)
{
    struct loading loading = {.engine = e, .last = &e->lanes->loaded};
    int status = local_scan(e->local, (pawl_bytes){PREFIX, PREFIX_BYTES}, load_row, &loading, error);
    if (status == PAWL_OK)
        status = loading.status;
    if (status == PAWL_OK && e->lanes->loaded)
        status = local_start(e->local, error);
    if (status == PAWL_OK && e->local_is_foreign)
        lanes_drop_unclaimed(e);
    return status == PAWL_OK ? status : error_wrap(error, status, "cannot read the leases that are kept");
}

void kept_leases_take(struct partition_lane *pl)
{
    struct kept_lease **at = &pl->generation->engine->lanes->loaded;
    while (*at) {
        struct kept_lease *kept = *at;
        if (kept->lane != pl->generation->id || kept->generation != pl->generation->number
            || kept->partition != pl->partition) {
            at = &kept->next;
            continue;
        }
        *at = kept->next;
        insert(&pl->kept, kept);
    }
}

void kept_leases_drop_all(struct partition_lane *pl)
{
    while (pl->kept.first)
        drop(pl, pl->kept.first->row.number);
}

void kept_leases_release(struct partition_lane *pl)
{
    while (pl->kept.first) {
        struct kept_lease *kept = pl->kept.first;
        unlink_kept(&pl->kept, kept);
        kept_free(kept);
    }
}

void lanes_drop_unclaimed(pawl_engine *e)
{
    uint64_t number;
    while (e->lanes->loaded) {
        struct kept_lease *kept = e->lanes->loaded;
        e->lanes->loaded = kept->next;
        (void)local_add(e->local, &kept->removal, true, &number);
    }
}

void kept_leases_forget(pawl_engine *e)
{
    while (e->lanes->loaded) {
        struct kept_lease *kept = e->lanes->loaded;
        e->lanes->loaded = kept->next;
        kept_free(kept);
    }
}
