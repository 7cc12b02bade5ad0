/* SPDX-License-Identifier: MIT */
/*
 * The report: a line of what has happened, the stack as `fathom stack` prints it, registers, code
 * and the memory map. What is in memory is read by checked reads only.
 */
#define _GNU_SOURCE
#include "safe/crash/report.h"

#include <elf.h>
#include <string.h>
#include <sys/syscall.h>

#include "fathom/self.h"
#include "fathom/stack.h"
#include "fathom/trust.h"
#include "safe/base/peek.h"
#include "safe/base/sys.h"
#include "safe/crash/abort_text.h"
#include "safe/crash/cause.h"
#include "safe/crash/exception_line.h"
#include "safe/crash/fault_line.h"
#include "safe/crash/own_maps.h"
#include "safe/crash/sink.h"
#include "safe/self/own_context.h"
#include "safe/self/own_stack.h"
#include "safe/self/registries.h"

#define GET_NAME 16 /* PR_GET_NAME of prctl(2) */

/* Bytes of code before and from pc on. */
#define CODE_BEFORE 16
#define CODE_BEHIND 32

/* The longest cycle of functions that is recognized as recursion. */
#define LONGEST_CYCLE 8

/* A report under way. */
struct report {
	struct fathom_crash *crash;
	struct fathom_report_sink sink;
	struct fathom_registers registers;
	size_t n; /* frames */
	_Alignas(16) char answer[2 * FATHOM_SELF_BUFFER];
};

/* The head ----------------------------------------------------------------------------------- */

/* Adds "SIGSEGV (SEGV_MAPERR)". */
static void add_cause(struct fathom_report_sink *s, int number, const siginfo_t *info)
{
	const char *cause = fathom_cause_name(number, info->si_code);

	fathom_sink_add(s, "%G (", number);
	if (cause)
		fathom_sink_add(s, "%s)", cause);
	else
		fathom_sink_add(s, "code %d)", info->si_code);
}

static void add_head(struct report *r, const struct fathom_crash_event *e)
{
	char name[16] = "";

	(void)fathom_sys(SYS_prctl, GET_NAME, (long)(uintptr_t)name, 0, 0, 0, 0);
	name[sizeof name - 1] = '\0';
	fathom_sink_add(&r->sink, "fathom: %s (%P, %H %s) crashed by ", r->crash->program, name);
	add_cause(&r->sink, e->number, e->info);
	if (e->number == SIGSYS && e->info->si_code > 0)
		fathom_sink_add(&r->sink, " in system call %d", e->info->si_syscall);
	else if (fathom_cause_is_fault(e->number, e->info->si_code))
		fathom_sink_add(&r->sink, " at 0x%zx", (uintptr_t)e->info->si_addr);
	else if (fathom_cause_is_sent(e->info->si_code))
		fathom_sink_add(&r->sink, " sent by process %d", e->info->si_pid);
	fathom_sink_add(&r->sink, "\n");
}

/* The stack ---------------------------------------------------------------------------------- */

static void add_place(struct fathom_report_sink *s, const struct fathom_frame *f)
{
	if (!f->file)
		return;
	fathom_sink_add(s, " ");
	fathom_crash_add_text(s, f->file, f->file_size);
	fathom_sink_add(s, ":%u", f->line);
	if (f->column)
		fathom_sink_add(s, ":%u", f->column);
}

static void add_name(struct fathom_report_sink *s, const struct fathom_frame *f)
{
	if (f->function)
		fathom_crash_add_text(s, f->function, f->function_size);
	else
		fathom_sink_add(s, "??");
}

/* Adds the module of code without a name. */
static void add_module(struct fathom_report_sink *s, const struct fathom_answer *a)
{
	if (a->module && a->module->path)
		fathom_sink_add(s, " %s+0x%llx", a->module->path,
				(unsigned long long)a->module_address);
	if (a->reason)
		fathom_sink_add(s, " (%s)", fathom_reason_name((enum fathom_reason)a->reason));
}

/* Adds the name, the place and the inlined callers of @a; @mark: "" or the frame's trust. */
static void add_answer(struct fathom_report_sink *s, const struct fathom_answer *a,
		       const char *mark)
{
	const struct fathom_frame symbol = { .function = a->symbol,
					     .function_size = a->symbol_size };
	const struct fathom_frame *f = a->frame ? a->frame : &symbol;
	const bool is_copy = f->outer && a->pc.address >= f->start;

	add_name(s, f);
	if (f->function)
		fathom_sink_add(
			s, "+0x%llx",
			(unsigned long long)(is_copy ? a->pc.address - f->start : a->offset));
	else
		add_module(s, a);
	add_place(s, f);
	fathom_sink_add(s, "%s\n", mark);
	for (unsigned i = 0; (f = f->outer) != NULL && i < FATHOM_MAX_INLINE_DEPTH; i++) {
		fathom_sink_add(s, "      inlined into ");
		add_name(s, f);
		add_place(s, f);
		fathom_sink_add(s, "\n");
	}
}

