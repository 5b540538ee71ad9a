/* adapter/mirror/mirror.c: the log port: requests go to the log behind it; what comes back is kept, and reads are
 * answered here as far as can be. */
#include "adapter/mirror/mirror.h"

#include <stdio.h>
#include <string.h>

#include "adapter/mirror/impl.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/wait.h"

#define STREAMS_MAX 65535

static struct mirror *mirror_of(pawl_log *port)
{
    return (struct mirror *)port;
}

/* --- appends --- */

/* An append on its way to the log, and what its caller had set. */
struct kept_append {
    struct mirror *mirror;
    void (*done)(pawl_append *append);
    void *arg;
};

static void keep_written(struct mirror *m, const pawl_append *append)
{
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < append->count; i++)
        if (append->entries[i].status == PAWL_OK)
            mirror_put(m, &append->entries[i].entry, append->entries[i].place, false);
    pthread_mutex_unlock(&m->lock);
}

static void append_done(pawl_append *append)
{
    struct kept_append *k = append->arg, kept = *k;
    mem_free(kept.mirror->alloc, k, sizeof *k);
    append->done = kept.done;
    append->arg = kept.arg;
    keep_written(kept.mirror, append);
    atomic_fetch_sub(&kept.mirror->outstanding, 1);
    append->done(append);
}

static int mirror_append(pawl_log *port, pawl_append *append)
{
    struct mirror *m = mirror_of(port);
    struct kept_append *k = append->done ? mem_new(m->alloc, 1, sizeof *k) : NULL;
    if (!k) /* it is not mirrored, then */
        return pawl_log_append(m->log, append);
    *k = (struct kept_append){.mirror = m, .done = append->done, .arg = append->arg};
    append->done = append_done;
    append->arg = k;
    atomic_fetch_add(&m->outstanding, 1);
    int status = pawl_log_append(m->log, append);
    if (status == PAWL_OK)
        return status;
    append->done = k->done;
    append->arg = k->arg;
    mem_free(m->alloc, k, sizeof *k);
    atomic_fetch_sub(&m->outstanding, 1);
    if (status == PAWL_APPEND_DONE)
        keep_written(m, append);
    return status;
}

/* --- reads --- */

/* A read under way: what it still wants, and the block that is being visited. */
struct pass {
    struct mirror *mirror;
    pawl_read *read;
    uint64_t next, left;
    bool stopped;
    uint8_t *bytes;
    size_t size;
    uint64_t first;
    pawl_work work;
    pawl_read rest;
};

static void drop_block(struct pass *p)
{
    mem_free(p->mirror->alloc, p->bytes, p->size);
    p->bytes = NULL;
    p->size = 0;
}

static void visit_block(struct pass *p)
{
    const uint8_t *at = p->bytes + BLOCK_HEADER;
    uint64_t offset = p->first, hits = 0;
    pawl_entry entry;
    pawl_place place;
    while (p->left > 0 && !p->stopped
           && (at = block_entry(p->bytes, p->size, at, p->read->stream, offset, &entry, &place))) {
        if (offset++ < p->next)
            continue;
        p->next = offset;
        p->left--;
        hits++;
        p->stopped = !p->read->visit(p->read, &entry, place);
    }
    drop_block(p);
    pthread_mutex_lock(&p->mirror->lock);
    p->mirror->figures.hits += hits;
    pthread_mutex_unlock(&p->mirror->lock);
}

static bool fetch(struct pass *p)
{
    return p->left > 0 && !p->stopped
           && mirror_fetch(p->mirror, p->read->stream, p->next, &p->bytes, &p->size, &p->first) == PAWL_OK;
}

static bool visit_rest(pawl_read *rest, const pawl_entry *entry, pawl_place place)
{
    struct pass *p = rest->arg;
    pthread_mutex_lock(&p->mirror->lock);
    mirror_put(p->mirror, entry, place, true);
    pthread_mutex_unlock(&p->mirror->lock);
    return p->read->visit(p->read, entry, place);
}

static void finish(struct pass *p, int status, uint64_t next)
{
    struct mirror *m = p->mirror;
    pawl_read *read = p->read;
    drop_block(p);
    mem_free(m->alloc, p, sizeof *p);
    read->status = status;
    read->next = next;
    atomic_fetch_sub(&m->outstanding, 1);
    read->done(read);
}

static void rest_done(pawl_read *rest)
{
    finish(rest->arg, rest->status, rest->next);
}

/* What the mirror has not is read from the log. */
static int read_rest(struct pass *p)
{
    const pawl_read *read = p->read;
    pthread_mutex_lock(&p->mirror->lock);
    p->mirror->figures.misses++;
    pthread_mutex_unlock(&p->mirror->lock);
    p->rest = (pawl_read){.stream = read->stream,
                          .from = p->next,
                          .limit = p->left,
                          .at = p->next == read->from ? read->at : (pawl_place){0},
                          .alone = read->alone,
                          .visit = visit_rest,
                          .done = rest_done,
                          .arg = p,
                          .error = read->error};
    return pawl_log_read(p->mirror->log, &p->rest);
}

static int read_alone(struct mirror *m, pawl_read *read)
{
    struct pass p = {.mirror = m, .read = read, .next = read->from, .left = read->limit};
    while (fetch(&p))
        visit_block(&p);
    read->status = PAWL_OK;
    read->next = p.next;
    if (p.stopped || (p.left == 0 && read->limit > 0))
        return PAWL_READ_DONE;
    int status = read_rest(&p);
    if (status == PAWL_READ_DONE) {
        read->status = p.rest.status;
        read->next = p.rest.next;
    }
    return status;
}

