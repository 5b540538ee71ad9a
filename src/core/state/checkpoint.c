#include "core/state/checkpoint.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "core/event/envelope.h"
#include "core/sequence/view.h"
#include "core/state/key.h"

#define CHUNK       ((size_t)256 * 1024)
#define NUMBERS_MAX ((size_t)1 << 26)

struct following {
    struct position position;
    uint64_t view; /* the offset up to which the sequences view is complete */
    bool ahead;    /* of the store */
};

struct checkpoint {
    struct checkpoint_options options;
    struct following *partitions;
    struct gathered gathered;
    struct map numbers;  /* key of the sequences view -> last number */
    struct arena memory; /* of one event, or of sorting */
    uint8_t *scratch;
    uint64_t events;
    size_t bytes; /* of the numbers */
    uint64_t puts;
    pawl_error *error; /* of the event at hand */
};

static size_t bytes_of_partitions(const struct checkpoint *c)
{
    return c->options.count * sizeof c->partitions[0];
}

static int read_view(struct checkpoint *c, struct following *f, pawl_error *error)
{
    uint8_t key[VIEW_KEY_BYTES];
    pawl_bytes value;
    int status = pawl_store_get(pawl_store_writer(c->options.store), VIEW_SPACE,
                                view_key(f->position.partition, 0, SEQ_PLOG_OFFSET, key), &value);
    f->view = 0;
    if (status == PAWL_ENOTFOUND)
        return PAWL_OK;
    if (status == PAWL_OK && value.size != VIEW_VALUE_BYTES)
        status = PAWL_ECORRUPT;
    if (status != PAWL_OK)
        return error_set(error, status, "cannot read the sequences view of partition %u",
                         f->position.partition);
    f->view = get_u64(value.data);
    return PAWL_OK;
}

static int read_positions(struct checkpoint *c, pawl_error *error)
{
    int status = PAWL_OK;
    for (size_t i = 0; status == PAWL_OK && i < c->options.count; i++) {
        struct following *f = &c->partitions[i];
        status = position_read(&f->position, pawl_store_writer(c->options.store), error);
        if (status == PAWL_OK)
            status = read_view(c, f, error);
        f->ahead = false;
    }
    return status;
}

