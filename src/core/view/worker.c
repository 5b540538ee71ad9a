#include "core/view/worker.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"

#define CALLERS_MAX      8
#define SLICE_ROWS_FIRST 256u /* these two: of one view */
#define SLICE_ROWS_MIN   16u
#define BUSY_REST        3 /* times as long as a slice took */
#define ARENA_CHUNK      ((size_t)16 * 1024)

struct caller {
    pawl_bus_request *request;
    uint64_t term;
};

struct worker {
    struct worker_options options;
    uint64_t term; /* the highest that was seen */

    struct task *tasks; /* the batch; NULL: idle */
    size_t count;
    size_t made;                        /* tasks when it was begun: the size of the array */
    struct caller callers[CALLERS_MAX]; /* oldest first */
    size_t caller_count;

    pawl_timer timer; /* the next slice */
    uint32_t rows_next;
    pawl_instant slice_at; /* when the last slice began, of this batch or one before */
    pawl_duration took;    /* the last slice */
    uint64_t slice_rows;
    pawl_instant rate_from;
    uint64_t rate_rows;

    struct arena arena; /* for one call or answer */
    struct worker_figures figures;
};

const struct worker_figures *worker_figures(const struct worker *w)
{
    return &w->figures;
}

static pawl_instant now_of(const struct worker *w)
{
    return pawl_env_now(w->options.env);
}

static void answer(struct worker *w, pawl_bus_request *request, int status, pawl_bytes reply)
{
    pawl_bus_answer(w->options.bus, request, status, reply);
}

static void refuse(struct worker *w, pawl_bus_request *request, int status)
{
    answer(w, request, status, (pawl_bytes){0});
}

/* The batch. */

static void batch_end(struct worker *w)
{
    pawl_env_cancel(w->options.env, &w->timer);
    mem_free(w->options.allocator, w->tasks, w->made * sizeof *w->tasks);
    w->tasks = NULL;
    w->count = w->made = 0;
    w->figures.base = 0;
    w->figures.tablet = 0;
    w->figures.rate = 0;
}

/* Whether group0 has the task, not aborted. */
static bool is_alive(struct worker *w, uint64_t id, struct task *ret_task)
{
    struct task task;
    if (w->options.ops->task(w->options.ctx, id, &task) != PAWL_OK || task.aborted)
        return false;
    *ret_task = task;
    return true;
}

/* What became of a task; false: it is still to be built, and ret_task is set. (X2) */
static bool settle(struct worker *w, uint64_t id, struct work_result *ret_result, struct task *ret_task)
{
    const struct worker_ops *ops = w->options.ops;
    struct work_result result = {.id = id, .outcome = WORK_GONE};
    struct task task;
    if (is_alive(w, id, &task)) {
        if (!ops->covers(w->options.ctx, &task)) {
            *ret_task = task;
            return false;
        }
        pawl_error why = {0};
        result.outcome = ops->judge(w->options.ctx, &task, &why);
        size_t size = strnlen(why.text, WORK_WORDS_MAX);
        if (result.outcome == WORK_FAILED)
            result.words = arena_copy(&w->arena, (pawl_bytes){why.text, size});
        if (!result.words.data)
            result.words.size = 0;
    }
    *ret_result = result;
    return true;
}

static void answer_results(struct worker *w, pawl_bus_request *request, const struct work_result *results,
                           size_t count)
{
    pawl_bytes reply;
    int status = work_reply_encode(results, count, &w->arena, &reply);
    if (status == PAWL_OK)
        answer(w, request, PAWL_OK, reply);
    else
        refuse(w, request, status);
}

/* A caller is told about each task that it named. One that is still to be built is left out. */
static void answer_caller(struct worker *w, pawl_bus_request *request)
{
    uint64_t term, *ids;
    size_t count, known = 0;
    struct task task;
    arena_reset(&w->arena);
    int status = work_decode(request->body, &w->arena, &term, &ids, &count);
    struct work_result *results = NULL;
    if (status == PAWL_OK)
        results = arena_take(&w->arena, count * sizeof *results);
    if (!results) {
        refuse(w, request, status == PAWL_OK ? PAWL_ENOMEM : status);
        return;
    }
    for (size_t i = 0; i < count; i++)
        known += settle(w, ids[i], &results[known], &task);
    answer_results(w, request, results, known);
}

