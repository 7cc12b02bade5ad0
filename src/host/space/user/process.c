/* SPDX-License-Identifier: MIT */
/* Live processes: maps and memory through /proc (proc(5)). */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "host/file/file.h"
#include "host/file/process_status.h"
#include "host/space/user/hung_mappings.h"
#include "host/space/user/owner.h"
#include "safe/base/cursor.h"

struct process {
	struct fathom_space space;
	struct fathom_hung_mappings *hung;
	/* "/proc/self/fd/N", its open directory: safe against reuse of the pid */
	char dir[40];
	char *exe;
	int fd;                 /* of its directory */
	bool has_our_pid;       /* its pid is that of our namespace */
	_Atomic bool has_ended; /* its first thread has, as of the last reading of its map */
};

static const struct process *process_of(const struct fathom_space *s)
{
	return (const struct process *)s;
}

/* Returns the target of the link at @path; NULL on failure. */
static char *read_link_at(const char *path)
{
	char target[PATH_MAX];
	const ssize_t length = readlink(path, target, sizeof target);

	return length > 0 ? strndup(target, (size_t)length) : NULL;
}

/* Returns the target of the link @name below @dir; NULL on failure. */
static char *read_link(const char *dir, const char *name)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	return read_link_at(path);
}

static void drop_suffix(char *s, const char *suffix)
{
	const size_t length = strlen(s);
	const size_t size = strlen(suffix);

	if (length > size && strcmp(s + length - size, suffix) == 0)
		s[length - size] = '\0';
}

/*
 * Returns whether the paths in the map are valid for us. The kernel prints them from the reader's
 * root, even if the process has another root directory, but paths in another mount namespace from
 * that namespace's root.
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

/* Why the kernel refuses access to a process: the cause and its text. */
struct refusal {
	enum fathom_cause cause;
	const char *what;
};

/*
 * Finds why the kernel refuses access to the process (ptrace(2), "Ptrace access mode checking").
 * The /proc files of a process that is not dumpable belong to root, whoever owns the process
 * (proc_pid(5)).
 */
static struct refusal find_refusal(const struct process *p)
{
	const uid_t us = geteuid();
	struct fathom_jit_owner o;
	char path[PATH_MAX];
	struct stat st;

	(void)snprintf(path, sizeof path, "%s/maps", p->dir);
	/* hidepid=1 hides even that of other users' processes. */
	if (!fathom_space_read_owner(&p->space, &o))
		return (struct refusal){ FATHOM_CAUSE_OTHER_USER, "belongs to another user" };
	if (stat(path, &st) == 0 && st.st_uid != o.uid[1])
		return (struct refusal){ FATHOM_CAUSE_NOT_DUMPABLE,
					 "is not dumpable: not even its own user may look at it" };
	if (o.uid[0] != us || o.uid[1] != us || o.uid[2] != us)
		return (struct refusal){ FATHOM_CAUSE_OTHER_USER, "belongs to another user" };
	return (struct refusal){ FATHOM_CAUSE_MORE_RIGHTS,
				 "has rights that this user lacks, or a security module protects "
				 "it" };
}

/* Returns whether /proc shows our own process, so that its pids are of our namespace. */
static bool is_proc_ours(void)
{
	char *self = read_link("/proc", "self");
	const bool is_ours = self && strtol(self, NULL, 10) == getpid();

	free(self);
	return is_ours;
}

/* Reports why @path of process @pid, below /proc, is missing, as errno says. */
static fathom_err fail_to_find(int pid, const char *path, struct fathom_errinfo *reterr)
{
	const int number = errno;
	const bool is_there = kill(pid, 0) == 0 || errno == EPERM;

	errno = number;
	(void)fathom_fail_os(reterr, path);
	if (!reterr || (number != ENOENT && number != ESRCH))
		return FATHOM_E_OS;
	if (access("/proc/self", F_OK)) {
		reterr->cause = FATHOM_CAUSE_NO_PROC;
		reterr->what = "/proc is not mounted: processes are seen only there";
	} else if (is_there && is_proc_ours()) {
		reterr->cause = FATHOM_CAUSE_HIDDEN;
		reterr->what = "is there, but /proc does not show it to this user";
	}
	return FATHOM_E_OS;
}

