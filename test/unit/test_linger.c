#include "test/lib/test.h"

#include "adapter/uv/linger.h"

/* The shard waits so long for mail, so many times. Returns when the last wait ended. */
static uint64_t wait_for(struct uv_linger *l, uint64_t now, uint64_t duration, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        (void)linger_begin(l, now);
        now += duration;
        linger_end(l, now);
    }
    return now;
}

TEST(a_shard_that_has_not_waited_yet_stays_awake)
{
    struct uv_linger l = {0};
    assert_int_equal(linger_begin(&l, 1000), 1000 + LINGER);
}

TEST(a_shard_stays_awake_as_long_as_its_waits_are_short)
{
    struct uv_linger l = {0};
    uint64_t now = wait_for(&l, 1000, LINGER / 2, 1000);
    assert_int_equal(linger_begin(&l, now), now + LINGER);
}

TEST(a_shard_sleeps_at_once_after_several_long_waits_in_a_row)
{
    struct uv_linger l = {0};
    uint64_t now = wait_for(&l, 1000, LINGER_WORTH + 1, LINGER_VAIN_MAX - 1);
    assert_int_equal(linger_begin(&l, now), now + LINGER);
    linger_end(&l, now += LINGER_WORTH + 1);
    assert_int_equal(linger_begin(&l, now), now);
    now = wait_for(&l, now, LINGER_WORTH + 1, 1000);
    assert_int_equal(linger_begin(&l, now), now);
}

TEST(one_short_wait_makes_it_stay_awake_again)
{
    struct uv_linger l = {0};
    uint64_t now = wait_for(&l, 1000, LINGER_WORTH + 1, 1000);
    now = wait_for(&l, now, LINGER_WORTH, 1); /* it slept, and it took a while to wake it */
    assert_int_equal(linger_begin(&l, now), now + LINGER);
    now = wait_for(&l, now, LINGER_WORTH + 1, LINGER_VAIN_MAX - 1);
    assert_int_equal(linger_begin(&l, now), now + LINGER);
}

TEST(mail_for_which_the_shard_did_not_wait_says_nothing)
{
    struct uv_linger l = {0};
    uint64_t now = wait_for(&l, 1000, LINGER_WORTH + 1, LINGER_VAIN_MAX);
    linger_end(&l, now + 1);
    assert_int_equal(linger_begin(&l, now + 2), now + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_shard_that_has_not_waited_yet_stays_awake),
        RUN(a_shard_stays_awake_as_long_as_its_waits_are_short),
        RUN(a_shard_sleeps_at_once_after_several_long_waits_in_a_row),
        RUN(one_short_wait_makes_it_stay_awake_again),
        RUN(mail_for_which_the_shard_did_not_wait_says_nothing),
    };
    return TEST_MAIN(tests);
}
