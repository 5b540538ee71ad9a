#include "adapter/journal/home.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "adapter/journal/segment.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"

static const char magic[8] = "PAWLJRN\n";

#define ID_BYTES ((size_t)48)

struct contents {
    bool journal;
    bool other;
    char name[64];
};

static void look_at(void *arg, const char *name)
{
    struct contents *c = arg;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, "lost+found") == 0)
        return;
    if (strcmp(name, "journal") == 0) {
        c->journal = true;
        return;
    }
    c->other = true;
    snprintf(c->name, sizeof c->name, "%s", name);
}

/* Whether path holds a journal; makes path if it is not there and may be made. */
static int look_into(const struct disk *disk, const char *path, bool read_only, bool *ret_journal,
                     pawl_error *error)
{
    int dir = disk->open_dir(disk->ctx, path);
    if (dir == -ENOENT && !read_only) {
        int rc = disk->make_dir(disk->ctx, path);
        if (rc < 0 && rc != -EEXIST)
            return error_errno(error, -rc, "cannot make directory %s", path);
        dir = disk->open_dir(disk->ctx, path);
    }
    if (dir < 0)
        return error_errno(error, -dir, "cannot open directory %s", path);
    struct contents c = {0};
    int rc = disk->list(disk->ctx, dir, look_at, &c);
    disk->close(disk->ctx, dir);
    if (rc < 0)
        return error_errno(error, -rc, "cannot list directory %s", path);
    if (!c.journal && c.other)
        return error_set(error, PAWL_EFORMAT, "%s is not a Pawl directory: it holds '%s' and no journal", path,
                         c.name);
    if (!c.journal && read_only)
        return error_set(error, PAWL_ENOTFOUND, "%s holds no journal", path);
    *ret_journal = c.journal;
    return PAWL_OK;
}

static int read_id(struct home *home, const char *path, pawl_error *error)
{
    const struct disk *disk = home->disk;
    int file = disk->open(disk->ctx, home->dir, "id", O_RDONLY);
    if (file == -ENOENT) {
        home->is_new = true;
        return PAWL_OK;
    }
    if (file < 0)
        return error_errno(error, -file, "cannot open %s/id", path);
    uint8_t bytes[ID_BYTES + 1];
    int64_t n = disk_read_all(disk, file, bytes, sizeof bytes, 0);
    disk->close(disk->ctx, file);
    if (n < 0)
        return error_errno(error, (int)-n, "cannot read %s/id", path);
    struct decoder d = decoder_over((pawl_bytes){bytes, (size_t)n});
    const uint8_t *found = decode_raw(&d, sizeof magic);
    uint32_t version = decode_u32(&d);
    if (!found || memcmp(found, magic, sizeof magic) != 0)
        return error_set(error, PAWL_EFORMAT, "%s/id, byte 0: it is not the ID of a Pawl journal", path);
    if (!d.bad && version > FORMAT_VERSION)
        return error_set(error, PAWL_EVERSION,
                         "%s/id, byte 8: the journal's format is version %" PRIu32
                         "; this program knows up to %d",
                         path, version, FORMAT_VERSION);
    if ((size_t)n != ID_BYTES
        || get_u64(bytes + ID_BYTES - 8) != hash_checksum(0, (pawl_bytes){bytes, ID_BYTES - 8}))
        return error_set(error, PAWL_ECORRUPT, "%s/id, byte 8: it does not match its checksum", path);
    (void)decode_u32(&d);
    home->id.high = decode_u64(&d);
    home->id.low = decode_u64(&d);
    return PAWL_OK;
}

static int take_lock(struct home *home, const char *path, pawl_error *error)
{
    const struct disk *disk = home->disk;
    home->lock = disk->open(disk->ctx, home->dir, "lock", O_RDWR | O_CREAT);
    if (home->lock < 0)
        return error_errno(error, -home->lock, "cannot open %s/lock", path);
    int rc = disk->lock(disk->ctx, home->lock);
    char pid[16] = {0};
    if (rc == -EWOULDBLOCK) {
        (void)disk_read_all(disk, home->lock, pid, sizeof pid - 1, 0);
        pid[strspn(pid, "0123456789")] = '\0';
        return error_set(error, PAWL_ELOCKED, "%s is open for writing in another place (process %s)", path,
                         pid[0] ? pid : "unknown");
    }
    if (rc < 0)
        return error_errno(error, -rc, "cannot lock %s/lock", path);
    /* For the message above only, so it need not succeed. */
    snprintf(pid, sizeof pid, "%-10d\n", (int)getpid());
    (void)disk_write_all(disk, home->lock, pid, strlen(pid), 0);
    return PAWL_OK;
}

/* The directories' names must be synced before anything in the journal is. The process that made them may have
 * been killed before it could sync them, so this is done again as long as there is no id. */
