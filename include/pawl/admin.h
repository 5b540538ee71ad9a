/* admin.h: maintenance of a directory and its log: verify, replay, audit, backup, restore, doctor. For a log on
 * Apache Kafka there is pawl/cluster.h.
 *
 *     pawl_directory_get what a directory was made with, and where its log is
 *     pawl_verify_log    read every byte of a log: is it as it was written?
 *     pawl_replay        derive the state again from the log, compare it, and keep it if asked to
 *     pawl_backup        save a directory while it is in use
 *     pawl_restore       bring a backup back, after checking it
 *     pawl_doctor        see what a damaged log still holds, and save it elsewhere
 *
 * To verify a directory: call pawl_verify_log; if it finds no faults, call pawl_replay without a directory to
 * keep the state in. To audit it (both of its states are compared with the log): the same, with audit set.
 *
 * Names. A directory is named DIR or file://DIR.
 *
 * Threads. Each call blocks until it is done, and may be made on any thread that is not one of Pawl's. None
 * needs an engine to be open. Calls on one directory may run beside each other and beside the process that
 * writes, unless it says otherwise below.
 *
 * Progress. Each function takes a pawl_progress. It is called on the calling thread, again and again, at least
 * once before the function succeeds; done never goes back. total is 0 while it is not known; it grows if there
 * is more to do than was thought. Each function says what is counted.
 *
 * Cancelling. If the pawl_progress returns false, the function ends with PAWL_ECANCELED, and does not call it
 * again. It may finish the store or the segment of the log that it is working on first. Each function says what
 * it leaves behind.
 *
 * Ownership. What the options point to is borrowed for the call. A report is the caller's; where it has a
 * release function, call that once after success. After an error the report is untouched and there is nothing
 * to release.
 *
 * Errors. Damage that a function looks for is not an error: it returns PAWL_OK, and the report has the damage,
 * with the first fault in words. Any function may end with PAWL_ENOMEM, PAWL_EIO or PAWL_EACCES. */
#ifndef PAWL_ADMIN_H
#define PAWL_ADMIN_H

#include <pawl/lane.h>
#include <pawl/log.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- what a directory is --- */

#define PAWL_PATH_MAX 4096

typedef struct pawl_directory {
    uint32_t partitions; /* both numbers are for ever */
    uint32_t shards;
    bool derived; /* it holds only state, of another directory's log, and can only be read: pawl_replay */
    char log[PAWL_PATH_MAX]; /* the directory of the log; or its URL, if it is on Kafka */
} pawl_directory;

/* Read what an engine's directory was made with. Opens nothing and takes no lock.
 * Errors: PAWL_ENOTFOUND (it is not there, or is not an engine's: a log alone, or something else), PAWL_EINVAL
 * (not the name of a directory), PAWL_ETOOBIG (a path is too long), PAWL_EFORMAT, PAWL_EVERSION. */
PAWL_API int pawl_directory_get(const char *where, pawl_directory *ret_directory, pawl_error *error);

/* --- verify a log --- */

#define PAWL_NO_BYTE UINT64_MAX

/* Something that is not as it was written. */
typedef struct pawl_log_fault {
    char file[48];
    uint64_t at;      /* PAWL_NO_BYTE: the file as a whole */
    uint64_t lsn;     /* of the record; 0: it is not about one */
    pawl_error error; /* the whole sentence, with file and byte */
} pawl_log_fault;

typedef struct pawl_log_report_stream {
    pawl_stream id;
    uint64_t entries;
    uint64_t first; /* offset; 0: it has no entry */
    uint64_t last;
    uint64_t epoch;
} pawl_log_report_stream;

typedef struct pawl_log_report {
    uint64_t segments;
    uint64_t records; /* entries, claims and watermarks */
    uint64_t entries;
    uint64_t claims;
    uint64_t watermarks;
    uint64_t unwitnessed; /* records that are whole, but nothing proves that they are durable; readers leave out
                             the entries among them */
    uint64_t bytes;       /* of the segments' files */
    uint64_t dead_bytes;  /* left behind by recoveries */
    uint64_t torn_bytes;  /* unfinished at the end of the newest segment; no fault */
    char torn_file[48];
    uint64_t torn_at;
    uint64_t bad_indexes; /* index files that are not valid: they are made again when needed */
    bool clean;           /* the last writer closed it */

    uint64_t faults;
    pawl_log_fault first; /* if there are faults; the others may be its consequences */

    pawl_log_report_stream *streams; /* in the order in which they appear */
    size_t stream_count;

    /* Pawl's own. */
    size_t stream_room;
    const pawl_allocator *alloc;
} pawl_log_report;

