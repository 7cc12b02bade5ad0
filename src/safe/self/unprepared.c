/* SPDX-License-Identifier: MIT */
#include "safe/self/unprepared.h"

#include "fathom/self.h"
#include "safe/base/limits.h"
#include "safe/base/peek.h"
#include "safe/elf/gnu_hash.h"
#include "safe/self/loader.h"
#include "safe/self/memory_notes.h"
#include "safe/self/native_elf.h"
#include "safe/self/own_rows.h"

#define WORD        sizeof(uintptr_t)
#define SYMBOL_SIZE sizeof(FATHOM_NATIVE(Sym))

/* Symbols read at a time. */
#define CHUNK 32

/* Hash words read at a time. */
#define WORDS 64

/* Most symbols of one bucket of a hash table; good ones have a few. */
#define MAX_CHAIN 4096

/* Longest name that is compared with others for the same address. */
#define MAX_NAME 512

/*
 * Returns the avma of a value of PT_DYNAMIC; 0 if it is outside. glibc has added the bias already
 * if the section is writable; others have not.
 */
static uint64_t pointer(const struct fathom_self_dynamic *d, uint64_t value)
{
	if (value >= d->start && value < d->end)
		return value;
	value = (uintptr_t)(value + d->bias);
	return value >= d->start && value < d->end ? value : 0;
}

bool fathom_self_read_dynamic(uintptr_t avma, uintptr_t start, uintptr_t end, uint64_t bias,
			      struct fathom_self_dynamic *ret)
{
	struct fathom_self_dynamic d = { .start = start, .end = end, .bias = bias };

	for (uint32_t i = 0; i < FATHOM_MAX_DYNAMIC; i++) {
		uintptr_t entry[2];

		if (fathom_peek(avma + i * sizeof entry, entry, sizeof entry) != sizeof entry)
			return false;
		if (entry[0] == DT_NULL)
			break;
		if (entry[0] == DT_SYMTAB)
			d.symbols = pointer(&d, entry[1]);
		else if (entry[0] == DT_STRTAB)
			d.strings = pointer(&d, entry[1]);
		else if (entry[0] == DT_STRSZ)
			d.strings_size = entry[1];
		else if (entry[0] == DT_HASH)
			d.hash = pointer(&d, entry[1]);
		else if (entry[0] == DT_GNU_HASH)
			d.gnu_hash = pointer(&d, entry[1]);
	}
	*ret = d;
	return d.symbols && d.strings && (d.hash || d.gnu_hash);
}

/* Finds the largest of @n words at @avma; false if they cannot be read. */
static bool largest(uint64_t avma, uint32_t n, uint32_t *ret)
{
	uint32_t words[WORDS];
	uint32_t max = 0;

	for (uint32_t done = 0; done < n;) {
		const uint32_t now = n - done < WORDS ? n - done : WORDS;

		if (fathom_peek(avma + done * UINT64_C(4), words, now * sizeof *words) !=
		    now * sizeof *words)
			return false;
		for (uint32_t i = 0; i < now; i++)
			max = words[i] > max ? words[i] : max;
		done += now;
	}
	*ret = max;
	return true;
}

/* Counts symbols: the last one ends the chain of the last bucket (bit 0 of its hash is set). */
static uint32_t count_by_gnu_hash(uint64_t avma)
{
	uint32_t header[4]; /* buckets, first symbol, words of the Bloom filter, shift */
	uint32_t words[WORDS];
	uint64_t chains;
	uint32_t symbol;

	if (fathom_peek(avma, header, sizeof header) != sizeof header ||
	    header[0] > FATHOM_MAX_DYNAMIC_SYMBOLS || header[2] > FATHOM_MAX_DYNAMIC_SYMBOLS)
		return 0;
	avma += sizeof header + header[2] * (uint64_t)WORD;
	chains = avma + header[0] * UINT64_C(4);
	if (!largest(avma, header[0], &symbol) || symbol < header[1])
		return 0;
	while (symbol < FATHOM_MAX_DYNAMIC_SYMBOLS) {
		const size_t got = fathom_peek(chains + (symbol - header[1]) * UINT64_C(4), words,
					       sizeof words) /
				   sizeof *words;

		for (size_t i = 0; i < got; i++, symbol++)
			if (words[i] & 1)
				return symbol + 1;
		if (got < WORDS)
			return 0;
	}
	return 0;
}

static uint32_t count_symbols(const struct fathom_self_dynamic *d)
{
	uint32_t header[2]; /* buckets, chains (one per symbol) */

	if (d->gnu_hash)
		return count_by_gnu_hash(d->gnu_hash);
	if (fathom_peek(d->hash, header, sizeof header) != sizeof header ||
	    header[1] > FATHOM_MAX_DYNAMIC_SYMBOLS)
		return 0;
	return header[1];
}

