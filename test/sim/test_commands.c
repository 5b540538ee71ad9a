/* Random commands to one partition, right ones and wrong ones of every sort, many at a time, while the log
 * fails, forgets what became of appends, and is full; the store is full and fails to commit; memory runs out;
 * schemas change; and lives end by closing, by crashing, and with the state thrown away.
 *
 * The log is the order in which things happened: each event that appears in it is judged by the model at that
 * place, and must be exactly what the model says. An answer is right if it agrees with that: a command that was
 * accepted is in the log by then, once, and one that was refused never will be, and was wrong at some moment
 * between its being sent and its being answered.
 *
 * PAWL_SEEDS=n runs that many seeds. */
#include "base/bytes.h"
#include "base/id.h"
#include "test/lib/partition.h"
#include "test/lib/test.h"
#include "test/sim/checkpoint_twin.h"
#include "test/sim/commands_model.h"

enum { OUTSTANDING_MAX = 150, COMMANDS_MAX = 4000 };

/* Statuses that only a fault explains. */
#define FAULTS                                                                                                 \
    (model_bit(PAWL_EIO) | model_bit(PAWL_EFULL) | model_bit(PAWL_EFENCED) | model_bit(PAWL_EBUSY)             \
     | model_bit(PAWL_EUNKNOWN) | model_bit(PAWL_ENOMEM))

struct command {
    struct call call;
    struct request request;
    struct arena memory;
    pawl_error error;
    char correlation[16];
    char key[MODEL_TEXT];
    uint64_t body;
    bool outstanding;
    bool refused;   /* it was said that it has no event */
    uint64_t event; /* its offset in the log; 0: it is not there */
    unsigned wrong; /* bits of the refusals that would have been right since it was sent */
    struct sim *sim;
};

struct sim {
    struct partition p;
    struct model model;
    uint64_t random;
    int version; /* of the schema */
    bool faulty; /* this life has had a fault */
    bool closing;
    pawl_task run; /* for who was sent from inside a done */
    struct command *commands[COMMANDS_MAX];
    size_t count;
    size_t outstanding;
    size_t accepted, repeated, refused, failed; /* answers */
};

static uint64_t below(struct sim *s, uint64_t bound)
{
    return test_below(&s->random, bound);
}

/* --- the log is the truth --- */

static void note_wrong(struct sim *s, struct command *c)
{
    struct model_plan plan;
    model_judge(&s->model, &c->request, c->body, &plan);
    c->wrong |= plan.refused;
    model_plan_release(&plan);
}

static bool observe_event(void *arg, const pawl_entry *entry)
{
    struct sim *s = arg;
    struct event event;
    struct model_plan plan;
    assert_int_equal(entry->offset, s->model.last + 1);
    assert_ok(event_decode(entry->body, &event, NULL));
    char number[16] = {0};
    assert_true(event.head.correlation.size < sizeof number);
    memcpy(number, event.head.correlation.data, event.head.correlation.size);
    struct command *c = s->commands[strtoul(number, NULL, 10)];
    assert_false(c->refused);
    assert_int_equal(c->event, 0);
    c->event = entry->offset;
    const struct schema *schema = group0_schema_at(s->p.group0, event.head.schema);
    model_judge(&s->model, &c->request, c->body, &plan);
    assert_int_equal(plan.refused, 0);
    assert_int_equal(plan.repeated, 0);
    model_check_event(&s->model, &c->request, &plan, schema, &event);
    model_apply(&s->model, &c->request, c->body, &plan);
    model_plan_release(&plan);
    for (size_t i = 0; i < s->count; i++)
        if (s->commands[i]->outstanding && s->commands[i]->request.wsid == c->request.wsid)
            note_wrong(s, s->commands[i]);
    return true;
}

static void observe(struct sim *s)
{
    uint64_t next = partition_read_log(&s->p, s->model.last + 1, observe_event, s);
    assert_int_equal(next, s->model.last + 1);
}

