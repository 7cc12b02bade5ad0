/* SPDX-License-Identifier: MIT */
#include "host/publish/unwinders.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "host/base/clock.h"

/* Functions that the unwinders export. */
typedef void register_info_fn(const void *begin, void *object);
typedef void *deregister_info_fn(const void *begin);
typedef void fde_fn(uint64_t fde);
typedef void dyn_fn(void *info);
typedef void flush_fn(void *space, uint64_t low, uint64_t high);

/* struct dwarf_eh_bases of libgcc's unwind-dw2-fde.h. */
struct found_bases {
	void *text;
	void *data;
	void *function;
};
typedef const void *find_fn(void *pc, struct found_bases *bases);

/* unw_dyn_info_t of libunwind-dynamic.h, with the third member of its union. */
struct dyn_info {
	struct dyn_info *next;
	struct dyn_info *prev;
	uint64_t start_ip;
	uint64_t end_ip;
	uint64_t gp;
	int32_t format;
	int32_t pad;
	uint64_t load_offset;
	uint64_t name;
	uint64_t segbase;
	uint64_t table_len; /* in words, each as large as a pair */
	uint64_t table;
	uint64_t reserve[8]; /* the union's first member is larger */
	int32_t pairs[];     /* start of code from start_ip, FDE from segbase */
};
enum { UNW_INFO_FORMAT_IP_OFFSET = 4 };

/* The linked-in libgcc of a static program, of which no object tells. */
extern void __register_frame_info(const void *begin, void *object) __attribute__((weak));
extern void __register_frame_info_table(void *array, void *object) __attribute__((weak));
extern void *__deregister_frame_info(const void *begin) __attribute__((weak));
extern const void *_Unwind_Find_FDE(void *pc, struct found_bases *bases) __attribute__((weak));

/* Calls through pointers that dlsym() gave (POSIX, dlsym, "Application usage"). */
#define CALL(type, pointer) ((type *)(uintptr_t)(pointer))

static int count_loaded(struct dl_phdr_info *info, size_t size, void *to)
{
	(void)size;
	/*
	 * Never 0, which means that nothing was counted yet: musl counts what is loaded later only.
	 */
	*(uint64_t *)to = 1 + info->dlpi_adds + (info->dlpi_subs << 32);
	return 1;
}

static int add_name(struct dl_phdr_info *info, size_t size, void *to)
{
	struct fathom_jit_found *names = to;
	/* The program has no name in glibc, and its path in musl. */
	const bool is_program = (uintptr_t)info->dlpi_phdr == getauxval(AT_PHDR);
	const char *name = is_program ? "" : info->dlpi_name;
	const size_t n = strlen(name) + 1;

	(void)size;
	if (!fathom_array_room(&names->paths, n))
		return 1;
	memcpy(names->paths.items + names->paths.n, name, n);
	names->paths.n += n;
	return 0;
}

bool fathom_jit_list_objects(const struct fathom_jit_registry *r, struct fathom_jit_found *found)
{
	found->loaded = 0;
	(void)dl_iterate_phdr(count_loaded, &found->loaded);
	if (found->loaded == r->loaded)
		return false;
	/* Without memory for all of them, the next commit looks again. */
	if (dl_iterate_phdr(add_name, found))
		found->loaded = 0;
	return true;
}

/*
 * Returns @name of the object @handle itself, not of one that it needs. The program's own symbols
 * have no path.
 */
static void *own_symbol(void *handle, const char *path, const char *name)
{
	void *at = dlsym(handle, name);
	Dl_info info;

	if (!at || !dladdr(at, &info))
		return NULL;
	return !*path || !strcmp(info.dli_fname, path) ? at : NULL;
}

/*
 * Finds out which kind of libgcc has @u. Up to version 12 a later registration of the same code is
 * found first; from 13 on it is refused. Both entries stay where they are: a refused one must not
 * be deregistered. False if neither is found: another library has its calls.
 */
