/* SPDX-License-Identifier: MIT */
/*
 * A store in a directory, which many hosts may share (NFS). A file gets its name when all of it is
 * there; there are no locks. Of two writers at once, whichever has the more complete index wins
 * where the file system can exchange two names; elsewhere the last one may win.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/base/clock.h"
#include "host/base/path.h"
#include "host/file/file.h"
#include "host/store/backend.h"
#include "safe/base/hex.h"

/* Of renameat2(2), which musl lacks. */
#define EXCHANGE 2u

/* How often a writer looks again what is there, while others write. */
#define TRIES 16

/* Bytes that are written before the deadline is looked at. */
#define STRETCH ((uint64_t)8 << 20)

#define SUFFIX ".fathom"

struct directory {
	struct fathom_store_backend b; /* first */
};

static fathom_err fail_late(const struct fathom_store_backend *b, const char *key,
			    struct fathom_errinfo *reterr)
{
	return fathom_store_fail(b, key, FATHOM_E_TIMEOUT, "the store did not answer in time",
				 reterr);
}

/* Makes the path of @key; fails if the file system does not answer. */
static fathom_err path_of(const struct fathom_store_backend *b, const char *key,
			  int64_t deadline_ns, struct fathom_path *ret,
			  struct fathom_errinfo *reterr)
{
	if (!fathom_path_format(ret, "%s/%s", b->place, key))
		return fathom_store_fail(b, key, FATHOM_E_NOT_FOUND, "the path is too long",
					 reterr);
	if (fathom_now_ns() >= deadline_ns)
		return fail_late(b, key, reterr);
	return fathom_file_reach(&b->session->memory, b->place, reterr);
}

static fathom_err read_at(const char *path, uint64_t off, void *to, size_t size, size_t *ret_size,
			  struct fathom_errinfo *reterr)
{
	const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	fathom_err err = FATHOM_OK;

	if (fd < 0 && errno == ENOENT) {
		(void)fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0,
				  "the store has no index of this build");
		fathom_errinfo_set_file(reterr, path);
		return FATHOM_E_NOT_FOUND;
	}
	if (fd < 0)
		return fathom_fail_os(reterr, path);
	if (fstat(fd, &st)) {
		err = fathom_fail_os(reterr, path);
	} else if (!S_ISREG(st.st_mode)) {
		err = fathom_fail(reterr, FATHOM_E_CORRUPT, "", 0,
				  "the store has something else than an index here");
		fathom_errinfo_set_file(reterr, path);
	} else {
		*ret_size = fathom_file_read_at(fd, off, to, size);
		if (*ret_size < size && errno)
			err = fathom_fail_os(reterr, path);
	}
	(void)close(fd);
	return err;
}

static fathom_err read_bytes(struct fathom_store_backend *b, const char *key, uint64_t off,
			     void *to, size_t size, int64_t deadline_ns, size_t *ret_size,
			     struct fathom_errinfo *reterr)
{
	struct fathom_path path;

	FATHOM_TRY(path_of(b, key, deadline_ns, &path, reterr));
	return read_at(path.text, off, to, size, ret_size, reterr);
}

/* Putting. */

