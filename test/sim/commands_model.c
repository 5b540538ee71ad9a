#include "test/sim/commands_model.h"

#include "base/bytes.h"
#include "base/id.h"
#include "test/lib/test.h"
#include "test/sim/commands_model_impl.h"

void model_init(struct model *m)
{
    *m = (struct model){0};
}

void model_release(struct model *m)
{
    for (size_t i = 0; i < m->workspace_count; i++) {
        free(m->workspaces[i].events);
        free(m->workspaces[i].records);
        free(m->workspaces[i].totals);
    }
}

void model_learn(struct model *m, const struct schema *schema)
{
    for (int i = 0; i < MODEL_TYPES; i++)
        m->type_ids[i] = schema_name_id(schema, text_bytes(model_types[i].name));
    for (int i = 0; i < MODEL_COMMANDS; i++)
        m->command_ids[i] = schema_name_id(schema, text_bytes(model_commands[i].name));
    for (int i = 0; i < MODEL_KINDS; i++)
        m->kind_ids[i] = schema_name_id(schema, text_bytes(model_kinds[i].name));
    m->name = m->type_ids[M_ROW];
}

struct model_workspace *model_find(struct model *m, uint64_t wsid)
{
    for (size_t i = 0; i < m->workspace_count; i++)
        if (m->workspaces[i].wsid == wsid)
            return &m->workspaces[i];
    return NULL;
}

int model_type_of(const struct model *m, uint16_t id)
{
    for (int i = 0; i < MODEL_TYPES; i++)
        if (id != 0 && m->type_ids[i] == id)
            return i;
    return -1;
}

const struct model_record *model_find_record(const struct model_workspace *w, int type, uint64_t id)
{
    for (size_t i = 0; i < w->record_count; i++)
        if (w->records[i].id == id && (type < 0 || (int)w->records[i].type == type))
            return &w->records[i];
    return NULL;
}

struct model_value model_value_of(const struct value *v)
{
    struct model_value value = {.type = v->type};
    switch (v->type) {
    case VALUE_NULL: break;
    case VALUE_INT64:
    case VALUE_TIMESTAMP: value.number = v->integer; break;
    case VALUE_FLOAT64: memcpy(&value.number, &v->real, sizeof v->real); break;
    case VALUE_BOOL: value.number = v->boolean; break;
    case VALUE_QNAME: value.number = v->name; break;
    case VALUE_REF: value.number = (int64_t)v->id; break;
    case VALUE_STRING:
    case VALUE_BYTES:
        assert_true(v->bytes.size <= MODEL_TEXT);
        if (v->bytes.size)
            memcpy(value.text, v->bytes.data, v->bytes.size);
        value.size = v->bytes.size;
        break;
    }
    return value;
}

/* --- judging --- */

struct judging {
    struct model *model;
    const struct request *request;
    const struct model_workspace *workspace;
    struct model_plan *plan;
};

static void refuse(struct judging *j, int status)
{
    j->plan->refused |= model_bit(status);
}

static void refuse_if(struct judging *j, bool wrong, int status)
{
    if (wrong)
        refuse(j, status);
}

/* The object of the request that has a raw ID, or -1. */
static int object_of(const struct request *r, uint64_t raw)
{
    for (size_t i = 0; i < r->object_count; i++)
        if (r->objects[i].id == raw && record_is_raw(raw))
            return (int)i;
    return -1;
}

/* Whether a parent of this type has the container that a record asks for, by name or by place, and for it. */
static bool holds(int parent, const struct request_object *o, int t)
{
    if (parent < 0 || model_types[parent].holds != t)
        return false;
    return o->container_name.size ? bytes_equal(o->container_name, text_bytes(model_containers[parent]))
                                  : o->container == 1;
}

static bool is_within(int type, int root)
{
    for (; root >= 0; root = model_types[root].holds)
        if (type == root)
            return true;
    return false;
}

static void judge_reference(struct judging *j, uint64_t id, int to)
{
    if (record_is_raw(id)) {
        int object = object_of(j->request, id);
        refuse_if(j, object < 0 || (to >= 0 && model_type_of(j->model, j->request->objects[object].type) != to),
                  PAWL_EINVAL);
        return;
    }
    refuse_if(j, id == 0 || id >= RECORD_C_BIT << 1, PAWL_EINVAL);
    refuse_if(j, to >= 0 && model_types[to].table && !model_find_record(j->workspace, to, id), PAWL_ENOTFOUND);
}

