#include "engine/check/compare.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/error.h"
#include "core/sequence/storage.h"
#include "core/state/key.h"
#include "engine/check/compare_views.h"

void compare_differ(struct compare_side *s, const char *format, ...)
{
    char words[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    if (s->report->differences++ == 0)
        error_set(&s->report->first, PAWL_ECORRUPT, "partition %u: %s", s->partition, words);
}

struct comparing {
    struct compare_side *side;
    pawl_reader *other;
    uint8_t space;
    const char *here; /* the name of the side that is scanned */
    const char *there;
    uint64_t rows;
    bool only_missing; /* report only rows that the other side lacks: the first scan compared all others */
    int status;
};

static void describe_table(const struct schema *schema, uint32_t table, char *text, size_t size)
{
    static const char *const system[] = {"", "", " (workspaces)", " (logs of workspaces)"};
    for (size_t i = 0; i < schema->type_count; i++)
        if (schema->types[i].table == (table & ((1u << SCHEMA_TABLE_BITS) - 1))) {
            snprintf(text, size, "table %u (%.*s)", table, (int)schema->types[i].name.size,
                     (const char *)schema->types[i].name.data);
            return;
        }
    snprintf(text, size, "table %u%s", table, table < sizeof system / sizeof system[0] ? system[table] : "");
}

static void describe_key(const struct comparing *c, pawl_bytes key, char *text, size_t size)
{
    const uint8_t *at = key.data;
    char table[160];
    if (c->space == SEQUENCE_SPACE && key.size == SEQUENCE_KEY_BYTES) {
        snprintf(text, size, "sequence %u of workspace %" PRIu64, get_u16_sorted(at + 16),
                 get_u64_sorted(at + 8));
        return;
    }
    if (key.size < KEY_WORKSPACE) {
        snprintf(text, size, "a key of %zu bytes", key.size);
        return;
    }
    describe_table(c->side->schema, key_table(key), table, sizeof table);
    if (key.size == KEY_NUMBERED)
        snprintf(text, size, "%s, workspace %" PRIu64 ", row %" PRIu64, table, get_u64_sorted(at + 12),
                 get_u64_sorted(at + KEY_WORKSPACE));
    else
        snprintf(text, size, "%s, workspace %" PRIu64 ", a key of %zu bytes", table, get_u64_sorted(at + 12),
                 key.size - KEY_WORKSPACE);
}

static bool compare_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct comparing *c = arg;
    pawl_bytes other;
    char text[300];
    int status = pawl_store_get(c->other, c->space, key, &other);
    c->rows++;
    if (status != PAWL_OK && status != PAWL_ENOTFOUND) {
        c->status = status;
        return false;
    }
    if (status == PAWL_OK && (c->only_missing || bytes_equal(value, other)))
        return true;
    describe_key(c, key, text, sizeof text);
    if (status == PAWL_ENOTFOUND)
        compare_differ(c->side, "%s: %s has it, %s has not", text, c->here, c->there);
    else
        compare_differ(c->side, "%s: %s and %s have different values", text, c->here, c->there);
    return true;
}

static int compare_range(struct compare_side *s, pawl_reader *derived, pawl_range range)
{
    struct comparing c = {
        .side = s, .other = derived, .space = range.space, .here = s->name, .there = "the log"};
    int status = pawl_store_scan(s->snapshot, range, false, compare_row, &c);
    if (status != PAWL_OK || c.status != PAWL_OK)
        return status != PAWL_OK ? status : c.status;
    struct comparing back = {.side = s,
                             .other = s->snapshot,
                             .space = range.space,
                             .here = "the log",
                             .there = s->name,
                             .only_missing = true};
    status = pawl_store_scan(derived, range, false, compare_row, &back);
    return status != PAWL_OK ? status : back.status;
}

/* Compare the three digests of a table: derived, kept by the side, and of the side's rows. */
static int compare_table(struct compare_side *s, const struct digests *derived, const struct digests *kept,
                         pawl_reader *reader, uint32_t table)
{
    uint8_t from[KEY_TOKEN], to[KEY_TOKEN];
    pawl_range range = position_range(&s->stored, s->partitions, table, from, to);
    pawl_digest there, is = digests_of(derived, table), was = digests_of(kept, table);
    uint64_t before = s->report->differences;
    int status = pawl_store_digest(s->snapshot, range, &there);
    if (status == PAWL_OK && !pawl_digest_equal(&there, &is))
        status = compare_range(s, reader, range);
    if (status == PAWL_OK && before == s->report->differences && !pawl_digest_equal(&was, &is))
        compare_differ(s, "table %u: the rows of %s are right, but not the digest that it keeps of them", table,
                       s->name);
    return status;
}

/* Every table that either of the two has. */
static int compare_tables(struct compare_side *s, const struct digests *derived, const struct digests *kept,
                          pawl_reader *reader)
{
    int status = PAWL_OK;
    for (size_t i = 0; status == PAWL_OK && i < derived->count; i++)
        status = compare_table(s, derived, kept, reader, derived->tables[i].table);
    for (size_t i = 0; status == PAWL_OK && i < kept->count; i++)
        if (digests_of(derived, kept->tables[i].table).rows == 0)
            status = compare_table(s, derived, kept, reader, kept->tables[i].table);
    return status;
}

