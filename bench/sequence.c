/* bench/sequence.c: how long numbering an event takes, and how long recovering takes.
 *
 * The storage is in memory: an array of values. The time of a cycle includes collecting and writing what it
 * changed, because all is in one thread; in an engine other threads write. There are two peers, both
 * open-addressing maps with three increments and nothing else: one from workspace and sequence to a number,
 * searched three times; and one from workspace to three numbers, searched once. The limits are the bench's own:
 * a flush every 16,384 events, and at most 65,536 values unflushed. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <pawl/sequencer.h>

#include "adapter/mem/env.h"
#include "base/alloc.h"
#include "base/map.h"
#include "bench/lib/bench.h"
#include "core/sequence/sequencer.h"

enum {
    KIND = 1,
    WLOG = 1,
    REC = 2,
    CREC = 3,
    KNOWN = 268865,
    TAIL_EVENTS = 1000000,
    TAIL_WORKSPACES = 10000,
    AHEAD_MAX = 32
};

static const pawl_sequence system_sequences[] = {
    {WLOG, 1, 0}, {REC, 200001, (UINT64_C(1) << 50) - 1}, {CREC, 200001, (UINT64_C(1) << 50) - 1}};
static const pawl_workspace_kind kinds[] = {{KIND, system_sequences, 3}};

/* A storage in memory; its log's events are made as they are read. */
struct storage {
    uint64_t (*values)[4]; /* by workspace and sequence */
    uint64_t last;
    uint64_t tail;
    uint64_t *tail_counts;
};

static int read_numbers(void *ctx, uint64_t wsid, const uint16_t *seqs, size_t count, uint64_t *ret_numbers,
                        pawl_error *error)
{
    const struct storage *storage = ctx;
    for (size_t i = 0; i < count; i++)
        ret_numbers[i] = storage->values[wsid][seqs[i]];
    return PAWL_OK;
}

static int read_last_offset(void *ctx, uint64_t *ret_last, pawl_error *error)
{
    *ret_last = ((struct storage *)ctx)->last;
    return PAWL_OK;
}

static int write_values_and_offset(void *ctx, const pawl_sequence_row *rows, size_t count, uint64_t last,
                                   pawl_error *error)
{
    struct storage *storage = ctx;
    for (size_t i = 0; i < count; i++)
        storage->values[rows[i].wsid][rows[i].seq] = rows[i].number;
    storage->last = last;
    return PAWL_OK;
}

static int scan_log(void *ctx, uint64_t after, pawl_sequence_batcher *batcher, uint64_t *ret_last,
                    pawl_error *error)
{
    struct storage *storage = ctx;
    pawl_sequence_event events[256];
    pawl_sequence_number numbers[256][3];
    size_t n = 0;
    *ret_last = storage->tail > storage->last ? storage->tail : storage->last;
    for (uint64_t offset = after + 1; offset <= storage->tail; offset++) {
        uint64_t wsid = hash_mix(offset) % TAIL_WORKSPACES + 1;
        uint64_t count = ++storage->tail_counts[wsid];
        numbers[n][0] = (pawl_sequence_number){WLOG, count};
        numbers[n][1] = (pawl_sequence_number){REC, 200000 + count};
        numbers[n][2] = (pawl_sequence_number){CREC, 200000 + count};
        events[n] = (pawl_sequence_event){offset, wsid, KIND, numbers[n], 3};
        if (++n < 256 && offset < storage->tail)
            continue;
        int status = batcher->take(batcher, events, n);
        if (status)
            return status;
        n = 0;
    }
    return PAWL_OK;
}

/* Nothing here waits, so the thread's own time is what it takes, whatever else the machine does. */
static uint64_t cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* A sequencer on a shard in virtual time, and a run of cycles on it. */
struct rig {
    pawl_task task;
    pawl_timer timer;
    struct mem_world *world;
    struct mem_env *env;
    struct storage storage;
    pawl_sequencer *s;
    uint64_t workspaces;
    uint64_t cycles;
    uint64_t random;
    size_t ahead; /* how many workspaces are fetched ahead at a time; 0: none */
    bool done;
};