static void judge_fields(struct judging *j, size_t i, int t)
{
    const struct request *r = j->request;
    const struct request_object *o = &r->objects[i];
    const struct model_type_info *type = &model_types[t];
    bool set[MODEL_FIELDS] = {false};
    for (uint32_t k = 0; k < o->field_count; k++) {
        const struct request_field *f = &r->fields[o->field_first + k];
        if (f->place >= type->field_count) {
            refuse(j, PAWL_EINVAL);
            continue;
        }
        const struct model_field *field = &type->fields[f->place];
        set[f->place] = f->value.type != VALUE_NULL;
        refuse_if(j, field->sequence != M_SEQ_NONE, PAWL_EINVAL);
        refuse_if(j, f->value.type == VALUE_NULL && field->required, PAWL_EINVAL);
        refuse_if(j, f->value.type != VALUE_NULL && f->value.type != field->type, PAWL_EINVAL);
        if (f->value.type == VALUE_REF && field->type == VALUE_REF)
            judge_reference(j, f->value.id, field->to);
        refuse_if(j, f->value.type == VALUE_FLOAT64 && f->value.real != f->value.real, PAWL_EINVAL);
        refuse_if(j,
                  f->value.type == VALUE_STRING && f->value.bytes.size
                      && *(const uint8_t *)f->value.bytes.data == 0xff,
                  PAWL_EINVAL);
        refuse_if(j, f->value.type == VALUE_QNAME && f->value.name > 1000, PAWL_EINVAL);
    }
    for (size_t k = 0; record_is_raw(o->id) && k < type->field_count; k++) {
        refuse_if(j, type->fields[k].required && !set[k], PAWL_EINVAL);
        refuse_if(j, type->fields[k].sequence && !model_kinds[j->workspace->kind].has[type->fields[k].sequence],
                  PAWL_EINVAL);
    }
}

static void judge_argument(struct judging *j, int command, size_t i, int t)
{
    const struct request *r = j->request;
    const struct request_object *o = &r->objects[i];
    refuse_if(j, !record_is_raw(o->id), PAWL_EINVAL);
    if (o->parent == REQUEST_NO_PARENT)
        refuse_if(j, i != 0 || t != model_commands[command].argument, PAWL_EINVAL);
    else {
        int parent = model_type_of(j->model, r->objects[o->parent].type);
        refuse_if(j, parent < 0 || o->container != 1 || model_types[parent].holds != t, PAWL_EINVAL);
    }
}

static bool has_type(const struct model_workspace *w, int type)
{
    for (size_t i = 0; i < w->record_count; i++)
        if ((int)w->records[i].type == type)
            return true;
    return false;
}

static void judge_parent(struct judging *j, const struct request_object *o, int t)
{
    if (o->parent_id == 0) {
        refuse_if(j, model_types[t].child || o->container != 0 || o->container_name.size != 0, PAWL_EINVAL);
        return;
    }
    refuse_if(j, !model_types[t].child, PAWL_EINVAL);
    if (record_is_raw(o->parent_id)) {
        int object = object_of(j->request, o->parent_id);
        bool record = object >= 0 && (size_t)object >= j->request->argument_count;
        refuse_if(j, !record || !holds(model_type_of(j->model, j->request->objects[object].type), o, t),
                  PAWL_EINVAL);
        return;
    }
    const struct model_record *stored = model_find_record(j->workspace, -1, o->parent_id);
    refuse_if(j, !stored || !holds((int)stored->type, o, t), PAWL_ENOTFOUND);
}

static void judge_record(struct judging *j, int command, size_t i, int t)
{
    const struct request *r = j->request;
    const struct request_object *o = &r->objects[i];
    refuse_if(
        j, !is_within(t, model_commands[command].roots[0]) && !is_within(t, model_commands[command].roots[1]),
        PAWL_EINVAL);
    refuse_if(j, o->id == 0, PAWL_EINVAL);
    if (!record_is_raw(o->id)) {
        refuse_if(j, o->parent_id != 0 || o->container != 0 || o->container_name.size != 0, PAWL_EINVAL);
        refuse_if(j, !model_types[t].table || !model_find_record(j->workspace, t, o->id), PAWL_ENOTFOUND);
        return;
    }
    refuse_if(j, o->active == ACTIVE_NO, PAWL_EINVAL);
    judge_parent(j, o, t);
    if (!model_types[t].singleton)
        return;
    refuse_if(j, has_type(j->workspace, t), PAWL_EEXISTS);
    for (size_t k = 0; k < i; k++)
        refuse_if(j, r->objects[k].type == o->type && record_is_raw(r->objects[k].id), PAWL_EEXISTS);
}

