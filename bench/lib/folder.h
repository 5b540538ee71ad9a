/* folder.h: a directory that outlives a round, beside the rounds' own. Who makes it removes it. */
#ifndef BENCH_LIB_FOLDER_H
#define BENCH_LIB_FOLDER_H

#include <limits.h>

#include "bench/lib/bench.h"

/* An empty one whose name has this word. False, after saying why; then dir is empty. */
bool folder_make(const struct bench_round *round, const char *word, char dir[PATH_MAX]);

/* The same in memory, where a sync costs nothing. False also if this machine has no such place. */
bool folder_make_in_memory(const char *word, char dir[PATH_MAX]);

/* With all that is in it. */
void folder_remove(const char *dir);

#endif
