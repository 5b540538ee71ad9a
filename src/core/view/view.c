#include "core/view/view.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "core/schema/compile.h"
#include "core/schema/path.h"
#include "core/state/key.h"
#include "core/state/overlay.h"

#define CHUNK ((size_t)1024)
#define HASH  ((size_t)16)

/* --- resolving --- */

struct resolving {
    struct verdict v;
    const struct schema *schema;
    pawl_bytes package;
    struct view *view;
    const struct definition_view *from;
    const struct path *at;
};

static void *take(struct resolving *r, size_t count, size_t size)
{
    void *memory = arena_take(&r->view->arena, count * size);
    if (!memory)
        verdict_fail(&r->v, PAWL_ENOMEM);
    else
        memset(memory, 0, count * size);
    return memory;
}

static void resolve_base(struct resolving *r)
{
    struct path at = path_member(r->at, "base"), unique = path_member(r->at, "unique");
    const struct schema_name *name = schema_name_from(r->schema, r->package, r->from->base);
    if (!name) {
        verdict_refuse(&r->v, &at, "there is no '%.*s'", TEXT(r->from->base));
        return;
    }
    if (name->kind != NAMED_TYPE && name->kind != NAMED_ENTITY) {
        verdict_refuse(&r->v, &at, "'%.*s' is %s, not a type", TEXT(r->from->base),
                       named_kind_text(name->kind));
        return;
    }
    const struct schema_type *base = schema_type_by_id(r->schema, name->id);
    if (!base)
        verdict_refuse(&r->v, &at, "the schema no longer has '%.*s'", TEXT(r->from->base));
    else if (!type_has_table(base->kind))
        verdict_refuse(&r->v, &at, "%.*s lives in its events only, and has no rows to view", TEXT(base->name));
    else if (base->kind == TYPE_ENTITY && r->from->unique)
        verdict_refuse(&r->v, &unique,
                       "%.*s is an entity: projectors fill it, and no command can be refused for its rows",
                       TEXT(base->name));
    r->view->base = base;
}

/* What a name stands for: a field of the base, or a part of the record's head. */
static bool find_field(const struct view *view, pawl_bytes name, struct view_field *ret_field,
                       enum value_type *ret_type)
{
    static const struct {
        const char *name;
        enum view_source source;
        enum value_type type;
    } heads[] = {{"id", VIEW_OF_ID, VALUE_REF},
                 {"parent", VIEW_OF_PARENT, VALUE_REF},
                 {"active", VIEW_OF_ACTIVE, VALUE_BOOL}};
    int place = schema_field_place(view->base, name);
    if (place >= 0) {
        *ret_field = (struct view_field){.source = VIEW_OF_FIELD, .place = (uint16_t)place};
        *ret_type = view->base->fields[place].type;
        return true;
    }
    for (size_t i = 0; view->base->kind != TYPE_ENTITY && i < sizeof heads / sizeof *heads; i++)
        if (bytes_equal(name, (pawl_bytes){heads[i].name, strlen(heads[i].name)})) {
            *ret_field = (struct view_field){.source = heads[i].source};
            *ret_type = heads[i].type;
            return true;
        }
    return false;
}

static void resolve_field(struct resolving *r, const struct path *group, size_t index, pawl_bytes name,
                          struct view_field *to, struct schema_field *shown, size_t before)
{
    struct path here = path_index(group, index);
    enum value_type type;
    if (!find_field(r->view, name, to, &type)) {
        verdict_refuse(&r->v, &here, "%.*s has no field '%.*s'", TEXT(r->view->base->name), TEXT(name));
        return;
    }
    for (size_t i = 0; i < before; i++)
        if (bytes_equal(r->view->row.fields[i].name, name))
            verdict_refuse(&r->v, &here, "'%.*s' is there twice", TEXT(name));
    *shown = (struct schema_field){.name = arena_copy(&r->view->arena, name), .type = type};
    if (!shown->name.data)
        verdict_fail(&r->v, PAWL_ENOMEM);
}

