#include "test/lib/lease.h"

#include "test/lib/test.h"

#define LINE_MAX_BYTES 300
#define TURNS_MAX      64

/* One line of a script on its way. */
struct line {
    struct desk *desk;
    const char *args; /* behind the verb */
    char out[2 * LINE_MAX_BYTES];
    size_t size;
};

__attribute__((format(printf, 2, 3))) static void say(struct line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t room = sizeof line->out - line->size;
    int n = vsnprintf(line->out + line->size, room, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < room);
    line->size += (size_t)n;
}

static void say_status(struct line *line, int status)
{
    switch (status) {
    case PAWL_OK: say(line, "ok"); break;
    case PAWL_EFENCED: say(line, "fenced"); break;
    case PAWL_ENOTFOUND: say(line, "not found"); break;
    case PAWL_EMISUSE: say(line, "misuse"); break;
    case PAWL_EBUSY: say(line, "busy"); break;
    case PAWL_EINVAL: say(line, "invalid"); break;
    default: say(line, "%s", pawl_status_name(status)); break;
    }
}

static void say_duration(struct line *line, pawl_duration d)
{
    if (d % PAWL_SECOND == 0)
        say(line, "%llus", (unsigned long long)(d / PAWL_SECOND));
    else if (d % PAWL_MILLISECOND == 0)
        say(line, "%llums", (unsigned long long)(d / PAWL_MILLISECOND));
    else
        say(line, "%lluns", (unsigned long long)d);
}

/* The next word, or an empty one. */
static void next_word(const char **at, char word[LINE_MAX_BYTES])
{
    *at += strspn(*at, " ");
    size_t length = strcspn(*at, " ");
    assert_true(length < LINE_MAX_BYTES);
    memcpy(word, *at, length);
    word[length] = 0;
    *at += length;
    *at += strspn(*at, " ");
}

static uint64_t number_of(const char *word)
{
    char *end;
    uint64_t number = strtoull(word, &end, 10);
    if (end == word || *end) {
        print_error("'%s' is not a number\n", word);
        fail();
    }
    return number;
}

static uint64_t next_number(struct line *line)
{
    char word[LINE_MAX_BYTES];
    next_word(&line->args, word);
    return number_of(word);
}

static pawl_duration duration_of(const char *word)
{
    char *end;
    uint64_t count = strtoull(word, &end, 10);
    if (strcmp(end, "ns") == 0)
        return count;
    if (strcmp(end, "ms") == 0)
        return count * PAWL_MILLISECOND;
    assert_string_equal(end, "s");
    return count * PAWL_SECOND;
}

static int next_letter(struct line *line)
{
    char word[LINE_MAX_BYTES];
    next_word(&line->args, word);
    assert_true(word[0] >= 'a' && word[0] <= 'z' && word[1] == 0);
    return word[0] - 'a';
}

/* What may follow in any order: "p1", "x500", "for 5s". */
struct extras {
    uint32_t projection;
    size_t bytes;
    pawl_duration duration;
};

static struct extras next_extras(struct line *line)
{
    struct extras extras = {0};
    char word[LINE_MAX_BYTES];
    while (*line->args) {
        next_word(&line->args, word);
        if (word[0] == 'p') {
            extras.projection = (uint32_t)number_of(word + 1);
        } else if (word[0] == 'x') {
            extras.bytes = (size_t)number_of(word + 1);
        } else {
            assert_string_equal(word, "for");
            next_word(&line->args, word);
            extras.duration = duration_of(word);
        }
    }
    return extras;
}

static void do_bind(struct line *line)
{
    uint64_t count = *line->args >= '0' && *line->args <= '9' ? next_number(line) : 1;
    struct extras extras = next_extras(line);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t number;
        int status = pawl_leases_bind(line->desk->leases, extras.projection, NULL, extras.bytes, &number);
        say(line, "%s", i ? " " : "");
        if (status)
            say_status(line, status);
        else
            say(line, "%llu", (unsigned long long)number);
    }
}

static void say_number(struct line *line, uint64_t number)
{
    if (number)
        say(line, "%llu", (unsigned long long)number);
    else
        say(line, "none");
}

