/* SPDX-License-Identifier: MIT */
/*
 * Functions that instrumented code calls: mcount and the like, by their symbols, stubs and GOT
 * slots.
 */
#ifndef FATHOM_SITES_HOOKS_H
#define FATHOM_SITES_HOOKS_H

#include "host/base/array.h"
#include "host/file/fixups.h"
#include "host/module/module.h"

enum fathom_hook_kind {
	FATHOM_HOOK_NONE,    /* it is not a call */
	FATHOM_HOOK_OTHER,   /* a call of another function */
	FATHOM_HOOK_UNNAMED, /* a call of what has no name */
	FATHOM_HOOK_MCOUNT,  /* mcount, _mcount, __fentry__ */
	FATHOM_HOOK_ENTER,   /* __cyg_profile_func_enter */
	FATHOM_HOOK_BARE,    /* __cyg_profile_func_enter_bare: without arguments */
	FATHOM_HOOK_EXIT,    /* __cyg_profile_func_exit */
	FATHOM_HOOK_EITHER,  /* both at one address, as in static programs with glibc */
	FATHOM_HOOK_RETURN,  /* __return__ */
	FATHOM_HOOK_PROFILE  /* what programs linked with -pg have */
};

struct fathom_instrument_hooks {
	struct fathom_keyed_array functions; /* svma, enum fathom_hook_kind; sorted */
	struct fathom_keyed_array slots;     /* GOT slots that hold their addresses, likewise */
	bool has_calls;                      /* some hook may be called */
	bool has_exits;                      /* __cyg_profile_func_exit may be called */
	bool is_profiled;                    /* the module was linked with -pg */
	bool is_library; /* the C library: it has the hooks for others, and calls none */
};

/* Finds the hooks of @m, whose relocations are @fixups; FATHOM_E_MEMORY. */
fathom_err fathom_hooks_init(struct fathom_instrument_hooks *h, struct fathom_module *m,
			     const struct fathom_fixups *fixups);
void fathom_hooks_deinit(struct fathom_instrument_hooks *h);

/* Returns which hook is called @name, or FATHOM_HOOK_OTHER. */
enum fathom_hook_kind fathom_hook_named(struct fathom_str name);

struct fathom_site_work;

/* Returns what the instruction at @svma calls, and its size in *@ret_size. */
enum fathom_hook_kind fathom_hook_called(struct fathom_site_work *w, uint64_t svma,
					 uint8_t *ret_size);

/*
 * The same of an instruction that calls, or jumps to, a hook of its own function's end, in
 * *@ret_is_jump (x86-64).
 */
enum fathom_hook_kind fathom_hook_left(struct fathom_site_work *w, uint64_t svma,
				       uint16_t *ret_size, bool *ret_is_jump);

#endif
