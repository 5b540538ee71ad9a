/* test/lib/test.h: what every test file starts with.
 *
 * A test is a static function named as a sentence, listed in its file's main:
 *
 *     TEST(refuses_a_second_writer) { ... assert_int_equal(...); }
 *
 *     int main(void)
 *     {
 *         const struct CMUnitTest tests[] = {RUN(refuses_a_second_writer)};
 *         return TEST_MAIN(tests);
 *     }
 *
 * A random test takes its seed from test_seed(), which prints it, and PAWL_SEED=n in the environment repeats
 * it. */
#ifndef TEST_LIB_TEST_H
#define TEST_LIB_TEST_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pawl/types.h>

#define TEST(name)       static void name(void **test_state __attribute__((unused)))
#define RUN(name)        cmocka_unit_test(name)
#define TEST_MAIN(tests) (cmocka_set_message_output(CM_OUTPUT_TAP), cmocka_run_group_tests(tests, NULL, NULL))

/* A sanitizer makes everything five to twenty times slower, and finds what it is there for in fewer rounds. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_SANITIZED 1
#endif
#endif
#ifndef TEST_SANITIZED
#define TEST_SANITIZED 0
#endif

#define assert_ok(status)               assert_status(status, PAWL_OK)
#define assert_status(status, expected) test_assert_status((status), (expected), #status, __FILE__, __LINE__)
#define assert_contains(text, part)     test_assert_contains((text), (part), __FILE__, __LINE__)

static inline void test_assert_status(int status, int expected, const char *what, const char *file, int line)
{
    if (status == expected)
        return;
    print_error("%s: got %s, expected %s\n", what, pawl_status_name(status), pawl_status_name(expected));
    _fail(file, line);
}

static inline void test_assert_contains(const char *text, const char *part, const char *file, int line)
{
    if (strstr(text, part))
        return;
    print_error("'%s' does not contain '%s'\n", text, part);
    _fail(file, line);
}

static inline pawl_bytes text_bytes(const char *text)
{
    return (pawl_bytes){.data = text, .size = strlen(text)};
}

/* The seed of a random test: PAWL_SEED, or the given one, so that ./check is repeatable. */
static inline uint64_t test_seed(uint64_t fallback)
{
    const char *text = getenv("PAWL_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : fallback;
    print_message("# seed %" PRIu64 "\n", seed);
    return seed;
}

/* splitmix64: small, seedable, good enough to choose what a test does next. */
static inline uint64_t test_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline uint64_t test_below(uint64_t *state, uint64_t bound)
{
    return bound ? test_random(state) % bound : 0;
}

#endif
