/* SPDX-License-Identifier: MIT */
/*
 * Profiles of perf record: perf.data (perf_file.h). Of several events, the first one with samples
 * is read; a sample counts for its period.
 *
 * Copies of stacks are walked as those of fathom's own samples, in the maps that the file has
 * reported: memory of the processes is not there. Files are those at the paths of the maps if they
 * have the build-ids of the file; a map without a build-id has whatever is at its path now. The
 * kernel's call chains are taken as they are.
 *
 * JIT code is named by the jitdumps that processes have mapped (perf_jit.h): of a time, if the
 * samples have the time of jitdumps.
 *
 * The kernel's functions are named if the running one is the same, and was loaded to the same
 * place; else its addresses are kept, as those of its modules are.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "host/exchange/perf_file.h"
#include "host/exchange/perf_jit.h"
#include "host/profile/perf_registers.h"
#include "host/profile/record_kernel.h"
#include "host/profile/record_threads.h"
#include "host/profile/samples_format.h"
#include "host/space/kernel/kallsyms.h"

/* Address spaces that are open at once. */
#define MOST_SPACES 64

/* Records before ended threads are forgotten, and their age in ns. */
#define FORGET_STEP 1024
#define FORGET_AGE  UINT64_C(1000000000)

/* Most addresses of a call chain, where an event does not say: kernel.perf_event_max_stack. */
#define DEFAULT_MAX_STACK 127

/* Bytes of budget below which maps of processes do not fit any more. */
#define LEAST_LEFT ((uint64_t)1 << 17)

/* Bytes of records that are read before their pages are given back. */
#define WINDOW (UINT64_C(16) << 20)

struct perf_import {
	struct fathom_import *import;
	struct fathom_perf_file file;
	struct fathom_record_threads threads;
	struct fathom_record_kernel kernel;
	struct fathom_perf_jit jit;
	bool has_kernel;           /* the file says where it was */
	bool is_foreign;           /* it is of another machine: stacks cannot be walked */
	uint32_t attr;             /* the event that is read */
	uint64_t began;            /* time of the first record */
	uint64_t last;             /* of the last one */
	uint64_t read;             /* bytes of records since pages were given back */
	uint8_t registers[64 * 8]; /* of a sample, as this build has them */
	uint8_t chain[16];         /* of a sample without one: its context and pc */
};

/* Returns the first event that has samples; 0 if none has. */
static uint32_t choose_event(const struct fathom_perf_file *f)
{
	for (size_t i = 0; i < f->attrs.n; i++)
		if (f->attrs.items[i].n_samples)
			return (uint32_t)i;
	return 0;
}

/* Returns the name of event @a without what follows a colon or a slash. */
static struct fathom_str name_of(const struct fathom_perf_attr *a)
{
	static const char *const hardware[] = { "cycles",
						"instructions",
						"cache-references",
						"cache-misses",
						"branches",
						"branch-misses",
						"bus-cycles",
						"stalled-cycles-frontend",
						"stalled-cycles-backend",
						"ref-cycles" };
	static const char *const software[] = { "cpu-clock",      "task-clock",
						"page-faults",    "context-switches",
						"cpu-migrations", "minor-faults",
						"major-faults" };
	struct fathom_str s = a->name;

	if (a->type == PERF_TYPE_SOFTWARE && a->config < sizeof software / sizeof *software)
		return fathom_import_str(software[a->config]);
	if (a->type == PERF_TYPE_HARDWARE && a->config < sizeof hardware / sizeof *hardware)
		return fathom_import_str(hardware[a->config]);
	for (uint32_t i = 1; i < s.size; i++)
		if (s.data[i] == ':' && a->type != PERF_TYPE_TRACEPOINT)
			s.size = i;
	return s.size ? s : fathom_import_str("event");
}

static bool is_clock(const struct fathom_perf_attr *a)
{
	return a->type == PERF_TYPE_SOFTWARE &&
	       (a->config == PERF_COUNT_SW_CPU_CLOCK || a->config == PERF_COUNT_SW_TASK_CLOCK);
}

