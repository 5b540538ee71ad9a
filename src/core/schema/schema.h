/* core/schema/schema.h: a resolved schema: every name is a number, every reference a pointer.
 *
 * A schema is the union of all packages at one position of group0, the position of the command that made it. It
 * never changes: group0 makes a new one, and users of the old one hold a reference. Events name the
 * position they were made under, and are applied with exactly that schema, today and in every replay.
 *
 *     JSON ── engine/json ──► definition ── group0 ──► schema        (definition.h, core/group0)
 *
 * Numbers that are stored (IDs of names, table IDs, a field's place in its type, a container's place in its
 * parent type) are given once and never again to anything else. A later schema only adds: so whatever was
 * decoded under an earlier one keeps its meaning under a later one.
 *
 * Invariants
 *   S1  Arrays "by ID" are sorted by ascending ID; fields and containers lie at their stored place.
 *   S2  A container's type is of the record kind that belongs to its parent's kind (CDoc and CRecord hold
 *       CRecords, and so on), and types nest at most SCHEMA_DEPTH_MAX deep.
 *   S3  A field with a sequence is INT64, not required, and of a type that some event numbers; every workspace
 *       kind in which the type can be made has that sequence, or a command that makes it there is refused.
 *   S4  Expressions were compiled against the types they run on.
 *   S5  A generation of a lane is above every one that any of its entities ever had: so no two ever share a
 *       table, even when an entity goes from one lane to another. */
#ifndef CORE_SCHEMA_SCHEMA_H
#define CORE_SCHEMA_SCHEMA_H

#include "core/schema/expr.h"
#include "core/schema/value.h"

#define SCHEMA_NAME_BYTES_MAX  64 /* of a package, type, field, ...: [A-Za-z_][A-Za-z0-9_]* */
#define SCHEMA_QNAME_BYTES_MAX (2 * SCHEMA_NAME_BYTES_MAX + 1)
#define SCHEMA_FIELDS_MAX      1000 /* of one type */
#define SCHEMA_DEPTH_MAX       16
#define SCHEMA_TABLE_FIRST     256 /* tables below are the system's own: core/state/key.h */
#define SCHEMA_NAME_FIRST      256 /* IDs below are the system's own: sequences 1 to 4, and the types below */

/* What the system itself defines. Commands that users cannot define, because what they do is not a record. */
enum system_name {
    NAME_WS_CREATE = 16, /* sys.CreateWorkspace */
    NAME_WS_FREEZE = 17, /* sys.FreezeWorkspace: from here on it takes no commands but the next one */
    NAME_WS_THAW = 18,   /* sys.ThawWorkspace */
};

/* What a name was given to: for ever, even when a later schema no longer has it. */
enum named_kind {
    NAMED_SYSTEM = 1,
    NAMED_WORKSPACE = 2,
    NAMED_SEQUENCE = 3,
    NAMED_TYPE = 4,
    NAMED_ENTITY = 5,
    NAMED_COMMAND = 6,
    NAMED_PROJECTOR = 7,
    NAMED_VIEW = 8,
};

/* "a type", "an entity", ... */
const char *named_kind_text(enum named_kind kind);

/* Who fills an entity: once it is decided it stays, because its rows are there. */
enum named_filler { FILLED_NOT_YET = 0, FILLED_SYNC = 1, FILLED_BY_LANE = 2 };

struct schema_name {
    uint16_t id;
    enum named_kind kind;
    enum named_filler filler; /* ENTITY */
    uint32_t table;           /* TYPE, ENTITY: as in schema_type */
    uint64_t singleton;       /* TYPE: the same */
    uint32_t generation;      /* ENTITY, of a lane: the newest that fills it, or last did; 0: none */
    uint32_t serving;         /* the same: the last that was complete; 0: none */
    pawl_bytes text;          /* qualified */
};

enum type_kind {
    TYPE_CDOC = 1,
    TYPE_CRECORD = 2,
    TYPE_WDOC = 3,
    TYPE_WRECORD = 4,
    TYPE_ODOC = 5,
    TYPE_ORECORD = 6,
    TYPE_ENTITY = 7,
};

static inline bool type_in_c(enum type_kind kind)
{
    return kind == TYPE_CDOC || kind == TYPE_CRECORD;
}

/* ODocs and ORecords live in their event only. */
static inline bool type_has_table(enum type_kind kind)
{
    return kind != TYPE_ODOC && kind != TYPE_ORECORD;
}

/* Parts of a document: each has a parent. */
static inline bool type_is_child(enum type_kind kind)
{
    return kind == TYPE_CRECORD || kind == TYPE_WRECORD || kind == TYPE_ORECORD;
}

