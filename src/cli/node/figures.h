/* cli/node/figures.h: members of the figures of a node, for those who show them: status.c and top.c. */
#ifndef CLI_NODE_FIGURES_H
#define CLI_NODE_FIGURES_H

#include "cli/talk/lanes.h"

static inline double real_in(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static inline const char *text_in(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* Seconds, as duration_format has them. */
static inline void format_seconds(double seconds, char text[DURATION_TEXT_MAX])
{
    duration_format((pawl_duration)(seconds * 1e9 + 0.5), text);
}

#endif