/* Writes what the file says of itself. */
static void write_about(struct perf_import *p)
{
	struct fathom_import *i = p->import;
	const struct fathom_perf_file *f = &p->file;
	const struct fathom_perf_attr *a = &f->attrs.items[p->attr];
	const struct fathom_str name = name_of(a);
	const struct fathom_str command = { f->command.items, (uint32_t)f->command.n };
	uint64_t left_out = f->n_unknown;
	char method[96] = "perf record";

	for (size_t k = 0; k < f->attrs.n; k++)
		left_out += k == p->attr ? 0 : f->attrs.items[k].n_samples;
	if (left_out)
		(void)snprintf(method, sizeof method,
			       "perf record (%" PRIu64 " samples of other events are left out)",
			       left_out);
	fathom_import_about(i, FATHOM_ABOUT_COMMAND, command);
	fathom_import_about(i, FATHOM_ABOUT_EVENT, name);
	fathom_import_about(i, FATHOM_ABOUT_UNIT, is_clock(a) ? fathom_import_str("ns") : name);
	fathom_import_about(i, FATHOM_ABOUT_METHOD, fathom_import_str(method));
	fathom_import_about(i, FATHOM_ABOUT_MACHINE, f->machine);
	fathom_import_about(i, FATHOM_ABOUT_KERNEL, f->kernel);
	fathom_import_about(i, FATHOM_ABOUT_HOST, f->host);
	if (a->flags & FATHOM_PERF_ATTR_FREQUENCY)
		fathom_import_about_number(i, FATHOM_ABOUT_FREQUENCY, (uint32_t)a->period);
	if (f->wall_ns && p->began)
		fathom_import_about_number(i, FATHOM_ABOUT_STARTED,
					   f->wall_ns + (p->began - f->clock_ns));
}

/* Finds when the recording began and ended: records that perf has made itself have no time. */
static void find_times(struct perf_import *p)
{
	const struct fathom_keyed_array *index = &p->file.index;
	size_t i = 0;

	while (i < index->n && !index->items[i].key)
		i++;
	p->began = i < index->n ? index->items[i].key : 0;
	p->last = index->n ? index->items[index->n - 1].key : 0;
}

static uint64_t since(const struct perf_import *p, uint64_t ns)
{
	return ns > p->began ? ns - p->began : 0;
}

/*
 * Returns whether the build-id of the file is that of the running kernel or, if the file has none,
 * as in pipe mode, the release.
 */
static bool is_same_build(struct perf_import *p)
{
	const struct fathom_bytes then = fathom_perf_file_build_id(&p->file, "[kernel.kallsyms]");
	struct fathom_target_info info;
	struct fathom_target *t;
	struct utsname now;
	bool is_same;

	if (!then.size)
		return uname(&now) == 0 && str_is(p->file.kernel, now.release);
	if (fathom_target_open_kernel(p->import->session, NULL, &t, NULL))
		return false;
	fathom_target_get_info(t, &info);
	is_same = bytes_equal(then, (struct fathom_bytes){ info.build_id, info.build_id_size });
	fathom_target_release(t);
	return is_same;
}

/* Returns whether the running kernel is the one whose text began at @then. */
static bool is_running_kernel(struct perf_import *p, uint64_t then)
{
	const char *name;
	uint64_t now;

	/* _text and _stext are at one address, or the build is another one. */
	return then &&
	       !fathom_kallsyms_read_start("/proc/kallsyms", p->import->session, &now, &name,
					   NULL) &&
	       now == then && is_same_build(p);
}

/* Names the JIT code of the process of @r by the jitdump that it has mapped. */
static fathom_err take_dump(struct perf_import *p, const struct fathom_perf_record *r)
{
	struct fathom_record_space *space = fathom_record_threads_space(&p->threads, r->pid);

	return space ? fathom_perf_jit_map(&p->jit, r, space) : FATHOM_E_MEMORY;
}

