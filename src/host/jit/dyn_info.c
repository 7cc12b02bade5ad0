/* SPDX-License-Identifier: MIT */
/*
 * The list of nongnu libunwind: 1.3 and later, whose entries state a load offset; only 0 is
 * handled.
 */
#include "host/jit/registered.h"

/*
 * struct list { u32 version, generation; struct info *first; };
 * struct info { struct info *next, *prev; word start_ip, end_ip, gp; i32 format, pad;
 * word load_offset; struct { word name, segbase, table_len, table_data; } rti; };
 */
enum { LIST_FIRST = 8 };
enum { NEXT = 0, START = 16, END = 24, FORMAT = 40, OFFSET = 48 };
enum { SEGBASE = 64, LENGTH = 72, TABLE = 80 };
enum { FORMAT_REMOTE_TABLE = 2, FORMAT_IP_OFFSET = 4 };

/* Pairs of one table at most; its length is in words, each as large as a pair. */
#define MOST_PAIRS FATHOM_MAX_REGISTERED

/* Adds the table of the entry at @avma, if it has one. Returns whether it is an entry. */
static bool read_info(struct fathom_registered_work *w, uint64_t avma)
{
	struct fathom_registered_table t = { 0 };
	uint64_t format, offset, segbase;

	if (!fathom_registered_word(w, avma + START, &t.low) ||
	    !fathom_registered_word(w, avma + END, &t.high) ||
	    !fathom_registered_word(w, avma + FORMAT, &format) ||
	    !fathom_registered_word(w, avma + OFFSET, &offset) ||
	    !fathom_registered_word(w, avma + SEGBASE, &segbase) ||
	    !fathom_registered_word(w, avma + LENGTH, &t.n) ||
	    !fathom_registered_word(w, avma + TABLE, &t.avma) || t.low >= t.high)
		return false;
	format = (uint32_t)format;
	if ((format != FORMAT_REMOTE_TABLE && format != FORMAT_IP_OFFSET) || offset ||
	    t.n > MOST_PAIRS)
		return true;
	t.base = format == FORMAT_IP_OFFSET ? t.low : segbase;
	t.frames = segbase;
	fathom_registered_add_table(w, &t);
	return true;
}

/* Follows the list whose first entry is at @avma; a circle ends when too much was followed. */
static void read_list(struct fathom_registered_work *w, uint64_t avma)
{
	uint64_t landmark = avma;
	uint64_t steps = 0;
	uint64_t stretch = 1;

	while (avma && !w->err && fathom_registered_count(w) && read_info(w, avma) &&
	       fathom_registered_word(w, avma + NEXT, &avma) && avma != landmark)
		if (++steps == stretch) {
			landmark = avma;
			stretch *= 2;
			steps = 0;
		}
}

void fathom_dyn_info_read(struct fathom_registered_work *w, const struct fathom_module_at *at)
{
	struct fathom_code_roots roots = { .n = 0 };

	/* The function returns the address of the list, and refers to nothing else. */
	if (fathom_code_roots_find(at, "_U_dyn_info_list_addr", &roots) && roots.n == 1)
		fathom_registered_follow(w, roots.avma[0] + LIST_FIRST, read_list);
}
