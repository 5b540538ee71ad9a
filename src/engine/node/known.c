#include "engine/node/known.h"

#include <string.h>

#include "base/alloc.h"
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

/* Under the log's lock: nothing is waited for here. */
static void keep(void *arg, pawl_stream stream, pawl_bytes known)
{
    pawl_engine *e = arg;
    char name[PAWL_STREAM_TEXT_MAX];
    pawl_stream_format(stream, name);
    size_t key = PREFIX_BYTES + strlen(name), size = sizeof(struct keeping) + key + known.size;
    struct keeping *k = mem_new(e->options.allocator, 1, size);
    uint64_t number;
    if (!k)
        return;
    k->alloc = e->options.allocator;
    k->size = size;
    memcpy(k->bytes, PREFIX, PREFIX_BYTES);
    memcpy(k->bytes + PREFIX_BYTES, name, key - PREFIX_BYTES);
    memcpy(k->bytes + key, known.data, known.size);
    k->write =
        (struct local_write){.key = {k->bytes, key}, .value = {k->bytes + key, known.size}, .done = kept};
    if (local_add(e->local, &k->write, false, &number) != PAWL_OK)
        kept(&k->write);
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
