/* lease.h: numbers that many work on at once and that are committed in order.
 *
 * Work that must take effect in order, and takes long, need not be done in order. Each piece of work is bound
 * to the next number; workers lease numbers, work in parallel, hand in what they have made; and results leave
 * one after the other, 1, 2, 3, ..., with no gap. A number is never lost: if its worker fails, hangs or is
 * gone, the same number is given to another; or it is committed as an explicit void that says why.
 *
 *     bind ──► BOUND ── acquire ──► LEASED ── ready ─────► READY ── take ──► TAKEN ── commit ──► COMMITTED
 *                ▲                    │ │                    ▲                 │
 *                ├── expired, ────────┘ ├── fails for good ──┤                 │
 *                │   released,          │                    │                 │
 *                │   reclaimed          ├── fails too often, │                 │
 *                │                      │   policy void ─────┤                 │
 *                ├── in a while ── BACKING_OFF ───── void ───┤                 │
 *                ├── retry ─────── STALLED ───────── void ───┘                 │
 *                └── repeat ───────────────────────────────────────────────────┘
 *
 * fails, or is postponed: BACKING_OFF; fails too often, and the policy is stall: STALLED. void: an operator's
 * decision, also for BOUND and LEASED. repeat_early: from LEASED and READY back to BOUND, before the turn. A BOUND
 * number may be held: then it is not given out.
 *
 * Fencing. Every attempt has an operation ID of its own, 128 random bits. What a worker says of a number counts
 * only with the ID of the present attempt: a worker that was given up, and comes back after an hour's
 * sleep, gets PAWL_EFENCED. An ID is the present one until the number is given to somebody else, or the attempt
 * is over: released, failed, reclaimed, void. So a result that comes after the deadline counts if nobody else
 * has begun, and extending then takes the number back. Handing in stops the clock. Handing in again, what was
 * handed in or committed under the same ID, is harmless.
 *
 * Durations. The adaptive one is twice the average of what work of the same projection and of about the same
 * size has taken (options below); after an expiry the same number gets at least twice what it had. Slowness
 * never makes a void.
 *
 * Order and cost. Every call is O(1), amortised, whether ten numbers are leased or a million: nothing here
 * scans the active leases. Numbers that come back are given out again before new ones, the lowest first,
 * because what comes after them waits for them; that costs the logarithm of how many came back.
 *
 * Threads. All calls on one shard of the env, where the timer lives. Or, with the option untimed, on any
 * threads, one at a time, under a lock of the caller's: then acquire itself looks for numbers that have
 * expired, and a thread that sleeps until numbers come back calls pawl_leases_tick. Quick workers take and hand
 * in many numbers with one turn of the lock; for slow ones it costs nothing.
 *
 * Kept leases. A worker in another process outlives the process that has the table. With a store (below), the
 * lease that it was granted does so too:
 *
 *     acquire_kept ──► LEASED, store.keep ── settle: it is durable ──► the worker is answered
 *     a restart: new with the same store ──► bind n: store.find has n ──► LEASED, the same ID, the time runs anew
 *     committed, released, failed, expired, reclaimed, void, repeated ──► store.drop
 *
 * acquire never touches the store: who works inside the process pays nothing. What happens if the process ends,
 * or the power:
 *     granted, not kept        the number is given out anew; nobody was told of the lease
 *     kept, not answered       the lease is there, and expires: nobody knows its ID
 *     answered                 the lease is there, and its worker goes on
 *     handed in, not committed the lease is there; the result is not, so its worker hands it in again
 *     committed, not dropped   next, or reset, says that the number is committed: the row is dropped unread
 *     another attempt began    its row has taken the place of the first one's before anybody was told
 *
 * Invariants
 *   L1  committed <= taken <= bound: numbers up to committed are gone, those up to taken have had their turn.
 *   L2  A number between is in exactly one state, and has at most one operation ID that counts.
 *   L3  Numbers are taken, and committed, in order, each once; take stops at the first that is not READY.
 *   L4  bound - committed is at most the window: what is remembered of numbers is bounded.
 *   L5  The store has a row of a number while the number was acquired to be kept, its ID counts, and it is
 *       LEASED, READY or TAKEN; and of numbers that are not bound yet. So it has at most a window of rows.
 *   L6  A number that has a row is LEASED when it is bound: nobody else gets it before it has expired.
 *   L7  A row decides nothing that the numbers have decided: below next it is dropped, and so is one of another
 *       projection. Of two attempts at one number only the last one kept has a row.
 *   L8  Only a BOUND number is held, and never the next in turn: what is held cannot stop the others. */
