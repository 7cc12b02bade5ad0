/* SPDX-License-Identifier: MIT */
#include "host/space/user/core_reduce.h"

#include <stdlib.h>

#include "host/base/array.h"
#include "host/base/progress.h"
#include "host/file/codec.h"
#include "host/space/user/prstatus.h"
#include "safe/base/limits.h"
#include "safe/base/sort.h"
#include "safe/elf/image.h"
#include "safe/elf/note.h"

#define PAGE   UINT64_C(4096)
#define WINDOW (UINT64_C(1) << 20) /* bytes decompressed at a time */

#define NOTES_AT_ONCE 65536 /* between two questions of progress */

#define FIRST_OF_STACK  (UINT64_C(64) << 10)
#define MOST_OF_STACK   (UINT64_C(16) << 20)
#define SMALL_MAPPING   (UINT64_C(1) << 20)
#define BELOW_THE_STACK UINT64_C(128) /* leaf functions use it: the red zone of x86-64 */

/* Bytes of the core that are kept. */
struct keep {
	uint64_t off;
	uint64_t end;
	uint64_t to; /* where in the smaller core */
};

struct keeps {
	FATHOM_ARRAY_OF(struct keep);
};

struct segments {
	FATHOM_ARRAY_OF(struct fathom_segment);
};

/* Takes the bytes of @keeps out of a stream. */
struct gathering {
	const struct keeps *keeps; /* sorted, disjoint */
	size_t next;               /* the first that is not complete */
	uint64_t off;              /* of the next byte of the stream */
	uint8_t *to;
};

struct reducing {
	struct fathom_memory *memory;
	struct fathom_file *from; /* compressed */
	const struct fathom_codec *codec;
	uint8_t *window;
	uint64_t limit; /* bytes of the smaller core */
	uint64_t used;  /* of them, by what is chosen so far */
	uint64_t notes_size;
	uint64_t known; /* bytes of the stream that are there; UINT64_MAX: its end was not seen */
	uint64_t left_out;
	struct fathom_image image; /* its bytes are a header and the program headers */
	uint8_t *skeleton;
	uint8_t *notes;
	struct segments segments;     /* PT_NOTE and PT_LOAD */
	struct fathom_keyed *by_size; /* indexes of segments; so by_start */
	struct fathom_keyed *by_start;
	struct keeps note_keeps;
	struct keeps keeps;
	struct keeps stacks; /* from the stack pointer to the end of its mapping */
};

/* Takes the bytes of the sink that are wanted. FATHOM_E_CANCELLED when there are no more. */
static fathom_err take_bytes(struct fathom_sink *sink)
{
	struct gathering *g = sink->taker;
	const uint64_t end = g->off + sink->size;

	while (g->next < g->keeps->n && g->keeps->items[g->next].off < end) {
		const struct keep *k = &g->keeps->items[g->next];
		const uint64_t from = k->off > g->off ? k->off : g->off;
		const uint64_t to = k->end < end ? k->end : end;

		memcpy(g->to + k->to + (from - k->off), sink->data + (from - g->off),
		       (size_t)(to - from));
		if (k->end > end)
			break;
		g->next++;
	}
	g->off = end;
	return g->next < g->keeps->n ? FATHOM_OK : FATHOM_E_CANCELLED;
}

/*
 * Decompresses the core up to the last of @keeps, which are taken to @to. What lies after the end
 * of the core stays zero, and r->known says so.
 */
static fathom_err gather(struct reducing *r, const struct keeps *keeps, uint8_t *to)
{
	struct gathering g = { .keeps = keeps, .to = to };
	struct fathom_sink sink = { .data = r->window,
				    .cap = WINDOW,
				    .session = r->memory->session,
				    .take = take_bytes,
				    .taker = &g };
	fathom_err err;

	if (!keeps->n)
		return FATHOM_OK;
	err = r->codec->stream(r->memory, r->from->bytes, &sink);
	if (fathom_file_is_cut(r->from))
		return FATHOM_E_CHANGED;
	if (g.next == keeps->n)
		return FATHOM_OK;
	if (!err || (err == FATHOM_E_CORRUPT && sink.is_short)) {
		err = take_bytes(&sink);
		if (g.next == keeps->n)
			return FATHOM_OK;
		r->known = g.off;
	}
	return err;
}

