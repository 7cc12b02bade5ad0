/* SPDX-License-Identifier: MIT */
#include "host/trace/referring.h"

#include <stdlib.h>
#include <string.h>

#include "host/code/x86_64/x86_instructions.h"

/* Bytes of a stack that are looked at: a function that is being bound is near its top. */
#define MOST_STACK (UINT64_C(1) << 20)

/* Stacks of one thread: handlers run on stacks of their own. */
#define MOST_STACKS 8

/* Bytes below the stack pointer that code may use. */
#define RED_ZONE 128

/* Code addresses that are known to be no return to rt_sigreturn(). */
#define KNOWN 1024

/* From the return address of a handler to what the kernel has saved (struct rt_sigframe). */
enum { SAVED_SP = 8 + 160, SAVED_PC = 8 + 168 };

static int compare(const void *a, const void *b)
{
	const struct fathom_reference_range *left = a;
	const struct fathom_reference_range *right = b;

	return left->low < right->low ? -1 : left->low > right->low;
}

/* Returns how many bytes of the words from @start on were used: each leads to a function. */
static uint64_t used_of(const struct fathom_tracee *t, uint64_t start, uint64_t size)
{
	uint64_t used = 0;
	uint64_t words[512];

	for (uint64_t at = 0; at < size; at += sizeof words) {
		const uint64_t n = size - at < sizeof words ? size - at : sizeof words;

		if (!fathom_tracee_read(t, start + at, words, n))
			return size;
		for (uint64_t i = 0; i < n / sizeof *words; i++)
			if (words[i])
				used = at + (i + 1) * sizeof *words;
	}
	return used;
}

/* Adds what stands for words from @start on, of which there are @size bytes. */
static void add_words(struct fathom_references *r, uint64_t start, uint64_t size)
{
	const struct fathom_traced *p = r->process;
	const uint64_t used = used_of(&p->tracee, start, size);

	for (size_t i = 0; used && i <= p->modules.n; i++) {
		const uint64_t bias = i < p->modules.n ? p->modules.items[i].bias : 0;
		const struct fathom_reference_range range = { start - bias, start - bias + used };

		if (!fathom_array_push(&r->words, range))
			r->is_whole = false;
	}
}

/* Sorts the ranges, and joins those that overlap. */
static void merge(struct fathom_references *r)
{
	size_t n = 0;

	if (r->words.n)
		qsort(r->words.items, r->words.n, sizeof *r->words.items, compare);
	for (size_t i = 0; i < r->words.n; i++) {
		const struct fathom_reference_range range = r->words.items[i];

		if (!n || range.low > r->words.items[n - 1].high)
			r->words.items[n++] = range;
		else if (range.high > r->words.items[n - 1].high)
			r->words.items[n - 1].high = range.high;
	}
	r->words.n = n;
}

void fathom_references_init(struct fathom_references *r, const struct fathom_traced *p,
			    const struct fathom_runtime_maps *m, const struct fathom_maps *maps)
{
	*r = (struct fathom_references){
		.process = p, .mapped = m, .maps = maps, .is_whole = true
	};
	for (size_t i = 0; i < m->list.n; i++)
		if (m->list.items[i].kind == FATHOM_TRACE_MAPPED_WORDS && m->list.items[i].size)
			add_words(r, m->list.items[i].start, m->list.items[i].size);
	merge(r);
}

void fathom_references_deinit(struct fathom_references *r)
{
	fathom_array_free(&r->words);
}

static bool is_word(const struct fathom_references *r, uint64_t value)
{
	size_t low = 0;
	size_t high = value % sizeof value ? 0 : r->words.n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (r->words.items[middle].low <= value)
			low = middle + 1;
		else
			high = middle;
	}
	return low && value < r->words.items[low - 1].high;
}

/* A walk over the stacks of a thread. */
struct walk {
	const struct fathom_references *references;
	uint64_t stacks[MOST_STACKS]; /* stack pointers */
	size_t n_stacks;
	uint64_t known[KNOWN];
	int found;
};

