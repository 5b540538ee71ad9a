/* engine/json/show_argument.c: shows an event's argument. The event lists its objects one after the other, each
 * with its parent; as JSON they are nested.
 *
 * A1  A parent comes before its children, and IDs ascend: they were given in this order. */
#include <inttypes.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/json/show_impl.h"

#define FEW 16 /* so many objects need no allocation */

struct node {
    struct event_object object;
    uint32_t first; /* its first child; 0, the root's place, means none */
    uint32_t last;
    uint32_t next; /* the next child of the same parent */
};

static int refuse(const struct show *show, const struct event_object *object, const char *what)
{
    return error_set(show->error, PAWL_ECORRUPT, "object %" PRIu64 " of the argument %s", object->id, what);
}

/* The place of this ID among the first count nodes; count: it is not there. */
static size_t find(const struct node *nodes, size_t count, uint64_t id)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (nodes[middle].object.id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && nodes[low].object.id == id ? low : count;
}

static int link_nodes(const struct show *show, const struct event *event, struct node *nodes)
{
    size_t cursor = 0;
    for (uint32_t i = 0; i < event->head.argument_count; i++) {
        struct event_object *object = &nodes[i].object;
        nodes[i] = (struct node){0};
        event_next(event, &cursor, object);
        if (i == 0)
            continue;
        if (object->id <= nodes[i - 1].object.id)
            return refuse(show, object, "is out of order");
        size_t parent = find(nodes, i, object->parent);
        if (parent == i)
            return refuse(show, object, "has no parent before it");
        if (nodes[parent].first)
            nodes[nodes[parent].last].next = i;
        else
            nodes[parent].first = i;
        nodes[parent].last = i;
    }
    return PAWL_OK;
}

static int show_node(const struct show *show, const struct node *nodes, uint32_t i, size_t depth);

static int show_children(const struct show *show, const struct node *nodes, uint32_t parent,
                         const struct schema_type *type, size_t depth)
{
    for (uint32_t i = nodes[parent].first; i; i = nodes[i].next) {
        uint16_t place = nodes[i].object.container;
        if (place == 0 || place > type->container_count
            || type->containers[place - 1].type->id != nodes[i].object.type)
            return refuse(show, &nodes[i].object, "is in no container of its parent");
    }
    for (size_t c = 0; c < type->container_count && nodes[parent].first; c++) {
        bool any = false;
        for (uint32_t i = nodes[parent].first; i; i = nodes[i].next) {
            if (nodes[i].object.container != c + 1)
                continue;
            if (!any) {
                out_name(show->out, type->containers[c].name);
                out_open(show->out, '[');
            }
            any = true;
            int status = show_node(show, nodes, i, depth + 1);
            if (status)
                return status;
        }
        if (any)
            out_close(show->out, ']');
    }
    return PAWL_OK;
}

static int show_node(const struct show *show, const struct node *nodes, uint32_t i, size_t depth)
{
    const struct event_object *object = &nodes[i].object;
    const struct schema_type *type;
    if (depth > SCHEMA_DEPTH_MAX)
        return refuse(show, object, "lies deeper than any type does");
    int status = show_type(show, object->type, &type);
    if (status)
        return status;
    out_open(show->out, '{');
    out_key(show->out, "id");
    out_unsigned(show->out, object->id);
    status = show_fields(show, type, object->row, (pawl_bytes){0});
    if (status)
        return error_wrap(show->error, status, "object %" PRIu64 " of the argument", object->id);
    status = show_children(show, nodes, i, type, depth);
    out_close(show->out, '}');
    return status;
}

int show_argument(const struct show *show, const struct event *event)
{
    struct node few[FEW], *nodes = few;
    size_t count = event->head.argument_count;
    if (count > FEW && !(nodes = mem_new(show->out->alloc, count, sizeof *nodes)))
        return error_set(show->error, PAWL_ENOMEM, "%s", pawl_status_text(PAWL_ENOMEM));
    int status = link_nodes(show, event, nodes);
    if (status == PAWL_OK)
        status = show_node(show, nodes, 0, 1);
    if (nodes != few)
        mem_free(show->out->alloc, nodes, count * sizeof *nodes);
    return status;
}
