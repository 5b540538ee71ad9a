/* Makes requests of every sort for a partition: most of them right, some with one thing wrong or almost wrong,
 * and some that were sent before. */
#include "base/id.h"
#include "test/sim/commands_sim.h"

static const char *some_text(struct sim *s)
{
    static const char *const texts[] = {"", "a", "gold", "silver and more", "\xc3\xa4"};
    return texts[below(s, 5)];
}

static uint64_t some_id(struct sim *s, uint64_t wsid, int type)
{
    const struct model_workspace *w = model_find(&s->model, wsid);
    uint64_t found = 0, seen = 0;
    for (size_t i = 0; w && i < w->record_count; i++)
        if ((int)w->records[i].type == type && below(s, ++seen) == 0)
            found = w->records[i].id;
    return found ? found : 300000 + below(s, 3);
}

static void set(struct command *c, uint16_t place, struct value value)
{
    int status = request_set(&c->request, place, value);
    assert_true(status == PAWL_OK || status == PAWL_EEXISTS);
}

static void set_number(struct command *c, uint16_t place, int64_t number)
{
    set(c, place, (struct value){.type = VALUE_INT64, .integer = number});
}

static void set_text(struct command *c, uint16_t place, const char *text)
{
    set(c, place, (struct value){.type = VALUE_STRING, .bytes = text_bytes(text)});
}

static void set_ref(struct command *c, uint16_t place, uint64_t id)
{
    set(c, place, (struct value){.type = VALUE_REF, .id = id});
}

static int64_t some_cents(struct sim *s)
{
    static const int64_t extremes[] = {INT64_MAX, INT64_MIN, 0};
    return below(s, 15) == 0 ? extremes[below(s, 3)] : (int64_t)below(s, 500) - 100;
}

static void add_record(struct sim *s, struct command *c, uint64_t id, enum model_type type)
{
    assert_ok(request_add_record(&c->request, id, s->model.type_ids[type]));
}

static void set_parent(struct command *c, uint64_t parent, const char *name)
{
    struct request_object *o = &c->request.objects[c->request.object_count - 1];
    o->parent_id = parent;
    if (name)
        o->container_name = text_bytes(name);
    else
        o->container = 1;
}

static void set_active(struct command *c, enum request_active active)
{
    c->request.objects[c->request.object_count - 1].active = active;
}

static void ask_customer(struct sim *s, struct command *c, uint64_t *raw)
{
    uint64_t wsid = c->request.wsid, id = ++*raw;
    switch (below(s, 4)) {
    case 0:
    case 1:
        add_record(s, c, id, M_CUSTOMER);
        set_text(c, 0, some_text(s));
        if (below(s, 2))
            set_ref(c, 3, below(s, 2) ? id : some_id(s, wsid, M_CUSTOMER));
        if (s->version > 0 && below(s, 2))
            set_text(c, 4, some_text(s));
        for (uint64_t n = below(s, 3); n > 0; n--) {
            uint64_t contact = ++*raw;
            add_record(s, c, contact, M_CONTACT);
            set_parent(c, id, below(s, 2) ? "contacts" : NULL);
            set(c, 1, (struct value){.type = VALUE_BOOL, .boolean = below(s, 2)});
            if (below(s, 2) == 0)
                continue;
            add_record(s, c, ++*raw, M_REMARK);
            set_parent(c, contact, below(s, 2) ? "remarks" : NULL);
            set_text(c, 0, some_text(s));
        }
        return;
    case 2:
        add_record(s, c, some_id(s, wsid, M_CUSTOMER), M_CUSTOMER);
        if (below(s, 2))
            set_text(c, 1, some_text(s));
        if (below(s, 2))
            set_number(c, 2, some_cents(s));
        if (below(s, 2))
            set(c, 3, (struct value){.type = VALUE_NULL});
        if (below(s, 3) == 0)
            set_active(c, below(s, 2) ? ACTIVE_NO : ACTIVE_YES);
        return;
    default:
        add_record(s, c, id, M_CONTACT);
        set_parent(c, some_id(s, wsid, M_CUSTOMER), below(s, 9) ? "contacts" : "remarks");
        set_text(c, 0, some_text(s));
        return;
    }
}