static void judge_objects(struct judging *j)
{
    const struct request *r = j->request;
    int command = -1;
    for (int i = 0; i < MODEL_COMMANDS; i++)
        if (j->model->command_ids[i] == r->command && r->command != 0)
            command = i;
    if (command < 0) {
        refuse(j, PAWL_ENOTFOUND);
        return;
    }
    refuse_if(j, (model_commands[command].argument >= 0) != (r->argument_count > 0), PAWL_EINVAL);
    for (size_t i = 0; i < r->object_count; i++) {
        int t = model_type_of(j->model, r->objects[i].type);
        for (size_t k = 0; k < i; k++)
            refuse_if(j, r->objects[k].id == r->objects[i].id && r->objects[i].id != 0, PAWL_EINVAL);
        if (t < 0) {
            refuse(j, PAWL_ENOTFOUND);
            continue;
        }
        if (i < r->argument_count) {
            judge_argument(j, command, i, t);
            refuse_if(j, model_types[t].singleton && has_type(j->workspace, t), PAWL_EEXISTS);
        } else
            judge_record(j, command, i, t);
        judge_fields(j, i, t);
    }
}

/* --- what it would become --- */

static uint64_t take(struct judging *j, uint64_t *last, uint64_t first, uint64_t end)
{
    uint64_t number = *last ? *last + 1 : first;
    refuse_if(j, end != 0 && number > end, PAWL_EEXHAUSTED);
    *last = number;
    return number;
}

static void plan_object(struct judging *j, size_t i, uint64_t singleton)
{
    const struct request_object *o = &j->request->objects[i];
    struct model_record *planned = &j->plan->objects[i];
    enum model_type t = (enum model_type)model_type_of(j->model, o->type);
    *planned = (struct model_record){.id = o->id,
                                     .type = t,
                                     .active = o->active != ACTIVE_NO,
                                     .container = o->parent_id != 0 ? 1 : o->container};
    for (uint32_t k = 0; k < o->field_count; k++) {
        const struct request_field *f = &j->request->fields[o->field_first + k];
        planned->values[f->place] = model_value_of(&f->value);
    }
    if (!record_is_raw(o->id))
        return;
    if (model_types[t].singleton)
        planned->id = singleton;
    else if (model_types[t].c)
        planned->id = take(j, &j->plan->crec, RECORD_FIRST, 0) | RECORD_C_BIT;
    else
        planned->id = take(j, &j->plan->rec, RECORD_FIRST, 0);
    for (size_t k = 0; k < model_types[t].field_count; k++) {
        enum model_sequence s = model_types[t].fields[k].sequence;
        if (s != M_SEQ_NONE)
            planned->values[k] =
                (struct model_value){.type = VALUE_INT64,
                                     .number = (int64_t)take(j, &j->plan->numbers[s], model_sequences[s].first,
                                                             model_sequences[s].end)};
    }
}

static uint64_t real_id(const struct judging *j, uint64_t id)
{
    int object = object_of(j->request, id);
    return object >= 0 ? j->plan->objects[object].id : id;
}

static void plan_objects(struct judging *j)
{
    const struct request *r = j->request;
    struct model_plan *plan = j->plan;
    plan->rec = j->workspace->rec;
    plan->crec = j->workspace->crec;
    memcpy(plan->numbers, j->workspace->numbers, sizeof plan->numbers);
    for (size_t i = r->argument_count; i < r->object_count; i++)
        plan_object(j, i, RECORD_SINGLETON_FIRST | RECORD_C_BIT);
    for (size_t i = 0; i < r->argument_count; i++)
        plan_object(j, i, RECORD_SINGLETON_FIRST | RECORD_C_BIT);
    for (size_t i = 0; i < r->object_count; i++) {
        const struct request_object *o = &r->objects[i];
        struct model_record *planned = &plan->objects[i];
        planned->parent = i >= r->argument_count           ? real_id(j, o->parent_id)
                          : o->parent == REQUEST_NO_PARENT ? 0
                                                           : plan->objects[o->parent].id;
        for (size_t k = 0; k < MODEL_FIELDS; k++)
            if (planned->values[k].type == VALUE_REF)
                planned->values[k].number = (int64_t)real_id(j, (uint64_t)planned->values[k].number);
    }
}

