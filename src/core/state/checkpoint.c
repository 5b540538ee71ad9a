#include "core/state/checkpoint.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "core/event/envelope.h"
#include "core/sequence/storage.h"
#include "core/state/key.h"
#include "core/view/tables.h"

#define CHUNK       ((size_t)64 * 1024)
#define NUMBERS_MAX ((size_t)1 << 26)

struct following {
    struct position position;
    uint64_t sequences; /* the offset up to which the sequence storage is complete */
    struct gathered gathered;
    struct map numbers; /* key of the sequence storage -> last number */
    size_t bytes;       /* of both, as last counted; and the rows */
    uint64_t rows;
    bool ahead;   /* of the store */
    bool touched; /* there is something to commit */
};

struct checkpoint {
    struct checkpoint_options options;
    struct following *partitions;
    struct arena memory; /* of one event, or of sorting */
    uint8_t *scratch;
    uint64_t events;
    size_t bytes; /* of all sets; and their rows */
    uint64_t rows;
    bool put;  /* the transaction has rows of some partition */
    bool full; /* one transaction can hold no more */
};

static size_t bytes_of_partitions(const struct checkpoint *c)
{
    return c->options.partitions.count * sizeof c->partitions[0];
}

static int read_sequences(struct checkpoint *c, struct following *f, pawl_error *error)
{
    int status =
        sequence_read_offset(pawl_store_writer(c->options.store), f->position.partition, &f->sequences);
    return status == PAWL_OK ? status
                             : error_set(error, status, "cannot read the sequence storage of partition %u",
                                         f->position.partition);
}

static int read_positions(struct checkpoint *c, pawl_error *error)
{
    int status = PAWL_OK;
    for (size_t i = 0; status == PAWL_OK && i < c->options.partitions.count; i++) {
        struct following *f = &c->partitions[i];
        status = position_read(&f->position, pawl_store_writer(c->options.store), error);
        if (status == PAWL_OK)
            status = read_sequences(c, f, error);
        f->ahead = false;
    }
    return status;
}

static void init_numbers(const struct checkpoint *c, struct following *f)
{
    map_init(&f->numbers, c->options.alloc, SEQUENCE_KEY_BYTES, sizeof(uint64_t), NUMBERS_MAX);
}

static void init_following(struct checkpoint *c, size_t index)
{
    const struct checkpoint_options *o = &c->options;
    struct following *f = &c->partitions[index];
    position_init(&f->position, o->alloc, partition_set_at(&o->partitions, index));
    gathered_init(&f->gathered, o->alloc);
    init_numbers(c, f);
}

static void release_following(struct following *f)
{
    position_release(&f->position);
    gathered_release(&f->gathered);
    map_release(&f->numbers);
}

int checkpoint_new(const struct checkpoint_options *options, struct checkpoint **ret_checkpoint,
                   pawl_error *error)
{
    struct checkpoint *c = mem_new(options->alloc, 1, sizeof *c);
    if (!c)
        return error_set(error, PAWL_ENOMEM, "no memory for a checkpoint");
    c->options = *options;
    arena_init(&c->memory, options->alloc, CHUNK);
    c->partitions = mem_new(options->alloc, options->partitions.count, sizeof c->partitions[0]);
    c->scratch = mem_new(options->alloc, 1, STATE_SCRATCH_BYTES);
    int status = PAWL_ENOMEM;
    if (c->partitions && c->scratch) {
        for (size_t i = 0; i < options->partitions.count; i++)
            init_following(c, i);
        status = read_positions(c, error);
    } else
        error_set(error, status, "no memory for a checkpoint");
    if (status == PAWL_OK)
        *ret_checkpoint = c;
    else
        checkpoint_free(c);
    return status;
}