static void ask_invoice(struct sim *s, struct command *c, uint64_t *raw, uint64_t order)
{
    uint64_t id = ++*raw;
    if (below(s, 4) == 0)
        add_record(s, c, some_id(s, c->request.wsid, M_INVOICE), M_INVOICE);
    else
        add_record(s, c, id, M_INVOICE);
    if (order)
        set_ref(c, 1, order);
    if (below(s, 6))
        set_number(c, 2, some_cents(s));
    if (c->request.objects[c->request.object_count - 1].id != id)
        return;
    for (uint64_t n = below(s, 3); n > 0; n--) {
        add_record(s, c, ++*raw, M_ROW);
        set_parent(c, id, below(s, 2) ? "rows" : NULL);
        set_number(c, 0, some_cents(s));
        set(c, 1, (struct value){.type = VALUE_QNAME, .name = s->model.name});
    }
}

static void ask_order(struct sim *s, struct command *c, uint64_t *raw)
{
    uint64_t id = ++*raw;
    struct request *r = &c->request;
    assert_ok(request_add_argument(r, id, s->model.type_ids[M_ORDER], REQUEST_NO_PARENT, 0));
    if (below(s, 10))
        set_ref(c, 0, some_id(s, r->wsid, M_CUSTOMER));
    for (uint64_t n = below(s, 3); n > 0; n--) {
        uint32_t line = (uint32_t)r->object_count;
        assert_ok(request_add_argument(r, ++*raw, s->model.type_ids[M_LINE], 0, 1));
        set_text(c, 0, some_text(s));
        set_ref(c, 3, below(s, 2) ? id : 200001);
        if (below(s, 2) == 0)
            continue;
        assert_ok(request_add_argument(r, ++*raw, s->model.type_ids[M_PART], line, 1));
        set(c, 1, (struct value){.type = VALUE_BYTES, .bytes = {"\0\xff", 2}});
    }
    if (below(s, 3))
        ask_invoice(s, c, raw, below(s, 2) ? id : 0);
}

static void ask_settings(struct sim *s, struct command *c, uint64_t *raw, bool argument)
{
    if (argument)
        assert_ok(
            request_add_argument(&c->request, ++*raw, s->model.type_ids[M_SETTINGS], REQUEST_NO_PARENT, 0));
    else
        add_record(s, c, below(s, 2) ? ++*raw : some_id(s, c->request.wsid, M_SETTINGS), M_SETTINGS);
    set_text(c, 0, some_text(s));
    set(c, 1, (struct value){.type = VALUE_FLOAT64, .real = (double)below(s, 100) / 7});
    set(c, 2, (struct value){.type = VALUE_TIMESTAMP, .integer = -(int64_t)below(s, 1000)});
}

static void ask_ticket(struct sim *s, struct command *c, uint64_t *raw, bool argument)
{
    if (argument)
        assert_ok(request_add_argument(&c->request, ++*raw, s->model.type_ids[M_TICKET], REQUEST_NO_PARENT, 0));
    else
        add_record(s, c, ++*raw, M_TICKET);
    set_text(c, 1, some_text(s));
}

static bool is_being_created(const struct sim *s, uint64_t wsid)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->commands[i]->outstanding && s->commands[i]->request.command == NAME_WS_CREATE
            && s->commands[i]->request.wsid == wsid)
            return true;
    return false;
}

/* One that has a chance in this workspace. */
static enum model_command fitting(const struct model_workspace *w, enum model_command command)
{
    bool customers = false, settings = false;
    for (size_t i = 0; i < w->record_count; i++) {
        customers = customers || w->records[i].type == M_CUSTOMER;
        settings = settings || w->records[i].type == M_SETTINGS;
    }
    if ((command == M_SETUP && settings) || (command == M_PLACE && !customers) || w->kind == M_DEPOT)
        return M_KEEP;
    if (w->kind == M_BRANCH)
        return command == M_PLACE || command == M_NOTE ? M_BOOK : command;
    return command == M_BOOK ? M_PLACE : command;
}

