/* SPDX-License-Identifier: MIT */
/*
 * Memory maps in reports, of which the mappings with code count: those of the kernel (proc_pid_maps
 * (5)), which fatal error logs of Java end with; of gdb ("info proc mappings"); and of perf script
 * --show-mmap-events:
 *
 *	7f7a4c021000-7f7a4c022000 r-xp 00001000 08:01 11159485   /usr/lib/libfoo.so
 *	    0x7ffff7fbc000     0x7ffff7fbd000     0x1000     0x1000  r-xp   /usr/lib/libfoo.so
 *	prog 3/3: PERF_RECORD_MMAP2 3/3: [0x558a89db6000(0x1000) @ 0x1000 fe:00 11 42]: r-xp /prog
 *
 * They have no addresses to name: they say where modules are.
 */
#include "host/filter/formats.h"

/* Takes at least one blank. */
static bool take_blanks(struct fathom_log_line *l)
{
	const char *start = l->at;

	fathom_line_skip_blanks(l);
	return l->at > start;
}

/* Takes a word that is no blank. */
static bool take_word(struct fathom_log_line *l)
{
	const char *start = l->at;

	while (l->at < l->end && *l->at != ' ')
		l->at++;
	return l->at > start;
}

/* Makes @line, which ends before the rights, begin with the number before its last hyphen. */
static bool find_range(struct fathom_log_line *line)
{
	const char *const start = line->at;
	struct fathom_log_line l = *line;

	if (!fathom_line_find_last(&l, "-"))
		return false;
	while (l.at > start && fathom_hex_digit(l.at[-1]) < 16)
		l.at--;
	line->at = l.at;
	return true;
}

/* Bytes of the rights, such as "r-xp". */
#define RIGHTS 4

/* Goes to the rights of a mapping, a word; returns false if there is none. */
static bool find_rights(struct fathom_log_line *l)
{
	while (fathom_line_find(l, " ")) {
		const char *at = ++l->at;

		if (fathom_line_left(l) > RIGHTS && (at[0] == 'r' || at[0] == '-') &&
		    (at[1] == 'w' || at[1] == '-') && (at[2] == 'x' || at[2] == '-') &&
		    (at[3] == 'p' || at[3] == 's') && at[RIGHTS] == ' ')
			return true;
	}
	return false;
}

/* Takes the path that the line ends with, after blanks. */
static void take_path(struct fathom_log_line *l, struct fathom_log_place *ret)
{
	fathom_line_skip_blanks(l);
	ret->module = fathom_log_text(l->at, l->end);
}

/* Reads a line of the kernel's, with @rights. */
static bool read_kernel(struct fathom_log_line line, const char *rights,
			struct fathom_log_place *ret, uint64_t *ret_offset)
{
	struct fathom_log_line range = { line.at, rights - 1 };
	struct fathom_log_line l = { rights + RIGHTS + 1, line.end };

	if (!find_range(&range) || !fathom_line_take_hex(&range, &ret->start) ||
	    !fathom_line_take(&range, "-") || !fathom_line_take_hex(&range, &ret->end) ||
	    range.at != range.end || !fathom_line_take_hex(&l, ret_offset) || !take_blanks(&l) ||
	    !take_word(&l) || !take_blanks(&l) || !take_word(&l))
		return false;
	take_path(&l, ret);
	return true;
}

/* Reads a line of gdb's, with @rights, or without any: NULL. */
static bool read_gdb(struct fathom_log_line l, const char *rights, struct fathom_log_place *ret,
		     uint64_t *ret_offset)
{
	uint64_t size;

	fathom_line_skip_blanks(&l);
	if (!fathom_line_take_0x(&l, &ret->start) || !take_blanks(&l) ||
	    !fathom_line_take_0x(&l, &ret->end) || !take_blanks(&l) ||
	    !fathom_line_take_0x(&l, &size) || !take_blanks(&l) ||
	    !fathom_line_take_0x(&l, ret_offset))
		return false;
	if (rights && rights > l.at)
		l.at = rights + RIGHTS;
	/* gdb 16 writes a blank after the path. */
	while (l.end > l.at && l.end[-1] == ' ')
		l.end--;
	take_path(&l, ret);
	return true;
}

/* Reads a line of perf's, with @rights. */
static bool read_perf(struct fathom_log_line l, const char *rights, struct fathom_log_place *ret,
		      uint64_t *ret_offset)
{
	uint64_t size;

	if (!fathom_line_find(&l, "PERF_RECORD_MMAP") || !fathom_line_find(&l, ": [") ||
	    !fathom_line_take(&l, ": [") || !fathom_line_take_0x(&l, &ret->start) ||
	    !fathom_line_take(&l, "(") || !fathom_line_take_0x(&l, &size) ||
	    !fathom_line_take(&l, ") @ "))
		return false;
	ret->end = ret->start + size;
	*ret_offset = 0;
	/* Zero has no 0x. */
	if ((!fathom_line_take_0x(&l, ret_offset) && !fathom_line_take(&l, "0 ")) || rights < l.at)
		return false;
	l.at = rights + RIGHTS;
	take_path(&l, ret);
	return true;
}

bool fathom_log_read_maps(struct fathom_log_scan *s, struct fathom_log_line line)
{
	struct fathom_log_place place = { .is_file_offset = true };
	struct fathom_log_line l = line;
	const char *const rights = find_rights(&l) ? l.at : NULL;
	uint64_t offset;

	if (!(rights && read_kernel(line, rights, &place, &offset)) &&
	    !read_gdb(line, rights, &place, &offset) &&
	    !(rights && read_perf(line, rights, &place, &offset)))
		return false;
	place.raised = offset - place.start;
	if (rights && rights[2] == 'x' && place.start < place.end && place.module.size &&
	    *place.module.data == '/')
		fathom_log_add_fact(s, &place);
	return true;
}