void checkpoint_free(struct checkpoint *c)
{
    if (!c)
        return;
    const pawl_allocator *alloc = c->options.alloc;
    for (size_t i = 0; c->partitions && i < c->options.partitions.count; i++)
        release_following(&c->partitions[i]);
    mem_free(alloc, c->partitions, c->partitions ? bytes_of_partitions(c) : 0);
    mem_free(alloc, c->scratch, c->scratch ? STATE_SCRATCH_BYTES : 0);
    arena_release(&c->memory);
    mem_free(alloc, c, sizeof *c);
}

const struct position *checkpoint_position(const struct checkpoint *c, size_t index)
{
    return &c->partitions[index].position;
}

uint64_t checkpoint_next(const struct checkpoint *c, size_t index)
{
    const struct following *f = &c->partitions[index];
    return (f->sequences < f->position.offset ? f->sequences : f->position.offset) + 1;
}

uint64_t checkpoint_events(const struct checkpoint *c)
{
    return c->events;
}

bool checkpoint_is_full(const struct checkpoint *c)
{
    return c->full || c->events >= c->options.events_max || c->bytes >= c->options.bytes_max;
}

/* --- the sets --- */

/* Which views there are may have changed since the last commit. */
static void watch_rows(struct checkpoint *c, struct following *f)
{
    f->gathered.watch = c->options.views ? view_tables_watch(c->options.views) : NULL;
}

struct gathered *checkpoint_gathered(struct checkpoint *c, size_t index)
{
    watch_rows(c, &c->partitions[index]);
    return &c->partitions[index].gathered;
}

/* Rows of this partition that the commit writes, and rows that are in its transaction already. */
static uint64_t rows_of(const struct following *f)
{
    return f->gathered.puts + f->gathered.rows.count + f->numbers.count;
}

/* The same with rows of views: each row may bring one of each. */
static uint64_t rows_at_most(const struct checkpoint *c, const struct following *f)
{
    return rows_of(f) * (1 + (c->options.views ? view_tables_width(c->options.views) : 0));
}

static bool is_put(const struct following *f)
{
    return f->gathered.puts > 0;
}

static void count_rows(struct checkpoint *c, struct following *f)
{
    size_t bytes = gathered_bytes(&f->gathered) + f->numbers.memory_size;
    uint64_t rows = rows_at_most(c, f);
    c->bytes += bytes - f->bytes;
    f->bytes = bytes;
    c->rows += rows - f->rows;
    f->rows = rows;
    f->touched = true;
    c->put = c->put || is_put(f);
    c->full = c->full || (c->put ? c->rows : rows) >= c->options.rows_max; /* C4 */
}

void checkpoint_count(struct checkpoint *c, size_t index)
{
    count_rows(c, &c->partitions[index]);
    c->events++;
}

static int keep_numbers(struct following *f, const struct envelope *envelope)
{
    int status = PAWL_OK;
    for (size_t i = 0; status == PAWL_OK && i < envelope->count; i++) {
        struct event_numbers n = envelope_numbers(envelope, i);
        uint8_t key[SEQUENCE_KEY_BYTES];
        pawl_bytes bytes = sequence_key(f->position.partition, envelope->wsid, n.seq, key);
        void *value;
        bool fresh;
        status = map_put(&f->numbers, hash_checksum(0, bytes), key, &value, &fresh);
        if (status != PAWL_OK)
            return PAWL_ENOMEM;
        *(uint64_t *)value = n.first + n.count - 1;
    }
    return status;
}

/* The set of a partition and the transaction that it goes into. */
struct scanning {
    struct gathered *gathered;
    pawl_store *store;
    pawl_error *error;
};

static int put_before_scan(void *ctx)
{
    const struct scanning *s = ctx;
    return gathered_put(s->gathered, s->store, s->error);
}

/* --- events --- */

