/* Workers: they acquire, read, explode and hand in, each at a moment of its own. They also fail, hang, repeat
 * themselves, come too late or use another's ID. All run on the shard: what a thread does between two reads of
 * the store is invisible to others anyway. */
#include "base/bytes.h"
#include "base/heap.h"
#include "test/sim/lanes.h"

static pawl_env *env_of(struct sim *s)
{
    return mem_env_port(s->env);
}

struct site *sim_site_of(struct sim *s, const struct lane *lane)
{
    for (unsigned i = 0; i < s->site_count; i++)
        if (s->sites[i].lane == lane)
            return &s->sites[i];
    fail();
    return NULL;
}

static void begin(struct worker *w);

static pawl_duration some_delay(struct sim *s)
{
    return s->pace == 0 ? 0 : below(s, s->pace) + 1;
}

static void act_later(struct worker *w, pawl_duration delay)
{
    pawl_env_after(env_of(w->sim), &w->timer, delay);
}

static void come(struct worker *w)
{
    w->state = WORKER_COMING;
    act_later(w, below(w->sim, 4) ? 0 : some_delay(w->sim));
}

/* One idle worker; it wakes the next, if it finds something to do. */
static void wake_one(struct sim *s)
{
    uint64_t first = below(s, s->workers_count);
    for (unsigned i = 0; i < s->workers_count && !s->closing; i++) {
        struct worker *w = &s->workers[(first + i) % s->workers_count];
        if (w->state != WORKER_IDLE)
            continue;
        come(w);
        return;
    }
}

void workers_wake(struct sim *s)
{
    wake_one(s);
}

/* It may acquire from inside. */
void workers_available(void *ctx, struct lane *lane)
{
    struct sim *s = ctx;
    struct worker *w = &s->workers[below(s, s->workers_count)];
    (void)lane;
    if (w->state == WORKER_IDLE && !s->closing && below(s, 4) == 0)
        begin(w);
    else
        wake_one(s);
}

/* --- what somebody was told --- */

/* Whether the store has the lease under this ID. */
static bool is_kept(const struct site *site, uint64_t number, pawl_operation_id id)
{
    pawl_lease_row row;
    return lease_twin_get(&site->leases, number, &row) && row.operation.high == id.high
           && row.operation.low == id.low;
}

/* Its worker has the lease still, as far as it knows. */
static void hold(struct sim *s, struct site *site, uint64_t number, pawl_operation_id id)
{
    if (s->held_count < HELD_MAX)
        s->held[s->held_count++] = (struct held){site, number, id};
}

/* An ID that is over: whoever comes with it later is fenced, or is told what became of it. */
static void remember(struct sim *s, uint64_t number, pawl_operation_id id)
{
    size_t room = sizeof s->old_ids / sizeof s->old_ids[0];
    size_t at = s->old_count < room ? s->old_count++ : below(s, room);
    s->old_ids[at] = id;
    s->old_numbers[at] = number;
}

static void note_told(struct sim *s, struct site *site, const struct run *run, int status)
{
    assert_true(status == PAWL_OK || status == PAWL_EFENCED || status == PAWL_ECONFLICT || status == PAWL_EINVAL
                || status == PAWL_ETOOBIG || (status == PAWL_ECLOSED && site->closing)
                || (status == PAWL_EBUSY && run->may_ask_again));
    if (status == PAWL_OK) {
        model_follow(site);
        assert_true(run->number <= site->model.operations);
    }
    if (status == PAWL_OK && !site->closing)
        assert_true(lane_cursor(site->lane)->applied >= run->number);
    s->seen.fenced += status == PAWL_EFENCED;
    if (s->told_count < HANDED_MAX && status != PAWL_EBUSY)
        s->told[s->told_count++] = (struct told){site, run->number, run->id, status, run->lookup_lane != NULL};
}

/* Who was told that it counts has its operation in the log; nobody else's is there. */
void workers_check_told(struct sim *s)
{
    for (size_t i = 0; i < s->told_count; i++) {
        const struct told *t = &s->told[i];
        const struct model *m = &t->site->model;
        bool is_it = t->number <= m->operations && m->heads[t->number].kind == OPERATION_WRITES
                     && m->heads[t->number].id.high == t->id.high && m->heads[t->number].id.low == t->id.low;
        if (t->status == PAWL_OK && !is_it)
            print_error("operation %" PRIu64 ": told that it is committed, and the log has %s\n", t->number,
                        m->heads[t->number].kind == OPERATION_VOID ? "a void" : "another's");
        assert_true(is_it || t->status != PAWL_OK);
        if (is_it && t->status != PAWL_OK && t->status != PAWL_ECLOSED && !t->by_look)
            print_error("operation %" PRIu64 ": told %s, and it is in the log\n", t->number,
                        pawl_status_name(t->status));
        assert_true(!is_it || t->status == PAWL_OK || t->status == PAWL_ECLOSED || t->by_look);
    }
}