static bool find_libgcc_kind(struct fathom_jit_unwinder *u, struct fathom_jit_registry *r)
{
	struct fathom_jit_probe *p = &r->probe;
	const struct fathom_cie_form cie = {
		.instructions = { r->machine->initial, r->machine->n_initial },
		.code_alignment = r->machine->code_alignment,
		.data_alignment = -8,
		.return_register = r->machine->return_register,
	};
	struct found_bases bases;
	const void *found;
	size_t fde = 0;

	for (size_t i = 0; i < 2; i++) {
		struct fathom_out o = { .at = p->bytes[i], .cap = sizeof p->bytes[i] };
		const size_t at = fathom_cie_write(&o, &cie);

		fde = fathom_fde_write(&o, &cie, at, (uintptr_t)p->code, sizeof p->code, 0,
				       (struct fathom_bytes){ 0 });
		fathom_out_u32(&o, 0);
		CALL(register_info_fn, u->add)(p->bytes[i], p->objects[i]);
	}
	/* A search of another thread may have moved either one to the front. */
	found = CALL(find_fn, u->find)(p->code + 1, &bases);
	if (found != p->bytes[0] + fde && found != p->bytes[1] + fde)
		return false;
	(void)CALL(deregister_info_fn, u->remove)(p->bytes[0]);
	found = CALL(find_fn, u->find)(p->code + 1, &bases);
	u->kind = found == p->bytes[1] + fde ? FATHOM_JIT_LIST : FATHOM_JIT_TREE;
	if (u->kind == FATHOM_JIT_LIST)
		(void)CALL(deregister_info_fn, u->remove)(p->bytes[1]);
	return true;
}

/*
 * Its call for a whole section reads on after the terminator (LLVM issue 76957): it is told of
 * each FDE.
 */
static bool is_llvm(void *handle, const char *path, struct fathom_jit_unwinder *u)
{
	u->consumer = FATHOM_JIT_LLVM;
	u->kind = FATHOM_JIT_CACHE;
	u->add = own_symbol(handle, path, "__unw_add_dynamic_fde");
	u->remove = own_symbol(handle, path, "__unw_remove_dynamic_fde");
	return u->add && u->remove;
}

static bool is_nongnu(void *handle, const char *path, struct fathom_jit_unwinder *u)
{
	u->consumer = FATHOM_JIT_NONGNU;
	u->kind = FATHOM_JIT_TABLES;
	u->add = own_symbol(handle, path, "_U_dyn_register");
	u->remove = own_symbol(handle, path, "_U_dyn_cancel");
#if defined(__x86_64__)
	u->flush = dlsym(handle, "_Ux86_64_flush_cache");
	u->space = dlsym(handle, "_ULx86_64_local_addr_space");
#elif defined(__aarch64__)
	u->flush = dlsym(handle, "_Uaarch64_flush_cache");
	u->space = dlsym(handle, "_ULaarch64_local_addr_space");
#endif
	return u->add && u->remove;
}

static bool is_libgcc(void *handle, const char *path, struct fathom_jit_unwinder *u)
{
	u->consumer = FATHOM_JIT_LIBGCC;
	u->kind = FATHOM_JIT_LIST;
	u->add = own_symbol(handle, path, "__register_frame_info");
	u->add_array = own_symbol(handle, path, "__register_frame_info_table");
	u->remove = own_symbol(handle, path, "__deregister_frame_info");
	u->find = own_symbol(handle, path, "_Unwind_Find_FDE");
	return u->add && u->add_array && u->remove && u->find;
}

static bool is_found(const struct fathom_jit_unwinder *in, size_t n, const void *add)
{
	for (size_t i = 0; i < n; i++)
		if (in[i].add == add)
			return true;
	return false;
}

/* Keeps @u, if it is wanted. */
static bool keep(struct fathom_jit_found *found, const struct fathom_jit_unwinder *u, uint32_t on)
{
	if (!(u->consumer & on) || found->n == FATHOM_JIT_MOST_UNWINDERS ||
	    is_found(found->unwinders, found->n, u->add))
		return false;
	found->unwinders[found->n++] = *u;
	return true;
}

/* Looks into the object of @path, "" for the program. */
static void look_into(const char *path, uint32_t on, struct fathom_jit_found *found)
{
	void *handle = dlopen(*path ? path : NULL, RTLD_LAZY | RTLD_NOLOAD);
	struct fathom_jit_unwinder u = { .handle = handle };

	if (!handle)
		return;
	/* LLVM's libunwind has libgcc's names, too. */
	if ((is_llvm(handle, path, &u) || is_libgcc(handle, path, &u)) && keep(found, &u, on))
		return;
	u = (struct fathom_jit_unwinder){ .handle = handle };
	if (is_nongnu(handle, path, &u) && keep(found, &u, on))
		return;
	(void)dlclose(handle);
}

/* Returns whether @at lies in an object that was looked into. */
static bool is_listed(const struct fathom_jit_found *found, const void *at)
{
	const char *paths = found->paths.items;
	Dl_info info;

	if (!dladdr(at, &info))
		return false;
	for (size_t i = 0; i < found->paths.n; i += strlen(paths + i) + 1)
		if (!strcmp(paths + i, info.dli_fname))
			return true;
	return false;
}

