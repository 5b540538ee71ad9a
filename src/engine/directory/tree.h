/* engine/directory/tree.h: directories as a whole. */
#ifndef ENGINE_DIRECTORY_TREE_H
#define ENGINE_DIRECTORY_TREE_H

#include <pawl/types.h>

/* Remove everything at this path, as far as possible. */
void tree_remove(const char *path);

/* The same, but the file named mark is removed last, after the removal of the rest was synced. So as long as
 * anything is left, the mark is there too, which says that it may be removed. */
void tree_remove_marked(const char *path, const char *mark);

/* Make a new directory below TMPDIR or /tmp; its name begins with "pawl-" and this name. path has NODE_PATH_MAX
 * bytes. */
int tree_make_temporary(const char *name, char *path, pawl_error *error);

/* How many bytes the files below a path take on the disk; what cannot be read counts as nothing. */
uint64_t tree_bytes(const char *path);

/* Sync the names in a directory. */
int tree_sync(const char *path, pawl_error *error);

#endif