/* Adds frame @i; @guess: the trust of the first frame that is not exact, if one came. */
static void add_frame(struct report *r, size_t i, uint8_t guess)
{
	const struct fathom_crash *c = r->crash;
	const struct fathom_pc pc = { .address = c->pcs[i], .kind = c->kinds[i] };
	const struct fathom_answer *a =
		fathom_self_lookup(c->self, pc, 0, r->answer, sizeof r->answer);
	const bool is_signal_return = i + 1 < r->n && c->kinds[i] == FATHOM_PC_EXACT &&
				      c->trusts[i + 1] == FATHOM_TRUST_SIGNAL;
	const char *handler = is_signal_return ? " <signal handler called>" : "";
	char mark[64];

	(void)fathom_self_format(NULL, mark, sizeof mark, "%s", handler);
	if (guess)
		(void)fathom_self_format(
			NULL, mark, sizeof mark,
			c->trusts[i] >= FATHOM_TRUST_DECODED ? "%s [%s]" : "%s [after %s]", handler,
			fathom_trust_name((enum fathom_trust)(
				c->trusts[i] >= FATHOM_TRUST_DECODED ? c->trusts[i] : guess)));
	fathom_sink_add(&r->sink, "#%zu %s0x%016llx ", i, i < 10 ? " " : "",
			(unsigned long long)c->pcs[i]);
	add_answer(&r->sink, a, mark);
}

/* Returns how often the @length frames at @i stand there, one run after the other. */
static size_t count_runs(const struct report *r, size_t i, size_t length)
{
	const uint64_t *pcs = r->crash->pcs;
	size_t end = i + length;

	while (end < r->n && pcs[end] == pcs[end - length])
		end++;
	return (end - i) / length;
}

/* Finds recursion that begins at frame @i: returns its runs and their length; 1 run: none. */
static size_t find_recursion(const struct report *r, size_t i, size_t *ret_length)
{
	for (size_t length = 1; length <= LONGEST_CYCLE; length++) {
		const size_t runs = count_runs(r, i, length);

		if (runs > 2) {
			*ret_length = length;
			return runs;
		}
	}
	*ret_length = 1;
	return 1;
}

static const char *explain(uint8_t stop)
{
	return stop == FATHOM_STOP_LIMIT ? "more frames than a report has"
					 : fathom_stop_text((enum fathom_stop)stop);
}

static void add_frames(struct report *r)
{
	uint8_t guess = 0;
	size_t printed = 0;
	size_t length;

	for (size_t i = 0; i < r->n;) {
		const size_t runs = find_recursion(r, i, &length);

		/* In the middle of a long stack, frames are left out. */
		if (printed >= FATHOM_MAX_CRASH_PRINTED / 2 && printed < FATHOM_MAX_CRASH_PRINTED &&
		    r->n - i > FATHOM_MAX_CRASH_PRINTED / 2) {
			const size_t to = r->n - FATHOM_MAX_CRASH_PRINTED / 2;

			fathom_sink_add(&r->sink, "    ... %zu frames ...\n", to - i);
			for (; i < to; i++)
				if (!guess && r->crash->trusts[i] >= FATHOM_TRUST_DECODED)
					guess = r->crash->trusts[i];
			printed = FATHOM_MAX_CRASH_PRINTED;
			continue;
		}
		for (size_t k = i; k < i + length; k++) {
			if (!guess && r->crash->trusts[k] >= FATHOM_TRUST_DECODED)
				guess = r->crash->trusts[k];
			add_frame(r, k, guess);
		}
		if (runs > 1 && length == 1)
			fathom_sink_add(&r->sink, "    ... this frame %zu times more ...\n",
					runs - 1);
		else if (runs > 1)
			fathom_sink_add(&r->sink, "    ... these %zu frames %zu times more ...\n",
					length, runs - 1);
		printed += length;
		i += runs * length;
	}
}

/* Returns whether frame @i is of the C library; *@ret_abort: of its abort(). */
static bool is_of_libc(struct report *r, size_t i, bool *ret_abort)
{
	const struct fathom_crash *c = r->crash;
	const struct fathom_pc pc = { .address = c->pcs[i], .kind = c->kinds[i] };
	const struct fathom_answer *a =
		fathom_self_lookup(c->self, pc, 0, r->answer, sizeof r->answer);

	*ret_abort = a->symbol && a->symbol_size == 5 && memcmp(a->symbol, "abort", 5) == 0;
	return a->module && pc.address - a->module_address == c->libc;
}

/*
 * Returns whether the C library itself calls abort() in the stack: then its text is of now. All
 * frames to there are exact.
 */
static bool aborts_by_libc(struct report *r)
{
	bool was_abort = false;

	for (size_t i = 0; i < r->n && r->crash->trusts[i] <= FATHOM_TRUST_SIGNAL; i++) {
		bool is_abort;
		const bool is_libc = is_of_libc(r, i, &is_abort);

		if (was_abort && is_libc)
			return true;
		was_abort = is_libc && is_abort;
	}
	return false;
}

/*
 * Adds the text that glibc wrote before it called abort(). There is one for all threads: where
 * there are others, another one may have written it meanwhile, which cannot be told here.
 */
