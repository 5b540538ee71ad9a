#include "core/state/acting.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "core/state/key.h"
#include "core/state/scope.h"

/* One intent at work. */
struct work {
    struct acting *acting;
    const struct intent *intent;
    uint32_t table;
    struct expr_scratch scratch;
    struct value *values; /* by place: of the row at hand, as it will be */
    uint64_t set[FIELD_WORDS_MAX];
    bool sees_row; /* a set reads the row; reported only if there is a watch */
};

struct intent intent_of(const struct schema_action *action)
{
    return (struct intent){.kind = action->kind,
                           .entity = action->entity,
                           .key_exprs = action->key,
                           .sets = action->sets,
                           .set_count = action->set_count,
                           .where = action->where};
}

/* A row as it is stored. It may be of an earlier schema, but not of a later one. */
static int act_open(struct acting *a, const struct schema_type *entity, pawl_bytes bytes, struct row *ret_row)
{
    struct row row;
    int status = row_open(entity->fields, entity->field_count, bytes, &row, a->error);
    if (status == PAWL_OK && row_fields(row) > entity->field_count)
        return error_set(a->error, PAWL_ECORRUPT, "a row of %.*s is of a later schema than what changes it",
                         (int)entity->name.size, (const char *)entity->name.data);
    if (status == PAWL_OK)
        *ret_row = row;
    return status;
}

/* Write values, a whole row's, by place, in place of old (data NULL: there was none). */
static int act_put(struct acting *a, const struct schema_type *entity, pawl_bytes key, pawl_bytes old,
                   const struct value *values)
{
    size_t size, count = entity->field_count;
    for (size_t i = 0; i < count; i++)
        if (entity->fields[i].required && values[i].type == VALUE_NULL)
            return error_set(a->error, PAWL_EINVAL, "the required field %.*s would be null",
                             (int)entity->fields[i].name.size, (const char *)entity->fields[i].name.data);
    int status = row_size(values, count, &size);
    if (status != PAWL_OK)
        return error_set(a->error, status, "the row would be larger than a row may be");
    if (size > a->row_room) {
        size_t room = size > 2 * a->row_room ? size : 2 * a->row_room;
        uint8_t *row = arena_take(a->memory, room);
        if (!row)
            return PAWL_ENOMEM;
        a->row = row;
        a->row_room = room;
    }
    row_write(values, count, a->row);
    return state_change(&a->state, a->memory, a->changes, key, old, (pawl_bytes){a->row, size});
}

static int evaluate(struct work *w, const struct expr *expr, const struct row *row, struct value *ret_value)
{
    struct scope scope = {.derivation = w->acting->derivation, .type = w->intent->entity, .row = row};
    struct expr_source source = scope_source(&scope);
    return expr_eval(expr, &source, &w->scratch, ret_value, w->acting->error);
}

static int find_row_slot(void *ctx, uint32_t slot)
{
    (void)ctx;
    return slot_of(slot) == SLOT_ROW;
}

static int begin(struct work *w)
{
    const struct intent *intent = w->intent;
    size_t size = intent->entity->field_count * sizeof w->values[0];
    w->values = arena_take(w->acting->memory, size);
    if (!w->values)
        return PAWL_ENOMEM;
    memset(w->values, 0, size);
    for (size_t i = 0; i < intent->set_count; i++) {
        const struct schema_set *set = &intent->sets[i];
        fields_put(w->set, set->field);
        w->sees_row =
            w->sees_row || (w->acting->watch && set->value && expr_uses(set->value, find_row_slot, NULL));
    }
    return PAWL_OK;
}

/* Whether an upsert writes the same row whatever is stored, so that the old row need not be read. */
static bool is_blind(const struct work *w)
{
    const struct schema_type *entity = w->intent->entity;
    uint64_t known[FIELD_WORDS_MAX];
    if (w->intent->kind != ACTION_UPSERT || w->sees_row)
        return false;
    memcpy(known, w->set, sizeof known);
    for (size_t i = 0; i < entity->key_count; i++)
        fields_put(known, entity->key[i]);
    for (size_t i = 0; i < entity->field_count; i++)
        if (entity->fields[i].required && !fields_have(known, i))
            return false;
    return true;
}

static int saw_row(struct work *w, pawl_bytes key)
{
    const struct acting_watch *watch = w->acting->watch;
    return watch ? watch->row(watch->ctx, key) : PAWL_OK;
}

static int remove_row(struct work *w, pawl_bytes key, pawl_bytes old)
{
    struct acting *a = w->acting;
    int status = a->watch ? a->watch->wrote(a->watch->ctx, w->intent, key, NULL, NULL) : PAWL_OK;
    return status == PAWL_OK ? state_change(&a->state, a->memory, a->changes, key, old, (pawl_bytes){0})
                             : status;
}

