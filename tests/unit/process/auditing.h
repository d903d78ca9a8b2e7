#ifndef SY_TESTS_UNIT_PROCESS_AUDITING_H
#define SY_TESTS_UNIT_PROCESS_AUDITING_H

/* The machine's switch for auditing: 1 on, 0 off, -1 not ours to ask or to read (capabilities,
 * namespaces), or a machine that halts when its audit log overflows, which no test touches. With
 * `to`
 * >= 0 it is set first. */
int auditing(int to);

#endif