/* Sets the file of @info to the usual name, below /proc/PID instead of @dir. */
static void set_name(const struct process *p, struct fathom_errinfo *info)
{
	char path[32];

	(void)snprintf(path, sizeof path, "/proc/%d/maps", p->space.target.pid);
	fathom_errinfo_set_file(info, path);
}

/*
 * Calls @fn with the directory of the process, then with those of its threads, until it returns
 * true. When the first thread has ended, the memory of the others is visible only through their
 * directories.
 */
static bool try_threads(const struct process *p, bool (*fn)(const char *dir, void *data),
			void *data)
{
	char path[PATH_MAX];
	struct dirent *entry;
	bool done = fn(p->dir, data);
	DIR *tasks;

	if (done)
		return true;
	(void)snprintf(path, sizeof path, "%s/task", p->dir);
	tasks = opendir(path);
	while (!done && tasks && (entry = readdir(tasks)) != NULL) {
		(void)snprintf(path, sizeof path, "%s/task/%s", p->dir, entry->d_name);
		done = entry->d_name[0] != '.' && fn(path, data);
	}
	if (tasks)
		closedir(tasks);
	return done;
}

/* Adds to @reterr why reading the map failed with @err. */
static void explain(const struct process *p, fathom_err err, struct fathom_errinfo *reterr)
{
	struct refusal r;

	const char *lack = NULL;

	set_name(p, reterr);
	if (reterr && err == FATHOM_E_NOT_FOUND)
		lack = fathom_status_lack(p->space.target.pid);
	if (lack)
		reterr->what = lack;
	if (!reterr || err != FATHOM_E_OS)
		return;
	errno = reterr->os_errno;
	if (errno == EACCES || errno == EPERM) {
		r = find_refusal(p);
		reterr->cause = r.cause;
		reterr->what = r.what;
	} else {
		char path[sizeof reterr->file];

		memcpy(path, reterr->file, sizeof path);
		(void)fail_to_find(p->space.target.pid, path, reterr);
		/* The process existed when it was opened. */
		if (!reterr->cause && (reterr->os_errno == ENOENT || reterr->os_errno == ESRCH)) {
			reterr->what = "the process has ended";
			reterr->os_errno = ESRCH;
		}
	}
}

struct map_reading {
	struct fathom_maps *ret; /* NULL: only check whether the map is readable */
	struct fathom_errinfo *reterr;
	fathom_err err; /* of the first directory, unless another was readable */
	unsigned tried; /* directories tried */
};

static bool read_map_below(const char *dir, void *data)
{
	struct map_reading *r = data;
	struct fathom_errinfo *reterr = r->tried ? NULL : r->reterr;
	char path[PATH_MAX];
	fathom_err err;

	(void)snprintf(path, sizeof path, "%s/maps", dir);
	err = r->ret ? fathom_maps_read(path, r->ret, reterr) : fathom_maps_check(path, reterr);
	if (!err || !r->tried)
		r->err = err;
	r->tried++;
	return err != FATHOM_E_NOT_FOUND;
}

/* Reads the map or, if @ret is NULL, only checks whether it is readable. */
static fathom_err read_map(const struct process *p, struct fathom_maps *ret,
			   struct fathom_errinfo *reterr)
{
	struct map_reading r = { .ret = ret, .reterr = reterr };

	(void)try_threads(p, read_map_below, &r);
	atomic_store(&((struct process *)(uintptr_t)p)->has_ended, !r.err && r.tried > 1);
	if (r.err)
		explain(p, r.err, reterr);
	return r.err;
}

/*
 * Strips the root of the process from the paths in @maps. In another mount namespace the kernel
 * prints paths from the namespace's root, and the process may have a different root there.
 */
static void drop_root(const struct process *p, struct fathom_maps *maps)
{
	char *root = p->space.root[0] ? read_link_at(p->space.root) : NULL;
	const uint32_t size = root && root[1] ? (uint32_t)strlen(root) : 0;

	for (size_t i = 0; size && i < maps->n; i++) {
		struct fathom_str *name = &maps->items[i].name;

		if (name->size > size && memcmp(name->data, root, size) == 0 &&
		    name->data[size] == '/') {
			name->data += size;
			name->size -= size;
		}
	}
	free(root);
}

