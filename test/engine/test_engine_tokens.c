/* test_engine_tokens.c: access tokens of a node: made, checked, listed and revoked, over restarts, by the clock, and from
 * many threads at once. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

#include <pawl/pawl.h>

#include "base/bytes.h"
#include "core/token/token.h"
#include "engine/node/node.h"
#include "test/lib/dir.h"

#define MANY 1000

static char base[300], dir[440];
static pawl_engine *engine;
static pawl_error error;

static void open_as(bool read_only)
{
    pawl_options options = {.partitions = 1, .shards = 1, .read_only = read_only};
    assert_status(pawl_open(dir, &options, &engine, &error), PAWL_OK);
}

static void begin(void)
{
    test_dir_make(base, sizeof base);
    snprintf(dir, sizeof dir, "%s/data", base);
    open_as(false);
}

static void reopen(bool read_only)
{
    assert_ok(pawl_close(engine));
    open_as(read_only);
}

static void end(void)
{
    assert_ok(pawl_close(engine));
    test_dir_remove(base);
}

struct secret {
    char text[PAWL_TOKEN_SECRET_SIZE + 1];
};

static struct secret create(const pawl_token_definition *definition)
{
    pawl_text text;
    struct secret secret;
    int status = pawl_token_create(engine, definition, &text, &error);
    if (status != PAWL_OK)
        print_error("%s\n", error.text);
    assert_ok(status);
    assert_int_equal(text.size, PAWL_TOKEN_SECRET_SIZE);
    assert_int_equal(strlen(text.data), text.size);
    memcpy(secret.text, text.data, sizeof secret.text);
    pawl_text_free(&text);
    return secret;
}

static struct secret create_named(const char *name, unsigned scopes)
{
    return create(&(pawl_token_definition){.name = name, .scopes = scopes});
}

static int check(const struct secret *secret, pawl_token *ret_token)
{
    return pawl_token_check(engine, text_bytes(secret->text), ret_token);
}

static void assert_accepted(const struct secret *secret, const char *name)
{
    pawl_token token;
    assert_ok(check(secret, &token));
    assert_string_equal(token.name, name);
}

static void assert_refused(const struct secret *secret)
{
    pawl_token token = {.scopes = 77};
    assert_status(check(secret, &token), PAWL_EACCES);
    assert_int_equal(token.scopes, 77);
}

static int64_t wall_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * (int64_t)PAWL_SECOND + now.tv_nsec;
}

/* The names in the order in which they are listed, each with a blank behind it. */
struct names {
    char text[256];
    size_t count;
    size_t stop_at; /* 0: never */
};

static bool note_name(void *arg, const pawl_token *token)
{
    struct names *n = arg;
    size_t size = strlen(n->text);
    snprintf(n->text + size, sizeof n->text - size, "%s ", token->name);
    return ++n->count != n->stop_at;
}

static void assert_listed(const char *names)
{
    struct names n = {0};
    assert_ok(pawl_token_list(engine, note_name, &n, &error));
    assert_string_equal(n.text, names);
    assert_int_equal(pawl_token_count(engine), n.count);
}

/* --- making and checking --- */

