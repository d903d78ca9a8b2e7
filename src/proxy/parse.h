#ifndef SY_PROXY_PARSE_H
#define SY_PROXY_PARSE_H

/*
 * What the parsers of this room give: they are fed all bytes so far, from the
 * first on, and never read past them, wait or keep more than they were given.
 */
enum parse_result { PARSE_MORE, PARSE_DONE, PARSE_BAD };

#endif
