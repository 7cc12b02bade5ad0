/* SPDX-License-Identifier: MIT */
#include "process.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../safe/base/sort.h"
#include "batch.h"
#include "bias.h"
#include "module.h"
#include "process_image.h"

/* A file that the process has mapped, open. */
struct loaded {
	struct loaded *next;
	char *name;                   /* as the map has it */
	uint64_t device;              /* the same */
	uint64_t inode;               /* 0: [vdso] */
	struct fathom_module *module; /* NULL: it cannot be had, because of */
	enum fathom_reason reason;
	unsigned users; /* batches under way */
	bool is_file;   /* the very file, which our mapping keeps from being another's */
	bool is_image;  /* put together from memory */
};

struct fathom_process {
	struct fathom *session;
	struct fathom_notes *notes;
	pthread_mutex_t lock; /* of the list and the numbers of users in it */
	struct loaded *list;
	char *exe;
	char root[64]; /* what stands before its paths: "/proc/PID/root", or "" when they are ours
			*/
	uint64_t page;
	int pid;
};

/* What the link @name of process @pid leads to; NULL when it cannot be known. */
static char *read_link(const char *pid, const char *name)
{
	char path[64];
	char target[PATH_MAX];
	ssize_t length;

	(void)snprintf(path, sizeof path, "/proc/%s/%s", pid, name);
	length = readlink(path, target, sizeof target);
	return length > 0 ? strndup(target, (size_t)length) : NULL;
}

/*
 * Whether the paths in the map are ours. The kernel prints them as its reader would have to write
 * them, also those of a process with another root directory; only what is mounted elsewhere it
 * prints as seen from there.
 */
static bool shares_mounts(const char *pid)
{
	char *theirs = read_link(pid, "ns/mnt");
	char *ours = read_link("self", "ns/mnt");
	const bool same = theirs && ours && strcmp(theirs, ours) == 0;

	free(theirs);
	free(ours);
	return same;
}

fathom_err fathom_process_open(struct fathom *session, int pid, struct fathom_notes *notes,
			       struct fathom_process **ret, struct fathom_errinfo *reterr)
{
	struct fathom_process *p = calloc(1, sizeof *p);
	struct fathom_maps maps;
	char number[16];
	fathom_err err;

	if (!p)
		return fathom_fail(reterr, FATHOM_E_MEMORY, "", 0, "out of memory");
	err = fathom_maps_read(pid, &maps, reterr);
	if (err) {
		free(p);
		return err;
	}
	fathom_maps_deinit(&maps);
	(void)snprintf(number, sizeof number, "%d", pid);
	p->session = session;
	p->notes = notes;
	p->pid = pid;
	p->page = (uint64_t)sysconf(_SC_PAGESIZE);
	p->exe = read_link(number, "exe");
	if (!shares_mounts(number))
		(void)snprintf(p->root, sizeof p->root, "/proc/%d/root", pid);
	pthread_mutex_init(&p->lock, NULL);
	*ret = p;
	return FATHOM_OK;
}

static void free_loaded(struct loaded *l)
{
	fathom_module_close(l->module);
	free(l->name);
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
	free(p->exe);
	free(p);
}

const char *fathom_process_exe(const struct fathom_process *p)
{
	return p->exe ? p->exe : "";
}

/* Whether a file, or what stands for one, may be behind the mapping. */
static bool may_be_file(const struct fathom_mapping *m)
{
	/* Opening a device may do something. */
	if (m->inode)
		return str_starts(m->name, "/") &&
		       (!str_starts(m->name, "/dev/") || str_starts(m->name, "/dev/shm/"));
	return str_is(m->name, "[vdso]");
}

/* One attempt to open the file of a mapping. */
struct attempt {
	struct fathom_process *process;
	const struct fathom_maps *maps;
	size_t i;
	struct loaded *loaded;
	struct fathom_object *object;    /* what was found */
	struct fathom_errinfo failed[3]; /* why the steps failed; err is 0 for one not taken */
};

static void fail_step(struct attempt *t, int step, fathom_err err, const char *why)
{
	(void)fathom_fail(&t->failed[step], err, "", 0, why);
	fathom_errinfo_set_file(&t->failed[step], t->loaded->name);
}

/* Step 1. */
static bool open_map_file(struct attempt *t)
{
	const struct fathom_mapping *m = &t->maps->items[t->i];
	char path[96];

	(void)snprintf(path, sizeof path, "/proc/%d/map_files/%llx-%llx", t->process->pid,
		       (unsigned long long)m->start, (unsigned long long)m->end);
	if (fathom_object_open(&t->process->session->memory, path, &t->object, &t->failed[0]))
		return false;
	t->loaded->is_file = true;
	return true;
}

