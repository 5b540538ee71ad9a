#include "adapter/lmdb/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"

#define MARK_TEMP MARK_FILE ".tmp"

/* On disk: "PAWLMARK", u32 version, u32 state, u64 device, inode, mount, 48 bytes of boot ID padded with zeros,
 * u64 checksum of all before it. */
#define MAGIC      "PAWLMARK"
#define MARK_BYTES 96

_Static_assert(8 + 4 + 4 + 3 * 8 + MARK_BOOT_BYTES + 8 == MARK_BYTES, "the fields fill the mark");

static int read_file(int dir_fd, const char *name, void *bytes, size_t size, size_t *ret_size)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    size_t have = 0;
    int number = 0;
    while (have < size) {
        ssize_t n = read(fd, (uint8_t *)bytes + have, size - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            number = errno;
        if (n <= 0)
            break;
        have += (size_t)n;
    }
    close(fd);
    *ret_size = have;
    return number;
}

static void boot_id(char boot[MARK_BOOT_BYTES])
{
    size_t size = 0;
    memset(boot, 0, MARK_BOOT_BYTES);
    if (read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot, MARK_BOOT_BYTES - 1, &size) != 0)
        size = 0;
    boot[size] = '\0';
    boot[strcspn(boot, "\n")] = '\0';
}

int mark_identify(int dir_fd, const char *file, const char *boot, struct mark_identity *ret_identity,
                  pawl_error *error)
{
    struct statx s;
    if (statx(dir_fd, file, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_MNT_ID, &s) != 0)
        return error_errno(error, errno, "cannot stat %s", file);
    struct mark_identity id = {
        .device = makedev(s.stx_dev_major, s.stx_dev_minor),
        .inode = s.stx_ino,
        .mount = s.stx_mask & STATX_MNT_ID ? s.stx_mnt_id : 0,
    };
    if (boot)
        snprintf(id.boot, sizeof id.boot, "%s", boot);
    else
        boot_id(id.boot);
    *ret_identity = id;
    return PAWL_OK;
}

static void encode_mark(const struct mark *mark, uint8_t bytes[MARK_BYTES])
{
    struct encoder e = encoder_over(bytes, MARK_BYTES);
    encode_raw(&e, (pawl_bytes){MAGIC, 8});
    encode_u32(&e, MARK_VERSION);
    encode_u32(&e, (uint32_t)mark->state);
    encode_u64(&e, mark->identity.device);
    encode_u64(&e, mark->identity.inode);
    encode_u64(&e, mark->identity.mount);
    encode_raw(&e, (pawl_bytes){mark->identity.boot, MARK_BOOT_BYTES});
    encode_u64(&e, hash_checksum(0, (pawl_bytes){bytes, encoder_size(&e)}));
}

int mark_identify_file(int dir_fd, const char *file, struct mark_identity *ret_identity, pawl_error *error)
{
    struct statx s;
    if (statx(dir_fd, file, AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &s) != 0)
        return error_errno(error, errno, "cannot stat %s", file);
    uint64_t birth = (uint64_t)s.stx_btime.tv_sec * UINT64_C(1000000000) + s.stx_btime.tv_nsec;
    *ret_identity = (struct mark_identity){.device = s.stx_mask & STATX_BTIME ? birth : 0, .inode = s.stx_ino};
    return PAWL_OK;
}

