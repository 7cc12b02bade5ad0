/* SPDX-License-Identifier: MIT */
#include "process.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../safe/base/sort.h"
#include "batch.h"
#include "bias.h"
#include "process_file.h"

/* A file that the process has mapped, open. */
struct loaded {
	struct loaded *next;
	struct fathom_process_file file;
	unsigned users; /* batches under way */
	bool stale;     /* not to be used again */
};

struct fathom_process {
	struct fathom_process_place place;
	pthread_mutex_t lock; /* of the list and what changes in it; held for no longer than that */
	struct loaded *list;
	char *exe;
	int fd; /* of its directory below /proc */
	int pid;
};

/* What the link @name below @dir leads to; NULL when it cannot be known. */
static char *read_link(const char *dir, const char *name)
{
	char path[PATH_MAX];
	char target[PATH_MAX];
	ssize_t length;

	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	length = readlink(path, target, sizeof target);
	return length > 0 ? strndup(target, (size_t)length) : NULL;
}

static void drop_suffix(char *s, const char *suffix)
{
	const size_t length = strlen(s);
	const size_t size = strlen(suffix);

	if (length > size && strcmp(s + length - size, suffix) == 0)
		s[length - size] = '\0';
}

/*
 * Whether the paths in the map are ours. The kernel prints them as its reader would have to write
 * them, also those of a process with another root directory; only what is mounted elsewhere it
 * prints as seen from there.
 */
static bool shares_mounts(const char *dir)
{
	char *theirs = read_link(dir, "ns/mnt");
	char *ours = read_link("/proc/self", "ns/mnt");
	const bool same = theirs && ours && strcmp(theirs, ours) == 0;

	free(theirs);
	free(ours);
	return same;
}

/* Reads the map, or only looks whether that can be done, for @ret NULL. */
static fathom_err read_maps(const struct fathom_process *p, struct fathom_maps *ret,
			    struct fathom_errinfo *reterr)
{
	char path[PATH_MAX];
	fathom_err err;

	(void)snprintf(path, sizeof path, "%s/maps", p->place.dir);
	err = ret ? fathom_maps_read(path, ret, reterr) : fathom_maps_check(path, reterr);
	if (err) {
		(void)snprintf(path, sizeof path, "/proc/%d/maps", p->pid);
		fathom_errinfo_set_file(reterr, path);
	}
	return err;
}

/* Finds the process; it is closed by whoever opens it. */
static fathom_err find_process(struct fathom_process *p, struct fathom_errinfo *reterr)
{
	struct fathom_process_place *place = &p->place;
	char path[32];

	(void)snprintf(path, sizeof path, "/proc/%d", p->pid);
	p->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (p->fd < 0)
		return fathom_fail_os(reterr, path);
	(void)snprintf(place->dir, sizeof place->dir, "/proc/self/fd/%d", p->fd);
	FATHOM_TRY(read_maps(p, NULL, reterr));
	p->exe = read_link(place->dir, "exe");
	if (p->exe)
		drop_suffix(p->exe, " (deleted)");
	if (!shares_mounts(place->dir))
		(void)snprintf(place->root, sizeof place->root, "%s/root", place->dir);
	return FATHOM_OK;
}

fathom_err fathom_process_open(struct fathom *session, int pid, struct fathom_notes *notes,
			       struct fathom_process **ret, struct fathom_errinfo *reterr)
{
	struct fathom_process *p = calloc(1, sizeof *p);
	fathom_err err;

	if (!p)
		return fathom_fail(reterr, FATHOM_E_MEMORY, "", 0, "out of memory");
	p->place.session = session;
	p->place.notes = notes;
	p->place.page = (uint64_t)sysconf(_SC_PAGESIZE);
	p->pid = pid;
	pthread_mutex_init(&p->lock, NULL);
	err = find_process(p, reterr);
	if (err)
		fathom_process_close(p);
	else
		*ret = p;
	return err;
}

static void free_loaded(struct loaded *l)
{
	fathom_process_file_close(&l->file);
	free(l);
}

void fathom_process_close(struct fathom_process *p)
{
	if (!p)
		return;
	while (p->list) {
		struct loaded *next = p->list->next;

		free_loaded(p->list);
		p->list = next;
	}
	pthread_mutex_destroy(&p->lock);
	if (p->fd >= 0)
		close(p->fd);
	free(p->exe);
	free(p);
}

const char *fathom_process_exe(const struct fathom_process *p)
{
	return p->exe ? p->exe : "";
}