/* Returns whether samples have the time that jitdumps have, by perf record -k mono. */
static bool has_dump_times(const struct fathom_perf_attr *a)
{
	return a->flags & FATHOM_PERF_ATTR_CLOCK && a->clock == CLOCK_MONOTONIC;
}

/* Notes where the kernel was; maps of other code are the threads'. */
static fathom_err take_map(struct perf_import *p, struct fathom_perf_record *r)
{
	static const char kernel[] = "[kernel.kallsyms]";
	const size_t n = sizeof kernel - 1;
	uint32_t pid;

	if (r->misc & PERF_RECORD_MISC_MMAP_DATA)
		return FATHOM_OK;
	if (r->pid == -1) {
		if (!p->has_kernel && strncmp(r->map.path, kernel, n) == 0) {
			p->has_kernel = true;
			p->kernel.is_tried = !is_running_kernel(p, r->map.offset);
		}
		return FATHOM_OK;
	}
	if (!r->map.build_id.size)
		r->map.build_id = fathom_perf_file_build_id(&p->file, r->map.path);
	FATHOM_TRY(fathom_record_threads_take(&p->threads, r));
	return fathom_perf_jit_is_dump(r->map.path, &pid) ? take_dump(p, r) : FATHOM_OK;
}

/* Returns whether the registers of the file are those that this build's samples have. */
static bool is_own_machine(const struct perf_import *p)
{
	struct utsname now;

	return !p->file.machine.size || (uname(&now) == 0 && str_is(p->file.machine, now.machine));
}

/* Orders the registers of @r as this build's samples have them. */
static void order_registers(struct perf_import *p, struct fathom_perf_record *r)
{
	const uint64_t ours = fathom_perf_registers();
	const uint64_t theirs = p->file.attrs.items[p->attr].registers;
	const uint8_t *from = r->sample.registers;
	size_t n = 0;

	r->sample.missing = 0;
	if (!from)
		return;
	for (unsigned i = 0; i < 64; i++) {
		const bool has = theirs >> i & 1;

		if (ours >> i & 1) {
			const uint64_t none = 0;

			memcpy(p->registers + 8 * n, has ? (const void *)from : &none, 8);
			r->sample.missing |= (uint64_t)!has << n;
			n++;
		}
		from += has ? 8 : 0;
	}
	r->sample.registers = p->registers;
}

/* Returns whether the copy of the stack of @r can be walked: it has the registers for that. */
static bool can_walk(const struct perf_import *p, const struct fathom_perf_record *r)
{
	const uint64_t type = p->file.attrs.items[p->attr].sample_type;
	struct fathom_registers registers;

	if (p->is_foreign || !(type & PERF_SAMPLE_REGS_USER) || !(type & PERF_SAMPLE_STACK_USER))
		return false;
	/* A thread of the kernel has none. */
	return !r->sample.registers ||
	       fathom_perf_registers_read(r->sample.registers, r->sample.missing, r->sample.abi,
					  &registers);
}

/* Gives a sample whose call chain does not have its pc one of it alone. */
static void add_pc(struct perf_import *p, struct fathom_perf_record *r,
		   struct fathom_perf_more *more)
{
	const uint64_t marker = (uint64_t)PERF_CONTEXT_KERNEL;
	const uint32_t mode = r->misc & PERF_RECORD_MISC_CPUMODE_MASK;

	memcpy(p->chain, &marker, 8);
	memcpy(p->chain + 8, &more->ip, 8);
	if (mode == PERF_RECORD_MISC_KERNEL && !r->sample.n_kernel && more->ip) {
		r->sample.kernel = p->chain;
		r->sample.n_kernel = 2;
	} else if (mode == PERF_RECORD_MISC_USER && !more->n_user && more->ip) {
		more->user = p->chain + 8;
		more->n_user = 1;
	}
}

