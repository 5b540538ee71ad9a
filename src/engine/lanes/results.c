#include "engine/lanes/results.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "core/schema/definition.h"
#include "core/schema/row.h"
#include "core/schema/text.h"
#include "engine/json/json.h"
#include "engine/lanes/impl.h"

#define ARENA_CHUNK ((size_t)4096)
#define ROW_HEAD    ((size_t)4) /* of a row, before the bits of its fields */
#define SLOT        ((size_t)8) /* of a value that is not null */
#define CLEARED     ((size_t)2) /* of one that is */

static int fail(struct pawl_results *r, int status)
{
    return r->error.code ? r->error.code : error_set(&r->error, status, "no memory for results");
}

/* --- writes --- */

struct results_set {
    struct results_set *next;
    struct schema_set set;
    struct value value; /* if there is no expression */
};

struct results_write {
    struct results_write *next;
    enum action_kind kind;
    const struct schema_type *entity;
    const struct expr *where;
    bool has_where;
    struct value *key; /* once a field of it is set */
    bool *key_set;
    size_t key_count;
    struct results_set *sets, **last_set;
    size_t set_count;
};

void results_init(struct pawl_results *r, struct job *job, struct expr_cache *cache, const struct event *event)
{
    *r = (struct pawl_results){.job = job, .cache = cache, .event = event, .alloc = job->run.alloc};
    r->last = &r->first;
    r->bytes = OPERATION_HEAD;
    arena_init(&r->building, r->alloc, ARENA_CHUNK);
}

void results_release(struct pawl_results *r)
{
    arena_release(&r->building);
}

/* So much more of the entry. */
static int charge(struct pawl_results *r, size_t bytes)
{
    if (bytes > OPERATION_BYTES_MAX - r->bytes)
        return error_set(&r->error, PAWL_ETOOBIG, "the results are larger than an entry of the log may be");
    r->bytes += bytes;
    return PAWL_OK;
}

static void *take_of(struct pawl_results *r, struct arena *arena, size_t size)
{
    void *memory = arena_take(arena, size);
    if (!memory)
        (void)fail(r, PAWL_ENOMEM);
    else
        memset(memory, 0, size);
    return memory;
}

/* Memory for what the run needs to its end. */
static void *take(struct pawl_results *r, size_t size)
{
    return take_of(r, &r->job->run.memory, size);
}

static bool may_write(const struct run *run, const struct schema_type *entity)
{
    for (size_t i = 0; i < run->projector->write_count; i++)
        if (run->projector->writes[i]->id == entity->id)
            return true;
    return false;
}

static int begin(struct pawl_results *r, enum action_kind kind, const char *name, const char *where)
{
    const struct run *run = &r->job->run;
    if (r->error.code)
        return r->error.code;
    const struct schema_type *entity = schema_type_by_name(run->schema, (pawl_bytes){name, strlen(name)});
    if (!entity || entity->kind != TYPE_ENTITY)
        return error_set(&r->error, PAWL_EINVAL, "there is no entity %s", name);
    if (!may_write(run, entity))
        return error_set(&r->error, PAWL_EINVAL, "%s is not among what %.*s writes", name,
                         (int)run->projector->name.size, (const char *)run->projector->name.data);
    size_t row = kind == ACTION_DELETE ? 0 : ROW_HEAD + (entity->field_count + 7) / 8;
    if (charge(r, OPERATION_WRITE + OPERATION_ROW + row) != PAWL_OK)
        return r->error.code;
    struct results_write *w = take_of(r, &r->building, sizeof *w);
    if (!w)
        return r->error.code;
    *w = (struct results_write){.kind = kind, .entity = entity, .has_where = where != NULL};
    w->last_set = &w->sets;
    if (where && results_compile(r, entity, VALUE_BOOL, where, &w->where) != PAWL_OK)
        return error_wrap(&r->error, r->error.code, "where");
    *r->last = w;
    r->last = &w->next;
    r->open = w;
    r->count++;
    return PAWL_OK;
}

int pawl_results_upsert(pawl_results *r, const char *entity)
{
    return begin(r, ACTION_UPSERT, entity, NULL);
}

int pawl_results_update(pawl_results *r, const char *entity, const char *where)
{
    return begin(r, ACTION_UPDATE, entity, where);
}

int pawl_results_delete(pawl_results *r, const char *entity, const char *where)
{
    return begin(r, ACTION_DELETE, entity, where);
}

/* --- fields --- */

