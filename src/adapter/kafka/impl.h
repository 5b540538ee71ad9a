/* adapter/kafka/impl.h: the log's own structs, for the files that share them.
 *
 * log->lock guards everything, except: fetchers and the cursors on them, which fetch_lock guards (taken inside
 * lock); the list of operation logs, which oplogs_lock guards (lock may be taken inside it, and never the other way round);
 * what is atomic, such as the figure read; and a read pass whose batch is with its caller (held), or which is looking, and
 * belongs to that thread. librdkafka's
 * threads only ring the bell, or a shard's (deliver.c). The log has one thread of its own, which takes their
 * messages and moves owners and judges; reports are also taken by the shard that waits for them. The thread
 * that calls append sends it. done and visit are called without the lock.
 *
 * Invariants
 *   K1  A stream's flights end in their order; an append is delivered when all its entries have ended and
 *       no earlier append that shares a stream with it is still to be delivered.
 *   K2  What is sent under an epoch was drafted by the owner; what is acknowledged was acknowledged by it.
 *   K3  A resume point holds the judge of the whole stream up to a position between two entries. */
#ifndef KAFKA_IMPL_H
#define KAFKA_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "adapter/kafka/client.h"
#include "adapter/kafka/kafka.h"
#include "adapter/kafka/oplogs.h"
#include "adapter/kafka/record.h"
#include "adapter/kafka/skips.h"
#include "base/histogram.h"
#include "base/map.h"
#include "base/wait.h"
#include "port/claim_find.h"
#include "port/claim_owner.h"

#define STREAMS_MAX       65535
#define FLIGHTS_MAX       ((size_t)1 << 17) /* of a stream, sent or waiting to be */
#define RESUME_POINTS_MAX 1024
#define RESUME_SPACING    1024 /* entries; doubled whenever there would be more than RESUME_POINTS_MAX */
#define TAKE_MAX          1024 /* messages at a time */
#define BATCHES_MAX       4    /* that a caller visits before others have their turn */
#define BATCH_BYTES       ((size_t)4 << 20)
#define LOOK_AGAIN_NS     ((uint64_t)200 * 1000 * 1000)
#define TICK_MS           50
#define SILENCE_NS        ((uint64_t)5 * 1000 * 1000 * 1000) /* then a follow asks whether it misses something */
#define STALL_NS          ((uint64_t)10 * 1000 * 1000 * 1000) /* if it does, librdkafka has so long to bring it */
#define FETCHERS_MIN      3                                   /* handles that are made before one is shared */
#define FIND_RUN          512                                 /* records that a finder looks at in one place */
#define PROVEN_MAX        8   /* epochs, or parts of them, of which a stream keeps what a finder has proven */
#define ENDED_MAX         8   /* epochs that are over, of which a stream knows up to where they reached */
#define TOGETHER_MAX      256 /* entries that wait for those under way, to go out together */
#define OUTGOING_MAX      KAFKA_WINDOW_MAX /* records that are given to librdkafka at once */
#define OUTGOING_BYTES    (KAFKA_RECORD_HEADER + KAFKA_BODY_BYTES_MAX)

/* A request, as it waits: an append's lives in its impl, others are the beginning of something larger. */
struct op {
    struct op *link;
    struct kafka_log *log;
    void *request;
    void (*run)(struct op *op); /* on the shard that asked, or on the log's thread if none did */
    uint32_t shard;
    bool ready;       /* append: all entries have ended */
    size_t left;      /* append: entries that have not */
    uint64_t streams; /* append: a set of them, by number modulo 64 */
    uint64_t serial;
};
_Static_assert(sizeof(struct op) <= sizeof(((pawl_append *)0)->impl), "an append's op lives in its request");

struct op_list {
    struct op *first;
    struct op **last;
};

/* Several dones that one thread runs one after the other. What they append is sent when the last has run,
 * together with appends that waited for the same reports, so that the brokers sync once for all of it. */
struct round {
    struct kafka_log *log;
};

/* Takes reports on its shard (deliver.c). */
struct taker {
    pawl_task task;
    struct kafka_log *log;
    _Atomic bool rung;
};

struct outbox {
    pawl_task task;
    struct kafka_log *log;
    struct op_list ops;
    size_t appends; /* of its shard that are outstanding */
    struct taker taker;
};

/* Reading. */

struct fetcher {
    rd_kafka_t *client;
    rd_kafka_queue_t *events;
    struct cursor *cursors; /* on it; no two of one stream */
    struct fetcher *next;
};

