/* core/command/bind.c: unique views, as a processor sees them: which bind in its partition, and which keys its
 * staged events give up and take.
 *
 * Which views bind changes when a slice completes one, and when views are refreshed. Whoever does that calls
 * processor_rebind. But no command depends on that: the version of the tables tells each command whether what is
 * known here is out of date. */
#include "base/error.h"
#include "core/command/processor_impl.h"

static bool is_staged(const struct writer_batch *batch)
{
    return batch->state == BATCH_FILLING || batch->state == BATCH_SENT || batch->state == BATCH_DURABLE;
}

static uint64_t last_staged(const struct processor *p)
{
    uint64_t last = 0;
    for (const struct writer_batch *b = p->writer.first; b; b = b->next)
        if (is_staged(b) && b->count > 0)
            last = b->entries[b->count - 1].entry.offset;
    return last;
}

static int refresh(void *ctx, pawl_store *store, pawl_error *error)
{
    struct view_tables *tables = ctx;
    (void)store;
    return view_tables_refresh(tables, tables->list, tables->schema, error);
}

/* The keys of all staged events, oldest first. They were taken under other views; the memory of the old ones is
 * given back with their batch. */
static int note_all(struct processor *p, pawl_error *error)
{
    struct state state = processor_staged_state(p);
    int status = PAWL_OK;
    overlay_clear(&p->unique.staged);
    for (struct writer_batch *b = p->writer.first; b; b = b->next)
        for (size_t i = 0; is_staged(b) && i < b->count; i++)
            batch_staged(b)[i].keys = (struct changes){0};
    for (struct writer_batch *b = p->writer.first; b; b = b->next)
        for (size_t i = 0; is_staged(b) && i < b->count && status == PAWL_OK; i++) {
            struct staged *staged = &batch_staged(b)[i];
            status = unique_note(&p->unique, &state, &staged->changes, &b->memory, &staged->keys, error);
        }
    return status;
}

static int rebind(struct processor *p, pawl_error *error)
{
    struct unique *u = &p->unique;
    bool more = false;
    int status = PAWL_OK;
    applier_retreat(
        p->options.applier); /* the rows before the staged events are needed, and the views as they are */
    if (u->tables->list && !u->tables->refreshed) /* nobody knows the views now, so nothing can be staged */
        status = applier_write(p->options.applier, refresh, u->tables, error);
    if (status == PAWL_OK)
        status = unique_bind(u, &more, error);
    if (more)
        p->bound_behind = last_staged(p);
    if (status == PAWL_OK && !u->noted) {
        status = note_all(p, error);
        u->noted = status == PAWL_OK;
    }
    return status;
}

int bind_current(struct processor *p, pawl_error *error)
{
    return unique_is_current(&p->unique) ? PAWL_OK : rebind(p, error);
}

void processor_rebind(struct processor *p)
{
    (void)bind_current(p, NULL); /* after an error the next command tries again */
}

bool processor_settled(struct processor *p)
{
    applier_retreat(p->options.applier); /* first: it makes what is known of the views out of date */
    processor_rebind(p);
    return unique_is_current(&p->unique) && p->writer.state == WRITER_RUNNING
           && p->figures.offset >= p->bound_behind;
}
