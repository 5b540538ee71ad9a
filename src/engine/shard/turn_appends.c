#include "engine/shard/turn_appends.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"

#define PAUSE PAWL_MILLISECOND

/* One request to the log, in place of several. */
struct combined {
    pawl_append append;
    struct turn_appends *appends;
    struct combined *next;
    pawl_append *first;
    pawl_append *last;
    pawl_append_entry *entries;
    size_t room;
    pawl_error error;
};

/* The first of what is kept, as far as it goes together. */
struct run {
    pawl_append *last;
    size_t appends;
    size_t entries;
};

static pawl_append *next_of(const pawl_append *append)
{
    return append->impl[0];
}

static void free_combined(struct turn_appends *c, struct combined *combined)
{
    mem_free(c->alloc, combined->entries, combined->room * sizeof combined->entries[0]);
    mem_free(c->alloc, combined, sizeof *combined);
}

static void give_back(struct combined *combined)
{
    combined->next = combined->appends->free;
    combined->appends->free = combined;
}

/* NULL: no memory. */
static struct combined *take_combined(struct turn_appends *c, size_t entries)
{
    struct combined *combined = c->free;
    if (combined)
        c->free = combined->next;
    else
        combined = mem_new(c->alloc, 1, sizeof *combined);
    if (!combined)
        return NULL;
    combined->appends = c;
    if (combined->room >= entries)
        return combined;
    size_t room = combined->room ? combined->room : 64;
    while (room < entries)
        room *= 2;
    void *larger = mem_resize(c->alloc, combined->entries, combined->room * sizeof combined->entries[0],
                              room * sizeof combined->entries[0]);
    if (!larger) {
        free_combined(c, combined);
        return NULL;
    }
    combined->entries = larger;
    combined->room = room;
    return combined;
}

/* C2. */
static void tell(const struct combined *combined, pawl_append *append, const pawl_append_entry *entries)
{
    append->status = PAWL_OK;
    for (size_t i = 0; i < append->count; i++) {
        append->entries[i].status = entries[i].status;
        append->entries[i].place = entries[i].place;
        if (append->status == PAWL_OK)
            append->status = entries[i].status;
    }
    if (append->status != PAWL_OK)
        error_set(append->error, append->status, "%s", combined->error.text);
    append->done(append);
}

static void appended(pawl_append *request)
{
    struct combined *combined = heap_entry(request, struct combined, append);
    const pawl_append_entry *entries = combined->entries;
    pawl_append *append = combined->first;
    while (append) {
        pawl_append *next = append == combined->last ? NULL : next_of(append); /* its owner may use it again */
        size_t count = append->count;
        tell(combined, append, entries);
        entries += count;
        append = next;
    }
    give_back(combined);
}

static size_t body_bytes(const pawl_append *append)
{
    size_t bytes = 0;
    for (size_t i = 0; i < append->count; i++)
        bytes += append->entries[i].entry.body.size;
    return bytes;
}

static struct run first_run(const struct turn_appends *c)
{
    struct run run = {.last = c->first, .appends = 1, .entries = c->first->count};
    size_t bytes = body_bytes(c->first);
    while (run.last != c->last) {
        pawl_append *next = next_of(run.last);
        bytes += body_bytes(next);
        if (bytes > TURN_APPENDS_BYTES_MAX)
            break;
        run.last = next;
        run.appends++;
        run.entries += next->count;
    }
    return run;
}

static void take_off(struct turn_appends *c, pawl_append *last)
{
    c->first = last == c->last ? NULL : next_of(last);
    if (!c->first)
        c->last = NULL;
}

static int send_one(struct turn_appends *c, bool alone)
{
    pawl_append *append = c->first;
    pawl_append *next = append == c->last ? NULL : next_of(append);
    append->alone = alone;
    int status = pawl_log_append(c->log, append);
    if (status == PAWL_EBUSY) {
        append->impl[0] = next; /* the log may have used it */
        return status;
    }
    c->first = next;
    c->last = next ? c->last : NULL;
    if (status == PAWL_OK)
        return status;
    if (status != PAWL_APPEND_DONE) {
        for (size_t i = 0; i < append->count; i++)
            append->entries[i].status = PAWL_EIO;
        append->status = PAWL_EIO;
    }
    append->done(append);
    return PAWL_OK;
}

/* PAWL_ENOMEM, PAWL_EBUSY, or what is wrong with one of them: nothing was sent. */
static int send_run(struct turn_appends *c, struct run run, bool alone)
{
    struct combined *combined = take_combined(c, run.entries);
    if (!combined)
        return PAWL_ENOMEM;
    pawl_append *append = c->first;
    for (size_t at = 0; at < run.entries; append = next_of(append)) {
        memcpy(combined->entries + at, append->entries, append->count * sizeof append->entries[0]);
        at += append->count;
    }
    combined->first = c->first;
    combined->last = run.last;
    combined->error.text[0] = '\0';
    combined->append = (pawl_append){.entries = combined->entries,
                                     .count = run.entries,
                                     .done = appended,
                                     .error = &combined->error,
                                     .alone = alone};
    int status = pawl_log_append(c->log, &combined->append);
    if (status == PAWL_OK || status == PAWL_APPEND_DONE)
        take_off(c, run.last);
    else
        give_back(combined);
    if (status == PAWL_APPEND_DONE)
        appended(&combined->append);
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
    while (c->first && !c->busy) {
        struct run run = first_run(c);
        alone = alone && run.last == c->last;
        int status = run.appends > 1 ? send_run(c, run, alone) : PAWL_ENOMEM;
        if (status != PAWL_OK && status != PAWL_EBUSY) {
            /* By itself it needs no memory, and is answered for its own faults only. */
            alone = alone && run.appends == 1;
            status = send_one(c, alone);
        }
        alone = false; /* of what has not come back another must not be done before */
        if (status != PAWL_EBUSY)
            continue;
        c->busy = true;
        pawl_env_after(c->env, &c->timer, PAUSE);
    }
}

static void turn_over(pawl_task *task)
{
    turn_appends_send(heap_entry(task, struct turn_appends, task), false);
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
    if (append->alone && !c->first)
        return pawl_log_append(c->log, append);
    if (c->busy)
        return error_set(append->error, PAWL_EBUSY, "the log's queue is full");
    int status = pawl_env_post(c->env, c->shard, &c->task);
    if (status != PAWL_OK)
        return error_set(append->error, status, "the env is closed");
    append->alone = false;
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

/* The log's owner closes it. */
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
        struct combined *combined = c->free;
        c->free = combined->next;
        free_combined(c, combined);
    }
}