/* The row as it will be: the old row (values are filled already if there was none) with the intent's sets. */
static int set_row(struct work *w, pawl_bytes key, pawl_bytes old)
{
    struct acting *a = w->acting;
    const struct intent *intent = w->intent;
    const struct schema_type *entity = intent->entity;
    struct row was;
    int status = old.data ? act_open(a, entity, old, &was) : PAWL_OK;
    if (status == PAWL_OK && old.data)
        for (size_t i = 0; i < entity->field_count; i++)
            w->values[i] = row_get(was, i, entity->fields[i].type);
    for (size_t i = 0; status == PAWL_OK && i < intent->set_count; i++) {
        const struct schema_set *set = &intent->sets[i];
        if (set->value)
            status = evaluate(w, set->value, old.data ? &was : NULL, &w->values[set->field]);
        else
            w->values[set->field] = intent->values[i];
    }
    if (status == PAWL_OK && a->watch)
        status = a->watch->wrote(a->watch->ctx, intent, key, w->values, w->set);
    return status == PAWL_OK ? act_put(a, entity, key, old, w->values) : status;
}

/* The whole key, in memory; its fields are in values, too. */
static int make_key(struct work *w, pawl_bytes *ret_key)
{
    const struct intent *intent = w->intent;
    const struct schema_type *entity = intent->entity;
    struct arena *memory = w->acting->memory;
    struct value *key = arena_take(memory, entity->key_count * sizeof *key);
    if (!key)
        return PAWL_ENOMEM;
    for (size_t i = 0; i < entity->key_count; i++) {
        int status = PAWL_OK;
        if (intent->key_exprs)
            status = evaluate(w, intent->key_exprs[i], NULL, &key[i]);
        else
            key[i] = intent->key[i];
        if (status != PAWL_OK)
            return status;
        const struct schema_field *field = &entity->fields[entity->key[i]];
        if (key[i].type == VALUE_NULL)
            return error_set(w->acting->error, PAWL_EINVAL, "the key's field %.*s would be null",
                             (int)field->name.size, (const char *)field->name.data);
        w->values[entity->key[i]] = key[i];
    }
    size_t size = row_key_write(key, entity->key_count, NULL, 0);
    if (size > PAWL_KEY_BYTES_MAX - KEY_WORKSPACE)
        return error_set(w->acting->error, PAWL_ETOOBIG, "the key would have %zu bytes", size);
    uint8_t *bytes = arena_take(memory, KEY_WORKSPACE + size);
    if (!bytes)
        return PAWL_ENOMEM;
    key_of_workspace(w->table, w->acting->derivation->event->envelope.wsid, bytes);
    row_key_write(key, entity->key_count, bytes + KEY_WORKSPACE, size);
    *ret_key = (pawl_bytes){bytes, KEY_WORKSPACE + size};
    return PAWL_OK;
}

static int act_by_key(struct work *w)
{
    pawl_bytes key, old = {0};
    int status = make_key(w, &key);
    if (status == PAWL_OK && !is_blind(w))
        status = saw_row(w, key);
    if (status != PAWL_OK)
        return status;
    status = state_get(&w->acting->state, key, &old);
    if (status == PAWL_ENOTFOUND)
        return w->intent->kind == ACTION_UPSERT ? set_row(w, key, (pawl_bytes){0}) : PAWL_OK;
    if (status != PAWL_OK)
        return status;
    return w->intent->kind == ACTION_DELETE ? remove_row(w, key, old) : set_row(w, key, old);
}

struct match {
    struct match *next;
    pawl_bytes key;
};

/* A clause at work. */
struct matching {
    struct work *work;
    struct arena memory; /* of what matched; not the scan's, which takes and gives back what lies between */
    struct match *first;
    struct match **last;
    size_t bytes;
    uint32_t looked; /* in this slice */
    bool exchanged;
    uint8_t *after; /* the key at which a slice ended, which the next one begins with */
    size_t after_size, after_room;
    int status;
};

static void keep_match(struct matching *m, pawl_bytes key)
{
    const struct acting *a = m->work->acting;
    m->bytes += key.size;
    if (a->watch && m->bytes > a->watch->match_bytes_max) {
        m->status = error_set(a->error, PAWL_ETOOBIG, "it changes too many rows at once");
        return;
    }
    struct match *match = arena_take(&m->memory, sizeof *match);
    if (match)
        *match = (struct match){.key = arena_copy(&m->memory, key)};
    if (!match || !match->key.data) {
        m->status = PAWL_ENOMEM;
        return;
    }
    *m->last = match;
    m->last = &match->next;
}

