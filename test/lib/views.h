/* test/lib/views.h: what the rows of views must be, computed from the base alone; and commands about views.
 *
 * It is independent of what keeps views current (core/view/tables.h, slice.h): it reads the states and the rows
 * of a store, makes the view of every covered base row, and compares row by row (T1). */
#ifndef TEST_LIB_VIEWS_H
#define TEST_LIB_VIEWS_H

#include "core/group0/group0.h"
#include "core/view/view_state.h"
#include "port/store.h"

/* Compare all views of the list with their bases in these partitions, through this reader: rows, digests, counts
 * of failures and of equal neighbours, whether complete says what the coverage says. Every row of a view's table
 * must be one that is expected, unless the table has no state, if removing (its rows are nobody's and go later).
 * Prints the first difference. */
bool views_are_right(pawl_reader *reader, const struct view_list *list, const struct schema *schema,
                     uint32_t partitions, const uint16_t *which, size_t which_count, bool removing);

/* How many rows there are in VIEW_SPACE beside the states; and how many states. */
size_t views_count_rows(pawl_reader *reader);
size_t views_count_states(pawl_reader *reader);

/* A command behind the last position. views_apply encodes first. */
int views_command(struct group0 *group0, const struct group0_command *command, enum group0_outcome *ret_outcome,
                  pawl_error *error);
int views_check_command(struct group0 *group0, const struct group0_command *command,
                        enum group0_outcome *ret_outcome, pawl_error *error);

/* A view made at run time. name, base: bare names of the package, or qualified; key and include: fields separated by
 * blanks; filter: NULL is all rows. */
struct view_text {
    const char *package;
    const char *name;
    const char *base;
    const char *key;
    const char *include;
    const char *filter;
    bool unique;
};
int views_create(struct group0 *group0, const struct view_text *text, enum group0_outcome *ret_outcome,
                 pawl_error *error);

/* The definition that a text describes. Lies in the arena, but for the view, which is the caller's. */
void views_definition(const struct view_text *text, struct arena *arena, struct definition_view *view,
                      struct definition *ret_package);

/* Those that are about a name; and those that are about tablets. */
int views_named(struct group0 *group0, enum group0_command_kind kind, const char *name,
                enum group0_outcome *ret_outcome, pawl_error *error);
int views_resize(struct group0 *group0, enum group0_command_kind kind, uint32_t tablets,
                 enum group0_outcome *ret_outcome, pawl_error *error);

/* All tasks of a view's table (0: of all) are finished. */
int views_finish(struct group0 *group0, uint32_t table, enum group0_outcome *ret_outcome);

#endif
