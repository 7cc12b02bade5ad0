/* SPDX-License-Identifier: MIT */
#include "host/base/fs_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "host/base/array.h"
#include "host/base/clock.h"
#include "host/base/context.h"
#include "host/base/path.h"
#include "host/base/fs_probe_helper.h"

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20 /* Linux 5.12 */
#endif

#define NS_PER_MS INT64_C(1000000)

/* The list of mounts is read again when it is older. */
#define MOUNTS_STAY_NS (1000 * NS_PER_MS)

/* The period of the waiting budget, and how long a silent server is not asked again. */
#define WINDOW_NS (60000 * NS_PER_MS)

/* A wait gets this part of the budget when all of it was used up. */
#define REST 6

/* Most time that is added because the helper got no processor. */
#define STARVED_NS (400 * NS_PER_MS)

struct mount {
	uint64_t device; /* major << 32 | minor */
	uint64_t id;
	char *point; /* if hangs */
	bool hangs;  /* its server may not answer */
	bool is_foreign;
};

struct mounts {
	FATHOM_ARRAY_OF(struct mount);
};

/* A place that did not answer: a device, or a directory and all below it. */
struct silence {
	uint64_t device;
	char *path; /* NULL: all of device */
	int64_t since_ns;
};

struct silences {
	FATHOM_ARRAY_OF(struct silence);
};

struct pids {
	FATHOM_ARRAY_OF(pid_t);
};

struct fathom_fs_probe {
	int64_t timeout_ns;
	pthread_mutex_t lock; /* guards what follows; never held while a server is waited for */
	struct mounts mounts; /* sorted by device */
	int64_t read_ns;      /* when our own mounts were read, or 0 */
	size_t n_hanging;
	uint64_t shared_memory; /* device of memfd_create(2), which has no mount; 0 if unknown */
	struct silences dead;
	int64_t window_ns; /* start of the waiting budget's period */
	int64_t waited_ns;
	struct fathom_helper idle; /* a helper without work */
	pid_t owner;               /* parent of the idle helper: the program may fork */
	struct pids left;          /* helpers that are stuck */
};

/* Returns whether such a file system's files are a server's, a daemon's or another machine's. */
static bool is_served(const char *type)
{
	static const char *const types[] = {
		"9p",    "acfs",   "afs",      "autofs", "beegfs", "ceph",  "cifs",
		"coda",  "davfs",  "gfs2",     "gpfs",   "lustre", "ncpfs", "nfs",
		"nfs4",  "ocfs2",  "orangefs", "panfs",  "prl_fs", "pvfs2", "smb3",
		"smbfs", "vboxsf", "virtiofs", "vmhgfs", "wekafs",
	};

	/* fuse, fuse.sshfs, fuseblk */
	if (strncmp(type, "fuse", 4) == 0 && strcmp(type, "fusectl") != 0)
		return true;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strcmp(type, types[i]) == 0)
			return true;
	return false;
}

struct fathom_fs_probe *fathom_fs_probe_create(uint32_t timeout_ms)
{
	struct fathom_fs_probe *r = calloc(1, sizeof *r);

	if (!r)
		return NULL;
	r->timeout_ns = timeout_ms * NS_PER_MS;
	pthread_mutex_init(&r->lock, NULL);
	r->idle.socket = -1;
	return r;
}

/* Removes our own mounts or, if @foreign, the others. */
static void forget_mounts(struct fathom_fs_probe *r, bool foreign)
{
	struct mount *m = r->mounts.items;
	size_t n = 0;

	for (size_t i = 0; i < r->mounts.n; i++)
		if (m[i].is_foreign == foreign)
			free(m[i].point);
		else
			m[n++] = m[i];
	r->mounts.n = n;
}

/* Reaps helpers that were stuck and have ended since. */
static void collect_left(struct fathom_fs_probe *r)
{
	pid_t *left = r->left.items;
	size_t n = 0;

	for (size_t i = 0; i < r->left.n; i++)
		if (!fathom_helper_has_ended(left[i]))
			left[n++] = left[i];
	r->left.n = n;
}

