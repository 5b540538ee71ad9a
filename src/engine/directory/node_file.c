#include "engine/directory/node_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/id.h"
#include "core/group0/import.h"

#define FILE_NAME  "node"
#define TEXT_MAX   (128 + NODE_KAFKA_MAX + NODE_PATH_MAX)
#define SHARDS_MAX 64

int node_path(const char *dir, char *ret_path, pawl_error *error, const char *format, ...)
{
    char path[NODE_PATH_MAX];
    int size = snprintf(path, sizeof path, "%s/", dir);
    if (size > 0 && (size_t)size < sizeof path) {
        va_list arguments;
        va_start(arguments, format);
        int more = vsnprintf(path + size, sizeof path - (size_t)size, format, arguments);
        va_end(arguments);
        if (more >= 0 && (size_t)more < sizeof path - (size_t)size) {
            memcpy(ret_path, path, sizeof path);
            return PAWL_OK;
        }
    }
    return error_set(error, PAWL_ETOOBIG, "%s: the path is longer than %d bytes", dir, NODE_PATH_MAX);
}

static int read_text(const char *path, char *text, pawl_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(error, errno, "cannot open %s", path);
    ssize_t size = read(fd, text, TEXT_MAX - 1);
    int failed = errno;
    close(fd);
    if (size < 0)
        return error_errno(error, failed, "cannot read %s", path);
    text[size] = '\0';
    return PAWL_OK;
}

/* Read "WORD NUMBER" and the end of the line, and move *text behind it. */
static bool read_number(const char **text, const char *word, uint32_t *ret_number)
{
    size_t size = strlen(word);
    if (strncmp(*text, word, size) != 0 || (*text)[size] != ' ')
        return false;
    const char *at = *text + size + 1;
    uint32_t number = 0;
    size_t digits = 0;
    for (; *at >= '0' && *at <= '9' && digits < 9; digits++)
        number = number * 10 + (uint32_t)(*at++ - '0');
    if (digits == 0 || *at != '\n')
        return false;
    *text = at + 1;
    *ret_number = number;
    return true;
}

bool node_is_on_kafka(const struct node_file *file)
{
    return strncmp(file->log, "kafka://", 8) == 0;
}

uint64_t node_id_new(void)
{
    uint64_t id = 0;
    while (id == 0 || import_is_node(id))
        if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id)
            id = 0;
    return id;
}

/* Read "node " and 16 hexadecimal digits, and move *text behind the line. */
static bool read_node(const char **text, uint64_t *ret_node)
{
    static const char word[] = "node ", digits[] = "0123456789abcdef";
    const char *at = *text;
    uint64_t node = 0;
    if (strncmp(at, word, sizeof word - 1) != 0)
        return false;
    at += sizeof word - 1;
    for (size_t i = 0; i < 16; i++, at++) {
        const char *digit = *at ? strchr(digits, *at) : NULL;
        if (!digit)
            return false;
        node = node << 4 | (uint64_t)(digit - digits);
    }
    if (node == 0 || *at != '\n')
        return false;
    *text = at + 1;
    *ret_node = node;
    return true;
}

/* Read "kafka " and an ID, and move *text behind the line. */
static bool read_kafka(const char **text, char kafka[NODE_KAFKA_MAX])
{
    static const char word[] = "kafka ";
    if (strncmp(*text, word, sizeof word - 1) != 0)
        return false;
    const char *id = *text + sizeof word - 1;
    size_t size = strcspn(id, " \t\r\n");
    if (size == 0 || size >= NODE_KAFKA_MAX || id[size] != '\n')
        return false;
    memcpy(kafka, id, size);
    kafka[size] = '\0';
    *text = id + size + 1;
    return true;
}

/* Read what follows the numbers: nothing, or the path of a log. */
static bool read_log_line(const char *line, char log[NODE_PATH_MAX])
{
    static const char word[] = "log ";
    log[0] = '\0';
    if (line[0] == '\0')
        return true;
    size_t size = strlen(line);
    if (strncmp(line, word, sizeof word - 1) != 0 || line[size - 1] != '\n'
        || size - sizeof word >= NODE_PATH_MAX)
        return false;
    memcpy(log, line + sizeof word - 1, size - sizeof word);
    log[size - sizeof word] = '\0';
    return strchr(log, '\n') == NULL;
}

int node_file_read(const char *dir, struct node_file *ret_file, pawl_error *error)
{
    char path[NODE_PATH_MAX], text[TEXT_MAX];
    const char *at = text;
    uint32_t version, partitions, shards;
    int status = node_path(dir, path, error, FILE_NAME);
    if (status == PAWL_OK)
        status = read_text(path, text, error);
    if (status != PAWL_OK)
        return status;
    struct node_file file = {0};
    bool good = read_number(&at, "pawl", &version);
    if (good && version > NODE_FILE_VERSION)
        return error_set(error, PAWL_EVERSION, "%s is of version %u; this program knows version %d", path,
                         version, NODE_FILE_VERSION);
    if (!good || version == 0 || !read_number(&at, "partitions", &partitions)
        || !read_number(&at, "shards", &shards) || (version >= 2 && !read_node(&at, &file.node))
        || (version >= 3 && !read_kafka(&at, file.kafka)) || !read_log_line(at, file.log)
        || (version >= 2) != node_is_on_kafka(&file))
        return error_set(error, PAWL_EFORMAT, "%s is not the file of a Pawl directory", path);
    if (partitions == 0 || partitions > PARTITIONS_MAX || (partitions & (partitions - 1)) || shards == 0
        || shards > SHARDS_MAX || shards > partitions)
        return error_set(error, PAWL_EFORMAT, "%s: %u partitions on %u shards is not possible", path,
                         partitions, shards);
    file.partitions = partitions;
    file.shards = shards;
    *ret_file = file;
    return PAWL_OK;
}