struct schema_type;

struct schema_field {
    pawl_bytes name;
    enum value_type type;
    bool required;
    uint16_t sequence; /* numbers the field when its record is created; 0: none */
    uint16_t to;       /* REF: the ID of the type that it must be of; 0: any */
};

struct schema_container {
    pawl_bytes name;
    const struct schema_type *type;
};

struct schema_type {
    uint16_t id;
    enum type_kind kind;
    uint32_t table;     /* 0: none */
    uint64_t singleton; /* the record's ID, in its register; 0: not a singleton */
    pawl_bytes name;    /* qualified */
    const struct schema_field *fields;
    size_t field_count;
    const struct schema_container *containers;
    size_t container_count;
    const uint16_t *key; /* ENTITY: places of the key's fields, in the key's order */
    size_t key_count;
    uint16_t lane; /* ENTITY: that fills it; 0: synchronous projectors do, or nobody */
};

struct schema_sequence {
    uint16_t id;
    pawl_bytes name;
    uint64_t first; /* at least 1 */
    uint64_t end;   /* at most INT64_MAX, which it is if the schema says none */
};

struct schema_workspace {
    uint16_t id;
    pawl_bytes name;
    const struct schema_sequence *sequences; /* by ID; the user's own only */
    size_t sequence_count;
};

struct schema_command {
    uint16_t id;
    pawl_bytes name;
    const struct schema_type *argument;       /* NULL: takes none. Of kind ODOC, or any document's. */
    const struct schema_type *const *records; /* what it may create or change; children of these too */
    size_t record_count;
};

enum action_kind { ACTION_UPSERT = 1, ACTION_UPDATE = 2, ACTION_DELETE = 3 };

struct schema_set {
    uint16_t field;
    const struct expr *value;
};

struct schema_action {
    enum action_kind kind;
    const struct schema_type *entity;
    const struct expr *const *key; /* UPSERT: one for each of the entity's key fields, in its order */
    const struct schema_set *sets;
    size_t set_count;
    const struct expr *where; /* UPDATE, DELETE: NULL is all of the workspace's */
};

/* What becomes of a lane's number when all attempts at it have failed. */
enum on_failure {
    ON_FAILURE_STALL = 1, /* the lane waits for somebody to decide */
    ON_FAILURE_VOID = 2,  /* it goes on with a void */
};

struct schema_projector {
    uint16_t id;
    pawl_bytes name;
    bool sync;
    uint16_t lane;      /* 0: synchronous */
    const uint16_t *on; /* IDs of commands, ascending */
    size_t on_count;
    const struct schema_action *actions;
    size_t action_count;
    bool handler; /* it has no actions: a callback or an external worker says what is written */
    const struct schema_type *const *writes; /* the entities that it fills, by ID; a handler, may fill */
    size_t write_count;
    const struct schema_type *const *reads; /* the further ones that a handler may read, by ID */
    size_t read_count;
    enum on_failure on_failure; /* these three: of a lane's; 0: synchronous */
    uint32_t attempts_max;
    uint32_t workers; /* how many may run at once */
};

/* A lane's newest generation is the one that follows its projectors as they are now. While that one works its
 * way through the log, reads are served by the one before it, which goes on with the projectors it began with.
 * Any generation between the two was given up.
 *
 *     serving == generation    the usual case
 *     serving <  generation    the newest is being built
 *     serving == 0             the same, and none of this lane was complete before
 *
 * A lane's first generation serves from the beginning, unless another lane filled one of its entities before:
 * then what that one left is served until the newest is complete. */
struct schema_lane {
    uint16_t id;
    uint32_t generation;
    uint64_t born; /* position of the command that made this generation */
    uint32_t serving;
    uint64_t serving_born;
    uint64_t serving_last;    /* the last schema that had the serving generation; UINT64_MAX: this one has it */
    const uint64_t *switched; /* where reads went over to it: by partition, a PLog offset */
    size_t switched_count;    /* 0: it served from the beginning */
    pawl_bytes name;
};

/* Rows of an entity that a lane fills lie in a table for each of the lane's generations; those that synchronous
 * projectors fill, and records, in generation 0. Numbers that are given to names are below 65536, so no two
 * tables are the same. */
#define SCHEMA_TABLE_BITS  16
#define SCHEMA_GENERATIONS ((uint32_t)32767) /* all are below; the top bit says that it is a view's table */

static inline uint32_t schema_table(const struct schema_type *type, uint32_t generation)
{
    return generation << SCHEMA_TABLE_BITS | type->table;
}