void fathom_jit_open_libgcc(void)
{
	if (!__register_frame_info)
		(void)dlopen("libgcc_s.so.1", RTLD_LAZY);
}

void fathom_jit_find_unwinders(uint32_t on, struct fathom_jit_found *found)
{
	const struct fathom_jit_unwinder linked = {
		.consumer = FATHOM_JIT_LIBGCC,
		.kind = FATHOM_JIT_LIST,
		.add = (void *)(uintptr_t)__register_frame_info,
		.add_array = (void *)(uintptr_t)__register_frame_info_table,
		.remove = (void *)(uintptr_t)__deregister_frame_info,
		.find = (void *)(uintptr_t)_Unwind_Find_FDE,
	};

	for (size_t i = 0; i < found->paths.n; i += strlen(found->paths.items + i) + 1)
		if (found->paths.items[i])
			look_into(found->paths.items + i, on, found);
	look_into("", on, found);
	if (linked.add && linked.add_array && linked.remove && linked.find &&
	    !is_listed(found, linked.add))
		(void)keep(found, &linked, on);
	fathom_array_free(&found->paths);
}

/* Returns whether @u is to be told of code, and finds out how. */
static bool is_usable(struct fathom_jit_registry *r, struct fathom_jit_unwinder *u)
{
	if (r->n_unwinders == FATHOM_JIT_MOST_UNWINDERS ||
	    is_found(r->unwinders, r->n_unwinders, u->add))
		return false;
	if (u->consumer != FATHOM_JIT_LIBGCC || find_libgcc_kind(u, r))
		return true;
	fathom_jit_say(r, "libgcc: another library stands before it, with functions of the same "
			  "names");
	return false;
}

size_t fathom_jit_keep_unwinders(struct fathom_jit_registry *r, struct fathom_jit_found *found)
{
	const size_t first = r->n_unwinders;
	size_t left = 0;

	r->loaded = found->loaded;
	for (size_t i = 0; i < found->n; i++) {
		struct fathom_jit_unwinder *u = &found->unwinders[i];

		if (is_usable(r, u))
			r->unwinders[r->n_unwinders++] = *u;
		else
			found->unwinders[left++] = *u;
	}
	found->n = left;
	return first;
}

void fathom_jit_close_unwinders(struct fathom_jit_found *found)
{
	for (size_t i = 0; i < found->n; i++)
		if (found->unwinders[i].handle)
			(void)dlclose(found->unwinders[i].handle);
	found->n = 0;
}

static bool has_kind(const struct fathom_jit_registry *r, bool tables)
{
	for (size_t i = 0; i < r->n_unwinders; i++)
		if ((r->unwinders[i].kind == FATHOM_JIT_TABLES) == tables)
			return true;
	return false;
}

bool fathom_jit_wants_tables(const struct fathom_jit_registry *r)
{
	return has_kind(r, true);
}

bool fathom_jit_wants_images(const struct fathom_jit_registry *r)
{
	return has_kind(r, false);
}

/* How long an object is not used again. */
#define WHILE_NS UINT64_C(2000000000)

static uint64_t coarse_now(void)
{
	return (uint64_t)fathom_clock_ns(CLOCK_MONOTONIC_COARSE);
}

/* Takes an object that went long ago, or makes one. */
static struct fathom_jit_object *take_object(struct fathom_jit_registry *r)
{
	struct fathom_jit_object *o = r->objects;

	if (!o || coarse_now() - o->gone < WHILE_NS)
		return calloc(1, sizeof *o);
	r->objects = o->next;
	memset(o, 0, sizeof *o);
	return o;
}

static void give_object(struct fathom_jit_registry *r, struct fathom_jit_object *o)
{
	o->gone = coarse_now();
	o->next = NULL;
	if (r->objects)
		r->last_object->next = o;
	else
		r->objects = o;
	r->last_object = o;
}

void fathom_jit_tokens_free(struct fathom_jit_registry *r, struct fathom_jit_image *image)
{
	struct fathom_jit_token *next;

	for (struct fathom_jit_token *t = image->tokens; t; t = next) {
		next = t->next;
		if (t->object)
			give_object(r, t->object);
		free(t);
	}
	image->tokens = NULL;
}

/* Adds a token of unwinder @i with room for @size bytes. */
static struct fathom_jit_token *add_token(struct fathom_jit_image *image, size_t i, size_t size)
{
	struct fathom_jit_token *t = calloc(1, sizeof *t + size);