/* Reads the @size bytes at @off to @to. */
static fathom_err read_at(struct reducing *r, uint64_t off, uint64_t size, uint8_t *to)
{
	struct keep k = { .off = off, .end = off + size };
	const struct keeps one = { &k, 1, 1 };

	if (!size)
		return FATHOM_OK;
	if (k.end < off)
		return FATHOM_E_CORRUPT;
	return gather(r, &one, to);
}

/* Where the header says that its tables are; numbers are stored back into it. */
struct header {
	uint64_t phoff;
	uint64_t shoff;
	uint32_t phnum;
	uint16_t phentsize;
};

static struct header get_header(const uint8_t *bytes, bool is64)
{
	Elf64_Ehdr wide;
	Elf32_Ehdr narrow;

	memcpy(&wide, bytes, sizeof wide);
	memcpy(&narrow, bytes, sizeof narrow);
	if (is64)
		return (struct header){ wide.e_phoff, wide.e_shoff, wide.e_phnum,
					wide.e_phentsize };
	return (struct header){ narrow.e_phoff, narrow.e_shoff, narrow.e_phnum,
				narrow.e_phentsize };
}

static void put_header(uint8_t *bytes, bool is64, const struct header *h)
{
	const uint16_t phnum = h->phnum < PN_XNUM ? (uint16_t)h->phnum : PN_XNUM;
	Elf64_Ehdr wide;
	Elf32_Ehdr narrow;

	memcpy(&wide, bytes, sizeof wide);
	memcpy(&narrow, bytes, sizeof narrow);
	wide.e_phentsize = h->phentsize;
	wide.e_shentsize = sizeof(Elf64_Shdr);
	wide.e_phoff = h->phoff;
	wide.e_shoff = h->shoff;
	wide.e_phnum = phnum;
	wide.e_shnum = 1;
	wide.e_shstrndx = 0;
	narrow.e_phentsize = h->phentsize;
	narrow.e_shentsize = sizeof(Elf32_Shdr);
	narrow.e_phoff = (Elf32_Off)h->phoff;
	narrow.e_shoff = (Elf32_Off)h->shoff;
	narrow.e_phnum = phnum;
	narrow.e_shnum = 1;
	narrow.e_shstrndx = 0;
	memcpy(bytes, is64 ? (void *)&wide : (void *)&narrow, is64 ? sizeof wide : sizeof narrow);
}

/* Writes a section header that has the number of program headers, which may exceed PN_XNUM. */
static void put_count(uint8_t *bytes, bool is64, uint32_t n)
{
	const Elf64_Shdr wide = { .sh_info = n };
	const Elf32_Shdr narrow = { .sh_info = n };

	if (is64)
		memcpy(bytes, &wide, sizeof wide);
	else
		memcpy(bytes, &narrow, sizeof narrow);
}

static uint32_t get_count(const uint8_t *bytes, bool is64)
{
	Elf64_Shdr wide;
	Elf32_Shdr narrow;

	memcpy(&wide, bytes, sizeof wide);
	memcpy(&narrow, bytes, sizeof narrow);
	return is64 ? wide.sh_info : narrow.sh_info;
}

/* The skeleton: an ELF header and one section header, each in this room; then program headers. */
#define HEADER_ROOM  UINT64_C(64)
#define HEADERS_ROOM (2 * HEADER_ROOM)

/* Reads the ELF header; FATHOM_E_LIMIT if it is that of no core. */
static fathom_err read_head(struct reducing *r, uint8_t *head)
{
	struct fathom_image image;

	FATHOM_TRY(read_at(r, 0, HEADER_ROOM, head));
	if (fathom_image_init((struct fathom_bytes){ head, HEADER_ROOM }, &image, NULL) ||
	    image.type != ET_CORE || image.swap)
		return FATHOM_E_LIMIT;
	return FATHOM_OK;
}

/* Reads the headers into the skeleton and makes it an image. */
static fathom_err read_skeleton(struct reducing *r)
{
	uint8_t head[HEADER_ROOM] = { 0 };
	uint8_t count[HEADER_ROOM] = { 0 };
	struct header h;
	uint64_t size;
	bool is64;

	FATHOM_TRY(read_head(r, head));
	is64 = head[EI_CLASS] == ELFCLASS64;
	h = get_header(head, is64);
	if (h.phnum == PN_XNUM) {
		FATHOM_TRY(
			read_at(r, h.shoff, is64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr), count));
		h.phnum = get_count(count, is64);
	}
	size = (uint64_t)h.phnum * h.phentsize;
	if (h.phnum > FATHOM_MAX_DUMP_MAPPINGS || size > r->limit / 4)
		return FATHOM_E_LIMIT;
	r->skeleton = calloc(1, (size_t)(HEADERS_ROOM + size));
	if (!r->skeleton)
		return FATHOM_E_MEMORY;
	FATHOM_TRY(read_at(r, h.phoff, size, r->skeleton + HEADERS_ROOM));
	h.phoff = HEADERS_ROOM;
	h.shoff = HEADER_ROOM;
	memcpy(r->skeleton, head, sizeof head);
	put_count(r->skeleton + HEADER_ROOM, is64, h.phnum);
	put_header(r->skeleton, is64, &h);
	return fathom_image_init((struct fathom_bytes){ r->skeleton, HEADERS_ROOM + size },
				 &r->image, NULL);
}

