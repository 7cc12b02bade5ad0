/* SPDX-License-Identifier: MIT */
/*
 * A log of the calls that a program of x86-64 is in, kept by who sees each of its instructions:
 * after one is made, log_note() takes what it did. Frames of signals are the caller's to add.
 */
#ifndef SHADOW_LOG_H
#define SHADOW_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Reads a word of the program's memory; 0 if there is none. */
typedef uint64_t read_word_fn(const void *data, uint64_t at);

/* A frame that will be returned to. */
struct log_entry {
	uint64_t pc;
	uint64_t sp;
	bool is_interrupted; /* by a signal or an exception: no call returns to it */
	bool is_trampoline;  /* a signal's handler returns to it, and no call */
	uint64_t saved;      /* where its pc is saved, sp before it; 0: it is not */
	bool has_fp;         /* what it called has saved its frame pointer first, fp */
	uint64_t fp;
};

struct log {
	struct log_entry *items;
	size_t n;
	size_t cap;
	bool is_lost; /* a return led to where nothing called: this is not the truth any more */
	uint64_t calls, returns, thrown;
};

/* An instruction, the registers before it and after it, and what it has left. */
struct log_step {
	const uint8_t *code; /* 16 bytes */
	uint64_t sp, fp;
	uint64_t now_pc, now_sp, now_counter; /* rcx */
	const uint8_t *now_code;              /* 6 bytes */
	uint64_t top;                         /* the word at now_sp */
	uint64_t at_counter;                  /* the word at now_counter, if now_code throws */
};

/* Returns the length of the prefixes at @code. */
static inline size_t log_prefixes(const uint8_t *code)
{
	size_t i = 0;

	while (i < 8 && (code[i] == 0x66 || code[i] == 0xf2 || code[i] == 0xf3 || code[i] == 0x3e ||
			 code[i] == 0x2e || code[i] == 0x64 || code[i] == 0x65 || code[i] == 0x67 ||
			 (code[i] & 0xf0) == 0x40))
		i++;
	return i;
}

static inline bool log_is_call(const uint8_t *code)
{
	const size_t i = log_prefixes(code);

	return code[i] == 0xe8 || (code[i] == 0xff && (code[i + 1] >> 3 & 7) == 2);
}

static inline bool log_is_return(const uint8_t *code)
{
	const size_t i = log_prefixes(code);

	return code[i] == 0xc3 || code[i] == 0xc2;
}

static inline bool log_is_syscall(const uint8_t *code)
{
	return code[0] == 0x0f && code[1] == 0x05;
}

/*
 * Returns whether @code is mov %rcx,%rsp and a return or jump to what is there: so libgcc goes with
 * an exception to a frame further out, as if that were interrupted.
 */
static inline bool log_throws(const uint8_t *code)
{
	static const uint8_t jumps[] = { 0x48, 0x89, 0xcc, 0x59, 0xff, 0xe1 };
	static const uint8_t returns[] = { 0x48, 0x89, 0xcc, 0xc3 };

	return memcmp(code, jumps, sizeof jumps) == 0 || memcmp(code, returns, sizeof returns) == 0;
}

static inline void log_push(struct log *l, uint64_t pc, uint64_t sp, uint64_t saved)
{
	/* Who returns to a signal's frame is its handler. */
	const bool is_trampoline = l->n && l->items[l->n - 1].saved;

	l->is_lost |= l->n == l->cap;
	if (l->n < l->cap)
		l->items[l->n++] =
			(struct log_entry){ pc, sp, saved != 0, is_trampoline, saved, false, 0 };
}

/*
 * Takes away the frames down to that which is at @pc and @sp: one, or more, as after a longjmp().
 */
static inline void log_pop(struct log *l, uint64_t pc, uint64_t sp)
{
	for (size_t i = l->n; i-- > 0;)
		if (l->items[i].pc == pc && l->items[i].sp == sp) {
			l->n = i;
			return;
		}
	l->is_lost = true;
}

/* Takes away frames that a longjmp() has left: those below @sp on the same stack. */
static inline void log_drop_left(struct log *l, uint64_t sp)
{
	/* A signal handler's stack may be anywhere. */
	while (l->n && l->items[l->n - 1].sp <= sp && sp - l->items[l->n - 1].sp < 1u << 16)
		l->n--;
}

/* Notes what an instruction did. */
static inline void log_note(struct log *l, const struct log_step *s)
{
	const struct log_entry *last = l->n ? &l->items[l->n - 1] : NULL;

	if (log_is_call(s->code) && s->now_sp == s->sp - 8) {
		if (last && last->sp <= s->sp)
			log_drop_left(l, s->sp);
		log_push(l, s->top, s->sp, 0);
		l->calls++;
	} else if (log_is_return(s->code)) {
		log_pop(l, s->now_pc, s->now_sp);
		l->returns++;
	} else if (last && s->code[0] == 0xff && s->code[1] == 0xe1 && last->is_interrupted &&
		   last->pc == s->now_pc) {
		l->n--;
	} else if (last && s->code[0] == 0x55 /* push %rbp */ && last->sp - 8 == s->sp) {
		l->items[l->n - 1].has_fp = true;
		l->items[l->n - 1].fp = s->fp;
	}
	if (log_throws(s->now_code)) {
		while (l->n && l->items[l->n - 1].sp <= s->now_counter + 8)
			l->n--;
		log_push(l, s->at_counter, s->now_counter + 8, 0);
		l->items[l->n - 1].is_interrupted = true;
		l->thrown++;
	}
}

/* Memory of the stack, from @avma on. */
struct log_stack {
	uint64_t avma;
	const uint8_t *data;
	size_t size;
};

/* Returns whether the word at @at, if it is in @s, is not @word. */
static inline bool log_differs(const struct log_stack *s, uint64_t at, uint64_t word)
{
	const uint64_t off = at - s->avma;

	return s->size >= sizeof word && off <= s->size - sizeof word &&
	       memcmp(s->data + off, &word, sizeof word);
}

/*
 * Returns whether the return addresses and frame pointers of the log are on the stack, of which @s
 * is the part that begins at @sp or before. libgcc writes the registers of the frame that an
 * exception goes to over those that its own frame has saved, and then goes there otherwise: until
 * then no memory says how execution got here.
 */
static inline bool log_holds(const struct log *l, const struct log_stack *s, uint64_t sp)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct log_entry *e = &l->items[i];

		if (e->is_interrupted)
			continue;
		if (log_differs(s, e->sp - 8, e->pc) ||
		    (e->has_fp && e->sp - 16 >= sp && log_differs(s, e->sp - 16, e->fp)))
			return false;
	}
	return true;
}

#endif