static void fetch_work(pawl_work *work)
{
    (void)fetch(heap_entry(work, struct pass, work));
}

/* On the shard. */
static void fetched(pawl_work *work)
{
    struct pass *p = heap_entry(work, struct pass, work);
    bool had = p->bytes != NULL;
    if (had)
        visit_block(p);
    if (p->stopped || p->left == 0) {
        finish(p, PAWL_OK, p->next);
    } else if (!had || pawl_env_work(p->mirror->env, &p->work) != PAWL_OK) {
        int status = read_rest(p);
        if (status != PAWL_OK)
            finish(p, status, p->next);
    }
}

static bool has(struct mirror *m, pawl_stream stream, uint64_t offset)
{
    pthread_mutex_lock(&m->lock);
    const struct mirrored *s = mirror_stream(m, stream, false);
    bool found = s && mirror_find(s, offset);
    pthread_mutex_unlock(&m->lock);
    return found;
}

static int mirror_read(pawl_log *port, pawl_read *read)
{
    struct mirror *m = mirror_of(port);
    bool whole =
        (read->done || read->alone) && read->visit && read->from > 0 && pawl_stream_valid(read->stream);
    if (!whole)
        return pawl_log_read(m->log, read); /* which says why not */
    if (read->alone)
        return read_alone(m, read);
    struct pass *p = pawl_env_self(m->env) == PAWL_NO_SHARD ? NULL : mem_new(m->alloc, 1, sizeof *p);
    if (!p)
        return pawl_log_read(m->log, read);
    *p = (struct pass){.mirror = m,
                       .read = read,
                       .next = read->from,
                       .left = read->limit,
                       .work = {.fn = fetch_work, .done = fetched}};
    atomic_fetch_add(&m->outstanding, 1);
    int status = PAWL_ECLOSED;
    if (read->limit > 0 && has(m, read->stream, read->from))
        status = pawl_env_work(m->env, &p->work);
    if (status != PAWL_OK)
        status = read_rest(p);
    if (status == PAWL_OK)
        return PAWL_OK;
    atomic_fetch_sub(&m->outstanding, 1);
    mem_free(m->alloc, p, sizeof *p);
    return status;
}

/* --- the rest is the log's --- */

static int mirror_claim(pawl_log *port, pawl_claim *claim)
{
    return pawl_log_claim(mirror_of(port)->log, claim);
}

static int mirror_follow(pawl_log *port, pawl_follow *follow)
{
    return pawl_log_follow(mirror_of(port)->log, follow);
}

static int mirror_unfollow(pawl_log *port, pawl_follow *follow)
{
    return pawl_log_unfollow(mirror_of(port)->log, follow);
}

static int mirror_tail(pawl_log *port, pawl_tail *tail)
{
    return pawl_log_tail(mirror_of(port)->log, tail);
}

static int mirror_unwitnessed(pawl_log *port, pawl_unwitnessed_visit visit, void *arg, pawl_error *error)
{
    return pawl_log_unwitnessed(mirror_of(port)->log, visit, arg, error);
}

static void mirror_free(struct mirror *m)
{
    mirror_files_close(m);
    map_release(&m->by_stream);
    mem_free(m->alloc, m->streams, m->stream_room * sizeof *m->streams);
    pthread_cond_destroy(&m->wake);
    pthread_mutex_destroy(&m->lock);
    mem_free(m->alloc, m, sizeof *m);
}

static int mirror_close(pawl_log *port)
{
    struct mirror *m = mirror_of(port);
    if (atomic_load(&m->outstanding) > 0)
        return PAWL_EMISUSE;
    int status = pawl_log_close(m->log);
    if (status != PAWL_EMISUSE)
        mirror_free(m);
    return status;
}

static const struct pawl_log_ops mirror_ops = {
    .claim = mirror_claim,
    .append = mirror_append,
    .read = mirror_read,
    .follow = mirror_follow,
    .unfollow = mirror_unfollow,
    .tail = mirror_tail,
    .unwitnessed = mirror_unwitnessed,
    .close = mirror_close,
};

int mirror_open(const struct mirror_options *options, pawl_log **ret_log, pawl_error *error)
{
    struct mirror *m = mem_new(options->alloc, 1, sizeof *m);
    if (!m)
        return error_set(error, PAWL_ENOMEM, "no memory for a mirror");
    m->port.ops = &mirror_ops;
    m->log = options->log;
    m->env = options->env;
    m->alloc = options->alloc;
    m->bytes_max = options->bytes_max < MIRROR_BYTES_MIN ? MIRROR_BYTES_MIN : options->bytes_max;
    m->retry_ns = options->retry_ns ? options->retry_ns : RETRY_NS;
    snprintf(m->dir, sizeof m->dir, "%s", options->dir);
    m->last_waiting = &m->waiting;
    pthread_mutex_init(&m->lock, NULL);
    cond_init(&m->wake);
    map_init(&m->by_stream, options->alloc, 16, sizeof(struct mirrored *), STREAMS_MAX);
    mirror_files_open(m, options->boot_id, options->id);
    *ret_log = &m->port;
    return PAWL_OK;
}

void mirror_figures(pawl_log *port, pawl_mirror_figures *ret_figures)
{
    struct mirror *m = mirror_of(port);
    pthread_mutex_lock(&m->lock);
    *ret_figures = m->figures;
    ret_figures->bytes = m->bytes;
    ret_figures->bytes_max = m->bytes_max;
    ret_figures->unwritten = mirror_unwritten(m);
    ret_figures->off = m->off.code != PAWL_OK;
    snprintf(ret_figures->why, sizeof ret_figures->why, "%.255s", m->off.text);
    pthread_mutex_unlock(&m->lock);
}