static fathom_err sort_segments(struct reducing *r)
{
	const size_t n = r->segments.n;

	r->by_size = malloc((2 * n + 1) * sizeof *r->by_size);
	r->by_start = malloc((2 * n + 1) * sizeof *r->by_start);
	if (!r->by_size || !r->by_start)
		return FATHOM_E_MEMORY;
	for (size_t i = 0; i < n; i++) {
		r->by_size[i] = (struct fathom_keyed){ r->segments.items[i].filesz, i };
		r->by_start[i] = (struct fathom_keyed){ r->segments.items[i].vaddr, i };
	}
	fathom_sort_keyed(r->by_size, r->by_size + n, n);
	fathom_sort_keyed(r->by_start, r->by_start + n, n);
	return FATHOM_OK;
}

/* Takes the segments of the skeleton, and sorts their indexes. */
static fathom_err read_segments(struct reducing *r)
{
	struct fathom_segment s;

	for (uint32_t i = 0; i < r->image.phnum; i++) {
		uint64_t end;

		if (!fathom_image_segment(&r->image, i, &s) ||
		    (s.type != PT_NOTE && s.type != PT_LOAD) ||
		    __builtin_add_overflow(s.off, s.filesz, &end) ||
		    __builtin_add_overflow(s.vaddr, s.memsz, &end))
			continue;
		if (s.type == PT_LOAD && s.filesz > s.memsz)
			s.filesz = s.memsz;
		if (!fathom_array_push(&r->segments, s))
			return FATHOM_E_MEMORY;
	}
	return sort_segments(r);
}

/* Sorts @keeps and joins those that touch; they come to @to and after it. Returns their end. */
static uint64_t join(struct keeps *keeps, struct fathom_keyed *keyed, uint64_t to)
{
	struct keep *sorted = (struct keep *)(keyed + 2 * keeps->n);
	size_t n = 0;

	for (size_t i = 0; i < keeps->n; i++)
		keyed[i] = (struct fathom_keyed){ keeps->items[i].off, i };
	fathom_sort_keyed(keyed, keyed + keeps->n, keeps->n);
	for (size_t i = 0; i < keeps->n; i++) {
		const struct keep *k = &keeps->items[keyed[i].value];

		if (n && k->off <= sorted[n - 1].end)
			sorted[n - 1].end = k->end > sorted[n - 1].end ? k->end : sorted[n - 1].end;
		else
			sorted[n++] = *k;
	}
	for (size_t i = 0; i < n; i++) {
		sorted[i].to = to;
		to += sorted[i].end - sorted[i].off;
	}
	memcpy(keeps->items, sorted, n * sizeof *sorted);
	keeps->n = n;
	return to;
}

/* Joins @keeps; *@ret_end is after their last byte in the smaller core. */
static fathom_err join_keeps(struct keeps *keeps, uint64_t to, uint64_t *ret_end)
{
	struct fathom_keyed *scratch =
		malloc(keeps->n * (2 * sizeof *scratch + sizeof(struct keep)) + 1);

	if (!scratch)
		return FATHOM_E_MEMORY;
	*ret_end = join(keeps, scratch, to);
	free(scratch);
	return FATHOM_OK;
}

static fathom_err read_notes(struct reducing *r)
{
	for (size_t i = 0; i < r->segments.n; i++) {
		const struct fathom_segment *s = &r->segments.items[i];
		const struct keep k = { .off = s->off, .end = s->off + s->filesz };

		if (s->type == PT_NOTE && s->filesz && !fathom_array_push(&r->note_keeps, k))
			return FATHOM_E_MEMORY;
	}
	FATHOM_TRY(join_keeps(&r->note_keeps, 0, &r->notes_size));
	if (r->notes_size > r->limit / 4)
		return FATHOM_E_LIMIT;
	r->notes = calloc(1, (size_t)r->notes_size + 1);
	if (!r->notes)
		return FATHOM_E_MEMORY;
	r->used += r->notes_size;
	return gather(r, &r->note_keeps, r->notes);
}