/* X1. The batch stays: the new term may ask for the same. */
static void refuse_old_callers(struct worker *w)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->caller_count; i++) {
        if (w->callers[i].term == w->term) {
            w->callers[kept++] = w->callers[i];
            continue;
        }
        w->figures.refused++;
        refuse(w, w->callers[i].request, PAWL_EFENCED);
    }
    w->caller_count = kept;
}

/* The batch ends, and its callers are told. words: why, of a failure. */
static void batch_answer(struct worker *w, int status, const char *words)
{
    refuse_old_callers(w);
    struct caller callers[CALLERS_MAX];
    size_t count = w->caller_count;
    memcpy(callers, w->callers, sizeof callers);
    w->caller_count = 0;
    batch_end(w);
    for (size_t i = 0; i < count; i++) {
        if (status == PAWL_OK)
            answer_caller(w, callers[i].request);
        else
            answer(w, callers[i].request, status, (pawl_bytes){words, strlen(words)});
    }
}

/* X3. */
static void batch_refresh(struct worker *w)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->count; i++)
        if (is_alive(w, w->tasks[i].id, &w->tasks[kept]))
            kept++;
    w->count = kept;
}

/* The next slice comes when the shard has done its other work, and not before the throttle allows it. A shard whose
 * thread never rests takes the processor from those whom its commands need: the log's writer, and the callers. */
static void schedule(struct worker *w)
{
    uint64_t bound = w->options.ops->throttle(w->options.ctx);
    pawl_duration wait = w->options.ops->busy && w->options.ops->busy(w->options.ctx) ? BUSY_REST * w->took : 0;
    if (bound > 0) {
        uint64_t whole = w->slice_rows / bound * PAWL_SECOND;
        uint64_t due = w->slice_at.ns + whole + w->slice_rows % bound * PAWL_SECOND / bound;
        uint64_t now = now_of(w).ns;
        pawl_duration allowed = due > now ? due - now : 0;
        wait = allowed > wait ? allowed : wait;
    }
    pawl_env_after(w->options.env, &w->timer, wait);
}

/* A base row becomes a row of each view: so many views get fewer base rows in the same time. */
static uint32_t rows_of_all(const struct worker *w, uint32_t rows)
{
    return rows > w->count ? rows / (uint32_t)w->count : 1;
}

/* Half to twice as many rows, so that the next slice takes slice_time. */
static void resize_slice(struct worker *w, uint32_t asked, uint64_t scanned, pawl_duration took)
{
    uint64_t fits = took > 0 ? scanned * w->options.slice_time / took : UINT64_MAX;
    uint64_t rows = fits < asked / 2 ? asked / 2 : fits > (uint64_t)asked * 2 ? (uint64_t)asked * 2 : fits;
    if (scanned < asked && rows > asked) /* the tablet's end says nothing about more rows */
        rows = asked;
    uint32_t least = rows_of_all(w, SLICE_ROWS_MIN);
    rows = rows > least ? rows : least;
    w->rows_next = rows < w->options.slice_rows_max ? (uint32_t)rows : w->options.slice_rows_max;
}

/* A first slice takes microseconds, and tells nothing about a rate that is bounded. */
static void count_rate(struct worker *w, pawl_instant now, uint64_t rows, uint64_t bound)
{
    w->rate_rows += rows;
    pawl_duration passed = now.ns - w->rate_from.ns;
    if (passed > 0)
        w->figures.rate = (double)w->rate_rows * (double)PAWL_SECOND / (double)passed;
    if (bound > 0 && w->figures.rate > (double)bound)
        w->figures.rate = (double)bound;
    if (passed < PAWL_SECOND)
        return;
    w->rate_from = now;
    w->rate_rows = 0;
}

