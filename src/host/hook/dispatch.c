/* SPDX-License-Identifier: MIT */
#include "host/hook/dispatch.h"

#include "host/hook/gate.h"

/* The gate that the thread is in: hook functions do not nest. */
static _Thread_local struct fathom_gate *fathom_hook_inside
	__attribute__((tls_model("initial-exec")));

FATHOM_IN_HOOK void fathom_hook_dispatch(struct fathom_hook_frame *f, struct fathom_hooked_site *s)
{
	struct fathom_hook_call call = { .function = s->function, .site = s->avma };
	struct fathom_gate *g;

	if (fathom_hook_inside)
		return;
	g = fathom_gate_enter(&s->gate, &fathom_hook_inside);
	if (!g)
		return;
	fathom_hook_inside = g;
	fathom_hook_describe(f, s, &call);
	call.place = s->place;
	g->fn(g->data, &call);
	fathom_hook_inside = NULL;
	fathom_gate_leave(g, &fathom_hook_inside);
}

struct fathom_gate *fathom_hook_within(const void **ret_thread)
{
	*ret_thread = &fathom_hook_inside;
	return fathom_hook_inside;
}