static void resolve_fields(struct resolving *r)
{
    const struct definition_view *from = r->from;
    struct path key = path_member(r->at, "key"), include = path_member(r->at, "include");
    size_t count = from->key_count + from->include_count;
    struct view_field *fields = take(r, count, sizeof *fields);
    struct schema_field *shown = take(r, count, sizeof *shown);
    uint16_t *places = take(r, from->key_count, sizeof *places);
    if (r->v.status)
        return;
    if (from->key_count == 0)
        verdict_refuse(&r->v, &key, "a view needs a key of at least one field");
    if (count > SCHEMA_FIELDS_MAX)
        verdict_refuse(&r->v, &include, "a view has at most %d fields", SCHEMA_FIELDS_MAX);
    r->view->row.fields = shown;
    for (size_t i = 0; i < count && r->v.status == PAWL_OK; i++) {
        bool in_key = i < from->key_count;
        size_t index = in_key ? i : i - from->key_count;
        resolve_field(r, in_key ? &key : &include, index, in_key ? from->key[index] : from->include[index],
                      &fields[i], &shown[i], i);
        if (in_key)
            places[i] = (uint16_t)i;
    }
    r->view->fields = fields;
    r->view->key_count = from->key_count;
    r->view->row = (struct schema_type){.kind = TYPE_ENTITY,
                                        .name = r->view->name,
                                        .fields = shown,
                                        .field_count = count,
                                        .key = places,
                                        .key_count = from->key_count};
}

static void resolve_filter(struct resolving *r)
{
    struct path at = path_member(r->at, "filter");
    struct compile_scope scope = {
        .row = r->view->base, .record = r->view->base->kind != TYPE_ENTITY, .want = VALUE_BOOL};
    pawl_error why = {0};
    if (r->from->filter.size == 0)
        return;
    int status =
        schema_compile(r->schema, r->package, r->from->filter, &scope, r->view->alloc, &r->view->filter, &why);
    if (status == PAWL_ENOMEM)
        verdict_fail(&r->v, status);
    else if (status != PAWL_OK)
        verdict_refuse(&r->v, &at, "%s", why.text);
}

static pawl_bytes qualify(struct view *view, pawl_bytes package, pawl_bytes name)
{
    char *text = arena_take(&view->arena, package.size + 1 + name.size);
    if (!text)
        return (pawl_bytes){0};
    memcpy(text, package.data, package.size);
    text[package.size] = '.';
    memcpy(text + package.size + 1, name.data, name.size);
    return (pawl_bytes){text, package.size + 1 + name.size};
}

int view_resolve(const struct schema *schema, pawl_bytes package, const struct definition_view *definition,
                 uint16_t number, const struct path *at, const pawl_allocator *alloc, struct view **ret_view,
                 pawl_error *error)
{
    static const struct path root;
    struct view *view = mem_new(alloc, 1, sizeof *view);
    if (!view)
        return PAWL_ENOMEM;
    view->alloc = alloc;
    view->number = number;
    view->unique = definition->unique;
    atomic_init(&view->references, 1);
    arena_init(&view->arena, alloc, CHUNK);
    view->name = qualify(view, package, definition->name);
    struct resolving r = {.v = {.error = error},
                          .schema = schema,
                          .package = package,
                          .view = view,
                          .from = definition,
                          .at = at ? at : &root};
    if (!view->name.data)
        verdict_fail(&r.v, PAWL_ENOMEM);
    void (*const steps[])(struct resolving *) = {resolve_base, resolve_fields, resolve_filter};
    for (size_t i = 0; i < sizeof steps / sizeof *steps && r.v.status == PAWL_OK; i++)
        steps[i](&r);
    if (r.v.status) {
        view_drop(view);
        return r.v.status;
    }
    *ret_view = view;
    return PAWL_OK;
}

struct view *view_hold(struct view *view)
{
    atomic_fetch_add_explicit(&view->references, 1, memory_order_relaxed);
    return view;
}

