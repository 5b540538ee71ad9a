#include "bench/lib/folder.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include <linux/magic.h>

static bool make(char dir[PATH_MAX])
{
    if (mkdtemp(dir))
        return true;
    bench_failed(dir, NULL);
    dir[0] = 0;
    return false;
}

bool folder_make(const struct bench_round *round, const char *word, char dir[PATH_MAX])
{
    const char *slash = strrchr(round->dir, '/');
    snprintf(dir, PATH_MAX, "%.*s/pawl-%s-XXXXXX", slash ? (int)(slash - round->dir) : 1,
             slash ? round->dir : ".", word);
    return make(dir);
}

bool folder_make_in_memory(const char *word, char dir[PATH_MAX])
{
    struct statfs place;
    if (statfs("/dev/shm", &place) != 0 || place.f_type != TMPFS_MAGIC) {
        fprintf(stderr, "/dev/shm is not in memory\n");
        dir[0] = 0;
        return false;
    }
    snprintf(dir, PATH_MAX, "/dev/shm/pawl-%s-XXXXXX", word);
    return make(dir);
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    return remove(path);
}

void folder_remove(const char *dir)
{
    (void)nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
