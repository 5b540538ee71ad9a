/* Becoming the owner of a log that nodes share, while claims are lost and others are about: engine/node/owner.c, over
 * a group0 that this file plays, with as many failures as a test wants. Nothing waits for real: the clock stands at
 * zero, so every pause is over before it begins. */
#include "engine/node/owner.h"

#include "base/error.h"
#include "engine/log/import_state.h"
#include "engine/node/node.h"
#include "test/lib/test.h"

#define THIS       7 /* node IDs */
#define FIRST      8
#define FASTER     9
#define AN_IMPORT  (IMPORT_NODES | 1)
#define WRITES_MAX 8

/* What becomes of a claim or a write; another node may be assigned before it, or an import claim group0. */
struct step {
    int status;
    uint64_t before; /* 0: none */
};

/* Group0's stream, and what will happen to this node's claims and writes, one after the other; after the last step all
 * succeed. */
static struct {
    struct assignment stream[WRITES_MAX];
    size_t count;
    const struct step *claims, *writes;
    size_t claims_left, writes_left, claimed, written;
    uint64_t claimed_on;        /* the assignment that the last claim names */
    struct import_watch import; /* what all claims and entries tell of an import */
} shared;

static pawl_bytes encode(const struct assignment *a, struct arena *arena)
{
    pawl_bytes command;
    assert_ok(group0_assign_encode(a, arena, &command));
    return command;
}

static void assign(uint64_t node)
{
    struct arena arena;
    assert_true(shared.count < WRITES_MAX);
    struct assignment *a = &shared.stream[shared.count++];
    *a = (struct assignment){.node = node, .name_size = 3, .name = "web"};
    arena_init(&arena, NULL, 1024);
    import_entry(&shared.import, node, encode(a, &arena));
    arena_release(&arena);
}

static int take_step(const struct step **steps, size_t *left)
{
    if (*left == 0)
        return PAWL_OK;
    const struct step *step = (*steps)++;
    (*left)--;
    if (import_is_node(step->before))
        import_claimed(&shared.import, step->before);
    else if (step->before)
        assign(step->before);
    return step->status;
}

/* --- what owner.c calls --- */

static void apply(pawl_engine *e, struct assignment *a)
{
    struct arena arena;
    enum group0_outcome outcome;
    arena_init(&arena, NULL, 1024);
    assert_ok(group0_apply(e->group0, (uint64_t)(a - shared.stream) + 1, encode(a, &arena), &outcome, NULL));
    arena_release(&arena);
}

int engine_group0_read(pawl_engine *e, pawl_error *error)
{
    for (size_t i = group0_position(e->group0); i < shared.count; i++)
        apply(e, &shared.stream[i]);
    return PAWL_OK;
}

int engine_group0_claim(pawl_engine *e, pawl_error *error)
{
    shared.claimed++;
    int status = take_step(&shared.claims, &shared.claims_left);
    if (status != PAWL_OK)
        return error_set(error, status, "the claim was lost");
    shared.claimed_on = e->assignment;
    import_claimed(&shared.import, e->file.node);
    return engine_group0_read(e, error);
}

int engine_group0_write(pawl_engine *e, pawl_bytes command, pawl_error *error)
{
    shared.written++;
    int status = take_step(&shared.writes, &shared.writes_left);
    if (status != PAWL_OK)
        return error_set(error, status, "the assignment was lost");
    assign(e->file.node);
    return engine_group0_read(e, error);
}

int import_check(pawl_log *log, const char *url, pawl_error *error)
{
    if (shared.import.state == IMPORT_UNDER_WAY)
        return error_set(error, PAWL_EBUSY, "an import is under way");
    return PAWL_OK;
}

uint16_t name_directory(const char *dir, char name[ASSIGNMENT_NAME_MAX + 1])
{
    name[0] = 'x';
    return 1;
}

void shard_give_up_soon(struct shard *shard)
{
    abort(); /* nothing is lost while it is opened */
}

static pawl_instant zero(pawl_env *env)
{
    return (pawl_instant){0};
}

static pawl_wall wall_zero(pawl_env *env)
{
    return (pawl_wall){0};
}

static uint64_t no_chance(pawl_env *env)
{
    return 0;
}

/* --- tests --- */

/* Open the log of node FIRST, or nobody's. */
static int open_with(bool take_over, const struct step *claims, size_t claim_count, const struct step *writes,
                     size_t write_count, pawl_error *error)
{
    static const struct pawl_env_ops ops = {.now = zero, .wall_now = wall_zero, .random = no_chance};
    static pawl_engine engine;
    pawl_env env = {.ops = &ops};
    engine = (pawl_engine){.env = &env, .file.node = THIS, .options.take_over = take_over};
    shared.claims = claims;
    shared.claims_left = claim_count;
    shared.writes = writes;
    shared.writes_left = write_count;
    *error = (pawl_error){0};
    assert_ok(group0_new(NULL, &engine.group0));
    int status = owner_open(&engine, error);
    if (status == PAWL_OK) {
        assert_int_equal(shared.stream[shared.count - 1].node, THIS);
        assert_int_equal(engine.assignment, shared.count);
        assert_int_equal(shared.claimed_on, shared.count);
    }
    group0_free(engine.group0);
    return status;
}

#define OPEN(take_over, claims, writes, error)                                                                 \
    open_with(take_over, claims, sizeof claims / sizeof claims[0], writes, sizeof writes / sizeof writes[0],   \
              error)

static const struct step none[1] = {{PAWL_OK, 0}};

static void begin(uint64_t owner)
{
    memset(&shared, 0, sizeof shared);
    if (owner)
        assign(owner);
}