void fathom_fs_probe_destroy(struct fathom_fs_probe *r)
{
	struct silence *s;

	if (!r)
		return;
	forget_mounts(r, false);
	forget_mounts(r, true);
	s = r->dead.items;
	for (size_t i = 0; i < r->dead.n; i++)
		free(s[i].path);
	fathom_helper_end(&r->idle);
	collect_left(r);
	fathom_array_free(&r->mounts);
	fathom_array_free(&r->dead);
	fathom_array_free(&r->left);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* The list of mounts: /proc/PID/mountinfo (proc_pid_mountinfo(5)). */

/* Replaces the octal escapes of blanks and the like. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
			*to++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/* "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG]... - TYPE SOURCE OPTIONS" */
static bool read_mount(char *line, struct mount *ret)
{
	char *type = strstr(line, " - ");
	char *at = line;
	uint64_t major;

	ret->id = strtoull(at, &at, 10);
	(void)strtoull(at, &at, 10);
	major = strtoull(at, &at, 10);
	if (!type || *at != ':')
		return false;
	ret->device = major << 32 | strtoull(at + 1, &at, 10);
	type += strlen(" - ");
	type[strcspn(type, " \n")] = '\0';
	ret->hangs = is_served(type);
	ret->point = NULL;
	/* Skips the root. */
	at = *at ? strchr(at + 1, ' ') : NULL;
	if (ret->hangs && at) {
		at[1 + strcspn(at + 1, " ")] = '\0';
		unescape(at + 1);
		ret->point = strdup(at + 1);
	}
	return true;
}

static int compare_devices(const void *a, const void *b)
{
	const struct mount *x = a;
	const struct mount *y = b;

	return u64_compare(x->device, y->device);
}

/* More mounts of a namespace than the kernel allows by default. */
#define MOST_MOUNTS 1000000

#define LINES_AT_ONCE ((size_t)64 << 10)

static void add_mounts(struct fathom_fs_probe *r, const char *mountinfo, bool foreign)
{
	FILE *file = fopen(mountinfo, "re");
	struct mount *m;
	char *line = NULL;
	size_t cap = 0;

	if (!file)
		return;
	(void)setvbuf(file, NULL, _IOFBF, LINES_AT_ONCE);
	while (r->mounts.n < MOST_MOUNTS && getline(&line, &cap, file) > 0) {
		if (!fathom_array_room(&r->mounts, 1))
			break;
		m = r->mounts.items + r->mounts.n;
		if (!read_mount(line, m))
			continue;
		m->is_foreign = foreign;
		r->mounts.n++;
	}
	free(line);
	(void)fclose(file);
	m = r->mounts.items;
	if (r->mounts.n)
		qsort(m, r->mounts.n, sizeof *m, compare_devices);
	r->n_hanging = 0;
	for (size_t i = 0; i < r->mounts.n; i++)
		r->n_hanging += m[i].hangs;
}

/* Reads our own mounts again if the list is old. */
static void refresh(struct fathom_fs_probe *r)
{
	const int64_t now = fathom_now_ns();

	if (r->read_ns && now - r->read_ns < MOUNTS_STAY_NS)
		return;
	forget_mounts(r, false);
	add_mounts(r, "/proc/self/mountinfo", false);
	r->read_ns = now;
}

void fathom_fs_probe_add_mounts(struct fathom_fs_probe *r, const char *mountinfo)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	forget_mounts(r, true);
	add_mounts(r, mountinfo, true);
	pthread_mutex_unlock(&r->lock);
}

/* Returns a mount of @device, or NULL. */
static const struct mount *find_device(const struct fathom_fs_probe *r, uint64_t device)
{
	const struct mount wanted = { .device = device };

	return r->mounts.n ? bsearch(&wanted, r->mounts.items, r->mounts.n, sizeof wanted,
				     compare_devices)
			   : NULL;
}