struct schema {
    uint64_t position; /* of the group0 command that made it; 0: the empty schema that every node begins with */
    const struct schema_workspace *workspaces; /* by ID, as all of these */
    size_t workspace_count;
    const struct schema_type *types; /* documents, records and entities */
    size_t type_count;
    const struct schema_command *commands;
    size_t command_count;
    const struct schema_projector *projectors; /* in their place in the schema: the order in which they run */
    size_t projector_count;
    const struct schema_lane *lanes;
    size_t lane_count;
    const struct schema_name *names; /* all that group0 ever numbered, and the system's */
    size_t name_count;
    const uint16_t *names_by_text; /* places in names, by schema_name_order of the texts */
};

/* NULL if there is none. */
const struct schema_workspace *schema_workspace_by_id(const struct schema *schema, uint16_t id);
const struct schema_type *schema_type_by_id(const struct schema *schema, uint16_t id);
const struct schema_command *schema_command_by_id(const struct schema *schema, uint16_t id);
const struct schema_workspace *schema_workspace_by_name(const struct schema *schema, pawl_bytes qname);
const struct schema_type *schema_type_by_name(const struct schema *schema, pawl_bytes qname);
const struct schema_command *schema_command_by_name(const struct schema *schema, pawl_bytes qname);
const struct schema_projector *schema_projector_by_name(const struct schema *schema, pawl_bytes qname);
const struct schema_lane *schema_lane_by_id(const struct schema *schema, uint16_t id);
const struct schema_lane *schema_lane_by_name(const struct schema *schema, pawl_bytes qname);

/* Whether workspaces of this kind have a sequence of their own with this ID. */
bool schema_has_sequence(const struct schema_workspace *kind, uint16_t sequence);

/* The table that reads of an entity are served from, also when nobody fills it any more: the last generation
 * that was complete, or the newest if none was. */
uint32_t schema_serving_table(const struct schema *schema, const struct schema_type *entity);

/* Of any name that group0 ever numbered, used by this schema or not: 0 and {NULL, 0} if there is none. */
uint16_t schema_name_id(const struct schema *schema, pawl_bytes qname);
pawl_bytes schema_name_text(const struct schema *schema, uint16_t id);

const struct schema_name *schema_name_by_text(const struct schema *schema, pawl_bytes qname);
const struct schema_name *schema_name_by_id(const struct schema *schema, uint16_t id);

/* Shorter ones first: most names differ in that already. */
int schema_name_order(pawl_bytes a, pawl_bytes b);

/* The place of a field or container, or -1. */
int schema_field_place(const struct schema_type *type, pawl_bytes name);
int schema_container_place(const struct schema_type *type, pawl_bytes name);

/* Whether the field at this place, -1 included, is of the entity's key. */
bool schema_in_key(const struct schema_type *entity, int place);

/* What a name means to an expression of a projector: the slots that its scope gives out.
 *
 *     upper 16 bits    lower 16 bits
 *     0                place of a field of the row at hand
 *     1                enum event_slot: $event.offset, ...
 *     2                place of a field of the argument, or SLOT_ID: $event.argument.FIELD, $event.argument.id.
 *                      The commands that the projector is on must all take the same type of argument.
 *     type's ID        place of a field, or SLOT_ID, of the event's first record of that type:
 *                      $event.records.TYPE.FIELD, $event.records.TYPE.id. Null if the event has none. */
#define SLOT_ROW      ((uint32_t)0)
#define SLOT_EVENT    ((uint32_t)1)
#define SLOT_ARGUMENT ((uint32_t)2)
#define SLOT_ID       ((uint32_t)0xffff)
#define SLOT_PARENT   ((uint32_t)0xfffe) /* these two: of the row at hand, in a view */
#define SLOT_ACTIVE   ((uint32_t)0xfffd)

enum event_slot {
    EVENT_OFFSET,           /* $event.offset            INT64 */
    EVENT_WSID,             /* $event.wsid              INT64 */
    EVENT_WORKSPACE_OFFSET, /* $event.workspace_offset  INT64 */
    EVENT_TIME,             /* $event.time              TIMESTAMP */
    EVENT_COMMAND,          /* $event.command           QNAME */
    EVENT_ACTOR,            /* $event.actor             STRING; null if the command named none */
    EVENT_CORRELATION,      /* $event.correlation       the same */
    EVENT_CAUSATION,        /* $event.causation         the same */
};

static inline uint32_t slot_make(uint32_t of, uint32_t place)
{
    return of << 16 | place;
}

static inline uint32_t slot_of(uint32_t slot)
{
    return slot >> 16;
}

static inline uint32_t slot_place(uint32_t slot)
{
    return slot & 0xffff;
}

#endif