/* A search for the symbol at one address. */
struct search {
	const struct fathom_self_dynamic *d;
	uint64_t svma;
	struct fathom_contender best; /* its name is in buf */
	bool found;
	bool too_long; /* a name did not fit */
	char *buf;
	size_t cap;
};

static bool covers(const struct fathom_symbol *s, uint64_t svma)
{
	return svma - s->value < (s->size ? s->size : 1) && svma >= s->value;
}

/* Keeps @s, which covers the address, if it is a better name than the best one so far. */
static void consider(struct search *x, const struct fathom_symtab *t, const struct fathom_symbol *s)
{
	struct fathom_contender c = { .symbol = *s, .default_version = true };
	char name[MAX_NAME];

	if (x->found &&
	    (!s->size != !x->best.symbol.size ? !s->size : s->value < x->best.symbol.value))
		return;
	if (s->name >= x->d->strings_size ||
	    !fathom_peek_str(x->d->strings + s->name, name,
			     x->cap < sizeof name ? x->cap : sizeof name, &c.name)) {
		x->too_long = true;
		return;
	}
	if (!c.name.size || !fathom_symbol_is_namable(t, s, c.name) ||
	    (x->found && !s->size == !x->best.symbol.size && s->value == x->best.symbol.value &&
	     !fathom_symbol_preferred(&c, &x->best)))
		return;
	memcpy(x->buf, name, c.name.size + 1);
	c.name.data = x->buf;
	x->best = c;
	x->found = true;
}

bool fathom_self_dynamic_symbol(const struct fathom_self_dynamic *d, uintptr_t pc, char *buf,
				size_t cap, struct fathom_symbol *ret, struct fathom_str *ret_name)
{
	const uint32_t count = count_symbols(d);
	struct search x = { .d = d, .svma = (uintptr_t)(pc - d->bias), .buf = buf, .cap = cap };
	uint8_t bytes[CHUNK * SYMBOL_SIZE];
	struct fathom_symtab t = { .entries = { bytes, 0 }, .is64 = WORD == 8 };
	struct fathom_symbol s;

	/* Symbol 0 is none. */
	for (uint32_t first = 1; first < count; first += CHUNK) {
		t.count = count - first < CHUNK ? count - first : CHUNK;
		t.entries.size = t.count * SYMBOL_SIZE;
		if (fathom_peek(d->symbols + first * (uint64_t)SYMBOL_SIZE, bytes,
				(size_t)t.entries.size) != t.entries.size)
			return false;
		for (uint32_t i = 0; i < t.count; i++) {
			fathom_symtab_get(&t, i, &s);
			if (covers(&s, x.svma))
				consider(&x, &t, &s);
		}
	}
	/* The name that was not read might have been the better one. */
	if (!x.found || x.too_long)
		return false;
	*ret = x.best.symbol;
	*ret_name = x.best.name;
	return true;
}

/* Returns whether symbol @number of @d is called @name and defined; its avma is *@ret. */
static bool is_named(const struct fathom_self_dynamic *d, uint32_t number, struct fathom_str name,
		     uint64_t *ret)
{
	FATHOM_NATIVE(Sym) s;
	struct fathom_str found;
	char text[MAX_NAME];

	if (fathom_peek(d->symbols + number * (uint64_t)SYMBOL_SIZE, &s, sizeof s) != sizeof s ||
	    s.st_shndx == SHN_UNDEF || s.st_shndx >= SHN_LORESERVE ||
	    s.st_name >= d->strings_size || name.size >= sizeof text ||
	    !fathom_peek_str(d->strings + s.st_name, text, name.size + 1u, &found) ||
	    !str_equal(found, name))
		return false;
	*ret = (uintptr_t)(s.st_value + d->bias);
	return *ret >= d->start && *ret < d->end;
}

bool fathom_self_dynamic_find(const struct fathom_self_dynamic *d, struct fathom_str name,
			      uint64_t *ret)
{
	const uint32_t hash = fathom_gnu_hash(name);
	uint32_t header[4]; /* buckets, first symbol, words of the Bloom filter, shift */
	uint64_t buckets;
	uint64_t chains;
	uint32_t symbol;
	uint32_t word = 0;

	if (!d->gnu_hash || fathom_peek(d->gnu_hash, header, sizeof header) != sizeof header ||
	    !header[0] || header[0] > FATHOM_MAX_DYNAMIC_SYMBOLS ||
	    header[2] > FATHOM_MAX_DYNAMIC_SYMBOLS)
		return false;
	buckets = d->gnu_hash + sizeof header + header[2] * (uint64_t)WORD;
	chains = buckets + header[0] * UINT64_C(4);
	if (fathom_peek(buckets + hash % header[0] * UINT64_C(4), &symbol, 4) != 4 ||
	    symbol < header[1])
		return false;
	/* The last word of a chain has bit 0 set. */
	for (uint32_t i = 0; i < MAX_CHAIN && !(word & 1); i++, symbol++) {
		if (fathom_peek(chains + (symbol - header[1]) * UINT64_C(4), &word, 4) != 4)
			return false;
		if ((word | 1) == (hash | 1) && is_named(d, symbol, name, ret))
			return true;
	}
	return false;
}