/* Read a whole journal, and check every record's checksum, place and offset, and every segment's header. where
 * is DIR or file://DIR, the directory of a log alone or of an engine. Only reads, and takes no lock. Goes on
 * after a fault. progress, which may be NULL, counts bytes. If it is cancelled, it leaves nothing behind.
 * Errors, if the journal could not be read at all: PAWL_EINVAL (not the name of a directory), PAWL_ENOTFOUND
 * (no journal there), PAWL_EFORMAT, PAWL_EVERSION, PAWL_ECANCELED, and PAWL_ECORRUPT if the journal's id is
 * damaged or missing. */
PAWL_API int pawl_verify_log(const char *where, pawl_progress progress, void *arg, pawl_log_report *ret_report,
                             pawl_error *error);
PAWL_API void pawl_log_report_release(pawl_log_report *report);

/* --- verify, audit or replay a state --- */

typedef struct pawl_replay_options {
    const char *dir;
    const char *to; /* a directory to keep the derived state in, which must not exist; NULL: nothing is kept */
    uint64_t
        until; /* the last offset of each partition; 0: all. Less than DIR's own state: nothing is compared */
    pawl_progress progress; /* may be NULL; counts events, and does not know how many there will be */
    void *arg;
    pawl_unwitnessed_visit left_out; /* may be NULL; on the calling thread, in the end: pawl_unwitnessed */
    void *left_out_arg;
    bool backup;    /* DIR may be a backup, or may have lost power: it has checkpoints, but no live stores */
    bool audit;     /* compare the checkpoint stores too */
    bool reproject; /* work operations of lanes out again, from their events */
    const pawl_allocator *allocator; /* NULL: the C library's */
} pawl_replay_options;

/* One of the two states that a directory has. */
typedef struct pawl_state_side {
    uint32_t compared; /* partitions whose state was compared */
    uint32_t behind;   /* of them, those whose state lacks events of the log */
    uint32_t views;    /* tables of views that were compared, each in one partition */
    uint64_t differences;
    pawl_error first; /* the first difference, in words: partition, table, row, and which side has what */
} pawl_state_side;

typedef struct pawl_state_report {
    uint64_t events;         /* derived */
    uint64_t rows;           /* in the derived state, but for those of lanes */
    pawl_lane_verdict lanes; /* what lanes have done; compared only if reproject was asked for */
    pawl_state_side live;
    pawl_state_side
        checkpoint; /* with audit, or if there is no live state; a missing checkpoint is not compared */
} pawl_state_report;

/* Derive the state of a directory again, from its log, and compare.
 *
 *     DIR/log ── derive ──► a fresh state ── at the offset where DIR's own state stands: equal? ──► report
 *
 * Only reads DIR. Each partition is compared at the offset that DIR's state has come to. For each table three
 * digests are compared: the one that the state keeps, that of the stored rows, and that of the derived rows.
 * The sequence storage is compared at its own offset. The tables of lanes are derived from their operation logs,
 * and compared at the operation that they have come to. Views are derived with their bases; of a view that is
 * being built, what it covers is compared.
 *
 * PAWL_OK even with differences: the report has them. If it is cancelled, or after any other error, it leaves
 * nothing behind: the directory to is removed. Errors: PAWL_EEXISTS (to is there), PAWL_ECANCELED, and those of
 * opening DIR, of reading its log, of deriving (PAWL_ECORRUPT, naming the event), of writing. */
PAWL_API int pawl_replay(const pawl_replay_options *options, pawl_state_report *ret_report, pawl_error *error);

/* --- backup and restore --- */

typedef struct pawl_backup_options {
    const char *dir; /* DIR, or BACKUP */
    const char *to;  /* NEW, or DIR */

    /* Of a restore. */
    bool replace;   /* DIR may be there: it is kept as DIR.before, which must not be there */
    uint64_t until; /* not 0: each partition ends with this offset; the state is derived anew at the first
                       opening */
    /* Of a log on Kafka: derive the whole state from it, and compare. Of one in files that is always done. */
    bool derive;

    pawl_progress progress; /* may be NULL; counts bytes of the log, which is read two or three times */
    void *arg;
    const pawl_allocator *allocator; /* NULL: the C library's */
} pawl_backup_options;

typedef struct pawl_backup_report {
    uint64_t events;    /* that the copied stores have */
    uint64_t log_bytes; /* of the copied segments; 0 if the log was written anew */
    uint64_t derived;   /* events that were derived from the log, to compare; of a restore */
    uint64_t records;   /* of a log on Kafka, that were read to check the stores against it; of a restore */
} pawl_backup_report;