static fathom_err read_maps(const struct fathom_space *s, struct fathom_maps *ret,
			    struct fathom_errinfo *reterr)
{
	FATHOM_TRY(read_map(process_of(s), ret, reterr));
	fathom_hung_mappings_note(process_of(s)->hung, ret);
	drop_root(process_of(s), ret);
	return FATHOM_OK;
}

static fathom_err query_maps(const struct fathom_space *s, const uint64_t *addresses, size_t n,
			     struct fathom_maps *ret)
{
	char path[PATH_MAX];

	/* Reading the whole map finds a thread with memory. */
	if (atomic_load(&process_of(s)->has_ended))
		return FATHOM_E_UNSUPPORTED;
	(void)snprintf(path, sizeof path, "%s/maps", process_of(s)->dir);
	FATHOM_TRY(fathom_maps_query(path, addresses, n, ret));
	/* If a file system may not answer, the whole map tells more. */
	for (size_t i = 0; i < ret->n; i++)
		if (fathom_hung_mappings_has(process_of(s)->hung, &ret->items[i])) {
			fathom_maps_deinit(ret);
			return FATHOM_E_UNSUPPORTED;
		}
	drop_root(process_of(s), ret);
	return FATHOM_OK;
}

struct memory_reading {
	uint64_t avma;
	uint8_t *to;
	size_t size;
	size_t done;
	int number; /* errno of the failure */
	int fd;     /* the open memory; -1: not open */
	bool gone;  /* the open memory is no program's any more */
};