/* Returns why the call chain of a program, of which @n frames are left, ends. */
static uint8_t chain_stop(const struct perf_import *p, const struct fathom_perf_record *r,
			  const struct fathom_perf_more *more, uint64_t n)
{
	const struct fathom_perf_attr *a = &p->file.attrs.items[more->attr];
	/* The marker of the kernel's chain is none of its addresses. */
	const uint64_t n_kernel = r->sample.n_kernel ? r->sample.n_kernel - 1 : 0;
	const uint64_t most = a->max_stack ? a->max_stack : DEFAULT_MAX_STACK;

	if (!(a->sample_type & PERF_SAMPLE_CALLCHAIN) ||
	    a->flags & FATHOM_PERF_ATTR_EXCLUDE_USER_CHAIN || more->user == p->chain + 8)
		return FATHOM_STOP_LIMIT;
	if (n > FATHOM_IMPORT_FRAMES || n_kernel + more->n_user >= most)
		return FATHOM_STOP_LIMIT;
	return n < more->n_user || more->is_part ? FATHOM_STOP_NO_RULE : FATHOM_STOP_ENTRY;
}

/* Writes the frames of the call chain of a program. */
static fathom_err write_chain(struct perf_import *p, struct fathom_record_space *space,
			      const struct fathom_perf_record *r,
			      const struct fathom_perf_more *more, struct fathom_record_stack *ret)
{
	uint64_t n = more->n_user;

	/* The last frame pointer of code without one often leads to nothing. */
	while (n && !load_u64(more->user + 8 * (n - 1), false))
		n--;
	*ret = (struct fathom_record_stack){ .stop = chain_stop(p, r, more, n) };
	for (uint64_t i = n < FATHOM_IMPORT_FRAMES ? n : FATHOM_IMPORT_FRAMES; i--;) {
		const uint64_t pc = load_u64(more->user + 8 * i, false);
		uint32_t location;

		FATHOM_TRY(fathom_record_space_locate(
			space, pc, i ? FATHOM_PC_RETURN : FATHOM_PC_EXACT,
			i ? FATHOM_TRUST_FRAME_POINTER : FATHOM_TRUST_REGISTERS, &p->import->table,
			&location));
		ret->node = fathom_table_node(&p->import->table, ret->node, location);
		if (!ret->node)
			return FATHOM_E_MEMORY;
	}
	/* Frame pointers also end where code has none. */
	if (ret->stop == FATHOM_STOP_ENTRY && n &&
	    !fathom_record_space_is_outermost(space, load_u64(more->user + 8 * (n - 1), false),
					      n > 1 ? FATHOM_PC_RETURN : FATHOM_PC_EXACT))
		ret->stop = FATHOM_STOP_NO_RULE;
	return FATHOM_OK;
}

/* Returns the number of @thread in the profile. */
static uint32_t number_of(struct perf_import *p, struct fathom_record_thread *thread, uint64_t ns)
{
	const struct fathom_profile_thread t = { .pid = thread->pid,
						 .tid = thread->tid,
						 .parent = thread->parent,
						 .ns = since(p, ns),
						 .name = *thread->name || thread->tid ? thread->name
										      : "swapper" };

	if (thread->number == UINT32_MAX)
		thread->number = fathom_profile_write_thread(&p->import->writer, &t, UINT32_MAX);
	return thread->number;
}

static fathom_err take_sample(struct perf_import *p, struct fathom_perf_record *r,
			      struct fathom_perf_more *more)
{
	struct fathom_record_thread *thread;
	struct fathom_record_space *space;
	struct fathom_record_stack stack = { 0 };
	struct fathom_profile_sample s = { .ns = since(p, r->ns), .weight = r->sample.period };