/* --- attempts --- */

static void job_free(struct job *j)
{
    struct job **link = &j->sim->jobs;
    while (*link != j)
        link = &(*link)->next;
    *link = j->next;
    run_release(&j->run);
    free(j);
}

/* It is over: what it had is kept, to come back with. An external worker comes back with its lease, too, and finds
 * out whether that is over. */
static void job_end(struct job *j)
{
    if (!j->kept)
        remember(j->sim, j->run.number, j->run.id);
    else if (j->answered)
        hold(j->sim, j->site, j->run.number, j->run.id);
    job_free(j);
}

/* Who is told may call anything. */
static void interfere(struct sim *s, struct site *site)
{
    struct worker *w = &s->workers[below(s, s->workers_count)];
    if (below(s, 8) == 0 && w->state == WORKER_IDLE)
        begin(w);
    if (!s->trouble || site->closing)
        return;
    if (below(s, 30) == 0)
        (void)lane_reclaim(site->lane, lane_cursor(site->lane)->applied + 1 + below(s, 6));
    if (below(s, 1000) == 0)
        sim_close_lane(site);
}

static void finished(struct run *run, int status)
{
    struct job *j = run->arg;
    struct sim *s = j->sim;
    struct site *site = j->site;
    assert_true(j->handed_in);
    note_told(s, site, run, status);
    s->seen.promised += run->seen.promised != 0 || run->used.promised != 0;
    s->seen.promises_kept += status == PAWL_OK && run->seen.promised != 0;
    s->seen.promises_broken += status == PAWL_ECONFLICT && run->seen.promised != 0;
    j->kept = j->kept && (status == PAWL_EBUSY || status == PAWL_ECLOSED); /* else it knows that it is over */
    job_end(j);
    if (!s->settling && !s->closing)
        interfere(s, site);
}

static struct job *job_new(struct sim *s, struct site *site)
{
    struct job *j = calloc(1, sizeof *j);
    if (!j)
        abort();
    j->sim = s;
    j->site = site;
    j->next = s->jobs;
    s->jobs = j;
    run_init(&j->run, &s->memory.allocator);
    j->run.finished = finished;
    j->run.arg = j;
    return j;
}

/* True: it will be told, or has been told, what became of it. */
static bool job_hand_in(struct job *j)
{
    j->handed_in = true;
    int status = lane_hand_in(j->site->lane, &j->run);
    if (status == PAWL_OK)
        return true;
    assert_true(status == PAWL_EFENCED || status == PAWL_ECLOSED || status == PAWL_EBUSY
                || status == PAWL_ENOMEM);
    j->sim->seen.fenced += status == PAWL_EFENCED;
    job_end(j);
    return false;
}

void workers_visit(struct sim *s, struct site *site, uint64_t number, pawl_operation_id id)
{
    struct job *j = job_new(s, site);
    bool again = true;
    j->run.number = number;
    j->run.id = id;
    j->kept = j->answered = is_kept(site, number, id);
    if (j->kept && (lane_resume(site->lane, number, id, &j->run, &again) != PAWL_OK || !again)) {
        job_free(j); /* it is held, and whoever has it works on it */
        return;
    }
    (void)job_hand_in(j);
}

/* --- what a lane has exploded elsewhere --- */

static void explode_again(struct sim *s, struct lane *lane, struct run *run)
{
    pawl_error error = {0};
    int status = run_explode(run, s->store, &s->buffers, &error);
    if (status == PAWL_OK && s->trouble && below(s, s->trouble * 4) == 0 && !s->settling)
        status = PAWL_ENOMEM;
    s->seen.elsewhere++;
    lane_exploded(lane, run, status);
}

static void errand_done(pawl_timer *timer)
{
    struct errand *e = heap_entry(timer, struct errand, timer);
    struct sim *s = e->sim;
    struct errand **link = &s->errands;
    while (*link != e)
        link = &(*link)->next;
    *link = e->next;
    explode_again(s, e->site->lane, e->run);
    free(e);
}

void workers_explode(void *ctx, struct lane *lane, struct run *run)
{
    struct sim *s = ctx;
    if (below(s, 8) == 0) {
        explode_again(s, lane, run); /* at once */
        return;
    }
    struct errand *e = calloc(1, sizeof *e);
    if (!e)
        abort();
    e->sim = s;
    e->site = sim_site_of(s, lane);
    e->run = run;
    e->next = s->errands;
    s->errands = e;
    e->timer.fn = errand_done;
    pawl_env_after(env_of(s), &e->timer, some_delay(s));
}