/* Creates a file beside @path, with a name that no other host has; returns its descriptor or -1. */
static int create_temporary(const struct fathom_path *path, struct fathom_path *ret)
{
	uint64_t number = 0;

	if (getrandom(&number, sizeof number, 0) != sizeof number)
		number = (uint64_t)fathom_now_ns() ^ (uint64_t)getpid() << 40;
	if (!fathom_path_format(ret, "%s.%016llx.tmp", path->text, (unsigned long long)number)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return open(ret->text, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

static fathom_err write_temporary(const struct fathom_store_backend *b, const char *key, int fd,
				  const struct fathom_path *path, struct fathom_bytes bytes,
				  int64_t deadline_ns, struct fathom_errinfo *reterr)
{
	for (uint64_t off = 0; off < bytes.size; off += STRETCH) {
		const uint64_t left = bytes.size - off;

		if (fathom_now_ns() >= deadline_ns)
			return fail_late(b, key, reterr);
		if (!fathom_file_write_at(fd, off, bytes.data + off,
					  (size_t)(left < STRETCH ? left : STRETCH)))
			return fathom_fail_write(reterr, path->text);
	}
	/* A name for a file that a crash of the host could empty would be worse than none. */
	return fsync(fd) ? fathom_fail_write(reterr, path->text) : FATHOM_OK;
}

/* A file that is there whole, and the name that it is to get. */
struct putting {
	const struct fathom_container_header *h;
	struct fathom_path path;
	struct fathom_path temporary;
};

/* Reads the header of the file at @path; false if it is none of the build's. */
static bool read_own_header(const struct putting *p, const char *path,
			    struct fathom_container_header *ret)
{
	struct fathom_container_header h;
	size_t size = 0;

	return !read_at(path, 0, &h, sizeof h, &size, NULL) &&
	       !fathom_container_read_header(
		       (struct fathom_bytes){ (const void *)&h, size },
		       (struct fathom_bytes){ p->h->build_id, p->h->build_id_size }, ret, NULL);
}

/* Returns whether the file that has the name is as complete as the temporary one. */
static bool is_as_complete(const struct putting *p)
{
	struct fathom_container_header named;
	struct fathom_container_header mine = *p->h;

	/* An exchange has put another file there. */
	if (*p->temporary.text && !read_own_header(p, p->temporary.text, &mine))
		return true;
	return read_own_header(p, p->path.text, &named) &&
	       fathom_container_compare(&named, &mine) >= 0;
}

/*
 * Gives the temporary file the name, which nobody has, or a file that is less complete. Returns an
 * errno; EEXIST, ENOENT: somebody was faster.
 */
static int take_name(const struct putting *p, bool *ret_is_gone)
{
	struct stat st;

	*ret_is_gone = false;
	if (lstat(p->path.text, &st)) {
		if (!link(p->temporary.text, p->path.text))
			return 0;
		/* Some file systems have no second names. */
		if (errno == EEXIST)
			return EEXIST;
	} else {
		if (!syscall(SYS_renameat2, AT_FDCWD, p->temporary.text, AT_FDCWD, p->path.text,
			     EXCHANGE))
			return 0;
		if (errno == ENOENT)
			return ENOENT;
	}
	*ret_is_gone = true;
	return rename(p->temporary.text, p->path.text) ? errno : 0;
}

/*
 * Gives the more complete of the two files the name. The file that an exchange takes out may be
 * another one than was looked at, so it is compared, too.
 */
static fathom_err give_name(const struct putting *p, bool *ret_stored,
			    struct fathom_errinfo *reterr)
{
	bool is_gone = false;
	int number = 0;

	for (int i = 0; i < TRIES && !is_gone && !is_as_complete(p); i++) {
		number = take_name(p, &is_gone);
		if (number && number != EEXIST && number != ENOENT) {
			errno = number;
			return fathom_fail_write(reterr, p->path.text);
		}
		*ret_stored |= !number;
	}
	return FATHOM_OK;
}

static fathom_err put(struct fathom_store_backend *b, const char *key, struct fathom_bytes bytes,
		      const struct fathom_container_header *h, int64_t deadline_ns,
		      bool *ret_stored, struct fathom_errinfo *reterr)
{
	struct putting p = { .h = h };
	fathom_err err;
	int number;
	int fd;

	FATHOM_TRY(path_of(b, key, deadline_ns, &p.path, reterr));
	*ret_stored = false;
	if (is_as_complete(&p))
		return FATHOM_OK;
	number = fathom_path_make_dirs(p.path.text, 0777);
	fd = create_temporary(&p.path, &p.temporary);
	if (fd < 0) {
		/* A directory is missing: say why it could not be made. */
		errno = errno == ENOENT && number ? number : errno;
		return fathom_fail_write(reterr, p.path.text);
	}
	err = write_temporary(b, key, fd, &p.path, bytes, deadline_ns, reterr);
	if (close(fd) && !err)
		err = fathom_fail_write(reterr, p.path.text);
	if (!err)
		err = give_name(&p, ret_stored, reterr);
	(void)unlink(p.temporary.text);
	return err;
}

/* Listing. */

/* Calls @fn with each build-id of the directory @dir, whose name is the @first byte of them. */
static int each_in(const char *dir, uint8_t first, fathom_build_id_fn fn, void *data)
{
	DIR *d = opendir(dir);
	const struct dirent *e;
	int stop = 0;

	while (d && !stop && (e = readdir(d)) != NULL) {
		const char *suffix = strstr(e->d_name, SUFFIX);
		const size_t digits = suffix ? (size_t)(suffix - e->d_name) : 0;
		uint8_t id[FATHOM_BUILD_ID_MAX] = { first };

		if (digits && digits % 2 == 0 && digits / 2 < sizeof id &&
		    !suffix[sizeof SUFFIX - 1] &&
		    fathom_hex_take(e->d_name, id + 1, digits / 2, fathom_hex_lower))
			stop = fn(data, id, 1 + digits / 2);
	}
	if (d)
		(void)closedir(d);
	return stop;
}

static fathom_err each(struct fathom_store_backend *b, fathom_build_id_fn fn, void *data,
		       struct fathom_errinfo *reterr)
{
	static const uint8_t any[2];
	char key[FATHOM_CONTAINER_KEY];
	struct fathom_path path;
	const struct dirent *e;
	int stop = 0;
	DIR *d;

	FATHOM_TRY(fathom_file_reach(&b->session->memory, b->place, reterr));
	d = opendir(b->place);
	if (!d)
		return fathom_fail_os(reterr, b->place);
	(void)closedir(d);
	(void)fathom_container_key((struct fathom_bytes){ any, sizeof any }, key);
	*strchr(key, '/') = '\0';
	if (!fathom_path_format(&path, "%s/%s", b->place, key))
		return FATHOM_OK;
	d = opendir(path.text);
	while (d && !stop && (e = readdir(d)) != NULL) {
		uint8_t first;

		if (strlen(e->d_name) == 2 &&
		    fathom_hex_take(e->d_name, &first, 1, fathom_hex_lower) &&
		    fathom_path_format(&path, "%s/%s/%s", b->place, key, e->d_name))
			stop = each_in(path.text, first, fn, data);
	}
	if (d)
		(void)closedir(d);
	return FATHOM_OK;
}

static void close_directory(struct fathom_store_backend *b)
{
	free(b->place);
	free(b);
}

static const struct fathom_store_backend_ops directory_ops = {
	.read = read_bytes,
	.put = put,
	.each = each,
	.close = close_directory,
};

fathom_err fathom_store_directory_open(struct fathom *session, const char *place,
				       struct fathom_store_backend **ret,
				       struct fathom_errinfo *reterr)
{
	struct directory *d = calloc(1, sizeof *d);

	if (!d)
		return fathom_fail_memory(reterr);
	d->b.ops = &directory_ops;
	d->b.session = session;
	d->b.place = strdup(place);
	if (!d->b.place) {
		free(d);
		return fathom_fail_memory(reterr);
	}
	*ret = &d->b;
	return FATHOM_OK;
}
