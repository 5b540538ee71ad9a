/* test_views_kill.c: a process is killed in every phase of building and changing views; and a state is put back that is
 * older than a finished build. */
#include <stdatomic.h>
#include <sys/mman.h>

#include "test/crash/views_scene.h"
#include "test/lib/child.h"
#include "test/lib/copy.h"

/* --- kill -9 --- */

/* What the child has built, and said so. */
static struct {
    _Atomic uint64_t scanned;
    _Atomic int left;
} * shared;

static const char *_Atomic die_step;
static int die_kind; /* of the command that the coordinator has written; 0: of any */

static uint64_t scanned_rows(struct view_bed *b)
{
    return view_bed_status(b, "t.v").rows_done;
}

/* From the committed states: this may be any thread. */
static uint64_t sum_scanned(pawl_engine *e)
{
    uint64_t sum = 0;
    const struct view_list *list = atomic_load(&e->view_list);
    for (uint32_t i = 0; i < e->file.shards && list->count > 0; i++) {
        pawl_reader *snapshot;
        if (pawl_store_snapshot(e->shards[i].store, &snapshot) != PAWL_OK)
            _exit(3);
        for (size_t p = 0; p < e->shards[i].partitions.count; p++) {
            struct view_state state;
            view_state_init(&state, NULL, partition_set_at(&e->shards[i].partitions, p),
                            view_table(list->entries[0].view->number, 0), 0);
            if (view_state_read(&state, snapshot, NULL) == PAWL_OK)
                sum += state.scanned;
            view_state_release(&state);
        }
        pawl_store_release(e->shards[i].store, snapshot);
    }
    return sum;
}

static bool is_about(const char *what)
{
    pawl_bytes command = bed.engine->views->command;
    return die_kind == 0 || !strstr(what, "a command of the coordinator")
           || ((const uint8_t *)command.data)[1] == die_kind;
}

static void die_at_step(void *arg, const char *what)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    (void)arg;
    if (!bed.engine)
        return;
    pthread_mutex_lock(&lock);
    if (strcmp(what, "a slice of a view was built") == 0)
        atomic_store(&shared->scanned, sum_scanned(bed.engine));
    if (strcmp(what, die_step) == 0 && is_about(what) && atomic_fetch_sub(&shared->left, 1) == 1)
        _exit(55);
    pthread_mutex_unlock(&lock);
}

static int build_and_die(void)
{
    bed.knobs.step = die_at_step;
    view_bed_open(&bed);
    CHECK(view_bed_create(&bed, "t.v", "t.Invoice", "customer", "number", NULL, false) == PAWL_OK);
    CHECK(pawl_tablets_split(bed.engine, &bed.error) == PAWL_OK);
    CHECK(pawl_view_wait(bed.engine, "t.v", VIEW_PATIENCE, &bed.error) == PAWL_OK);
    view_bed_close(&bed);
    return 0;
}

static void share(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
}

struct counting {
    struct shard *shard;
    uint64_t rows;
};

static void count_worker(void *arg)
{
    struct counting *c = arg;
    c->rows += worker_figures(c->shard->building->worker)->rows;
}

TEST(a_process_is_killed_in_every_phase_of_a_build_and_redoes_one_slice_a_shard_at_most)
{
    uint64_t dice = test_seed(43);
    share();
    unsigned deaths = 0;
    for (size_t i = 0; i < 3 * STEPS; i++) {
        begin();
        die_step = steps[i / 3];
        die_kind = i % 3 == 1 && strstr(die_step, "a command") ? GROUP0_FINISHED : 0;
        bool first = i % 3 == 0 || die_kind != 0;
        atomic_store(&shared->scanned, 0);
        atomic_store(&shared->left, first ? 1 : 1 + (int)test_below(&dice, i / 3 < 2 ? 20 : 4));
        int how = in_child(build_and_die);
        assert_true(how == 55 || (how == 0 && !first)); /* each step is come by once at least */
        deaths += how == 55;
        bed.knobs.step = NULL;
        view_bed_open(&bed);
        view_bed_check(&bed);
        view_bed_wait(&bed, "t.v");
        struct counting c = {0};
        for (uint32_t s = 0; s < SHARDS; s++) {
            c.shard = &bed.engine->shards[s];
            assert_ok(pawl_env_call(bed.engine->env, s, count_worker, &c));
        }
        uint64_t before = atomic_load(&shared->scanned);
        assert_int_equal(scanned_rows(&bed), ROWS);
        assert_true(c.rows <= ROWS - before);
        assert_true(c.rows + before + (uint64_t)SHARDS * SLICE >= ROWS);
        finish_and_check(&bed);
        end();
    }
    print_message("# killed %u times\n", deaths);
    assert_true(deaths > STEPS);
    munmap(shared, sizeof *shared);
}

static const char *die_change;

static int change_and_die(void)
{
    bed.knobs.step = die_at_step;
    die_step = "";
    view_bed_open(&bed);
    create_views(&bed);
    wait_for_views(&bed);
    die_step = die_change;
    change_views(&bed);
    view_bed_close(&bed);
    return 0;
}

