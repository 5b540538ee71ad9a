/* engine/views/admin.c: what an operator does with views and tablets. Each call writes one command to group0, or,
 * to split or merge, two. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "core/schema/path.h"
#include "engine/views/impl.h"

#define CHUNK      ((size_t)4096)
#define POLL_EVERY (100 * PAWL_MILLISECOND)

int views_propose(pawl_engine *e, const struct group0_command *command, pawl_error *error)
{
    struct arena arena;
    pawl_bytes bytes;
    enum group0_outcome outcome;
    arena_init(&arena, e->options.allocator, CHUNK);
    int status = group0_view_encode(command, &arena, &bytes);
    if (status == PAWL_OK)
        status = engine_group0_propose(e, bytes, &outcome, error);
    else
        error_set(error, status, status == PAWL_ETOOBIG ? "a name is too long" : "no memory for a command");
    arena_release(&arena);
    return status;
}

static pawl_bytes text_of(const char *text)
{
    return (pawl_bytes){text ? text : "", text ? strlen(text) : 0};
}

/* "shop.by_customer" is by_customer of the package shop. */
static int split_name(const char *name, pawl_bytes *ret_package, pawl_bytes *ret_bare, pawl_error *error)
{
    const char *dot = name ? strchr(name, '.') : NULL;
    if (!dot || dot == name || !dot[1])
        return error_set(error, PAWL_EINVAL, "$.name: '%s' is not a qualified name, such as shop.by_customer",
                         name ? name : "");
    *ret_package = (pawl_bytes){name, (size_t)(dot - name)};
    *ret_bare = text_of(dot + 1);
    return PAWL_OK;
}

static int check_package(pawl_engine *e, pawl_bytes package, pawl_error *error)
{
    const struct schema *schema = engine_schema(e);
    const struct definition *d;
    for (size_t i = 0; (d = schema_package(schema, i)); i++)
        if (bytes_equal(d->package, package))
            return PAWL_OK;
    return error_set(error, PAWL_EINVAL, "$.name: there is no package '%.*s'", TEXT(package));
}

static pawl_bytes *texts_of(const char *const *texts, size_t count, struct arena *arena)
{
    pawl_bytes *list = arena_take(arena, count * sizeof *list);
    for (size_t i = 0; list && i < count; i++)
        list[i] = text_of(texts[i]);
    return list;
}

static int create(pawl_engine *e, const pawl_view_definition *d, struct arena *arena, pawl_error *error)
{
    struct definition_view view = {.base = text_of(d->base),
                                   .key = texts_of(d->key, d->key_count, arena),
                                   .key_count = d->key_count,
                                   .include = texts_of(d->include, d->include_count, arena),
                                   .include_count = d->include_count,
                                   .filter = text_of(d->filter),
                                   .unique = d->unique};
    struct group0_command command = {.kind = GROUP0_VIEW_CREATE, .schema = {.views = &view, .view_count = 1}};
    if (!view.key || !view.include)
        return error_set(error, PAWL_ENOMEM, "no memory for a view");
    int status = split_name(d->name, &command.schema.package, &view.name, error);
    if (status == PAWL_OK)
        status = check_package(e, command.schema.package, error);
    if (status == PAWL_OK) /* before encoding, whose error for a list that is too long would have no path */
        status = definition_check(&command.schema, arena, error);
    return status == PAWL_OK ? views_propose(e, &command, error) : status;
}

int pawl_view_create(pawl_engine *e, const pawl_view_definition *definition, pawl_error *error)
{
    struct arena arena;
    int status = engine_enter_writing(e, error);
    if (status != PAWL_OK)
        return status;
    arena_init(&arena, e->options.allocator, CHUNK);
    status = create(e, definition, &arena, error);
    arena_release(&arena);
    return status;
}

static int propose_named(pawl_engine *e, struct group0_command command, const char *name, pawl_error *error)
{
    int status = engine_enter_writing(e, error);
    if (status != PAWL_OK)
        return status;
    command.name = text_of(name);
    if (name && !name[0]) /* not all of them, as without a name */
        return error_set(error, PAWL_ENOTFOUND, "no view has an empty name");
    if (command.name.size > SCHEMA_QNAME_BYTES_MAX)
        return error_set(error, PAWL_ENOTFOUND, "no view has a name as long as this");
    return views_propose(e, &command, error);
}

int pawl_view_drop(pawl_engine *e, const char *name, pawl_error *error)
{
    return propose_named(e, (struct group0_command){.kind = GROUP0_VIEW_DROP}, name, error);
}