int checkpoint_new(const struct checkpoint_options *options, struct checkpoint **ret_checkpoint,
                   pawl_error *error)
{
    struct checkpoint *c = mem_new(options->alloc, 1, sizeof *c);
    if (!c)
        return error_set(error, PAWL_ENOMEM, "no memory for a checkpoint");
    c->options = *options;
    gathered_init(&c->gathered, options->alloc);
    map_init(&c->numbers, options->alloc, VIEW_KEY_BYTES, sizeof(uint64_t), NUMBERS_MAX);
    arena_init(&c->memory, options->alloc, CHUNK);
    c->partitions = mem_new(options->alloc, options->count, sizeof c->partitions[0]);
    c->scratch = mem_new(options->alloc, 1, STATE_SCRATCH_BYTES);
    int status = PAWL_ENOMEM;
    if (c->partitions && c->scratch) {
        for (size_t i = 0; i < options->count; i++)
            position_init(&c->partitions[i].position, options->alloc,
                          (uint16_t)(options->first + i * options->step));
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
    for (size_t i = 0; c->partitions && i < c->options.count; i++)
        position_release(&c->partitions[i].position);
    mem_free(alloc, c->partitions, c->partitions ? bytes_of_partitions(c) : 0);
    mem_free(alloc, c->scratch, c->scratch ? STATE_SCRATCH_BYTES : 0);
    gathered_release(&c->gathered);
    map_release(&c->numbers);
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
    return (f->view < f->position.offset ? f->view : f->position.offset) + 1;
}

uint64_t checkpoint_events(const struct checkpoint *c)
{
    return c->events;
}

bool checkpoint_is_full(const struct checkpoint *c)
{
    return c->events >= c->options.events_max || c->bytes + c->gathered.bytes >= c->options.bytes_max;
}

/* --- the set --- */

struct gathered *checkpoint_gathered(struct checkpoint *c)
{
    return &c->gathered;
}

void checkpoint_count(struct checkpoint *c)
{
    c->events++;
}

static int keep_numbers(struct checkpoint *c, uint16_t partition, const struct envelope *envelope)
{
    int status = PAWL_OK;
    for (size_t i = 0; status == PAWL_OK && i < envelope->count; i++) {
        struct event_numbers n = envelope_numbers(envelope, i);
        uint8_t key[VIEW_KEY_BYTES];
        pawl_bytes bytes = view_key(partition, envelope->wsid, n.seq, key);
        void *value;
        bool fresh;
        status = map_put(&c->numbers, hash_checksum(0, bytes), key, &value, &fresh);
        if (status != PAWL_OK)
            return PAWL_ENOMEM;
        *(uint64_t *)value = n.first + n.count - 1;
        c->bytes += fresh ? VIEW_KEY_BYTES + 2 * sizeof(uint64_t) : 0;
    }
    return status;
}

static int put_before_scan(void *ctx)
{
    struct checkpoint *c = ctx;
    return gathered_put(&c->gathered, c->options.store, c->error);
}

/* --- events --- */

static int derive_event(struct checkpoint *c, struct following *f, uint64_t offset, pawl_bytes body,
                        pawl_error *error)
{
    struct event event;
    struct changes changes = {0};
    struct state state = {.overlay = &c->gathered.overlay,
                          .reader = pawl_store_writer(c->options.store),
                          .scratch = c->scratch,
                          .before_scan = put_before_scan,
                          .ctx = c};
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
        status = gathered_take(&c->gathered, &changes);
    return status == PAWL_OK ? status : error_set(error, status, "no memory for what a checkpoint gathers");
}

static int note_numbers(struct checkpoint *c, struct following *f, uint64_t offset, pawl_bytes body,
                        pawl_error *error)
{
    struct envelope envelope;
    int status = envelope_decode(body, &envelope, error);
    if (status != PAWL_OK)
        return status;
    status = keep_numbers(c, f->position.partition, &envelope);
    if (status != PAWL_OK)
        return error_set(error, status, "no memory for what a checkpoint gathers");
    f->view = offset;
    return PAWL_OK;
}

int checkpoint_take(struct checkpoint *c, size_t index, uint64_t offset, pawl_place place, pawl_bytes body,
                    pawl_error *error)
{
    struct following *f = &c->partitions[index];
    assert(offset == checkpoint_next(c, index)); /* C2 */
    arena_reset(&c->memory);
    c->error = error;
    bool state = offset > f->position.offset;
    int status = state ? derive_event(c, f, offset, body, error) : PAWL_OK;
    if (status == PAWL_OK && offset > f->view)
        status = note_numbers(c, f, offset, body, error);
    if (status != PAWL_OK)
        return status;
    f->ahead = true;
    c->events++;
    if (!state)
        return PAWL_OK;
    f->position.offset = offset;
    f->position.place = place;
    f->position.checksum = hash_checksum(0, body);
    if (c->options.mark && offset % c->options.mark_every == 0)
        c->options.mark(c->options.ctx, &f->position, offset);
    return PAWL_OK;
}

/* --- committing --- */

struct number {
    uint8_t key[VIEW_KEY_BYTES];
    uint64_t last;
};

static int by_key(const void *a, const void *b)
{
    return memcmp(((const struct number *)a)->key, ((const struct number *)b)->key, VIEW_KEY_BYTES);
}

static int put_number(struct checkpoint *c, const uint8_t *key, uint64_t last)
{
    uint8_t value[VIEW_VALUE_BYTES];
    put_u64(value, last);
    return pawl_store_put(c->options.store, VIEW_SPACE, (pawl_bytes){key, VIEW_KEY_BYTES},
                          (pawl_bytes){value, sizeof value});
}

static int put_numbers(struct checkpoint *c)
{
    const void *key;
    void *value;
    size_t count = 0;
    struct number *numbers = arena_take(&c->memory, c->numbers.count * sizeof *numbers);
    if (!numbers)
        return PAWL_ENOMEM;
    for (size_t cursor = 0; map_next(&c->numbers, &cursor, &key, &value);) {
        memcpy(numbers[count].key, key, VIEW_KEY_BYTES);
        numbers[count++].last = *(const uint64_t *)value;
    }
    qsort(numbers, count, sizeof *numbers, by_key);
    int status = PAWL_OK;
    for (size_t i = 0; status == PAWL_OK && i < count; i++)
        status = put_number(c, numbers[i].key, numbers[i].last);
    c->puts += count;
    return status;
}

static int put_positions(struct checkpoint *c)
{
    int status = PAWL_OK;
    for (size_t i = 0; status == PAWL_OK && i < c->options.count; i++) {
        struct following *f = &c->partitions[i];
        uint8_t key[VIEW_KEY_BYTES];
        if (!f->ahead)
            continue;
        view_key(f->position.partition, 0, SEQ_PLOG_OFFSET, key);
        status = position_write(&f->position, c->options.store);
        if (status == PAWL_OK)
            status = put_number(c, key, f->view);
    }
    return status;
}

static void empty(struct checkpoint *c)
{
    gathered_clear(&c->gathered);
    map_clear(&c->numbers);
    arena_reset(&c->memory);
    c->events = c->bytes = c->puts = 0;
}

int checkpoint_commit(struct checkpoint *c, uint64_t *ret_rows, pawl_error *error)
{
    arena_reset(&c->memory);
    int status = gathered_put(&c->gathered, c->options.store, error);
    if (status != PAWL_OK)
        return error_wrap(error, status, "the checkpoint cannot be written");
    status = put_numbers(c);
    if (status == PAWL_OK)
        status = put_positions(c);
    if (status == PAWL_OK && c->options.commit)
        status = c->options.commit(c->options.ctx);
    if (status == PAWL_OK)
        status = pawl_store_commit(c->options.store);
    if (status != PAWL_OK)
        return error_set(error, status, "the checkpoint cannot be written: %s", c->options.store->error.text);
    *ret_rows = c->puts + c->gathered.puts;
    for (size_t i = 0; i < c->options.count; i++)
        c->partitions[i].ahead = false;
    empty(c);
    return PAWL_OK;
}

int checkpoint_forget(struct checkpoint *c, pawl_error *error)
{
    pawl_store_abort(c->options.store);
    empty(c);
    return read_positions(c, error);
}