/* --- a worker --- */

static void rest(struct worker *w)
{
    w->state = WORKER_IDLE;
    w->job = NULL;
    if (!w->sim->closing)
        come(w);
}

/* A lease from before, or from an earlier life. While the store has it, it is its worker's: what it is refused for
 * is over, and the store knows. */
static bool resume(struct worker *w)
{
    struct sim *s = w->sim;
    bool again;
    if (s->held_count == 0)
        return false;
    size_t i = below(s, s->held_count);
    struct held held = s->held[i];
    if (held.site->closing)
        return false;
    struct job *j = job_new(s, held.site);
    bool kept = is_kept(held.site, held.number, held.id);
    int status = lane_resume(held.site->lane, held.number, held.id, &j->run, &again);
    if (status == PAWL_EBUSY || status == PAWL_ENOMEM) {
        job_free(j);
        return false;
    }
    s->held[i] = s->held[--s->held_count];
    assert_true(status == PAWL_OK || (status == PAWL_EFENCED && !kept));
    if (status != PAWL_OK) {
        remember(s, held.number, held.id);
        job_free(j);
        return false;
    }
    j->kept = j->answered = true;
    if (again) {
        (void)job_hand_in(j);
        return false;
    }
    s->seen.resumed++;
    w->job = j;
    return true;
}

/* Nobody is given a number that the store has for somebody else. */
static int acquire_run(struct sim *s, struct site *site, uint32_t projection, pawl_duration duration,
                       struct job *j)
{
    uint64_t next = pawl_leases_peek(lane_leases(site->lane), projection);
    pawl_lease_row row;
    assert_false(next != 0 && lease_twin_get(&site->leases, next, &row));
    j->kept = below(s, 4) < s->external;
    int status = j->kept ? lane_acquire_kept(site->lane, projection, duration, &j->run)
                         : lane_acquire(site->lane, projection, duration, &j->run);
    j->run.may_ask_again = j->kept;
    return status;
}

static bool acquire_of(struct worker *w, struct site *site)
{
    struct sim *s = w->sim;
    uint32_t projections = 0;
    while (lane_projector(site->lane, projections))
        projections++;
    uint64_t first = below(s, projections);
    struct job *j = job_new(s, site);
    for (uint32_t i = 0; i < projections; i++) {
        pawl_duration duration = below(s, 2) ? 0 : 1 + below(s, s->pace * 4 + PAWL_MILLISECOND);
        if (acquire_run(s, site, (uint32_t)((first + i) % projections), duration, j) != PAWL_OK)
            continue;
        w->job = j;
        return true;
    }
    job_free(j);
    return false;
}

static bool acquire(struct worker *w)
{
    struct sim *s = w->sim;
    if (below(s, 2) && resume(w))
        return true;
    uint64_t first = below(s, s->site_count);
    for (unsigned i = 0; i < s->site_count; i++) {
        struct site *site = &s->sites[(first + i) % s->site_count];
        if (!site->closing && acquire_of(w, site))
            return true;
    }
    return false;
}

static void begin(struct worker *w)
{
    struct sim *s = w->sim;
    if (!acquire(w)) {
        w->state = WORKER_IDLE;
        return;
    }
    wake_one(s);
    struct job *j = w->job;
    w->state = WORKER_BUSY;
    j->handling = (struct handling){.sim = s,
                                    .site = j->site,
                                    .projector = sim_projector(s, j->run.schema, j->run.projector),
                                    .event = j->site->feed->events[j->run.event->offset - 1]};
    j->steps_left = j->handling.projector->handler ? handler_steps(j->handling.projector) : 0;
    act_later(w, some_delay(s));
}

static void give_back(struct worker *w, const char *words)
{
    struct job *j = w->job;
    int status = lane_release(j->site->lane, j->run.number, j->run.id, words);
    assert_true(status == PAWL_OK || status == PAWL_EFENCED || (status == PAWL_EBUSY && j->kept));
    job_end(j);
    rest(w);
}

static void give_up(struct worker *w)
{
    struct job *j = w->job;
    int status =
        lane_fail(j->site->lane, j->run.number, j->run.id, below(w->sim, 6) == 0, "the handler failed");
    assert_true(status == PAWL_OK || status == PAWL_EFENCED || (status == PAWL_EBUSY && j->kept));
    job_end(j);
    rest(w);
}