/* The open file that fits mapping @m, in use from now on; NULL when there is none. */
static struct loaded *find_loaded(struct fathom_process *p, const struct fathom_mapping *m)
{
	struct loaded *l;

	pthread_mutex_lock(&p->lock);
	for (l = p->list; l; l = l->next)
		if (!l->stale && l->file.module && fathom_process_file_fits(&l->file, m))
			break;
	if (l)
		l->users++;
	pthread_mutex_unlock(&p->lock);
	return l;
}

/* Ends one use of @l, which is @stale or not. */
static void release(struct fathom_process *p, struct loaded *l, bool stale)
{
	pthread_mutex_lock(&p->lock);
	l->stale |= stale;
	l->users--;
	pthread_mutex_unlock(&p->lock);
}

/* The file of mapping @i, open and in use, or NULL without memory. */
static struct loaded *acquire(struct fathom_process *p, const struct fathom_maps *maps, size_t i)
{
	struct loaded *l;

	while ((l = find_loaded(p, &maps->items[i])) != NULL) {
		if (fathom_process_file_is_current(&p->place, maps, i, &l->file))
			return l;
		release(p, l, true);
	}
	l = calloc(1, sizeof *l);
	if (!l || fathom_process_file_open(&p->place, maps, i, &l->file)) {
		free(l);
		return NULL;
	}
	/* Another thread may have opened it, too: both are good, and closed when they are not used.
	 */
	l->users = 1;
	pthread_mutex_lock(&p->lock);
	l->next = p->list;
	p->list = l;
	pthread_mutex_unlock(&p->lock);
	return l;
}

/* Whether some mapping is of @l, and no file before it in the list is for the same. */
static bool is_wanted(const struct fathom_process *p, const struct loaded *l,
		      const struct fathom_maps *maps)
{
	size_t i = 0;

	/* An image of a file is made again: its memory may have become another file's. */
	if (l->stale || !l->file.module || (l->file.is_image && l->file.inode))
		return false;
	while (i < maps->n && !fathom_process_file_fits(&l->file, &maps->items[i]))
		i++;
	if (i == maps->n)
		return false;
	for (const struct loaded *other = p->list; other != l; other = other->next)
		if (!other->stale && other->file.module &&
		    fathom_process_file_fits(&other->file, &maps->items[i]))
			return false;
	return true;
}

/* What one batch knows of the process. */
struct session_maps {
	struct fathom_process *process;
	struct fathom_maps maps;
	struct {
		struct loaded *loaded;
		uint64_t bias;
		enum fathom_reason reason; /* why there is no module */
		bool looked;
	} * of; /* each mapping */
};

static fathom_err begin(struct fathom_process *p, struct session_maps *s,
			struct fathom_errinfo *reterr)
{
	s->process = p;
	FATHOM_TRY(read_maps(p, &s->maps, reterr));
	s->of = calloc(s->maps.n, sizeof *s->of);
	if (!s->of) {
		fathom_maps_deinit(&s->maps);
		return fathom_fail(reterr, FATHOM_E_MEMORY, "", 0, "out of memory");
	}
	return FATHOM_OK;
}

/* Gives all files back, and closes those that are of no more use. */
static void end(struct session_maps *s)
{
	struct fathom_process *p = s->process;
	struct loaded **link = &p->list;

	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < s->maps.n; i++)
		if (s->of[i].loaded)
			s->of[i].loaded->users--;
	while (*link) {
		struct loaded *l = *link;

		if (l->users || is_wanted(p, l, &s->maps)) {
			link = &l->next;
		} else {
			*link = l->next;
			free_loaded(l);
		}
	}
	pthread_mutex_unlock(&p->lock);
	fathom_maps_deinit(&s->maps);
	free(s->of);
}

static const struct fathom_image *image_of(const struct session_maps *s, size_t i)
{
	return &s->of[i].loaded->file.module->main->image;
}

/* Whether mapping @i has at @at what its file says of @avma. */
static bool holds(const struct session_maps *s, size_t i, uint64_t at, uint64_t avma)
{
	return !s->of[i].reason &&
	       fathom_bias_holds(image_of(s, i), s->of[i].bias, &s->maps.items[i], at, avma,
				 s->process->place.page);
}

/*
 * Finds the file of mapping @i, once. It is of a module when segments fill it: who only reads a
 * file maps it otherwise.
 */
