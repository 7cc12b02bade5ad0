/* SPDX-License-Identifier: MIT */
#include "host/file/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/base/error_text.h"
#include "host/base/fs_probe.h"
#include "host/file/codec.h"
#include "safe/base/text.h"

#define PAGE UINT64_C(4096)

void fathom_errinfo_set_file(struct fathom_errinfo *info, const char *path)
{
	size_t length = strlen(path);

	if (!info)
		return;
	if (length >= sizeof info->file)
		path += length - (sizeof info->file - 1);
	fathom_copy_cstr(info->file, sizeof info->file, path);
}

size_t fathom_file_read_at(int fd, uint64_t off, void *to, size_t size)
{
	size_t done = 0;

	errno = 0;
	while (done < size && off <= (uint64_t)INT64_MAX - done) {
		const ssize_t got =
			pread(fd, (uint8_t *)to + done, size - done, (off_t)(off + done));

		if (!got || (got < 0 && errno != EINTR))
			break;
		done += got > 0 ? (size_t)got : 0;
		errno = 0;
	}
	return done;
}

bool fathom_file_write_at(int fd, uint64_t off, const void *from, size_t size)
{
	const uint8_t *p = from;

	errno = 0;
	while (size) {
		const ssize_t done = pwrite(fd, p, size, (off_t)off);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		p += done;
		off += (uint64_t)done;
		size -= (size_t)done;
	}
	return true;
}

fathom_err fathom_fail_os(struct fathom_errinfo *reterr, const char *path)
{
	const int number = errno;
	const char *what = fathom_error_text(number);

	(void)fathom_fail(reterr, FATHOM_E_OS, "", 0, what ? what : "unknown system error");
	if (reterr)
		reterr->os_errno = number;
	fathom_errinfo_set_file(reterr, path);
	return FATHOM_E_OS;
}

fathom_err fathom_fail_write(struct fathom_errinfo *reterr, const char *path)
{
	(void)fathom_fail_os(reterr, path);
	if (reterr)
		reterr->cause = FATHOM_CAUSE_WRITE;
	return FATHOM_E_OS;
}

static fathom_err path_error(struct fathom_errinfo *reterr, fathom_err err, const char *path,
			     const char *what)
{
	(void)fathom_fail(reterr, err, "", 0, what);
	fathom_errinfo_set_file(reterr, path);
	return err;
}

bool fathom_file_is_cut(const struct fathom_file *f)
{
	return f && fathom_mapped_is_cut(f->mapped);
}

fathom_err fathom_fail_cut(struct fathom_errinfo *reterr, const char *path)
{
	return path_error(
		reterr, FATHOM_E_CHANGED, path,
		"was truncated or overwritten, or its disk failed, while it was being read");
}

fathom_err fathom_fail_damaged(struct fathom_errinfo *reterr, const char *path)
{
	return path_error(reterr, FATHOM_E_CORRUPT, path, "compressed data is damaged");
}

fathom_err fathom_fail_reach(struct fathom_errinfo *reterr, const char *path)
{
	(void)path_error(reterr, FATHOM_E_TIMEOUT, path, "its file system does not answer");
	if (reterr)
		reterr->cause = FATHOM_CAUSE_SILENT;
	return FATHOM_E_TIMEOUT;
}

fathom_err fathom_file_reach(struct fathom_memory *m, const char *path,
			     struct fathom_errinfo *reterr)
{
	return fathom_fs_probe_path(m->reach, path) ? FATHOM_OK : fathom_fail_reach(reterr, path);
}

/* Returns why a file with @st is not read; NULL if it is. */
static const char *refusal(const struct stat *st)
{
	if (S_ISDIR(st->st_mode))
		return "is a directory";
	return S_ISREG(st->st_mode) ? NULL : "is not a regular file";
}

/* Opens @path for reading if it is a regular file with content. */
static fathom_err open_regular(const char *path, int *ret_fd, struct stat *ret_stat,
			       struct fathom_errinfo *reterr)
{
	const char *why;
	int fd;