static const struct mount *find_id(const struct fathom_fs_probe *r, uint64_t id)
{
	const struct mount *m = r->mounts.items;

	for (size_t i = 0; i < r->mounts.n; i++)
		if (m[i].id == id)
			return &m[i];
	return NULL;
}

/* Returns whether the absolute @path is @prefix or below it. */
static bool is_below(const char *path, const char *prefix)
{
	const size_t size = strlen(prefix);

	return strncmp(path, prefix, size) == 0 &&
	       (!path[size] || path[size] == '/' || (size && prefix[size - 1] == '/'));
}

/* Returns the innermost served mount that @path, taken literally, is below, or NULL. */
static const struct mount *find_point(const struct fathom_fs_probe *r, const char *path)
{
	const struct mount *m = r->mounts.items;
	const struct mount *found = NULL;

	for (size_t i = 0; i < r->mounts.n; i++)
		if (m[i].point && !m[i].is_foreign && is_below(path, m[i].point) &&
		    (!found || strlen(m[i].point) >= strlen(found->point)))
			found = &m[i];
	return found;
}

/* Silences: places that did not answer. */

/* Forgets silences that are old: a server may answer again. */
static void forget_silence(struct fathom_fs_probe *r)
{
	const int64_t now = fathom_now_ns();
	struct silence *s = r->dead.items;
	size_t n = 0;

	for (size_t i = 0; i < r->dead.n; i++)
		if (now - s[i].since_ns > WINDOW_NS)
			free(s[i].path);
		else
			s[n++] = s[i];
	r->dead.n = n;
}

/* Returns whether @device, or a directory above @path, is silent; 0 and NULL if unknown. */
static bool is_dead(struct fathom_fs_probe *r, uint64_t device, const char *path)
{
	const struct silence *s = r->dead.items;

	forget_silence(r);
	for (size_t i = 0; i < r->dead.n; i++)
		if (s[i].path ? path && is_below(path, s[i].path) : s[i].device == device)
			return true;
	return false;
}

/* Marks @device or, if that is 0, the directory of the first @size bytes of @path as silent. */
static void mark_dead(struct fathom_fs_probe *r, uint64_t device, const char *path, size_t size)
{
	struct silence s = { .device = device, .since_ns = fathom_now_ns() };

	if (!device)
		s.path = strndup(path, size);
	pthread_mutex_lock(&r->lock);
	if ((device || s.path) && !is_dead(r, device, s.path) && fathom_array_room(&r->dead, 1))
		r->dead.items[r->dead.n++] = s;
	else
		free(s.path);
	pthread_mutex_unlock(&r->lock);
}

/* Asking the helper. */

/* Returns the deadline of a wait that begins now. */
static int64_t begin_wait(struct fathom_fs_probe *r)
{
	const int64_t now = fathom_now_ns();
	int64_t left;

	pthread_mutex_lock(&r->lock);
	if (now - r->window_ns > WINDOW_NS) {
		r->window_ns = now;
		r->waited_ns = 0;
	}
	left = r->timeout_ns - r->waited_ns;
	pthread_mutex_unlock(&r->lock);
	return now + (left > r->timeout_ns / REST ? left : r->timeout_ns / REST);
}

/*
 * Waits for a packet. Returns its size, 0 if the helper has ended, or -1 if none came in time. A
 * helper that only waits for a processor, on a busy machine, gets up to STARVED_NS more.
 */