static fathom_err look_up(struct session_maps *s, size_t i)
{
	const struct fathom_mapping *m = &s->maps.items[i];
	struct loaded *l;

	if (s->of[i].looked)
		return FATHOM_OK;
	s->of[i].looked = true;
	s->of[i].reason = fathom_mapping_is_usable(&s->maps.items[i]) ? FATHOM_REASON_NO_FILE
								      : FATHOM_REASON_UNMAPPED;
	if (!fathom_mapping_is_usable(&s->maps.items[i]) ||
	    !fathom_process_may_be_file(&s->maps.items[i]))
		return FATHOM_OK;
	l = acquire(s->process, &s->maps, i);
	if (!l)
		return FATHOM_E_MEMORY;
	s->of[i].loaded = l;
	s->of[i].reason = l->file.reason;
	if (!l->file.module)
		return FATHOM_OK;
	if (!fathom_bias_of_mapping(image_of(s, i), &s->maps, i, s->process->place.page,
				    &s->of[i].bias) ||
	    !holds(s, i, m->start, m->start) || !holds(s, i, m->end - 1, m->end - 1))
		s->of[i].reason = FATHOM_REASON_NO_SYMBOLS;
	return FATHOM_OK;
}

/* Whether mappings @a and @b are of one module. */
static bool is_one_module(const struct session_maps *s, size_t a, size_t b)
{
	return !s->of[a].reason && !s->of[b].reason && s->of[a].bias == s->of[b].bias &&
	       fathom_mapping_same_file(&s->maps.items[a], &s->maps.items[b]);
}

/* The nearest mapping of a file before @at, or behind it, if all between is mapped; maps.n: none.
 */
static size_t neighbour(const struct session_maps *s, size_t at, bool behind)
{
	const struct fathom_mapping *m = s->maps.items;
	size_t i = at;

	do {
		if (behind ? i + 1 == s->maps.n || m[i].end != m[i + 1].start
			   : !i || m[i - 1].end != m[i].start)
			return s->maps.n;
		i += behind ? 1 : (size_t)-1;
	} while (!m[i].inode);
	return i;
}

/*
 * Memory without a file belongs to a module when it goes on with a segment of it: as .bss behind
 * .data, or as code that was copied to huge pages, with the module's own mappings around it.
 */
static fathom_err find_neighbour(struct session_maps *s, size_t at, uint64_t avma, size_t *ret)
{
	const size_t before = neighbour(s, at, false);
	const size_t behind = neighbour(s, at, true);

	if (before < s->maps.n)
		FATHOM_TRY(look_up(s, before));
	if (behind < s->maps.n)
		FATHOM_TRY(look_up(s, behind));
	if (before < s->maps.n && holds(s, before, s->maps.items[before].end - 1, avma))
		*ret = before;
	else if (behind < s->maps.n && holds(s, behind, s->maps.items[behind].start, avma))
		*ret = behind;
	else if (before < s->maps.n && behind < s->maps.n && is_one_module(s, before, behind) &&
		 fathom_bias_covers(image_of(s, before), s->of[before].bias, avma))
		*ret = before;
	return FATHOM_OK;
}

/*
 * The mapping, of the file of a module, that says what is at @avma; maps.n when there is none,
 * because of *@ret_reason.
 */
static fathom_err find_mapping(struct session_maps *s, uint64_t avma, size_t *ret,
			       enum fathom_reason *ret_reason)
{
	const size_t at = fathom_maps_at(&s->maps, avma);

	*ret = s->maps.n;
	*ret_reason = FATHOM_REASON_UNMAPPED;
	if (at == s->maps.n)
		return FATHOM_OK;
	FATHOM_TRY(look_up(s, at));
	*ret_reason = s->of[at].reason;
	if (holds(s, at, avma, avma))
		*ret = at;
	else if (!s->maps.items[at].inode && s->of[at].reason == FATHOM_REASON_NO_FILE)
		return find_neighbour(s, at, avma, ret);
	return FATHOM_OK;
}

static void answer_without_module(struct fathom_answer *a, uint64_t address,
				  enum fathom_reason reason)
{
	*a = (struct fathom_answer){ .address = address,
				     .symbol = FATHOM_NONE,
				     .symbol_file = FATHOM_NONE,
				     .frame = FATHOM_NONE,
				     .module = FATHOM_NO_MODULE,
				     .reason = (uint8_t)reason };
}

