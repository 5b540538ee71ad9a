#include "core/state/scrub.h"

#include "core/state/key.h"
#include "core/view/view.h"
#include "core/view/view_state.h"

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

static enum scrub_verdict judge(const struct scrub *s, pawl_reader *reader, pawl_range range,
                                const pawl_digest *kept)
{
    struct summing sum = {.bytes_max = s->bytes_max};
    if (pawl_store_scan(reader, range, false, add_row, &sum) != PAWL_OK)
        return SCRUB_WRONG;
    if (sum.bytes > sum.bytes_max)
        return SCRUB_TOO_LARGE;
    return pawl_digest_equal(&sum.digest, kept) ? SCRUB_RIGHT : SCRUB_WRONG;
}

/* Of the state's own tables. False: there is none behind the last one. */
static bool scrub_own(const struct scrub *s, pawl_reader *reader, const struct position *position,
                      struct scrubbed *ret_found)
{
    uint8_t from[KEY_TOKEN], to[KEY_TOKEN];
    const struct table_digest *kept = table_behind(position, s->table);
    if (!kept)
        return false;
    pawl_range range = position_range(position, s->partitions, kept->table, from, to);
    ret_found->table = kept->table;
    ret_found->verdict = judge(s, reader, range, &kept->digest);
    return true;
}

/* --- views --- */

static bool take_first(void *arg, pawl_bytes key, pawl_bytes value)
{
    uint32_t table, *found = arg;
    uint16_t partition;
    (void)value;
    if (!view_state_key_read(key, &partition, &table))
        return true;
    *found = table;
    return false;
}

/* The first view behind the last table that has a state in the partition; 0: there is none. */
static int find_view(const struct scrub *s, pawl_reader *reader, uint32_t *ret_table)
{
    uint8_t from[VIEW_STATE_KEY], to[VIEW_STATE_PREFIX];
    uint32_t least = table_is_view(s->table) ? s->table + 1 : VIEW_TABLE_BIT;
    pawl_bytes first = view_state_key(s->partition, least, from);
    pawl_range range = {.space = VIEW_SPACE,
                        .from = first,
                        .to = key_after_prefix((pawl_bytes){first.data, VIEW_STATE_PREFIX}, to)};
    *ret_table = 0;
    return s->table == UINT32_MAX ? PAWL_OK : pawl_store_scan(reader, range, false, take_first, ret_table);
}

static int scrub_view(const struct scrub *s, pawl_reader *reader, struct scrubbed *ret_found)
{
    struct view_state state;
    uint8_t from[KEY_TOKEN], to[KEY_TOKEN];
    uint32_t table;
    int status = find_view(s, reader, &table);
    if (status != PAWL_OK || table == 0)
        return status;
    view_state_init(&state, s->alloc, s->partition, table, 0);
    status = view_state_read(&state, reader, NULL);
    ret_found->table = table;
    if (status == PAWL_OK) {
        pawl_range range = view_partition_range(s->partitions, s->partition, VIEW_SPACE, table, from, to);
        ret_found->verdict = judge(s, reader, range, &state.digest);
    } else if (status == PAWL_ECORRUPT || status == PAWL_EVERSION) {
        ret_found->verdict = SCRUB_WRONG;
        status = PAWL_OK;
    }
    view_state_release(&state);
    return status;
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
    found.offset = position.offset;
    if (status == PAWL_ECORRUPT && s->table == 0) {
        found = (struct scrubbed){.verdict = SCRUB_WRONG, .table = TABLE_PARTITION};
        status = PAWL_OK;
    } else if (status == PAWL_ECORRUPT || (status == PAWL_OK && !scrub_own(s, reader, &position, &found)))
        status = scrub_view(s, reader, &found);
    position_release(&position);
    pawl_store_release(store, reader);
    if (found.verdict == SCRUB_NOTHING)
        found.offset = 0;
    if (status == PAWL_OK)
        *ret_scrubbed = found;
    return status;
}
