#include "engine/check/compare_views.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/json/json.h"

#define KEY_SHOWN_MAX 120 /* bytes of a row's key, as JSON */

struct comparing {
    struct compare_side *side;
    const struct view_table *table;
    const struct view_state *stored; /* the side's */
    pawl_reader *other;
    const char *here; /* the name of the side that is scanned */
    const char *there;
    bool back; /* the derived rows are scanned: only those that the side lacks are reported */
    int status;
};

/* A row of the view, by what it is of. */
static void describe(const struct comparing *c, pawl_bytes key, pawl_bytes value, char *text, size_t size)
{
    const struct view *view = c->table->view;
    const struct schema_type *base = schema_type_by_id(c->side->schema, view->base->id);
    char row_words[KEY_SHOWN_MAX] = "a row that does not say what it is of";
    pawl_bytes own, row;
    bool null;
    if (view_row_read(key, value, &own, &row, &null) == PAWL_OK)
        json_row_words(c->side->schema, base, own, c->side->alloc, row_words, sizeof row_words);
    snprintf(text, size, "view %.*s, workspace %" PRIu64 ", %s", (int)view->name.size,
             (const char *)view->name.data, key.size >= KEY_WORKSPACE ? key_wsid(key) : 0, row_words);
}

/* Whether the side covers the row that a row of the view is of. */
static bool is_covered(const struct comparing *c, pawl_bytes key, pawl_bytes value)
{
    uint8_t base[PAWL_KEY_BYTES_MAX];
    pawl_bytes own, row;
    bool null;
    if (view_row_read(key, value, &own, &row, &null) != PAWL_OK || key.size < KEY_WORKSPACE
        || own.size > sizeof base - KEY_WORKSPACE)
        return false;
    put_u32_sorted(base, c->table->base);
    memcpy(base + KEY_TABLE, (const uint8_t *)key.data + KEY_TABLE, KEY_WORKSPACE - KEY_TABLE);
    memcpy(base + KEY_WORKSPACE, own.data, own.size);
    return coverage_has(&c->stored->coverage, (pawl_bytes){base, KEY_WORKSPACE + own.size});
}

static bool compare_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct comparing *c = arg;
    pawl_bytes other;
    char text[SCHEMA_QNAME_BYTES_MAX + KEY_SHOWN_MAX + 128];
    int status = pawl_store_get(c->other, VIEW_SPACE, key, &other);
    if (status != PAWL_OK && status != PAWL_ENOTFOUND) {
        c->status = status;
        return false;
    }
    bool found = status == PAWL_OK, covered = c->stored->complete || is_covered(c, key, value);
    if (c->back ? found || !covered : found && covered && bytes_equal(value, other))
        return true;
    describe(c, key, found ? other : value, text, sizeof text);
    if (!found)
        compare_differ(c->side, "%s: %s has it, %s has not", text, c->here, c->there);
    else if (!bytes_equal(value, other))
        compare_differ(c->side, "%s: %s and %s have different values", text, c->here, c->there);
    else
        compare_differ(c->side, "%s: %s has it, and does not cover it", text, c->here);
    return true;
}

static int compare_rows(struct comparing *c, pawl_reader *reader, pawl_range range)
{
    c->other = reader;
    c->here = c->side->name;
    c->there = "the log";
    int status = pawl_store_scan(c->side->snapshot, range, false, compare_row, c);
    if (status != PAWL_OK || c->status != PAWL_OK)
        return status != PAWL_OK ? status : c->status;
    c->other = c->side->snapshot;
    c->here = "the log";
    c->there = c->side->name;
    c->back = true;
    status = pawl_store_scan(reader, range, false, compare_row, c);
    return status != PAWL_OK ? status : c->status;
}

/* The rows are right: what the side says about them must be, too. */
static void compare_words(struct comparing *c, const struct view_state *derived, const pawl_digest *there)
{
    const struct view_state *s = c->stored;
    const char *wrong = NULL;
    uint8_t from[KEY_TOKEN], to[KEY_TOKEN];
    pawl_range all =
        view_partition_range(c->side->partitions, s->partition, STATE_SPACE, c->table->base, from, to);
    if (!pawl_digest_equal(there, &s->digest))
        wrong = "the digest that it keeps of them";
    else if (s->complete != coverage_covers(&s->coverage, all.from, all.to))
        wrong = "what it says that they cover";
    else if (s->complete && (s->failed != derived->failed || s->equal != derived->equal))
        wrong = "what it counts";
    if (wrong)
        compare_differ(c->side, "view %.*s: the rows of %s are right, but not %s",
                       (int)c->table->view->name.size, (const char *)c->table->view->name.data, c->side->name,
                       wrong);
}

static int compare_with(struct compare_side *side, const struct view_table *table,
                        const struct view_state *derived, const struct view_state *stored, pawl_reader *reader)
{
    uint8_t from[KEY_TOKEN], to[KEY_TOKEN];
    pawl_range range =
        view_partition_range(side->partitions, side->partition, VIEW_SPACE, table->table, from, to);
    struct comparing c = {.side = side, .table = table, .stored = stored};
    uint64_t before = side->report->differences;
    pawl_digest there;
    int status = pawl_store_digest(side->snapshot, range, &there);
    if (status == PAWL_OK && (!stored->complete || !pawl_digest_equal(&there, &derived->digest)))
        status = compare_rows(&c, reader, range);
    if (status == PAWL_OK && side->report->differences == before)
        compare_words(&c, derived, &there);
    side->report->views++;
    return status;
}

/* A side without a state of the view has no such view: its rows, if it has any, are nobody's. */
static int compare_view(struct compare_side *side, const struct view_table *table, pawl_reader *reader)
{
    const struct kept_state *derived = view_tables_state(side->views, table->table, side->partition);
    struct view_state stored;
    pawl_error words = {0};
    if (!derived)
        return PAWL_ENOMEM;
    view_state_init(&stored, side->alloc, side->partition, table->table, table->base);
    int status = view_state_read(&stored, side->snapshot, &words);
    if (status == PAWL_OK)
        status = compare_with(side, table, &derived->state, &stored, reader);
    else if (status == PAWL_ECORRUPT || status == PAWL_EVERSION) {
        compare_differ(side, "view %.*s: %s: %s", (int)table->view->name.size,
                       (const char *)table->view->name.data, side->name, words.text);
        status = PAWL_OK;
    } else if (status == PAWL_ENOTFOUND)
        status = PAWL_OK;
    view_state_release(&stored);
    return status;
}

int compare_views(struct compare_side *side, uint16_t lane, uint32_t generation, pawl_reader *reader)
{
    int status = PAWL_OK;
    for (size_t i = 0; side->views && i < side->views->count && status == PAWL_OK; i++) {
        const struct view_table *table = &side->views->tables[i];
        const struct schema_type *base = schema_type_by_id(side->schema, table->view->base->id);
        if (view_generation(table->table) == generation && (generation == 0 || (base && base->lane == lane)))
            status = compare_view(side, table, reader);
    }
    return status;
}
