/* SPDX-License-Identifier: MIT */
/*
 * Compares code as the kernel prints it (arch/x86/kernel/dumpstack.c: show_opcodes(),
 * arch/arm64/kernel/traps.c: dump_kernel_instr()) with a file.
 *
 * Code of programs is that of their file, but for breakpoints of debuggers and uprobes. Code of
 * the kernel differs where it patches itself (patch_sites.c), at kprobes, which may be jumps
 * (arch/x86/kernel/kprobes/opt.c), in padding, which holds thunks, and in addresses of the
 * image, which KASLR moves (arch/x86/boot/compressed/misc.c: handle_relocations()).
 */
#include "host/filter/log_code_bytes.h"

#include <elf.h>

#include "host/filter/log_line.h"

/* Bytes around the code whose file is looked at: padding may begin there. */
#define MARGIN 16

/* NOPs of one byte in a row that are padding. */
#define LEAST_PADDING 8

#define NOP           0x90
#define INT3          0xcc
#define JUMP          0xe9 /* and a distance of 4 bytes */
#define JUMP_SIZE     5
#define ARM_NOP       UINT32_C(0xd503201f)
#define ARM_BREAK     UINT32_C(0xd4200000) /* brk, with a number of 16 bits */
#define ARM_NOT_BREAK UINT32_C(0xffe0001f)

/* KASLR moves x86-64's image by a multiple of this, by less than MAX_MOVE. */
#define MOVE_UNIT UINT32_C(0x200000)
#define MAX_MOVE  UINT32_C(0x40000000)

/* Variables of each processor are linked at 0 and below this. */
#define MAX_PER_CPU (UINT64_C(1) << 24)

struct comparison {
	const struct fathom_log_code_bytes *code;
	uint64_t svma; /* of the first byte */
	uint8_t file[FATHOM_CODE_BYTES + 2 * MARGIN];
	bool is_read[FATHOM_CODE_BYTES + 2 * MARGIN]; /* bytes of file, from MARGIN before svma */
	bool may_differ[FATHOM_CODE_BYTES];
};

/* Takes "<" or "(" and says so in *@ret. */
static bool take_mark(struct fathom_log_line *l, char *ret)
{
	*ret = 0;
	if (l->at < l->end && (*l->at == '<' || *l->at == '('))
		*ret = *l->at++;
	return *ret != 0;
}

/* Takes one byte or word of @l, and the mark around it. */
static bool take_item(struct fathom_log_line *l, struct fathom_log_code_bytes *c, bool *ret_marked)
{
	const char *start;
	uint64_t value;
	size_t size;
	char mark;

	*ret_marked = take_mark(l, &mark);
	start = l->at;
	if (!fathom_line_take_hex(l, &value))
		return false;
	size = (size_t)(l->at - start) / 2;
	if ((size != 1 && size != 4) || (l->at - start) % 2 || c->n + size > sizeof c->bytes ||
	    (c->n && c->are_of_words != (size == 4)))
		return false;
	c->are_of_words = size == 4;
	/* Instructions of arm64 are little-endian. */
	for (size_t i = 0; i < size; i++)
		c->bytes[c->n++] = (uint8_t)(value >> 8 * i);
	return !mark || fathom_line_take(l, mark == '<' ? ">" : ")");
}

bool fathom_log_code_bytes_read(struct fathom_str text, struct fathom_log_code_bytes *ret)
{
	struct fathom_log_line l = { text.data, text.data + text.size };
	bool has_counter = false;

	*ret = (struct fathom_log_code_bytes){ .n = 0 };
	while (l.at < l.end) {
		const size_t before = ret->n;
		bool is_marked;

		if (!take_item(&l, ret, &is_marked)) {
			ret->n = before;
			break;
		}
		if (is_marked) {
			ret->counter = before;
			has_counter = true;
		}
		fathom_line_skip_blanks(&l);
	}
	return has_counter;
}

/* Reads the file around the code, as far as the section, or the segment, of @svma reaches. */
static bool read_file(struct comparison *c, const struct fathom_object *o, uint64_t svma)
{
	const uint32_t i = fathom_object_section_at(o, svma);
	const struct fathom_range *code = fathom_object_code_at(o, svma);
	const uint64_t n = c->code->n + 2 * MARGIN;
	const uint64_t from = c->svma - MARGIN;
	struct fathom_range range;
	uint64_t skipped;
	uint64_t size;

	if (!code || from > svma || svma - from >= n)
		return false;
	range = *code;
	if (i) {
		range.low = o->sections[i].base;
		range.high = range.low + o->sections[i].header.size;
	}
	skipped = range.low > from ? range.low - from : 0;
	size = range.high - (from + skipped);
	size = fathom_object_read(o, from + skipped, c->file + skipped,
				  size < n - skipped ? size : n - skipped);
	for (uint64_t k = 0; k < size; k++)
		c->is_read[skipped + k] = true;
	return true;
}

static uint8_t file_byte(const struct comparison *c, size_t i)
{
	return c->file[MARGIN + i];
}

static bool is_different(const struct comparison *c, size_t i)
{
	return c->is_read[MARGIN + i] && !c->may_differ[i] && c->code->bytes[i] != file_byte(c, i);
}

/* Passes over padding of functions: NOPs. */
static void pass_padding(struct comparison *c)
{
	const size_t n = c->code->n + 2 * MARGIN;

	for (size_t from = 0, to; from < n; from = to + 1) {
		for (to = from; to < n && c->is_read[to] && c->file[to] == NOP;)
			to++;
		for (size_t k = from; to - from >= LEAST_PADDING && k < to; k++)
			if (k - MARGIN < c->code->n)
				c->may_differ[k - MARGIN] = true;
	}
}

