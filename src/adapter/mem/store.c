/* adapter/mem/store.c: stores in memory on a disk in memory.
 *
 *   D1. A place's trees are its last commit; nobody changes a tree, so a snapshot is a reference to each.
 *   D2. A place is dirty from the first change through a fast store until that is closed: a power cut then
 *       takes what is in it. */
#include "adapter/mem/store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/mem/tree.h"
#include "base/alloc.h"
#include "base/error.h"

#define SNAPSHOTS_DEFAULT 126

struct mem_store;

/* What lies on the disk under one name. */
struct place {
    struct place *next;
    struct mem_store *open; /* NULL: nobody has it open */
    struct tree *committed[PAWL_STORE_SPACES];
    bool dirty;
    bool lost; /* a power cut took it, and nobody has been told yet */
    size_t name_size;
    char name[];
};

struct mem_store_disk {
    const pawl_allocator *alloc;
    pthread_mutex_t lock; /* the places' trees, the snapshots' lists, the fault */
    struct place *places;
    struct mem_store_fault fault;
};

struct mem_reader {
    pawl_reader reader;
    struct mem_reader *next;
    struct tree *trees[PAWL_STORE_SPACES];
};

struct mem_store {
    pawl_store store;
    mem_store_disk *disk;
    struct place *place;
    enum pawl_store_mode mode;
    uint32_t max_snapshots;
    uint32_t used;
    struct mem_reader *snapshots;
    /* The writer's thread. */
    struct mem_reader writer; /* the last commit and the changes since */
    int broken;
};

static struct mem_store *of(pawl_store *store)
{
    return (struct mem_store *)store;
}

static void trees_ref(struct tree *to[PAWL_STORE_SPACES], struct tree *const from[PAWL_STORE_SPACES])
{
    for (unsigned i = 0; i < PAWL_STORE_SPACES; i++)
        to[i] = tree_ref(from[i]);
}

static void trees_unref(const pawl_allocator *alloc, struct tree *trees[PAWL_STORE_SPACES])
{
    for (unsigned i = 0; i < PAWL_STORE_SPACES; i++) {
        tree_unref(alloc, trees[i]);
        trees[i] = NULL;
    }
}

/* The status to fail with, or PAWL_OK. */
static int fault_due(mem_store_disk *disk, enum mem_store_op op)
{
    int status = PAWL_OK;
    pthread_mutex_lock(&disk->lock);
    struct mem_store_fault *f = &disk->fault;
    if (f->times && (f->op == MEM_STORE_ANY || f->op == op)) {
        if (f->countdown > 1) {
            f->countdown--;
        } else {
            f->times--;
            status = f->status;
        }
    }
    pthread_mutex_unlock(&disk->lock);
    return status;
}

void mem_store_disk_fail(mem_store_disk *disk, struct mem_store_fault fault)
{
    pthread_mutex_lock(&disk->lock);
    disk->fault = fault;
    pthread_mutex_unlock(&disk->lock);
}

/* Reading. */

static int store_snapshot(pawl_store *store, pawl_reader **ret_reader)
{
    struct mem_store *s = of(store);
    int status = fault_due(s->disk, MEM_STORE_SNAPSHOT);
    if (status != PAWL_OK)
        return status;
    struct mem_reader *r = mem_new(s->disk->alloc, 1, sizeof *r);
    if (!r)
        return PAWL_ENOMEM;
    r->reader.store = store;
    pthread_mutex_lock(&s->disk->lock);
    bool room = s->used < s->max_snapshots;
    if (room) {
        trees_ref(r->trees, s->place->committed);
        r->next = s->snapshots;
        s->snapshots = r;
        s->used++;
    }
    pthread_mutex_unlock(&s->disk->lock);
    if (!room) {
        mem_free(s->disk->alloc, r, sizeof *r);
        return PAWL_EBUSY;
    }
    *ret_reader = &r->reader;
    return PAWL_OK;
}

static void store_release(pawl_store *store, pawl_reader *snapshot)
{
    struct mem_store *s = of(store);
    struct mem_reader *r = (struct mem_reader *)snapshot;
    pthread_mutex_lock(&s->disk->lock);
    struct mem_reader **at = &s->snapshots;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    s->used--;
    pthread_mutex_unlock(&s->disk->lock);
    trees_unref(s->disk->alloc, r->trees);
    mem_free(s->disk->alloc, r, sizeof *r);
}

static pawl_reader *store_writer(pawl_store *store)
{
    return &of(store)->writer.reader;
}

static int begin_read(pawl_reader *reader, enum mem_store_op op, int checked)
{
    struct mem_store *s = of(reader->store);
    bool writer = reader == &s->writer.reader;
    if (checked == PAWL_OK && writer)
        checked = s->broken;
    if (checked == PAWL_OK)
        checked = fault_due(s->disk, op);
    if (checked != PAWL_OK && writer)
        error_set(&s->store.error, checked, "cannot read %s", s->place->name);
    return checked;
}