struct cursor {
    struct stream *stream;
    struct fetcher *fetcher; /* NULL: closed */
    rd_kafka_topic_t *topic;
    rd_kafka_queue_t *queue;
    struct cursor *next;
};

/* How far a stream was judged, and what is needed to go on from there. */
struct judged {
    struct judge judge;
    uint64_t sum; /* the checksum of the record before judge.at, if there is one */
};

/* A place in the middle of a stream that is looked for, and the place that was found. */
struct seek {
    uint64_t from, limit;
    uint64_t low, low_next, high; /* what is known before and behind it */
    pawl_place at;
    struct find_fact facts[PROVEN_MAX + ENDED_MAX + 2];
    size_t fact_count;
    bool found;
    struct judge judge;
    uint64_t upto; /* what counts is known up to this offset */
};

/* Reads a stream from some place on, judges its records, and puts entries together from their fragments. */
struct stream_reader {
    struct cursor cursor;
    struct judged judged;
    uint64_t
        known; /* the stream is known to reach this position; an end that is told before it is not the end */
    bool bell; /* its messages ring the bell */
    bool reopened;        /* after a doubt (bounds.c), */
    uint64_t reopened_at; /* here, */
    uint64_t until;       /* and it must get on by then */
    uint64_t upto;  /* it began at a place that was found, and reads up to this offset; 0: at a resume point */
    uint64_t first; /* position of the present entry's first record */
    uint8_t *part;  /* the fragments so far */
    size_t part_size;
    size_t part_room;
    uint64_t ignored;
    enum claim_verdict verdict; /* of the last record that was judged */
};

/* FOUND_DOUBT: the broker says that the position is out of range, or that there is no such topic, and the cursor has
 * stopped; or that the stream ends before what is known of it. FOUND_LOST: a reader that
 * began at a place that was found cannot go on from there. */
enum found { FOUND_NOTHING, FOUND_ENTRY, FOUND_END, FOUND_DOUBT, FOUND_LOST };

/* Where a stream begins and ends, and what that says of a position that was said to be out of range. */
struct bounds {
    uint64_t low;
    uint64_t high; /* the position behind its last record */
    bool there;    /* false: the broker that was asked knows no such topic, which it may do later; both are 0 */
};

enum doubt { DOUBT_NONE, DOUBT_BEYOND, DOUBT_DELETED };

/* A read, follow or tail under way. */
enum pass_kind { PASS_READ, PASS_FOLLOW, PASS_TAIL };

struct item {
    pawl_entry entry;
    pawl_place place;
    rd_kafka_message_t *message; /* which the body lies in, or */
    void *memory;                /* put together, of so many bytes */
    size_t room;
};

struct read_pass {
    struct op op;
    enum pass_kind kind;
    struct stream *stream;
    struct read_pass *next;
    bool began;    /* the reader has a place to go on from */
    bool open;     /* the reader's cursor is open */
    bool held;     /* the batch is with its caller */
    bool over;     /* nothing comes after the batch */
    bool looking;  /* the topic, or where it ends, is being looked for on the pool */
    bool bounded;  /* it reads to the end of the stream, which it must ask for */
    bool doubted;  /* its position is said to be out of range, or nothing has come for long */
    bool absent;   /* nobody knows a topic that was made: it is looked for until it is known to be lost */
    bool seeking;  /* the place to begin at is looked for, too */
    bool lost;     /* the reader cannot go on from where it began */
    bool reopened; /* the reader, after a doubt, and it has not got on since */
    _Atomic bool stop;
    uint32_t partitions; /* of the topic, as far as known when it was looked for */
    uint64_t from;
    uint64_t left;
    uint64_t next_offset;
    int status;
    pawl_error error;
    uint64_t deadline; /* of the next message, or of looking again */
    uint64_t until;    /* looking again, and a doubt, ends */
    uint64_t heard;    /* when a record came last, or it was known that there is none */
    uint64_t asked;    /* when a record came last, or a follow asked where the stream ends */
    bool peeking;      /* it asks that, and its cursor is open meanwhile */
    bool misses;       /* there is something to read, which has not come */
    struct bounds bounds;
    struct seek seek;
    struct stream_reader reader;
    rd_kafka_message_t *messages[TAKE_MAX];
    size_t taken, used;
    struct item items[TAKE_MAX];
    size_t count;
    pawl_work work;
};

/* Writing. */

