/* adapter/journal/reader.c: read, follow and tail.
 *
 *     read:    start ──► fill (pool) ──► visit (shard) ──┬─► fill ...
 *                                                        └─► done
 *     follow:  start ──► fill (pool) ──► visit (shard) ──┬─► fill ...
 *                          ▲                             └─► wait on the stream (read-only: for a timer)
 *                          └──── the writer made more durable ◄───┘
 *
 * Reading and checking happen on the pool, visiting where the caller lives; the entries handed over lie in the
 * scan's window, which does not move between a fill and the end of the visits. */
#include "adapter/journal/cursor.h"
#include "adapter/journal/impl.h"
#include "base/alloc.h"
#include "base/error.h"

#define POLL (20 * PAWL_MILLISECOND)

/* How many entries one fill takes. Each fill costs two changes of thread, so a reader that has far to go takes
 * more at a time; one that only waits for new entries keeps little memory. */
#define FILL_ENTRIES       ((size_t)256)
#define FILL_ENTRIES_LARGE ((size_t)3072)
#define WINDOW_LARGE       (4 * SCAN_WINDOW)

struct filled {
    pawl_entry entry;
    pawl_place place;
};

/* One read or follow under way. */
struct follower {
    struct op op; /* to be delivered: go on */
    pawl_work work;
    pawl_timer timer;
    struct journal *journal;
    struct follower *next; /* waiting on the same stream */
    pawl_read *read;       /* one of the two */
    pawl_follow *follow;
    struct cursor cursor;
    pawl_place at;
    bool placed;
    bool ended;             /* the last fill came to the end of what is visible */
    bool waiting;           /* (lock) on its stream, or for its timer */
    _Atomic bool cancelled; /* set under the lock */
    uint64_t left;          /* entries that may still be visited */
    int status;             /* of the last fill */
    pawl_error error;
    size_t count;
    size_t room; /* FILL_ENTRIES or FILL_ENTRIES_LARGE */
    struct filled *entries;
};

static void fill(pawl_work *work);
static void visit(pawl_work *work);

static struct follower *of_work(pawl_work *work)
{
    return (struct follower *)((char *)work - offsetof(struct follower, work));
}

static struct follower *follower_new(struct journal *j, pawl_stream stream, uint64_t from, pawl_place at)
{
    struct follower *f = mem_new(j->alloc, 1, sizeof *f);
    if (!f)
        return NULL;
    f->room = FILL_ENTRIES;
    f->entries = mem_new(j->alloc, f->room, sizeof *f->entries);
    if (!f->entries || journal_cursor_init(&f->cursor, j, stream, from) != PAWL_OK) {
        mem_free(j->alloc, f->entries, f->room * sizeof *f->entries);
        mem_free(j->alloc, f, sizeof *f);
        return NULL;
    }
    f->journal = j;
    f->at = at;
    f->work.fn = fill;
    f->work.done = visit;
    return f;
}

static void follower_free(struct follower *f)
{
    const pawl_allocator *alloc = f->journal->alloc;
    journal_cursor_release(&f->cursor);
    mem_free(alloc, f->entries, f->room * sizeof *f->entries);
    mem_free(alloc, f, sizeof *f);
}

/* The request is over. f is gone before done is called, so that done may close the journal. */
static void finish(struct follower *f, int status)
{
    struct journal *j = f->journal;
    pawl_read *read = f->read;
    pawl_follow *follow = f->follow;
    uint64_t next = f->cursor.next;
    pawl_error *error = read ? read->error : follow->error;
    if (status != PAWL_OK && error)
        *error = f->error;
    if (!read) {
        pthread_mutex_lock(&j->lock);
        follow->impl[0] = NULL;
        pthread_mutex_unlock(&j->lock);
    }
    follower_free(f);
    atomic_fetch_sub(&j->outstanding, 1);
    if (read) {
        read->status = status;
        read->next = next;
        read->done(read);
    } else {
        follow->status = status;
        follow->next = next;
        follow->done(follow);
    }
}

/* Ask the pool for more. An env that is closing ends it. */
static void go_on(struct follower *f)
{
    if (pawl_env_work(f->journal->env, &f->work) == PAWL_OK)
        return;
    error_set(&f->error, PAWL_ECLOSED, "the env is closed");
    finish(f, PAWL_ECLOSED);
}

/* Without memory it goes on with as many entries at a time as before. */
static void resize(struct follower *f, size_t room)
{
    struct filled *entries =
        mem_resize(f->journal->alloc, f->entries, f->room * sizeof *entries, room * sizeof *entries);
    if (!entries)
        return;
    f->entries = entries;
    f->room = room;
    scan_resize(&f->cursor.scan, room == FILL_ENTRIES ? SCAN_WINDOW : WINDOW_LARGE);
}