static char *take_room(struct fathom_self_room *r, size_t size)
{
	char *at = r->at;

	if (size > r->left)
		return NULL;
	r->at += size;
	r->left -= size;
	return at;
}

/* Finds the build-id of the module whose ELF header is at @start. */
static void set_build_id(uintptr_t start, uint64_t bias, struct fathom_self_room *r)
{
	struct fathom_memory_note note;
	uint8_t *id;

	if (!fathom_memory_note_find(start, bias, "GNU", sizeof "GNU", NT_GNU_BUILD_ID, &note))
		return;
	id = (uint8_t *)take_room(r, note.size);
	if (!id || fathom_peek(note.avma, id, note.size) != note.size)
		return;
	r->module->build_id = id;
	r->module->build_id_size = note.size;
}

/* Sets the module's path, address and build-id. The program's own path is empty, and left out. */
static void set_module(const struct fathom_self_object *o, const struct fathom_link_map *link,
		       struct fathom_self_room *r)
{
	struct fathom_str path;
	char *to = r->at;

	*r->module = (struct fathom_module_info){ .path = NULL };
	r->answer->module = r->module;
	r->answer->module_address = (uintptr_t)(r->answer->pc.address - link->bias);
	if (fathom_peek_str(link->name, to, r->left / 2, &path) && path.size)
		r->module->path = take_room(r, path.size + 1);
	set_build_id(o->start, link->bias, r);
}

static void set_name(const struct fathom_symbol *s, struct fathom_str name,
		     enum fathom_source source, struct fathom_answer *a)
{
	a->symbol = name.data;
	a->symbol_size = name.size;
	a->linkage_name = name.data;
	a->linkage_size = name.size;
	a->source = (uint8_t)source;
	a->size = s->size;
	a->offset = a->module_address - s->value;
}

/* Names code without a symbol by the bounds that its FDE states. */
static bool find_bounds(uintptr_t pc, uint64_t bias, struct fathom_self_room *r,
			struct fathom_symbol *ret, struct fathom_str *ret_name)
{
	uintptr_t low;
	uintptr_t high;
	size_t n;

	if (!fathom_own_fde_bounds(pc, &low, &high))
		return false;
	n = fathom_self_format(NULL, r->at, r->left, "func@[0x%zx..0x%zx]", (size_t)(low - bias),
			       (size_t)(high - bias));
	if (n >= r->left)
		return false;
	*ret = (struct fathom_symbol){ .value = (uintptr_t)(low - bias), .size = high - low };
	*ret_name = (struct fathom_str){ r->at, (uint32_t)n };
	return true;
}

/* Returns whether the same object is still at @pc: another thread may have unloaded it. */
static bool is_still(uintptr_t pc, const struct fathom_self_object *o,
		     const struct fathom_link_map *link)
{
	struct fathom_self_object now;
	struct fathom_link_map l;

	return fathom_self_object_at(pc, &now) && now.start == o->start && now.end == o->end &&
	       now.link_map == o->link_map && fathom_peek(o->link_map, &l, sizeof l) == sizeof l &&
	       memcmp(&l, link, offsetof(struct fathom_link_map, next)) == 0;
}

void fathom_self_answer_from_memory(uintptr_t pc, struct fathom_self_room *r)
{
	enum fathom_source source = FATHOM_SOURCE_DYNSYM;
	struct fathom_answer *a = r->answer;
	struct fathom_self_object o;
	struct fathom_self_dynamic d;
	struct fathom_symbol s;
	struct fathom_str name;
	struct fathom_link_map link;
	uint8_t byte;
	bool found;

	if (!fathom_self_object_at(pc, &o)) {
		a->reason =
			fathom_peek(pc, &byte, 1) ? FATHOM_REASON_NO_FILE : FATHOM_REASON_UNMAPPED;
		return;
	}
	a->reason = FATHOM_REASON_NOT_PREPARED;
	if (fathom_peek(o.link_map, &link, sizeof link) != sizeof link)
		return;
	set_module(&o, &link, r);
	found = fathom_self_read_dynamic(link.dynamic, o.start, o.end, link.bias, &d) &&
		fathom_self_dynamic_symbol(&d, pc, r->at, r->left, &s, &name);
	if (!found) {
		source = FATHOM_SOURCE_FDE;
		found = find_bounds(pc, link.bias, r, &s, &name);
	}
	/* Nothing is answered of what was read while it changed. */
	if (!is_still(pc, &o, &link))
		*a = (struct fathom_answer){ .pc = a->pc,
					     .module_address = FATHOM_NO_ADDRESS,
					     .reason = FATHOM_REASON_CHANGED };
	else if (found)
		set_name(&s, name, source, a);
}
