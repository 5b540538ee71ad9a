/* engine/check/compare_views.h: compares the views of a side with those of a state that was just derived from
 * the log.
 *
 * The derived views cover everything: they were there before the first row. A side's view that is complete must
 * have the same rows, the same digest and the same counts. One that covers a part must have exactly those
 * derived rows whose base rows it covers. */
#ifndef ENGINE_CHECK_COMPARE_VIEWS_H
#define ENGINE_CHECK_COMPARE_VIEWS_H

#include "engine/check/compare.h"

/* The views over one generation of a lane; generation 0: over records, and what synchronous projectors fill.
 * Nothing is compared if the side has no views to compare with. Errors of the stores, PAWL_ENOMEM. */
int compare_views(struct compare_side *side, uint16_t lane, uint32_t generation, pawl_reader *reader);

#endif