void view_drop(struct view *view)
{
    if (!view || atomic_fetch_sub_explicit(&view->references, 1, memory_order_acq_rel) != 1)
        return;
    expr_free(view->filter);
    arena_release(&view->arena);
    mem_free(view->alloc, view, sizeof *view);
}

uint32_t view_base_table(const struct view *view, uint32_t generation)
{
    return schema_table(view->base, generation);
}

/* The base in the present schema: its lane may have changed since the view was resolved. */
size_t view_generations(const struct schema *schema, const struct view *view, uint32_t generations[2])
{
    const struct schema_type *base = schema_type_by_id(schema, view->base->id);
    generations[0] = 0;
    if (!base || base->kind != TYPE_ENTITY)
        return 1;
    generations[0] = schema_serving_table(schema, base) >> SCHEMA_TABLE_BITS;
    const struct schema_lane *lane = schema_lane_by_id(schema, base->lane);
    if (!lane || lane->generation == generations[0])
        return 1;
    generations[1] = lane->generation;
    return 2;
}

/* --- evaluating --- */

void view_room_release(struct view_room *room)
{
    mem_free(room->alloc, room->key, room->key_room);
    mem_free(room->alloc, room->value, room->value_room);
    mem_free(room->alloc, room->values, room->values_room * sizeof room->values[0]);
    mem_free(room->alloc, room->scratch, room->scratch ? STATE_SCRATCH_BYTES : 0);
    *room = (struct view_room){.alloc = room->alloc};
}

static int grow(const pawl_allocator *alloc, uint8_t **memory, size_t *room, size_t size)
{
    if (size <= *room)
        return PAWL_OK;
    size_t larger = *room * 2 > size ? *room * 2 : size < 256 ? 256 : size;
    uint8_t *grown = mem_resize(alloc, *memory, *room, larger);
    if (!grown)
        return PAWL_ENOMEM;
    *memory = grown;
    *room = larger;
    return PAWL_OK;
}

static int reserve(const struct view *view, struct view_room *room)
{
    size_t count = view->row.field_count;
    if (count > room->values_room) {
        struct value *values =
            mem_resize(room->alloc, room->values, room->values_room * sizeof *values, count * sizeof *values);
        if (!values)
            return PAWL_ENOMEM;
        room->values = values;
        room->values_room = count;
    }
    if (view->filter && !room->scratch)
        room->scratch = mem_new(room->alloc, 1, STATE_SCRATCH_BYTES);
    return view->filter && !room->scratch ? PAWL_ENOMEM : PAWL_OK;
}

/* A row of the base, taken apart. */
struct base_row {
    const struct view *view;
    struct row row;
    uint64_t id;
    uint64_t parent;
    bool active;
};

static int read_base(const struct view *view, pawl_bytes key, pawl_bytes value, struct base_row *ret_row,
                     pawl_error *why)
{
    *ret_row = (struct base_row){.view = view};
    if (view->base->kind == TYPE_ENTITY)
        return row_borrow(value, &ret_row->row, why);
    struct record_row record;
    if (key.size != KEY_NUMBERED || !record_row_read(value, &record))
        return error_set(why, PAWL_ECORRUPT, "what is stored is not a record");
    ret_row->id = get_u64_sorted((const uint8_t *)key.data + KEY_WORKSPACE);
    ret_row->parent = record.parent;
    ret_row->active = record.active;
    return row_borrow(record.row, &ret_row->row, why);
}

static struct value ref_value(uint64_t id)
{
    return id ? (struct value){.type = VALUE_REF, .id = id} : (struct value){.type = VALUE_NULL};
}

static int load_field(const struct base_row *base, size_t place, struct value *ret_value, pawl_error *why)
{
    const struct schema_field *field = &base->view->base->fields[place];
    int status = row_peek(base->row, place, field->type, ret_value);
    return status == PAWL_OK ? status
                             : error_set(why, status, "field '%.*s' cannot be read", TEXT(field->name));
}