	/* First, because opening a device may have effects. */
	if (stat(path, ret_stat) < 0)
		return fathom_fail_os(reterr, path);
	why = refusal(ret_stat);
	if (why)
		return path_error(reterr, FATHOM_E_FORMAT, path, why);
	/* O_NONBLOCK: opening must not hang if it has become a FIFO. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, ret_stat) < 0) {
		(void)fathom_fail_os(reterr, path);
		if (fd >= 0)
			close(fd);
		return FATHOM_E_OS;
	}
	why = refusal(ret_stat);
	if (why || !ret_stat->st_size) {
		close(fd);
		return path_error(reterr, FATHOM_E_FORMAT, path, why ? why : "is empty");
	}
	*ret_fd = fd;
	return FATHOM_OK;
}

static struct fathom_file *file_new(struct fathom_memory *m, const char *path)
{
	struct fathom_file *f = calloc(1, sizeof *f);

	if (f)
		f->path = strdup(path);
	if (f && !f->path) {
		free(f);
		return NULL;
	}
	if (f)
		f->memory = m;
	return f;
}

static void unmap(struct fathom_file *f)
{
	fathom_mapping_remove(&f->memory->mapped, f->mapped);
	f->mapped = NULL;
	if (f->bytes.data)
		(void)munmap((void *)(uintptr_t)f->bytes.data, (size_t)f->bytes.size);
}

/* Replaces the mapped, compressed bytes of @f by the decompressed ones. */
static fathom_err decompress(struct fathom_file *f, const struct fathom_codec *codec,
			     struct fathom_errinfo *reterr)
{
	struct fathom_sink sink = { .limit = fathom_memory_left(f->memory),
				    .session = f->memory->session };
	fathom_err err = codec->open(f->memory, reterr);

	if (err) {
		fathom_errinfo_set_file(reterr, f->path);
		return err;
	}
	(void)madvise((void *)(uintptr_t)f->bytes.data, (size_t)f->bytes.size, MADV_SEQUENTIAL);
	err = codec->stream(f->memory, f->bytes, &sink);
	if (fathom_file_is_cut(f)) {
		fathom_sink_deinit(&sink);
		return fathom_fail_cut(reterr, f->path);
	}
	f->is_short = err == FATHOM_E_CORRUPT && sink.is_short && sink.size;
	if (err && !f->is_short) {
		fathom_sink_deinit(&sink);
		if (err == FATHOM_E_CORRUPT)
			return fathom_fail_damaged(reterr, f->path);
		(void)path_error(reterr, err, f->path,
				 err == FATHOM_E_LIMIT
					 ? "decompressed, it does not fit the memory budget"
					 : "cannot be decompressed");
		if (reterr && err == FATHOM_E_LIMIT)
			reterr->cause = FATHOM_CAUSE_BUDGET;
		return err;
	}
	unmap(f);
	f->bytes = (struct fathom_bytes){ sink.data, sink.size };
	f->allocated = sink.cap;
	fathom_memory_count(f->memory, sink.cap);
	return FATHOM_OK;
}

static struct fathom_file_id id_of(const struct stat *st)
{
	return (struct fathom_file_id){
		.device = (uint64_t)st->st_dev,
		.inode = (uint64_t)st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_ns = st->st_mtim.tv_sec * INT64_C(1000000000) + st->st_mtim.tv_nsec,
		.ctime_ns = st->st_ctim.tv_sec * INT64_C(1000000000) + st->st_ctim.tv_nsec,
	};
}

bool fathom_file_identify(const char *path, struct fathom_file_id *ret)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return false;
	*ret = id_of(&st);
	return true;
}

/* Maps the file open as @fd into @f. */
static fathom_err map_into(struct fathom_file *f, int fd, const struct stat *st,
			   struct fathom_errinfo *reterr)
{
	const size_t size = (size_t)st->st_size;
	void *map;

	if ((uint64_t)st->st_size > SIZE_MAX)
		return path_error(reterr, FATHOM_E_LIMIT, f->path, "is too large to be mapped");
	map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return fathom_fail_os(reterr, f->path);
	f->bytes = (struct fathom_bytes){ map, size };
	f->id = id_of(st);
	f->mapped = fathom_mapping_add(&f->memory->mapped, map, size);
	if (!f->mapped)
		return path_error(reterr, FATHOM_E_MEMORY, f->path, "out of memory");
	(void)madvise(map, size, MADV_RANDOM);
	return FATHOM_OK;
}

fathom_err fathom_file_map(struct fathom_memory *m, const char *path, struct fathom_file **ret,
			   struct fathom_errinfo *reterr)
{
	struct fathom_file *f;
	struct stat st;
	fathom_err err;
	int fd = -1;

