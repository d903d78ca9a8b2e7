#include "command/exec_params.h"

#include "base/mem.h"

void
exec_params_fini(struct exec_params *p)
{
    strv_fini(&p->argv);
    strv_fini(&p->env);
    mem_free_charp(&p->cwd);
    mem_free_charp(&p->justification);
    mem_free_charp(&p->arg0);
}
