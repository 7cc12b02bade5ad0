/* SPDX-License-Identifier: MIT */
/* fathom_trace_run(): a program from its first instruction to its end. */
#include <elf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/base/clock.h"
#include "host/base/context.h"
#include "host/base/option_struct.h"
#include "host/events/syscall_text.h"
#include "host/trace/attach.h"
#include "host/trace/syscall_rewriter.h"
#include "host/trace/following.h"
#include "host/trace/traced_run.h"

/* How often rings are looked at. */
#define LOOK_NS 1000000

struct run {
	struct fathom_follow follow;
	struct fathom_follow_calls calls;
	struct fathom_syscall_rewriter rewriter;
	struct fathom_user user;
	struct fathom_trace_options options;
	struct fathom_rings *rings;
	int64_t begin_ns; /* monotonic clock */
	_Atomic bool is_over;
	char *const *argv; /* NULL: processes are attached to */
	const int32_t *pids;
	size_t n_pids;
	struct fathom_self_trace_link insider;
	fathom_err err;
	struct fathom_errinfo *reterr;
};

/* Reads the rings until the program has ended. */
static void *read_rings(void *data)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	struct run *run = data;
	struct fathom_timestamp_pair end;

	while (!atomic_load(&run->is_over)) {
		struct fathom_timestamp_pair until;

		fathom_rings_ask(run->rings);
		until = fathom_timestamp_pair_read(run->begin_ns);
		fathom_follow_answer(&run->follow);
		if (fathom_rings_wants_to_leave(run->rings)) {
			fathom_follow_leave(&run->follow);
			/* Programs that a filter stops are not left. */
			if (run->calls.filter)
				fathom_rings_silence(run->rings);
		} else if (fathom_rate_limit_is_due(fathom_rings_rate_limit(run->rings)))
			fathom_follow_limit_rate(&run->follow);
		if (!fathom_rings_take(run->rings, &until, false))
			nanosleep(&pause, NULL);
		atomic_fetch_add(&run->follow.n_rounds, 1);
	}
	fathom_rings_ask(run->rings);
	end = fathom_timestamp_pair_read(run->begin_ns);
	(void)fathom_rings_take(run->rings, &end, true);
	return NULL;
}

/* Only one thread may trace; nobody else's children are waited for on it. */
static void *run_main(void *data)
{
	struct run *run = data;
	pthread_t reader;

	fathom_liveness_init(&run->follow.liveness);
	if (pthread_create(&reader, NULL, read_rings, run)) {
		run->err = fathom_fail(run->reterr, FATHOM_E_OS, "", 0, "no thread can be started");
		return NULL;
	}
	if (run->argv)
		run->err = fathom_follow_run(&run->follow, run->argv, run->reterr);
	else
		run->err = fathom_follow_attach(&run->follow, run->pids, run->n_pids, run->reterr);
	atomic_store(&run->is_over, true);
	pthread_join(reader, NULL);
	/* A process that is held goes on when this thread ends: the kernel detaches it. */
	if (run->options.over && !run->err)
		run->options.over(run->options.data);
	return NULL;
}

/* Posts the sites of a module that was loaded. */
static void post_span(void *data, struct fathom_site_range *span)
{
	struct run *run = data;

	fathom_rings_post(run->rings, &(struct fathom_post){ .span = span });
}

static void deinit(struct run *run)
{
	struct fathom_follow *f = &run->follow;

	fathom_rings_destroy(run->rings);
	for (size_t i = 0; i < f->processes.n; i++) {
		fathom_syscall_stacks_forget(f->processes.items[i]);
		fathom_program_end(f->processes.items[i]);
		fathom_tracee_deinit(&f->processes.items[i]->tracee);
		free(f->processes.items[i]);
	}
	fathom_array_free(&f->processes);
	for (size_t i = 0; i < f->tasks.n; i++)
		free(f->tasks.items[i].n_injected);
	fathom_array_free(&f->tasks);
	fathom_syscall_stacks_destroy(f->stacks);
	fathom_array_free(&run->calls.injections);
	fathom_socket_names_destroy(run->calls.files.sockets);
	fathom_syscall_format_options_deinit(&run->calls.format_options);
	fathom_chosen_paths_deinit(&run->calls.paths);
	free(run->calls.filter);
	fathom_syscall_rewriter_deinit(&run->rewriter);
	fathom_user_deinit(&run->user);
	fathom_array_free(&f->events);
	fathom_loader_deinit(&f->loader);
	pthread_mutex_destroy(&f->lock);
	fathom_liveness_deinit(&f->liveness);
}

/*
 * Makes the filter of the calls that are wanted or needed, and lets those be that the runtime makes
 * if it @records calls; false without memory.
 */
