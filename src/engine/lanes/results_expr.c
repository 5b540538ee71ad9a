/* engine/lanes/results_expr.c: the expressions of results, compiled, and those of a worker pool kept for its next jobs. */
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "core/schema/compile.h"
#include "engine/lanes/impl.h"
#include "engine/lanes/results.h"

#define CACHED_MAX 256

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

static pawl_bytes package_of(pawl_bytes qname)
{
    const char *dot = memchr(qname.data, '.', qname.size);
    return (pawl_bytes){qname.data, dot ? (size_t)(dot - (const char *)qname.data) : 0};
}

int results_compile(struct pawl_results *r, const struct schema_type *entity, enum value_type want,
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
            return error_set(&r->error, PAWL_ENOMEM, "no memory for results");
        }
        *own = (struct results_expr){.next = r->job->exprs, .expr = like.expr};
        r->job->exprs = own;
    }
    *ret_expr = found;
    return PAWL_OK;
}
