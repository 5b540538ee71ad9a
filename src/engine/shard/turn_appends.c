#include "engine/shard/turn_appends.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"

#define PAUSE PAWL_MILLISECOND

/* One request to the log, in place of several. */
struct joined_append {
    pawl_append append;
    struct turn_appends *appends;
    struct joined_append *next;
    pawl_append *first;
    pawl_append *last;
    pawl_append_entry *entries;
    size_t room;
    pawl_error error;
};

/* The first appends of those that are kept, as many as go together. */
struct group {
    pawl_append *last;
    size_t entries;
};

static pawl_append *next_of(const pawl_append *append)
{
    return append->impl[0];
}

static void free_joined(struct turn_appends *c, struct joined_append *joined)
{
    mem_free(c->alloc, joined->entries, joined->room * sizeof joined->entries[0]);
    mem_free(c->alloc, joined, sizeof *joined);
}

static void give_back(struct joined_append *joined)
{
    joined->next = joined->appends->free;
    joined->appends->free = joined;
}

/* NULL: no memory. */
static struct joined_append *take_joined(struct turn_appends *c, size_t entries)
{
    struct joined_append *joined = c->free;
    if (joined)
        c->free = joined->next;
    else
        joined = mem_new(c->alloc, 1, sizeof *joined);
    if (!joined)
        return NULL;
    joined->appends = c;
    if (joined->room >= entries)
        return joined;
    size_t room = joined->room ? joined->room : 64;
    while (room < entries)
        room *= 2;
    void *larger = mem_resize(c->alloc, joined->entries, joined->room * sizeof joined->entries[0],
                              room * sizeof joined->entries[0]);
    if (!larger) {
        free_joined(c, joined);
        return NULL;
    }
    joined->entries = larger;
    joined->room = room;
    return joined;
}

/* Gives an append the outcome of its own entries: C2. */
static void tell(const struct joined_append *joined, pawl_append *append, const pawl_append_entry *entries)
{
    append->status = PAWL_OK;
    for (size_t i = 0; i < append->count; i++) {
        append->entries[i].status = entries[i].status;
        append->entries[i].place = entries[i].place;
        if (append->status == PAWL_OK)
            append->status = entries[i].status;
    }
    if (append->status != PAWL_OK)
        error_set(append->error, append->status, "%s", joined->error.text);
    append->done(append);
}

static void appended(pawl_append *request)
{
    struct joined_append *joined = heap_entry(request, struct joined_append, append);
    const pawl_append_entry *entries = joined->entries;
    pawl_append *append = joined->first;
    while (append) {
        pawl_append *next = append == joined->last ? NULL : next_of(append); /* its owner may use it again */
        size_t count = append->count;
        tell(joined, append, entries);
        entries += count;
        append = next;
    }
    give_back(joined);
}

static void answered(pawl_append *request)
{
    struct turn_appends *c = heap_entry(request, struct joined_append, append)->appends;
    appended(request);
    if (--c->under_way == 0 && c->idle)
        c->idle(c->arg);
}

static size_t body_bytes(const pawl_append *append)
{
    size_t bytes = 0;
    for (size_t i = 0; i < append->count; i++)
        bytes += append->entries[i].entry.body.size;
    return bytes;
}

static struct group first_group(const struct turn_appends *c)
{
    struct group group = {.last = c->first, .entries = c->first->count};
    size_t bytes = body_bytes(c->first);
    while (group.last != c->last) {
        pawl_append *next = next_of(group.last);
        bytes += body_bytes(next);
        if (bytes > TURN_APPENDS_BYTES_MAX)
            break;
        group.last = next;
        group.entries += next->count;
    }
    return group;
}

static void take_off(struct turn_appends *c, pawl_append *last)
{
    c->first = last == c->last ? NULL : next_of(last);
    if (!c->first)
        c->last = NULL;
}

/* An append that goes by itself needs no memory, and gets only its own errors. */
static int send_one(struct turn_appends *c)
{
    pawl_append *append = c->first;
    pawl_append *next = append == c->last ? NULL : next_of(append);
    int status = pawl_log_append(c->log, append);
    if (status == PAWL_EBUSY) {
        append->impl[0] = next; /* the log may have overwritten it */
        return status;
    }
    c->first = next;
    c->last = next ? c->last : NULL;
    if (status == PAWL_OK)
        return status;
    for (size_t i = 0; i < append->count; i++)
        append->entries[i].status = PAWL_EIO;
    append->status = PAWL_EIO;
    append->done(append);
    return PAWL_OK;
}