#define FLIGHT_PENDING 1

struct flight {
    struct op *op;
    pawl_append_entry *entry;
    uint64_t ticket;   /* of its first record */
    uint64_t position; /* of its first record, as far as known */
    int status;
};

/* The last entry that the brokers refused, and why: no other is told that it is not there. */
struct refusal {
    uint64_t epoch, offset;
    const char *why; /* constant */
};

/* The owner has doubts: a thread of the pool looks where the stream ends. */
struct stream_look {
    struct op op;
    struct stream *stream;
    pawl_work work;
    bool under_way;
    bool ignored; /* the doubt is gone */
    int status;
    struct bounds bounds;
    pawl_error error;
};

enum claim_phase { PHASE_NONE, PHASE_CHECK, PHASE_LOOK, PHASE_SENT };

struct claiming {
    struct op op;
    struct stream *stream;
    pawl_work work;
    struct claiming *next_checked;
    bool seen; /* the topic, by this log, before */
    int status;
    uint64_t epoch, next, rival;
    pawl_error error;
};

struct stream {
    struct kafka_log *log;
    pawl_stream id;
    uint32_t number;
    char topic[KAFKA_TOPIC_MAX];
    uint64_t seed;
    uint32_t partitions;          /* of the topic; 0: not known */
    struct oplog_absence absence; /* of the topic; partition 0 of an operation log has it for all */

    struct judged *resume_points; /* by offset */
    size_t resume_count, resume_room;
    uint64_t resume_spacing;
    struct judged latest;
    struct find_fact proven[PROVEN_MAX]; /* a ring */
    size_t proven_next;
    struct find_fact ended[ENDED_MAX]; /* the last epochs that have entries, oldest first; 0: none */
    uint64_t told;                     /* the position up to which kafka_log_known has told */

    struct owner owner;
    uint64_t owner_sum; /* of the record before owner.judge.at */
    bool wide;          /* the owner has its whole window */
    bool corrupt;       /* for good: fault says why */
    bool doubt; /* records that the owner asked for could not be read: nothing is sent until the next claim */
    pawl_error fault;
    pawl_error
        trouble; /* why outcomes are unknown; until something is sent again, since an append that has ended may be
                           delivered only after the next claim */
    struct refusal refusal;

    struct flight *flights; /* a ring */
    size_t flight_room, flight_first, flight_count, flight_sent;
    uint64_t refused; /* the append that is refused */
    uint64_t unknown; /* entries whose outcome was reported as unknown, since the last claim */
    uint64_t moved;   /* when an entry was acknowledged last, or nothing waited for that (watch.c) */

    struct cursor cursor; /* the owner's */
    uint64_t read_to;
    uint64_t known;
    uint64_t deadline;
    struct stream *next_reading;
    bool reading;
    bool
        doubted; /* the owner's position is said to be out of range, or the stream to be shorter than is known */
    bool beyond;   /* the present leader has said so, too */
    bool reopened; /* the cursor, after a doubt, and nothing new has come since */
    uint64_t look_at;
    struct stream_look look;
    struct stream *next_waiting; /* for the end of a round */
    bool waiting;

    struct op_list claims; /* the first is under way */
    enum claim_phase phase;
    uint64_t claim_number;
    uint64_t claim_at; /* CLAIM_NOWHERE: not known yet */

    rd_kafka_topic_t *producing;
};

/* Whether brokers answer, and topics are still what they must be. Under lock. */
struct watch {
    pthread_t thread;
    pthread_cond_t wake;
    uint64_t heard; /* when a broker answered last */
    bool out;       /* that is too long ago */
    uint64_t outages;
    uint64_t out_ns;            /* of outages that are over */
    uint64_t connection_errors; /* connections to brokers that broke or could not be made */
    uint64_t check_at;          /* when topics are looked at again */
    uint32_t weak_topics;
    pawl_error weak; /* of the first of them */
};

/* Records that are encoded one behind the other, and then go to librdkafka at once: else its thread would wake for the first
 * one, and send a part of them. */
struct outgoing {
    rd_kafka_message_t *messages;
    size_t count;
    uint8_t *bytes;
    size_t used;
};

/* Why the list of operation logs could not be read, or a log of it not be made, when that was tried last. */
struct oplogs_failure {
    uint64_t at;
    bool of_all;        /* the list; otherwise */
    pawl_stream stream; /* this one, partition 0 */
    int status;
    pawl_error error;
};

