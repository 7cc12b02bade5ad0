/* SPDX-License-Identifier: MIT */
#include "host/space/kernel/kcore.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/file/file.h"
#include "safe/base/cursor.h"
#include "safe/elf/image.h"

/* Enough for 65,535 program headers; kernels have some ten. */
#define MAX_HEADERS (UINT64_C(8) << 20)
#define NOT_CORE    "not the ELF core file that the kernel's memory is read through"

struct segment {
	uint64_t avma;
	uint64_t size;
	uint64_t off;
};

struct fathom_kcore {
	int fd;
	struct fathom_layout layout;
	uint32_t n;
	struct segment segments[]; /* in the file's order */
};

static fathom_err fail(struct fathom_errinfo *reterr, fathom_err err, const char *path,
		       const char *what)
{
	(void)fathom_fail(reterr, err, "", 0, what);
	fathom_errinfo_set_file(reterr, path);
	return err;
}

/* Reports the usual failures with their remedies. */
static fathom_err fail_open(struct fathom_errinfo *reterr, const char *path, int number)
{
	const char *what = "the kernel's memory is read through this file, which cannot be opened";

	if (number == ENOENT)
		what = "there is none, so the kernel's memory cannot be read (it takes a kernel "
		       "with "
		       "CONFIG_PROC_KCORE)";
	else if (number == EACCES)
		what = "the kernel's memory is not ours to read (run as root)";
	else if (number == EPERM)
		what = "the kernel's memory is not ours to read (run as root with CAP_SYS_RAWIO; a "
		       "kernel in lockdown lets nobody read it)";
	(void)fail(reterr, FATHOM_E_OS, path, what);
	/* Leave errno out: the text says all, and its usual remedy does not apply here. */
	return FATHOM_E_OS;
}

/* Returns where the program headers end, by the ELF header in @bytes. */
static uint64_t headers_end(struct fathom_bytes bytes, const struct fathom_image *image)
{
	struct fathom_cursor c = cur_init(bytes, image->swap);

	cur_skip(&c, image->is64 ? 56 : 44); /* e_phnum */
	return image->phoff + (uint64_t)cur_u16(&c) * image->phentsize;
}

/* Reads all headers into new memory, which *@ret_image views. */
static fathom_err read_headers(int fd, uint8_t **ret_bytes, struct fathom_image *ret_image,
			       struct fathom_errinfo *reterr)
{
	uint8_t head[sizeof(Elf64_Ehdr)];
	struct fathom_bytes bytes = { head, fathom_file_read_at(fd, 0, head, sizeof head) };
	struct fathom_image image;
	uint64_t end;
	uint8_t *all;
	fathom_err err;

	FATHOM_TRY(fathom_image_init(bytes, &image, reterr));
	if (image.type != ET_CORE)
		return fathom_fail(reterr, FATHOM_E_FORMAT, "", 0, NOT_CORE);
	if (image.phoff > MAX_HEADERS || headers_end(bytes, &image) > MAX_HEADERS)
		return fathom_fail(reterr, FATHOM_E_CORRUPT, "", 0, "program headers beyond 8 MiB");
	end = headers_end(bytes, &image);
	end = end > sizeof head ? end : sizeof head;
	all = malloc((size_t)end);
	if (!all)
		return fathom_fail_memory(reterr);
	bytes = (struct fathom_bytes){ all, fathom_file_read_at(fd, 0, all, (size_t)end) };
	err = fathom_image_init(bytes, ret_image, reterr);
	if (err)
		free(all);
	else
		*ret_bytes = all;
	return err;
}

/* Makes the list of segments; returns NULL if out of memory. */
static struct fathom_kcore *list_segments(int fd, const struct fathom_image *image)
{
	struct fathom_kcore *k = malloc(sizeof *k + image->phnum * sizeof *k->segments);

	if (!k)
		return NULL;
	k->fd = fd;
	k->n = 0;
	k->layout = (struct fathom_layout){ image->machine, fathom_image_address_size(image),
					    image->swap };
	for (uint32_t i = 0; i < image->phnum; i++) {
		struct fathom_segment s;
		uint64_t last;

		if (!fathom_image_segment(image, i, &s) || s.type != PT_LOAD || !s.filesz ||
		    __builtin_add_overflow(s.vaddr, s.filesz - 1, &last))
			continue;
		k->segments[k->n++] = (struct segment){ s.vaddr, s.filesz, s.off };
	}
	return k;
}

static fathom_err read_kcore(int fd, const char *path, struct fathom_kcore **ret,
			     struct fathom_errinfo *reterr)
{
	struct fathom_image image;
	uint8_t *bytes = NULL;
	const fathom_err err = read_headers(fd, &bytes, &image, reterr);

	/* A file of another format is reported as a bad kcore. */
	if (err == FATHOM_E_FORMAT)
		return fail(reterr, FATHOM_E_CORRUPT, path, NOT_CORE);
	if (err) {
		fathom_errinfo_set_file(reterr, path);
		return err;
	}
	*ret = list_segments(fd, &image);
	free(bytes);
	return *ret ? FATHOM_OK : fail(reterr, FATHOM_E_MEMORY, path, "out of memory");
}

fathom_err fathom_kcore_open(const char *path, struct fathom_kcore **ret,
			     struct fathom_errinfo *reterr)
{
	/* O_NONBLOCK: a FIFO must not hang. */
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	fathom_err err;

	if (fd < 0)
		return fail_open(reterr, path, errno);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		err = fail(reterr, FATHOM_E_CORRUPT, path, NOT_CORE);
	else
		err = read_kcore(fd, path, ret, reterr);
	if (err)
		close(fd);
	return err;
}

void fathom_kcore_close(struct fathom_kcore *k)
{
	if (k)
		close(k->fd);
	free(k);
}

/* Returns the segment that holds @avma, or NULL. */
static const struct segment *segment_at(const struct fathom_kcore *k, uint64_t avma)
{
	for (uint32_t i = 0; i < k->n; i++)
		if (avma - k->segments[i].avma < k->segments[i].size)
			return &k->segments[i];
	return NULL;
}

size_t fathom_kcore_read(const struct fathom_kcore *k, uint64_t avma, void *to, size_t size)
{
	uint8_t *bytes = to;
	size_t done = 0;

	/* Each iteration reads at least a byte, or is the last. */
	while (done < size) {
		const struct segment *s = segment_at(k, avma + done);
		uint64_t off;
		uint64_t left;
		size_t got;

		if (!s || avma + done < avma)
			break;
		off = avma + done - s->avma;
		left = s->size - off < size - done ? s->size - off : size - done;
		if (__builtin_add_overflow(off, s->off, &off))
			break;
		got = fathom_file_read_at(k->fd, off, bytes + done, (size_t)left);
		done += got;
		if (got < left)
			break;
	}
	return done;
}

struct fathom_layout fathom_kcore_layout(const struct fathom_kcore *k)
{
	return k->layout;
}