static int decode_mark(pawl_bytes bytes, struct mark *ret_mark, pawl_error *error)
{
    struct decoder d = decoder_over(bytes);
    const uint8_t *magic = decode_raw(&d, 8);
    uint32_t version = decode_u32(&d);
    if (d.bad || memcmp(magic, MAGIC, 8) != 0)
        return error_set(error, PAWL_ECORRUPT, "%s does not begin as a mark", MARK_FILE);
    if (version > MARK_VERSION)
        return error_set(error, PAWL_EVERSION, "%s has version %u, known up to %d", MARK_FILE, version,
                         MARK_VERSION);
    uint32_t state = decode_u32(&d);
    struct mark mark = {.state = (enum mark_state)state};
    mark.identity.device = decode_u64(&d);
    mark.identity.inode = decode_u64(&d);
    mark.identity.mount = decode_u64(&d);
    const uint8_t *boot = decode_raw(&d, MARK_BOOT_BYTES);
    uint64_t sum = decode_u64(&d);
    if (d.bad || d.left != 0 || sum != hash_checksum(0, (pawl_bytes){bytes.data, MARK_BYTES - 8})
        || state < MARK_VOID || state > MARK_OPEN || boot[MARK_BOOT_BYTES - 1] != 0)
        return error_set(error, PAWL_ECORRUPT, "%s is damaged", MARK_FILE);
    memcpy(mark.identity.boot, boot, MARK_BOOT_BYTES);
    *ret_mark = mark;
    return PAWL_OK;
}

int mark_read(int dir_fd, struct mark *ret_mark, pawl_error *error)
{
    uint8_t bytes[MARK_BYTES + 1]; /* one more, to see that it is longer */
    size_t size = 0;
    int number = read_file(dir_fd, MARK_FILE, bytes, sizeof bytes, &size);
    if (number)
        return error_errno(error, number, "cannot read %s", MARK_FILE);
    return decode_mark((pawl_bytes){bytes, size}, ret_mark, error);
}

static int write_synced(int fd, const uint8_t *bytes, size_t size)
{
    while (size) {
        ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        bytes += n;
        size -= (size_t)n;
    }
    return fsync(fd) == 0 ? 0 : errno;
}

int mark_write(int dir_fd, const struct mark *mark, pawl_error *error)
{
    uint8_t bytes[MARK_BYTES];
    encode_mark(mark, bytes);
    int fd = openat(dir_fd, MARK_TEMP, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_errno(error, errno, "cannot create %s", MARK_TEMP);
    int number = write_synced(fd, bytes, sizeof bytes);
    close(fd);
    if (number)
        return error_errno(error, number, "cannot write %s", MARK_TEMP);
    if (renameat(dir_fd, MARK_TEMP, dir_fd, MARK_FILE) != 0)
        return error_errno(error, errno, "cannot replace %s", MARK_FILE);
    if (fsync(dir_fd) != 0)
        return error_errno(error, errno, "cannot sync the directory of %s", MARK_FILE);
    return PAWL_OK;
}

static bool identity_same(const struct mark_identity *a, const struct mark_identity *b)
{
    return a->boot[0] && strcmp(a->boot, b->boot) == 0 && a->device == b->device && a->inode == b->inode
           && a->mount == b->mount;
}

enum mark_verdict mark_judge(int read, const struct mark *mark, bool data, const struct mark_identity *now,
                             enum pawl_store_mode mode, const char **ret_why)
{
    if (read == PAWL_ENOTFOUND && !data)
        return MARK_MAKE;
    bool marked = read == PAWL_OK;
    if (marked && data && mark->state == MARK_CLEAN)
        return MARK_USE;
    if (marked && data && mark->state == MARK_DIRTY && identity_same(&mark->identity, now))
        return mode == PAWL_STORE_DURABLE ? MARK_SYNC : MARK_USE;
    if (marked && data && mark->state == MARK_OPEN && mark->identity.inode == now->inode
        && mark->identity.device == now->device)
        return MARK_USE;
    if (marked && data && mark->state == MARK_OPEN) {
        *ret_why = "it was copied while it was in use";
        return MARK_DISCARD;
    }
    if (marked && mark->state == MARK_VOID) {
        *ret_why = "its making, copying or discarding was interrupted";
        return MARK_DISCARD;
    }
    if (marked && mark->state == MARK_DIRTY) {
        *ret_why = "it was not closed, and has since lost power or been moved";
        return MARK_DISCARD;
    }
    *ret_why = marked                   ? "its data is missing or cut short"
               : read == PAWL_ENOTFOUND ? "its mark is missing"
                                        : "its mark is damaged";
    return mode == PAWL_STORE_DURABLE ? MARK_DAMAGED : MARK_DISCARD;
}
