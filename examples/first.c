/* first: a whole program. Each run bills tenant 7 once more: invoice 1, 2, 3, ..., whatever happens in between.
 *
 *     cc first.c $(pkg-config --cflags --libs pawl) -o first && ./first DIR */
#include <inttypes.h>
#include <stdio.h>

#include <pawl/pawl.h>

static const char schema[] =
    "{ \"schema\": 1, \"package\": \"shop\","
    "  \"workspaces\": { \"tenant\": { \"sequences\": { \"invoice\": {\"first\": 1} } } },"
    "  \"types\": { \"Invoice\": { \"kind\": \"WDoc\", \"fields\": { \"number\": {\"type\": \"int64\", \"sequence\":"
    " \"invoice\"}, \"cents\": {\"type\": \"int64\"} } } },"
    "  \"commands\": { \"Bill\": { \"records\": [\"Invoice\"] } } }";

static bool print_number(void *arg, const pawl_row *invoice)
{
    int64_t number;
    if (pawl_row_int64(invoice, "number", &number, NULL) == PAWL_OK)
        printf("invoice %" PRId64 "\n", number);
    return true;
}

int main(int argc, char **argv)
{
    pawl_engine *engine;
    pawl_request *request;
    pawl_answer answer;
    pawl_error error = {0};
    if (argc != 2 || pawl_open(argv[1], NULL, &engine, &error) != PAWL_OK)
        return fprintf(stderr, "usage: first DIR (%s)\n", error.text), 2;
    int status = pawl_schema_apply(engine, schema, NULL, &error);
    if (status == PAWL_OK)
        status = pawl_request_new(engine, &request);
    if (status == PAWL_OK) {
        pawl_workspace_create(engine, request, 7, "shop.tenant", &answer, NULL); /* PAWL_EEXISTS: the second time */
        pawl_request_begin(request, 7, "shop.Bill");
        pawl_request_record(request, 1, "shop.Invoice");
        pawl_request_set_int64(request, "cents", 4200);
        status = pawl_command(engine, request, &answer, &error);
        if (status == PAWL_OK)
            status = pawl_record_read(engine, 7, "shop.Invoice", pawl_request_id(request, 1), NULL, print_number,
                                      NULL, &error);
        pawl_request_free(request);
    }
    if (status != PAWL_OK)
        fprintf(stderr, "first: %s\n", error.text);
    return pawl_close(engine) == PAWL_OK && status == PAWL_OK ? 0 : 1;
}