TEST(a_secret_is_accepted_and_tells_whose_it_is)
{
    uint64_t wsids[] = {9, 7};
    pawl_token token;
    begin();
    assert_listed("");
    int64_t before = wall_now();
    struct secret secret =
        create(&(pawl_token_definition){.name = "deploy",
                                        .scopes = PAWL_SCOPE_READ | PAWL_SCOPE_WRITE,
                                        .wsids = wsids,
                                        .wsid_count = 2,
                                        .expires = {before + (int64_t)(3600 * PAWL_SECOND)}});
    assert_memory_equal(secret.text, "pawl_", 5);
    assert_int_equal(
        strspn(secret.text + 5, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"), 43);
    for (int round = 0; round < 3; round++) {
        assert_ok(check(&secret, &token));
        assert_string_equal(token.name, "deploy");
        assert_int_equal(token.scopes, PAWL_SCOPE_READ | PAWL_SCOPE_WRITE);
        assert_int_equal(token.wsid_count, 2);
        assert_true(token.wsids[0] == 7 && token.wsids[1] == 9);
        assert_true(token.created.ns >= before && token.created.ns <= wall_now());
        assert_int_equal(token.expires.ns, before + (int64_t)(3600 * PAWL_SECOND));
        assert_true(pawl_token_allows(&token, PAWL_SCOPE_WRITE, 7));
        assert_false(pawl_token_allows(&token, PAWL_SCOPE_WRITE, 8));
        assert_listed("deploy ");
        reopen(round == 1);
    }
    end();
}

TEST(what_is_not_the_whole_secret_is_refused)
{
    pawl_token token;
    begin();
    struct secret secret = create_named("a", PAWL_SCOPE_READ), other = secret;
    for (size_t i = 0; i < PAWL_TOKEN_SECRET_SIZE; i++) {
        other.text[i] = other.text[i] == 'x' ? 'y' : 'x';
        assert_refused(&other);
        other.text[i] = secret.text[i];
        assert_status(pawl_token_check(engine, (pawl_bytes){secret.text, i}, &token), PAWL_EACCES);
    }
    /* With the zero behind it; with nothing at all. */
    assert_status(pawl_token_check(engine, (pawl_bytes){secret.text, sizeof secret.text}, &token), PAWL_EACCES);
    assert_status(pawl_token_check(engine, (pawl_bytes){0}, &token), PAWL_EACCES);
    assert_accepted(&secret, "a");
    end();
}

TEST(two_tokens_have_two_secrets)
{
    begin();
    struct secret a = create_named("a", PAWL_SCOPE_READ), b = create_named("b", PAWL_SCOPE_READ);
    assert_true(strcmp(a.text, b.text) != 0);
    assert_accepted(&a, "a");
    assert_accepted(&b, "b");
    end();
}

TEST(a_name_is_given_once)
{
    pawl_text text = {.size = 77};
    begin();
    struct secret first = create_named("a", PAWL_SCOPE_READ);
    pawl_token_definition again = {.name = "a", .scopes = PAWL_SCOPE_ADMIN};
    assert_status(pawl_token_create(engine, &again, &text, &error), PAWL_EEXISTS);
    assert_string_equal(error.text, "there is a token a already");
    assert_int_equal(text.size, 77);
    again.name = "not a name";
    assert_status(pawl_token_create(engine, &again, &text, &error), PAWL_EINVAL);
    reopen(false);
    assert_listed("a ");
    assert_accepted(&first, "a");
    end();
}

TEST(a_list_is_by_name_and_can_be_stopped)
{
    begin();
    create_named("b", PAWL_SCOPE_READ);
    create_named("c", PAWL_SCOPE_READ);
    create_named("a", PAWL_SCOPE_READ);
    assert_listed("a b c ");
    struct names n = {.stop_at = 2};
    assert_ok(pawl_token_list(engine, note_name, &n, &error));
    assert_string_equal(n.text, "a b ");
    end();
}

/* --- revoking and expiring --- */

TEST(a_revoked_token_is_refused_at_once_and_for_good)
{
    begin();
    struct secret a = create_named("a", PAWL_SCOPE_READ), b = create_named("b", PAWL_SCOPE_READ);
    assert_ok(pawl_token_revoke(engine, "a", &error));
    assert_refused(&a);
    assert_status(pawl_token_revoke(engine, "a", &error), PAWL_ENOTFOUND);
    assert_string_equal(error.text, "there is no token a");
    assert_status(pawl_token_revoke(engine, NULL, &error), PAWL_EINVAL);
    reopen(false);
    assert_refused(&a);
    assert_accepted(&b, "b");
    struct secret again = create_named("a", PAWL_SCOPE_READ);
    assert_refused(&a);
    reopen(false);
    assert_refused(&a);
    assert_accepted(&again, "a");
    assert_listed("a b ");
    end();
}

TEST(a_token_expires_by_the_wall_clock)
{
    pawl_token token;
    begin();
    struct secret lasting = create_named("lasting", PAWL_SCOPE_READ);
    int64_t end_ns = wall_now() + (int64_t)(200 * PAWL_MILLISECOND);
    struct secret brief =
        create(&(pawl_token_definition){.name = "brief", .scopes = PAWL_SCOPE_READ, .expires = {end_ns}});
    while (check(&brief, &token) == PAWL_OK)
        assert_true(wall_now() < end_ns + (int64_t)(60 * PAWL_SECOND));
    assert_true(wall_now() >= end_ns);
    assert_accepted(&lasting, "lasting");
    /* It is still there, and holds its name. */
    assert_listed("brief lasting ");
    pawl_text text;
    assert_status(pawl_token_create(engine,
                                    &(pawl_token_definition){.name = "brief", .scopes = PAWL_SCOPE_READ}, &text,
                                    &error),
                  PAWL_EEXISTS);
    reopen(false);
    assert_refused(&brief);
    assert_listed("brief lasting ");
    assert_ok(pawl_token_revoke(engine, "brief", &error));
    assert_listed("lasting ");
    end();
}

/* --- on the disk --- */

static const char *needle;
static size_t needle_size, needles;

static int look_into(const char *path, const struct stat *s, int type, struct FTW *ftw)
{
    if (type != FTW_F || s->st_size == 0)
        return 0;
    char *bytes = malloc((size_t)s->st_size);
    FILE *file = fopen(path, "rb");
    assert_non_null(bytes);
    assert_non_null(file);
    size_t size = fread(bytes, 1, (size_t)s->st_size, file);
    needles += memmem(bytes, size, needle, needle_size) != NULL;
    fclose(file);
    free(bytes);
    return 0;
}

/* In how many files below the directory these bytes are. */
static size_t files_with(const void *bytes, size_t size)
{
    needle = bytes;
    needle_size = size;
    needles = 0;
    assert_int_equal(nftw(base, look_into, 8, FTW_PHYS), 0);
    return needles;
}

TEST(a_secret_is_in_no_file_but_its_digest_is)
{
    uint8_t digest[SHA256_BYTES];
    begin();
    struct secret secret = create_named("conspicuous", PAWL_SCOPE_READ);
    sha256(text_bytes(secret.text), digest);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(files_with("token/conspicuous", 17), 1);
        assert_int_equal(files_with(digest, sizeof digest), 1);
        assert_int_equal(files_with(secret.text, PAWL_TOKEN_SECRET_SIZE), 0);
        assert_int_equal(files_with(secret.text + 5, 16), 0);
        reopen(false);
    }
    end();
}

struct stored {
    uint8_t bytes[TOKEN_BYTES_MAX];
    size_t size;
};

static bool copy_stored(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct stored *stored = arg;
    (void)key;
    stored->size = value.size;
    memcpy(stored->bytes, value.data, value.size);
    return false;
}

/* Change what is stored of a token, as nobody should. */
static void change_stored(const char *name, size_t at, uint8_t bits)
{
    char key[128];
    struct stored stored = {0};
    snprintf(key, sizeof key, "token/%s", name);
    assert_ok(local_scan(engine->local, text_bytes(key), copy_stored, &stored, &error));
    stored.bytes[at] ^= bits;
    assert_ok(local_put(engine->local, text_bytes(key), (pawl_bytes){stored.bytes, stored.size}, &error));
}

TEST(a_damaged_token_lets_nobody_in)
{
    static const struct {
        size_t at;
        uint8_t bits;
        int status;
        const char *words;
    } cases[] = {
        {2, 8, PAWL_ECORRUPT, "cannot read the access tokens: token b is damaged"}, /* a scope more */
        {30, 1, PAWL_ECORRUPT, "token b is damaged"},                               /* of the digest */
        {0, 2, PAWL_EVERSION, "token b was made by a newer version of Pawl"},
    };
    pawl_options options = {.must_exist = true};
    begin();
    create_named("a", PAWL_SCOPE_READ);
    create_named("b", PAWL_SCOPE_READ);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        change_stored("b", cases[i].at, cases[i].bits);
        assert_ok(pawl_close(engine));
        for (int read_only = 0; read_only < 2; read_only++) {
            options.read_only = read_only;
            assert_status(pawl_open(dir, &options, &engine, &error), cases[i].status);
            assert_contains(error.text, cases[i].words);
        }
        /* docs/OPERATIONS.md: without DIR/local there are no tokens, and the rest is as it was. */
        char local[500];
        snprintf(local, sizeof local, "%s/local", dir);
        test_dir_remove(local);
        open_as(false);
        assert_listed("");
        create_named("b", PAWL_SCOPE_READ);
    }
    end();
}

