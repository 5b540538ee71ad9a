/* Random operations on tasks, compared after each step with a plain array of them. Now and then an allocation
 * fails: then nothing has changed, and the operation succeeds when it is repeated. */
#include "test/lib/test.h"

#include "core/group0/tasks.h"
#include "test/lib/alloc.h"

#define MODEL_TASKS_MAX ((size_t)32768)
#define VIEWS           ((uint32_t)5)
#define TABLETS_MAX     ((uint32_t)512)

struct model_task {
    struct task task;
    uint64_t group; /* its first ID */
    uint32_t made;  /* with it */
};

/* By ID. */
struct model {
    struct model_task tasks[MODEL_TASKS_MAX];
    size_t count;
    uint64_t next;
    uint32_t tablets;
};

struct bed {
    struct model model, expected; /* as it is; as it will be */
    struct tasks tasks;
    struct test_alloc memory;
    uint64_t random;
    uint64_t failures;
};

static uint32_t view_of(uint32_t n)
{
    return UINT32_C(0x80000001) + n;
}

static uint32_t base_of(uint32_t view)
{
    return 300 + view % 2;
}

static bool has(const struct model *m, uint32_t view, uint32_t tablet, bool aborted)
{
    for (size_t i = 0; i < m->count; i++) {
        const struct task *t = &m->tasks[i].task;
        if (t->view == view && t->tablet == tablet && t->aborted == aborted)
            return true;
    }
    return false;
}

/* A group of those tablets that are set. */
static uint32_t model_add(struct model *m, uint32_t view, uint32_t tablets, const bool *set)
{
    uint32_t made = 0;
    for (uint32_t tablet = 0; tablet < tablets; tablet++)
        made += set[tablet];
    for (uint32_t tablet = 0; tablet < tablets; tablet++) {
        if (!set[tablet])
            continue;
        assert_true(m->count < MODEL_TASKS_MAX);
        m->tasks[m->count++] = (struct model_task){.task = {.id = m->next + tablet,
                                                            .type = TASK_BUILD_RANGE,
                                                            .base = base_of(view),
                                                            .view = view,
                                                            .tablet = tablet},
                                                   .group = m->next,
                                                   .made = made};
    }
    m->next += made ? tablets : 0;
    return made;
}

typedef bool remove_fn(const struct task *task, uint64_t argument);

static uint64_t model_remove(struct model *m, remove_fn *remove, uint64_t argument)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->count; i++) {
        if (!remove(&m->tasks[i].task, argument))
            m->tasks[kept++] = m->tasks[i];
    }
    uint64_t removed = m->count - kept;
    m->count = kept;
    return removed;
}

static bool is_of_view(const struct task *task, uint64_t view)
{
    return task->view == view;
}

static bool is_of_base(const struct task *task, uint64_t base)
{
    return task->base == base;
}

static bool is_aborted(const struct task *task, uint64_t unused)
{
    (void)unused;
    return task->aborted;
}

static bool is_finished(const struct task *task, uint64_t id)
{
    return task->id == id && !task->aborted;
}

static bool is_below(const struct task *task, uint64_t id)
{
    return task->id < id;
}

static void assert_same_task(const struct task *a, const struct task *b)
{
    assert_int_equal(a->id, b->id);
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->aborted, b->aborted);
    assert_int_equal(a->base, b->base);
    assert_int_equal(a->view, b->view);
    assert_int_equal(a->tablet, b->tablet);
}

static void assert_counts(const struct tasks *tasks, const struct model *m)
{
    for (uint32_t n = 0; n <= VIEWS; n++) {
        uint64_t left = 0, of_base = 0, expected = 0, made = 99;
        for (size_t i = 0; i < m->count; i++) {
            const struct model_task *t = &m->tasks[i];
            of_base += t->task.base == base_of(n);
            if (t->task.view != view_of(n))
                continue;
            left++;
            expected += i == 0 || m->tasks[i - 1].group != t->group ? t->made : 0;
        }
        assert_int_equal(tasks_of_view(tasks, view_of(n), &made), left);
        assert_int_equal(made, expected);
        assert_int_equal(tasks_of_base(tasks, base_of(n)), of_base);
    }
}

/* task_group_next gives those that are not aborted, one after the other. */
static void assert_alive(const struct tasks *tasks, const struct model *m)
{
    size_t at = 0;
    for (size_t i = 0; i < tasks->count; i++) {
        const struct task_group *g = &tasks->groups[i];
        for (uint32_t tablet = 0; (tablet = task_group_next(g, tablet)) != UINT32_MAX; tablet++) {
            while (at < m->count && m->tasks[at].task.aborted)
                at++;
            assert_true(at < m->count);
            assert_int_equal(m->tasks[at++].task.id, g->first + tablet);
        }
    }
    for (; at < m->count; at++)
        assert_true(m->tasks[at].task.aborted);
}