static void do_peek(struct line *line)
{
    say_number(line, pawl_leases_peek(line->desk->leases, next_extras(line).projection));
}

typedef int (*acquire_fn)(pawl_leases *leases, uint32_t projection, pawl_duration duration, size_t max,
                          pawl_lease *ret_leases, size_t *ret_count);

static void acquire(struct line *line, acquire_fn fn)
{
    char letters[LINE_MAX_BYTES];
    pawl_lease leases[26];
    size_t count = 0;
    next_word(&line->args, letters);
    struct extras extras = next_extras(line);
    int status = fn(line->desk->leases, extras.projection, extras.duration, strlen(letters), leases, &count);
    if (status)
        say_status(line, status);
    for (size_t i = 0; i < count; i++) {
        int letter = letters[i] - 'a';
        assert_int_equal(leases[i].state, PAWL_LEASE_LEASED);
        line->desk->held[letter].number = leases[i].number;
        line->desk->held[letter].operation = leases[i].operation;
        say(line, "%s%c=%llu", i ? " " : "", letters[i], (unsigned long long)leases[i].number);
    }
}

static void do_acquire(struct line *line)
{
    acquire(line, pawl_leases_acquire);
}

static void do_keep(struct line *line)
{
    acquire(line, pawl_leases_acquire_kept);
}

static void do_settle(struct line *line)
{
    say_status(line, pawl_leases_settle(line->desk->leases));
}

static void do_awaits(struct line *line)
{
    int letter = next_letter(line);
    say(line, "%s",
        pawl_leases_is_awaited(line->desk->leases, line->desk->held[letter].number,
                               line->desk->held[letter].operation)
            ? "yes"
            : "no");
}

static char letter_of(const struct desk *desk, const pawl_lease_row *row)
{
    for (int i = 0; i < 26; i++)
        if (desk->held[i].number == row->number && desk->held[i].operation.high == row->operation.high
            && desk->held[i].operation.low == row->operation.low)
            return (char)('a' + i);
    return '?';
}

static void do_rows(struct line *line)
{
    pawl_lease_row row;
    for (uint64_t from = 0; lease_twin_store.find(line->desk->twin, from, &row); from = row.number + 1)
        say(line, "%s%llu=%c", line->size ? " " : "", (unsigned long long)row.number,
            letter_of(line->desk, &row));
    say(line, "%s", line->size ? "" : "none");
}

static void begin_anew(struct line *line, size_t survive)
{
    struct desk *desk = line->desk;
    pawl_leases_free(desk->leases);
    lease_twin_crash(desk->twin, survive);
    desk->options.next = next_number(line);
    assert_ok(pawl_leases_new(&desk->options, &desk->leases, NULL));
}

static void do_restart(struct line *line)
{
    begin_anew(line, SIZE_MAX);
}

static void do_power(struct line *line)
{
    begin_anew(line, 0);
}

static void do_extend(struct line *line)
{
    int letter = next_letter(line);
    pawl_duration duration = next_extras(line).duration;
    say_status(line, pawl_leases_extend(line->desk->leases, line->desk->held[letter].number,
                                        line->desk->held[letter].operation, duration));
}

static void do_release(struct line *line)
{
    int letter = next_letter(line);
    say_status(line, pawl_leases_release(line->desk->leases, line->desk->held[letter].number,
                                         line->desk->held[letter].operation, line->args));
}

static void do_postpone(struct line *line)
{
    int letter = next_letter(line);
    say_status(line, pawl_leases_postpone(line->desk->leases, line->desk->held[letter].number,
                                          line->desk->held[letter].operation, line->args));
}

static void do_fail(struct line *line)
{
    int letter = next_letter(line);
    say_status(line, pawl_leases_fail(line->desk->leases, line->desk->held[letter].number,
                                      line->desk->held[letter].operation, false, line->args));
}

static void do_fail_for_good(struct line *line)
{
    int letter = next_letter(line);
    say_status(line, pawl_leases_fail(line->desk->leases, line->desk->held[letter].number,
                                      line->desk->held[letter].operation, true, line->args));
}

