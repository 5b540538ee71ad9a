/* What commands do, in the simplest way: arrays that are searched from end to end, and no log, store, cache,
 * batch or schema. The model judges a request, says which event it makes, applies it, and compares itself with
 * the rows of a store.
 *
 * Refusals are sets: a request that is wrong in several ways may be refused for any of them. */
#ifndef TEST_SIM_COMMANDS_MODEL_H
#define TEST_SIM_COMMANDS_MODEL_H

#include "core/command/request.h"
#include "core/event/event.h"
#include "port/store.h"

/* The first schema, and what it becomes. */
enum { MODEL_SCHEMAS = 3 };
extern const char *const model_schemas[MODEL_SCHEMAS];

enum model_type {
    M_CUSTOMER,
    M_CONTACT,
    M_REMARK,
    M_SETTINGS,
    M_ORDER,
    M_LINE,
    M_PART,
    M_INVOICE,
    M_ROW,
    M_TICKET,
    M_MEMO, /* of the second schema */
    MODEL_TYPES,
};
enum model_command { M_PLACE, M_KEEP, M_BILL, M_BOOK, M_SETUP, M_WIPE, M_NOTE, MODEL_COMMANDS };
enum model_sequence { M_SEQ_NONE, M_SEQ_ORDER, M_SEQ_INVOICE, M_SEQ_TICKET, M_SEQ_MEMO, MODEL_SEQUENCES };
enum model_kind { M_TENANT, M_BRANCH, M_DEPOT /* of the third */, MODEL_KINDS };

enum { MODEL_FIELDS = 5, MODEL_OBJECTS = 16, MODEL_WORKSPACES = 8, MODEL_TEXT = 24 };

struct model_value {
    enum value_type type;
    int64_t number; /* and every other type that has a number; the bits of a real */
    char text[MODEL_TEXT];
    size_t size;
};

struct model_record {
    uint64_t id;
    enum model_type type;
    bool active;
    uint64_t parent;
    uint16_t container;
    struct model_value values[MODEL_FIELDS];
};

struct model_total {
    uint64_t customer;
    struct model_value orders, cents, label;
};

struct model_event {
    uint64_t offset;
    uint64_t body; /* which request */
    uint64_t record;
    char key[MODEL_TEXT];
};

struct model_workspace {
    uint64_t wsid;
    enum model_kind kind;
    bool frozen;
    uint64_t rec, crec; /* the last of each register; 0: none */
    uint64_t numbers[MODEL_SEQUENCES];
    struct model_event *events; /* at their offset, minus one */
    size_t event_count, event_room;
    struct model_record *records;
    size_t record_count, record_room;
    struct model_total *totals;
    size_t total_count;
};

struct model {
    uint64_t last; /* event of the log */
    uint16_t type_ids[MODEL_TYPES];
    uint16_t command_ids[MODEL_COMMANDS];
    uint16_t kind_ids[MODEL_KINDS];
    uint16_t name; /* some qualified name */
    struct model_workspace workspaces[MODEL_WORKSPACES];
    size_t workspace_count;
};

/* What a request would become. */
struct model_plan {
    unsigned refused;  /* bits of statuses: model_bit; 0: it would be accepted */
    uint64_t repeated; /* the offset of the event that has its key and its body */
    uint64_t rec, crec;
    uint64_t numbers[MODEL_SEQUENCES];
    struct model_record objects[MODEL_OBJECTS];
    struct model_total *totals; /* as they would be; owned by the plan */
    size_t total_count;
};

static inline unsigned model_bit(int status)
{
    return 1u << -status;
}

void model_init(struct model *m);
void model_release(struct model *m);

/* Learn the numbers of names; again after each change. */
void model_learn(struct model *m, const struct schema *schema);

struct model_workspace *model_find(struct model *m, uint64_t wsid);

/* body tells requests apart: two with the same one ask for the same. */
void model_judge(struct model *m, const struct request *request, uint64_t body, struct model_plan *ret_plan);
void model_plan_release(struct model_plan *plan);

/* Fails the test unless the event is what the plan says. */
void model_check_event(struct model *m, const struct request *request, const struct model_plan *plan,
                       const struct schema *schema, const struct event *event);

/* The event at the next offset is this one. Takes the plan's totals. */
void model_apply(struct model *m, const struct request *request, uint64_t body, struct model_plan *plan);

/* Fails the test unless the rows are the model's, all of them. */
void model_check_state(struct model *m, const struct schema *schema, pawl_reader *reader);

#endif
