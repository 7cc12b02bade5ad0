/* SPDX-License-Identifier: MIT */
#include "host/file/object.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "host/base/context.h"
#include "host/file/codec.h"
#include "safe/base/cursor.h"
#include "safe/base/sort.h"

/*
 * First address of laid-out sections. 0 and 1 are tombstones. Machines with 16-bit addresses get a
 * low one, which their debug information can state.
 */
#define LAYOUT_START    UINT64_C(0x10000)
#define LAYOUT_START_16 UINT64_C(0x100)

static bool is_code(const struct fathom_section *s)
{
	return (s->flags & (SHF_ALLOC | SHF_EXECINSTR)) == (SHF_ALLOC | SHF_EXECINSTR);
}

static bool is_table_of_relocations(const struct fathom_section *s)
{
	return s->type == SHT_RELA || s->type == SHT_REL;
}

static bool is_debug_section(const struct fathom_section *s)
{
	return s->name.data && (str_is(s->name, ".debug_info") || str_is(s->name, ".debug_line") ||
				str_is(s->name, ".debug_addr"));
}

/*
 * Returns false if the file has debug information that nothing relocates, as files written by hand
 * may have: its addresses then hold as stated.
 */
static bool is_relocated(const struct fathom_object *o)
{
	bool relocated = false;
	bool has_debug = false;

	for (uint32_t i = 1; i < o->n_sections && !relocated; i++) {
		const struct fathom_section *s = &o->sections[i].header;

		has_debug |= is_debug_section(s);
		relocated = is_table_of_relocations(s) &&
			    (s->info >= o->n_sections ||
			     is_debug_section(&o->sections[s->info].header));
	}
	return relocated || !has_debug;
}

/*
 * Returns true if a relocatable file whose debug information nothing relocates states addresses of
 * sections: they stay there. Else moves *@next after the first code section, which stays at 0.
 */
static bool keep_stated(const struct fathom_object *o, uint64_t *next)
{
	for (uint32_t i = 1; i < o->n_sections; i++)
		if (o->sections[i].header.flags & SHF_ALLOC && o->sections[i].header.addr)
			return true;
	for (uint32_t i = 1; i < o->n_sections; i++)
		if (is_code(&o->sections[i].header)) {
			*next = o->sections[i].header.size < UINT64_MAX / 2
					? *next + o->sections[i].header.size
					: *next;
			break;
		}
	return false;
}

/* Places the loaded section @i of a relocatable file at the next suitable address. */
static bool lay_out_section(struct fathom_object *o, uint32_t i, uint64_t *next)
{
	struct fathom_object_section *s = &o->sections[i];
	uint64_t align = s->header.align;

	if (!align || align >= (1u << 30) || align & (align - 1))
		align = 16;
	s->base = (*next + align - 1) & ~(align - 1);
	if (__builtin_add_overflow(s->base, s->header.size, next) ||
	    *next > (o->image.is64 ? UINT64_MAX / 2 : UINT32_MAX))
		return false;
	++*next; /* the address after a section starts no other */
	return true;
}

/* Places the loaded sections of a relocatable file. */
static fathom_err lay_out_sections(struct fathom_object *o, struct fathom_errinfo *reterr)
{
	const bool small = o->image.machine == EM_AVR || o->image.machine == EM_MSP430;
	bool stated = !is_relocated(o);
	uint64_t next = small ? LAYOUT_START_16 : LAYOUT_START;

	if (stated && keep_stated(o, &next))
		return FATHOM_OK;
	for (uint32_t i = 1; i < o->n_sections; i++) {
		if (!(o->sections[i].header.flags & SHF_ALLOC))
			continue;
		/* The first code section stays at 0, where its debug information expects it. */
		if (stated && is_code(&o->sections[i].header))
			stated = false;
		else if (!lay_out_section(o, i, &next))
			return fathom_fail(reterr, FATHOM_E_CORRUPT, "",
					   o->image.shoff + (uint64_t)i * o->image.shentsize,
					   "sections larger than the address space");
	}
	return FATHOM_OK;
}