/* Save a directory while it is in use.
 *
 *     DIR ── checkpoint stores, then the journal ──► NEW.new ── checked, renamed ──► NEW
 *
 * A backup is like a directory after a loss of power: it has a log, and checkpoint stores that lack the last
 * events. The stores are copied first, so the log has all that they have. When a backup is opened, the
 * checkpoints become the live stores, and the rest of the log is replayed.
 *
 * NEW is complete, or not there at all. If it is cancelled, or after any other error, it leaves nothing behind.
 * A process that is killed leaves NEW.new, which the next backup to NEW removes. Errors: PAWL_EEXISTS (NEW
 * exists, or a NEW.new that no backup has left), PAWL_ELOCKED (another process makes it), PAWL_ENOTFOUND,
 * PAWL_EREADONLY (DIR has no log of its own), PAWL_ECANCELED, those of reading and writing. */
PAWL_API int pawl_backup(const pawl_backup_options *options, pawl_backup_report *ret_report, pawl_error *error);

/* Bring a backup back.
 *
 *     BACKUP ── checked against its own log ──► DIR.new ── renamed ──► DIR
 *     and if DIR is to be replaced:             DIR.new ──► DIR.before ◄─ exchanged ─► DIR
 *
 * The backup's stores become the live stores of DIR, which can be read at once.
 *
 * A log on Kafka may be longer than anybody wants to read. So unless derive is set, a backup's stores must be, byte for
 * byte, what pawl_backup wrote, and the log must have the very entries that they have come to; the state is derived again,
 * and compared, only if the bytes are others, or DIR is no backup. The first opening derives only what came behind.
 *
 * If it is cancelled, or after any other error, DIR is as it was, and nothing else is left behind. If it is
 * interrupted by a kill or a loss of power, DIR is either as it was or completely restored; the next restore
 * removes what else was left. Errors: as of pawl_backup; PAWL_ELOCKED: DIR is to be replaced, and another
 * process writes to it; PAWL_ECORRUPT: the backup's log is damaged, or its stores contradict its log;
 * PAWL_EINVAL: the file system cannot exchange DIR with the new directory in one step. */
PAWL_API int pawl_restore(const pawl_backup_options *options, pawl_backup_report *ret_report,
                          pawl_error *error);

/* --- doctor --- */

/* Offsets first to last. */
typedef struct pawl_offset_range {
    uint64_t first;
    uint64_t last;
} pawl_offset_range;

typedef struct pawl_doctor_stream {
    pawl_stream id;
    pawl_offset_range *intact; /* ascending, with gaps between them */
    size_t count;
    size_t room;      /* Pawl's own */
    uint64_t next;    /* one above the highest offset that anything found mentions */
    uint64_t entries; /* intact ones */
    uint64_t dense;   /* of these, from offset 1 to the first hole: what a journal can hold */
} pawl_doctor_stream;

typedef struct pawl_doctor_report {
    uint64_t segments;
    uint64_t segments_missing;
    uint64_t headers_damaged;
    uint64_t places_damaged; /* where records are lost, or the bytes are not a record */
    uint64_t bytes_damaged;
    pawl_error first; /* the first damage, in words; code PAWL_OK: there is none */

    pawl_doctor_stream *streams;
    size_t stream_count;

    /* Pawl's own. */
    size_t stream_room;
    const pawl_allocator *alloc;
} pawl_doctor_report;

/* Read past damage, and report for each stream which offsets are intact and which are lost. The log, named as
 * for pawl_verify_log, is only read. If to is given, which must be empty or not exist, intact entries are saved
 * there: each stream up to its first hole as a log, and entries behind a hole in TO/behind-holes/STREAM.ndjson.
 * progress, which may be NULL, counts bytes. If it is cancelled, or after any other error, what was written to
 * TO stays: remove it before you save there again. Errors: PAWL_ENOTFOUND, PAWL_EFORMAT (no journal there),
 * PAWL_EVERSION, PAWL_ECORRUPT (the journal's id is lost everywhere, so no checksum can be checked),
 * PAWL_EEXISTS (to is not empty), PAWL_EINVAL, PAWL_ECANCELED, and errors of writing. */
PAWL_API int pawl_doctor(const char *where, const char *to, pawl_progress progress, void *arg,
                         pawl_doctor_report *ret_report, pawl_error *error);
PAWL_API void pawl_doctor_report_release(pawl_doctor_report *report);

#ifdef __cplusplus
}
#endif
#endif
