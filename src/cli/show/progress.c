#include "cli/show/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/show/say.h"

#define BAR_WIDTH      32
#define BAR_SECONDS    0.1
#define LINE_SECONDS   10.0
#define SILENT_SECONDS 0.3 /* shorter work shows no bar */

void progress_begin(struct progress *progress, const char *what, const char *counted)
{
    double now = seconds_now();
    *progress = (struct progress){
        .what = what, .counted = counted, .terminal = isatty(STDERR_FILENO), .begun = now, .said = now};
}

/* Whether it is time to say something. */
static bool is_due(struct progress *progress, double now)
{
    if (now - progress->said < (progress->terminal ? BAR_SECONDS : LINE_SECONDS)
        || now - progress->begun < SILENT_SECONDS)
        return false;
    progress->said = now;
    return true;
}

bool progress_count(void *arg, uint64_t done, uint64_t total)
{
    struct progress *progress = arg;
    double now = seconds_now();
    (void)total;
    if (!is_due(progress, now))
        return true;
    fprintf(stderr, progress->terminal ? "\r%s: %" PRIu64 " %s, %.0f/s \033[K" : "%s: %" PRIu64 " %s, %.0f/s\n",
            progress->what, done, progress->counted, (double)done / (now - progress->begun));
    fflush(stderr);
    progress->drawn = progress->terminal;
    return true;
}

bool progress_step(void *arg, uint64_t done, uint64_t of_bytes)
{
    struct progress *progress = arg;
    double now = seconds_now();
    if (!is_due(progress, now))
        return true;
    char have[BYTES_TEXT_MAX], all[BYTES_TEXT_MAX], rate[BYTES_TEXT_MAX];
    bytes_format(done, have);
    bytes_format(of_bytes, all);
    bytes_format((uint64_t)((double)done / (now - progress->begun)), rate);
    if (!progress->terminal) {
        fprintf(stderr, "%s: %s of %s, %s/s\n", progress->what, have, all, rate);
        return true;
    }
    char bar[BAR_WIDTH + 1];
    uint64_t full = of_bytes ? done * BAR_WIDTH / of_bytes : 0;
    for (unsigned i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < full ? '=' : ' ';
    bar[BAR_WIDTH] = '\0';
    fprintf(stderr, "\r%s [%s] %s of %s, %s/s \033[K", progress->what, bar, have, all, rate);
    fflush(stderr);
    progress->drawn = true;
    return true;
}

void progress_end(struct progress *progress)
{
    if (progress->drawn)
        fputs("\r\033[K", stderr);
    progress->drawn = false;
}