#ifndef PAWL_LEASE_H
#define PAWL_LEASE_H

#include <pawl/env.h>
#include <pawl/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pawl_leases pawl_leases;

typedef struct pawl_operation_id {
    uint64_t high;
    uint64_t low;
} pawl_operation_id;

typedef enum pawl_lease_state {
    PAWL_LEASE_BOUND = 1,       /* waits for a worker */
    PAWL_LEASE_LEASED = 2,      /* somebody works on it */
    PAWL_LEASE_BACKING_OFF = 3, /* it failed or was postponed, and is tried again in a while */
    PAWL_LEASE_STALLED = 4,     /* it failed too often, and waits for a decision */
    PAWL_LEASE_READY = 5,       /* handed in; waits for its turn */
    PAWL_LEASE_TAKEN = 6,       /* its turn has come: being committed */
    PAWL_LEASE_COMMITTED = 7,
} pawl_lease_state;

#define PAWL_LEASE_WORDS_MAX 200 /* of a reason */

typedef struct pawl_lease {
    uint64_t number;
    pawl_lease_state state;
    pawl_operation_id operation; /* of the present or last attempt; zero before the first */
    uint32_t projection;         /* as bound */
    void *work;                  /* the same; NULL once committed */
    uint32_t attempt;            /* 1 is the first; 0: none yet */
    bool is_void;
    pawl_instant leased_at;    /* the present or last attempt began; 0: there was none */
    pawl_duration duration;    /* granted: a lease ends so long after leased_at, unless it is extended */
    pawl_instant committed_at; /* 0: it is not */
    const char *words;         /* why the last attempt ended; "" or a text that lasts until the next call */
} pawl_lease;

typedef enum pawl_lease_policy { PAWL_LEASE_STALL, PAWL_LEASE_VOID } pawl_lease_policy;

/* Limits: an alert is raised when one is exceeded. Zero means the default. */
typedef struct pawl_lease_thresholds {
    double expired_rate; /* 0.05 of the attempts that ended in the last minute, if those are 20 or more */
    pawl_duration average_wait; /* 5 s, over the turns of the last minute, if those are 20 or more */
    uint64_t active;            /* 1000 now */
    uint64_t voids;             /* 100 in the last minute */
} pawl_lease_thresholds;

/* A lease as a store keeps it. */
typedef struct pawl_lease_row {
    uint64_t number;
    pawl_operation_id operation;
    uint32_t projection;
    uint32_t attempt;
    uint32_t failures;
    pawl_duration duration; /* so long it runs when it is restored, from the bind of its number on */
} pawl_lease_row;

/* Where leases are kept: durable rows by number, of one table. keep, drop and find are called where the table is
 * called, and must not wait for a disk: they only note what is to be done. What they are told takes effect in
 * that order, also on the disk: a row that was dropped and kept again is there. */
typedef struct pawl_lease_store {
    /* Keep this row, in the place of one with the same number. A row whose duration is longer, and which is the
     * same otherwise, may stay as it is. An error means that nothing was noted, and is what acquire_kept or extend
     * returns. */
    int (*keep)(void *ctx, const pawl_lease_row *row);

    /* Remove the row of this number, if there is one; soon, but nobody waits for it. */
    void (*drop)(void *ctx, uint64_t number);

    /* The row with the lowest number from this one on. What was noted counts, durable or not. False: none. */
    bool (*find)(void *ctx, uint64_t from, pawl_lease_row *ret_row);

    /* Wait until everything that was noted before this call is durable. On any thread, many at once: one sync
     * may do for all. An error: some of it may not be durable. */
    int (*settle)(void *ctx);
} pawl_lease_store;

#define PAWL_LEASE_WINDOW_MAX ((uint32_t)1 << 20)

