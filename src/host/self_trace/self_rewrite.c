/* SPDX-License-Identifier: MIT */
/*
 * A process that traces itself without ptrace(2): it lists its sites, changes its own text, and has
 * threads take their rings themselves. What differs between processors is how a site leads to its
 * stub (text_site.h), and how an instruction that calls the kernel does (text_calls.h). What is
 * mapped for that stays, as threads may be in the midst of an event at any time; each trace has a
 * fresh file for its rings.
 *
 * Not handled: modules that are loaded later; entries after prologues (-pg), calls of the
 * program's own (-finstrument-functions); calls of libraries; --max-rate.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fathom/target.h"
#include "host/base/context.h"
#include "host/trace/chosen_sites.h"
#include "host/self_trace/self_follow.h"
#include "host/self_trace/self_rings.h"
#include "host/events/syscall_text.h"
#include "host/patch/own_text.h"
#include "host/self_trace/text_calls.h"
#include "host/self_trace/text_site.h"
#include "trace/syscall_linked.h"

/* Bytes of the line that tells what is not seen. */
#define NOTE 96

/* The state of this process. A child of fork() has the same. */
static struct {
	struct fathom_stub_sets sets;
	struct fathom_text_plan plan; /* what leads to stubs */
} fathom_trace_self_rewritten;

/* The state that is made for a reader, which has a copy of it. */
struct made {
	struct fathom *session;
	struct fathom_loader loader;
	struct fathom_site_range *span;
	struct fathom_text_plan plan;
	uint64_t n_left; /* functions that cannot be recorded */
	uint64_t left;   /* the last one of them */
};

static struct made *fathom_trace_self_made;

static uint64_t hook_of(const struct fathom_trace_options *o)
{
	switch (o->clock) {
	case FATHOM_TRACE_CLOCK_SPARSE:
		return (uintptr_t)fathom_trace_hook_sparse;
	case FATHOM_TRACE_CLOCK_NONE:
		return (uintptr_t)fathom_trace_hook_none;
	default:
		return (uintptr_t)fathom_trace_hook_full;
	}
}

/* Counts @s, which cannot be recorded. Its function may have another site. */
static void refuse(struct made *made, const struct fathom_site *s, enum fathom_patch_refusal why)
{
	fathom_loader_refuse(&made->loader, why);
	if (s->place != FATHOM_SITE_ENTRY) {
		made->span->lacks_returns = true;
	} else if (made->left != s->function) {
		made->left = s->function;
		made->n_left++;
	}
}

/* Collects the wanted sites of @m that can be recorded. */
static fathom_err collect(struct made *made, const struct fathom_sites *sites,
			  const struct fathom_site_module *m, struct fathom_stub_set *ret)
{
	uint64_t recorded = UINT64_MAX;

	for (size_t i = m->first; i < m->first + m->count; i++) {
		const struct fathom_site *s = fathom_sites_get(sites, i);
		struct fathom_stub_site site;
		enum fathom_patch_refusal why;

		/* A function that was built with several kinds of sites is entered once. */
		if (!fathom_loader_wants(&made->loader, s) ||
		    (s->place == FATHOM_SITE_ENTRY && s->function == recorded))
			continue;
		why = fathom_text_site_check(s, &site);
		if (why) {
			refuse(made, s, why);
			continue;
		}
		if (!fathom_array_push(ret, site))
			return FATHOM_E_MEMORY;
		if (s->place != FATHOM_SITE_ENTRY)
			continue;
		recorded = s->function;
		if (made->left == recorded) {
			made->left = 0;
			made->n_left--;
		}
	}
	return FATHOM_OK;
}

/* Adds @s, whose stub is that of @to, to the span, and the change that leads there. */
static fathom_err add_site(struct made *made, const struct fathom_site_module *m,
			   const struct fathom_site *s, const struct fathom_stub_site *to)
{
	bool is_far;
	const uint64_t back = fathom_text_site_add(s, to, &made->plan, &is_far);
	struct fathom_site_range_site site = { .place = s->place,
					       .back = back,
					       .number = (uint32_t)back };

	if (is_far) {
		refuse(made, s, FATHOM_PATCH_TOO_FAR);
		return FATHOM_OK;
	}
	return back ? fathom_loader_add(&made->loader, made->span, m, s, &site) : FATHOM_E_MEMORY;
}