static char letters_memory[26];

static void do_ready(struct line *line)
{
    int letter = next_letter(line);
    bool again = false;
    int status = pawl_leases_ready(line->desk->leases, line->desk->held[letter].number,
                                   line->desk->held[letter].operation, &letters_memory[letter], &again);
    say_status(line, status);
    say(line, "%s", again ? " again" : "");
}

static void say_result(struct line *line, const void *result)
{
    say(line, "=%c", (char)('a' + ((const char *)result - letters_memory)));
}

static void do_take(struct line *line)
{
    pawl_turn turns[TURNS_MAX];
    size_t count = pawl_leases_take(line->desk->leases, *line->args ? next_number(line) : TURNS_MAX, turns);
    say(line, "%s", count ? "" : "none");
    for (size_t i = 0; i < count; i++) {
        say(line, "%s%llu", i ? " " : "", (unsigned long long)turns[i].number);
        if (turns[i].is_void)
            say(line, "=void \"%s\"", turns[i].words);
        else
            say_result(line, turns[i].result);
    }
}

static void do_repeat(struct line *line)
{
    say_status(line, pawl_leases_repeat(line->desk->leases, next_number(line)));
}

static void do_early(struct line *line)
{
    say_status(line, pawl_leases_repeat_early(line->desk->leases, next_number(line)));
}

static void do_hold(struct line *line)
{
    say_status(line, pawl_leases_hold(line->desk->leases, next_number(line), true));
}

static void do_free(struct line *line)
{
    say_status(line, pawl_leases_hold(line->desk->leases, next_number(line), false));
}

static void do_refuse(struct line *line)
{
    uint64_t number = next_number(line);
    say_status(line, pawl_leases_refuse(line->desk->leases, number, line->args));
}

static void do_commit(struct line *line)
{
    say_status(line, pawl_leases_commit(line->desk->leases, next_number(line)));
}

static void dropped(void *arg, uint64_t number, void *work, void *result)
{
    struct line *line = arg;
    say(line, "%s%llu", line->size ? " " : "", (unsigned long long)number);
    if (result)
        say_result(line, result);
}

static void do_reset(struct line *line)
{
    int status = pawl_leases_reset(line->desk->leases, next_number(line), dropped, line);
    say(line, "%s", line->size ? " " : "");
    say_status(line, status);
}

static void do_reclaim(struct line *line)
{
    say_status(line, pawl_leases_reclaim(line->desk->leases, next_number(line)));
}

static void do_retry(struct line *line)
{
    say_status(line, pawl_leases_retry(line->desk->leases, next_number(line)));
}

static void do_void(struct line *line)
{
    uint64_t number = next_number(line);
    say_status(line, pawl_leases_void(line->desk->leases, number, line->args));
}

static void do_policy(struct line *line)
{
    char word[LINE_MAX_BYTES];
    next_word(&line->args, word);
    pawl_lease_policy policy = strcmp(word, "void") == 0 ? PAWL_LEASE_VOID : PAWL_LEASE_STALL;
    uint32_t attempts = (uint32_t)next_number(line);
    say_status(line, pawl_leases_policy(line->desk->leases, next_extras(line).projection, policy, attempts));
}

static const char *state_name(pawl_lease_state state)
{
    static const char *const names[] = {"?",       "bound", "leased", "backing off",
                                        "stalled", "ready", "taken",  "committed"};
    return names[state];
}

static bool look(void *arg, const pawl_lease *lease)
{
    struct line *line = arg;
    say(line, "%s", state_name(lease->state));
    if (lease->attempt)
        say(line, " try %u", lease->attempt);
    if (lease->duration) {
        say(line, " for ");
        say_duration(line, lease->duration);
    }
    say(line, "%s", lease->is_void ? " void" : "");
    if (lease->words[0])
        say(line, " \"%s\"", lease->words);
    return false;
}

static void do_look(struct line *line)
{
    pawl_leases_list(line->desk->leases, next_number(line), look, line);
    say(line, "%s", line->size ? "" : "none");
}