typedef struct pawl_leases_options {
    pawl_env *env;
    uint64_t next;        /* the first number to bind; 0: 1 */
    uint32_t window;      /* a power of two; 0: 4096 */
    uint32_t projections; /* kinds of work, each with a queue and an estimate of its own; 0: 1, at most 65536 */
    bool untimed;         /* no timer: see Threads */

    /* Zero means the default. */
    pawl_duration duration_first; /* 30 s: before anything was observed */
    pawl_duration duration_min;   /* 1 s */
    pawl_duration duration_max;   /* 10 minutes */
    pawl_duration backoff_min;    /* 100 ms; doubled each time */
    pawl_duration backoff_max;    /* 1 minute */
    uint32_t attempts_max;        /* 5 failures */
    uint32_t remembered;          /* 1000 committed numbers */
    pawl_lease_thresholds thresholds;

    /* Numbers came back that can be acquired, or that can be taken: after an expiry, a back-off. May be NULL;
     * on the env's shard; may call anything but free. */
    void (*changed)(void *ctx);
    void *ctx;

    /* Where leases are kept; NULL: nowhere. It outlives the table. */
    const pawl_lease_store *store;
    void *store_ctx;
    const pawl_allocator *allocator;
} pawl_leases_options;

/* PAWL_EINVAL; PAWL_ENOMEM. Everything is allocated here but reasons: those as they come, and without memory
 * they are left out. */
PAWL_API int pawl_leases_new(const pawl_leases_options *options, pawl_leases **ret_leases, pawl_error *error);
PAWL_API void pawl_leases_free(pawl_leases *leases);

/* What is to be done when a number of this projection has failed attempts_max times; STALL at first. 0: as it
 * is. */
PAWL_API int pawl_leases_policy(pawl_leases *leases, uint32_t projection, pawl_lease_policy policy,
                                uint32_t attempts_max);

/* The one who commits numbers of this projection works on them too, when their turn has come: to acquire them
 * and to hand them in is a formality. They are left out of the figures of the last minute (attempts, turns,
 * waits, time granted, commits; but not voids), which are about the work of others. From the next bind on.
 * PAWL_EINVAL: there is no such projection. */
PAWL_API int pawl_leases_uncounted(pawl_leases *leases, uint32_t projection);

/* Bind work to the next number. bytes: its size, for the estimate. PAWL_EBUSY: the window is full. */
PAWL_API int pawl_leases_bind(pawl_leases *leases, uint32_t projection, void *work, size_t bytes,
                              uint64_t *ret_number);

/* The number that acquire would give; 0: none. */
PAWL_API uint64_t pawl_leases_peek(const pawl_leases *leases, uint32_t projection);

/* Lease up to max numbers. duration 0: adaptive; else at most duration_max is granted. PAWL_ENOTFOUND: there is
 * none. PAWL_EINVAL: there is no such projection. */
PAWL_API int pawl_leases_acquire(pawl_leases *leases, uint32_t projection, pawl_duration duration, size_t max,
                                 pawl_lease *ret_leases, size_t *ret_count);

/* The same, for workers whose leases outlive this process: each lease is given to the store. Call settle before
 * you tell the worker; if that fails, release what was acquired. If the store takes only some of them, those are
 * acquired. PAWL_EMISUSE: there is no store. Or the store's error. */
PAWL_API int pawl_leases_acquire_kept(pawl_leases *leases, uint32_t projection, pawl_duration duration,
                                      size_t max, pawl_lease *ret_leases, size_t *ret_count);

/* Wait until all that the store was told before is durable: leases that were acquired or extended, and the end
 * of those that were released. On any thread, also beside other calls, and never on a shard: it waits for a
 * disk. PAWL_OK if there is no store; else what the store says. */
PAWL_API int pawl_leases_settle(const pawl_leases *leases);

/* Do not keep this lease any longer: it ends with the table, because something that only this process knows belongs to
 * it. Nothing else changes. True: it was kept; settle before you rely on it. */
PAWL_API bool pawl_leases_unkeep(pawl_leases *leases, uint64_t number, pawl_operation_id operation);

/* Whether this lease is in the store and its number is not bound yet. Then nobody else has it, and extend,
 * release, postpone, fail and ready say PAWL_EBUSY: ask again when it is bound. */
PAWL_API bool pawl_leases_is_awaited(const pawl_leases *leases, uint64_t number, pawl_operation_id operation);

/* From now on this long (0: adaptive again). Errors of these five: PAWL_EFENCED, also if the number is
 * committed and no longer remembered; PAWL_ENOTFOUND: no such number has been bound; PAWL_EBUSY: see is_awaited.
 * A lease that is kept is kept with its new time: settle before you tell the worker. extend: the store's error,
 * and then nothing has changed. */
