#include "engine/directory/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "engine/directory/node_file.h"

int tree_make_temporary(const char *name, char *path, pawl_error *error)
{
    const char *below = getenv("TMPDIR");
    int size = snprintf(path, NODE_PATH_MAX, "%s/pawl-%s-XXXXXX", below ? below : "/tmp", name);
    if (size < 0 || size >= NODE_PATH_MAX)
        return error_set(error, PAWL_ETOOBIG, "TMPDIR: the path is too long");
    return mkdtemp(path) ? PAWL_OK : error_errno(error, errno, "cannot make %s", path);
}

/* Remove everything in it, except what has the name keep. */
static void remove_below(const char *path, const char *keep)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        char below[NODE_PATH_MAX + 256];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0
            || strcmp(entry->d_name, keep) == 0)
            continue;
        snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        if (unlink(below) != 0 && errno == EISDIR && strlen(below) < NODE_PATH_MAX)
            tree_remove(below);
    }
    if (dir)
        closedir(dir);
}

void tree_remove(const char *path)
{
    remove_below(path, "");
    (void)rmdir(path);
}

void tree_remove_marked(const char *path, const char *mark)
{
    char last[NODE_PATH_MAX];
    remove_below(path, mark);
    if (node_path(path, last, NULL, "%s", mark) == PAWL_OK && tree_sync(path, NULL) == PAWL_OK)
        (void)unlink(last);
    (void)rmdir(path);
}

uint64_t tree_bytes(const char *path)
{
    uint64_t bytes = 0;
    DIR *dir = opendir(path);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        struct stat info;
        char below[NODE_PATH_MAX + 256];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0
            || fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        bytes += (uint64_t)info.st_blocks * 512;
        snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        if (S_ISDIR(info.st_mode) && strlen(below) < NODE_PATH_MAX)
            bytes += tree_bytes(below);
    }
    if (dir)
        closedir(dir);
    return bytes;
}

int tree_sync(const char *path, pawl_error *error)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = fd < 0 || fsync(fd) ? errno : 0;
    if (fd >= 0)
        close(fd);
    return failed ? error_errno(error, failed, "cannot sync %s", path) : PAWL_OK;
}