static int open_memory_of(const char *dir)
{
	char path[PATH_MAX + sizeof "/mem"];

	(void)snprintf(path, sizeof path, "%s/mem", dir);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Reads the wanted bytes from @fd; returns false if the memory is gone. */
static bool read_memory_from(int fd, struct memory_reading *r)
{
	r->done += fathom_file_read_at(fd, r->avma + r->done, r->to + r->done, r->size - r->done);
	r->number = errno;
	/* Memory that is gone reads as 0 bytes without an error. */
	return r->done == r->size || r->number;
}

static bool read_memory_below(const char *dir, void *data)
{
	struct memory_reading *r = data;
	const int fd = open_memory_of(dir);
	bool is_there;

	if (fd < 0) {
		r->number = errno;
		return errno != ESRCH;
	}
	is_there = read_memory_from(fd, r);
	close(fd);
	return is_there;
}

/* Returns whether some memory may block; reads the map if that is unknown. */
static bool has_hung_mappings(const struct process *p)
{
	struct fathom_maps maps;

	if (!p->hung->reach)
		return false;
	if (!atomic_load(&p->hung->known) && !read_maps(&p->space, &maps, NULL))
		fathom_maps_deinit(&maps);
	return atomic_load(&p->hung->any);
}

/* Reads the remaining bytes of @r from memory that does not block. */
static void read_plain(const struct process *p, struct memory_reading *r)
{
	if (r->fd >= 0)
		r->gone = !read_memory_from(r->fd, r);
	else
		(void)try_threads(p, read_memory_below, r);
}

/* Lets a helper read from @h, the hazard with the next byte that @r wants. */
static void read_hazard(const struct process *p, const struct fathom_hung_mapping *h,
			struct memory_reading *r)
{
	const uint64_t from = r->avma + r->done;
	char path[sizeof p->dir + sizeof "/mem"];
	size_t left = r->size - r->done;

	if (left > h->end - from)
		left = (size_t)(h->end - from);
	(void)snprintf(path, sizeof path, "%s/mem", p->dir);
	r->done += fathom_fs_probe_read_memory(p->hung->reach, h->device, path, from,
					       r->to + r->done, left);
	r->number = errno;
}

/* Reads the bytes that @r wants: hazards through a helper, the rest directly. */
static void read_pieces(const struct process *p, struct memory_reading *r)
{
	const size_t size = r->size;
	size_t before;

	if (!has_hung_mappings(p)) {
		read_plain(p, r);
		return;
	}
	do {
		const uint64_t from = r->avma + r->done;
		const struct fathom_hung_mapping h = fathom_hung_mappings_next(p->hung, from);

		before = r->done;
		r->size = h.start > from && h.start - from < size - r->done
				  ? r->done + (size_t)(h.start - from)
				  : size;
		if (from >= h.start)
			read_hazard(p, &h, r);
		else
			read_plain(p, r);
	} while (r->done < size && r->done > before && !r->gone);
}

static size_t read_memory(const struct fathom_space *s, uint64_t avma, void *to, size_t size)
{
	struct memory_reading r = { .avma = avma, .to = to, .size = size, .fd = -1 };

	/* File offsets end at INT64_MAX, so no thread has more. */
	if (avma <= INT64_MAX)
		read_pieces(process_of(s), &r);
	errno = r.number;
	return r.done;
}

/* Returns whether the memory @fd is still a program's. */
static bool is_there(int fd)
{
	uint8_t byte;
	struct memory_reading r = { .to = &byte, .size = 1 };

	return read_memory_from(fd, &r);
}

static size_t read_open(const struct fathom_space *s, int memory, uint64_t avma, void *to,
			size_t size, bool *ret_gone)
{
	struct memory_reading r = { .avma = avma, .to = to, .size = size, .fd = memory };

	/* File offsets end at INT64_MAX, even if the memory is gone. */
	if (avma > INT64_MAX)
		return 0;
	read_pieces(process_of(s), &r);
	*ret_gone |= r.gone;
	errno = r.number;
	return r.done;
}

static bool open_memory_below(const char *dir, void *data)
{
	int *fd = data;

	*fd = open_memory_of(dir);
	if (*fd < 0)
		return errno != ESRCH;
	if (is_there(*fd))
		return true;
	close(*fd);
	*fd = -1;
	return false;
}

static int open_memory(const struct fathom_space *s)
{
	int fd = -1;

	(void)try_threads(process_of(s), open_memory_below, &fd);
	return fd;
}

/*
 * Reads by pid. If the process still exists afterwards, the memory was its own. Reads nothing if
 * the pid may be another process's here, or if some memory may block.
 */
static size_t read_each(const struct fathom_space *s, const struct fathom_reader_piece *pieces,
			size_t n, uint8_t *to)
{
	const struct process *p = process_of(s);
	struct iovec remote[FATHOM_READER_EACH];
	struct iovec local = { to, 0 };
	char path[sizeof p->dir + sizeof "/stat"];
	size_t i;
	ssize_t got;

	if (!p->has_our_pid || has_hung_mappings(p))
		return 0;
	for (i = 0; i < n; i++) {
		remote[i] = (struct iovec){ (void *)(uintptr_t)pieces[i].avma, pieces[i].size };
		local.iov_len += pieces[i].size;
	}
	got = process_vm_readv(p->space.target.pid, &local, 1, remote, n, 0);
	(void)snprintf(path, sizeof path, "%s/stat", p->dir);
	if (got <= 0 || access(path, F_OK))
		return 0;
	for (i = 0; i < n && (size_t)got >= pieces[i].size; i++)
		got -= (ssize_t)pieces[i].size;
	return i;
}

struct map_file {
	const struct fathom_mapping *mapping;
	char *path;
	size_t cap;
};

/* Formats the link to the file of a mapping below @dir; returns whether it exists. */
static bool format_link_below(const char *dir, void *data)
{
	static const char below[] = "/task/";
	const struct map_file *f = data;
	const char *task = strstr(dir, below);

	/* The links are in a thread's directory below /proc, not below task/. */
	if (snprintf(f->path, f->cap, "%s%s/map_files/%llx-%llx", task ? "/proc/" : dir,
		     task ? task + sizeof below - 1 : "", (unsigned long long)f->mapping->start,
		     (unsigned long long)f->mapping->end) >= (int)f->cap)
		return false;
	return !faccessat(AT_FDCWD, f->path, F_OK, AT_SYMLINK_NOFOLLOW);
}

/*
 * Formats the path to the link of mapping @m. When the first thread has ended, another has the
 * links. Its number may have been reused: the caller checks that the opened file is the mapped one.
 */
static bool format_map_file(const struct fathom_space *s, const struct fathom_mapping *m,
			    char *path, size_t cap)
{
	const struct process *p = process_of(s);
	struct map_file f = { m, path, cap };

	if (atomic_load(&p->has_ended))
		return try_threads(p, format_link_below, &f);
	return snprintf(path, cap, "%s/map_files/%llx-%llx", p->dir, (unsigned long long)m->start,
			(unsigned long long)m->end) < (int)cap;
}

static bool is_reachable(const struct fathom_space *s, const struct fathom_mapping *m)
{
	char very[PATH_MAX];
	char named[PATH_MAX];

	if (!fathom_hung_mappings_has(process_of(s)->hung, m) ||
	    !format_map_file(s, m, very, sizeof very) ||
	    snprintf(named, sizeof named, "%s%.*s", s->root, (int)m->name.size, m->name.data) >=
		    (int)sizeof named)
		return true;
	return fathom_fs_probe_device(process_of(s)->hung->reach, m->device, very, named);
}

struct path_formatting {
	const char *name;
	char *path;
	size_t cap;
	bool fits;
};

/* Formats the path below @dir; returns whether it exists. */
static bool format_below(const char *dir, void *data)
{
	struct path_formatting *f = data;

	f->fits = snprintf(f->path, f->cap, "%s/%s", dir, f->name) < (int)f->cap;
	/* If access is denied, the threads' directories will not help. */
	return !f->fits || !access(f->path, F_OK) || errno != ENOENT;
}

/* Formats the path of @name below the directory of a thread: an ended first one has no root. */
static bool format_proc_path(const struct fathom_space *s, const char *name, char *path, size_t cap)
{
	struct path_formatting f = { .name = name, .path = path, .cap = cap };

	(void)try_threads(process_of(s), format_below, &f);
	return f.fits;
}

/* Returns AT_ENTRY from @size bytes of pairs of @word-byte words; 0 if they are malformed. */
static uint64_t find_entry(const uint8_t *auxv, size_t size, uint8_t word)
{
	struct fathom_cursor c = cur_init((struct fathom_bytes){ auxv, size }, false);
	uint64_t entry = 0;

	while (cur_left(&c)) {
		const uint64_t type = cur_uint(&c, word);
		const uint64_t value = cur_uint(&c, word);

		if (type == AT_NULL)
			return cur_ok(&c) ? entry : 0;
		if (type == AT_ENTRY)
			entry = value;
	}
	return 0;
}

struct small_reading {
	const char *name;
	void *to;
	size_t size;
	size_t got;
};

/* Reads the start of a file below @dir; returns false if it is empty, as of an ended thread. */
static bool read_small_below(const char *dir, void *data)
{
	struct small_reading *r = data;
	char path[PATH_MAX + 16];
	ssize_t got = -1;
	int fd;

	(void)snprintf(path, sizeof path, "%s/%s", dir, r->name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = read(fd, r->to, r->size);
		close(fd);
	}
	r->got = got > 0 ? (size_t)got : 0;
	return r->got != 0;
}

/* Reads up to @size bytes of the file @name; returns how many. */
static size_t read_small(const struct process *p, const char *name, void *to, size_t size)
{
	struct small_reading r = { .name = name, .to = to, .size = size };

	(void)try_threads(p, read_small_below, &r);
	return r.got;
}

static void describe(const struct fathom_space *s, struct fathom_space_facts *ret)
{
	uint8_t auxv[1024];
	const size_t size = read_small(process_of(s), "auxv", auxv, sizeof auxv);
	size_t length;

	/* A line of at most 15 bytes. */
	length = read_small(process_of(s), "comm", ret->command, sizeof ret->command);
	if (length)
		ret->command[length - 1] = '\0';
	ret->entry = find_entry(auxv, size, 8);
	if (!ret->entry)
		ret->entry = find_entry(auxv, size, 4);
}

static void process_free(struct fathom_space *s)
{
	struct process *p = (struct process *)s;

	if (p->fd >= 0)
		close(p->fd);
	fathom_hung_mappings_deinit(p->hung);
	free(p->hung);
	free(p->exe);
	free(p);
}

static const struct fathom_space_ops process_ops = {
	.read_maps = read_maps,
	.query_maps = query_maps,
	.read = read_memory,
	.open_memory = open_memory,
	.read_open = read_open,
	.read_each = read_each,
	.format_very_path = format_map_file,
	.is_reachable = is_reachable,
	.format_proc_path = format_proc_path,
	.describe = describe,
	.free = process_free,
};

static void describe_target(const struct fathom_target *t, struct fathom_target_info *ret)
{
	const char *exe = process_of((const struct fathom_space *)t)->exe;

	ret->path = exe ? exe : "";
}

static bool live(struct fathom_view *v, struct fathom_live *ret)
{
	const struct process *p = process_of((const struct fathom_space *)v->target);

	*ret = (struct fathom_live){ .pid = is_proc_ours() ? v->target->pid : 0,
				     .proc = p->fd,
				     .maps = fathom_space_maps(v) };
	return true;
}

static const struct fathom_target_ops target_ops = { FATHOM_SPACE_TARGET_OPS, .live = live,
						     .describe = describe_target };

/* Registers the file systems that only the process sees. */
static void add_mounts(const struct process *p, const char *dir)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof path, "%s/mountinfo", dir);
	fathom_fs_probe_add_mounts(p->hung->reach, path);
}

