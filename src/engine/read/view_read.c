#include "engine/read/view_read.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/id.h"
#include "core/project/cursor.h"
#include "core/schema/path.h"
#include "core/view/view_state.h"
#include "engine/json/json.h"
#include "engine/node/node.h"
#include "engine/read/read.h"
#include "engine/views/views.h"

#define ARENA_CHUNK    ((size_t)1024)
#define COVERED_PART   0.5   /* of a workspace of which some keys are covered: nobody counts them */
#define COVERED_NEARLY 0.999 /* of what is not complete, at most */

void view_read_begin(struct view_read *r)
{
    arena_init(&r->memory, r->engine->options.allocator, ARENA_CHUNK);
    json_out_init(&r->out, r->engine->options.allocator);
}

int view_read_end(struct view_read *r, int status, pawl_text *ret_text)
{
    arena_release(&r->memory);
    if (!r->visit)
        return text_take(&r->out, status, ret_text, r->error);
    json_out_release(&r->out);
    return status;
}

/* --- which view --- */

/* Whether the bytes of keys mean the same in both. */
static bool has_same_key(const struct view *a, const struct view *b)
{
    if (a->base->id != b->base->id || a->key_count != b->key_count)
        return false;
    for (size_t i = 0; i < a->key_count; i++)
        if (a->row.fields[i].type != b->row.fields[i].type
            || !bytes_equal(a->row.fields[i].name, b->row.fields[i].name))
            return false;
    return true;
}

static int find_in(struct view_read *r, const struct view_list *list, const struct schema *schema)
{
    const struct view_entry *entry = view_list_by_name(list, (pawl_bytes){r->name, strlen(r->name)}, NULL);
    const struct schema_type *base = entry ? schema_type_by_id(schema, entry->view->base->id) : NULL;
    if (!base)
        return error_set(r->error, PAWL_ENOTFOUND, "there is no view %s", r->name);
    if (r->view && !has_same_key(r->view, entry->view))
        return error_set(r->error, PAWL_ENOTFOUND, "the view %s was dropped; there is another of its name",
                         r->name);
    bool entity = base->kind == TYPE_ENTITY;
    r->view = entry->view;
    r->schema = schema;
    r->generation = entity ? schema_serving_table(schema, base) >> SCHEMA_TABLE_BITS : 0;
    r->lane = entity ? base->lane : 0;
    r->table = view_table(r->view->number, r->generation);
    r->base = view_base_table(r->view, r->generation);
    r->row = (struct pawl_row){.engine = r->engine, .type = &r->view->row, .active = true, .view = true};
    return PAWL_OK;
}

int view_read_find(struct view_read *r)
{
    const struct view_list *list = engine_views(r->engine);
    return find_in(r, list, engine_schema(r->engine));
}

/* The store has no state of the view. A shard drops a state when group0 has decided that the view is gone, or that
 * another table of it serves, and so before the new list is published. */
static int find_again(struct view_read *r)
{
    const struct schema *schema;
    const struct view_list *list = engine_views_decided(r->engine, &schema);
    return find_in(r, list, schema);
}

int view_read_wait(struct view_read *r, const pawl_read_options *options)
{
    char base[SCHEMA_QNAME_BYTES_MAX + 1];
    uint16_t partition = pawl_partition_of(r->engine, r->wsid);
    if (!options || options->min_offset == 0)
        return PAWL_OK;
    snprintf(base, sizeof base, "%.*s", TEXT(r->view->base->name));
    int status = r->lane ? engine_wait_entity(r->engine, partition, base, options, r->error)
                         : engine_wait_applied(r->engine, partition, options, r->error);
    return status == PAWL_OK ? view_read_find(r) : status;
}

/* --- what is covered --- */

/* How far a key of the base lies in the partition's tokens: 0 is its begin, 1 its end. */
static double place_in_partition(const struct view_read *r, pawl_bytes key)
{
    int bits = __builtin_ctz(r->engine->file.partitions);
    uint64_t first = bits == 0 ? 0 : (uint64_t)r->partition << (64 - bits);
    uint8_t padded[KEY_TOKEN] = {0};
    memcpy(padded, key.data, key.size < KEY_TOKEN ? key.size : KEY_TOKEN);
    if (get_u32_sorted(padded) != r->base)
        return get_u32_sorted(padded) > r->base;
    uint64_t token = get_u64_sorted(padded + KEY_TABLE);
    double place = token > first ? ldexp((double)(token - first), bits - 64) : 0;
    return place < 1 ? place : 1;
}

static double covered_of_partition(const struct view_read *r, const struct coverage *coverage)
{
    double sum = 0;
    for (size_t i = 0; i < coverage->count; i++)
        sum += place_in_partition(r, coverage->intervals[i].to)
               - place_in_partition(r, coverage->intervals[i].from);
    return sum < COVERED_NEARLY ? sum : COVERED_NEARLY;
}

static double covered_of_workspace(const struct view_read *r, const struct coverage *coverage)
{
    uint8_t first[KEY_WORKSPACE], behind[KEY_WORKSPACE];
    pawl_bytes from = key_of_workspace(r->base, r->wsid, first), to = key_after_prefix(from, behind);
    if (coverage_covers(coverage, from, to))
        return 1;
    for (size_t i = 0; i < coverage->count; i++)
        if (bytes_compare(coverage->intervals[i].from, to) < 0
            && bytes_compare(from, coverage->intervals[i].to) < 0)
            return COVERED_PART;
    return 0;
}