/* Whether what was opened by its path is the file that is mapped. */
static bool is_mapped_file(struct attempt *t)
{
	const struct fathom_mapping *m = &t->maps->items[t->i];
	const struct fathom_file_id *id = &t->object->file->id;

	/* What stat() says of a file and what maps says of it may differ on layered file systems.
	 */
	t->loaded->is_file =
		id->inode == m->inode &&
		id->device == makedev((unsigned)(m->device >> 32), (unsigned)m->device);
	if (t->loaded->is_file)
		return true;
	switch (fathom_process_compare(t->process->pid, t->maps, t->i, t->object,
				       t->process->page)) {
	case FATHOM_SAME:
		return true;
	case FATHOM_DIFFERENT:
		fail_step(t, 1, FATHOM_E_MISMATCH, "is not the file that the process has mapped");
		return false;
	default:
		fail_step(t, 1, FATHOM_E_MISMATCH,
			  "may not be the file that the process has mapped");
		return false;
	}
}

/* Step 2. */
static bool open_path(struct attempt *t)
{
	char path[PATH_MAX];

	if (t->maps->items[t->i].deleted) {
		fail_step(t, 1, FATHOM_E_NOT_FOUND, "has been deleted or replaced");
		return false;
	}
	if (snprintf(path, sizeof path, "%s%s", t->process->root, t->loaded->name) >=
	    (int)sizeof path) {
		fail_step(t, 1, FATHOM_E_NOT_FOUND, "has a path too long to be opened");
		return false;
	}
	if (fathom_object_open(&t->process->session->memory, path, &t->object, &t->failed[1]))
		return false;
	if (is_mapped_file(t))
		return true;
	fathom_object_close(t->object);
	t->object = NULL;
	return false;
}

/* Step 3. */
static bool open_image(struct attempt *t)
{
	t->loaded->is_image =
		!fathom_process_image(&t->process->session->memory, t->process->pid, t->maps, t->i,
				      t->process->page, &t->object, &t->failed[2]);
	return t->loaded->is_image;
}

static bool is_denied(const struct fathom_errinfo *info)
{
	return info->err == FATHOM_E_OS && (info->os_errno == EPERM || info->os_errno == EACCES);
}

static enum fathom_reason reason_of(const struct attempt *t)
{
	enum fathom_reason reason = FATHOM_REASON_NO_FILE;

	for (int step = 0; step < 3; step++) {
		if (t->failed[step].err == FATHOM_E_FORMAT)
			return FATHOM_REASON_NO_SYMBOLS; /* mapped, but no program */
		if (t->failed[step].err == FATHOM_E_MISMATCH)
			reason = FATHOM_REASON_BUILD_ID_MISMATCH;
	}
	for (int step = 0; reason == FATHOM_REASON_NO_FILE && step < 3; step++)
		if (is_denied(&t->failed[step]))
			reason = FATHOM_REASON_NO_PERMISSION;
	return reason;
}

/* Opens the file of the mapping as a module. */
static fathom_err open_loaded(struct attempt *t)
{
	struct fathom_process *p = t->process;
	const bool named = t->maps->items[t->i].inode != 0;
	fathom_err err;

	if (!(named && (open_map_file(t) || open_path(t))) && !open_image(t)) {
		t->loaded->reason = reason_of(t);
		if (t->loaded->reason == FATHOM_REASON_NO_SYMBOLS)
			return FATHOM_OK;
	}
	/* Why the file was not had is told when it matters: when its image had to do, or nothing.
	 */
	for (int step = 0; step < 3; step++)
		if (t->failed[step].err && (t->loaded->is_image || !t->object))
			fathom_notes_add(p->notes, &t->failed[step]);
	if (!t->object)
		return FATHOM_OK;
	err = fathom_file_rename(t->object->file, p->root, t->loaded->name);
	if (err) {
		fathom_object_close(t->object);
		return err;
	}
	err = fathom_module_create(p->session, t->object, p->notes, &t->loaded->module);
	if (!err && !named)
		fathom_symbol_set_source(&t->loaded->module->symbols, FATHOM_SOURCE_VDSO);
	return err;
}

/* Whether @l is still what mapping @i has. */
static bool is_current(struct fathom_process *p, const struct fathom_maps *maps, size_t i,
		       const struct loaded *l)
{
	const struct fathom_mapping *m = &maps->items[i];

	if (l->device != m->device || l->inode != m->inode || m->name.size != strlen(l->name) ||
	    memcmp(l->name, m->name.data, m->name.size) != 0 || !l->module)
		return false;
	return l->is_file ||
	       fathom_process_compare(p->pid, maps, i, l->module->main, p->page) == FATHOM_SAME;
}

/* The file of mapping @i, open and in use, or NULL without memory. */
static struct loaded *acquire(struct fathom_process *p, const struct fathom_maps *maps, size_t i)
{
	const struct fathom_mapping *m = &maps->items[i];
	struct attempt t = { .process = p, .maps = maps, .i = i };
	struct loaded *l;

	pthread_mutex_lock(&p->lock);
	for (l = p->list; l && !is_current(p, maps, i, l); l = l->next)
		;
	if (!l) {
		l = calloc(1, sizeof *l);
		t.loaded = l;
		if (l)
			l->name = strndup(m->name.data, m->name.size);
		if (l) {
			l->device = m->device;
			l->inode = m->inode;
		}
		if (!l || !l->name || open_loaded(&t)) {
			if (l)
				free_loaded(l);
			l = NULL;
		} else {
			l->next = p->list;
			p->list = l;
		}
	}
	if (l)
		l->users++;
	pthread_mutex_unlock(&p->lock);
	return l;
}

