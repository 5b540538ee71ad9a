#include "engine/node/known.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"
#include "engine/log/log.h"
#include "engine/node/node.h"

#define PREFIX       "place/"
#define PREFIX_BYTES 6
#define EVERY        (5 * PAWL_SECOND)
#define WORTH        1024 /* records that the next opening would have to read */

/* A row that is being written. */
struct keeping {
    struct local_write write;
    const pawl_allocator *alloc;
    size_t size;
    uint8_t bytes[]; /* key and value */
};

static void kept(struct local_write *write)
{
    struct keeping *k = heap_entry(write, struct keeping, write);
    mem_free(k->alloc, k, k->size);
}

/* Nothing is waited for. PAWL_ENOMEM, PAWL_EBUSY. */
static int add_row(struct local *local, const pawl_allocator *alloc, pawl_bytes key, pawl_bytes known,
                   uint64_t *ret_number)
{
    size_t size = sizeof(struct keeping) + key.size + known.size;
    struct keeping *k = mem_new(alloc, 1, size);
    if (!k)
        return PAWL_ENOMEM;
    k->alloc = alloc;
    k->size = size;
    memcpy(k->bytes, key.data, key.size);
    memcpy(k->bytes + key.size, known.data, known.size);
    k->write = (struct local_write){
        .key = {k->bytes, key.size}, .value = {k->bytes + key.size, known.size}, .done = kept};
    int status = local_add(local, &k->write, false, ret_number);
    if (status != PAWL_OK)
        kept(&k->write);
    return status;
}

/* Under the log's lock. */
static void keep(void *arg, pawl_stream stream, pawl_bytes known)
{
    const pawl_engine *e = arg;
    char key[PREFIX_BYTES + PAWL_STREAM_TEXT_MAX] = PREFIX;
    uint64_t number;
    pawl_stream_format(stream, key + PREFIX_BYTES);
    (void)add_row(e->local, e->options.allocator, (pawl_bytes){key, strlen(key)}, known, &number);
}

static bool learn(void *arg, pawl_bytes key, pawl_bytes value)
{
    pawl_engine *e = arg;
    char name[PAWL_STREAM_TEXT_MAX];
    pawl_stream stream;
    size_t size = key.size - PREFIX_BYTES;
    if (size >= sizeof name)
        return true;
    memcpy(name, (const char *)key.data + PREFIX_BYTES, size);
    name[size] = '\0';
    if (pawl_stream_parse(name, &stream, NULL) == PAWL_OK)
        (void)cluster_learn(e->kafka, stream, value);
    return true;
}

void known_load(pawl_engine *e)
{
    (void)local_scan(e->local, (pawl_bytes){PREFIX, PREFIX_BYTES}, learn, e, NULL);
}

/* --- for another directory --- */

struct copying {
    struct local *from, *to;
    const pawl_allocator *alloc;
    uint64_t last; /* the number of the last row; 0: there is none */
    int status;
    pawl_error *error;
};

static bool copy_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct copying *c = arg;
    c->status = local_start(c->to, c->error);
    if (c->status != PAWL_OK)
        return false;
    c->status = add_row(c->to, c->alloc, key, value, &c->last);
    if (c->status == PAWL_EBUSY) { /* as many as are written at once */
        c->status = local_sync(c->to, c->last, c->error);
        if (c->status == PAWL_OK)
            c->status = add_row(c->to, c->alloc, key, value, &c->last);
    }
    if (c->status == PAWL_ENOMEM || c->status == PAWL_EBUSY)
        error_set(c->error, c->status, "no room to copy how far streams are known");
    return c->status == PAWL_OK;
}

static int open_local(const char *dir, const pawl_allocator *alloc, struct local **ret_local, pawl_error *error)
{
    char path[NODE_PATH_MAX];
    const struct local_options options = {.dir = path, .alloc = alloc};
    int status = node_path(dir, path, error, "local");
    if (status != PAWL_OK)
        return status;
    status = local_new(&options, ret_local);
    return status == PAWL_OK ? status : error_set(error, status, "no memory to copy %s", path);
}

int known_copy(const char *from, const char *to, const pawl_allocator *alloc, pawl_error *error)
{
    struct copying c = {.alloc = alloc, .error = error};
    int status = open_local(from, alloc, &c.from, error);
    if (status == PAWL_OK)
        status = open_local(to, alloc, &c.to, error);
    if (status == PAWL_OK) {
        (void)local_scan(c.from, (pawl_bytes){PREFIX, PREFIX_BYTES}, copy_row, &c, NULL);
        status = c.status;
    }
    if (status == PAWL_OK && c.last > 0)
        status = local_sync(c.to, c.last, error);
    local_free(c.to);
    local_free(c.from);
    return status;
}

/* --- while the node runs --- */

static void keep_again(pawl_timer *timer)
{
    pawl_engine *e = heap_entry(timer, pawl_engine, known.timer);
    cluster_known(e->kafka, WORTH, keep, e);
    pawl_env_after(e->env, timer, EVERY);
}

static void start_here(void *arg)
{
    pawl_engine *e = arg;
    e->known.timer.fn = keep_again;
    pawl_env_after(e->env, &e->known.timer, EVERY);
}

static void stop_here(void *arg)
{
    pawl_engine *e = arg;
    pawl_env_cancel(e->env, &e->known.timer);
}

void known_start(pawl_engine *e)
{
    if (!e->kafka || e->known.started || e->file_is_ahead)
        return;
    e->known.started =
        local_start(e->local, NULL) == PAWL_OK && pawl_env_call(e->env, 0, start_here, e) == PAWL_OK;
}

void known_close(pawl_engine *e)
{
    if (!e->known.started)
        return;
    (void)pawl_env_call(e->env, 0, stop_here, e);
    cluster_known(e->kafka, 1, keep, e);
}