/* Reads the program and the root from the links below @dir; an ended thread has none. */
static bool find_links(const char *dir, void *data)
{
	struct process *p = data;

	p->exe = read_link(dir, "exe");
	if (!p->exe)
		return false;
	drop_suffix(p->exe, " (deleted)");
	if (!shares_mounts(dir)) {
		(void)snprintf(p->space.root, sizeof p->space.root, "%s/root", dir);
		add_mounts(p, dir);
	}
	return true;
}

/* Finds the process; the caller closes it, also on failure. */
static fathom_err find_process(struct process *p, struct fathom_errinfo *reterr)
{
	char path[32];

	(void)snprintf(path, sizeof path, "/proc/%d", p->space.target.pid);
	p->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (p->fd < 0)
		return fail_to_find(p->space.target.pid, path, reterr);
	(void)snprintf(p->dir, sizeof p->dir, "/proc/self/fd/%d", p->fd);
	p->has_our_pid = is_proc_ours();
	FATHOM_TRY(read_map(p, NULL, reterr));
	(void)try_threads(p, find_links, p);
	return FATHOM_OK;
}

/* Makes a process, not yet looked for; returns NULL if out of memory. */
static struct process *process_new(struct fathom_search_paths *paths, int pid)
{
	struct process *p = calloc(1, sizeof *p);