struct kafka_log {
    pawl_log port;
    struct kafka_url url;
    pawl_env *env;
    const pawl_allocator *alloc;
    uint64_t node;
    uint64_t session; /* by chance; the upper half of its claims' nonces */
    uint64_t nonces;  /* under lock */
    uint32_t window;
    bool trust_topics;

    pthread_mutex_t lock;
    pthread_t thread;
    bool stopping;
    int bell;
    uint64_t serial;
    _Atomic size_t outstanding;
    _Atomic uint64_t read; /* of the figures: counted without the lock */
    struct kafka_figures figures;
    struct watch watch;
    struct histogram acks; /* ns from producing a record to its report */

    struct map by_stream; /* struct stream * */
    struct stream **streams;
    size_t stream_count, stream_room;
    struct stream *reading;
    struct stream *waiting;
    uint32_t rounds; /* on shards, to come or under way */
    uint32_t looks;  /* of owners, under way on the pool */
    pthread_cond_t round_ended;
    struct op_list appends;   /* in the order of the calls */
    size_t ripe;              /* of them: all entries have ended */
    struct op_list ready;     /* to be delivered */
    struct op_list back;      /* read passes that return to the log's thread */
    struct claiming *checked; /* claims that do, because their topic was checked */
    struct read_pass *passes;
    struct outbox *outboxes;
    uint32_t shards;
    uint32_t askers;         /* shards with outstanding appends, and threads outside as one more */
    size_t outside;          /* appends of those */
    _Atomic uint32_t taking; /* the shard that takes reports; PAWL_NO_SHARD: the log's thread does */

    rd_kafka_t *front; /* looks at topics */
    rd_kafka_t *producer;
    rd_kafka_queue_t *reports;
    bool producer_failed;
    struct outgoing outgoing; /* empty between two calls */

    struct skip_list skips; /* set while the log is opened */

    pthread_mutex_t oplogs_lock; /* for oplogs, and reading them with front; never taken with lock held */
    struct oplog_list oplogs;
    struct oplogs_failure oplogs_failure;

    pthread_mutex_t fetch_lock;
    struct fetcher *fetchers;
};

static inline void op_list_init(struct op_list *list)
{
    list->first = NULL;
    list->last = &list->first;
}

static inline void op_list_push(struct op_list *list, struct op *op)
{
    op->link = NULL;
    *list->last = op;
    list->last = &op->link;
}

static inline struct op *op_list_pop(struct op_list *list)
{
    struct op *op = list->first;
    if (op && !(list->first = op->link))
        list->last = &list->first;
    return op;
}

/* log.c */
void op_begin(struct kafka_log *log, struct op *op, void *request, void (*run)(struct op *op));
void kafka_ring(struct kafka_log *log);

/* deliver.c. deliver: without the lock, by the log's thread. begins and ends: with the lock; an append ends when it is
 * ready. came: librdkafka calls it when the first report comes. end: without the lock; nothing of the log is run
 * any more when it returns. */
int deliver_open(struct kafka_log *log);
void deliver_end(struct kafka_log *log);
void deliver_free(struct kafka_log *log);
void kafka_deliver(struct kafka_log *log);
bool kafka_in_round(const struct kafka_log *log); /* whether this thread is */
void kafka_append_begins(struct kafka_log *log, uint32_t shard);
void kafka_append_ends(struct kafka_log *log, uint32_t shard);
void kafka_reports_came(rd_kafka_t *client, void *log);

/* cursor.c: messages of one stream from a position on. bell: they ring it. take: up to
 * TAKE_MAX messages that have come; waits for the first. */
int cursor_open(struct stream *stream, uint64_t position, bool bell, struct cursor *cursor, pawl_error *error);
void cursor_close(struct cursor *cursor);
size_t cursor_take(struct cursor *cursor, int timeout_ms, rd_kafka_message_t **messages);
/* The end of the stream that the brokers told with the last messages. */
uint64_t cursor_end(const struct cursor *cursor);
void fetchers_serve(struct kafka_log *log);
void fetchers_close(struct kafka_log *log);

/* A message: FOUND_ENTRY is a record (of whatever kind), FOUND_END an end, whose position is in the record's.
 * before: what is known of the record before the first that is wanted. Errors name topic, partition and offset.
 */
int message_read(const struct stream *stream, const rd_kafka_message_t *message, const struct judged *before,
                 enum found *ret_found, struct kafka_record *ret_record, pawl_error *error);