	FATHOM_TRY(open_regular(path, &fd, &st, reterr));
	f = file_new(m, path);
	err = f ? map_into(f, fd, &st, reterr)
		: path_error(reterr, FATHOM_E_MEMORY, path, "out of memory");
	close(fd);
	if (err)
		fathom_file_close(f);
	else
		*ret = f;
	return err;
}

fathom_err fathom_file_open_cut(struct fathom_memory *m, const char *path, struct fathom_file **ret,
				struct fathom_errinfo *reterr)
{
	struct fathom_file *f;
	const struct fathom_codec *codec;
	fathom_err err = FATHOM_OK;

	FATHOM_TRY(fathom_file_reach(m, path, reterr));
	FATHOM_TRY(fathom_file_map(m, path, &f, reterr));
	codec = fathom_codec_for_file(f->bytes);
	if (codec)
		err = decompress(f, codec, reterr);
	if (err)
		fathom_file_close(f);
	else
		*ret = f;
	return err;
}

fathom_err fathom_file_open(struct fathom_memory *m, const char *path, struct fathom_file **ret,
			    struct fathom_errinfo *reterr)
{
	struct fathom_file *f = NULL;

	FATHOM_TRY(fathom_file_open_cut(m, path, &f, reterr));
	if (f->is_short) {
		fathom_file_close(f);
		return fathom_fail_damaged(reterr, path);
	}
	*ret = f;
	return FATHOM_OK;
}

bool fathom_file_is_overwritten(const struct fathom_file *f)
{
	struct fathom_file_id now;

	return f->id.inode && fathom_fs_probe_path(f->memory->reach, f->path) &&
	       fathom_file_identify(f->path, &now) && now.inode == f->id.inode &&
	       now.device == f->id.device &&
	       (now.size != f->id.size || now.mtime_ns != f->id.mtime_ns);
}

fathom_err fathom_file_wrap(struct fathom_memory *m, const char *path, uint8_t *pages,
			    uint64_t size, uint64_t cap, struct fathom_file **ret)
{
	struct fathom_file *f = file_new(m, path);

	if (!f)
		return FATHOM_E_MEMORY;
	f->bytes = (struct fathom_bytes){ pages, size };
	f->allocated = cap;
	fathom_memory_count(m, cap);
	*ret = f;
	return FATHOM_OK;
}

fathom_err fathom_file_rename(struct fathom_file *f, const char *root, const char *path)
{
	char *name;

	if (asprintf(&name, "%s%s", root, path) < 0)
		return FATHOM_E_MEMORY;
	free(f->path);
	f->path = name;
	f->root_size = strlen(root);
	return FATHOM_OK;
}

void fathom_file_close(struct fathom_file *f)
{
	if (!f)
		return;
	if (f->allocated) {
		fathom_pages_free((void *)(uintptr_t)f->bytes.data, f->allocated);
		fathom_memory_uncount(f->memory, f->allocated);
	} else {
		unmap(f);
	}
	free(f->path);
	free(f);
}

/* Returns whether @bytes are part of the mapping. Decompressed copies are not. */
static bool is_mapped(const struct fathom_file *f, struct fathom_bytes bytes)
{
	return f && !f->allocated && bytes.size && bytes.data >= f->bytes.data &&
	       bytes.data + bytes.size <= f->bytes.data + f->bytes.size;
}

/* Linux serves one request up to the device's read-ahead, mostly this, and drops the rest. */
#define READ_AHEAD ((size_t)128 << 10)

void fathom_file_will_read(const struct fathom_file *f, struct fathom_bytes bytes)
{
	const uintptr_t end = (uintptr_t)bytes.data + (size_t)bytes.size;
	uintptr_t at = (uintptr_t)bytes.data & ~(uintptr_t)(PAGE - 1);

	if (!is_mapped(f, bytes))
		return;
	for (; at < end; at += READ_AHEAD)
		(void)madvise((void *)at, end - at < READ_AHEAD ? end - at : READ_AHEAD,
			      MADV_WILLNEED);
}

void fathom_file_give_back(const struct fathom_file *f, struct fathom_bytes bytes)
{
	const uintptr_t start = ((uintptr_t)bytes.data + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
	const uintptr_t end = ((uintptr_t)bytes.data + bytes.size) & ~(uintptr_t)(PAGE - 1);

	if (is_mapped(f, bytes) && start < end)
		(void)madvise((void *)start, end - start, MADV_DONTNEED);
}