static bool check_body(void *arg, const pawl_entry *entry)
{
    const struct call *call = arg;
    assert_int_equal(entry->offset, call->offset);
    assert_int_equal(entry->body.size, call->body.size);
    assert_memory_equal(entry->body.data, call->body.data, call->body.size);
    return false;
}

static void check_accepted(struct sim *s, struct command *c)
{
    struct call *call = &c->call;
    assert_true(call->offset >= 1 && call->offset <= s->model.last);
    partition_read_log(&s->p, call->offset, check_body, call);
    if (!call->repeated) {
        assert_int_equal(call->offset, c->event);
        s->accepted++;
    } else {
        assert_int_equal(c->event, 0);
        c->refused = true; /* it has no event of its own, and never will */
        const struct model_workspace *w = model_find(&s->model, c->request.wsid);
        size_t i = 0;
        while (i < w->event_count && w->events[i].offset != call->offset)
            i++;
        assert_true(i < w->event_count);
        assert_int_equal(w->events[i].body, c->body);
        assert_string_equal(w->events[i].key, c->key);
        s->repeated++;
    }
    if (call->ack == ACK_APPLIED && !s->closing)
        assert_true(processor_figures(s->p.processor)->offset >= call->offset);
}

static void send_one(struct sim *s, bool inside);

static void done(struct call *call)
{
    struct command *c = (struct command *)((char *)call - offsetof(struct command, call));
    struct sim *s = c->sim;
    assert_true(c->outstanding);
    observe(s);
    c->outstanding = false;
    s->outstanding--;
    if (!s->closing && below(s, 12) == 0) {
        send_one(s, true);
        assert_ok(pawl_env_post(mem_env_port(s->p.env), 0, &s->run));
    }
    if (call->status == PAWL_OK) {
        check_accepted(s, c);
        return;
    }
    if (c->error.code != call->status || !c->error.text[0])
        print_error("command %s: %s, but the words are of %s: %s\n", c->correlation,
                    pawl_status_name(call->status), pawl_status_name(c->error.code), c->error.text);
    assert_true(c->error.code == call->status && c->error.text[0]);
    bool unknown = call->status == PAWL_EUNKNOWN;
    unsigned allowed = c->wrong;
    if (s->faulty)
        allowed |= FAULTS & ~model_bit(PAWL_EUNKNOWN);
    if (s->closing)
        allowed |= model_bit(PAWL_ECLOSED) | model_bit(PAWL_EUNKNOWN);
    if (!(allowed & model_bit(call->status)) || (c->event && !unknown))
        print_error("command %s: %s: %s\n", c->correlation, pawl_status_name(call->status), c->error.text);
    assert_true(allowed & model_bit(call->status));
    if (!unknown) {
        assert_int_equal(c->event, 0);
        c->refused = true;
    }
    *(c->wrong & model_bit(call->status) ? &s->refused : &s->failed) += 1;
}

/* --- what is asked --- */

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

static void send_one(struct sim *s, bool inside)
{
    if (s->outstanding >= OUTSTANDING_MAX || s->count == COMMANDS_MAX)
        return;
    struct command *c = new_command(s);
    if (s->count > 1 && below(s, 8) == 0)
        make_repeat(s, c);
    else
        make_command(s, c);
    number_body(s, c);
    c->request.key = text_bytes(c->key);
    c->request.correlation = text_bytes(c->correlation);
    c->request.actor = text_bytes("someone");
    c->call = (struct call){.request = &c->request,
                            .ack = below(s, 3) ? ACK_APPLIED : ACK_DURABLE,
                            .done = done,
                            .error = &c->error};
    observe(s);
    c->outstanding = true;
    note_wrong(s, c);
    int status = inside ? processor_submit(s->p.processor, &c->call) : partition_submit(&s->p, &c->call);
    if (status == PAWL_OK) {
        s->outstanding++;
        return;
    }
    assert_true(s->faulty && (FAULTS & model_bit(status)));
    c->outstanding = false;
    c->refused = true;
}