static int find_field(struct pawl_results *r, const char *field, int *ret_place)
{
    if (r->error.code)
        return r->error.code;
    if (!r->open)
        return error_set(&r->error, PAWL_EINVAL, "there is no write yet to set %s of", field);
    const struct schema_type *entity = r->open->entity;
    *ret_place = schema_field_place(entity, (pawl_bytes){field, strlen(field)});
    if (*ret_place < 0)
        return error_set(&r->error, PAWL_EINVAL, "%.*s has no field %s", (int)entity->name.size,
                         (const char *)entity->name.data, field);
    return PAWL_OK;
}

/* Its place in the key, or -1. */
static int key_place(const struct schema_type *entity, int field)
{
    for (size_t i = 0; i < entity->key_count; i++)
        if (entity->key[i] == field)
            return (int)i;
    return -1;
}

static int set_key(struct pawl_results *r, const char *field, size_t place, struct value value)
{
    struct results_write *w = r->open;
    size_t count = w->entity->key_count;
    if (w->has_where)
        return error_set(&r->error, PAWL_EINVAL, "%s is of the key, and there is a where", field);
    if (!w->key) {
        w->key = take(r, count * sizeof *w->key);
        w->key_set = w->key ? take_of(r, &r->building, count * sizeof *w->key_set) : NULL;
        if (!w->key_set)
            return r->error.code;
    }
    if (w->key_set[place])
        return error_set(&r->error, PAWL_EINVAL, "%s is set already", field);
    w->key_set[place] = true;
    w->key[place] = value;
    w->key_count++;
    return PAWL_OK;
}

static int add_set(struct pawl_results *r, const char *field, uint16_t place, const struct expr *expr,
                   struct value value)
{
    struct results_write *w = r->open;
    if (w->kind == ACTION_DELETE)
        return error_set(&r->error, PAWL_EINVAL, "%s: a delete sets nothing", field);
    struct results_set *s = take_of(r, &r->building, sizeof *s);
    if (!s)
        return r->error.code;
    *s = (struct results_set){.set = {.field = place, .value = expr}, .value = value};
    *w->last_set = s;
    w->last_set = &s->next;
    w->set_count++;
    return PAWL_OK;
}

/* Bytes are copied: the caller's may be gone before the run is over. */
static int keep(struct pawl_results *r, struct value *value)
{
    if (value->type != VALUE_STRING && value->type != VALUE_BYTES)
        return PAWL_OK;
    uint8_t *copy = take(r, value->bytes.size);
    if (!copy)
        return r->error.code;
    if (value->bytes.size > 0)
        memcpy(copy, value->bytes.data, value->bytes.size);
    value->bytes.data = copy;
    return PAWL_OK;
}

/* Of the entry, outside the key. */
static size_t set_size(const struct value *value)
{
    bool tail = value->type == VALUE_STRING || value->type == VALUE_BYTES;
    return value->type == VALUE_NULL ? CLEARED : tail ? SLOT + value->bytes.size : SLOT;
}

static int set(struct pawl_results *r, const char *field, struct value value)
{
    int place;
    int status = find_field(r, field, &place);
    if (status != PAWL_OK)
        return status;
    enum value_type wants = r->open->entity->fields[place].type;
    if (value.type != VALUE_NULL && value.type != wants)
        return error_set(&r->error, PAWL_EINVAL, "%s is of type %s, not %s", field, value_type_text(wants),
                         value_type_text(value.type));
    int key = key_place(r->open->entity, place);
    status = charge(r, key >= 0 ? row_key_write(&value, 1, NULL, 0) : set_size(&value));
    if (status == PAWL_OK)
        status = keep(r, &value);
    if (status != PAWL_OK)
        return status;
    return key >= 0 ? set_key(r, field, (size_t)key, value) : add_set(r, field, (uint16_t)place, NULL, value);
}

int pawl_results_set_int64(pawl_results *r, const char *field, int64_t value)
{
    return set(r, field, (struct value){.type = VALUE_INT64, .integer = value});
}

int pawl_results_set_float64(pawl_results *r, const char *field, double value)
{
    if (!isfinite(value) && !r->error.code)
        return error_set(&r->error, PAWL_EINVAL, "%s: the number is not finite", field);
    return set(r, field, (struct value){.type = VALUE_FLOAT64, .real = value});
}

int pawl_results_set_bool(pawl_results *r, const char *field, bool value)
{
    return set(r, field, (struct value){.type = VALUE_BOOL, .boolean = value});
}

int pawl_results_set_text(pawl_results *r, const char *field, pawl_bytes value)
{
    if (!text_is_utf8(value) && !r->error.code)
        return error_set(&r->error, PAWL_EINVAL, "%s: the text is not UTF-8", field);
    return set(r, field, (struct value){.type = VALUE_STRING, .bytes = value});
}