static bool make_filter(struct run *run, bool records)
{
	static const char *const watched[] = { "seccomp", "prctl", "arch_prctl" };
	const size_t n = records ? 3 : 2;
	struct fathom_syscall_set set = run->calls.set;

	if (run->follow.stacks)
		fathom_syscall_stacks_need(run->follow.stacks, &set);
	/*
	 * By these the program asks what the filter makes the kernel refuse, and may forbid what
	 * the runtime does, or take what it needs.
	 */
	for (size_t i = 0; i < n; i++) {
		fathom_syscall_set_add(&set, EM_X86_64, watched[i]);
		fathom_syscall_set_add(&set, EM_386, watched[i]);
	}
	run->calls.filter = malloc(sizeof *run->calls.filter);
	if (run->calls.filter)
		fathom_syscall_filter_make(&set, records ? fathom_image_size() : 0,
					   run->calls.filter);
	return run->calls.filter != NULL;
}

/* Lets the runtime record system calls where it can. */
static void begin_rewriting(struct run *run)
{
	struct fathom_syscall_set apart = { .has_unknown = false };

	for (size_t i = 0; i < run->calls.injections.n; i++)
		fathom_syscall_set_join(&apart, &run->calls.injections.items[i].set);
	run->rewriter.is_only = run->calls.is_all;
	fathom_syscall_rewriter_init(&run->rewriter, &run->calls.set, &apart, &run->calls.options,
				     run->calls.files.wanted != 0);
	run->follow.loader.rewriter = &run->rewriter;
}

/* Sets what is told of descriptors. */
static fathom_err init_files(struct fathom_syscall_files *files, uint32_t flags)
{
	static const uint32_t wanted[][2] = {
		{ FATHOM_SYSCALLS_FILES, FATHOM_SYSCALL_FILE_PATHS },
		{ FATHOM_SYSCALLS_SOCKETS, FATHOM_SYSCALL_FILE_SOCKETS },
		{ FATHOM_SYSCALLS_DEVICES, FATHOM_SYSCALL_FILE_DEVICES },
		{ FATHOM_SYSCALLS_PIDFDS, FATHOM_SYSCALL_FILE_PIDFDS },
	};

	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
		if (flags & wanted[i][0])
			files->wanted |= wanted[i][1];
	if (!(files->wanted & FATHOM_SYSCALL_FILE_SOCKETS))
		return FATHOM_OK;
	files->sockets = fathom_socket_names_create();
	return files->sockets ? FATHOM_OK : FATHOM_E_MEMORY;
}

/*
 * Returns whether the runtime can record what is wanted: not stacks, nor what is chosen by call, by
 * path or by descriptor.
 */
static bool can_rewrite(const struct run *run)
{
	const struct fathom_syscall_format_options *m = &run->calls.format_options;

	return !run->follow.stacks && !run->calls.paths.n && !m->has_abbreviated &&
	       !m->has_structs && !m->has_numbers && !m->has_dumps;
}

/* Reads what system calls are wanted. */
static fathom_err init_calls(struct run *run, struct fathom *session)
{
	const uint32_t known = FATHOM_SYSCALLS_STACKS * 2 - 1;
	struct fathom_trace_syscalls wanted = { .size = sizeof wanted };
	bool rewrites;

	if (!FATHOM_OPTIONS_READ(run->options.syscalls, &wanted, known))
		return fathom_fail_options(run->reterr);
	fathom_syscall_text_options(&wanted, &run->calls.options);
	run->calls.tells_entries = (wanted.flags & FATHOM_SYSCALLS_ENTRIES) != 0;
	run->calls.is_all = (wanted.flags & FATHOM_SYSCALLS_ONLY) != 0;
	run->follow.calls = &run->calls;
	for (size_t i = 0; i < wanted.n_inject; i++) {
		struct fathom_injection injection;

		FATHOM_TRY(fathom_injection_read(wanted.inject[i], &injection, run->reterr));
		if (!fathom_array_push(&run->calls.injections, injection))
			return FATHOM_E_MEMORY;
	}
	FATHOM_TRY(fathom_syscall_format_options_read(&wanted, &run->calls.format_options,
						      run->reterr));
	FATHOM_TRY(init_files(&run->calls.files, wanted.flags));
	for (size_t i = 0; i < wanted.n_paths; i++)
		FATHOM_TRY(fathom_chosen_paths_add(&run->calls.paths, wanted.paths[i]));
	fathom_syscall_set_fill(&run->calls.set);
	if (wanted.set)
		FATHOM_TRY(fathom_syscall_set_read(wanted.set, &run->calls.set, run->reterr));
	if (wanted.flags & FATHOM_SYSCALLS_STACKS) {
		run->follow.stacks = fathom_syscall_stacks_create(
			session, (wanted.flags & FATHOM_SYSCALLS_STRACE) != 0);
		if (!run->follow.stacks)
			return FATHOM_E_MEMORY;
	}
	if (wanted.method > FATHOM_SYSCALL_BY_REWRITING)
		return fathom_fail_options(run->reterr);
	rewrites = wanted.method == FATHOM_SYSCALL_BY_REWRITING && run->argv && can_rewrite(run);
	if (rewrites)
		begin_rewriting(run);
	if (!rewrites &&
	    (!(wanted.flags & FATHOM_SYSCALLS_FILTER) || !run->calls.is_all || !run->argv))
		return FATHOM_OK;
	return make_filter(run, rewrites) ? FATHOM_OK : FATHOM_E_MEMORY;
}

