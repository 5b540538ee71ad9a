/* test/lib/event.h: an event's JSON, for tests that look for words in it. */
#ifndef TEST_EVENT_H
#define TEST_EVENT_H

#include <pawl/pawl.h>

#include "test/lib/test.h"

static inline const char *event_json(const pawl_event *event)
{
    pawl_bytes json = {"", 0};
    pawl_error error = {0};
    if (pawl_event_json(event, &json, &error) != PAWL_OK)
        fail_msg("%s", error.text);
    return json.data;
}

static inline bool event_is(const pawl_event *event, const char *command)
{
    return event->command.size == strlen(command)
           && memcmp(event->command.data, command, event->command.size) == 0;
}

#endif
