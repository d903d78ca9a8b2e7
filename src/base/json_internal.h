#ifndef SY_BASE_JSON_INTERNAL_H
#define SY_BASE_JSON_INTERNAL_H

/* The one member of an object that stands for bytes which are not UTF-8. */
#define JSON_HEX "hex"

#endif