/* On any error nothing was sent. PAWL_ENOMEM, PAWL_EBUSY, or an error of one of the appends. */
static int send_group(struct turn_appends *c, struct group group, bool alone)
{
    struct joined_append *joined = take_joined(c, group.entries);
    if (!joined)
        return PAWL_ENOMEM;
    pawl_append *append = c->first;
    for (size_t at = 0; at < group.entries; append = next_of(append)) {
        memcpy(joined->entries + at, append->entries, append->count * sizeof append->entries[0]);
        at += append->count;
    }
    joined->first = c->first;
    joined->last = group.last;
    joined->error.text[0] = '\0';
    joined->append = (pawl_append){.entries = joined->entries,
                                   .count = group.entries,
                                   .done = answered,
                                   .error = &joined->error,
                                   .alone = alone};
    int status = pawl_log_append(c->log, &joined->append);
    if (status == PAWL_OK || status == PAWL_APPEND_DONE)
        take_off(c, group.last);
    else
        give_back(joined);
    c->under_way += status == PAWL_OK;
    if (status == PAWL_APPEND_DONE)
        appended(&joined->append);
    return status == PAWL_APPEND_DONE ? PAWL_OK : status;
}

size_t turn_appends_kept(const struct turn_appends *c)
{
    size_t entries = 0;
    for (const pawl_append *append = c->first; append; append = append == c->last ? NULL : next_of(append))
        entries += append->count;
    return entries;
}

void turn_appends_send(struct turn_appends *c, bool alone)
{
    assert(pawl_env_self(c->env) == c->shard); /* C4 */
    while (c->first && !c->busy) {
        struct group group = first_group(c);
        int status = send_group(c, group, alone && group.last == c->last);
        if (status != PAWL_OK && status != PAWL_EBUSY)
            status = send_one(c);
        alone = false; /* a later append, if sent as alone, could be done before this one */
        if (status != PAWL_EBUSY)
            continue;
        c->busy = true;
        pawl_env_after(c->env, &c->timer, PAUSE);
    }
}

static void turn_over(pawl_task *task)
{
    struct turn_appends *c = heap_entry(task, struct turn_appends, task);
    if (c->send)
        c->send(c->arg);
    else
        turn_appends_send(c, false);
}

static void pause_over(pawl_timer *timer)
{
    struct turn_appends *c = heap_entry(timer, struct turn_appends, timer);
    c->busy = false;
    turn_appends_send(c, false);
}

static int turn_appends_append(pawl_log *port, pawl_append *append)
{
    struct turn_appends *c = (struct turn_appends *)port;
    if (c->busy)
        return error_set(append->error, PAWL_EBUSY, "the log's queue is full");
    int status = pawl_env_post(c->env, c->shard, &c->task);
    if (status != PAWL_OK)
        return error_set(append->error, status, "the env is closed");
    append->alone = false; /* whoever sends decides that */
    append->impl[0] = NULL;
    if (c->last)
        c->last->impl[0] = append;
    else
        c->first = append;
    c->last = append;
    return PAWL_OK;
}

static int turn_appends_claim(pawl_log *port, pawl_claim *claim)
{
    return pawl_log_claim(((struct turn_appends *)port)->log, claim);
}

static int turn_appends_read(pawl_log *port, pawl_read *read)
{
    return pawl_log_read(((struct turn_appends *)port)->log, read);
}

static int turn_appends_sweep(pawl_log *port, pawl_sweep *sweep)
{
    return pawl_log_sweep(((struct turn_appends *)port)->log, sweep);
}

static int turn_appends_follow(pawl_log *port, pawl_follow *follow)
{
    return pawl_log_follow(((struct turn_appends *)port)->log, follow);
}

static int turn_appends_unfollow(pawl_log *port, pawl_follow *follow)
{
    return pawl_log_unfollow(((struct turn_appends *)port)->log, follow);
}

static int turn_appends_tail(pawl_log *port, pawl_tail *tail)
{
    return pawl_log_tail(((struct turn_appends *)port)->log, tail);
}

/* Not for a shard: the owner of the log closes it. */
static int turn_appends_close(pawl_log *port)
{
    return PAWL_EMISUSE;
}

static const struct pawl_log_ops turn_appends_ops = {
    .claim = turn_appends_claim,
    .append = turn_appends_append,
    .read = turn_appends_read,
    .sweep = turn_appends_sweep,
    .follow = turn_appends_follow,
    .unfollow = turn_appends_unfollow,
    .tail = turn_appends_tail,
    .close = turn_appends_close,
};

void turn_appends_init(struct turn_appends *c, pawl_log *log, pawl_env *env, uint32_t shard,
                       const pawl_allocator *alloc)
{
    *c = (struct turn_appends){.port.ops = &turn_appends_ops,
                               .log = log,
                               .env = env,
                               .shard = shard,
                               .alloc = alloc,
                               .task.fn = turn_over,
                               .timer.fn = pause_over};
}

void turn_appends_release(struct turn_appends *c)
{
    assert(!c->first);
    while (c->free) {
        struct joined_append *joined = c->free;
        c->free = joined->next;
        free_joined(c, joined);
    }
}
