/* adapter/mirror/files.c: the segments: found again at opening, written by a thread of their own, read by anybody. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapter/mirror/impl.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/wait.h"

#define MARK "mark"

static void path_of(const struct mirror *m, uint64_t number, char path[MIRROR_PATH + 40])
{
    snprintf(path, MIRROR_PATH + 40, "%s/%016" PRIx64 ".seg", m->dir, number);
}

static void path_of_mark(const struct mirror *m, char path[MIRROR_PATH + 40])
{
    snprintf(path, MIRROR_PATH + 40, "%s/" MARK, m->dir);
}

/* --- segments, under the lock --- */

static void segment_use(struct segment *segment)
{
    segment->users++;
}

static void segment_leave(struct mirror *m, struct segment *segment)
{
    if (--segment->users == 0)
        pthread_cond_signal(&m->wake);
}

static struct segment *newest(const struct mirror *m)
{
    struct segment *s = m->segments;
    while (s && s->next)
        s = s->next;
    return s;
}

static void add_segment(struct mirror *m, struct segment *segment)
{
    struct segment **at = &m->segments;
    while (*at)
        at = &(*at)->next;
    *at = segment;
    m->bytes += segment->size;
}

/* Nobody finds it any more; its file is removed by the thread, without the lock. */
static void remove_oldest(struct mirror *m)
{
    struct segment *segment = m->segments;
    mirror_forget(m, segment);
    m->segments = segment->next;
    m->bytes -= segment->size;
    segment->removed = true;
    segment->next = m->removed;
    m->removed = segment;
    pthread_cond_signal(&m->wake);
}

static void remove_all(struct mirror *m)
{
    while (m->segments)
        remove_oldest(m);
}

/* Something is in doubt. */
static void discard(struct mirror *m)
{
    remove_all(m);
    m->figures.discarded++;
}

/* A segment that was removed, and that nobody reads; it leaves the list. */
static struct segment *take_removed(struct mirror *m)
{
    struct segment **at = &m->removed;
    while (*at && (*at)->users > 0)
        at = &(*at)->next;
    struct segment *segment = *at;
    if (segment)
        *at = segment->next;
    return segment;
}

/* Without the lock. */
static void segment_free(struct mirror *m, struct segment *segment)
{
    char path[MIRROR_PATH + 40];
    path_of(m, segment->number, path);
    if (segment->removed)
        (void)unlink(path);
    close(segment->fd);
    mem_free(m->alloc, segment, sizeof *segment);
}

/* --- reading --- */