static void fill(pawl_work *work)
{
    struct follower *f = of_work(work);
    struct cursor *c = &f->cursor;
    size_t room = f->count > 0 && !f->ended ? FILL_ENTRIES_LARGE : FILL_ENTRIES;
    if (room != f->room)
        resize(f, room);
    f->count = 0;
    f->ended = false;
    f->status = PAWL_OK;
    error_clear(&f->error);
    if (f->cancelled)
        return;
    if (f->follow || !f->placed)
        f->status = journal_cursor_refresh(c, &f->error);
    if (f->status == PAWL_OK && !f->placed) {
        f->status = journal_cursor_place(c, f->at, &f->error);
        f->placed = f->status == PAWL_OK;
    }
    while (f->status == PAWL_OK && f->count < f->room && f->count < f->left) {
        struct filled *slot = &f->entries[f->count];
        f->status = journal_cursor_next(c, f->count > 0, &slot->entry, &slot->place, &f->error);
        f->count += f->status == PAWL_OK;
    }
    if (f->status == PAWL_EBUSY)
        f->status = PAWL_OK; /* the window is used up: visit these first */
    if (f->status == PAWL_ENOTFOUND) {
        f->ended = true;
        f->status = PAWL_OK;
    }
}

/* Wait until there is more, unless more has come by now. */
static void wait_for_more(struct follower *f)
{
    struct journal *j = f->journal;
    pthread_mutex_lock(&j->lock);
    struct stream *s = streams_add(&j->streams, f->cursor.stream);
    bool wait = s && !f->cancelled && s->visible < f->cursor.next;
    if (wait && !j->read_only) {
        f->next = s->followers;
        s->followers = f;
    }
    f->waiting = wait;
    pthread_mutex_unlock(&j->lock);
    if (!s) {
        error_set(&f->error, PAWL_ENOMEM, "no memory for another stream");
        finish(f, PAWL_ENOMEM);
    } else if (!wait) {
        go_on(f);
    } else if (j->read_only) {
        pawl_env_after(j->env, &f->timer, POLL);
    }
}

enum step { STEP_FILL, STEP_WAIT, STEP_END };

/* Show what was filled in, and say what comes next; at the end .status is the outcome. */
static enum step show_filled(struct follower *f)
{
    uint64_t unvisited = f->cursor.next - f->count;
    bool more = true;
    for (size_t i = 0; i < f->count && more && !f->cancelled; i++) {
        const struct filled *slot = &f->entries[i];
        unvisited++;
        more = f->read ? f->read->visit(f->read, &slot->entry, slot->place)
                       : f->follow->visit(f->follow, &slot->entry, slot->place);
    }
    f->cursor.next = unvisited;
    f->left -= f->count;
    if (!more) {
        f->status = PAWL_OK;
        return STEP_END;
    }
    if (f->cancelled) {
        f->status = error_set(&f->error, PAWL_ECLOSED, "it was unfollowed");
        return STEP_END;
    }
    if (f->status != PAWL_OK || (f->read && (f->ended || f->left == 0)))
        return STEP_END;
    return f->follow && f->ended ? STEP_WAIT : STEP_FILL;
}

static void visit(pawl_work *work)
{
    struct follower *f = of_work(work);
    switch (show_filled(f)) {
    case STEP_FILL: go_on(f); break;
    case STEP_WAIT: wait_for_more(f); break;
    case STEP_END: finish(f, f->status); break;
    }
}

/* The whole read, in this thread: entry by entry, because no entry has to go to another thread. */
static int read_here(struct follower *f)
{
    pawl_read *read = f->read;
    struct cursor *c = &f->cursor;
    bool more = true;
    int status = journal_cursor_refresh(c, &f->error);
    if (status == PAWL_OK)
        status = journal_cursor_place(c, f->at, &f->error);
    while (status == PAWL_OK && more && f->left > 0) {
        pawl_entry entry;
        pawl_place place;
        status = journal_cursor_next(c, false, &entry, &place, &f->error);
        if (status == PAWL_OK) {
            more = read->visit(read, &entry, place);
            f->left--;
        }
    }
    read->status = status == PAWL_ENOTFOUND ? PAWL_OK : status;
    read->next = c->next;
    if (read->status != PAWL_OK && read->error)
        *read->error = f->error;
    follower_free(f);
    return PAWL_READ_DONE;
}

static void resume(struct op *op)
{
    go_on((struct follower *)op);
}

static void poll_again(pawl_timer *timer)
{
    struct follower *f = (struct follower *)((char *)timer - offsetof(struct follower, timer));
    pthread_mutex_lock(&f->journal->lock);
    f->waiting = false;
    pthread_mutex_unlock(&f->journal->lock);
    go_on(f);
}

void followers_wake(struct stream *stream, struct op_list *ops)
{
    struct follower **link = &stream->followers;
    while (*link) {
        struct follower *f = *link;
        if (stream->visible < f->cursor.next) {
            link = &f->next;
            continue;
        }
        *link = f->next;
        f->waiting = false;
        op_list_push(ops, &f->op);
    }
}