TEST(a_process_is_killed_while_a_view_is_rebuilt_and_exchanged_and_another_is_dropped)
{
    uint64_t dice = test_seed(46);
    unsigned deaths = 0;
    share();
    die_kind = 0;
    for (size_t i = 0; i < 3 * CHANGES; i++) {
        begin();
        die_change = changes[i / 3];
        bool first = i % 3 == 0;
        atomic_store(&shared->left, first ? 1 : 1 + (int)test_below(&dice, 8));
        int how = in_child(change_and_die);
        assert_true(how == 55 || (how == 0 && !first));
        deaths += how == 55;
        bed.knobs.step = NULL;
        view_bed_open(&bed);
        view_bed_check(&bed);
        assert_true(are_complete(&bed, false));
        finish_and_check(&bed);
        end();
    }
    print_message("# killed %u times\n", deaths);
    assert_true(deaths > CHANGES);
    munmap(shared, sizeof *shared);
}

/* --- states that are older than a finished build --- */

static void copy_tree(const char *from, const char *to)
{
    if (access(to, F_OK) == 0)
        test_dir_remove(to);
    test_dir_copy(from, to);
}

TEST(a_unique_view_that_is_called_built_binds_before_the_first_command_if_the_store_lacks_it)
{
    char old[400], checkpoint[400], live[400];
    begin();
    snprintf(old, sizeof old, "%s/old", bed.dir);
    snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint", bed.path);
    view_bed_open(&bed);
    assert_bed_ok(&bed, view_bed_bill(&bed, bed.request, 1, "solo", 200000, NULL, &bed.error));
    view_bed_close(&bed);
    copy_tree(checkpoint, old);
    view_bed_open(&bed);
    assert_bed_ok(&bed, view_bed_create(&bed, "t.u", "t.Invoice", "customer", NULL, "cents > 100000", true));
    assert_bed_ok(&bed, view_bed_create(&bed, "t.v", "t.Invoice", "customer", NULL, NULL, false));
    view_bed_wait(&bed, "t.u");
    view_bed_wait(&bed, "t.v");
    assert_bed_ok(&bed, view_bed_bill(&bed, bed.request, 2, "solo", 200000, NULL, &bed.error));
    assert_bed_ok(&bed, pawl_view_pause(bed.engine, NULL, true, &bed.error)); /* nobody builds */
    view_bed_close(&bed);
    copy_tree(old, checkpoint);
    for (unsigned i = 0; i < SHARDS; i++) {
        snprintf(live, sizeof live, "%s/state/%u", bed.path, i);
        test_dir_remove(live);
    }

    view_bed_open(&bed);
    assert_int_equal(view_bed_bill(&bed, bed.request, 1, "solo", 300000, NULL, &bed.error), PAWL_EEXISTS);
    assert_int_equal(view_bed_bill(&bed, bed.request, 2, "solo", 300000, NULL, &bed.error), PAWL_EEXISTS);
    assert_contains(bed.error.text, "t.u");
    uint32_t table = view_bed_status(&bed, "t.u").table, other = view_bed_status(&bed, "t.v").table;
    bool lacks = false;
    for (uint32_t i = 0; i < SHARDS; i++) {
        struct view_tables *t = &bed.engine->shards[i].views;
        for (size_t k = 0; k < t->set.count; k++) {
            assert_true(view_tables_find(t, table)->states[k].state.complete);
            lacks = lacks || !view_tables_find(t, other)->states[k].state.complete;
        }
    }
    assert_true(lacks); /* the other one waits for new tasks */
    while (view_bed_status(&bed, "t.v").tasks_left == 0)
        wait_pause(PAWL_MILLISECOND);
    view_bed_check(&bed);
    assert_bed_ok(&bed, pawl_view_pause(bed.engine, NULL, false, &bed.error));
    finish_and_check(&bed);
    end();
}

TEST(a_backup_that_was_taken_during_a_build_is_built_to_its_end)
{
    char backup[400];
    struct view_bed restored;
    begin();
    view_bed_open(&bed);
    assert_bed_ok(&bed, pawl_view_throttle(bed.engine, 500, &bed.error));
    create_views(&bed);
    while (view_bed_status(&bed, "t.v").rows_done == 0)
        wait_pause(PAWL_MILLISECOND);
    view_bed_close(&bed); /* this process cannot open its stores twice */
    snprintf(backup, sizeof backup, "%s/backup", bed.dir);
    pawl_backup_options options = {.dir = bed.path, .to = backup};
    pawl_backup_report report;
    assert_bed_ok(&bed, pawl_backup(&options, &report, &bed.error));
    view_bed_open(&bed);
    assert_bed_ok(&bed, pawl_view_throttle(bed.engine, 0, &bed.error));
    wait_for_views(&bed);
    finish_and_check(&bed);

    restored = bed;
    snprintf(restored.path, sizeof restored.path, "%.200s/restored", bed.dir);
    options = (pawl_backup_options){.dir = backup, .to = restored.path};
    assert_bed_ok(&restored, pawl_restore(&options, &report, &restored.error));
    view_bed_open(&restored);
    view_bed_check(&restored);
    assert_bed_ok(&restored, pawl_view_throttle(restored.engine, 0, &restored.error));
    finish_and_check(&restored);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_process_is_killed_in_every_phase_of_a_build_and_redoes_one_slice_a_shard_at_most),
        RUN(a_process_is_killed_while_a_view_is_rebuilt_and_exchanged_and_another_is_dropped),
        RUN(a_unique_view_that_is_called_built_binds_before_the_first_command_if_the_store_lacks_it),
        RUN(a_backup_that_was_taken_during_a_build_is_built_to_its_end),
    };
    return TEST_MAIN(tests);
}
