/* What the files of the model share: the tables of what there is, and how things are found. */
#ifndef TEST_SIM_COMMANDS_MODEL_IMPL_H
#define TEST_SIM_COMMANDS_MODEL_IMPL_H

#include "test/sim/commands_model.h"

struct model_field {
    enum value_type type;
    bool required;
    enum model_sequence sequence;
    int to; /* a type; -1: any */
};

struct model_type_info {
    const char *name;
    bool table, c, child, singleton;
    int holds; /* what its one container holds; -1: it has none */
    size_t field_count;
    struct model_field fields[MODEL_FIELDS];
};

struct model_command_info {
    const char *name;
    int argument; /* a type; -1: none */
    int roots[2];
};

struct model_kind_info {
    const char *name;
    bool has[MODEL_SEQUENCES];
};

struct model_sequence_info {
    const char *name;
    uint64_t first, end;
};

extern const struct model_type_info model_types[MODEL_TYPES];
extern const char *const model_containers[MODEL_TYPES]; /* the name of a type's one container */
extern const struct model_command_info model_commands[MODEL_COMMANDS];
extern const struct model_kind_info model_kinds[MODEL_KINDS];
extern const struct model_sequence_info model_sequences[MODEL_SEQUENCES];

/* -1: none of the model's. */
int model_type_of(const struct model *m, uint16_t id);

/* NULL: there is none. type -1: of any. */
const struct model_record *model_find_record(const struct model_workspace *w, int type, uint64_t id);

struct model_value model_value_of(const struct value *value);

#endif