/* Reads all section headers and sets their addresses. */
static fathom_err read_sections(struct fathom_object *o, struct fathom_errinfo *reterr)
{
	o->n_sections = o->image.shnum;
	/* At least one: section 0, which means "none", can always be read. */
	o->sections = calloc((size_t)o->n_sections + 1, sizeof *o->sections);
	if (!o->sections)
		return fathom_fail_memory(reterr);
	for (uint32_t i = 0; i < o->n_sections; i++) {
		struct fathom_object_section *s = &o->sections[i];

		if (!fathom_image_section(&o->image, i, &s->header))
			break;
		s->base = s->header.addr;
	}
	return o->image.type == ET_REL && !o->file->is_placed ? lay_out_sections(o, reterr)
							      : FATHOM_OK;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct fathom_range *x = a;
	const struct fathom_range *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

/* Adds [low, low + size) to the code ranges. */
static void add_code(struct fathom_object *o, uint64_t low, uint64_t size)
{
	uint64_t high;

	if (__builtin_add_overflow(low, size, &high))
		high = UINT64_MAX;
	if (low < high)
		o->code[o->n_code++] = (struct fathom_range){ low, high };
}

/* Finds where sections are in memory. Of several at one address it is the first of the table. */
static fathom_err find_places(struct fathom_object *o)
{
	struct fathom_claim *claims = calloc((size_t)o->n_sections + 1, sizeof *claims);
	fathom_err err;
	size_t n = 0;

	if (!claims)
		return FATHOM_E_MEMORY;
	for (uint32_t i = 1; i < o->n_sections; i++) {
		const struct fathom_object_section *s = &o->sections[i];
		struct fathom_claim *c = &claims[n];

		/* .tbss takes no room: its addresses belong to another section. */
		if (!(s->header.flags & SHF_ALLOC) ||
		    ((s->header.flags & SHF_TLS) && s->header.type == SHT_NOBITS))
			continue;
		*c = (struct fathom_claim){ .start = s->base, .order = o->n_sections - i };
		if (__builtin_add_overflow(c->start, s->header.size, &c->end))
			c->end = UINT64_MAX;
		n++;
	}
	err = fathom_claims_flatten(claims, n, &o->places, &o->n_places);
	free(claims);
	return err;
}

/* Finds the code: the executable sections, or else the executable segments. */
static fathom_err find_code(struct fathom_object *o)
{
	struct fathom_segment segment;
	bool by_sections;
	uint32_t n = 0;

	o->code = calloc((size_t)o->n_sections + o->image.phnum + 1, sizeof *o->code);
	if (!o->code)
		return FATHOM_E_MEMORY;
	for (uint32_t i = 0; i < o->n_sections; i++)
		if (is_code(&o->sections[i].header))
			add_code(o, o->sections[i].base, o->sections[i].header.size);
	by_sections = o->n_code != 0;
	for (uint32_t i = 0; !by_sections && i < o->image.phnum; i++)
		if (fathom_image_segment(&o->image, i, &segment) && segment.type == PT_LOAD &&
		    (segment.flags & PF_X))
			add_code(o, segment.vaddr, segment.memsz);
	qsort(o->code, o->n_code, sizeof *o->code, compare_ranges);
	for (uint32_t i = 0; i < o->n_code; i++) {
		if (n && o->code[i].low <= o->code[n - 1].high) {
			if (o->code[i].high > o->code[n - 1].high)
				o->code[n - 1].high = o->code[i].high;
		} else {
			o->code[n++] = o->code[i];
		}
	}
	o->n_code = n;
	return FATHOM_OK;
}

fathom_err fathom_object_create(struct fathom_memory *m, struct fathom_file *file,
				struct fathom_object **ret, struct fathom_errinfo *reterr)
{
	struct fathom_object *o = calloc(1, sizeof *o);
	fathom_err err;

	if (!o) {
		fathom_file_close(file);
		return fathom_fail_memory(reterr);
	}
	o->file = file;
	o->memory = m;
	pthread_mutex_init(&o->filling_lock, NULL);
	err = fathom_image_init(file->bytes, &o->image, reterr);
	if (!err)
		err = read_sections(o, reterr);
	if (!err)
		err = find_code(o);
	if (!err)
		err = find_places(o);
	/* The cut explains whatever else seems to be wrong. */
	if (fathom_file_is_cut(file))
		err = fathom_fail_cut(reterr, file->path);
	if (err) {
		fathom_errinfo_set_file(reterr, file->path);
		fathom_object_close(o);
		return err;
	}
	o->build_id = fathom_image_build_id(&o->image);
	*ret = o;
	return FATHOM_OK;
}

fathom_err fathom_object_open(struct fathom_memory *m, const char *path, struct fathom_object **ret,
			      struct fathom_errinfo *reterr)
{
	struct fathom_file *file;

	FATHOM_TRY(fathom_file_open(m, path, &file, reterr));
	return fathom_object_create(m, file, ret, reterr);
}

static void free_loaded(struct fathom_object *o, struct fathom_loaded *l)
{
	if (!l)
		return;
	if (l->allocated) {
		fathom_pages_free((void *)(uintptr_t)l->bytes.data, l->allocated);
		fathom_memory_uncount(o->memory, l->allocated);
	}
	free(l);
}

void fathom_object_close(struct fathom_object *o)
{
	if (!o)
		return;
	for (uint32_t i = 0; o->sections && i < o->n_sections; i++)
		free_loaded(o, atomic_load(&o->sections[i].loaded));
	free(o->sections);
	free(o->code);
	free(o->places);
	fathom_file_close(o->file);
	pthread_mutex_destroy(&o->filling_lock);
	free(o);
}

uint32_t fathom_object_find(const struct fathom_object *o, const char *name)
{
	for (uint32_t i = 1; i < o->n_sections; i++)
		if (o->sections[i].header.name.data && str_is(o->sections[i].header.name, name))
			return i;
	return 0;
}

bool fathom_object_is_cut(const struct fathom_object *o, uint32_t i)
{
	const struct fathom_section *s = &o->sections[i].header;

	return s->size && s->type != SHT_NOBITS && s->type != SHT_NULL &&
	       !fathom_image_section_bytes(&o->image, s).size;
}

uint32_t fathom_object_find_type(const struct fathom_object *o, uint32_t type)
{
	for (uint32_t i = 1; i < o->n_sections; i++)
		if (o->sections[i].header.type == type)
			return i;
	return 0;
}

enum compression { COMPRESS_NONE, COMPRESS_ZLIB, COMPRESS_ZSTD, COMPRESS_UNKNOWN };

struct compressed {
	enum compression kind;
	struct fathom_bytes data;
	uint64_t size; /* bytes when decompressed */
};

#define ZDEBUG_HEADER 12 /* "ZLIB" and the size, big-endian */

/* Returns how section @s is compressed: SHF_COMPRESSED (gABI), or GNU's older .zdebug_ sections. */
static struct compressed compression_of(const struct fathom_object *o,
					const struct fathom_section *s)
{
	const struct fathom_bytes raw = fathom_image_section_bytes(&o->image, s);
	struct compressed z = { COMPRESS_NONE, raw, raw.size };
	struct fathom_cursor c = cur_init(raw, o->image.swap);
	uint32_t type;

	if (s->flags & SHF_COMPRESSED) {
		type = cur_u32(&c);
		if (o->image.is64)
			cur_skip(&c, 4);
		z.size = o->image.is64 ? cur_u64(&c) : cur_u32(&c);
		cur_skip(&c, o->image.is64 ? 8 : 4);
		z.kind = !cur_ok(&c)                ? COMPRESS_UNKNOWN
			 : type == ELFCOMPRESS_ZLIB ? COMPRESS_ZLIB
			 : type == ELFCOMPRESS_ZSTD ? COMPRESS_ZSTD
						    : COMPRESS_UNKNOWN;
		z.data = (struct fathom_bytes){ c.p, cur_left(&c) };
	} else if (s->name.data && str_starts(s->name, ".zdebug_") && raw.size) {
		if (raw.size < ZDEBUG_HEADER || memcmp(raw.data, "ZLIB", 4) != 0) {
			z.kind = COMPRESS_UNKNOWN;
			return z;
		}
		z.kind = COMPRESS_ZLIB;
		z.size = load_u64(raw.data + 4, __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
		z.data = bytes_from(raw, ZDEBUG_HEADER);
	}
	return z;
}

bool fathom_object_is_compressed(const struct fathom_object *o, uint32_t i)
{
	return compression_of(o, &o->sections[i].header).kind != COMPRESS_NONE;
}

fathom_err fathom_object_fail(const struct fathom_object *o, uint32_t i, fathom_err err,
			      uint64_t off, const char *what, struct fathom_errinfo *reterr)
{
	const struct fathom_str name = o->sections[i].header.name;

	(void)fathom_fail(reterr, err, "", name.data ? off : o->sections[i].header.off + off, what);
	if (reterr && name.data) {
		const size_t room = sizeof reterr->section - 1;
		const size_t size = name.size < room ? name.size : room;

		memcpy(reterr->section, name.data, size);
		reterr->section[size] = '\0';
	}
	fathom_errinfo_set_file(reterr, o->file->path);
	return err;
}

static fathom_err section_error(const struct fathom_object *o, uint32_t i, fathom_err err,
				const char *what, struct fathom_errinfo *reterr)
{
	return fathom_object_fail(o, i, err, 0, what, reterr);
}

/* No valid stream has a higher ratio: deflate reaches 1032, zstd's blocks 43,690. */
#define MAX_RATIO_ZLIB 1040
#define MAX_RATIO_ZSTD 50000

/* Sections of this size or more are worth a second thread. */
#define FILL_TOGETHER (UINT64_C(32) << 20)

/* Pages are cleared in pieces of this size. */
#define CLEAR_STEP (UINT64_C(4) << 20)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

void fathom_object_clear_ahead(struct fathom_object *o)
{
	bool more = true;

	for (uint64_t off = 0; more; off += CLEAR_STEP) {
		pthread_mutex_lock(&o->filling_lock);
		more = off < o->filling.size;
		/* Old kernels cannot: then the thread that fills the pages also faults them in. */
		if (more &&
		    madvise(o->filling.to + off,
			    (size_t)(o->filling.size - off < CLEAR_STEP ? o->filling.size - off
									: CLEAR_STEP),
			    MADV_POPULATE_WRITE))
			more = false;
		pthread_mutex_unlock(&o->filling_lock);
	}
}

/* Lets other threads clear the pages of [to, to + size) ahead; false if they are at others. */
static bool announce_filling(struct fathom_object *o, uint8_t *to, uint64_t size)
{
	bool announced = false;

	if (size < FILL_TOGETHER)
		return false;
	pthread_mutex_lock(&o->filling_lock);
	if (!o->filling.to) {
		o->filling.to = to;
		o->filling.size = size;
		announced = true;
	}
	pthread_mutex_unlock(&o->filling_lock);
	return announced;
}

/* Returns when no other thread touches the pages any more. */
static void end_filling(struct fathom_object *o)
{
	pthread_mutex_lock(&o->filling_lock);
	o->filling.to = NULL;
	o->filling.size = 0;
	pthread_mutex_unlock(&o->filling_lock);
}

/* Decompressing a section of this size takes less than 0.1 s: nobody is asked. */
#define ASKED_SIZE (UINT64_C(16) << 20)

static const struct fathom_codec *codec_of(const struct compressed *z)
{
	return z->kind == COMPRESS_ZLIB ? &fathom_codec_zlib : &fathom_codec_zstd;
}

/* Decompresses in steps, and asks before each. */
static fathom_err unpack_asking(struct fathom_memory *m, const struct compressed *z, uint8_t *to)
{
	struct fathom_sink sink = {
		.data = to, .limit = z->size, .session = m->session, .is_fixed = true
	};
	const fathom_err err = codec_of(z)->stream(m, z->data, &sink);

	if (!err && sink.size == z->size)
		return FATHOM_OK;
	/* The other way decides what a stream may contain: zstd limits windows in streams. */
	return err == FATHOM_E_CANCELLED ? err : codec_of(z)->unpack(m, z->data, to, z->size);
}

/* Returns whether the caller is asked meanwhile, if that is done at all. */
static bool takes_long(const struct fathom_object *o, const struct compressed *z)
{
	const struct fathom *session = o->memory->session;

	return z->size >= ASKED_SIZE && session && session->progress &&
	       !(session->flags & FATHOM_WHOLE_SECTIONS);
}

static fathom_err decompress(struct fathom_object *o, uint32_t i, const struct compressed *z,
			     uint8_t *to, bool asks, struct fathom_errinfo *reterr)
{
	const bool announced = announce_filling(o, to, z->size);
	fathom_err err;

	err = asks && takes_long(o, z) ? unpack_asking(o->memory, z, to)
				       : codec_of(z)->unpack(o->memory, z->data, to, z->size);
	if (announced)
		end_filling(o);
	if (err)
		return section_error(o, i, err,
				     err == FATHOM_E_CORRUPT     ? "compressed data is damaged"
				     : err == FATHOM_E_CANCELLED ? "the caller has given it up"
								 : "out of memory",
				     reterr);
	return FATHOM_OK;
}

/* Returns whether a section of a relocatable file has relocations to apply. */
static bool has_relocations(const struct fathom_object *o, uint32_t i)
{
	if (o->image.type != ET_REL)
		return false;
	for (uint32_t table = 1; table < o->n_sections; table++)
		if (fathom_object_relocates(o, table, i))
			return true;
	return false;
}

/* Opens the library for section @i, which @z says how to decompress. */
static fathom_err open_codec(struct fathom_object *o, uint32_t i, const struct compressed *z,
			     struct fathom_errinfo *reterr)
{
	struct fathom_errinfo why;
	const fathom_err err = codec_of(z)->open(o->memory, &why);

	if (!err)
		return FATHOM_OK;
	(void)section_error(o, i, err, why.what, reterr);
	if (reterr)
		reterr->cause = why.cause;
	return err;
}

void fathom_object_open_codec(struct fathom_object *o, uint32_t i)
{
	const struct compressed z = compression_of(o, &o->sections[i].header);

	if (z.kind == COMPRESS_ZLIB || z.kind == COMPRESS_ZSTD)
		(void)open_codec(o, i, &z, NULL);
	/* Steps are those of zlib's streams. */
	if (z.kind == COMPRESS_ZLIB && takes_long(o, &z))
		(void)fathom_codec_gzip.open(o->memory, NULL);
}

/* Makes a decompressed and relocated copy of section @i. */
static fathom_err make_copy(struct fathom_object *o, uint32_t i, const struct compressed *z,
			    bool asks, struct fathom_loaded *ret, struct fathom_errinfo *reterr)
{
	uint8_t *to;
	fathom_err err = FATHOM_OK;
	const uint64_t ratio = z->kind == COMPRESS_ZLIB ? MAX_RATIO_ZLIB : MAX_RATIO_ZSTD;

	if (z->kind == COMPRESS_UNKNOWN)
		return section_error(o, i, FATHOM_E_UNSUPPORTED, "unknown compression", reterr);
	if (z->kind != COMPRESS_NONE && z->size / ratio > z->data.size)
		return section_error(o, i, FATHOM_E_CORRUPT,
				     "states a size that its compressed data cannot have", reterr);
	if (z->kind != COMPRESS_NONE)
		FATHOM_TRY(open_codec(o, i, z, reterr));
	if (!fathom_memory_fits(o->memory, z->size)) {
		(void)section_error(o, i, FATHOM_E_LIMIT,
				    "decompressed, it does not fit the memory budget", reterr);
		if (reterr)
			reterr->cause = FATHOM_CAUSE_BUDGET;
		return FATHOM_E_LIMIT;
	}
	to = fathom_pages_alloc(z->size);
	if (!to)
		return section_error(o, i, FATHOM_E_MEMORY, "out of memory", reterr);
	fathom_memory_count(o->memory, z->size);
	ret->bytes = (struct fathom_bytes){ to, z->size };
	ret->allocated = z->size;
	if (z->kind == COMPRESS_NONE)
		memcpy(to, z->data.data, (size_t)z->size);
	else
		err = decompress(o, i, z, to, asks, reterr);
	if (!err && has_relocations(o, i)) {
		err = fathom_object_relocate(o, i, to, z->size, reterr);
		if (err)
			fathom_errinfo_set_file(reterr, o->file->path);
	}
	return err;
}

static fathom_err load(struct fathom_object *o, uint32_t i, bool asks, struct fathom_bytes *ret,
		       struct fathom_errinfo *reterr)
{
	struct fathom_object_section *s = &o->sections[i];
	struct fathom_loaded *l = atomic_load_explicit(&s->loaded, memory_order_acquire);
	struct fathom_loaded *expected = NULL;
	struct compressed z;
	fathom_err err;

	if (l) {
		*ret = l->bytes;
		return FATHOM_OK;
	}
	if (fathom_object_is_cut(o, i))
		return section_error(o, i, FATHOM_E_CORRUPT,
				     "the section reaches past the end of the file", reterr);
	z = compression_of(o, &s->header);
	if (z.kind == COMPRESS_NONE && (!z.size || !has_relocations(o, i))) {
		*ret = z.data;
		return FATHOM_OK;
	}
	if (!z.size) {
		*ret = (struct fathom_bytes){ NULL, 0 };
		return FATHOM_OK;
	}
	l = calloc(1, sizeof *l);
	if (!l)
		return section_error(o, i, FATHOM_E_MEMORY, "out of memory", reterr);
	err = make_copy(o, i, &z, asks, l, reterr);
	if (err) {
		free_loaded(o, l);
		return err;
	}
	if (!atomic_compare_exchange_strong(&s->loaded, &expected, l)) {
		free_loaded(o, l);
		l = expected;
	}
	*ret = l->bytes;
	return FATHOM_OK;
}

fathom_err fathom_object_load(struct fathom_object *o, uint32_t i, struct fathom_bytes *ret,
			      struct fathom_errinfo *reterr)
{
	return load(o, i, false, ret, reterr);
}

fathom_err fathom_object_load_asking(struct fathom_object *o, uint32_t i, struct fathom_bytes *ret,
				     struct fathom_errinfo *reterr)
{
	return load(o, i, true, ret, reterr);
}

const struct fathom_range *fathom_object_code_at(const struct fathom_object *o, uint64_t svma)
{
	const uint32_t low = (uint32_t)FATHOM_BISECT(o->n_code, i, o->code[i].high <= svma);

	return low < o->n_code && svma >= o->code[low].low ? &o->code[low] : NULL;
}

bool fathom_object_has_code(const struct fathom_object *o, uint64_t svma)
{
	return fathom_object_code_at(o, svma) != NULL;
}

uint32_t fathom_object_section_at(const struct fathom_object *o, uint64_t svma)
{
	const uint64_t stated = svma - o->bias;
	const size_t i = FATHOM_BISECT(o->n_places, k, o->places[k].end <= stated);

	return i < o->n_places && o->places[i].start <= stated
		       ? o->n_sections - (uint32_t)o->places[i].order
		       : 0;
}

uint64_t fathom_object_stated(const struct fathom_object *o, uint64_t svma)
{
	return o->image.type == ET_REL ? svma - o->sections[fathom_object_section_at(o, svma)].base
				       : svma;
}

bool fathom_object_is_mapped(const struct fathom_object *o, uint64_t svma)
{
	struct fathom_segment s;

	if (fathom_object_section_at(o, svma))
		return true;
	for (uint32_t i = 0; i < o->image.phnum; i++)
		if (fathom_image_segment(&o->image, i, &s) && s.type == PT_LOAD &&
		    svma >= s.vaddr && svma - s.vaddr < s.memsz)
			return true;
	return false;
}

/* The members that DT_ entries fill. */
static const struct {
	uint64_t tag;
	size_t field;
} dynamic_fields[] = {
	{ DT_SYMTAB, offsetof(struct fathom_dynamic, symtab) },
	{ DT_STRTAB, offsetof(struct fathom_dynamic, strtab) },
	{ DT_STRSZ, offsetof(struct fathom_dynamic, strsz) },
	{ DT_SYMENT, offsetof(struct fathom_dynamic, syment) },
	{ DT_HASH, offsetof(struct fathom_dynamic, hash) },
	{ DT_GNU_HASH, offsetof(struct fathom_dynamic, gnu_hash) },
	{ DT_JMPREL, offsetof(struct fathom_dynamic, jmprel) },
	{ DT_PLTRELSZ, offsetof(struct fathom_dynamic, pltrelsz) },
	{ DT_PLTREL, offsetof(struct fathom_dynamic, pltrel) },
	{ DT_RELA, offsetof(struct fathom_dynamic, rela) },
	{ DT_RELASZ, offsetof(struct fathom_dynamic, relasz) },
	{ DT_REL, offsetof(struct fathom_dynamic, rel) },
	{ DT_RELSZ, offsetof(struct fathom_dynamic, relsz) },
	{ DT_VERSYM, offsetof(struct fathom_dynamic, versym) },
	{ DT_VERDEF, offsetof(struct fathom_dynamic, verdef) },
	{ DT_VERDEFNUM, offsetof(struct fathom_dynamic, verdefnum) },
	{ DT_VERNEED, offsetof(struct fathom_dynamic, verneed) },
	{ DT_VERNEEDNUM, offsetof(struct fathom_dynamic, verneednum) },
};

static void store_dynamic(struct fathom_dynamic *d, uint64_t tag, uint64_t value)
{
	for (size_t i = 0; i < sizeof dynamic_fields / sizeof *dynamic_fields; i++)
		if (dynamic_fields[i].tag == tag)
			memcpy((char *)d + dynamic_fields[i].field, &value, sizeof value);
}

bool fathom_object_dynamic(const struct fathom_object *o, struct fathom_dynamic *ret)
{
	const uint8_t word = fathom_image_address_size(&o->image);
	struct fathom_segment s;
	struct fathom_cursor c;

	memset(ret, 0, sizeof *ret);
	for (uint32_t i = 0; i < o->image.phnum; i++) {
		if (!fathom_image_segment(&o->image, i, &s) || s.type != PT_DYNAMIC)
			continue;
		ret->svma = s.vaddr;
		ret->bytes = bytes_slice(o->image.bytes, s.off, s.filesz);
		c = cur_init(ret->bytes, o->image.swap);
		while (cur_left(&c)) {
			const uint64_t at = s.vaddr + s.filesz - cur_left(&c);
			const uint64_t tag = cur_uint(&c, word);
			const uint64_t value = cur_uint(&c, word);

			if (!cur_ok(&c) || tag == DT_NULL)
				break;
			if (tag == DT_DEBUG)
				ret->debug = at + word;
			store_dynamic(ret, tag, value);
		}
		return ret->symtab && ret->strtab;
	}
	return false;
}

struct fathom_symtab fathom_object_symtab(const struct fathom_object *o, uint32_t i)
{
	const struct fathom_section *s = &o->sections[i].header;
	struct fathom_bytes strings = { NULL, 0 };
	struct fathom_bytes xindex = { NULL, 0 };
	struct fathom_symtab ret;

	if (s->link < o->n_sections)
		strings = fathom_image_section_bytes(&o->image, &o->sections[s->link].header);
	for (uint32_t x = 1; x < o->n_sections; x++)
		if (o->sections[x].header.type == SHT_SYMTAB_SHNDX &&
		    o->sections[x].header.link == i)
			xindex = fathom_image_section_bytes(&o->image, &o->sections[x].header);
	ret = fathom_symtab_init(&o->image, fathom_image_section_bytes(&o->image, s), s->entsize,
				 strings, xindex);
	ret.bias = o->bias;
	return ret;
}

/* Returns how far @main was moved away from @o, measured at the largest common code section. */
static uint64_t distance(const struct fathom_object *o, const struct fathom_object *main)
{
	uint64_t largest = 0;
	uint64_t bias = 0;

	for (uint32_t i = 1; i < main->n_sections; i++) {
		const struct fathom_object_section *s = &main->sections[i];
		uint32_t same;

		if (!is_code(&s->header) || !s->header.name.data || s->header.size <= largest)
			continue;
		same = fathom_object_find(o, s->header.name.data);
		if (!same || !is_code(&o->sections[same].header) ||
		    o->sections[same].header.size != s->header.size)
			continue;
		largest = s->header.size;
		bias = s->base - o->sections[same].base;
	}
	return bias;
}

void fathom_object_rebase(struct fathom_object *o, const struct fathom_object *main)
{
	if (o->image.type == ET_REL || main->image.type == ET_REL || main->file->is_placed)
		return;
	o->bias = distance(o, main);
	if (!o->bias)
		return;
	for (uint32_t i = 1; i < o->n_sections; i++)
		if (o->sections[i].header.flags & SHF_ALLOC)
			o->sections[i].base += o->bias;
	for (uint32_t i = 0; i < o->n_code; i++) {
		o->code[i].low += o->bias;
		o->code[i].high += o->bias;
	}
}
