/* adapter/kafka/log.c: opening and closing, and the log's own thread. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "adapter/kafka/impl.h"
#include "adapter/kafka/topics.h"
#include "base/alloc.h"
#include "base/error.h"

void op_begin(struct kafka_log *log, struct op *op, void *request, void (*run)(struct op *op))
{
    *op = (struct op){.log = log, .request = request, .run = run, .shard = pawl_env_self(log->env)};
}

void kafka_ring(struct kafka_log *log)
{
    uint64_t one = 1;
    (void)!write(log->bell, &one, sizeof one);
}

/* The log's thread. */

static void take_back(struct kafka_log *log)
{
    for (struct op *op; (op = op_list_pop(&log->back));) {
        if (op->run == read_pass_run)
            read_pass_back((struct read_pass *)op);
        else
            stream_looked(((struct stream_look *)op)->stream);
    }
    for (struct claiming *c; (c = log->checked);) {
        log->checked = c->next_checked;
        claim_back(c);
    }
}

static bool round_of(struct kafka_log *log, uint64_t now, bool tick)
{
    bool more = false;
    producer_serve(log);
    take_back(log);
    for (struct stream *s = log->reading, *next; s; s = next) {
        next = s->next_reading;
        stream_read_on(s);
    }
    for (struct read_pass *p = log->passes, *next; p; p = next) {
        next = p->next;
        more = read_pass_step(p, now) || more;
    }
    if (tick) {
        for (size_t i = 0; i < log->stream_count; i++)
            if (log->streams[i]->reading || log->streams[i]->flight_sent < log->streams[i]->flight_count)
                stream_tick(log->streams[i], now);
        fetchers_serve(log);
    }
    kafka_collect(log);
    return more;
}

static void *log_thread(void *arg)
{
    struct kafka_log *log = arg;
    uint64_t ticked = 0;
    bool more = false, stopping = false;
    while (!stopping) {
        struct pollfd fd = {.fd = log->bell, .events = POLLIN};
        uint64_t rung;
        if (poll(&fd, 1, more ? 0 : TICK_MS) > 0)
            (void)!read(log->bell, &rung, sizeof rung);
        uint64_t now = clock_boot_ns();
        bool tick = now - ticked >= (uint64_t)TICK_MS * 1000000;
        ticked = tick ? now : ticked;
        pthread_mutex_lock(&log->lock);
        more = round_of(log, now, tick);
        stopping = log->stopping;
        pthread_mutex_unlock(&log->lock);
        kafka_deliver(log);
    }
    return NULL;
}

/* Opening and closing. */

static void log_free(struct kafka_log *log)
{
    producer_close(log);
    while (log->reading) /* they read for outcomes that nobody waits for any more */
        stream_stop_reading(log->reading);
    fetchers_close(log);
    client_close(log->front);
    for (size_t i = 0; i < log->stream_count; i++)
        stream_release(log->streams[i]);
    mem_free(log->alloc, log->streams, log->stream_room * sizeof *log->streams);
    map_release(&log->by_stream);
    deliver_free(log);
    skips_release(&log->skips);
    oplogs_release(&log->oplogs);
    mem_free(log->alloc, log->outgoing.bytes, OUTGOING_BYTES);
    mem_free(log->alloc, log->outgoing.messages, OUTGOING_MAX * sizeof *log->outgoing.messages);
    if (log->bell >= 0)
        close(log->bell);
    pthread_cond_destroy(&log->round_ended);
    pthread_mutex_destroy(&log->lock);
    pthread_mutex_destroy(&log->fetch_lock);
    pthread_mutex_destroy(&log->oplogs_lock);
    mem_free(log->alloc, log, sizeof *log);
}

static void stop_thread(struct kafka_log *log)
{
    pthread_mutex_lock(&log->lock);
    log->stopping = true;
    kafka_ring(log);
    pthread_mutex_unlock(&log->lock);
    pthread_join(log->thread, NULL);
}

static int log_close(pawl_log *port)
{
    struct kafka_log *log = (struct kafka_log *)port;
    bool here = pawl_env_self(log->env) != PAWL_NO_SHARD || pthread_equal(pthread_self(), log->thread);
    if (here || atomic_load(&log->outstanding) > 0)
        return PAWL_EMISUSE;
    stop_thread(log);
    watch_stop(log);
    deliver_end(log);
    log_free(log);
    return PAWL_OK;
}

static const struct pawl_log_ops log_ops = {
    .claim = kafka_claim,
    .append = kafka_append,
    .read = kafka_read,
    .follow = kafka_follow,
    .unfollow = kafka_unfollow,
    .tail = kafka_tail,
    .close = log_close,
};

