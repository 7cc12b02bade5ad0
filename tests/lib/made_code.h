/* SPDX-License-Identifier: MIT */
/*
 * What steppers do in code that a program of x86-64 has made: they follow the frame pointers, too,
 * and take a shim and the code that it calls for one frame. A shim has these instructions and no
 * others: push %rbp; mov %rsp,%rbp; call CODE; pop %rbp; ret
 */
#ifndef MADE_CODE_H
#define MADE_CODE_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "shadow_log.h"

enum { MADE_DEPTH = 4096, SHIM_RETURN = 9 };

struct made_code {
	uint64_t is_wanted;
	uint64_t low, high; /* where the code is that held the last pc of made code */
	bool is_known;      /* what is not there is no made code, until the map changes */
	size_t n_outer;     /* frames of the log that frame pointers are not followed to */
	/* Whether the frame pointer is that of the innermost frame, by the instructions made. */
	bool is_framed;
	struct log merged; /* the log without shims */
	struct log_entry entries[MADE_DEPTH];
	uint64_t framed, framed_same, bare, bare_same;
};

/* @n_outer frames are outside of the function that calls made code. */
static inline void made_begin(struct made_code *m, size_t n_outer)
{
	m->n_outer = n_outer;
}

/* Reads whether @pc is in executable memory of no file. */
static inline bool made_has(struct made_code *m, int pid, uint64_t pc)
{
	char path[64], line[512];
	bool is_made = false;
	FILE *maps;

	if (pc - m->low < m->high - m->low || m->is_known)
		return pc - m->low < m->high - m->low;
	(void)snprintf(path, sizeof path, "/proc/%d/maps", pid);
	maps = fopen(path, "r");
	while (maps && fgets(line, sizeof line, maps)) {
		uint64_t low, high, inode;
		char access[5];

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %*s %" SCNu64, &low, &high,
			   access, &inode) == 4 &&
		    access[2] == 'x' && !inode && !strchr(line, '[') && pc - low < high - low) {
			m->low = low;
			m->high = high;
			m->is_known = is_made = true;
		}
	}
	if (maps)
		(void)fclose(maps);
	return is_made;
}

static inline bool is_push(const uint8_t *code)
{
	return code[0] == 0x55; /* push %rbp */
}

/* Notes what the instruction at @code did to the frame pointer. */
static inline void made_note(struct made_code *m, const uint8_t *code)
{
	static const uint8_t set[] = { 0x48, 0x89, 0xe5 };

	if (memcmp(code, set, sizeof set) == 0 || log_is_return(code))
		m->is_framed = true;
	else if (is_push(code) || code[0] == 0x5d /* pop %rbp */ || code[0] == 0xc9 /* leave */)
		m->is_framed = false;
}

/* Returns whether the frame pointers from @fp on lead to the outer frames of @log. */
static inline bool made_follow(const struct made_code *m, const struct log *log, uint64_t fp,
			       read_word_fn *read_word, const void *data)
{
	for (size_t i = log->n; i-- > m->n_outer;) {
		if (read_word(data, fp + 8) != log->items[i].pc || fp + 16 != log->items[i].sp)
			return false;
		fp = read_word(data, fp);
	}
	return true;
}

static inline bool made_is_shim(uint64_t pc, read_word_fn *read_word, const void *data)
{
	const uint64_t begin = read_word(data, pc - SHIM_RETURN);
	const uint64_t end = read_word(data, pc);

	return (begin & 0xffffffffff) == 0xe8e5894855 && (end & 0xffff) == 0xc35d;
}

/*
 * Follows the frame pointers from @fp on, at the instruction that begins with @first. Returns @log
 * without shims that have called.
 */
static inline const struct log *made_frames(struct made_code *m, const struct log *log, uint64_t fp,
					    uint8_t first, read_word_fn *read_word,
					    const void *data)
{
	const bool is_framed = m->is_framed && !is_push(&first);
	size_t n = 0;
	bool is_same;

	for (size_t i = 0; i < log->n && n < MADE_DEPTH; i++)
		if (!made_is_shim(log->items[i].pc, read_word, data))
			m->entries[n++] = log->items[i];
	m->merged = (struct log){ .items = m->entries, .n = n, .cap = MADE_DEPTH };
	if (n <= m->n_outer)
		return &m->merged;
	is_same = made_follow(m, &m->merged, fp, read_word, data);
	*(is_framed ? &m->framed : &m->bare) += 1;
	*(is_framed ? &m->framed_same : &m->bare_same) += is_same;
	return &m->merged;
}

static inline void made_print(const struct made_code *m)
{
	if (m->is_wanted)
		printf("framed %" PRIu64 "\nframed-same %" PRIu64 "\nbare %" PRIu64
		       "\nbare-same %" PRIu64 "\n",
		       m->framed, m->framed_same, m->bare, m->bare_same);
}

#endif