static void assert_same(struct bed *bed, const struct model *m)
{
    const struct tasks *tasks = &bed->tasks;
    struct tasks_cursor cursor = {0};
    struct task task;
    assert_int_equal(tasks->next, m->next);
    assert_int_equal(tasks->left, m->count);
    for (size_t i = 0; i < m->count; i++) {
        assert_true(tasks_next(tasks, &cursor, &task));
        assert_same_task(&task, &m->tasks[i].task);
        assert_ok(tasks_find(tasks, task.id, &task));
        assert_same_task(&task, &m->tasks[i].task);
    }
    assert_false(tasks_next(tasks, &cursor, &task));
    for (int i = 0; i < 20; i++) {
        uint64_t id = test_below(&bed->random, m->next + 10);
        bool there = false;
        for (size_t at = 0; at < m->count && !there; at++)
            there = m->tasks[at].task.id == id;
        assert_status(tasks_find(tasks, id, &task), there ? PAWL_OK : PAWL_ENOTFOUND);
    }
    assert_counts(tasks, m);
    assert_alive(tasks, m);
}

/* K1, K4, K5, and the counts of each group. */
static void assert_invariants(const struct tasks *tasks)
{
    uint64_t end = 1;
    for (size_t i = 0; i < tasks->count; i++) {
        const struct task_group *g = &tasks->groups[i];
        assert_true(g->first >= end);
        assert_true(g->left > 0 && g->left <= g->made && g->aborted_count <= g->left);
        assert_int_equal(g->tablets, tasks->groups[0].tablets);
        assert_int_equal(g->aborted != NULL, g->aborted_count > 0);
        end = g->first + g->tablets;
    }
    assert_true(end <= tasks->next);
}

/* One operation on the tasks. Its numbers were chosen before, so that it can be repeated. */
struct step {
    enum { MAKE, FINISH, DELETE_VIEW, DELETE_BASE, ABORT, RESIZE, ROLLBACK, SNAPSHOT, STEPS } kind;
    uint32_t view;
    uint32_t to;
    uint32_t which[TABLETS_MAX];
    bool all;
    size_t count;
    uint64_t ids[64];
};

static int snapshot(struct bed *bed)
{
    static uint8_t bytes[1 << 20];
    struct encoder e = encoder_over(bytes, sizeof bytes);
    tasks_encode(&bed->tasks, &e);
    assert_false(e.bad);
    assert_int_equal(encoder_size(&e), tasks_encoded_size(&bed->tasks));
    struct decoder d = decoder_over((pawl_bytes){bytes, encoder_size(&e)});
    struct tasks read;
    struct hash128 before = {1, 2}, after = {1, 2};
    tasks_digest(&bed->tasks, &before);
    tasks_init(&read, &bed->memory.allocator);
    int status = tasks_decode(&read, &d);
    if (status)
        return status;
    assert_int_equal(d.left, 0);
    tasks_digest(&read, &after);
    assert_true(before.low == after.low && before.high == after.high);
    tasks_release(&bed->tasks);
    bed->tasks = read;
    return PAWL_OK;
}

static int run(struct bed *bed, const struct step *s, uint64_t *ret_number)
{
    uint32_t made;
    int status = PAWL_OK;
    switch (s->kind) {
    case MAKE:
        status = tasks_make(&bed->tasks, base_of(s->view), s->view, bed->model.tablets,
                            s->all ? NULL : s->which, s->count, &made);
        if (status == PAWL_OK)
            *ret_number = made;
        break;
    case FINISH: tasks_finish(&bed->tasks, s->ids, s->count, ret_number); break;
    case DELETE_VIEW: tasks_delete_view(&bed->tasks, s->view); break;
    case DELETE_BASE: tasks_delete_base(&bed->tasks, base_of(s->view)); break;
    case ABORT: status = tasks_abort_all(&bed->tasks); break;
    case RESIZE: status = tasks_resize(&bed->tasks, s->to); break;
    case ROLLBACK: status = tasks_rollback(&bed->tasks); break;
    case SNAPSHOT: status = snapshot(bed); break;
    default: fail();
    }
    return status;
}

static uint64_t expect_make(const struct model *m, const struct step *s, struct model *expected)
{
    bool set[TABLETS_MAX] = {0};
    for (size_t i = 0; i < (s->all ? m->tablets : s->count); i++) {
        uint32_t tablet = s->all ? (uint32_t)i : s->which[i];
        set[tablet] = !has(m, s->view, tablet, false);
    }
    return model_add(expected, s->view, m->tablets, set);
}

static void expect_resize(const struct model *m, uint32_t to, struct model *expected)
{
    expected->tablets = to;
    for (uint32_t n = 0; n < VIEWS; n++) {
        bool set[TABLETS_MAX] = {0};
        for (size_t i = 0; i < m->count; i++) {
            const struct task *t = &m->tasks[i].task;
            if (t->view != view_of(n))
                continue;
            if (to > m->tablets)
                set[t->tablet * 2] = set[t->tablet * 2 + 1] = true;
            else
                set[t->tablet / 2] = true;
        }
        model_add(expected, view_of(n), to, set);
    }
    model_remove(expected, is_below, m->next);
}

