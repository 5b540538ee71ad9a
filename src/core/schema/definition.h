/* core/schema/definition.h: one package as its author wrote it: names are texts, nothing is looked up yet.
 *
 *     JSON ── engine/json ──► definition ──► group0 command ── group0: check, resolve ──► schema
 *
 * docs/SCHEMA.md says what everything means. Optional texts are empty when they are not there. Every struct
 * that has a name begins with it. Texts and lists are borrowed from wherever the definition was made: an arena,
 * or the bytes that it was decoded from.
 *
 * As bytes (what a group0 schema command carries; docs/FORMAT.md): version u8 3, zero u8, then the members in
 * the order of the structs below. A text is its size as u32 and its bytes, a list its count as u16 and its
 * items, a flag a byte 0 or 1, an action's kind a byte, a number u64. Equal definitions have equal bytes.
 * Version 1 ended a projector with its actions, version 2 a view with its filter: what is behind them is as if it
 * were not given. */
#ifndef CORE_SCHEMA_DEFINITION_H
#define CORE_SCHEMA_DEFINITION_H

#include "base/arena.h"
#include "core/schema/schema.h"

#define DEFINITION_VERSION   3
#define DEFINITION_BYTES_MAX ((size_t)4 << 20)

/* Limits: of a package, unless the comment says otherwise. */
#define DEFINITION_WORKSPACES_MAX 64
#define DEFINITION_SEQUENCES_MAX  1000 /* of a workspace kind */
#define DEFINITION_TYPES_MAX      4096 /* and as many entities */
#define DEFINITION_CHILDREN_MAX   256  /* of a type */
#define DEFINITION_KEY_MAX        16   /* fields of a key */
#define DEFINITION_COMMANDS_MAX   4096
#define DEFINITION_RECORDS_MAX    1000 /* of a command */
#define DEFINITION_PROJECTORS_MAX 1024
#define DEFINITION_ON_MAX         1000 /* of a projector */
#define DEFINITION_ACTIONS_MAX    256  /* of a projector */
#define DEFINITION_ENTITIES_MAX   256  /* that a handler writes, and that it reads */
#define DEFINITION_VIEWS_MAX      1024

/* Of a projector in a lane. */
#define PROJECTOR_ATTEMPTS     5 /* if it does not say */
#define PROJECTOR_ATTEMPTS_MAX 1000
#define PROJECTOR_WORKERS      4
#define PROJECTOR_WORKERS_MAX  1024

struct definition_sequence {
    pawl_bytes name;
    uint64_t first; /* 0: not given */
    uint64_t end;   /* 0: not given */
};

struct definition_workspace {
    pawl_bytes name;
    struct definition_sequence *sequences;
    size_t sequence_count;
};

struct definition_field {
    pawl_bytes name;
    pawl_bytes type;
    bool required;
    pawl_bytes sequence;
    pawl_bytes to;
};

/* A child container: name and type. A key or set of an action: field and expression. */
struct definition_pair {
    pawl_bytes name;
    pawl_bytes text;
};

struct definition_type {
    pawl_bytes name;
    pawl_bytes kind;
    bool singleton;
    struct definition_field *fields;
    size_t field_count;
    struct definition_pair *children;
    size_t child_count;
};

struct definition_entity {
    pawl_bytes name;
    pawl_bytes *key;
    size_t key_count;
    struct definition_field *fields;
    size_t field_count;
};

struct definition_command {
    pawl_bytes name;
    pawl_bytes argument;
    pawl_bytes *records;
    size_t record_count;
};

struct definition_action {
    enum action_kind kind;
    pawl_bytes entity;
    struct definition_pair *key;
    size_t key_count;
    struct definition_pair *sets;
    size_t set_count;
    pawl_bytes where;
};

struct definition_projector {
    pawl_bytes name;
    pawl_bytes *on;
    size_t on_count;
    bool sync;
    pawl_bytes lane;
    struct definition_action *actions;
    size_t action_count;
    pawl_bytes *writes;
    size_t write_count;
    pawl_bytes *reads;
    size_t read_count;
    pawl_bytes on_failure;
    uint64_t attempts_max; /* 0: not given */
    uint64_t workers;      /* 0: not given */
};

struct definition_view {
    pawl_bytes name;
    pawl_bytes base;
    pawl_bytes *key;
    size_t key_count;
    pawl_bytes *include;
    size_t include_count;
    pawl_bytes filter;
    bool unique;
};

struct definition {
    pawl_bytes package;
    struct definition_workspace *workspaces;
    size_t workspace_count;
    struct definition_type *types;
    size_t type_count;
    struct definition_command *commands;
    size_t command_count;
    struct definition_entity *entities;
    size_t entity_count;
    struct definition_projector *projectors;
    size_t projector_count;
    struct definition_view *views;
    size_t view_count;
};

/* Its bytes, in the arena. PAWL_ENOMEM; PAWL_ETOOBIG beyond DEFINITION_BYTES_MAX, or if a list has more than
 * 65535 items. */
int definition_encode(const struct definition *definition, struct arena *arena, pawl_bytes *ret_bytes);

/* Lists are taken from the arena, texts borrowed from bytes. Nothing is checked but the form.
 * PAWL_EVERSION; PAWL_ECORRUPT, naming the byte; PAWL_ENOMEM. */
int definition_decode(pawl_bytes bytes, struct arena *arena, struct definition *ret_definition,
                      pawl_error *error);

/* All checks that need no other package: names, that each name is given once, limits, types and kinds, and
 * which members may stand together. PAWL_EINVAL, with the path; PAWL_ENOMEM (the arena holds what is needed
 * meanwhile). */
int definition_check(const struct definition *definition, struct arena *arena, pawl_error *error);

/* Bring it into the form in which equal packages are equal bytes: names of its own without the package in
 * front; what before (NULL: nothing) has too, in the same order, and behind it what is new. So a field's index
 * is its place, and never changes. The order of projectors is left alone, because it means something. Of
 * definitions that were checked. PAWL_ENOMEM. */
int definition_settle(struct definition *definition, const struct definition *before, struct arena *arena);

/* A field's type, a type's kind and what follows a failure by what they are called: VALUE_NULL and 0 if there
 * is none of that name. */
enum value_type definition_value_type(pawl_bytes text);
enum type_kind definition_type_kind(pawl_bytes text);
enum on_failure definition_on_failure(pawl_bytes text);
const char *value_type_text(enum value_type type); /* the other way */

/* The item of that name, among count items of this size that begin with theirs; NULL. */
void *definition_find(const void *items, size_t count, size_t item_size, pawl_bytes name);

#endif
