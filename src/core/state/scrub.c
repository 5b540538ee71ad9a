#include "core/state/scrub.h"

#include "core/state/key.h"

struct summing {
    pawl_digest digest;
    size_t bytes;
    size_t bytes_max;
};

static bool add_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct summing *sum = arg;
    pawl_digest_add(&sum->digest, key, value);
    sum->bytes += key.size + value.size;
    return sum->bytes <= sum->bytes_max;
}

static const struct table_digest *table_behind(const struct position *position, uint32_t table)
{
    for (size_t i = 0; i < position->digests.count; i++)
        if (position->digests.tables[i].table > table)
            return &position->digests.tables[i];
    return NULL;
}

static enum scrub_verdict judge(const struct scrub *s, pawl_reader *reader, const struct position *position,
                                const struct table_digest *kept)
{
    struct summing sum = {.bytes_max = s->bytes_max};
    uint8_t from[KEY_TOKEN], to[KEY_TOKEN];
    pawl_range range = position_range(position, s->partitions, kept->table, from, to);
    if (pawl_store_scan(reader, range, false, add_row, &sum) != PAWL_OK)
        return SCRUB_WRONG;
    if (sum.bytes > sum.bytes_max)
        return SCRUB_TOO_LARGE;
    return pawl_digest_equal(&sum.digest, &kept->digest) ? SCRUB_RIGHT : SCRUB_WRONG;
}

int scrub_table(const struct scrub *s, pawl_store *store, struct scrubbed *ret_scrubbed)
{
    struct scrubbed found = {.verdict = SCRUB_NOTHING};
    struct position position;
    pawl_reader *reader;
    int status = pawl_store_snapshot(store, &reader);
    if (status != PAWL_OK)
        return status;
    position_init(&position, s->alloc, s->partition);
    status = position_read(&position, reader, NULL);
    const struct table_digest *kept = status == PAWL_OK ? table_behind(&position, s->table) : NULL;
    if (kept)
        found = (struct scrubbed){
            .verdict = judge(s, reader, &position, kept), .table = kept->table, .offset = position.offset};
    else if (status == PAWL_ECORRUPT && s->table == 0)
        found = (struct scrubbed){.verdict = SCRUB_WRONG, .table = TABLE_PARTITION};
    position_release(&position);
    pawl_store_release(store, reader);
    if (status != PAWL_OK && status != PAWL_ECORRUPT)
        return status;
    *ret_scrubbed = found;
    return PAWL_OK;
}