TEST(what_cannot_be_stored_does_not_happen)
{
    char local[500], away[510];
    pawl_text text = {.size = 77};
    begin();
    struct secret secret = create_named("a", PAWL_SCOPE_READ);
    reopen(false); /* it is opened with the first write */
    snprintf(local, sizeof local, "%s/local", dir);
    snprintf(away, sizeof away, "%s.away", local);
    assert_int_equal(rename(local, away), 0);
    FILE *in_its_place = fopen(local, "w");
    assert_non_null(in_its_place);
    fclose(in_its_place);
    pawl_token_definition definition = {.name = "b", .scopes = PAWL_SCOPE_READ};
    assert_status(pawl_token_create(engine, &definition, &text, &error), PAWL_EIO);
    assert_contains(error.text, "cannot store token b: ");
    assert_int_equal(text.size, 77);
    assert_status(pawl_token_revoke(engine, "a", &error), PAWL_EIO);
    assert_contains(error.text, "cannot revoke token a, which is still accepted: ");
    assert_listed("a ");
    assert_accepted(&secret, "a");
    assert_int_equal(unlink(local), 0);
    assert_int_equal(rename(away, local), 0);
    create_named("b", PAWL_SCOPE_READ);
    assert_ok(pawl_token_revoke(engine, "a", &error));
    reopen(false);
    assert_listed("b ");
    assert_refused(&secret);
    end();
}