int node_directory_make(const char *path, pawl_error *error)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return PAWL_OK;
    return error_errno(error, errno, "cannot make %s", path);
}

static int sync_directory(const char *path, pawl_error *error)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(error, errno, "cannot open %s", path);
    int failed = fsync(fd) ? errno : 0;
    close(fd);
    return failed ? error_errno(error, failed, "cannot sync %s", path) : PAWL_OK;
}

int node_text_write(const char *path, const char *text, pawl_error *error)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return error_errno(error, errno, "cannot make %s", path);
    size_t size = strlen(text);
    ssize_t written = write(fd, text, size);
    int failed = written < 0 ? errno : (size_t)written < size ? ENOSPC : fsync(fd) ? errno : 0;
    close(fd);
    return failed ? error_errno(error, failed, "cannot write %s", path) : PAWL_OK;
}

/* Sync the directory's own entry in the directory above, if that one can be opened. */
static int sync_above(const char *dir, pawl_error *error)
{
    char path[NODE_PATH_MAX];
    int status = node_path(dir, path, error, "..");
    if (status == PAWL_OK && access(path, R_OK) == 0)
        status = sync_directory(path, error);
    return status;
}

static void compose(const struct node_file *file, char text[TEXT_MAX])
{
    bool on_kafka = node_is_on_kafka(file), known = on_kafka && file->kafka[0];
    int size = snprintf(text, TEXT_MAX, "pawl %d\npartitions %u\nshards %u\n", 1 + on_kafka + known,
                        file->partitions, file->shards);
    if (on_kafka)
        size += snprintf(text + size, TEXT_MAX - (size_t)size, "node %016" PRIx64 "\n", file->node);
    if (known)
        size += snprintf(text + size, TEXT_MAX - (size_t)size, "kafka %s\n", file->kafka);
    if (file->log[0])
        snprintf(text + size, TEXT_MAX - (size_t)size, "log %s\n", file->log);
}

int node_file_replace(const char *dir, const struct node_file *file, pawl_error *error)
{
    char path[NODE_PATH_MAX], temporary[NODE_PATH_MAX], text[TEXT_MAX];
    compose(file, text);
    int status = node_path(dir, temporary, error, FILE_NAME ".new");
    if (status == PAWL_OK)
        status = node_path(dir, path, error, FILE_NAME);
    if (status == PAWL_OK)
        status = node_text_write(temporary, text, error);
    if (status == PAWL_OK && rename(temporary, path))
        status = error_errno(error, errno, "cannot make %s", path);
    return status == PAWL_OK ? sync_directory(dir, error) : status;
}

int node_file_make(const char *dir, const struct node_file *file, pawl_error *error)
{
    char path[NODE_PATH_MAX];
    int status = node_directory_make(dir, error);
    if (status == PAWL_OK)
        status = node_path(dir, path, error, "state");
    if (status == PAWL_OK)
        status = node_directory_make(path, error);
    if (status == PAWL_OK)
        status = node_path(dir, path, error, "log");
    if (status == PAWL_OK && !node_is_on_kafka(file))
        status = node_directory_make(path, error);
    if (status == PAWL_OK)
        status = node_file_replace(dir, file, error);
    return status == PAWL_OK ? sync_above(dir, error) : status;
}

/* Whether the directory has nothing but ".", "..", and what is_left allows. */
static int holds_only(const char *dir, bool (*is_left)(const char *dir, const char *name), bool *ret_only)
{
    DIR *entries = opendir(dir);
    const struct dirent *entry;
    if (!entries)
        return errno;
    *ret_only = true;
    while (*ret_only && (entry = readdir(entries)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            *ret_only = is_left && is_left(dir, entry->d_name);
    closedir(entries);
    return 0;
}

/* Whether this can be there before FILE_NAME is: the lock, the draft of that file, or an empty directory. */
static bool is_left(const char *dir, const char *name)
{
    char path[NODE_PATH_MAX];
    bool empty = false;
    if (strcmp(name, NODE_LOCK) == 0 || strcmp(name, FILE_NAME ".new") == 0)
        return true;
    if (strcmp(name, "state") != 0 && strcmp(name, "log") != 0)
        return false;
    return node_path(dir, path, NULL, "%s", name) == PAWL_OK && holds_only(path, NULL, &empty) == 0 && empty;
}

int node_is_new(const char *dir, bool *ret_new)
{
    return holds_only(dir, is_left, ret_new);
}

static int lock_refused(int fd, pawl_error *error)
{
    char text[16] = {0};
    ssize_t size = pread(fd, text, sizeof text - 1, 0);
    text[size > 0 ? strspn(text, "0123456789") : 0] = '\0';
    return error_set(error, PAWL_ELOCKED, "another process has it open for writing%s%s%s",
                     text[0] ? " (process " : "", text, text[0] ? ")" : "");
}

int node_lock(const char *dir, const char *name, int *ret_fd, pawl_error *error)
{
    char path[NODE_PATH_MAX], text[16];
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    int status = node_path(dir, path, error, "%s", name);
    if (status != PAWL_OK)
        return status;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return error_errno(error, errno, "cannot open %s", path);
    if (fcntl(fd, F_OFD_SETLK, &lock)) {
        status = errno == EAGAIN || errno == EACCES ? lock_refused(fd, error)
                                                    : error_errno(error, errno, "cannot lock %s", path);
        close(fd);
        return status;
    }
    /* Only the message of PAWL_ELOCKED needs this, so it may fail. It is as long as any before it. */
    int size = snprintf(text, sizeof text, "%-10d\n", (int)getpid());
    (void)!pwrite(fd, text, (size_t)size, 0);
    *ret_fd = fd;
    return PAWL_OK;
}