static int store_get(pawl_reader *reader, uint8_t space, pawl_bytes key, pawl_bytes *ret_value)
{
    struct mem_reader *r = (struct mem_reader *)reader;
    int status = begin_read(reader, MEM_STORE_GET, longkey_check_key(space, key));
    if (status != PAWL_OK)
        return status;
    return tree_get(r->trees[space], key, ret_value) ? PAWL_OK : PAWL_ENOTFOUND;
}

static int store_scan(pawl_reader *reader, pawl_range range, bool reverse, pawl_visit_row visit, void *arg)
{
    struct mem_reader *r = (struct mem_reader *)reader;
    int status = begin_read(reader, MEM_STORE_SCAN, longkey_check_range(range));
    if (status != PAWL_OK)
        return status;
    struct longkey_range placed;
    longkey_range_init(&placed, range);
    tree_scan(r->trees[range.space], &placed, reverse, visit, arg);
    return PAWL_OK;
}

/* Writing. */

static int begin_change(struct mem_store *s, enum mem_store_op op, int checked)
{
    if (checked != PAWL_OK)
        return error_set(&s->store.error, checked, "a space, key, value or range: %s",
                         pawl_status_text(checked));
    if (!s->broken)
        s->broken = fault_due(s->disk, op);
    if (s->broken)
        return error_set(&s->store.error, s->broken, "cannot change %s", s->place->name);
    if (s->mode == PAWL_STORE_FAST)
        s->place->dirty = true; /* D2 */
    return PAWL_OK;
}

static int end_change(struct mem_store *s, uint8_t space, int status, struct tree *changed)
{
    if (status == PAWL_OK) {
        tree_unref(s->disk->alloc, s->writer.trees[space]);
        s->writer.trees[space] = changed;
    } else if (status != PAWL_ENOTFOUND) {
        s->broken = error_set(&s->store.error, status, "cannot change %s", s->place->name);
    }
    return status;
}

static int store_put(pawl_store *store, uint8_t space, pawl_bytes key, pawl_bytes value)
{
    struct mem_store *s = of(store);
    struct tree *changed = NULL;
    int status = begin_change(s, MEM_STORE_PUT, longkey_check_row(space, key, value));
    if (status != PAWL_OK)
        return status;
    status = tree_put(s->disk->alloc, s->writer.trees[space], key, value, &changed);
    return end_change(s, space, status, changed);
}

static int store_remove(pawl_store *store, uint8_t space, pawl_bytes key)
{
    struct mem_store *s = of(store);
    struct tree *changed = NULL;
    int status = begin_change(s, MEM_STORE_REMOVE, longkey_check_key(space, key));
    if (status != PAWL_OK)
        return status;
    status = tree_remove(s->disk->alloc, s->writer.trees[space], key, &changed);
    return end_change(s, space, status, changed);
}

static int store_remove_range(pawl_store *store, pawl_range range)
{
    struct mem_store *s = of(store);
    struct tree *changed = NULL;
    struct longkey_range placed;
    int status = begin_change(s, MEM_STORE_REMOVE, longkey_check_range(range));
    if (status != PAWL_OK)
        return status;
    longkey_range_init(&placed, range);
    status = tree_remove_range(s->disk->alloc, s->writer.trees[range.space], &placed, &changed);
    return end_change(s, range.space, status, changed);
}

static void store_abort(pawl_store *store)
{
    struct mem_store *s = of(store);
    trees_unref(s->disk->alloc, s->writer.trees);
    trees_ref(s->writer.trees, s->place->committed);
    s->broken = PAWL_OK;
}

static int store_commit(pawl_store *store)
{
    struct mem_store *s = of(store);
    struct tree *old[PAWL_STORE_SPACES];
    int status = s->broken ? s->broken : fault_due(s->disk, MEM_STORE_COMMIT);
    if (status != PAWL_OK) {
        store_abort(store);
        return error_set(&store->error, status, "cannot commit %s", s->place->name);
    }
    pthread_mutex_lock(&s->disk->lock);
    memcpy(old, s->place->committed, sizeof old);
    trees_ref(s->place->committed, s->writer.trees);
    pthread_mutex_unlock(&s->disk->lock);
    trees_unref(s->disk->alloc, old);
    return PAWL_OK;
}

/* Places, opening and closing. */

static struct place *place_find(mem_store_disk *disk, const char *name)
{
    struct place *p = disk->places;
    while (p && strcmp(p->name, name) != 0)
        p = p->next;
    return p;
}

static struct place *place_new(mem_store_disk *disk, const char *name)
{
    size_t name_size = strlen(name) + 1;
    struct place *p = mem_new(disk->alloc, 1, sizeof *p + name_size);
    if (!p)
        return NULL;
    memcpy(p->name, name, name_size);
    p->name_size = name_size;
    p->next = disk->places;
    disk->places = p;
    return p;
}

