#include "engine/shard/sequence_tails.h"

#include "base/alloc.h"
#include "core/event/envelope.h"
#include "core/sequence/storage.h"

#define CHUNK     ((size_t)256 * 1024)
#define BYTES_MAX ((size_t)16 << 20) /* of a shard: some 150,000 events, more than its storages should lack */

struct tail_event {
    struct tail_event *next;
    uint64_t offset;
    pawl_bytes envelope;
};

struct tail {
    uint64_t after;
    uint64_t next; /* the offset behind the last envelope; 0: nothing was read */
    struct tail_event *first;
    struct tail_event **last;
    bool handed_out;
};

struct reading {
    struct sequence_tails *tails;
    size_t bytes;
};

void sequence_tails_init(struct sequence_tails *t, const struct sequence_tails_options *options)
{
    *t = (struct sequence_tails){.options = *options};
    pthread_mutex_init(&t->lock, NULL);
    arena_init(&t->memory, options->alloc, CHUNK);
}

static void forget(struct sequence_tails *t)
{
    mem_free(t->options.alloc, t->tails, t->tails ? t->options.partitions.count * sizeof *t->tails : 0);
    t->tails = NULL;
    arena_release(&t->memory);
}

void sequence_tails_release(struct sequence_tails *t)
{
    if (!t->options.log)
        return;
    forget(t);
    pthread_mutex_destroy(&t->lock);
}

static bool keep(pawl_sweep *sweep, size_t index, const pawl_entry *entry, pawl_place place)
{
    struct reading *r = sweep->arg;
    struct tail *tail = &r->tails->tails[index];
    struct envelope envelope;
    (void)place;
    if (entry->offset > tail->after) {
        if (envelope_decode(entry->body, &envelope, NULL) != PAWL_OK)
            return false;
        pawl_bytes bytes = {entry->body.data, envelope_size(envelope.count)};
        struct tail_event *event = arena_take(&r->tails->memory, sizeof *event);
        pawl_bytes copy = event ? arena_copy(&r->tails->memory, bytes) : (pawl_bytes){0};
        if (!copy.data)
            return false;
        *event = (struct tail_event){.offset = entry->offset, .envelope = copy};
        *tail->last = event;
        tail->last = &event->next;
        r->bytes += sizeof *event + bytes.size;
    }
    tail->next = entry->offset + 1;
    return r->bytes < BYTES_MAX;
}

/* Each stream is read from the last event that its storage has, to see that the log has this event too. */
static bool begin(struct sequence_tails *t, pawl_sweep_stream *streams)
{
    pawl_reader *snapshot;
    if (pawl_store_snapshot(t->options.store, &snapshot) != PAWL_OK)
        return false;
    bool known = true;
    for (size_t i = 0; known && i < t->options.partitions.count; i++) {
        struct tail *tail = &t->tails[i];
        uint16_t partition = partition_set_at(&t->options.partitions, i);
        known = sequence_read_offset(snapshot, partition, &tail->after) == PAWL_OK;
        tail->last = &tail->first;
        streams[i] = (pawl_sweep_stream){.stream = {.kind = PAWL_STREAM_PLOG, .partition = partition},
                                         .from = tail->after ? tail->after : 1};
    }
    pawl_store_release(t->options.store, snapshot);
    return known;
}

static void read_all(struct sequence_tails *t)
{
    size_t count = t->options.partitions.count;
    struct reading reading = {.tails = t};
    pawl_sweep_stream *streams = mem_new(t->options.alloc, count, sizeof *streams);
    t->tails = mem_new(t->options.alloc, count, sizeof *t->tails);
    t->left = count;
    t->is_read = true;
    if (streams && t->tails && begin(t, streams)) {
        pawl_sweep sweep = {
            .streams = streams, .count = count, .limit = UINT64_MAX, .visit = keep, .arg = &reading};
        (void)pawl_log_sweep(t->options.log, &sweep);
    }
    mem_free(t->options.alloc, streams, streams ? count * sizeof *streams : 0);
}

/* The tail of the partition. False: it was handed out before. */
static bool hand_out(struct sequence_tails *t, uint16_t partition, struct tail *ret_tail)
{
    size_t index = partition_set_index(&t->options.partitions, partition);
    pthread_mutex_lock(&t->lock);
    if (!t->is_read)
        read_all(t);
    struct tail *tail = t->tails ? &t->tails[index] : NULL;
    bool there = tail && !tail->handed_out;
    if (there) {
        *ret_tail = *tail;
        tail->handed_out = true;
    }
    pthread_mutex_unlock(&t->lock);
    return there;
}

static void put_back(struct sequence_tails *t)
{
    pthread_mutex_lock(&t->lock);
    if (--t->left == 0)
        forget(t);
    pthread_mutex_unlock(&t->lock);
}

int sequence_tails_take(struct sequence_tails *t, uint16_t partition, uint64_t after,
                        int (*take)(void *arg, uint64_t offset, pawl_bytes envelope), void *arg,
                        uint64_t *ret_next)
{
    struct tail tail;
    uint64_t next = 0;
    int status = PAWL_OK;
    if (hand_out(t, partition, &tail)) {
        bool fits = tail.after == after;
        for (const struct tail_event *e = tail.first; fits && status == PAWL_OK && e; e = e->next)
            status = take(arg, e->offset, e->envelope);
        next = fits ? tail.next : 0;
        put_back(t);
    }
    if (status == PAWL_OK)
        *ret_next = next;
    return status;
}