/* True: it goes on later, or not at all. */
static bool misbehave(struct worker *w)
{
    struct sim *s = w->sim;
    struct job *j = w->job;
    pawl_operation_id wrong = {j->run.id.high, j->run.id.low ^ 1};
    switch (below(s, 8)) {
    case 0: give_back(w, "given back"); return true;
    case 1:
    case 2: give_up(w); return true;
    case 3:
    case 4: act_later(w, (1 + below(s, 1500)) * PAWL_SECOND); return true;
    case 5:
        (void)lane_extend(j->site->lane, j->run.number, j->run.id, below(s, 2) ? 0 : some_delay(s));
        return false;
    case 6: workers_visit(s, j->site, j->run.number, wrong); return false;
    default:
        if (s->old_count > 0) {
            size_t i = below(s, s->old_count);
            workers_visit(s, j->site, s->old_numbers[i], s->old_ids[i]);
        }
        return false;
    }
}

static int look(struct sim *s, struct job *j)
{
    struct state state;
    uint64_t fails = s->memory.fails_in;
    int status = run_open_snapshot(&j->run, s->store, &s->buffers, &j->run.seen, &state);
    if (status != PAWL_OK)
        return status;
    status = handler_read(&j->handling, j->run.schema, &state, &j->run.seen, &s->buffers.memory);
    run_close_snapshot(&s->buffers);
    if (status != PAWL_OK || --j->steps_left > 0)
        return status;
    j->fails = handler_fails(&j->handling);
    if (j->fails)
        return PAWL_OK;
    s->memory.fails_in = 0;
    handler_intents(&j->handling, j->run.schema, &j->run.memory, &j->run.intents, &j->run.intent_count);
    s->memory.fails_in = fails;
    return PAWL_OK;
}

static void hand_in(struct worker *w)
{
    struct sim *s = w->sim;
    struct site *site = w->job->site;
    uint64_t number = w->job->run.number;
    pawl_operation_id id = w->job->run.id;
    bool taken = job_hand_in(w->job);
    if (taken && s->trouble && below(s, s->trouble) == 0 && !site->closing)
        workers_visit(s, site, number, id); /* it did not hear the answer */
    rest(w);
}

static void fail_for_good(struct worker *w)
{
    struct job *j = w->job;
    j->handed_in = true;
    if (!lane_fail_run(j->site->lane, &j->run, true, READ_REASON))
        job_end(j);
    rest(w);
}

/* The next thing that it does. */
static void work_on(pawl_timer *timer)
{
    struct worker *w = heap_entry(timer, struct worker, timer);
    struct sim *s = w->sim;
    int status = PAWL_OK;
    if (s->closing)
        return;
    if (w->state == WORKER_COMING) {
        begin(w);
        return;
    }
    struct job *j = w->job;
    if (j->site->closing) { /* it must not come back */
        job_end(j);
        rest(w);
        return;
    }
    if (j->kept && !j->answered) { /* it was not told before */
        assert_ok(lease_twin_store.settle(&j->site->leases));
        j->answered = true;
    }
    if (s->trouble && !s->settling && below(s, s->trouble) == 0 && misbehave(w))
        return;
    if (j->steps_left > 0)
        status = look(s, j);
    else if (j->fails) {
        fail_for_good(w);
        return;
    } else if (!j->exploded) {
        pawl_error error = {0};
        status = run_explode(&j->run, s->store, &s->buffers, &error);
        j->exploded = status == PAWL_OK;
        j->run.rows = below(s, 6); /* as if it had looked at many */
    } else {
        hand_in(w);
        return;
    }
    if (status != PAWL_OK)
        give_back(w, "no store");
    else
        act_later(w, some_delay(s));
}

/* --- */

void workers_init(struct sim *s)
{
    for (unsigned i = 0; i < s->workers_count; i++)
        s->workers[i] = (struct worker){.sim = s, .timer.fn = work_on};
}

bool workers_wait(const struct sim *s)
{
    for (const struct job *j = s->jobs; j; j = j->next)
        if (j->handed_in)
            return true;
    return s->errands != NULL;
}

void workers_release(struct sim *s)
{
    for (unsigned i = 0; i < s->workers_count; i++)
        pawl_env_cancel(env_of(s), &s->workers[i].timer);
    while (s->jobs)
        job_end(s->jobs);
}

void workers_forget(struct sim *s)
{
    while (s->jobs) {
        struct job *j = s->jobs;
        if (j->kept && j->answered && is_kept(j->site, j->run.number, j->run.id)) {
            hold(s, j->site, j->run.number, j->run.id);
            s->seen.held++;
        } else if (!j->kept)
            remember(s, j->run.number, j->run.id);
        s->jobs = j->next;
        free(j);
    }
    while (s->errands) {
        struct errand *e = s->errands;
        s->errands = e->next;
        free(e);
    }
}