static int store_copy(pawl_store *store, const char *dir, pawl_error *error)
{
    struct mem_store *s = of(store);
    int status = fault_due(s->disk, MEM_STORE_COPY);
    pthread_mutex_lock(&s->disk->lock);
    if (status == PAWL_OK && place_find(s->disk, dir))
        status = PAWL_EEXISTS;
    struct place *p = status == PAWL_OK ? place_new(s->disk, dir) : NULL;
    if (p)
        trees_ref(p->committed, s->place->committed);
    pthread_mutex_unlock(&s->disk->lock);
    if (status == PAWL_OK && !p)
        status = PAWL_ENOMEM;
    return status == PAWL_OK ? PAWL_OK
                             : error_set(error, status, "cannot copy %s to %s: %s", s->place->name, dir,
                                         pawl_status_text(status));
}

static void store_free(struct mem_store *s)
{
    while (s->snapshots)
        store_release(&s->store, &s->snapshots->reader);
    trees_unref(s->disk->alloc, s->writer.trees);
    s->place->open = NULL;
    mem_free(s->disk->alloc, s, sizeof *s);
}

static int store_close(pawl_store *store)
{
    struct mem_store *s = of(store);
    pthread_mutex_lock(&s->disk->lock);
    uint32_t used = s->used;
    pthread_mutex_unlock(&s->disk->lock);
    if (used)
        return error_set(&store->error, PAWL_EMISUSE, "%u snapshots of %s are not released", used,
                         s->place->name);
    s->place->dirty = false;
    store_free(s);
    return PAWL_OK;
}

static const struct pawl_store_ops mem_store_ops = {
    .snapshot = store_snapshot,
    .writer = store_writer,
    .release = store_release,
    .get = store_get,
    .scan = store_scan,
    .put = store_put,
    .remove = store_remove,
    .remove_range = store_remove_range,
    .commit = store_commit,
    .abort = store_abort,
    .copy = store_copy,
    .close = store_close,
};

static int open_place(mem_store_disk *disk, const struct mem_store_options *options, struct mem_store **ret)
{
    int status = fault_due(disk, MEM_STORE_OPEN);
    if (status != PAWL_OK)
        return status;
    pthread_mutex_lock(&disk->lock);
    struct place *p = place_find(disk, options->name);
    if (!p)
        p = place_new(disk, options->name);
    pthread_mutex_unlock(&disk->lock);
    if (p && p->open)
        return PAWL_ELOCKED;
    struct mem_store *s = p ? mem_new(disk->alloc, 1, sizeof *s) : NULL;
    if (!s)
        return PAWL_ENOMEM;
    s->store.ops = &mem_store_ops;
    s->disk = disk;
    s->place = p;
    s->mode = options->mode;
    s->max_snapshots = options->max_snapshots ? options->max_snapshots : SNAPSHOTS_DEFAULT;
    s->writer.reader.store = &s->store;
    trees_ref(s->writer.trees, p->committed);
    p->open = s;
    if (s->mode == PAWL_STORE_DURABLE)
        p->dirty = false; /* opening as durable syncs what a fast one left */
    *ret = s;
    return PAWL_OK;
}

int mem_store_open(mem_store_disk *disk, const struct mem_store_options *options, bool *ret_discarded,
                   pawl_store **ret_store, pawl_error *error)
{
    struct mem_store *s = NULL;
    int status = open_place(disk, options, &s);
    if (status != PAWL_OK)
        return error_set(error, status, "cannot open the store %s: %s", options->name,
                         pawl_status_text(status));
    if (ret_discarded)
        *ret_discarded = s->place->lost;
    s->place->lost = false;
    *ret_store = &s->store;
    return PAWL_OK;
}

/* The disk. */

int mem_store_disk_new(const pawl_allocator *alloc, mem_store_disk **ret_disk)
{
    mem_store_disk *disk = mem_new(alloc, 1, sizeof *disk);
    if (!disk)
        return PAWL_ENOMEM;
    disk->alloc = alloc;
    pthread_mutex_init(&disk->lock, NULL);
    *ret_disk = disk;
    return PAWL_OK;
}

void mem_store_disk_crash(mem_store_disk *disk)
{
    for (struct place *p = disk->places; p; p = p->next)
        if (p->open)
            store_free(p->open);
}

void mem_store_disk_power_cut(mem_store_disk *disk)
{
    mem_store_disk_crash(disk);
    for (struct place *p = disk->places; p; p = p->next) {
        if (!p->dirty)
            continue;
        trees_unref(disk->alloc, p->committed);
        p->dirty = false;
        p->lost = true;
    }
}

void mem_store_disk_free(mem_store_disk *disk)
{
    mem_store_disk_crash(disk);
    while (disk->places) {
        struct place *p = disk->places;
        disk->places = p->next;
        trees_unref(disk->alloc, p->committed);
        mem_free(disk->alloc, p, sizeof *p + p->name_size);
    }
    pthread_mutex_destroy(&disk->lock);
    mem_free(disk->alloc, disk, sizeof *disk);
}