static void ask(struct sim *s, struct command *c)
{
    struct request *r = &c->request;
    uint64_t raw = below(s, 100);
    const struct model_workspace *w = model_find(&s->model, r->wsid);
    enum model_command command = (enum model_command)below(s, s->version > 0 ? MODEL_COMMANDS : M_NOTE);
    if (!w && is_being_created(s, r->wsid) && below(s, 8)) {
        r->command = s->model.command_ids[M_KEEP];
        ask_customer(s, c, &raw);
        return;
    }
    if (!w || below(s, 40) == 0) {
        r->command = NAME_WS_CREATE;
        r->kind = s->model.kind_ids[below(s, s->version > 1 ? MODEL_KINDS : M_DEPOT)];
        return;
    }
    if (below(s, w->frozen ? 4 : 200) == 0) {
        r->command = below(s, 8) == 0 ? NAME_WS_FREEZE : w->frozen ? NAME_WS_THAW : NAME_WS_FREEZE;
        return;
    }
    if (below(s, 6))
        command = fitting(w, command);
    if (command == M_WIPE && below(s, 3))
        command = M_KEEP;
    r->command = s->model.command_ids[command];
    switch (command) {
    case M_PLACE: ask_order(s, c, &raw); return;
    case M_KEEP:
        for (uint64_t n = 1 + below(s, 2); n > 0; n--)
            ask_customer(s, c, &raw);
        if (below(s, 5) == 0)
            ask_settings(s, c, &raw, false);
        return;
    case M_BILL:
        if (w->kind == M_BRANCH)
            ask_ticket(s, c, &raw, false);
        else
            ask_invoice(s, c, &raw, 0);
        return;
    case M_BOOK:
        ask_ticket(s, c, &raw, true);
        if (below(s, 3) == 0)
            ask_customer(s, c, &raw);
        return;
    case M_SETUP: ask_settings(s, c, &raw, true); return;
    case M_NOTE:
        add_record(s, c, ++raw, M_MEMO);
        set_text(c, 1, some_text(s));
        return;
    case M_WIPE:
    case MODEL_COMMANDS: return;
    }
}

/* One thing about it becomes wrong, or nearly. */
static void spoil(struct sim *s, struct command *c)
{
    struct request *r = &c->request;
    struct request_object *o = r->object_count ? &r->objects[below(s, r->object_count)] : NULL;
    struct request_field *f = r->field_count ? &r->fields[below(s, r->field_count)] : NULL;
    switch (below(s, 14)) {
    case 0: r->command = 999; return;
    case 1: r->wsid = below(s, 2) ? 0 : 77; return;
    case 2: r->kind = 998; return;
    default: break;
    }
    switch (o ? below(s, 8) : 8) {
    case 0: o->type = s->model.type_ids[below(s, M_MEMO)]; return;
    case 1: o->type = 997; return;
    case 2: o->id = below(s, 3) == 0 ? 0 : r->objects[below(s, r->object_count)].id; return;
    case 3: o->parent_id = below(s, 2) ? 0 : 1 + below(s, 100); return;
    case 4: o->container = (uint16_t)below(s, 3); return;
    case 5: o->active = ACTIVE_NO; return;
    default: break;
    }
    switch (f ? below(s, 5) : 5) {
    case 0: f->place = (uint16_t)below(s, 7); return;
    case 1: f->value = (struct value){.type = VALUE_NULL}; return;
    case 2: f->value = (struct value){.type = VALUE_STRING, .bytes = {"\xff", 1}}; return;
    case 3:
        f->value = (struct value){.type = VALUE_REF, .id = below(s, 2) ? UINT64_MAX : 1 + below(s, 200)};
        return;
    case 4: f->value = (struct value){.type = VALUE_QNAME, .name = 4000}; return;
    default: return;
    }
}

/* A field may be set once only, and spoiling may have set it twice: whoever made such a request made no
 * request. And the argument is not spoiled where the request would not be one at all. */