static ssize_t receive(const struct fathom_helper *h, int64_t deadline_ns, void *to, size_t size)
{
	const int64_t last_ns = deadline_ns + STARVED_NS;
	struct pollfd answer = { .fd = h->socket, .events = POLLIN };
	ssize_t got = -1;
	int ready;

	for (;;) {
		const int64_t left = deadline_ns - fathom_now_ns();

		ready = poll(&answer, 1, left > 0 ? (int)(left / NS_PER_MS) + 1 : 0);
		if (ready < 0 && errno == EINTR)
			continue;
		if (ready != 0 || deadline_ns >= last_ns || !fathom_helper_is_running(h))
			break;
		deadline_ns += STARVED_NS / 10;
	}
	if (ready > 0)
		do
			got = recv(h->socket, to, size, 0);
		while (got < 0 && errno == EINTR);
	return got;
}

static bool send_question(const struct fathom_helper *h, const void *question, size_t size)
{
	return h->socket >= 0 && send(h->socket, question, size, MSG_NOSIGNAL) == (ssize_t)size;
}

/* Sends @question to a helper; false if there can be none. */
static bool ask_helper(struct fathom_fs_probe *r, const void *question, size_t size,
		       struct fathom_helper *ret)
{
	bool foreign;

	pthread_mutex_lock(&r->lock);
	*ret = r->idle;
	r->idle.socket = -1;
	collect_left(r);
	foreign = r->owner != getpid();
	r->owner = getpid();
	pthread_mutex_unlock(&r->lock);
	if (foreign)
		fathom_helper_end(ret);
	if (send_question(ret, question, size))
		return true;
	/* The idle helper ends when it had no work for a second. */
	fathom_helper_end(ret);
	if (!fathom_helper_start(ret))
		return false;
	if (send_question(ret, question, size))
		return true;
	fathom_helper_end(ret);
	return false;
}

/* Abandons the helper, which is stuck. */
static void leave(struct fathom_fs_probe *r, struct fathom_helper *h, int64_t began_ns)
{
	(void)close(h->socket);
	pthread_mutex_lock(&r->lock);
	r->waited_ns += fathom_now_ns() - began_ns;
	if (fathom_array_room(&r->left, 1))
		r->left.items[r->left.n++] = h->pid;
	pthread_mutex_unlock(&r->lock);
}

/* Keeps the helper, which has answered, as the idle one, unless there is one or it has ended. */
static void give_back(struct fathom_fs_probe *r, struct fathom_helper *h, bool ended)
{
	pthread_mutex_lock(&r->lock);
	if (!ended && r->idle.socket < 0) {
		r->idle = *h;
		h->socket = -1;
	}
	pthread_mutex_unlock(&r->lock);
	fathom_helper_end(h);
}

/* Ends a question to @h; @got is the last result of receive(). */
static void end_asking(struct fathom_fs_probe *r, struct fathom_helper *h, ssize_t got,
		       int64_t began_ns)
{
	if (got < 0)
		leave(r, h, began_ns);
	else
		give_back(r, h, got == 0);
}

/*
 * Lets the helper touch @path or, if that fails, @other. Returns false if it did not answer in
 * time; *@ret_reached is how many directories on the way to @path it reached. Returns true if there
 * can be no helper, or it was killed: then nothing is known.
 */
static bool answers(struct fathom_fs_probe *r, const char *path, const char *other,
		    size_t *ret_reached)
{
	const int64_t began_ns = fathom_now_ns();
	const int64_t deadline_ns = begin_wait(r);
	char question[FATHOM_HELPER_QUESTION];
	const int size = snprintf(question, sizeof question, "p%s%c%s", path, 0, other);
	char answer = FATHOM_HELPER_ON;
	struct fathom_helper h;
	ssize_t got;

	*ret_reached = 0;
	if (size >= (int)sizeof question || strlen(path) >= PATH_MAX)
		return true;
	if (!ask_helper(r, question, (size_t)size + 1, &h))
		return true;
	while ((got = receive(&h, deadline_ns, &answer, 1)) == 1 && answer == FATHOM_HELPER_ON)
		++*ret_reached;
	end_asking(r, &h, got, began_ns);
	return got >= 0;
}