int pawl_view_rebuild(pawl_engine *e, const char *name, pawl_error *error)
{
    return propose_named(e, (struct group0_command){.kind = GROUP0_VIEW_REBUILD}, name, error);
}

int pawl_view_pause(pawl_engine *e, const char *name, bool paused, pawl_error *error)
{
    return propose_named(e, (struct group0_command){.kind = GROUP0_VIEW_PAUSE, .paused = paused}, name, error);
}

int pawl_view_throttle(pawl_engine *e, uint64_t rows_per_second, pawl_error *error)
{
    int status = engine_enter_writing(e, error);
    struct group0_command command = {.kind = GROUP0_VIEW_THROTTLE, .throttle = rows_per_second};
    return status == PAWL_OK ? views_propose(e, &command, error) : status;
}

/* --- waiting --- */

/* PAWL_EBUSY: not yet. A view that is being rebuilt is waited for until the new one is built. */
static int judge(pawl_engine *e, pawl_bytes name, pawl_error *error)
{
    const struct view_entry *rebuilding, *entry = view_list_by_name(engine_views(e), name, &rebuilding);
    if (!entry)
        return error_set(error, PAWL_ENOTFOUND, "there is no view %.*s", TEXT(name));
    if (rebuilding && rebuilding->progress != VIEW_FAILED)
        return PAWL_EBUSY;
    const struct view_entry *failed = rebuilding ? rebuilding : entry->progress == VIEW_FAILED ? entry : NULL;
    if (failed)
        return error_set(error, PAWL_EEXISTS, "%.*s", (int)failed->words.size,
                         (const char *)failed->words.data); /* they begin with the view's name */
    return entry->progress == VIEW_SUCCESS ? PAWL_OK : PAWL_EBUSY;
}

/* Sleep until group0 has changed, but not long: nobody wakes an engine that only reads. */
static void wait_a_while(struct views *v, uint64_t changes, pawl_duration most)
{
    pawl_duration poll = v->engine->options.read_only ? POLL_EVERY : PAWL_SECOND;
    uint64_t end = wait_deadline(poll < most ? poll : most);
    bool in_time = true;
    pthread_mutex_lock(&v->lock);
    while (v->changes == changes && in_time && !v->stop)
        in_time = cond_wait_until(&v->progress, &v->lock, end);
    pthread_mutex_unlock(&v->lock);
}

static uint64_t count_changes(struct views *v)
{
    pthread_mutex_lock(&v->lock);
    uint64_t changes = v->changes;
    pthread_mutex_unlock(&v->lock);
    return changes;
}

int pawl_view_wait(pawl_engine *e, const char *name, pawl_duration timeout, pawl_error *error)
{
    pawl_instant deadline = timeout ? engine_deadline(e, timeout) : (pawl_instant){UINT64_MAX};
    for (;;) {
        int status = engine_enter(e, error);
        if (status != PAWL_OK)
            return status;
        uint64_t changes = count_changes(e->views);
        status = judge(e, text_of(name), error);
        if (status != PAWL_EBUSY)
            return status;
        uint64_t now = pawl_env_now(e->env).ns;
        if (now >= deadline.ns)
            return error_set(error, PAWL_ETIMEOUT, "%s is not built yet", name);
        wait_a_while(e->views, changes, deadline.ns - now);
    }
}

/* --- tablets --- */

static int resize(pawl_engine *e, bool split, pawl_error *error)
{
    int status = engine_enter_writing(e, error);
    if (status != PAWL_OK)
        return status;
    uint32_t tablets = building_lock(e)->map.tablets;
    building_unlock(e);
    struct group0_command command = {.kind = GROUP0_RESIZE_BEGIN, .tablets = split ? tablets * 2 : tablets / 2};
    status = views_propose(e, &command, error);
    if (status != PAWL_OK)
        return status;
    knobs_step(&e->knobs, "tablets are being resized");
    command = (struct group0_command){.kind = GROUP0_RESIZE_FINISH};
    status = views_propose(e, &command, error);
    if (status == PAWL_OK)
        return status;
    command.kind = GROUP0_RESIZE_ROLLBACK; /* if this fails too, the next opening does it */
    (void)views_propose(e, &command, NULL);
    return status;
}

int pawl_tablets_split(pawl_engine *e, pawl_error *error)
{
    return resize(e, true, error);
}

int pawl_tablets_merge(pawl_engine *e, pawl_error *error)
{
    return resize(e, false, error);
}