PAWL_API int pawl_leases_extend(pawl_leases *leases, uint64_t number, pawl_operation_id operation,
                                pawl_duration duration);

/* Given back, not failed: the attempt does not count. */
PAWL_API int pawl_leases_release(pawl_leases *leases, uint64_t number, pawl_operation_id operation,
                                 const char *words);

/* The same, because something that the work needs is not to be had now: it is tried again after a while, which
 * is as long as after a failure, and longer each time. */
PAWL_API int pawl_leases_postpone(pawl_leases *leases, uint64_t number, pawl_operation_id operation,
                                  const char *words);

/* The work failed. permanent: no other attempt would do better; it becomes a void. */
PAWL_API int pawl_leases_fail(pawl_leases *leases, uint64_t number, pawl_operation_id operation, bool permanent,
                              const char *words);

/* Whether this number's next failure is the one after which its projection's policy decides: expiries do not
 * count, nor what failed before a retry. False also for a number that is not bound, or is committed. */
PAWL_API bool pawl_leases_is_last(const pawl_leases *leases, uint64_t number);

/* Hand in. result is the caller's, and comes back from take. *ret_again (may be NULL): it was handed in before
 * under this ID, and result was not looked at. */
PAWL_API int pawl_leases_ready(pawl_leases *leases, uint64_t number, pawl_operation_id operation, void *result,
                               bool *ret_again);

/* The same for many, which then share one look at the clock. status and again are filled in. */
typedef struct pawl_handed {
    uint64_t number;
    pawl_operation_id operation;
    void *result;
    int status;
    bool again;
} pawl_handed;

PAWL_API void pawl_leases_ready_many(pawl_leases *leases, pawl_handed *handed, size_t count);

typedef struct pawl_turn {
    uint64_t number;
    pawl_operation_id operation;
    uint32_t projection;
    uint32_t attempt;
    void *work;
    void *result; /* NULL if void */
    bool is_void;
    const char *words; /* why it is void; until it is committed */
} pawl_turn;

/* The ready numbers whose turn has come, at most max; returns how many. */
PAWL_API size_t pawl_leases_take(pawl_leases *leases, size_t max, pawl_turn *ret_turns);

/* The last one that was taken must be worked on again, because what it rests on has changed: no failure, the
 * same attempt, the first to be given out. A void's turn just comes again. PAWL_EMISUSE: it is not the last one
 * taken. */
PAWL_API int pawl_leases_repeat(pawl_leases *leases, uint64_t number);

/* The same before its turn, for a number that is leased or ready: it is known already that its work was in vain. Whoever
 * has it is fenced; its result, if it was handed in, is the caller's again. Neither an attempt nor a failure is
 * counted. PAWL_EMISUSE: it is the next in turn, which is not interrupted. PAWL_ENOTFOUND: it is neither leased nor
 * ready, or it is void. */
PAWL_API int pawl_leases_repeat_early(pawl_leases *leases, uint64_t number);

/* Do not give out this number (held), or give it out again, for one who foresees that work on it would be in vain now.
 * Whoever has an expired lease of it may still hand in its result. A number that becomes the next in turn, is leased,
 * or comes back in any way is not held any more. PAWL_EMISUSE: to hold the next in turn. PAWL_ENOTFOUND: it is
 * not BOUND. */
PAWL_API int pawl_leases_hold(pawl_leases *leases, uint64_t number, bool held);

/* The last one that was taken cannot be committed, and would fail again in the same way: as if its attempts
 * were used up, the policy decides. PAWL_EMISUSE: it is not the last one taken. */
PAWL_API int pawl_leases_refuse(pawl_leases *leases, uint64_t number, const char *words);

/* All up to this number, which were taken, are committed. Saying so of the last one again does nothing.
 * PAWL_EMISUSE: it is above the last one taken, or below the last one committed. */
PAWL_API int pawl_leases_commit(pawl_leases *leases, uint64_t number);

/* Forget all that is not committed: whoever works on it is fenced. But leases that are kept stay in the store,
 * from next on: they are restored when their numbers are bound again. The next number to bind is the one given,
 * which is above the last committed one. visit (may be NULL) gets each number's work, and its result if it has
 * been handed in; it may not call anything here. PAWL_EMISUSE: next is not above the last committed one. */
