#include "config/walker.h"

enum sy_code
config_walker_open(struct config_walker *w)
{
    w->text = config_input_text(w->in);
    w->y = (struct yaml_walk){.in = &w->text, .noun = "a configuration", .err = w->err};
    return yaml_walk_open(&w->y);
}

struct config_place
config_walker_place(const struct config_walker *w, yaml_mark_t mark)
{
    struct place at = yaml_walk_place(&w->y, mark);

    return (struct config_place){
        .source = w->in->source, .name = w->in->name, .line = at.line, .column = at.column};
}

struct config_place
config_walker_here(const struct config_walker *w)
{
    return config_walker_place(w, w->y.event.start_mark);
}