static uint64_t pick(uint64_t *state, uint64_t bound)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) * bound >> 31;
}

/* False: it is busy. */
static inline bool run_cycle(struct rig *rig, uint64_t wsid)
{
    uint64_t offset;
    uint64_t number;
    if (pawl_sequencer_start(rig->s, KIND, wsid, &offset))
        return false;
    if (pawl_sequencer_next(rig->s, WLOG, &number) || pawl_sequencer_next(rig->s, REC, &number)
        || pawl_sequencer_next(rig->s, CREC, &number) || pawl_sequencer_flush(rig->s, offset))
        abort();
    rig->cycles--;
    return true;
}

/* As with a mailbox that holds several requests: fetch the workspaces of all, then handle one after the other. */
static bool run_mailbox(struct rig *rig)
{
    uint64_t wsids[AHEAD_MAX];
    for (size_t i = 0; i < rig->ahead; i++)
        wsids[i] = pick(&rig->random, rig->workspaces) + 1;
    pawl_sequencer_prefetch(rig->s, wsids, rig->ahead);
    for (size_t i = 0; i < rig->ahead && rig->cycles; i++)
        if (!run_cycle(rig, wsids[i]))
            return false;
    return true;
}

static void run_cycles(pawl_task *task)
{
    struct rig *rig = (struct rig *)task;
    while (rig->cycles) {
        bool ran = rig->ahead ? run_mailbox(rig) : run_cycle(rig, pick(&rig->random, rig->workspaces) + 1);
        if (!ran) {
            pawl_env_after(mem_env_port(rig->env), &rig->timer, PAWL_MILLISECOND); /* busy: let it be written */
            return;
        }
    }
    rig->done = true;
}

static void run_more(pawl_timer *timer)
{
    run_cycles((pawl_task *)((char *)timer - offsetof(struct rig, timer)));
}

static bool is_done(void *arg)
{
    return ((struct rig *)arg)->done;
}

static bool is_ready(void *arg)
{
    return pawl_sequencer_state_get(((struct rig *)arg)->s) == PAWL_SEQUENCER_READY;
}

static bool rig_open(struct rig *rig, uint64_t workspaces, uint64_t tail, uint32_t flush_events,
                     const pawl_allocator *allocator)
{
    struct mem_world_options world = {.seed = 1};
    struct mem_env_options node = {.shards = 1};
    *rig = (struct rig){.workspaces = workspaces, .random = 42};
    rig->storage.tail = tail;
    rig->storage.values = calloc(workspaces + 1, sizeof rig->storage.values[0]);
    rig->storage.tail_counts = calloc(TAIL_WORKSPACES + 1, sizeof(uint64_t));
    if (!rig->storage.values || !rig->storage.tail_counts || mem_world_open(&world, &rig->world, NULL)
        || mem_env_open(rig->world, &node, &rig->env, NULL)) {
        free(rig->storage.values);
        free(rig->storage.tail_counts);
        return false;
    }
    pawl_sequencer_options options = {
        .env = mem_env_port(rig->env),
        .storage = {&rig->storage, read_numbers, read_last_offset, write_values_and_offset, scan_log},
        .kinds = kinds,
        .kind_count = 1,
        .limits = {.flush_events = flush_events, .unflushed_max = 65536, .workspaces_max = 100000},
        .allocator = allocator,
    };
    return pawl_sequencer_new(&options, &rig->s, NULL) == PAWL_OK;
}

static bool rig_run(struct rig *rig, uint64_t cycles)
{
    rig->task = (pawl_task){.fn = run_cycles};
    rig->timer = (pawl_timer){.fn = run_more};
    rig->cycles = cycles;
    rig->done = false;
    return pawl_env_post(mem_env_port(rig->env), 0, &rig->task) == PAWL_OK
           && mem_world_run_until(rig->world, is_done, rig, UINT64_MAX);
}

static void rig_close(struct rig *rig)
{
    mem_env_kill(rig->env);
    sequencer_release(rig->s);
    mem_world_close(rig->world);
    free(rig->storage.values);
    free(rig->storage.tail_counts);
}