static int set_up(struct kafka_log *log, const struct kafka_log_options *o, pawl_error *error)
{
    log->port.ops = &log_ops;
    log->env = o->env;
    log->alloc = o->alloc;
    log->node = o->node ? o->node : pawl_env_random(o->env);
    log->session = pawl_env_random(o->env);
    log->window = o->window && o->window < KAFKA_WINDOW_MAX ? o->window : KAFKA_WINDOW_MAX;
    log->window = log->window < KAFKA_FRAGMENTS_MAX ? KAFKA_FRAGMENTS_MAX : log->window;
    log->trust_topics = o->trust_topics;
    log->skips.alloc = log->oplogs.alloc = o->alloc;
    log->shards = pawl_env_shards(o->env);
    log->acks.scale = HISTOGRAM_NS;
    pthread_mutex_init(&log->lock, NULL);
    pthread_cond_init(&log->round_ended, NULL);
    pthread_mutex_init(&log->fetch_lock, NULL);
    pthread_mutex_init(&log->oplogs_lock, NULL);
    op_list_init(&log->appends);
    op_list_init(&log->ready);
    op_list_init(&log->back);
    map_init(&log->by_stream, o->alloc, 16, sizeof(struct stream *), STREAMS_MAX);
    log->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (log->bell < 0)
        return error_errno(error, errno, "cannot prepare to wait");
    int status = deliver_open(log);
    log->outgoing.bytes = mem_take(o->alloc, 1, OUTGOING_BYTES);
    log->outgoing.messages = mem_new(o->alloc, OUTGOING_MAX, sizeof *log->outgoing.messages);
    if (status != PAWL_OK || !log->outgoing.bytes || !log->outgoing.messages)
        return error_set(error, PAWL_ENOMEM, "no memory to open a log on Kafka");
    return PAWL_OK;
}

/* Somebody must answer. */
static int look_for_brokers(struct kafka_log *log, pawl_error *error)
{
    const rd_kafka_metadata_t *metadata;
    char words[KAFKA_BROKERS_MAX + 32];
    uint32_t wait = log->url.timeout_ms < 10000 ? log->url.timeout_ms : 10000;
    rd_kafka_resp_err_t err = rd_kafka_metadata(log->front, 0, NULL, &metadata, (int)wait);
    if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        rd_kafka_metadata_destroy(metadata);
        return PAWL_OK;
    }
    snprintf(words, sizeof words, "no broker at %s answers", log->url.brokers);
    return client_complain(log->front, err, error, words);
}

int kafka_log_open(const struct kafka_log_options *options, pawl_log **ret_log, pawl_error *error)
{
    struct kafka_url url;
    int status = kafka_url_parse(options->url, &url, error);
    if (status != PAWL_OK)
        return status;
    struct kafka_log *log = mem_new(options->alloc, 1, sizeof *log);
    if (!log)
        return error_set(error, PAWL_ENOMEM, "no memory to open a log on Kafka");
    log->url = url;
    status = set_up(log, options, error);
    if (status == PAWL_OK)
        status = client_open(&log->url, CLIENT_CONSUMER, &log->front, error);
    if (status == PAWL_OK)
        status = look_for_brokers(log, error);
    if (status == PAWL_OK && !log->trust_topics)
        status = skips_load(log->front, &log->url, &log->skips, error);
    if (status == PAWL_OK && pthread_create(&log->thread, NULL, log_thread, log) != 0)
        status = error_set(error, PAWL_ENOMEM, "cannot start a thread");
    if (status == PAWL_OK && watch_start(log) != PAWL_OK) {
        stop_thread(log);
        status = error_set(error, PAWL_ENOMEM, "cannot start a thread");
    }
    if (status != PAWL_OK) {
        log_free(log);
        return status;
    }
    *ret_log = &log->port;
    return PAWL_OK;
}

void kafka_log_figures(pawl_log *port, struct kafka_figures *ret_figures)
{
    struct kafka_log *log = (struct kafka_log *)port;
    pthread_mutex_lock(&log->lock);
    *ret_figures = log->figures;
    ret_figures->read = atomic_load_explicit(&log->read, memory_order_relaxed);
    for (struct read_pass *p = log->passes; p; p = p->next) {
        if (!p->open)
            continue;
        uint64_t end = cursor_end(&p->reader.cursor), at = p->reader.judged.judge.at;
        ret_figures->ignored += p->reader.ignored;
        ret_figures->lag += p->kind == PASS_FOLLOW && end != UINT64_MAX && end > at ? end - at : 0;
    }
    pthread_mutex_unlock(&log->lock);
}