static bool is_request(const struct sim *s, const struct request *r)
{
    for (size_t i = 0; i < r->object_count; i++) {
        const struct request_object *o = &r->objects[i];
        for (uint32_t a = 0; a < o->field_count; a++)
            for (uint32_t b = 0; b < a; b++)
                if (r->fields[o->field_first + a].place == r->fields[o->field_first + b].place)
                    return false;
        if (i < r->argument_count && (o->parent_id != 0 || o->active != ACTIVE_UNSAID))
            return false;
        if (i < r->argument_count && o->parent == REQUEST_NO_PARENT && o->container != 0)
            return false;
        for (uint32_t a = 0; a < o->field_count; a++)
            if (s->version == 0 && o->type == s->model.type_ids[M_CUSTOMER]
                && r->fields[o->field_first + a].place == 4)
                return false;
    }
    return true;
}

static struct command *new_command(struct sim *s)
{
    struct command *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    assert_true(s->count < COMMANDS_MAX);
    snprintf(c->correlation, sizeof c->correlation, "%zu", s->count);
    c->sim = s;
    c->body = s->count;
    arena_init(&c->memory, NULL, 2048);
    request_init(&c->request, &c->memory);
    s->commands[s->count++] = c;
    return c;
}

static void make_command(struct sim *s, struct command *c)
{
    do {
        arena_reset(&c->memory);
        request_init(&c->request, &c->memory);
        c->request.wsid = 1 + below(s, 5);
        ask(s, c);
        if (below(s, 8) == 0)
            spoil(s, c);
    } while (!is_request(s, &c->request));
    if (below(s, 6) == 0) {
        const struct model_workspace *w = model_find(&s->model, c->request.wsid);
        c->request.expects = true;
        c->request.expected = (w ? w->event_count : 0) + below(s, 3);
    }
    if (below(s, 2))
        snprintf(c->key, sizeof c->key, "k%" PRIu64, below(s, 5) ? below(s, 1u << 20) : below(s, 30));
}

static bool same_value(const struct value *a, const struct value *b)
{
    if (a->type != b->type)
        return false;
    if (a->type == VALUE_STRING || a->type == VALUE_BYTES)
        return bytes_equal(a->bytes, b->bytes);
    return a->type == VALUE_NULL    ? true
           : a->type == VALUE_BOOL  ? a->boolean == b->boolean
           : a->type == VALUE_QNAME ? a->name == b->name
                                    : a->id == b->id; /* the bits of all others */
}

static bool same_request(const struct request *a, const struct request *b)
{
    if (a->wsid != b->wsid || a->command != b->command || a->kind != b->kind
        || a->object_count != b->object_count || a->argument_count != b->argument_count
        || a->field_count != b->field_count)
        return false;
    for (size_t i = 0; i < a->object_count; i++) {
        const struct request_object *x = &a->objects[i], *y = &b->objects[i];
        if (x->id != y->id || x->type != y->type || x->container != y->container
            || !bytes_equal(x->container_name, y->container_name) || x->parent != y->parent
            || x->parent_id != y->parent_id || x->active != y->active || x->field_count != y->field_count)
            return false;
    }
    for (size_t i = 0; i < a->field_count; i++)
        if (a->fields[i].place != b->fields[i].place || !same_value(&a->fields[i].value, &b->fields[i].value))
            return false;
    return true;
}

/* The first command that asked for the same under the same key gives the body its number. */
static void number_body(struct sim *s, struct command *c)
{
    for (size_t i = 0; i < s->count && c->key[0]; i++)
        if (strcmp(s->commands[i]->key, c->key) == 0 && same_request(&s->commands[i]->request, &c->request)) {
            c->body = s->commands[i]->body;
            return;
        }
}

/* Ask for the same again, under the same key: whoever did not get an answer would. */
static void make_repeat(struct sim *s, struct command *c)
{
    const struct command *old = s->commands[below(s, s->count - 1)];
    if (below(s, 2) && s->count > 40)
        old = s->commands[s->count - 2 - below(s, 30)];
    c->request = old->request;
    c->body = old->body;
    memcpy(c->key, old->key, sizeof c->key);
}

struct command *commands_ask(struct sim *s)
{
    struct command *c = new_command(s);
    if (s->count > 1 && below(s, 8) == 0)
        make_repeat(s, c);
    else
        make_command(s, c);
    number_body(s, c);
    c->request.key = text_bytes(c->key);
    c->request.correlation = text_bytes(c->correlation);
    c->request.actor = text_bytes("someone");
    return c;
}
