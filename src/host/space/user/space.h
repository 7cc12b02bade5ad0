/* SPDX-License-Identifier: MIT */
/*
 * Spaces: targets with a map of which file is where, such as a process or a core.
 *
 * Each view has one map, true at one moment. The map of a core or snapshot is read once and kept
 * between views with all that was found out about it. Files stay open between views, as modules, to
 * be read only once; a module that is no longer mapped is closed.
 */
#ifndef FATHOM_USER_SPACE_H
#define FATHOM_USER_SPACE_H

#include <pthread.h>

#include "host/base/array.h"
#include "host/file/maps.h"
#include "host/jit/jit.h"
#include "host/space/target.h"

struct fathom_file_id;
struct fathom_space;
struct fathom_space_view;

/* Facts about the process of a space. */
struct fathom_space_facts {
	uint64_t entry;              /* avma of the program's entry, AT_ENTRY; 0: unknown */
	struct fathom_layout layout; /* as stored; EM_NONE: unknown */
	int pid;          /* of a stored process: its number in its own namespace; 0: unknown */
	char command[16]; /* the program's name, truncated; or "" */
	int64_t uid;      /* of a core: the process's user; -1: unknown */
	int64_t ended;    /* of a core: when written, seconds since 1970; 0: unknown */
};

/* The operations of a kind of space. Many threads may call them at once. */
struct fathom_space_ops {
	/* Reads the map as it is, or was; an empty map is an error. */
	fathom_err (*read_maps)(const struct fathom_space *s, struct fathom_maps *ret,
				struct fathom_errinfo *reterr);
	/*
	 * Reads a part of the map: the mappings that hold @addresses, at most FATHOM_MAPS_QUERIES.
	 * If it fails, the caller reads the whole map. NULL: unsupported.
	 */
	fathom_err (*query_maps)(const struct fathom_space *s, const uint64_t *addresses, size_t n,
				 struct fathom_maps *ret);
	/*
	 * Reads up to @size bytes of memory at @avma; returns how many it read. If fewer, sets
	 * errno; 0: there is no such memory.
	 */
	size_t (*read)(const struct fathom_space *s, uint64_t avma, void *to, size_t size);
	/*
	 * Opens the memory of the program that runs now, for read_open(); the caller calls close().
	 * Returns -1 on failure. The memory is gone once exec() has replaced the program. Both
	 * operations are NULL if that cannot happen.
	 */
	int (*open_memory)(const struct fathom_space *s);
	/* Reads like read(); if the memory is gone, reads nothing and sets *@ret_gone. */
	size_t (*read_open)(const struct fathom_space *s, int memory, uint64_t avma, void *to,
			    size_t size, bool *ret_gone);
	/* Reads many pieces at once: read_each() of struct fathom_reader. NULL: unsupported. */
	size_t (*read_each)(const struct fathom_space *s, const struct fathom_reader_piece *pieces,
			    size_t n, uint8_t *to);
	/*
	 * Formats a path to the very file of mapping @m, even if it was renamed or deleted; returns
	 * false if there is none. NULL: there never is.
	 */
	bool (*format_very_path)(const struct fathom_space *s, const struct fathom_mapping *m,
				 char *path, size_t cap);
	/*
	 * Returns whether the file system of mapping @m's file answers; if not, neither the file
	 * nor that memory may be touched. NULL: always true, as nothing is live.
	 */
	bool (*is_reachable)(const struct fathom_space *s, const struct fathom_mapping *m);
	/*
	 * Formats the path of @name ("status", "root") in the process's directory below /proc;
	 * returns false if it does not fit. NULL: there is no such process.
	 */
	bool (*format_proc_path)(const struct fathom_space *s, const char *name, char *path,
				 size_t cap);
	/*
	 * Returns whether @id, from stat(), is the file of mapping @m. NULL: compare device and
	 * inode.
	 */
	bool (*is_file)(const struct fathom_space *s, const struct fathom_mapping *m,
			const struct fathom_file_id *id);
	/* Returns the known build-id of mapping @m's file. NULL: none is known. */
	struct fathom_bytes (*build_id)(const struct fathom_space *s,
					const struct fathom_mapping *m);
	/*
	 * Finds the stored JIT code at @avma. NULL: none was stored; use the process's own jitdumps
	 * and perf maps.
	 */
	bool (*find_code)(const struct fathom_space *s, uint64_t avma,
			  struct fathom_symbol_hit *ret);
	/* Calls @fn for all stored JIT code, in address order, until it returns false. */
	void (*each_code)(const struct fathom_space *s, fathom_code_fn fn, void *data);
	/* Reads what is known of the process. NULL: nothing. */
	void (*describe)(const struct fathom_space *s, struct fathom_space_facts *ret);
	/* Frees @s and what its kind owns. */
	void (*free)(struct fathom_space *s);
};

/* A process has some hundred files; the largest have some ten thousand. */
#define FATHOM_SPACE_BUCKETS 1024

/* The general part of a space; each kind's struct begins with it. */
struct fathom_space {
	struct fathom_target target;
	const struct fathom_space_ops *ops;
	struct fathom_notes *notes;      /* of the target */
	char root[64];                   /* prefix of its paths, or "" */
	uint64_t page;                   /* bytes */
	struct fathom_reader memory;     /* by ops->read() */
	pthread_mutex_t lock;            /* guards the list; held only to look at it */
	struct fathom_space_file *files; /* open files; mapped_files.c */
	struct fathom_space_file *bucket[FATHOM_SPACE_BUCKETS]; /* the same files by hash */
	_Atomic uint32_t parts;           /* views that began with a part of the map, or tried to */
	_Atomic(struct fathom_jit *) jit; /* kept between batches: jit.h */
	/* the view kept for reuse, where the map never changes */
	_Atomic(struct fathom_space_view *) idle;
};