TEST(tokens_are_in_no_backup)
{
    char saved[420], again[420];
    pawl_backup_report report;
    begin();
    struct secret secret = create_named("a", PAWL_SCOPE_ALL);
    snprintf(saved, sizeof saved, "%s/saved", base);
    snprintf(again, sizeof again, "%s/again", base);
    assert_ok(pawl_close(engine));
    assert_ok(pawl_backup(&(pawl_backup_options){.dir = dir, .to = saved}, &report, &error));
    assert_ok(pawl_restore(&(pawl_backup_options){.dir = saved, .to = again}, &report, &error));
    snprintf(dir, sizeof dir, "%s", again);
    open_as(false);
    assert_listed("");
    assert_refused(&secret);
    end();
}

TEST(who_only_reads_makes_and_revokes_nothing)
{
    pawl_text text;
    begin();
    struct secret secret = create_named("a", PAWL_SCOPE_READ);
    reopen(true);
    pawl_token_definition definition = {.name = "b", .scopes = PAWL_SCOPE_READ};
    assert_status(pawl_token_create(engine, &definition, &text, &error), PAWL_EREADONLY);
    assert_status(pawl_token_revoke(engine, "a", &error), PAWL_EREADONLY);
    assert_accepted(&secret, "a");
    assert_listed("a ");
    end();
}

/* --- many --- */

/* In memory, where there is such a disk: each change of a token waits for several syncs. */
TEST(a_thousand_tokens_are_kept_apart)
{
    const char *usual = getenv("TMPDIR");
    char *under = usual ? strdup(usual) : NULL;
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1);
    struct secret *secrets = malloc(MANY * sizeof *secrets);
    assert_non_null(secrets);
    begin();
    for (size_t i = 0; i < MANY; i++) {
        char name[32];
        snprintf(name, sizeof name, "n%zu", i);
        secrets[i] = create_named(name, PAWL_SCOPE_READ);
    }
    for (size_t i = 0; i < MANY; i += 3) {
        char name[32];
        snprintf(name, sizeof name, "n%zu", i);
        assert_ok(pawl_token_revoke(engine, name, &error));
    }
    for (int round = 0; round < 2; round++) {
        assert_int_equal(pawl_token_count(engine), MANY - (MANY + 2) / 3);
        for (size_t i = 0; i < MANY; i++) {
            char name[32];
            snprintf(name, sizeof name, "n%zu", i);
            if (i % 3 == 0)
                assert_refused(&secrets[i]);
            else
                assert_accepted(&secrets[i], name);
        }
        reopen(false);
    }
    end();
    free(secrets);
    if (under)
        setenv("TMPDIR", under, 1);
    else
        unsetenv("TMPDIR");
    free(under);
}