static bool list(void *arg, const pawl_lease *lease)
{
    struct line *line = arg;
    say(line, "%s%llu:%s", line->size ? " " : "", (unsigned long long)lease->number, state_name(lease->state));
    return true;
}

static void do_list(struct line *line)
{
    pawl_leases_list(line->desk->leases, *line->args ? next_number(line) : 0, list, line);
    say(line, "%s", line->size ? "" : "none");
}

static void do_forge(struct line *line)
{
    int letter = next_letter(line);
    line->desk->held[letter].number = next_number(line);
    line->desk->held[letter].operation = (pawl_operation_id){1, 2};
}

static void do_steal(struct line *line)
{
    int letter = next_letter(line);
    line->desk->held[letter] = line->desk->held[next_letter(line)];
}

static void do_estimate(struct line *line)
{
    struct extras extras = next_extras(line);
    say_duration(line, pawl_leases_estimate(line->desk->leases, extras.projection, extras.bytes));
}

static void do_figures(struct line *line)
{
    pawl_lease_figures f;
    pawl_leases_figures_get(line->desk->leases, &f);
    const struct {
        const char *name;
        uint64_t value;
    } known[] = {
        {"bound", f.bound},
        {"taken", f.taken},
        {"watermark", f.watermark},
        {"active", f.active},
        {"waiting", f.waiting},
        {"stalled", f.stalled},
        {"acquired", f.acquired},
        {"committed", f.committed},
        {"expired", f.expired},
        {"released", f.released},
        {"failed", f.failed},
        {"voids", f.voids},
        {"fenced", f.fenced},
        {"repeated", f.repeated},
        {"alerts", f.alerts},
        {"well", f.performing_well},
        {"percent", (uint64_t)(100 * f.efficiency + 0.5)},
        {"used", (uint64_t)(100 * f.utilisation + 0.5)},
        {"wait_ms", f.average_wait / PAWL_MILLISECOND},
        {"p99_ms", f.p99_wait / PAWL_MILLISECOND},
    };
    while (*line->args) {
        char word[LINE_MAX_BYTES];
        size_t i = 0;
        next_word(&line->args, word);
        while (i < sizeof known / sizeof known[0] && strcmp(known[i].name, word) != 0)
            i++;
        assert_true(i < sizeof known / sizeof known[0]);
        say(line, "%s%llu", line->size ? " " : "", (unsigned long long)known[i].value);
    }
}

static void say_changed(struct line *line, uint64_t before)
{
    if (line->desk->changed == before)
        say(line, "quiet");
    else
        say(line, "changed %llu", (unsigned long long)(line->desk->changed - before));
}

static void do_wait(struct line *line)
{
    uint64_t before = line->desk->changed;
    char word[LINE_MAX_BYTES];
    next_word(&line->args, word);
    mem_world_advance(line->desk->world, duration_of(word));
    say_changed(line, before);
}

static void do_jump(struct line *line)
{
    uint64_t before = line->desk->changed;
    char word[LINE_MAX_BYTES];
    next_word(&line->args, word);
    mem_env_jump(line->desk->env, duration_of(word));
    mem_world_advance(line->desk->world, 0);
    say_changed(line, before);
}

static void do_tick(struct line *line)
{
    uint64_t before = line->desk->changed;
    pawl_duration quiet = pawl_leases_tick(line->desk->leases);
    say_changed(line, before);
    say(line, "%s", quiet == UINT64_MAX ? ", nothing runs" : quiet == 0 ? ", more" : ", later");
}

