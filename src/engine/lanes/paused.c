/* engine/lanes/paused.c: which lanes are paused. A node keeps this for itself, in DIR/local: no log has it.
 *
 * Keys are "pause/" and the lane's name. */
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "engine/lanes/impl.h"

#define PREFIX "pause/"

/* --- the names, in memory: under lanes.lock --- */

static size_t find(const struct lanes *lanes, pawl_bytes name)
{
    size_t i = 0;
    while (i < lanes->paused_count
           && !bytes_equal((pawl_bytes){lanes->paused[i], strlen(lanes->paused[i])}, name))
        i++;
    return i;
}

static int add(pawl_engine *e, pawl_bytes name)
{
    struct lanes *lanes = e->lanes;
    const pawl_allocator *alloc = e->options.allocator;
    size_t count = lanes->paused_count;
    if (find(lanes, name) < count)
        return PAWL_OK;
    if (count == lanes->paused_room) {
        size_t room = count ? 2 * count : 4;
        char **paused = mem_resize(alloc, lanes->paused, count * sizeof *paused, room * sizeof *paused);
        if (!paused)
            return PAWL_ENOMEM;
        lanes->paused = paused;
        lanes->paused_room = room;
    }
    char *copy = mem_new(alloc, 1, name.size + 1);
    if (!copy)
        return PAWL_ENOMEM;
    memcpy(copy, name.data, name.size);
    lanes->paused[lanes->paused_count++] = copy;
    return PAWL_OK;
}

bool lanes_is_paused(pawl_engine *e, pawl_bytes name)
{
    pthread_mutex_lock(&e->lanes->lock);
    bool paused = find(e->lanes, name) < e->lanes->paused_count;
    pthread_mutex_unlock(&e->lanes->lock);
    return paused;
}

void paused_forget(pawl_engine *e)
{
    struct lanes *lanes = e->lanes;
    for (size_t i = 0; i < lanes->paused_count; i++)
        mem_free(e->options.allocator, lanes->paused[i], strlen(lanes->paused[i]) + 1);
    mem_free(e->options.allocator, lanes->paused, lanes->paused_room * sizeof *lanes->paused);
    lanes->paused = NULL;
    lanes->paused_count = lanes->paused_room = 0;
}

/* --- loading and changing --- */

struct loading {
    pawl_engine *engine;
    int status;
};

static bool load_one(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct loading *l = arg;
    size_t prefix = strlen(PREFIX);
    (void)value;
    l->status = add(l->engine, (pawl_bytes){(const char *)key.data + prefix, key.size - prefix});
    return l->status == PAWL_OK;
}

int lanes_load_paused(pawl_engine *e, pawl_error *error)
{
    struct loading l = {.engine = e};
    pthread_mutex_lock(&e->lanes->lock);
    int status = local_scan(e->local, (pawl_bytes){PREFIX, strlen(PREFIX)}, load_one, &l, error);
    pthread_mutex_unlock(&e->lanes->lock);
    status = status == PAWL_OK ? l.status : status;
    return status == PAWL_OK ? status : error_wrap(error, status, "cannot read which lanes are paused");
}

static int store_pause(pawl_engine *e, pawl_bytes name, bool paused, pawl_error *error)
{
    uint8_t key[SCHEMA_QNAME_BYTES_MAX + sizeof PREFIX];
    size_t prefix = strlen(PREFIX);
    memcpy(key, PREFIX, prefix);
    memcpy(key + prefix, name.data, name.size);
    pawl_bytes value = {paused ? "1" : NULL, paused ? 1 : 0};
    int status = local_put(e->local, (pawl_bytes){key, prefix + name.size}, value, error);
    return status == PAWL_OK ? status : error_wrap(error, status, "cannot store which lanes are paused");
}

int paused_pause(pawl_engine *e, const char *lane, bool paused, pawl_error *error)
{
    struct lanes *lanes = e->lanes;
    pawl_bytes name = {lane, strlen(lane)};
    if (name.size > SCHEMA_QNAME_BYTES_MAX)
        return error_set(error, PAWL_ENOTFOUND, "no lane has a name as long as this");
    int status = store_pause(e, name, paused, error);
    if (status != PAWL_OK)
        return status;
    pthread_mutex_lock(&lanes->lock);
    size_t i = find(lanes, name), count = lanes->paused_count;
    if (paused)
        status = add(e, name);
    else if (i < count) {
        mem_free(e->options.allocator, lanes->paused[i], name.size + 1);
        lanes->paused[i] = lanes->paused[count - 1];
        lanes->paused_count--;
    }
    pthread_mutex_unlock(&lanes->lock);
    return status == PAWL_OK ? status : error_set(error, status, "no memory for a name");
}