/* Formats @path for a process in another directory, the helper; false if it is too long. */
static bool format_for_helper(const char *path, struct fathom_path *ret)
{
	static const char self[] = "/proc/self/";
	char here[PATH_MAX];

	if (strncmp(path, self, sizeof self - 1) == 0)
		return fathom_path_format(ret, "/proc/%d/%s", (int)getpid(),
					  path + sizeof self - 1);
	if (path[0] == '/')
		return fathom_path_format(ret, "%s", path);
	return getcwd(here, sizeof here) && fathom_path_format(ret, "%s/%s", here, path);
}

/* Returns where directory number @reached + 1 of @path ends. */
static size_t end_of_stuck(const char *path, size_t reached)
{
	const char *slash = path;

	for (size_t i = 0; i <= reached && slash; i++)
		slash = strchr(slash + 1, '/');
	return slash ? (size_t)(slash - path) : strlen(path);
}

/* Facts that the kernel knows of a path without a question to a server. */
enum knowledge { KNOWN_LOCAL, KNOWN_SERVED, NOT_KNOWN };

/* Reads the id of the mount that @fd is on; false if it is unknown. */
static bool read_mount_id(int fd, uint64_t *ret)
{
	char path[64];
	char text[512];
	const char *at;
	ssize_t got = -1;
	int info;

	(void)snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	if (info >= 0) {
		got = read(info, text, sizeof text - 1);
		close(info);
	}
	text[got > 0 ? got : 0] = '\0';
	at = strstr(text, "mnt_id:");
	if (at)
		*ret = strtoull(at + strlen("mnt_id:"), NULL, 10);
	return at != NULL;
}

/* Resolves @path from the kernel's caches. *@ret_id is the mount that it leads to. */
static enum knowledge resolve(const char *path, uint64_t *ret_id)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED };
	bool known;
	int fd;

	/* Links in /proc are followed without a look-up by name: that may ask the server. */
	if (strncmp(path, "/proc/", 6) == 0)
		return NOT_KNOWN;
	fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ELOOP ||
				       errno == ENAMETOOLONG
			       ? KNOWN_LOCAL
			       : NOT_KNOWN;
	known = read_mount_id(fd, ret_id);
	close(fd);
	return known ? KNOWN_SERVED : NOT_KNOWN;
}

/* Facts about a path before a helper is asked. */
struct look {
	enum knowledge known;
	struct fathom_path whole; /* for the helper; not set if the path is local */
	uint64_t device;          /* of its mount; 0 if unknown */
	bool dead;                /* did not answer before */
};

static void look_at(struct fathom_fs_probe *r, const char *path, struct look *ret)
{
	const struct mount *m = NULL;
	uint64_t id = 0;

	ret->known = KNOWN_LOCAL;
	pthread_mutex_lock(&r->lock);
	refresh(r);
	if (r->n_hanging && format_for_helper(path, &ret->whole)) {
		ret->known = resolve(path, &id);
		m = ret->known == KNOWN_SERVED ? find_id(r, id) : NULL;
		if (ret->known == KNOWN_SERVED)
			ret->known = !m ? NOT_KNOWN : m->hangs ? KNOWN_SERVED : KNOWN_LOCAL;
		if (ret->known == NOT_KNOWN)
			m = find_point(r, ret->whole.text);
		ret->device = m ? m->device : 0;
		ret->dead = is_dead(r, ret->device, ret->whole.text);
	}
	pthread_mutex_unlock(&r->lock);
}

bool fathom_fs_probe_path(struct fathom_fs_probe *r, const char *path)
{
	struct look l;
	size_t reached;

	if (!r)
		return true;
	look_at(r, path, &l);
	if (l.known == KNOWN_LOCAL)
		return true;
	if (l.dead)
		return false;
	if (answers(r, l.whole.text, "", &reached))
		return true;
	mark_dead(r, l.device, l.whole.text, end_of_stuck(l.whole.text, reached));
	return false;
}