static int derive_event(struct checkpoint *c, struct following *f, uint64_t offset, pawl_bytes body,
                        pawl_error *error)
{
    struct event event;
    struct changes changes = {0};
    struct scanning scanning = {.gathered = &f->gathered, .store = c->options.store, .error = error};
    struct state state = {.overlay = &f->gathered.overlay,
                          .reader = pawl_store_writer(c->options.store),
                          .scratch = c->scratch,
                          .before_scan = put_before_scan,
                          .ctx = &scanning};
    int status = event_decode(body, &event, error);
    if (status != PAWL_OK)
        return status;
    struct derivation derivation = {
        .offset = offset, .event = &event, .schema = c->options.schema_at(c->options.ctx, event.head.schema)};
    if (!derivation.schema)
        return error_set(error, PAWL_ECORRUPT,
                         "the event was made under the schema at %" PRIu64 ", which is not known",
                         event.head.schema);
    status = derive(&derivation, &state, &c->memory, &changes, error);
    if (status != PAWL_OK)
        return status;
    status = digests_add(&f->position.digests, &changes);
    if (status == PAWL_OK)
        status = gathered_take(&f->gathered, &changes);
    return status == PAWL_OK ? status : error_set(error, status, "no memory for what a checkpoint gathers");
}

static int note_numbers(struct following *f, uint64_t offset, pawl_bytes body, pawl_error *error)
{
    struct envelope envelope;
    int status = envelope_decode(body, &envelope, error);
    if (status != PAWL_OK)
        return status;
    status = keep_numbers(f, &envelope);
    if (status != PAWL_OK)
        return error_set(error, status, "no memory for what a checkpoint gathers");
    f->sequences = offset;
    return PAWL_OK;
}

/* C5 */
static int audit(struct checkpoint *c, size_t index, uint64_t offset, pawl_error *error)
{
    struct following *f = &c->partitions[index];
    bool views = c->options.views && view_tables_watch(c->options.views);
    int status = views ? gathered_put(&f->gathered, c->options.store, error) : PAWL_OK;
    if (status != PAWL_OK)
        return status;
    count_rows(c, f);
    c->options.audit(c->options.ctx, &f->position, offset);
    return PAWL_OK;
}

int checkpoint_take(struct checkpoint *c, size_t index, uint64_t offset, pawl_place place, pawl_bytes body,
                    pawl_error *error)
{
    struct following *f = &c->partitions[index];
    assert(offset == checkpoint_next(c, index)); /* C2 */
    arena_reset(&c->memory);
    bool state = offset > f->position.offset;
    watch_rows(c, f); /* a scan may have the set put */
    int status = state ? derive_event(c, f, offset, body, error) : PAWL_OK;
    if (status == PAWL_OK && offset > f->sequences)
        status = note_numbers(f, offset, body, error);
    if (status != PAWL_OK)
        return status;
    f->ahead = true;
    checkpoint_count(c, index);
    if (!state)
        return PAWL_OK;
    f->position.offset = offset;
    f->position.place = place;
    f->position.checksum = hash_checksum(0, body);
    return c->options.audit && offset % c->options.audit_every == 0 ? audit(c, index, offset, error) : PAWL_OK;
}

/* --- committing --- */

struct number {
    uint8_t key[SEQUENCE_KEY_BYTES];
    uint64_t last;
};

static int by_key(const void *a, const void *b)
{
    return memcmp(((const struct number *)a)->key, ((const struct number *)b)->key, SEQUENCE_KEY_BYTES);
}

static int put_number(struct checkpoint *c, const uint8_t *key, uint64_t last)
{
    uint8_t value[SEQUENCE_VALUE_BYTES];
    put_u64(value, last);
    return pawl_store_put(c->options.store, SEQUENCE_SPACE, (pawl_bytes){key, SEQUENCE_KEY_BYTES},
                          (pawl_bytes){value, sizeof value});
}

static int put_numbers(struct checkpoint *c, const struct following *f)
{
    const void *key;
    void *value;
    size_t count = 0;
    struct number *numbers = arena_take(&c->memory, f->numbers.count * sizeof *numbers);
    if (!numbers)
        return PAWL_ENOMEM;
    for (size_t cursor = 0; map_next(&f->numbers, &cursor, &key, &value);) {
        memcpy(numbers[count].key, key, SEQUENCE_KEY_BYTES);
        numbers[count++].last = *(const uint64_t *)value;
    }
    qsort(numbers, count, sizeof *numbers, by_key);
    int status = PAWL_OK;
    for (size_t i = 0; status == PAWL_OK && i < count; i++)
        status = put_number(c, numbers[i].key, numbers[i].last);
    return status;
}