TEST(a_log_of_nobody_is_assigned_and_claimed_on_the_assignment)
{
    pawl_error error;
    begin(0);
    assert_ok(OPEN(false, none, none, &error));
    assert_int_equal(shared.written, 1);
    assert_int_equal(shared.claimed, 2);
    assert_ok(OPEN(false, none, none, &error)); /* and then it is its own */
    assert_int_equal(shared.written, 1);
}

TEST(a_log_of_another_is_refused_and_not_disturbed)
{
    pawl_error error;
    begin(FIRST);
    assert_status(OPEN(false, none, none, &error), PAWL_EFENCED);
    assert_contains(error.text, "belongs to node web (ID 0000000000000008");
    assert_int_equal(shared.claimed, 0);
    assert_int_equal(shared.count, 1);
}

TEST(a_take_over_goes_on_when_its_claim_was_lost)
{
    static const int statuses[] = {PAWL_EUNKNOWN, PAWL_EFENCED};
    for (size_t i = 0; i < 2; i++) {
        const struct step claims[] = {{statuses[i], 0}, {statuses[i], 0}, {PAWL_OK, 0}, {statuses[i], 0}};
        pawl_error error;
        begin(FIRST);
        int status = OPEN(true, claims, none, &error);
        if (status != PAWL_OK)
            fail_msg("%s", error.text);
        assert_int_equal(shared.written, 1); /* the claim on it was lost, and made again */
        assert_int_equal(shared.claimed, 5);
    }
}

TEST(a_take_over_goes_on_when_its_assignment_was_lost_or_was_written_after_all)
{
    static const struct step lost[] = {{PAWL_EUNKNOWN, 0}}, written[] = {{PAWL_EUNKNOWN, THIS}};
    pawl_error error;
    begin(FIRST);
    assert_ok(OPEN(true, none, lost, &error));
    assert_int_equal(shared.written, 2);
    begin(FIRST);
    assert_ok(OPEN(true, none, written, &error));
    assert_int_equal(shared.written, 1);
    assert_int_equal(shared.count, 2);
}

TEST(a_take_over_leaves_the_log_to_a_node_that_was_faster)
{
    static const struct step before[] = {{PAWL_EFENCED, FASTER}}, between[] = {{PAWL_OK, FASTER}};
    pawl_error error;
    begin(FIRST);
    assert_status(OPEN(true, before, none, &error), PAWL_EFENCED);
    assert_contains(error.text, "(ID 0000000000000009");
    assert_int_equal(shared.claimed, 1);
    begin(FIRST);
    assert_status(OPEN(true, between, none, &error), PAWL_EFENCED); /* its claim counts, and is not used */
    assert_contains(error.text, "(ID 0000000000000009");
    assert_int_equal(shared.written, 0);
    begin(FIRST);
    assert_status(OPEN(true, none, before, &error), PAWL_EFENCED);
    assert_int_equal(shared.count, 2);
    begin(0);
    assert_status(OPEN(true, before, none, &error), PAWL_EFENCED); /* nobody's was what it was told to take */
}

/* Whatever an import and a node do at the same moment, one of them has the log, and can open it again. */
TEST(of_an_import_and_a_first_opening_one_goes_on)
{
    static const struct step at_first_claim[] = {{PAWL_OK, AN_IMPORT}}, fenced[] = {{PAWL_EFENCED, AN_IMPORT}},
                             behind_the_assignment[] = {{PAWL_OK, 0}, {PAWL_OK, AN_IMPORT}};
    pawl_error error;
    begin(0);
    assert_status(OPEN(false, at_first_claim, none, &error), PAWL_EBUSY);
    assert_int_equal(shared.written, 0);
    begin(0);
    assert_status(OPEN(false, none, fenced, &error), PAWL_EBUSY); /* its claim came before the assignment */
    assert_int_equal(shared.count, 0);
    begin(0);
    assert_ok(OPEN(false, behind_the_assignment, none, &error)); /* which that import finds, and is refused */
    assert_ok(OPEN(false, none, none, &error));
    assert_int_equal(shared.count, 1);
}

TEST(who_never_gets_it_says_why)
{
    static const struct step lost[] = {{PAWL_EUNKNOWN, 0}, {PAWL_EUNKNOWN, 0}, {PAWL_EUNKNOWN, 0},
                                       {PAWL_EUNKNOWN, 0}, {PAWL_EUNKNOWN, 0}, {PAWL_EUNKNOWN, 0},
                                       {PAWL_EUNKNOWN, 0}, {PAWL_EUNKNOWN, 0}};
    static const struct step gone[] = {{PAWL_EIO, 0}};
    pawl_error error;
    begin(FIRST);
    assert_status(OPEN(true, lost, none, &error), PAWL_EUNKNOWN);
    assert_contains(error.text, "the claim was lost");
    assert_int_equal(shared.claimed, 8);
    begin(FIRST);
    assert_status(OPEN(true, gone, none, &error), PAWL_EIO); /* what does not pass is not tried again */
    assert_int_equal(shared.claimed, 1);
    assert_int_equal(shared.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_log_of_nobody_is_assigned_and_claimed_on_the_assignment),
        RUN(a_log_of_another_is_refused_and_not_disturbed),
        RUN(a_take_over_goes_on_when_its_claim_was_lost),
        RUN(a_take_over_goes_on_when_its_assignment_was_lost_or_was_written_after_all),
        RUN(a_take_over_leaves_the_log_to_a_node_that_was_faster),
        RUN(of_an_import_and_a_first_opening_one_goes_on),
        RUN(who_never_gets_it_says_why),
    };
    return TEST_MAIN(tests);
}