	if (p)
		p->hung = malloc(sizeof *p->hung);
	if (!p || !p->hung) {
		free(p);
		return NULL;
	}
	fathom_hung_mappings_init(p->hung, paths->session->memory.reach);
	fathom_space_init(&p->space, &process_ops, &target_ops, paths, FATHOM_TARGET_PROCESS);
	p->space.target.is_live = true;
	p->space.target.pid = pid;
	return p;
}

static fathom_err open_process(struct fathom_search_paths *paths, int pid,
			       struct fathom_target **ret, struct fathom_errinfo *reterr)
{
	struct process *p = process_new(paths, pid);
	fathom_err err;

	if (!p)
		return fathom_fail_memory(reterr);
	err = find_process(p, reterr);
	if (err)
		fathom_target_release(&p->space.target);
	else
		*ret = &p->space.target;
	return err;
}

fathom_err fathom_target_open_process(struct fathom *session, int pid,
				      const struct fathom_target_options *options,
				      struct fathom_target **ret_target,
				      struct fathom_errinfo *reterr)
{
	struct fathom_search_paths *paths;
	fathom_err err;

	FATHOM_TRY(fathom_search_paths_create(session, options, &paths, reterr));
	err = open_process(paths, pid, ret_target, reterr);
	fathom_search_paths_release(paths);
	return err;
}