static int compare_state(struct compare_side *s, const struct position *derived, pawl_reader *reader)
{
    s->report->compared++;
    if (s->stored.checksum != derived->checksum)
        compare_differ(s, "%s was made from another event at offset %" PRIu64, s->name, s->stored.offset);
    if (!s->elsewhere && s->stored.place.position != 0 && s->stored.place.position != derived->place.position)
        compare_differ(s, "%s says of offset %" PRIu64 " that it lies elsewhere in the log", s->name,
                       s->stored.offset);
    int status = compare_tables(s, &derived->digests, &s->stored.digests, reader);
    return status == PAWL_OK ? compare_views(s, 0, 0, reader) : status;
}

static int compare_sequences(struct compare_side *s, pawl_reader *reader)
{
    uint8_t from[SEQUENCE_KEY_BYTES], to[SEQUENCE_KEY_BYTES];
    pawl_range range = {.space = SEQUENCE_SPACE,
                        .from = sequence_key(s->partition, 1, 0, from),
                        .to = sequence_key((uint64_t)s->partition + 1, 0, 0, to)};
    return compare_range(s, reader, range);
}

int compare_at(struct compare_side *s, const struct position *derived, pawl_reader *reader)
{
    int status = derived->offset == s->sequences_offset ? compare_sequences(s, reader) : PAWL_OK;
    if (status == PAWL_OK && derived->offset == s->stored.offset)
        status = compare_state(s, derived, reader);
    return status;
}

void compare_log_ended(struct compare_side *s, uint64_t last)
{
    if (last < s->stored.offset)
        compare_differ(s, "%s is at offset %" PRIu64 ", the log ends at %" PRIu64, s->name, s->stored.offset,
                       last);
    if (last < s->sequences_offset)
        compare_differ(s, "the sequence storage of %s is at offset %" PRIu64 ", the log ends at %" PRIu64,
                       s->name, s->sequences_offset, last);
    if (s->stored.offset == 0)
        s->report->compared++; /* an empty state: nothing can differ */
}

/* An offset that is not valid is not an error here: comparing the rows finds it. */
static int read_sequences_offset(struct compare_side *s)
{
    s->sequences_offset = 0;
    int status = sequence_read_offset(s->snapshot, s->partition, &s->sequences_offset);
    return status == PAWL_ECORRUPT ? PAWL_OK : status;
}

int compare_begin(struct compare_side *s, uint16_t partition, pawl_error *error)
{
    pawl_error words = {0};
    s->partition = partition;
    int status = pawl_store_snapshot(s->store, &s->snapshot);
    if (status != PAWL_OK)
        return error_set(error, status, "cannot read the state of partition %u", partition);
    position_init(&s->stored, s->alloc, partition);
    status = position_read(&s->stored, s->snapshot, &words);
    if (status == PAWL_ECORRUPT) {
        compare_differ(s, "%s: %s", s->name, words.text);
        status = PAWL_OK;
    }
    if (status == PAWL_OK)
        status = read_sequences_offset(s);
    if (status == PAWL_OK)
        return PAWL_OK;
    compare_end(s);
    return error_set(error, status, "cannot read the state of partition %u: %s", partition, words.text);
}

void compare_end(struct compare_side *s)
{
    position_release(&s->stored);
    pawl_store_release(s->store, s->snapshot);
}

/* --- lanes --- */

int compare_read_cursor(struct compare_side *s, struct cursor *cursor, bool *ret_known, pawl_error *error)
{
    pawl_error words = {0};
    int status = cursor_read(cursor, s->snapshot, &words);
    *ret_known = status == PAWL_OK;
    if (status == PAWL_ECORRUPT) {
        compare_differ(s, "%s: %s", s->name, words.text);
        status = PAWL_OK;
    }
    return status == PAWL_OK ? status
                             : error_set(error, status, "cannot read the state of partition %u: %s",
                                         s->partition, words.text);
}

int compare_lane(struct compare_side *s, const struct schema_lane *lane, const struct cursor *derived,
                 const struct cursor *stored, pawl_reader *reader)
{
    if (stored->checksum != derived->checksum)
        compare_differ(s, "lane %.*s: %s was made from another operation %" PRIu64, (int)lane->name.size,
                       (const char *)lane->name.data, s->name, stored->applied);
    int status = compare_tables(s, &derived->digests, &stored->digests, reader);
    return status == PAWL_OK ? compare_views(s, lane->id, derived->generation, reader) : status;
}

void compare_lane_ended(struct compare_side *s, const struct schema_lane *lane, const struct cursor *stored,
                        uint64_t last)
{
    if (last < stored->applied)
        compare_differ(s, "lane %.*s: %s is at operation %" PRIu64 ", the log ends at %" PRIu64,
                       (int)lane->name.size, (const char *)lane->name.data, s->name, stored->applied, last);
}