/* Initializes the general part, all zero, with the machine's page size. */
void fathom_space_init(struct fathom_space *s, const struct fathom_space_ops *ops,
		       const struct fathom_target_ops *target_ops,
		       struct fathom_search_paths *paths, enum fathom_target_kind kind);

/* The operations that all spaces share: all but describe(). */
#define FATHOM_SPACE_TARGET_OPS                                                              \
	.begin = fathom_space_begin, .end = fathom_space_end, .locate = fathom_space_locate, \
	.begin_jit = fathom_space_begin_jit, .locate_jit = fathom_space_locate_jit,          \
	.jit_stayed = fathom_space_jit_stayed, .modules = fathom_space_modules,              \
	.name_unresolved = fathom_space_name_unresolved, .layout = fathom_space_layout,      \
	.has_stayed = fathom_space_has_stayed, .jit = fathom_space_jit,                      \
	.mapping_end = fathom_space_mapping_end, .main_tid = fathom_space_main_tid,          \
	.read = fathom_space_read_now, .each_open = fathom_space_each_open,                  \
	.store = fathom_snapshot_store, .free = fathom_space_free

fathom_err fathom_space_begin(struct fathom_target *t, enum fathom_view_use use,
			      const uint64_t *avmas, size_t n, struct fathom_view **ret,
			      struct fathom_errinfo *reterr);
void fathom_space_end(struct fathom_view *v);
fathom_err fathom_space_locate(struct fathom_view *v, uint64_t avma, struct fathom_place *ret);
fathom_err fathom_space_locate_jit(struct fathom_view *v, uint64_t avma, struct fathom_place *ret);
fathom_err fathom_space_begin_jit(struct fathom_view *v);
bool fathom_space_jit_stayed(struct fathom_view *v);
fathom_err fathom_space_modules(struct fathom_view *v, fathom_module_fn fn, void *data);
fathom_err fathom_space_name_unresolved(struct fathom_view *v,
					const struct fathom_unresolved *rest);
fathom_err fathom_space_layout(struct fathom_view *v, struct fathom_layout *ret);
bool fathom_space_has_stayed(struct fathom_view *v);
uint64_t fathom_space_mapping_end(const struct fathom_view *v, uint64_t avma);
/* Returns the map of @v. */
const struct fathom_maps *fathom_space_maps(const struct fathom_view *v);
struct fathom_jit_process *fathom_space_jit(struct fathom_view *v);
int32_t fathom_space_main_tid(const struct fathom_target *t);
fathom_err fathom_space_read_now(struct fathom_target *t, uint64_t avma, void *to, size_t size,
				 size_t *ret_size, struct fathom_errinfo *reterr);
void fathom_space_each_open(const struct fathom_target *t,
			    void (*fn)(struct fathom_module *m, void *data), void *data);
fathom_err fathom_snapshot_store(struct fathom_target *t, const char *path,
				 struct fathom_errinfo *reterr);
/*
 * Makes a snapshot of what @v has and of @stacks, which may be NULL, in @to. *@ret_changed: the
 * process loaded or unloaded files meanwhile.
 */
fathom_err fathom_snapshot_take(struct fathom_view *v, const struct fathom_stored_stacks *stacks,
				struct fathom_bytes_array *to, bool *ret_changed,
				struct fathom_errinfo *reterr);
/* Writes a snapshot of @t that was taken to @path. */
fathom_err fathom_snapshot_put(struct fathom_target *t, const struct fathom_bytes_array *body,
			       const char *path, struct fathom_errinfo *reterr);
/* Closes the space and all its files. */
void fathom_space_free(struct fathom_target *t);

/* Reads what is known of the process; zeros stand for unknown. */
void fathom_space_describe(const struct fathom_space *s, struct fathom_space_facts *ret);

/* Returns whether the file of mapping @m can be touched; see the operation. */
bool fathom_space_is_reachable(const struct fathom_space *s, const struct fathom_mapping *m);

/*
 * Formats the path that the user states for the program, if @m is the program's: if its file holds
 * @entry in @maps.
 */
bool fathom_space_format_exe(const struct fathom_space *s, const struct fathom_maps *maps,
			     uint64_t entry, const struct fathom_mapping *m, char *path,
			     size_t cap);

/* Memory of the program that runs now, read many times through one descriptor, if any. */
struct fathom_space_memory {
	const struct fathom_space *space;
	int fd;         /* -1: none */
	bool is_opened; /* opening was tried: at the first read */
	bool is_pinned; /* reads only through the descriptor */
	bool is_gone;   /* exec() replaced the program: nothing is read any more */
};

/* Prepares a reader of the memory of @s; the first read opens it. */
struct fathom_reader fathom_space_memory_init(struct fathom_space_memory *m,
					      const struct fathom_space *s);
/* Opens the memory now: all reads are then of the program that runs now. */
void fathom_space_memory_pin(struct fathom_space_memory *m);
void fathom_space_memory_close(struct fathom_space_memory *m);

#endif