int stream_fault(const struct stream *stream, int status, uint64_t position, pawl_error *error,
                 const char *why);

/* bounds.c. Block, but for judge and lost; without the lock.
 * bounds: PAWL_EIO: nobody has answered, ask again; wait does that until the URL's timeout. It waits for the
 * topic, too, which was there: if it is not there by then, that is PAWL_ECORRUPT, or PAWL_EIO if nothing is known of the
 * stream; absent makes this verdict. settle: of a reader in doubt; PAWL_OK: it goes on. stale: what a request ends with when
 * brokers have told an end that is not the end for too long. */
int stream_bounds(const struct stream *stream, struct bounds *ret_bounds, pawl_error *error);
int stream_bounds_wait(const struct stream *stream, uint64_t known, struct bounds *ret_bounds,
                       pawl_error *error);
int stream_reader_settle(struct stream_reader *reader, pawl_error *error);
enum doubt bounds_judge(const struct bounds *bounds, uint64_t at, uint64_t known);
int stream_lost(const struct stream *stream, enum doubt doubt, uint64_t at, uint64_t known, pawl_error *error);
int stream_absent(const struct stream *stream, uint64_t known, pawl_error *error);
int stream_stale(const struct stream *stream, pawl_error *error);

/* stream_reader.c. With the lock, except take, suspend, resume and close. open_at: at the place that was found. take:
 * FOUND_LOST comes from no other; what it has read so far is right, and open goes on at judge.next. suspend closes the cursor only, and
 * resume opens it again where the reader was; the stream is known to reach high. */
int stream_reader_open(struct stream *stream, uint64_t from, bool bell, struct stream_reader *reader,
                       pawl_error *error);
int stream_reader_open_at(struct stream *stream, const struct seek *seek, bool bell,
                          struct stream_reader *reader, pawl_error *error);
void stream_reader_suspend(struct stream_reader *reader);
int stream_reader_resume(struct stream_reader *reader, uint64_t high, pawl_error *error);
void stream_reader_close(struct stream_reader *reader);
int stream_reader_take(struct stream_reader *reader, const rd_kafka_message_t *message, enum found *ret_found,
                       pawl_entry *ret_entry, pawl_place *ret_place, pawl_error *error);
bool stream_reader_at_end(const struct stream_reader *reader);

/* scan.c: visit every record of a stream up to its present end; an error of visit, tick or wait ends it. tick, after
 * some records, and wait, while nobody says where the stream ends, may be NULL. Of a damaged stream the end says how far
 * it is good. Blocks; without the lock. */
struct scanned {
    uint64_t position;
    enum claim_verdict verdict;
    uint64_t node;           /* whose claim is the current one */
    bool claimed;            /* this record made it that */
    const pawl_entry *entry; /* NULL: none is complete with this record */
    size_t bytes;
};

struct stream_scan {
    int (*visit)(void *arg, const struct scanned *found, pawl_error *error);
    int (*tick)(void *arg, const struct stream_reader *reader, pawl_error *error);
    int (*wait)(void *arg, pawl_error *error);
    void *arg;
};

struct scan_end {
    struct judged judged;
    enum claim_verdict verdict; /* of the last record that was judged */
    uint64_t ignored;
};

int stream_scan(struct kafka_log *log, pawl_stream stream, const struct stream_scan *scan,
                struct scan_end *ret_end, pawl_error *error);

/* skips.c: whether the record that lies there, and cannot be read, is skipped; then
 * *ret_record is one that counts for nobody. */
bool stream_skips(const struct stream *stream, uint64_t position, pawl_bytes value,
                  struct kafka_record *ret_record);

/* oplogs.c. Block; without the lock. log_find_topic: how many partitions a stream's topic has, for whoever reads it; 0: it is
 * an operation log's that nobody has claimed yet. PAWL_ENOTFOUND, PAWL_EIO and PAWL_ECORRUPT name a topic that must be
 * there; *ret_doubt: it is PAWL_EIO because the topic is absent, and whoever looks again will know (L4). log_await_topic
 * does that. oplog_prepare: before a claim; seen: its topic was there before. */
int log_find_topic(struct kafka_log *log, const char *topic, pawl_stream stream, bool *ret_doubt,
                   uint32_t *ret_partitions, pawl_error *error);
int log_await_topic(struct kafka_log *log, const char *topic, pawl_stream stream, uint32_t *ret_partitions,
                    pawl_error *error);
int oplog_prepare(const struct stream *stream, bool seen, pawl_error *error);