static int load_slot(void *ctx, uint32_t slot, struct value *ret_value, pawl_error *error)
{
    const struct base_row *base = ctx;
    switch (slot_place(slot)) {
    case SLOT_ID: *ret_value = ref_value(base->id); return PAWL_OK;
    case SLOT_PARENT: *ret_value = ref_value(base->parent); return PAWL_OK;
    case SLOT_ACTIVE: *ret_value = (struct value){.type = VALUE_BOOL, .boolean = base->active}; return PAWL_OK;
    default: return load_field(base, slot_place(slot), ret_value, error);
    }
}

static int passes(const struct view *view, struct base_row *base, struct view_room *room, bool *ret_passes,
                  pawl_error *why)
{
    struct expr_source source = {.ctx = base, .load = load_slot};
    struct expr_scratch scratch = {.data = room->scratch, .size = STATE_SCRATCH_BYTES};
    struct value value = {.type = VALUE_BOOL, .boolean = true};
    int status = view->filter ? expr_eval(view->filter, &source, &scratch, &value, why) : PAWL_OK;
    *ret_passes = value.type == VALUE_BOOL && value.boolean;
    return status;
}

static int load_values(const struct view *view, const struct base_row *base, struct view_room *room,
                       bool *ret_null, pawl_error *why)
{
    int status = PAWL_OK;
    *ret_null = false;
    for (size_t i = 0; i < view->row.field_count && status == PAWL_OK; i++) {
        struct value *value = &room->values[i];
        switch (view->fields[i].source) {
        case VIEW_OF_FIELD: status = load_field(base, view->fields[i].place, value, why); break;
        case VIEW_OF_ID: *value = ref_value(base->id); break;
        case VIEW_OF_PARENT: *value = ref_value(base->parent); break;
        case VIEW_OF_ACTIVE: *value = (struct value){.type = VALUE_BOOL, .boolean = base->active}; break;
        }
        *ret_null = *ret_null || (i < view->key_count && status == PAWL_OK && value->type == VALUE_NULL);
    }
    return status;
}

/* Key fields that are too long become a prefix and a hash of them all. Returns what they take then. */
static size_t shorten(uint8_t *fields, size_t size)
{
    if (size <= VIEW_KEY_BYTES_MAX)
        return size;
    struct hash128 hash = hash_wide((pawl_bytes){fields, size});
    put_u64_sorted(fields + VIEW_KEY_BYTES_MAX - HASH, hash.high);
    put_u64_sorted(fields + VIEW_KEY_BYTES_MAX - HASH + 8, hash.low);
    return VIEW_KEY_BYTES_MAX;
}

static int write_key(const struct view *view, pawl_bytes base_key, struct view_room *room, struct view_row *row)
{
    pawl_bytes own = {(const uint8_t *)base_key.data + KEY_WORKSPACE, base_key.size - KEY_WORKSPACE};
    size_t space = room->key_room > KEY_WORKSPACE ? room->key_room - KEY_WORKSPACE : 0;
    size_t size = row_key_write(room->values, view->key_count, space ? room->key + KEY_WORKSPACE : NULL, space);
    if (KEY_WORKSPACE + size + own.size > room->key_room) {
        int status = grow(room->alloc, &room->key, &room->key_room, KEY_WORKSPACE + size + own.size);
        if (status != PAWL_OK)
            return status;
        row_key_write(room->values, view->key_count, room->key + KEY_WORKSPACE, size);
    }
    size = shorten(room->key + KEY_WORKSPACE, size);
    /* The table is another one, token and workspace are the base row's. */
    put_u32_sorted(room->key, view_table(view->number, key_table(base_key) >> SCHEMA_TABLE_BITS));
    memcpy(room->key + KEY_TABLE, (const uint8_t *)base_key.data + KEY_TABLE, KEY_WORKSPACE - KEY_TABLE);
    memcpy(room->key + KEY_WORKSPACE + size, own.data, own.size);
    row->key_fields = KEY_WORKSPACE + size;
    row->key = (pawl_bytes){room->key, row->key_fields + own.size};
    return PAWL_OK;
}

