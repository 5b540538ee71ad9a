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
#include "test/sim/checkpoint_twin.h"
#include "test/sim/commands_sim.h"

/* Statuses that only a fault explains. */
#define FAULTS                                                                                                 \
    (model_bit(PAWL_EIO) | model_bit(PAWL_EFULL) | model_bit(PAWL_EFENCED) | model_bit(PAWL_EBUSY)             \
     | model_bit(PAWL_EUNKNOWN) | model_bit(PAWL_ENOMEM))

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

/* --- lives --- */

static void send_one(struct sim *s, bool inside)
{
    if (s->outstanding >= OUTSTANDING_MAX || s->count == COMMANDS_MAX)
        return;
    struct command *c = commands_ask(s);
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
    assert_int_equal(partition_wait(&s->p), WRITER_RUNNING);
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
        processor_run(s->p.processor);
}

static void begin_life(struct sim *s)
{
    s->run = (pawl_task){.fn = run_later};
    s->faulty = s->closing = false;
    partition_boot(&s->p);
    if (below(s, 4))
        assert_int_equal(partition_wait(&s->p), WRITER_RUNNING);
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
