#include "test/engine/twice.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/latch.h"
#include "base/wait.h"
#include "test/lib/event.h"

static const char schema[] =
    "{\"schema\": 1, \"package\": \"t\","
    " \"workspaces\": {\"tenant\": {\"sequences\": {\"invoice\": {\"first\": 1}}}},"
    " \"types\": {\"Invoice\": {\"kind\": \"WDoc\", \"fields\":"
    "   {\"number\": {\"type\": \"int64\", \"sequence\": \"invoice\"}, \"cents\": {\"type\": \"int64\"}}}},"
    " \"commands\": {\"Bill\": {\"records\": [\"Invoice\"]}},"
    " \"entities\": {\"Total\": {\"key\": [\"k\"], \"fields\":"
    "   {\"k\": {\"type\": \"int64\"}, \"n\": {\"type\": \"int64\"}}}},"
    " \"projectors\": {\"count\": {\"sync\": true, \"on\": [\"Bill\"], \"do\":"
    "   [{\"upsert\": \"Total\", \"key\": {\"k\": \"%s\"}, \"set\": {\"n\": \"coalesce(n, 0) + 1\"}}]}}}";

void twice_make(struct twice *t)
{
    *t = (struct twice){.options = {.partitions = 4,
                                    .shards = 2,
                                    .checkpoint_lag_max = 10000,
                                    .wait = 300 * PAWL_SECOND}, /* however busy the machine is */
                        .total_key = "1"};
    t->knobs.checkpoint_age = 20 * PAWL_MILLISECOND;
    t->knobs.checkpoint_rows = 8; /* so that a commit is several transactions */
    test_dir_make(t->base, sizeof t->base);
    snprintf(t->dir, sizeof t->dir, "%s/data", t->base);
}

void twice_remove(struct twice *t)
{
    test_dir_remove(t->base);
}

void twice_open(struct twice *t)
{
    int status = engine_open(t->dir, &t->options, &t->knobs, &t->engine, &t->error);
    if (status != PAWL_OK)
        print_error("%s\n", t->error.text);
    assert_ok(status);
    assert_ok(pawl_request_new(t->engine, &t->request));
}

void twice_begin(struct twice *t)
{
    char text[sizeof schema + 100];
    snprintf(text, sizeof text, schema, t->total_key);
    twice_open(t);
    assert_ok(pawl_schema_apply(t->engine, text, NULL, &t->error));
    for (uint64_t i = 0; i < TWICE_WORKSPACES; i++)
        assert_ok(pawl_workspace_create(t->engine, t->request, i + 1, "t.tenant", NULL, &t->error));
}

void twice_close(struct twice *t)
{
    pawl_request_free(t->request);
    assert_ok(pawl_close(t->engine));
}

int twice_bill(struct twice *t, unsigned n)
{
    pawl_request_begin(t->request, n + 1, "t.Bill");
    pawl_request_record(t->request, 1, "t.Invoice");
    pawl_request_set_int64(t->request, "cents", (int64_t)t->billed[n]);
    int status = pawl_command(t->engine, t->request, NULL, &t->error);
    t->billed[n] += status == PAWL_OK;
    return status;
}

void twice_bill_many(struct twice *t, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_ok(twice_bill(t, i % TWICE_WORKSPACES));
}

#define FLYING (10 * TWICE_WORKSPACES)

/* Each has one workspace, whose answers all come on the same thread. */
struct flyer {
    struct twice *t;
    pawl_request *request;
    unsigned workspace, left;
    struct latch over;
};

static void fly(struct flyer *f);

static void flown(void *arg, pawl_request *request, int status, const pawl_answer *answer,
                  const pawl_error *error)
{
    struct flyer *f = arg;
    if (status != PAWL_OK)
        abort();
    f->t->billed[f->workspace]++;
    if (--f->left == 0)
        latch_set(&f->over);
    else
        fly(f);
}

static void fly(struct flyer *f)
{
    pawl_request_begin(f->request, f->workspace + 1, "t.Bill");
    pawl_request_record(f->request, 1, "t.Invoice");
    pawl_request_set_int64(f->request, "cents", f->left);
    if (pawl_command_async(f->t->engine, f->request, flown, f, NULL) != PAWL_OK)
        abort();
}

void twice_bill_flying(struct twice *t, unsigned count)
{
    static struct flyer flyers[FLYING];
    for (unsigned i = 0; i < FLYING; i++) {
        flyers[i] = (struct flyer){.t = t, .workspace = i % TWICE_WORKSPACES, .left = count / FLYING};
        latch_init(&flyers[i].over);
        assert_ok(pawl_request_new(t->engine, &flyers[i].request));
        fly(&flyers[i]);
    }
    for (unsigned i = 0; i < FLYING; i++) {
        latch_wait(&flyers[i].over);
        pawl_request_free(flyers[i].request);
    }
}

pawl_figures twice_figures(struct twice *t)
{
    pawl_figures figures;
    assert_ok(pawl_figures_get(t->engine, &figures, &t->error));
    return figures;
}

void twice_pause(void)
{
    wait_pause(PAWL_MILLISECOND);
}

pawl_figures twice_wait(struct twice *t, uint64_t lag)
{
    pawl_figures figures = twice_figures(t);
    while (figures.checkpoint_lag > lag || figures.checkpoints_ready < t->options.shards) {
        twice_pause();
        figures = twice_figures(t);
    }
    return figures;
}

static bool count_event(void *arg, const pawl_event *event)
{
    struct twice *t = arg;
    if (event_is(event, "t.Bill"))
        t->billed[event->wsid - 1]--;
    return true;
}

void twice_check(struct twice *t)
{
    struct twice found = *t;
    twice_open(&found);
    for (uint32_t p = 0; p < pawl_partitions(found.engine); p++)
        assert_ok(
            pawl_events_read(found.engine, (uint16_t)p, 1, SIZE_MAX, count_event, &found, NULL, &found.error));
    for (unsigned i = 0; i < TWICE_WORKSPACES; i++)
        assert_int_equal(found.billed[i], 0);
    twice_close(&found);
    pawl_replay_options replay = {.dir = t->dir};
    pawl_state_report report;
    assert_ok(pawl_replay(&replay, &report, &t->error));
    if (report.live.differences)
        print_error("%s\n", report.live.first.text);
    assert_int_equal(report.live.differences, 0);
    assert_int_equal(report.live.behind, 0);
    assert_int_equal(report.live.compared, t->options.partitions);
}