PAWL_API int pawl_leases_reset(pawl_leases *leases, uint64_t next,
                               void (*visit)(void *arg, uint64_t number, void *work, void *result), void *arg);

/* An operator's: take a lease back; let a number that is stalled or backs off be tried at once, with all
 * attempts before it; decide that a number, in whichever state before READY, is void. PAWL_ENOTFOUND: there is
 * no such number in such a state. */
PAWL_API int pawl_leases_reclaim(pawl_leases *leases, uint64_t number);
PAWL_API int pawl_leases_retry(pawl_leases *leases, uint64_t number);
PAWL_API int pawl_leases_void(pawl_leases *leases, uint64_t number, const char *words);

/* Look at numbers from this one on (0: the first not committed; remembered ones can be looked at too), until
 * visit returns false. */
PAWL_API void pawl_leases_list(const pawl_leases *leases, uint64_t from,
                               bool (*visit)(void *arg, const pawl_lease *lease), void *arg);

/* Expire leases and end back-offs that are due, at most 256 of them, and then call changed. The
 * timer does this by itself. Returns how long nothing more is due; 0: there is more; UINT64_MAX: nothing runs.
 */
PAWL_API pawl_duration pawl_leases_tick(pawl_leases *leases);

typedef enum pawl_lease_alert {
    PAWL_LEASE_ALERT_EXPIRED = 1, /* durations are too short */
    PAWL_LEASE_ALERT_WAIT = 2,    /* overloaded */
    PAWL_LEASE_ALERT_ACTIVE = 4,  /* memory */
    PAWL_LEASE_ALERT_VOIDS = 8,   /* look at the errors */
    PAWL_LEASE_ALERT_STALLED = 16,
} pawl_lease_alert;

/* What it means, and what to do: one sentence each. */
PAWL_API const char *pawl_lease_alert_text(pawl_lease_alert alert);
PAWL_API const char *pawl_lease_alert_advice(pawl_lease_alert alert);

/* What happened in the last minute. Sums, so that those of several tables can be added up. */
typedef struct pawl_lease_minute {
    uint64_t ended; /* attempts, in whichever way */
    uint64_t expired;
    uint64_t committed;
    uint64_t voids;
    uint64_t turns;
    pawl_duration waited; /* of the turns: between handing in and the turn */
    pawl_duration used;   /* of the time that was granted */
    pawl_duration granted;
} pawl_lease_minute;

typedef struct pawl_lease_figures {
    uint64_t bound;     /* the last number */
    uint64_t taken;     /* the same */
    uint64_t watermark; /* committed */
    uint64_t active;    /* leased now */
    uint64_t waiting;   /* handed in, and not yet taken */
    uint64_t stalled;
    uint64_t acquired; /* from here on: since it was made */
    uint64_t committed;
    uint64_t expired;
    uint64_t released;
    uint64_t failed;
    uint64_t voids;
    uint64_t fenced;
    uint64_t repeated;
    pawl_duration repeated_time; /* that work took which was repeated */
    pawl_lease_minute minute;    /* from here on: of the last minute */
    double utilisation;          /* used / granted */
    pawl_duration average_wait;  /* between handing in and the turn */
    pawl_duration p99_wait;      /* within an eighth; of the last half to whole minute */
    double efficiency;           /* committed / (committed + expired); 1 before anything */
    bool performing_well;        /* efficiency > 0.95 and average_wait < 1 s */
    uint32_t alerts;             /* of enum pawl_lease_alert, or-ed */
} pawl_lease_figures;

PAWL_API void pawl_leases_figures_get(const pawl_leases *leases, pawl_lease_figures *ret_figures);

/* Several tables as one. Numbers and the sums of the minute are added up, and rates and averages are worked out
 * from these. p99_wait becomes the larger one: that of all turns is not above it. Alerts are or-ed; those of
 * all together are for pawl_lease_alerts to say. Begin with figures that are zero. */
PAWL_API void pawl_lease_figures_add(pawl_lease_figures *to, const pawl_lease_figures *more);

/* The alerts, or-ed, that such figures raise. */
PAWL_API uint32_t pawl_lease_alerts(const pawl_lease_figures *figures, const pawl_lease_thresholds *thresholds);

/* What acquire would grant now to work of this size. */
PAWL_API pawl_duration pawl_leases_estimate(const pawl_leases *leases, uint32_t projection, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