/* Keys the addresses that are in a module by the mapping that says so; answers the others. */
static fathom_err find_mappings(struct session_maps *s, uint32_t flags, const uint64_t *addresses,
				size_t n, struct fathom_answers *answers,
				struct fathom_keyed *keyed, size_t *ret_n)
{
	size_t n_keyed = 0;

	for (size_t i = 0; i < n; i++) {
		const uint64_t avma = fathom_looked_up(addresses[i], flags);
		enum fathom_reason reason;
		size_t at;

		FATHOM_TRY(find_mapping(s, avma, &at, &reason));
		if (at == s->maps.n)
			answer_without_module(&answers->answers[i], addresses[i], reason);
		else
			keyed[n_keyed++] = (struct fathom_keyed){ at, i };
	}
	*ret_n = n_keyed;
	return FATHOM_OK;
}

static fathom_err answer_shares(struct session_maps *s,
				const struct fathom_symbolize_options *options,
				const uint64_t *addresses, const struct fathom_keyed *keyed,
				size_t n, uint32_t *places, struct fathom_answers *answers)
{
	struct fathom_share share = { .addresses = addresses };

	for (size_t i = 0; i < n; i++)
		places[i] = (uint32_t)keyed[i].value;
	for (size_t i = 0; i < n; i += share.n) {
		const struct fathom_process_file *f = &s->of[keyed[i].key].loaded->file;

		share.module = f->module;
		share.places = places + i;
		share.bias = s->of[keyed[i].key].bias;
		share.n = 1;
		while (i + share.n < n && is_one_module(s, keyed[i].key, keyed[i + share.n].key))
			share.n++;
		FATHOM_TRY(fathom_answers_add_module(answers, f->name, f->module->main->build_id,
						     &share.number));
		FATHOM_TRY(fathom_symbolize_share(&share, options, answers));
	}
	return FATHOM_OK;
}

fathom_err fathom_process_symbolize(struct fathom_process *p,
				    const struct fathom_symbolize_options *options,
				    const uint64_t *addresses, size_t n,
				    struct fathom_answers *answers, struct fathom_errinfo *reterr)
{
	struct fathom_keyed *keyed = malloc((2 * n + 1) * sizeof *keyed);
	uint32_t *places = malloc((n + 1) * sizeof *places);
	struct session_maps s;
	size_t n_keyed = 0;
	fathom_err err = keyed && places ? FATHOM_OK : FATHOM_E_MEMORY;

	if (err)
		(void)fathom_fail(reterr, err, "", 0, "out of memory");
	else
		err = begin(p, &s, reterr);
	if (!err) {
		err = find_mappings(&s, options->flags, addresses, n, answers, keyed, &n_keyed);
		if (!err) {
			fathom_sort_keyed(keyed, keyed + n_keyed, n_keyed);
			err = answer_shares(&s, options, addresses, keyed, n_keyed, places,
					    answers);
		}
		if (err)
			(void)fathom_fail(reterr, err, "", 0, fathom_err_name(err));
		end(&s);
	}
	free(keyed);
	free(places);
	return err;
}

bool fathom_process_find_symbol(struct fathom_process *p, const char *name, uint64_t *ret_avma)
{
	struct session_maps s;
	bool found = false;

	if (begin(p, &s, NULL))
		return false;
	for (size_t i = 0; i < s.maps.n && !found; i++) {
		uint64_t svma;

		if (look_up(&s, i) || s.of[i].reason ||
		    (i && fathom_mapping_same_file(&s.maps.items[i], &s.maps.items[i - 1])))
			continue;
		found = fathom_symbols_find(&s.of[i].loaded->file.module->symbols, name, &svma);
		if (found)
			*ret_avma = svma + s.of[i].bias;
	}
	end(&s);
	return found;
}

void fathom_process_each_module(struct fathom_process *p,
				void (*fn)(struct fathom_module *m, void *data), void *data)
{
	struct loaded *last;

	/* Whatever is put into the list meanwhile comes before the first. */
	pthread_mutex_lock(&p->lock);
	last = p->list;
	for (struct loaded *l = last; l; l = l->next)
		l->users++;
	pthread_mutex_unlock(&p->lock);
	/* No file that is in use leaves the list, and so none is passed by. */
	for (struct loaded *l = last; l; l = l->next)
		if (l->file.module)
			fn(l->file.module, data);
	pthread_mutex_lock(&p->lock);
	for (struct loaded *l = last; l; l = l->next)
		l->users--;
	pthread_mutex_unlock(&p->lock);
}