struct load {
    uint64_t workspaces;
    uint32_t flush_events;
    size_t ahead;
};

static double measure_cycle(const struct bench_round *round)
{
    const struct load *load = round->arg;
    uint64_t cycles = round->quick ? 200000 : 1000000;
    struct rig rig;
    if (!rig_open(&rig, load->workspaces, 0, load->flush_events, NULL))
        return 0;
    rig.ahead = load->ahead;
    if (!mem_world_run_until(rig.world, is_ready, &rig, UINT64_MAX)
        || !rig_run(&rig, 4 * load->workspaces + 1000))
        return 0;
    uint64_t began = cpu_now();
    rig_run(&rig, cycles);
    double ns = (double)(cpu_now() - began) / (double)cycles;
    rig_close(&rig);
    return ns;
}

struct plain_key {
    uint64_t wsid;
    uint64_t seq;
};

static double measure_plain(const struct bench_round *round)
{
    const struct load *load = round->arg;
    uint64_t cycles = round->quick ? 200000 : 1000000;
    uint64_t warm = 4 * load->workspaces;
    uint64_t random = 42;
    uint64_t began = 0;
    struct map map;
    map_init(&map, NULL, sizeof(struct plain_key), sizeof(uint64_t), SIZE_MAX);
    for (uint64_t i = 0; i < cycles + warm; i++) {
        if (i == warm)
            began = cpu_now();
        uint64_t wsid = pick(&random, load->workspaces) + 1;
        for (uint64_t seq = WLOG; seq <= CREC; seq++) {
            struct plain_key key = {wsid, seq};
            void *value;
            bool fresh;
            if (map_put(&map, hash_mix(wsid * 4 + seq), &key, &value, &fresh))
                return 0;
            ++*(uint64_t *)value;
        }
    }
    double ns = (double)(cpu_now() - began) / (double)cycles;
    map_release(&map);
    return ns;
}

struct lean {
    uint64_t wsid;
    uint64_t values[3];
};

/* One look-up a cycle, as ours has, in a map made for just this. */
static double measure_lean(const struct bench_round *round)
{
    const struct load *load = round->arg;
    uint64_t cycles = round->quick ? 200000 : 1000000;
    uint64_t warm = 4 * load->workspaces;
    uint64_t random = 42;
    uint64_t began = 0;
    uint64_t slots = 16;
    while (slots < 2 * load->workspaces)
        slots *= 2;
    struct lean *map = calloc(slots, sizeof *map);
    for (uint64_t i = 0; map && i < cycles + warm; i++) {
        if (i == warm)
            began = cpu_now();
        uint64_t wsid = pick(&random, load->workspaces) + 1;
        uint64_t at = hash_mix(wsid) & (slots - 1);
        while (map[at].wsid != wsid && map[at].wsid != 0)
            at = (at + 1) & (slots - 1);
        map[at].wsid = wsid;
        for (int k = 0; k < 3; k++) {
            map[at].values[k]++;
            __asm__ volatile("" ::: "memory");
        }
    }
    double ns = map ? (double)(cpu_now() - began) / (double)cycles : 0;
    free(map);
    return ns;
}

static double measure_recovery(const struct bench_round *round)
{
    struct rig rig;
    uint64_t began = cpu_now();
    if (!rig_open(&rig, TAIL_WORKSPACES, TAIL_EVENTS, 0, NULL)
        || !mem_world_run_until(rig.world, is_ready, &rig, UINT64_MAX))
        return 0;
    double ns = (double)(cpu_now() - began) / TAIL_EVENTS;
    rig_close(&rig);
    return ns;
}