static void add_abort_text(struct report *r)
{
	char text[FATHOM_CRASH_TEXT];
	size_t size;
	bool is_cut;

	if (!r->crash->abort_text || !aborts_by_libc(r) ||
	    !fathom_abort_text_read(r->crash->abort_text, text, &size, &is_cut))
		return;
	fathom_sink_add(&r->sink, "    abort message: ");
	fathom_crash_add_text(&r->sink, text, (uint32_t)size);
	fathom_sink_add(&r->sink, "%s%s\n", is_cut ? "..." : "",
			fathom_own_thread_count() == 1
				? ""
				: " (unless another thread aborts at the same time)");
}

static void add_stack(struct report *r, const void *context)
{
	struct fathom_crash *c = r->crash;
	const struct fathom_own_frames frames = { c->pcs, c->kinds, c->trusts,
						  FATHOM_MAX_CRASH_FRAMES };
	struct fathom_unwind_result result = { .n = 0 };
	fathom_err err;

	fathom_self_add_registries(c->self);
	err = fathom_own_stack_from(c->self, context, &frames, &result);
	if (err) {
		fathom_sink_add(&r->sink, "    (%s: the stack of this machine is not read)\n",
				fathom_err_name(err));
		return;
	}
	r->n = result.n;
	add_abort_text(r);
	fathom_crash_add_exception(&r->sink, c, r->n, result.stop == FATHOM_STOP_ENTRY, r->answer,
				   sizeof r->answer);
	add_frames(r);
	if (result.stop != FATHOM_STOP_ENTRY)
		fathom_sink_add(&r->sink, "    (%s: %s)\n",
				fathom_stop_name((enum fathom_stop)result.stop),
				explain(result.stop));
}

/* Registers, code and maps ------------------------------------------------------------------- */

static void add_registers(struct report *r)
{
	unsigned column = 0;

	if (r->registers.machine == EM_NONE)
		return;
	fathom_sink_add(&r->sink, "registers:\n");
	for (uint32_t i = 0; i < FATHOM_REGISTERS; i++) {
		const char *name = fathom_register_name(r->registers.machine, i);

		if (!name || !fathom_register_known(&r->registers, i))
			continue;
		fathom_sink_add(&r->sink, "%s%3s 0x%016llx%s", column % 3 ? "  " : "    ", name,
				(unsigned long long)r->registers.value[i],
				column % 3 == 2 ? "\n" : "");
		column++;
	}
	if (column % 3)
		fathom_sink_add(&r->sink, "\n");
}

static void add_code(struct report *r)
{
	const uint64_t pc = r->registers.pc;
	uint8_t code[CODE_BEFORE + CODE_BEHIND];
	size_t before = CODE_BEFORE;
	size_t size;

	if (r->registers.machine == EM_NONE)
		return;
	/* The page before may not be there. */
	while (before && (pc < before || fathom_peek(pc - before, code, before) != before))
		before--;
	size = fathom_peek(pc - before, code, before + CODE_BEHIND);
	fathom_sink_add(&r->sink, "code:");
	if (size <= before)
		fathom_sink_add(&r->sink, " (unreadable)");
	for (size_t i = 0; i < size && size > before; i++)
		fathom_sink_add(&r->sink, i == before ? " <%02x>" : " %02x", code[i]);
	fathom_sink_add(&r->sink, "\n");
}

static void add_maps(struct report *r)
{
	long err;

	fathom_sink_add(&r->sink, "maps:\n");
	err = fathom_sink_copy(&r->sink, "/proc/self/maps", FATHOM_MAX_CRASH_MAPS);
	if (err)
		fathom_sink_add(&r->sink, "    (%m)\n", (int)-err);
}

void fathom_crash_report(void *event)
{
	const struct fathom_crash_event *e = event;
	struct report r;

	r.crash = e->crash;
	r.n = 0;
	fathom_own_context(e->context, &r.registers);
	fathom_sink_open(&r.sink, r.crash);
	/* In pieces: what follows may crash. */
	add_head(&r, e);
	fathom_sink_flush(&r.sink);
	fathom_crash_add_fault(&r.sink, e, &r.registers);
	add_stack(&r, e->context);
	fathom_sink_flush(&r.sink);
	add_registers(&r);
	add_code(&r);
	add_maps(&r);
	fathom_sink_add(&r.sink, "fathom: end of the report\n");
	fathom_sink_close(&r.sink);
}

void fathom_crash_report_nested(void *event)
{
	const struct fathom_crash_event *e = event;
	struct fathom_registers registers;
	struct fathom_report_sink s;

	fathom_own_context(e->context, &registers);
	/* Names may be what has crashed. */
	fathom_sink_open(&s, e->crash);
	s.self = NULL;
	fathom_sink_add(&s, "\nfathom: crashed again, in the handler, by ");
	add_cause(&s, e->number, e->info);
	fathom_sink_add(&s, " at pc 0x%llx\n", (unsigned long long)registers.pc);
	fathom_sink_close(&s);
}