/* --- lives --- */

static void order_log_faults(struct sim *s)
{
    static const enum mem_log_fault_kind kinds[] = {MEM_LOG_FAIL,   MEM_LOG_FULL,  MEM_LOG_DELAY,
                                                    MEM_LOG_LANDED, MEM_LOG_LOST,  MEM_LOG_LATE,
                                                    MEM_LOG_TORN,   MEM_LOG_TWICE, MEM_LOG_RIVAL};
    uint64_t request = mem_log_requests(s->p.log) + 1;
    enum mem_log_fault_kind kind = kinds[below(s, 9)];
    uint64_t times = kind == MEM_LOG_FULL || kind == MEM_LOG_FAIL ? 1 + below(s, 4) : 1;
    for (uint64_t i = 0; i < times; i++)
        (void)mem_log_order(s->p.log,
                            &(struct mem_log_fault){kind, request + i + below(s, 3), (uint32_t)below(s, 5)});
    s->faulty = true;
}

static void order_store_fault(struct sim *s)
{
    static const enum mem_store_op ops[] = {MEM_STORE_PUT,    MEM_STORE_COMMIT, MEM_STORE_GET,
                                            MEM_STORE_REMOVE, MEM_STORE_SCAN,   MEM_STORE_ANY};
    static const int statuses[] = {PAWL_EFULL, PAWL_EIO};
    mem_store_disk_fail(s->p.store_disk, (struct mem_store_fault){.op = ops[below(s, 6)],
                                                                  .countdown = 1 + below(s, 20),
                                                                  .times = 1 + below(s, 6),
                                                                  .status = statuses[below(s, 2)]});
    s->faulty = true;
}

static void order_memory_fault(struct sim *s)
{
    s->p.memory.fails_in = 1 + below(s, 30);
    s->p.memory.fails = 1 + below(s, 4);
    s->faulty = true;
}

static void change_schema(struct sim *s)
{
    if (s->version + 1 >= MODEL_SCHEMAS)
        return;
    const struct schema *schema = partition_apply(&s->p, model_schemas[++s->version]);
    model_learn(&s->model, schema);
    partition_schema(&s->p, schema);
}

static void live_a_little(struct sim *s, bool faults)
{
    if (faults && below(s, 12) == 0)
        order_log_faults(s);
    if (faults && below(s, 20) == 0)
        order_store_fault(s);
    if (faults && below(s, 20) == 0)
        order_memory_fault(s);
    if (below(s, 40) == 0)
        change_schema(s);
    for (uint64_t n = below(s, 2) ? 1 : below(s, 30); n > 0; n--)
        send_one(s, false);
    partition_run(&s->p);
    if (below(s, 30) == 0)
        mem_world_advance(s->p.world, below(s, 2000) * PAWL_MILLISECOND);
    else
        for (uint64_t n = below(s, 60); n > 0; n--)
            mem_world_step(s->p.world);
}

static bool is_quiet(void *arg)
{
    const struct sim *s = arg;
    return s->outstanding == 0;
}

static void check_state(void *arg)
{
    struct sim *s = arg;
    model_check_state(&s->model, group0_schema(s->p.group0), pawl_store_writer(s->p.store));
}

/* Nothing is under way: then the state is what the model says, and sums up to what its position says. */
static void check_quiet(struct sim *s)
{
    mem_store_disk_fail(s->p.store_disk, (struct mem_store_fault){0});
    s->p.memory.fails_in = 0;
    assert_true(mem_world_run_until(s->p.world, is_quiet, s, PARTITION_STEPS_MAX));
    assert_int_equal(partition_wait(&s->p), PROCESSOR_RUNNING);
    mem_world_advance(s->p.world, 3 * PAWL_SECOND); /* what was answered when durable is applied too */
    observe(s);
    assert_int_equal(processor_figures(s->p.processor)->offset, s->model.last);
    partition_call(&s->p, check_state, s);
    partition_check_digests(&s->p);
}