/* Looks up whom the program runs as. */
static fathom_err find_user(struct run *run)
{
	const fathom_err err = fathom_user_find(run->options.user, &run->user, run->reterr);

	if (err == FATHOM_E_NOT_FOUND)
		fathom_errinfo_set_file(run->reterr, run->options.user);
	run->follow.user = &run->user;
	return err;
}

static fathom_err init(struct run *run, struct fathom *session)
{
	struct fathom_loader *l = &run->follow.loader;
	const struct fathom_trace_options *o = &run->options;
	struct fathom_timestamp_pair begin;

	run->begin_ns = fathom_now_ns();
	run->follow.wait_ticks = fathom_trace_clock_rate();
	run->follow.flags = o->flags;
	pthread_mutex_init(&run->follow.lock, NULL);
	FATHOM_TRY(fathom_loader_init(l, session, o, run->reterr));
	l->loaded = post_span;
	l->data = run;
	l->insider = run->insider;
	if (o->syscalls) {
		FATHOM_TRY(init_calls(run, session));
		l->n_functions = FATHOM_SYSCALL_FUNCTIONS;
	}
	if (o->user)
		FATHOM_TRY(find_user(run));
	run->begin_ns = fathom_now_ns();
	begin = fathom_timestamp_pair_read(run->begin_ns);
	FATHOM_TRY(fathom_rings_create(o, &begin, &run->rings));
	run->follow.rings = run->rings;
	return FATHOM_OK;
}

static void give_result(const struct run *run, struct fathom_trace_result *ret)
{
	const struct fathom_loader *l = &run->follow.loader;
	struct fathom_trace_result r = { .status = run->follow.status,
					 .n_sites = l->n_sites,
					 .n_calls = l->n_calls,
					 .n_returns = l->n_returns,
					 .n_unrecorded = l->n_unrecorded,
					 .lost = fathom_rings_lost(run->rings),
					 .stop_ns = run->follow.longest_stop_ns };

	r.size = ret->size < sizeof r ? ret->size : sizeof r;
	memcpy(r.n_refused, l->n_refused, sizeof r.n_refused);
	memcpy(ret, &r, r.size);
}

static fathom_err trace(struct run *run, struct fathom *session,
			const struct fathom_trace_options *options,
			struct fathom_trace_result *ret_result)
{
	pthread_t thread;

	if (!options || !FATHOM_OPTIONS_READ(options, &run->options, FATHOM_TRACE_FLAGS) ||
	    !run->options.events || run->options.clock > FATHOM_TRACE_CLOCK_NONE)
		return fathom_fail_options(run->reterr);
	run->err = init(run, session);
	if (run->err == FATHOM_E_MEMORY)
		(void)fathom_fail_memory(run->reterr);
	else if (!run->err && pthread_create(&thread, NULL, run_main, run))
		run->err = fathom_fail(run->reterr, FATHOM_E_OS, "", 0, "no thread can be started");
	else if (!run->err)
		pthread_join(thread, NULL);
	if (!run->err)
		give_result(run, ret_result);
	deinit(run);
	return run->err;
}

fathom_err fathom_trace_run(struct fathom *session, char *const *argv,
			    const struct fathom_trace_options *options,
			    struct fathom_trace_result *ret_result, struct fathom_errinfo *reterr)
{
	struct run run = { .argv = argv, .reterr = reterr };

	if (!argv || !argv[0])
		return fathom_fail_options(reterr);
	return trace(&run, session, options, ret_result);
}

fathom_err fathom_trace_attach(struct fathom *session, const int32_t *pids, size_t n,
			       const struct fathom_trace_options *options,
			       struct fathom_trace_result *ret_result,
			       struct fathom_errinfo *reterr)
{
	struct run run = { .pids = pids, .n_pids = n, .reterr = reterr };

	if (!pids || !n)
		return fathom_fail_options(reterr);
	return trace(&run, session, options, ret_result);
}

fathom_err fathom_trace_attach_telling(struct fathom *session, int32_t pid,
				       const struct fathom_trace_options *options,
				       const struct fathom_self_trace_link *insider,
				       struct fathom_trace_result *ret_result,
				       struct fathom_errinfo *reterr)
{
	struct run run = { .pids = &pid, .n_pids = 1, .insider = *insider, .reterr = reterr };

	return trace(&run, session, options, ret_result);
}