/* Returns whether @value is where handlers return to: code that calls rt_sigreturn(). */
static bool is_restorer(struct walk *w, uint64_t value)
{
	const struct fathom_maps *maps = w->references->maps;
	uint64_t *known = &w->known[(value ^ value >> 12) % KNOWN];
	uint8_t bytes[sizeof fathom_x86_sigreturn];
	size_t i;

	if (*known == value)
		return false;
	i = fathom_maps_at(maps, value);
	if (i < maps->n && maps->items[i].start <= value && maps->items[i].executable &&
	    fathom_tracee_read(&w->references->process->tracee, value, bytes, sizeof bytes) &&
	    !memcmp(bytes, fathom_x86_sigreturn, sizeof bytes))
		return true;
	*known = value;
	return false;
}

/* Adds the stack that @sp is on, if it is not the one that @from is on. */
static void add_stack(struct walk *w, uint64_t sp, uint64_t from)
{
	const struct fathom_maps *maps = w->references->maps;
	const size_t i = fathom_maps_at(maps, sp);

	if (i < maps->n && sp >= maps->items[i].start && w->n_stacks < MOST_STACKS &&
	    (!from || fathom_maps_at(maps, from) != i))
		w->stacks[w->n_stacks++] = sp;
}

/* Looks at what a handler at @at interrupts. */
static void look_at_frame(struct walk *w, uint64_t at)
{
	const struct fathom_tracee *t = &w->references->process->tracee;

	if (fathom_runtime_maps_has_code(w->references->mapped,
					 fathom_tracee_word(t, at + SAVED_PC)))
		w->found |= FATHOM_REFERS_CODE;
	add_stack(w, fathom_tracee_word(t, at + SAVED_SP), at);
}

/* Looks at the stack from @sp on; false if it cannot be read. */
static bool look_at_stack(struct walk *w, uint64_t sp)
{
	const struct fathom_references *r = w->references;
	const struct fathom_mapping *m = &r->maps->items[fathom_maps_at(r->maps, sp)];
	const uint64_t begin = sp - m->start < RED_ZONE ? m->start : (sp - RED_ZONE) & ~UINT64_C(7);
	const uint64_t end = m->end - begin > MOST_STACK ? begin + MOST_STACK : m->end;
	uint64_t words[512];

	for (uint64_t at = begin; at < end; at += sizeof words) {
		const uint64_t size = end - at < sizeof words ? end - at : sizeof words;

		if (!fathom_tracee_read(&r->process->tracee, at, words, size))
			return false;
		for (uint64_t k = 0; k < size / sizeof *words; k++) {
			if (is_word(r, words[k]))
				w->found |= FATHOM_REFERS_WORDS;
			if (words[k] > UINT16_MAX && is_restorer(w, words[k]))
				look_at_frame(w, at + k * sizeof *words);
		}
	}
	return true;
}

/* Returns whether a general register has a word. */
static bool has_word(const struct fathom_references *r, const struct user_regs_struct *regs)
{
	const uint64_t values[] = { regs->rax, regs->rbx, regs->rcx, regs->rdx, regs->rsi,
				    regs->rdi, regs->rbp, regs->r8,  regs->r9,  regs->r10,
				    regs->r11, regs->r12, regs->r13, regs->r14, regs->r15 };

	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		if (is_word(r, values[i]))
			return true;
	return false;
}

int fathom_references_of(const struct fathom_references *r, pid_t tid)
{
	const int all = FATHOM_REFERS_CODE | FATHOM_REFERS_WORDS;
	struct walk w = { .references = r };
	struct user_regs_struct regs;

	if (!r->is_whole || !fathom_tracee_get(tid, &regs))
		return all;
	if (fathom_runtime_maps_has_code(r->mapped, regs.rip))
		w.found |= FATHOM_REFERS_CODE;
	if (has_word(r, &regs))
		w.found |= FATHOM_REFERS_WORDS;
	add_stack(&w, regs.rsp, 0);
	if (!w.n_stacks)
		return all;
	for (size_t i = 0; i < w.n_stacks; i++)
		if (!look_at_stack(&w, w.stacks[i]))
			return all;
	return w.found;
}
