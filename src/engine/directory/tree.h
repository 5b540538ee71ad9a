/* engine/directory/tree.h: directories as a whole. */
#ifndef ENGINE_DIRECTORY_TREE_H
#define ENGINE_DIRECTORY_TREE_H

#include <pawl/types.h>

/* All that is there, as far as it lets itself be removed. */
void tree_remove(const char *path);

/* The same, but the file of this name goes last, and only after the rest is gone for good: as long as something
 * is there, so is the mark that says that it may be removed. */
void tree_remove_marked(const char *path, const char *mark);

/* A directory that is nobody else's, below TMPDIR or /tmp: "pawl-" and this name. path has NODE_PATH_MAX bytes.
 */
int tree_make_temporary(const char *name, char *path, pawl_error *error);

/* The names in a directory reach the disk. */
int tree_sync(const char *path, pawl_error *error);

#endif