int pawl_results_set_string(pawl_results *r, const char *field, const char *value)
{
    return pawl_results_set_text(r, field, (pawl_bytes){value, strlen(value)});
}

int pawl_results_set_bytes(pawl_results *r, const char *field, pawl_bytes value)
{
    return set(r, field, (struct value){.type = VALUE_BYTES, .bytes = value});
}

int pawl_results_set_time(pawl_results *r, const char *field, pawl_wall value)
{
    return set(r, field, (struct value){.type = VALUE_TIMESTAMP, .integer = value.ns});
}

int pawl_results_set_name(pawl_results *r, const char *field, const char *qname)
{
    uint16_t name = schema_name_id(r->job->run.schema, (pawl_bytes){qname, strlen(qname)});
    if (name == 0 && !r->error.code)
        return error_set(&r->error, PAWL_EINVAL, "%s: there is no name %s", field, qname);
    return set(r, field, (struct value){.type = VALUE_QNAME, .name = name});
}

int pawl_results_set_ref(pawl_results *r, const char *field, uint64_t id)
{
    return set(r, field, (struct value){.type = VALUE_REF, .id = id});
}

int pawl_results_set_null(pawl_results *r, const char *field)
{
    return set(r, field, (struct value){.type = VALUE_NULL});
}

int pawl_results_set_expr(pawl_results *r, const char *field, const char *expression)
{
    int place;
    const struct expr *expr;
    int status = find_field(r, field, &place);
    if (status != PAWL_OK)
        return status;
    const struct schema_type *entity = r->open->entity;
    if (key_place(entity, place) >= 0)
        return error_set(&r->error, PAWL_EINVAL, "%s is of the key: it is a value", field);
    status = results_compile(r, entity, entity->fields[place].type, expression, &expr);
    if (status != PAWL_OK)
        return error_wrap(&r->error, status, "%s", field);
    if (charge(r, CLEARED) != PAWL_OK) /* at least */
        return r->error.code;
    return add_set(r, field, (uint16_t)place, expr, (struct value){.type = VALUE_NULL});
}

const struct schema *results_schema(pawl_results *r)
{
    return r->job->run.schema;
}

const struct schema_type *results_entity(pawl_results *r)
{
    return r->open ? r->open->entity : NULL;
}

const pawl_error *results_error(pawl_results *r)
{
    return &r->error;
}

int pawl_results_json(pawl_results *r, pawl_bytes json, pawl_error *error)
{
    if (r->error.code)
        return error_set(error, r->error.code, "%s", r->error.text);
    pawl_error why = {0};
    int status = json_results_read(json.data, json.size, r, &why);
    if (status == PAWL_OK)
        return status;
    r->error = why; /* with the path, where the words of what it called have none */
    return error_set(error, status, "%s", why.text);
}

int pawl_results_fail(pawl_results *r, bool permanent, const char *words)
{
    r->failed = true;
    r->permanent = permanent;
    return error_set(&r->error, PAWL_EINVAL, "%s", words && words[0] ? words : "it failed");
}

/* --- intents --- */

static int finish_write(struct pawl_results *r, const struct results_write *w, struct intent *ret_intent)
{
    bool by_key = w->kind == ACTION_UPSERT || w->key;
    if (by_key && w->key_count != w->entity->key_count)
        return error_set(&r->error, PAWL_EINVAL, "of %.*s's key %zu of %zu fields are set",
                         (int)w->entity->name.size, (const char *)w->entity->name.data, w->key_count,
                         w->entity->key_count);
    struct schema_set *sets = take(r, w->set_count * sizeof *sets);
    struct value *values = sets ? take(r, w->set_count * sizeof *values) : NULL;
    if (!values)
        return r->error.code;
    size_t i = 0;
    for (const struct results_set *s = w->sets; s; s = s->next, i++) {
        sets[i] = s->set;
        values[i] = s->value;
    }
    *ret_intent = (struct intent){.kind = w->kind,
                                  .entity = w->entity,
                                  .key = by_key ? w->key : NULL,
                                  .sets = sets,
                                  .values = values,
                                  .set_count = w->set_count,
                                  .where = w->where};
    return PAWL_OK;
}

int results_finish(struct pawl_results *r)
{
    struct intent *intents = r->error.code ? NULL : take(r, r->count * sizeof *intents);
    size_t i = 0;
    if (!intents)
        return r->error.code;
    for (const struct results_write *w = r->first; w; w = w->next)
        if (finish_write(r, w, &intents[i++]) != PAWL_OK)
            return r->error.code;
    r->job->run.intents = intents;
    r->job->run.intent_count = r->count;
    return PAWL_OK;
}