	if (more->attr != p->attr)
		return FATHOM_OK;
	thread = fathom_record_thread_at(&p->threads, r->pid, r->tid);
	space = fathom_record_threads_space(&p->threads, r->pid);
	if (!thread || !space)
		return FATHOM_E_MEMORY;
	p->jit.now = r->ns;
	add_pc(p, r, more);
	order_registers(p, r);
	if (can_walk(p, r))
		FATHOM_TRY(fathom_record_space_walk(space, r, &p->import->table, &stack));
	else
		FATHOM_TRY(write_chain(p, space, r, more, &stack));
	FATHOM_TRY(fathom_record_kernel_walk(&p->kernel, r, &p->import->table, stack.node,
					     &stack.node));
	s.node = stack.node;
	s.stop = stack.stop;
	s.thread = number_of(p, thread, r->ns);
	fathom_profile_write_sample(&p->import->writer, &s);
	return FATHOM_OK;
}

static fathom_err take_record(struct perf_import *p, struct fathom_perf_record *r,
			      struct fathom_perf_more *more)
{
	struct fathom_profile_writer *w = &p->import->writer;

	switch (r->type) {
	case PERF_RECORD_SAMPLE:
		return take_sample(p, r, more);
	case PERF_RECORD_MMAP2:
		return take_map(p, r);
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		fathom_profile_write_lost(w, since(p, r->ns), r->lost);
		return FATHOM_OK;
	case PERF_RECORD_THROTTLE:
		fathom_profile_write_throttled(w, since(p, r->ns));
		return FATHOM_OK;
	default:
		return fathom_record_threads_take(&p->threads, r);
	}
}

/* Keeps what is held in memory small. */
static void tidy(struct perf_import *p, size_t i, uint64_t ns)
{
	const struct fathom_bytes b = fathom_perf_file_bytes(&p->file, i);

	p->read += b.size;
	if (p->read > WINDOW) {
		fathom_file_give_back(p->import->file, p->import->file->bytes);
		p->read = 0;
	}
	if (i % FORGET_STEP)
		return;
	fathom_record_threads_forget(&p->threads, ns > FORGET_AGE ? ns - FORGET_AGE : 0);
	fathom_record_threads_close_spaces(&p->threads, MOST_SPACES);
}

static fathom_err take_records(struct perf_import *p, struct fathom_errinfo *reterr)
{
	for (size_t i = 0; i < p->file.index.n; i++) {
		struct fathom_perf_record r;
		struct fathom_perf_more more;
		fathom_err err;

		FATHOM_TRY(fathom_import_check(p->import, reterr));
		if (!fathom_perf_file_record(&p->file, i, &r, &more))
			continue;
		err = take_record(p, &r, &more);
		if (err == FATHOM_E_MEMORY &&
		    !fathom_memory_fits(&p->import->session->memory, LEAST_LEFT))
			return fathom_import_fail_budget(p->import, reterr);
		if (err == FATHOM_E_MEMORY)
			return fathom_fail_memory(reterr);
		if (err)
			return err;
		tidy(p, i, r.ns);
	}
	return FATHOM_OK;
}

fathom_err fathom_import_perf(struct fathom_import *i, struct fathom_errinfo *reterr)
{
	struct perf_import p = {
		.import = i,
		.file = { .import = i },
		.threads = { .session = i->session, .is_past = true },
		.kernel = { .session = i->session, .is_tried = true, .is_past = true },
		.jit = { .memory = &i->session->memory }
	};
	fathom_err err = fathom_perf_file_open(&p.file, reterr);

	if (!err && !p.file.attrs.n)
		err = fathom_import_fail(i, FATHOM_E_CORRUPT, 0, "describes no events", reterr);
	if (!err) {
		p.attr = choose_event(&p.file);
		p.jit.has_times = has_dump_times(&p.file.attrs.items[p.attr]);
		p.is_foreign = !is_own_machine(&p);
		find_times(&p);
		write_about(&p);
		err = take_records(&p, reterr);
	}
	if (!err && !p.file.is_cut)
		fathom_import_end(i, p.last - p.began);
	fathom_record_threads_deinit(&p.threads);
	fathom_record_kernel_deinit(&p.kernel);
	fathom_perf_jit_deinit(&p.jit);
	fathom_perf_file_close(&p.file);
	return err;
}