/* Returns where in the smaller core the byte at @off is, which @keeps have. */
static const struct keep *keep_at(const struct keeps *keeps, uint64_t off)
{
	const size_t i = FATHOM_BISECT(keeps->n, k, keeps->items[k].end <= off);

	return i < keeps->n && keeps->items[i].off <= off ? &keeps->items[i] : NULL;
}

/* Notes that the stack of a thread with stack pointer @sp is wanted. */
static fathom_err add_stack(struct reducing *r, uint64_t sp)
{
	const uint64_t from = sp > BELOW_THE_STACK ? sp - BELOW_THE_STACK : 0;
	const size_t behind = FATHOM_BISECT(r->segments.n, i, r->by_start[i].key <= sp);
	const struct fathom_segment *s;
	struct keep k;

	if (!behind)
		return FATHOM_OK;
	s = &r->segments.items[r->by_start[behind - 1].value];
	if (s->type != PT_LOAD || sp - s->vaddr >= s->filesz)
		return FATHOM_OK;
	k.off = s->off + (from < s->vaddr ? 0 : (from - s->vaddr) & ~(PAGE - 1));
	k.end = s->off + s->filesz;
	k.to = 0;
	return fathom_array_push(&r->stacks, k) ? FATHOM_OK : FATHOM_E_MEMORY;
}

/* Finds the stacks of the threads that the notes of @s, which begin at @bytes, tell of. */
static fathom_err find_stacks_in(struct reducing *r, const struct fathom_segment *s,
				 const uint8_t *bytes, struct fathom_pace *pace)
{
	struct fathom_cursor c = cur_init((struct fathom_bytes){ bytes, s->filesz }, false);
	struct fathom_note note;
	struct fathom_registers registers;

	while (cur_left(&c) && r->stacks.n < FATHOM_MAX_CORE_KEEPS &&
	       fathom_note_next(&c, s->align, &note)) {
		if (!fathom_keeps_pace(pace))
			return FATHOM_E_CANCELLED;
		if (fathom_note_is(&note, NT_PRSTATUS, "CORE") &&
		    fathom_prstatus_registers(&r->image, note.desc, &registers))
			FATHOM_TRY(add_stack(r, registers.sp));
	}
	return FATHOM_OK;
}

/*
 * Finds the stacks by the stack pointers of NT_PRSTATUS. No note is looked at again for a segment
 * that lies over others; a reader of the smaller core refuses it if there are many.
 */
static fathom_err find_stacks(struct reducing *r)
{
	struct fathom_pace pace = fathom_pace_init(r->memory->session, NOTES_AT_ONCE);
	uint64_t left = r->notes_size;

	for (size_t i = 0; i < r->segments.n; i++) {
		const struct fathom_segment *s = &r->segments.items[i];
		const struct keep *k = s->type == PT_NOTE ? keep_at(&r->note_keeps, s->off) : NULL;

		if (!k || s->filesz > left)
			continue;
		left -= s->filesz;
		FATHOM_TRY(find_stacks_in(r, s, r->notes + k->to + (s->off - k->off), &pace));
	}
	return FATHOM_OK;
}

/* Keeps the bytes from @off to @end if they fit. */
static fathom_err keep(struct reducing *r, uint64_t off, uint64_t end)
{
	const uint64_t size = end - off;

	if (off >= end || size > r->limit - r->used || r->keeps.n >= FATHOM_MAX_CORE_KEEPS)
		return FATHOM_OK;
	r->used += size;
	return fathom_array_push(&r->keeps, ((struct keep){ off, end, 0 })) ? FATHOM_OK
									    : FATHOM_E_MEMORY;
}

/* Keeps of each stack the bytes from @from to @to, counted from the stack pointer. */
static fathom_err keep_stacks(struct reducing *r, uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < r->stacks.n; i++) {
		const struct keep *k = &r->stacks.items[i];
		const uint64_t size = k->end - k->off;

		FATHOM_TRY(keep(r, k->off + (from < size ? from : size),
				k->off + (to < size ? to : size)));
	}
	return FATHOM_OK;
}