#define CHECKERS 4
#define ROUNDS   (TEST_SANITIZED ? 20 : 60)

struct shared {
    _Atomic bool stop;
    _Atomic uint64_t checks;
    _Atomic uint64_t wrong;
    struct secret lasting, passing;
    _Atomic int revoked; /* the passing one is: 1 */
};

static void *check_on(void *arg)
{
    struct shared *s = arg;
    pawl_token token;
    while (!atomic_load(&s->stop)) {
        bool over = atomic_load(&s->revoked);
        int status = check(&s->passing, &token);
        if ((status == PAWL_OK && (over || strcmp(token.name, "passing") != 0))
            || (status != PAWL_OK && status != PAWL_EACCES))
            atomic_fetch_add(&s->wrong, 1);
        if (check(&s->lasting, &token) != PAWL_OK || strcmp(token.name, "lasting") != 0)
            atomic_fetch_add(&s->wrong, 1);
        atomic_fetch_add(&s->checks, 1);
    }
    return NULL;
}

static void *list_on(void *arg)
{
    struct shared *s = arg;
    pawl_error failure;
    while (!atomic_load(&s->stop)) {
        struct names n = {0};
        if (pawl_token_list(engine, note_name, &n, &failure) != PAWL_OK || !strstr(n.text, "lasting "))
            atomic_fetch_add(&s->wrong, 1);
    }
    return NULL;
}

TEST(checks_go_on_while_tokens_come_and_go)
{
    static struct shared s;
    pthread_t threads[CHECKERS + 1];
    begin();
    s.lasting = create_named("lasting", PAWL_SCOPE_READ);
    s.passing = create_named("passing", PAWL_SCOPE_READ);
    for (size_t i = 0; i < CHECKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, check_on, &s), 0);
    assert_int_equal(pthread_create(&threads[CHECKERS], NULL, list_on, &s), 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        char name[32];
        snprintf(name, sizeof name, "n%u", i);
        struct secret secret = create_named(name, PAWL_SCOPE_READ);
        assert_accepted(&secret, name);
        if (i == ROUNDS / 2) {
            assert_ok(pawl_token_revoke(engine, "passing", &error));
            atomic_store(&s.revoked, 1);
        }
        if (i % 2)
            assert_ok(pawl_token_revoke(engine, name, &error));
    }
    atomic_store(&s.stop, true);
    for (size_t i = 0; i <= CHECKERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&s.wrong), 0);
    assert_true(atomic_load(&s.checks) > 0);
    assert_refused(&s.passing);
    assert_accepted(&s.lasting, "lasting");
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_secret_is_accepted_and_tells_whose_it_is),
        RUN(what_is_not_the_whole_secret_is_refused),
        RUN(two_tokens_have_two_secrets),
        RUN(a_name_is_given_once),
        RUN(a_list_is_by_name_and_can_be_stopped),
        RUN(a_revoked_token_is_refused_at_once_and_for_good),
        RUN(a_token_expires_by_the_wall_clock),
        RUN(a_secret_is_in_no_file_but_its_digest_is),
        RUN(a_damaged_token_lets_nobody_in),
        RUN(what_cannot_be_stored_does_not_happen),
        RUN(tokens_are_in_no_backup),
        RUN(who_only_reads_makes_and_revokes_nothing),
        RUN(a_thousand_tokens_are_kept_apart),
        RUN(checks_go_on_while_tokens_come_and_go),
    };
    return TEST_MAIN(tests);
}
