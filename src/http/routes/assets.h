/* http/routes/assets.h: the files of the page, which are part of the program. tools/embed makes the table from
 * src/http/assets/, which tools/web makes from web/. */
#ifndef HTTP_ROUTES_ASSETS_H
#define HTTP_ROUTES_ASSETS_H

#include <pawl/types.h>

struct asset {
    const char *name; /* of the file: "app.js" */
    const char *type; /* for Content-Type */
    const char *etag; /* with its quotes; changes with the bytes */
    pawl_bytes data;
};

/* By name, ascending. */
extern const struct asset assets[];
extern const size_t asset_count;

#endif