static bool read_whole(int fd, uint8_t *to, size_t size, uint64_t at)
{
    while (size > 0) {
        ssize_t got = pread(fd, to, size, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got;
        at += (uint64_t)got;
        size -= (size_t)got;
    }
    return true;
}

static bool is_block(const uint8_t *bytes, size_t size, pawl_stream stream, uint64_t first)
{
    pawl_stream id;
    uint64_t from, end;
    size_t length;
    return block_head_read(bytes, &id, &from, &end, &length) && length == size && from == first
           && pawl_stream_equal(id, stream) && block_check(bytes, size);
}

/* From its segment; the lock is given up meanwhile, and the block may be gone then. */
static bool fetch_from_file(struct mirror *m, const struct block *b, uint8_t *bytes, size_t size)
{
    struct segment *segment = b->segment;
    pawl_stream stream = b->stream->id;
    uint64_t at = b->at, first = b->first;
    segment_use(segment);
    pthread_mutex_unlock(&m->lock);
    bool good = read_whole(segment->fd, bytes, size, at) && is_block(bytes, size, stream, first);
    pthread_mutex_lock(&m->lock);
    if (!good && !segment->removed)
        discard(m);
    segment_leave(m, segment);
    return good;
}

int mirror_fetch(struct mirror *m, pawl_stream stream, uint64_t offset, uint8_t **ret_bytes, size_t *ret_size,
                 uint64_t *ret_first)
{
    int status = PAWL_ENOTFOUND;
    pthread_mutex_lock(&m->lock);
    const struct mirrored *s = mirror_stream(m, stream, false);
    const struct block *b = s ? mirror_find(s, offset) : NULL;
    size_t size = b ? b->size : 0;
    uint64_t first = b ? b->first : 0;
    uint8_t *bytes = b ? mem_new(m->alloc, 1, size) : NULL;
    if (bytes && b->bytes) {
        memcpy(bytes, b->bytes, size);
        status = PAWL_OK;
    } else if (bytes && fetch_from_file(m, b, bytes, size)) {
        status = PAWL_OK;
    }
    pthread_mutex_unlock(&m->lock);
    if (status != PAWL_OK) {
        mem_free(m->alloc, bytes, size);
        return status;
    }
    *ret_bytes = bytes;
    *ret_size = size;
    *ret_first = first;
    return PAWL_OK;
}

/* --- the directory --- */

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The numbers of the segments that are there; with remove, all of them are removed. */
static size_t list_segments(struct mirror *m, bool remove, uint64_t *numbers, size_t room)
{
    char path[MIRROR_PATH + 40];
    size_t count = 0;
    DIR *dir = opendir(m->dir);
    for (const struct dirent *d; dir && (d = readdir(dir));) {
        char *end;
        uint64_t number = strtoull(d->d_name, &end, 16);
        if (end != d->d_name + 16 || strcmp(end, ".seg") != 0)
            continue;
        path_of(m, number, path);
        if (remove || count == room)
            (void)unlink(path);
        else
            numbers[count++] = number;
    }
    if (dir)
        closedir(dir);
    if (count > 0)
        qsort(numbers, count, sizeof numbers[0], by_number);
    return count;
}

/* Make the directory, with nothing in it but the mark; an errno. Without the lock: the thread does it, or nobody else is
 * there yet. */
static int make_empty(struct mirror *m)
{
    char path[MIRROR_PATH + 40];
    size_t size = strlen(m->mark);
    if (mkdir(m->dir, 0700) != 0 && errno != EEXIST)
        return errno;
    (void)list_segments(m, true, NULL, 0);
    path_of_mark(m, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    ssize_t put = write(fd, m->mark, size);
    int failed = put < 0 ? errno : put < (ssize_t)size ? ENOSPC : 0;
    close(fd);
    return failed;
}

/* --- writing, on the thread --- */

/* NULL: errno says why. */
static struct segment *open_segment(struct mirror *m, uint64_t number, int flags)
{
    char path[MIRROR_PATH + 40];
    struct stat there;
    path_of(m, number, path);
    struct segment *segment = mem_new(m->alloc, 1, sizeof *segment);
    if (!segment) {
        errno = ENOMEM;
        return NULL;
    }
    segment->number = number;
    segment->fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
    if (segment->fd >= 0 && fstat(segment->fd, &there) == 0) {
        segment->size = (uint64_t)there.st_size;
        return segment;
    }
    int why = errno;
    if (segment->fd >= 0)
        close(segment->fd);
    mem_free(m->alloc, segment, sizeof *segment);
    errno = why;
    return NULL;
}

/* False: errno says why. */
static bool write_whole(int fd, const uint8_t *from, size_t size, uint64_t at)
{
    while (size > 0) {
        ssize_t put = pwrite(fd, from, size, (off_t)at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put == 0)
            errno = ENOSPC;
        if (put <= 0)
            return false;
        from += put;
        at += (uint64_t)put;
        size -= (size_t)put;
    }
    return true;
}

static void set_off(struct mirror *m, int why)
{
    error_errno(&m->off, why, "cannot write to %.150s", m->dir);
    m->retry_at = wait_deadline(m->retry_ns);
}

/* The disk is full, or worse: what this took is of more use to others. It is discarded once, however often the thread
 * tries again. */
static void turn_off(struct mirror *m, int why)
{
    remove_all(m);
    m->figures.discarded += m->off.code == PAWL_OK;
    set_off(m, why);
}

/* Where the next block goes; NULL: nowhere, and it is off. Under the lock, which is given up meanwhile. */
static struct segment *segment_for(struct mirror *m, size_t size)
{
    struct segment *segment = newest(m);
    if (segment && segment->size + size <= m->bytes_max / SEGMENTS)
        return segment;
    while (m->segments && m->bytes + size > m->bytes_max - m->bytes_max / SEGMENTS)
        remove_oldest(m);
    uint64_t number = ++m->number;
    pthread_mutex_unlock(&m->lock);
    segment = open_segment(m, number, O_CREAT | O_TRUNC);
    int why = errno;
    pthread_mutex_lock(&m->lock);
    if (segment)
        add_segment(m, segment);
    else
        turn_off(m, why);
    m->marked = m->marked && (segment || why != ENOENT); /* somebody has removed the directory */
    return segment;
}

static void forget_block(struct mirror *m, struct block *b)
{
    struct mirrored *s = b->stream;
    size_t kept = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->blocks[s->begin + i] != b)
            s->blocks[s->begin + kept++] = s->blocks[s->begin + i];
    s->count = kept;
    block_free(m, b);
}

/* At the end of a segment that is in use. Under the lock, which is given up meanwhile; false: it is off. */
static bool write_at_end(struct mirror *m, const struct segment *segment, const uint8_t *bytes, size_t size)
{
    uint64_t at = segment->size;
    pthread_mutex_unlock(&m->lock);
    bool good = write_whole(segment->fd, bytes, size, at);
    int why = errno;
    pthread_mutex_lock(&m->lock);
    if (!good)
        turn_off(m, why);
    return good;
}

/* One block. Under the lock, which is given up meanwhile. */
static void write_block(struct mirror *m, struct block *b)
{
    bool wanted = m->off.code == PAWL_OK && b->size <= m->bytes_max / SEGMENTS;
    struct segment *segment = wanted ? segment_for(m, b->size) : NULL;
    if (segment) {
        uint64_t at = segment->size;
        segment_use(segment);
        block_seal_bytes(b); /* under the lock: its bytes are read */
        if (write_at_end(m, segment, b->bytes, b->size) && !segment->removed) {
            b->segment = segment;
            b->at = at;
            segment->size += b->size;
            m->bytes += b->size;
        }
        segment_leave(m, segment);
    }
    if (!b->segment) {
        forget_block(m, b);
        return;
    }
    mem_free(m->alloc, b->bytes, b->room);
    b->bytes = NULL;
    b->room = 0;
}

/* It is off: make the directory, if that is what failed, and write as much as a block has. The next block is written over
 * it. Under the lock, which is given up meanwhile. */
static void try_again(struct mirror *m)
{
    static const uint8_t zeros[BLOCK_BYTES];
    if (!m->marked) {
        pthread_mutex_unlock(&m->lock);
        int why = make_empty(m);
        pthread_mutex_lock(&m->lock);
        m->marked = why == 0;
        if (why) {
            set_off(m, why);
            return;
        }
    }
    struct segment *segment = segment_for(m, sizeof zeros);
    if (!segment)
        return;
    segment_use(segment);
    if (write_at_end(m, segment, zeros, sizeof zeros))
        m->off = (pawl_error){0};
    segment_leave(m, segment);
}

/* Until there is something to do. */
static void wait_for_work(struct mirror *m)
{
    if (m->off.code == PAWL_OK)
        pthread_cond_wait(&m->wake, &m->lock);
    else if (!cond_wait_until(&m->wake, &m->lock, m->retry_at))
        try_again(m);
}

static void *mirror_main(void *arg)
{
    struct mirror *m = arg;
    pthread_mutex_lock(&m->lock);
    while (m->waiting || m->removed || !m->stop) {
        struct block *b = m->waiting;
        struct segment *removed = take_removed(m);
        if (removed) {
            pthread_mutex_unlock(&m->lock);
            segment_free(m, removed);
            pthread_mutex_lock(&m->lock);
            continue;
        }
        if (!b) {
            wait_for_work(m);
            continue;
        }
        m->waiting = b->next;
        if (!m->waiting)
            m->last_waiting = &m->waiting;
        m->waiting_bytes -= b->size;
        write_block(m, b);
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

/* --- opening and closing --- */

/* The blocks of a segment. What a process that was killed has written by half is cut off. */
static void load_segment(struct mirror *m, struct segment *segment)
{
    uint8_t head[BLOCK_HEADER];
    uint64_t at = 0;
    struct block *last = NULL;
    while (segment->size - at >= sizeof head && read_whole(segment->fd, head, sizeof head, at)) {
        pawl_stream id;
        uint64_t first, end;
        size_t size;
        if (!block_head_read(head, &id, &first, &end, &size) || size > segment->size - at)
            break;
        struct mirrored *s = mirror_stream(m, id, true);
        struct block *b = s ? block_new(m, s, first, 0) : NULL;
        bool fits = b && (s->count == 0 || s->blocks[s->begin + s->count - 1]->end <= first);
        if (!fits || block_add(m, s, b) != PAWL_OK) {
            if (b)
                block_free(m, b);
            break;
        }
        b->end = end;
        b->size = size;
        b->segment = segment;
        b->at = at;
        b->closed = true;
        at += size;
        last = b;
    }
    uint8_t *bytes = last ? mem_new(m->alloc, 1, last->size) : NULL;
    if (bytes
        && !(read_whole(segment->fd, bytes, last->size, last->at)
             && is_block(bytes, last->size, last->stream->id, last->first))) {
        at = last->at;
        mem_free(m->alloc, bytes, last->size);
        forget_block(m, last);
    } else if (bytes) {
        mem_free(m->alloc, bytes, last->size);
    }
    m->bytes -= segment->size;
    segment->size = at;
    m->bytes += segment->size;
}

static void load(struct mirror *m)
{
    uint64_t numbers[SEGMENTS * 2];
    size_t count = list_segments(m, false, numbers, SEGMENTS * 2);
    for (size_t i = 0; i < count; i++) {
        struct segment *segment = open_segment(m, numbers[i], 0);
        m->number = numbers[i];
        if (!segment)
            continue;
        add_segment(m, segment);
        load_segment(m, segment);
    }
    while (m->segments && m->bytes > m->bytes_max)
        remove_oldest(m);
}

static void boot_of(const char *given, char boot[64])
{
    int fd = given ? -1 : open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, boot, 63) : 0;
    if (fd >= 0)
        close(fd);
    if (given)
        snprintf(boot, 64, "%s", given);
    else
        boot[size > 0 ? size : 0] = '\0';
    boot[strcspn(boot, "\n")] = '\0';
}

/* Whether what lies there was written since the machine was started, and for this log. */
static bool is_trusted(const struct mirror *m, const char *path)
{
    char mark[sizeof m->mark] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t size = read(fd, mark, sizeof mark - 1);
    close(fd);
    return size > 0 && strcmp(mark, m->mark) == 0;
}

void mirror_files_open(struct mirror *m, const char *boot_id, const char *id)
{
    char boot[64], path[MIRROR_PATH + 40];
    sigset_t all, before;
    boot_of(boot_id, boot);
    snprintf(m->mark, sizeof m->mark, "%d %s %.160s\n", MIRROR_VERSION, boot, id);
    path_of_mark(m, path);
    m->marked = boot[0] && is_trusted(m, path);
    if (m->marked) {
        load(m);
    } else {
        m->figures.discarded += access(path, F_OK) == 0;
        int why = make_empty(m);
        m->marked = why == 0;
        if (why)
            set_off(m, why);
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&m->thread, NULL, mirror_main, m);
    m->running = failed == 0;
    if (failed)
        error_errno(&m->off, failed, "cannot start the thread that writes to %.150s", m->dir);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void mirror_files_close(struct mirror *m)
{
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->stream_count && m->running; i++) {
        struct mirrored *s = m->streams[i];
        struct block *b = s->count > 0 ? s->blocks[s->begin + s->count - 1] : NULL;
        if (b && !b->closed && b->end > b->first)
            block_close(m, b);
    }
    m->stop = true;
    pthread_cond_signal(&m->wake);
    pthread_mutex_unlock(&m->lock);
    if (m->running)
        pthread_join(m->thread, NULL);
    for (size_t i = 0; i < m->stream_count; i++) {
        struct mirrored *s = m->streams[i];
        for (size_t n = 0; n < s->count; n++)
            block_free(m, s->blocks[s->begin + n]);
        mem_free(m->alloc, s->blocks, s->room * sizeof s->blocks[0]);
        mem_free(m->alloc, s, sizeof *s);
    }
    for (struct segment *s = m->segments, *next; s; s = next) {
        next = s->next;
        segment_free(m, s);
    }
    for (struct segment *s; (s = take_removed(m));)
        segment_free(m, s);
}