static int put_position(struct checkpoint *c, struct following *f)
{
    uint8_t key[SEQUENCE_KEY_BYTES];
    sequence_key(f->position.partition, 0, SEQ_PLOG_OFFSET, key);
    int status = position_write(&f->position, c->options.store);
    return status == PAWL_OK ? put_number(c, key, f->sequences) : status;
}

static int commit_store(struct checkpoint *c)
{
    struct view_tables *views = c->options.views;
    int status = views ? view_tables_flush(views) : PAWL_OK;
    if (status == PAWL_OK)
        status = pawl_store_commit(c->options.store);
    if (status == PAWL_OK && views)
        view_tables_committed(views);
    return status;
}

static int store_failed(const struct checkpoint *c, int status, pawl_error *error)
{
    return status == PAWL_OK ? status : error_set(error, status, "%s", c->options.store->error.text);
}

static int put_partition(struct checkpoint *c, struct following *f, pawl_error *error)
{
    arena_reset(&c->memory);
    watch_rows(c, f);
    int status = gathered_put(&f->gathered, c->options.store, error);
    if (status != PAWL_OK)
        return status;
    status = put_numbers(c, f);
    if (status == PAWL_OK && f->ahead)
        status = put_position(c, f);
    if (status == PAWL_OK && c->options.commit)
        status = c->options.commit(c->options.ctx, f->position.partition);
    return store_failed(c, status, error);
}

/* Commit the partitions of which the transaction has rows already, or all others; the others in several
 * transactions, each with as many rows as it may have. rows: how many the open transaction has. */
static int put_partitions(struct checkpoint *c, bool put_already, uint64_t *rows, uint64_t *ret_total,
                          pawl_error *error)
{
    int status = PAWL_OK;
    for (size_t i = 0; status == PAWL_OK && i < c->options.partitions.count; i++) {
        struct following *f = &c->partitions[i];
        uint64_t more = rows_at_most(c, f), own = rows_of(f);
        if (!f->touched || is_put(f) != put_already)
            continue;
        if (!put_already && *rows > 0 && *rows + more > c->options.rows_max) {
            status = store_failed(c, commit_store(c), error);
            *rows = 0;
        }
        if (status == PAWL_OK)
            status = put_partition(c, f, error);
        f->touched = false;
        *rows += more;
        *ret_total += own;
    }
    return status;
}

static void empty(struct checkpoint *c)
{
    for (size_t i = 0; i < c->options.partitions.count; i++) {
        struct following *f = &c->partitions[i];
        gathered_clear(&f->gathered);
        map_release(&f->numbers);
        init_numbers(c, f);
        f->bytes = 0;
        f->rows = 0;
        f->ahead = f->touched = false;
    }
    arena_reset(&c->memory);
    c->events = c->rows = c->bytes = 0;
    c->put = c->full = false;
}

int checkpoint_commit(struct checkpoint *c, uint64_t *ret_rows, pawl_error *error)
{
    uint64_t rows = 0, total = 0;
    int status = put_partitions(c, true, &rows, &total, error); /* C4 */
    if (status == PAWL_OK)
        status = put_partitions(c, false, &rows, &total, error);
    if (status == PAWL_OK)
        status = store_failed(c, commit_store(c), error);
    if (status != PAWL_OK)
        return error_wrap(error, status, "the checkpoint cannot be written");
    *ret_rows = total;
    empty(c);
    return PAWL_OK;
}

int checkpoint_forget(struct checkpoint *c, pawl_error *error)
{
    pawl_store_abort(c->options.store);
    if (c->options.views)
        view_tables_aborted(c->options.views);
    empty(c);
    return read_positions(c, error);
}