/* Adds the sites of @m that are in @set. */
static fathom_err add_module(struct made *made, const struct fathom_sites *sites,
			     const struct fathom_site_module *m, const struct fathom_stub_set *set)
{
	fathom_err err = FATHOM_OK;
	size_t k = 0;

	for (size_t i = m->first; i < m->first + m->count && k < set->n && !err; i++) {
		const struct fathom_site *s = fathom_sites_get(sites, i);

		if (s->address == set->items[k].site)
			err = add_site(made, m, s, &set->items[k++]);
	}
	if (!err && m->count &&
	    !fathom_loader_add_code(sites, m, fathom_text_site_above, made->span))
		err = FATHOM_E_MEMORY;
	return err;
}

/* Leads the wanted sites of module @m to stubs. */
static fathom_err place_module(struct made *made, const struct fathom_sites *sites,
			       const struct fathom_site_module *m, struct fathom_errinfo *reterr)
{
	struct fathom_stub_set set = { .hook = hook_of(made->loader.options) };
	fathom_err err = collect(made, sites, m, &set);

	if (!err)
		err = fathom_stub_sets_get(&fathom_trace_self_rewritten.sets, &set, reterr);
	if (!err)
		err = add_module(made, sites, m, &set);
	if (err == FATHOM_E_MEMORY)
		(void)fathom_fail_memory(reterr);
	fathom_array_free(&set);
	return err;
}

/* Lists the sites of the process, and its system calls, and makes their stubs. */
static fathom_err place_all(struct made *made, struct fathom_errinfo *reterr)
{
	const struct fathom_trace_syscalls *wanted = made->loader.options->syscalls;
	struct fathom_text_calls calls = {
		.sets = &fathom_trace_self_rewritten.sets,
		.plan = &made->plan,
		.is_wanted = wanted != NULL,
		.is_only = wanted && wanted->flags & FATHOM_SYSCALLS_ONLY,
	};
	struct fathom_sites_choice choice = { .slots = FATHOM_LISTS_NO_SLOTS,
					      .wants = fathom_text_calls_take,
					      .data = &calls };
	struct fathom_sites *sites = NULL;
	struct fathom_target *self;
	fathom_err err;

	FATHOM_TRY(fathom_target_open_self(made->session, NULL, &self, reterr));
	err = fathom_loader_list(&made->loader, self, &choice, &sites, reterr);
	fathom_target_release(self);
	if (!err && calls.err) {
		err = calls.err;
		if (reterr)
			*reterr = calls.info;
	}
	fathom_text_calls_made(&calls);
	for (size_t i = 0; !err && i < fathom_sites_module_count(sites); i++)
		err = place_module(made, sites, fathom_sites_module_get(sites, i), reterr);
	/* The names of functions stay with the sites. */
	made->span->sites = sites;
	fathom_site_range_finish(made->span);
	return err;
}

static void free_made(void)
{
	struct made *made = fathom_trace_self_made;

	fathom_trace_self_made = NULL;
	if (!made)
		return;
	fathom_site_range_destroy(made->span);
	fathom_loader_deinit(&made->loader);
	fathom_destroy(made->session);
	fathom_text_plan_clear(&made->plan);
	free(made);
}

/* Makes what the reader is to know. */
static fathom_err make(const struct fathom_trace_options *options, struct fathom_errinfo *reterr)
{
	/* One thread: whether there are others counts (host/patch/own_text.h). */
	const struct fathom_options o = { .size = sizeof o, .threads = 1 };
	struct made *made = calloc(1, sizeof *made);
	fathom_err err;

	fathom_trace_self_made = made;
	if (!made)
		return fathom_fail_memory(reterr);
	FATHOM_TRY(fathom_create(&o, &made->session, reterr));
	err = fathom_loader_init(&made->loader, made->session, options, reterr);
	made->loader.n_functions = options->syscalls ? FATHOM_SYSCALL_FUNCTIONS : 0;
	made->span = err ? NULL : fathom_site_range_create();
	if (!err && !made->span)
		err = FATHOM_E_MEMORY;
	if (err == FATHOM_E_MEMORY)
		(void)fathom_fail_memory(reterr);
	return err ? err : place_all(made, reterr);
}