static void fill_and_visit(pawl_work *work)
{
    fill(work);
    visit(work);
}

/* A request that no shard made is visited on the pool, whoever sends it there, also a shard that writes
 * alone. */
static int start(struct journal *j, struct follower *f, enum op_kind kind, void *request)
{
    op_init(j, &f->op, kind, request, resume);
    if (f->op.shard == PAWL_NO_SHARD) {
        f->work.fn = fill_and_visit;
        f->work.done = NULL;
    }
    atomic_fetch_add(&j->outstanding, 1);
    int status = pawl_env_work(j->env, &f->work);
    if (status != PAWL_OK) {
        atomic_fetch_sub(&j->outstanding, 1);
        follower_free(f);
    }
    return status;
}

int journal_read(pawl_log *log, pawl_read *read)
{
    struct journal *j = (struct journal *)log;
    if (!pawl_stream_valid(read->stream) || read->from == 0 || !read->visit || (!read->done && !read->alone))
        return error_set(read->error, PAWL_EINVAL,
                         "a read needs a valid stream, an offset, a visit and a done");
    struct follower *f = follower_new(j, read->stream, read->from, read->at);
    if (!f)
        return error_set(read->error, PAWL_ENOMEM, "no memory to read");
    f->read = read;
    f->left = read->limit;
    if (read->alone)
        return read_here(f);
    return start(j, f, OP_READ, read);
}

int journal_follow(pawl_log *log, pawl_follow *follow)
{
    struct journal *j = (struct journal *)log;
    if (!pawl_stream_valid(follow->stream) || follow->from == 0 || !follow->visit || !follow->done)
        return error_set(follow->error, PAWL_EINVAL,
                         "a follow needs a valid stream, an offset, a visit and a done");
    if (j->read_only && pawl_env_self(j->env) == PAWL_NO_SHARD)
        return error_set(follow->error, PAWL_EMISUSE,
                         "a read-only journal is followed from a shard: it needs its timer");
    struct follower *f = follower_new(j, follow->stream, follow->from, follow->at);
    if (!f)
        return error_set(follow->error, PAWL_ENOMEM, "no memory to follow");
    f->follow = follow;
    f->left = UINT64_MAX;
    f->timer.fn = poll_again;
    follow->impl[0] = f;
    int status = start(j, f, OP_FOLLOW, follow);
    if (status != PAWL_OK)
        follow->impl[0] = NULL;
    return status;
}

/* A follower that waits is sent to its thread once more, and ends there; one that is under way ends by
 * itself. */
int journal_unfollow(pawl_log *log, pawl_follow *follow)
{
    struct journal *j = (struct journal *)log;
    pthread_mutex_lock(&j->lock);
    struct follower *f = follow->impl[0];
    if (!f) {
        pthread_mutex_unlock(&j->lock);
        return PAWL_EMISUSE;
    }
    bool waiting = f->waiting;
    f->cancelled = true;
    f->waiting = false;
    if (waiting && !j->read_only) {
        struct stream *s = streams_find(&j->streams, f->cursor.stream);
        struct follower **link = &s->followers;
        while (*link != f)
            link = &(*link)->next;
        *link = f->next;
    }
    pthread_mutex_unlock(&j->lock);
    if (waiting && j->read_only)
        pawl_env_cancel(j->env, &f->timer);
    if (waiting)
        go_on(f);
    return PAWL_OK;
}

struct asking {
    pawl_work work;
    struct journal *journal;
    pawl_tail *tail;
};
_Static_assert(sizeof(struct asking) <= sizeof(((pawl_tail *)0)->impl), "an asking lives in its request");

static void tail_ask(pawl_work *work)
{
    struct asking *a = (struct asking *)work;
    struct journal *j = a->journal;
    a->tail->status = j->read_only ? journal_refresh(j, a->tail->error) : PAWL_OK;
    pthread_mutex_lock(&j->lock);
    const struct stream *s = streams_find(&j->streams, a->tail->stream);
    a->tail->last = s ? s->visible : 0;
    pthread_mutex_unlock(&j->lock);
}

static void tail_answer(pawl_work *work)
{
    struct asking *a = (struct asking *)work;
    atomic_fetch_sub(&a->journal->outstanding, 1);
    a->tail->done(a->tail);
}

int journal_tail(pawl_log *log, pawl_tail *tail)
{
    struct journal *j = (struct journal *)log;
    if (!pawl_stream_valid(tail->stream) || !tail->done)
        return error_set(tail->error, PAWL_EINVAL, "asking for a tail needs a valid stream and a done");
    struct asking *a = (struct asking *)tail->impl;
    *a = (struct asking){.work = {.fn = tail_ask, .done = tail_answer}, .journal = j, .tail = tail};
    atomic_fetch_add(&j->outstanding, 1);
    int status = pawl_env_work(j->env, &a->work);
    if (status != PAWL_OK)
        atomic_fetch_sub(&j->outstanding, 1);
    return status;
}
