#include "http/exchange/access.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Whether text[0..size) is an IPv4 address, or an IPv6 address. */
static bool is_address(const char *text, size_t size)
{
    unsigned char bytes[16];
    char copy[64];
    if (size >= sizeof copy)
        return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    return inet_pton(AF_INET, copy, bytes) == 1 || inet_pton(AF_INET6, copy, bytes) == 1;
}

static bool is_port(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    return digits <= 5 && text[digits] == '\0';
}

bool access_host(const char *host, const char *const *names, size_t count)
{
    if (!host)
        return false;
    if (host[0] == '[') {
        const char *end = strchr(host, ']');
        return end && is_address(host + 1, (size_t)(end - host - 1))
               && (end[1] == '\0' || (end[1] == ':' && is_port(end + 2)));
    }
    size_t size = strcspn(host, ":");
    if (size == 0 || (host[size] == ':' && !is_port(host + size + 1)))
        return false;
    if (is_address(host, size) || (size == strlen("localhost") && strncasecmp(host, "localhost", size) == 0))
        return true;
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == size && strncasecmp(names[i], host, size) == 0)
            return true;
    return false;
}

bool access_origin(const char *origin, const char *host, bool tls)
{
    const char *scheme = tls ? "https://" : "http://";
    if (!origin)
        return true;
    return host && strncasecmp(origin, scheme, strlen(scheme)) == 0
           && strcasecmp(origin + strlen(scheme), host) == 0;
}

bool access_is_type(const char *content_type, const char *type)
{
    size_t size = strlen(type);
    if (!content_type || strncasecmp(content_type, type, size) != 0)
        return false;
    const char *rest = content_type + size;
    rest += strspn(rest, " \t");
    return *rest == '\0' || *rest == ';';
}

bool access_written_type(const char *content_type)
{
    return access_is_type(content_type, "application/json")
           || access_is_type(content_type, "application/x-ndjson");
}

bool access_bearer(const char *authorization, pawl_bytes *ret_secret)
{
    if (strncasecmp(authorization, "Bearer ", 7) != 0)
        return false;
    const char *secret = authorization + 7 + strspn(authorization + 7, " ");
    size_t size = strlen(secret);
    if (size == 0 || strcspn(secret, " \t") != size)
        return false;
    *ret_secret = (pawl_bytes){secret, size};
    return true;
}

bool access_allows(const struct grant *grant, enum access_scope scope)
{
    return (grant->scopes & scope) == scope;
}

bool access_reaches(const struct grant *grant, uint64_t wsid)
{
    if (grant->workspace_count == 0)
        return true;
    for (size_t i = 0; wsid && i < grant->workspace_count; i++)
        if (grant->workspaces[i] == wsid)
            return true;
    return false;
}

bool access_is_loopback(const char *address)
{
    struct in_addr four;
    struct in6_addr six;
    if (inet_pton(AF_INET, address, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, address, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

int access_token(pawl_engine *engine, pawl_bytes secret, struct grant *ret_grant, pawl_error *error)
{
    pawl_token token;
    int status = pawl_token_check(engine, secret, &token);
    if (status != PAWL_OK)
        return pawl_error_set(error, status, "there is no such token");
    struct grant grant = {.scopes = token.scopes, .workspace_count = token.wsid_count};
    snprintf(grant.name, sizeof grant.name, "%s", token.name);
    memcpy(grant.workspaces, token.wsids, token.wsid_count * sizeof token.wsids[0]);
    *ret_grant = grant;
    return PAWL_OK;
}

bool access_has_tokens(pawl_engine *engine)
{
    return pawl_token_count(engine) > 0;
}