/* find.c. begin: with the lock; whether it is worth a search. seek: blocks, without the lock; the stream is known to
 * reach high. */
bool stream_seek_begin(const struct stream *stream, uint64_t from, uint64_t limit, pawl_place at,
                       struct seek *seek);
void stream_seek(struct stream *stream, uint64_t high, struct seek *seek);

/* stream.c. before: the last that is not behind the offset. after: the first that is; NULL: none but the latest. */
int stream_find(struct kafka_log *log, pawl_stream id, struct stream **ret_stream);
void stream_release(struct stream *stream);
void stream_keep_resume_point(struct stream *stream, const struct judged *judged);
const struct judged *stream_resume_before(const struct stream *stream, uint64_t offset);
const struct judged *stream_resume_after(const struct stream *stream, uint64_t offset);

/* owner.c */
void stream_send(struct stream *stream);
void stream_reported(struct stream *stream, uint64_t ticket, const rd_kafka_message_t *message);
void stream_read_on(struct stream *stream); /* take the messages that have come for its owner */
void stream_tick(struct stream *stream, uint64_t now);
void stream_act(struct stream *stream, int status, const struct owner_actions *actions);
void stream_end_sent(struct stream *stream, int status);
/* Why entries are unknown, in words. */
void stream_trouble(struct stream *stream, const char *why);
int stream_read_from_owner(struct stream *stream, pawl_error *error); /* open the owner's cursor */
void stream_stop_reading(struct stream *stream);
void stream_settle(struct stream *stream);
void stream_look_run(struct op *op); /* never called: it tells a look from other requests */
void stream_looked(struct stream *stream);

/* claim.c */
int kafka_claim(pawl_log *log, pawl_claim *claim);
void claim_back(struct claiming *claiming);          /* its topic was checked */
void claim_step(struct stream *stream, bool at_end); /* something was read */
void claim_reported(struct stream *stream, uint64_t number, const rd_kafka_message_t *message);
void claim_end(struct stream *stream, int status, const char *words);

/* producer.c */
int producer_open(struct kafka_log *log, pawl_error *error);
void producer_close(struct kafka_log *log);
void producer_serve(struct kafka_log *log);
rd_kafka_resp_err_t producer_send_claim(struct stream *stream, struct kafka_record *record, uint64_t number);

/* Records of one stream go out together. has_room: for a body of so many bytes. add: encode one, which sets its
 * checksum. send: give all to librdkafka; each message has its error then, until clear. */
bool producer_has_room(const struct kafka_log *log, size_t body_bytes);
void producer_add(struct stream *stream, struct kafka_record *record, uint64_t ticket);
void producer_send(struct stream *stream);
void producer_clear(struct kafka_log *log);
uint64_t producer_ticket(const rd_kafka_message_t *message);

/* watch.c: start and stop its thread. heard: a broker has answered, at this time; with the lock. */
int watch_start(struct kafka_log *log);
void watch_stop(struct kafka_log *log); /* log->stopping is set; without the lock */
void watch_heard(struct kafka_log *log, uint64_t now);
void watch_event(struct kafka_log *log, rd_kafka_event_t *event); /* an error of a handle; with the lock */

/* append.c */
int kafka_append(pawl_log *log, pawl_append *append);
void kafka_collect(struct kafka_log *log);  /* appends that are ready */
void stream_wait(struct stream *stream);    /* to be sent when the round has ended */
void kafka_send_all(struct kafka_log *log); /* what waits for that */

/* read_alone.c. must_ask: whether a read needs to know where the stream ends, because it may want entries that this
 * log does not know of. With the lock. */
int kafka_read_alone(struct kafka_log *log, pawl_read *read);
bool kafka_must_ask(const struct stream *stream, uint64_t from, uint64_t limit);

/* read_pass.c. deadline: for an answer that is waited for from now on. */
uint64_t kafka_deadline(const struct kafka_log *log);
int kafka_no_answer(const struct kafka_log *log, pawl_error *error);
int kafka_read(pawl_log *log, pawl_read *read);
int kafka_follow(pawl_log *log, pawl_follow *follow);
int kafka_unfollow(pawl_log *log, pawl_follow *follow);
int kafka_tail(pawl_log *log, pawl_tail *tail);
void read_pass_back(struct read_pass *pass);
bool read_pass_step(struct read_pass *pass, uint64_t now); /* whether there may be more at once */
void read_pass_run(struct op *op);

#endif