static double measure_open(const struct bench_round *round)
{
    struct rig rig;
    if (!rig_open(&rig, KNOWN, 0, 16384, NULL) || !mem_world_run_until(rig.world, is_ready, &rig, UINT64_MAX)
        || !rig_run(&rig, round->quick ? KNOWN : 4 * KNOWN))
        return 0;
    mem_env_kill(rig.env);
    sequencer_release(rig.s);
    struct mem_env_options node = {.shards = 1};
    if (mem_env_open(rig.world, &node, &rig.env, NULL))
        return 0;
    rig.storage.tail = 0;
    pawl_sequencer_options options = {
        .env = mem_env_port(rig.env),
        .storage = {&rig.storage, read_numbers, read_last_offset, write_values_and_offset, scan_log},
        .kinds = kinds,
        .kind_count = 1,
    };
    uint64_t began = cpu_now();
    if (pawl_sequencer_new(&options, &rig.s, NULL)
        || !mem_world_run_until(rig.world, is_ready, &rig, UINT64_MAX))
        return 0;
    double ms = (double)(cpu_now() - began) / 1e6;
    rig_close(&rig);
    return ms;
}

struct counter {
    uint64_t calls;
};

static void *count_resize(void *ctx, void *memory, size_t old_size, size_t new_size)
{
    ((struct counter *)ctx)->calls += new_size != 0;
    return mem_resize(NULL, memory, old_size, new_size);
}

/* 10 million numbers over all known workspaces; what is allocated after the first million counts. */
static double measure_memory(const struct bench_round *round)
{
    struct counter counter = {0};
    pawl_allocator allocator = {count_resize, &counter};
    struct rig rig;
    uint64_t cycles = round->quick ? 1000000 : 10000000 / 3;
    if (!rig_open(&rig, KNOWN, 0, 16384, &allocator)
        || !mem_world_run_until(rig.world, is_ready, &rig, UINT64_MAX) || !rig_run(&rig, KNOWN))
        return 0;
    uint64_t calls = counter.calls;
    rig_run(&rig, cycles);
    if (counter.calls != calls) {
        printf("the cycles allocated %llu times\n", (unsigned long long)(counter.calls - calls));
        return 0;
    }
    pawl_sequencer_figures figures;
    pawl_sequencer_figures_get(rig.s, &figures);
    rig_close(&rig);
    return (double)figures.memory_bytes / (1 << 20);
}

static struct load one = {1, 16384};
static struct load thousand = {1000, 16384};
static struct load many = {100000, 16384};
static struct load many_ahead = {100000, 16384, 16};
static struct load one_often = {1, 100};

#define CYCLE(what, load_, most)                                                                               \
    {.question = "cycle start, 3 next, flush; " what,                                                          \
     .unit = "ns",                                                                                             \
     .better = BENCH_LESS,                                                                                     \
     .goal = (most),                                                                                           \
     .ours = measure_cycle,                                                                                    \
     .arg = (load_)},                                                                                          \
        {.question = "against a map of sequences; " what,                                                      \
         .unit = "ns",                                                                                         \
         .better = BENCH_LESS,                                                                                 \
         .goal = 5,                                                                                            \
         .ours = measure_cycle,                                                                                \
         .peer = measure_plain,                                                                                \
         .arg = (load_)},                                                                                      \
    {                                                                                                          \
        .question = "against a map of workspaces; " what, .unit = "ns", .better = BENCH_LESS, .goal = 5,       \
        .ours = measure_cycle, .peer = measure_lean, .arg = (load_)                                            \
    }

static const struct bench_question questions[] = {
    CYCLE("1 workspace", &one, 60),
    CYCLE("1,000 workspaces", &thousand, 120),
    CYCLE("100,000 workspaces", &many, 300),
    CYCLE("100,000 workspaces, fetched 16 ahead", &many_ahead, 300),
    {.question = "cycle; 1 workspace, a flush every 100 events",
     .unit = "ns",
     .better = BENCH_LESS,
     .goal = 60,
     .ours = measure_cycle,
     .arg = &one_often},
    {.question = "recovery of 1,000,000 events over 10,000 workspaces, each",
     .unit = "ns",
     .better = BENCH_LESS,
     .goal = 400,
     .ours = measure_recovery},
    {.question = "opening with 268,865 workspaces known and no tail",
     .unit = "ms",
     .better = BENCH_LESS,
     .goal = 50,
     .ours = measure_open},
    {.question = "memory with 268,865 workspaces used, 100,000 cached",
     .unit = "MiB",
     .better = BENCH_LESS,
     .goal = 16,
     .ours = measure_memory},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, questions, sizeof questions / sizeof questions[0]);
}
