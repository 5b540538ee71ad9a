/* adapter/lmdb/torn.h: was LMDB stopped in the midst of writing a meta page through the map?
 *
 * A commit N touches no page that commit N - 1 can reach, and ends with overwriting the meta page of N - 2:
 * first what it says, then the number N that makes it the newest. A process that is killed before the number
 * leaves N - 1, one that is killed after it N. But on x86 LMDB 0.9 leaves the order to the compiler, and
 * Debian's writes the root of the main tree right behind the number. Killed between these two instructions, it
 * leaves a meta page N with the root of N - 2: readable, but its pages are listed as free.
 *
 *   T1. Each of our commits copies the root of the main tree, so N - 1 has freed the root of N - 2, and N
 *       cannot have taken that page from the list yet. The root of a meta page N is in the list of N - 1
 *       exactly if it is torn.
 *   T2. The meta pages that a file begins with have no root; after a commit of ours there is one. */
#ifndef ADAPTER_LMDB_TORN_H
#define ADAPTER_LMDB_TORN_H

#include <lmdb.h>
#include <stdbool.h>

/* For a writer, before its first transaction. 0, LMDB's error or an errno. */
int torn_check(MDB_env *env, bool *ret_torn);

#endif
