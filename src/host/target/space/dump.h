/* SPDX-License-Identifier: MIT */
/*
 * The memory of something that ran, as somebody stored it: a core (core.c) or a snapshot
 * (snapshot_read.c). The map is whole, or as whole as it was stored; of the memory there are
 * pieces. What is not in a piece is not known: it is not zero.
 */
#ifndef FATHOM_TARGET_SPACE_DUMP_H
#define FATHOM_TARGET_SPACE_DUMP_H

#include "host/base/array.h"
#include "host/file/file.h"
#include "host/file/maps.h"

/* Memory that was stored. */
struct fathom_dump_piece {
	uint64_t start; /* avma */
	struct fathom_bytes bytes;
};

struct fathom_dump_piece_array {
	FATHOM_ARRAY_OF(struct fathom_dump_piece);
};

/* What was known of a mapped file: what its mapping has, and what stat() said of it. */
struct fathom_dump_file {
	struct fathom_file_id
		id; /* device as mappings have it; ctime_ns 0: size and time unknown */
	struct fathom_str name;
	bool deleted;
};

struct fathom_dump_file_array {
	FATHOM_ARRAY_OF(struct fathom_dump_file);
};

/* Code that the program had made itself. */
struct fathom_dump_code {
	uint64_t start; /* avma */
	uint64_t end;
	uint64_t symbol; /* avma where its symbol starts */
	uint64_t size;   /* of the symbol; 0: not known */
	struct fathom_str name;
	uint8_t source; /* enum fathom_source */
};

struct fathom_dump_code_array {
	FATHOM_ARRAY_OF(struct fathom_dump_code);
};

/* A thread of a core, the one that ended the process first. */
struct fathom_dump_thread {
	int32_t tid;
	struct fathom_bytes status; /* NT_PRSTATUS: prstatus.h */
};

struct fathom_dump_thread_array {
	FATHOM_ARRAY_OF(struct fathom_dump_thread);
};

struct fathom_dump {
	struct fathom_file *file; /* what follows points into it */
	struct fathom_maps maps;
	struct fathom_dump_piece *pieces; /* sorted, none over another */
	size_t n_pieces;
	struct fathom_dump_file *files; /* of a snapshot, in no order; else NULL */
	size_t n_files;
	struct fathom_dump_code *code; /* of a snapshot, sorted, none over another; else NULL */
	size_t n_code;
	struct fathom_dump_thread *threads; /* of a core, in its order; else NULL */
	size_t n_threads;
	uint64_t page;    /* bytes */
	uint64_t entry;   /* avma where the program started, AT_ENTRY; 0: not known */
	int pid;          /* 0: not known */
	int64_t uid;      /* of a core: the user that the process ran as; -1: not known */
	int64_t ended;    /* of a core: when it was written, seconds since 1970; 0: not known */
	char command[16]; /* the name of the program as the kernel had it, cut to fit; "" */
};

/* The stored bytes from @avma to the end of their piece; empty when there are none. */
struct fathom_bytes fathom_dump_from(const struct fathom_dump *d, uint64_t avma);

/* The code that holds @avma, or NULL. */
const struct fathom_dump_code *fathom_dump_code_at(const struct fathom_dump *d, uint64_t avma);

/* Copies up to @size bytes of memory at @avma; returns how many there are. */
size_t fathom_dump_read(const struct fathom_dump *d, uint64_t avma, void *to, size_t size);

/* Mappings of what has no device and inode numbers have this device, which no file has, */
#define FATHOM_DUMP_DEVICE UINT64_MAX
/* and for an inode a hash of the file's name, which is not 0. */
uint64_t fathom_dump_inode(struct fathom_str name);

/* A page size that systems have; 4096 for what is none. */
uint64_t fathom_dump_page(uint64_t page);

/* Closes the file, too. */
void fathom_dump_deinit(struct fathom_dump *d);

#endif
