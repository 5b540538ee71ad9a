/* engine/json/json.h: JSON at the engine's edge, as the other rooms may use it.
 *
 *     text ──► schema.h    packages              out.h      text that grows
 *              request.h   commands              show.h     answers, events, operations, records, rows
 *              results.h   what handlers want    schema.h   packages and lanes
 *              key.h       keys of rows          failure.h  errors ──► text
 *                                    form.h     values that JSON has no form for */
#ifndef ENGINE_JSON_JSON_H
#define ENGINE_JSON_JSON_H

#include "engine/json/failure.h"
#include "engine/json/form.h"
#include "engine/json/key.h"
#include "engine/json/out.h"
#include "engine/json/request.h"
#include "engine/json/results.h"
#include "engine/json/schema.h"
#include "engine/json/show.h"

#endif