/* Returns the device of anonymous shared memory, which has no mount. */
static uint64_t find_shared_memory(void)
{
	const int fd = memfd_create("fathom", MFD_CLOEXEC);
	struct stat st;
	uint64_t device = 0;

	if (fd >= 0 && fstat(fd, &st) == 0)
		device = (uint64_t)major(st.st_dev) << 32 | minor(st.st_dev);
	if (fd >= 0)
		close(fd);
	return device;
}

bool fathom_fs_probe_hangs(struct fathom_fs_probe *r, uint64_t device)
{
	const struct mount *m;
	bool hangs;

	if (!r)
		return false;
	pthread_mutex_lock(&r->lock);
	refresh(r);
	m = find_device(r, device);
	if (!m && !r->shared_memory)
		r->shared_memory = find_shared_memory();
	hangs = m ? m->hangs : device != r->shared_memory;
	pthread_mutex_unlock(&r->lock);
	return hangs;
}

bool fathom_fs_probe_is_dead(struct fathom_fs_probe *r, uint64_t device)
{
	bool dead;

	if (!r)
		return false;
	pthread_mutex_lock(&r->lock);
	dead = is_dead(r, device, NULL);
	pthread_mutex_unlock(&r->lock);
	return dead;
}

bool fathom_fs_probe_device(struct fathom_fs_probe *r, uint64_t device, const char *path,
			    const char *other)
{
	struct fathom_path first;
	struct fathom_path second;
	size_t reached;

	if (!fathom_fs_probe_hangs(r, device))
		return true;
	if (fathom_fs_probe_is_dead(r, device))
		return false;
	if (!format_for_helper(path, &first) || !format_for_helper(other, &second) ||
	    answers(r, first.text, second.text, &reached))
		return true;
	mark_dead(r, device, NULL, 0);
	return false;
}

/* A helper's answer to a memory question. */
struct memory_answer {
	int32_t error;
	uint8_t bytes[FATHOM_HELPER_MEMORY];
};

/* Reads one piece; false if no answer came in time. */
static bool read_piece(struct fathom_fs_probe *r, const char *path, uint64_t avma, size_t size,
		       struct memory_answer *ret, size_t *ret_size)
{
	const uint64_t place[2] = { avma, size };
	const int64_t began_ns = fathom_now_ns();
	const int64_t deadline_ns = begin_wait(r);
	const size_t length = strlen(path) + 1;
	char question[FATHOM_HELPER_QUESTION];
	struct fathom_helper h;
	ssize_t got;

	question[0] = 'm';
	memcpy(question + 1, path, length);
	memcpy(question + 1 + length, place, sizeof place);
	*ret_size = 0;
	ret->error = EAGAIN;
	if (!ask_helper(r, question, 1 + length + sizeof place, &h))
		return true;
	got = receive(&h, deadline_ns, ret, sizeof *ret);
	end_asking(r, &h, got, began_ns);
	if (got > (ssize_t)sizeof ret->error)
		*ret_size = (size_t)got - sizeof ret->error;
	return got >= 0;
}

size_t fathom_fs_probe_read_memory(struct fathom_fs_probe *r, uint64_t device, const char *path,
				   uint64_t avma, void *to, size_t size)
{
	struct memory_answer *a = malloc(sizeof *a);
	struct fathom_path whole;
	size_t done = 0;
	size_t got = 1;

	errno = ETIMEDOUT;
	if (!a || !format_for_helper(path, &whole) || fathom_fs_probe_is_dead(r, device)) {
		free(a);
		return 0;
	}
	a->error = 0;
	while (done < size && got) {
		const size_t piece = size - done < sizeof a->bytes ? size - done : sizeof a->bytes;

		if (!read_piece(r, whole.text, avma + done, piece, a, &got)) {
			mark_dead(r, device, NULL, 0);
			a->error = ETIMEDOUT;
		}
		memcpy((uint8_t *)to + done, a->bytes, got);
		done += got;
	}
	errno = a->error;
	free(a);
	return done;
}