/* Keeps the mappings that are larger than @above, and at most @most bytes, the smallest first. */
static fathom_err keep_mappings(struct reducing *r, uint64_t above, uint64_t most)
{
	for (size_t i = 0; i < r->segments.n; i++) {
		const struct fathom_segment *s = &r->segments.items[r->by_size[i].value];

		if (s->type == PT_LOAD && s->filesz > above && s->filesz <= most)
			FATHOM_TRY(keep(r, s->off, s->off + s->filesz));
	}
	return FATHOM_OK;
}

static fathom_err keep_first_pages(struct reducing *r)
{
	for (size_t i = 0; i < r->segments.n; i++) {
		const struct fathom_segment *s = &r->segments.items[i];

		if (s->type == PT_LOAD)
			FATHOM_TRY(keep(r, s->off, s->off + (s->filesz < PAGE ? s->filesz : PAGE)));
	}
	return FATHOM_OK;
}

/* Chooses what is kept, in the order of core_reduce.h. */
static fathom_err choose(struct reducing *r)
{
	FATHOM_TRY(find_stacks(r));
	FATHOM_TRY(keep_stacks(r, 0, FIRST_OF_STACK));
	FATHOM_TRY(keep_first_pages(r));
	FATHOM_TRY(keep_mappings(r, 0, SMALL_MAPPING));
	FATHOM_TRY(keep_stacks(r, FIRST_OF_STACK, MOST_OF_STACK));
	return keep_mappings(r, SMALL_MAPPING, UINT64_MAX);
}

/* Program headers being written; @to NULL: only counted. */
struct writing {
	uint8_t *to;
	uint32_t n;
	bool is64;
};

static void put_segment(struct writing *w, const struct fathom_segment *s)
{
	const Elf64_Phdr wide = { .p_type = s->type,
				  .p_flags = s->flags,
				  .p_offset = s->off,
				  .p_vaddr = s->vaddr,
				  .p_filesz = s->filesz,
				  .p_memsz = s->memsz,
				  .p_align = s->align };
	const Elf32_Phdr narrow = { .p_type = s->type,
				    .p_flags = s->flags,
				    .p_offset = (Elf32_Off)s->off,
				    .p_vaddr = (Elf32_Addr)s->vaddr,
				    .p_filesz = (Elf32_Word)s->filesz,
				    .p_memsz = (Elf32_Word)s->memsz,
				    .p_align = (Elf32_Word)s->align };

	if (w->to && w->is64)
		memcpy(w->to + w->n * sizeof wide, &wide, sizeof wide);
	else if (w->to)
		memcpy(w->to + w->n * sizeof narrow, &narrow, sizeof narrow);
	w->n++;
}

/* Writes the part of @s from @at to @end, of which @stored bytes are at @off of the new file. */
static void put_part(struct writing *w, const struct fathom_segment *s, uint64_t at, uint64_t end,
		     uint64_t off, uint64_t stored)
{
	struct fathom_segment part = *s;

	part.vaddr = s->vaddr + at;
	part.memsz = end - at;
	part.off = off;
	part.filesz = stored;
	if (end > at)
		put_segment(w, &part);
}

/* Writes @s, a mapping, in parts: what was kept, and what was not. */
static void put_mapping(struct reducing *r, struct writing *w, const struct fathom_segment *s)
{
	const struct keeps *keeps = &r->keeps;
	const uint64_t end = s->off + s->filesz < r->known ? s->off + s->filesz : r->known;
	size_t i = FATHOM_BISECT(keeps->n, k, keeps->items[k].end <= s->off);
	uint64_t at = s->off; /* all before it is written */

	for (; i < keeps->n && keeps->items[i].off < end && w->n < FATHOM_MAX_DUMP_MAPPINGS; i++) {
		const struct keep *k = &keeps->items[i];
		const uint64_t from = k->off > at ? k->off : at;
		const uint64_t to = k->end < end ? k->end : end;

		if (from >= to)
			continue;
		put_part(w, s, at - s->off, from - s->off, 0, 0);
		put_part(w, s, from - s->off, to - s->off, k->to + (from - k->off), to - from);
		r->left_out -= w->to ? to - from : 0;
		at = to;
	}
	r->left_out += w->to ? s->filesz : 0;
	put_part(w, s, at - s->off, s->memsz, 0, 0);
}

/* Writes all program headers. */
static void put_segments(struct reducing *r, struct writing *w)
{
	for (size_t i = 0; i < r->segments.n && w->n < FATHOM_MAX_DUMP_MAPPINGS; i++) {
		struct fathom_segment s = r->segments.items[i];
		const struct keep *k;

		if (s.type == PT_LOAD) {
			put_mapping(r, w, &s);
			continue;
		}
		k = keep_at(&r->note_keeps, s.off);
		if (!k)
			continue;
		s.off = HEADERS_ROOM + k->to + (s.off - k->off);
		put_segment(w, &s);
	}
}