/* Passes over what debuggers and uprobes, or with @is_kernel kprobes, put into x86's code. */
static void pass_probes(struct comparison *c, bool is_kernel)
{
	for (size_t i = 0; i < c->code->n; i++) {
		if (c->code->bytes[i] == INT3)
			c->may_differ[i] = true;
		if (!is_kernel || c->code->bytes[i] != JUMP || file_byte(c, i) == JUMP)
			continue;
		for (size_t k = i; k < i + JUMP_SIZE && k < c->code->n; k++)
			c->may_differ[k] = true;
	}
}

/* Does the same in arm64's code, whose NOPs the kernel replaces, too. */
static void pass_words(struct comparison *c, bool is_kernel)
{
	for (size_t i = 0; i + 4 <= c->code->n; i += 4) {
		const uint32_t memory = load_u32(&c->code->bytes[i], false);
		const uint32_t file = load_u32(&c->file[MARGIN + i], false);

		if ((memory & ARM_NOT_BREAK) == ARM_BREAK || (is_kernel && file == ARM_NOP))
			for (size_t k = i; k < i + 4; k++)
				c->may_differ[k] = true;
	}
}

/*
 * Finds where the 4 bytes at @at of c->file count from, if they may be an address of the image,
 * which KASLR moves (1), or a distance to a variable of a processor, which does not move with the
 * code (-1); else 0.
 */
static int direction_at(const struct comparison *c, const struct fathom_object *o, size_t at)
{
	const uint32_t file = load_u32(&c->file[at], false);
	const uint64_t svma = c->svma - MARGIN + at;

	if (!c->is_read[at] || !c->is_read[at + 3])
		return 0;
	if ((int32_t)file < 0 && fathom_object_is_mapped(o, (uint64_t)(int32_t)file))
		return 1;
	/* The distance counts from the end of the instruction, a few bytes on. */
	return svma + 4 + (uint64_t)(int32_t)file < MAX_PER_CPU ? -1 : 0;
}

/* Finds how far the whole address at @i may have been moved; false if it was not. */
static bool find_move(const struct comparison *c, const struct fathom_object *o, size_t i,
		      uint32_t *ret)
{
	const int direction = direction_at(c, o, MARGIN + i);
	const uint32_t file = load_u32(&c->file[MARGIN + i], false);
	const uint32_t distance = load_u32(&c->code->bytes[i], false) - file;

	*ret = direction < 0 ? 0 - distance : distance;
	return direction && *ret && !(*ret % MOVE_UNIT) && *ret < MAX_MOVE;
}

/*
 * Passes over the bytes of the address at @at of c->file that the log has, if they are those of
 * one that was moved by @moved. If that is 0, it is not known: then a cut address may be one.
 */
static void pass_address(struct comparison *c, const struct fathom_object *o, size_t at,
			 uint32_t moved)
{
	const int direction = direction_at(c, o, at);
	const uint32_t file = load_u32(&c->file[at], false);
	const uint32_t wanted = direction < 0 ? file - moved : file + moved;
	/* The bits that no move changes, if it is not known. */
	const uint32_t mask = moved ? UINT32_MAX : MOVE_UNIT - 1;
	const bool is_cut = at < MARGIN || at + 4 > MARGIN + c->code->n;

	if (!direction || (!moved && !is_cut))
		return;
	for (size_t k = 0; k < 4; k++) {
		const size_t i = at + k - MARGIN;

		if (i < c->code->n &&
		    (c->code->bytes[i] ^ (uint8_t)(wanted >> 8 * k)) & (uint8_t)(mask >> 8 * k))
			return;
	}
	for (size_t k = 0; k < 4; k++)
		if (at + k - MARGIN < c->code->n)
			c->may_differ[at + k - MARGIN] = true;
}

static bool has_differences(const struct comparison *c)
{
	for (size_t i = 0; i < c->code->n; i++)
		if (is_different(c, i))
			return true;
	return false;
}

/* Returns whether bytes differ although the image may have been moved by @moved; 0: not known. */
static bool differ_if_moved(const struct comparison *c, const struct fathom_object *o,
			    uint32_t moved)
{
	struct comparison passed = *c;

	for (size_t at = MARGIN - 3; at < MARGIN + c->code->n; at++)
		pass_address(&passed, o, at, moved);
	return has_differences(&passed);
}

/* Returns whether bytes differ however far KASLR may have moved the image. */
static bool differ_in_image(const struct comparison *c, const struct fathom_object *o)
{
	bool is_moved = false;

	for (size_t i = 0; i + 4 <= c->code->n; i++) {
		uint32_t moved;

		if (!find_move(c, o, i, &moved))
			continue;
		is_moved = true;
		if (!differ_if_moved(c, o, moved))
			return false;
	}
	return is_moved || differ_if_moved(c, o, 0);
}

bool fathom_log_code_bytes_differ(const struct fathom_module *m,
				  const struct fathom_patch_sites *sites,
				  const struct fathom_log_code_bytes *code, uint64_t svma)
{
	const struct fathom_image *image = &m->main->image;
	struct comparison c = { .code = code, .svma = svma - code->counter };

	if (!sites->is_complete || code->are_of_words != (image->machine == EM_AARCH64) ||
	    !read_file(&c, m->main, svma))
		return false;
	fathom_patch_sites_mark(sites, c.svma, c.may_differ, code->n);
	if (code->are_of_words)
		pass_words(&c, sites->is_kernel);
	else
		pass_probes(&c, sites->is_kernel);
	if (sites->is_kernel && !code->are_of_words)
		pass_padding(&c);
	if (!has_differences(&c))
		return false;
	return !sites->is_kernel || image->machine != EM_X86_64 || image->type == ET_REL ||
	       differ_in_image(&c, m->main);
}
