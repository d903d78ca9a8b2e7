/*
 * auditing [on|off]: switches the machine's auditing, and prints what it is then: on, off, or
 * closed (not ours).
 */
#include "auditing.h"

#include <stdio.h>
#include <string.h>

int
main(int argc, char **argv)
{
    static const char *const states[] = {"closed", "off", "on"};
    int to = argc < 2 ? -1 : strcmp(argv[1], "on") == 0 ? 1 : 0;

    if (argc > 2 || (to == 0 && strcmp(argv[1], "off") != 0)) {
        (void)fputs("usage: auditing [on|off]\n", stderr);
        return 2;
    }
    return puts(states[auditing(to) + 1]) < 0 ? 1 : 0;
}
