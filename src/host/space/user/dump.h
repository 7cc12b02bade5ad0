/* SPDX-License-Identifier: MIT */
/*
 * The stored memory of a process: a core (core.c) or a snapshot (snapshot_read.c). The map is as
 * complete as it was stored; memory comes in pieces. Memory outside all pieces is unknown, not
 * zero.
 */
#ifndef FATHOM_USER_DUMP_H
#define FATHOM_USER_DUMP_H

#include "host/base/array.h"
#include "host/file/file.h"
#include "host/file/maps.h"
#include "host/space/target.h"
#include "safe/base/reader.h"
#include "safe/base/sort.h"

/* A piece of stored memory. */
struct fathom_dump_piece {
	uint64_t start; /* avma */
	struct fathom_bytes bytes;
};

struct fathom_dump_piece_array {
	FATHOM_ARRAY_OF(struct fathom_dump_piece);
};

/* A mapped file: its identity in the map and what stat() said of it. */
struct fathom_dump_file {
	struct fathom_file_id id; /* device as in the map; ctime_ns 0: no size, time */
	struct fathom_str name;
	bool deleted;
};

struct fathom_dump_file_array {
	FATHOM_ARRAY_OF(struct fathom_dump_file);
};

/* JIT code of the program. */
struct fathom_dump_code {
	uint64_t start; /* avma */
	uint64_t end;
	uint64_t symbol; /* avma where its symbol starts */
	uint64_t size;   /* of the symbol; 0: unknown */
	struct fathom_str name;
	uint8_t source; /* enum fathom_source */
};

struct fathom_dump_code_array {
	FATHOM_ARRAY_OF(struct fathom_dump_code);
};

/* A thread of a core; the first one ended the process. */
struct fathom_dump_thread {
	int32_t tid;
	struct fathom_bytes status; /* NT_PRSTATUS: prstatus.h */
	struct fathom_bytes info;   /* NT_SIGINFO: prstatus.h; empty: none */
	struct fathom_bytes pac;    /* NT_ARM_PAC_MASK: prstatus.h; empty: none */
};

struct fathom_dump_thread_array {
	FATHOM_ARRAY_OF(struct fathom_dump_thread);
};

/* Threads of a snapshot. */
struct fathom_kept_threads {
	FATHOM_ARRAY_OF(struct fathom_stored_thread);
};

struct fathom_dump {
	struct fathom_file *file; /* the other members point into it */
	struct fathom_maps maps;
	struct fathom_dump_piece *pieces; /* sorted, disjoint */
	size_t n_pieces;
	struct fathom_dump_file *files; /* of a snapshot, unsorted; NULL for a core */
	size_t n_files;
	struct fathom_dump_code *code; /* of a snapshot, sorted, disjoint; NULL for a core */
	size_t n_code;
	struct fathom_dump_thread *threads; /* of a core, in file order; NULL for a snapshot */
	size_t n_threads;
	struct fathom_keyed *by_tid;       /* indexes of threads, sorted by number */
	struct fathom_stored_thread *kept; /* threads of a snapshot with stacks, in file order */
	size_t n_kept;
	struct fathom_layout layout; /* of the program; EM_NONE: unknown */
	uint64_t page;               /* bytes */
	uint64_t entry;              /* avma of the program's entry, AT_ENTRY; 0: unknown */
	int pid;                     /* 0: unknown */
	int64_t uid;                 /* of a core: the process's user; -1: unknown */
	int64_t ended;               /* of a core: when written, seconds since 1970; 0: unknown */
	char command[16];            /* the program's name as the kernel had it, truncated; or "" */
};

/* Returns the stored bytes from @avma to the end of their piece; empty if there are none. */
struct fathom_bytes fathom_dump_from(const struct fathom_dump *d, uint64_t avma);

/* Returns the JIT code at @avma, or NULL. */
const struct fathom_dump_code *fathom_dump_code_at(const struct fathom_dump *d, uint64_t avma);

/* Copies up to @size bytes of memory at @avma; returns how many were stored. */
size_t fathom_dump_read(const struct fathom_dump *d, uint64_t avma, void *to, size_t size);

/* Returns a reader of the memory of @d, which must outlive it. */
struct fathom_reader fathom_dump_reader(struct fathom_dump *d);

/* Returns thread @tid, or NULL. */
const struct fathom_dump_thread *fathom_dump_thread_of(const struct fathom_dump *d, int32_t tid);

/* The device of mappings without device and inode numbers; no file has it. */
#define FATHOM_DUMP_DEVICE UINT64_MAX
/* Returns the inode of such a mapping: a hash of the file's name, never 0. */
uint64_t fathom_dump_inode(struct fathom_str name);

/* Returns @page if it is a page size of some system, otherwise 4096. */
uint64_t fathom_dump_page(uint64_t page);

/* Frees @d and closes its file. */
void fathom_dump_deinit(struct fathom_dump *d);

#endif
