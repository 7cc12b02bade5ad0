/* SPDX-License-Identifier: MIT */
/*
 * The order of look-ups: glibc keeps what dlsym(RTLD_DEFAULT) searches in the main program's struct
 * link_map, as an array of pointers and its length, in a place that differs from version to
 * version. It is told by what it is: a pointer to as many pointers to loaded modules as the next
 * word says, the main program first, none twice. Where nothing is like that (other C libraries), it
 * is the main program, what was preloaded, and what they need, the nearest first: what dlopen()
 * brought in with RTLD_GLOBAL is missed then.
 */
#include "host/runtime/scope.h"

#include <stdlib.h>
#include <time.h>

#include "host/jit/trusted_file.h"
#include "safe/base/sort.h"
#include "safe/base/text.h"

/* More modules are not loaded by any program; a list in a circle ends here. */
#define MAX_LINKS 65536
/* Namespaces; glibc has 16. */
#define MAX_SPACES 64
/* Bytes of glibc's struct link_map that are looked at: it has some 1,200. */
#define LINK_MAP_BYTES 2048
/* Times that a list is read while the dynamic linker is at work on it, and the pauses between. */
#define MAX_TRIES      10
#define FIRST_PAUSE_NS 50000
/* Threads of one process; the kernel's own limit is 4,194,304. */
#define MAX_TASKS 4194304

bool fathom_scope_read(struct fathom_find *f, const struct fathom_object *o, uint64_t avma,
		       uint8_t size, uint64_t *ret)
{
	uint8_t bytes[8];

	if (fathom_space_batch_read(&f->batch, avma, bytes, size) != size)
		return false;
	*ret = size == 8 ? load_u64(bytes, o->image.swap) : load_u32(bytes, o->image.swap);
	return true;
}

/* Leaves of @at, which goes in a circle of @length at its end, each once. */
static size_t count_once(const uint64_t *at, size_t n, size_t length)
{
	size_t i = 0;

	while (i + length < n && at[i] != at[i + length])
		i++;
	return i + length < n ? i + length : n;
}

void fathom_scope_read_threads(struct fathom_find *f, const struct fathom_object *o, uint64_t head,
			       uint64_t next, struct fathom_array *ret)
{
	const uint8_t word = fathom_image_address_size(&o->image);
	size_t landmark = 0; /* circles are found by Brent's method */
	uint64_t at = head;

	while (fathom_scope_read(f, o, at + next, word, &at) && at && at != head &&
	       ret->n < MAX_TASKS && fathom_find_reserve(f, ret, sizeof at, 1)) {
		uint64_t *to = ret->data;

		if (ret->n && at == to[landmark]) {
			ret->n = count_once(to, ret->n, ret->n - landmark);
			return;
		}
		if (ret->n >= 2 * landmark)
			landmark = ret->n;
		to[ret->n++] = at;
	}
}

/* Word number @i of @bytes. */
static uint64_t word_of(const struct fathom_object *o, const uint8_t *bytes, size_t i)
{
	return o->image.is64 ? load_u64(bytes + 8 * i, o->image.swap)
			     : load_u32(bytes + 4 * i, o->image.swap);
}

/* Sorts the modules by where their dynamic sections are. False without memory. */
static bool sort_dynamics(struct fathom_find *f)
{
	struct fathom_keyed *keyed;

	if (!fathom_array_reserve(&f->dynamics, sizeof *keyed, 2 * f->n_modules))
		return false;
	keyed = f->dynamics.data;
	for (size_t i = 0; i < f->n_modules; i++) {
		const struct fathom_find_module *m = &f->modules[i];

		if (m->dynamic_table != FATHOM_NONE)
			keyed[f->dynamics.n++] =
				(struct fathom_keyed){ m->dynsym.dynamic.svma + m->bias, i };
	}
	fathom_sort_keyed(keyed, keyed + f->n_modules, f->dynamics.n);
	return true;
}

/* The module at @bias whose dynamic section is at @dynamic; FATHOM_NONE: there is none. */
static uint32_t module_of_link(const struct fathom_find *f, uint64_t bias, uint64_t dynamic)
{
	const struct fathom_keyed *keyed = f->dynamics.data;

	for (size_t i = fathom_lower_bound(keyed, f->dynamics.n, dynamic);
	     i < f->dynamics.n && keyed[i].key == dynamic; i++)
		if (f->modules[keyed[i].value].bias == bias)
			return (uint32_t)keyed[i].value;
	return FATHOM_NONE;
}