static void expect_rollback(const struct model *m, struct model *expected)
{
    for (uint32_t n = 0; n < VIEWS; n++) {
        bool set[TABLETS_MAX] = {0};
        for (uint32_t tablet = 0; tablet < m->tablets; tablet++)
            set[tablet] = has(m, view_of(n), tablet, true) && !has(m, view_of(n), tablet, false);
        model_add(expected, view_of(n), m->tablets, set);
    }
    model_remove(expected, is_aborted, 0);
}

/* What the step makes of the model; returns the number that it gives. */
static uint64_t expect(const struct model *m, const struct step *s, struct model *expected)
{
    uint64_t number = 0;
    *expected = *m;
    switch (s->kind) {
    case MAKE: return expect_make(m, s, expected);
    case FINISH:
        for (size_t i = 0; i < s->count; i++)
            number += model_remove(expected, is_finished, s->ids[i]);
        return number;
    case DELETE_VIEW: model_remove(expected, is_of_view, s->view); break;
    case DELETE_BASE: model_remove(expected, is_of_base, base_of(s->view)); break;
    case ABORT:
        for (size_t i = 0; i < m->count; i++)
            expected->tasks[i].task.aborted = true;
        break;
    case RESIZE: expect_resize(m, s->to, expected); break;
    case ROLLBACK: expect_rollback(m, expected); break;
    default: break;
    }
    return 0;
}

static void choose(struct bed *bed, struct step *s)
{
    static const uint8_t kinds[] = {MAKE,  MAKE,   MAKE,     MAKE,        FINISH,      FINISH,   FINISH, FINISH,
                                    ABORT, RESIZE, ROLLBACK, DELETE_VIEW, DELETE_BASE, SNAPSHOT, RESIZE};
    uint64_t *random = &bed->random;
    const struct model *m = &bed->model;
    *s = (struct step){.kind = kinds[test_below(random, sizeof kinds)]};
    s->view = view_of((uint32_t)test_below(random, VIEWS));
    s->all = test_below(random, 2) == 0;
    bool grow = m->tablets == 1 || (m->tablets < TABLETS_MAX && test_below(random, 2) == 0);
    s->to = grow ? m->tablets * 2 : m->tablets / 2;
    if (s->kind == MAKE)
        s->count = test_below(random, m->tablets + 1);
    else
        s->count = test_below(random, 64);
    for (size_t i = 0; i < s->count && s->kind == MAKE; i++)
        s->which[i] = (uint32_t)test_below(random, m->tablets);
    /* Mostly of those that are there, and in runs, so that groups become empty. */
    uint64_t from = m->count ? test_below(random, m->count) : 0;
    for (size_t i = 0; i < s->count && s->kind == FINISH; i++) {
        bool known = from + i < m->count && test_below(random, 8) > 0;
        s->ids[i] = known ? m->tasks[from + i].task.id : test_below(random, m->next + 10);
    }
}

static void step(struct bed *bed)
{
    struct step s;
    choose(bed, &s);
    uint64_t number = expect(&bed->model, &s, &bed->expected), got = 0;
    if (test_below(&bed->random, 4) == 0)
        test_alloc_fail(&bed->memory, 1 + test_below(&bed->random, 6), TEST_ALLOC_ONCE);
    int status = run(bed, &s, &got);
    bool failed = test_alloc_failed(&bed->memory);
    assert_status(status, failed ? PAWL_ENOMEM : PAWL_OK);
    test_alloc_fail(&bed->memory, 0, TEST_ALLOC_ONCE);
    if (failed) {
        bed->failures++;
        assert_same(bed, &bed->model);
        assert_ok(run(bed, &s, &got));
    }
    assert_int_equal(got, number);
    bed->model = bed->expected;
    assert_same(bed, &bed->model);
    assert_invariants(&bed->tasks);
}

TEST(tasks_are_those_of_a_plain_array_after_every_step)
{
    static struct bed bed;
    const int steps = TEST_SANITIZED ? 1500 : 6000;
    bed = (struct bed){.random = test_seed(5), .model = {.next = 1, .tablets = 4}};
    test_alloc_init(&bed.memory);
    tasks_init(&bed.tasks, &bed.memory.allocator);
    size_t most = 0;
    for (int i = 0; i < steps; i++) {
        step(&bed);
        most = bed.model.count > most ? bed.model.count : most;
    }
    print_message("# %zu tasks at most, %" PRIu64 " times no memory\n", most, bed.failures);
    assert_true(most > 500 && bed.failures > 50);
    tasks_release(&bed.tasks);
    test_alloc_release(&bed.memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {RUN(tasks_are_those_of_a_plain_array_after_every_step)};
    return TEST_MAIN(tests);
}
