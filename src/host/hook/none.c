/* SPDX-License-Identifier: MIT */
/* Hooks, for other machines than x86-64 and aarch64. */
#include "fathom/hook.h"
#include "safe/base/error.h"

static fathom_err fail(struct fathom_errinfo *reterr)
{
	return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0, "hooks on this machine");
}

fathom_err fathom_hook_add(struct fathom *session, fathom_hook_fn fn, void *data,
			   const struct fathom_hook_options *options, struct fathom_hook **ret_hook,
			   struct fathom_errinfo *reterr)
{
	(void)session;
	(void)fn;
	(void)data;
	(void)options;
	*ret_hook = NULL;
	return fail(reterr);
}

size_t fathom_hook_count(const struct fathom_hook *hook)
{
	(void)hook;
	return 0;
}

size_t fathom_hook_refused(const struct fathom_hook *hook, enum fathom_trace_refusal why)
{
	(void)hook;
	(void)why;
	return 0;
}

fathom_err fathom_hook_switch(struct fathom_hook *hook, int on, struct fathom_errinfo *reterr)
{
	(void)hook;
	(void)on;
	return fail(reterr);
}

fathom_err fathom_hook_remove(struct fathom_hook *hook, struct fathom_errinfo *reterr)
{
	return hook ? fail(reterr) : FATHOM_OK;
}

fathom_err fathom_code_write(void *code, const void *bytes, size_t n, struct fathom_errinfo *reterr)
{
	(void)code;
	(void)bytes;
	(void)n;
	return fail(reterr);
}