static int sync_way(const struct disk *disk, const char *path, pawl_error *error)
{
    static const char *const above[] = {"", "/.."};
    char name[4096 + 4];
    for (size_t i = 0; i < sizeof above / sizeof above[0]; i++) {
        snprintf(name, sizeof name, "%s%s", path, above[i]);
        int dir = disk->open_dir(disk->ctx, name);
        if (dir == -EACCES && i > 0)
            continue; /* a data directory that was made for us, where we may not look */
        int rc = dir < 0 ? dir : disk_sync_dir(disk, dir);
        if (dir >= 0)
            disk->close(disk->ctx, dir);
        if (rc < 0)
            return error_errno(error, -rc, "cannot sync directory %s", name);
    }
    return PAWL_OK;
}

int home_open(struct home *home, const struct disk *disk, const char *path, bool read_only, struct id128 new_id,
              pawl_error *error)
{
    *home = (struct home){.disk = disk, .dir = -1, .lock = -1, .id = new_id};
    bool exists = false;
    int status = look_into(disk, path, read_only, &exists, error);
    if (status != PAWL_OK)
        return status;
    char inner[4096];
    if (snprintf(inner, sizeof inner, "%s/journal", path) >= (int)sizeof inner)
        return error_set(error, PAWL_EINVAL, "the path is too long: %.100s...", path);
    if (!exists) {
        int rc = disk->make_dir(disk->ctx, inner);
        if (rc < 0 && rc != -EEXIST) /* another was faster: the lock will tell who may write */
            return error_errno(error, -rc, "cannot make directory %s", inner);
    }
    home->dir = disk->open_dir(disk->ctx, inner);
    if (home->dir < 0)
        return error_errno(error, -home->dir, "cannot open directory %s", inner);
    status = read_id(home, inner, error);
    if (status == PAWL_OK && !read_only)
        status = take_lock(home, inner, error);
    /* Another may have settled it between our look and our lock. */
    if (status == PAWL_OK && !read_only && home->is_new) {
        home->is_new = false;
        status = read_id(home, inner, error);
    }
    if (status == PAWL_OK && !read_only && home->is_new)
        status = sync_way(disk, path, error);
    if (status == PAWL_OK && read_only && home->is_new)
        status =
            error_set(error, PAWL_ENOTFOUND, "%s holds no journal: it was never finished being made", path);
    if (status != PAWL_OK)
        home_close(home);
    return status;
}

int home_settle(struct home *home, int64_t created_ns, pawl_error *error)
{
    const struct disk *disk = home->disk;
    uint8_t bytes[ID_BYTES];
    struct encoder e = encoder_over(bytes, sizeof bytes);
    encode_raw(&e, (pawl_bytes){magic, sizeof magic});
    encode_u32(&e, FORMAT_VERSION);
    encode_u32(&e, 0);
    encode_u64(&e, home->id.high);
    encode_u64(&e, home->id.low);
    encode_u64(&e, (uint64_t)created_ns);
    encode_u64(&e, hash_checksum(0, (pawl_bytes){bytes, encoder_size(&e)}));
    int file = disk->open(disk->ctx, home->dir, "id.tmp", O_WRONLY | O_CREAT | O_TRUNC);
    if (file < 0)
        return error_errno(error, -file, "cannot make journal/id.tmp");
    int rc = disk_write_all(disk, file, bytes, sizeof bytes, 0);
    if (rc == 0)
        rc = disk_sync(disk, file);
    disk->close(disk->ctx, file);
    if (rc == 0)
        rc = disk->rename(disk->ctx, home->dir, "id.tmp", "id");
    if (rc == 0)
        rc = disk_sync_dir(disk, home->dir);
    if (rc < 0)
        return error_errno(error, -rc, "cannot write journal/id");
    home->is_new = false;
    return PAWL_OK;
}

bool home_has_writer(const struct home *home)
{
    const struct disk *disk = home->disk;
    int lock = disk->open(disk->ctx, home->dir, "lock", O_RDONLY);
    if (lock < 0)
        return false; /* no writer was ever here, or none that we may know of */
    int locked = disk->locked(disk->ctx, lock);
    disk->close(disk->ctx, lock);
    return locked > 0;
}

struct sweep {
    char names[16][SEGMENT_NAME_MAX + 8];
    size_t count;
};

static void collect_draft(void *arg, const char *name)
{
    struct sweep *s = arg;
    size_t length = strlen(name);
    if (length > 4 && length < sizeof s->names[0] && strcmp(name + length - 4, ".tmp") == 0
        && s->count < sizeof s->names / sizeof s->names[0])
        memcpy(s->names[s->count++], name, length + 1);
}

void home_sweep(struct home *home)
{
    struct sweep s = {.count = 0};
    if (home->disk->list(home->disk->ctx, home->dir, collect_draft, &s) < 0)
        return;
    for (size_t i = 0; i < s.count; i++)
        home->disk->remove(home->disk->ctx, home->dir, s.names[i]);
}

void home_close(struct home *home)
{
    if (home->lock >= 0)
        home->disk->close(home->disk->ctx, home->lock);
    if (home->dir >= 0)
        home->disk->close(home->disk->ctx, home->dir);
    home->lock = home->dir = -1;
}