static const struct verb {
    const char *name;
    void (*fn)(struct line *line);
    bool is_outside; /* of the shard: it lets time pass */
} verbs[] = {
    {"bind", do_bind, false},       {"peek", do_peek, false},
    {"acquire", do_acquire, false}, {"extend", do_extend, false},
    {"release", do_release, false}, {"postpone", do_postpone, false},
    {"fail", do_fail, false},       {"break", do_fail_for_good, false},
    {"ready", do_ready, false},     {"take", do_take, false},
    {"repeat", do_repeat, false},   {"refuse", do_refuse, false},
    {"early", do_early, false},     {"hold", do_hold, false},
    {"free", do_free, false},       {"commit", do_commit, false},
    {"reset", do_reset, false},     {"reclaim", do_reclaim, false},
    {"retry", do_retry, false},     {"void", do_void, false},
    {"policy", do_policy, false},   {"look", do_look, false},
    {"list", do_list, false},       {"forge", do_forge, false},
    {"steal", do_steal, false},     {"estimate", do_estimate, false},
    {"figures", do_figures, false}, {"tick", do_tick, false},
    {"wait", do_wait, true},        {"jump", do_jump, true},
    {"keep", do_keep, false},       {"settle", do_settle, false},
    {"rows", do_rows, false},       {"restart", do_restart, false},
    {"power", do_power, false},     {"awaits", do_awaits, false},
};

struct errand {
    void (*fn)(struct line *line);
    struct line *line;
};

static void run_errand(void *arg)
{
    struct errand *errand = arg;
    errand->fn(errand->line);
}

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    print_error("there is no verb '%s'\n", name);
    fail();
    return NULL;
}

static void play_line(struct desk *desk, const char *text, const char *expected, unsigned row)
{
    struct line line = {.desk = desk, .args = text};
    char name[LINE_MAX_BYTES];
    next_word(&line.args, name);
    const struct verb *verb = find_verb(name);
    struct errand errand = {verb->fn, &line};
    if (verb->is_outside)
        verb->fn(&line);
    else
        desk_run(desk, run_errand, &errand);
    if (strcmp(line.out, expected) == 0)
        return;
    print_error("line %u: %s -> %s, expected: %s\n", row, text, line.out, expected);
    fail();
}

static void trim_end(char *text)
{
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == ' ')
        text[--length] = 0;
}

void desk_play(struct desk *desk, const char *script)
{
    for (unsigned row = 1; *script; row++) {
        char text[LINE_MAX_BYTES];
        size_t length = strcspn(script, "\n");
        assert_true(length < sizeof text);
        memcpy(text, script, length);
        text[length] = 0;
        script += length + (script[length] == '\n');
        char *arrow = strstr(text, "->");
        const char *expected = arrow ? arrow + 2 + strspn(arrow + 2, " ") : "";
        if (arrow)
            *arrow = 0;
        trim_end(text);
        play_line(desk, text, expected, row);
    }
}

static void on_changed(void *ctx)
{
    ((struct desk *)ctx)->changed++;
}

static void open_on_shard(void *arg)
{
    struct desk *desk = arg;
    pawl_error error;
    int status = pawl_leases_new(&desk->options, &desk->leases, &error);
    if (status)
        print_error("%s\n", error.text);
    assert_ok(status);
}

static void free_on_shard(void *arg)
{
    pawl_leases_free(((struct desk *)arg)->leases);
}

void desk_run(struct desk *desk, void (*fn)(void *arg), void *arg)
{
    assert_ok(pawl_env_call(mem_env_port(desk->env), 0, fn, arg));
}

void desk_open(struct desk *desk, const pawl_leases_options *options)
{
    desk_open_seeded(desk, options, 1);
}

void desk_open_seeded(struct desk *desk, const pawl_leases_options *options, uint64_t seed)
{
    struct mem_world_options world = {.seed = seed};
    struct mem_env_options node = {.shards = 1};
    *desk = (struct desk){0};
    assert_ok(mem_world_open(&world, &desk->world, NULL));
    assert_ok(mem_env_open(desk->world, &node, &desk->env, NULL));
    if (options)
        desk->options = *options;
    desk->twin = desk->options.store_ctx;
    desk->options.env = mem_env_port(desk->env);
    desk->options.changed = on_changed;
    desk->options.ctx = desk;
    desk_run(desk, open_on_shard, desk);
}

void desk_close(struct desk *desk)
{
    desk_run(desk, free_on_shard, desk);
    mem_world_close(desk->world);
}

void play(const pawl_leases_options *options, const char *script)
{
    struct desk desk;
    desk_open(&desk, options);
    desk_play(&desk, script);
    desk_close(&desk);
}