/* Reads the list that starts at @at; false when it contradicts itself. */
static bool read_list(struct fathom_find *f, const struct fathom_object *o, uint64_t at,
		      uint32_t space)
{
	const uint8_t word = fathom_image_address_size(&o->image);
	uint64_t before = 0;

	/* l_addr, l_name, l_ld, l_next, l_prev */
	while (at) {
		uint8_t bytes[5 * 8];
		struct fathom_link link = { .at = at, .space = space };

		if (f->links.n >= MAX_LINKS ||
		    fathom_space_batch_read(&f->batch, at, bytes, 5u * word) != 5u * word ||
		    word_of(o, bytes, 4) != before ||
		    !fathom_array_reserve(&f->links, sizeof link, 1))
			return false;
		link.bias = word_of(o, bytes, 0);
		link.dynamic = word_of(o, bytes, 2);
		link.module = module_of_link(f, link.bias, link.dynamic);
		((struct fathom_link *)f->links.data)[f->links.n++] = link;
		before = at;
		at = word_of(o, bytes, 3);
	}
	return true;
}

/* Reads the lists of all namespaces, from the struct r_debug at @at; false: they changed. */
static bool read_lists(struct fathom_find *f, const struct fathom_object *o, uint64_t at)
{
	const uint8_t word = fathom_image_address_size(&o->image);

	f->links.n = 0;
	for (uint32_t space = 0; at && space < MAX_SPACES; space++) {
		uint64_t version;
		uint64_t first;
		uint64_t state;

		/* r_version, r_map, r_brk, r_state, r_ldbase, and from version 2 r_next */
		if (!fathom_scope_read(f, o, at, 4, &version) ||
		    !fathom_scope_read(f, o, at + word, word, &first) ||
		    !fathom_scope_read(f, o, at + 3u * word, 4, &state) || !version ||
		    version > 16 || state || !read_list(f, o, first, space))
			return false;
		if (version < 2 || !fathom_scope_read(f, o, at + 5u * word, word, &at))
			at = 0;
	}
	return true;
}

/* The struct r_debug that the dynamic linker has told module @m of; 0: none. */
static uint64_t find_debug(struct fathom_find *f, const struct fathom_find_module *m)
{
	const struct fathom_object *o = m->module->main;
	uint64_t at = 0;

	if (m->dynamic_table == FATHOM_NONE || !m->dynsym.dynamic.debug ||
	    !fathom_scope_read(f, o, m->dynsym.dynamic.debug + m->bias,
			       fathom_image_address_size(&o->image), &at))
		return 0;
	return at;
}

