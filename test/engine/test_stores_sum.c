/* The sum of a backup's stores: any byte that is not what was saved is noticed. */
#include "engine/check/stores_sum.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/lib/test.h"

#define SHARDS 2
#define BYTES  ((size_t)3 << 20) /* more than are read at once */

struct saved {
    char dir[64];
    bool go_on;
};

static bool go_on(void *arg, uint64_t done, uint64_t total)
{
    return ((struct saved *)arg)->go_on;
}

static struct stores_sum sum_of(struct saved *s)
{
    return (struct stores_sum){.dir = s->dir, .shards = SHARDS, .progress = go_on, .arg = s};
}

static void path_of(const struct saved *s, int shard, char path[120])
{
    snprintf(path, 120, "%s/checkpoint/%d/data.mdb", s->dir, shard);
}

static void write_at(const char *path, const void *bytes, size_t size, off_t at)
{
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(file >= 0);
    assert_int_equal(pwrite(file, bytes, size, at), (ssize_t)size);
    close(file);
}

static void make(const char *path)
{
    assert_int_equal(mkdir(path, 0700), 0);
}

static void begin(struct saved *s)
{
    char path[120];
    pawl_error error = {0};
    *s = (struct saved){.dir = "/tmp/pawl-sum-XXXXXX", .go_on = true};
    assert_non_null(mkdtemp(s->dir));
    snprintf(path, sizeof path, "%s/checkpoint", s->dir);
    make(path);
    for (int i = 0; i < SHARDS; i++) {
        snprintf(path, sizeof path, "%s/checkpoint/%d", s->dir, i);
        make(path);
        path_of(s, i, path);
        write_at(path, "end", 3, (off_t)BYTES + i);
    }
    struct stores_sum sum = sum_of(s);
    assert_ok(stores_sum_write(&sum, &error));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

static void end(struct saved *s)
{
    assert_int_equal(nftw(s->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static bool is_same(struct saved *s)
{
    struct stores_sum sum = sum_of(s);
    pawl_error error = {0};
    bool same = false;
    assert_ok(stores_sum_check(&sum, &same, &error));
    return same;
}

TEST(a_byte_anywhere_in_any_store_is_noticed)
{
    static const off_t places[] = {0, (1 << 20) - 1, 1 << 20, (off_t)BYTES};
    struct saved s;
    char path[120];
    begin(&s);
    assert_true(is_same(&s));
    for (int shard = 0; shard < SHARDS; shard++)
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            uint8_t was;
            path_of(&s, shard, path);
            int file = open(path, O_RDONLY);
            assert_int_equal(pread(file, &was, 1, places[i]), 1);
            close(file);
            write_at(path, &(uint8_t){was ^ 1}, 1, places[i]);
            assert_false(is_same(&s));
            write_at(path, &was, 1, places[i]);
            assert_true(is_same(&s));
        }
    end(&s);
}

TEST(what_moves_from_one_store_to_the_next_is_noticed)
{
    struct saved s;
    char path[120];
    begin(&s);
    path_of(&s, 0, path);
    assert_int_equal(truncate(path, (off_t)BYTES + 2), 0);
    assert_false(is_same(&s));
    write_at(path, "end", 3, (off_t)BYTES);
    assert_true(is_same(&s));
    write_at(path, "", 1, (off_t)BYTES + 3);
    assert_false(is_same(&s));
    end(&s);
}

TEST(without_a_sum_or_a_store_nothing_is_the_same)
{
    struct saved s;
    char path[120], sum[120];
    begin(&s);
    snprintf(sum, sizeof sum, "%s/stores.sum", s.dir);
    path_of(&s, 1, path);
    assert_int_equal(unlink(path), 0);
    assert_false(is_same(&s));
    write_at(path, "end", 3, (off_t)BYTES + 1);
    assert_true(is_same(&s));
    write_at(sum, "2", 1, 0); /* of another version */
    assert_false(is_same(&s));
    write_at(sum, "1", 1, 0);
    assert_true(is_same(&s));
    write_at(sum, "more", 4, 35);
    assert_false(is_same(&s));
    assert_int_equal(truncate(sum, 34), 0);
    assert_false(is_same(&s));
    assert_int_equal(unlink(sum), 0);
    assert_false(is_same(&s));
    end(&s);
}

TEST(reading_can_be_cancelled)
{
    struct saved s;
    pawl_error error = {0};
    bool same;
    begin(&s);
    s.go_on = false;
    struct stores_sum sum = sum_of(&s);
    assert_status(stores_sum_check(&sum, &same, &error), PAWL_ECANCELED);
    assert_status(stores_sum_write(&sum, &error), PAWL_ECANCELED);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_byte_anywhere_in_any_store_is_noticed),
        cmocka_unit_test(what_moves_from_one_store_to_the_next_is_noticed),
        cmocka_unit_test(without_a_sum_or_a_store_nothing_is_the_same),
        cmocka_unit_test(reading_can_be_cancelled),
    };
    return TEST_MAIN(tests);
}
