/* cli/data/seq.c: the last numbers of sequences. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/talk/session.h"

static bool print_row(void *arg, pawl_bytes line)
{
    const bool *json = arg;
    char wsid[24] = "-";
    if (*json) {
        fwrite(line.data, 1, line.size, stdout);
        putchar('\n');
        return !ferror(stdout);
    }
    json_t *n = json_loadb(line.data, line.size, 0, NULL);
    const char *sequence = json_string_value(json_object_get(n, "sequence"));
    if (json_to_u64(json_object_get(n, "wsid")))
        snprintf(wsid, sizeof wsid, "%" PRIu64, json_to_u64(json_object_get(n, "wsid")));
    printf("%9" PRIu64 " %20s  %-32s %20" PRIu64 "\n", json_to_u64(json_object_get(n, "partition")), wsid,
           sequence ? sequence : "", json_to_u64(json_object_get(n, "last")));
    json_decref(n);
    return !ferror(stdout);
}

static int run(const struct options *options)
{
    pawl_error error = {0};
    struct session session;
    bool json = options_get(options, "json") != NULL;
    uint64_t wsid;
    if (options_number(options, "ws", 1, 0, &wsid, &error) != PAWL_OK)
        return say_usage(&error);
    int code = session_open(options, OPEN_TO_READ, &session);
    if (code != CLI_OK)
        return code;
    if (!json)
        printf("%9s %20s  %-32s %20s\n", "partition", "workspace", "sequence", "last");
    int status = session_numbers(&session, wsid, print_row, &json, &error);
    return session_close(options, &session, status, &error);
}

const struct command command_seq_list = {
    .name = "seq list",
    .summary = "show the last number of each sequence",
    .about =
        "Of all workspaces, or of one: the numbers of its events (sys.WLogOffsetSeq), of its records\n"
        "(sys.RecIDSeq, sys.CRecIDSeq), and those of its kind's own sequences. Only what was used is there.\n"
        "A partition's own, the number of its events (sys.PLogOffsetSeq), has no workspace.\n",
    .options = {OPTIONS_WHERE, {"ws", "WSID", "only of this workspace"}, OPTION_JSON},
    .run = run,
};