static void run_later(pawl_task *task)
{
    struct sim *s = (struct sim *)((char *)task - offsetof(struct sim, run));
    if (s->p.processor)
        processor_run(s->p.processor, false);
}

static void begin_life(struct sim *s)
{
    s->run = (pawl_task){.fn = run_later};
    s->faulty = s->closing = false;
    partition_boot(&s->p);
    if (below(s, 4))
        assert_int_equal(partition_wait(&s->p), PROCESSOR_RUNNING);
}

/* Derived from the log alone, by a checkpoint beside it and by the processor anew, the state has the same
 * bytes. */
static void check_replay(struct sim *s)
{
    check_quiet(s);
    pawl_bytes before = partition_dump(&s->p);
    twin_check(&s->p, &s->random, before);
    s->closing = true;
    partition_halt(&s->p);
    partition_forget_state(&s->p);
    begin_life(s);
    check_quiet(s);
    pawl_bytes after = partition_dump(&s->p);
    assert_int_equal(before.size, after.size);
    assert_memory_equal(before.data, after.data, before.size);
    free((void *)before.data);
    free((void *)after.data);
}

static void end_life(struct sim *s)
{
    uint64_t way = below(s, 5);
    if (way < 2)
        check_quiet(s);
    s->closing = true;
    if (way < 3) {
        partition_halt(&s->p);
        assert_int_equal(s->outstanding, 0);
    } else
        partition_crash(&s->p, way == 4);
    for (size_t i = 0; i < s->count; i++) /* nobody is left to answer them */
        s->commands[i]->outstanding = false;
    s->outstanding = 0;
    if (below(s, 3) == 0)
        partition_forget_state(&s->p);
}

static void sim_open(struct sim *s, uint64_t seed)
{
    *s = (struct sim){.random = seed};
    partition_open(&s->p, seed);
    model_init(&s->model);
    model_learn(&s->model, partition_apply(&s->p, model_schemas[0]));
    s->p.options.batch_events_max = (uint32_t)(1 + below(s, 8));
    s->p.options.batches_max = (uint32_t)(1 + below(s, 4));
    s->p.options.workspaces_max = 3;
    s->p.options.windows_max = 2;
}

static void sim_close(struct sim *s)
{
    for (size_t i = 0; i < s->count; i++) {
        arena_release(&s->commands[i]->memory);
        free(s->commands[i]);
    }
    model_release(&s->model);
    partition_close(&s->p);
}

static size_t seen[4];

static void run_seed(uint64_t seed)
{
    static struct sim sim;
    struct sim *s = &sim;
    sim_open(s, seed);
    bool faults = below(s, 4) != 0;
    for (uint64_t life = 1 + below(s, 4); life > 0; life--) {
        begin_life(s);
        for (uint64_t n = 5 + below(s, 40); n > 0; n--)
            live_a_little(s, faults);
        if (life > 1)
            end_life(s);
    }
    check_replay(s);
    partition_halt(&s->p);
    seen[0] += s->accepted;
    seen[1] += s->repeated;
    seen[2] += s->refused;
    seen[3] += s->failed;
    sim_close(s);
}

TEST(answers_and_state_are_those_of_the_model_whatever_fails)
{
    const char *text = getenv("PAWL_SEEDS");
    uint64_t first = test_seed(1), seeds = text ? strtoull(text, NULL, 0) : TEST_SANITIZED ? 90 : 300;
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        if (getenv("PAWL_VERBOSE"))
            print_message("# seed %" PRIu64 "\n", seed);
        run_seed(seed);
    }
    print_message("# accepted %zu, repeated %zu, refused %zu, failed %zu\n", seen[0], seen[1], seen[2],
                  seen[3]);
    assert_true(seeds < 100 || (seen[0] > 3000 && seen[1] > 300 && seen[2] > 1000 && seen[3] > 100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(answers_and_state_are_those_of_the_model_whatever_fails),
    };
    return TEST_MAIN(tests);
}
