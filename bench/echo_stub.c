/*
 * The floor of an MCP server on stdio: answers each request line with one
 * fixed result under the request's id. Nothing is parsed, nothing allocated;
 * a server that does real work can't start or answer faster.
 */
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static const char result[] =
    ",\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},"
    "\"serverInfo\":{\"name\":\"echo-stub\",\"version\":\"1\"}}}\n";
static const char head[] = "{\"jsonrpc\":\"2.0\",\"id\":";

/* Answers the line [line, line + n); a line without "id": is a notification. */
static void
answer(const char *line, size_t n)
{
    static const char key[] = "\"id\":";
    char out[512];
    size_t len = sizeof head - 1;
    const char *id = memmem(line, n, key, sizeof key - 1);

    if (id == NULL) {
        return;
    }
    memcpy(out, head, len);
    for (id += sizeof key - 1; id < line + n && *id >= '0' && *id <= '9' && len < 64; id++) {
        out[len++] = *id;
    }
    memcpy(out + len, result, sizeof result - 1);
    len += sizeof result - 1;
    if (write(STDOUT_FILENO, out, len) != (ssize_t)len) {
        _exit(1);
    }
}

int
main(void)
{
    static char buf[65536];
    size_t len = 0;

    for (;;) {
        ssize_t n = read(STDIN_FILENO, buf + len, sizeof buf - len);

        if (n <= 0) {
            return n == 0 ? 0 : 1;
        }
        len += (size_t)n;
        size_t start = 0;
        const char *end = NULL;

        while ((end = memchr(buf + start, '\n', len - start)) != NULL) {
            size_t line_len = (size_t)(end - buf) - start;

            answer(buf + start, line_len);
            start += line_len + 1;
        }
        if (start == 0 && len == sizeof buf) {
            return 1; /* a line longer than any that the bench sends */
        }
        memmove(buf, buf + start, len - start);
        len -= start;
    }
}
