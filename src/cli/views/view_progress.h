/* cli/views/view_progress.h: waits until a view is built, and shows on stderr how far it is: a moving bar on a
 * terminal, otherwise a plain line every ten seconds. */
#ifndef CLI_VIEW_PROGRESS_H
#define CLI_VIEW_PROGRESS_H

#include <pawl/pawl.h>

#include "cli/talk/feed.h"
#include "cli/talk/session.h"

struct view_waiting {
    struct session session; /* without an engine and a server: looking again has failed */
    const char *view;
    pawl_duration timeout; /* 0: as long as it takes */
    struct feed feed;      /* of the owner, begun before the engine was opened: signals come here */
    int signal;            /* that ended the waiting; 0: none */

    /* If another process builds: close the engine, and open it again, to build if that process has ended. Errors
     * of opening. */
    bool reading;
    int (*look_again)(struct view_waiting *waiting, pawl_error *error);
    const struct options *options; /* for look_again */
};

/* PAWL_OK also if a signal ended it. PAWL_ETIMEOUT; PAWL_EBUSY: the view is paused, or cannot go on;
 * PAWL_ENOTFOUND, PAWL_EEXISTS: as of pawl_view_wait. */
int view_progress_wait(struct view_waiting *waiting, pawl_error *error);

/* A bar of this width, and a zero: "=====     ". */
#define VIEW_BAR 20
void view_bar_format(double percent, char bar[VIEW_BAR + 1]);

/* "12 s", "3 min", "2.5 h", "?" if it is not known. */
#define VIEW_ETA_MAX 24
void view_eta_format(pawl_duration eta, char text[VIEW_ETA_MAX]);

#endif