/* Makes the text what it was. */
static fathom_err put_back(struct fathom_errinfo *reterr)
{
	FATHOM_TRY(fathom_text_calls_put(false, reterr));
	FATHOM_TRY(fathom_text_put_running(&fathom_trace_self_rewritten.plan, false, reterr));
	fathom_text_plan_clear(&fathom_trace_self_rewritten.plan);
	return FATHOM_OK;
}

static fathom_err prepare(const struct fathom_trace_options *options, struct fathom_errinfo *reterr)
{
	const bool is_only = options->syscalls && options->syscalls->flags & FATHOM_SYSCALLS_ONLY;
	fathom_err err;

	if (!is_only && (options->max_rate || options->flags & FATHOM_TRACE_CALLS))
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   options->max_rate ? "--max-rate without ptrace(2)"
						     : "--calls always without ptrace(2)");
	/* Of a parent, or where that was not possible. */
	FATHOM_TRY(put_back(reterr));
	FATHOM_TRY(fathom_text_calls_plan(options, reterr));
	FATHOM_TRY(fathom_self_trace_rings_make(options, reterr));
	err = make(options, reterr);
	if (err)
		free_made();
	return err;
}

static fathom_err begin_text(pid_t reader, struct fathom_errinfo *reterr)
{
	fathom_err err = FATHOM_OK;

	if (reader && fathom_trace_self_made) {
		fathom_trace_self_rewritten.plan = fathom_trace_self_made->plan;
		memset(&fathom_trace_self_made->plan, 0, sizeof fathom_trace_self_made->plan);
		fathom_self_trace_rings_begin(reader);
		err = fathom_text_put_running(&fathom_trace_self_rewritten.plan, true, reterr);
		if (!err)
			err = fathom_text_calls_put(true, reterr);
	}
	free_made();
	return err;
}

/* Writes what is not seen to @text; returns NULL if there is nothing. */
static const char *note_of(const struct made *made, char *text, size_t size)
{
	const uint64_t n_calls = fathom_text_calls_left();
	const char *const separator = made->n_left && n_calls ? ", " : "";
	int n = snprintf(text, size, "not seen: ");

	if (made->n_left)
		n += snprintf(text + n, size - (size_t)n, "%llu function%s",
			      (unsigned long long)made->n_left, made->n_left == 1 ? "" : "s");
	if (n_calls)
		(void)snprintf(text + n, size - (size_t)n, "%scalls of %llu instruction%s",
			       separator, (unsigned long long)n_calls, n_calls == 1 ? "" : "s");
	return made->n_left || n_calls ? text : NULL;
}

static fathom_err read_own(struct fathom *session, pid_t pid,
			   const struct fathom_trace_options *options,
			   struct fathom_self_trace_talk *talk, struct fathom_errinfo *reterr)
{
	struct made *made = fathom_trace_self_made;
	char note[NOTE];
	const struct fathom_self_trace_follow f = { .program = fathom_self_trace_rings(),
						    .span = made->span,
						    .pid = pid,
						    .options = options,
						    .talk = talk,
						    .note = note_of(made, note, sizeof note) };

	(void)session;
	made->span = NULL;
	return fathom_self_trace_follow(&f, reterr);
}

static fathom_err end(struct fathom_errinfo *reterr)
{
	fathom_self_trace_rings_end();
	return put_back(reterr);
}

const struct fathom_capture_method fathom_capture_by_rewriting = {
	.prepare = prepare,
	.begin = begin_text,
	.read = read_own,
	.end = end,
	.silence = fathom_trace_syscalls_silence,
	.change = fathom_self_trace_rings_change
};
