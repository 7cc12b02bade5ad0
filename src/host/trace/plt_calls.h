/* SPDX-License-Identifier: MIT */
/* Leads the calls of libraries that a module makes to the hook. */
#ifndef FATHOM_TRACE_PLT_CALLS_H
#define FATHOM_TRACE_PLT_CALLS_H

#include "host/trace/load.h"

/* Hooks the slots of module @m of @p, among @sites, whose functions are wanted. FATHOM_E_MEMORY. */
fathom_err fathom_plt_calls_hook(struct fathom_loader *l, struct fathom_traced *p,
				 const struct fathom_sites *sites,
				 const struct fathom_site_module *m);

#endif