/* --- projectors --- */

static bool add(struct judging *j, int64_t a, int64_t b, bool minus, struct model_value *result)
{
    int64_t sum = 0;
    bool over = minus ? __builtin_sub_overflow(a, b, &sum) : __builtin_add_overflow(a, b, &sum);
    refuse_if(j, over, PAWL_EINVAL);
    *result = (struct model_value){.type = VALUE_INT64, .number = sum};
    return !over;
}

static const struct model_value *invoice_cents(const struct judging *j)
{
    static const struct model_value null = {.type = VALUE_NULL};
    for (size_t i = j->request->argument_count; i < j->request->object_count; i++)
        if (j->plan->objects[i].type == M_INVOICE)
            return &j->plan->objects[i].values[2];
    return &null;
}

static void project_place(struct judging *j)
{
    struct model_plan *plan = j->plan;
    const struct model_value *customer = &plan->objects[0].values[0];
    if (customer->type == VALUE_NULL) {
        refuse(j, PAWL_EINVAL);
        return;
    }
    size_t i = 0;
    while (i < plan->total_count && plan->totals[i].customer != (uint64_t)customer->number)
        i++;
    if (i == plan->total_count)
        plan->totals[plan->total_count++] = (struct model_total){.customer = (uint64_t)customer->number};
    struct model_total *t = &plan->totals[i];
    add(j, t->orders.number, 11, false, &t->orders);
    add(j, t->cents.number, invoice_cents(j)->number, false, &t->cents);
}

static void project_bill(struct judging *j)
{
    struct model_plan *plan = j->plan;
    const struct model_value *cents = invoice_cents(j);
    size_t left = 0;
    for (size_t i = 0; i < plan->total_count; i++) {
        struct model_total *t = &plan->totals[i];
        if (cents->type == VALUE_INT64 && t->cents.type == VALUE_INT64 && t->cents.number > cents->number) {
            add(j, t->cents.number, cents->number, true, &t->cents);
            struct value actor = {.type = j->request->actor.size ? VALUE_STRING : VALUE_NULL,
                                  .bytes = j->request->actor};
            t->label = model_value_of(&actor);
        }
        if (!(t->orders.type == VALUE_INT64 && t->orders.number > 60))
            plan->totals[left++] = *t;
    }
    plan->total_count = left;
}

static void project(struct judging *j)
{
    const struct model_workspace *w = j->workspace;
    struct model_plan *plan = j->plan;
    plan->totals = calloc(w->total_count + 1, sizeof plan->totals[0]);
    if (!plan->totals)
        abort();
    plan->total_count = w->total_count;
    if (w->total_count)
        memcpy(plan->totals, w->totals, w->total_count * sizeof plan->totals[0]);
    if (j->request->command == j->model->command_ids[M_PLACE])
        project_place(j);
    else if (j->request->command == j->model->command_ids[M_BILL])
        project_bill(j);
    else if (j->request->command == j->model->command_ids[M_WIPE])
        plan->total_count = 0;
}

/* Whether the key decides: then nothing else matters. */
static bool judge_key(struct judging *j, uint64_t body)
{
    const struct model_workspace *w = j->workspace;
    const struct request *r = j->request;
    for (size_t back = 0; r->key.size && back < w->event_count && back < 1024; back++) {
        const struct model_event *e = &w->events[w->event_count - 1 - back];
        if (strlen(e->key) != r->key.size || memcmp(e->key, r->key.data, r->key.size) != 0)
            continue;
        if (e->body == body)
            j->plan->repeated = e->offset;
        else
            refuse(j, PAWL_ECONFLICT);
        return true;
    }
    return false;
}