static bool slice_is_over(const struct matching *m)
{
    const struct acting_watch *watch = m->work->acting->watch;
    return watch && watch->pause && m->looked >= ACTING_SLICE;
}

static void end_slice(struct matching *m, pawl_bytes key)
{
    if (key.size > m->after_room) {
        uint8_t *after = arena_take(&m->memory, 2 * key.size);
        if (!after) {
            m->status = PAWL_ENOMEM;
            return;
        }
        m->after = after;
        m->after_room = 2 * key.size;
    }
    memcpy(m->after, key.data, key.size);
    m->after_size = key.size;
}

static bool match_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct matching *m = arg;
    struct work *w = m->work;
    struct acting *a = w->acting;
    struct row row;
    struct value matches = {.type = VALUE_BOOL, .boolean = true};
    if (m->after_size && bytes_equal(key, (pawl_bytes){m->after, m->after_size}))
        return true;
    m->status = act_open(a, w->intent->entity, value, &row);
    size_t used = w->scratch.used;
    if (m->status == PAWL_OK && w->intent->where)
        m->status = evaluate(w, w->intent->where, &row, &matches);
    w->scratch.used = used;
    if (m->status == PAWL_OK && matches.type == VALUE_BOOL && matches.boolean)
        keep_match(m, key);
    m->looked++;
    if (m->status == PAWL_OK && slice_is_over(m))
        end_slice(m, key);
    return m->status == PAWL_OK && !slice_is_over(m);
}

static int take_pause(struct matching *m)
{
    struct acting *a = m->work->acting;
    m->exchanged = true;
    return a->watch->pause(a->watch->ctx, &a->state.reader);
}

/* Slice by slice, each from the key on at which the one before it ended. */
static int find_matches(struct matching *m)
{
    struct acting *a = m->work->acting;
    uint8_t from[KEY_WORKSPACE], to[KEY_WORKSPACE];
    pawl_bytes first = key_of_workspace(m->work->table, a->derivation->event->envelope.wsid, from);
    pawl_bytes end = key_after_prefix(first, to);
    struct arena scan;
    arena_init(&scan, a->memory->alloc, a->memory->chunk_size);
    int status;
    do {
        m->looked = 0;
        status = state_scan(&a->state, first, end, &scan, match_row, m);
        if (status == PAWL_OK)
            status = m->status;
        if (status == PAWL_OK && slice_is_over(m))
            status = take_pause(m);
        first = (pawl_bytes){m->after, m->after_size};
    } while (status == PAWL_OK && slice_is_over(m));
    arena_release(&scan);
    return status;
}

static int change_match(struct matching *m, pawl_bytes key)
{
    struct work *w = m->work;
    pawl_bytes old;
    int status = state_get(&w->acting->state, key, &old);
    if (status == PAWL_ENOTFOUND && m->exchanged)
        return PAWL_OK; /* it was removed since it matched: this run will not be valid at its turn */
    if (status != PAWL_OK)
        return status;
    if (w->intent->kind == ACTION_DELETE)
        return remove_row(w, key, old);
    size_t used = w->scratch.used;
    status = w->sees_row ? saw_row(w, key) : PAWL_OK;
    if (status == PAWL_OK)
        status = set_row(w, key, old);
    w->scratch.used = used;
    return status;
}

static int act_where(struct work *w)
{
    struct acting *a = w->acting;
    struct matching m = {.work = w, .last = &m.first};
    int status = PAWL_OK;
    if (a->watch)
        status = a->watch->rows(a->watch->ctx, w->table, a->derivation->event->envelope.wsid, w->intent);
    if (status != PAWL_OK)
        return status;
    arena_init(&m.memory, a->memory->alloc, a->memory->chunk_size);
    status = find_matches(&m);
    m.looked = 0;
    for (const struct match *match = m.first; status == PAWL_OK && match; match = match->next) {
        status = change_match(&m, match->key);
        m.looked++;
        if (status == PAWL_OK && slice_is_over(&m)) {
            status = take_pause(&m);
            m.looked = 0;
        }
    }
    arena_release(&m.memory);
    return status;
}

int act(struct acting *a, const struct intent *intent)
{
    assert(a->state.overlay); /* an intent sees the changes of the intents before it */
    bool by_key = intent->key_exprs || intent->key;
    assert(by_key ? !intent->where : intent->kind != ACTION_UPSERT);
    struct work w = {.acting = a,
                     .intent = intent,
                     .table = schema_table(intent->entity, a->generation),
                     .scratch = {.data = a->state.scratch, .size = STATE_SCRATCH_BYTES}};
    int status = begin(&w);
    if (status == PAWL_OK)
        status = by_key ? act_by_key(&w) : act_where(&w);
    return status;
}