static int write_value(const struct view *view, size_t own, struct view_room *room, struct view_row *row,
                       pawl_error *why)
{
    size_t size;
    if (row_size(room->values, view->row.field_count, &size) != PAWL_OK || row->key.size > PAWL_KEY_BYTES_MAX) {
        row->there = false;
        row->failed = true;
        error_set(why, PAWL_ETOOBIG, "the view's row would be too large");
        return PAWL_OK;
    }
    int status = grow(room->alloc, &room->value, &room->value_room, VIEW_ROW_HEAD + size);
    if (status != PAWL_OK)
        return status;
    put_u8(room->value, VIEW_ROW_VERSION);
    put_u8(room->value + 1, row->has_null ? 1 : 0);
    put_u16(room->value + 2, (uint16_t)own);
    row_write(room->values, view->row.field_count, room->value + VIEW_ROW_HEAD);
    row->value = (pawl_bytes){room->value, VIEW_ROW_HEAD + size};
    return PAWL_OK;
}

int view_evaluate(const struct view *view, pawl_bytes base_key, pawl_bytes base_value, struct view_room *room,
                  struct view_row *ret_row, pawl_error *why)
{
    struct view_row row = {0};
    struct base_row base;
    bool through = false;
    assert(base_key.size >= KEY_WORKSPACE);
    int status = reserve(view, room);
    if (status != PAWL_OK)
        return status;
    status = read_base(view, base_key, base_value, &base, why);
    if (status == PAWL_OK)
        status = passes(view, &base, room, &through, why);
    if (status == PAWL_OK && through)
        status = load_values(view, &base, room, &row.has_null, why);
    row.failed = status != PAWL_OK;
    row.there = !row.failed && through;
    status = PAWL_OK;
    if (row.there)
        status = write_key(view, base_key, room, &row);
    if (status == PAWL_OK && row.there)
        status = write_value(view, base_key.size - KEY_WORKSPACE, room, &row, why);
    if (status == PAWL_OK)
        *ret_row = row;
    return status;
}

int view_prefix(const struct view *view, uint32_t table, uint64_t wsid, const struct value *values,
                size_t count, uint8_t *key, size_t *ret_size)
{
    uint8_t *fields = key + KEY_WORKSPACE;
    key_of_workspace(table, wsid, key);
    size_t size = row_key_write(values, count, fields, VIEW_KEY_BYTES_MAX);
    if (size > VIEW_KEY_BYTES_MAX && count == view->key_count) {
        uint8_t *whole = mem_new(view->alloc, 1, size);
        if (!whole)
            return PAWL_ENOMEM;
        row_key_write(values, count, whole, size);
        size_t taken = shorten(whole, size);
        memcpy(fields, whole, taken);
        mem_free(view->alloc, whole, size);
        size = taken;
    } else if (count < view->key_count && size > VIEW_KEY_BYTES_MAX - HASH)
        return PAWL_ETOOBIG;
    *ret_size = KEY_WORKSPACE + size;
    return PAWL_OK;
}

int view_row_read(pawl_bytes key, pawl_bytes value, pawl_bytes *ret_own, pawl_bytes *ret_row, bool *ret_null)
{
    const uint8_t *at = value.data;
    if (value.size < VIEW_ROW_HEAD || at[0] != VIEW_ROW_VERSION || at[1] > 1)
        return PAWL_ECORRUPT;
    size_t own = get_u16(at + 2);
    if (key.size < KEY_WORKSPACE + own)
        return PAWL_ECORRUPT;
    *ret_own = (pawl_bytes){(const uint8_t *)key.data + key.size - own, own};
    *ret_row = (pawl_bytes){at + VIEW_ROW_HEAD, value.size - VIEW_ROW_HEAD};
    *ret_null = at[1] == 1;
    return PAWL_OK;
}
