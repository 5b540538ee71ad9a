#include "engine/results.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "core/schema/compile.h"
#include "core/schema/definition.h"
#include "core/schema/text.h"
#include "engine/json/results.h"
#include "engine/node.h"

#define CACHED_MAX 256

/* --- expressions --- */

struct cached_expr {
    struct cached_expr *next;
    const struct schema *schema;
    const struct schema_projector *projector; /* names are of its package */
    const struct schema_type *entity;
    uint16_t command;
    enum value_type want;
    struct expr *expr;
    size_t size;
    char text[];
};

struct expr_cache {
    const pawl_allocator *alloc;
    pthread_mutex_t lock;
    struct cached_expr *first;
    size_t count;
};

struct results_expr {
    struct results_expr *next;
    struct expr *expr;
};

int expr_cache_new(const pawl_allocator *alloc, struct expr_cache **ret_cache)
{
    struct expr_cache *cache = mem_new(alloc, 1, sizeof *cache);
    if (!cache)
        return PAWL_ENOMEM;
    cache->alloc = alloc;
    pthread_mutex_init(&cache->lock, NULL);
    *ret_cache = cache;
    return PAWL_OK;
}

void expr_cache_free(struct expr_cache *cache)
{
    if (!cache)
        return;
    while (cache->first) {
        struct cached_expr *c = cache->first;
        cache->first = c->next;
        expr_free(c->expr);
        mem_free(cache->alloc, c, sizeof *c + c->size);
    }
    pthread_mutex_destroy(&cache->lock);
    mem_free(cache->alloc, cache, sizeof *cache);
}

static const struct expr *find_cached(struct expr_cache *cache, const struct cached_expr *like, pawl_bytes text)
{
    const struct expr *found = NULL;
    pthread_mutex_lock(&cache->lock);
    for (const struct cached_expr *c = cache->first; c && !found; c = c->next)
        if (c->schema == like->schema && c->projector == like->projector && c->entity == like->entity
            && c->command == like->command && c->want == like->want
            && bytes_equal((pawl_bytes){c->text, c->size}, text))
            found = c->expr;
    pthread_mutex_unlock(&cache->lock);
    return found;
}

/* False: it stays whose it is. Two threads may come with the same text: both are kept. */
static bool keep_cached(struct expr_cache *cache, const struct cached_expr *like, pawl_bytes text)
{
    struct cached_expr *c = mem_resize(cache->alloc, NULL, 0, sizeof *c + text.size);
    if (!c)
        return false;
    *c = *like;
    c->size = text.size;
    memcpy(c->text, text.data, text.size);
    pthread_mutex_lock(&cache->lock);
    bool room = cache->count < CACHED_MAX;
    if (room) {
        c->next = cache->first;
        cache->first = c;
        cache->count++;
    }
    pthread_mutex_unlock(&cache->lock);
    if (!room)
        mem_free(cache->alloc, c, sizeof *c + c->size);
    return room;
}

void results_forget(struct job *job)
{
    while (job->exprs) {
        struct results_expr *e = job->exprs;
        job->exprs = e->next;
        expr_free(e->expr);
        mem_free(job->run.alloc, e, sizeof *e);
    }
}

static int fail(struct pawl_results *r, int status)
{
    return r->error.code ? r->error.code : error_set(&r->error, status, "no memory for results");
}

static pawl_bytes package_of(pawl_bytes qname)
{
    const char *dot = memchr(qname.data, '.', qname.size);
    return (pawl_bytes){qname.data, dot ? (size_t)(dot - (const char *)qname.data) : 0};
}

static int compile(struct pawl_results *r, const struct schema_type *entity, enum value_type want,
                   const char *text, const struct expr **ret_expr)
{
    const struct run *run = &r->job->run;
    const struct schema_command *command = schema_command_by_id(run->schema, r->event->head.command);
    struct compile_scope scope = {
        .row = entity, .event = true, .argument = command ? command->argument : NULL, .want = want};
    struct cached_expr like = {.schema = run->schema,
                               .projector = run->projector,
                               .entity = entity,
                               .command = r->event->head.command,
                               .want = want};
    pawl_bytes bytes = {text, strlen(text)};
    const struct expr *found = find_cached(r->cache, &like, bytes);
    if (!found) {
        int status = schema_compile(run->schema, package_of(run->projector->name), bytes, &scope, r->alloc,
                                    &like.expr, &r->error);
        if (status != PAWL_OK)
            return status;
        found = like.expr;
    }
    if (like.expr && !keep_cached(r->cache, &like, bytes)) {
        struct results_expr *own = mem_new(r->alloc, 1, sizeof *own);
        if (!own) {
            expr_free(like.expr);
            return fail(r, PAWL_ENOMEM);
        }
        *own = (struct results_expr){.next = r->job->exprs, .expr = like.expr};
        r->job->exprs = own;
    }
    *ret_expr = found;
    return PAWL_OK;
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
}

static void *take(struct pawl_results *r, size_t size)
{
    r->bytes += size;
    if (r->bytes > OPERATION_BYTES_MAX) {
        error_set(&r->error, PAWL_ETOOBIG, "the results are larger than an entry of the log may be");
        return NULL;
    }
    void *memory = arena_take(&r->job->run.memory, size);
    if (!memory)
        (void)fail(r, PAWL_ENOMEM);
    else
        memset(memory, 0, size);
    return memory;
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
    struct results_write *w = take(r, sizeof *w);
    if (!w)
        return r->error.code;
    *w = (struct results_write){.kind = kind, .entity = entity, .has_where = where != NULL};
    w->last_set = &w->sets;
    if (where && compile(r, entity, VALUE_BOOL, where, &w->where) != PAWL_OK)
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
        w->key_set = w->key ? take(r, count * sizeof *w->key_set) : NULL;
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
    struct results_set *s = take(r, sizeof *s);
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
    status = keep(r, &value);
    if (status != PAWL_OK)
        return status;
    int key = key_place(r->open->entity, place);
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

int pawl_results_set_string(pawl_results *r, const char *field, const char *text, size_t size)
{
    pawl_bytes bytes = {text, size};
    if (!text_is_utf8(bytes) && !r->error.code)
        return error_set(&r->error, PAWL_EINVAL, "%s: the text is not UTF-8", field);
    return set(r, field, (struct value){.type = VALUE_STRING, .bytes = bytes});
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
    status = compile(r, entity, entity->fields[place].type, expression, &expr);
    if (status != PAWL_OK)
        return error_wrap(&r->error, status, "%s", field);
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

int pawl_results_json(pawl_results *r, const char *json, size_t size, pawl_error *error)
{
    if (r->error.code)
        return error_set(error, r->error.code, "%s", r->error.text);
    pawl_error why = {0};
    int status = json_results_read(json, size, r, &why);
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