/* Whether some mapping is of @l. */
static bool is_mapped(const struct loaded *l, const struct fathom_maps *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->items[i].inode == l->inode && maps->items[i].device == l->device &&
		    maps->items[i].name.size == strlen(l->name) &&
		    memcmp(l->name, maps->items[i].name.data, maps->items[i].name.size) == 0)
			return true;
	return false;
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
	FATHOM_TRY(fathom_maps_read(p->pid, &s->maps, reterr));
	s->of = calloc(s->maps.n, sizeof *s->of);
	if (!s->of) {
		fathom_maps_deinit(&s->maps);
		return fathom_fail(reterr, FATHOM_E_MEMORY, "", 0, "out of memory");
	}
	return FATHOM_OK;
}

/* Gives all files back, and closes those that the process no longer maps, or that were not had. */
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

		/* An image of a file is not compared: it is made again. */
		if (l->users ||
		    (l->module && !(l->is_image && l->inode) && is_mapped(l, &s->maps))) {
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

/* Finds the file of mapping @i, once. */
static fathom_err look_up(struct session_maps *s, size_t i)
{
	struct loaded *l;

	if (s->of[i].looked)
		return FATHOM_OK;
	s->of[i].looked = true;
	s->of[i].reason = FATHOM_REASON_NO_FILE;
	if (!may_be_file(&s->maps.items[i]))
		return FATHOM_OK;
	l = acquire(s->process, &s->maps, i);
	if (!l)
		return FATHOM_E_MEMORY;
	s->of[i].loaded = l;
	if (!l->module)
		s->of[i].reason = l->reason;
	else if (fathom_bias_of_mapping(&l->module->main->image, &s->maps, i, s->process->page,
					&s->of[i].bias))
		s->of[i].reason = FATHOM_REASON_NONE;
	return FATHOM_OK;
}

/* Whether mapping @i is of a file whose segments have memory at @avma, too. */
static bool reaches(const struct session_maps *s, size_t i, uint64_t avma)
{
	return !s->of[i].reason &&
	       fathom_bias_covers(&s->of[i].loaded->module->main->image, s->of[i].bias, avma);
}

/*
 * The mapping, of the file of a module, that says where @avma is: the one that holds it, or for
 * memory without a file (.bss, code that was copied to huge pages) a neighbour whose segments reach
 * there. maps.n when there is none, because of *@ret_reason.
 */
static fathom_err find_mapping(struct session_maps *s, uint64_t avma, size_t *ret,
			       enum fathom_reason *ret_reason)
{
	const size_t at = fathom_maps_at(&s->maps, avma);
	size_t i;

	*ret = s->maps.n;
	*ret_reason = FATHOM_REASON_UNMAPPED;
	if (at == s->maps.n)
		return FATHOM_OK;
	FATHOM_TRY(look_up(s, at));
	*ret_reason = s->of[at].reason;
	if (!s->of[at].reason)
		*ret = at;
	if (s->maps.items[at].inode || !s->of[at].reason)
		return FATHOM_OK;
	for (i = at; i && !s->maps.items[i - 1].inode; i--)
		;
	if (i) {
		FATHOM_TRY(look_up(s, i - 1));
		if (reaches(s, i - 1, avma))
			*ret = i - 1;
	}
	for (i = at + 1; i < s->maps.n && !s->maps.items[i].inode; i++)
		;
	if (*ret == s->maps.n && i < s->maps.n) {
		FATHOM_TRY(look_up(s, i));
		if (reaches(s, i, avma))
			*ret = i;
	}
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

/* Whether mappings @a and @b say the same of all addresses. */
static bool is_one_module(const struct session_maps *s, uint64_t a, uint64_t b)
{
	return s->of[a].loaded == s->of[b].loaded && s->of[a].bias == s->of[b].bias;
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
		struct loaded *l = s->of[keyed[i].key].loaded;

		share.module = l->module;
		share.places = places + i;
		share.bias = s->of[keyed[i].key].bias;
		share.n = 1;
		while (i + share.n < n && is_one_module(s, keyed[i].key, keyed[i + share.n].key))
			share.n++;
		FATHOM_TRY(fathom_answers_add_module(answers, l->name, l->module->main->build_id,
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
		found = fathom_symbols_find(&s.of[i].loaded->module->symbols, name, &svma);
		if (found)
			*ret_avma = svma + s.of[i].bias;
	}
	end(&s);
	return found;
}

void fathom_process_each_module(struct fathom_process *p,
				void (*fn)(struct fathom_module *m, void *data), void *data)
{
	pthread_mutex_lock(&p->lock);
	for (struct loaded *l = p->list; l; l = l->next)
		if (l->module)
			fn(l->module, data);
	pthread_mutex_unlock(&p->lock);
}