static void slice(struct worker *w)
{
    struct slice_report report = {0};
    pawl_error error = {0};
    uint64_t bound = w->options.ops->throttle(w->options.ctx);
    uint32_t rows = bound > 0 && bound < w->rows_next ? (uint32_t)bound : w->rows_next;
    w->slice_at = now_of(w);
    int status = w->options.ops->slice(w->options.ctx, w->tasks, w->count, rows, &report, &error);
    pawl_instant now = now_of(w);
    w->slice_rows = report.rows;
    w->took = now.ns - w->slice_at.ns;
    if (status != PAWL_OK) {
        if (error.code == PAWL_OK)
            error_set(&error, status, "%s", pawl_status_text(status));
        w->figures.error = error;
        batch_answer(w, status, error.text);
        return;
    }
    w->figures.error.code = PAWL_OK;
    w->figures.slices++;
    w->figures.rows += report.rows;
    count_rate(w, now, report.rows, bound);
    if (rows == w->rows_next)
        resize_slice(w, rows, report.rows, w->took);
    if (report.covered)
        batch_answer(w, PAWL_OK, NULL);
    else
        schedule(w);
}

static void turn(pawl_timer *timer)
{
    struct worker *w = heap_entry(timer, struct worker, timer);
    batch_refresh(w);
    if (w->count == 0)
        batch_answer(w, PAWL_OK, NULL);
    else
        slice(w);
}

void worker_changed(struct worker *w)
{
    if (!w->tasks)
        return;
    batch_refresh(w);
    if (w->count == 0)
        batch_answer(w, PAWL_OK, NULL);
    else
        schedule(w);
}

/* Callers. */

static void caller_cancelled(pawl_bus_request *request)
{
    struct worker *w = request->arg;
    size_t kept = 0;
    for (size_t i = 0; i < w->caller_count; i++)
        if (w->callers[i].request != request)
            w->callers[kept++] = w->callers[i];
    w->caller_count = kept;
    if (kept == 0) /* X4 */
        batch_end(w);
}

/* One that asks again and again without having heard the answers takes the place of its own oldest question. */
static void caller_add(struct worker *w, pawl_bus_request *request)
{
    if (w->caller_count == CALLERS_MAX) {
        refuse(w, w->callers[0].request, PAWL_EBUSY);
        w->caller_count--;
        memmove(w->callers, w->callers + 1, w->caller_count * sizeof w->callers[0]);
    }
    request->arg = w;
    request->cancelled = caller_cancelled;
    w->callers[w->caller_count++] = (struct caller){request, w->term};
}

/* X1. */
static bool accept_term(struct worker *w, pawl_bus_request *request, uint64_t term)
{
    if (term < w->term) {
        w->figures.refused++;
        refuse(w, request, PAWL_EFENCED);
        return false;
    }
    w->term = term;
    return true;
}

static bool batch_has(const struct worker *w, uint64_t id)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->tasks[i].id == id)
            return true;
    return false;
}

static bool batch_has_all(const struct worker *w, const struct task *tasks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!batch_has(w, tasks[i].id))
            return false;
    return true;
}

static bool fit_together(const struct task *tasks, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (tasks[i].type != tasks[0].type || tasks[i].base != tasks[0].base
            || tasks[i].tablet != tasks[0].tablet)
            return false;
    return true;
}

static int batch_begin(struct worker *w, const struct task *tasks, size_t count)
{
    w->tasks = mem_new(w->options.allocator, count, sizeof *tasks);
    if (!w->tasks)
        return PAWL_ENOMEM;
    memcpy(w->tasks, tasks, count * sizeof *tasks);
    w->count = w->made = count;
    uint32_t rows =
        rows_of_all(w, SLICE_ROWS_FIRST); /* what rows of other views took tells nothing about these */
    w->rows_next = rows < w->options.slice_rows_max ? rows : w->options.slice_rows_max;
    w->rate_from = now_of(w);
    w->rate_rows = 0;
    w->figures.batches++;
    w->figures.base = tasks[0].base;
    w->figures.tablet = tasks[0].tablet;
    schedule(w);
    return PAWL_OK;
}

