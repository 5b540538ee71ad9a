/* cli/node/serve_settings.h: how `pawl serve` is set up: a file, then the environment, then the options; what comes
 * later counts.
 *
 *     --tls-cert F          the option
 *     PAWL_TLS_CERT=F       the environment
 *     tls-cert = F          a line of the file that --config or PAWL_CONFIG names; # begins a comment */
#ifndef CLI_SERVE_SETTINGS_H
#define CLI_SERVE_SETTINGS_H

#include <pawl/serve.h>

#include "cli/options.h"

#define SERVE_HOSTS_MAX 64

struct serve_settings {
    const char *dir;
    const char *log; /* NULL: as the directory was made */
    uint64_t mirror; /* bytes; 0: as many as the engine takes */
    pawl_serve_options serve;
    const char *hosts[SERVE_HOSTS_MAX];
    char *file;  /* the file's text, to which the others point */
    char *named; /* PAWL_HOST, taken apart */
};

/* Errors: PAWL_EINVAL, which names the setting and where it comes from; those of reading the file. */
int serve_settings_read(const struct options *options, struct serve_settings *ret_settings, pawl_error *error);
void serve_settings_release(struct serve_settings *settings);

#endif