void model_judge(struct model *m, const struct request *r, uint64_t body, struct model_plan *plan)
{
    struct model_workspace fresh = {.wsid = r->wsid};
    struct judging j = {.model = m, .request = r, .workspace = model_find(m, r->wsid), .plan = plan};
    bool creates = r->command == NAME_WS_CREATE;
    bool freezes = r->command == NAME_WS_FREEZE || r->command == NAME_WS_THAW;
    *plan = (struct model_plan){0};
    if (!j.workspace && !creates) {
        refuse(&j, PAWL_ENOTFOUND);
        return;
    }
    if (!j.workspace) {
        int kind = -1;
        for (int i = 0; i < MODEL_KINDS; i++)
            kind = r->kind != 0 && m->kind_ids[i] == r->kind ? i : kind;
        refuse_if(&j, r->wsid == 0, PAWL_EINVAL);
        refuse_if(&j, kind < 0, PAWL_ENOTFOUND);
        fresh.kind = kind < 0 ? M_TENANT : (enum model_kind)kind;
        j.workspace = &fresh;
    }
    if (judge_key(&j, body))
        return;
    refuse_if(&j, creates && j.workspace != &fresh, PAWL_EEXISTS);
    refuse_if(&j, freezes && j.workspace->frozen == (r->command == NAME_WS_FREEZE), PAWL_EEXISTS);
    refuse_if(&j, !creates && !freezes && j.workspace->frozen, PAWL_EREADONLY);
    refuse_if(&j, r->expects && r->expected != j.workspace->event_count, PAWL_ECONFLICT);
    if (creates || freezes)
        refuse_if(&j, r->object_count > 0, PAWL_EINVAL);
    else
        judge_objects(&j);
    if (plan->refused)
        return;
    plan_objects(&j);
    project(&j);
}

void model_plan_release(struct model_plan *plan)
{
    free(plan->totals);
    plan->totals = NULL;
}

static void *one_more(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return array;
    *room = *room ? *room * 2 : 16;
    array = realloc(array, *room * size);
    if (!array)
        abort();
    return array;
}

static void apply_object(struct model_workspace *w, const struct request *r, size_t i,
                         const struct model_record *planned)
{
    const struct request_object *o = &r->objects[i];
    if (!model_types[planned->type].table)
        return;
    if (record_is_raw(o->id)) {
        w->records = one_more(w->records, w->record_count, &w->record_room, sizeof w->records[0]);
        w->records[w->record_count++] = *planned;
        return;
    }
    struct model_record *record = (struct model_record *)model_find_record(w, (int)planned->type, o->id);
    if (o->active != ACTIVE_UNSAID)
        record->active = o->active == ACTIVE_YES;
    for (uint32_t k = 0; k < o->field_count; k++) {
        uint16_t place = r->fields[o->field_first + k].place;
        record->values[place] = planned->values[place];
    }
}

void model_apply(struct model *m, const struct request *r, uint64_t body, struct model_plan *plan)
{
    struct model_workspace *w = model_find(m, r->wsid);
    if (!w) {
        assert_true(m->workspace_count < MODEL_WORKSPACES);
        w = &m->workspaces[m->workspace_count++];
        *w = (struct model_workspace){.wsid = r->wsid};
        for (int i = 0; i < MODEL_KINDS; i++)
            if (m->kind_ids[i] == r->kind)
                w->kind = (enum model_kind)i;
    }
    m->last++;
    w->events = one_more(w->events, w->event_count, &w->event_room, sizeof w->events[0]);
    struct model_event *e = &w->events[w->event_count++];
    *e = (struct model_event){.offset = m->last, .body = body, .record = plan->rec};
    assert_true(r->key.size < MODEL_TEXT);
    if (r->key.size)
        memcpy(e->key, r->key.data, r->key.size);
    w->rec = plan->rec;
    w->crec = plan->crec;
    memcpy(w->numbers, plan->numbers, sizeof w->numbers);
    for (size_t i = r->argument_count; i < r->object_count; i++)
        apply_object(w, r, i, &plan->objects[i]);
    for (size_t i = 0; i < r->argument_count; i++)
        apply_object(w, r, i, &plan->objects[i]);
    if (r->command == NAME_WS_FREEZE || r->command == NAME_WS_THAW)
        w->frozen = r->command == NAME_WS_FREEZE;
    if (r->command == NAME_WS_CREATE)
        return;
    free(w->totals);
    w->totals = plan->totals;
    w->total_count = plan->total_count;
    plan->totals = NULL;
}
