/* core/command/build_impl.h: what the steps of building share. */
#ifndef CORE_COMMAND_BUILD_IMPL_H
#define CORE_COMMAND_BUILD_IMPL_H

#include "core/command/build.h"

/* An object: what the check found out about it, and what numbering adds. */
struct plan_object {
    const struct schema_type *type;
    bool creates;
    uint16_t container;   /* its place in the parent's type, plus 1; 0: none */
    uint64_t id;          /* set by numbering; of an update it is known before */
    size_t numbers;       /* where its custom numbers begin among plan.numbers */
    size_t cleared_count; /* fields that an update makes null */
    size_t row_size;
};

/* An id, and the object that has it. */
struct plan_raw {
    uint64_t raw;
    uint32_t object;
};

struct plan {
    const struct build *build;
    struct plan_object *objects; /* as the request's */
    struct plan_raw *raws;       /* all ids of the request, ascending */
    size_t raw_count;
    uint64_t *numbers; /* custom ones, in the order in which they were given */
    size_t number_count;
    struct event_numbers *taken; /* by ascending sequence */
    size_t taken_count;
    size_t taken_room;
    struct value *values; /* room for the fields of one object */
    struct event_head head;
    size_t size; /* of the event's body; complete after count_sequences */
    pawl_error *error;
};

int plan_check(struct plan *plan);
int plan_number(struct plan *plan, struct built *ret_built);
void plan_write(struct plan *plan, uint8_t *body, struct built *ret_built);

/* The object that a raw ID stands for, or NULL. */
const struct plan_raw *plan_find_raw(const struct plan *plan, uint64_t raw);

/* Fill plan->values with an object's row. Once the plan is numbered, IDs replace raw references, and numbers
 * replace the zeros of fields that ask for one. */
void plan_fill_values(struct plan *plan, size_t object, bool numbered);

/* The request's order of numbering: its records, then its argument. */
static inline size_t plan_in_order(const struct request *request, size_t i)
{
    size_t records = request->object_count - request->argument_count;
    return i < records ? request->argument_count + i : i - records;
}

#endif