/* Writes the smaller core into pages, which become a file. */
static fathom_err write_core(struct reducing *r, struct fathom_file **ret)
{
	const bool is64 = r->image.is64;
	struct writing w = { .is64 = is64 };
	const size_t entry = is64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	struct header h = { .shoff = HEADER_ROOM, .phentsize = (uint16_t)entry };
	uint64_t size;
	uint8_t *pages;
	fathom_err err;

	FATHOM_TRY(join_keeps(&r->keeps, HEADERS_ROOM + r->notes_size, &h.phoff));
	put_segments(r, &w);
	/* If the core is cut short, which is seen below, a mapping may have one part more. */
	size = h.phoff + (w.n + r->segments.n) * entry;
	if (w.n >= FATHOM_MAX_DUMP_MAPPINGS || !fathom_memory_fits(r->memory, size) ||
	    (!is64 && size > UINT32_MAX))
		return FATHOM_E_LIMIT;
	pages = fathom_pages_alloc(size);
	if (!pages)
		return FATHOM_E_MEMORY;
	err = gather(r, &r->keeps, pages);
	memcpy(pages, r->skeleton, HEADERS_ROOM);
	memcpy(pages + HEADERS_ROOM, r->notes, (size_t)r->notes_size);
	w = (struct writing){ .to = pages + h.phoff, .is64 = is64 };
	put_segments(r, &w);
	h.phnum = w.n;
	put_count(pages + HEADER_ROOM, is64, w.n);
	put_header(pages, is64, &h);
	if (!err)
		err = fathom_file_wrap(r->memory, r->from->path, pages, size, size, ret);
	if (err)
		fathom_pages_free(pages, size);
	return err;
}

static fathom_err reduce(struct reducing *r, struct fathom_file **ret)
{
	r->codec = fathom_codec_for_file(r->from->bytes);
	r->window = malloc(WINDOW);
	if (!r->codec || !r->window)
		return r->codec ? FATHOM_E_MEMORY : FATHOM_E_LIMIT;
	FATHOM_TRY(read_skeleton(r));
	FATHOM_TRY(read_segments(r));
	FATHOM_TRY(read_notes(r));
	FATHOM_TRY(choose(r));
	FATHOM_TRY(write_core(r, ret));
	(*ret)->id = r->from->id;
	(*ret)->is_short = r->known != UINT64_MAX;
	return FATHOM_OK;
}

/* Sets the error of @path. For FATHOM_E_LIMIT, @reterr says already why the core was reduced. */
static fathom_err fail(struct fathom_errinfo *reterr, fathom_err err, const char *path)
{
	switch (err) {
	case FATHOM_OK:
	case FATHOM_E_LIMIT:
		return err;
	case FATHOM_E_CORRUPT:
		return fathom_fail_damaged(reterr, path);
	case FATHOM_E_CHANGED:
		return fathom_fail_cut(reterr, path);
	default:
		(void)fathom_fail(reterr, err, "", 0, "cannot be decompressed");
		fathom_errinfo_set_file(reterr, path);
		return err;
	}
}

fathom_err fathom_core_reduce(struct fathom_memory *m, const char *path, struct fathom_file **ret,
			      struct fathom_errinfo *ret_note, struct fathom_errinfo *reterr)
{
	struct reducing r = { .memory = m,
			      .limit = fathom_memory_left(m) / 2,
			      .known = UINT64_MAX };
	fathom_err err;

	FATHOM_TRY(fathom_file_map(m, path, &r.from, reterr));
	err = fail(reterr, reduce(&r, ret), path);
	if (!err && r.left_out) {
		(void)fathom_fail_by(ret_note, FATHOM_E_LIMIT, FATHOM_CAUSE_BUDGET,
				     "decompressed, it does not fit the memory budget: stacks and "
				     "small parts of its memory were read, others not");
		fathom_errinfo_set_file(ret_note, path);
	}
	fathom_array_free(&r.segments);
	fathom_array_free(&r.note_keeps);
	fathom_array_free(&r.keeps);
	fathom_array_free(&r.stacks);
	free(r.by_size);
	free(r.by_start);
	free(r.skeleton);
	free(r.notes);
	free(r.window);
	fathom_file_close(r.from);
	return err;
}