	if (!t)
		return NULL;
	t->unwinder = (uint8_t)i;
	t->next = image->tokens;
	image->tokens = t;
	return t;
}

/* Adds a token with libgcc's object, and an array of @n images that a NULL ends. */
static struct fathom_jit_token *add_array(struct fathom_jit_registry *r,
					  struct fathom_jit_image *image, size_t i, size_t n)
{
	struct fathom_jit_object *object = take_object(r);
	struct fathom_jit_token *t =
		object ? add_token(image, i, (n + 1) * sizeof(uint64_t)) : NULL;

	if (t)
		t->object = object;
	else if (object)
		give_object(r, object);
	return t;
}

/*
 * Writes the pairs of those of @image's FDEs that lie in @d: they stand in the order of their code.
 */
static void fill_pairs(struct dyn_info *d, const struct fathom_jit_image *image)
{
	uint32_t size;
	uint32_t cie;
	uint64_t low;

	for (size_t at = image->fde, n = 0; n < image->n_fde; at += 4 + size) {
		memcpy(&size, image->bytes + at, sizeof size);
		memcpy(&cie, image->bytes + at + 4, sizeof cie);
		if (!cie)
			continue;
		n++;
		memcpy(&low, image->bytes + at + 8, sizeof low);
		if (low < d->start_ip || low >= d->end_ip)
			continue;
		d->pairs[2 * d->table_len] = (int32_t)(low - d->start_ip);
		d->pairs[2 * d->table_len + 1] = (int32_t)at;
		d->table_len++;
	}
}

/* Adds a token with nongnu's table of the code in [low, high), which has @n FDEs. */
static bool add_table(struct fathom_jit_image *image, size_t i, uint64_t low, uint64_t high,
		      size_t n)
{
	struct fathom_jit_token *t =
		add_token(image, i, sizeof(struct dyn_info) + n * 2 * sizeof(int32_t));
	struct dyn_info *d;

	if (!t)
		return false;
	d = (void *)t->room;
	d->start_ip = low;
	d->end_ip = high;
	d->format = UNW_INFO_FORMAT_IP_OFFSET;
	d->segbase = (uintptr_t)image->bytes;
	d->table = (uintptr_t)d->pairs;
	fill_pairs(d, image);
	return true;
}

static bool prepare_single(struct fathom_jit_registry *r, struct fathom_jit_image *image, size_t i)
{
	const uint8_t kind = r->unwinders[i].kind;
	struct fathom_jit_token *t;

	if (kind == FATHOM_JIT_TABLES)
		return add_table(image, i, image->low, image->high, image->n_fde);
	if (kind == FATHOM_JIT_CACHE)
		return add_token(image, i, 0) != NULL;
	t = add_array(r, image, i, 1);
	if (t)
		t->room[0] = (uintptr_t)image->bytes;
	return t != NULL;
}

bool fathom_jit_arena_prepare(struct fathom_jit_registry *r, struct fathom_jit_arena *arena,
			      size_t first)
{
	if (!arena->image)
		return true;
	for (size_t i = first; i < r->n_unwinders; i++)
		if (!prepare_single(r, arena->image, i))
			return false;
	return true;
}

bool fathom_jit_entry_prepare(struct fathom_jit_registry *r, struct fathom_jit_entry *e,
			      size_t first)
{
	if (!e->image)
		return true;
	for (size_t i = first; i < r->n_unwinders; i++) {
		const uint8_t kind = r->unwinders[i].kind;

		if ((kind == FATHOM_JIT_TREE || kind == FATHOM_JIT_CACHE) &&
		    !prepare_single(r, e->image, i))
			return false;
	}
	return true;
}

/*
 * Neighbours in a leaf with rules of their own: what arenas say, unwinders know already. Searches
 * of libgcc and nongnu end at the first range that may have an address, so a range must not reach
 * over another arena, which may have a range of its own.
 */
struct run {
	struct fathom_jit_entry *const *entries;
	size_t n;
	size_t own; /* those of which something is said */
};

static bool is_apart(const struct fathom_jit_arena *a, const struct fathom_jit_arena *b)
{
	return a->high <= b->low || b->high <= a->low;
}

/* Takes the run of @l that begins at @from; returns where it ends. */
static size_t take_run(const struct fathom_jit_leaf *l, size_t from, struct run *ret)
{
	size_t i = from;

	*ret = (struct run){ .entries = l->entries + from };
	do
		ret->own += l->entries[i++]->body->cie != NULL;
	while (i < l->n && !is_apart(l->entries[i - 1]->arena, l->entries[i]->arena));
	ret->n = i - from;
	return i;
}