/* PAWL_ENOTFOUND: there is no state. */
static int judge(struct view_read *r)
{
    bool complete;
    struct view_state state;
    int status = view_state_peek(r->snapshot, r->partition, r->table, &complete);
    if (status == PAWL_OK && complete) {
        r->covered = 1;
        return PAWL_OK;
    }
    if (status == PAWL_ENOTFOUND)
        return status;
    view_state_init(&state, r->engine->options.allocator, r->partition, r->table, r->base);
    status = view_state_read(&state, r->snapshot, r->error);
    if (status == PAWL_OK)
        r->covered =
            r->wsid ? covered_of_workspace(r, &state.coverage) : covered_of_partition(r, &state.coverage);
    view_state_release(&state);
    return status;
}

int view_read_snapshot(struct view_read *r, uint16_t partition)
{
    r->partition = partition;
    r->store = shard_of(r->engine, partition)->store;
    for (;;) {
        uint32_t table = r->table;
        int status = pawl_store_snapshot(r->store, &r->snapshot);
        if (status != PAWL_OK) {
            r->snapshot = NULL;
            return error_set(r->error, status, "cannot read the view %s", r->name);
        }
        status = judge(r);
        if (status == PAWL_OK)
            return status;
        view_read_release(r);
        if (status == PAWL_ENOTFOUND)
            status = find_again(r);
        if (status != PAWL_OK)
            return status;
        if (r->table == table) { /* it is so new that its shard does not know it yet */
            r->covered = 0;
            return PAWL_OK;
        }
    }
}

void view_read_release(struct view_read *r)
{
    if (r->snapshot)
        pawl_store_release(r->store, r->snapshot);
    r->snapshot = NULL;
}

int view_read_not_built(const struct view_read *r)
{
    if (r->wsid)
        return error_set(r->error, PAWL_ENOTBUILT,
                         "the view %s is being built, and does not cover workspace %" PRIu64 " yet", r->name,
                         r->wsid);
    return error_set(r->error, PAWL_ENOTBUILT, "the view %s is being built, and does not cover everything yet",
                     r->name);
}

int view_read_offset(struct view_read *r, uint64_t *ret_offset)
{
    uint64_t applied, offset;
    int status;
    if (r->lane) {
        status = cursor_peek(r->snapshot, r->partition, r->lane, r->generation, &applied, &offset);
        if (status != PAWL_OK)
            return error_set(r->error, status, "cannot read how far partition %u has come", r->partition);
    } else {
        struct position position;
        position_init(&position, r->engine->options.allocator, r->partition);
        status = position_read(&position, r->snapshot, r->error);
        offset = position.offset;
        position_release(&position);
    }
    if (status == PAWL_OK)
        *ret_offset = offset;
    return status;
}

/* --- keys and rows --- */

/* Without allocating, if they are few. */
static int take_values(struct view_read *r, pawl_key key, struct value **ret_values)
{
    *ret_values = r->few;
    if (key.count > VIEW_READ_FEW) {
        *ret_values = arena_take(&r->memory, key.count * sizeof **ret_values);
        if (!*ret_values)
            return error_set(r->error, PAWL_ENOMEM, "no memory for a key");
    }
    return key_first_values(key, r->schema, &r->view->row, *ret_values, r->error);
}

int view_read_values(struct view_read *r, pawl_bytes json, pawl_key key, bool exact, struct value **ret_values,
                     size_t *ret_count)
{
    size_t count = key.count;
    int status = PAWL_OK;
    if (json.data)
        status = json_key_first(json, r->schema, &r->view->row, &r->memory, ret_values, &count, r->error);
    else if (count > 0)
        status = take_values(r, key, ret_values);
    if (status == PAWL_OK && exact && count != r->view->key_count)
        status = error_set(r->error, PAWL_EINVAL, "the key of %s has %zu fields, not %zu", r->name,
                           r->view->key_count, count);
    if (status == PAWL_OK)
        *ret_count = count;
    return status;
}

static int show_json(struct view_read *r, pawl_bytes row)
{
    return json_view_row(&r->out, r->schema, &r->view->row, r->wsid ? 0 : r->row.wsid, r->row.id, row,
                         r->error);
}

int view_read_show(struct view_read *r, pawl_bytes key, pawl_bytes value)
{
    pawl_bytes own, row;
    bool null;
    int status = key.size >= KEY_WORKSPACE ? view_row_read(key, value, &own, &row, &null) : PAWL_ECORRUPT;
    bool record = r->view->base->kind != TYPE_ENTITY;
    if (status == PAWL_OK && record && own.size != KEY_NUMBERED - KEY_WORKSPACE)
        status = PAWL_ECORRUPT;
    if (status != PAWL_OK)
        return error_set(r->error, status, "a row of the view %s is not one", r->name);
    r->row.wsid = key_wsid(key);
    r->row.id = record ? get_u64_sorted(own.data) : 0;
    if (!r->visit)
        return show_json(r, row);
    status = row_borrow(row, &r->row.row, r->error);
    if (status == PAWL_OK)
        r->stopped = !r->visit(r->arg, &r->row);
    return status;
}
