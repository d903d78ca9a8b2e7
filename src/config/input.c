#include "config/config_internal.h"

struct place_text
config_named(enum config_source source, const char *name)
{
    return (struct place_text){
        /* A key; -s has a name of its own. */
        .prefix = source == CONFIG_FROM_FLAG && name[0] != '-' ? "-c " : NULL,
        .name = name,
        .is_one_line = source != CONFIG_FROM_SYSTEM && source != CONFIG_FROM_USER,
    };
}

struct place_text
config_input_text(const struct config_input *in)
{
    struct place_text text = config_named(in->source, in->name);

    text.text = in->text;
    text.len = in->len;
    return text;
}

enum sy_code
config_check_utf8(const struct config_input *in, struct sy_error *err)
{
    const struct place_text text = config_input_text(in);

    return place_check_utf8(&text, err);
}