static bool prepare_array(struct fathom_jit_registry *r, struct fathom_jit_image *image, size_t i,
			  const struct run *run)
{
	struct fathom_jit_token *t = add_array(r, image, i, run->own);
	uint64_t *to;

	if (!t)
		return false;
	to = t->room;
	for (size_t k = 0; k < run->n; k++)
		if (run->entries[k]->image)
			*to++ = (uintptr_t)run->entries[k]->image->bytes;
	return true;
}

static bool prepare_run(struct fathom_jit_registry *r, struct fathom_jit_image *image, size_t i,
			const struct run *run)
{
	const uint8_t kind = r->unwinders[i].kind;

	if (!run->own)
		return true;
	if (kind == FATHOM_JIT_LIST)
		return prepare_array(r, image, i, run);
	return kind != FATHOM_JIT_TABLES ||
	       add_table(image, i, run->entries[0]->low, fathom_jit_high(run->entries[run->n - 1]),
			 run->own);
}

bool fathom_jit_leaf_prepare(struct fathom_jit_registry *r, struct fathom_jit_leaf *leaf,
			     size_t first)
{
	struct run run;

	for (size_t i = first; i < r->n_unwinders; i++)
		for (size_t k = 0; k < leaf->n;) {
			k = take_run(leaf, k, &run);
			if (!prepare_run(r, &leaf->image, i, &run))
				return false;
		}
	return true;
}

/* Returns the address of the first FDE. */
static uint64_t fde_of(const struct fathom_jit_image *image)
{
	return (uintptr_t)image->bytes + image->fde;
}

/* Returns whether libgcc knows @image: a tree refuses code that it has already. */
static bool is_known(const struct fathom_jit_unwinder *u, const struct fathom_jit_image *image)
{
	struct found_bases bases;

	return CALL(find_fn, u->find)((void *)(uintptr_t)image->low, &bases) ==
	       (const void *)(uintptr_t)fde_of(image);
}

static void tell(struct fathom_jit_registry *r, const struct fathom_jit_image *image,
		 struct fathom_jit_token *t)
{
	const struct fathom_jit_unwinder *u = &r->unwinders[t->unwinder];

	t->is_told = true;
	switch (u->kind) {
	case FATHOM_JIT_TABLES:
		CALL(dyn_fn, u->add)(t->room);
		break;
	case FATHOM_JIT_CACHE:
		CALL(fde_fn, u->add)(fde_of(image));
		break;
	case FATHOM_JIT_LIST:
		CALL(register_info_fn, u->add_array)(t->room, t->object->words);
		break;
	default:
		/* One image at a time: libgcc 13 and 14 cannot deregister an array. */
		CALL(register_info_fn, u->add)(image->bytes, t->object->words);
		t->is_told = is_known(u, image);
		if (!t->is_told)
			fathom_jit_say(r, "libgcc: it has refused code that somebody else has "
					  "registered, too");
		break;
	}
}

void fathom_jit_image_tell(struct fathom_jit_registry *r, struct fathom_jit_image *image)
{
	for (struct fathom_jit_token *t = image ? image->tokens : NULL; t; t = t->next)
		if (!t->is_told)
			tell(r, image, t);
}

void fathom_jit_image_withdraw(struct fathom_jit_registry *r, struct fathom_jit_image *image)
{
	for (struct fathom_jit_token *t = image ? image->tokens : NULL; t; t = t->next) {
		const struct fathom_jit_unwinder *u = &r->unwinders[t->unwinder];

		if (!t->is_told)
			continue;
		t->is_told = false;
		if (u->kind == FATHOM_JIT_TABLES)
			CALL(dyn_fn, u->remove)(t->room);
		else if (u->kind == FATHOM_JIT_CACHE)
			CALL(fde_fn, u->remove)(fde_of(image));
		else
			(void)CALL(deregister_info_fn, u->remove)(
				u->kind == FATHOM_JIT_LIST ? (const void *)t->room : image->bytes);
	}
}

void fathom_jit_flush(struct fathom_jit_registry *r, uint64_t low, uint64_t high)
{
	for (size_t i = 0; i < r->n_unwinders; i++) {
		const struct fathom_jit_unwinder *u = &r->unwinders[i];

		if (u->flush && u->space)
			CALL(flush_fn, u->flush)(*(void **)u->space, low, high);
	}
}