/* Have these tasks built, and answer then. */
static void build(struct worker *w, pawl_bus_request *request, const struct task *tasks, size_t count)
{
    if (w->tasks && !batch_has_all(w, tasks, count)) {
        if (w->caller_count > 0) { /* X4 */
            refuse(w, request, PAWL_EBUSY);
            return;
        }
        batch_end(w);
    }
    int status = PAWL_OK;
    if (w->tasks)
        w->figures.attached++;
    else
        status = fit_together(tasks, count) ? batch_begin(w, tasks, count) : PAWL_EINVAL;
    if (status == PAWL_OK)
        caller_add(w, request);
    else
        refuse(w, request, status);
}

static void on_work(void *arg, pawl_bus_request *request)
{
    struct worker *w = arg;
    uint64_t term, *ids;
    size_t count, known = 0, open = 0, over = 0;
    arena_reset(&w->arena);
    int status = work_decode(request->body, &w->arena, &term, &ids, &count);
    if (status != PAWL_OK) {
        refuse(w, request, status);
        return;
    }
    if (!accept_term(w, request, term))
        return;
    refuse_old_callers(w);
    struct work_result *results = arena_take(&w->arena, count * sizeof *results);
    struct task *tasks = arena_take(&w->arena, count * sizeof *tasks);
    if (!results || !tasks) {
        refuse(w, request, PAWL_ENOMEM);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (!settle(w, ids[i], &results[known], &tasks[open])) {
            open++;
            continue;
        }
        over += results[known].outcome == WORK_FINISHED || results[known].outcome == WORK_FAILED;
        known++;
    }
    if (open == 0 || over > 0) /* what is over is told at once; for the rest it is called again */
        answer_results(w, request, results, known);
    else
        build(w, request, tasks, open);
    if (w->tasks && w->caller_count == 0) /* a new term did not ask for this batch */
        batch_end(w);
}

static void on_uncovered(void *arg, pawl_bus_request *request)
{
    struct worker *w = arg;
    uint64_t term;
    struct uncovered_reply uncovered;
    pawl_bytes reply;
    arena_reset(&w->arena);
    int status = uncovered_decode(request->body, &term);
    if (status == PAWL_OK && !accept_term(w, request, term))
        return;
    if (status == PAWL_OK)
        status = w->options.ops->uncovered(w->options.ctx, &w->arena, &uncovered);
    if (status == PAWL_OK)
        status = uncovered_reply_encode(&uncovered, &w->arena, &reply);
    if (status == PAWL_OK)
        answer(w, request, PAWL_OK, reply);
    else
        refuse(w, request, status);
}

int worker_new(const struct worker_options *options, struct worker **ret_worker)
{
    struct worker *w = mem_new(options->allocator, 1, sizeof *w);
    if (!w)
        return PAWL_ENOMEM;
    w->options = *options;
    w->options.slice_time = options->slice_time ? options->slice_time : 500 * PAWL_MICROSECOND;
    w->options.slice_rows_max = options->slice_rows_max ? options->slice_rows_max : 8192;
    w->timer.fn = turn;
    arena_init(&w->arena, options->allocator, ARENA_CHUNK);
    int status = pawl_bus_serve(options->bus, options->shard, VERB_WORK, on_work, w);
    if (status == PAWL_OK)
        status = pawl_bus_serve(options->bus, options->shard, VERB_UNCOVERED, on_uncovered, w);
    if (status != PAWL_OK) {
        worker_free(w);
        return status;
    }
    *ret_worker = w;
    return PAWL_OK;
}

void worker_free(struct worker *w)
{
    if (!w)
        return;
    (void)pawl_bus_serve(w->options.bus, w->options.shard, VERB_WORK, NULL, NULL);
    (void)pawl_bus_serve(w->options.bus, w->options.shard, VERB_UNCOVERED, NULL, NULL);
    w->caller_count = 0;
    batch_end(w);
    arena_release(&w->arena);
    mem_free(w->options.allocator, w, sizeof *w);
}