static int compare_words(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a;
	const uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * Makes the links, which are settled, easy to find: by where they are, and from their modules.
 * False without memory.
 */
static bool index_links(struct fathom_find *f)
{
	const struct fathom_link *links = f->links.data;
	struct fathom_keyed *keyed;

	f->places.n = 0;
	if (!fathom_array_reserve(&f->places, sizeof *keyed, 2 * f->links.n))
		return false;
	keyed = f->places.data;
	for (size_t i = 0; i < f->links.n; i++)
		keyed[f->places.n++] = (struct fathom_keyed){ links[i].at, i };
	fathom_sort_keyed(keyed, keyed + f->places.n, f->places.n);
	for (size_t i = 0; i < f->n_modules; i++)
		f->modules[i].link = FATHOM_NONE;
	/* The first link of a module is the one that counts. */
	for (size_t i = f->links.n; i-- > 0;)
		if (links[i].module != FATHOM_NONE)
			f->modules[links[i].module].link = (uint32_t)i;
	return true;
}

static const struct fathom_link *find_link(const struct fathom_find *f, uint64_t at)
{
	const struct fathom_keyed *keyed = f->places.data;
	const size_t i = fathom_lower_bound(keyed, f->places.n, at);

	return i < f->places.n && keyed[i].key == at
		       ? (const struct fathom_link *)f->links.data + keyed[i].value
		       : NULL;
}

/*
 * Whether the @n words at @at are pointers to modules of the program's namespace, the main program
 * first and none twice; then gives them their order.
 */
static bool take_scope(struct fathom_find *f, const struct fathom_object *o, uint64_t at,
		       uint64_t n)
{
	const struct fathom_link *links = f->links.data;
	const uint8_t word = fathom_image_address_size(&o->image);
	uint64_t *sorted;
	uint64_t first;
	uint8_t *bytes;
	bool good;

	if (!n || n > f->links.n || !fathom_scope_read(f, o, at, word, &first) ||
	    first != links[0].at)
		return false;
	bytes = malloc((size_t)n * word);
	sorted = malloc((size_t)n * sizeof *sorted);
	good = bytes && sorted &&
	       fathom_space_batch_read(&f->batch, at, bytes, (size_t)n * word) == n * word;
	for (size_t i = 0; good && i < n; i++) {
		const struct fathom_link *link = find_link(f, word_of(o, bytes, i));

		sorted[i] = word_of(o, bytes, i);
		good = link && !link->space;
	}
	if (good) {
		qsort(sorted, (size_t)n, sizeof *sorted, compare_words);
		for (size_t i = 1; i < n; i++)
			good &= sorted[i] != sorted[i - 1];
	}
	for (size_t i = 0; good && i < n; i++) {
		const uint32_t module = find_link(f, word_of(o, bytes, i))->module;

		if (module != FATHOM_NONE)
			f->modules[module].order = (uint32_t)i;
	}
	free(bytes);
	free(sorted);
	return good;
}

/* Looks in the main program's struct link_map for the array of what is searched. */
static bool find_scope(struct fathom_find *f, const struct fathom_object *o)
{
	const struct fathom_link *links = f->links.data;
	const uint8_t word = fathom_image_address_size(&o->image);
	uint8_t bytes[LINK_MAP_BYTES];
	const size_t got = fathom_space_batch_read(&f->batch, links[0].at, bytes, sizeof bytes);

	for (size_t i = 5; (i + 2) * word <= got; i++) {
		const uint64_t at = word_of(o, bytes, i);
		/* The length is an unsigned int. */
		const uint64_t n = load_u32(bytes + (i + 1) * word, o->image.swap);

		if (at % word == 0 && at && n && n <= f->links.n && take_scope(f, o, at, n))
			return true;
	}
	return false;
}

static struct fathom_str last_part(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return (struct fathom_str){ name, (uint32_t)strlen(name) };
}

/* Whether @needed, as in DT_NEEDED, is module @m. */
static bool is_called(const struct fathom_find_module *m, struct fathom_str needed)
{
	struct fathom_str soname;

	if (m->dynamic_table == FATHOM_NONE)
		return false;
	soname = fathom_dynsym_soname(&m->dynsym);
	return (soname.data && str_equal(soname, needed)) || str_equal(last_part(m->path), needed);
}

/* Appends the modules of the program's namespace that @m needs to @queue, by order. */
static uint32_t add_needed(struct fathom_find *f, const struct fathom_find_module *m, uint32_t next,
			   uint32_t *queue)
{
	const struct fathom_link *links = f->links.data;
	struct fathom_str needed;

	for (uint32_t k = 0; (needed = fathom_dynsym_needed(&m->dynsym, k)).data; k++) {
		for (size_t i = 0; i < f->links.n; i++) {
			const uint32_t module = links[i].module;

			if (links[i].space || module == FATHOM_NONE ||
			    f->modules[module].order != FATHOM_NONE ||
			    !is_called(&f->modules[module], needed))
				continue;
			queue[next] = module;
			f->modules[module].order = next++;
			break;
		}
	}
	return next;
}

/* Whether the main program, or what it needs, needs module @module. */
static bool is_needed(const struct fathom_find *f, const struct fathom_find_module *main,
		      uint32_t module)
{
	struct fathom_str needed;

	for (uint32_t k = 0; (needed = fathom_dynsym_needed(&main->dynsym, k)).data; k++)
		if (is_called(&f->modules[module], needed))
			return true;
	return false;
}

/*
 * By DT_NEEDED: the main program, what stands in the list between it and the first that it needs
 * itself, which was preloaded, then what is needed, the nearest first.
 */
static fathom_err follow_needs(struct fathom_find *f)
{
	const struct fathom_link *links = f->links.data;
	const struct fathom_find_module *main;
	uint32_t *queue = malloc((f->n_modules + 1) * sizeof *queue);
	uint32_t n = 0;

	if (!queue)
		return FATHOM_E_MEMORY;
	if (links[0].module == FATHOM_NONE) {
		free(queue);
		return FATHOM_OK;
	}
	main = &f->modules[links[0].module];
	for (size_t i = 0; i < f->links.n && !links[i].space; i++) {
		const uint32_t module = links[i].module;

		if (module == FATHOM_NONE || f->modules[module].order != FATHOM_NONE ||
		    strcmp(f->modules[module].path, "[vdso]") == 0)
			continue;
		if (i && is_needed(f, main, module))
			break;
		queue[n] = module;
		f->modules[module].order = n++;
	}
	for (uint32_t i = 0; i < n; i++)
		n = add_needed(f, &f->modules[queue[i]], n, queue);
	free(queue);
	return FATHOM_OK;
}

static void note_unsettled(struct fathom_find *f)
{
	struct fathom_errinfo info;

	(void)fathom_fail(&info, FATHOM_E_TIMEOUT, "", 0,
			  "is at work: what it would answer is not known");
	fathom_errinfo_set_file(&info, "the process's dynamic linker");
	fathom_notes_add(f->notes, &info);
}

/*
 * Reads the lists that module @main was told of, when nobody changes them: dlopen() takes some
 * hundred microseconds. False, and there are none, when that never is.
 */
static bool read_settled(struct fathom_find *f, uint32_t main, uint64_t debug)
{
	struct timespec pause = { .tv_nsec = FIRST_PAUSE_NS };
	const struct fathom_link *links;

	for (int i = 0; i < MAX_TRIES; i++) {
		const bool good = read_lists(f, f->modules[main].module->main, debug);

		links = f->links.data;
		/* Who was told of the list is the first in it. */
		if (good && f->links.n && links[0].module == main && index_links(f))
			return true;
		f->links.n = 0;
		if (good || !f->space->is_live)
			return false;
		(void)nanosleep(&pause, NULL);
		pause.tv_nsec *= 2;
	}
	note_unsettled(f);
	return false;
}

/* Gives the modules their order, once the lists that module @main was told of are settled. */
static fathom_err read_order(struct fathom_find *f, uint32_t main, uint64_t debug)
{
	const struct fathom_object *o = f->modules[main].module->main;

	/* A module may be in the order of look-ups that is newer than the lists. */
	for (int i = 0; i < MAX_TRIES; i++) {
		if (find_scope(f, o))
			return FATHOM_OK;
		if (!f->space->is_live)
			break;
		if (!read_settled(f, main, debug))
			return FATHOM_OK;
	}
	return follow_needs(f);
}

fathom_err fathom_scope_order(struct fathom_find *f)
{
	if (!sort_dynamics(f))
		return FATHOM_E_MEMORY;
	for (uint32_t i = 0; i < f->n_modules; i++) {
		const uint64_t debug = find_debug(f, &f->modules[i]);

		if (debug && read_settled(f, i, debug))
			return read_order(f, i, debug);
	}
	return FATHOM_OK;
}

void fathom_scope_deinit(struct fathom_find *f)
{
	fathom_array_deinit(&f->links);
	fathom_array_deinit(&f->dynamics);
	fathom_array_deinit(&f->places);
	fathom_array_deinit(&f->slots);
}

const struct fathom_link *fathom_scope_link(const struct fathom_find *f, uint32_t module)
{
	const uint32_t link = f->modules[module].link;

	return link < f->links.n ? (const struct fathom_link *)f->links.data + link : NULL;
}

/* A thread's copy of a TLS symbol. */
struct copy {
	uint64_t avma;
	int32_t tid;
};

/* The copies of a TLS symbol. */
struct copies {
	struct fathom_find *f;
	int32_t only;            /* the thread whose copy is wanted; 0: all */
	struct fathom_array all; /* struct copy */
	bool failed;             /* no memory */
};

static bool take_copy(int32_t tid, uint64_t avma, void *data)
{
	struct copies *c = data;
	const struct copy copy = { avma, tid };

	if (c->only && tid != c->only)
		return true;
	c->failed = !fathom_find_reserve(c->f, &c->all, sizeof copy, 1);
	if (c->failed)
		return false;
	((struct copy *)c->all.data)[c->all.n++] = copy;
	return !c->only;
}

/* By the numbers of the threads, that of the main thread first. */
static int compare_copies(const void *a, const void *b, void *data)
{
	const int32_t first = *(const int32_t *)data;
	const int32_t x = ((const struct copy *)a)->tid;
	const int32_t y = ((const struct copy *)b)->tid;

	if ((x == first) != (y == first))
		return x == first ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* The number of the main thread, as the process knows it; 0 when it is not known. */
static int32_t main_tid(struct fathom_find *f)
{
	struct fathom_space_facts facts = { 0 };
	struct fathom_jit_owner owner;

	if (f->main_tid >= 0)
		return f->main_tid;
	if (fathom_jit_owner_read(f->space, &owner))
		f->main_tid = (int32_t)owner.inner_pid;
	else
		f->space->ops->describe(f->space, &facts);
	if (f->main_tid < 0)
		f->main_tid = facts.pid;
	return f->main_tid;
}

/*
 * Finds the copies of @c that are wanted; false when they cannot be known. Where only the first is,
 * the main thread is asked before all others.
 */
static bool find_copies(const struct fathom_candidate_symbol *c, struct copies *ret)
{
	bool known;

	if (!ret->only && ret->f->limit == 1) {
		ret->only = main_tid(ret->f);
		known = fathom_tls_walk(ret->f, c, take_copy, ret);
		ret->only = 0;
		if (ret->all.n || !known || ret->failed)
			return ret->all.n || known;
	}
	return fathom_tls_walk(ret->f, c, take_copy, ret) || ret->all.n;
}

/* Says that the thread that is asked for has no copy of @m. */
static void note_no_copy(struct fathom_find *f, const struct fathom_match *m)
{
	struct fathom_errinfo info;

	(void)fathom_fail(&info, FATHOM_E_NOT_FOUND, "", 0,
			  "the thread that was chosen has no copy of it: it has not used it, or "
			  "there is no such thread");
	fathom_copy_cstr(info.file, sizeof info.file, m->name ? m->name : "");
	fathom_notes_add(f->notes, &info);
}

static bool emit_tls(struct fathom_find *f, const struct fathom_candidate_symbol *c,
		     struct fathom_match *m)
{
	struct copies copies = { .f = f, .only = f->tid };
	int32_t first;
	bool done = true;

	m->address = 0;
	m->flags &= (uint8_t)~FATHOM_MATCH_ADDRESS;
	if (f->space && !find_copies(c, &copies)) {
		m->reason = FATHOM_REASON_UNSUPPORTED;
	} else if (f->space && f->tid && !copies.all.n && !copies.failed) {
		m->reason = FATHOM_REASON_UNMAPPED;
		note_no_copy(f, m);
	}
	if (copies.all.n > 1) {
		first = main_tid(f);
		qsort_r(copies.all.data, copies.all.n, sizeof(struct copy), compare_copies, &first);
	}
	for (size_t i = 0; i < copies.all.n && done && fathom_find_has_room(f, m->query); i++) {
		const struct copy *copy = (const struct copy *)copies.all.data + i;

		m->tid = copy->tid;
		m->address = copy->avma;
		m->flags |= FATHOM_MATCH_ADDRESS;
		done = fathom_find_add(f, m);
	}
	/* Without a copy the symbol is there all the same. */
	if (!copies.all.n && !copies.failed)
		done = fathom_find_add(f, m);
	done = done && !copies.failed;
	fathom_find_release(f, &copies.all, sizeof(struct copy));
	return done;
}

bool fathom_scope_emit(struct fathom_find *f, const struct fathom_candidate_symbol *c,
		       struct fathom_match *m)
{
	if (c->symbol.type == STT_TLS)
		return emit_tls(f, c, m);
	if (c->symbol.type == STT_GNU_IFUNC) {
		const uint64_t resolved = f->space ? fathom_ifunc_resolved(f, c) : 0;

		m->resolver = m->address;
		if (resolved) {
			m->address = resolved;
			m->size = 0;
			m->flags |= FATHOM_MATCH_RESOLVED;
		} else if (f->space) {
			m->address = 0;
			m->flags &= (uint8_t)~FATHOM_MATCH_ADDRESS;
			m->reason = FATHOM_REASON_UNSUPPORTED;
		}
	}
	return fathom_find_add(f, m);
}
